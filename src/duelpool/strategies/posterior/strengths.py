"""Bradley-Terry: every item has a strength, normally distributed with an unknown spread.

For each spread of a grid the most probable strengths are found (Newton's method, all spreads at once, the linear
systems by conjugate gradients or, where asked, by elimination), and the strengths around them are drawn. Laplace's
evidence is too low where the spread is large; the draws correct it.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Floats, Indices
from duelpool.strategies.posterior.games import Component, GameTable, Truths, evenly, ranks_of, systematic

STRENGTHS = "strengths"
SPREADS: tuple[float, ...] = (0.1, 0.17, 0.3, 0.5, 0.8, 1.3, 2.0, 3.2)
FAINT = 0.17  # items whose strengths spread no more than this can't be told apart
NEWTON_STEPS = 12
GRADIENT_STEPS = 40
LARGEST_STEP = 2.0
WORTH = 7.0  # nats below the best spread at which the evidence isn't corrected
DRAWS = 96
NEARER = (
    0.8  # how far orders to set out from lie from the likeliest one, as a share of what the strengths say
)


@dataclass(frozen=True, slots=True)
class Fit:
    """The most probable strengths for one spread, a factor of their precision, and the log evidence by Laplace."""

    spread: float
    strengths: Floats
    factor: Floats
    log_evidence: float


class StrengthModel:
    """Bradley-Terry models of one set of games, a fit for each spread.

    With `direct`, linear systems are solved by elimination: faster for few items and many columns.
    """

    def __init__(
        self, games: GameTable, spreads: tuple[float, ...] = SPREADS, *, direct: bool = False
    ) -> None:
        self.games = games
        rows = np.repeat(np.arange(len(games.first)), 2)
        columns = np.column_stack((games.first, games.second)).ravel()
        signs = np.tile((1.0, -1.0), len(games.first))
        shape = (len(games.first), games.size)
        self._transposed = scipy.sparse.csr_array((signs, (rows, columns)), shape=shape).T.tocsr()
        self._met = abs(self._transposed)
        self._played = games.won + games.lost
        self.spreads = spreads
        self._direct = direct

    def fits(self) -> list[Fit]:
        """Return the fit for each spread."""
        strengths = self.most_probable()
        return [self._fit(spread, strengths[:, at]) for at, spread in enumerate(self.spreads)]

    def _differences(self, strengths: Floats) -> Floats:
        return np.asarray(strengths[self.games.first] - strengths[self.games.second], dtype=np.float64)

    def most_probable(self, won: Floats | None = None, spreads: Floats | None = None) -> Floats:
        """Return the most probable strengths, a column for each spread.

        With `won`, other wins of the pairs' first items, a column for each of `spreads`: the games might have ended so.
        """
        games = self.games
        precision = 1 / np.square(self.spreads if spreads is None else spreads)
        wins = games.won[:, None] if won is None else won
        at = np.zeros((games.size, len(precision)))
        for _ in range(NEWTON_STEPS):
            chance = _sigmoid(self._differences(at))
            slope = self._transposed @ (wins - self._played[:, None] * chance) - precision * at
            weight = self._played[:, None] * chance * (1 - chance)
            step = self._solved(weight, precision, slope)
            step *= np.minimum(1.0, LARGEST_STEP / np.maximum(1e-12, np.abs(step).max(axis=0)))
            at += step
            if np.abs(step).max(initial=0.0) < 1e-6:
                break
        return at

    def _solved(self, weight: Floats, precision: Floats, target: Floats) -> Floats:
        """Return x with (precision + D' weight D) x = target, a column for each spread."""
        diagonal = self._met @ weight + precision
        if self._direct:
            return self._eliminated(weight, diagonal, target)

        def product(x: Floats) -> Floats:
            return np.asarray(self._transposed @ (weight * self._differences(x)) + precision * x)

        x = target / diagonal
        left = target - product(x)
        way = left / diagonal
        size = (left * way).sum(axis=0)
        enough = 1e-16 * np.maximum(1e-30, (target * target / diagonal).sum(axis=0))
        for _ in range(GRADIENT_STEPS):
            if (size <= enough).all():
                break
            ahead = product(way)
            length = size / np.maximum(1e-300, (way * ahead).sum(axis=0))
            x += length * way
            left -= length * ahead
            scaled = left / diagonal
            now = (left * scaled).sum(axis=0)
            way = scaled + now / np.maximum(1e-300, size) * way
            size = now
        return np.asarray(x, dtype=np.float64)

    def _eliminated(self, weight: Floats, diagonal: Floats, target: Floats) -> Floats:
        size, columns = target.shape
        matrices = np.zeros((columns, size, size))
        matrices[:, self.games.first, self.games.second] = -weight.T
        matrices += matrices.transpose(0, 2, 1)
        matrices[:, np.arange(size), np.arange(size)] = diagonal.T
        return np.asarray(np.linalg.solve(matrices, target.T[:, :, None])[:, :, 0].T, dtype=np.float64)

    def _fit(self, spread: float, strengths: Floats) -> Fit:
        games = self.games
        chance = _sigmoid(strengths[games.first] - strengths[games.second])
        weight = self._played * chance * (1 - chance)
        precision = np.zeros((games.size, games.size))
        np.subtract.at(precision, (games.first, games.second), weight)
        precision += precision.T
        np.fill_diagonal(
            precision,
            np.bincount(games.first, weight, games.size)
            + np.bincount(games.second, weight, games.size)
            + spread**-2,
        )
        factor = np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
        evidence = (
            float(self.log_likelihood(strengths[:, None])[0])
            - float(strengths @ strengths) / (2 * spread**2)
            - games.size * np.log(spread)
            - float(np.log(factor.diagonal()).sum())
        )
        return Fit(spread, strengths, factor, evidence)

    def log_likelihood(self, strengths: Floats) -> Floats:
        """Return the log likelihood of all judgments, for each column of strengths."""
        apart = self._differences(strengths)
        games = self.games
        softplus = np.logaddexp(0.0, -apart)
        return np.asarray(-(self._played @ softplus) - games.lost @ apart)

    def drawn(self, fit: Fit, count: int, chances: np.random.Generator) -> tuple[Floats, float]:
        """Return strengths around a fit, a row for each draw, and the log evidence corrected by the draws."""
        half = chances.standard_normal((self.games.size, (count + 1) // 2))
        steps = scipy.linalg.solve_triangular(fit.factor, half, lower=True, trans="T")
        steps = np.concatenate((steps, -steps), axis=1)[:, :count]
        drawn = fit.strengths[:, None] + steps
        half_norm = np.concatenate((half, half), axis=1)[:, :count]
        approximate = -0.5 * np.square(half_norm).sum(axis=0)
        peak = float(self.log_likelihood(fit.strengths[:, None])[0]) - float(
            fit.strengths @ fit.strengths
        ) / (2 * fit.spread**2)
        exact = self.log_likelihood(drawn) - np.square(drawn).sum(axis=0) / (2 * fit.spread**2) - peak
        excess = exact - approximate
        correction = float(excess.mean() + min(excess.var() / 2, 10.0))
        weights = np.exp(np.minimum(0.5 * (excess - excess.mean()), 4.0))
        kept = systematic(weights, count, chances)
        return drawn[:, kept].T, fit.log_evidence + correction


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(scipy.special.expit(x), dtype=np.float64)


def strength_components(
    games: GameTable, chances: np.random.Generator, starts: int
) -> tuple[list[Component], Indices]:
    """Return a component for each spread, and `starts` plausible orders of the items by the likeliest spread.

    The orders are nearer to the likeliest one than the strengths say: people who judge by one order are more exact.
    """
    model = StrengthModel(games)
    fits = model.fits()
    likeliest = max(fits, key=lambda fit: fit.log_evidence)
    drawn, mean = model.drawn(likeliest, starts, chances)[0], likeliest.strengths
    orders = np.argsort(-(mean + NEARER * (drawn - mean)), axis=1)
    log_prior = -float(np.log(len(fits)))
    found = []
    for fit in fits:
        evidence, known = fit.log_evidence, None
        if evidence > likeliest.log_evidence - WORTH:
            known, evidence = model.drawn(fit, DRAWS, chances)
        found.append(_component(model, fit, known, evidence + log_prior))
    return found, orders


def _component(model: StrengthModel, fit: Fit, known: Floats | None, log_weight: float) -> Component:
    def draw(count: int, chances: np.random.Generator) -> Truths:
        drawn = model.drawn(fit, count, chances)[0] if known is None else known
        own = drawn[evenly(len(drawn), count, chances)]
        return Truths(ranks_of(own), own.max(axis=1, keepdims=True) - own)

    return Component(STRENGTHS, (fit.spread,), log_weight, fit.spread <= FAINT, draw)


def strongest(games: GameTable, chances: np.random.Generator, draws: int = DRAWS) -> Floats:
    """Return the chance of each item to be the strongest, by Bradley-Terry alone: a tenth of the mixture's time."""
    model = StrengthModel(games)
    fits = model.fits()
    likeliest = max(fit.log_evidence for fit in fits)
    drawn = [model.drawn(fit, draws, chances) for fit in fits if fit.log_evidence > likeliest - WORTH]
    evidence = np.array([each[1] for each in drawn])
    weights = np.exp(evidence - evidence.max())
    shares = [np.bincount(each[0].argmax(axis=1), minlength=games.size) / draws for each in drawn]
    return np.asarray(weights @ np.array(shares) / weights.sum(), dtype=np.float64)
