"""Metrics as weights: each adds up, over the parts of a ranking, a known weight times a judged utility.

A part is an item, or a pair of items. The weights follow from the ranks and cost nothing; the utilities are judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadParameter, UnknownName
from duelpool.measures.grammar import name_and_parameters

Parts: TypeAlias = Literal["items", "pairs"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric that adds up weights times utilities; its text form parses back."""

    name: ClassVar[str]
    about: ClassVar[str]
    parts: ClassVar[Parts] = "items"
    products: ClassVar[bool] = False  # a pair's utility is the product of two items', not a preference

    cutoff: int | None = None

    def __post_init__(self) -> None:
        if self.cutoff is not None and not (isinstance(self.cutoff, int) and self.cutoff >= 1):
            raise BadParameter(f"{self.name}'s cutoff is a whole number from 1 on, not {self.cutoff!r}.")

    def __str__(self) -> str:
        parameters = [
            f"{part.name}={getattr(self, part.name)}"
            for part in fields(self)
            if part.name != "cutoff" and getattr(self, part.name) != part.default
        ]
        text = f"{self.name}({', '.join(parameters)})" if parameters else self.name
        return text if self.cutoff is None else f"{text}@{self.cutoff}"

    def weights(self, rank: Floats, length: Floats) -> Floats:
        """Return the weights of items at these ranks of rankings of these lengths (after the cut)."""
        raise NotImplementedError

    def pair_weights(self, a: Floats, b: Floats, length: Floats) -> Floats:
        """Return the weights of pairs at these ranks, before they are normalised over a topic.

        A rank of length + 1 is an item that the ranking lacks.
        """
        raise NotImplementedError

    def utility(self, grade: Floats) -> Floats:
        """Return the utility of items with these grades."""
        return grade


@dataclass(frozen=True, kw_only=True)
class PMetric(Metric):
    """The share of relevant items among the first `cutoff`."""

    name: ClassVar[str] = "P"
    about: ClassVar[str] = "1 / k for each of the first k items; relevant or not"

    rel: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cutoff is None:
            raise BadParameter("P needs a cutoff.", remedy="Write P@10, for example.")

    def weights(self, rank: Floats, length: Floats) -> Floats:
        """Return 1 / k."""
        return np.full(len(rank), 1.0 / float(self.cutoff or 1))

    def utility(self, grade: Floats) -> Floats:
        """Return 1 for grades from `rel` on, else 0."""
        return (grade >= self.rel).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Mean(Metric):
    """The mean value of a topic's items."""

    name: ClassVar[str] = "Mean"
    about: ClassVar[str] = "1 / (number of items) each; the value of an item"

    def weights(self, rank: Floats, length: Floats) -> Floats:
        """Return one share each."""
        return 1.0 / length


@dataclass(frozen=True, kw_only=True)
class Accuracy(Mean):
    """The share of a topic's items that are correct."""

    name: ClassVar[str] = "Accuracy"
    about: ClassVar[str] = "1 / (number of items) each; correct or not"

    rel: float = 1

    def utility(self, grade: Floats) -> Floats:
        """Return 1 for grades from `rel` on, else 0."""
        return (grade >= self.rel).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class MAE(Mean):
    """The mean size of a topic's errors."""

    name: ClassVar[str] = "MAE"
    about: ClassVar[str] = "1 / (number of items) each; the size of an error"

    def utility(self, grade: Floats) -> Floats:
        """Return the size of the error that was judged."""
        return np.abs(grade)


@dataclass(frozen=True, kw_only=True)
class MSE(Mean):
    """The mean square of a topic's errors."""

    name: ClassVar[str] = "MSE"
    about: ClassVar[str] = "1 / (number of items) each; the square of an error"

    def utility(self, grade: Floats) -> Floats:
        """Return the square of the error that was judged."""
        return grade**2


@dataclass(frozen=True, kw_only=True)
class DCGMetric(Metric):
    """Discounted cumulative gain."""

    name: ClassVar[str] = "DCG"
    about: ClassVar[str] = "1 / log(1 + rank), base 2 or e; the grade, or 2^grade - 1"

    log: Literal["2", "e"] = "2"
    gain: Literal["linear", "exponential"] = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.log not in ("2", "e") or self.gain not in ("linear", "exponential"):
            raise BadParameter(
                f"DCG takes log=2 or log=e and gain=linear or gain=exponential, not log={self.log}, "
                f"gain={self.gain}."
            )

    def weights(self, rank: Floats, length: Floats) -> Floats:
        """Return the discounts."""
        return 1.0 / (np.log2(rank + 1.0) if self.log == "2" else np.log(rank + 1.0))

    def utility(self, grade: Floats) -> Floats:
        """Return the gains; a grade below 0 gains nothing."""
        above = np.maximum(grade, 0.0)
        return above if self.gain == "linear" else np.exp2(above) - 1.0


@dataclass(frozen=True, kw_only=True)
class Swaps(Metric):
    """The share of a ranking's pairs in the wrong order."""

    name: ClassVar[str] = "Swaps"
    about: ClassVar[str] = "1 / (number of pairs) each; swapped or not"
    parts: ClassVar[Parts] = "pairs"
    swapped: ClassVar[bool] = True  # utility 1 when the ranking contradicts the preference
    normalised: ClassVar[bool] = False

    def pair_weights(self, a: Floats, b: Floats, length: Floats) -> Floats:
        """Return one share for each pair of ranked items."""
        pairs = np.maximum(length * (length - 1) / 2, 1.0)
        return np.where(np.maximum(a, b) <= length, 1.0 / pairs, 0.0)


@dataclass(frozen=True, kw_only=True)
class WSwaps(Swaps):
    """Swaps, each weighed by one over both ranks."""

    name: ClassVar[str] = "WSwaps"
    about: ClassVar[str] = "1 / (number of pairs x rank x rank); swapped or not"

    def pair_weights(self, a: Floats, b: Floats, length: Floats) -> Floats:
        """Return a share over the product of the ranks."""
        return super().pair_weights(a, b, length) / (a * b)


@dataclass(frozen=True, kw_only=True)
class Ppref(Swaps):
    """The share of the pool's pairs in the preferred order."""

    name: ClassVar[str] = "ppref"
    about: ClassVar[str] = "1 / (number of usable pairs) each; in the preferred order or not"
    swapped: ClassVar[bool] = False
    normalised: ClassVar[bool] = True

    def pair_weights(self, a: Floats, b: Floats, length: Floats) -> Floats:
        """Return 1 for each pair of which at least one item is ranked."""
        return np.where(np.minimum(a, b) <= length, 1.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Wpref(Ppref):
    """ppref with each pair weighed by the rank of its lower item."""

    name: ClassVar[str] = "wpref"
    about: ClassVar[str] = "1 / log2(1 + lower rank), shared out; in the preferred order or not"

    def pair_weights(self, a: Floats, b: Floats, length: Floats) -> Floats:
        """Return the discount of the lower of the two ranks."""
        return super().pair_weights(a, b, length) / np.log2(np.maximum(a, b) + 1.0)


@dataclass(frozen=True, kw_only=True)
class APMetric(Metric):
    """Average precision over pairs of relevant items; it needs the number of relevant items, or their estimate."""

    name: ClassVar[str] = "AP"
    about: ClassVar[str] = "1 / (R x lower rank); both relevant or not (an item makes a pair with itself)"
    parts: ClassVar[Parts] = "pairs"
    products: ClassVar[bool] = True

    rel: float = 1

    def pair_weights(self, a: Floats, b: Floats, length: Floats) -> Floats:
        """Return one over the lower rank, before R divides it."""
        lower = np.maximum(a, b)
        return np.where(lower <= length, 1.0 / lower, 0.0)

    def utility(self, grade: Floats) -> Floats:
        """Return 1 for grades from `rel` on, else 0."""
        return (grade >= self.rel).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class GivenWeights(Metric):
    """Weights from a file, with utilities as they are judged."""

    name: ClassVar[str] = "Given"
    about: ClassVar[str] = "weights from a file; the grade itself"


METRICS: Mapping[str, type[Metric]] = MappingProxyType(
    {
        each.name: each
        for each in (
            PMetric,
            Accuracy,
            Mean,
            MAE,
            MSE,
            DCGMetric,
            Swaps,
            WSwaps,
            Ppref,
            Wpref,
            APMetric,
            GivenWeights,
        )
    }
)
_BY_NAME = {name.casefold(): name for name in METRICS} | {"prec": "P", "precision": "P"}


def parse_metric(text: str) -> Metric:
    """Return the metric that a text such as `P@10`, `DCG(log=e)@100` or `ppref@20` names."""
    name, values = name_and_parameters(text, "metric")
    known = _BY_NAME.get(name.casefold())
    if known is None:
        raise UnknownName("metric", name, METRICS)
    metric = METRICS[known]
    if values.get("log") == 2:
        values["log"] = "2"
    parameters = [part.name for part in fields(metric)]
    if unknown := [key for key in values if key not in parameters]:
        raise BadParameter(
            f"{known} has no parameter '{unknown[0]}' (in '{text}').",
            remedy=f"It takes: {', '.join(sorted(parameters))}.",
        )
    arguments: dict[str, Any] = values
    return metric(**arguments)
