"""The rows of a file, topic by topic, in little memory: about fifty bytes a judgment.

A row is a tuple: where it came from (`PLACE`), and the columns of the log that it becomes (`imports.LINE`). Rows wait
in blocks of columns, of which those with one value alone take no room.
"""

import json
import marshal
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from sys import intern
from typing import Any, TypeAlias

from duelpool.campaign.imports.entries import CampaignIds, Entry, fingerprint_of
from duelpool.records import EFFECTS, Judgment, Kind, Outcome, is_number
from duelpool.store import imports, log

Row: TypeAlias = tuple[Any, ...]

PLACE = ("row", "line", "part", "block", "seq", "question", "fingerprint", "given")
AT = {name: at for at, name in enumerate((*PLACE, *imports.LINE))}
"""Where a row has each of its values."""

_BLOCK = 500
_HEAD = len(PLACE)
_JUDGED = tuple(log.columns_of(Judgment("t", "a", "b", Outcome.LEFT)))


def row_of(entry: Entry) -> Row:
    """Return an entry as a row."""
    values: dict[str, Any] = dict.fromkeys(imports.LINE)
    values |= {"event": entry.event, "assignment": entry.assignment, "reason": entry.reason or None}
    values["refers_to"] = entry.refers_to
    if entry.event in (log.PHASE_CLOSED, log.REWIND):
        values["phase"] = entry.phase
        values["survivors"] = json.dumps(entry.survivors) if entry.event == log.PHASE_CLOSED else None
    if entry.judgment is not None:
        values |= log.columns_of(entry.judgment)
        values |= {"test_pair": entry.test_pair, "told": int(entry.at_once)}
    place = (entry.row, entry.line, entry.part, entry.block, entry.seq)
    return (*place, entry.question, entry.fingerprint, entry.given, *values.values())


def entry_of(topic: str, row: Row) -> Entry:
    """Return a row as an entry."""
    number, line, part, block, seq, question, fingerprint, given = row[:_HEAD]
    values = dict(zip(imports.LINE, row[_HEAD:], strict=True))
    judgment = None
    if values["event"] == log.JUDGMENT:
        fields = {name: values[name] for name in _JUDGED if name not in ("left_item", "right_item")}
        for name in ("sides_known", "inferred", "repeated"):
            fields[name] = bool(fields[name])
        fields["highlighted"] = None if fields["highlighted"] is None else bool(fields["highlighted"])
        fields |= {"outcome": Outcome(fields["outcome"]), "kind": Kind(fields["kind"])}
        judgment = Judgment(topic, values["left_item"], values["right_item"], **fields)
    return Entry(
        topic,
        values["event"],
        line,
        judgment=judgment,
        at_once=True if values["told"] is None else bool(values["told"]),
        assignment=values["assignment"],
        test_pair=values["test_pair"],
        phase="" if judgment is not None else values["phase"] or "",
        survivors=tuple(json.loads(values["survivors"])) if values["survivors"] else (),
        refers_to=values["refers_to"],
        seq=seq,
        reason=values["reason"] or "",
        part=part,
        block=block,
        given=given,
        row=number,
        question=question,
        fingerprint=fingerprint,
    )


class TopicRows:
    """The rows of one topic, in the order in which they are imported."""

    __slots__ = (
        "_blocks",
        "_last",
        "_size",
        "closings",
        "depend",
        "judgments",
        "known_elsewhere",
        "without_phase",
    )

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._last: list[Row] = []
        self._size = 0
        self.judgments = 0
        self.closings = 0
        self.without_phase = 0  # judgments
        self.depend = False  # some rows depend on earlier ones, so that all must be written together
        self.known_elsewhere = (
            False  # some judgments are recognised in any file of the log that they came from
        )

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "TopicRows":
        """Return these rows."""
        made = cls()
        for row in rows:
            made.add(row)
        return made

    def add(self, row: Row) -> None:
        """Add a row at the end."""
        event = row[_HEAD]
        if event == log.JUDGMENT:
            self.judgments += 1
            if not row[_PHASE]:
                self.without_phase += 1
            if row[_FINGERPRINT]:
                self.known_elsewhere = True
        elif event != log.RELEASE:
            self.depend = True
            self.closings += event == log.PHASE_CLOSED
        last = self._last
        last.append(row)
        if len(last) == _BLOCK:
            self._blocks.append(_packed(last))
            self._size += _BLOCK
            self._last = []

    def __len__(self) -> int:
        return self._size + len(self._last)

    def __iter__(self) -> Iterator[Row]:
        return chain(chain.from_iterable(map(_unpacked, self._blocks)), self._last)

    def after(self, start: int) -> Iterator[Row]:
        """Yield the rows after the first few, without unpacking those."""
        skipped = start // _BLOCK
        rest = chain(chain.from_iterable(map(_unpacked, self._blocks[skipped:])), self._last)
        if skipped > len(self._blocks):
            return iter(())
        for _ in range(start - skipped * _BLOCK):
            next(rest, None)
        return rest

    def entries(self, topic: str) -> list[Entry]:
        """Return the rows as entries."""
        return [entry_of(topic, row) for row in self]


_PHASE = AT["phase"]
_FINGERPRINT = AT["fingerprint"]


def _packed(rows: Sequence[Row]) -> bytes:
    count = len(rows)
    columns = [
        column[:1] if column.count(column[0]) == count else column for column in zip(*rows, strict=True)
    ]
    return marshal.dumps(columns)


def _unpacked(block: bytes) -> Iterator[Row]:
    columns = marshal.loads(block)
    return zip(*(column if len(column) > 1 else repeat(column[0], _BLOCK) for column in columns), strict=True)


# ---- judgments that are certainly in order


_OUTCOMES = {str(outcome): str(outcome) for outcome in EFFECTS if outcome is not Outcome.GRADE}
_KINDS = {str(kind): str(kind) for kind in Kind if kind is not Kind.GRADE}
_TEXTS = {"phase", "proposal", "assessor", "criterion", "stage", "strategy", "assignment"}
_SWITCHES = ("sides_known", "inferred", "highlighted", "repeated", "told")
_COLUMNS = {name: at for at, name in enumerate(imports.LINE)}
_PLAIN: list[Any] = list(
    row_of(Entry("t", log.JUDGMENT, judgment=Judgment("t", "a", "b", Outcome.LEFT)))[_HEAD:]
)
_LEFT, _RIGHT, _OUTCOME = _COLUMNS["left_item"], _COLUMNS["right_item"], _COLUMNS["outcome"]
_ASSESSOR = _COLUMNS["assessor"]


def _plain_text(value: object) -> bool:
    return type(value) is str and value.isascii() and "\0" not in value


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_TEXTS, lambda value: type(value) is str),
    "kind": lambda value: type(value) is str and value in _KINDS,
    "note": _plain_text,
    "reason": _plain_text,
    "seconds": lambda value: is_number(value) and value >= 0,
    "confidence": is_number,
    "propensity": lambda value: is_number(value) and 0 < value <= 1,
    "context_uses": lambda value: type(value) is int,
    **dict.fromkeys(_SWITCHES, lambda value: type(value) is bool),
    **dict.fromkeys(("grade", "test_pair"), lambda _: False),  # for the careful reader
    "event": lambda value: value == log.JUDGMENT,
    "seq": lambda value: type(value) is int,
    "question": lambda value: type(value) is str,
    "time": lambda value: type(value) is str,
}
_ELSEWHERE = {"event", "seq", "question", "time"}
_BASIC = {"topic", "left", "right", "outcome"}


class QuickReader:
    """Reads the judgments that are certainly in order; None for any other, which the careful reader reads or refuses.

    In order: a judgment of two different items that the campaign knows and that have no duplicates, whose other
    fields have the expected types.
    """

    def __init__(self, known: CampaignIds, assessor: str) -> None:
        self._known = known.canonical
        self._assessor = assessor
        self._extra: dict[tuple[str, ...], tuple[tuple[str, Callable[[Any], bool], int], ...] | None] = {}

    def read(self, given: Mapping[str, Any]) -> tuple[str, int | None, str, str, list[Any]] | None:
        """Return a judgment's topic, seq, question, fingerprint and columns."""
        shape = tuple(given)
        try:
            extra = self._extra[shape]
        except KeyError:
            extra = self._extra[shape] = _extra_of(shape)
        if extra is None:
            return None
        topic, left, right, outcome = given["topic"], given["left"], given["right"], given["outcome"]
        if (
            type(topic) is not str
            or type(left) is not str
            or type(right) is not str
            or type(outcome) is not str
        ):
            if not {type(topic), type(left), type(right), type(outcome)} <= {str, int}:
                return None
            topic, left, right, outcome = str(topic), str(left), str(right), str(outcome)
        items = self._known.get(topic)
        outcome = _OUTCOMES.get(outcome)
        if items is None or outcome is None or left == right:
            return None
        a, b = items.get(left), items.get(right)
        if a != left or b != right:
            return None
        values = _PLAIN.copy()
        values[_LEFT], values[_RIGHT], values[_OUTCOME] = a, b, outcome
        for name, check, column in extra:
            value = given[name]
            if value is None and name not in _SWITCHES:
                continue  # a field that is null is missing
            if not check(value):
                return None
            if column >= 0:
                kind = type(value)
                values[column] = intern(value) if kind is str else int(value) if kind is bool else value
        person = values[_ASSESSOR]
        values[_ASSESSOR] = person or self._assessor
        values[_REASON] = values[_REASON] or None
        seq, question = given.get("seq"), given.get("question") or ""
        if not question:
            return topic, seq, "", "", values
        fingerprint = fingerprint_of(topic, question, given.get("time") or "", seq, person)
        return topic, seq, question, fingerprint, values


_REASON = _COLUMNS["reason"]


def _extra_of(shape: tuple[str, ...]) -> tuple[tuple[str, Callable[[Any], bool], int], ...] | None:
    """Return the fields of a shape besides the basic ones, each with its check and its column; None: read carefully."""
    if not set(shape) >= _BASIC:
        return None
    return tuple(
        (name, _CHECKS[name], -1 if name in _ELSEWHERE else _COLUMNS[name])
        for name in shape
        if name in _CHECKS
    )


# ---- lines of a log


class SeqsOfTopic:
    """The lines of one topic of a file's log: its seqs, each with its row, its line, and whether it is a judgment."""

    __slots__ = ("_judged", "_later", "_lines", "_rows", "_seqs")

    def __init__(self) -> None:
        self._seqs, self._rows, self._lines = array("q"), array("q"), array("q")
        self._judged = bytearray()
        self._later: dict[int, tuple[int, int, bool]] = {}  # those that came after a higher seq

    def find(self, seq: int) -> tuple[int, int, bool] | None:
        """Return the row and the line that have a seq, and whether it is a judgment; None where none has."""
        at = bisect_left(self._seqs, seq)
        if at < len(self._seqs) and self._seqs[at] == seq:
            return self._rows[at], self._lines[at], bool(self._judged[at])
        return self._later.get(seq)

    def add(self, seq: int, row: int, line: int, judged: bool) -> None:
        """Add a seq that isn't there yet."""
        if -(2**63) <= seq < 2**63 and (not self._seqs or seq > self._seqs[-1]):
            self._seqs.append(seq)
            self._rows.append(row)
            self._lines.append(line)
            self._judged.append(judged)
        else:
            self._later[seq] = (row, line, judged)
