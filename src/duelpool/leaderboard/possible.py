"""What the items of a judged topic could be worth, and the labels that people could give them.

The answers of a topic give a posterior over the strengths of its items: Bradley-Terry with an unknown spread. From each
possible truth the answers that decided the labels are drawn anew, twice.

A run that ranks the best items high says something about the strengths, too. For its own score this must count: by
the answers alone, truths that the run knows are as likely as those that it doesn't know, and its score comes out too
low. So an item's strength has the mean slope x spread x normal score of its rank in the run. Slopes and spreads are
estimated over all topics (`knowledge_of`), and the possible truths move by what that adds to them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Floats, Indices
from duelpool.background import give_way
from duelpool.records import Judgment, Levels
from duelpool.seeds import rng_for
from duelpool.strategies.posterior.games import GameTable
from duelpool.strategies.posterior.strengths import SPREADS, Fit, StrengthModel

DRAWS = 100
FEW_DRAWS = (
    30  # where labels name many items, so that nearly every draw has other ones, which must all be scored
)
MANY = 3

LabelLevels = tuple[tuple[str, ...], ...]

_WORTH = 8.0  # nats below the likeliest spread of a topic at which a spread is left out
_STEPS = 200  # of expectation-maximisation, at most
_CALM = 1e-4
_RIDGE = 1e-3
_FEW = 64  # items, whose strengths are solved for directly


@dataclass(frozen=True, slots=True)
class JudgedTopic:
    """What the labels of a topic rest on.

    `levels` became grades, the best first. `judged` are the judgments that count; where some of them alone decided
    the labels by wins, as a final does, they are `deciding`. Otherwise all decide, by the strengths they point to.
    """

    topic: str
    levels: LabelLevels
    judged: Sequence[Judgment]
    deciding: Sequence[Judgment] = ()

    @classmethod
    def of(
        cls, topic: str, levels: LabelLevels, judged: Sequence[Judgment], *, by_phase: bool
    ) -> "JudgedTopic":
        """Return the topic of a campaign; `by_phase`: its strategy scores phase by phase, so the final decides."""
        deciding = [each for each in judged if each.phase.startswith("final")] if by_phase else ()
        return cls(topic, levels, judged, deciding)


@dataclass(frozen=True, eq=False)
class PossibleTruths:
    """The posterior of a topic's strengths, in parts by spread, and all labels that were drawn for it.

    Labels are numbered: `outcomes` has the number of each, 0 for those that the topic has.
    """

    topic: JudgedTopic
    items: tuple[str, ...]
    model: StrengthModel
    deciding: GameTable
    fits: tuple[Fit, ...]
    drawn: tuple[Floats, ...]  # for each fit, a row per draw
    log_evidence: Floats
    seed: int
    outcomes: dict[LabelLevels, int]

    @classmethod
    def of(cls, topic: JudgedTopic, draws: int = DRAWS, seed: int = 0) -> "PossibleTruths | None":
        """Draw the possible truths of a topic; None where its judgments tell nothing apart."""
        give_way()
        out = {item for judgment in topic.judged for item in judgment.bad_items}
        met = {item for judgment in topic.judged for item in (judgment.left, judgment.right)}
        items = sorted(item for item in met if item is not None and item not in out)
        place = {item: at for at, item in enumerate(items)}
        games = games_of(topic.judged, place)
        if not len(games.first) or not topic.levels:
            return None
        chances = rng_for(seed, topic.topic, "possible truths")
        model = StrengthModel(games, direct=len(items) <= _FEW)
        fits = model.fits()
        likeliest = max(fit.log_evidence for fit in fits)
        kept = tuple(fit for fit in fits if fit.log_evidence > likeliest - _WORTH)
        drawn, evidence = zip(*(model.drawn(fit, draws, chances) for fit in kept), strict=True)
        deciding = games_of(topic.deciding, place)
        known = {topic.levels: 0}
        return cls(topic, tuple(items), model, deciding, kept, drawn, np.array(evidence), seed, known)

    @cached_property
    def spreads(self) -> Indices:
        """The place of each part's spread among all spreads."""
        return np.array([SPREADS.index(fit.spread) for fit in self.fits], dtype=np.intp)

    @property
    def draws(self) -> int:
        """How many truths each part has."""
        return len(self.drawn[0])

    def parts(self, weights: Floats) -> list[tuple[int, int]]:
        """Return which parts the draws come from, and how many from each, for the weights of the parts."""
        ends = np.rint(np.cumsum(weights) / weights.sum() * self.draws).astype(int)
        counts = np.diff(ends, prepend=0).tolist()
        return [(part, count) for part, count in enumerate(counts) if count]

    # ---- runs

    def normal_scores(self, scores: Floats) -> Floats:
        """Return the normal scores of the items' ranks by their scores in runs, a row per run, 0 on average."""
        give_way()
        ranks = scipy.stats.rankdata(-scores, axis=1)
        normal = scipy.special.ndtri((len(self.items) - ranks + 0.5) / len(self.items))
        return np.asarray(normal - normal.mean(axis=1, keepdims=True), dtype=np.float64)

    def pull(self, part: int, scores: Floats) -> Floats:
        """Return how far a slope of 1 moves the most probable strengths of a part, a row per run."""
        fit = self.fits[part]
        return np.asarray(scipy.linalg.cho_solve((fit.factor, True), scores.T).T / fit.spread)

    def slope_evidence(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return b and a, per part and run: a slope g has the log evidence b g - a g^2 / 2."""
        first = [scores @ fit.strengths / fit.spread for fit in self.fits]
        second = [
            (scores * (scores - self.pull(part, scores) / fit.spread)).sum(axis=1)
            for part, fit in enumerate(self.fits)
        ]
        return np.array(first), np.array(second)

    # ---- labels, by their numbers

    def true_labels(self, strengths: Floats) -> Indices:
        """Return the labels that are true for each row of strengths.

        A final that names the best has one best item, however many tied in it.
        """
        sizes = tuple(map(len, self.topic.levels))
        one_best = len(sizes) == 1 and len(self.deciding.first) > 0
        return self._filled(strengths, (1,) if one_best else sizes)

    def labels_again(self) -> Indices:
        """Return the labels of two more judgings of each truth that the answers alone allow: two columns."""
        parts = self.parts(np.exp(self.log_evidence - self.log_evidence.max()))
        strengths = np.concatenate([self.drawn[part][:count] for part, count in parts])
        chances = rng_for(self.seed, self.topic.topic, "judged again")
        games = self.deciding if len(self.deciding.first) else self.model.games
        chance = scipy.special.expit(strengths[:, games.first] - strengths[:, games.second])
        played = np.rint(games.won + games.lost).astype(np.int64)
        won = chances.binomial(played, chance, size=(2, *chance.shape)).astype(np.float64)
        if games is self.deciding:
            return self._by_wins(won.reshape(-1, len(played))).reshape(2, -1).T
        spreads = np.repeat([self.fits[part].spread for part, _ in parts], [count for _, count in parts])
        fitted = self.model.most_probable(won.reshape(-1, len(played)).T, np.tile(spreads, 2)).T
        sizes = tuple(map(len, self.topic.levels))
        return self._filled(fitted, sizes).reshape(2, -1).T

    def _by_wins(self, won: Floats) -> Indices:
        """Return levels by the number of wins: the best one, or as many as hold the items that had a level before."""
        games, sizes = self.deciding, tuple(map(len, self.topic.levels))
        met = np.unique(np.concatenate((games.first, games.second)))
        lost = games.won + games.lost - won
        wins = won @ (games.first[:, None] == met) + lost @ (games.second[:, None] == met)
        if len(sizes) == 1:
            wins = np.where(wins == wins.max(axis=1, keepdims=True), 1.0, 0.0)
        different, which = np.unique(wins, axis=0, return_inverse=True)
        names = [self.items[at] for at in met.tolist()]
        numbers = []
        for row in different.tolist():
            order = sorted(zip((-count for count in row), names, strict=True))
            levels = tuple(
                tuple(name for _, name in group) for _, group in groupby(order, key=lambda each: each[0])
            )
            numbers.append(self._number(levels[:1] if len(sizes) == 1 else Levels(levels).top(sum(sizes))))
        return np.array(numbers, dtype=np.intp)[which.ravel()]

    def _filled(self, strengths: Floats, sizes: tuple[int, ...]) -> Indices:
        """Return levels of these sizes, filled by strength."""
        if sizes == (1,):
            best, which = np.unique(strengths.argmax(axis=1), return_inverse=True)
            return np.array([self._number(((self.items[at],),)) for at in best.tolist()], dtype=np.intp)[
                which
            ]
        order = np.argsort(-strengths, axis=1, kind="stable")[:, : sum(sizes)]
        ends = np.cumsum(sizes).tolist()
        for start, end in zip((0, *ends), ends, strict=False):
            order[:, start:end].sort(axis=1)
        different, which = np.unique(order, axis=0, return_inverse=True)
        numbers = []
        for row in different.tolist():
            names = [self.items[at] for at in row]
            levels = (tuple(sorted(names[start:end])) for start, end in zip((0, *ends), ends, strict=False))
            numbers.append(self._number(tuple(level for level in levels if level)))
        return np.array(numbers, dtype=np.intp)[which.ravel()]

    def _number(self, levels: LabelLevels) -> int:
        return self.outcomes.setdefault(levels, len(self.outcomes))


def games_of(judged: Sequence[Judgment], place: Mapping[str, int]) -> GameTable:
    """Return the decided pairs of these judgments; a tie is half a win for each."""
    pairs: dict[tuple[int, int], list[float]] = {}
    for judgment in judged:
        effect = judgment.effect
        if judgment.right is None or not effect.usable or not (effect.left or effect.right):
            continue
        i, j = place.get(judgment.left), place.get(judgment.right)
        if i is None or j is None:
            continue
        total = effect.left + effect.right
        won = effect.left / total if i < j else effect.right / total
        kept = pairs.setdefault((min(i, j), max(i, j)), [0.0, 0.0])
        kept[0] += won
        kept[1] += 1 - won
    known = sorted(pairs)
    first, second = (np.array([pair[side] for pair in known], dtype=np.intp) for side in (0, 1))
    won_lost = np.array([pairs[pair] for pair in known]).reshape(-1, 2)
    return GameTable(len(place), first, second, won_lost[:, 0], won_lost[:, 1])


# ---- what a run knows


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """What the rankings of runs say about the strengths, over all topics: for each run a slope, and shares of spreads.

    `weights` are those of each topic's parts, for each run. `scores` are the derivatives of each topic's log evidence
    by the slope and by the logarithms of the shares.
    """

    slopes: Floats
    shares: Floats  # (spreads, runs)
    weights: tuple[Floats, ...]
    scores: Floats  # (runs, topics, 1 + spreads)

    def influence(self, gradient: Floats) -> Floats:
        """Return how far each topic moves what has this gradient (runs, 1 + spreads), through the estimates.

        As if the topic were left out: by the information of all topics, and its share of it.
        """
        moved = np.zeros(self.scores.shape[:2])
        for run, (scores, shares) in enumerate(zip(self.scores, self.shares.T, strict=True)):
            information = scores.T @ scores
            information[0, 0] += 1  # of the priors
            information[1:, 1:] += np.diag(shares) - np.outer(shares, shares) + _RIDGE * np.eye(len(shares))
            steps = np.linalg.solve(information, scores.T)
            leverage = (scores.T * steps).sum(axis=0)
            moved[run] = gradient[run] @ steps / np.maximum(1 - leverage, _RIDGE)
        return moved


def knowledge_of(topics: Sequence[PossibleTruths], scores: Sequence[Floats]) -> Knowledge:
    """Estimate the slope and the shares of spreads for each run by itself, from the scores of items in its rankings.

    Expectation-maximisation. A slope has a standard normal prior, which matters where there are few answers, and one
    more topic is divided among the spreads.
    """
    runs, count = len(scores[0]), len(SPREADS)
    evidence = np.full((len(topics), count, runs), -np.inf)
    first, second = np.zeros_like(evidence), np.zeros_like(evidence)
    places = [topic.spreads for topic in topics]
    for at, (topic, own) in enumerate(zip(topics, scores, strict=True)):
        give_way()
        evidence[at, places[at]] = topic.log_evidence[:, None]
        first[at, places[at]], second[at, places[at]] = topic.slope_evidence(own)
    slopes, shares, weights = np.zeros(runs), np.full((count, runs), 1 / count), evidence
    for _ in range(_STEPS):
        give_way()
        logs = evidence + np.log(shares) + slopes * first - slopes**2 * second / 2
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        shares = (weights.sum(axis=0) + 1 / count) / (len(topics) + 1)
        before = slopes
        slopes = (weights * first).sum(axis=(0, 1)) / ((weights * second).sum(axis=(0, 1)) + 1)
        if np.abs(slopes - before).max() < _CALM:
            break
    by_slope = (weights * (first - slopes * second)).sum(axis=1)
    derivatives = np.concatenate((by_slope[:, None], weights - shares), axis=1)
    own_weights = tuple(weights[at, own] for at, own in enumerate(places))
    return Knowledge(slopes, shares, own_weights, derivatives.transpose(2, 0, 1))
