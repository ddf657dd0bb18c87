"""What an uploaded file is, by its name and its first lines; a user can correct it."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Sequence
from pathlib import PurePosixPath
from statistics import median
from typing import IO

from duelpool.errors import BadFile
from duelpool.files.answers.fields import NAMES, plain
from duelpool.files.answers.forms import is_nested
from duelpool.setup.uploads import ARCHIVE, KINDS, kind_by_name

PEEKED = 64 << 10
"""Bytes of a file's beginning that are looked at."""
QUESTION_AT_MOST = 120  # characters of a question, mostly; longer texts are passages
_LINES = 50
_ITERATIONS = {"0", "q0", "1"}
_MAY_BE = {
    "runs": ("runs",),
    "qrels": ("qrels", "prefs", "tests"),
    "prefs": ("prefs", "tests"),
    "topics": ("topics", "texts", "groups"),
    "texts": ("topics", "texts", "groups"),
    "groups": ("topics", "texts", "groups"),
}
"""Kinds that a name can give to a file of plain lines, by what its lines look like: `test-queries.tsv` has queries."""


def recognise(name: str, data: IO[bytes]) -> str:
    """Return the kind of a file from its name and its beginning; refuse one whose kind isn't clear."""
    data.seek(0)
    head = data.read(PEEKED)
    data.seek(0)
    if head.startswith(b"PK\x03\x04"):
        return ARCHIVE
    if head.startswith(b"\x1f\x8b"):
        head = _unzipped(head)
    seen = _by_contents(head)
    kind = kind_by_name(PurePosixPath(name)) or seen
    if seen and kind not in _MAY_BE.get(seen, (kind,)) and not head.lstrip().startswith((b"{", b"[", b"<")):
        kind = seen
    if kind is None:
        raise BadFile.at(
            name,
            None,
            "The kind of this file isn't clear.",
            f"Choose it under “Name the kinds yourself”: {', '.join(KINDS)}.",
        )
    return kind


def _unzipped(head: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(head)) as opened:
            return opened.read1(PEEKED)
    except (EOFError, OSError, zlib.error):
        return b""  # receiving it says what is wrong


def _by_contents(head: bytes) -> str | None:
    text = head.decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines()[:_LINES] if line.strip()]
    if len(text) >= PEEKED and len(lines) > 1:
        lines.pop()  # cut off
    if not lines:
        return None
    start = text.lstrip()[:1]
    if start == "<":
        return "topics"
    if start in {"{", "["}:
        return _by_names(_first_object(text, lines))
    cells = [line.split() for line in lines]
    if all(len(row) == 6 and row[1].lower() in _ITERATIONS for row in cells):
        return "runs"
    if all(len(row) == 4 and row[1].lower() in _ITERATIONS and _is_number(row[3]) for row in cells):
        return "qrels"
    if header := _header(lines[0]):
        return _by_names(dict.fromkeys(header, ""))
    if all(line.count("\t") == 1 for line in lines):
        return _texts_or_topics([line.partition("\t")[2] for line in lines])
    widths = {len(row) for row in cells}
    return {3: "prefs", 4: "prefs", 5: "prefs", 2: "groups"}.get(widths.pop()) if len(widths) == 1 else None


def _first_object(text: str, lines: Sequence[str]) -> dict[str, object]:
    """Return the first object of JSON lines, or of the beginning of a JSON document."""
    for candidate in (lines[0], text):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        while isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict):
            return value
    names = [
        line.strip().partition('"')[2].partition('"')[0] for line in lines if line.strip().startswith('"')
    ]
    return dict.fromkeys(filter(None, names), "")


def _by_names(row: dict[str, object]) -> str | None:
    """Return the kind of a file by the names of its fields."""
    if is_nested(row):
        return "answers"
    names = {plain(name) for name in row}

    def has(*fields: str) -> bool:
        return any(
            plain(each) in names for field in fields for each in NAMES[field] if each not in {"text", "topic"}
        )

    if {"left", "right"} <= names or "winner" in names:
        return "prefs"
    if {"better", "worse"} <= names:
        return "tests"
    if (
        (has("system") and has("answer", "question"))
        or has("answer")
        or names & {"results", "samples", "eval"}
    ):
        return "answers"
    if names & {"text", "contents", "body", "passage"}:
        if names & {"docno", "docid", "pid", "passageid"} or "url" in names:
            return "texts"
        text = next(str(row[name]) for name in row if plain(name) in {"text", "contents", "body", "passage"})
        return _texts_or_topics([text])
    return "topics" if has("question") or names & {"query", "question", "title", "turn"} else None


def _texts_or_topics(texts: Sequence[str]) -> str:
    return "topics" if median(map(len, texts)) <= QUESTION_AT_MOST else "texts"


def _header(line: str) -> list[str]:
    """Return the names of a table's first line, where they look like names of fields."""
    for sign in (",", "\t", ";"):
        row = next(csv.reader([line], delimiter=sign))
        known = {plain(each) for names in NAMES.values() for each in names} | {
            "left",
            "right",
            "better",
            "worse",
        }
        if len(row) > 1 and sum(plain(each) in known for each in row) >= 2:
            return row
    return []


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
