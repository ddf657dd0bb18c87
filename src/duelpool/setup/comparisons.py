"""The dry run's simulation, in pieces that a worker can do: which strategies, what judges, what came of each."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from duelpool.campaign import Settings
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.setup.forecasts import Forecast, every_strategy, forecast
from duelpool.setup.pilots import (
    FittedJudges,
    Observed,
    Recommendation,
    candidates,
    fit_judges,
    recommend,
)
from duelpool.simulation.cost import SIMULATED_JUDGES, Pay

USUAL = FittedJudges(
    SIMULATED_JUDGES, "Simulated judges with default noise; a pilot measures the noise of yours."
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is to be compared: strategies on pools of these sizes, for this pay, by judges like a pilot's."""

    sizes: tuple[int, ...]
    strategy: str
    pay: Pay
    cap: int
    seed: int
    max_cost: int | None = None
    observed: Observed | None = None

    @classmethod
    def of(
        cls,
        sizes: Iterable[int],
        settings: Settings,
        max_cost: int | None = None,
        observed: Observed | None = None,
    ) -> "Comparison":
        """Return the comparison that a campaign's settings ask for."""
        pay = Pay(settings.reward, settings.fee_percent, settings.targets)
        return cls(tuple(sizes), settings.strategy, pay, settings.cap, settings.seed, max_cost, observed)

    def as_json(self) -> dict[str, Any]:
        """Return the comparison for another process."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Comparison":
        """Return the comparison that another process has written."""
        seen = values["observed"]
        observed = None if seen is None else Observed(**{**seen, "sizes": tuple(seen["sizes"])})
        given = {**values, "sizes": tuple(values["sizes"]), "pay": Pay(**values["pay"])}
        return cls(**{**given, "observed": observed})

    def strategies(self) -> tuple[str, ...]:
        """Return the strategies: the chosen one, all others, and under a cap or after a pilot with parameters."""
        names = [self.strategy, *every_strategy(self.cap)]
        if self.max_cost is not None or self.observed is not None:
            usable = self.observed.usable if self.observed is not None else 1.0
            names += candidates(self.sizes, self.pay, self.max_cost, usable)
        return tuple(dict.fromkeys(names))

    def likeness(self) -> FittedJudges:
        """Return the judges to simulate with."""
        if self.observed is None or not self.observed.judgments:
            return USUAL
        return fit_judges(self.observed, cap=self.cap, seed=self.seed)

    def forecast(self, strategy: str, judges: str) -> Forecast | None:
        """Return what a strategy takes and finds; None for one that can't be made under this cap."""
        usable = self.observed.usable if self.observed is not None else 1.0
        try:
            return forecast(
                self.sizes, strategy, self.pay, cap=self.cap, judges=judges, usable=usable, seed=self.seed
            )
        except BadParameter:
            return None


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison has come to so far; `left` counts the strategies that are still to be simulated."""

    likeness: FittedJudges
    forecasts: tuple[Forecast, ...]
    left: int
    recommendation: Recommendation | None = None

    def as_json(self) -> dict[str, Any]:
        """Return everything for a program."""
        return {
            "judges": self.likeness.judges,
            "note": self.likeness.note,
            "left": self.left,
            "forecasts": [dataclasses.asdict(each) for each in self.forecasts],
            "recommendation": None
            if self.recommendation is None
            else dataclasses.asdict(self.recommendation),
        }


def compare(asked: Comparison, told: Callable[[Compared], None] | None = None) -> Compared:
    """Simulate every strategy, one after another; `told` hears how far it is."""
    likeness = asked.likeness()
    names = asked.strategies()
    found: list[Forecast] = []
    now = Compared(likeness, (), len(names))
    for at, name in enumerate(names, 1):
        if told is not None:
            told(now)
        one = asked.forecast(name, likeness.judges)
        found += [one] if one is not None else []
        now = Compared(likeness, tuple(found), len(names) - at)
    if not found:
        raise DuelpoolError("No strategy can be simulated.", remedy="Check the cap.")
    whole = dataclasses.replace(now, recommendation=recommend(found, asked.max_cost))
    if told is not None:
        told(whole)
    return whole
