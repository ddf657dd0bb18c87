"""Per-assessor counts by SQL over the whole log: the oracle for the tally that the status is made of."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy import case, func, select

from duelpool.campaign.work.ledger import REWARD
from duelpool.records import EFFECTS, Outcome
from duelpool.store import Reading, holdings, log, schema
from duelpool.store.statements import streamed

_LEFT = tuple(str(each) for each, effect in EFFECTS.items() if effect.left > effect.right)
_RIGHT = tuple(str(each) for each, effect in EFFECTS.items() if effect.right > effect.left)
_USED = tuple(str(each) for each, effect in EFFECTS.items() if effect.usable)


@dataclass(frozen=True, slots=True)
class AssessorCounts:
    """One assessor's counts: `left` is the share of decisions for the left side, `seconds` the mean of an answer."""

    assessor: str
    kind: str
    state: str
    judgments: int
    usable: int
    tests_passed: int
    tests_seen: int
    left: float | None
    seconds: float | None
    pay: int


def retracted(tx: Reading) -> set[tuple[str, int]]:
    """Return the judgments of a campaign that are retracted now, by topic and place."""
    columns = schema.log.c
    rows = tx.connection.execute(
        select(columns.topic, columns.refers_to, columns.event)
        .where(columns.campaign == tx.campaign, columns.refers_to.is_not(None))
        .order_by(columns.topic, columns.seq)
    )
    gone: set[tuple[str, int]] = set()
    for row in rows:
        if row.event == log.RETRACTION:
            gone.add((row.topic, row.refers_to))
        else:
            gone.discard((row.topic, row.refers_to))
    return gone


def assessor_counts(tx: Reading) -> tuple[AssessorCounts, ...]:
    """Return the counts of everyone enrolled, then of imported assessors."""
    columns = schema.log.c
    target = columns.test_pair.is_(None) & columns.repeated.is_distinct_from(1)

    def count(condition: Any) -> Any:
        return func.sum(case((condition, 1), else_=0))

    rows = tx.connection.execute(
        select(
            columns.assessor,
            count(target).label("judgments"),
            count(target & columns.outcome.in_(_USED)).label("usable"),
            func.avg(columns.seconds).label("seconds"),
        )
        .where(columns.campaign == tx.campaign, columns.event == log.JUDGMENT)
        .group_by(columns.assessor)
    )
    done = {row.assessor: row for row in rows}
    lost, passed, seen = _taken_out(tx)
    left, right = _sides(tx)
    pay = {
        row.assessor: int(row.total)
        for row in tx.connection.execute(
            select(schema.ledger.c.assessor, func.sum(schema.ledger.c.amount).label("total"))
            .where(schema.ledger.c.campaign == tx.campaign, schema.ledger.c.entry == REWARD)
            .group_by(schema.ledger.c.assessor)
        )
    }
    enrolled = holdings.assessors(tx)
    others = sorted(name for name in done if name and name not in enrolled)
    counts: list[AssessorCounts] = []
    for name in (*enrolled, *others):
        row = done.get(name)
        sided = left[name] + right[name]
        person = enrolled.get(name)
        counts.append(
            AssessorCounts(
                assessor=name,
                kind=person.kind if person else "imported",
                state=person.state if person else "in",
                judgments=int(row.judgments) if row else 0,
                usable=int(row.usable) - lost[name] if row else 0,
                tests_passed=passed[name],
                tests_seen=seen[name],
                left=left[name] / sided if sided else None,
                seconds=float(row.seconds) if row and row.seconds is not None else None,
                pay=pay.get(name, 0),
            )
        )
    return tuple(counts)


def _sides(tx: Reading) -> tuple[Counter[str], Counter[str]]:
    """Return, by assessor, the judgments that count for the left side, and those for the right."""
    columns = schema.log.c
    rows = tx.connection.execute(
        select(columns.assessor, columns.topic, columns.seq, columns.outcome).where(
            columns.campaign == tx.campaign,
            columns.event == log.JUDGMENT,
            columns.sides_known == 1,
            columns.test_pair.is_(None),
            columns.repeated.is_distinct_from(1),
        )
    )
    gone = retracted(tx)
    left: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for row in rows:
        if (row.topic, row.seq) not in gone:
            left[row.assessor] += row.outcome in _LEFT
            right[row.assessor] += row.outcome in _RIGHT
    return left, right


def _taken_out(tx: Reading) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return, by assessor, usable judgments that were retracted, and test pairs passed and seen."""
    columns = schema.log.c
    gone = retracted(tx)
    better = {name: pair.better for name, pair in holdings.test_pairs(tx).items()}
    lost: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    tests = select(
        columns.topic,
        columns.seq,
        columns.assessor,
        columns.test_pair,
        columns.left_item,
        columns.right_item,
        columns.outcome,
    ).where(columns.campaign == tx.campaign, columns.event == log.JUDGMENT, columns.test_pair.is_not(None))
    for row in streamed(tx.connection, tests):
        if (row.topic, row.seq) in gone or row.outcome == str(Outcome.SKIP):
            continue
        winner = row.left_item if row.outcome in _LEFT else row.right_item if row.outcome in _RIGHT else None
        seen[row.assessor] += 1
        passed[row.assessor] += winner is not None and winner == better.get(row.test_pair)
    if gone:
        earlier = schema.log.alias("earlier")
        joined = tx.connection.execute(
            select(earlier.c.assessor, earlier.c.topic, earlier.c.seq)
            .join(
                schema.log,
                (columns.campaign == earlier.c.campaign)
                & (columns.topic == earlier.c.topic)
                & (columns.refers_to == earlier.c.seq),
            )
            .where(
                earlier.c.campaign == tx.campaign,
                columns.event == log.RETRACTION,
                earlier.c.test_pair.is_(None),
                earlier.c.repeated.is_distinct_from(1),
                earlier.c.outcome.in_(_USED),
            )
            .distinct()
        )
        lost.update(row.assessor for row in joined if (row.topic, row.seq) in gone)
    return lost, passed, seen
