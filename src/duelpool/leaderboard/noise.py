"""How far a leaderboard would move if its labels were judged again: other people, the same questions.

The answers of a topic give a posterior over the strengths of its items. From each possible truth the answers that
decided the labels are drawn anew, twice. How far the scores by these two sets of labels are apart is the noise that
labels bring into a score. It is the same for the labels at hand and for those of a second judging; so a second mean
differs from the first by a variance of twice the noise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Floats, Indices
from duelpool.campaign import Campaign
from duelpool.campaign.views.reading import kept_levels, read_topic, topics_of
from duelpool.comparison import ScoreTable
from duelpool.errors import BadParameter
from duelpool.evaluation import Evaluation
from duelpool.files import Preferences, Run
from duelpool.leaderboard.scoring import DuplicateGroups, duplicates_of, make_labels
from duelpool.measures import Measure, ReadyRun, Truth
from duelpool.measures.preference import OverPreferences
from duelpool.records import Judgment, Levels
from duelpool.seeds import rng_for
from duelpool.store import Reading
from duelpool.strategies.posterior.games import GameTable
from duelpool.strategies.posterior.strengths import StrengthModel

AGAIN = "again"
"""The name of these intervals, beside those of `evaluate`."""

DRAWS = 100

LabelLevels = tuple[tuple[str, ...], ...]


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


@dataclass(frozen=True, slots=True)
class RedrawnLabels:
    """Labels that two more judgings of a topic could give, for each of some possible truths."""

    outcomes: tuple[LabelLevels, ...]  # different ones; the first are those that the topic has
    again: Indices  # (draws, 2), places in `outcomes`


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """The scores of runs by the labels as they are, and the covariances of their means that come from the labels."""

    table: ScoreTable
    covariance: Floats

    def judged_again(self, level: float = 0.95) -> Floats:
        """Return a low and a high end per run: where its mean falls if the same topics are judged again."""
        if not 0 < level < 1:
            raise BadParameter(f"A level of confidence lies between 0 and 1, not at {level}.")
        quantile = scipy.stats.t.ppf((1 + level) / 2, max(1, len(self.table.topics) - 1))
        reach = quantile * np.sqrt(2 * np.diag(self.covariance))
        means = self.table.means()
        ends = np.column_stack((means - reach, means + reach))
        return np.asarray(np.clip(ends, *self.table.limits), dtype=np.float64)


# ---- labels


def redrawn_labels(topic: JudgedTopic, draws: int = DRAWS, seed: int = 0) -> RedrawnLabels:
    """Return labels that a topic could have; where its judgments tell nothing apart, those that it has."""
    numbers: dict[LabelLevels, int] = {topic.levels: 0}
    out = {item for judgment in topic.judged for item in judgment.bad_items}
    items = sorted(
        {item for judgment in topic.judged for item in (judgment.left, judgment.right) if item is not None}
        - out
    )
    place = {item: at for at, item in enumerate(items)}
    games = _games(topic.judged, place)
    if not len(games.first) or not topic.levels:
        return RedrawnLabels((topic.levels,), np.zeros((draws, 2), dtype=np.intp))
    chances = rng_for(seed, topic.topic, "label noise")
    strengths, spreads, model = _possible(games, draws, chances)

    def number(levels: LabelLevels) -> int:
        return numbers.setdefault(levels, len(numbers))

    sizes = tuple(map(len, topic.levels))
    deciding = _games(topic.deciding, place)
    if len(deciding.first):
        again = [
            [number(_by_wins(wins, items, deciding, sizes)) for wins in _replayed(row, deciding, chances)]
            for row in strengths
        ]
    else:
        won = np.concatenate([_replayed(row, games, chances) for row in strengths]).T
        fitted = model.most_probable(won, np.repeat(spreads, 2)).T
        again = [
            [number(_filled(row, items, sizes)) for row in fitted[at : at + 2]]
            for at in range(0, len(fitted), 2)
        ]
    return RedrawnLabels(tuple(numbers), np.array(again))


def _games(judged: Sequence[Judgment], place: Mapping[str, int]) -> GameTable:
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


def _possible(
    games: GameTable, draws: int, chances: np.random.Generator
) -> tuple[Floats, Floats, StrengthModel]:
    """Return possible strengths, a row for each draw, and the spread that each comes from."""
    model = StrengthModel(games)
    fits = model.fits()
    drawn = [model.drawn(fit, draws, chances) for fit in fits]
    evidence = np.array([each[1] for each in drawn])
    weights = np.exp(evidence - evidence.max())
    source = chances.choice(len(fits), draws, p=weights / weights.sum())
    strengths = np.array([drawn[of][0][at] for at, of in enumerate(source)])
    return strengths, np.array([fits[of].spread for of in source]), model


def _replayed(strengths: Floats, games: GameTable, chances: np.random.Generator) -> Floats:
    """Return the wins of each pair's first item in two more judgings of all pairs."""
    chance = scipy.special.expit(strengths[games.first] - strengths[games.second])
    played = np.rint(games.won + games.lost).astype(np.int64)
    return chances.binomial(played, chance, size=(2, len(played))).astype(np.float64)


def _by_wins(wins: Floats, items: Sequence[str], games: GameTable, sizes: tuple[int, ...]) -> LabelLevels:
    """Return levels by the number of wins: the best one, or as many as hold the items that had a level before."""
    lost = games.won + games.lost - wins
    scores = np.bincount(games.first, wins, games.size) + np.bincount(games.second, lost, games.size)
    met = sorted({*games.first.tolist(), *games.second.tolist()}, key=lambda at: (-scores[at], items[at]))
    levels = [tuple(items[at] for at in group) for _, group in groupby(met, key=lambda at: scores[at])]
    return tuple(levels[:1]) if len(sizes) == 1 else Levels(tuple(levels)).top(sum(sizes))


def _filled(strengths: Floats, items: Sequence[str], sizes: tuple[int, ...]) -> LabelLevels:
    """Return levels of these sizes, filled by strength."""
    order = [items[at] for at in np.argsort(-strengths, kind="stable")[: sum(sizes)]]
    ends = np.cumsum(sizes).tolist()
    return tuple(tuple(sorted(order[start:end])) for start, end in zip((0, *ends), ends, strict=False))


# ---- scores


def label_noise(
    topics: Sequence[JudgedTopic],
    runs: Sequence[Run],
    measure: Measure,
    *,
    duplicates: DuplicateGroups | None = None,
    weights: Mapping[str, float] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> LabelNoise:
    """Score runs by a measure over levels, and say how far the noise of the labels moves the means.

    `progress` is told each step's share of the work, in hundredths.
    """
    labelled = [topic for topic in topics if topic.levels]
    if not labelled:
        raise BadParameter("Nothing is judged yet.", remedy="Judge first: `duelpool judge terminal STORE`.")
    redrawn = [redrawn_labels(topic, draws, seed) for topic in labelled]
    ready = [ReadyRun(run) for run in runs]
    values = [np.full((len(each.outcomes), len(runs)), np.nan) for each in redrawn]
    place = {topic.topic: at for at, topic in enumerate(labelled)}
    most = max(len(each.outcomes) for each in redrawn)
    for outcome in range(most):
        kept = {
            topic.topic: each.outcomes[outcome]
            for topic, each in zip(labelled, redrawn, strict=True)
            if outcome < len(each.outcomes)
        }
        labels = make_labels(kept, Preferences.from_judgments(()), duplicates or {})
        truth = Truth.of([labels.qrels, *([labels.duplicates] if len(labels.duplicates) else [])])
        of_truth = measure.items(truth).topics
        for at, run in enumerate(ready):
            for topic, value in zip(of_truth, measure.values(truth, run).tolist(), strict=True):
                values[place[topic]][outcome, at] = value
        if progress is not None:
            progress(100 * (outcome + 1) // most - 100 * outcome // most)
    counted = np.array([(weights or {}).get(topic.topic, 1.0) for topic in labelled])
    hard = np.array([each[0] for each in values]).T.reshape(len(runs), len(labelled))
    names = tuple(topic.topic for topic in labelled)
    table = ScoreTable(tuple(run.name for run in runs), names, hard, counted, measure.limits)
    return LabelNoise(table, _covariance(table, redrawn, values))


def _covariance(table: ScoreTable, redrawn: Sequence[RedrawnLabels], values: Sequence[Floats]) -> Floats:
    """Return the covariances of the runs' means over judgings; topics that a run lacks have no part in its mean."""
    found = np.zeros((len(table.runs), len(table.runs)))
    for each, scored, weight in zip(redrawn, values, table.weights.tolist(), strict=True):
        apart = weight * np.nan_to_num(scored[each.again[:, 0]] - scored[each.again[:, 1]])
        found += apart.T @ apart / (2 * len(apart))
    total = (~np.isnan(table.values) * table.weights).sum(axis=1)
    return np.asarray(found / np.maximum(np.outer(total, total), 1e-300), dtype=np.float64)


# ---- campaigns


def judged_topics(campaign: Campaign) -> tuple[list[JudgedTopic], DuplicateGroups]:
    """Return what the labels of a campaign rest on, topic by topic, and the duplicates of its items."""

    def work(tx: Reading) -> tuple[list[JudgedTopic], DuplicateGroups]:
        topics = []
        for topic in topics_of(tx):
            judged: list[Judgment] = []
            read = read_topic(tx, campaign, topic, on_judgment=judged.append)
            levels = kept_levels(read) if read.usable else ()
            by_phase = not read.strategy.pools_judgments
            deciding = [each for each in judged if each.phase.startswith("final")] if by_phase else []
            topics.append(JudgedTopic(topic, levels, judged, deciding))
        return topics, duplicates_of(tx, [topic.topic for topic in topics])

    return campaign.read(work)


def with_intervals_again(
    evaluation: Evaluation,
    campaign: Campaign,
    runs: Sequence[Run],
    *,
    level: float = 0.95,
    weights: Mapping[str, float] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Return the evaluation of a campaign's runs with intervals for a second judging of the same topics.

    Measures over preferences have none: they are computed from the answers themselves.
    """
    topics, duplicates = judged_topics(campaign)
    ends: dict[str, Floats] = {}
    notes = []
    for measure in evaluation.measures:
        wanted = set(evaluation.tables[str(measure)].topics)
        if isinstance(measure, OverPreferences):
            notes.append(f"{measure}: no interval, for it is computed from preferences, not from labels")
            continue
        noise = label_noise(
            [topic for topic in topics if topic.topic in wanted],
            runs,
            measure,
            duplicates=duplicates,
            weights=weights,
            seed=seed,
            progress=progress,
        )
        ends[str(measure)] = noise.judged_again(level)
    if ends:
        notes.insert(
            0,
            f"[low, high]: where the mean falls if the same topics are judged again, in {level:.0%} of cases",
        )
    return evaluation.with_intervals(ends, notes)
