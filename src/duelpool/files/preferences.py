"""Preference files in four forms, recognised by their contents.

pairs     topic a b winner          '=' as the winner is a tie
winners   topic winner loser
trec      topic group subgroup docno level      trec_eval's: within a subgroup, higher levels are preferred
jsonl     one judgment a line with every field
"""

import math
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Literal, Self, TypeAlias, get_args

import polars as pl

from duelpool.errors import BadFile, UnknownName
from duelpool.files.columns import Layout, read_columns, refuse_not_a_number, refuse_unwritable
from duelpool.files.jsonlines import is_json
from duelpool.files.judgments import judgments_of, write_judgments
from duelpool.files.notices import Notice, Tally
from duelpool.files.runs import UNUSED_ITERATIONS, looks_like
from duelpool.files.source import Readable, Source, read_source, write_lines
from duelpool.frames import Tabular, counted
from duelpool.records import EFFECTS, Judgment, Outcome

PreferenceForm: TypeAlias = Literal["pairs", "winners", "trec", "jsonl"]

LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        "pairs": Layout("preference file", ("topic", "a", "b", "winner"), text=("topic", "a", "b", "winner")),
        "winners": Layout("preference file", ("topic", "winner", "loser"), text=("topic", "winner", "loser")),
        "trec": Layout(
            "preference file",
            ("topic", "group", "subgroup", "docno", "level"),
            text=("topic", "group", "subgroup", "docno"),
            numbers=("level",),
        ),
    }
)
STATED_AT_MOST = 5_000_000
"""The preferences that a file of trec_eval's form may state: a subgroup states one for any two different levels."""

_BY_WIDTH = {len(layout.fields): form for form, layout in LAYOUTS.items()}
_TIE_SIGN = "="
_WINS = (Outcome.LEFT, Outcome.RIGHT, Outcome.TIE)
_KINDS = {"topic": pl.String, "left": pl.String, "right": pl.String, "outcome": pl.String}


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Preferences(Tabular):
    """Who was preferred to whom: columns topic, left, right and outcome, in the file's order.

    `sides_known` is True only where the file says which item was shown on the left. Where some of the preferences
    are inferred, a column `inferred` says which.
    """

    frame: pl.DataFrame
    sides_known: bool = False
    notices: tuple[Notice, ...] = field(default=())

    @classmethod
    def from_judgments(cls, judgments: Iterable[Judgment], notices: tuple[Notice, ...] = ()) -> Self:
        """Make preferences from judgments of pairs; grades of single items are left out and counted."""
        tally = Tally()
        rows, sides_known = [], True
        for judgment in judgments:
            if judgment.right is None:
                tally.add("grades of single items left out")
                continue
            sides_known = sides_known and judgment.sides_known
            rows.append(
                (judgment.topic, judgment.left, judgment.right, str(judgment.outcome), judgment.inferred)
            )
        frame = pl.DataFrame(rows, schema={**_KINDS, "inferred": pl.Boolean}, orient="row")
        if not frame.get_column("inferred").any():
            frame = frame.drop("inferred")
        return cls(frame, sides_known and bool(rows), (*notices, *tally.notices))

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> Self:
        """Make preferences from judgments of pairs by columns: topic, left, right, outcome, inferred, sides_known."""
        if not frame.height:
            return cls(pl.DataFrame(schema=_KINDS))
        sides_known = bool(frame.get_column("sides_known").all())
        without = [] if frame.get_column("inferred").any() else ["inferred"]
        return cls(frame.drop("sides_known", *without), sides_known)

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"Preferences({counted(len(self.topics), 'topic')}, {counted(len(self), 'judgment')})"

    def to_polars(self) -> pl.DataFrame:
        """Return the judgments: topic, left, right, outcome."""
        return self.frame

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Preferences):
            return NotImplemented
        return self.sides_known == other.sides_known and self.frame.equals(other.frame)

    __hash__ = None  # type: ignore[assignment]

    @property
    def topics(self) -> list[str]:
        """The topics, in the order in which they first appear."""
        return self.frame.get_column("topic").unique(maintain_order=True).to_list()

    def judgments(self) -> Iterator[Judgment]:
        """Yield the rows as judgments."""
        for topic, left, right, outcome, *inferred in self.frame.iter_rows():
            yield Judgment(
                topic, left, right, Outcome(outcome), sides_known=self.sides_known, inferred=any(inferred)
            )


def read_preferences(path: Readable, form: PreferenceForm | None = None) -> Preferences:
    """Read preferences, plain or gzip, from a path or standard input ("-"); the form is recognised."""
    return preferences_of(read_source(path), form)


def preferences_of(source: Source, form: PreferenceForm | None = None) -> Preferences:
    """Read preferences from a source."""
    guessed = form is None
    form = form or _form_of(source)
    if form == "jsonl":
        judgments = judgments_of(source)
        return Preferences.from_judgments(judgments, judgments.notices)
    if form not in LAYOUTS:
        raise UnknownName("preference form", form, get_args(PreferenceForm))
    read = {"pairs": _read_pairs, "winners": _read_winners, "trec": _read_trec}[form](source)
    if guessed and form == "pairs" and read.frame.get_column("left").is_in(UNUSED_ITERATIONS).all():
        raise BadFile.at(
            source.name,
            1,
            "Every line has '0' or 'Q0' as its first item.",
            "This looks like qrels (topic 0 docno grade). If it isn't, name its form: 'pairs'.",
        )
    return read


def _form_of(source: Source) -> PreferenceForm:
    if is_json(source):
        return "jsonl"
    for number, line in enumerate(source.lines(), 1):
        words = line.split()
        if words and not words[0].startswith(b"#"):
            if form := _BY_WIDTH.get(len(words)):
                return form  # type: ignore[return-value]
            fields = [word.decode(errors="backslashreplace") for word in words]
            raise BadFile.at(
                source.name,
                number,
                f"A preference file has 3, 4 or 5 fields a line; this line has {len(words)}.",
                looks_like(fields)
                or "Forms: topic a b winner; topic winner loser; trec_eval's five; JSON lines.",
            )
    raise BadFile.at(source.name, None, "The file holds only comments or blank lines, no preference.")


def _read_pairs(source: Source) -> Preferences:
    columns = read_columns(source, LAYOUTS["pairs"], looks_like)
    _refuse_pairs_of_one(source, columns.frame, "a", "b", columns.line_of)
    outcome = (
        pl.when(pl.col("winner") == pl.col("a"))
        .then(pl.lit(str(Outcome.LEFT)))
        .when(pl.col("winner") == pl.col("b"))
        .then(pl.lit(str(Outcome.RIGHT)))
        .when(pl.col("winner") == _TIE_SIGN)
        .then(pl.lit(str(Outcome.TIE)))
    )
    frame = columns.frame.with_columns(outcome.alias("outcome"))
    stray = frame.get_column("outcome").is_null().arg_max()
    if stray is not None and frame.item(stray, "outcome") is None:
        topic, a, b, winner = columns.frame.row(stray)
        hint = looks_like([topic, a, b, winner]) if a in UNUSED_ITERATIONS else ""
        raise BadFile.at(
            source.name,
            columns.line_of(stray),
            f"The winner '{winner}' is neither '{a}' nor '{b}'.",
            hint or "Name one of the two, or '=' for a tie.",
        )
    frame = frame.select("topic", pl.col("a").alias("left"), pl.col("b").alias("right"), "outcome")
    return Preferences(frame, notices=columns.notices)


def _read_winners(source: Source) -> Preferences:
    columns = read_columns(source, LAYOUTS["winners"], looks_like)
    _refuse_pairs_of_one(source, columns.frame, "winner", "loser", columns.line_of)
    frame = columns.frame.select(
        "topic",
        pl.col("winner").alias("left"),
        pl.col("loser").alias("right"),
        pl.lit(str(Outcome.LEFT)).alias("outcome"),
    )
    return Preferences(frame, notices=columns.notices)


def _read_trec(source: Source) -> Preferences:
    columns = read_columns(source, LAYOUTS["trec"], looks_like)
    refuse_not_a_number(source, columns, "level", "A level is a finite number.", infinite=True)
    groups: dict[tuple[str, str, str], dict[str, float]] = {}
    tally = Tally()
    for row, (topic, group, subgroup, docno, level) in enumerate(columns.frame.iter_rows()):
        members = groups.setdefault((topic, group, subgroup), {})
        if members.get(docno, level) != level:
            raise BadFile.at(
                source.name,
                columns.line_of(row),
                f"'{docno}' has two levels in subgroup '{subgroup}' of group '{group}'.",
                "Give each judgment its own group.",
            )
        members[docno] = level
    stated = sum(_differing(members) for members in groups.values())
    if stated > STATED_AT_MOST:
        raise BadFile.at(
            source.name,
            None,
            f"The subgroups state {stated:,} preferences, and at most {STATED_AT_MOST:,} are read.",
            "A subgroup states one for any two documents of different levels: split the file.",
        )
    rows = []
    for (topic, _, _), members in groups.items():
        alike = math.comb(len(members), 2) - _differing(members)
        tally.add("pairs of one level, which state no preference", count=alike)
        for (a, level_a), (b, level_b) in _of_different_levels(members):
            rows.append((topic, *((a, b) if level_a > level_b else (b, a)), str(Outcome.LEFT)))
    if not rows:
        raise BadFile.at(
            source.name,
            None,
            "No subgroup holds two documents of different levels.",
            "See trec_eval's form 'prefs'.",
        )
    return Preferences(
        pl.DataFrame(rows, schema=_KINDS, orient="row"), notices=(*columns.notices, *tally.notices)
    )


def _differing(members: Mapping[str, float]) -> int:
    """Return how many pairs of a subgroup have different levels."""
    alike = sum(math.comb(times, 2) for times in Counter(members.values()).values())
    return math.comb(len(members), 2) - alike


def _of_different_levels(members: Mapping[str, float]) -> Iterator[tuple[tuple[str, float], ...]]:
    """Yield the pairs of different levels, in the order of the lines.

    A document of the most frequent level is held against the others only, so that the time grows with the number
    of pairs that are yielded.
    """
    listed = list(members.items())
    frequent, _ = Counter(members.values()).most_common(1)[0]
    others = [at for at, (_, level) in enumerate(listed) if level != frequent]
    for at, one in enumerate(listed):
        if one[1] == frequent:
            later = (listed[other] for other in others[bisect_left(others, at) :])
        else:
            later = (other for other in islice(listed, at + 1, None) if other[1] != one[1])
        yield from ((one, other) for other in later)


def _refuse_pairs_of_one(
    source: Source, frame: pl.DataFrame, a: str, b: str, line_of: Callable[[int], int]
) -> None:
    same = frame.get_column(a) == frame.get_column(b)
    if same.any():
        row = int(same.arg_max() or 0)
        raise BadFile.at(
            source.name, line_of(row), f"'{frame.item(row, a)}' is compared with itself.", "Remove the line."
        )


def write_preferences(
    path: str | os.PathLike[str], preferences: Preferences, form: PreferenceForm = "pairs"
) -> tuple[Notice, ...]:
    """Write preferences in one of the forms; what the form can't hold is left out, counted and returned."""
    if form not in get_args(PreferenceForm):
        raise UnknownName("preference form", form, get_args(PreferenceForm))
    if form == "jsonl":
        write_judgments(path, preferences.judgments())
        return ()
    for name in ("topic", "left", "right"):
        refuse_unwritable(os.fspath(path), name, preferences.frame.get_column(name).unique().to_list())
    tally = Tally()
    write_lines(path, list(_lines(preferences, form, tally)))
    return tally.notices


def _lines(preferences: Preferences, form: PreferenceForm, tally: Tally) -> Iterator[str]:
    counts: dict[str, int] = {}
    for topic, left, right, name, *inferred in preferences.frame.iter_rows():
        if any(inferred):
            tally.add("inferred judgments written as if they had been given")
        outcome = Outcome(name)
        effect = EFFECTS[outcome]
        decided = effect.left != effect.right
        if not decided and (form != "pairs" or outcome is not Outcome.TIE):
            tally.add(f"judgments '{outcome}' left out, for this form can't hold them")
            continue
        if outcome not in _WINS:
            tally.add(f"judgments '{outcome}' written as plain wins")
        winner, loser = (left, right) if effect.left > effect.right else (right, left)
        if form == "pairs":
            yield f"{topic} {left} {right} {winner if decided else _TIE_SIGN}"
        elif form == "winners":
            yield f"{topic} {winner} {loser}"
        else:  # each judgment its own group, so that contradicting votes are both kept
            counts[topic] = group = counts.get(topic, 0) + 1
            yield f"{topic} {group} 1 {winner} 1"
            yield f"{topic} {group} 1 {loser} 0"
