"""A program as a judge: its questions and answers as JSON lines, and its failures."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from duelpool.campaign.runners.judging_session import JudgeGaveUp, JudgingSession
from duelpool.errors import BadParameter
from duelpool.judges.command import CommandJudge, question_to_json, reply_from_json
from duelpool.judges.live import JudgeError, Sheet
from duelpool.records import Answer, Outcome, Passage, Topic
from duelpool.store import Store, open_store
from support.campaigns import make_campaign

SHEET = Sheet(
    "q1",
    Topic("jaffe", "who is jaffe?"),
    Passage("a", "The left text."),
    Passage("b", "The right text."),
    frozenset({Outcome.LEFT, Outcome.RIGHT, Outcome.SKIP}),
)
LOOP = "import json, sys\nfor line in sys.stdin:\n    q = json.loads(line)\n    {}\n"
SMALLER = "print(json.dumps({'id': q['id'], 'winner': min(q['left']['id'], q['right']['id'])}), flush=True)"


def program(text: str, timeout: float = 20.0) -> CommandJudge:
    return CommandJudge([sys.executable, "-c", text], timeout=timeout)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def test_program_answers_questions_in_turn() -> None:
    with program(LOOP.format(SMALLER)) as judge:
        for left, right, outcome in (("a", "b", Outcome.LEFT), ("d", "c", Outcome.RIGHT)):
            reply = judge.reply(replace(SHEET, left=Passage(left, ""), right=Passage(right, "")))
            assert isinstance(reply, Answer)
            assert reply.outcome is outcome
            assert reply.seconds is not None


def test_a_program_sees_what_a_person_sees() -> None:
    full = replace(
        SHEET,
        topic=Topic("jaffe", "who is jaffe?", "About people.", ("Tell me.",)),
        guidelines="Choose.",
        criterion="fluency",
    )
    assert question_to_json(full) == {
        "id": "q1",
        "topic": "jaffe",
        "question": "who is jaffe?",
        "left": {"id": "a", "text": "The left text."},
        "right": {"id": "b", "text": "The right text."},
        "outcomes": ["left", "right", "skip"],
        "description": "About people.",
        "conversation": ["Tell me."],
        "guidelines": "Choose.",
        "criterion": "fluency",
    }
    assert question_to_json(replace(SHEET, right=None, grades=(0.0, 1.0)))["grades"] == [0.0, 1.0]


def test_answer_with_all_optional_fields() -> None:
    line = {"id": "q1", "outcome": "right", "confidence": 0.7, "note": "close", "seconds": 1.5}
    assert reply_from_json(json.dumps(line), SHEET) == Answer(Outcome.RIGHT, None, 0.7, "close", 1.5)
    graded = replace(SHEET, right=None, grades=(0.0, 1.0), outcomes=frozenset({Outcome.GRADE}))
    assert reply_from_json('{"id": "q1", "grade": 1}', graded) == Answer(Outcome.GRADE, grade=1.0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hello", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"id": "other", "outcome": "left"}', "about the question 'other'"),
        ('{"outcome": "left"}', "about the question None"),
        ('{"id": "q1"}', "outcome None"),
        ('{"id": "q1", "outcome": "tie"}', "isn't one of left, right, skip"),
        ('{"id": "q1", "outcome": ["left"]}', "isn't one of"),
        ('{"id": "q1", "winner": "c"}', "neither of the two"),
        ('{"id": "q1", "winner": ["a"]}', "neither of the two"),
        ('{"id": "q1", "outcome": "left", "grade": 2}', "goes with the outcome"),
        ('{"id": "q1", "outcome": "left", "confidence": "high"}', "no number"),
        ('{"id": "q1", "outcome": "left", "seconds": -1}', "from 0 on"),
        ('{"id": "q1", "outcome": "left", "seconds": NaN}', "no number"),
        (f'{{"id": "q1", "outcome": "left", "seconds": {"9" * 400}}}', "no number"),
        ('{"id": "q1", "outcome": "left", "note": 3}', "a text"),
        ('{"id": "q1", "error": "no key"}', "The program reports: no key"),
    ],
)
def test_wrong_reply_raises_its_problem(line: str, message: str) -> None:
    with pytest.raises(JudgeError, match=r".") as raised:
        reply_from_json(line, SHEET)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "timeout", "message"),
    [
        (LOOP.format("print('nonsense', flush=True)"), 20.0, "not JSON"),
        ("import time\ntime.sleep(60)", 0.3, "within 0.3 seconds"),
        ("import sys\nsys.exit(3)", 20.0, "ended with code 3"),
        (LOOP.format("sys.exit(4)"), 20.0, "ended with code 4"),
    ],
)
def test_failing_program_raises_and_is_restarted(text: str, timeout: float, message: str) -> None:
    with program(text, timeout) as judge:
        for _ in range(2):
            with pytest.raises(JudgeError) as raised:
                judge.reply(SHEET)
            assert message in str(raised.value)


def test_missing_program_is_refused() -> None:
    with CommandJudge(["/nowhere/judge"]) as judge, pytest.raises(JudgeError, match="can't be started"):
        judge.reply(SHEET)
    with pytest.raises(BadParameter, match="No program"):
        CommandJudge([])
    with pytest.raises(BadParameter, match="more than 0 seconds"):
        CommandJudge(["x"], timeout=0)


@pytest.mark.long
def test_late_answer_is_not_used_for_the_next_question(tmp_path: Path) -> None:
    """The first program is too slow and would answer the second question with its first answer."""
    mark = tmp_path / "started"
    text = (
        "import json, sys, time, pathlib\n"
        f"mark = pathlib.Path({str(mark)!r})\n"
        "slow = not mark.exists(); mark.touch()\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        "    if slow: time.sleep(30)\n"
        "    print(json.dumps({'id': q['id'], 'outcome': 'right'}), flush=True)\n"
    )
    with program(text, 3.0) as judge:
        with pytest.raises(JudgeError):
            judge.reply(SHEET)
        second = judge.reply(replace(SHEET, question="q2"))
        assert isinstance(second, Answer)
        assert second.outcome is Outcome.RIGHT


def test_a_campaign_is_judged_by_a_program(store: Store) -> None:
    campaign = make_campaign(store)
    campaign.enrol("tool", "program")
    with program(LOOP.format(SMALLER)) as judge:
        sat = JudgingSession(campaign, "tool", judge).run()
    assert (sat.judged, sat.ended) == (16, "done")
    assert {topic: levels.best for topic, levels in campaign.results().items()} == {
        "one": ("a",),
        "two": ("a",),
    }


def test_three_failures_in_a_row_end_the_session_and_release_its_questions(store: Store) -> None:
    campaign = make_campaign(store)
    campaign.enrol("tool", "program")
    session = JudgingSession(
        campaign, "tool", judge := program(LOOP.format("print('no', flush=True)")), patience=3
    )
    with judge, pytest.raises(JudgeGaveUp, match=r"failed 3 times in a row.*not JSON"):
        session.run()
    assert (session.tally.failed, session.tally.judged) == (3, 0)
    states = store.read(lambda c: [row[0] for row in c.exec_driver_sql("select state from question")])
    assert states == ["returned"] * 3


def test_single_failures_are_counted_and_do_not_end_the_session(store: Store) -> None:
    campaign = make_campaign(store)
    campaign.enrol("tool", "program")
    every_third = (
        "import json, sys\nn = 0\nfor line in sys.stdin:\n    q = json.loads(line)\n    n += 1\n"
        "    if n % 3 == 0: print('oops', flush=True); continue\n    " + SMALLER + "\n"
    )
    with program(every_third) as judge:
        sat = JudgingSession(campaign, "tool", judge, patience=2).run()
    assert sat.ended == "done"
    assert sat.judged == 16
    assert sat.failed == 7
