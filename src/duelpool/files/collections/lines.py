"""Rows with named columns as the lines of the field's files."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

from duelpool.errors import BadFile
from duelpool.files.columns import number_text, refuse_unwritable

Row: TypeAlias = Mapping[str, Any]

TOPIC = ("topic", "qid", "query_id", "query-id", "topic_id", "question_id")
DOCNO = ("docno", "doc_id", "docid", "corpus-id", "corpus_id", "item", "pid", "passage_id")
GRADE = ("grade", "label", "relevance", "rel", "score")
SCORE = ("score", "sim")
TAG = ("tag", "name", "run", "system")
_SIDES = ("left", "right", "winner")


def lines_of(name: str, rows: Iterable[Row], what: str) -> Iterator[str]:
    """Yield a text line for each row, as a run, qrels, preferences, or JSON."""
    iterator = iter(rows)
    first = next(iterator, None)
    if first is None:
        return iter(())
    together = chain([first], iterator)
    if what == "truth":
        what = _kind(name, first)
    if what == "run":
        return _run(name, together)
    if what == "qrels":
        return _qrels(name, together)
    if what == "preferences":
        return (_checked(name, row, ("topic", *_SIDES)) for row in together)
    return (
        json.dumps({key: _json(value) for key, value in row.items()}, ensure_ascii=False) for row in together
    )


def _kind(name: str, row: Row) -> str:
    if all(side in row for side in _SIDES):
        return "preferences"
    if any(key in row for key in GRADE[:-1]):
        return "qrels"
    if any(key in row for key in ("rank", *TAG)) and "score" in row:
        return "run"
    return "qrels" if "score" in row else _lacks(name, row, "grade", GRADE)


def _run(name: str, rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        topic, docno = _text(name, row, "topic", TOPIC), _text(name, row, "document", DOCNO)
        score = next((row[key] for key in SCORE if row.get(key) is not None), None)
        if score is None:
            if row.get("rank") is None:
                _lacks(name, row, "score", (*SCORE, "rank"))
            score = -_number(name, "rank", row["rank"])
        tag = next((str(row[key]) for key in TAG if row.get(key)), "run")
        refuse_unwritable(name, "tag", [tag])
        yield f"{topic} Q0 {docno} 0 {_number(name, 'score', score)!r} {tag}"


def _qrels(name: str, rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        topic, docno = _text(name, row, "topic", TOPIC), _text(name, row, "document", DOCNO)
        grade = next((row[key] for key in GRADE if row.get(key) is not None), None)
        if grade is None:
            _lacks(name, row, "grade", GRADE)
        yield f"{topic} 0 {docno} {number_text(_number(name, 'grade', grade))}"


def _checked(name: str, row: Row, keys: tuple[str, ...]) -> str:
    values = [_text(name, row, key, (key,)) for key in keys]
    return " ".join(values)


def _text(name: str, row: Row, what: str, keys: tuple[str, ...]) -> str:
    value = next((row[key] for key in keys if row.get(key) is not None), None)
    if value is None:
        return _lacks(name, row, what, keys)
    text = str(value)
    refuse_unwritable(name, what, [text])
    return text


def _number(name: str, what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise BadFile.at(
            name, None, f"The {what} {str(value)[:40]!r} is no number.", "Correct the column."
        ) from None


def _lacks(name: str, row: Row, what: str, keys: tuple[str, ...]) -> str:
    raise BadFile.at(
        name,
        None,
        f"There is no column for the {what}; the columns are {', '.join(map(str, row))}.",
        f"Name it one of: {', '.join(keys)}.",
    )


def _json(value: Any) -> Any:
    """Return a value as JSON has it; a number that isn't one is missing."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    return str(value)
