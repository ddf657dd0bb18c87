"""The posterior over all items: several models of how people judge, each weighed by how well it explains the answers.

- coins: nothing but chance;
- strengths: Bradley-Terry, with an unknown spread of the strengths;
- one order: judgments name the better item with a constant, unknown accuracy;
- leaders: one to three equal best items above equal others.

A model's weight is its marginal likelihood, in which the order of the judgments has no part. Coins and one order come
also with stubborn pairs, whose repeats agree with each other more than with the order.
"""

from dataclasses import dataclass, replace

import numpy as np

from duelpool.arrays import Bools, Floats, Indices
from duelpool.strategies.posterior.coins import COINS, coin_components
from duelpool.strategies.posterior.games import GameTable, systematic
from duelpool.strategies.posterior.leaders import LEADERS, leader_components
from duelpool.strategies.posterior.one_order import ORDER, order_components
from duelpool.strategies.posterior.strengths import STRENGTHS, strength_components

PRIOR = {COINS: 0.2, STRENGTHS: 0.2, ORDER: 0.35, LEADERS: 0.25}
DRAWS = 512
PARTICLES = 30  # orders that are moved at once, fewer in large pools
LARGE = 6400
ENOUGH, SCARCE = (
    7.0,
    3.5,
)  # judgments an item: with fewer than enough, the most cautious model counts, the more the scarcer
LIKELY = 0.05  # a model of less weight isn't asked how cautious it is


@dataclass(frozen=True, slots=True)
class MixturePart:
    """A component of the mixture and its weight."""

    model: str
    setting: tuple[float, ...]
    weight: float
    faint: bool


@dataclass(frozen=True, slots=True)
class Posterior:
    """Possible truths, all equally likely: how many items are above each item, and the log odds it is behind the best.

    `faint` is the weight of those parts by which no answer could tell the items apart; `source` is the part that each
    draw comes from; `caution`, from 0 to 1, is how far the most cautious model counts.
    """

    above: Indices  # (draws, items)
    behind: Floats  # (draws, items)
    faint: float
    parts: tuple[MixturePart, ...]
    source: Indices
    caution: float = 0.0

    @property
    def best(self) -> Floats:
        """The chance of each item to be a best one."""
        return np.asarray((self.above == 0).mean(axis=0), dtype=np.float64)

    def stated(self, holds: Bools) -> float:
        """Return the chance of something that holds in some of the draws, as it is to be stated.

        Few judgments can't tell the models from each other. Then the chance is that of the most cautious among the
        likely ones, coins aside.
        """
        mean = min(float(holds.mean()), 1 - 1 / (len(holds) + 1))
        if not self.caution:
            return mean
        models = np.array([part.model for part in self.parts])[self.source]
        own = [holds[models == model] for model in (STRENGTHS, ORDER, LEADERS)]
        least = min([mean, *(float(each.mean()) for each in own if len(each) >= LIKELY * len(holds))])
        return (1 - self.caution) * mean + self.caution * least

    def tilted(self, log_weight: Floats, chances: np.random.Generator) -> "Posterior":
        """Return the posterior where an item's being the best has a log weight beforehand."""
        first = (self.above == 0) / (self.above == 0).sum(axis=1, keepdims=True)
        weight = first @ np.exp(log_weight - log_weight.max())
        kept = np.sort(systematic(weight, len(weight), chances))
        return replace(self, above=self.above[kept], behind=self.behind[kept], source=self.source[kept])

    def weight_of(self, model: str) -> float:
        """Return the weight of a model."""
        return sum(part.weight for part in self.parts if part.model == model)


def posterior_of(games: GameTable, chances: np.random.Generator, draws: int = DRAWS) -> Posterior:
    """Return the posterior of two items or more, from their games."""
    starts = max(12, min(PARTICLES, LARGE // games.size))
    by_strength, orders = strength_components(games, chances, starts)
    components = [
        *coin_components(games),
        *by_strength,
        *order_components(games, orders, chances),
        *leader_components(games),
    ]
    log_weights = np.array([each.log_weight + np.log(PRIOR[each.model]) for each in components])
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    source = np.sort(systematic(weights, draws, chances))
    counts = np.bincount(source, minlength=len(components)).tolist()
    truths = [each.draw(count, chances) for each, count in zip(components, counts, strict=True) if count]
    parts = tuple(
        MixturePart(each.model, each.setting, weight, each.faint)
        for each, weight in zip(components, weights.tolist(), strict=True)
    )
    return Posterior(
        np.concatenate([each.above for each in truths]),
        np.concatenate([each.behind for each in truths]),
        sum(part.weight for part in parts if part.faint),
        parts,
        source,
        min(1.0, max(0.0, (ENOUGH - games.judged / games.size) / (ENOUGH - SCARCE))),
    )
