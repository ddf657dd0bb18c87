"""Reading a file to import: its rows chosen, checked against the campaign and kept by topic, in one pass.

Most judgments are certainly in order, and a quick reader takes them. Any other line is read carefully: it becomes an
entry, or is refused with its line.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

from duelpool.campaign.imports.entries import (
    FOLLOW_UPS,
    CampaignIds,
    Entry,
    canonical,
    chosen,
    entry_from_json,
    given_rows,
    line_of,
    unknown_in,
)
from duelpool.campaign.imports.rows import QuickReader, SeqsOfTopic, TopicRows, row_of
from duelpool.errors import BadFile
from duelpool.files import PreferenceForm
from duelpool.files.notices import Tally
from duelpool.files.source import Readable, Source, open_source


@dataclass(frozen=True, slots=True)
class FileRows:
    """A file's rows that go into a campaign, by topic; `digest` identifies its contents and the chosen rows."""

    source: Source
    digest: str
    topics: dict[str, TopicRows] = field(default_factory=dict)


def read_rows(
    path: Readable,
    known: CampaignIds,
    tally: Tally,
    *,
    form: PreferenceForm | None = None,
    rows: Sequence[tuple[int, int]] = (),
    skip_unknown: bool = False,
    assessor: str = "",
) -> FileRows:
    """Read a file's rows that match the campaign, by canonical ids; refuse others with their line, or count them.

    `assessor` is the pseudonym of judgments that name none.
    """
    with open_source(path) as opened:
        digest = sha256()
        source, given = given_rows(opened, form, tally, digest.update)
        topics: dict[str, TopicRows] = {}
        quick = QuickReader(known, assessor).read
        above = _LinesAbove(source)
        careful = _CarefulReader(known, above, tally, skip_unknown=skip_unknown, assessor=assessor)
        blocks = _Blocks()
        for number, line, part, row in chosen(source, given, rows):
            read = quick(row)
            if read is None:
                entry = entry_from_json(source.name, row, line if line > 0 else None)
                place = (number, line, part, blocks.of(part, entry.topic))
                matched = careful.match(entry, place)
                if matched is None:
                    continue
                topic, made = matched.topic, row_of(matched)
            else:
                topic, seq, question, fingerprint, values = read
                place = (number, line, part, blocks.of(part, topic))
                if seq is not None or fingerprint:
                    above.add(_LogLine(topic, seq, fingerprint, question, number, line))
                made = (*place, seq, question, fingerprint, (), *values)
            own = topics.get(topic)
            if own is None:
                own = topics[topic] = TopicRows()
            own.add(made)
        digest.update(repr(sorted(rows)).encode())
    return FileRows(source, digest.hexdigest(), topics)


class _Blocks:
    """Numbers the runs of consecutive rows of a topic, in each range of rows by itself."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[str, int]] = {}
        self._count = 0

    def of(self, part: int, topic: str) -> int:
        """Return the block of a row of a topic, the next one in its range."""
        last = self._last.get(part)
        if last is None or last[0] != topic:
            self._count += 1
            last = self._last[part] = (topic, self._count)
        return last[1]


class _CarefulReader:
    """Matches entries with the campaign, one by one."""

    def __init__(
        self, known: CampaignIds, above: "_LinesAbove", tally: Tally, *, skip_unknown: bool, assessor: str
    ) -> None:
        self._source = above.source
        self._known = known
        self._skip_unknown = skip_unknown
        self._assessor = assessor
        self._tally = tally
        self._left_out: set[tuple[str, int]] = set()
        self._above = above

    def match(self, entry: Entry, place: tuple[int, int, int, int]) -> Entry | None:
        """Return an entry by canonical ids, with its row, line, part and block; None where it is left out."""
        row, line_or_row, part, block = place
        entry = replace(entry, row=row, line=line_or_row, part=part, block=block)
        judged = entry.judgment is not None
        self._above.add(
            _LogLine(entry.topic, entry.seq, entry.fingerprint, entry.question, row, line_or_row, judged)
        )
        unknown = unknown_in(entry, self._known)
        if unknown:
            line = line_of(self._source, entry.line)
            if not self._skip_unknown:
                raise BadFile.at(
                    self._source.name, line, unknown[1], "Add it to the campaign, or remove the line."
                )
            self._tally.add(unknown[0], line)
        elif (matched := canonical(entry, self._known, self._tally)) is not None:
            if entry.event in FOLLOW_UPS and (entry.topic, entry.refers_to) in self._left_out:
                self._tally.add("retractions and restorations of judgments that were left out, left out too")
                return None
            self._above.refuse_unknown_reference(entry)
            return self._by_default(matched)
        if entry.seq is not None:
            self._left_out.add((entry.topic, entry.seq))
        return None

    def _by_default(self, entry: Entry) -> Entry:
        judgment = entry.judgment
        if judgment is None or judgment.assessor or not self._assessor:
            return entry
        return replace(entry, judgment=replace(judgment, assessor=self._assessor))


class _LogLine(NamedTuple):
    """A line of a log, as far as it is compared with the lines above it."""

    topic: str
    seq: int | None
    fingerprint: str
    question: str
    row: int
    line: int
    judged: bool = True


class _LinesAbove:
    """The lines of a log so far: each is there once, and what refers to a judgment comes below it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._seqs: dict[str, SeqsOfTopic] = {}
        self._by_fingerprint: dict[str, tuple[int, int]] = {}

    def add(self, new: _LogLine) -> None:
        """Take in a line; refuse one that repeats a line above."""
        first: tuple[int, int] | None = None
        if new.seq is not None:
            seqs = self._seqs.get(new.topic)
            if seqs is None:
                seqs = self._seqs[new.topic] = SeqsOfTopic()
            if found := seqs.find(new.seq):
                first = found[:2]
            else:
                seqs.add(new.seq, new.row, new.line, new.judged)
        elif new.fingerprint:
            first = self._by_fingerprint.get(new.fingerprint)
            if first is None:
                self._by_fingerprint[new.fingerprint] = (new.row, new.line)
        if first is None:
            return
        both = f"question '{new.question}'" if new.seq is None else f"seq {new.seq}"
        raise BadFile.at(
            self.source.name,
            line_of(self.source, new.line),
            f"Row {new.row} repeats row {first[0]} (line {line_of(self.source, first[1])}): "
            f"both have {both} of topic '{new.topic}'.",
            "Remove one of them. Import the logs of several campaigns one by one.",
        )

    def refuse_unknown_reference(self, entry: Entry) -> None:
        """Refuse a retraction or restoration of what isn't a judgment above it."""
        if entry.event not in FOLLOW_UPS or entry.refers_to is None:
            return
        seqs = self._seqs.get(entry.topic)
        found = None if seqs is None else seqs.find(entry.refers_to)
        if found is None or not found[2]:
            raise BadFile.at(
                self.source.name,
                line_of(self.source, entry.line),
                f"A line of topic '{entry.topic}' refers to line {entry.refers_to}, which isn't in the file "
                "as a judgment above it.",
                "Import the whole log in its order, or leave out retractions.",
            )
