"""A strategy that asks about every pair and states the certainty that a test gives it, topic by topic."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar
from unittest.mock import patch

from duelpool.records import Certainty, Levels
from duelpool.strategies import STRATEGIES
from duelpool.strategies.allpairs import AllPairs

FULL = Certainty(
    best=0.8345,
    top_five=0.972,
    top_share=0.997,
    near_best=0.919,
    assumption="if judgments follow one of three models: coin flips, Bradley-Terry, one order",
)
REFUSED = Certainty(by_chance=True)


class Certain(AllPairs):
    """Every pair once; the result states what `states` has for the topic."""

    name: ClassVar[str] = "certain"
    goal: ClassVar[str] = "best"
    states: ClassVar[Mapping[str, Certainty]] = {}
    slow_result: ClassVar[bool] = False
    worked_out: ClassVar[Counter[str]] = Counter()
    """How often the result of each topic was worked out, once it had a judgment."""
    _kept: tuple[int, Levels] | None = None

    @staticmethod
    def meanwhile(topic: str) -> None:
        """Do what a test wants while a result is worked out."""

    def result(self) -> Levels:
        """Return the levels with the topic's certainty; kept until the next judgment."""
        if self._kept is None or self._kept[0] != self._table.judgments:
            topic = self._seed[1]
            stated = None
            if self._table.judgments:
                self.worked_out[topic] += 1
                self.meanwhile(topic)
                stated = self.states.get(topic)
            self._kept = (self._table.judgments, Levels(super().result().levels, stated))
        return self._kept[1]


@contextmanager
def certain(states: Mapping[str, Certainty] = {}, *, slow: bool = False) -> Iterator[type[Certain]]:
    """Give the strategy `certain` a row of the table of strategies, for as long as this is open."""
    own = type("Certain", (Certain,), {"states": states, "slow_result": slow, "worked_out": Counter()})
    with patch.dict(STRATEGIES, {"certain": own}):
        yield own
