"""The lines of a file as entries of a campaign's log: read, chosen, and matched with its topics and items."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from sqlalchemy import select

from duelpool.deciders import CampaignGoal
from duelpool.errors import BadFile, BadParameter, BadRecord, known_names
from duelpool.files import PreferenceForm
from duelpool.files.assessed import has_named_columns, judgments_of_columns
from duelpool.files.jsonlines import Row, is_json, json_rows, number_of, rows_of_lines, text_of
from duelpool.files.judgments import judgment_from_json, judgment_to_json
from duelpool.files.notices import Tally
from duelpool.files.preferences import Preferences, preferences_of
from duelpool.files.source import OpenSource, Source
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


def given_rows(
    opened: OpenSource, form: PreferenceForm | None, tally: Tally, visit: Callable[[bytes], None]
) -> tuple[Source, Iterator[tuple[int | None, Row]]]:
    """Return a file for messages, and its rows with their lines: preferences in one of their forms, columns, or a log.

    JSON lines are read as they are needed, and `visit` gets their bytes; other forms are read whole.
    """
    first = opened.start.lstrip()[:1]
    if first == b"{" and form in (None, "jsonl"):
        return Source(opened.name, b""), rows_of_lines(opened.name, opened.lines(visit))
    source = opened.whole()
    visit(source.data)
    if form == "jsonl" or (form is None and is_json(source)):
        return source, json_rows(source)
    if form is None and has_named_columns(source):
        return source, ((line, judgment_to_json(each)) for line, each in judgments_of_columns(source, tally))
    return source, _rows_of_preferences(preferences_of(source, form), tally)


def _rows_of_preferences(preferences: Preferences, tally: Tally) -> Iterator[tuple[int | None, Row]]:
    for notice in preferences.notices:
        tally.add(notice.what, notice.first_line, notice.count)
    sides_known = preferences.sides_known
    for topic, left, right, outcome, *inferred in preferences.frame.iter_rows():
        row = {"topic": topic, "left": left, "right": right, "outcome": outcome, "sides_known": sides_known}
        if any(inferred):
            row["inferred"] = True
        yield None, row


def entry_from_json(file: str, row: Row, line: int | None) -> Entry:
    """Return the line of a log that a JSON object describes; refuse it with its line."""
    try:
        return _entry_from_json(row, line)
    except BadRecord as error:
        raise BadFile.at(file, line, error.problem, error.remedy) from None


def _entry_from_json(row: Row, line: int | None) -> Entry:
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
            fingerprint=fingerprint_of(given.topic, given.question, given.time, given.seq, given.assessor),
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


def fingerprint_of(topic: str, question: str, time: str, seq: int | None, assessor: str) -> str:
    """Return what a judgment is recognised by in any file of the log that it came from; "" where nothing tells."""
    if not question or (seq is None and not time):
        return ""
    place = assessor if seq is None else seq
    return sha256(json.dumps([topic, question, time, place]).encode()).hexdigest()


def chosen(
    source: Source, given: Iterator[tuple[int | None, Row]], rows: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, int, Row]]:
    """Yield the rows of the given ranges, range by range in the given order: number, line, range, and what it says.

    Where the line isn't known, the number of the row stands for it, below 0.
    """
    end = 0
    for first, last in sorted(rows):
        if not end < first <= last:
            raise BadParameter(
                f"Rows {first}-{last} are not a range, or overlap with another range.",
                remedy="Example: 1-100,201-300",
            )
        end = last
    in_order = list(rows) == sorted(rows)
    later: list[list[tuple[int, int, int, Row]]] = [[] for _ in rows]
    number = 0
    for number, (line, row) in enumerate(given, 1):
        part = 0
        if rows:
            part = next((at for at, (first, last) in enumerate(rows) if first <= number <= last), -1)
        place = (number, -number if line is None else line, part, row)
        if part < 0:
            entry_from_json(source.name, row, line)  # what isn't chosen must be in order too
        elif in_order:
            yield place
        else:
            later[part].append(place)
    if end > number:
        raise BadFile.at(
            source.name, None, f"The file has {number} rows, and --rows names row {end}.", "Check --rows."
        )
    for of_part in later:
        yield from of_part


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
    between_duplicates: bool = False  # whether a judgment between items of the same text counts


def read_ids(tx: Reading, goal: CampaignGoal) -> CampaignIds:
    """Read the ids that a campaign knows; votes between the same answers of two systems count."""
    columns = schema.item.c
    topics = {topic: dict[str, str]() for topic in holdings.topics(tx)}
    for row in tx.connection.execute(
        select(columns.topic, columns.id, columns.twin_of).where(columns.campaign == tx.campaign)
    ):
        topics[row.topic][row.id] = row.twin_of or row.id
    return CampaignIds(topics, frozenset(holdings.test_pairs(tx)), goal.of_systems)


def line_of(source: Source, line: int | None) -> int | None:
    """Return a line of the file; a number below 0 stands for the row of that number."""
    return line if line is None or line > 0 else line_of_row(source, -line)


def unknown_in(entry: Entry, known: CampaignIds) -> tuple[str, str] | None:
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


def canonical(entry: Entry, known: CampaignIds, tally: Tally) -> Entry | None:
    """Return a judgment of duplicates as one of the items that are judged for them; None where both are the same."""
    judgment = entry.judgment
    if judgment is None or entry.test_pair is not None:
        return entry
    items = known.canonical[entry.topic]
    left = items[judgment.left]
    right = None if judgment.right is None else items[judgment.right]
    if (left, right) == (judgment.left, judgment.right):
        return entry
    if left == right:
        if known.between_duplicates:
            return entry
        tally.add("judgments between duplicates dropped")
        return None
    tally.add("judgments of duplicates, counted for the item that is judged for them")
    given = (judgment.left,) if judgment.right is None else (judgment.left, judgment.right)
    return replace(entry, judgment=replace(judgment, left=left, right=right), given=given)
