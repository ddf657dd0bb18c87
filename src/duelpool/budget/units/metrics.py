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
from duelpool.measures.overlap import DEPTH as COMPAT_DEPTH

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

    @property
    def depth(self) -> int | None:
        """How many ranks of each ranking are units that can be judged; None: all."""
        return self.cutoff


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


FLOOR = (
    0.05  # of the first rank's weight: what a unit that only the best possible score depends on has in a draw
)


@dataclass(frozen=True, kw_only=True)
class NotASum(Metric):
    """A metric that isn't a sum of weights times utilities; its weights only say what is worth drawing."""

    pool: int = 100  # ranks of each ranking that may hold relevant items

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.pool, bool) or not isinstance(self.pool, int) or self.pool < 1:
            raise BadParameter(f"{self.name}'s pool is a whole number from 1 on, not {self.pool!r}.")

    @property
    def depth(self) -> int | None:
        """How many ranks of each ranking are units that can be judged."""
        return max(self.pool, self.cutoff or 1)


@dataclass(frozen=True, kw_only=True)
class ShareOfBest(NotASum):
    """A sum over a system's items, as a share of the best that any ranking of the pool's items could have."""

    needs_ideal_ranks: ClassVar[bool] = False

    def level_worths(self, levels: Floats, rank: Floats, ideal: Floats) -> Floats:
        """Return what each level (rows) adds to the worth of an item at a rank; `ideal` is its ideal rank."""
        raise NotImplementedError

    def best_score(self, levels: Floats, counts: Floats) -> Floats:
        """Return the best score, for counts of items with at least each level (first axis)."""
        raise NotImplementedError

    def utility(self, grade: Floats) -> Floats:
        """Return the grade; one below 0 counts as 0."""
        return np.maximum(grade, 0.0)


@dataclass(frozen=True, kw_only=True)
class NDCGMetric(ShareOfBest):
    """DCG as a share of the best DCG that the pool allows."""

    name: ClassVar[str] = "nDCG"
    about: ClassVar[str] = "DCG over the best DCG of the pool; needs a model of the grades"

    gain: Literal["linear", "exponential"] = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gain not in ("linear", "exponential"):
            raise BadParameter(f"nDCG takes gain=linear or gain=exponential, not gain={self.gain}.")

    def weights(self, rank: Floats, length: Floats) -> Floats:
        """Return the discounts, at least the floor."""
        return np.maximum(self._discounts(rank), FLOOR)

    def level_worths(self, levels: Floats, rank: Floats, ideal: Floats) -> Floats:
        """Return the discount times what the level gains above the one below."""
        return self._gains(levels)[:, None] * self._discounts(rank)

    def best_score(self, levels: Floats, counts: Floats) -> Floats:
        """Return the sum over levels of what each gains times the discounts of that many first ranks."""
        most = int(min(self.cutoff or np.inf, counts.max(initial=0.0) + 1))
        sums = np.concatenate(([0.0], np.cumsum(self._discounts(np.arange(1.0, most + 1)))))
        best: Floats = np.tensordot(self._gains(levels), np.interp(counts, np.arange(most + 1), sums), axes=1)
        return best

    def _gains(self, levels: Floats) -> Floats:
        gains = levels if self.gain == "linear" else np.exp2(levels) - 1.0
        return np.diff(gains, prepend=0.0)

    def _discounts(self, rank: Floats) -> Floats:
        return np.where(rank <= (self.cutoff or np.inf), 1.0 / np.log2(rank + 1.0), 0.0)


@dataclass(frozen=True, kw_only=True)
class CompatMetric(ShareOfBest):
    """Rank-biased overlap with the nearest ideal ranking of the pool, as a share of the ideal's own."""

    name: ClassVar[str] = "Compat"
    about: ClassVar[str] = (
        "overlap with the nearest ideal ranking over the ideal's own; needs a model of the grades"
    )
    needs_ideal_ranks: ClassVar[bool] = True

    p: float = 0.95

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.p, float) and 0 < self.p < 1):
            raise BadParameter(f"Compat's p is a number between 0 and 1, not {self.p!r}.")
        if self.cutoff is not None:
            raise BadParameter("Compat has no cutoff.", remedy="Give p, or pool.")

    def weights(self, rank: Floats, length: Floats) -> Floats:
        """Return what an item at its ideal rank adds to the overlap, at least the floor."""
        tails = self._tails(int(rank.max(initial=1.0)) + 1)
        return np.asarray(np.maximum(tails[rank.astype(np.int64)] / tails[1], FLOOR), dtype=np.float64)

    def level_worths(self, levels: Floats, rank: Floats, ideal: Floats) -> Floats:
        """Return what the deeper of both ranks adds to the overlap, less that of the level below."""
        deeper = np.maximum(rank, ideal)
        tails = self._tails(int(deeper.max(initial=1.0)) + 2)
        added = np.interp(deeper, np.arange(len(tails)), tails)
        return np.asarray(np.diff(added, axis=0, prepend=0.0), dtype=np.float64)

    def best_score(self, levels: Floats, counts: Floats) -> Floats:
        """Return the overlap of the ideal ranking of that many items with itself."""
        most = int(counts[0].max(initial=0.0)) + 2
        tails = self._tails(most)
        sums = np.concatenate(([0.0], np.cumsum(tails[1:])))
        return np.asarray(np.interp(counts[0], np.arange(most + 1), sums), dtype=np.float64)

    def _tails(self, most: int) -> Floats:
        """Return, for each rank from 0 to `most`, the sum of (1 - p) p^(i - 1) / i over depths i from it on."""
        depths = np.arange(1.0, COMPAT_DEPTH + 1)
        steps = (1.0 - self.p) * self.p ** (depths - 1) / depths
        tails = np.cumsum(steps[::-1])[::-1]
        return np.concatenate((tails[:1], tails, np.zeros(max(0, most - len(tails)))))[: most + 1]


@dataclass(frozen=True, kw_only=True)
class FirstRank(NotASum):
    """One over the rank of the first relevant item."""

    name: ClassVar[str] = "RR"
    about: ClassVar[str] = "1 / rank of the first relevant item; needs a model of the grades"

    pool: int = 1
    rel: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cutoff is None:
            raise BadParameter("RR needs a cutoff.", remedy="Write RR@10, for example.")

    @property
    def depth(self) -> int | None:
        """The ranks before the cutoff: no other item matters."""
        return self.cutoff

    def weights(self, rank: Floats, length: Floats) -> Floats:
        """Return one over the rank."""
        return 1.0 / rank

    def utility(self, grade: Floats) -> Floats:
        """Return 1 for grades from `rel` on, else 0."""
        return (grade >= self.rel).astype(np.float64)


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
            NDCGMetric,
            FirstRank,
            CompatMetric,
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
