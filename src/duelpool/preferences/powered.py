"""Win rates by people from few of their votes and many of a model: prediction-powered inference (PPI).

A regression on people's votes predicts a vote from the two systems and from what the model said. The estimate is the
mean prediction over all pairs of answers: right on average whatever the model is worth, as long as the pairs that
people saw were drawn at random. (PPI adds what predictions are off by where people voted. Here these add up to 0 for
each system, for the regression has a column for each.) The weight of the model is fitted (PPI++ tunes one weight to the
least variance; here it is one per outcome), and the model is left out where it doesn't make the estimates more exact.
"""

from dataclasses import dataclass

import numpy as np

from duelpool.arrays import Bools, Floats, Ints
from duelpool.errors import BadParameter
from duelpool.preferences.contests import Contest, VoteTable

RIDGE = 1e-6  # of one vote, for systems that people have not seen
LEAST = 20  # votes of people
UNBIASED, LEFT_OUT = (
    0.5,
    1.0,
)  # powers of 1 - leverage: for the variance of a vote, and as if it had been left out


@dataclass(frozen=True, slots=True, eq=False)
class VotedPairs:
    """Pairs of answers: the two systems, and the share that each got from people (nan: not asked) and from a model.

    `people` and `model` have a row per pair, a column for either system; a tie is half for both, or none.
    """

    systems: tuple[str, ...]
    first: Ints
    second: Ints
    people: Floats
    model: Floats
    question: Ints  # the place of the question, or a number of its own

    def __len__(self) -> int:
        return len(self.first)

    @property
    def asked(self) -> Bools:
        """Where people voted."""
        return ~np.isnan(self.people[:, 0])


@dataclass(frozen=True, slots=True, eq=False)
class PoweredRates:
    """Each system's share of votes won, as people would give them on all pairs, with its joint uncertainty.

    `model_used` says whether the model's votes made the estimates more exact, `gain` how many times as many votes of
    people alone would be needed for the same variance.
    """

    contest: Contest
    model_used: bool
    gain: float
    asked: int

    @property
    def rates(self) -> Floats:
        """The shares, one per system."""
        return self.contest.values


def powered_rates(
    pairs: VotedPairs, *, these_pairs: bool = False, use_model: bool | None = None
) -> PoweredRates:
    """Estimate the share of votes that each system wins, over all pairs.

    With `these_pairs` the errors are about the votes of people on these very pairs; else about questions like these.
    `use_model` None lets the data decide.
    """
    asked = int(pairs.asked.sum())
    if asked < LEAST:
        raise BadParameter(
            f"People gave {asked} votes on these pairs, and {LEAST} or more are needed.",
            remedy="Let people judge more pairs, drawn at random.",
        )
    fits = [
        _Fit.of(pairs, with_model) for with_model in ((False, True) if use_model is None else (use_model,))
    ]
    # A vote that is left out of its own prediction shows whether the model helps with further votes.
    best = int(np.argmin([np.trace(each.covariance(pairs, these_pairs, LEFT_OUT)) for each in fits]))
    covariances = [each.covariance(pairs, these_pairs, UNBIASED) for each in fits]
    spreads = [float(np.trace(each)) for each in covariances]
    clusters = asked if these_pairs else len(np.unique(pairs.question))
    freedom = float(min(asked, clusters) - 1)
    nothing = np.zeros_like(covariances[best])
    empty = VoteTable.of([], systems=pairs.systems)
    contest = Contest(empty, fits[best].rates, covariances[best], nothing, freedom)
    used = use_model is True or (use_model is None and best == 1)
    gain = spreads[0] / spreads[best] if spreads[best] > 0 else 1.0
    return PoweredRates(contest, used, gain, asked)


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """A regression on people's votes, and the estimates that it gives."""

    rates: Floats
    predicted: Floats  # a row per pair, a column for either system
    off: Floats  # the same: what the prediction is off by, 0 where nobody was asked
    leverage: Floats  # the same: how far a vote pulls its own prediction
    met: Floats  # pairs of each system

    @classmethod
    def of(cls, pairs: VotedPairs, with_model: bool) -> "_Fit":
        k, asked = len(pairs.systems), pairs.asked
        own = np.concatenate((pairs.first, pairs.second))
        columns = _columns(pairs, with_model)
        both = np.concatenate((asked, asked))
        votes = np.concatenate((pairs.people[:, 0], pairs.people[:, 1]))[both]
        seen = columns[both]
        inverse = np.linalg.inv(seen.T @ seen + RIDGE * np.eye(seen.shape[1]))
        predicted = columns @ (inverse @ (seen.T @ votes))
        leverage = np.minimum(np.einsum("ij,jk,ik->i", seen, inverse, seen), 0.9)
        off = np.zeros(len(own))
        off[both] = votes - predicted[both]
        met = np.bincount(own, minlength=k).astype(np.float64)
        sums = np.bincount(own, predicted, minlength=k)
        rates = np.divide(sums, met, out=np.zeros(k), where=met > 0)
        pull = np.zeros(len(own))
        pull[both] = leverage
        return cls(rates, _by_pair(predicted), _by_pair(off), _by_pair(pull), met)

    def covariance(self, pairs: VotedPairs, these_pairs: bool, power: float) -> Floats:
        """Return the estimates' covariance, by the parts of votes (or of questions) in them.

        What a prediction is off by is too small by its leverage; `power` says how that is made up for.
        """
        asked = pairs.asked
        off = self.off / (1.0 - self.leverage) ** power
        count = int(asked.sum())
        scale = len(pairs) / count
        if these_pairs:
            parts = self._parts(pairs, off * scale)[asked]
            parts -= parts.mean(axis=0)
            rest = 1.0 - count / len(pairs)  # pairs that people have not seen
            return np.asarray(parts.T @ parts * rest * count / (count - 1), dtype=np.float64)
        expected = np.stack((self.rates[pairs.first], self.rates[pairs.second]), axis=1)
        parts = self._parts(pairs, self.predicted - expected + off * scale)
        clusters = np.unique(pairs.question, return_inverse=True)[1]
        sums = np.zeros((int(clusters.max(initial=0)) + 1, len(pairs.systems)))
        np.add.at(sums, clusters, parts)
        return np.asarray(sums.T @ sums * len(sums) / max(1, len(sums) - 1), dtype=np.float64)

    def _parts(self, pairs: VotedPairs, values: Floats) -> Floats:
        """Return each pair's part in each system's rate."""
        parts = np.zeros((len(pairs), len(pairs.systems)))
        rows, met = np.arange(len(pairs)), np.maximum(self.met, 1.0)
        parts[rows, pairs.first] += values[:, 0] / met[pairs.first]
        parts[rows, pairs.second] += values[:, 1] / met[pairs.second]
        return parts


def _by_pair(values: Floats) -> Floats:
    return np.asarray(values.reshape(2, -1).T, dtype=np.float64)


def _columns(pairs: VotedPairs, with_model: bool) -> Floats:
    """Return what a vote is predicted from, a row for either system of each pair: the two systems, and the model.

    A model's vote counts by its outcome, and by the side, for models lean to one.
    """
    k, n = len(pairs.systems), len(pairs)
    own = np.concatenate((pairs.first, pairs.second))
    other = np.concatenate((pairs.second, pairs.first))
    columns = np.zeros((2 * n, 2 * k))
    rows = np.arange(2 * n)
    columns[rows, own] = 1.0
    columns[rows, k + other] = 1.0
    columns = columns[:, :-1]  # the last follows from the others
    if not with_model:
        return columns
    won = np.nan_to_num(np.concatenate((pairs.model[:, 0], pairs.model[:, 1])), nan=0.5)
    lost = np.nan_to_num(np.concatenate((pairs.model[:, 1], pairs.model[:, 0])), nan=0.5)
    silent = np.isnan(np.concatenate((pairs.model[:, 0], pairs.model[:, 1]))).astype(np.float64)
    left = (rows < n).astype(np.float64)
    more = [won, lost, left, left * won, left * lost]
    return np.column_stack((columns, *more, silent) if silent.any() else (columns, *more))
