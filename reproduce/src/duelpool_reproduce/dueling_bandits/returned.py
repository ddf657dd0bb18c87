"""What section 4 of the paper says besides Figure 3: how many items were returned, and which."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from duelpool.simulation import SimulationResult, Trial
from duelpool_reproduce.verdicts import Measured

OF = 1000  # the paper's trials, and the base of its counts
MANY = 100  # trials whose own variance is to be trusted
CHANCE = 20  # trials that the variance of a count by chance weighs as, where there are fewer
Count = Callable[[Trial], float]


def _wrong(trial: Trial) -> float:
    return len(trial.ranks) - trial.hits


def _beyond(trial: Trial) -> float:
    # As the paper counts prefBest's: a trial of case B that returns both of the best has found the best once, and
    # its other item is beyond that. Its 489 items beyond one a trial are 666 + 94 + 729 - 1,000.
    return len(trial.ranks) - (trial.hits > 0)


def _one_item(trial: Trial) -> float:
    return len(trial.ranks) == 1


def _ties(trial: Trial) -> float:
    return len(trial.ranks) > 1


def _surplus(trial: Trial) -> float:
    return len(trial.ranks) - 1


def _second(trial: Trial) -> float:
    return 1 in trial.ranks


def _third(trial: Trial) -> float:
    return 2 in trial.ranks


WORDS: Mapping[str, Count] = {
    "items returned that aren't best": _wrong,
    "items beyond the best returned": _beyond,
    "trials that return one item": _one_item,
    "trials that return several": _ties,
    "items beyond one a trial": _surplus,
    "trials that return item 1": _second,
    "trials that return item 2": _third,
    "right, were one returned": lambda trial: trial.single,
}


@dataclass(frozen=True, slots=True)
class TextCount:
    """A count of the paper's text: of which algorithm and case, and what is counted."""

    algorithm: str
    case: str
    words: str
    paper: float | None
    known: tuple[float, float] | None = None

    @property
    def is_share(self) -> bool:
        """Whether it counts trials, not items."""
        return self.words.startswith(("trials", "right"))


TEXT = (
    TextCount("DTS", "A", "items returned that aren't best", 922),
    TextCount("DTS", "A", "trials that return one item", 959),
    TextCount("DTS", "B", "items returned that aren't best", 357),
    TextCount("MergeDTS", "A", "items returned that aren't best", 1503),
    TextCount("MergeDTS", "B", "items returned that aren't best", 914),
    TextCount("Round-Efficient", "A", "items returned that aren't best", 1632),
    TextCount("Round-Efficient", "A", "trials that return one item", 559),
    TextCount("Round-Efficient", "B", "items returned that aren't best", 606),
    TextCount("prefBest", "A", "items returned that aren't best", 995),
    TextCount("prefBest", "A", "items beyond one a trial", 497),
    TextCount("prefBest", "A", "trials that return several", None),
    TextCount("prefBest", "A", "trials that return item 1", 323),
    TextCount("prefBest", "A", "trials that return item 2", 213),
    TextCount("prefBest", "A", "right, were one returned", None, (360, 360)),
    TextCount("prefBest", "B", "items beyond the best returned", 729),
    TextCount("prefBest", "B", "items beyond one a trial", 489),
    TextCount("prefBest", "B", "trials that return several", None),
    TextCount("prefBest + extra", "A", "items returned that aren't best", 780),
    TextCount("prefBest + extra", "A", "items beyond one a trial", 290),
    TextCount("prefBest + extra", "A", "trials that return several", None),
    TextCount("prefBest + extra", "A", "trials that return item 1", 302),
    TextCount("prefBest + extra", "A", "trials that return item 2", 166),
    TextCount("prefBest + extra", "A", "right, were one returned", None, (430, 440)),
    TextCount("prefBest + extra", "B", "items beyond the best returned", 430),
)


def _variance(values: Sequence[float], told: TextCount) -> float:
    """Return the trials' variance, for few of them drawn towards that of a count by chance about the stated mean.

    Few trials may hold none of the rare ones, and then their own variance says little.
    """
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    if len(values) >= MANY:
        return squares / (len(values) - 1)
    stated = told.paper if told.known is None else sum(told.known) / 2
    if stated is None:
        return squares / max(1, len(values) - 1)
    share = stated / OF
    by_chance = share * (1 - share) if told.is_share else share
    return (squares + CHANCE * by_chance) / (len(values) - 1 + CHANCE)


def returned(results: Sequence[tuple[str, SimulationResult, SimulationResult]]) -> list[Measured]:
    """Return the counts of the text, ours in 1,000 trials beside the paper's, each with its error."""
    by_name = {name: dict(zip("AB", cases, strict=True)) for name, *cases in results}
    rows = []
    for told in TEXT:
        if told.algorithm not in by_name:
            continue
        result = by_name[told.algorithm][told.case]
        values = [float(WORDS[told.words](trial)) for trial in result.outcomes]
        mean = math.fsum(values) / len(values)
        spread = _variance(values, told)
        rows.append(
            Measured(
                f"{told.algorithm}, {told.case}: {told.words}",
                told.paper,
                OF * mean,
                told.known,
                OF * math.sqrt(spread / len(values)),
                within=5 if told.paper is None else 0,
                part="Returned items, in 1,000 trials",
                digits=0,
                whole=OF if told.is_share else None,
                paper_error=OF * math.sqrt(spread / OF) if told.paper is not None else None,
                trials=len(values) if told.is_share else None,
            )
        )
    return rows
