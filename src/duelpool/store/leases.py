"""Leases: which assessor holds which slot of which pair, and how each question ended.

A pair has as many slots as its cap. A live question holds one of them: it is leased to an assessor, or has an
answer that counts. Ending a question without a usable answer frees its slot in the same transaction.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import Row, bindparam, func, select, text, update

from duelpool.errors import DuelpoolError
from duelpool.records import Answer, Judgment, Kind, Outcome, Question
from duelpool.store import log, schema
from duelpool.store.statements import Statement
from duelpool.store.transactions import Reading, Writing

LEASED, ANSWERED, EXPIRED = "leased", "answered", "expired"
ASKED, REPEATED, FROM_FILE = "asked", "repeated", "file"
RETURNED, SKIPPED, CANNOT_JUDGE, RETRACTED = "returned", "skipped", "cannot-judge", "retracted"

EXTENSIONS = 3
"""How many times the length of a lease it can be extended by without an answer."""

_ENDED_AS = {Outcome.SKIP: SKIPPED, Outcome.CANNOT_JUDGE: CANNOT_JUDGE, Outcome.FLIP_ABSTAIN: CANNOT_JUDGE}

_COLUMNS = schema.question.c
_ASKED = (
    *("id", "campaign", "slot", "assessor", "assignment", "place", "asked", "expires"),
    *("topic", "criterion", "stage", "kind", "a", "b", "left_item", "right_item"),
    *("test_pair", "phase", "proposal", "propensity", "strategy", "occasion", "source"),
)
_PAIR_QUESTIONS = Statement(
    lambda _: select(
        _COLUMNS.slot, _COLUMNS.assessor, _COLUMNS.state, _COLUMNS.live, _COLUMNS.occasion
    ).where(
        _COLUMNS.campaign == bindparam("campaign"),
        _COLUMNS.topic == bindparam("topic"),
        _COLUMNS.criterion == bindparam("criterion"),
        _COLUMNS.a == bindparam("a"),
        _COLUMNS.b == bindparam("b"),
        _COLUMNS.id != bindparam("besides"),
    )
)
_LEASE = Statement(
    lambda dialect: dialect.insert(schema.question).on_conflict_do_nothing().returning(_COLUMNS.id), _ASKED
)
_FIND = Statement(lambda _: select(schema.question).where(_COLUMNS.id == bindparam("question")))
_LOCK = Statement(
    lambda _: select(schema.question).where(_COLUMNS.id == bindparam("question")).with_for_update()
)
_LEASED_TO = Statement(
    lambda _: (
        select(schema.question)
        .where(
            _COLUMNS.campaign == bindparam("campaign"),
            _COLUMNS.assessor == bindparam("assessor"),
            _COLUMNS.state == LEASED,
            _COLUMNS.assignment.is_(None),
        )
        .order_by(_COLUMNS.asked, _COLUMNS.id)
    )
)
_LAST_ANSWER = Statement(
    lambda _: select(func.max(schema.log.c.time).label("time")).where(
        schema.log.c.campaign == bindparam("campaign"),
        schema.log.c.assessor == bindparam("assessor"),
        schema.log.c.event == log.JUDGMENT,
    )
)
_SETTLE = Statement(
    lambda _: (
        update(schema.question)
        .where(_COLUMNS.id == bindparam("settled"))
        .values(state=bindparam("state"), live=bindparam("live"), slot=bindparam("slot"))
    )
)
_PLACE = update(schema.question).where(_COLUMNS.id == bindparam("placed")).values(place=bindparam("at"))
_ONE_AT_A_TIME = text("select pg_advisory_xact_lock(hashtextextended(:campaign, 0))")


class UnknownQuestion(DuelpoolError):
    """There is no such question, or it belongs to another assessor."""


class Conflict(DuelpoolError):
    """The question has another answer already; the first is kept."""


class TooLate(DuelpoolError):
    """The lease expired and other assessors have taken the pair's slots; the work is still paid."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question that a campaign wants to lease.

    Test pairs take no slot, and neither do pairs that the same assessor gets again (`occasion` above 1).
    """

    topic: str
    left: str
    right: str | None
    criterion: str = "overall"
    stage: str = ""
    kind: Kind = Kind.PREFERENCE
    phase: str = ""
    proposal: str = ""
    propensity: float | None = None
    strategy: str = ""
    test_pair: str | None = None
    occasion: int = 1
    most: int | None = None  # judgments, where a plan says so; else the cap

    @property
    def takes_slot(self) -> bool:
        """Whether its judgment counts towards the cap."""
        return self.test_pair is None and self.occasion == 1

    @property
    def key(self) -> tuple[str, str]:
        """The pair, smaller id first; for a grade, the item and an empty text."""
        if self.right is None:
            return self.left, ""
        return (self.left, self.right) if self.left < self.right else (self.right, self.left)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The acknowledgement of a stored answer, with its seq in the log; the same each time that it is sent.

    `repeated`: it was stored before. `late`: its lease had expired.
    """

    question: str
    topic: str
    seq: int
    repeated: bool = field(default=False, compare=False)
    late: bool = field(default=False, compare=False)


def lease(
    tx: Writing,
    wanted: Sequence[Wanted],
    ids: Sequence[str],
    *,
    assessor: str,
    cap: int,
    seconds: float,
    at_most: int | None = None,
    assignment: str | None = None,
    places: Sequence[int] = (),
) -> list[Question]:
    """Lease questions to an assessor, in order, until `at_most` are granted; they get these places.

    Skips pairs at their cap, and pairs that this assessor holds, has answered or could not judge.
    """
    most = len(wanted) if at_most is None else at_most
    if tx.connection.dialect.name == "postgresql" and len(wanted) > 1 and most > 1:
        # Two assessors who take the same pairs in different orders would deadlock.
        tx.connection.execute(_ONE_AT_A_TIME, {"campaign": tx.campaign})
    granted: list[Question] = []
    tried: set[tuple[str, int | None]] = set()
    waiting = list(zip(wanted, ids, strict=True))
    expires = tx.now + seconds
    held = {"assessor": assessor, "assignment": assignment, "asked": tx.now, "expires": expires}
    while waiting and len(granted) < most:
        missing = most - len(granted)
        block, waiting = waiting[:missing], waiting[missing:]
        free = _free_slots(tx, block, assessor, cap, tried)
        rows = [{"id": name, "slot": slot, **held, **_columns(tx, want)} for want, name, slot in free]
        for number, row in enumerate(rows, len(granted)):
            row["place"] = places[number] if places else number
        # By the returned id, not by a row count, which PostgreSQL's driver doesn't keep for inserts.
        stored = {found[0].id for found in _LEASE.each(tx.connection, rows) if found}
        granted += [_question(want, name, assessor, expires) for want, name, _ in free if name in stored]
        if len(stored) < len(free):  # others have just taken a slot: the unique keys decide
            lost = [each for each in free if each[1] not in stored]
            tried |= {(name, slot) for _, name, slot in lost}
            waiting = [(want, name) for want, name, _ in lost] + waiting
            for at, each in enumerate(granted):
                place = places[at] if places else at
                tx.connection.execute(_PLACE, {"placed": each.id, "at": place})
    return granted


def _free_slots(
    tx: Reading,
    wanted: Sequence[tuple[Wanted, str]],
    assessor: str,
    cap: int,
    tried: Collection[tuple[str, int | None]],
) -> list[tuple[Wanted, str, int | None]]:
    """Return the questions that the assessor may get, each with a free slot, or None where it needs none."""
    found = _PAIR_QUESTIONS.each(tx.connection, [_pair(tx, want) for want, _ in wanted])
    free: list[tuple[Wanted, str, int | None]] = []
    for (want, name), rows in zip(wanted, found, strict=True):
        taken = _taken(rows, want, assessor)
        if taken is not None:
            slots: Iterable[int | None] = _free(taken, want.most or cap) if want.takes_slot else (None,)
            untried = ((want, name, slot) for slot in slots if (name, slot) not in tried)
            free += islice(untried, 1)
    return free


def _pair(tx: Reading, want: Wanted, besides: str = "") -> dict[str, str]:
    a, b = want.key
    return {
        "campaign": tx.campaign,
        "topic": want.topic,
        "criterion": want.criterion,
        "a": a,
        "b": b,
        "besides": besides,
    }


def _taken(rows: Iterable[Any], want: Wanted, assessor: str) -> set[int] | None:
    """Return the taken slots of a pair by its questions, or None when the assessor must not get it."""
    taken: set[int] = set()
    for slot, holder, state, live, occasion in rows:
        if holder == assessor and occasion == want.occasion and (live or state == CANNOT_JUDGE):
            return None
        if live and slot is not None:
            taken.add(slot)
    return taken


def _free(taken: Collection[int], cap: int) -> Iterator[int]:
    """Yield the free slots; none while the pair has as many live slots as the cap, whatever their numbers."""
    if len(taken) < cap:
        yield from (slot for slot in range(1, cap + 1) if slot not in taken)


def _columns(tx: Reading, want: Wanted) -> dict[str, Any]:
    a, b = want.key
    return {
        "campaign": tx.campaign,
        "topic": want.topic,
        "criterion": want.criterion,
        "stage": want.stage,
        "kind": str(want.kind),
        "a": a,
        "b": b,
        "left_item": want.left,
        "right_item": want.right,
        "test_pair": want.test_pair,
        "phase": want.phase,
        "proposal": want.proposal,
        "propensity": want.propensity,
        "strategy": want.strategy,
        "occasion": want.occasion,
        "source": ASKED if want.occasion == 1 else REPEATED,
    }


def _question(want: Wanted, question_id: str, assessor: str, expires: float) -> Question:
    return Question(
        question_id,
        want.topic,
        want.left,
        want.right,
        assessor,
        want.phase,
        want.proposal,
        want.criterion,
        want.propensity,
        expires,
        kind=want.kind,
    )


def question_of(row: Row[Any]) -> Question:
    """Return a row of the table as a record."""
    return Question(
        row.id,
        row.topic,
        row.left_item,
        row.right_item,
        row.assessor,
        row.phase,
        row.proposal,
        row.criterion,
        row.propensity,
        row.expires,
        row.attempt,
        Kind(row.kind),
    )


def lock_question(tx: Writing, question_id: str) -> Row[Any] | None:
    """Return a question's row, locked until the commit."""
    rows = _LOCK.run(tx.connection, {"question": question_id})
    return rows[0] if rows else None


def lock_own_question(tx: Writing, question_id: str, assessor: str) -> Row[Any]:
    """Return the row of an assessor's question, locked until the commit; any other question is unknown here."""
    return _own(tx, lock_question(tx, question_id), question_id, assessor)


def find_own_question(tx: Reading, question_id: str, assessor: str) -> Row[Any]:
    """Return the row of an assessor's question; any other question is unknown here."""
    rows = _FIND.run(tx.connection, {"question": question_id})
    return _own(tx, rows[0] if rows else None, question_id, assessor)


def _own(tx: Reading, row: Row[Any] | None, question_id: str, assessor: str) -> Row[Any]:
    if row is None or row.assessor != assessor or row.campaign != tx.campaign:
        raise UnknownQuestion(
            f"There is no question '{question_id}' for this assessor.", remedy="Ask for the next question."
        )
    return row


def leased_to(tx: Reading, assessor: str) -> list[Row[Any]]:
    """Return the questions leased to an assessor outside assignments, the oldest first."""
    return _LEASED_TO.run(tx.connection, {"campaign": tx.campaign, "assessor": assessor})


def answer(tx: Writing, row: Row[Any], response: Answer, *, cap: int, at_once: bool) -> Receipt:
    """Store an answer to a locked question once; sending it again changes nothing, a different one is a conflict."""
    attempt = row.attempt if response.attempt is None else response.attempt
    if attempt != row.attempt or row.state in {ANSWERED, SKIPPED, CANNOT_JUDGE}:
        return _again(tx, row, response, attempt)
    if row.state == RETRACTED:
        if last_answer(tx, row) is None:
            raise _too_late()
        raise Conflict("This answer was retracted since.", remedy="Ask for the next question.")
    ended = state_after(response.outcome)
    slot, late = row.slot, row.state != LEASED
    if late and ended == ANSWERED:
        slot = slot_for_late(tx, row, cap)
    judgment = Judgment(
        topic=row.topic,
        left=row.left_item,
        right=row.right_item,
        outcome=response.outcome,
        phase=row.phase,
        proposal=row.proposal,
        assessor=row.assessor,
        criterion=row.criterion,
        stage=row.stage,
        kind=Kind(row.kind),
        grade=response.grade,
        confidence=response.confidence,
        note=response.note,
        seconds=response.seconds,
        context_uses=response.context_uses,
        highlighted=response.highlighted,
        repeated=row.source == REPEATED,
        propensity=row.propensity,
        strategy=row.strategy,
        question=row.id,
    )
    seq = log.append_judgment(
        tx,
        judgment,
        at_once=at_once and row.test_pair is None,
        attempt=row.attempt,
        assignment=row.assignment,
        test_pair=row.test_pair,
    )
    settle(tx, row.id, ended, slot)
    return Receipt(row.id, row.topic, seq, late=late)


def state_after(outcome: Outcome) -> str:
    """Return the state of a question after an answer."""
    return _ENDED_AS.get(outcome, ANSWERED)


def settle(tx: Writing, question_id: str, state: str, slot: int | None) -> None:
    """Record how a question ended; only an answer that counts keeps its slot."""
    live = 1 if state == ANSWERED else None
    _SETTLE.run(tx.connection, {"settled": question_id, "state": state, "live": live, "slot": slot})


def _again(tx: Reading, row: Row[Any], response: Answer, attempt: int) -> Receipt:
    """Acknowledge an answer that is stored already, even if it was undone since."""
    columns = schema.log.c
    first = tx.connection.execute(
        select(columns.seq, columns.outcome, columns.grade).where(
            columns.question == row.id, columns.attempt == attempt, columns.event == log.JUDGMENT
        )
    ).one_or_none()
    if first is None:
        raise Conflict(f"This question has no attempt {attempt}.", remedy="Ask for the next question.")
    if (first.outcome, first.grade) != (str(response.outcome), response.grade):
        raise Conflict(
            f"This question was answered '{first.outcome}' already; that answer is kept.",
            remedy="To change it, undo it first.",
        )
    return Receipt(row.id, row.topic, first.seq, repeated=True)


def slot_for_late(tx: Reading, row: Row[Any], cap: int) -> int | None:
    """Return a slot for a question that lost its own; None for test pairs and repeated questions, which need none."""
    want = Wanted(
        row.topic,
        row.left_item,
        row.right_item,
        row.criterion,
        test_pair=row.test_pair,
        occasion=row.occasion,
    )
    slots = _taken(_PAIR_QUESTIONS.run(tx.connection, _pair(tx, want, besides=row.id)), want, row.assessor)
    if slots is not None and (row.test_pair is not None or row.source == REPEATED):
        return None
    free = None if slots is None else next(_free(slots, cap), None)
    if free is None:
        raise _too_late()
    return free


def _too_late() -> TooLate:
    return TooLate(
        "The time for this question ran out, and others have answered it.",
        remedy="You are still paid; ask for the next question.",
    )


def last_answer(tx: Reading, row: Row[Any]) -> int | None:
    """Return the seq of a question's current answer, None if it has none."""
    columns = schema.log.c
    seq = tx.connection.execute(
        select(columns.seq).where(
            columns.question == row.id, columns.attempt == row.attempt, columns.event == log.JUDGMENT
        )
    ).scalar_one_or_none()
    return None if seq is None else int(seq)


def return_questions(tx: Writing, question_ids: Collection[str], state: str = RETURNED) -> int:
    """End leases without an answer and free their slots; return how many."""
    columns = schema.question.c
    done = tx.connection.execute(
        update(schema.question)
        .where(columns.id.in_(tuple(question_ids)), columns.state == LEASED)
        .values(state=state, live=None)
    )
    return int(done.rowcount)


def extend(tx: Writing, row: Row[Any], *, seconds: float) -> float:
    """Extend the lease of a locked question by these seconds from now; return when it ends.

    In all, a lease is extended by `EXTENSIONS` times these seconds, counted from the question or from the assessor's
    last answer, whichever is later: whoever answers may read on, whoever doesn't can't hold a question for ever.
    """
    last = _LAST_ANSWER.run(tx.connection, {"campaign": row.campaign, "assessor": row.assessor})[0].time
    latest = max(row.asked, last or 0.0) + (1 + EXTENSIONS) * seconds
    if row.state != LEASED or max(latest, row.expires) < tx.now:
        raise TooLate("The time for this question has run out.", remedy="Ask for the next question.")
    ends = max(row.expires, min(tx.now + seconds, latest))
    tx.connection.execute(update(schema.question).where(schema.question.c.id == row.id).values(expires=ends))
    return float(ends)


def extend_assignment(tx: Writing, assignment: str, ends: float) -> None:
    """Extend every open lease of an assignment until `ends`."""
    columns = schema.question.c
    tx.connection.execute(
        update(schema.question)
        .where(columns.assignment == assignment, columns.state == LEASED)
        .values(expires=ends)
    )


def forfeit(tx: Writing, question_id: str) -> bool:
    """Close an expired question whose answer came too late, so that it counts as done and is paid."""
    columns = schema.question.c
    done = tx.connection.execute(
        update(schema.question)
        .where(columns.id == question_id, columns.state == EXPIRED)
        .values(state=RETRACTED, live=None)
    )
    return bool(done.rowcount)
