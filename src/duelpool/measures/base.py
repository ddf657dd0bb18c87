"""The base of all measures: a frozen value whose text form parses back, with its rules as fields."""

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from duelpool.arrays import Bools, Floats
from duelpool.errors import BadParameter, known_names
from duelpool.files import Preferences, Qrels, Run, TieOrder
from duelpool.files.runs import PRECISION, TIES, Precision
from duelpool.measures.items import Items, Placed, PlacingRules, Unjudged
from duelpool.measures.rankings import DuplicateRule, ReadyRun, sums_by
from duelpool.measures.truth import Truth

Missing: TypeAlias = Literal["drop", "zero"]
"""A topic that the truth has and the run hasn't: left out, or scored 0 (trec_eval's -c)."""

Need: TypeAlias = Literal["grades", "preferences", "ranking"]
"""What a measure compares a run with."""

TwinRule: TypeAlias = Literal["keep", "merge"]
"""Known duplicates (`twins`): kept apart, or merged into the item that was judged for them."""

SHARE = (0.0, 1.0)
"""The limits of a measure whose values are shares."""

RULES = ("ties", "scores", "missing", "unjudged", "duplicates", "twins")


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure and its rules; `calc` scores one run.

    All measures order a run in the same way by default, so that the columns of a table are about the same rankings.

    ties        the order of equal scores
    scores      the precision in which scores are compared; trec_eval's is single
    missing     the value of a topic that the run lacks
    unjudged    whether unjudged documents keep their ranks
    duplicates  how a document counts that is listed twice in a topic
    twins       whether known duplicates count as one document, at the best rank of any of them
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""  # in plain words, for the head of a page; empty: the name does
    need: ClassVar[Need] = "grades"
    about: ClassVar[str] = ""  # one sentence, for lists of measures
    limits: ClassVar[tuple[float, float]] = (-np.inf, np.inf)  # no value and no interval goes beyond

    ties: TieOrder = TIES
    scores: Precision = PRECISION
    missing: Missing = "drop"
    unjudged: Unjudged = "keep"
    duplicates: DuplicateRule = "first"
    twins: TwinRule = "keep"

    def __post_init__(self) -> None:
        for rule, choices in _CHOICES.items():
            one_of(self.name, rule, getattr(self, rule), choices)
        cutoff = getattr(self, "cutoff", None)
        if cutoff is not None and not (isinstance(cutoff, int) and cutoff >= 1):
            raise BadParameter(
                f"{self.name}'s cutoff is a whole number from 1 on, not {cutoff!r}.",
                remedy=f"Write {self.name}@10, for example.",
            )

    def __str__(self) -> str:
        changed = [
            f"{part.name}={getattr(self, part.name)!r}"
            for part in fields(self)
            if part.name != "cutoff" and getattr(self, part.name) != part.default
        ]
        cutoff = getattr(self, "cutoff", None)
        text = f"{self.name}({', '.join(changed)})" if changed else self.name
        return text if cutoff is None else f"{text}@{cutoff}"

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Return the names of the parameters, the rules included."""
        return tuple(part.name for part in fields(cls))

    def __matmul__(self, cutoff: int) -> Self:
        if "cutoff" not in self.parameters():
            raise BadParameter(f"{self.name} has no cutoff.", remedy=f"Write {self.name} without '@'.")
        return replace(self, cutoff=cutoff)  # type: ignore[call-arg]

    @property
    def rules(self) -> dict[str, str]:
        """Every rule that this measure follows, by name, for the header of an output."""
        own = [part.name for part in fields(self) if part.name not in RULES and part.name != "cutoff"]
        return {name: str(getattr(self, name)) for name in (*own, *RULES)}

    def calc(self, truth: Qrels | Preferences | Run | Truth, run: Run | ReadyRun) -> dict[str, float]:
        """Score a run: a value per topic, without the topics that this measure drops."""
        whole = Truth.of(truth)
        values = self.values(whole, run if isinstance(run, ReadyRun) else ReadyRun(run))
        topics = self.items(whole).topics
        return {
            topic: float(value) for topic, value in zip(topics, values, strict=True) if not np.isnan(value)
        }

    def items(self, truth: Truth) -> Items:
        """Return the documents whose ranks this measure needs; values are in the order of their topics."""
        return self._items(truth.merged() if self.twins == "merge" else truth)

    def values(self, truth: Truth, run: ReadyRun) -> Floats:
        """Return a value per topic of the truth, nan for those that are dropped."""
        if self.twins == "merge" and truth.duplicates is not None:
            return self._values(truth.merged(), run.merged(truth.duplicates))
        return self._values(truth, run)

    def _items(self, truth: Truth) -> Items:
        return truth.judged().items

    def _values(self, truth: Truth, run: ReadyRun) -> Floats:
        rules = PlacingRules(self.ties, self.scores, self.duplicates, self.unjudged)
        placed = self._items(truth).placed(run, rules)
        values = self._score(truth, placed)
        if self.missing == "drop":
            return np.where(placed.present, values, np.nan)
        return np.where(placed.present | np.isnan(values), values, 0.0)

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        """Return a value per topic as if no topic were missing, nan where the measure is undefined."""
        raise NotImplementedError


_CHOICES: dict[str, tuple[str, ...]] = {
    "ties": get_args(TieOrder),
    "scores": get_args(Precision),
    "missing": get_args(Missing),
    "unjudged": get_args(Unjudged),
    "duplicates": get_args(DuplicateRule),
    "twins": get_args(TwinRule),
}


def one_of(measure: str, name: str, value: object, choices: tuple[object, ...]) -> None:
    """Refuse a parameter that isn't one of the choices."""
    if value not in choices:
        raise BadParameter(
            f"{measure}'s {name} is {value!r}.", remedy=known_names(str(value), map(str, choices))
        )


def probability(measure: str, name: str, value: object) -> None:
    """Refuse a parameter that doesn't lie strictly between 0 and 1."""
    if not (isinstance(value, int | float) and 0 < value < 1):
        raise BadParameter(f"{measure}'s {name} lies between 0 and 1, not at {value!r}.")


def positive(measure: str, name: str, value: object) -> None:
    """Refuse a parameter that isn't a whole number from 1 on."""
    if not (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        raise BadParameter(f"{measure}'s {name} is a whole number from 1 on, not {value!r}.")


def per_topic(placed: Placed, chosen: Bools, weights: npt.NDArray[np.floating]) -> Floats:
    """Add up weights of chosen rows by topic."""
    return sums_by(placed.topic[chosen], weights[chosen], placed.topics)
