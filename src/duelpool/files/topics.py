"""Topics in four forms: tab-separated lines, TREC's tagged text, JSON lines, or a JSON array.

A topic has an id and a text; description, conversation, snippets, tags and weight where the file gives them.
"""

import html
import json
import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duelpool.errors import BadFile, BadRecord
from duelpool.files.collections import text_source
from duelpool.files.jsonlines import Row, is_json, json_rows, number_of, text_of
from duelpool.files.notices import Notice, Tally
from duelpool.files.source import Readable, Source, write_lines
from duelpool.files.tabs import tab_rows
from duelpool.frames import Tabular, counted, frame_of
from duelpool.records import Topic

if TYPE_CHECKING:
    import polars as pl

_ID = ("id", "_id", "qid", "topic", "topic_id", "query_id", "number", "num")
_TEXT = ("text", "query", "question", "title", "utterance", "raw_utterance", "content")
_DESCRIPTION = ("description", "desc")
_NARRATIVE = ("narrative", "narr")
_TURNS = ("turn", "turns")
_KNOWN = {
    *_ID,
    *_TEXT,
    *_DESCRIPTION,
    *_NARRATIVE,
    *_TURNS,
    "conversation",
    "snippets",
    "tags",
    "weight",
    "reference",
}

TURNS_AT_MOST = 500
"""The turns of one conversation: each becomes a topic that has all the turns before it."""


@dataclass(frozen=True, slots=True, repr=False)
class Topics(Tabular):
    """The topics of a file by id, in its order."""

    by_id: Mapping[str, Topic]
    notices: tuple[Notice, ...] = field(default=())

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.by_id.values())

    def __len__(self) -> int:
        return len(self.by_id)

    def __repr__(self) -> str:
        return f"Topics({counted(len(self), 'topic')})"

    def to_polars(self) -> "pl.DataFrame":
        """Return a row a topic: id, text, description."""
        rows = ((each.id, each.text, each.description or None) for each in self)
        return frame_of(rows, {"id": "String", "text": "String", "description": "String"})

    def to_dict(self) -> dict[str, str]:
        """Return the texts by id."""
        return {each.id: each.text for each in self}


def read_topics(path: Readable) -> Topics:
    """Read topics, plain or gzip, from a path, standard input ("-") or a dataset; the form is recognised."""
    source = text_source(path, "topics")
    tally = Tally()
    if is_json(source):
        rows: Iterator[tuple[int, Row]] = _split_conversations(source)
    elif source.data.lstrip().startswith(b"<"):
        rows = _tagged(source)
    else:
        rows = tab_rows(source, ("id", "text"), known=_KNOWN, tally=tally)
    topics: dict[str, Topic] = {}
    for line, row in rows:
        try:
            topic = topic_from_json(row)
        except BadRecord as error:
            raise BadFile.at(source.name, line, error.problem, error.remedy) from None
        for name in row.keys() - _KNOWN:
            tally.add(f'field "{name}" not used', line)
        if topic.id in topics:
            if topics[topic.id] != topic:
                raise BadFile.at(
                    source.name,
                    line,
                    f"Topic '{topic.id}' is listed twice, with different contents.",
                    "Keep one.",
                )
            tally.add("topics listed again, the same", line)
        topics[topic.id] = topic
    if not topics:
        raise BadFile.at(
            source.name, None, "The file holds no topic.", "Forms: id<tab>text, <top> blocks, or JSON lines."
        )
    return Topics(topics, tally.notices)


def topic_from_json(row: Row) -> Topic:
    """Return the topic that a JSON object (or a row with names) describes, or raise BadRecord."""
    topic_id = text_of(row, *_ID)
    text = text_of(row, *_TEXT)
    if topic_id is None or text is None:
        missing, names = ("id", _ID) if topic_id is None else ("text", _TEXT)
        raise BadRecord(f"The topic's {missing} is missing.", remedy=f"Name it one of: {', '.join(names)}.")
    about = [part.strip() for part in (text_of(row, *_DESCRIPTION), text_of(row, *_NARRATIVE)) if part]
    weight = row.get("weight")
    if isinstance(weight, str):
        try:
            weight = float(weight) if weight.strip() else None
        except ValueError:
            raise BadRecord(f"The weight of topic '{topic_id}' is '{weight}', not a number.") from None
    else:
        weight = number_of(row, "weight")
    return Topic(
        id=topic_id.strip(),
        text=text.strip(),
        description="\n\n".join(about),
        conversation=_texts(row, "conversation"),
        tags=_tags(row.get("tags")),
        weight=1.0 if weight is None else float(weight),
        snippets=_texts(row, "snippets"),
        reference=text_of(row, "reference") or "",
    )


def _tags(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(tag.strip() for tag in value.split(",") if tag.strip())
    if isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        return tuple(value)
    raise BadRecord(f'"tags" must be a list of words, not {json.dumps(value)[:40]}.')


def _texts(row: Row, name: str) -> tuple[str, ...]:
    """Return the texts of a list: the turns of a conversation, or snippets."""
    value = row.get(name)
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise BadRecord(f'"{name}" must be a list, not {json.dumps(value)[:40]}.')
    texts = []
    for each in value:
        text = text_of(each, *_TEXT) if isinstance(each, dict) else each
        if not isinstance(text, str):
            raise BadRecord(f'Each of "{name}" must be text, not {json.dumps(each)[:40]}.')
        texts.append(text)
    return tuple(texts)


def _split_conversations(source: Source) -> Iterator[tuple[int, Row]]:
    """Turn a conversation with its turns (as TREC CAsT writes them) into one topic a turn, `31_2`."""
    for line, row in json_rows(source):
        turns = next((row[name] for name in _TURNS if isinstance(row.get(name), list)), None)
        if turns is None:
            yield line, row
            continue
        if len(turns) > TURNS_AT_MOST:  # each turn has all those before it: the topics grow with the square
            raise BadFile.at(
                source.name,
                line,
                f"The conversation has {len(turns):,} turns, and at most {TURNS_AT_MOST} are read.",
                "Split it.",
            )
        earlier: list[str] = []
        for at, turn in enumerate(turns, 1):
            if not isinstance(turn, dict) or (text := text_of(turn, *_TEXT)) is None:
                yield line, {"id": text_of(row, *_ID)}  # refused with the line, as any topic without text
                return
            name = f"{text_of(row, *_ID)}_{text_of(turn, *_ID) or at}"
            about = text_of(row, *_DESCRIPTION, "title") or ""
            yield line, {"id": name, "text": text, "description": about, "conversation": list(earlier)}
            earlier.append(text.strip())


_OPENING = re.compile(r"<(top|topic)\b([^<>]*+)>", re.IGNORECASE)
_CLOSING = re.compile(r"</(top|topic)\s*+>", re.IGNORECASE)
_FIELD = re.compile(r"<(\w++)[^<>]*+>([^<]*+(?:<(?![\w/])[^<]*+)*+)")
_LABEL = re.compile(r"^\s*(number|topic|description|narrative)\s*:\s*", re.IGNORECASE)
_NUMBER = re.compile(r"""\b(?:number|id|num)\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)


def _tagged(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield topics from TREC's tagged text: `<top>` with fields that may lack an end, or XML's `<topic>`."""
    text = source.data.decode(errors="replace")
    line, counted = 1, 0
    for opening, body in _blocks(text):
        line, counted = line + text.count("\n", counted, opening.start()), opening.start()
        row: dict[str, str] = {}
        try:
            if number := _NUMBER.search(opening[2]):
                row["id"] = html.unescape(number[1])
            fields = list(_FIELD.finditer(body))
            for each in fields:
                words = " ".join(html.unescape(_LABEL.sub("", each[2], count=1)).split())
                if words:
                    row.setdefault(each[1].lower(), words)
            if not fields:  # <topic number="1"> the text itself </topic>
                row["text"] = " ".join(html.unescape(body).split())
        except ValueError:  # Python converts no number of thousands of digits
            raise BadFile.at(
                source.name, line, "The topic has a character '&#...;' of too many digits.", "Correct it."
            ) from None
        yield line, {name: value for name, value in row.items() if name in _KNOWN}


def _blocks(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each opening tag of a topic that has a closing tag of its name, and the text up to the next such one.

    The tags are found once: a search for its end from every opening would take a time that grows with the square.
    """
    closings: dict[str, list[tuple[int, int]]] = {"top": [], "topic": []}
    for closing in _CLOSING.finditer(text):
        closings[closing[1].lower()].append(closing.span())
    end = 0
    for opening in _OPENING.finditer(text):
        if opening.start() < end:
            continue
        ends = closings[opening[1].lower()]
        at = bisect_left(ends, (opening.end(), 0))
        if at < len(ends):
            start, end = ends[at]
            yield opening, text[opening.end() : start]


def write_topics(path: str | os.PathLike[str], topics: Iterable[Topic]) -> None:
    """Write topics as JSON lines, without the fields at their defaults."""
    write_lines(path, (json.dumps(topic_to_json(topic), ensure_ascii=False) for topic in topics))


def topic_to_json(topic: Topic) -> dict[str, Any]:
    """Return a topic as a JSON object without the fields at their defaults."""
    values: dict[str, Any] = {"id": topic.id, "text": topic.text}
    if topic.description:
        values["description"] = topic.description
    if topic.conversation:
        values["conversation"] = list(topic.conversation)
    if topic.snippets:
        values["snippets"] = list(topic.snippets)
    if topic.reference:
        values["reference"] = topic.reference
    if topic.tags:
        values["tags"] = list(topic.tags)
    if topic.weight != 1.0:
        values["weight"] = topic.weight
    return values
