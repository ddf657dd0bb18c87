"""Names that people can read: the first words of a text, and an id without the prefix that all ids share."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

WORDS_AT_MOST = 72
"""Characters of an item's first words in a table."""
TIP_AT_MOST = 280
"""Characters of the longer beginning that pointing at a name shows."""
SHORTEST_PREFIX = 4
_PARTS = re.compile(r"[_\-:/.#| ]")
_UNREAD = re.compile(
    r"<(script|style)\b.*?(</\1\s*>|$)|<!--.*?(-->|$)|<[^<>]*(>|$)", re.DOTALL | re.IGNORECASE
)
_MARKS = re.compile(
    r"!\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\([^)]*\)|^\s{0,3}(?:#{1,6}|>|[-*+]|\d+\.)\s+|[*`|]+|__+", re.M
)
_NUMBERED = {"prune": "Pruning", "final": "Final"}
_PHASES = {"swiss": "Swiss rounds", "swiss-finals": "Finals", "grading": "Grading"}


@dataclass(frozen=True, slots=True)
class Label:
    """An item or a topic as a page names it: its first words, a longer beginning, and its id in two parts.

    `prefix` is what all ids of the campaign begin with, `rest` what tells this one from the others.
    """

    id: str
    words: str = ""
    tip: str = ""
    prefix: str = ""

    @property
    def rest(self) -> str:
        """The id without its prefix."""
        return self.id[len(self.prefix) :]

    @property
    def short_id(self) -> str:
        """The id with an ellipsis in the place of its prefix."""
        return f"…{self.rest}" if self.prefix else self.id

    def __str__(self) -> str:
        return f"{self.words} ({self.short_id})" if self.words else self.id


def label_of(id: str, text: str = "", *, title: str = "", form: str = "text", prefix: str = "") -> Label:  # noqa: A002
    """Return the label of an item or a topic by the beginning of its text, of a passage's format."""
    whole = " · ".join(filter(None, (plain(title), plain(text, form))))
    own = prefix if id.startswith(prefix) and len(id) > len(prefix) else ""
    return Label(id, first_words(whole), first_words(whole, TIP_AT_MOST), own)


def first_words(text: str, at_most: int = WORDS_AT_MOST) -> str:
    """Return the first words of a text on one line, with an ellipsis where some are left out."""
    line = " ".join(text.split())
    if len(line) <= at_most:
        return line
    cut = line[: at_most - 1]
    at = cut.rfind(" ")
    if at > at_most // 2 and line[at_most - 1] != " ":
        cut = cut[:at]
    return cut.rstrip(" ,;:.–-") + "…"


def plain(text: str, form: str = "text") -> str:
    """Return a passage's text without the marks of its format: a picture has none."""
    if form == "image":
        return "(picture)"
    if form == "html":
        return html.unescape(_UNREAD.sub(" ", text))
    if form == "markdown":
        return _MARKS.sub(lambda found: found[1] or found[2] or "", text)
    return text


def id_prefix(ids: Sequence[str]) -> str:
    """Return what all ids begin with, up to the end of a part such as `msmarco_passage_`; empty where that is short.

    Of sorted ids, the first and the last are enough.
    """
    if len(ids) < 2:
        return ""
    first, last = min(ids), max(ids)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    ends = [found.end() for found in _PARTS.finditer(first[:same])]
    prefix = first[: ends[-1]] if ends else ""
    return prefix if len(prefix) >= SHORTEST_PREFIX else ""


def phase_said(phase: str) -> str:
    """Return the name of a phase in words: `prune-2` is "Pruning 2"."""
    kind, _, number = phase.rpartition("-")
    if kind in _NUMBERED and number.isdecimal():
        return f"{_NUMBERED[kind]} {number}"
    return _PHASES.get(phase, phase)
