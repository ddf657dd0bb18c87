"""A total order with upsets: in some pairs, drawn once, the worse item wins, which makes cycles."""

from dataclasses import dataclass

import numpy as np

from duelpool.errors import BadParameter
from duelpool.judges.base import Dice, SimulatedJudge
from duelpool.judges.simulated import (
    AnyPool,
    MatrixJudge,
    hidden_places,
    require_win_probability,
    with_even_diagonal,
)
from duelpool.seeds import rng_for


@dataclass(frozen=True, slots=True)
class Upsets(AnyPool):
    """Case A in which a share of the pairs is reversed for good: there the worse item wins with q.

    With `spare_best` the pairs of the best item are left alone: it stays the one that beats all others. The
    truth is the order of the resulting matrix.
    """

    share: float = 0.1
    q: float = 0.75
    spare_best: bool = False
    ties: float = 0.0

    def __post_init__(self) -> None:
        require_win_probability("q", self.q)
        if not 0 <= self.share <= 1:
            raise BadParameter(f"'share' is the share of reversed pairs, from 0 to 1, not {self.share}.")

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge of a random total order with random upsets."""
        size = len(items)
        place = hidden_places(size, topic, seed)
        wins = np.where(place[:, None] < place[None, :], self.q, 1.0 - self.q)
        upset = np.triu(rng_for(seed, topic, "upsets").random((size, size)) < self.share, 1)
        upset |= upset.T
        if self.spare_best:
            upset &= (place > 0)[:, None] & (place > 0)[None, :]
        wins = np.where(upset, 1.0 - wins, wins)
        return MatrixJudge(items, with_even_diagonal(wins), Dice(seed, topic, "answers"), ties=self.ties)
