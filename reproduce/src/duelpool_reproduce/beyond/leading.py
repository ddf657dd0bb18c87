"""The flagship with a quick answer: the item that leads its finals, for experiments of many trials."""

from duelpool.records import Levels
from duelpool.strategies.swissfinals import SwissFinals


class LeadingFinalist(SwissFinals):
    """Asks as `swissfinals` does, and returns the finalist that is most likely the best by the finals alone.

    No posterior over all items is worked out, which takes most of a trial's time.
    """

    @property
    def best_one(self) -> str | None:
        """The leader of the finals; None when no item is left."""
        finals = self.finals()
        if not len(finals.members):
            return None
        return self.table.items[int(finals.members[int(finals.orders.first.argmax())])]

    def result(self) -> Levels:
        """Return the leader before all others."""
        best = self.best_one
        others = tuple(item for item in self.table.items if item != best)
        return Levels(tuple(level for level in (() if best is None else (best,), others) if level))
