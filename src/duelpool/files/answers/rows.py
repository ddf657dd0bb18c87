"""One answer as a file has it, before it is put together with the others."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duelpool.errors import BadRecord
from duelpool.files.answers.fields import MAYBE_IDS, FieldMap, shortened
from duelpool.files.jsonlines import Row
from duelpool.files.source import stem
from duelpool.records import SourceKind, SourceText

_TEXT = ("text", "contents", "page_content", "content", "snippet", "passage", "body", "segment")
_ID = ("id", "_id", "docid", "doc_id", "docno", "pid", "passage_id", "document_id")
_URL = ("url", "link", "source")


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Where an answer is: the file, and its line or row."""

    file: str
    line: int | None = None
    row: int | None = None

    def __str__(self) -> str:
        if self.line is not None:
            return f"{self.file}:{self.line}"
        return self.file if self.row is None else f"{self.file}, row {self.row}"


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer of a system to a question; a question without an id is known by its text.

    `maybe_id` is its `id` or `topic`, where no other field is the question's id: the whole table tells whether it is.
    """

    place: RowPlace
    system: str | None
    answer: str | None
    question_id: str | None = None
    question: str | None = None
    conversation: tuple[str, ...] = ()
    sources: tuple[SourceText, ...] = ()
    reference: str = ""
    tags: tuple[str, ...] = ()
    maybe_id: str = ""


def file_system(file: str) -> str:
    """Return the name of a system that a whole file is of."""
    name = stem(file)
    for ending in (".csv", ".parquet", ".eval"):
        name = name.removesuffix(ending) or name
    return name


def row_of(row: Row, found: FieldMap, place: RowPlace) -> AnswerRow:
    """Return the answer that a row of named fields holds, or raise BadRecord."""
    question, conversation = _question(found.value(row, "question"), found)
    given = found.value(row, "answer")
    return AnswerRow(
        place,
        found.text(row, "system"),
        last_message(given) if isinstance(given, list) else found.text(row, "answer"),
        found.text(row, "question_id"),
        question,
        conversation,
        (
            *source_texts(found.value(row, "citations"), "citation", found.called("citations")),
            *source_texts(found.value(row, "contexts"), "context", found.called("contexts")),
        ),
        _one_text(found.value(row, "reference")),
        tags_of(found.value(row, "tags")),
        _maybe_id(row, found),
    )


def _maybe_id(row: Row, found: FieldMap) -> str:
    if "question_id" in found.paths:
        return ""
    for name in MAYBE_IDS:
        if (
            isinstance(own := row.get(name), str | int | float)
            and not isinstance(own, bool)
            and name in found.unused
        ):
            return str(own).strip()
    return ""


def _question(value: Any, found: FieldMap) -> tuple[str | None, tuple[str, ...]]:
    """Return a question, and what was said before it where it is a list of messages."""
    if isinstance(value, str) and value.lstrip().startswith("[{"):  # messages in a table's cell
        try:
            value = json.loads(value)
        except ValueError:
            return value, ()
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        said = [message_text(each) for each in value if each.get("role") != "system"]
        said = [each for each in said if each]
        return (said[-1], tuple(said[:-1])) if said else (None, ())
    if value is None or isinstance(value, str):
        return value, ()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRecord(
            f'"{found.called("question")}" must be text, not {shortened(value)}.',
            remedy="Name the field that has it: --fields question=FIELD",
        )
    return str(value), ()


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of a chat message, whose content is a text or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [
            each.get("text") for each in content if isinstance(each, Mapping) and each.get("type") == "text"
        ]
        return "\n".join(each for each in parts if isinstance(each, str))
    return content if isinstance(content, str) else ""


def last_message(messages: Sequence[Any]) -> str | None:
    """Return what a system said last in a list of messages."""
    said = [
        each for each in messages if isinstance(each, Mapping) and each.get("role") in {None, "assistant"}
    ]
    return message_text(said[-1]) or None if said else None


def _one_text(value: Any) -> str:
    """Return a reference: a text, or the texts of a list below each other."""
    if isinstance(value, list):
        return "\n\n".join(_one_text(each) for each in value)
    if value is None:
        return ""
    return (
        value.strip()
        if isinstance(value, str)
        else shortened(value)
        if isinstance(value, Mapping)
        else str(value)
    )


def tags_of(value: Any) -> tuple[str, ...]:
    """Return tags: words with commas between them, or a list of them."""
    if value is None:
        return ()
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    tags = [str(part).strip() for part in parts if part is not None]
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def source_texts(value: Any, kind: SourceKind, called: str) -> tuple[SourceText, ...]:
    """Return what an answer rests on: texts, ids (a word without blanks), or objects with text, title and address."""
    if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"}:  # a list in a table's cell
        try:
            value = json.loads(value)
        except ValueError:
            value = [value]
    if value is None or value == "":
        return ()
    if isinstance(value, Mapping):
        value = [value] if _is_source(value) else list(value)
    return tuple(_sources(value if isinstance(value, list) else [value], kind, called))


def _is_source(value: Mapping[str, Any]) -> bool:
    return any(name in value for name in (*_TEXT, *_ID, *_URL, "title"))


def _sources(values: Sequence[Any], kind: SourceKind, called: str) -> Iterator[SourceText]:
    for value in values:
        if value is None or value == "":
            continue
        if isinstance(value, Mapping) and _is_source(value):
            yield SourceText(
                _first(value, _ID), _first(value, _TEXT), _first(value, ("title",)), _first(value, _URL), kind
            )
        elif isinstance(value, str | int) and not isinstance(value, bool):
            text = str(value).strip()
            if not text:
                continue
            yield SourceText(text, kind=kind) if is_id(text) else SourceText(text=text, kind=kind)
        else:
            raise BadRecord(
                f'"{called}" must be a list of texts, ids or objects with a "text", not of {shortened(value)}.',
                remedy="Correct it, or map another field with --fields.",
            )


def is_id(text: str) -> bool:
    """Whether a source is named by its id or address, rather than given as text."""
    return len(text) <= 300 and not any(sign.isspace() for sign in text)


def _first(value: Mapping[str, Any], names: Sequence[str]) -> str:
    for name in names:
        if isinstance(found := value.get(name), str | int) and not isinstance(found, bool):
            return str(found).strip()
    return ""
