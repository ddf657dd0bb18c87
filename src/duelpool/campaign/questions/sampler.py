"""Sampling the questions of an assignment from all topics, while asking only the topics that are drawn.

Asking every topic's strategy for all its proposals would dominate the time of an assignment. So a topic is drawn
with a chance proportional to about how many questions it has; only then it is asked, and one of its questions drawn.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from duelpool.campaign.questions.proposals import Outstanding, Proposals
from duelpool.records import Proposal


class OpenQuestion(NamedTuple):
    """A proposal that may be asked; its sides are drawn when it is leased."""

    topic: str
    proposal: Proposal


class Sampler:
    """Draws open questions of an assessor's topics at random, one after the other."""

    def __init__(
        self,
        proposals: Proposals,
        outstanding: Outstanding,
        heads: Mapping[str, int],
        rng: np.random.Generator,
    ) -> None:
        self._proposals = proposals
        self._outstanding = outstanding
        self._rng = rng
        self._topics = list(heads.items())
        self._open: dict[int, list[Proposal]] = {}
        self._skipped: list[OpenQuestion] = []
        self._left = np.array(proposals.sizes(heads, outstanding), dtype=float)
        self._drawn = np.zeros(len(self._topics), dtype=int)

    def draw(self, per_topic: int) -> Iterator[OpenQuestion]:
        """Yield questions at random: at most `per_topic` of each topic, then the rest, then the skipped ones."""
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
            proposals = self._questions(at)
            if proposals:
                self._drawn[at] += 1
                yield OpenQuestion(self._topics[at][0], proposals.pop())
            self._left[at] = len(proposals)

    def _questions(self, at: int) -> list[Proposal]:
        """Return a topic's remaining proposals in random order; the topic is asked when it is first drawn."""
        if at not in self._open:
            topic, head = self._topics[at]
            skipped = self._outstanding.skipped.get(topic, ())
            proposals = self._proposals.proposals(topic, head, self._outstanding)
            mixed = [proposals[place] for place in self._rng.permutation(len(proposals))]
            self._open[at] = [each for each in mixed if each.pair not in skipped]
            self._skipped += [OpenQuestion(topic, each) for each in mixed if each.pair in skipped]
        return self._open[at]
