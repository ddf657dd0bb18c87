"""Judgments as JSON lines: every field that differs from its default."""

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from duelpool.errors import BadFile, BadRecord, known_names
from duelpool.files.jsonlines import Row, json_rows, number_of, text_of
from duelpool.files.notices import Notice, Tally
from duelpool.files.source import Readable, Source, read_source, write_lines
from duelpool.records import Judgment, Kind, Outcome

_NUMBERS = ("grade", "confidence", "seconds", "propensity")
_WHOLE = ("context_uses", "seq")
_SWITCHES = ("sides_known", "inferred", "highlighted", "repeated")
_FIELDS = {each.name: each for each in dataclasses.fields(Judgment)}


@dataclass(frozen=True, slots=True)
class Judgments:
    """The judgments of a file, in its order."""

    rows: tuple[Judgment, ...]
    notices: tuple[Notice, ...] = field(default=())

    def __iter__(self) -> Iterator[Judgment]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def read_judgments(path: Readable) -> Judgments:
    """Read judgments from JSON lines, plain or gzip, from a path or from standard input ("-")."""
    return judgments_of(read_source(path))


def judgments_of(source: Source) -> Judgments:
    """Read judgments from the JSON lines of a source."""
    tally = Tally()
    rows = []
    for line, row in json_rows(source):
        try:
            rows.append(judgment_from_json(row))
        except BadRecord as error:
            raise BadFile.at(source.name, line, error.problem, error.remedy) from None
        for name in row.keys() - _FIELDS.keys():
            tally.add(f'unknown field "{name}" left out', line)
    if not rows:
        raise BadFile.at(source.name, None, "The file holds no judgment.")
    return Judgments(tuple(rows), tally.notices)


def judgment_from_json(row: Row) -> Judgment:
    """Return the judgment that a JSON object describes, or raise BadRecord."""
    values: dict[str, Any] = {}
    for name in row.keys() & _FIELDS.keys():
        if name in _NUMBERS:
            value: Any = number_of(row, name)
        elif name in _WHOLE:
            value = number_of(row, name)
            if value is not None and value != int(value):
                raise BadRecord(f'"{name}" must be a whole number, not {value}.')
            value = None if value is None else int(value)
        elif name in _SWITCHES:
            value = row[name]
            if not isinstance(value, bool):
                raise BadRecord(f'"{name}" must be true or false, not {json.dumps(value)[:40]}.')
        else:
            value = text_of(row, name)
        if value is not None:
            values[name] = value
    for name, table in (("outcome", Outcome), ("kind", Kind)):
        if name in values:
            if values[name] not in (known := [each.value for each in table]):
                raise BadRecord(
                    f"There is no {name} called '{values[name]}'.", remedy=known_names(values[name], known)
                )
            values[name] = table(values[name])
    for name in ("topic", "left", "outcome"):
        if name not in values:
            raise BadRecord(
                f'The field "{name}" is missing.',
                remedy="A judgment has at least topic, left, right, outcome.",
            )
    if values["outcome"] is Outcome.GRADE:
        values.setdefault("kind", Kind.GRADE)
    values.setdefault("right", None)
    return Judgment(**values)


def judgment_to_json(judgment: Judgment) -> dict[str, Any]:
    """Return a judgment as a JSON object without the fields at their defaults."""
    values = {}
    for name, about in _FIELDS.items():
        value = getattr(judgment, name)
        if about.default is dataclasses.MISSING or value != about.default:
            values[name] = value
    if values["right"] is None:
        del values["right"]
    return values


def write_judgments(path: str | os.PathLike[str], judgments: Iterable[Judgment]) -> None:
    """Write judgments as JSON lines."""
    write_lines(path, (json.dumps(judgment_to_json(each), ensure_ascii=False) for each in judgments))
