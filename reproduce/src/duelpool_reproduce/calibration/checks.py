"""Each bar of the calibration as a check: a figure, what it may be at most or must be at least, and a verdict."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from duelpool.simulation import Calibration, SimulationResult, Trial
from duelpool_reproduce.calibration.problems import (
    GOAL_OVER,
    LEAST_REFUSED,
    LEAST_RIGHT_WHEN_STOPPED,
    LEAST_STOPPED,
    MOST_OVER,
    MOST_OVER_POOLED,
    SPEAKING,
    SURE,
)
from duelpool_reproduce.verdicts import (
    KEPT,
    MISSED,
    NEVER_STOPPED,
    NONE_STOPPED,
    NOT_TO_BE_HAD,
    TOO_FEW,
    Measured,
)

POOLED = "all problems"
CHANCES: Mapping[str, str] = {"best": "best", "top_five": "top 5", "near_best": "near best"}
"""The chances that are held to bars, and their names in the tables."""
NOT_STATED = "The strategy states no such chance."
NEVER_RIGHT = "Where judges flip coins, the few campaigns that stop are wrong."
WORST = (MISSED, TOO_FEW, NOT_TO_BE_HAD, NONE_STOPPED, KEPT)
"""The verdicts of several figures come to the first of these that one of them has."""
SELDOM_SURE: Mapping[str, str] = {
    "B": "With 7 judgments an item the answers also fit one order of all items, by which the first is less sure."
}
"""Why fewer campaigns stop on a problem than its bar asks for."""


@dataclass(frozen=True, slots=True)
class BarCheck:
    """One figure of one problem, and its bar: at most, or with `least` at least.

    `error` is the figure's standard error; `value` is None where there is nothing to measure, for the reason `why`.
    """

    problem: str
    figure: str
    value: float | None
    bar: float
    error: float = 0.0
    least: bool = False
    why: str = ""

    @property
    def verdict(self) -> str:
        """Its verdict."""
        return self.measured().verdict

    def measured(self) -> Measured:
        """Return it as a figure with a verdict beside what is asked."""
        ends = (self.bar, math.inf) if self.least else (-math.inf, self.bar)
        figure = f"{self.problem}: {self.figure}"
        return Measured(
            figure,
            None,
            self.value,
            ends,
            self.error,
            why=self.why,
            kind="bar",
            whole=1.0,
        )


def worst_of(checks: Iterable[BarCheck]) -> str:
    """Return the worst verdict of some figures, and which have it where others don't."""
    by_verdict: dict[str, list[str]] = {}
    for each in checks:
        by_verdict.setdefault(each.verdict, []).append(each.figure.partition(",")[0])
    word = next((word for word in WORST if word in by_verdict), "")
    return word if len(by_verdict) < 2 else f"{word}: {', '.join(by_verdict[word])}"


def over(problem: str, trials: Iterable[Trial], chance: str, bar: float = MOST_OVER) -> BarCheck:
    """Return by how much stated exceeds right."""
    found = Calibration.of(trials, chance)
    figure = f"{CHANCES[chance]}, stated less right"
    if found.stated is None or found.error is None:
        return BarCheck(problem, figure, None, bar, why=NOT_STATED)
    return BarCheck(problem, figure, found.stated - found.right, bar, error_of(found))


def error_of(found: Calibration) -> float:
    """Return the standard error of stated less right; where few trials all end alike, that of a share as stated.

    A share moves in steps of one trial, so that half of one is the least error.
    """
    stated = found.stated or 0.0
    return max(
        found.error or 0.0, math.sqrt(stated * (1.0 - stated) / found.trials), 1.0 / (2.0 * found.trials)
    )


def share_error(share: float, bar: float, trials: int) -> float:
    """Return the standard error of a share, or where it is larger that of one at its bar."""
    return max(math.sqrt(share * (1.0 - share) / trials), math.sqrt(bar * (1.0 - bar) / trials), 0.5 / trials)


def checks_of_stated(results: Mapping[str, SimulationResult]) -> tuple[BarCheck, ...]:
    """Return what is asked of the stated chances, problem by problem and pooled."""
    checks = []
    for name, result in results.items():
        checks += [over(name, result.outcomes, chance) for chance in CHANCES]
        found = result.calibration()
        if found.stated is None or found.refused is None:
            continue
        if (least := LEAST_REFUSED.get(name)) is not None:
            error = share_error(found.refused, least, found.trials)
            checks.append(BarCheck(name, "refused", found.refused, least, error, least=True))
        if (asked := SPEAKING.get(name)) is not None:
            error = share_error(found.refused, asked.refused, found.trials)
            checks.append(BarCheck(name, "refused", found.refused, asked.refused, error))
            modest = found.right - found.stated
            checks.append(BarCheck(name, "best, right less stated", modest, asked.modest, error_of(found)))
    pooled = [trial for result in results.values() for trial in result.outcomes]
    if pooled:
        checks += [over(POOLED, pooled, chance, MOST_OVER_POOLED) for chance in CHANCES]
    return tuple(checks)


def checks_of_stops(results: Mapping[str, SimulationResult]) -> tuple[BarCheck, ...]:
    """Return what is asked of campaigns that stop once they are sure enough."""
    checks = []
    for name, result in results.items():
        early = result.stopped
        checks.append(_right_when_stopped(name, early))
        if (least := LEAST_STOPPED.get(name)) is not None:
            share = len(early) / result.trials
            error = share_error(share, least, result.trials)
            why = SELDOM_SURE.get(name, "") if share < least else ""
            checks.append(
                BarCheck(name, "stopped within 7 an item", share, least, error, least=True, why=why)
            )
    if results:
        early = tuple(trial for result in results.values() for trial in result.stopped)
        checks.append(_right_when_stopped(POOLED, early))
    return tuple(checks)


def _right_when_stopped(name: str, early: tuple[Trial, ...]) -> BarCheck:
    figure, bar = f"right when it stopped at {SURE:g}", LEAST_RIGHT_WHEN_STOPPED
    if not early:
        return BarCheck(name, figure, None, bar, least=True, why=NEVER_STOPPED)
    right = sum(trial.hits > 0 for trial in early) / len(early)
    why = NEVER_RIGHT if name in LEAST_REFUSED and right < bar else ""
    return BarCheck(name, figure, right, bar, share_error(right, bar, len(early)), least=True, why=why)


def within_goal(checks: Iterable[BarCheck]) -> tuple[int, int]:
    """Return how many problems' stated chances of the best exceed right by no more than the goal, and of how many."""
    figure = f"{CHANCES['best']}, stated less right"
    values = [each.value for each in checks if each.figure == figure and each.problem != POOLED]
    known = [value for value in values if value is not None]
    return sum(value <= GOAL_OVER for value in known), len(known)
