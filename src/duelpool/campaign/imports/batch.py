"""Writing an imported file: the lines of each topic's log, the questions that hold their slots, and the file's record.

A small file is written in one transaction. A large one is written piece by piece, so that assessors don't wait for
it; its progress is stored, and importing the same file again resumes there. Lines that depend on earlier ones (a
closed phase, a retraction) are written together with their whole topic, and only where its log still ends where it
did when the import was planned.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import delete, insert, select, update

from duelpool.campaign.imports.entries import FOLLOW_UPS, Entry
from duelpool.campaign.imports.overlaps import question_id
from duelpool.campaign.log.newcomers import is_challenge
from duelpool.campaign.log.replay import counted_lines
from duelpool.errors import BadFile, BadRecord, DuelpoolError
from duelpool.files.source import Source
from duelpool.store import Reading, Writing, imports, log, schema
from duelpool.store.statements import dialect_of

_WRITE_AT_ONCE = 1000


class Changed(DuelpoolError):
    """A topic was judged while a file was imported."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A file to import, identified by its contents and the rows that are chosen."""

    file: str
    digest: str
    again: bool

    @classmethod
    def of(cls, source: Source, rows: Sequence[tuple[int, int]], again: bool) -> "Batch":
        """Return the batch of these rows of a file."""
        return cls(source.name, sha256(source.data + repr(sorted(rows)).encode()).hexdigest(), again)

    def enter(self, tx: Writing, lines: int, *, done: bool) -> "Progress":
        """Record the import of the file, finished (`done`) or begun; refuse a file that was imported before."""
        columns = schema.intake.c
        before = tx.connection.execute(
            select(columns.occasion, columns.time, columns.done)
            .where(columns.campaign == tx.campaign, columns.digest == self.digest)
            .order_by(columns.occasion.desc())
        ).first()
        if before is not None and not before.done:  # it was interrupted: resume
            return Progress(self, before.occasion, _parts(tx, self.digest, before.occasion))
        if before is not None and not self.again:
            raise BadFile.at(
                self.file,
                None,
                f"The same rows were imported before, at {log.iso_time(before.time)}.",
                "Nothing to do. To import them once more, give --again.",
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

    def interrupted(self, tx: Reading) -> dict[str, int] | None:
        """Return the progress of an interrupted import of the file by topic, None where there is none."""
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
    """The progress of an import: how many lines of each topic are written."""

    batch: Batch
    occasion: int
    written: Mapping[str, int]

    def advance(self, tx: Writing, topic: str, before: int, after: int) -> None:
        """Store a topic's progress; refuse when another process has advanced it meanwhile."""
        key = {
            "campaign": tx.campaign,
            "digest": self.batch.digest,
            "occasion": self.occasion,
            "topic": topic,
        }
        table = schema.intake_part
        if before == 0:
            new = (
                dialect_of(tx.connection).insert(table).values(**key, written=after).on_conflict_do_nothing()
            )
            rows = tx.connection.execute(new.returning(table.c.topic)).all()
        else:
            here = (table.c[name] == value for name, value in key.items())
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
        """Record that the import is complete."""
        key = {"campaign": tx.campaign, "digest": self.batch.digest, "occasion": self.occasion}
        part, file = schema.intake_part, schema.intake
        tx.connection.execute(delete(part).where(*(part.c[name] == value for name, value in key.items())))
        tx.connection.execute(
            update(file).where(*(file.c[name] == value for name, value in key.items())).values(done=1)
        )


@dataclass(frozen=True, slots=True)
class Part:
    """The entries to write to one topic's log, and the seq after which they go."""

    after: int
    entries: tuple[Entry, ...]


def seqs_of(entries: Sequence[Entry], after: int) -> dict[int | None, int]:
    """Map the seq of each line in the file's log to its seq in the campaign's log."""
    return {entry.seq: after + at for at, entry in enumerate(entries, 1)}


def as_line(entry: Entry, seq: int, seqs: Mapping[int | None, int]) -> log.Line:
    """Return an entry as the line of the log that it becomes."""
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
            remedy="Import the whole log, or leave out retractions.",
        )
    return seqs[entry.refers_to]


def depend_on_each_other(entries: Iterable[Entry]) -> bool:
    """Whether some lines depend on earlier ones, so that all must be written together."""
    return any(entry.event in (*FOLLOW_UPS, log.PHASE_CLOSED, log.REWIND) for entry in entries)


def write_batch(tx: Writing, *, batch: Batch, plan: Mapping[str, Part]) -> None:
    """Write all topics' lines at once; each topic's log must end where it did when the import was planned."""
    batch.enter(tx, sum(len(part.entries) for part in plan.values()), done=True)
    for topic in sorted(plan):
        write_part(tx, topic=topic, part=plan[topic])


def write_part(tx: Writing, *, topic: str, part: Part, anywhere: bool = False) -> None:
    """Append lines to a topic's log, which must end where the import was planned, or `anywhere`."""
    topics = schema.topic.c
    where = [topics.campaign == tx.campaign, topics.id == topic]
    if not anywhere:
        where.append(topics.next_seq == part.after + 1)
    pool_changes = 1 if newcomers_of(part.entries) else 0  # so that every process reloads the pool
    next_seq = tx.connection.execute(
        update(schema.topic)
        .where(*where)
        .values(
            next_seq=topics.next_seq + len(part.entries),
            pool_version=topics.pool_version + pool_changes,
        )
        .returning(topics.next_seq)
    ).scalar_one_or_none()
    if next_seq is None:
        raise Changed(f"Topic '{topic}' was judged during the import.")
    part = Part(int(next_seq) - 1 - len(part.entries), part.entries)
    seqs = seqs_of(part.entries, part.after)
    rows = [
        _row(entry, tx.campaign, part.after + at, seqs, tx.now) for at, entry in enumerate(part.entries, 1)
    ]
    for at, question in _held(tx, part, seqs).items():
        rows[at] |= {"question": question, "attempt": 1}
    for start in range(0, len(rows), _WRITE_AT_ONCE):
        tx.connection.execute(insert(schema.log), rows[start : start + _WRITE_AT_ONCE])


def newcomers_of(entries: Sequence[Entry]) -> frozenset[str]:
    """Return the items that join by the challenges among these lines."""
    closings = (entry for entry in entries if entry.event == log.PHASE_CLOSED and is_challenge(entry.phase))
    return frozenset(item for closing in closings for item in closing.survivors)


def _held(tx: Writing, part: Part, seqs: Mapping[int | None, int]) -> dict[int, str]:
    """Create the questions that hold the slots of the judgments; return their ids by the entry's index."""
    lines = [as_line(entry, part.after + at, seqs) for at, entry in enumerate(part.entries, 1)]
    counts = counted_lines(lines)
    judged = {at: line.judgment for at, line in enumerate(lines) if line.judgment and line.test_pair is None}
    retracted_at = {at for at in judged if not counts.keeps(lines[at].seq)}
    given = {at: question_id(tx.campaign, entry) for at, entry in enumerate(part.entries)}
    return imports.create_questions(tx, judged, retracted=retracted_at, given=given)


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
