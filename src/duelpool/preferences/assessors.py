"""A model of votes: how strong the items are, and what a vote of each assessor is worth.

An assessor who sees item i on the left and item j on the right answers by

    x = reliability * (strength of i - strength of j) + lean
    left : tie : right  =  exp(x / 2) : exp(ties) : exp(-x / 2)

which is Davidson's model of ties, and Bradley-Terry where there are none. Strengths, reliabilities, leans and ties are
partially pooled: each is normal about a common mean, with a spread that the votes give (empirical Bayes). The mean
reliability is 1, so strengths are those that an average assessor sees; an assessor of reliability 0 guesses.

The fit improves in turn the strengths of each topic and the figures of each assessor, by Fisher scoring. Each side
averages over what is unknown about the other, as it would be without the vote at hand (the cavity of expectation
propagation); with point estimates instead, reliabilities come out too equal and intervals too short.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Bools, Floats, Ints
from duelpool.background import give_way
from duelpool.errors import BadParameter

FIRST, TIE, SECOND = 0, 1, 2
RELIABILITY, LEAN, TIES = 0, 1, 2
"""The places of an assessor's figures in `AssessorModel.figures`."""

FEW = 3
"""Assessors: with fewer, reliabilities can't be told from strengths."""

_SOON, _ROUNDS = 4, 80
# a smaller change of all spreads, relative to the spread and a small one, ends the fit
_CLOSE, _SMALL = 0.006, 0.2
_FURTHER = 1.7  # steps of the spreads, which would be slow otherwise
_LEAST = 1e-4  # the smallest variance of a spread
_BROAD = 800  # items of a topic: with more of them, covariances between items are left out
_NUMBERS = 4_000_000  # of the matrices that are inverted together
# variances of strengths, reliability, lean and ties: the first and the largest ones
_START, _MOST = (1.0, 0.1, 0.05, 0.25), (1e4, 4.0, 4.0, 9.0)
_MORE = 2  # assessors of the starting variances that are counted beside the real ones
_NODES, _WEIGHTS = np.array([-np.sqrt(3), 0, np.sqrt(3)]), np.array([1, 4, 1]) / 6
"""Three nodes of Gauss and Hermite for a standard normal variable, with their weights."""


@dataclass(frozen=True, slots=True, eq=False)
class AssessorVotes:
    """Votes as columns: two items by their places, who was asked, the outcome, and the side of the first item.

    `side` is 1 where the first item was on the left, -1 where it was on the right, 0 where that is unknown. `topic` is
    the place of each item's topic: items of different topics never meet.
    """

    items: tuple[tuple[str, str], ...]
    topic: Ints
    assessors: tuple[str, ...]
    i: Ints
    j: Ints
    assessor: Ints
    outcome: Ints
    side: Ints

    @classmethod
    def of(
        cls,
        *,
        topics: Sequence[str],
        first: Sequence[str],
        second: Sequence[str],
        shares: Sequence[float],
        assessors: Sequence[str],
        sides: Sequence[int] | None = None,
    ) -> "AssessorVotes":
        """Make columns of votes: the first item's share is 1, 0 or, for a tie, a half."""
        frame = pl.DataFrame(
            {"topic": topics, "first": first, "second": second, "assessor": assessors},
            schema=dict.fromkeys(("topic", "first", "second", "assessor"), pl.String),
        )
        both = [
            frame.select("topic", pl.col(name).alias("item"), pl.col("assessor"))
            for name in ("first", "second")
        ]
        known = pl.concat(both).select("topic", "item").unique().sort("topic", "item").with_row_index("place")
        names = frame.select("assessor").unique().sort("assessor").with_row_index("who")
        places = [
            each.join(known, on=["topic", "item"], how="left", maintain_order="left")["place"]
            for each in both
        ]
        who = frame.join(names, on="assessor", how="left", maintain_order="left")["who"]
        outcome = np.rint(2 - 2 * np.asarray(shares, dtype=np.float64)).astype(np.int64)
        return cls(
            tuple(known.select("topic", "item").iter_rows()),
            known["topic"].rank("dense").to_numpy().astype(np.int64) - 1,
            tuple(names["assessor"].to_list()),
            places[0].to_numpy().astype(np.int64),
            places[1].to_numpy().astype(np.int64),
            who.to_numpy().astype(np.int64),
            outcome,
            np.zeros(len(outcome), np.int64) if sides is None else np.asarray(sides, dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.i)

    def only(self, rows: Bools | Ints) -> "AssessorVotes":
        """Return some of the votes; items and assessors keep their places."""
        columns = (self.i, self.j, self.assessor, self.outcome, self.side)
        return AssessorVotes(self.items, self.topic, self.assessors, *(each[rows] for each in columns))


@dataclass(frozen=True, slots=True)
class Worth:
    """What a vote of an assessor is worth: 1 for an average assessor, 0 for one who guesses.

    A vote of reliability r tells as much of small differences as r^2 votes of an average assessor. `low` and `high`
    hold the middle of the posterior.
    """

    assessor: str
    votes: int
    value: float
    low: float
    high: float
    reliability: float
    lean: float  # log odds of the left side between equal items
    lean_low: float
    lean_high: float


@dataclass(frozen=True, slots=True, eq=False)
class AssessorModel:
    """Strengths of items and figures of assessors, fitted to votes.

    `figures` has a row per assessor: reliability, lean, ties; `covariance` the posterior of each row. `spreads` are the
    standard deviations of strengths, reliabilities, leans and ties, and `centre` the common means of the figures.
    """

    votes: AssessorVotes
    strengths: Floats
    figures: Floats
    covariance: Floats
    spreads: Floats
    centre: Floats
    rounds: int
    _strengths: "_StrengthBlocks"

    @property
    def errors(self) -> Floats:
        """The standard error of each item's strength, about its topic's prior mean of 0."""
        return np.sqrt(self._strengths.variances)

    def difference(self, i: Ints, j: Ints) -> tuple[Floats, Floats]:
        """Return the differences of strength of items of one topic, and their variances."""
        return self.strengths[i] - self.strengths[j], self._strengths.of_differences(i, j)

    def first_wins(self, votes: AssessorVotes) -> Floats:
        """Return the probability that the first item of each vote wins if the vote is no tie.

        It averages over the posterior. The votes must have the items and assessors of those that were fitted.
        """
        apart, variance = self.difference(votes.i, votes.j)
        figures, covariance = self.figures[votes.assessor], self.covariance[votes.assessor]
        reliability, of_reliability = figures[:, RELIABILITY], covariance[:, RELIABILITY, RELIABILITY]
        mean = reliability * apart + figures[:, LEAN] * votes.side
        spread = (
            (reliability**2 + of_reliability) * variance
            + apart**2 * of_reliability
            + covariance[:, LEAN, LEAN] * np.abs(votes.side)
        )
        return np.asarray(scipy.special.expit(mean / np.sqrt(1 + np.pi * spread / 8)), dtype=np.float64)

    def worth(self, level: float = 0.95) -> tuple[Worth, ...]:
        """Return what a vote of each assessor is worth, with intervals."""
        if not 0 < level < 1:
            raise BadParameter(f"A level of confidence lies between 0 and 1, not at {level}.")
        reach = float(scipy.stats.norm.ppf((1 + level) / 2))
        counts = np.bincount(self.votes.assessor, minlength=len(self.votes.assessors))
        found = []
        for who, name in enumerate(self.votes.assessors):
            (value, lean, _), error = self.figures[who], np.sqrt(np.diag(self.covariance[who]))
            ends = [max(0.0, value + side * reach * error[RELIABILITY]) for side in (-1, 0, 1)]
            low, middle, high = (float(end**2) for end in ends)
            leans = [float(lean + side * reach * error[LEAN]) for side in (-1, 1)]
            found.append(
                Worth(
                    name, int(counts[who]), middle, low, high, float(value), float(lean), leans[0], leans[1]
                )
            )
        return tuple(found)


# ---- the fit


def fit_assessors(votes: AssessorVotes) -> AssessorModel:
    """Fit the model of votes: strengths of items, and reliability, lean and ties of assessors."""
    if not len(votes):
        raise BadParameter("There are no votes.", remedy="Give votes of named assessors on pairs of items.")
    fit = _AssessorFit(votes)
    before = np.sqrt(fit.variances)
    for rounds in range(1, _ROUNDS + 1):
        give_way()
        fit.improve_strengths()
        give_way()
        fit.improve_figures()
        fit.improve_spreads()
        spreads = np.sqrt(fit.variances)
        if np.all(np.abs(spreads - before) < _CLOSE * (spreads + _SMALL)) and rounds > _SOON:
            break
        before = spreads
    return fit.model(rounds)


class _AssessorFit:
    """The state of a fit, and its three steps."""

    def __init__(self, votes: AssessorVotes) -> None:
        self.votes = votes
        people, items = len(votes.assessors), len(votes.items)
        self.counts = np.bincount(votes.assessor, minlength=people)
        self.seen = self.counts > 0
        tied = float(np.mean(votes.outcome == TIE))
        # the figures that are fitted
        self.free = np.array([int(self.seen.sum()) >= FEW, bool(votes.side.any()), 0 < tied < 1])
        self.variances = np.array(_START)
        self.centre = np.array([1.0, 0.0, np.log(2 * tied / (1 - tied)) if self.free[TIES] else -np.inf])
        self.figures = np.tile(self.centre, (people, 1))
        self.covariance: Floats = np.zeros((people, 3, 3))
        self.strengths = np.zeros(items)
        self.blocks = _StrengthBlocks(votes.topic, votes.i, votes.j)
        # of each vote, for its cavities: pull and information on the reliability
        self._pull, self._known = np.zeros(len(votes)), np.zeros(len(votes))
        self._first = True

    def improve_strengths(self) -> None:
        """Move the strengths of all items, the assessors being what they are known to be without each vote."""
        votes, items = self.votes, len(self.votes.items)
        of_vote = self.figures[votes.assessor]
        lean = of_vote[:, LEAN] * votes.side
        of_lean = self.covariance[votes.assessor, LEAN, LEAN] * np.abs(votes.side)
        reliability, variance = self._reliability_without()
        for _ in range(3 if self._first else 1):
            apart = self.strengths[votes.i] - self.strengths[votes.j]
            spread = np.sqrt(apart**2 * variance + of_lean)
            tilt = np.divide(apart * variance, spread, out=np.zeros_like(spread), where=spread > 0)
            chances = _Chances.of(reliability * apart + lean, spread, of_vote[:, TIES])
            chances.add(reliability, tilt)
            self._pull_apart, self._information = chances.score(votes.outcome)[0], chances.information(0, 0)
            self._information = np.maximum(self._information, 1e-9)
            self.blocks.invert(self._information, 1 / self.variances[0])
            pull = self._pull_apart
            gradient = np.bincount(votes.i, pull, items) - np.bincount(votes.j, pull, items)
            step = self.blocks.times(gradient - self.strengths / self.variances[0])
            self.strengths = self.strengths + np.clip(step, -2, 2)
        self._first = False

    def _reliability_without(self) -> tuple[Floats, Floats]:
        """Return the mean and variance of each vote's reliability as they would be without the vote."""
        who = self.votes.assessor
        mean, variance = self.figures[who, RELIABILITY], self.covariance[who, RELIABILITY, RELIABILITY]
        if not self.free[RELIABILITY] or self._first:
            return mean, variance
        without = 1 / np.maximum(1 / variance - self._known, 1 / self.variances[1])
        moved = without * (mean / variance - self._known * mean - self._pull)
        reach = 2 * np.sqrt(variance)
        return np.clip(moved, mean - reach, mean + reach), without

    def improve_figures(self) -> None:
        """Move the figures of all assessors, the strengths being what they are known to be without each vote."""
        votes, people = self.votes, len(self.votes.assessors)
        apart = self.strengths[votes.i] - self.strengths[votes.j]
        variance = self.blocks.of_differences(votes.i, votes.j)
        without = 1 / np.maximum(1 / variance - self._information, 0.25 / self.variances[0])
        mean = without * (apart / variance - self._information * apart - self._pull_apart)
        reach = 3 * np.sqrt(variance)
        mean = np.clip(mean, apart - reach, apart + reach)
        of_vote = self.figures[votes.assessor]
        reliability, error = of_vote[:, RELIABILITY], np.sqrt(without)
        lean = of_vote[:, LEAN] * votes.side
        chances = _Chances.of(reliability * mean + lean, reliability * error, of_vote[:, TIES])
        chances.add(mean, error)
        chances.add(votes.side, 0 * error)
        chances.add_ties()
        score = chances.score(votes.outcome)
        gradient, information = np.zeros((people, 3)), np.zeros((people, 3, 3))
        for one in np.flatnonzero(self.free).tolist():
            gradient[:, one] = np.bincount(votes.assessor, score[one], people)
            for other in np.flatnonzero(self.free).tolist():
                both = chances.information(one, other)
                if one == other == RELIABILITY:
                    self._known = both
                information[:, one, other] = np.bincount(votes.assessor, both, people)
        self._pull = score[RELIABILITY]
        apart_from = np.where(self.free, self.figures - self._finite(self.centre), 0)
        gradient -= apart_from / self.variances[1:]
        information[:, range(3), range(3)] += 1 / self.variances[1:]
        self.covariance = np.asarray(
            np.linalg.inv(information) * np.outer(self.free, self.free), dtype=np.float64
        )
        step = np.clip((self.covariance @ gradient[:, :, None])[:, :, 0], -1, 1)
        self.figures = np.where(self.free, self.figures + step, self.figures)

    def improve_spreads(self) -> None:
        """Estimate the common means and spreads from all posteriors, and scale the mean reliability to 1."""
        seen = self.figures[self.seen]
        scale = float(seen[:, RELIABILITY].mean()) if self.free[RELIABILITY] else 1.0
        scale = min(2.0, scale) if scale > 0.5 else 1.0  # a mean of contradictions is no scale
        self.figures[:, RELIABILITY] /= scale
        self.covariance[:, RELIABILITY, :] /= scale
        self.covariance[:, :, RELIABILITY] /= scale
        self.strengths = self.strengths * scale
        self.blocks.scale(scale**2)
        self._pull, self._known = self._pull * scale, self._known * scale**2
        seen = self.figures[self.seen]
        self.centre = np.where(self.free, seen.mean(axis=0), self.centre)
        self.centre[RELIABILITY] = 1.0
        about = np.where(self.free, seen - self._finite(self.centre), 0)
        variances = np.diagonal(self.covariance[self.seen], axis1=1, axis2=2)
        of_people = (about**2 + variances).sum(axis=0) + _MORE * np.array(_START[1:])
        found = [np.mean(self.strengths**2 + self.blocks.variances), *of_people / (len(seen) + _MORE)]
        moves = np.where([True, *self.free], np.log(np.maximum(found, _LEAST) / self.variances), 0)
        moved = self.variances * np.exp(np.clip(_FURTHER * moves, -1.5, 1.5))
        self.variances = np.clip(moved, _LEAST, _MOST)

    @staticmethod
    def _finite(values: Floats) -> Floats:
        return np.where(np.isfinite(values), values, 0)

    def model(self, rounds: int) -> AssessorModel:
        """Return what was fitted; an assessor without votes is as the others are."""
        unknown = ~self.seen
        self.figures[unknown] = self.centre
        self.covariance[unknown] = np.diag(self.variances[1:] * self.free)
        spreads = np.sqrt(self.variances * np.array([True, *self.free]))
        return AssessorModel(
            self.votes,
            self.strengths,
            self.figures,
            self.covariance,
            spreads,
            self.centre,
            rounds,
            self.blocks,
        )


class _Chances:
    """The chances of the outcomes of votes, averaged over a normal x, and their derivatives.

    Rows of all arrays are nodes, columns votes. A derivative is taken by a parameter whose effect on x is `at` plus
    `per` times the node.
    """

    def __init__(self, outcomes: tuple[Floats, Floats, Floats]) -> None:
        self._given = outcomes
        self._average = tuple(np.maximum(_WEIGHTS @ each, 1e-300) for each in outcomes)
        first, _, second = outcomes
        lead = first - second
        # weighted derivatives of the three chances by x
        self._by_x = tuple(
            _WEIGHTS[:, None] * chance * half
            for chance, half in zip(outcomes, ((1 - lead) / 2, -lead / 2, (-1 - lead) / 2), strict=True)
        )
        self._derivatives: list[tuple[Floats, Floats, Floats]] = []

    @classmethod
    def of(cls, mean: Floats, spread: Floats, ties: Floats) -> "_Chances":
        """Return the chances where x is normal with this mean and spread."""
        half = np.clip((mean + _NODES[:, None] * spread) / 2, -300, 300)
        first = np.exp(half)
        second = 1 / first
        tie = np.broadcast_to(np.exp(ties), first.shape)
        total = first + second + tie
        return cls((first / total, tie / total, second / total))

    def add(self, at: Floats | Ints, per: Floats) -> None:
        """Add the derivatives by a parameter of x."""
        first, tie, second = (at * each.sum(axis=0) + per * (_NODES @ each) for each in self._by_x)
        self._derivatives.append((first, tie, second))

    def add_ties(self) -> None:
        """Add the derivatives by the parameter of ties."""
        weighted = _WEIGHTS[:, None] * self._given[1]
        first, tie, second = (
            (weighted * (is_tie - chance)).sum(axis=0)
            for chance, is_tie in zip(self._given, (0.0, 1.0, 0.0), strict=True)
        )
        self._derivatives.append((first, tie, second))

    def score(self, outcome: Ints) -> list[Floats]:
        """Return the derivative of each vote's log chance by each parameter."""
        return [
            np.choose(outcome, [slope / chance for slope, chance in zip(each, self._average, strict=True)])
            for each in self._derivatives
        ]

    def information(self, one: int, other: int) -> Floats:
        """Return the Fisher information of each vote about two parameters."""
        pairs = zip(self._derivatives[one], self._derivatives[other], self._average, strict=True)
        return np.asarray(sum(a * b / chance for a, b, chance in pairs), dtype=np.float64)


# ---- the covariances of strengths


class _StrengthBlocks:
    """Covariances of strengths, a block for each topic; topics of like size are inverted together.

    In a topic of more than some hundred items only the variances are kept.
    """

    def __init__(self, topic: Ints, i: Ints, j: Ints) -> None:
        self._topic, self._i, self._j = topic, i, j
        sizes = np.bincount(topic)
        order = np.argsort(topic, kind="stable")
        self._place = np.empty(len(topic), dtype=np.int64)
        self._place[order] = np.arange(len(topic)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.variances: Floats = np.ones(len(topic))
        self._groups = [
            _TopicGroup(topics, topic, self._place, i, j) for topics in _alike(sizes, _BROAD, _NUMBERS)
        ]
        self._broad = sizes[topic] > _BROAD

    def invert(self, weights: Floats, prior: float) -> None:
        """Take the votes' information about their differences, and a prior precision of each item."""
        items = len(self._topic)
        votes = np.bincount(self._i, weights, items) + np.bincount(self._j, weights, items)
        diagonal = np.asarray(votes + prior, dtype=np.float64)
        self.variances = 1 / diagonal
        for group in self._groups:
            self.variances[group.members] = group.invert(weights, diagonal)

    def scale(self, factor: float) -> None:
        """Multiply all covariances."""
        self.variances = self.variances * factor
        for group in self._groups:
            group.inverse = group.inverse * factor

    def times(self, vector: Floats) -> Floats:
        """Return the product of the covariances and a vector over the items, a cautious one where they are unknown."""
        found = np.where(self._broad, 0.5, 1.0) * self.variances * vector
        for group in self._groups:
            found[group.members] = group.times(vector)
        return found

    def of_differences(self, i: Ints, j: Ints) -> Floats:
        """Return the variance of the difference of two items of one topic."""
        found = self.variances[i] + self.variances[j]
        for group in self._groups:
            chosen = np.flatnonzero(group.row[self._topic[i]] >= 0)
            rows = group.row[self._topic[i[chosen]]]
            found[chosen] -= 2 * group.inverse[rows, self._place[i[chosen]], self._place[j[chosen]]]
        return np.maximum(found, 1e-12)


def _alike(sizes: Ints, broad: int, numbers: int) -> list[Ints]:
    """Return topics in groups of like sizes, none of whose padded matrices have more than so many numbers."""
    kind = np.ceil(2 * np.log2(np.maximum(sizes, 2))).astype(np.int64)
    groups = []
    for each in np.unique(kind[(sizes > 0) & (sizes <= broad)]).tolist():
        topics = np.flatnonzero((kind == each) & (sizes > 0) & (sizes <= broad))
        at_once = max(1, numbers // int(sizes[topics].max()) ** 2)
        groups += [topics[start : start + at_once] for start in range(0, len(topics), at_once)]
    return groups


class _TopicGroup:
    """Topics whose blocks are inverted together, padded to one size."""

    def __init__(self, topics: Ints, topic: Ints, place: Ints, i: Ints, j: Ints) -> None:
        self.row = np.full(int(topic.max()) + 1, -1)
        self.row[topics] = np.arange(len(topics))
        self.members = np.flatnonzero(self.row[topic] >= 0)
        self._rows, self._places = self.row[topic[self.members]], place[self.members]
        self._count, self._size = len(topics), int(self._places.max()) + 1
        self._votes = np.flatnonzero(self.row[topic[i]] >= 0)
        rows = self.row[topic[i[self._votes]]]
        self._cells = (rows * self._size + place[i[self._votes]]) * self._size + place[j[self._votes]]
        self.inverse: Floats = np.zeros((0, 0, 0))

    def invert(self, weights: Floats, diagonal: Floats) -> Floats:
        """Invert the blocks, and return the variances of the members."""
        size = self._size
        flat = np.bincount(self._cells, weights[self._votes], self._count * size**2).astype(np.float64)
        matrix = -flat.reshape(self._count, size, size)
        matrix = matrix + matrix.transpose(0, 2, 1)
        along = np.ones((self._count, size))
        along[self._rows, self._places] = diagonal[self.members]
        matrix[:, range(size), range(size)] = along
        self.inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
        return np.asarray(self.inverse[self._rows, self._places, self._places], dtype=np.float64)

    def times(self, vector: Floats) -> Floats:
        """Return the members' part of the product of the inverse blocks and a vector over all items."""
        padded = np.zeros((self._count, self._size, 1))
        padded[self._rows, self._places, 0] = vector[self.members]
        return np.asarray((self.inverse @ padded)[self._rows, self._places, 0], dtype=np.float64)
