"""The dashboard over a campaign in which systems compete."""

import html
import json
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from campaign.test_systems import create
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.views.watch import Watch
from duelpool.campaign_report import chapters
from duelpool.evaluation.systems import system_board
from duelpool.files import SystemVote
from duelpool.store import open_store
from duelpool.web.manage.callers import BLIND
from duelpool.web.manage.systems import SystemBoards, renamed
from support.accessibility import look_with_axe
from support.browsing import People, Site
from support.campaigns import judge_all
from support.managed import key_for
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, served

PAGES = (
    "topics",
    "topic?topic=q1",
    "pair?topic=q1&a=a&b=b",
    "assessors",
    "assessor?assessor=p0",
    "leaderboard",
    "log",
)


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_every_page_opens_where_systems_compete(back_end: str, tmp_path: Path) -> None:
    with new_target(back_end, tmp_path) as target:
        with open_store(target, create=True) as store:
            campaign = create(store)
            judge_all(campaign, people=2)
            campaign.weigh({"p0": 0.5})
        with served(target) as app:
            manager = TestClient(app, base_url=ORIGIN)
            manager.get(f"/manage/{campaign.id}", params={"key": key_for(app, campaign.id)})
            for page in PAGES:
                assert manager.get(f"/manage/{campaign.id}/{page}").status_code == 200, page
            board = manager.get(f"/manage/{campaign.id}/leaderboard").text
            (shown,) = manager.get(f"/api/v1/campaigns/{campaign.id}/leaderboard/systems").json()
            (hidden,) = manager.get(f"/api/v1/campaigns/{campaign.id}/leaderboard/systems?blind=1").json()
    assert "A leads; not settled" in shown["headline"]
    # Who is on top stands above it, and is said once.
    assert shown["headline"].replace("A leads; not", "Not") in board
    assert [row["system"] for row in shown["rows"]][:2] == ["A", "B"]
    assert all(row["low"] < row["strength"] < row["high"] for row in shown["rows"])
    assert board.count('<svg class="strip"') == 4
    assert [row["strength"] for row in hidden["rows"]] == [row["strength"] for row in shown["rows"]]
    assert {row["system"] for row in hidden["rows"]} == {f"System {letter}" for letter in "ABCD"}
    assert all(name in hidden["headline"] for name in (hidden["rows"][0]["system"], "System"))


def test_people_and_models_are_side_by_side(tmp_path: Path) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = create(store)
        judge_all(campaign, people=2)
        campaign.enrol("gpt", "llm")
        votes = [
            {"question_id": topic, "model_a": a, "model_b": b, "winner": "model_b", "judge": "gpt"}
            for topic in ("q1", "q2")
            for a, b in (("A", "B"), ("B", "C"), ("A", "C"))
        ]
        (tmp_path / "votes.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in votes))
        import_file(campaign, tmp_path / "votes.jsonl", by_model=True)
        short, first, *_ = chapters(campaign, Watch(campaign))
    assert [words.split(":")[0] for words in short.words[:2]] == ["By people", "By models"]
    assert first.title == "Leaderboard, by people and models"
    assert first.words[0].startswith("By people: A leads")
    assert [table.folded for table in first.tables[:2]] == [False, True]
    assert "Kendall's tau" in " ".join(first.words)
    with served(tmp_path / "c.db") as app:
        manager = TestClient(app, base_url=ORIGIN)
        manager.get(f"/manage/{campaign.id}", params={"key": key_for(app, campaign.id)})
        board = manager.get(f"/manage/{campaign.id}/leaderboard").text
        agreement = manager.get(f"/manage/{campaign.id}/agreement").text
        shown = manager.get(f"/api/v1/campaigns/{campaign.id}/leaderboard/systems").json()
        manager.cookies.set(BLIND, "1")
        hidden = manager.get(f"/manage/{campaign.id}/leaderboard").text
    assert 'data-is="Win rate, models"' in board
    assert "Kendall's tau between the orders of 4 systems by people and by models" in html.unescape(board)
    assert "The orders of 4 systems by people and by gpt have Kendall's tau" in html.unescape(agreement)
    assert [each["judges"] for each in shown] == ["people", "models"]
    assert [each["tau_with_people"] is None for each in shown] == [True, False]
    assert 'rowheader" dir="auto">System A' in hidden
    assert 'rowheader" dir="auto">A<' not in hidden


def test_a_leaderboard_without_votes_names_the_next_command_and_hides_names(tmp_path: Path) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = create(store, systems={"secret-1": "a", "secret-2": "b"})
    with served(tmp_path / "c.db") as app:
        manager = TestClient(app, base_url=ORIGIN)
        manager.get(f"/manage/{campaign.id}", params={"key": key_for(app, campaign.id)})
        page = f"/manage/{campaign.id}/leaderboard"
        assert "No votes yet" in manager.get(page).text
        assert manager.get(f"/api/v1/campaigns/{campaign.id}/leaderboard/systems").json() == []
        judge_all(app.state.campaigns.flow(campaign.id).campaign, people=1)
        assert "secret-1 beats secret-2" in manager.get(page).text
        assert "There is no tag" in manager.get(f"{page}?tag=none").text
        manager.cookies.set(BLIND, "1")
        assert "secret" not in manager.get(page).text


def test_other_names_are_given_to_systems_without_votes_too() -> None:
    board = system_board([SystemVote("one", "two", "a", question="q")], systems=["one", "two", "secret"])
    hidden = renamed(board, {"one": "System B", "two": "System A", "secret": "System C"})
    assert hidden.without_votes == ("System C",)
    assert "secret" not in " ".join((*hidden.notes(), hidden.headline, str(hidden.rows)))


def test_the_last_leaderboard_is_shown_while_it_is_worked_out_again(tmp_path: Path) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = create(store)
        judge_all(campaign, people=1)
        boards = SystemBoards()
        first = boards.look(campaign, "one")
        assert first.boards[0].order[0] == "A"
        assert boards.look(campaign, "one") is first
        boards._kept[""] = replace(first, until=0.0)
        with boards._lock:  # another reader works it out
            assert boards.look(campaign, "two") == replace(first, until=0.0, outdated=True)
        again = boards.look(campaign, "two")
        assert (again.pulse, again.outdated) == ("two", False)


def test_the_report_begins_with_the_leaderboard_of_systems(tmp_path: Path) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = create(store)
        assert chapters(campaign, Watch(campaign))[0].words == ("There is no vote between systems yet.",)
        judge_all(campaign, people=1)
        short, first, people, *_, last = chapters(campaign, Watch(campaign))
    assert (short.title, first.title, people.title) == ("In short", "Leaderboard", "People")
    assert short.words[0].startswith("A leads; not settled")
    assert short.words[0] not in first.words  # it is said once
    assert last.words[0].startswith("Elo: ")
    assert [row[0] for row in first.tables[0].rows] == ["A", "B", "C", "C2"]
    assert "C is level with C2" in str(first.tables[1].rows)


@pytest.mark.long
def test_the_leaderboard_of_systems_passes_axe(site: Site, people: People) -> None:
    campaign = create(site.store, "systems on a page")
    judge_all(campaign, people=1)
    page = people().page
    page.goto(f"{site.address}/manage/{campaign.id}?key={key_for(site.app, campaign.id)}")
    page.goto(f"{site.address}/manage/{campaign.id}/leaderboard")
    for fold in page.locator("#board details").all():
        fold.locator("summary").click()
    look_with_axe(page, "leaderboard of systems")
    page.click("#blind")
    page.wait_for_selector("#blind[aria-pressed=true]")
    assert "System A" in page.inner_text("#leaderboard")


@pytest.mark.long
@pytest.mark.parametrize("models", [False, True], ids=["people", "both"])
def test_no_column_of_the_leaderboard_is_cut(
    site: Site, people: People, tmp_path: Path, models: bool
) -> None:
    names = (
        "meta-llama/Llama-3.3-70B-Instruct-Turbo-with-retrieval-k20",
        "a_production_system_with_a_long_name_indeed",
    )
    campaign = create(site.store, f"long names, {models}", systems=dict(zip(names, "ab", strict=True)))
    judge_all(campaign, people=1)
    if models:
        rows = [f"{topic},{names[1]},{names[0]},left" for topic in ("q1", "q2", "q3")]
        (tmp_path / "votes.csv").write_text("\n".join(["question_id,left,right,winner", *rows]) + "\n")
        import_file(campaign, tmp_path / "votes.csv", by_model=True)
    page = people().page
    page.goto(f"{site.address}/manage/{campaign.id}?key={key_for(site.app, campaign.id)}")
    page.goto(f"{site.address}/manage/{campaign.id}/leaderboard")
    page.wait_for_selector("#leaderboard")
    for width in (320, 390, 768, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        cut = page.evaluate(
            """() => [document.documentElement.scrollWidth - innerWidth,
                ...[...document.querySelectorAll(".table:has(> .ladder)")].map(e => e.scrollWidth - e.clientWidth)]"""
        )
        assert max(cut) <= 0, (width, cut)
        look_with_axe(page, f"leaderboard at {width}", "#board")
