"""How fast a campaign goes on and who works now, from the judgments of the last hours."""

from dataclasses import dataclass

from sqlalchemy import case, func, select

from duelpool.judges.live import is_simulated
from duelpool.store import Reading, leases, log, schema

WINDOWS = tuple(1800.0 * halves for halves in range(2, 13))
"""The seconds behind a pace, from one hour to six: the shortest in which much was done."""
WINDOW_SECONDS = WINDOWS[-1]
MUCH = 500
"""Lines of the log from which a window is enough, unless few of them are judgments that count."""
NOW_SECONDS = 900.0
"""Who has answered or got a question within these seconds works now."""
FEWEST = 10
"""Judgments below which no pace is stated."""


@dataclass(frozen=True, slots=True)
class RecentWork:
    """What one assessor did in the window: judgments, those of the last minutes, and the times of first and last."""

    assessor: str
    judgments: int
    lately: int
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class WorkPace:
    """The work of the last hours as of a moment, and who works now.

    `per_hour` is None where there are too few judgments to tell.
    """

    now: float
    judgments: int
    hours: float  # from the first judgment in the window until now
    per_hour: float | None
    last: float | None  # the time of the last judgment, within the window
    working: tuple[RecentWork, ...]  # the latest first
    simulated: bool = False  # all of these judgments are of simulated assessors


def pace(tx: Reading) -> WorkPace:
    """Return the pace of a campaign; test pairs, imported and repeated judgments don't count."""
    window = _window(tx)
    work = _recent(tx, tx.now - window)
    if window < WINDOW_SECONDS and sum(each.judgments for each in work.values()) < MUCH / 5:
        work = _recent(tx, tx.now - WINDOW_SECONDS)
    judgments = sum(each.judgments for each in work.values())
    first = min((each.first for each in work.values()), default=tx.now)
    hours = (tx.now - first) / 3600
    working = dict.fromkeys(_holders(tx, tx.now - NOW_SECONDS))
    working |= dict.fromkeys(name for name, each in work.items() if each.lately)
    rows = [work.get(name) or RecentWork(name, 0, 0, tx.now, tx.now) for name in working]
    return WorkPace(
        now=tx.now,
        judgments=judgments,
        hours=hours,
        per_hour=judgments / hours if judgments >= FEWEST and hours > 0 else None,
        last=max((each.last for each in work.values()), default=None),
        working=tuple(sorted(rows, key=lambda each: (-each.last, each.assessor))),
        simulated=bool(work) and all(map(is_simulated, work)),
    )


def _window(tx: Reading) -> float:
    """Return the shortest window with much work, by the log's index alone."""
    line, person = schema.log.c, schema.assessor.c
    counts = tx.connection.execute(
        select(*(func.sum(case((line.time >= tx.now - window, 1), else_=0)) for window in WINDOWS)).where(
            line.campaign == tx.campaign,
            line.assessor.in_(select(person.id).where(person.campaign == tx.campaign)),
            line.time >= tx.now - WINDOW_SECONDS,
        )
    ).one()
    enough = (window for window, count in zip(WINDOWS, counts, strict=True) if (count or 0) >= MUCH)
    return next(enough, WINDOW_SECONDS)


def _recent(tx: Reading, since: float) -> dict[str, RecentWork]:
    """Return the work since a time, by assessor: the index of the log by assessor and time finds it."""
    question, line, person = schema.question.c, schema.log.c, schema.assessor.c
    lately = func.sum(case((line.time >= tx.now - NOW_SECONDS, 1), else_=0))
    rows = tx.connection.execute(
        select(line.assessor, func.count(), lately, func.min(line.time), func.max(line.time))
        .join_from(
            schema.log, schema.question, (line.question == question.id) & (line.attempt == question.attempt)
        )
        .where(
            line.campaign == tx.campaign,
            line.assessor.in_(select(person.id).where(person.campaign == tx.campaign)),
            line.time >= since,
            line.event == log.JUDGMENT,
            line.test_pair.is_(None),
            question.state == leases.ANSWERED,
            question.source == "asked",
        )
        .group_by(line.assessor)
    )
    return {
        name: RecentWork(name, int(count), int(new), first, last) for name, count, new, first, last in rows
    }


def _holders(tx: Reading, since: float) -> list[str]:
    """Return who got a question since a time and still holds it."""
    question = schema.question.c
    rows = tx.connection.execute(
        select(question.assessor).where(
            question.campaign == tx.campaign,
            question.state == leases.LEASED,
            question.expires >= tx.now,
            question.asked >= since,
        )
    )
    return sorted(set(rows.scalars()))
