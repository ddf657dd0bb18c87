"""Bradley-Terry strengths: i beats j with probability 1 / (1 + exp(s_j - s_i)).

The likelihood depends on the judgments only through their counts by pair, so a million of them cost what the
counting costs; the counts are then fitted by Newton's method, and resampled by drawing new counts.
"""

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from duelpool.arrays import Bools, Floats, Ints, Singles
from duelpool.errors import BadParameter
from duelpool.preferences.matrix import WinMatrix
from duelpool.preferences.resamples import (
    WIDEST,
    ResampledGames,
    resampled_counts,
    signs_of,
    sum_expected_wins,
)
from duelpool.seeds import rng_for

IntervalMethod: TypeAlias = Literal["sandwich", "bootstrap"]

_STEPS = 100
_CHORDS = 40  # the last ones are of few resamples, and each is far cheaper than a fit of its own
_SCALINGS = 3  # of the first chords
_CLOSE = 1e-5  # the largest move of a strength
_TOGETHER = 100  # resamples
_DENSE = 1000  # items
_FULL_STEPS = 12
_PRODUCTS = 20
_TOLERANCE = 1e-10
_BARE_PRIOR = 0.01  # drawn games: enough for a finite fit, too few to matter


@dataclass(frozen=True, slots=True, eq=False)
class Strengths:
    """Bradley-Terry strengths on the log scale, in the order of the items.

    `prior` is the number of drawn games that every item was given against an item of strength 0, where the
    judgments alone have no finite best fit; without such games it is 0, and so is the strengths' mean.
    `components` are the groups of items that were compared with one another; strengths of different groups
    are comparable through the prior only.
    """

    items: tuple[str, ...]
    values: Floats
    prior: float
    components: tuple[tuple[str, ...], ...]
    matrix: WinMatrix = field(repr=False)

    def chance(self, a: str, b: str) -> float:
        """Return the fitted chance that a is preferred to b."""
        import scipy

        return float(scipy.special.expit(self.values[self.items.index(a)] - self.values[self.items.index(b)]))

    def intervals(
        self,
        method: IntervalMethod = "sandwich",
        level: float = 0.95,
        resamples: int = 1000,
        seed: int = 0,
    ) -> Floats:
        """Return a low and a high end per item.

        sandwich   normal, with the variance that holds even where judgments don't follow the model
        bootstrap  percentiles over fits to resampled judgments

        Both take judgments as independent: where a few assessors with tastes of their own give many each, they are
        too short.
        """
        import scipy

        if not 0 < level < 1:
            raise BadParameter(f"A level of confidence lies between 0 and 1, not at {level}.")
        if method == "sandwich":
            half = float(scipy.special.ndtri(0.5 + level / 2)) * np.sqrt(np.diag(_sandwich(self)))
            return np.stack((self.values - half, self.values + half), axis=1)
        if method != "bootstrap":
            raise BadParameter(
                f"There are no intervals by '{method}'.", remedy="Choose sandwich or bootstrap."
            )
        drawn = bootstrap_strengths(self, resamples, seed)
        ends: Floats = np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0).T
        return ends


@dataclass(frozen=True, slots=True, eq=False)
class _Games:
    """The pairs that met, i < j, with the games of each; ties are halves."""

    i: Ints
    j: Ints
    wins: Floats  # of i, ties as halves
    played: Floats
    n: int
    prior: float

    @classmethod
    def of(cls, matrix: WinMatrix, prior: float) -> "_Games":
        i, j = np.nonzero(np.triu(matrix.played, 1))
        return cls(i, j, matrix.halves[i, j], matrix.played[i, j], len(matrix), prior)

    def gradient(self, strengths: Floats) -> tuple[Floats, Floats]:
        """Return the log-likelihood's gradient, and the fitted chance that i beats j."""
        import scipy

        chance: Floats = scipy.special.expit(strengths[self.i] - strengths[self.j])
        surplus = self.wins - self.played * chance
        won: Floats = np.bincount(self.i, weights=surplus, minlength=self.n).astype(np.float64)
        gradient = won - np.bincount(self.j, weights=surplus, minlength=self.n)
        if self.prior:
            gradient += self.prior * (0.5 - scipy.special.expit(strengths))
        return gradient, chance

    def curvature(self, chance: Floats, strengths: Floats) -> Floats:
        """Return minus the second derivatives; a plane is added along which the likelihood is flat."""
        import scipy

        weight = self.played * chance * (1 - chance)
        flat = np.zeros((self.n, self.n))
        np.negative(weight, out=weight)
        np.put(flat, self.i * self.n + self.j, weight)
        np.put(flat, self.j * self.n + self.i, weight)
        diagonal = flat.reshape(-1)[:: self.n + 1]
        diagonal[:] = -flat.sum(axis=1)
        if self.prior:
            average = scipy.special.expit(strengths)
            diagonal += self.prior * average * (1 - average)
        else:
            flat += 1 / self.n  # only differences count without a prior: hold the mean at 0
        return flat

    def likelihood(self, strengths: Floats) -> float:
        """Return the logarithm of the likelihood, with the prior's games."""
        gap = strengths[self.i] - strengths[self.j]
        total = np.sum(self.wins * gap - self.played * _softplus(gap))
        return float(total + self.prior * np.sum(strengths / 2 - _softplus(strengths)))


def _softplus(x: Floats) -> Floats:
    """Return log(1 + exp(x)); several times as fast as numpy's logaddexp."""
    soft: Floats = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return soft


def bradley_terry(matrix: WinMatrix, prior: float | None = None) -> Strengths:
    """Fit Bradley-Terry strengths to a win matrix, ties as half a win for both.

    With `prior` None, each item is given one drawn game against an item of strength 0 exactly where it must
    be: where some items won every game against the others, so that no finite strengths fit best.
    """
    halves, played = matrix.halves, matrix.played
    groups, group, strong = _connected(halves, played)
    if prior is None:
        prior = 0.0 if strong <= 1 else 1.0
    if prior < 0 or (prior == 0 and strong > 1):
        raise BadParameter(
            f"With a prior of {prior:g} games these judgments have no finite best fit.",
            remedy="Some items never lost to the others: leave the prior out, or give one above 0.",
        )
    won = halves.sum(axis=1)
    start = _shares_as_strengths(won, played)
    values = _fitted_densely(won, played, prior, start)
    if values is None:
        values = _fitted(_Games.of(matrix, prior), start)
    members = [[] for _ in range(groups)]  # type: list[list[str]]
    for item, at in zip(matrix.items, group.tolist(), strict=True):
        members[int(at)].append(item)
    return Strengths(matrix.items, _centred(values, prior), prior, _frozen(members), matrix)


def _shares_as_strengths(won: Floats, played: Floats) -> Floats:
    """Return the log-odds of each item's share of won games: two steps nearer to the best fit than zeros are."""
    shares = (won + 0.5) / (played.sum(axis=1) + 1.0)
    strengths: Floats = np.log(shares / (1 - shares))
    return _centred(strengths, 0.0)


def _connected(halves: Floats, played: Floats) -> tuple[int, Ints, int]:
    """Return how many groups of items were compared with one another, each item's group, and how many are strong.

    In a strong group everyone is beaten by everyone else, directly or through others.
    """
    n, beaten = len(halves), halves > 0
    if not n or (_all_reached(beaten) and _all_reached(beaten.T)):
        return min(n, 1), np.zeros(n, dtype=np.int64), min(n, 1)
    import scipy

    components = scipy.sparse.csgraph.connected_components
    groups, group = components(scipy.sparse.csr_array(played), directed=False)
    strong = components(scipy.sparse.csr_array(beaten), directed=True, connection="strong")[0]
    return groups, group, strong


def _all_reached(linked: Bools) -> bool:
    """Say whether every item can be reached from the first one."""
    reached = np.zeros(len(linked), dtype=np.bool_)
    new = np.zeros(1, dtype=np.int64)
    while len(new):
        reached[new] = True
        new = np.flatnonzero(linked[new].any(axis=0) & ~reached)
    return bool(reached.all())


def _centred(strengths: Floats, prior: float) -> Floats:
    """Hold the mean at 0 where nothing else fixes the scale's origin."""
    return strengths if prior or not strengths.size else strengths - strengths.mean(axis=-1, keepdims=True)


def _frozen(members: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(group) for group in members)


def _fitted(games: _Games, start: Floats) -> Floats:
    """Newton's method with halved steps; the likelihood is concave, so it ends at the one best fit."""
    strengths, height = start, games.likelihood(start)
    for _ in range(_STEPS):
        gradient, chance = games.gradient(strengths)
        if np.max(np.abs(gradient), initial=0.0) < _TOLERANCE * max(1.0, float(games.played.sum())):
            break
        step = np.linalg.solve(games.curvature(chance, strengths), gradient)
        share, rise = 1.0, float(gradient @ step)
        while True:
            trial = strengths + share * step
            reached = games.likelihood(trial)
            if reached >= height + 1e-4 * share * rise or share < 1e-8:
                break
            share /= 2
        strengths, height = trial, reached
        if rise < 1e-12:
            break
    return strengths


def _fitted_densely(won: Floats, played: Floats, prior: float, start: Floats) -> Floats | None:
    """Newton's method on whole matrices, for items of which most have met; None where its full steps don't converge."""
    n = len(won)
    if not 0 < n <= _DENSE or np.count_nonzero(played) < n * n / 4:
        return None
    games = played.sum() / 2
    strengths = start
    chance, expected = np.empty_like(played), np.empty_like(played)
    for _ in range(_FULL_STEPS):
        if np.ptp(strengths) > WIDEST or not np.all(np.isfinite(strengths)):
            return None
        odds = np.exp(strengths)
        np.add.outer(odds, odds, out=chance)
        np.divide(odds[:, None], chance, out=chance)
        np.multiply(played, chance, out=expected)
        average = odds / (1 + odds)
        gradient = won - expected.sum(axis=1) + prior * (0.5 - average)
        if np.max(np.abs(gradient)) < _TOLERANCE * max(1.0, games):
            return strengths
        expected *= chance.T  # now the variance of the games' outcomes
        step = _solved(expected, prior * average * (1 - average), gradient, flat=not prior)
        if step is None:
            return None
        strengths = strengths + step
    return None


def _solved(weight: Floats, prior: Floats, gradient: Floats, *, flat: bool) -> Floats | None:
    """Return the Newton step, for the variances of the pairs' games and of the prior's; None where there is none.

    Conjugate gradients find it in few products of the matrix where most items have met; other systems are solved.
    Where the likelihood is flat along equal steps of all items, the mean of the steps is 0.
    """
    diagonal = weight.sum(axis=1) + prior
    if diagonal.min() <= 0:
        return None
    step = np.zeros_like(gradient)
    rest = gradient - gradient.mean() if flat else gradient.copy()
    enough = 1e-14 * float(rest @ rest)
    scaled = rest / diagonal
    direction, now = scaled, float(rest @ scaled)
    for _ in range(_PRODUCTS):
        image = diagonal * direction - weight @ direction
        bend = float(direction @ image)
        if bend <= 0:
            break
        share = now / bend
        step += share * direction
        rest -= share * image
        if float(rest @ rest) <= enough:
            return step - step.mean() if flat else step
        scaled = rest / diagonal
        before, now = now, float(rest @ scaled)
        direction = scaled + now / before * direction
    curvature: Floats = np.diag(diagonal) - weight
    if flat:
        curvature += 1 / len(gradient)
    try:
        return np.asarray(np.linalg.solve(curvature, gradient), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


def _sandwich(fit: Strengths) -> Floats:
    """Return the covariance of the strengths, robust to judgments that don't follow the model."""
    games = _Games.of(fit.matrix, fit.prior)
    _, chance = games.gradient(fit.values)
    inverse = np.linalg.inv(games.curvature(chance, fit.values))
    i, j = games.i, games.j
    wins, losses, ties = fit.matrix.wins[i, j], fit.matrix.wins[j, i], fit.matrix.ties[i, j]
    spread = wins * (1 - chance) ** 2 + losses * chance**2 + ties * (0.5 - chance) ** 2
    meat = np.zeros((games.n, games.n))
    meat[i, j] = meat[j, i] = -spread
    meat[np.diag_indices(games.n)] = -meat.sum(axis=1)
    centre = np.eye(games.n) - (0.0 if fit.prior else 1 / games.n)
    covariance: Floats = centre @ inverse @ meat @ inverse @ centre
    return covariance


def bootstrap_strengths(fit: Strengths, resamples: int = 1000, seed: int = 0) -> Floats:
    """Return strengths fitted to resampled judgments: a row per resample.

    Drawing judgments with replacement is drawing counts from a multinomial, so no judgment is touched. A
    resample may lack the games that hold the strengths together; each fit is given one hundredth of a drawn
    game per item where the fit itself has no prior.
    """
    if resamples < 1:
        raise BadParameter(f"A bootstrap needs 1 resample or more, not {resamples}.")
    games = _Games.of(fit.matrix, fit.prior or _BARE_PRIOR)
    kinds = _Kinds.of(fit.matrix, games)
    rng = rng_for(seed, "bradley-terry", "bootstrap")
    fitted = [
        _fitted_many(
            games, kinds, resampled_counts(kinds.count, min(_TOGETHER, resamples - done), rng), fit.values
        )
        for done in range(0, resamples, _TOGETHER)
    ]
    return _centred(np.concatenate(fitted), fit.prior)


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """The different judgments: which pair, who won (1, 0 or 1/2 for i), and how often."""

    pair: Ints
    won: Floats
    count: Ints

    @classmethod
    def of(cls, matrix: WinMatrix, games: _Games) -> "_Kinds":
        i, j = games.i, games.j
        counts = np.stack((matrix.wins[i, j], matrix.wins[j, i], matrix.ties[i, j]))
        outcome, pair = np.nonzero(counts)
        won, count = np.array([1.0, 0.0, 0.5])[outcome], counts[outcome, pair].astype(np.int64)
        if count.sum() > 2 * len(count):
            return cls(pair, won, count)
        # Most judgments are the only one of their kind: each counts as its own, so that none must be looked up.
        return cls(pair.repeat(count), won.repeat(count), np.ones(count.sum(), dtype=np.int64))


def _fitted_many(games: _Games, kinds: _Kinds, drawn: Singles, start: Floats) -> Floats:
    """Fit many resamples of the same games, each from the same start: a row per resample.

    They step with the curvature at the start, inverted once and scaled on both sides to each resample's own diagonal,
    which is worked out for the first steps. A fit has converged when its strengths are within a hundred thousandth,
    judging by its last two moves; those that don't converge are fitted one by one. A prior of next to nothing leaves
    the strengths' mean open: it stays where it is.
    """
    import scipy

    _, chance = games.gradient(start)
    curvature = games.curvature(chance, start)
    diagonal = np.diag(curvature).astype(np.float32)[:, None]
    open_mean = games.prior <= _BARE_PRIOR
    if open_mean:
        curvature += diagonal.mean() / games.n
    inverse = np.linalg.inv(curvature).astype(np.float32)
    back = signs_of(games.i, games.j, games.n).T.tocsr()  # a column per pair: +1 for i, -1 for j
    each = np.arange(len(kinds.pair))
    ones = np.ones(len(each), dtype=np.float32)
    played = scipy.sparse.csr_array((ones, (kinds.pair, each)), (len(games.i), len(each))) @ drawn
    won = scipy.sparse.csr_array(
        (kinds.won.astype(np.float32), (kinds.pair, each)), (len(games.i), len(each))
    )
    fitted = np.repeat(start[:, None], drawn.shape[1], axis=1)
    left = np.arange(drawn.shape[1])  # the resamples that haven't converged
    strengths, wins = fitted.copy(), (back @ won) @ drawn
    sums = np.empty((2, *fitted.shape), dtype=np.float32)
    resampled = ResampledGames(games.i, games.j, played, back.indptr, back.indices, back.data)
    before = np.full(len(left), np.inf)
    for turn in range(_CHORDS):
        sum_expected_wins(resampled, strengths.astype(np.float32), turn < _SCALINGS, sums)
        expected, variance = sums
        average = scipy.special.expit(strengths)
        gradient = wins - expected + games.prior * (0.5 - average)
        if turn < _SCALINGS:
            scale = np.sqrt(diagonal / (variance + games.prior * average * (1 - average))).astype(np.float32)
        step = scale * (inverse @ (scale * gradient.astype(np.float32)))
        if open_mean:
            step -= step.mean(axis=0)
        strengths += step
        move = np.abs(step).max(axis=0)
        rate = np.clip(move / before, 0.1, 0.9)
        going, before = move * rate / (1 - rate) >= _CLOSE, move
        if np.count_nonzero(going) < len(left) / 2 or turn == _CHORDS - 1:
            fitted[:, left] = strengths
            left, scale, before, strengths = left[going], scale[:, going], before[going], strengths[:, going]
            wins, sums = wins[:, going], np.compress(going, sums, axis=2)
            resampled = resampled._replace(played=np.compress(going, resampled.played, axis=1))
        if not len(left):
            break
    for at in left.tolist():
        own_wins = (won @ drawn[:, at]).astype(np.float64)
        alone = replace(games, wins=own_wins, played=played[:, at].astype(np.float64))
        fitted[:, at] = _fitted(alone, start)
    return fitted.T
