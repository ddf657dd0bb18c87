"""Answers taken back and let in again: by new lines of the log, with the slots that they free and take.

An assessor undoes an answer of their own; a manager retracts judgments and restores them.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select, update

from duelpool.records import Question
from duelpool.store import leases, log, schema
from duelpool.store.leases import ANSWERED, CANNOT_JUDGE, LEASED, RETRACTED, SKIPPED


def undo(
    connection: Connection, question_id: str, assessor: str, *, cap: int, now: float, seconds: float
) -> Question:
    """Take an answer back by a new line, and lease the same question to the same person again."""
    row = leases.held(connection, question_id, assessor)
    if row.state not in {ANSWERED, SKIPPED, CANNOT_JUDGE}:
        raise leases.Conflict("There is no answer to take back.", remedy="Answer the question.")
    seq = leases.last_answer(connection, row)
    if seq is None or not _stands(connection, row.campaign, row.topic, seq):
        raise leases.Conflict("This answer was taken back already.", remedy="Ask for the next question.")
    slot = row.slot if row.state == ANSWERED else leases.slot_for_late(connection, row, cap)
    log.append(connection, row.campaign, row.topic, log.RETRACTION, now, refers_to=seq, reason="undone")
    connection.execute(
        update(schema.question)
        .where(schema.question.c.id == row.id)
        .values(state=LEASED, live=1, slot=slot, attempt=row.attempt + 1, expires=now + seconds)
    )
    return leases.question_of(
        connection.execute(select(schema.question).where(schema.question.c.id == row.id)).one()
    )


def retract(
    connection: Connection, campaign: str, topic: str, seqs: Sequence[int], *, reason: str, now: float
) -> list[int]:
    """Take judgments out of every score by new lines, and free their slots; return those that counted."""
    columns = schema.question.c
    taken: list[int] = []
    for line in _judgments_held(connection, campaign, topic, seqs):
        if not _stands(connection, campaign, topic, line.seq):
            continue
        log.append(connection, campaign, topic, log.RETRACTION, now, refers_to=line.seq, reason=reason)
        if line.judgment is not None and line.judgment.question:
            connection.execute(
                update(schema.question)
                .where(columns.id == line.judgment.question, columns.state == ANSWERED)
                .values(state=RETRACTED, live=None)
            )
        taken.append(line.seq)
    return taken


def restore(
    connection: Connection,
    campaign: str,
    topic: str,
    seqs: Sequence[int],
    *,
    cap: int,
    now: float,
    reason: str,
) -> list[int]:
    """Let retracted judgments count again where their pairs have a slot left; return those that do.

    What its assessor took back stays so.
    """
    back: list[int] = []
    for line in _judgments_held(connection, campaign, topic, seqs):
        if _stands(connection, campaign, topic, line.seq):
            continue
        if line.judgment is not None and line.judgment.question:
            row = leases.locked(connection, line.judgment.question)
            if row is None or leases.last_answer(connection, row) != line.seq:
                continue
            if not _taken_up_again(connection, row, cap):
                continue
        log.append(connection, campaign, topic, log.RESTORATION, now, refers_to=line.seq, reason=reason)
        back.append(line.seq)
    return back


def _taken_up_again(connection: Connection, row: Row[Any], cap: int) -> bool:
    """Let a retracted question hold a slot again, where there is one; skipped ones need none."""
    if row.state != RETRACTED:
        return row.state in {SKIPPED, CANNOT_JUDGE}
    try:
        slot = leases.slot_for_late(connection, row, cap)
    except leases.TooLate:
        return False
    leases.settle(connection, row.id, ANSWERED, slot)
    return True


def _judgments_held(connection: Connection, campaign: str, topic: str, seqs: Sequence[int]) -> list[log.Line]:
    """Return the judgments at these places, with their questions and the topic locked until the commit.

    Questions before topics, as an answer does it, and questions by their id.
    """
    lines = [line for line in log.read_places(connection, campaign, topic, seqs) if line.judgment is not None]
    for question in sorted({line.judgment.question for line in lines if line.judgment} - {""}):
        leases.locked(connection, question)
    columns = schema.topic.c
    connection.execute(
        select(columns.id)
        .where(columns.campaign == campaign, columns.id == topic)
        .with_for_update(key_share=True)
    )
    return lines


def _stands(connection: Connection, campaign: str, topic: str, seq: int) -> bool:
    """Say whether a judgment counts: its last retraction, if any, was followed by a restoration."""
    columns = schema.log.c
    last = connection.execute(
        select(columns.event)
        .where(columns.campaign == campaign, columns.topic == topic, columns.refers_to == seq)
        .order_by(columns.seq.desc())
        .limit(1)
    ).scalar_one_or_none()
    return last != log.RETRACTION
