"""Passages, the texts of the items: `id<tab>text` lines or JSON lines."""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast, get_args

from duelpool.errors import BadFile, BadRecord
from duelpool.files.collections import text_source
from duelpool.files.jsonlines import Row, is_json, json_rows, text_of
from duelpool.files.notices import Notice, Tally
from duelpool.files.source import Readable, write_lines
from duelpool.files.tabs import tab_rows
from duelpool.frames import Tabular, counted, frame_of
from duelpool.records import Passage, SourceKind, SourceText, TextFormat, packed_sources

if TYPE_CHECKING:
    import polars as pl

_ID = ("id", "_id", "docno", "docid", "doc_id", "pid", "passage_id", "item", "response")
_TEXT = ("text", "contents", "body", "passage", "content")
_KNOWN = {*_ID, *_TEXT, "title", "url", "format", "sources"}


@dataclass(frozen=True, slots=True, repr=False)
class Passages(Tabular):
    """The passages of a file by id, in its order."""

    by_id: Mapping[str, Passage]
    notices: tuple[Notice, ...] = field(default=())

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.by_id.values())

    def __len__(self) -> int:
        return len(self.by_id)

    def __repr__(self) -> str:
        return f"Passages({counted(len(self), 'passage')})"

    def to_polars(self) -> "pl.DataFrame":
        """Return a row a passage: id, text, title."""
        rows = ((each.id, each.text, each.title or None) for each in self)
        return frame_of(rows, {"id": "String", "text": "String", "title": "String"})

    def to_dict(self) -> dict[str, str]:
        """Return the texts by id."""
        return {each.id: each.text for each in self}


def read_passages(path: Readable, only: Collection[str] | None = None) -> Passages:
    """Read passages, plain or gzip, from a path, standard input ("-") or a dataset; only these ids, if any."""
    source = text_source(path, "passages", only)
    tally = Tally()
    rows = (
        json_rows(source)
        if is_json(source)
        else tab_rows(source, ("id", "text"), known={*_KNOWN, "topic"}, tally=tally)
    )
    passages: dict[str, Passage] = {}
    read = 0
    for line, row in rows:
        read += 1
        try:
            passage = passage_from_json(row)
        except BadRecord as error:
            raise BadFile.at(source.name, line, error.problem, error.remedy) from None
        if only is not None and passage.id not in only:
            continue
        if passage.id in passages:
            if passages[passage.id] != passage:
                raise BadFile.at(
                    source.name,
                    line,
                    f"Passage '{passage.id}' is listed twice, with different texts.",
                    "Keep one.",
                )
            tally.add("passages listed again, the same", line)
        if not passage.text:
            tally.add("passages without text", line)
        passages[passage.id] = passage
    if not read:
        raise BadFile.at(
            source.name, None, "The file holds no passage.", "Forms: id<tab>text, or JSON lines."
        )
    return Passages(passages, tally.notices)


def passage_from_json(row: Row) -> Passage:
    """Return the passage that a JSON object (or a row with names) describes, or raise BadRecord."""
    passage_id, text = text_of(row, *_ID), text_of(row, *_TEXT)
    if passage_id is None or text is None:
        missing, names = ("id", _ID) if passage_id is None else ("text", _TEXT)
        raise BadRecord(f"The passage's {missing} is missing.", remedy=f"Name it one of: {', '.join(names)}.")
    shown = cast(TextFormat, text_of(row, "format") or "text")  # the record refuses others
    title, url = text_of(row, "title") or "", text_of(row, "url") or ""
    return Passage(passage_id, text, title, url, shown, _sources(row.get("sources")))


def _sources(value: Any) -> tuple[SourceText, ...]:
    """Return what an answer rests on, as `passage_to_json` writes it."""
    if value is None:
        return ()
    kinds, names = get_args(SourceKind), {each.name for each in fields(SourceText)}
    if isinstance(value, list) and all(
        isinstance(each, dict)
        and each.keys() <= names
        and all(isinstance(part, str) for part in each.values())
        and each.get("kind", "citation") in kinds
        for each in value
    ):
        return tuple(SourceText(**each) for each in value)
    raise BadRecord(
        f'"sources" must be a list of objects with id, text, title, url and kind, not {json.dumps(value)[:40]}.'
    )


def write_passages(path: str | os.PathLike[str], passages: Iterable[Passage]) -> None:
    """Write passages as JSON lines."""
    write_lines(path, (json.dumps(passage_to_json(each), ensure_ascii=False) for each in passages))


def passage_to_json(passage: Passage) -> dict[str, Any]:
    """Return a passage as a JSON object without empty fields."""
    values: dict[str, Any] = {
        "id": passage.id,
        "text": passage.text,
        "title": passage.title,
        "url": passage.url,
    }
    if passage.format != "text":
        values["format"] = passage.format
    if passage.sources:
        values["sources"] = json.loads(packed_sources(passage.sources))
    return {name: value for name, value in values.items() if value or name in ("id", "text")}
