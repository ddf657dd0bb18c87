"""Exclusion: results on test pairs, excluding an assessor with all that follows, and reinstating them."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from duelpool.campaign import events
from duelpool.campaign.log.replay import counted_lines, read_counted_topics
from duelpool.campaign.settings import Settings
from duelpool.campaign.views.tally import loss_of, passed_test
from duelpool.store import Reading, Writing, holdings, leases, log, retractions, schema
from duelpool.store.statements import Statement

_TEST_LINES = Statement(
    lambda _: select(schema.log).where(
        schema.log.c.campaign == bindparam("campaign"),
        schema.log.c.assessor == bindparam("assessor"),
        schema.log.c.event == log.JUDGMENT,
        schema.log.c.test_pair.is_not(None),
    )
)


@dataclass(frozen=True, slots=True)
class TestResult:
    """How many test pairs an assessor has seen and passed."""

    __test__ = False  # not one of pytest's

    passed: int
    seen: int

    @property
    def share(self) -> float:
        """The share passed; 1 before the first test pair."""
        return self.passed / self.seen if self.seen else 1.0


@dataclass(frozen=True, slots=True)
class Exclusion:
    """What excluding an assessor takes out: judgments that count, their topics and pairs.

    `opened` pairs are asked again, those of phases that haven't closed; `again` counts their judgments.
    """

    assessor: str
    judgments: int
    topics: int
    pairs: int
    opened: int
    again: int


def judgments_of(tx: Reading, assessor: str) -> dict[str, list[int]]:
    """Return the seqs of an assessor's judgments that are neither retracted nor set aside, without test pairs."""
    columns = schema.log.c
    rows = tx.connection.execute(_judged(assessor, tx, columns.topic, columns.seq))
    # sorted here: databases differ in their collations
    places = sorted((row.topic, row.seq) for row in rows)
    counts = read_counted_topics(tx, dict(places))
    by_topic: dict[str, list[int]] = {}
    for topic, seq in places:
        if counts[topic].keeps(seq):
            by_topic.setdefault(topic, []).append(seq)
    return by_topic


def _judged(assessor: str, tx: Reading, *wanted: Any) -> Select[Any]:
    """Return a query of an assessor's judgments, without test pairs."""
    columns = schema.log.c
    return select(*wanted).where(
        columns.campaign == tx.campaign,
        columns.assessor == assessor,
        columns.event == log.JUDGMENT,
        columns.test_pair.is_(None),
    )


def result_on_tests(tx: Reading, assessor: str, assignment: str | None = None) -> TestResult:
    """Return an assessor's result on all test pairs so far, or on those of one assignment."""
    rows = _TEST_LINES.tuples(tx.connection, {"campaign": tx.campaign, "assessor": assessor})
    lines = [log.line_of(row) for row in rows]
    if assignment is not None:
        lines = [line for line in lines if line.assignment == assignment]
    if not lines:
        return TestResult(0, 0)
    known = holdings.test_pairs(tx)
    retracted = retractions.retracted_lines(tx, [(line.topic, line.seq) for line in lines])
    passed = seen = 0
    for line in lines:
        if line.judgment is None or (line.topic, line.seq) in retracted:
            continue
        result = passed_test(line.judgment, known[str(line.test_pair)].better)
        seen += result is not None
        passed += bool(result)
    return TestResult(passed, seen)


def passes_test_rule(
    tx: Reading, assessor: str, assignment: str, settings: Settings
) -> tuple[bool, TestResult]:
    """Whether an assessor passes the campaign's test rule after an assignment, and their result."""
    if settings.test_rule == "any-failed":
        record = result_on_tests(tx, assessor, assignment)
        return record.passed == record.seen, record
    record = result_on_tests(tx, assessor)
    return record.share >= settings.test_share, record


def preview(tx: Reading, assessor: str) -> Exclusion:
    """Return what excluding an assessor would affect; nothing changes."""
    lines: dict[str, list[log.Line]] = {}
    for row in tx.connection.execute(_judged(assessor, tx, schema.log)):
        lines.setdefault(row.topic, []).append(log.line_of(row))
    counts = read_counted_topics(tx, lines)
    losses = [loss_of(own, counts[topic], assessor) for topic, own in lines.items()]
    return Exclusion(
        assessor,
        judgments=sum(each.judgments for each in losses),
        topics=sum(bool(each.judgments) for each in losses),
        pairs=sum(each.pairs for each in losses),
        opened=sum(each.opened for each in losses),
        again=sum(each.again for each in losses),
    )


def exclude(tx: Writing, assessor: str, *, reason: str) -> Exclusion:
    """Take an assessor's judgments out of every score, open their pairs again, and admit them no more."""
    exclusion = preview(tx, assessor)
    if holdings.set_assessor_state(tx, assessor, "excluded"):
        events.record(
            tx,
            events.ASSESSOR_EXCLUDED,
            {"judgments": exclusion.judgments, **_excluded(tx)},
            subject=assessor,
        )
    for topic, seqs in judgments_of(tx, assessor).items():
        retractions.retract(tx, topic, seqs, reason=reason)
    open_now = tx.connection.execute(
        select(schema.question.c.id).where(
            schema.question.c.campaign == tx.campaign,
            schema.question.c.assessor == assessor,
            schema.question.c.state == leases.LEASED,
        )
    ).scalars()
    leases.return_questions(tx, list(open_now))
    return exclusion


def _excluded(tx: Reading) -> dict[str, int]:
    columns = schema.assessor.c
    query = select(func.count()).where(columns.campaign == tx.campaign, columns.state == "excluded")
    return {"excluded": int(tx.connection.execute(query).scalar_one())}


def reinstate(tx: Writing, assessor: str, *, cap: int, reason: str) -> int:
    """Admit an excluded assessor again; their judgments count again where the pairs have slots left."""
    holdings.set_assessor_state(tx, assessor, "in")
    columns = schema.log.c
    rows = tx.connection.execute(_judged(assessor, tx, columns.topic, columns.seq)).all()
    restored = 0
    for topic in sorted({row.topic for row in rows}):
        seqs = _undone_by_exclusion(tx, topic, {row.seq for row in rows if row.topic == topic})
        restored += len(retractions.restore(tx, topic, seqs, cap=cap, reason=reason))
    return restored


def _undone_by_exclusion(tx: Reading, topic: str, own: set[int]) -> list[int]:
    """Return the judgments whose last retraction came from an exclusion, not from the person's own undo."""
    lines = list(log.read_lines(tx, topic))
    counts = counted_lines(lines)
    last = {line.refers_to: line.reason for line in lines if line.event == log.RETRACTION}
    return sorted(seq for seq in (counts.retracted - counts.set_aside) & own if last.get(seq) != "undone")
