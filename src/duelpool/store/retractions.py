"""Retractions and restorations: new lines of the log, and the slots that they free and take.

An assessor undoes an own answer; a manager retracts judgments and restores them.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, select, update

from duelpool.records import Judgment, Question
from duelpool.store import leases, log, schema
from duelpool.store.leases import ANSWERED, CANNOT_JUDGE, LEASED, RETRACTED, SKIPPED
from duelpool.store.transactions import Reading, Writing

_PLACES_AT_ONCE = 500  # places in one query


def undo(tx: Writing, row: Row[Any], *, cap: int, seconds: float) -> Question:
    """Retract the answer to a locked question, and lease the question to the same assessor again."""
    if row.state not in {ANSWERED, SKIPPED, CANNOT_JUDGE}:
        raise leases.Conflict("There is no answer to undo.", remedy="Answer the question.")
    seq = leases.last_answer(tx, row)
    if seq is None or not _counts(tx, row.topic, seq):
        raise leases.Conflict("This answer was undone already.", remedy="Ask for the next question.")
    slot = row.slot if row.state == ANSWERED else leases.slot_for_late(tx, row, cap)
    log.append(tx, row.topic, log.RETRACTION, refers_to=seq, reason="undone")
    tx.connection.execute(
        update(schema.question)
        .where(schema.question.c.id == row.id)
        .values(state=LEASED, live=1, slot=slot, attempt=row.attempt + 1, expires=tx.now + seconds)
    )
    return leases.question_of(
        tx.connection.execute(select(schema.question).where(schema.question.c.id == row.id)).one()
    )


def retract(tx: Writing, topic: str, seqs: Sequence[int], *, reason: str) -> list[int]:
    """Retract judgments and free their slots; return the seqs of those that counted until now."""
    retracted: list[int] = []
    for line in _lock_judgments(tx, topic, seqs):
        if not _counts(tx, topic, line.seq):
            continue
        log.append(tx, topic, log.RETRACTION, refers_to=line.seq, reason=reason)
        if line.judgment is not None and line.judgment.question:
            _free_slot(tx, line.judgment.question)
        retracted.append(line.seq)
    return retracted


def restore(tx: Writing, topic: str, seqs: Sequence[int], *, cap: int, reason: str) -> list[int]:
    """Restore retracted judgments whose pairs have a free slot; return the seqs of those restored.

    An answer that its assessor has undone stays retracted.
    """
    restored: list[int] = []
    for line in _lock_judgments(tx, topic, seqs):
        if _counts(tx, topic, line.seq):
            continue
        if line.judgment is not None and line.judgment.question:
            row = leases.lock_question(tx, line.judgment.question)
            if row is None or leases.last_answer(tx, row) != line.seq:
                continue
            if not _take_slot_again(tx, row, line.judgment, cap):
                continue
        log.append(tx, topic, log.RESTORATION, refers_to=line.seq, reason=reason)
        restored.append(line.seq)
    return restored


def free_slots(tx: Writing, topic: str, seqs: Sequence[int]) -> None:
    """Free the slots of judgments that a rewind has set aside: their pairs may be judged again."""
    for line in _lock_judgments(tx, topic, seqs):
        if line.judgment is not None and line.judgment.question:
            _free_slot(tx, line.judgment.question)


def _free_slot(tx: Writing, question: str) -> None:
    """Free the slot of a question; "cannot judge" no longer counts towards parking its pair."""
    columns = schema.question.c
    tx.connection.execute(
        update(schema.question)
        .where(columns.id == question, columns.state.in_((ANSWERED, CANNOT_JUDGE)))
        .values(state=RETRACTED, live=None)
    )


def retracted_lines(
    tx: Reading, places: Sequence[tuple[str, int]] | None = None
) -> frozenset[tuple[str, int]]:
    """Return the judgments that are retracted now, by topic and seq: of the campaign, or of the given places."""
    columns = schema.log.c
    query = select(columns.topic, columns.event, columns.refers_to).where(columns.campaign == tx.campaign)
    retracted: set[tuple[str, int]] = set()
    if places is None:
        queries = [query.where(columns.refers_to.is_not(None)).order_by(columns.topic, columns.seq)]
    else:
        chunks = (places[start : start + _PLACES_AT_ONCE] for start in range(0, len(places), _PLACES_AT_ONCE))
        queries = [
            query.where(
                columns.topic.in_(sorted({topic for topic, _ in chunk})),
                columns.refers_to.in_(sorted({seq for _, seq in chunk})),
            ).order_by(columns.seq)
            for chunk in chunks
        ]
    for each in queries:
        for row in tx.connection.execute(each):
            log.update_retracted(retracted, row.event, (row.topic, row.refers_to))
    return frozenset(retracted if places is None else retracted.intersection(places))


def _take_slot_again(tx: Writing, row: Row[Any], judgment: Judgment, cap: int) -> bool:
    """Give a retracted question a slot again, if one is free; one without a preference needs none."""
    if row.state != RETRACTED:
        return row.state in {SKIPPED, CANNOT_JUDGE}
    if leases.state_after(judgment.outcome) != ANSWERED:
        leases.settle(tx, row.id, leases.state_after(judgment.outcome), row.slot)
        return True
    try:
        slot = leases.slot_for_late(tx, row, cap)
    except leases.TooLate:
        return False
    leases.settle(tx, row.id, ANSWERED, slot)
    return True


def _lock_judgments(tx: Writing, topic: str, seqs: Sequence[int]) -> list[log.Line]:
    """Return the judgments with these seqs, with their questions and the topic locked until the commit.

    Questions are locked before the topic, as an answer locks them, and in the order of their ids: no deadlocks.
    """
    lines = [line for line in log.read_places(tx, topic, seqs) if line.judgment is not None]
    for question in sorted({line.judgment.question for line in lines if line.judgment} - {""}):
        leases.lock_question(tx, question)
    log.lock_topic(tx, topic)
    return lines


def _counts(tx: Reading, topic: str, seq: int) -> bool:
    """Return whether a judgment counts: it was never retracted, or restored after its last retraction."""
    columns = schema.log.c
    last = tx.connection.execute(
        select(columns.event)
        .where(columns.campaign == tx.campaign, columns.topic == topic, columns.refers_to == seq)
        .order_by(columns.seq.desc())
        .limit(1)
    ).scalar_one_or_none()
    return last != log.RETRACTION
