"""Weights of votes: the chance that whoever gave them reads before answering, instead of guessing.

A careful assessor answers as the model of votes says, a careless one flips a coin. Each assessor's votes are held
against what the others' votes say about the same items, and their test pairs count as well. The share of careful
assessors is learnt (EM). To first order, a vote that is a guess with the chance 1 - w tells as much as w votes.
"""

import math
from collections.abc import Mapping

import numpy as np
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Floats
from duelpool.preferences.assessors import FEW, FIRST, TIE, AssessorModel, AssessorVotes, fit_assessors

SEEN = 0.97
"""The chance that a careful assessor passes a test pair."""

SOON = 40
"""Judgments of pairs before the first weights."""

AGAIN = 1.25
"""Weights are worked out again after this many times as many judgments."""

_SAME = 0.05  # a smaller change of a weight is none
_ROUNDS = 50
_CAREFUL, _PRIOR = 1.0, 1.1  # careful assessors of so many that are assumed beforehand
_MOST = 0.999  # the largest share of careful assessors


def vote_weights(
    model: AssessorModel, tests: Mapping[str, tuple[int, int]] | None = None
) -> dict[str, float]:
    """Return the chance of each assessor to be careful, from 0 to 1.

    `tests` has the test pairs that an assessor passed, and those that they answered. It should have those of excluded
    assessors as well: without them, whoever is left has passed by selection, and passing would prove nothing.
    """
    votes = model.votes
    chances = _chances_by_others(model)
    own = np.where(votes.outcome == FIRST, chances, 1 - chances)
    gain = np.where(votes.outcome == TIE, 0.0, np.log(2 * np.clip(own, 1e-6, 1)))
    of_votes = np.bincount(votes.assessor, gain, len(votes.assessors))
    by_name = dict(zip(votes.assessors, of_votes.tolist(), strict=True))
    for name, (passed, seen) in (tests or {}).items():
        of_tests = passed * math.log(2 * SEEN) + (seen - passed) * math.log(2 - 2 * SEEN)
        by_name[name] = by_name.get(name, 0.0) + of_tests
    gains = np.array(list(by_name.values()))
    share = 0.9
    careful = np.ones(len(gains))
    for _ in range(_ROUNDS):
        careful = scipy.special.expit(gains + np.log(share / (1 - share)))
        share = min(_MOST, float((careful.sum() + _CAREFUL) / (len(careful) + _PRIOR)))
    return dict(zip(by_name, careful.tolist(), strict=True))


def is_time_to_weigh(judgments: int, before: int) -> bool:
    """Whether weights are due, `before` being the judgments when they were last worked out, or 0."""
    return judgments >= max(SOON, AGAIN * before)


def fitted_weights(
    votes: AssessorVotes,
    tests: Mapping[str, tuple[int, int]] | None = None,
    in_force: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Return the weights that the votes give now, to two digits; assessors of weight 1 are left out.

    A weight that has hardly changed stays as it is in force.
    """
    if len(votes.assessors) < FEW:
        return {}
    before = in_force or {}
    fitted = vote_weights(fit_assessors(votes), tests)
    weights = {name: round(weight, 2) for name, weight in fitted.items() if round(weight, 2) < 1}
    return {
        name: before[name] if abs(before.get(name, 9.0) - weight) < _SAME else weight
        for name, weight in weights.items()
    }


def _chances_by_others(model: AssessorModel) -> Floats:
    """Return the chance that the first item of each vote wins, by what is known of both items without the vote."""
    votes = model.votes
    apart, variance = model.difference(votes.i, votes.j)
    chance = scipy.special.expit(apart)
    information = np.where(votes.outcome == TIE, 0.0, np.maximum(chance * (1 - chance), 1e-6))
    pull = np.where(votes.outcome == TIE, 0.0, (votes.outcome == FIRST) - chance)
    without = 1 / np.maximum(1 / variance - information, 0.1)
    mean = without * (apart / variance - information * apart - pull)
    return np.asarray(scipy.special.expit(mean / np.sqrt(1 + np.pi * without / 8)), dtype=np.float64)
