"""What is written of a file: the lines of each topic's log, the questions that hold their slots, and the file itself.

A small file goes into one transaction. A large one goes piece by piece, so that nobody who judges waits for it;
how far it has come stands beside it, and whoever takes the same file in again goes on from there. Lines that
depend on those before them (a phase that closes, a retraction) are written together with their whole topic, and
only where its log still ends where it did when the plan was made.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import delete, insert, select, update

from duelpool.campaign.imports.entries import FOLLOW_UPS, Entry
from duelpool.campaign.log.newcomers import is_challenge
from duelpool.campaign.log.replay import counted_lines
from duelpool.errors import BadFile, BadRecord, DuelpoolError
from duelpool.files.source import Source
from duelpool.store import Reading, Writing, imports, log, schema
from duelpool.store.statements import dialect_of

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

    def enter(self, tx: Writing, lines: int, *, done: bool) -> "Progress":
        """Write down that the file is taken in, or that this begins; refuse one that was."""
        columns = schema.intake.c
        before = tx.connection.execute(
            select(columns.occasion, columns.time, columns.done)
            .where(columns.campaign == tx.campaign, columns.digest == self.digest)
            .order_by(columns.occasion.desc())
        ).first()
        if before is not None and not before.done:  # it stopped midway: go on
            return Progress(self, before.occasion, _parts(tx, self.digest, before.occasion))
        if before is not None and not self.again:
            raise BadFile.at(
                self.file,
                None,
                f"The same rows were taken in already, at {log.iso_time(before.time)}.",
                "Nothing to do. To count them once more, give --again.",
            )
        occasion = before.occasion + 1 if before is not None else 1
        tx.connection.execute(
            insert(schema.intake).values(
                campaign=tx.campaign,
                digest=self.digest,
                occasion=occasion,
                file=self.file,
                lines=lines,
                time=tx.now,
                done=int(done),
            )
        )
        return Progress(self, occasion, {})

    def midway(self, tx: Reading) -> dict[str, int] | None:
        """Return how far the file came when it stopped midway, None when it didn't."""
        columns = schema.intake.c
        query = select(columns.occasion).where(
            columns.campaign == tx.campaign, columns.digest == self.digest, columns.done == 0
        )
        occasion = tx.connection.execute(query).scalar()
        return None if occasion is None else _parts(tx, self.digest, occasion)


def _parts(tx: Reading, digest: str, occasion: int) -> dict[str, int]:
    columns = schema.intake_part.c
    rows = tx.connection.execute(
        select(columns.topic, columns.written).where(
            columns.campaign == tx.campaign, columns.digest == digest, columns.occasion == occasion
        )
    )
    return {row.topic: row.written for row in rows}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a file has come: by topic, how many of its lines are written."""

    batch: Batch
    occasion: int
    written: Mapping[str, int]

    def advance(self, tx: Writing, topic: str, before: int, after: int) -> None:
        """Write down how far a topic has come, if nobody else has carried it on meanwhile."""
        place = {
            "campaign": tx.campaign,
            "digest": self.batch.digest,
            "occasion": self.occasion,
            "topic": topic,
        }
        table = schema.intake_part
        if before == 0:
            new = (
                dialect_of(tx.connection)
                .insert(table)
                .values(**place, written=after)
                .on_conflict_do_nothing()
            )
            rows = tx.connection.execute(new.returning(table.c.topic)).all()
        else:
            here = (table.c[name] == value for name, value in place.items())
            rows = tx.connection.execute(
                update(table)
                .where(*here, table.c.written == before)
                .values(written=after)
                .returning(table.c.topic)
            ).all()
        if not rows:
            raise BadFile.at(
                self.batch.file,
                None,
                "Another process is importing the same file.",
                "Stop one of the two.",
            )

    def finish(self, tx: Writing) -> None:
        """Write down that all of it is there."""
        key = {"campaign": tx.campaign, "digest": self.batch.digest, "occasion": self.occasion}
        part, file = schema.intake_part, schema.intake
        tx.connection.execute(delete(part).where(*(part.c[name] == value for name, value in key.items())))
        tx.connection.execute(
            update(file).where(*(file.c[name] == value for name, value in key.items())).values(done=1)
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
        at_once=entry.at_once,
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


def hangs_together(entries: Iterable[Entry]) -> bool:
    """Say whether lines depend on those before them, so that none may come without the others."""
    return any(entry.event in (*FOLLOW_UPS, log.PHASE_CLOSED, log.REWIND) for entry in entries)


def write_batch(tx: Writing, *, batch: Batch, plan: Mapping[str, Part]) -> None:
    """Write all topics' lines at once; each topic's log must end where it did when the plan was made."""
    batch.enter(tx, sum(len(part.entries) for part in plan.values()), done=True)
    for topic in sorted(plan):
        write_part(tx, topic=topic, part=plan[topic])


def write_part(tx: Writing, *, topic: str, part: Part, anywhere: bool = False) -> None:
    """Write some of a topic's lines where its log ends, which must be where the plan says, or `anywhere`."""
    topics = schema.topic.c
    where = [topics.campaign == tx.campaign, topics.id == topic]
    if not anywhere:
        where.append(topics.next_seq == part.after + 1)
    changes = 1 if newcomers_of(part.entries) else 0  # of the pool, which every process must know
    place = tx.connection.execute(
        update(schema.topic)
        .where(*where)
        .values(
            next_seq=topics.next_seq + len(part.entries),
            pool_version=topics.pool_version + changes,
        )
        .returning(topics.next_seq)
    ).scalar_one_or_none()
    if place is None:
        raise Changed(f"Topic '{topic}' was judged meanwhile.")
    part = Part(int(place) - 1 - len(part.entries), part.entries)
    seqs = places_of(part.entries, part.after)
    rows = [
        _row(entry, tx.campaign, part.after + at, seqs, tx.now) for at, entry in enumerate(part.entries, 1)
    ]
    for at, question in _held(tx, part, seqs).items():
        rows[at] |= {"question": question, "attempt": 1}
    for start in range(0, len(rows), _WRITE_AT_ONCE):
        tx.connection.execute(insert(schema.log), rows[start : start + _WRITE_AT_ONCE])


def newcomers_of(entries: Sequence[Entry]) -> frozenset[str]:
    """Return the items of a pool that are newcomers by these lines."""
    closings = (entry for entry in entries if entry.event == log.PHASE_CLOSED and is_challenge(entry.phase))
    return frozenset(item for closing in closings for item in closing.survivors)


def _held(tx: Writing, part: Part, seqs: Mapping[int | None, int]) -> dict[int, str]:
    """Return the questions that hold the slots of the entries which count to the cap, by their place."""
    lines = [as_line(entry, part.after + at, seqs) for at, entry in enumerate(part.entries, 1)]
    retracted = counted_lines(lines).retracted
    judged = {at: line.judgment for at, line in enumerate(lines) if line.judgment and line.test_pair is None}
    gone = {at for at in judged if lines[at].seq in retracted}
    return imports.create_questions(tx, judged, retracted=gone)


def _row(entry: Entry, campaign: str, seq: int, seqs: Mapping[int | None, int], now: float) -> dict[str, Any]:
    row: dict[str, Any] = {column.name: None for column in schema.log.columns}
    row |= {"campaign": campaign, "topic": entry.topic, "seq": seq, "event": entry.event, "time": now}
    row |= {"assignment": entry.assignment, "reason": entry.reason or None}
    row["refers_to"] = _referred(entry, seqs)
    if entry.event in (log.PHASE_CLOSED, log.REWIND):
        row["phase"] = entry.phase
        row["survivors"] = json.dumps(entry.survivors) if entry.event == log.PHASE_CLOSED else None
    if entry.judgment is not None:
        row |= log.columns_of(entry.judgment) | {"test_pair": entry.test_pair, "told": int(entry.at_once)}
    return row
