"""Writing an imported file: the lines of each topic's log, the questions that hold their slots, and the file's record.

A small file is written in one transaction. A large one is written piece by piece, so that assessors don't wait for
it; its progress is stored, and importing the same file again resumes there. Lines that depend on earlier ones (a
closed phase, a retraction) are written together with their whole topic, and only where its log still ends where it
did when the import was planned.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, update

from duelpool.campaign.imports.entries import FOLLOW_UPS, Entry
from duelpool.campaign.imports.overlaps import question_id, times_in_campaign
from duelpool.campaign.imports.rows import AT, PLACE, Row, TopicRows, entry_of
from duelpool.campaign.log.newcomers import is_challenge
from duelpool.campaign.log.replay import counted_lines
from duelpool.errors import BadFile, BadRecord, DuelpoolError
from duelpool.store import Reading, Writing, holdings, imports, log, schema
from duelpool.store.statements import dialect_of

_HEAD = len(PLACE)
_ROW, _SEQ, _FINGERPRINT, _EVENT, _REFERS_TO = (
    AT[name] for name in ("row", "seq", "fingerprint", "event", "refers_to")
)


class Changed(DuelpoolError):
    """A topic was judged while a file was imported."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A file to import, identified by its contents and the rows that are chosen; `models` are judges of it."""

    file: str
    digest: str
    again: bool
    models: frozenset[str] = frozenset()

    def enter(self, tx: Writing, lines: int, *, done: bool) -> "Progress":
        """Record the import of the file, finished (`done`) or begun; refuse a file that was imported before.

        Its models are enrolled as such, so that their judgments are told apart from those of people.
        """
        self._enrol_models(tx)
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

    def _enrol_models(self, tx: Writing) -> None:
        known = holdings.assessors(tx) if self.models else {}
        for name in sorted(self.models):
            if name in known and known[name].kind not in {"llm", "imported"}:
                raise BadFile.at(
                    *(
                        self.file,
                        None,
                        f"The assessor '{name}' is a {known[name].kind} one, and here a model.",
                    ),
                    "Give the model another name.",
                )
            holdings.enrol(tx, name, "llm")

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
    """The rows to write to one topic's log, and the seq after which they go."""

    after: int
    rows: TopicRows


def seqs_of(seqs: Iterable[int | None], after: int) -> dict[int | None, int]:
    """Map the seq of each line in the file's log to its seq in the campaign's log."""
    return {seq: after + at for at, seq in enumerate(seqs, 1)}


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
        refers_to=_referred(entry.topic, entry.event, entry.refers_to, seqs),
        phase=entry.phase,
        survivors=entry.survivors,
    )


def _referred(topic: str, event: str, refers_to: int | None, seqs: Mapping[int | None, int]) -> int | None:
    if event not in FOLLOW_UPS:
        return None
    if refers_to not in seqs:
        raise BadRecord(
            f"A line of topic '{topic}' refers to line {refers_to}, which isn't in the file.",
            remedy="Import the whole log, or leave out retractions.",
        )
    return seqs[refers_to]


def write_batch(tx: Writing, *, batch: Batch, plan: Mapping[str, Part]) -> None:
    """Write all topics' lines at once; each topic's log must end where it did when the import was planned."""
    batch.enter(tx, sum(len(part.rows) for part in plan.values()), done=True)
    for topic in sorted(plan):
        write_part(tx, batch, topic, list(plan[topic].rows), after=plan[topic].after)


def write_part(
    tx: Writing,
    batch: Batch,
    topic: str,
    rows: Sequence[Row],
    *,
    after: int | None = None,
    taken: imports.Taken | None = None,
) -> None:
    """Append rows to a topic's log, which must end `after` this line where it is given.

    `taken` is what an earlier part of the same import knew of the slots.
    """
    others = [row for row in rows if row[_EVENT] != log.JUDGMENT]
    topics = schema.topic.c
    where = [topics.campaign == tx.campaign, topics.id == topic]
    if after is not None:
        where.append(topics.next_seq == after + 1)
    pool_changes = 1 if _newcomers_join(others) else 0  # so that every process reloads the pool
    next_seq = tx.connection.execute(
        update(schema.topic)
        .where(*where)
        .values(
            next_seq=topics.next_seq + len(rows),
            pool_version=topics.pool_version + pool_changes,
        )
        .returning(topics.next_seq)
    ).scalar_one_or_none()
    if next_seq is None:
        raise Changed(f"Topic '{topic}' was judged during the import.")
    after = int(next_seq) - 1 - len(rows)
    known = times_in_campaign(tx, topic, rows) if batch.again else {}  # these count once more
    given = ["" if row[_ROW] in known else question_id(tx.campaign, row[_FINGERPRINT]) for row in rows]
    lines: list[tuple[Any, ...]] = [row[_HEAD:] for row in rows]
    retracted: Collection[int] = ()
    if others:
        seqs = seqs_of((row[_SEQ] for row in rows), after)
        retracted = _retracted(topic, rows, after, seqs)
        lines = [_with_reference(topic, line, seqs) for line in lines]
    imports.append_lines(tx, topic, after, lines, retracted=retracted, given=given, taken=taken)


def newcomers_of(entries: Sequence[Entry]) -> frozenset[str]:
    """Return the items that join by the challenges among these lines."""
    closings = (entry for entry in entries if entry.event == log.PHASE_CLOSED and is_challenge(entry.phase))
    return frozenset(item for closing in closings for item in closing.survivors)


def _newcomers_join(others: Iterable[Row]) -> bool:
    return bool(newcomers_of([entry_of("", row) for row in others if row[_EVENT] == log.PHASE_CLOSED]))


def _retracted(topic: str, rows: Sequence[Row], after: int, seqs: Mapping[int | None, int]) -> frozenset[int]:
    """Return the places of the judgments that don't count at the end of these rows."""
    lines = [as_line(entry_of(topic, row), after + at, seqs) for at, row in enumerate(rows, 1)]
    counts = counted_lines(lines)
    return frozenset(at for at, line in enumerate(lines) if line.judgment and not counts.keeps(line.seq))


def _with_reference(topic: str, line: tuple[Any, ...], seqs: Mapping[int | None, int]) -> tuple[Any, ...]:
    """Return a line that refers to another by that one's seq in the campaign's log."""
    if line[0] == log.JUDGMENT:
        return line
    at = _REFERS_TO - _HEAD
    return (*line[:at], _referred(topic, line[0], line[at], seqs), *line[at + 1 :])
