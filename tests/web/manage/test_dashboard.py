"""The dashboard in a browser: a manager's actions and their effects."""

import csv
import io
import itertools
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import update

from duelpool.agreements import STATISTICS, AgreementOptions, find, verdict
from duelpool.agreements.campaigns import votes_of
from duelpool.campaign import Campaign, Settings
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.files import Run
from duelpool.records import Kind, Pool, Topic
from duelpool.store import schema
from duelpool.webhooks import setting_up
from duelpool_reproduce.assessor_study import simulated_study
from support.accessibility import look_with_axe
from support.browsing import People, Person, Site, wait_in
from support.campaigns import make_campaign
from support.managed import DASHBOARD, RUNS, judge, key_for, managed, run, state_of
from support.xss import PAYLOADS

_NUMBERS = itertools.count()
PAGES = (*DASHBOARD, "topic?topic=one", "pair?topic=one&a=a&b=b", "assessor?assessor=p")


class Manager:
    """Somebody before the dashboard of one campaign."""

    def __init__(self, site: Site, person: Person, campaign: Campaign) -> None:
        self.site, self.person, self.page, self.campaign = site, person, person.page, campaign
        self.page.goto(f"{site.address}/manage/{campaign.id}?key={key_for(site.app, campaign.id)}")

    def go(self, path: str) -> None:
        got = self.page.goto(f"{self.site.address}/manage/{self.campaign.id}/{path}")
        assert got is not None
        assert got.status == 200, (path, got.status)

    def figure(self, name: str) -> str:
        """Return a figure of the overview; the page before the manager stays."""
        beside = self.page.context.new_page()
        beside.goto(f"{self.site.address}/manage/{self.campaign.id}/overview")
        text = beside.inner_text(f".figures div:has(dt:text-is('{name}')) dd")
        beside.close()
        return " ".join(text.split())

    def step(self, reason: str = "") -> str:
        """Preview an action and carry it out; return the preview's text."""
        self.page.wait_for_selector("#sure")
        told = self.page.inner_text("#told")
        self.page.click("#sure")
        self.page.wait_for_selector("[role=status].notice")
        return told


@pytest.fixture
def letters(site: Site) -> Campaign:
    return managed(site.store, f"dashboard {next(_NUMBERS)}")


@pytest.fixture
def manager(site: Site, people: People, letters: Campaign) -> Manager:
    return Manager(site, people(), letters)


@pytest.mark.long
def test_excluding_an_assessor_reopens_pairs(manager: Manager, letters: Campaign) -> None:
    judge(letters, 6)
    manager.go("assessors")
    assert manager.figure("Usable judgments").startswith("6 ")
    before = int(manager.figure("Questions open").split()[0])
    manager.page.click("text=anna")
    manager.page.wait_for_selector("#preview")
    told = manager.page.inner_text("#preview")
    assert told.startswith("Reopens 2 pairs: 2 judgments")
    manager.page.fill("input[name=reason]", "too quick")
    manager.page.click("text=Exclude assessor…")
    assert manager.step() == told
    assert manager.page.inner_text(".notice").startswith("Reopened 2 pairs")
    assert manager.figure("Usable judgments").startswith("4 ")
    assert int(manager.figure("Questions open").split()[0]) == before + 2
    assert "1 excluded" in manager.figure("Assessors")
    manager.page.click("text=Reinstate assessor…")
    assert manager.step().startswith("2 judgments would count again")
    assert manager.figure("Usable judgments").startswith("6 ")


@pytest.mark.long
def test_a_phase_is_rewound_after_a_preview_of_the_cost(manager: Manager, letters: Campaign) -> None:
    judge(letters, 1000, "pqrstu")
    manager.go("topic?topic=one")
    rows = manager.page.locator("#closings tbody tr")
    before = rows.count()
    assert before > 1
    first = rows.nth(0)
    first.locator("input[name=reason]").fill("a new guide")
    first.locator("button").click()
    manager.page.wait_for_selector("#sure")
    told = manager.page.inner_text("#told")
    assert told.startswith("Sets aside")
    assert "of later phases" in told
    manager.page.click("text=Cancel")
    manager.page.wait_for_selector("#closings")
    assert rows.count() == before
    first.locator("input[name=reason]").fill("a new guide")
    first.locator("button").click()
    assert manager.step().startswith("Sets aside")
    assert "rewound" in letters_log(manager)
    assert any(line.event == "rewind" for line in letters.live.state("one").lines)


def letters_log(manager: Manager) -> str:
    manager.go("log?event=rewind")
    return manager.page.inner_text("#rows")


def test_a_judgment_is_retracted_with_a_reason(manager: Manager, letters: Campaign) -> None:
    judge(letters, 5)
    manager.go("pairs?topic=one")
    manager.page.click("#rows tbody tr:first-child th a")
    manager.page.wait_for_selector("#votes")
    manager.page.fill("#votes input[name=reason]", "a <slip>")
    manager.page.click("text=Retract…")
    assert manager.step().startswith("Removes 1 judgment from every score")
    assert manager.figure("Usable judgments").startswith("4 ")
    manager.go("log?event=retraction")
    assert "a <slip>" in manager.page.inner_text("#rows")


def test_pause_and_resume(site: Site, manager: Manager, letters: Campaign) -> None:
    manager.go("settings")
    manager.page.click("#to-paused")
    assert "Assessors get no new questions" in manager.step()
    assert state_of(site.store, letters) == "paused"
    assert manager.page.inner_text("#campaign-state") == "paused"
    assert manager.page.inner_text("#so-far .held-up") == "1 to look at"
    assert "The campaign is paused" in str(manager.page.get_attribute("#so-far .held-up", "title"))
    manager.page.click("#to-open")
    manager.step()
    assert state_of(site.store, letters) == "open"


@pytest.mark.long
def test_the_blind_switch_hides_every_name(manager: Manager, letters: Campaign) -> None:
    judge(letters, 40)
    names = {each.name for each in RUNS}
    manager.go("leaderboard")
    assert all(name in manager.page.content() for name in names)
    manager.page.click("#blind")
    manager.page.wait_for_selector("#blind[aria-pressed=true]")
    for path in (
        "overview",
        "leaderboard",
        "leaderboard?measure=nDCG@5&baseline=System+A",
        "leaderboard?tag=odd",
        "settings",
    ):
        manager.go(path)
        content = manager.page.content()
        assert "System A" in content
        assert not any(name in content for name in names), path
    manager.go("leaderboard")
    manager.page.click("#blind")
    manager.page.wait_for_selector("#blind[aria-pressed=false]")
    assert all(name in manager.page.content() for name in names)


def test_an_export_is_downloaded(manager: Manager, letters: Campaign) -> None:
    judge(letters, 12)
    letters.enrol("=cmd|x", "dedicated")
    judge(letters, 1, ["=cmd|x"])
    manager.go("export")
    with manager.page.expect_download() as waited:
        manager.page.click("text=Download csv")
    path = waited.value.path()
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert len(rows) == 13
    assert {row["assessor"] for row in rows} == {"anna", "ben", "cleo", "'=cmd|x"}


@pytest.mark.long
def test_the_leaderboard_moves_while_people_judge(manager: Manager, letters: Campaign) -> None:
    manager.go("leaderboard")
    page = manager.page
    assert page.inner_text("#board h2") == "No judgments yet."
    wait_in(page, "document.documentElement.dataset.live === 'events'")
    judge(letters, 3)
    page.wait_for_selector("#leaderboard tbody tr")
    before = page.inner_text("#leaderboard tbody")
    judge(letters, 30)
    wait_in(page, "text => document.querySelector('#leaderboard tbody').innerText !== text", before)
    wait_in(page, "document.querySelector('#so-far').innerText.startsWith('33 of ')")


@pytest.mark.long
def test_the_page_polls_without_events(manager: Manager, letters: Campaign) -> None:
    page = manager.page
    page.route("**/events", lambda route: route.fulfill(status=500, body=""))
    manager.go("leaderboard")
    wait_in(page, "document.documentElement.dataset.live === 'polling'")
    judge(letters, 3)
    page.wait_for_selector("#leaderboard tbody tr")


@pytest.mark.long
def test_every_action_works_without_scripts(site: Site, people: People, letters: Campaign) -> None:
    judge(letters, 6)
    manager = Manager(site, people(java_script_enabled=False), letters)
    manager.go("log")
    assert manager.page.locator(".asking button").is_visible()
    manager.go("assessor?assessor=ben")
    manager.page.fill("input[name=reason]", "gone")
    manager.page.click("text=Exclude assessor…")
    manager.step()
    assert manager.figure("Usable judgments").startswith("4 ")


def test_a_table_is_filtered_at_once_and_keeps_its_address(manager: Manager, letters: Campaign) -> None:
    """Where scripts run there is no button; the address is that of the form, so it can be sent to others."""
    judge(letters, 30)
    manager.go("log")
    page = manager.page
    assert not page.locator(".asking button").is_visible()
    page.select_option("select[name=event]", "judgment")
    page.wait_for_url("**/log?event=judgment")
    wait_in(page, "!document.querySelector('#rows').textContent.includes(' closed, ')")
    page.fill("input[name=topic]", "QUESTION O")  # a part of the question's words, while it is typed
    page.wait_for_url("**/log?topic=QUESTION+O&event=judgment")
    wait_in(page, "document.querySelectorAll('#rows tbody tr').length > 0")
    assert page.locator("#rows tbody tr").count() > 0
    page.reload()
    assert page.input_value("select[name=event]") == "judgment"


@pytest.mark.long
def test_a_head_sorts_in_place_and_a_card_unfolds(manager: Manager, letters: Campaign) -> None:
    judge(letters, 30)
    page = manager.page
    manager.go("assessors")
    names = page.locator("#rows tbody th a")
    page.click("[data-sort=name]")
    page.wait_for_selector("th[aria-sort=ascending] [data-sort=name]")
    assert names.all_inner_texts() == ["anna", "ben", "cleo"]
    assert page.evaluate("document.activeElement.dataset.sort") == "name"  # the keyboard stays where it was
    page.keyboard.press("Enter")
    page.wait_for_selector("th[aria-sort=descending] [data-sort=name]")
    assert names.all_inner_texts() == ["cleo", "ben", "anna"]
    assert "order=-name" in page.url
    assert page.input_value(".asking [name=order]") == "-name"  # a filter keeps it
    page.fill("input[name=search]", "n")
    wait_in(page, "document.querySelectorAll('#rows tbody tr').length === 2")
    assert names.all_inner_texts() == ["ben", "anna"]
    assert not page.locator("[data-fold]").first.is_visible()
    page.set_viewport_size({"width": 390, "height": 800})
    fold, folded = page.locator("[data-fold]").first, page.locator("#rows tbody tr:first-child .less").first
    assert not folded.is_visible()
    fold.click()
    assert folded.is_visible()
    assert fold.get_attribute("aria-expanded") == "true"
    fold.click()
    assert not folded.is_visible()
    for path, sort in (("log", "topic"), ("pairs", "topic")):
        page.set_viewport_size({"width": 1280, "height": 800})
        manager.go(path)
        page.click(f"[data-sort={sort}]")
        page.wait_for_selector(f"th[aria-sort] [data-sort={sort}]")


def test_the_fields_of_a_comparison_come_with_its_baseline(manager: Manager, letters: Campaign) -> None:
    judge(letters, 30)
    manager.go("leaderboard")
    page = manager.page
    assert not page.locator("select[name=test]").is_visible()
    page.select_option("select[name=baseline]", "shuffled")
    assert page.locator("select[name=test]").is_visible()
    page.wait_for_selector("#leaderboard [data-sort=p]")
    page.select_option("select[name=test]", "wilcoxon")
    page.wait_for_url("**test=wilcoxon**")
    page.select_option("select[name=baseline]", "")
    assert not page.locator("select[name=correction]").is_visible()


def test_no_blank_is_underlined_before_an_id(manager: Manager, letters: Campaign) -> None:
    judge(letters, 30)
    for path in ("topics", "pairs", "log", "assessor?assessor=anna"):
        manager.go(path)
        lines = manager.page.eval_on_selector_all(
            "a.named, a.duel", "all => all.map(each => getComputedStyle(each).textDecorationLine)"
        )
        assert lines
        assert set(lines) == {"none"}, path
        words = manager.page.locator("a .first-words").first
        assert words.evaluate("each => getComputedStyle(each).textDecorationLine") == "underline"


@pytest.mark.long
def test_every_page_passes_axe(manager: Manager, letters: Campaign) -> None:
    judge(letters, 14, "pq")
    setting_up.add(letters, "http://127.0.0.1:9/hook", allow=["127.0.0.1"])  # a table on the settings page
    first = letters.live.state("one").lines[0].judgment
    assert first is not None
    manager.go("assessors")
    manager.page.fill("#invite-name", "carla")
    manager.page.click("#invite button")
    manager.page.wait_for_selector("#invited")
    look_with_axe(manager.page, "invited")
    for path in PAGES:
        if path not in {"agreement", "llm"}:  # which have tests of their own
            manager.go(f"pair?topic=one&a={first.left}&b={first.right}" if path.startswith("pair?") else path)
            look_with_axe(manager.page, path)
    manager.go("settings")
    manager.page.click("#to-paused")
    manager.page.wait_for_selector("#sure")
    look_with_axe(manager.page, "confirm")


@pytest.mark.slow
def test_every_empty_page_passes_axe(site: Site, people: People) -> None:
    campaign = managed(site.store, f"empty {next(_NUMBERS)}", runs=())
    manager = Manager(site, people(), campaign)
    for path in PAGES:
        if "?" not in path or ("topic=one" in path and "pair" not in path):
            manager.go(path)
            look_with_axe(manager.page, f"empty {path}")
            if path in {"overview", "leaderboard", "pairs", "assessors", "money", "log"}:
                assert manager.page.locator(".command code").count() >= 1


@pytest.mark.long
def test_untrusted_texts_are_shown_literally(site: Site, people: People) -> None:
    """Payloads in names of runs, topics, items, assessors and tags, in notes and reasons: none runs."""
    chosen = [each for each in PAYLOADS if each.strip() and not {"\0", "\n", "\r"} & set(each)]
    for start in range(0, len(chosen), 60):
        part = chosen[start : start + 60]
        items = tuple(f"{at}{each}" for at, each in enumerate(part[:12]))
        campaign = managed(
            site.store,
            f"{part[0]} {next(_NUMBERS)}",
            runs=[run(f"{each}{at}", items, ("one",)) for at, each in enumerate(part[:20])],
        )
        name = f"topic {part[-1]}"
        campaign.add_items(Pool(name, items))
        site.store.write(_dressed(campaign, name, part))
        who = [f"{at}{each}" for at, each in enumerate(part[:10])]
        judge(campaign, 60, who)
        campaign.retract(name, [1], part[1])
        campaign.exclude(who[0], part[2])
        manager = Manager(site, people(), campaign)
        first = campaign.live.state(name).lines[0].judgment
        assert first is not None
        query = {"topic": name, "a": first.left, "b": str(first.right)}
        for path in (
            *("overview", "leaderboard", "topics", "pairs", "assessors", "agreement", "log", "settings"),
            f"topic?{_query(topic=name)}",
            f"pair?{_query(**query)}",
            f"assessor?{_query(assessor=who[1])}",
            f"leaderboard?{_query(measure=part[3])}",
            f"topics?{_query(search=part[4])}",
        ):
            manager.go(path)
        manager.go(f"topic?{_query(topic=name)}")
        assert manager.page.inner_text("h1").strip() == " ".join(f"What of {part[5]}".split())
    # whatever ran, loaded or was reported is a complaint, and `people` has none at the end


def _query(**values: str) -> str:
    return urlencode(values)


def _dressed(campaign: Campaign, topic: str, part: list[str]) -> Any:
    def work(connection: Any, now: float) -> None:
        columns = schema.topic.c
        connection.execute(
            update(schema.topic)
            .where(columns.campaign == campaign.id, columns.id == topic)
            .values(text=f"What of {part[5]}", description=part[6], tags=json.dumps(part[7:12]), position=-1)
        )

    return work


def crossed(site: Site) -> Campaign:
    """Make a small crossed campaign of three kinds by simulated assessors, two per kind and topic."""
    study = simulated_study(queries=2, items=4, seed=3)
    topics = ("q000", "q001")
    campaign = Campaign.create(
        site.store,
        f"crossed {next(_NUMBERS)}",
        Settings(strategy="allpairs", crossed=tuple(Kind), scale="five", steps=()),
        topics=[Topic(topic, f"Question {topic}?") for topic in topics],
        pools=[Pool(topic, ("d00", "d01", "d02", "d03")) for topic in topics],
    )
    names = list(study.people)[:6]
    for name in names:
        campaign.enrol(name, "program" if name == names[-1] else "dedicated")
    in_turns([JudgingSession(campaign, name, study.people[name]) for name in names])
    return campaign


@pytest.mark.long
def test_agreement_is_shown_in_every_table(
    site: Site, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "duelpool.web.manage.pages.RESAMPLES", 40
    )  # each table is drawn from more of them alike
    empty = Manager(site, people(), managed(site.store, f"nobody {next(_NUMBERS)}"))
    empty.go("agreement")
    assert empty.page.inner_text(".empty h2") == "No judgments yet"
    assert (
        "duelpool judge terminal campaigns.db" in empty.page.locator(".empty .command code").all_inner_texts()
    )
    campaign = crossed(site)
    manager = Manager(site, people(), campaign)
    manager.go("agreement")
    page = manager.page
    unfold = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
    page.evaluate(unfold)
    votes = votes_of(campaign)
    for name in STATISTICS:
        finding = find(votes, name, AgreementOptions(rows=20, resamples=40))
        assert page.locator(f"table#{name}").count() == bool(finding.table.rows), name
        if finding.table.rows:
            assert page.locator(f"table#{name} tbody tr").count() == len(finding.shown.rows)
            first = page.locator(f"table#{name} tbody tr").first.locator("th, td").all_inner_texts()
            assert [float(text) for text in first if text[:2] == "0."] == [
                pytest.approx(cell, abs=0.0006)
                for cell in finding.shown.rows[0]
                if isinstance(cell, float) and 0 <= cell < 0.9995
            ]
        else:
            assert finding.needs in str(page.locator("#missing").text_content()), name
    assert page.locator("figure .chart").count() == 4
    assert page.inner_text("#verdict strong") == verdict(votes)[0]
    look_with_axe(page, "agreement")
    manager.go("agreement?rate=0.9&cluster=topic")
    wanted = find(votes, "inferred", AgreementOptions("topic", 0.9)).notes
    page.evaluate(unfold)
    assert wanted[1] in page.inner_text("#rows")
    manager.go("agreement?rate=many")
    assert "a number from 0 to 1" in page.inner_text("[role=alert]")
    manager.go("agreement?criterion=taste")
    assert "There is no criterion called 'taste'" in page.inner_text("[role=alert]")


@pytest.mark.long
def test_many_rows_are_paged(site: Site, people: People) -> None:
    runs: list[Run] = [run("only", "ab", ())]
    campaign = managed(site.store, f"many {next(_NUMBERS)}", runs=runs)
    for at in range(120):
        campaign.add_items(Pool(f"t{at:03}", ("a", "b")))
    manager = Manager(site, people(), campaign)
    manager.go("topics")
    seen = []
    while True:
        seen += manager.page.locator("#rows tbody th").all_inner_texts()
        if not manager.page.locator("a[rel=next]").count():
            break
        manager.page.click("a[rel=next]")
    assert len(seen) == len(set(seen)) == 123


def test_a_cell_of_the_win_matrix_says_what_it_holds(manager: Manager, letters: Campaign) -> None:
    judge(letters, 30)
    manager.go("topic?topic=one")
    page = manager.page
    cell = page.locator("#matrix td a").first
    size = cell.bounding_box()
    cell.focus()
    wait_in(page, "document.getElementById('cell-said').textContent !== ''")
    said = page.inner_text("#cell-said")
    assert said.startswith("“Text of ")
    assert " beat “Text of " in said
    assert said.endswith((" of 1 judgment", " judgments"))
    page.check("#larger")
    larger = cell.bounding_box()
    assert size is not None
    assert larger is not None
    assert larger["height"] > 1.5 * size["height"]


def test_names_show_more_on_focus_and_are_copied_whole(site: Site, people: People) -> None:
    pools = [Pool("one", tuple(f"corpus_part_{letter}" for letter in "abcd"))]
    campaign = make_campaign(site.store, pools, name=f"long ids {next(_NUMBERS)}")
    judge(campaign, 6)
    manager = Manager(site, people(), campaign)
    manager.go("topics")
    page = manager.page
    name = page.locator("#rows .best .named").first
    assert name.locator(".cut").inner_text() == "corpus_part_"
    assert name.locator(".cut").bounding_box() != name.bounding_box()
    copied = page.evaluate(
        """() => {
          const all = document.createRange();
          all.selectNodeContents(document.querySelector('#rows .best .named .id'));
          getSelection().removeAllRanges(); getSelection().addRange(all);
          return getSelection().toString();
        }"""
    )
    assert copied.startswith("corpus_part_")
    assert copied in str(name.get_attribute("title"))
    link = page.locator("#rows th .named").first
    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    shown = link.evaluate("each => getComputedStyle(each, '::after').content")
    assert "Question one?" in shown


def test_topics_are_sorted_and_filtered_in_place(manager: Manager, letters: Campaign) -> None:
    judge(letters, 12)
    manager.go("topics")
    page = manager.page
    page.click("[data-sort=question]")
    page.wait_for_selector("[aria-sort=ascending] [data-sort=question]")
    first = page.locator("#rows tbody th .first-words")
    assert first.all_inner_texts() == ["Question one?", "Question three?", "Question two?"]
    page.fill("input[name=search]", "thr")
    wait_in(page, "document.querySelectorAll('#rows tbody tr').length === 1")
    assert first.all_inner_texts() == ["Question three?"]
    assert "search=thr" in page.url
    assert "order=question" in page.url


@pytest.mark.long
def test_a_colleague_is_invited_on_the_page_and_judges_by_the_link(
    manager: Manager, people: People, letters: Campaign
) -> None:
    manager.go("overview")
    page = manager.page
    page.click("text=Invite others")
    page.wait_for_selector("#invite-name")
    page.click("#invite button")  # without a name nothing is sent
    assert page.url.endswith("/assessors#invite")
    page.fill("#invite-name", "Ada Öz")
    page.click("#invite button")
    page.wait_for_selector("#invited")
    assert page.inner_text("h1") == "Link for Ada Öz"
    look_with_axe(page, "invited")
    link = page.inner_text("#invited .command code")
    ada = people()
    ada.enter(link)
    ada.press("ArrowLeft", ada.wait_for_pair())
    ada.wait_until_saved()
    page.click("text=Back to the assessors")
    page.wait_for_selector("#rows th:has-text('Ada Öz')")
    assert page.inner_text("#rows tr:has-text('Ada Öz') [data-is=Judged]") == "1"


def test_the_overview_moves_while_people_judge(manager: Manager, letters: Campaign) -> None:
    manager.go("overview")
    page = manager.page
    assert page.inner_text("h1").startswith("Nothing is judged yet")
    wait_in(page, "document.documentElement.dataset.live === 'events'")
    judge(letters, 12)
    wait_in(page, "document.querySelector('.figures dd a').innerText === '12'")
    assert "anna" in page.inner_text("#working")
    assert "could still be first" in page.inner_text("#leaders")
    page.set_viewport_size({"width": 390, "height": 800})
    assert not page.is_visible("#rail")
    page.click("button.menu")
    page.click("#rail a:text-is('Topics')")
    page.wait_for_selector("#topics")
