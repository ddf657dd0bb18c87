"""Who holds how many questions, and how much of the work idle visitors may hold while others wait."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, update

from duelpool.store import Reading, Writing, leases, log, overdue, schema

IDLE_SECONDS = 600.0  # without an answer; reading a pair takes people seconds to a few minutes
IDLE_SHARE = 0.5  # of all questions that people hold


@dataclass(frozen=True, slots=True)
class HeldBy:
    """The questions that one person holds, and since when they have given no answer."""

    assessor: str
    questions: int
    since: float


@dataclass(frozen=True, slots=True)
class HeldWork:
    """What all people hold, and those of them who are idle."""

    people: int
    questions: int
    idle: tuple[HeldBy, ...]  # the longest idle first

    @property
    def idle_questions(self) -> int:
        """How many questions the idle ones hold."""
        return sum(each.questions for each in self.idle)

    def too_many(self) -> Sequence[str]:
        """Return the idle people whose questions go to others, so that the rest hold no more than their share."""
        left, over = self.idle_questions, []
        for each in self.idle:
            if left <= IDLE_SHARE * self.questions:
                break
            over.append(each.assessor)
            left -= each.questions
        return over


def held(tx: Reading, besides: str = "") -> HeldWork:
    """Return what people hold; programs and language models don't count, nor does the person `besides`."""
    questions, people, lines = schema.question.c, schema.assessor.c, schema.log.c
    rows = tx.connection.execute(
        select(questions.assessor, func.count().label("number"), func.max(questions.asked).label("asked"))
        .join(schema.assessor, (people.campaign == questions.campaign) & (people.id == questions.assessor))
        .where(
            questions.campaign == tx.campaign,
            questions.state == leases.LEASED,
            questions.assessor != besides,
            people.kind.in_(("crowd", "dedicated")),
        )
        .group_by(questions.assessor)
    ).all()
    last: dict[str, float] = {
        row.assessor: row.time
        for row in tx.connection.execute(
            select(lines.assessor, func.max(lines.time).label("time"))
            .where(
                lines.campaign == tx.campaign,
                lines.event == log.JUDGMENT,
                lines.assessor.in_([row.assessor for row in rows]),
            )
            .group_by(lines.assessor)
        )
    }
    all_held = [
        HeldBy(row.assessor, int(row.number), max(row.asked, last.get(row.assessor, 0.0))) for row in rows
    ]
    idle = [each for each in all_held if each.since < tx.now - IDLE_SECONDS]
    return HeldWork(
        len(all_held),
        sum(each.questions for each in all_held),
        tuple(sorted(idle, key=lambda each: (each.since, each.assessor))),
    )


def expire_leases_of(tx: Writing, people: Sequence[str]) -> None:
    """Let the leases of these people expire now; a late answer counts while its pair has a free slot."""
    questions = schema.question.c
    tx.connection.execute(
        update(schema.question)
        .where(
            questions.campaign == tx.campaign,
            questions.state == leases.LEASED,
            questions.assessor.in_(people),
        )
        .values(expires=tx.now - 1.0)
    )
    overdue.expire(tx)
