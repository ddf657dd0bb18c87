"""Judgments with their assessors: JSON lines, columns under a header line, or plain preferences.

Columns may be in any order, separated by tabs or commas. Their names say what they hold: a topic, two
items, a winner ('=' for a tie) or an outcome, and other fields of a judgment; see `NAMES`.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from duelpool.errors import BadFile, BadRecord, known_names
from duelpool.files.jsonlines import is_json, json_rows, number_of, text_of
from duelpool.files.judgments import Judgments, judgment_from_json
from duelpool.files.notices import Tally
from duelpool.files.preferences import preferences_of
from duelpool.files.source import Readable, Source, read_source
from duelpool.records import Judgment, Kind, Outcome

NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "topic": ("topic", "topic_id", "query", "query_id", "qid"),
        "left": ("left", "a_left", "left_item"),
        "right": ("right", "b_right", "right_item"),
        "a": ("a", "item_a", "first", "response_a"),
        "b": ("b", "item_b", "second", "response_b"),
        "item": ("item", "docno", "document"),
        "winner": ("winner", "preferred"),
        "outcome": ("outcome",),
        "grade": ("grade", "label"),
        "assessor": ("assessor", "worker", "judge", "annotator", "assessor_id", "worker_id"),
        "criterion": ("criterion", "dimension"),
        "kind": ("kind",),
        "seconds": ("seconds",),
        "confidence": ("confidence",),
        "context_uses": ("context_uses",),
        "repeated": ("repeated",),
        "counts": ("counts",),
        "sides_known": ("sides_known",),
    }
)
"""The names of each column. `left` and `right` say on which side an item was shown; `a` and `b` don't."""

_MEANS = {name: field for field, names in NAMES.items() for name in names}
_TIE_SIGN = "="
_NUMBERS = ("grade", "seconds", "confidence", "context_uses")
_YES = {"yes", "true", "1"}
_NO = {"no", "false", "0"}
_EVENT = "judgment"
_TURNS = ("retraction", "restoration")


def read_assessed(path: Readable) -> Judgments:
    """Read judgments with their assessors, plain or gzip, from a path or from standard input ("-").

    Retracted judgments and those of test pairs in a campaign's log are left out and counted.
    """
    source = read_source(path)
    tally = Tally()
    if is_json(source):
        rows = tuple(_of_log(source, tally))
    elif has_named_columns(source):
        rows = tuple(judgment for _, judgment in judgments_of_columns(source, tally))
    else:
        preferences = preferences_of(source)
        for notice in preferences.notices:
            tally.add(notice.what, notice.first_line, notice.count)
        rows = tuple(preferences.judgments())
    if not rows:
        raise BadFile.at(source.name, None, "The file holds no judgment.")
    return Judgments(rows, tally.notices)


# ---- a log as JSON lines


def _of_log(source: Source, tally: Tally) -> Iterator[Judgment]:
    rows: list[Judgment] = []
    retracted: set[tuple[str, int]] = set()
    for number, row in json_rows(source):
        try:
            event = text_of(row, "event") or _EVENT
            if event == _EVENT:
                if text_of(row, "test_pair") is not None:
                    tally.add("judgments of test pairs left out", number)
                else:
                    rows.append(judgment_from_json(row))
            elif event in _TURNS:
                place = (text_of(row, "topic") or "", int(number_of(row, "refers_to") or 0))
                (retracted.add if event == _TURNS[0] else retracted.discard)(place)
        except BadRecord as error:
            raise BadFile.at(source.name, number, error.problem, error.remedy) from None
    for judgment in rows:
        if judgment.seq is not None and (judgment.topic, judgment.seq) in retracted:
            tally.add("retracted judgments left out")
        else:
            yield judgment


# ---- columns with names

_KINDS: Mapping[str, Kind] = {each.value: each for each in Kind}
_OUTCOMES: Mapping[str, Outcome] = {each.value: each for each in Outcome}


def _named_columns(source: Source) -> list[str] | None:
    """Return the columns' meanings, "" for one without, or None where the first line is no header."""
    first = next((line for line in source.lines() if line.strip()), b"").decode(errors="replace")
    try:
        fields = next(csv.reader([first], delimiter=_separator(first)), [])
    except csv.Error:
        return None
    names = [name.strip().lower() for name in fields]
    means = [_MEANS.get(name, "") for name in names]
    decided = {"winner", "outcome", "grade"} & set(means)
    return means if "topic" in means and decided and len(means) >= 3 else None


def has_named_columns(source: Source) -> bool:
    """Whether the first line of a source is a header that names a topic and who won."""
    return _named_columns(source) is not None


def _separator(line: str) -> str:
    return "\t" if "\t" in line else ","


def judgments_of_columns(source: Source, tally: Tally) -> Iterator[tuple[int, Judgment]]:
    """Yield the judgments under a header line, each with its line; those that don't count are left out and counted."""
    names = _named_columns(source) or []
    rows = _rows(source.data.decode(errors="replace"), source.name)
    next(rows)
    for name in (name for name, times in Counter(names).items() if name and times > 1):
        raise BadFile.at(source.name, 1, f"Two columns hold the {name}.", "Keep one of them.")
    if not ({"left", "right"} <= set(names) or {"a", "b"} <= set(names) or "item" in names):
        raise BadFile.at(
            source.name, 1, "No columns name the items.", "Call them left and right, a and b, or item."
        )
    sided = "left" in names and "right" in names
    for number, fields in rows:
        if not fields:
            tally.add("blank lines skipped", number)
            continue
        if len(fields) != len(names):
            raise BadFile.at(
                source.name, number, f"The line has {len(fields)} fields, the header has {len(names)}."
            )
        row = {name: field.strip() for name, field in zip(names, fields, strict=True) if name}
        if row.get("counts", "").lower() in _NO:
            tally.add("judgments that don't count left out", number)
            continue
        try:
            yield number, _judgment(row, sided and row.get("sides_known", "").lower() not in _NO)
        except BadRecord as error:
            raise BadFile.at(source.name, number, error.problem, error.remedy) from None


def _rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each line's number and its fields."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text.split("\n", 1)[0]))
    try:
        for fields in reader:
            yield reader.line_num, fields
    except csv.Error as error:
        raise BadFile.at(
            name, reader.line_num, f"The line can't be split into fields: {error}.", "Check its quotes."
        ) from None


def _judgment(row: dict[str, str], sided: bool) -> Judgment:
    left = row.get("left") or row.get("a") or row.get("item") or ""
    right = row.get("right") or row.get("b") or None
    numbers = {name: _number(row, name) for name in _NUMBERS}
    graded = right is None
    return Judgment(
        row["topic"],
        left,
        right,
        Outcome.GRADE if graded else _outcome(row, left, right or ""),
        kind=Kind.GRADE if graded else _kind(row),
        grade=numbers["grade"] if graded else None,
        assessor=row.get("assessor", ""),
        criterion=row.get("criterion") or "overall",
        seconds=numbers["seconds"],
        confidence=numbers["confidence"],
        context_uses=int(numbers["context_uses"] or 0),
        sides_known=sided,
        repeated=row.get("repeated", "").lower() in _YES,
    )


def _kind(row: dict[str, str]) -> Kind:
    name = row.get("kind")
    if not name:
        return Kind.DEFINITE if row.get("outcome", "").startswith("definitely") else Kind.PREFERENCE
    if name not in _KINDS:
        raise BadRecord(f"There is no kind called '{name}'.", remedy=known_names(name, list(_KINDS)))
    return _KINDS[name]


def _outcome(row: dict[str, str], left: str, right: str) -> Outcome:
    name = row.get("outcome")
    if name:
        if name not in _OUTCOMES:
            raise BadRecord(
                f"There is no outcome called '{name}'.", remedy=known_names(name, list(_OUTCOMES))
            )
        return _OUTCOMES[name]
    winner = row.get("winner", "")
    if winner == _TIE_SIGN:
        return Outcome.TIE
    if winner not in {left, right}:
        raise BadRecord(
            f"The winner '{winner}' is neither '{left}' nor '{right}'.",
            remedy="Name one of the two, or '=' for a tie.",
        )
    return Outcome.LEFT if winner == left else Outcome.RIGHT


def _number(row: dict[str, str], name: str) -> float | None:
    text = row.get(name)
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise BadRecord(f"The {name} must be a number, not '{text}'.") from None
