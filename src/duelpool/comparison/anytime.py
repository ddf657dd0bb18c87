"""Comparisons of runs that hold at every look: confidence sequences from bets on topics, in the order of their arrival.

A bet is made on each topic before its difference is known, so that no way of betting can be expected to win while the
hypothesis is true. Bets that have multiplied their stake by 1 / alpha at any time are evidence against it at the level
alpha, however often there was a look (Ville's inequality). The interval at a look holds every centre against which no
bets, now or before, have won that much. Topics are taken as drawn one after another from an endless supply like them.

symmetric  a difference and its mirror image about the centre are equally likely: at the centre 0, the runs could swap
           their names on any topic, as in Fisher's randomisation test. A bet x wins tanh(x (difference - centre)).
bounded    differences have the centre as their mean, and lie within limits; nothing else. A bet x wins
           x (difference - centre), x being small enough that no difference within the limits loses all
           (hedged capital: Waudby-Smith and Ramdas, 2024).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from duelpool.arrays import Bools, Floats
from duelpool.comparison.scores import ScoreTable
from duelpool.errors import BadParameter, UnknownName

AnytimeMethod: TypeAlias = Literal["symmetric", "bounded"]
ANYTIME: tuple[AnytimeMethod, ...] = get_args(AnytimeMethod)


def anytime_method(name: str) -> AnytimeMethod:
    """Return a way to bet by its name."""
    for each in ANYTIME:
        if each == name:
            return each
    raise UnknownName("way to bet", name, ANYTIME)


_HORIZONS = (8, 32, 128, 512)  # topics for which bets are best, a quarter of the stake each
_FADES = 0.25  # bets also get smaller as topics grow in number: then skewed differences matter less and less
_MOST = 0.9  # of the stake that a bounded bet may lose on a topic
_GUESS = 0.1  # of the limits: the spread of differences, before any is known
_STEPS = 50


@dataclass(frozen=True, slots=True)
class AnytimeDifference:
    """How run a differs from run b, right at every look, over the topics that both have, in their order."""

    a: str
    b: str
    topics: int
    mean: float  # of a - b
    low: float  # an interval of the centre of a - b: no look so far, nor a later one, makes it wrong
    high: float
    p: float  # the least of all looks so far: it may be compared with alpha at any of them
    decided_at: int | None  # the number of topics at which 0 was first outside
    method: AnytimeMethod


@dataclass(frozen=True, slots=True, eq=False)
class BetSequence:
    """Bets on differences that arrive one after another: a row a sequence, nan where there is no difference."""

    differences: Floats
    limits: tuple[float, float]  # of the differences
    method: AnytimeMethod
    stakes: tuple[Floats, ...]  # for each horizon: known before the difference that they are bet on

    @classmethod
    def of(
        cls,
        differences: Floats,
        *,
        limits: tuple[float, float] = (-np.inf, np.inf),
        method: AnytimeMethod = "symmetric",
        alpha: float = 0.05,
    ) -> "BetSequence":
        """Make the bets for differences in rows; `alpha` says how soon they should win, not what they prove."""
        if method not in ANYTIME:
            raise UnknownName("any-time method", method, ANYTIME)
        if not 0 < alpha < 1:
            raise BadParameter(f"The level alpha lies between 0 and 1, not at {alpha:g}.")
        rows = np.atleast_2d(np.asarray(differences, dtype=np.float64))
        known = ~np.isnan(rows)
        if (rows[known] < limits[0] - 1e-9).any() or (rows[known] > limits[1] + 1e-9).any():
            raise BadParameter(f"A difference lies outside the limits {limits[0]:g} and {limits[1]:g}.")
        if method == "bounded" and not np.isfinite(limits).all():
            raise BadParameter(
                "Bounded bets need a measure with a lowest and a highest value.",
                remedy="Choose such a measure (nDCG instead of DCG), or the method symmetric.",
            )
        before, variance = _spread_before(np.where(known, rows, 0.0), known, limits)
        enough = 2 * np.log(2 / alpha)
        with np.errstate(divide="ignore"):
            stakes = [
                np.where(variance > 0, np.sqrt(enough / (variance * np.maximum(each, _FADES * before))), 0.0)
                for each in _HORIZONS
            ]
        return cls(rows, limits, method, tuple(stakes))

    def log_wealth(self, centre: Floats | float = 0.0, *, sign: int = 1) -> Floats:
        """Return the logarithm of what bets that the centre is above this one (sign 1) or below it have made of 1."""
        at = np.broadcast_to(np.asarray(centre, dtype=np.float64), len(self.differences))[:, None]
        off = np.where(np.isnan(self.differences), 0.0, sign * (self.differences - at))
        logs = []
        for stake in self.stakes:
            if self.method == "symmetric":
                won = np.log(2) - np.logaddexp(0.0, -2 * stake * off)
            else:
                room = sign * (at - self.limits[0 if sign > 0 else 1])  # how far below the centre one can be
                won = np.log1p(np.minimum(stake, _MOST / np.maximum(room, 1e-12)) * off)
            logs.append(np.cumsum(won, axis=1))
        wealth: Floats = np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))
        return wealth

    def p_values(self, centre: Floats | float = 0.0) -> Floats:
        """Return for each look the least p of the looks so far, two-sided, against a centre."""
        both = np.maximum(self.log_wealth(centre), self.log_wealth(centre, sign=-1))
        most = np.maximum.accumulate(both, axis=1)
        p: Floats = np.minimum(1.0, 2 * np.exp(-most))
        return p

    def bounds(self, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Return the ends of the interval of each sequence's centre at the last look, by bisection."""
        return self._bound(alpha, 1), self._bound(alpha, -1)

    def _bound(self, alpha: float, sign: int) -> Floats:
        """Return the outermost centre that isn't beaten from below (sign 1) or from above."""
        rows, enough = len(self.differences), np.log(2 / alpha)
        end = self.limits[0 if sign > 0 else 1]
        known = np.where(np.isnan(self.differences), 0.0, self.differences)
        inner = (known.max(axis=1, initial=0.0) if sign > 0 else known.min(axis=1, initial=0.0)) + sign * 1e-9
        outer = np.full(rows, end)
        if not np.isfinite(end):  # a symmetric bet on a centre far enough away wins all that it can
            reach = np.max([np.divide(40.0, stake, out=np.zeros_like(stake), where=stake > 0).max(axis=1)
                            for stake in self.stakes], axis=0)  # fmt: skip
            outer = (
                known.min(axis=1, initial=0.0) if sign > 0 else known.max(axis=1, initial=0.0)
            ) - sign * (reach + 1e-9)

        def beaten(centre: Floats) -> Bools:
            return np.asarray(self.log_wealth(centre, sign=sign).max(axis=1, initial=0.0) >= enough, np.bool_)

        never = ~beaten(outer)
        outside, inside = outer.copy(), inner
        for _ in range(_STEPS):
            middle = (outside + inside) / 2
            hit = beaten(middle)
            outside, inside = np.where(hit, middle, outside), np.where(hit, inside, middle)
        bound: Floats = np.where(never, end, outside)
        return bound


def _spread_before(values: Floats, known: Bools, limits: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the number of differences before each one, and their variance as far as it was known then."""
    count = np.cumsum(known, axis=1)
    mean = np.cumsum(values, axis=1) / (count + 1)
    squares = np.cumsum(np.where(known, (values - mean) ** 2, 0.0), axis=1)
    span = limits[1] - limits[0]
    if np.isfinite(span):
        guess = np.full_like(values, (_GUESS * span / 2) ** 2)
    else:  # the largest difference so far; no bets before the first that isn't 0
        guess = np.maximum.accumulate(values**2, axis=1)
    first = np.zeros((len(values), 1))
    start = guess[:, :1] if np.isfinite(span) else first
    variance = np.hstack((start, ((guess + squares) / (count + 1))[:, :-1]))
    return np.hstack((first, count[:, :-1])), variance


def difference_limits(table: ScoreTable) -> tuple[float, float]:
    """Return the least and the largest difference of two values of the table's measure."""
    span = table.limits[1] - table.limits[0]
    return -span, span


def _refuse_weights(table: ScoreTable) -> None:
    if table.weights.size and np.ptp(table.weights) > 0:
        raise BadParameter(
            "Comparisons at any time count all topics alike, and here topics weigh differently.",
            remedy="Leave the weights out, or choose a test for a number of topics that is fixed in advance.",
        )


def anytime_means(table: ScoreTable, alpha: float = 0.05) -> Floats:
    """Return a low and a high end of each run's mean, right at every look; topics count in the table's order.

    By bounded bets, so the measure needs a lowest and a highest value. A run without a topic has the limits.
    """
    _refuse_weights(table)
    centre, half = sum(table.limits) / 2, (table.limits[1] - table.limits[0]) / 2
    bets = BetSequence.of(table.values - centre, limits=(-half, half), method="bounded", alpha=alpha)
    ends: Floats = np.column_stack(bets.bounds(alpha)) + centre
    return ends


def anytime_difference(
    table: ScoreTable, a: str, b: str, *, method: AnytimeMethod = "symmetric", alpha: float = 0.05
) -> AnytimeDifference:
    """Compare two runs in a way that holds at every look; topics count in the table's order.

    The order must be that in which topics arrive, the same at each look, and must not depend on who wins them.
    """
    _refuse_weights(table)
    gaps = table.row(a) - table.row(b)
    gaps = gaps[~np.isnan(gaps)]
    limits = difference_limits(table)
    if not len(gaps):
        return AnytimeDifference(a, b, 0, np.nan, *limits, 1.0, None, method)
    bets = BetSequence.of(gaps, limits=limits, method=method, alpha=alpha)
    (low,), (high,) = bets.bounds(alpha)
    p = bets.p_values()[0]
    decided = np.flatnonzero(p <= alpha)
    first = int(decided[0]) + 1 if len(decided) else None
    return AnytimeDifference(
        a, b, len(gaps), float(gaps.mean()), float(low), float(high), float(p[-1]), first, method
    )


def anytime_behind(
    table: ScoreTable, alpha: float = 0.05, *, method: AnytimeMethod = "symmetric"
) -> set[str]:
    """Return the runs that aren't first, right at every look: equal runs are ever named with a chance of alpha at most.

    For each run the bets against it by all others are averaged: if it is first, or one of several, none of them can be
    expected to win. A run is behind where that average has reached the number of runs, divided by alpha: each run is
    tested. This names every run that a correction for all ordered pairs names.
    """
    runs = table.runs
    if len(runs) < 2 or not len(table.topics):
        return set()
    limits, count = difference_limits(table), len(runs)
    behind = set()
    for at, run in enumerate(runs):
        gaps = np.delete(table.values, at, axis=0) - table.values[at]
        bets = BetSequence.of(gaps, limits=limits, method=method, alpha=2 * alpha / (count * (count - 1)))
        against: Floats = np.logaddexp.reduce(bets.log_wealth(), axis=0) - np.log(count - 1)
        if against.max() >= np.log(count / alpha):
            behind.add(run)
    return behind
