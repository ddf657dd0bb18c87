"""The results of a simulation: the trials, what was stated and what was true, and their summary."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duelpool.errors import UnknownName
from duelpool.frames import Tabular, frame_of, html_table
from duelpool.judges import BORDA
from duelpool.records import Certainty
from duelpool.shares import wilson

if TYPE_CHECKING:
    import polars as pl

STATED_CHANCES = ("best", "top_five", "top_share", "near_best")
"""The chances that a strategy may state of what it returns: the fields of a `Certainty`."""

_TOP = 5
_ROUNDING = 1e-9  # a regret may exceed epsilon, and a share of a pool a whole number, by rounding alone


@dataclass(frozen=True, slots=True)
class Trial:
    """The result and the cost of one trial.

    `ranks` are the true places of the items returned as best, 0 for a true best item; equally good items have
    the same place. `curve` says for each checkpoint whether one item, had it been returned then, was right.
    `better` is how many items are truly better than the first returned, `regret` by how much the best beats that one:
    the chance that the best wins against it less 1/2, the largest where there are several bests, 0 for a best
    item. Where nothing is returned all items are better, and the regret is 1/2. `certainty` is what the strategy
    stated. `stopped`: it ended before its budget was spent. `no_condorcet`: no item beats all others, though the
    truth was to be the one that does, so Copeland's order was taken.
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
    certainty: Certainty | None = None
    curve: tuple[bool, ...] = ()
    better: int = 0
    regret: float = 0.0
    stopped: bool = False
    no_condorcet: bool = False

    @property
    def hits(self) -> int:
        """How many of the truly best items were returned."""
        return self.ranks.count(0)

    @property
    def confidence(self) -> float | None:
        """The stated chance that a best item is among those returned; None where it isn't stated."""
        return self.stated("best")

    def stated(self, chance: str) -> float | None:
        """Return what the strategy stated of one of `STATED_CHANCES`; None where it stated no number."""
        value: float | None = None if self.certainty is None else getattr(self.certainty, chance)
        return value

    def true(self, chance: str) -> bool:
        """Return whether what one of `STATED_CHANCES` is the chance of was the case."""
        about = self.certainty or Certainty()
        match chance:
            case "best":
                return self.hits > 0
            case "top_five":
                return self.better < _TOP
            case "top_share":
                return self.better < self._places(about.share)
            case "near_best":
                return self.regret <= about.epsilon + _ROUNDING
            case _:
                raise UnknownName("stated chance", chance, STATED_CHANCES)

    def blind(self, chance: str) -> float:
        """Return what a refusal to state one of `STATED_CHANCES` counts as: the chance of items drawn blindly.

        As many as were returned for "best", one for the top five and the top share. Of "near_best" it is 0: how
        many items are near the best isn't known.
        """
        places = {
            "best": len(self.ranks),
            "top_five": _TOP,
            "top_share": self._places((self.certainty or Certainty()).share),
            "near_best": 0,
        }[chance]
        return min(1.0, places / max(1, self.items))

    def _places(self, share: float) -> int:
        """Return how many items the best share of the pool has, at least one."""
        return max(1, math.ceil(share * self.items - _ROUNDING))


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was stated over some trials, and how often it was the case.

    `stated` is a mean in which a refusal counts as what chance gives; `refused` is the share of trials that
    stated no number. Both are None where the strategy states no such chance. `error` is the standard error of
    stated less right.
    """

    stated: float | None
    right: float
    refused: float | None
    trials: int
    error: float | None = None

    @classmethod
    def of(cls, trials: Iterable["Trial"], chance: str = "best") -> "Calibration":
        """Return the calibration of one of `STATED_CHANCES` over these trials."""
        each = tuple(trials)
        right = math.fsum(trial.true(chance) for trial in each) / len(each)
        if not any(_speaks(trial.certainty, chance) for trial in each):
            return cls(None, right, None, len(each))
        numbers = [trial.stated(chance) for trial in each]
        stated = [
            trial.blind(chance) if number is None else number
            for trial, number in zip(each, numbers, strict=True)
        ]
        over = [number - trial.true(chance) for number, trial in zip(stated, each, strict=True)]
        mean = math.fsum(over) / len(each)
        spread = math.fsum((value - mean) ** 2 for value in over)
        return cls(
            stated=math.fsum(stated) / len(each),
            right=right,
            refused=sum(number is None for number in numbers) / len(each),
            trials=len(each),
            error=math.sqrt(spread) / len(each),
        )

    def as_json(self) -> dict[str, float | None]:
        """Return what was stated, right and refused."""
        return {"stated": self.stated, "right": self.right, "refused": self.refused}


def _speaks(certainty: Certainty | None, chance: str) -> bool:
    """Whether a certainty states this chance, or says that nothing can be stated."""
    return certainty is not None and (certainty.by_chance or getattr(certainty, chance) is not None)


@dataclass(frozen=True, slots=True, repr=False)
class SimulationResult(Tabular):
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
    truth: str = BORDA

    def __repr__(self) -> str:
        shown = f"found {self.found:.1%} with {self.comparisons['mean']:.0f} judgments"
        return f"SimulationResult({self.strategy} on {self.case}: {shown}, {self.trials:,} trials, seed {self.seed})"

    def to_polars(self) -> "pl.DataFrame":
        """Return a row a trial: what it found, and what it took."""
        rows = (
            (
                *(each.topic, each.items, each.hits > 0, each.single, each.better + 1, each.regret),
                *(each.comparisons, each.rounds, each.confidence),
            )
            for each in self.outcomes
        )
        kinds = {
            "topic": "String",
            "items": "Int64",
            "found": "Boolean",
            "single": "Boolean",
            "rank": "Int64",
        }
        costs = {"regret": "Float64", "judgments": "Int64", "rounds": "Int64", "stated": "Float64"}
        return frame_of(rows, kinds | costs)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return self.as_json()

    def _repr_html_(self) -> str:
        names = ("strategy", "case", "trials", "found", "single", "mean_rank", "regret", "rounds", "seed")
        values = {name: self.as_json()[name] for name in names} | {"judgments": self.comparisons["mean"]}
        kinds = {name: "String" if isinstance(value, str) else "Float64" for name, value in values.items()}
        return html_table(frame_of([tuple(values.values())], kinds), repr(self))

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
    def mean_rank(self) -> float:
        """The mean true rank of the first item returned: 1 and the number of items that are truly better."""
        return 1 + self._share(trial.better for trial in self.outcomes)

    @property
    def regret(self) -> float:
        """The mean regret of the first item returned: by how much the best beats it."""
        return self._share(trial.regret for trial in self.outcomes)

    @property
    def no_condorcet(self) -> int:
        """The number of trials in which no item beats all others, though the truth was to be the one that does."""
        return sum(trial.no_condorcet for trial in self.outcomes)

    @property
    def stopped(self) -> tuple[Trial, ...]:
        """The trials that ended before their budget was spent."""
        return tuple(trial for trial in self.outcomes if trial.stopped)

    def calibration(self, chance: str = "best") -> Calibration:
        """Return what was stated of one of `STATED_CHANCES`, and how often that was the case."""
        return Calibration.of(self.outcomes, chance)

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
            "truth": self.truth,
        }
        if self.no_condorcet:
            summary["no_condorcet"] = self.no_condorcet
        for name in ("found", "one", "both", "single", "best_on_top", "returned", "comparisons", "same_pair"):
            summary[name] = getattr(self, name)
        summary |= {"rounds": self.rounds, "top5_recall": self.top5_recall, "seconds": round(self.seconds, 3)}
        summary |= {"mean_rank": self.mean_rank, "regret": self.regret}
        summary |= self.calibration().as_json() | self._stated_of_the_first() | self._stops()
        if self.checkpoints:
            summary["curve"] = [{"judgments": spent, "single": share} for spent, share in self.curve]
        return summary

    def _stated_of_the_first(self) -> dict[str, Any]:
        """Return what was stated of the first item returned."""
        about = next((trial.certainty for trial in self.outcomes if trial.certainty), Certainty())
        return {
            "top5": self.calibration("top_five").as_json(),
            "top_share": {"share": about.share} | self.calibration("top_share").as_json(),
            "near_best": {"epsilon": about.epsilon} | self.calibration("near_best").as_json(),
        }

    def _stops(self) -> dict[str, float | None]:
        """Return the share of trials that stopped before their budget was spent, and what became of those."""
        early = self.stopped
        right = math.fsum(trial.hits > 0 for trial in early) / len(early) if early else None
        spent = math.fsum(trial.comparisons for trial in early) / len(early) if early else None
        share = len(early) / self.trials if self.budget else None
        return {"stopped": share, "right_when_stopped": right, "judgments_when_stopped": spent}

    def _share(self, values: Iterable[float]) -> float:
        return math.fsum(values) / self.trials
