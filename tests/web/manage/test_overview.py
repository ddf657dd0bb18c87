"""The overview: how far, until when, who works, what needs attention, the best answers and who leads."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, update

from duelpool.campaign import Campaign
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.campaign.views.status import AssessorStatus
from duelpool.campaign.work.pace import RecentWork, WorkPace, pace
from duelpool.evaluation.systems import BoardOptions, boards_of
from duelpool.files import SystemVote
from duelpool.judges.live import Sheet
from duelpool.records import Answer, Outcome
from duelpool.store import Store, open_store, schema
from duelpool.web import templating
from duelpool.web.manage.dashboard import Dashboard
from duelpool.web.manage.leaderboard_pages import _shown
from duelpool.web.manage.overview.attention import Attention, attention
from duelpool.web.manage.overview.forecast import forecast
from duelpool.web.manage.overview.glance import OverviewShown, _of_systems, best_answers, overview, who_leads
from duelpool.web.manage.schemas import Head, head_of
from duelpool.web.manage.showing import PAGES
from duelpool.webhooks import setting_up
from support.campaigns import make_campaign
from support.managed import RUNS, judge, managed


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def seen(campaign: Campaign) -> OverviewShown:
    return overview(Dashboard.of(campaign))


def kinds(campaign: Campaign) -> list[str]:
    return [each.kind for each in seen(campaign).attention]


def moved(campaign: Campaign, hours: float) -> None:
    """Move all judgments and questions into the past."""
    seconds = 3600 * hours

    def work(connection: Connection, now: float) -> None:
        log, question = schema.log, schema.question
        connection.execute(update(log).values(time=log.c.time - seconds))
        connection.execute(
            update(question).values(asked=question.c.asked - seconds, expires=question.c.expires - seconds)
        )

    campaign.store.write(work)


# ---- how far


def head(**figures: object) -> Head:
    with_none = dict.fromkeys(Head.__dataclass_fields__)
    values = {
        "topics": 4,
        "topics_done": 1,
        "judgments": 100,
        "expected": 400,
        "state": "open",
        "done": False,
    }
    return Head(**{**with_none, **values, **figures})  # type: ignore[arg-type]


NOW = 1_800_000_000.0
FAST = WorkPace(now=NOW, judgments=60, hours=6.0, per_hour=10.0, last=NOW, working=())


def test_the_end_is_told_from_the_pace() -> None:
    ahead = forecast(head(), FAST)
    assert (ahead.share, ahead.to_go, ahead.hours_left) == (0.25, 300, 30.0)
    assert ahead.ends == "2027-01-16T14:00:00.000Z"
    assert ahead.headline == "25 % judged, 1 of 4 topics done."
    assert ahead.sentence == (
        "10 judgments an hour in the last 6 hours. At this pace it ends in about 30 hours: Sat 16 Jan, 14:00 UTC."
    )


@pytest.mark.parametrize(
    ("figures", "recent", "words"),
    [
        ({}, {"judgments": 3, "per_hour": None}, "too few to say when it ends"),
        ({}, {"judgments": 0, "per_hour": None, "last": None}, "No judgment in the last 6 hours"),
        ({}, {"simulated": True}, "All recent judgments are simulated"),
        ({"state": "paused"}, {}, "is paused"),
        ({"expected": 10**9}, {}, "more than a year"),
        (
            {"judgments": 395},
            {"hours": 0.5},
            "in the last 30 minutes. At this pace it ends in about 30 minutes",
        ),
    ],
)
def test_what_cannot_be_told_is_said(
    figures: dict[str, object], recent: dict[str, float | None], words: str
) -> None:
    ahead = forecast(head(**figures), replace(FAST, **recent))  # type: ignore[arg-type]
    assert words in ahead.sentence
    if "ends in" not in words:
        assert ahead.ends is None


def test_headlines() -> None:
    assert forecast(head(judgments=0), FAST).headline == "Nothing is judged yet; about 400 judgments to go."
    assert forecast(head(judgments=399), FAST).headline.startswith("99 % judged")
    assert forecast(head(judgments=1), FAST).headline.startswith("Under 1 % judged")
    done = forecast(head(done=True, judgments=1, topics=1, expected=1), FAST)
    assert (done.headline, done.sentence, done.share) == ("Done: 1 topic, 1 judgment.", "", 1.0)
    assert forecast(head(topics=0), FAST).headline == "The campaign has no topics yet."


# ---- pace


def test_the_pace_counts_what_people_judged_lately(store: Store) -> None:
    campaign = managed(store)
    assert campaign.read(pace).judgments == 0
    judge(campaign, 12)
    moved(campaign, 2.0)
    judge(campaign, 3, ["anna"])
    now = campaign.read(pace)
    assert now.judgments == 15
    assert now.hours == pytest.approx(2.0, abs=0.05)
    assert now.per_hour == pytest.approx(7.5, rel=0.05)
    assert [(each.assessor, each.lately) for each in now.working] == [("anna", 3)]
    moved(campaign, 5.0)
    assert campaign.read(pace).judgments == 3
    assert campaign.read(pace).per_hour is None  # too few
    moved(campaign, 2.0)
    now = campaign.read(pace)
    assert now == WorkPace(now.now, 0, 0.0, None, None, ())


def test_a_pace_is_that_of_the_shortest_window_with_much_work(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{pace.__module__}.MUCH", 3)
    campaign = managed(store)
    judge(campaign, 12)
    moved(campaign, 4.6)
    judge(campaign, 4)
    moved(campaign, 1.2)
    assert campaign.read(pace).judgments == 4
    judge(campaign, 2, ["anna"])
    now = campaign.read(pace)  # 2 in the last hour, 6 in the last hour and a half, 18 in the last six
    assert now.judgments == 6
    assert now.hours == pytest.approx(1.2, abs=0.05)
    judge(campaign, 1, ["anna"])
    now = campaign.read(pace)
    assert now.judgments == 3
    assert now.hours == pytest.approx(0, abs=0.05)


def test_a_window_of_lines_that_are_no_judgments_is_not_enough(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{pace.__module__}.MUCH", 10)
    campaign = managed(store)
    judge(campaign, 12, ["ben"])
    moved(campaign, 2)
    judge(campaign, 10, ["anna"])
    assert campaign.read(pace).judgments == 10
    question = schema.question
    from_a_file = update(question).where(question.c.assessor == "anna").values(source="file")
    store.write(lambda connection, _now: connection.execute(from_a_file))
    assert campaign.read(pace).judgments == 12


def test_who_holds_a_new_question_works_now(store: Store) -> None:
    campaign = managed(store)
    campaign.enrol("ben", "dedicated")
    assert campaign.next_question("ben") is not None
    (working,) = campaign.read(pace).working
    assert isinstance(working, RecentWork)
    assert (working.assessor, working.judgments) == ("ben", 0)
    (shown,) = seen(campaign).working
    assert (shown.assessor, shown.judgments, shown.last) == ("ben", 0, None)


def test_judgments_of_other_campaigns_and_undone_ones_are_left_out(store: Store) -> None:
    one, other = managed(store, "one"), managed(store, "other")
    one.enrol("anna", "dedicated")
    question = one.next_question("anna")
    assert question is not None
    one.answer(question.id, "anna", Answer(Outcome.LEFT))
    assert (one.read(pace).judgments, other.read(pace).judgments) == (1, 0)
    again = one.undo(question.id, "anna")
    assert one.read(pace).judgments == 0
    one.answer(again.id, "anna", Answer(Outcome.RIGHT))
    assert one.read(pace).judgments == 1


# ---- what needs attention


class AlwaysLeft:
    """Prefers whatever is shown on the left."""

    def reply(self, sheet: Sheet) -> Answer:
        return Answer(Outcome.LEFT, seconds=1.0)


def test_nothing_needs_attention_in_a_campaign_that_goes_on(store: Store) -> None:
    campaign = managed(store)
    judge(campaign, 10)
    assert kinds(campaign) == []


def test_a_lean_to_the_left_is_reported(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcdefghijklmnop"}, strategy="allpairs")
    campaign.enrol("anna", "dedicated")
    in_turns([JudgingSession(campaign, "anna", AlwaysLeft())], limit=100)
    (lean,) = [each for each in seen(campaign).attention if each.kind == "lean"]
    assert lean.sentence == "100 % of the choices are for the left side: more than chance."
    assert (lean.page, lean.query) == ("assessors", {"order": "left"})


def person(
    name: str, passed: int, tests: int, agreement: float | None = None, compared: int = 0
) -> AssessorStatus:
    return AssessorStatus(
        *(name, "crowd", "in", 50, 50, 1, passed, tests, 0.5, 50, 9.0, agreement, compared, 0),
    )


def reported(campaign: Campaign, **figures: Any) -> dict[str, Attention]:
    """Return what is reported of a campaign whose status has other figures."""
    dashboard = Dashboard.of(campaign)
    status = replace(dashboard.watch.look(), **figures)
    return {each.kind: each for each in attention(dashboard, status, head_of(campaign.id, status))}


def test_failed_test_pairs_and_assessors_near_exclusion_are_reported(store: Store) -> None:
    campaign = managed(store, judges="crowd", test_share=0.75, tests=0)
    good, fair, near = person("good", 8, 8), person("fair", 9, 10), person("near", 3, 4)
    assert reported(campaign, assessors=(good, fair)) == {}
    found = reported(campaign, assessors=(good, fair, near))
    assert list(found) == ["near-exclusion"]
    assert (
        found["near-exclusion"].sentence == "1 assessor is below or one failed test pair away from exclusion."
    )
    found = reported(campaign, assessors=(person("a", 2, 8), person("b", 1, 4)))
    assert found["test-pairs"].sentence.startswith("Assessors pass 3 of 12 test pairs, 25 %: ")
    assert found["near-exclusion"].sentence.startswith("2 assessors are below")
    assert found["near-exclusion"].query == {"order": "tests"}
    assert reported(campaign, assessors=(replace(near, state="excluded"), good)) == {}
    only_tests = managed(store, "by assignment", judges="crowd", test_rule="any-failed", tests=0)
    assert reported(only_tests, assessors=(good, fair, near)) == {}


def test_money_that_ends_before_the_judgments_is_reported(store: Store) -> None:
    campaign = managed(store, judges="crowd", budget=10_000, reward=200, fee_percent=0, tests=0)
    status = Dashboard.of(campaign).watch.look()
    to_go = status.total("expected")
    rich, poor = replace(status.money, left=10_000), replace(status.money, left=20 * (to_go - 1))
    assert reported(campaign, money=rich, price=20.0) == {}
    (short,) = reported(campaign, money=poor, price=20.0).values()
    assert short.sentence == f"The budget lasts for about {to_go - 1:,} of the {to_go:,} judgments to go."
    assert short.page == "money"


def test_a_paused_campaign_leads_to_its_settings(store: Store) -> None:
    campaign = managed(store)
    campaign.set_state("paused")
    (paused,) = seen(campaign).attention
    assert (paused.kind, paused.page, paused.sentence) == (
        "state",
        "settings",
        "The campaign is paused: no questions are asked.",
    )


def test_assessors_against_all_others_are_reported(store: Store) -> None:
    campaign = managed(store)
    alone, odd = person("alone", 0, 0, 0.1, 19), person("odd", 0, 0, 0.4, 20)
    assert reported(campaign, assessors=(alone, person("usual", 0, 0, 0.7, 90))) == {}
    (found,) = reported(campaign, assessors=(alone, odd)).values()
    assert found.sentence == "1 assessor agrees with the others in fewer than half of the comparisons."
    assert (found.page, found.query) == ("assessors", {"order": "agreement"})


def test_a_webhook_that_fails_is_reported(store: Store) -> None:
    campaign = managed(store)
    added = setting_up.add(campaign, "http://127.0.0.1:9/hook", allow=["127.0.0.1"])
    assert kinds(campaign) == []
    store.write(
        lambda connection, now: connection.execute(
            update(schema.webhook).where(schema.webhook.c.id == added.id).values(state="gone")
        )
    )
    (gone,) = seen(campaign).attention
    assert (gone.kind, gone.page) == ("webhooks", "settings")


# ---- best answers and leaders


def test_the_best_answers_have_their_texts_and_the_leader_its_value(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = managed(store)
    assert (seen(campaign).best, seen(campaign).leaders) == ([], None)
    judge(campaign, 1000)
    shown = seen(campaign)
    assert {each.topic for each in shown.best} == {"one", "two", "three"}
    assert all((each.item, each.text) == ("a", "Text of a.") for each in shown.best)
    assert shown.leaders is not None
    assert shown.leaders.rows[0].system == "alphabetical"
    assert shown.leaders.value == "Compatibility with the ideal order, Compat(p=0.8)"
    assert shown.leaders.sentence == "All 3 systems could still be first, over 3 judged topics."
    assert [row.place for row in shown.leaders.rows] == ["–"] * 3
    assert shown.leaders.more == 0
    monkeypatch.setattr("duelpool.web.manage.overview.glance.LEADERS_SHOWN", 2)
    fewer = seen(campaign).leaders
    assert fewer is not None
    assert (len(fewer.rows), fewer.more) == (2, 1)
    hidden = overview(Dashboard.of(campaign), blind=True)
    assert hidden.leaders is not None
    assert hidden.leaders.rows[0].system.startswith("System ")
    assert "alphabetical" not in hidden.leaders.sentence


def test_the_surest_topics_come_first_after_those_that_are_done(store: Store) -> None:
    campaign = managed(store)
    judge(campaign, 14)
    dashboard = Dashboard.of(campaign)
    status = dashboard.watch.look()
    figures = {"one": (False, 0.3), "two": (False, 0.9), "three": (True, None)}
    topics = tuple(
        replace(
            view,
            status=replace(view.status, best=("a",), certainty=None, done=figures[name][0], confidence=sure),
        )
        for view in status.topics
        for name, (_, sure) in figures.items()
        if name == view.status.topic
    )
    shown = best_answers(dashboard, replace(status, topics=topics))
    assert [each.topic for each in shown] == ["three", "two", "one"]


@pytest.mark.parametrize("questions", [6, 60])
def test_overview_of_systems_counts_rivals_as_their_leaderboard_does(questions: int) -> None:
    votes = [
        SystemVote(*pair, "a" if at % 8 else "b", f"q{at}")
        for at in range(questions)
        for pair in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    (board,) = boards_of(votes, BoardOptions(), ("a", "b", "c", "d"))
    shown = _of_systems(board)
    settled = board.headline.startswith("a is first; settled")
    assert settled == (questions == 60)
    assert settled == ("no other system could still be first" in shown.sentence)
    assert settled != bool(board.rivals)
    assert "1 system has no votes yet." in shown.sentence
    page = _shown(board, {"order": "", "rows": "", "search": ""}).sentence
    assert ("could still be first" in page, "no other" in page) == (True, settled)
    assert page.removesuffix(".").split("; ")[0].split(" with ")[0] in shown.sentence


def test_head_is_that_of_the_status(store: Store) -> None:
    campaign = managed(store)
    judge(campaign, 5)
    dashboard = Dashboard.of(campaign)
    assert overview(dashboard).head == head_of(campaign.id, dashboard.watch.look())


@pytest.mark.parametrize(
    ("rivals", "systems", "said"),
    [
        (1, 1, "a is the only system, with .50"),
        (1, 5, "a leads with .50; no other system could still be first"),
        (3, 5, "a leads with .50; 3 of 5 systems could still be first"),
        (5, 5, "All 5 systems could still be first"),
    ],
)
def test_no_system_is_called_the_leader_while_all_could_be_first(
    rivals: int, systems: int, said: str
) -> None:
    assert who_leads("a", ".50", rivals, systems) == said


def test_pages_are_compiled_while_a_long_log_is_read(store: Store) -> None:
    dashboard, cache = Dashboard.of(managed(store)), templating._environment().cache
    assert cache is not None
    cache.clear()
    dashboard.count()
    compiled = {str(name) for _, name in cache}
    assert {f"manage/{page}.html" for page, _ in PAGES} <= compiled


def test_simulated_assessors_need_attention_and_give_no_forecast(store: Store) -> None:
    campaign = managed(store)
    judge(campaign, 12, ["simulated-1", "simulated-2"])
    now = seen(campaign)
    said = [each.sentence for each in now.attention if each.kind == "simulated"]
    assert said == ["All assessors are simulated: the scores say nothing about what people prefer."]
    assert "simulated" in now.forecast.sentence
    assert now.forecast.ends is None
    judge(campaign, 1, ["anna"])
    said = [each.sentence for each in seen(campaign).attention if each.kind == "simulated"]
    assert said == ["2 of 3 assessors are simulated, and scores count their judgments: 12 of 13."]
    assert "simulated" not in seen(campaign).forecast.sentence


def test_the_leader_has_its_score_in_the_form_of_its_row(store: Store) -> None:
    campaign = managed(store, runs=RUNS[:1])
    judge(campaign, 1000)
    shown = seen(campaign).leaders
    assert shown is not None
    assert shown.sentence == "alphabetical is the only system, with 1.000, over 3 judged topics."
