"""The dashboard's routes: access, requests from other sites, and pages with no rows and with one."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import Connection, insert
from starlette.testclient import TestClient

from duelpool.campaign.settings import CHANGEABLE
from duelpool.campaign.views.tally import PairTally
from duelpool.labels import phase_said
from duelpool.store import open_store, schema
from duelpool.web.manage.reading import _matrix
from duelpool.web.server.guard import CSP
from duelpool.web.templating import TEMPLATES
from support.managed import DASHBOARD, judge, key_for, managed, run
from support.visitors import ORIGIN, served

PAGES = (*DASHBOARD, "topic?topic=one")
STEPS = (
    "blind",
    "settings",
    "webhooks",
    "webhooks/x/remove",
    "step/exclude",
    "step/reinstate",
    "step/retract",
    "step/rewind",
    "step/state",
)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    target: Path = tmp_path_factory.mktemp("pages") / "campaign.db"
    with open_store(target, create=True) as store:
        managed(store, "empty", runs=())
        judge(managed(store, "one row"), 1)
        judge(managed(store, "rows"), 30)
        managed(store, "paid", judges="crowd", reward=200, targets=3, tests=0)
        managed(store, "with a budget", budget=10_000)
    with served(target) as application:
        yield application


def ids(app: FastAPI) -> dict[str, str]:
    return {row.name: row.id for row in app.state.campaigns.all()}


def person(app: FastAPI, campaign: str = "", key: str = "") -> TestClient:
    client = TestClient(app, base_url=ORIGIN, raise_server_exceptions=False, follow_redirects=False)
    if campaign:
        got = client.get(f"/manage/{campaign}", params={"key": key or key_for(app, campaign)})
        assert got.status_code == 303, got.text
        assert "key" not in got.headers["location"]
        assert "HttpOnly" in got.headers["set-cookie"]
    return client


def test_the_menu_has_the_money_where_somebody_is_paid(app: FastAPI) -> None:
    menu = {}
    for name in ("rows", "paid", "with a budget"):
        campaign = ids(app)[name]
        manager = person(app, campaign)
        menu[name] = re.findall(r'<li><a href="[^"]*/(\w+)"', manager.get(f"/manage/{campaign}/topics").text)
        assert manager.get(f"/manage/{campaign}/money").status_code == 200
    assert [page for page in menu["paid"] if page not in menu["rows"]] == ["money"]
    assert set(menu["rows"]) < set(menu["paid"])
    assert menu["with a budget"] == menu["paid"]


def test_pages_call_phases_by_words(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    manager = person(app, campaign)
    log = manager.get(f"/manage/{campaign}/log").text
    assert re.search(r"(Pruning|Final) 1 closed, \d+ items? left", log)
    assert "Phase " not in log
    topic = manager.get(f"/manage/{campaign}/topic?topic=one").text
    assert re.search(r'title="(prune|final)-1">(Pruning|Final) 1<', topic)


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ("prune-2", "Pruning 2"),
        ("final-1", "Final 1"),
        ("swiss", "Swiss rounds"),
        ("swiss-finals", "Finals"),
        ("ladder-3", "ladder-3"),
        ("prune-", "prune-"),
        ("", ""),
    ],
)
def test_phases_have_names_in_words(phase: str, said: str) -> None:
    assert phase_said(phase) == said


@pytest.mark.parametrize("name", ["empty", "one row", "rows"])
def test_every_page_exists_with_no_rows_and_with_some(app: FastAPI, name: str) -> None:
    campaign = ids(app)[name]
    manager = person(app, campaign)
    for page in PAGES:
        got = manager.get(f"/manage/{campaign}/{page}")
        assert got.status_code == 200, (page, got.text)
        assert got.headers["content-security-policy"] == CSP
        assert 'id="so-far"' in got.text
        assert "style=" not in got.text  # the policy forbids it
    assert manager.get(f"/manage/{campaign}/nothing").status_code == 404
    assert manager.get(f"/manage/{campaign}/topic?topic=nowhere").status_code == 404
    assert manager.get("/manage/nowhere/topics").status_code == 404


def test_judging_and_inviting_are_a_click_away_until_a_campaign_is_done(app: FastAPI) -> None:
    for name, pages in (
        ("empty", ("overview", "pairs", "agreement", "settings")),
        ("rows", ("overview", "settings")),
    ):
        campaign = ids(app)[name]
        for page in pages:
            text = person(app, campaign).get(f"/manage/{campaign}/{page}").text
            assert text.count('id="judge-here"') == text.count("Invite others") == 1, (name, page)


def test_overview_counts_assessors_who_judged_and_no_share_of_a_few_choices(app: FastAPI) -> None:
    campaign = ids(app)["one row"]
    text = " ".join(person(app, campaign).get(f"/manage/{campaign}/overview").text.split())
    assert "1</a> <small>" in text.split("<dt>Assessors</dt>")[1]
    assert "2 without judgment" in text
    assert "from 20 choices on" in text
    rows = ids(app)["rows"]
    text = person(app, rows).get(f"/manage/{rows}/overview").text
    assert "from 20 choices on" not in text
    assert "50 % is no lean to a side" in text
    assert " as good. " not in text
    board = person(app, rows).get(f"/manage/{rows}/leaderboard").text
    assert re.search(r"the grey line is the mean of all systems.*\.</caption>", board)


def test_pay_is_a_column_for_a_crowd_alone(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    assert 'data-is="Pay"' not in person(app, campaign).get(f"/manage/{campaign}/assessors").text


def test_every_setting_that_can_change_has_its_input(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    text = person(app, campaign).get(f"/manage/{campaign}/settings").text
    form = text[text.index('id="change"') :]
    assert [name for name in CHANGEABLE if not re.search(rf' name="{name}[-"]', form)] == []


def test_a_matrix_without_levels_begins_with_the_items_that_won_most() -> None:
    pairs = tuple(
        PairTally("t", a, b, wins, 2 - wins, 2, 2, 2, None)
        for a, b, wins in (("a", "b", 0), ("b", "c", 1), ("a", "c", 0))
    )
    unknown: Any = SimpleNamespace(levels=())
    known: Any = SimpleNamespace(levels=[("a",), ("x",)])
    assert _matrix(unknown, pairs).items == ["b", "c", "a"]
    assert _matrix(known, pairs).items == ["a", "b", "c"]


def test_whole_numbers_of_settings_have_no_decimals(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    text = person(app, campaign).get(f"/manage/{campaign}/settings").text
    assert 'value="1800"' in text
    assert "1800.0" not in text


def test_a_topics_page_shows_the_texts_of_the_best_items(app: FastAPI) -> None:
    for name, there in (("rows", True), ("empty", False)):
        campaign = ids(app)[name]
        page = person(app, campaign).get(f"/manage/{campaign}/topic?topic=one").text
        assert ("Text of a." in page) is there


def test_the_dashboard_needs_this_campaigns_key(app: FastAPI) -> None:
    mine, other = ids(app)["rows"], ids(app)["empty"]
    links, others = app.state.links, key_for(app, other)
    for key in (
        "x",
        others,
        links.key(mine, "manager", time.time()),
        links.sign("visit", [mine, 1]),
    ):
        refused = 404 if key == others else 403  # for whom may enter another one, there is none here
        assert person(app).get(f"/manage/{mine}", params={"key": key}).status_code == refused
        forged = person(app)
        forged.cookies.set(f"duelpool_manage_{mine}", key)
        assert forged.get(f"/manage/{mine}/log").status_code == refused
    assert person(app).get(f"/manage/{mine}", params={"key": key_for(app, mine, days=-1)}).status_code == 410
    for stranger, refused in ((person(app), 403), (person(app, other), 404)):
        for page in PAGES:
            assert stranger.get(f"/manage/{mine}/{page}").status_code == refused
        for step in STEPS:
            got = stranger.post(f"/manage/{mine}/{step}", data={"sure": "yes"}, headers={"Origin": ORIGIN})
            assert got.status_code == refused


def test_actions_from_other_sites_are_refused(app: FastAPI) -> None:
    mine = ids(app)["rows"]
    manager = person(app, mine)
    pause = {"state": "paused", "sure": "yes"}
    for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "same-site"}):
        got = manager.post(f"/manage/{mine}/step/state", data=pause, headers=headers)
        assert got.status_code == 403
    assert '<span class="pill open"' in manager.get(f"/manage/{mine}/log").text
    page = manager.get(f"/manage/{mine}/settings").text
    form_key = page.split('name="form_key" value="')[1].split('"')[0]
    assert manager.post(f"/manage/{mine}/step/state", data={**pause, "form_key": form_key}).status_code == 303
    assert '<span class="pill paused"' in manager.get(f"/manage/{mine}/log").text
    own = {"Origin": ORIGIN}
    resume = {"state": "open"}
    assert (
        manager.post(f"/manage/{mine}/step/state", data=resume, headers=own).status_code == 200
    )  # a preview
    assert '<span class="pill paused"' in manager.get(f"/manage/{mine}/log").text
    manager.post(f"/manage/{mine}/step/state", data={**resume, "sure": "yes"}, headers=own)
    for wrong in ({"state": "broken"}, {}, {"state": "open\0"}):
        got = manager.post(f"/manage/{mine}/step/state", data=wrong, headers=own)
        assert got.status_code == 422
    wrong = {"topic": "one", "seqs": "x", "reason": "y"}
    assert manager.post(f"/manage/{mine}/step/retract", data=wrong, headers=own).status_code == 422
    assert manager.post(f"/manage/{mine}/step/nothing", data={}, headers=own).status_code == 422


def test_only_signed_notices_are_shown(app: FastAPI) -> None:
    mine = ids(app)["rows"]
    manager = person(app, mine)
    assert "evil" not in manager.get(f"/manage/{mine}/log", params={"notice": "evil"}).text
    signed = app.state.links.sign("notice", "done <b>")
    assert "done &lt;b&gt;" in manager.get(f"/manage/{mine}/log", params={"notice": signed}).text


def test_the_leaderboard_begins_with_its_answer_in_words(tmp_path: Path) -> None:
    """A name in plain words before the formula; the first twenty of many, and all of them by a link."""
    runs = [run(f"run_{at:02}", "abcdefgh"[at % 8 :] + "abcdefgh"[: at % 8]) for at in range(25)]
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = managed(store, runs=runs)
        judge(campaign, 40)
    with served(tmp_path / "c.db") as application:
        manager = TestClient(application, base_url=ORIGIN)
        manager.get(f"/manage/{campaign.id}", params={"key": key_for(application, campaign.id)})

        def rows(**query: str) -> list[str]:
            text = manager.get(f"/manage/{campaign.id}/leaderboard", params=query).text
            body = text.partition('id="leaderboard"')[2].partition("</table>")[0]
            return re.findall(r'<th scope="row" dir="auto">(run_\d\d)', body)

        page = manager.get(f"/manage/{campaign.id}/leaderboard").text
        assert re.search(r'<p class="lead" dir="auto">All 25 systems could still be first\.', page)
        assert page.index("Compatibility with the ideal order") < page.index("<code>Compat(p=0.8)</code>")
        assert "Show all 25 systems" in page
        assert len(rows()) == 20
        assert len(rows(rows="all")) == 25
        assert rows(search="RUN_1") == sorted(rows(search="RUN_1", rows="all"), key=rows(rows="all").index)
        assert rows(order="system") == [f"run_{at:02}" for at in range(20)]
        assert rows(order="-system")[0] == "run_24"  # over all rows, not those of the page
        assert "There is no order" in manager.get(f"/manage/{campaign.id}/leaderboard?order=colour").text


def test_expected_scores_come_when_they_are_worked_out(tmp_path: Path) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = managed(store, runs=[run("first", "abcdefgh"), run("last", "hgfedcba")])
        judge(campaign, 40)
    with served(tmp_path / "c.db") as application:
        manager = TestClient(application, base_url=ORIGIN)
        manager.get(f"/manage/{campaign.id}", params={"key": key_for(application, campaign.id)})

        def page(measure: str) -> str:
            return manager.get(f"/manage/{campaign.id}/leaderboard", params={"measure": measure}).text

        while "Judged again, same topics</th>" not in (text := page("nDCG@5")):
            assert "data-again>They are being computed" in text
            time.sleep(0.2)
        noise = text.partition('id="label-noise"')[2].partition("</details>")[0]
        assert "as far as 40 judgments" in noise
        assert len(re.findall(r'data-is="Expected">0\.\d+', noise)) == 2
        assert len(re.findall(r'data-is="Judged again, same topics">0\.\d+ to [01]\.\d+', noise)) == 2
        assert "label-noise" not in page("ppref")  # it is computed from preferences


# ---- names, orders and numbers


def test_items_and_topics_are_named_by_their_words(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    manager = person(app, campaign)
    for page in ("topics", "topic?topic=one", "pairs", "assessor?assessor=anna", "log"):
        text = manager.get(f"/manage/{campaign}/{page}").text
        assert '<span class="first-words">Text of a.</span>' in text, page
    for page in ("topics", "pairs", "assessor?assessor=anna", "log"):
        assert (
            '<span class="first-words">Question one?</span>' in manager.get(f"/manage/{campaign}/{page}").text
        )


def test_topics_are_sorted_and_searched_over_all_pages(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = ids(app)["rows"]
    manager = person(app, campaign)
    monkeypatch.setattr("duelpool.web.manage.work_pages.ROWS", 2)

    def shown(query: str) -> list[str]:
        text = manager.get(f"/manage/{campaign}/topics?{query}").text
        return [part.split('"')[0] for part in text.split('<th scope="row" class="topic-name"><a href="')[1:]]

    def names(query: str) -> list[str]:
        return [address.partition("topic=")[2] for address in shown(query)]

    assert names("") == ["one", "two"]
    assert names("order=question") == ["one", "three"]
    assert names("order=-question") == ["two", "three"]
    assert names("search=QUESTION TWO") == ["two"]
    assert manager.get(f"/manage/{campaign}/topics?order=nonsense").status_code == 400


def test_topics_say_what_is_open_where_judgments_go_where_they_help(tmp_path: Path) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = managed(store, strategy="swissfinals", spend="best", spend_judgments=60)
        judge(campaign, 30)
    with served(tmp_path / "c.db") as application:
        manager = TestClient(application, base_url=ORIGIN)
        manager.get(f"/manage/{campaign.id}", params={"key": key_for(application, campaign.id)})
        rows = manager.get(f"/manage/{campaign.id}/topics").text
        assert re.search(r"Settled: \d of 3 topics, 30 judgments to go", rows)
        assert "isn&#39;t the best with a chance of at most 5 %" in rows
        for order, label in (("worth", "Still open"), ("gain", "Ten more")):
            text = manager.get(f"/manage/{campaign.id}/topics?order={order}").text
            assert 'aria-sort="descending"' in text
            assert re.search(rf'data-is="{label}">(settled|–|\d+\.\d %)</td>', text)
        listed = manager.get(f"/api/v1/campaigns/{campaign.id}/topics?order=worth").json()["rows"]
        worths = [row["status"]["worth"] for row in listed if row["status"]["worth"] is not None]
        assert worths == sorted(worths, reverse=True)
        assert any(row["status"]["gain"] for row in listed)
        for row in listed:
            page = manager.get(f"/manage/{campaign.id}/topic?topic={row['status']['topic']}").text
            said = (
                "Settled: nothing more is asked."
                if row["status"]["settled"]
                else "Still open: the likeliest item"
            )
            assert said in page


def test_pairs_are_searched_by_the_words_of_their_question(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    manager = person(app, campaign)
    one = manager.get(f"/manage/{campaign}/pairs?topic=one").text
    assert one.count('class="duel"') == manager.get(
        f"/manage/{campaign}/pairs?topic=question one"
    ).text.count('class="duel"')
    assert 'class="duel"' in one
    for query in ("topic=nothing of the kind", "assessor=unknown"):
        assert "No judged pair matches" in manager.get(f"/manage/{campaign}/pairs?{query}").text


def test_assessors_are_sorted_and_their_state_is_in_words(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    manager = person(app, campaign)
    text = manager.get(f"/manage/{campaign}/assessors?order=-name").text
    assert text.index(">cleo<") < text.index(">ben<") < text.index(">anna<")
    assert 'aria-sort="descending"' in text
    assert '<td data-is="State">Included</td>' in text
    found = manager.get(f"/manage/{campaign}/assessors?search=AN").text
    assert ">anna<" in found
    assert ">ben<" not in found


def test_assessors_say_what_a_vote_is_worth_where_three_have_votes(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    manager = person(app, campaign)
    text = manager.get(f"/manage/{campaign}/assessors").text
    assert text.count('<td data-is="A vote is worth">') == 3
    said = text.split('id="weighing">')[1].split("</p>")[0]
    assert said.startswith("Weighing all votes")
    assert said.endswith("1 is that of an average vote, 0 that of a guess; the words go by test pairs, too.")
    assert text.index('id="weighing"') < text.index("<table")
    assert re.search(r" of (3 topics|2 topics|1 topic)\. A vote's worth", said), said
    got = manager.get(f"/api/v1/campaigns/{campaign}/assessors?search=ann").json()
    assert list(got["values"]) == ["anna"]
    assert got["values"]["anna"]["said"] == "about average"
    assert got["weighing"].startswith("Weighing all votes")
    few = ids(app)["one row"]
    manager = person(app, few)
    assert "A vote is worth" not in manager.get(f"/manage/{few}/assessors").text
    assert manager.get(f"/api/v1/campaigns/{few}/assessors").json()["values"] == {}


def test_the_win_matrix_is_ordered_best_first(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    text = person(app, campaign).get(f"/manage/{campaign}/topic?topic=one").text
    matrix = text.split('<table class="matrix wins">')[1].split("</table>")[0]
    rows = [part.split("</tr>")[0] for part in matrix.split("<tr>")[2:]]
    assert rows[0].startswith('<th scope="row"><span class="place">1</span>')
    assert all(f'<span class="place">{at}</span>' in row for at, row in enumerate(rows, 1))
    assert rows[0].count('class="self"') == 1
    assert 'class="lost"' not in rows[0]  # the best item lost to none: all judged correctly


NOUNS = (
    *(
        "topic",
        "judgment",
        "pair",
        "item",
        "time",
        "level",
        "vote",
        "assessor",
        "question",
        "minute",
        "comparison",
    ),
    *(
        "file",
        "system",
        "attempt",
        "request",
        "token",
        "assignment",
        "statistic",
        "run",
        "line",
        "day",
        "hour",
    ),
)
PLURALS = rf"\}}\}}\s+(more )?(({'|'.join(NOUNS)})s|strategies|queries)\b|\"({'|'.join(NOUNS)})\" if "


def test_no_number_stands_before_a_fixed_plural() -> None:
    """`1 topics` can't be written, on any page: a number and its noun come from the filter `counted`."""
    wrong = [
        f"{path.relative_to(TEMPLATES)}: {found.group()}"
        for path in sorted(TEMPLATES.rglob("*.html"))
        for found in re.finditer(PLURALS, path.read_text(encoding="utf-8"))
    ]
    assert not wrong


# ---- orders and filters of the log and the ledger


def _column(text: str, label: str, name: str = "Log") -> list[str]:
    """Return what the cells of a column hold, without marks."""
    body = text.partition(f'aria-label="{name}"')[2].partition("</table>")[0]
    cells = re.findall(rf'data-is="{re.escape(label)}"[^>]*>(.*?)</td>', body)
    return [re.sub(r"<[^>]*>", "", cell).strip() for cell in cells]


def _all_rows(manager: TestClient, address: str, label: str, **query: str) -> list[str]:
    """Return a column of all pages, one after the other."""
    rows, following = [], ""
    for _ in range(60):
        text = manager.get(following or address, params=None if following else query).text
        rows += _column(text, label)
        more = re.search(r'rel="next" href="([^"]*)"', text.partition('id="deeds"')[0])
        if more is None:
            return rows
        following = more.group(1).replace("&amp;", "&")
    raise AssertionError("the pages have no end")


@pytest.mark.parametrize("order", ["", "time", "-time", "topic", "-topic", "assessor", "-assessor"])
def test_the_log_has_each_line_once_in_every_order(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    campaign = ids(app)["rows"]
    manager, address = person(app, campaign), f"/manage/{campaign}/log"
    whole = sorted(zip(*(_all_rows(manager, address, each) for each in ("Topic", "Line")), strict=True))
    monkeypatch.setattr("duelpool.web.manage.pages.ROWS", 7)
    topics, lines, people = (
        _all_rows(manager, address, each, order=order) for each in ("Topic", "Line", "Assessor")
    )
    assert sorted(zip(topics, lines, strict=True)) == whole
    if order.removeprefix("-") == "topic":
        assert topics == sorted(topics, reverse=order.startswith("-"))
    elif order.removeprefix("-") == "assessor":
        named = [each for each in people if each]
        assert people == [*sorted(named, reverse=order.startswith("-")), *[""] * (len(people) - len(named))]
    else:  # within a topic, lines count up
        first = [int(line) for topic, line in zip(topics, lines, strict=True) if topic == topics[0]]
        assert first == sorted(first, reverse=order != "-time")


def test_the_log_is_filtered_by_parts_of_words_and_names(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    manager, address = person(app, campaign), f"/manage/{campaign}/log"
    asked = {"topic": "ESTION TW", "assessor": "EN", "event": "judgment"}
    assert set(_all_rows(manager, address, "Assessor", **asked)) == {"ben"}
    assert all("two" in each for each in _all_rows(manager, address, "Topic", **asked))
    assert set(_all_rows(manager, address, "Assessor", assessor="n")) == {"anna", "ben"}
    for nothing in ({"topic": "nowhere"}, {"assessor": "nobody"}):
        assert "No line of the log matches" in manager.get(address, params=nothing).text
    assert manager.get(address, params={"order": "colour"}).status_code == 400
    assert (
        manager.get(address, params={"order": "topic", "cursor": "WyJ4IiwgMS4wLCAieCIsIDFd"}).status_code
        == 422
    )


def test_the_ledger_has_each_entry_once_in_every_order(tmp_path: Path) -> None:
    """Entries that are alike come the newest first, on the page and in the API."""
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = managed(store)
        entries = [(f"worker {at % 4}", ("reward", "fee")[at % 2], 10 * (at % 3)) for at in range(23)]

        def pay(connection: Connection, now: float) -> None:
            for at, (assessor, entry, amount) in enumerate(entries):
                connection.execute(
                    insert(schema.ledger).values(
                        campaign=campaign.id,
                        assessor=assessor,
                        entry=entry,
                        amount=amount,
                        time=now + at,
                        reason="",
                    )
                )

        for name in sorted({each[0] for each in entries}):
            campaign.enrol(name, "crowd")
        store.write(pay)
    places = range(len(entries))
    keys = {
        "time": lambda at: -at,
        "amount": lambda at: (-entries[at][2], -at),
        "assessor": lambda at: (entries[at][0], -at),
        "entry": lambda at: (entries[at][1], -at),
        "-time": lambda at: at,
        "-amount": lambda at: (entries[at][2], -at),
    }
    with served(tmp_path / "c.db") as application:
        manager = TestClient(application, base_url=ORIGIN)
        manager.get(f"/manage/{campaign.id}", params={"key": key_for(application, campaign.id)})
        for order, key in keys.items():
            rows, query = [], {"order": order, "limit": "5"}
            while query:
                page = manager.get(f"/api/v1/campaigns/{campaign.id}/ledger", params=query).json()
                rows += [(row["assessor"], row["entry"], row["amount"]) for row in page["rows"]]
                query = {**query, "cursor": page["next"]} if page["next"] else {}
            assert rows == [entries[at] for at in sorted(places, key=key)], order
        address = f"/manage/{campaign.id}/money"
        shown = manager.get(address, params={"assessor": "KER 2", "order": "amount"}).text
        assert _column(shown, "Amount", "Ledger") == sorted(_column(shown, "Amount", "Ledger"), reverse=True)
        assert len(_column(shown, "Amount", "Ledger")) == 6
        assert shown.count(">worker 2</a>") == 6
        assert "No entry matches" in manager.get(address, params={"assessor": "100%_"}).text
        assert manager.get(address, params={"order": "colour"}).status_code == 400
        assert manager.get(address, params={"order": "amount", "cursor": "WzVd"}).status_code == 422


@pytest.fixture
def much(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> str:
    """The campaign with rows, as if it had so many that nothing new is worked out while a page waits."""
    monkeypatch.setattr("duelpool.leaderboard.live.AT_ONCE", 0)
    monkeypatch.setattr("duelpool.agreements.campaigns.AT_ONCE", 0)
    return ids(app)["rows"]


def test_a_measure_that_takes_long_is_computed_while_the_page_says_so(app: FastAPI, much: str) -> None:
    manager, address = person(app, much), f"/manage/{much}/leaderboard"
    page = manager.get(address, params={"measure": "RBP(p=0.7)"}).text
    assert "Scores are being computed" in page
    assert "data-again" in page
    assert "Check again" in page
    assert 'id="leaderboard"' not in page
    live = app.state.dashboards.of(much).leaderboard
    live._scoring.join(30)
    page = manager.get(address, params={"measure": "RBP(p=0.7)"}).text
    assert "are being computed</h2>" not in page
    assert 'id="leaderboard"' in page
    wrong = manager.get(address, params={"measure": "RBP(p=7)"}).text
    assert 'role="alert"' in wrong


def test_agreement_that_takes_long_is_computed_while_the_page_says_so(app: FastAPI, much: str) -> None:
    manager, address = person(app, much), f"/manage/{much}/agreement"
    agreements = app.state.dashboards.of(much).agreements
    agreements._last.clear()
    page = manager.get(address).text
    assert "Figures of agreement are being computed" in page
    assert "data-again" in page
    assert "No judgments yet" not in page
    agreements._thread.join(30)
    page = manager.get(address).text
    assert "are being computed</h2>" not in page
    assert 'id="summary"' in page or 'id="alone"' in page
    manager.get(address, params={"criterion": "no such one"})
    agreements._thread.join(30)
    for _ in range(2):
        assert 'role="alert"' in manager.get(address, params={"criterion": "no such one"}).text


def test_every_page_right_after_a_judgment_counts_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "campaign.db", create=True) as store:
        campaign = managed(store, "rows")
        judge(campaign, 12)
    with served(tmp_path / "campaign.db") as application:
        manager = person(application, campaign.id)
        live = application.state.campaigns.flow(campaign.id).campaign
        for name in ("overview", "leaderboard", "topics", "assessors", "agreement", "log"):
            manager.get(f"/manage/{campaign.id}/{name}")
        for count in range(13, 16):
            judge(live, 1)
            for name in ("leaderboard", "topics", "assessors", "agreement"):
                page = manager.get(f"/manage/{campaign.id}/{name}").text
                assert f"{count} of about" in page or f"{count} judgments" in page, name
            history = manager.get(f"/api/v1/campaigns/{campaign.id}/leaderboard/history").json()
            assert history["points"][-1]["judgments"] == count
            assert manager.get(f"/api/v1/campaigns/{campaign.id}/agreement").json()["votes"] == count
            lines = manager.get(f"/api/v1/campaigns/{campaign.id}/log").json()["rows"]
            assert sum(line["event"] == "judgment" for line in lines) == count
