"""The results of a simulation: the trials, their summary, and the calibration of stated confidence."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from duelpool.errors import BadParameter
from duelpool.shares import wilson


@dataclass(frozen=True, slots=True)
class Trial:
    """The result and the cost of one trial.

    `ranks` are the true places of the items returned as best, 0 for a true best item; equally good items have
    the same place. `curve` says for each checkpoint whether one item, had it been returned then, was right.
    """

    topic: str
    items: int
    ranks: tuple[int, ...]
    bests: int
    single: bool
    best_on_top: bool
    top_recall: float
    comparisons: int
    same_pair: int
    rounds: int
    confidence: float | None = None
    curve: tuple[bool, ...] = ()

    @property
    def hits(self) -> int:
        """How many of the truly best items were returned."""
        return self.ranks.count(0)


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """All trials of one strategy against one kind of judge, and their summary."""

    strategy: str
    case: str
    items: int | None  # None where pools differ in size
    budget: str
    cap: int | None
    seed: int
    outcomes: tuple[Trial, ...]
    checkpoints: tuple[int, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    @property
    def trials(self) -> int:
        """The number of trials."""
        return len(self.outcomes)

    @property
    def found(self) -> float:
        """The share of trials that returned a true best item, possibly among others."""
        return self._share(trial.hits > 0 for trial in self.outcomes)

    @property
    def one(self) -> float:
        """The share of trials that returned exactly one of the true best items."""
        return self._share(trial.hits == 1 for trial in self.outcomes)

    @property
    def both(self) -> float:
        """The share of trials that returned every true best item where there are several."""
        return self._share(trial.hits == trial.bests > 1 for trial in self.outcomes)

    @property
    def single(self) -> float:
        """The share of trials that are right when one item is returned, ties broken at random."""
        return self._share(trial.single for trial in self.outcomes)

    @property
    def best_on_top(self) -> float:
        """The share of trials whose first items, as many as are truly best, are just those."""
        return self._share(trial.best_on_top for trial in self.outcomes)

    @property
    def returned(self) -> float:
        """The mean number of items returned as best."""
        return self._share(len(trial.ranks) for trial in self.outcomes)

    @property
    def top5_recall(self) -> float:
        """The mean share of the true top five among the first five."""
        return self._share(trial.top_recall for trial in self.outcomes)

    @property
    def rounds(self) -> float:
        """The mean number of times that pairs were asked for."""
        return self._share(trial.rounds for trial in self.outcomes)

    @property
    def comparisons(self) -> dict[str, float]:
        """The least, mean and largest number of comparisons of a trial."""
        spent = [trial.comparisons for trial in self.outcomes]
        return {"min": min(spent), "mean": math.fsum(spent) / len(spent), "max": max(spent)}

    @property
    def same_pair(self) -> dict[str, int]:
        """How often a trial's most judged pair was judged: the least and the largest over the trials."""
        most = [trial.same_pair for trial in self.outcomes]
        return {"min": min(most), "max": max(most)}

    @property
    def curve(self) -> tuple[tuple[int, float], ...]:
        """The share that was right when one item was returned, for each number of judgments spent."""
        by_checkpoint = zip(*(trial.curve for trial in self.outcomes), strict=True)
        return tuple(zip(self.checkpoints, map(self._share, by_checkpoint), strict=True))

    def standard_error(self, share: float) -> float:
        """Return the standard error of a share of these trials."""
        return math.sqrt(share * (1.0 - share) / self.trials)

    def interval(self, share: float) -> tuple[float, float]:
        """Return the 95 % interval (Wilson's) of a share of these trials: for more trials with the same topics."""
        return wilson(share * self.trials, self.trials) or (0.0, 1.0)

    def as_json(self) -> dict[str, Any]:
        """Return the summary as plain values for a program to read."""
        summary: dict[str, Any] = {
            "strategy": self.strategy,
            "case": self.case,
            "items": self.items,
            "budget": self.budget,
            "cap": self.cap,
            "seed": self.seed,
            "trials": self.trials,
        }
        for name in ("found", "one", "both", "single", "best_on_top", "returned", "comparisons", "same_pair"):
            summary[name] = getattr(self, name)
        summary |= {"rounds": self.rounds, "top5_recall": self.top5_recall, "seconds": round(self.seconds, 3)}
        if self.checkpoints:
            summary["curve"] = [{"judgments": spent, "single": share} for spent, share in self.curve]
        return summary

    def _share(self, values: Iterable[float]) -> float:
        return math.fsum(values) / self.trials


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Trials that stated about the same confidence: its mean, and how often they were right."""

    stated: float
    right: float
    trials: int


def calibration_error(results: Sequence[SimulationResult], bins: int = 10) -> float:
    """Return how far stated confidence lies from the share that was right, a mean over the trials.

    The expected calibration error: over equal bins of confidence, the distance between the mean confidence
    and the share that was right, each bin weighted by its trials.
    """
    rows = reliability(results, bins)
    total = sum(row.trials for row in rows)
    return math.fsum(row.trials * abs(row.stated - row.right) for row in rows) / total


def reliability(results: Sequence[SimulationResult], bins: int = 10) -> tuple[ReliabilityBin, ...]:
    """Return stated confidence against the share that was right, over equal bins of confidence."""
    stated = [
        (trial.confidence, trial.hits > 0)
        for result in results
        for trial in result.outcomes
        if trial.confidence is not None
    ]
    if not stated:
        raise BadParameter("None of these strategies states a confidence.", remedy="Simulate one that does.")
    rows = []
    for at in range(bins):
        inside = [pair for pair in stated if min(bins - 1, int(pair[0] * bins)) == at]
        if inside:
            mean = math.fsum(confidence for confidence, _ in inside) / len(inside)
            rows.append(ReliabilityBin(mean, sum(right for _, right in inside) / len(inside), len(inside)))
    return tuple(rows)
