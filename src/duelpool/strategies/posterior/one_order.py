"""One order of all items, and judgments that name the better of two with a constant accuracy.

The evidence is a sum over all K! orders, for each accuracy of a grid. Pairs may be stubborn: then each has a chance of
its own around the accuracy.

At low accuracies the sum is estimated by sequential Monte Carlo. Each particle builds an order from the last item up,
so that the first places, which matter most, are drawn last and stay varied. What the items that are left may still
bring is estimated beforehand: with positions u_i drawn uniformly from (-1, 1) instead of an order, the sum over orders
of exp(1/2 sum of d[a, b] over a above b) is about the product over i of sinh(s_i / 2) / (s_i / 2), s_i the sum of
d[i, b] over those left. Particles are drawn and weighed by a simpler function of the same shape; what it lacks cancels
at the end, when nothing is left.

At higher accuracies orders are drawn by Gibbs's sampler: items change their place within windows of the order. It sets
out from orders that are plausible already, by Bradley-Terry strengths. The evidence follows from one accuracy to the
next by integrating the mean gain in log likelihood.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Floats, Indices, Singles
from duelpool.strategies.posterior.games import (
    Component,
    GameTable,
    Truths,
    evenly,
    log_odds,
    pair_log_likelihood,
    places_of,
    ranks_of,
    systematic,
)
from duelpool.strategies.posterior.moves import moved_orders
from duelpool.strategies.posterior.stubborn import STUBBORNNESS, StubbornPairs

ORDER = "one order"
ACCURACIES: tuple[float, ...] = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
FAINT = 0.58
BUILT = (
    2  # so many accuracies are estimated by sequential Monte Carlo, the others from there; in large pools one
)
MOST_DENSE = 300  # items; beyond, products with the matrix of leads are sparse
RESAMPLE_EVERY = 4
WIDE = 25  # places that an item may move to at once; in large pools fewer, which takes less time
NARROW = 16
SWEEPS = 12
FEW_SWEEPS = 4  # enough in small pools, and where orders are nearly right to begin with
SMALL = 32
TOP_PLACES = 32  # the first places of drawn orders are moved more often: they decide the answer
TOP_SWEEPS = 6
TOP_ORDERS = 128
HOPELESS = 8.0  # nats below the best accuracy at which no higher one is tried

Matrix: TypeAlias = "scipy.sparse.csr_array"


@dataclass(frozen=True, slots=True)
class OrderSum:
    """The log evidence of one accuracy and stubbornness, and orders drawn from the posterior, the best item first."""

    accuracy: float
    stubbornness: float
    log_evidence: float
    orders: Indices


def order_components(games: GameTable, starts: Indices, chances: np.random.Generator) -> list[Component]:
    """Return a component for each accuracy and stubbornness; `starts` are plausible orders."""
    sums = OrderSums(games, ACCURACIES, [r for r, _ in STUBBORNNESS]).estimate(starts, chances)
    prior = {r: float(np.log(share / len(ACCURACIES))) for r, share in STUBBORNNESS}
    return [_component(games, each, prior[each.stubbornness]) for each in sums]


def _component(games: GameTable, known: OrderSum, log_prior: float) -> Component:
    q, r = known.accuracy, known.stubbornness

    def draw(count: int, chances: np.random.Generator) -> Truths:
        orders = known.orders[evenly(len(known.orders), min(count, TOP_ORDERS), chances)]
        if games.size > TOP_PLACES:
            leads = OrderSums(games, (q,), (r,)).lead(0, 0)[None]
            orders = moved_orders(orders[None], leads, TOP_SWEEPS, chances, window=NARROW, depth=TOP_PLACES)[
                0
            ]
        places = places_of(orders)[evenly(len(orders), count, chances)]
        if not r:
            return Truths(places, np.where(places == 0, 0.0, log_odds(q)))
        score, behind = StubbornPairs(games, r).drawn(places, q, chances)
        return Truths(ranks_of(score), behind)

    return Component(ORDER, (q, r), known.log_evidence + log_prior, q < FAINT, draw)


class OrderSums:
    """Sums over all orders, for ascending accuracies and several degrees of stubbornness at once."""

    def __init__(self, games: GameTable, accuracies: Sequence[float], stubbornness: Sequence[float]) -> None:
        self.games = games
        self.accuracies = tuple(accuracies)
        self.stubbornness = tuple(stubbornness)
        above, below = (
            np.array([[pair_log_likelihood(*pair, q, r) for q in accuracies] for r in stubbornness])
            for pair in ((games.won, games.lost), (games.lost, games.won))
        )
        self._lead = above - below  # (stubbornness, accuracy, pair)
        self._even = ((above + below) / 2).sum(axis=2)

    def estimate(self, starts: Indices, chances: np.random.Generator) -> list[OrderSum]:
        """Return the sums for each degree of stubbornness, until higher accuracies are out of the question.

        `starts` are plausible orders, from which the orders of the higher accuracies set out.
        """
        built = min(BUILT if self.games.size <= MOST_DENSE else 1, len(self.accuracies))
        chains = [[(r, at) for at in range(built)] for r in range(len(self.stubbornness))]
        log_sums, drawn = self._built([each for chain in chains for each in chain], len(starts), chances)
        found: list[OrderSum] = []
        last: dict[int, OrderSum] = {}
        most: dict[int, float] = {}
        for number, (r, at) in enumerate(each for chain in chains for each in chain):
            last[r] = OrderSum(
                self.accuracies[at], self.stubbornness[r], float(log_sums[number]), drawn[number]
            )
            most[r] = max(most.get(r, -np.inf), last[r].log_evidence)
            found.append(last[r])
        orders: dict[int, Indices] = dict.fromkeys(last, starts)
        for at in range(built, len(self.accuracies)):
            hopeful = [r for r in last if last[r].log_evidence >= most[r] - HOPELESS]
            if not hopeful:
                break
            orders = self._moved(at, hopeful, orders, chances)
            for r in hopeful:
                log_sum = last[r].log_evidence + self._step(r, at, last[r].orders, orders[r])
                last[r] = OrderSum(self.accuracies[at], self.stubbornness[r], log_sum, orders[r])
                most[r] = max(most[r], log_sum)
                found.append(last[r])
        return found

    def _moved(
        self, at: int, chains: Sequence[int], orders: dict[int, Indices], chances: np.random.Generator
    ) -> dict[int, Indices]:
        """Return orders at one accuracy for each degree of stubbornness, from those at the accuracy below.

        Where pairs aren't stubborn, orders are sharper and take longer to settle; the other chains set out from them.
        """
        small = self.games.size <= SMALL
        window = WIDE if self.games.size <= MOST_DENSE else NARROW
        moved: dict[int, Indices] = {}
        plain = [r for r in chains if not self.stubbornness[r]]
        for r in plain:
            leads = self.lead(r, at)[None]
            moved[r] = moved_orders(
                orders[r][None], leads, FEW_SWEEPS if small else SWEEPS, chances, window=window
            )[0]
        stubborn = [r for r in chains if self.stubbornness[r]]
        if stubborn:
            leads = np.array([self.lead(r, at) for r in stubborn])
            starts = np.array([moved[plain[0]] if plain else orders[r] for r in stubborn])
            moved |= zip(
                stubborn, moved_orders(starts, leads, FEW_SWEEPS, chances, window=window), strict=True
            )
        return moved

    def _step(self, r: int, at: int, lower: Indices, higher: Indices) -> float:
        """Return how the log evidence changes from one accuracy to the next, from orders drawn at each.

        The change is the integral of the mean gain along the way between the two: the rule of trapezoids, corrected
        by the gain's variance at both ends, which is the slope of the mean.
        """
        gains = [
            self._log_likelihood(own, r, at) - self._log_likelihood(own, r, at - 1) for own in (lower, higher)
        ]
        slopes = [gain.var(ddof=1) if len(gain) > 1 else 0.0 for gain in gains]
        return float((gains[0].mean() + gains[1].mean()) / 2 - (slopes[1] - slopes[0]) / 12)

    def _log_likelihood(self, orders: Indices, r: int, at: int) -> Floats:
        """Return the log likelihood of the judgments under each order."""
        place = places_of(orders)
        higher = place[:, self.games.first] < place[:, self.games.second]
        return np.asarray(self._even[r, at] + np.where(higher, 0.5, -0.5) @ self._lead[r, at])

    def lead(self, r: int, at: int) -> Singles:
        """Return the log ratio of "a above b" to "b above a" for all items a and b."""
        games = self.games
        lead = np.zeros((games.size, games.size), dtype=np.float32)
        lead[games.first, games.second] = self._lead[r, at]
        lead[games.second, games.first] = -self._lead[r, at]
        return lead

    def _built(
        self, settings: Sequence[tuple[int, int]], particles: int, chances: np.random.Generator
    ) -> tuple[Floats, Indices]:
        """Return the log evidence of each setting, and orders drawn for each, by sequential Monte Carlo."""
        size, groups = self.games.size, len(settings)
        rows = groups * particles
        leads = np.array([self.lead(*setting) for setting in settings])
        sparse = [scipy.sparse.csr_array(each) for each in leads] if size > MOST_DENSE else []
        group, row = np.repeat(np.arange(groups), particles), np.arange(rows)
        s = np.repeat(leads.sum(axis=2), particles, axis=0)
        out = np.zeros((rows, size), dtype=np.float32)  # minus infinity: already placed
        alive = np.ones((rows, size), dtype=np.float32)
        order = np.empty((rows, size), dtype=np.intp)
        log_sum = np.array([self._even[setting] for setting in settings])
        root = np.sqrt(1 + s * s / 36)
        ahead = 3.0 * root.sum(axis=1, dtype=np.float64)
        log_weight = ahead - 3.0 * size
        for placed in range(size):
            logit = _beyond(s / (12 * root), leads, sparse)
            logit -= 0.5 * s
            logit -= 3.0 * root
            logit += out
            top = logit.max(axis=1)
            ladder = np.exp(logit - top[:, None]).cumsum(axis=1)
            whole = ladder[:, -1]
            mark = chances.random(rows, dtype=np.float32) * whole * np.float32(0.9999998)
            taken = (ladder <= mark[:, None]).sum(axis=1)
            log_chance = (logit[row, taken] - top).astype(np.float64) - np.log(whole)
            log_weight -= 0.5 * s[row, taken] + log_chance + np.log(size - placed)
            order[:, size - 1 - placed] = taken
            s += leads[group, taken]
            alive[row, taken] = 0
            out[row, taken] = -np.inf
            s *= alive
            root = np.sqrt(1 + s * s / 36)
            now = 3.0 * root.sum(axis=1, dtype=np.float64)
            log_weight += now - ahead
            ahead = now
            last = placed == size - 1
            if not last and placed % RESAMPLE_EVERY != RESAMPLE_EVERY - 1:
                continue
            for g in range(groups):
                own = slice(g * particles, (g + 1) * particles)
                most = log_weight[own].max()
                weight = np.exp(log_weight[own] - most)
                if not last and weight.sum() ** 2 > particles / 2 * np.square(weight).sum():
                    continue
                log_sum[g] += most + np.log(weight.mean())
                kept = systematic(weight, particles, chances) + own.start
                for state in (s, out, alive, order, root, ahead):
                    state[own] = state[kept]
                log_weight[own] = 0.0
        return log_sum, order.reshape(groups, particles, size)


def _beyond(slope: Singles, leads: Singles, sparse: Sequence[Matrix]) -> Singles:
    """Return for each item what its removal changes in the sums of the others, to first order."""
    groups, size = leads.shape[:2]
    by_group = slope.reshape(groups, -1, size)
    if not sparse:
        return np.asarray(
            np.matmul(by_group, leads.transpose(0, 2, 1)).reshape(slope.shape), dtype=np.float32
        )
    return np.concatenate(
        [np.asarray((lead @ own.T).T, dtype=np.float32) for lead, own in zip(sparse, by_group, strict=True)]
    )
