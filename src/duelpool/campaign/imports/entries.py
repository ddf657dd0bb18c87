"""The lines of a file as entries of a campaign's log: read, chosen, and matched with its topics and items."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from sqlalchemy import select

from duelpool.errors import BadFile, BadParameter, BadRecord, known_names
from duelpool.files import PreferenceForm
from duelpool.files.jsonlines import Row, is_json, json_rows, number_of, text_of
from duelpool.files.judgments import judgment_from_json
from duelpool.files.notices import Tally
from duelpool.files.preferences import preferences_of
from duelpool.files.source import Source
from duelpool.records import Judgment
from duelpool.store import Reading, holdings, log, schema

FOLLOW_UPS = (log.RETRACTION, log.RESTORATION)
_EVENTS = (log.JUDGMENT, *FOLLOW_UPS, log.RELEASE, log.PHASE_CLOSED, log.REWIND)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line to write to the log, and the line of the file that it came from."""

    topic: str
    event: str
    line: int | None = None
    judgment: Judgment | None = None
    at_once: bool = True
    assignment: str | None = None
    test_pair: str | None = None
    phase: str = ""
    survivors: tuple[str, ...] = ()
    refers_to: int | None = None  # a seq of the file's log
    seq: int | None = None  # of the file's log
    reason: str = ""
    part: int = 0  # which of the chosen ranges of rows it belongs to
    block: int = 0  # which run of consecutive rows of a topic it belongs to
    given: tuple[str, ...] = ()  # the items of its judgment as the file has them, where they are duplicates
    row: int = 0  # which row of the file it is, from 1
    question: str = ""  # the id of its question in the campaign that wrote the file
    fingerprint: str = (
        ""  # of a judgment that names its question and its seq or time there; see `_fingerprint`
    )


def entries_of(source: Source, form: PreferenceForm | None, tally: Tally) -> Iterator[Entry]:
    """Yield the entries of a file: preferences in one of their forms, or the lines of a log."""
    if form == "jsonl" or (form is None and is_json(source)):
        for line, row in json_rows(source):
            try:
                yield _entry_from_json(row, line)
            except BadRecord as error:
                raise BadFile.at(source.name, line, error.problem, error.remedy) from None
        return
    preferences = preferences_of(source, form)
    for notice in preferences.notices:
        tally.add(notice.what, notice.first_line, notice.count)
    for judgment in preferences.judgments():
        yield Entry(judgment.topic, log.JUDGMENT, judgment=judgment)


def _entry_from_json(row: Row, line: int) -> Entry:
    event = text_of(row, "event") or log.JUDGMENT
    if event not in _EVENTS:
        raise BadRecord(f"There is no event called '{event}'.", remedy=known_names(event, _EVENTS))
    seq = number_of(row, "seq")
    common: dict[str, Any] = {
        "line": line,
        "seq": None if seq is None else int(seq),
        "assignment": text_of(row, "assignment"),
        "reason": text_of(row, "reason") or "",
    }
    if event == log.JUDGMENT:
        given = judgment_from_json(row)
        judgment = replace(given, question="", seq=None, time="")
        at_once = row.get("told", True)
        if not isinstance(at_once, bool):
            raise BadRecord('"told" must be true or false.')
        return Entry(
            judgment.topic,
            event,
            judgment=judgment,
            at_once=at_once,
            test_pair=text_of(row, "test_pair"),
            question=given.question,
            fingerprint=_fingerprint(given),
            **common,
        )
    topic = text_of(row, "topic")
    if topic is None:
        raise BadRecord('The field "topic" is missing.', remedy="Every line of a log names its topic.")
    if event in FOLLOW_UPS:
        refers_to = number_of(row, "refers_to")
        if refers_to is None:
            raise BadRecord('The field "refers_to" is missing.', remedy="It is the seq of a judgment.")
        return Entry(topic, event, refers_to=int(refers_to), **common)
    survivors = row.get("survivors", [])
    if not isinstance(survivors, list) or not all(isinstance(item, str) for item in survivors):
        raise BadRecord('"survivors" must be a list of ids.')
    return Entry(topic, event, phase=text_of(row, "phase") or "", survivors=tuple(survivors), **common)


def _fingerprint(given: Judgment) -> str:
    """Return what a judgment is recognised by in any file of the log that it came from; "" where nothing tells."""
    if not given.question or (given.seq is None and not given.time):
        return ""
    place = given.assessor if given.seq is None else given.seq
    return sha256(json.dumps([given.topic, given.question, given.time, place]).encode()).hexdigest()


def chosen(source: Source, entries: Iterator[Entry], rows: Sequence[tuple[int, int]]) -> Iterator[Entry]:
    """Yield the entries of the given ranges of rows, range by range in the given order, numbered by range and block."""
    end = 0
    for first, last in sorted(rows):
        if not end < first <= last:
            raise BadParameter(
                f"Rows {first}-{last} are not a range, or overlap with another range.",
                remedy="Example: 1-100,201-300",
            )
        end = last
    parts: list[list[Entry]] = [[] for _ in range(max(1, len(rows)))]
    number = 0
    for number, entry in enumerate(entries, 1):
        part = next((at for at, (first, last) in enumerate(rows) if first <= number <= last), None)
        if rows and part is None:
            continue
        line = entry.line if entry.line is not None else -number
        parts[part or 0].append(replace(entry, line=line, row=number))
    if end > number:
        raise BadFile.at(
            source.name, None, f"The file has {number} rows, and --rows names row {end}.", "Check --rows."
        )
    block, before = 0, ("", -1)
    for part, own in enumerate(parts):
        for entry in own:
            if (entry.topic, part) != before:
                block, before = block + 1, (entry.topic, part)
            yield replace(entry, part=part, block=block)


def line_of_row(source: Source, row: int) -> int | None:
    """Return the line of a file's nth row, without blank lines and comments."""
    rows = 0
    for number, line in enumerate(source.lines(), 1):
        words = line.split(None, 1)
        if words and not words[0].startswith(b"#"):
            rows += 1
            if rows == row:
                return number
    return None


# ---- checking


@dataclass(frozen=True, slots=True)
class CampaignIds:
    """A campaign's items by topic, each with the item that is judged for it, and its test pairs."""

    canonical: Mapping[str, Mapping[str, str]]
    test_pairs: Collection[str]


def read_ids(tx: Reading) -> CampaignIds:
    """Read the ids that a campaign knows."""
    columns = schema.item.c
    topics = {topic: dict[str, str]() for topic in holdings.topics(tx)}
    for row in tx.connection.execute(
        select(columns.topic, columns.id, columns.twin_of).where(columns.campaign == tx.campaign)
    ):
        topics[row.topic][row.id] = row.twin_of or row.id
    return CampaignIds(topics, frozenset(holdings.test_pairs(tx)))


def match_entries(
    source: Source, entries: Sequence[Entry], known: CampaignIds, skip_unknown: bool, tally: Tally
) -> Iterator[Entry]:
    """Yield the entries that match the campaign, by canonical ids; count the others, or refuse them with their line."""
    left_out: set[tuple[str, int]] = set()
    above = _LinesAbove(source)
    for entry in entries:
        above.add(entry)
        unknown = _unknown(entry, known)
        if unknown:
            line = line_of(source, entry)
            if not skip_unknown:
                raise BadFile.at(source.name, line, unknown[1], "Add it to the campaign, or remove the line.")
            tally.add(unknown[0], line)
        elif (canonical := _canonical(entry, known, tally)) is not None:
            if entry.event in FOLLOW_UPS and (entry.topic, entry.refers_to) in left_out:
                tally.add("retractions and restorations of judgments that were left out, left out too")
                continue
            above.refuse_unknown_reference(entry)
            yield canonical
            continue
        if entry.seq is not None:
            left_out.add((entry.topic, entry.seq))


class _LinesAbove:
    """The lines of a log so far: each is there once, and what refers to a judgment comes below it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._by_seq: dict[tuple[str, int], Entry] = {}
        self._by_fingerprint: dict[str, Entry] = {}

    def add(self, entry: Entry) -> None:
        """Take in a line; refuse one that repeats a line above."""
        first = None
        if entry.seq is not None:
            first = self._by_seq.setdefault((entry.topic, entry.seq), entry)
        elif entry.fingerprint:
            first = self._by_fingerprint.setdefault(entry.fingerprint, entry)
        if first is None or first is entry:
            return
        both = f"question '{entry.question}'" if entry.seq is None else f"seq {entry.seq}"
        raise BadFile.at(
            self._source.name,
            line_of(self._source, entry),
            f"Row {entry.row} repeats row {first.row} (line {line_of(self._source, first)}): "
            f"both have {both} of topic '{entry.topic}'.",
            "Remove one of them. Import the logs of several campaigns one by one.",
        )

    def refuse_unknown_reference(self, entry: Entry) -> None:
        """Refuse a retraction or restoration of what isn't a judgment above it."""
        if entry.event not in FOLLOW_UPS or entry.refers_to is None:
            return
        referred = self._by_seq.get((entry.topic, entry.refers_to))
        if referred is None or referred.judgment is None:
            raise BadFile.at(
                self._source.name,
                line_of(self._source, entry),
                f"A line of topic '{entry.topic}' refers to line {entry.refers_to}, which isn't in the file "
                "as a judgment above it.",
                "Import the whole log in its order, or leave out retractions.",
            )


def line_of(source: Source, entry: Entry) -> int | None:
    """Return the line of the file that an entry came from."""
    if entry.line is None or entry.line > 0:
        return entry.line
    return line_of_row(source, -entry.line)


def _unknown(entry: Entry, known: CampaignIds) -> tuple[str, str] | None:
    """Return what of an entry the campaign doesn't know, as it is counted and as it is refused; else None."""
    items = known.canonical.get(entry.topic)
    if items is None:
        return "judgments of unknown topics left out", f"The campaign has no topic '{entry.topic}'."
    if entry.judgment is None:
        return None
    if entry.test_pair is not None:
        if entry.test_pair in known.test_pairs:
            return None
        return "answers to unknown test pairs left out", f"There is no test pair '{entry.test_pair}'."
    for item in (entry.judgment.left, entry.judgment.right):
        if item is not None and item not in items:
            return (
                "judgments of unknown items left out",
                f"The pool of topic '{entry.topic}' has no item '{item}'.",
            )
    return None


def _canonical(entry: Entry, known: CampaignIds, tally: Tally) -> Entry | None:
    judgment = entry.judgment
    if judgment is None or entry.test_pair is not None:
        return entry
    items = known.canonical[entry.topic]
    left = items[judgment.left]
    right = None if judgment.right is None else items[judgment.right]
    if (left, right) == (judgment.left, judgment.right):
        return entry
    if left == right:
        tally.add("judgments between duplicates dropped")
        return None
    tally.add("judgments of duplicates, counted for the item that is judged for them")
    given = (judgment.left,) if judgment.right is None else (judgment.left, judgment.right)
    return replace(entry, judgment=replace(judgment, left=left, right=right), given=given)
