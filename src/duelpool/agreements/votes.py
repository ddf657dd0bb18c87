"""Judgments as votes: one row each, with the columns that the statistics need.

A *unit* is what two assessors can agree on: a pair of a topic and a criterion, or, where items are graded, an item.
The two items of a pair are called A and B, A the smaller id, whichever side they were shown on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from duelpool.errors import UnknownName
from duelpool.files import SystemVote
from duelpool.records import Effect, Judgment, Kind

SURE_A, PLAIN_A, TIE, PLAIN_B, SURE_B, BAD = 2.0, 1.0, 0.0, -1.0, -2.0, 8.0
"""The values of a vote on a pair: A definitely, A, a tie, B, B definitely, or both are bad."""

PEOPLE, PROGRAMS = "people", "programs"
_PROGRAM_KINDS = {"program", "llm"}

_SCHEMA = {
    "topic": pl.String,
    "criterion": pl.String,
    "kind": pl.String,
    "unit": pl.Int64,
    "a": pl.String,
    "b": pl.String,
    "value": pl.Float64,  # one of the values above, or the grade
    "assessor": pl.String,
    "group": pl.String,
    "left": pl.Int8,  # 1: for the left side, 0: for the right one
    "seconds": pl.Float64,
    "confidence": pl.Float64,
    "context": pl.Int64,
    "fresh": pl.Boolean,  # an item was new to the assessor
    "again": pl.Boolean,  # the assessor had the unit before
    "before": pl.Float64,  # the assessor's first vote on it
    "session": pl.String,
    "side": pl.Int8,  # 1: A was on the left, -1: on the right, 0: unknown
}


@dataclass(frozen=True, slots=True)
class Feedback:
    """An assessor's feedback after a topic or an assignment: confidence and understanding."""

    assessor: str
    session: str
    confidence: float | None
    understanding: float | None


@dataclass(frozen=True, slots=True)
class TestRecord:
    """An assessor's record on test pairs."""

    __test__ = False  # not a test class for pytest

    assessor: str
    passed: int
    seen: int


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes to compare: a row per judgment with a usable outcome, in the order of the judgments.

    `unanswered` counts the others: skipped, cannot judge, abstentions of an LLM. Where systems compete, `system_votes`
    has the votes between them, each with the group of its judge.
    """

    frame: pl.DataFrame
    feedback: tuple[Feedback, ...] = ()
    tests: tuple[TestRecord, ...] = ()
    unanswered: int = 0
    system_votes: Sequence[tuple[str, SystemVote]] = ()

    @classmethod
    def of(
        cls,
        judgments: Iterable[Judgment],
        *,
        group: str | Mapping[str, str] | Callable[[str], str] = "",
        feedback: Iterable[Feedback] = (),
        tests: Iterable[TestRecord] = (),
        sessions: Iterable[str] | None = None,
    ) -> "Votes":
        """Make votes of judgments in their order; `group` gives the group of an assessor.

        `sessions` names the assignment of each judgment, where feedback is about assignments.
        """
        builder = _RowBuilder(_grouping(group))
        names: Iterator[str] = iter(sessions) if sessions is not None else iter(())
        for judgment in judgments:
            builder.add(judgment, next(names, ""))
        frame = pl.DataFrame(builder.rows, schema=_SCHEMA, orient="row")
        return cls(frame, tuple(feedback), tuple(tests), builder.unanswered)

    @classmethod
    def joined(cls, parts: Sequence["Votes"]) -> "Votes":
        """Join votes without common units, such as those of different topics."""
        some = [part for part in parts if part.frame.height]
        frame = pl.DataFrame(schema=_SCHEMA)
        if some:
            starts = np.cumsum([0, *(part.units for part in some[:-1])])
            moved = np.repeat(starts, [part.frame.height for part in some])
            frame = pl.concat([part.frame for part in some], rechunk=True)
            frame = frame.with_columns(pl.col("unit") + pl.Series(moved, dtype=pl.Int64))
        return cls(
            frame,
            tuple(each for part in parts for each in part.feedback),
            tuple(each for part in parts for each in part.tests),
            sum(part.unanswered for part in parts),
        )

    def __len__(self) -> int:
        return self.frame.height

    # ---- selections

    def only(self, *conditions: pl.Expr) -> "Votes":
        """Return the votes that meet conditions on their columns."""
        return replace(self, frame=self.frame.filter(*conditions))

    def of_kind(self, *kinds: Kind) -> "Votes":
        """Return the votes of these kinds of judgment."""
        return self.only(pl.col("kind").is_in([str(kind) for kind in kinds]))

    def of_criterion(self, criterion: str) -> "Votes":
        """Return the votes on one criterion."""
        if criterion not in self.criteria:
            raise UnknownName("criterion", criterion, self.criteria)
        of_systems = [
            (group, vote)
            for group, vote in self.system_votes
            if vote.same_answer or vote.criterion == criterion
        ]
        return replace(self.only(pl.col("criterion") == criterion), system_votes=of_systems)

    @cached_property
    def first(self) -> pl.DataFrame:
        """Each assessor's first vote on a unit: the votes that are compared between assessors."""
        return self.frame.filter(~pl.col("again"))

    # ---- dimensions

    @cached_property
    def criteria(self) -> tuple[str, ...]:
        """The criteria, in the order in which they first appear."""
        return tuple(self.frame.get_column("criterion").unique(maintain_order=True).to_list())

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of judgment, in the order of their table."""
        names = set(self.frame.get_column("kind").unique().to_list())
        return tuple(kind for kind in Kind if kind in names)

    @cached_property
    def assessors(self) -> tuple[str, ...]:
        """The named assessors, sorted."""
        return tuple(sorted(name for name in self.frame.get_column("assessor").unique() if name))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups of assessors, in the order in which they first appear."""
        return tuple(self.frame.get_column("group").unique(maintain_order=True).to_list())

    @cached_property
    def units(self) -> int:
        """One more than the highest unit number: the number of units before a selection."""
        return int(self.frame.get_column("unit").to_numpy().max(initial=-1)) + 1

    @cached_property
    def topics(self) -> int:
        """How many topics were judged."""
        return self.frame.get_column("topic").n_unique()


def in_two_groups(one: Votes, other: Votes, names: tuple[str, str]) -> Votes:
    """Join two sources as two groups of assessors; equal pairs become one unit."""
    rows = []
    for votes, name in ((one, names[0]), (other, names[1])):
        rows.append(votes.frame.with_columns(pl.lit(name).alias("group")))
    both = pl.concat(rows, rechunk=True)
    what = pl.struct("topic", "criterion", "a", "b")
    return Votes(
        both.with_columns((what.rank("dense") - 1).cast(pl.Int64).alias("unit")),
        (*one.feedback, *other.feedback),
        (*one.tests, *other.tests),
        one.unanswered + other.unanswered,
        [
            (name, vote)
            for votes, name in ((one, names[0]), (other, names[1]))
            for _, vote in votes.system_votes
        ],
    )


def people_or_programs(kind: str) -> str:
    """Return the wider group of a kind of assessor: people, or programs."""
    return PROGRAMS if kind in _PROGRAM_KINDS else PEOPLE


def _grouping(group: str | Mapping[str, str] | Callable[[str], str]) -> Callable[[str], str]:
    if isinstance(group, str):
        return lambda _: group
    if isinstance(group, Mapping):
        return lambda name: group.get(name, "")
    return group


def value_of(effect: Effect, swapped: bool) -> float | None:
    """Return an outcome's value on A and B, None where it has none; `swapped`: A was shown on the right."""
    if effect.left == effect.right:
        if effect.left_bad and effect.right_bad:
            return BAD
        return TIE if effect.left else None
    side = 1 if (effect.left > effect.right) != swapped else -1
    return float(side * (2 if effect.definite else 1))


class _RowBuilder:
    """Turns judgments into rows, one at a time, and remembers each assessor's votes and seen items."""

    def __init__(self, group: Callable[[str], str]) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.unanswered = 0
        self._group = group
        self._units: dict[tuple[str, str, str, str], int] = {}
        self._first_votes: dict[tuple[int, str, str], float] = {}
        self._seen: set[tuple[str, str, str]] = set()

    def add(self, judgment: Judgment, session: str) -> None:
        left, right, topic, who = judgment.left, judgment.right, judgment.topic, judgment.assessor
        effect = judgment.effect
        swapped = right is not None and right < left
        a, b = (left, right or "") if not swapped else (right or "", left)
        fresh = self._sees_new_item(topic, who, a, b)
        value = judgment.grade if right is None else value_of(effect, swapped)
        if value is None or not effect.usable:
            self.unanswered += 1
            return
        unit = self._units.setdefault((topic, judgment.criterion, a, b), len(self._units))
        kind = str(judgment.kind)
        before = self._first_votes.get((unit, kind, who)) if who else None
        again = judgment.repeated or before is not None
        if who and not again:
            self._first_votes[unit, kind, who] = value
        decided = judgment.sides_known and effect.left != effect.right
        self.rows.append(
            (
                topic,
                judgment.criterion,
                kind,
                unit,
                a,
                b,
                float(value),
                who,
                self._group(who),
                int(effect.left > effect.right) if decided else None,
                judgment.seconds,
                judgment.confidence,
                judgment.context_uses,
                fresh,
                again,
                before,
                session or topic,
                (-1 if swapped else 1) if judgment.sides_known and right is not None else 0,
            )
        )

    def _sees_new_item(self, topic: str, who: str, a: str, b: str) -> bool:
        """Return whether an item is new to the assessor, and note both items as seen."""
        if not who:
            return False
        keys = [(topic, who, item) for item in (a, b) if item]
        fresh = any(key not in self._seen for key in keys)
        self._seen.update(keys)
        return fresh
