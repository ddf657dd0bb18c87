"""The report on a campaign: complete, safe, and equal to the campaign's figures."""

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, Dialog
from typer.testing import CliRunner

from duelpool import campaign_report
from duelpool.campaign import Campaign, Settings
from duelpool.campaign.views.status import AssessorStatus
from duelpool.campaign.views.watch import Watch
from duelpool.campaign_report import Spared, chapters, facts
from duelpool.cli import app
from duelpool.cli.output import working
from duelpool.leaderboard.board import Board, BoardRow
from duelpool.records import Pool, Topic
from duelpool.report import Table
from duelpool.report.charts import ChartRow, Mark, interval_chart
from duelpool.report.page import Chapter, Fact, html_page
from duelpool.store import open_store
from support.browsing import plain
from support.campaigns import make_campaign
from support.xss import PAYLOADS


class Seen(HTMLParser):
    """What a browser would make of a page: its elements, and its text without the style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        if self._open != "style":
            self.words.append(data)


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_texts_are_escaped(text: str) -> None:
    table = Table((text,), ((text,),), caption=text)
    chapter = Chapter(
        text, (text,), (interval_chart(text, [ChartRow(text, (Mark(0.5),))]),), (table,), (text,)
    )
    seen = Seen(html_page(text, text, [Fact(text, text)], [chapter]))
    assert seen.words.count(text) == 13
    (drawn,) = (attributes for tag, attributes in seen.elements if attributes.get("class") == "chart")
    assert drawn["aria-label"] == text
    allowed = "html head meta title style body header h1 p dl div dt dd nav ul li a main section h2 table"
    allowed += " caption thead tbody tr th td pre code figure svg line circle text span"
    assert {tag for tag, _ in seen.elements} <= set(allowed.split())


def test_chapters_of_one_title_have_different_anchors() -> None:
    page = html_page("t", "", [], [Chapter("Money"), Chapter("Money"), Chapter("金")])
    ids = re.findall(r'<section id="([^"]+)"', page)
    assert len(set(ids)) == 3
    assert re.findall(r'href="#([^"]+)"', page) == ids


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A finished campaign whose texts are full of traps."""
    target = tmp_path / "c.db"
    with open_store(target, create=True) as store:
        Campaign.create(
            store,
            "<script>name</script>",
            Settings(strategy="allpairs"),
            topics=[Topic(f"t{at}", payload) for at, payload in enumerate(PAYLOADS[:5])],
            pools=[Pool(f"t{at}", ("a", "b", "c")) for at in range(5)],
            passages=[plain(item) for item in "abc"],
        )
    run = ["judge", str(target), "--judge", "simulated", "--model", "bt:sd=2"]
    assert CliRunner().invoke(app, run).exit_code == 0
    return target


def test_a_report_of_a_campaign_without_runs_or_money(
    campaign: Path, tmp_path: Path, browser: Browser
) -> None:
    page = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", str(campaign), "-o", str(page)])
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    seen = Seen(text)
    assert "Leaderboard" not in seen.words
    assert "Money" not in seen.words
    for payload in PAYLOADS[:5]:
        assert payload in seen.words
    tab = browser.new_page()
    events: list[str] = []

    def answer(dialog: Dialog) -> None:
        events.append(dialog.message)
        dialog.dismiss()

    tab.on("dialog", answer)
    tab.on("request", lambda request: events.append(request.url))
    tab.goto(page.as_uri())
    assert tab.locator("h2").all_inner_texts() == [
        *("In short", "Best answers", "People", "Reliability", "Definitions")
    ]
    tab.close()
    assert events == [page.as_uri()]


def test_a_report_without_a_store_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(tmp_path / "none.db"), "-o", str(tmp_path / "r.html")])
    assert done.exit_code == 2
    assert not (tmp_path / "r.html").exists()


def test_missing_figures_are_empty_cells() -> None:
    table = Table(("run", "RR", "low", "topics"), (("r1", 0.5, None, 3), ("r2", float("nan"), None, 0)))
    assert table.texts() == [["r1", "0.5000", "", "3"], ["r2", "", "", "0"]]


@pytest.mark.parametrize(("budget", "shown"), [(None, False), (5000, True)])
def test_report_has_money_as_soon_as_there_is_a_budget(
    tmp_path: Path, budget: int | None, shown: bool
) -> None:
    with open_store(tmp_path / "campaign.db", create=True) as store:
        campaign = make_campaign(store, {"one": "ab"}, budget=budget)
        titles = [chapter.title for chapter in chapters(campaign, Watch(campaign))]
    assert ("Money" in titles) == shown


def test_report_begins_with_the_answer_and_ends_with_definitions(tmp_path: Path) -> None:
    store = tmp_path / "campaign.db"
    with open_store(store, create=True) as opened:
        make_campaign(opened, {"one": "abcd"}, strategy="knockout")
    assert CliRunner().invoke(app, ["judge", str(store), "--judge", "simulated"]).exit_code == 0
    with open_store(store) as opened:
        campaign = Campaign.open(opened)
        watch = Watch(campaign)
        first, *_, last = chapters(campaign, watch)
        heads = facts(watch.look())
    taken = watch.look().total("judgments")
    assert first.title == "In short"
    assert last.title == "Definitions"
    assert first.words[0].startswith("A best answer is known for 1 of 1 topic")
    assert first.words[1].startswith(
        f"In 1 finished topic it took {taken} judgments; every pair once would be 6. {6 - taken} ("
    )
    assert " were spared" in first.words[1]
    assert Fact(f"{100 * (6 - taken) / 6:.0f} %", "of all pairs spared") in heads
    page = html_page("t", "", heads, [first, last])
    assert "1 topics" not in page
    assert "1 judgments" not in page


def test_best_answers_list_topics_with_judgments_and_count_the_others(tmp_path: Path) -> None:
    store = tmp_path / "campaign.db"
    with open_store(store, create=True) as opened:
        make_campaign(opened, {"one": "abcd", "two": "abcd", "three": "abcd"}, strategy="allpairs")
    words = ["judge", "simulated", str(store), "--topic", "two", "--limit", "3"]
    assert CliRunner().invoke(app, words).exit_code == 0
    with open_store(store) as opened:
        campaign = Campaign.open(opened)
        (best,) = (each for each in chapters(campaign, Watch(campaign)) if each.title == "Best answers")
    assert best.words[:2] == ("allpairs asked for 3 judgments in 1 topic.", "2 topics have no judgment yet.")
    assert len(best.tables[0].rows) == 1


def test_long_work_is_named_to_a_person_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in (False, True):
        screen = io.StringIO()
        monkeypatch.setattr(screen, "isatty", lambda terminal=terminal: terminal, raising=False)
        monkeypatch.setattr("sys.stderr", screen)
        with working("Counting sheep"):
            pass
        assert ("Counting sheep" in screen.getvalue()) == terminal


def test_what_is_spared_is_in_hours_and_money_where_they_are_known(tmp_path: Path) -> None:
    with open_store(tmp_path / "campaign.db", create=True) as store:
        snapshot = Watch(make_campaign(store, {"one": "abcd"})).look()
    paid = replace(snapshot, money=replace(snapshot.money, per_usable_judgment=24.0))
    spared = Spared(2, True, 100, 1100)
    assert spared.in_words(paid).endswith("1,000 (91 %) were spared, about 240.00 USD.")
    assert Spared(2, True, 999, 1000).in_words(paid).endswith("every pair once would be 1,000.")
    assert (
        Spared(2, False, 10, 1000).in_words(paid)
        == "So far it took 10 judgments; every pair once would be 1,000."
    )
    anna = AssessorStatus(
        "anna", "dedicated", "in", 10, 10, 1, 0, 0, None, 0, seconds=36.0, agreement=None, compared=0, pay=0
    )
    quick = replace(anna, assessor="simulated-1", seconds=0.1)
    timed = replace(snapshot, assessors=(anna, quick))  # simulated people take no time of anybody's
    assert spared.in_words(timed).endswith("1,000 (91 %) were spared, about 10 hours.")
    assert Spared(1, False, 7, 6).in_words(paid) == "So far it took 7 judgments; every pair once would be 6."


@pytest.mark.parametrize(
    ("could", "said"),
    [
        ((True, False, False), "a leads by RR over 4 topics: every other run is significantly below it."),
        ((True, True, False), "a leads by RR over 4 topics, but 1 run could still be first: b."),
        ((True, True, True), "All 3 runs could still be first by RR over 4 topics."),
    ],
)
def test_no_run_is_called_the_leader_while_all_could_be_first(could: tuple[bool, ...], said: str) -> None:
    rows = tuple(
        BoardRow(at + 1, run, 0.5 - at / 10, None, None, 4, first)
        for at, (run, first) in enumerate(zip("abc", could, strict=True))
    )
    board = Board("RR", rows, 4, 4, None, None, ())
    assert campaign_report._who_leads(board) == said
    assert board.has_places != all(could)
