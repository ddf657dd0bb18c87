"""The terms of the package as records: frozen, and validated once, when they are made.

A *question* is one pair (or, in absolute judging, one item) of a topic, leased to one assessor. A *judgment*
is the answer to a question, one line of the log. An *outcome* is what was answered; `EFFECTS` is the one
table of what each outcome means, for pages, files, strategies and statistics.
"""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeGuard, get_args

from duelpool.errors import BadParameter, BadRecord
from duelpool.frames import Tabular, counted, frame_of, short_repr

if TYPE_CHECKING:
    import polars as pl

Pair: TypeAlias = tuple[str, str]
"""Two different items, the smaller id first: the pair (a, b) is the pair (b, a)."""


UNNAMED = "topic"
"""The topic of judgments where there is only one, without a name."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number that a float can hold; a whole number of JSON may have hundreds of digits."""
    return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)


def _is_finite(value: float) -> bool:
    return (
        -sys.float_info.max <= value <= sys.float_info.max
    )  # math.isfinite fails on whole numbers beyond that


def pair_of(a: str, b: str) -> Pair:
    """Return the two items as a pair, in either order."""
    if a == b:
        raise BadRecord(f"A pair needs two different items, and both are '{a}'.", remedy="Leave it out.")
    return (a, b) if a < b else (b, a)


TieModel: TypeAlias = Literal["halves", "davidson"]
"""How ties count in strengths: half a vote for each, or an outcome of its own."""
TIE_MODELS: tuple[TieModel, ...] = get_args(TieModel)


class Outcome(StrEnum):
    """What an assessor answered."""

    LEFT = "left"
    RIGHT = "right"
    DEFINITELY_LEFT = "definitely-left"
    DEFINITELY_RIGHT = "definitely-right"
    TIE = "tie"
    LEFT_BAD = "left-bad"
    RIGHT_BAD = "right-bad"
    BOTH_BAD = "both-bad"
    SAME = "same"
    CANNOT_JUDGE = "cannot-judge"
    SKIP = "skip"
    FLIP_TIE = "flip-tie"
    FLIP_ABSTAIN = "flip-abstain"
    GRADE = "grade"


@dataclass(frozen=True, slots=True)
class Effect:
    """What an outcome means: the share of a win that each side gets, and the Bad votes."""

    left: float = 0.0
    right: float = 0.0
    left_bad: bool = False
    right_bad: bool = False
    definite: bool = False
    usable: bool = True  # False: no answer; strategies never see it, and the slot is free again


EFFECTS: Mapping[Outcome, Effect] = MappingProxyType(
    {
        Outcome.LEFT: Effect(left=1.0),
        Outcome.RIGHT: Effect(right=1.0),
        Outcome.DEFINITELY_LEFT: Effect(left=1.0, definite=True),
        Outcome.DEFINITELY_RIGHT: Effect(right=1.0, definite=True),
        Outcome.TIE: Effect(left=0.5, right=0.5),
        Outcome.LEFT_BAD: Effect(right=1.0, left_bad=True),
        Outcome.RIGHT_BAD: Effect(left=1.0, right_bad=True),
        Outcome.BOTH_BAD: Effect(left_bad=True, right_bad=True),
        Outcome.SAME: Effect(left=0.5, right=0.5),
        Outcome.CANNOT_JUDGE: Effect(usable=False),
        Outcome.SKIP: Effect(usable=False),
        Outcome.FLIP_TIE: Effect(left=0.5, right=0.5),
        Outcome.FLIP_ABSTAIN: Effect(usable=False),
        Outcome.GRADE: Effect(),
    }
)


class Kind(StrEnum):
    """How a campaign asks: which of two, which of two and how surely, or a grade for one."""

    PREFERENCE = "preference"
    DEFINITE = "definite"
    GRADE = "grade"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pair that a strategy would like judged now.

    `phase` and `proposal` come back with the judgment; `propensity` is the chance with which this pair was
    drawn, stored at this moment because it can't be computed later.
    """

    pair: Pair
    phase: str = ""
    proposal: str = ""
    propensity: float | None = None

    @classmethod
    def of(cls, a: str, b: str, **about: Any) -> Self:
        """Return the proposal to judge two items, in either order."""
        return cls(pair_of(a, b), **about)

    def wins(self, item: str, **about: Any) -> "Judgment":
        """Return the judgment that this item wins; `about` are further fields of the judgment, such as `topic`."""
        if item not in self.pair:
            raise BadParameter(
                f"'{item}' is not in the pair {self.pair[0]}, {self.pair[1]}.", remedy="Name one of the two."
            )
        return self.judged(Outcome.LEFT if item == self.pair[0] else Outcome.RIGHT, **about)

    def ties(self, **about: Any) -> "Judgment":
        """Return the judgment that the two items are equally good."""
        return self.judged(Outcome.TIE, **about)

    def judged(self, outcome: Outcome, **about: Any) -> "Judgment":
        """Return a judgment of the pair, the smaller id on the left, with the phase in which it was asked."""
        left, right = self.pair
        fields: dict[str, Any] = {
            "topic": UNNAMED,
            "phase": self.phase,
            "proposal": self.proposal,
            "propensity": self.propensity,
        }
        return Judgment(left=left, right=right, outcome=outcome, **{**fields, **about})


@dataclass(frozen=True, slots=True, repr=False)
class Question:
    """One pair (or, with `right` None, one item) of a topic, leased to one assessor until it expires.

    `attempt` rises by one with each undo. An answer names the attempt, so that a delayed answer that arrives
    after the undo isn't taken for the new one.
    """

    id: str
    topic: str
    left: str
    right: str | None
    assessor: str
    phase: str = ""
    proposal: str = ""
    criterion: str = "overall"
    propensity: float | None = None
    expires: float = math.inf
    attempt: int = 1
    kind: Kind = Kind.PREFERENCE

    __repr__ = short_repr

    def __post_init__(self) -> None:
        _refuse_empty("question", id=self.id, topic=self.topic, left=self.left)
        if self.right is not None:
            pair_of(self.left, self.right)

    @property
    def pair(self) -> Pair:
        """The two items asked about, the smaller id first."""
        if self.right is None:
            raise BadRecord(f"Question '{self.id}' asks for a grade of one item, so it has no pair.")
        return pair_of(self.left, self.right)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an assessor or a judge answers to a question, with what the page noted.

    `attempt` counts how often the question was answered before, plus one; None where answers can't overtake each
    other.
    """

    outcome: Outcome
    grade: float | None = None
    confidence: float | None = None
    note: str = ""
    seconds: float | None = None
    context_uses: int = 0
    highlighted: bool | None = None
    attempt: int | None = None


_GRADED, _A_GRADE = Kind.GRADE, Outcome.GRADE  # looked up once: an enumeration takes a while


@dataclass(frozen=True, slots=True, repr=False)
class Judgment:
    """The answer to a question: one line of the log.

    `right` is None and `grade` a number when one item was graded. `sides_known` is False for judgments from
    files that don't say which item was shown on the left; `inferred` is True for preferences that follow from
    others and were not judged themselves; `repeated` for a pair that the same person judged again, to measure
    self-agreement: it counts for no score. `highlighted` says whether query terms were marked.
    """

    topic: str
    left: str
    right: str | None
    outcome: Outcome
    phase: str = ""
    proposal: str = ""
    assessor: str = ""
    criterion: str = "overall"
    stage: str = ""
    kind: Kind = Kind.PREFERENCE
    grade: float | None = None
    confidence: float | None = None
    note: str = ""
    seconds: float | None = None
    context_uses: int = 0
    highlighted: bool | None = None
    sides_known: bool = True
    inferred: bool = False
    repeated: bool = False
    propensity: float | None = None
    strategy: str = ""  # name and version of the strategy that asked
    question: str = ""  # the question's id, the key under which an answer counts once
    seq: int | None = None  # the place in the topic's log, gapless from 1
    time: str = ""  # UTC, ISO 8601, from the store

    __repr__ = short_repr

    def __post_init__(self) -> None:
        # Written out: every line of a log that is read comes through here.
        right, grade = self.right, self.grade
        if not self.topic or not self.left:
            _refuse_empty("judgment", topic=self.topic, left=self.left)
        if self.note:
            _refuse_unstorable("note", (self.note,))
        graded = self.kind is _GRADED
        if graded != (right is None):
            raise BadRecord(
                "A grade is of one item, and a preference is of two.",
                remedy='Give kind "grade" with one item, or two items with kind "preference" or "definite".',
            )
        if (self.outcome is _A_GRADE) != (grade is not None) or (grade is not None and not graded):
            raise BadRecord(
                'A grade goes with the outcome "grade" and the kind "grade", and each of them with a grade.',
                remedy="Give all three, or none of them.",
            )
        if grade is not None and not _is_finite(grade):
            raise BadRecord(f"A grade is a finite number, not {grade}.")
        if right is not None and self.left == right:
            pair_of(self.left, right)
        if self.seconds is not None and not (_is_finite(self.seconds) and self.seconds >= 0):
            raise BadRecord(f"Seconds are a finite number from 0 on, not {self.seconds}.")
        if self.propensity is not None and not 0 < self.propensity <= 1:
            raise BadRecord(f"A propensity lies above 0 and at most at 1, not at {self.propensity}.")

    @property
    def pair(self) -> Pair:
        """The two items judged, the smaller id first."""
        if self.right is None:
            raise BadRecord(f"A grade for '{self.left}' is about one item, so it has no pair.")
        return (self.left, self.right) if self.left < self.right else (self.right, self.left)

    @property
    def effect(self) -> Effect:
        """What the outcome means to strategies and scores."""
        return EFFECTS[self.outcome]

    @property
    def winner(self) -> str | None:
        """The item that won, or None after a tie, two Bad votes or no answer."""
        effect = EFFECTS[self.outcome]
        if effect.left == effect.right:
            return None
        return self.left if effect.left > effect.right else self.right

    @property
    def loser(self) -> str | None:
        """The item that lost, or None when no item won."""
        winner = self.winner
        if winner is None:
            return None
        return self.right if winner == self.left else self.left

    @property
    def bad_items(self) -> tuple[str, ...]:
        """The items that got a Bad vote."""
        effect = EFFECTS[self.outcome]
        if not (effect.left_bad or effect.right_bad):
            return ()
        sides = ((self.left, effect.left_bad), (self.right, effect.right_bad))
        return tuple(item for item, bad in sides if bad and item is not None)


@dataclass(frozen=True, slots=True)
class PhaseClosed:
    """A line of the log: a phase ended with these survivors, and a replay keeps them."""

    topic: str
    phase: str
    survivors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """A question of the collection as the assessor sees it; `snippets` are context to look at while judging.

    `reference` is an answer that is known to be good, where there is one.
    """

    id: str
    text: str
    description: str = ""
    conversation: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    weight: float = 1.0
    snippets: tuple[str, ...] = ()
    reference: str = ""

    def __post_init__(self) -> None:
        _refuse_empty("topic", id=self.id)
        about = (*self.conversation, *self.tags, *self.snippets, self.reference)
        _refuse_unstorable(f"topic {self.id!a}", (self.id, self.text, self.description, *about))
        if not (_is_finite(self.weight) and self.weight >= 0):
            raise BadRecord(
                f"The weight of topic '{self.id}' is {self.weight}; it must be a number from 0 on."
            )


TextFormat: TypeAlias = Literal["text", "markdown", "html", "image"]
"""How a passage is shown: as plain text, as safe Markdown, as a page in a sandboxed frame, or as an image."""


SourceKind: TypeAlias = Literal["citation", "context", "result"]
"""What a source is to an answer: cited by it, given to its system, or a result of its page."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """What an answer rests on, shown beside it; one without a text has an id or an address only."""

    id: str = ""
    text: str = ""
    title: str = ""
    url: str = ""
    kind: SourceKind = "citation"


def packed_sources(sources: Iterable[SourceText]) -> str:
    """Return sources as JSON, without empty fields."""
    rows = [{name: value for name, value in asdict(each).items() if value} for each in sources]
    return json.dumps(rows, ensure_ascii=False)


def unpacked_sources(text: str) -> tuple[SourceText, ...]:
    """Return the sources that `packed_sources` packed."""
    return () if text == "[]" else tuple(SourceText(**each) for each in json.loads(text))


@dataclass(frozen=True, slots=True)
class Passage:
    """An item's text: plain, Markdown, HTML, or the address of an image; `sources` are what an answer rests on."""

    id: str
    text: str
    title: str = ""
    url: str = ""
    format: TextFormat = "text"
    sources: tuple[SourceText, ...] = ()

    def __post_init__(self) -> None:
        _refuse_empty("passage", id=self.id)
        beside = [part for each in self.sources for part in (each.id, each.text, each.title, each.url)]
        _refuse_unstorable(f"passage {self.id!a}", (self.id, self.text, self.title, self.url, *beside))
        if self.format not in get_args(TextFormat):
            raise BadRecord(
                f"Passage '{self.id}' can't have the format '{self.format}'.",
                remedy=f"It is one of {', '.join(get_args(TextFormat))}.",
            )


@dataclass(frozen=True, slots=True, repr=False)
class Pool(Tabular):
    """The candidates of one topic, with their grades and duplicates.

    `twins` maps a candidate to the other ids of the same text: they are judged once, as the candidate.
    """

    topic: str
    items: tuple[str, ...]
    grades: Mapping[str, float] = field(default_factory=dict)
    twins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _refuse_empty("pool", topic=self.topic)
        members = set(self.items)
        _refuse_unstorable(f"pool of topic {self.topic!a}", (self.topic, *self.items))
        if len(members) != len(self.items):
            raise BadRecord(f"The pool of topic '{self.topic}' lists an item twice.")
        if strays := (set(self.grades) | set(self.twins)) - members:
            raise BadRecord(f"The pool of topic '{self.topic}' describes '{min(strays)}', which isn't in it.")

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Pool({self.topic!r}, {counted(len(self), 'item')})"

    def to_polars(self) -> "pl.DataFrame":
        """Return a row an item, with its grade and its duplicates."""
        rows = [
            (self.topic, item, self.grades.get(item), " ".join(self.twins.get(item, ())) or None)
            for item in self.items
        ]
        return frame_of(
            rows, {"topic": "String", "item": "String", "grade": "Float64", "duplicates": "String"}
        )


@dataclass(frozen=True, slots=True)
class Certainty:
    """How sure a result is, as chances over possible truths; a number is None where it isn't stated.

    `best`: a best item is among those returned as best. `top_five`: the first of them is one of the five best items.
    `top_share`: it is in the best `share` of the pool. `near_best`: the best item wins against it with a chance of at
    most 0.5 + `epsilon`. `assumption` says in words what the chances rest on. With `by_chance` the judgments can't be
    told from flipped coins, and no chance is stated.
    """

    best: float | None = None
    top_five: float | None = None
    top_share: float | None = None
    near_best: float | None = None
    share: float = 0.1
    epsilon: float = 0.1
    by_chance: bool = False
    assumption: str = ""

    def __post_init__(self) -> None:
        stated = [self.best, self.top_five, self.top_share, self.near_best]
        if any(each is not None and not 0 <= each <= 1 for each in stated):
            raise BadRecord("A chance lies between 0 and 1.")
        if self.by_chance and any(each is not None for each in stated):
            raise BadRecord("Judgments that can't be told from chance state no number.")


@dataclass(frozen=True, slots=True, repr=False)
class Levels(Tabular):
    """Items in equivalence classes, the best first: the result of a strategy.

    Items that the judgments don't separate share a level; `certainty` says how sure that is, where the strategy
    states it.
    """

    levels: tuple[tuple[str, ...], ...]
    certainty: Certainty | None = None

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for level in self.levels:
            if not level or not seen.isdisjoint(level) or len(set(level)) != len(level):
                raise BadRecord("Levels are not empty, and no item is in two of them.")
            seen.update(level)

    def __repr__(self) -> str:
        best = ", ".join(self.best[:3]) + (" ..." if len(self.best) > 3 else "")
        items = sum(map(len, self.levels))
        return f"Levels(best: {best or 'none'}; {counted(items, 'item')} in {counted(len(self.levels), 'level')})"

    def to_polars(self) -> "pl.DataFrame":
        """Return a row an item, with its level from 1, the best."""
        rows = [(at, item) for at, level in enumerate(self.levels, 1) for item in level]
        return frame_of(rows, {"level": "Int64", "item": "String"})

    @property
    def confidence(self) -> float | None:
        """The chance that the first level holds a best item; None where it isn't stated."""
        return None if self.certainty is None else self.certainty.best

    @property
    def best(self) -> tuple[str, ...]:
        """The items of the first level."""
        return self.levels[0] if self.levels else ()

    def top(self, k: int) -> tuple[tuple[str, ...], ...]:
        """Return the first levels until they hold k items; a level that crosses rank k is kept whole."""
        kept: list[tuple[str, ...]] = []
        held = 0
        for level in self.levels:
            if held >= k:
                break
            kept.append(level)
            held += len(level)
        return tuple(kept)

    def as_grades(self, k: int | None = None) -> dict[str, int]:
        """Return a grade per item, the best level highest and the last one 1; only the top k when given."""
        levels = self.levels if k is None else self.top(k)
        return {item: len(levels) - at for at, level in enumerate(levels) for item in level}


def _refuse_unstorable(what: str, texts: Iterable[str]) -> None:
    """Refuse what some databases can't store: the character NUL, and halves of surrogate pairs."""
    for value in texts:
        if "\0" in value or not (value.isascii() or _encodes(value)):
            raise BadRecord(
                f"The {what} holds a character that can't be stored (NUL, or half of a surrogate pair).",
                remedy="Leave it out.",
            )


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_empty(what: str, **fields: str) -> None:
    for name, value in fields.items():
        if not value:
            raise BadRecord(f"A {what} needs a {name}, and it is empty.")
