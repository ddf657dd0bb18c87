"""A campaign that spends judgments where they help most: created, judged, and what its status says."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.settings.changes import changed
from duelpool.campaign.views.idle import session_ending, why_idle
from duelpool.campaign.views.status import recounted_status, status
from duelpool.campaign.views.watch import Watch
from duelpool.campaign.work.pace import WorkPace
from duelpool.campaign_report import chapters
from duelpool.cli import app
from duelpool.errors import BadParameter
from duelpool.files import Run
from duelpool.files.packed import pack_run
from duelpool.records import Answer, Outcome, Pool, Topic
from duelpool.store import Store, open_store
from duelpool.store.holdings import PackedRun
from duelpool.web.manage.overview.forecast import forecast
from duelpool.web.manage.schemas import head_of
from duelpool.web.setup.options import Options, from_form

SIZES = {"q1": 4, "q2": 6, "q3": 9}


def run(name: str, *, reverse: bool = False) -> PackedRun:
    made = Run.from_rankings(
        name,
        {
            topic: [(f"{topic}-{i}", float(i if reverse else -i)) for i in range(size)]
            for topic, size in SIZES.items()
        },
    )
    return PackedRun(name, len(made), pack_run(made))


def create(store: Store, **settings: object) -> Campaign:
    return Campaign.create(
        store,
        "mine",
        Settings(required=(), **settings),  # type: ignore[arg-type]
        topics=[Topic(topic, f"What is {topic}?") for topic in SIZES],
        pools=[Pool(topic, tuple(f"{topic}-{i}" for i in range(size))) for topic, size in SIZES.items()],
        runs=[run("A"), run("B", reverse=True)],
    )


def judge(campaign: Campaign, most: int, assessor: str = "anna") -> int:
    """Let one assessor prefer the lower number, until nothing is asked."""
    campaign.enrol(assessor, "program")
    count = 0
    while count < most and (question := campaign.next_question(assessor)) is not None:
        first = int(question.left.rpartition("-")[2]) < int((question.right or "").rpartition("-")[2])
        campaign.answer(question.id, assessor, Answer(Outcome.LEFT if first else Outcome.RIGHT))
        count += 1
    return count


def test_spending_evenly_is_the_default_and_has_no_account(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        campaign = create(store)
        assert campaign.settings.spend == "even"
        assert campaign.settings.spend_judgments is None
        judge(campaign, 5)
        now = status(campaign)
        assert now.spending is None
        assert now.as_json()["spending"] is None
        assert {topic.settled for topic in now.topic_statuses} == {None}


def test_judgments_in_all_are_those_of_spending_evenly_unless_given(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        assert create(store, spend="best").settings.spend_judgments == 6 + 15 + 36


@pytest.mark.parametrize("spend", ["best", "leaderboard", "compare:A,B"])
def test_a_campaign_ends_when_the_judgments_are_spent_or_all_is_settled(tmp_path: Path, spend: str) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        campaign = create(store, spend=spend, spend_judgments=40)
        judged = sum(judge(campaign, 100, name) for name in ("anna", "ben", "cleo", "dora", "emil", "finn"))
        now = status(campaign)
        assert campaign.done
        assert now.done
        assert now.spending is not None
        assert now.spending.judgments == judged <= 40
        assert now.spending.done
        assert now.spending.topics == 3
        assert now.as_json()["spending"]["to_go"] == 0
        assert not now.blocks
        assert recounted_status(campaign).as_json() == now.as_json()
        assert Watch(campaign).look().spending == now.spending


def test_the_overview_says_what_is_settled_and_how_much_is_left(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        campaign = create(store, spend="best", spend_judgments=40)
        judge(campaign, 10)
        head = head_of("mine", status(campaign))
        assert head.expected == 40
        assert (
            "settled: 0 of 3 topics, 30 judgments to go"
            in forecast(head, WorkPace(0.0, 10, 1.0, None, None, ())).headline
        )


@pytest.mark.parametrize(
    ("spend", "open_now", "settled"),
    [
        ("best", "The likeliest item isn't the best with a chance of ", "at most 5 %"),
        (
            "leaderboard",
            "A run's score in this topic is known to ±",
            "a run's score in it is known to ± 0.02",
        ),
        ("compare:A,B", "The difference of A and B in this topic is known to ±", "is known to ± 0.02"),
    ],
)
def test_every_topic_says_what_is_open_and_what_more_judgments_bring(
    tmp_path: Path, spend: str, open_now: str, settled: str
) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        campaign = create(store, spend=spend, spend_judgments=200)
        judge(campaign, 19)
        watch = Watch(campaign)
        now = watch.look()
        assert now.spending is not None
        assert settled in now.spending.spend.settled_at
        assert now.as_json()["spending"]["spend"] == spend
        for topic in now.topic_statuses:
            assert (topic.worth is None) == bool(topic.settled)
            if topic.worth is not None and topic.gain is not None:
                assert 0 < topic.gain < topic.worth
                assert topic.still_open.startswith(open_now)
                assert now.spending.spend.in_short(topic.worth - topic.gain) in topic.still_open
                assert "after 10 more judgments about" in topic.still_open
        some = [topic for topic in now.topic_statuses if topic.gain is not None]
        assert some
        short, *others = chapters(campaign, watch)
        assert f"Judgments went where they help most; {now.spending}." in short.words
        answers = next(each for each in others if each.title == "Best answers").tables[0]
        assert answers.columns[-1] == "still open"
        assert now.spending.spend.in_short(some[0].worth or 0) in {row[-1] for row in answers.rows}


def test_set_up_takes_where_judgments_go() -> None:
    settings = Options(spend="compare:A,B", spend_judgments=50).settings()
    assert (settings.spend, settings.spend_judgments) == ("compare:A,B", 50)
    left_empty = Options(**from_form({"spend": "", "spend_judgments": ""}, "plan", Options())).settings()
    assert (left_empty.spend, left_empty.spend_judgments) == ("even", None)


def test_more_judgments_can_be_given_later(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        campaign = create(store, spend="best", spend_judgments=10)
        assert judge(campaign, 100) == 10
        assert why_idle(campaign, "anna") == session_ending(campaign, "anna") == "spent"
        campaign.change(changed(campaign.settings, {"spend_judgments": 14}))
        assert judge(campaign, 100) == 4
        again = Campaign.open(store)
        assert again.done
        assert again.settings.spend_judgments == 14


def test_a_retraction_makes_room_for_another_judgment(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        campaign = create(store, spend="best", spend_judgments=10)
        judge(campaign, 9)
        question = campaign.next_question("anna")
        assert question is not None
        campaign.answer(question.id, "anna", Answer(Outcome.LEFT))
        assert campaign.next_question("anna") is None
        campaign.undo(question.id, "anna")
        assert not campaign.done
        assert judge(campaign, 100) == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"spend": "often"}, "often"),
        ({"spend": "best", "strategy": "prefbest"}, "prefbest"),
        ({"spend": "best", "goal": "systems"}, "goal"),
        ({"spend": "best", "stage": "grading"}, "stage"),
        ({"spend": "compare:A,X"}, "'X'"),
    ],
)
def test_what_does_not_go_with_it_is_refused(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store, pytest.raises(BadParameter, match=said):
        create(store, **settings)


def test_pool_judge_and_status_on_the_command_line(tmp_path: Path) -> None:
    prefs = tmp_path / "prefs.txt"
    rows = [(topic, i, j) for topic, size in SIZES.items() for i in range(size) for j in range(i)]
    prefs.write_text("".join(f"{topic} {topic}-{i} {topic}-{j} {topic}-{j}\n" for topic, i, j in rows))
    store, runner = str(tmp_path / "a.db"), CliRunner()
    missing = ["--allow-missing-texts", "--allow-missing-questions"]
    made = runner.invoke(app, ["pool", "--prefs", str(prefs), "--spend", "best", "-o", store, *missing])
    assert made.exit_code == 0, made.output
    judged = runner.invoke(app, ["judge", "simulated", store, "--model", "bt:sd=4", "--assessors", "12"])
    assert judged.exit_code == 0, judged.output
    shown = runner.invoke(app, ["status", store])
    assert "settled: " in shown.output
    assert "of 3 topics" in shown.output
    assert "still open" in shown.output
    figures = json.loads(runner.invoke(app, ["status", store, "--json"]).output)
    assert figures["done"]
    assert figures["spending"]["judgments"] <= 6 + 15 + 36
    refused = runner.invoke(
        app, ["pool", "--prefs", str(prefs), "--spend", "leaderboard", "-o", store + "2.db"]
    )
    assert refused.exit_code == 2
