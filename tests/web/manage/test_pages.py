"""The dashboard's routes: access, requests from other sites, and pages with no rows and with one."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from duelpool.store import open_store
from duelpool.web.server.guard import CSP
from duelpool.web.templating import TEMPLATES
from support.managed import judge, key_for, managed, run
from support.visitors import ORIGIN, served

PAGES = (
    *(
        "overview",
        "leaderboard",
        "topics",
        "pairs",
        "assessors",
        "agreement",
        "money",
        "llm",
        "log",
        "export",
        "settings",
    ),
    "topic?topic=one",
)
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
        assert re.search(
            r'<p class="lead" dir="auto">All 25 systems could still be first; run_\d\d is on top\.', page
        )
        assert page.index("Compatibility with the ideal order") < page.index("<code>Compat(p=0.8)</code>")
        assert "Show all 25 systems" in page
        assert len(rows()) == 20
        assert len(rows(rows="all")) == 25
        assert rows(search="RUN_1") == sorted(rows(search="RUN_1", rows="all"), key=rows(rows="all").index)
        assert rows(order="system") == [f"run_{at:02}" for at in range(20)]
        assert rows(order="-system")[0] == "run_24"  # over all rows, not those of the page
        assert "There is no order" in manager.get(f"/manage/{campaign.id}/leaderboard?order=colour").text


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


def test_the_win_matrix_is_ordered_best_first(app: FastAPI) -> None:
    campaign = ids(app)["rows"]
    text = person(app, campaign).get(f"/manage/{campaign}/topic?topic=one").text
    matrix = text.split('<table class="matrix wins">')[1].split("</table>")[0]
    rows = [part.split("</tr>")[0] for part in matrix.split("<tr>")[2:]]
    assert rows[0].startswith('<th scope="row"><span class="place">1</span>')
    assert all(f'<span class="place">{at}</span>' in row for at, row in enumerate(rows, 1))
    assert rows[0].count('class="self"') == 1
    assert 'class="lost"' not in rows[0]  # the best item lost to none: all judged correctly


PLURALS = (
    r"\}\}\s+(topics|judgments|pairs|items|times|levels|votes|assessors|questions|minutes|comparisons)\b"
)


def test_no_number_stands_before_a_fixed_plural() -> None:
    """`1 topics` can't be written: a number and its noun come from the filter `counted`."""
    templates = TEMPLATES / "manage"
    wrong = [
        f"{path.name}: {found.group()}"
        for path in sorted(templates.glob("*.html"))
        for found in re.finditer(PLURALS, path.read_text(encoding="utf-8"))
    ]
    assert not wrong
