"""How sure the best items are: one record, and the same words in every place that shows it."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from duelpool.campaign import Campaign
from duelpool.campaign.exports.files import levels_of
from duelpool.campaign.views.certainty import NOT_FROM_CHANCE, in_short, in_words, on_what, percent
from duelpool.campaign.views.status import status
from duelpool.campaign.views.topic_summary import TopicSummary
from duelpool.campaign.views.watch import Watch
from duelpool.campaign_report import chapters
from duelpool.cli import app as commands
from duelpool.records import Certainty
from duelpool.store import open_store
from support.campaigns import judge_all, make_campaign
from support.certain import FULL, REFUSED, certain
from support.managed import key_for
from support.stores import new_target
from support.visitors import ORIGIN, served

STATEMENT = (
    "The first is the best with a chance of 83 %. It is among the five best with 97 %, in the top tenth with "
    "over 99 %, and as good as the best within 10 points with 91 %."
)
RESTS_ON = "The chances hold if judgments follow one of three models: coin flips, Bradley-Terry, one order."


@pytest.mark.parametrize(
    ("chance", "said"),
    [
        (1.0, "over 99 %"), (0.997, "over 99 %"), (0.995, "over 99 %"), (0.9949, "99 %"), (0.99, "99 %"),
        (0.8999, "89 %"), (0.9, "90 %"), (0.29, "29 %"), (0.57, "57 %"), (0.01, "1 %"), (0.0099, "under 1 %"),
        (0.0, "under 1 %"),
    ],
)  # fmt: skip
def test_percentages_never_say_more_than_the_chance(chance: float, said: str) -> None:
    assert percent(chance) == said


def test_a_certainty_in_words() -> None:
    assert in_words(FULL, 1) == STATEMENT
    tied = STATEMENT.replace("The first is the best", "The best is among these 2")
    assert in_words(FULL, 2) == tied.replace("It is", "The first is")
    assert in_words(Certainty(best=0.7), 3) == "The best is among these 3 with a chance of 70 %."
    assert in_words(Certainty(top_five=0.7), 1) == "The first is among the five best with 70 %."
    two = Certainty(top_share=0.7, share=0.05, near_best=0.5, epsilon=0.01)
    assert (
        in_words(two, 1)
        == "The first is in the top 5 % with 70 % and as good as the best within 1 point with 50 %."
    )
    assert in_words(REFUSED, 1) == NOT_FROM_CHANCE
    assert [in_words(each, 1) for each in (None, Certainty())] == ["", ""]
    assert in_words(FULL, 0) == ""


def test_a_certainty_in_short_and_what_it_rests_on() -> None:
    assert [in_short(each) for each in (None, Certainty(), FULL, REFUSED)] == ["–", "–", "83 %", "chance"]
    assert on_what(FULL) == RESTS_ON
    assumed = [
        on_what(Certainty(best=0.5, assumption=each)) for each in ("that coins are fair.", "fair coins")
    ]
    assert assumed == [
        "The chances assume that coins are fair.",
        "The chances rest on an assumption: fair coins.",
    ]
    unsaid = (None, Certainty(best=0.5), Certainty(by_chance=True, assumption="that coins are fair"))
    assert [on_what(each) for each in unsaid] == ["", "", ""]


@pytest.mark.parametrize("certainty", [None, Certainty(), FULL, REFUSED])
def test_a_stored_summary_keeps_the_whole_certainty(certainty: Certainty | None) -> None:
    known = TopicSummary(levels=(("a",), ("b",)), certainty=certainty)
    assert TopicSummary.from_text(known.as_text()) == known


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A judged campaign of three topics: one states all, one is refused, one states nothing."""
    with new_target(request.param, tmp_path) as place, certain({"one": FULL, "two": REFUSED}):
        with open_store(place, create=True) as store:
            judge_all(make_campaign(store, {"one": "abc", "two": "abc", "three": "abc"}, strategy="certain"))
        yield place


def test_every_place_says_the_same_of_a_certainty(target: str, tmp_path: Path) -> None:
    with open_store(target) as store:
        campaign = Campaign.open(store)
        now = status(campaign)
        assert Watch(campaign).look().topic_statuses == now.topic_statuses
        assert [each.statement for each in now.topic_statuses] == [STATEMENT, NOT_FROM_CHANCE, ""]
        assert [each.confidence for each in now.topic_statuses] == [FULL.best, None, None]
        exported = levels_of(campaign)["topics"]
        shown = json.dumps(
            [(part.words, part.tables) for part in chapters(campaign, Watch(campaign))], default=repr
        )
    records = json.loads(json.dumps([each["certainty"] for each in exported.values()]))
    assert [each["confidence"] for each in exported.values()] == [FULL.best, None, None]
    assert records[0] | {"best": 0.8345, "share": 0.1, "epsilon": 0.1, "by_chance": False} == records[0]
    assert (records[1]["by_chance"], records[1]["best"], records[2]) == (True, None, None)
    for words in (STATEMENT, NOT_FROM_CHANCE, RESTS_ON, "83 %"):
        assert words in shown

    def printed(*options: str) -> str:
        got = CliRunner().invoke(commands, ["status", target, *options])
        assert got.exit_code == 0, got.output
        return got.stdout

    topics = json.loads(printed("--json"))["topics"]
    assert [each["certainty"] for each in topics] == records
    assert [each["statement"] for each in topics] == [STATEMENT, NOT_FROM_CHANCE, ""]
    brief = printed()
    assert "a (83 %)" in brief
    assert "a (chance)" in brief
    assert f"(chance): {NOT_FROM_CHANCE}" in brief
    assert RESTS_ON in brief
    assert f"one, a: {STATEMENT}\ntwo, a: {NOT_FROM_CHANCE}\n{RESTS_ON}" in printed("--certainty")

    with served(target) as app:
        (row,) = app.state.campaigns.all()
        client = TestClient(app, base_url=ORIGIN)
        key = key_for(app, row.id)
        api = client.get(
            f"/api/v1/campaigns/{row.id}/topics", headers={"Authorization": f"Bearer {key}"}
        ).json()
        assert [each["status"]["certainty"] for each in api["rows"]] == records
        assert [each["status"]["statement"] for each in api["rows"]] == [STATEMENT, NOT_FROM_CHANCE, ""]
        client.get(f"/manage/{row.id}", params={"key": key})
        page = unescape(client.get(f"/manage/{row.id}/topics").text)
        for title, short in ((STATEMENT, "83 %"), (NOT_FROM_CHANCE, "chance")):
            assert f'title="{title}">{short}</td>' in page
        assert re.search(r'<td class="n" data-is="Certainty">–</td>', page)
        page = unescape(client.get(f"/manage/{row.id}/topic?topic=one").text)
        assert f"<strong>{STATEMENT}</strong>" in page
        assert RESTS_ON in page
        assert NOT_FROM_CHANCE in unescape(client.get(f"/manage/{row.id}/topic?topic=two").text)
