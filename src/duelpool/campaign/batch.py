"""What is written of a file: the lines of each topic's log, the questions that hold their slots, and the file itself.

All of it goes into one transaction, and only where each log still ends where it did when the plan was made.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, insert, select, update

from duelpool.campaign.entries import FOLLOW_UPS, Entry
from duelpool.campaign.fold import standing
from duelpool.errors import BadFile, BadRecord, DuelpoolError
from duelpool.files.source import Source
from duelpool.store import imports, log, schema

_WRITE_AT_ONCE = 1000


class Changed(DuelpoolError):
    """Somebody judged while a file was taken in."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A file, by its contents and the rows that are taken of it."""

    file: str
    digest: str
    again: bool

    @classmethod
    def of(cls, source: Source, rows: Sequence[tuple[int, int]], again: bool) -> "Batch":
        """Return the batch that these rows of a file are."""
        return cls(source.name, sha256(source.data + repr(sorted(rows)).encode()).hexdigest(), again)

    def enter(self, connection: Connection, campaign: str, lines: int, now: float) -> None:
        """Write down that the file is taken in; refuse one that was."""
        columns = schema.intake.c
        before = connection.execute(
            select(columns.occasion, columns.time)
            .where(columns.campaign == campaign, columns.digest == self.digest)
            .order_by(columns.occasion.desc())
        ).first()
        if before is not None and not self.again:
            raise BadFile.at(
                self.file,
                None,
                f"The same rows were taken in already, at {log.iso_time(before.time)}.",
                "Nothing to do. To count them once more, give --again.",
            )
        connection.execute(
            insert(schema.intake).values(
                campaign=campaign,
                digest=self.digest,
                occasion=before.occasion + 1 if before is not None else 1,
                file=self.file,
                lines=lines,
                time=now,
            )
        )


@dataclass(frozen=True, slots=True)
class Part:
    """What is to be written of one topic, after which line of its log."""

    after: int
    entries: tuple[Entry, ...]


def places_of(entries: Sequence[Entry], after: int) -> dict[int | None, int]:
    """Return the place in the campaign's log of each line by its place in the file's own log."""
    return {entry.seq: after + at for at, entry in enumerate(entries, 1)}


def as_line(entry: Entry, seq: int, seqs: Mapping[int | None, int]) -> log.Line:
    """Return an entry as the line of the log that it will be."""
    return log.Line(
        entry.topic,
        seq,
        entry.event,
        0.0,
        judgment=entry.judgment,
        told=entry.told,
        assignment=entry.assignment,
        test_pair=entry.test_pair,
        refers_to=_referred(entry, seqs),
        phase=entry.phase,
        survivors=entry.survivors,
    )


def _referred(entry: Entry, seqs: Mapping[int | None, int]) -> int | None:
    if entry.event not in FOLLOW_UPS:
        return None
    if entry.refers_to not in seqs:
        raise BadRecord(
            f"A line of topic '{entry.topic}' refers to line {entry.refers_to}, which isn't in the file.",
            remedy="Take the whole log, or leave out retractions.",
        )
    return seqs[entry.refers_to]


def write_batch(
    connection: Connection, now: float, *, campaign: str, batch: Batch, plan: Mapping[str, Part]
) -> None:
    """Write all topics' lines; each topic's log must end where it did when the plan was made."""
    topics = schema.topic.c
    batch.enter(connection, campaign, sum(len(part.entries) for part in plan.values()), now)
    for topic in sorted(plan):
        part = plan[topic]
        place = connection.execute(
            update(schema.topic)
            .where(topics.campaign == campaign, topics.id == topic, topics.next_seq == part.after + 1)
            .values(next_seq=topics.next_seq + len(part.entries))
            .returning(topics.next_seq)
        ).scalar_one_or_none()
        if place is None:
            raise Changed(f"Topic '{topic}' was judged meanwhile.")
        seqs = places_of(part.entries, part.after)
        rows = [_row(entry, campaign, part.after + at, seqs, now) for at, entry in enumerate(part.entries, 1)]
        for at, question in _held(connection, campaign, part, seqs, now).items():
            rows[at] |= {"question": question, "attempt": 1}
        for start in range(0, len(rows), _WRITE_AT_ONCE):
            connection.execute(insert(schema.log), rows[start : start + _WRITE_AT_ONCE])


def _held(
    connection: Connection, campaign: str, part: Part, seqs: Mapping[int | None, int], now: float
) -> dict[int, str]:
    """Return the questions that hold the slots of the entries which count to the cap, by their place."""
    lines = [as_line(entry, part.after + at, seqs) for at, entry in enumerate(part.entries, 1)]
    retracted = standing(lines).retracted
    judged = {at: line.judgment for at, line in enumerate(lines) if line.judgment and line.test_pair is None}
    gone = {at for at in judged if lines[at].seq in retracted}
    return imports.hold(connection, campaign, judged, now, gone=gone)


def _row(entry: Entry, campaign: str, seq: int, seqs: Mapping[int | None, int], now: float) -> dict[str, Any]:
    row: dict[str, Any] = {column.name: None for column in schema.log.columns}
    row |= {"campaign": campaign, "topic": entry.topic, "seq": seq, "event": entry.event, "time": now}
    row |= {"assignment": entry.assignment, "reason": entry.reason or None}
    row["refers_to"] = _referred(entry, seqs)
    if entry.event in (log.PHASE_CLOSED, log.REWIND):
        row["phase"] = entry.phase
        row["survivors"] = json.dumps(entry.survivors) if entry.event == log.PHASE_CLOSED else None
    if entry.judgment is not None:
        row |= log.columns_of(entry.judgment) | {"test_pair": entry.test_pair, "told": int(entry.told)}
    return row
