"""JSON lines: one object a line, with the file and the line in every error."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from duelpool.errors import BadFile, BadRecord
from duelpool.files.source import Source
from duelpool.records import is_number

Row = Mapping[str, Any]


def is_json(source: Source) -> bool:
    """Say whether a file begins like JSON, be it lines or one array."""
    return source.data.lstrip()[:1] in (b"{", b"[")


def json_rows(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield the line number and the object of each line; one JSON array counts as its items."""
    if source.data.lstrip()[:1] == b"[":
        yield from _array(source)
        return
    yield from rows_of_lines(source.name, source.lines())


def rows_of_lines(file: str, lines: Iterable[bytes]) -> Iterator[tuple[int, Row]]:
    """Yield the line number and the object of each line that isn't blank."""
    scan = _DECODER.raw_decode  # `decode` looks for white space first and last, which takes as long
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode()
            row, end = scan(text)
            if text[end:].strip(_WHITE_SPACE):
                raise ValueError("more than one value")
        except (ValueError, RecursionError):
            if line.strip():
                yield number, _as_object(file, number, _parse(file, number, line))
            continue
        yield number, row if type(row) is dict else _as_object(file, number, row)


def _array(source: Source) -> Iterator[tuple[int, Row]]:
    rows = _parse(source.name, None, source.data)
    for item in rows:
        yield 1, _as_object(source.name, None, item)


def _parse(file: str, line: int | None, text: bytes) -> Any:
    try:
        return json.loads(text.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise BadFile.at(file, line, "The text is not UTF-8.", "JSON is UTF-8: convert the file.") from None
    except json.JSONDecodeError as error:
        at = line if line is not None else error.lineno
        raise BadFile.at(
            file,
            at,
            f"This is not valid JSON ({error.msg}, column {error.colno}).",
            "Correct the line.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise BadFile.at(file, line, f"This is not valid JSON ({error}).", "Correct the line.") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _as_object(file: str, line: int | None, value: Any) -> Row:
    if not isinstance(value, dict):
        raise BadFile.at(
            file,
            line,
            f"A JSON object was expected here, not {json.dumps(value)[:40]}.",
            "One object a line.",
        )
    return value


_WHITE_SPACE = " \t\n\r"
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def text_of(row: Row, *names: str) -> str | None:
    """Return the first of these fields that is there, as text; a number becomes text, null is missing."""
    for name in names:
        value = row.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise BadRecord(f'"{name}" must be text, not {json.dumps(value)[:40]}.')
        return str(value)
    return None


def number_of(row: Row, name: str) -> float | None:
    """Return a field as a finite number, or None when it is missing."""
    value = row.get(name)
    if value is None:
        return None
    if not is_number(value):
        raise BadRecord(f'"{name}" must be a number, not {json.dumps(value)[:40]}.')
    return value
