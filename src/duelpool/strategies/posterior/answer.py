"""The answer that a posterior gives: the items in levels, and how sure that is."""

import math
from dataclasses import dataclass

import numpy as np

from duelpool.arrays import Bools, Floats, Indices
from duelpool.errors import BadParameter
from duelpool.records import Certainty
from duelpool.strategies.posterior.games import GameTable, log_odds
from duelpool.strategies.posterior.mixture import Posterior, posterior_of
from duelpool.strategies.tables.win_table import DecidedPairs

EPSILON = 0.1
SHARE = 0.1
TOP = 5
MOST_TIED = 8  # items in the first level, and never more than half of the pool
FAINT_MOST = 0.47  # beyond this weight of chance alone nothing is stated
NEARLY = 0.65  # items whose chance is at least this share of the largest: another rule may choose among them
ASSUMPTION = (
    "judgments follow one of four models: flipped coins, Bradley-Terry strengths, one order judged with a constant "
    "accuracy, or a few equal best items above equal others"
)


@dataclass(frozen=True, slots=True)
class WantedCertainty:
    """What is to be stated, and what confidence is wanted of it; `epsilon` or `share`: it is wanted of that."""

    wanted: float | None = None
    epsilon: float | None = None
    share: float | None = None
    tie_share: float = 0.3
    top: int = 1

    def __post_init__(self) -> None:
        if self.epsilon is not None and not 0 < self.epsilon < 0.5:
            raise BadParameter(f"'epsilon' lies between 0 and 0.5, not at {self.epsilon}.")
        if self.share is not None and not 0 < self.share <= 1:
            raise BadParameter(f"'top_share' lies above 0 and at most at 1, not at {self.share}.")
        if self.epsilon is not None and self.share is not None and self.wanted is not None:
            raise BadParameter(
                "A confidence is wanted of 'epsilon' or of 'top_share', not of both.",
                remedy="Give one of them.",
            )

    @property
    def by_best(self) -> bool:
        """Whether the confidence is wanted of the best item itself."""
        return self.epsilon is None and self.share is None

    def reached(self, answer: "PoolAnswer") -> bool:
        """Whether an answer is as sure as it is wanted to be."""
        known = answer.certainty
        if known is None or self.wanted is None:
            return False
        stated = known.best
        if self.epsilon is not None:
            stated = known.near_best
        elif self.share is not None:
            stated = known.top_share
        return stated is not None and stated >= self.wanted


@dataclass(frozen=True, slots=True)
class PoolAnswer:
    """The items by their places in the pool, in levels without those that are out, and each one's chance to be best."""

    levels: tuple[tuple[int, ...], ...]
    best: Floats
    certainty: Certainty | None


def answer_of(
    pairs: DecidedPairs,
    bad: Bools,
    statement: WantedCertainty,
    chances: np.random.Generator,
    *,
    favoured: Floats,
    prior: Floats | None = None,
) -> PoolAnswer:
    """Return the answer to all judgments of a pool; items that are `bad` are out.

    Among items that are nearly equally likely to be the best, the first is the one that is `favoured` most. `prior` is
    the log weight that knowledge from elsewhere gives to an item being the best.
    """
    items = np.flatnonzero(~bad)
    best = np.zeros(len(bad))
    if len(items) < 2:
        best[items] = 1.0
        sure = Certainty(best=1.0) if len(items) else None
        return PoolAnswer(tuple((int(i),) for i in items), best, sure)
    games = GameTable.among(pairs, items, len(bad))
    if not games.judged:
        best[items] = 1 / len(items)
        order = items if prior is None else items[np.argsort(-prior[items], kind="stable")]
        return PoolAnswer((tuple(order.tolist()),), best, None)
    posterior = posterior_of(games, chances)
    if prior is not None:
        posterior = posterior.tilted(prior[items], chances)
    best[items] = posterior.best
    order, tied = _in_order(posterior, favoured[items], statement)
    levels = [tuple(items[order[:tied]].tolist()), *((int(i),) for i in items[order[tied:]])]
    return PoolAnswer(tuple(levels), best, certainty_of(posterior, order[:tied], statement))


def _in_order(posterior: Posterior, favoured: Floats, statement: WantedCertainty) -> tuple[Indices, int]:
    """Return the items, the best first, and how many of them share the first level."""
    best, rank = posterior.best, posterior.above.mean(axis=0)
    if statement.top > 1:
        among = (posterior.above < statement.top).mean(axis=0)
        return np.lexsort((rank, -among)), 1
    near = np.where(best >= NEARLY * best.max(), favoured, -1.0)
    first = int(np.lexsort((-best, -near))[0])
    order = np.lexsort((rank, -best))
    order = np.concatenate(([first], order[order != first]))
    most = max(1, min(MOST_TIED, len(best) // 2))
    tied = min(most, int((best >= statement.tie_share * best.max()).sum()))
    rest = order[tied:]
    return np.concatenate((order[:tied], rest[np.argsort(rank[rest], kind="stable")])), tied


def certainty_of(posterior: Posterior, returned: Indices, statement: WantedCertainty) -> Certainty:
    """Return how sure it is that the returned items are best, or that the judgments can't be told from chance."""
    epsilon = EPSILON if statement.epsilon is None else statement.epsilon
    share = SHARE if statement.share is None else statement.share
    if posterior.faint > FAINT_MOST:
        return Certainty(by_chance=True, epsilon=epsilon, share=share, assumption=ASSUMPTION)
    first = int(returned[0])
    depth = max(1, math.ceil(share * posterior.above.shape[1]))
    return Certainty(
        best=posterior.stated((posterior.above[:, returned] == 0).any(axis=1)),
        top_five=posterior.stated(posterior.above[:, first] < TOP),
        top_share=posterior.stated(posterior.above[:, first] < depth),
        near_best=posterior.stated(posterior.behind[:, first] < log_odds(0.5 + epsilon)),
        epsilon=epsilon,
        share=share,
        assumption=ASSUMPTION,
    )
