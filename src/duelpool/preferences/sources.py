"""A second source of votes beside people, such as a language model: what a vote of it is worth, learnt against people.

Strengths are fitted to people's votes alone, so that a model with many votes can't make its own taste the truth. They
give m, the mean of a person's answer about a pair, from -1 to 1 and cautious where people's votes say little. A model
that answers like a person with the chance r, and otherwise guesses, has the mean r * m: the slope of its votes on m is
its reliability r. A vote then counts r, and tells as much of small differences as r^2 votes of a person. A topic's own
slope is pooled with that of all topics, by as much as topics differ.

A model that is wrong about an item is wrong in all its pairs, so its votes tell less together than one by one. What is
left of its votes is added up for each item: by as much as those sums vary more than independent errors do, and than
strengths that people's votes leave open, votes count less (a quasi-likelihood).
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Floats, Ints
from duelpool.preferences.assessors import AssessorModel, AssessorVotes, fit_assessors

BEFOREHAND, SPREAD = 0.5, 0.5
"""The reliability of a model before any vote is compared, and how far it may lie from that."""

REACH = 1.96
"""Standard errors to each side of an estimate: intervals of 95 %."""


@dataclass(frozen=True, slots=True)
class SourceWorth:
    """What a vote of a model is worth beside a person's.

    `reliability` is the slope on people's answers with its standard `error`, `lean` the left side's lead between equal
    items, and `votes` those that could be compared. `topics` has the reliability of single topics, as far as they
    differ. `together` is 1 where errors are independent, and more where a model errs about whole items.
    """

    reliability: float = BEFOREHAND
    error: float = SPREAD
    lean: float = 0.0
    votes: int = 0
    topics: Mapping[str, float] = field(default_factory=dict)
    together: float = 1.0

    @property
    def value(self) -> float:
        """Votes of a person that tell as much as one vote of the model."""
        return max(0.0, self.reliability) ** 2 / self.together

    @property
    def low(self) -> float:
        """The lower end of the value's interval."""
        return max(0.0, self.reliability - REACH * self.error) ** 2 / self.together

    @property
    def high(self) -> float:
        """The upper end of the value's interval."""
        return max(0.0, self.reliability + REACH * self.error) ** 2 / self.together

    def weight(self, topic: str | None = None) -> float:
        """By how much a vote counts, from 0 to 1: by the reliability less a standard error."""
        return min(1.0, self._cautious(topic) / self.together)

    def share(self, topic: str | None = None) -> float:
        """What a vote tells in votes of a person, from 0 to 1, by the same cautious reliability."""
        return min(1.0, self._cautious(topic) ** 2 / self.together)

    def pays(self, price: float, topic: str) -> bool:
        """Whether a vote is worth its price in a topic."""
        return max(0.0, self.topics.get(topic, self.reliability)) ** 2 / self.together > price

    def _cautious(self, topic: str | None) -> float:
        known = self.reliability if topic is None else self.topics.get(topic, self.reliability)
        return max(0.0, known - self.error)


def source_worths(votes: AssessorVotes, models: Collection[str]) -> dict[str, SourceWorth]:
    """Return what a vote of each model is worth, by the votes of all others, who are people."""
    is_model = np.isin(votes.assessor, [at for at, name in enumerate(votes.assessors) if name in models])
    if not len(votes) or is_model.all():
        return {name: SourceWorth() for name in models}
    fit = fit_assessors(votes.only(~is_model))
    seen = np.zeros(len(votes.items), dtype=bool)
    seen[votes.i[~is_model]] = seen[votes.j[~is_model]] = True
    comparable = is_model & seen[votes.i] & seen[votes.j]
    places = {name: at for at, name in enumerate(votes.assessors)}
    return {
        name: _worth(fit, votes.only(comparable & (votes.assessor == places.get(name, -1))))
        for name in models
    }


def _worth(fit: AssessorModel, votes: AssessorVotes) -> SourceWorth:
    answer = np.choose(votes.outcome, [1.0, 0.0, -1.0])
    apart, variance = fit.difference(votes.i, votes.j)
    chance = scipy.special.expit(apart / np.sqrt(1 + np.pi * variance / 8))
    mean = 2 * chance - 1
    if not mean.any():
        return SourceWorth(votes=len(votes))
    lean = _lean(mean, votes.side, answer)
    answer = answer - lean * votes.side
    prior = 1 / SPREAD**2
    known = float(mean @ mean)
    slope = (float(mean @ answer) + prior * BEFOREHAND) / (known + prior)
    topic = votes.topic[votes.i]
    pulls = np.bincount(topic, mean * (answer - slope * mean))
    error = math.sqrt(max(known, float(pulls @ pulls)) + prior) / (known + prior)
    names = {int(at): name for (name, _), at in zip(votes.items, votes.topic.tolist(), strict=True)}
    by_topic = _by_topic(mean, answer, topic, slope)
    return SourceWorth(
        slope,
        error,
        lean,
        len(votes),
        {names[at]: own for at, own in by_topic.items()},
        _together(fit, votes, answer - slope * mean, min(1.0, max(0.0, slope)) * 2 * chance * (1 - chance)),
    )


def _together(fit: AssessorModel, votes: AssessorVotes, left: Floats, steepness: Floats) -> float:
    """Return how much more what is left of the votes varies, added up by item, than it would by chance; at least 1.

    `steepness` is the change of an answer's mean by an item's strength, which people's votes leave open.
    """
    items = len(votes.items)

    def of_items(values: Floats, sign: float = 1.0) -> Floats:
        return np.bincount(votes.i, values, items) + sign * np.bincount(votes.j, values, items)

    by_chance = of_items(left**2) + (of_items(steepness) * fit.errors) ** 2
    return max(1.0, float((of_items(left, -1.0) ** 2).sum() / max(by_chance.sum(), 1e-12)))


def _lean(mean: Floats, side: Ints, answer: Floats) -> float:
    """Return the left side's lead, beyond what the items explain."""
    columns = np.column_stack([mean, side])
    ridge = np.diag([1 / SPREAD**2, 10.0])
    found = np.linalg.solve(columns.T @ columns + ridge, columns.T @ answer + ridge @ [BEFOREHAND, 0.0])
    return float(found[1])


def _by_topic(mean: Floats, answer: Floats, topic: Ints, slope: float) -> dict[int, float]:
    """Return the slope of each topic, pooled with that of all; empty where topics don't differ beyond chance."""
    information = np.bincount(topic, mean**2)
    asked = np.flatnonzero(information > 1e-6)
    if len(asked) < 2:
        return {}
    information = information[asked]
    own = np.bincount(topic, mean * answer)[asked] / information
    beyond = float(information @ (own - slope) ** 2) - (len(asked) - 1)
    spare = information.sum() - (information @ information) / information.sum()
    if beyond <= 0 or spare <= 0:
        return {}
    between = beyond / spare  # the variance over topics, by DerSimonian and Laird
    share = information * between / (1 + information * between)
    return dict(zip(asked.tolist(), (slope + share * (own - slope)).tolist(), strict=True))
