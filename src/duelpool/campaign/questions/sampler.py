"""Filling an assignment: a draw over the open questions of all topics that asks only the topics it meets.

To ask every topic for all that it has open takes longer than everything else that an assignment needs. A topic
is drawn by about how many questions it has; only then it is asked for them, and one of them is drawn.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from duelpool.campaign.questions.proposals import Outstanding, Proposals
from duelpool.records import Proposal


class OpenQuestion(NamedTuple):
    """What may be asked of somebody; which side is which is drawn only when it is asked."""

    topic: str
    proposal: Proposal


class Sampler:
    """The open questions of those topics that are somebody's business, to be drawn one after the other."""

    def __init__(
        self, proposals: Proposals, out: Outstanding, heads: Mapping[str, int], rng: np.random.Generator
    ) -> None:
        self._proposals = proposals
        self._out = out
        self._rng = rng
        self._topics = list(heads.items())
        self._open: dict[int, list[Proposal]] = {}
        self._skipped: list[OpenQuestion] = []
        self._left = np.array(proposals.sizes(heads, out), dtype=float)
        self._drawn = np.zeros(len(self._topics), dtype=int)

    def draw(self, per_topic: int) -> Iterator[OpenQuestion]:
        """Yield questions at random: so many of a topic at most, then the rest, then what was skipped before."""
        yield from self._draw(per_topic)
        yield from self._draw(None)
        yield from (self._skipped[at] for at in self._rng.permutation(len(self._skipped)))

    def _draw(self, limit: int | None) -> Iterator[OpenQuestion]:
        while True:
            chances = self._left if limit is None else np.where(self._drawn < limit, self._left, 0.0)
            ends = np.cumsum(chances)
            if not len(ends) or ends[-1] <= 0:
                return
            at = int(np.searchsorted(ends, self._rng.random() * ends[-1], side="right"))
            found = self._questions(at)
            if found:
                self._drawn[at] += 1
                yield OpenQuestion(self._topics[at][0], found.pop())
            self._left[at] = len(found)

    def _questions(self, at: int) -> list[Proposal]:
        """Return what is left of a topic, in an order of its own; the topic is asked when it is first drawn."""
        if at not in self._open:
            topic, head = self._topics[at]
            skipped = self._out.skipped.get(topic, ())
            proposals = self._proposals.proposals(topic, head, self._out)
            mixed = [proposals[place] for place in self._rng.permutation(len(proposals))]
            self._open[at] = [each for each in mixed if each.pair not in skipped]
            self._skipped += [OpenQuestion(topic, each) for each in mixed if each.pair in skipped]
        return self._open[at]
