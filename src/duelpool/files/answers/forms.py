"""The forms that answers come in, told by a file's first bytes and the names in it; each gives rows."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from duelpool.errors import BadFile, BadRecord
from duelpool.files.answers.fields import COLUMNS, MAYBE_IDS, NAMES, FieldMap, map_fields, not_found, plain
from duelpool.files.answers.results import (
    inspect_archive,
    inspect_rows,
    is_inspect,
    is_promptfoo,
    promptfoo_results,
    promptfoo_rows,
)
from duelpool.files.answers.rows import AnswerRow, RowPlace, row_of
from duelpool.files.answers.trec_rag import is_trec_rag, trec_rag_row
from duelpool.files.columns import read_parquet
from duelpool.files.jsonlines import Row, rows_of_lines
from duelpool.files.notices import Tally
from duelpool.files.source import Source
from duelpool.files.tables import delimited_rows

_PARQUET, _ZIP = b"PAR1", b"PK\x03\x04"
_FORMS = "Forms: JSON lines, a JSON array, CSV, TSV or Parquet with question, system and answer."
_NO_SYSTEMS = {"id", "index", "score", "latency", "cost", "tokens", "url", "date", "time", "language", "lang", "level",
               "difficulty", "type", "domain", "source", "split", "notes", "note", "comment"}  # fmt: skip

Placed = tuple[RowPlace, Row]


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """How a file is read: the names that are mapped, whether it is the only file, and what is counted."""

    mapped: Mapping[str, str]
    alone: bool
    tally: Tally


def rows_in(source: Source, how: AnswerReading) -> Iterator[AnswerRow]:
    """Yield the answers of a file, in whichever form it is; those without a system have none yet."""
    tally = how.tally
    data = source.data
    if source.marked:
        tally.add("byte order mark at the start, passed over")
    if data.startswith(_PARQUET):
        yield from _table(source.name, _parquet(source), how)
    elif data.startswith(_ZIP):
        about, samples = inspect_archive(source.name, data)
        yield from inspect_rows(source.name, about, samples, tally)
    elif data.lstrip()[:1] in {b"{", b"["}:
        yield from _json(source, how)
    else:
        yield from _table(source.name, _separated(source, tally), how)


# ---- JSON


def _json(source: Source, how: AnswerReading) -> Iterator[AnswerRow]:
    tally = how.tally
    document = _document(source)
    if isinstance(document, Mapping):
        if is_inspect(document):
            samples = [each for each in document["samples"] or () if isinstance(each, Mapping)]
            yield from inspect_rows(source.name, document["eval"], samples, tally)
            return
        results = promptfoo_results(document)
        if results is not None:
            placed = [(RowPlace(source.name, row=at), row) for at, row in enumerate(results, 1)]
            yield from promptfoo_rows(placed, tally)
            return
        if is_nested(document):
            yield from _objects(_unnested(source.name, document, how), replace(how, mapped={}))
            return
        rows = [(RowPlace(source.name, 1), document)]
    elif document is not None:
        rows = [(RowPlace(source.name, row=at), row) for at, row in enumerate(document, 1)]
        for place, row in rows:
            if not isinstance(row, Mapping):
                raise BadFile(
                    f"A JSON object was expected here, not {json.dumps(row)[:40]}.",
                    place=str(place),
                    remedy="One object an answer.",
                )
    else:
        lines = source.lines()
        tally.add("blank lines skipped", None, sum(not line.strip() for line in lines))
        rows = [(RowPlace(source.name, line), row) for line, row in rows_of_lines(source.name, lines)]
    if rows and all(is_promptfoo(row) for _, row in rows):
        yield from promptfoo_rows(rows, tally)
    elif names := _names_of_systems(rows, how):
        yield from _table(source.name, rows, how, names)
    else:
        yield from _objects(rows, how)


def is_nested(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object is answers by system and question, or by question and system: {a: {b: text}}."""
    known = {plain(each) for names in NAMES.values() for each in names}
    return bool(document) and all(
        isinstance(inner, Mapping)
        and inner
        and all(text is None or isinstance(text, str) for text in inner.values())
        and plain(outer) not in known
        for outer, inner in document.items()
    )


def _unnested(file: str, document: Mapping[str, Any], how: AnswerReading) -> Iterator[Placed]:
    """Yield a row an answer; what has the words is the question, else the user names the systems."""
    outer, inner = list(document), list(dict.fromkeys(key for each in document.values() for key in each))
    named = [part.strip() for part in how.mapped.get(COLUMNS, "").split("+") if part.strip()]
    if named:
        by_system = set(named) <= set(outer)
        clear = by_system != (set(named) <= set(inner))
    else:
        by_system = _are_questions(inner)
        clear = by_system != _are_questions(outer)
    if not clear:
        raise BadFile.at(
            file,
            None,
            f"It isn't clear which are the systems: {_listed(outer)}, or {_listed(inner)}.",
            "Name them: --fields systems=A+B",
        )
    asked = "question" if _are_questions(inner if by_system else outer) else "question_id"
    row = 0
    for first, answers in document.items():
        for second, text in answers.items():
            row += 1
            system, question = (first, second) if by_system else (second, first)
            if named and system not in named:
                continue
            if text is None:
                how.tally.add("null: the system has no answer to that question", None)
                continue
            yield RowPlace(file, row=row), {asked: question, "system": system, "answer": text}


def _are_questions(keys: Sequence[str]) -> bool:
    """Whether most keys have several words, as questions have and names of systems don't."""
    return 2 * sum(len(key.split()) > 3 or key.rstrip().endswith("?") for key in keys) >= len(keys)


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(f"'{key[:30]}'" for key in keys[:3]) + (", ..." if len(keys) > 3 else "")


def _names_of_systems(rows: Sequence[Placed], how: AnswerReading) -> tuple[str, ...]:
    """Return the names in objects that have a field for each system; none where they have other fields."""
    names = tuple(dict.fromkeys(name for _, row in rows for name in row))
    if COLUMNS in how.mapped or not names:
        return names
    try:
        found = map_fields(names, how.mapped, rows[0][1])
    except BadRecord:  # objects may have different fields: they are read one by one
        return ()
    return names if _columns(rows, found, how.mapped) else ()


def _document(source: Source) -> Any:
    """Return the one JSON value of a file, None where it has one object a line."""
    data = source.data
    first = data.lstrip().split(b"\n", 1)
    if first[0].lstrip()[:1] == b"{" and len(first) > 1 and first[1].strip():
        with suppress(ValueError, RecursionError):
            json.loads(first[0])
            return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        if first[0].lstrip()[:1] == b"{" and isinstance(error, json.JSONDecodeError) and b"}" in first[0]:
            return None  # lines, the first of them broken: it is named when they are read
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise BadFile.at(
            source.name, line, f"This is not valid JSON ({said}).", "Correct the file."
        ) from None


def _objects(rows: Iterable[Placed], how: AnswerReading) -> Iterator[AnswerRow]:
    """Yield the answers of JSON objects, each of which may have other names."""
    known: dict[tuple[str, ...], FieldMap] = {}
    unused: dict[str, None] = {}
    for place, row in rows:
        try:
            if not how.mapped and is_trec_rag(row):
                yield trec_rag_row(row, place)
                continue
            names = tuple(row)
            found = known.get(names)
            if found is None:
                found = known[names] = map_fields(names, how.mapped, row)
                unused.update(dict.fromkeys(found.unused))
                _refuse_without(found, how.alone)
            yield row_of(row, found, place)
        except BadRecord as error:
            raise _at(place, error) from None
    _tell_unused(unused, how.tally)


def _refuse_without(found: FieldMap, alone: bool) -> None:
    for field in ("question_id", "question"):
        if field in found.paths:
            break
    else:
        raise not_found("question", found)
    if "answer" not in found.paths:
        raise not_found("answer", found)
    if alone and "system" not in found.paths:
        raise not_found("system", found)


def _tell_unused(names: Mapping[str, None], tally: Tally) -> None:
    shown = [name for name in names if name not in MAYBE_IDS]
    if shown:
        some = ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")
        tally.add(f"fields not used ({some})", None, len(shown))


def _at(place: RowPlace, error: BadRecord) -> BadFile:
    return BadFile(error.problem, place=str(place), remedy=error.remedy)


# ---- tables


def _separated(source: Source, tally: Tally) -> list[Placed]:
    """Return the rows of CSV or TSV with a header; quoted cells may hold line breaks."""
    for number, line in enumerate(source.lines(), 1):
        if line.strip():
            if not any(sign in line for sign in (b"\t", b",", b";")):
                problem = "This is no table of answers: its first line has one cell."
                raise BadFile.at(source.name, number, problem, _FORMS)
            break
    rows = delimited_rows(source, tally)
    return [(RowPlace(source.name, line), dict(row)) for line, row in rows]


def _parquet(source: Source) -> list[Placed]:
    rows = read_parquet(source).iter_rows(named=True)
    return [(RowPlace(source.name, row=at), row) for at, row in enumerate(rows, 1)]


def _table(
    file: str, rows: Sequence[Placed], how: AnswerReading, names: Sequence[str] = ()
) -> Iterator[AnswerRow]:
    """Yield the answers of a table: a row each, or a column a system.

    The columns have the names of the first row, or other names of which a row may lack some.
    """
    if not rows:
        raise BadFile.at(file, None, "The file holds no answer.", _FORMS)
    place, first = rows[0]
    try:
        found = map_fields(names or first, how.mapped, first)
        columns = _columns(rows, found, how.mapped)
        if columns:
            yield from _wide(rows, found, columns, how.tally)
            return
        _refuse_without(found, how.alone)
        for place, row in rows:
            yield row_of(row, found, place)
    except BadRecord as error:
        raise _at(place, error) from None
    _tell_unused(dict.fromkeys(found.unused), how.tally)


def _columns(rows: Sequence[Placed], found: FieldMap, mapped: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns that are systems: those that the user names, or all others where each is one beyond doubt."""
    if COLUMNS in mapped:
        named = tuple(part.strip() for part in mapped[COLUMNS].split("+"))
        for name in named:
            if name not in found.names:
                raise BadRecord(
                    f"There is no column '{name}'. Found: {', '.join(found.names)}.",
                    remedy="Correct --fields systems=A+B",
                )
        return named
    if (
        "system" in found.paths
        or "answer" in found.paths
        or not {"question", "question_id"} & set(found.paths)
    ):
        return ()
    others = tuple(name for name in found.unused if name.lower() not in _NO_SYSTEMS)
    if len(others) < 2 or len(others) < len(found.unused):
        return ()
    cells: dict[str, list[Any]] = {name: [] for name in others}
    for _, row in rows:
        for name, cell in row.items():
            if name in cells:
                cells[name].append(cell)
    return others if all(_is_prose(column) for column in cells.values()) else ()


def _is_prose(cells: Sequence[Any]) -> bool:
    """Whether a column has texts of several words, most of them different: answers, rather than labels."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
    if not texts or any(cell is not None and not isinstance(cell, str) for cell in cells):
        return False
    of_words = sum(len(text.split()) > 2 for text in texts)
    return 2 * of_words >= len(texts) and 2 * len(set(texts)) >= len(texts)


def _wide(
    rows: Sequence[Placed], found: FieldMap, columns: Sequence[str], tally: Tally
) -> Iterator[AnswerRow]:
    tally.add(f"systems taken from the columns ({', '.join(columns[:8])}{', ...' if len(columns) > 8 else ''})",
              None, len(columns))  # fmt: skip
    at = {name: number for number, name in enumerate(columns)}
    for place, row in rows:
        about = row_of({name: value for name, value in row.items() if name not in at}, found, place)
        given = [(at[name], name, str(text)) for name, text in row.items() if name in at and text is not None]
        answers = [(name, text) for _, name, text in sorted(given) if text.strip()]
        missing = "empty cells: the system has no answer to that question"
        tally.add(missing, place.line, len(columns) - len(answers))
        for name, text in answers:
            yield replace(about, system=name, answer=text)
