"""How far the noise of labels moves a leaderboard: expected scores, and two intervals.

judged again, same topics  where a run's mean falls if the questions that decided the labels are asked again. The
                           labels of two more judgings are drawn from the same possible truth; how far their scores
                           are apart is the noise of one judging. A second mean differs by twice its variance.
on new topics              where a run's true score lies, over topics like these: by the best items themselves, not
                           by the labels that people gave them.

The expected score of a topic is the mean of the scores by its possible truths, as far as the answers and the run's own
ranking tell them (`possible`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Bools, Floats, Indices
from duelpool.background import give_way
from duelpool.campaign import Campaign
from duelpool.campaign.views.reading import kept_levels, read_topic, topics_of
from duelpool.comparison import AGAIN, ScoreTable, against_baseline
from duelpool.errors import BadParameter
from duelpool.evaluation import Evaluation
from duelpool.evaluation.result import ExpectedScores
from duelpool.files import Preferences, Run
from duelpool.files.run_names import find_run
from duelpool.leaderboard.possible import (
    DRAWS,
    FEW_DRAWS,
    MANY,
    JudgedTopic,
    Knowledge,
    LabelLevels,
    PossibleTruths,
    knowledge_of,
)
from duelpool.leaderboard.scoring import DuplicateGroups, duplicates_of, make_labels
from duelpool.measures import Measure, ReadyRun, Truth
from duelpool.measures.preference import OverPreferences
from duelpool.records import Judgment
from duelpool.store import Reading
from duelpool.strategies.posterior.strengths import SPREADS

NoisePart: TypeAlias = Literal["expected", "interval", "test"]
"""What an evaluation gets: expected scores with both intervals; "judged again" as the interval, and as the test."""

EXPECTED: tuple[NoisePart, ...] = ("expected",)


@dataclass(frozen=True, slots=True, eq=False)
class LabelNoise:
    """The scores of runs by the labels, and those that are expected by the truth behind them."""

    table: ScoreTable  # by the labels, with the noise of its means
    expected: ScoreTable
    errors: Floats  # standard errors of the expected means, over topics and labels

    @property
    def covariance(self) -> Floats:
        """Covariances of the means by the labels, over judgings of the same topics."""
        if self.table.noise is None:
            raise ValueError("a table of noisy labels without noise")
        return self.table.noise

    def judged_again(self, level: float = 0.95) -> Floats:
        """Return a low and a high end per run: where its mean falls if the same topics are judged again."""
        return self._around(self.table, np.sqrt(2 * np.diag(self.covariance)), level)

    def new_topics(self, level: float = 0.95) -> Floats:
        """Return a low and a high end per run: where its true score lies, over topics like these."""
        return self._around(self.expected, self.errors, level)

    def _around(self, table: ScoreTable, errors: Floats, level: float) -> Floats:
        if not 0 < level < 1:
            raise BadParameter(f"A level of confidence lies between 0 and 1, not at {level}.")
        quantile = scipy.stats.t.ppf((1 + level) / 2, max(1, len(table.topics) - 1))
        means, reach = table.means(), quantile * errors
        ends = np.column_stack((means - reach, means + reach))
        return np.asarray(np.clip(ends, *table.limits), dtype=np.float64)


# ---- labels


@dataclass(frozen=True, slots=True, eq=False)
class DrawnLabels:
    """Numbers of the labels that were drawn for a topic.

    `again`: two more judgings of each truth by the answers alone. For each run, by its ranking too: the `true` labels,
    how much likelier a steeper slope would make each truth (`steeper`), and the spread that it comes from (`spread`).
    """

    outcomes: Sequence[LabelLevels]
    again: Indices  # (draws, 2)
    true: Indices  # (runs, draws)
    steeper: Floats  # (runs, draws)
    spread: Indices  # (runs, draws), by its place among all spreads

    @classmethod
    def none(cls, topic: JudgedTopic, runs: int) -> "DrawnLabels":
        """Return the labels of a topic whose judgments tell nothing apart: those that it has."""
        zeros = np.zeros((runs, 1), dtype=np.intp)
        return cls((topic.levels,), np.zeros((1, 2), dtype=np.intp), zeros, np.zeros((runs, 1)), zeros)

    @classmethod
    def again_only(cls, possible: PossibleTruths, runs: int) -> "DrawnLabels":
        """Draw the labels of two more judgings alone: the true labels count as those that the topic has."""
        drawn, known = possible.labels_again(), cls.none(possible.topic, runs)
        return replace(known, outcomes=tuple(possible.outcomes), again=drawn)

    @classmethod
    def of(cls, possible: PossibleTruths, scores: Floats, slopes: Floats, weights: Floats) -> "DrawnLabels":
        """Draw labels; `scores` of the items in each run, `weights` of the parts for each run."""
        again = possible.labels_again()
        pulls = [possible.pull(part, scores) for part in range(len(possible.fits))]
        true, steeper, spread = [], [], []
        for run, (own, slope) in enumerate(zip(scores, slopes.tolist(), strict=True)):
            parts = possible.parts(weights[:, run])
            truths = [possible.drawn[part][:count] + slope * pulls[part][run] for part, count in parts]
            by_slope = [
                each @ own / possible.fits[part].spread for each, (part, _) in zip(truths, parts, strict=True)
            ]
            true.extend(truths)
            steeper.append(np.concatenate(by_slope) - slope * own @ own)
            spread.append(
                np.repeat(possible.spreads[[part for part, _ in parts]], [count for _, count in parts])
            )
        labels = possible.true_labels(np.concatenate(true)).reshape(len(scores), -1)
        return cls(tuple(possible.outcomes), again, labels, np.array(steeper), np.array(spread))

    def used(self) -> Bools:
        """Return which outcomes (a row each) the score of each run is needed for."""
        needed = np.zeros((len(self.outcomes), len(self.true)), dtype=np.bool_)
        needed[0] = True
        needed[self.again.ravel()] = True
        for run in range(len(self.true)):
            needed[self.true[run], run] = True
        return needed


def _draw(
    topics: Sequence[JudgedTopic],
    runs: Sequence[Run],
    duplicates: DuplicateGroups,
    *,
    draws: int,
    seed: int,
    again_only: bool,
) -> tuple[list[DrawnLabels], Knowledge | None]:
    """Return the labels of each topic, and what the runs know of all topics that tell anything apart."""
    possible = [PossibleTruths.of(topic, draws, seed) for topic in topics]
    labels = [DrawnLabels.none(topic, len(runs)) for topic in topics]
    if again_only:
        for at, each in enumerate(possible):
            labels[at] = labels[at] if each is None else DrawnLabels.again_only(each, len(runs))
        return labels, None
    told = [at for at, each in enumerate(possible) if each is not None]
    known = [each for each in possible if each is not None]
    if not known or not runs:
        return labels, None
    scores = [
        each.normal_scores(own) for each, own in zip(known, _scores_of(runs, known, duplicates), strict=True)
    ]
    knowledge = knowledge_of(known, scores)
    for at, each, own, weights in zip(told, known, scores, knowledge.weights, strict=True):
        give_way()
        labels[at] = DrawnLabels.of(each, own, knowledge.slopes, weights)
    derivatives = np.zeros((len(runs), len(topics), knowledge.scores.shape[2]))
    derivatives[:, told] = knowledge.scores
    return labels, replace(knowledge, scores=derivatives)


def _scores_of(
    runs: Sequence[Run], topics: Sequence[PossibleTruths], duplicates: DuplicateGroups
) -> list[Floats]:
    """Return for each topic the scores of its items in the runs, a row per run; -inf where a run lacks an item.

    An item counts with its best duplicate.
    """
    items = [(possible.topic.topic, item) for possible in topics for item in possible.items]
    named = [
        (topic, docno, place)
        for place, (topic, item) in enumerate(items)
        for docno in (item, *duplicates.get(topic, {}).get(item, ()))
    ]
    wanted = pl.DataFrame(named, ["topic", "docno", "place"], orient="row")
    whole = np.full((len(runs), len(items)), -np.inf)
    for own, run in zip(whole, runs, strict=True):
        give_way()
        found = run.frame.join(wanted, on=["topic", "docno"])
        np.maximum.at(own, found["place"].to_numpy(), found["score"].to_numpy())
    return np.split(whole, np.cumsum([len(possible.items) for possible in topics])[:-1], axis=1)


# ---- scores


def label_noise(
    topics: Sequence[JudgedTopic],
    runs: Sequence[Run],
    measure: Measure,
    *,
    duplicates: DuplicateGroups | None = None,
    weights: Mapping[str, float] | None = None,
    draws: int | None = None,
    again_only: bool = False,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> LabelNoise:
    """Score runs by a measure over levels, and say how far the noise of the labels moves the means.

    With `again_only`, other judgings alone are drawn, and no expected scores: those are the scores by the labels.
    `progress` is told each step's share of the work, in hundredths. Without `draws`, labels that name many items are
    drawn less often.
    """
    labelled = [topic for topic in topics if topic.levels]
    if not labelled:
        raise BadParameter("Nothing is judged yet.", remedy="Judge first: `duelpool judge terminal STORE`.")
    if draws is None:
        named = np.median([sum(map(len, topic.levels)) for topic in labelled])
        draws = FEW_DRAWS if named > MANY else DRAWS
    drawn, knowledge = _draw(labelled, runs, duplicates or {}, draws=draws, seed=seed, again_only=again_only)
    values = _values(labelled, drawn, runs, measure, duplicates=duplicates or {}, progress=progress)
    counted = np.array([(weights or {}).get(topic.topic, 1.0) for topic in labelled])
    hard = np.array([each[0] for each in values]).T.reshape(len(runs), len(labelled))
    names = tuple(topic.topic for topic in labelled)
    table = ScoreTable(tuple(run.name for run in runs), names, hard, counted, measure.limits)
    expected, errors = _expected(table, drawn, values, knowledge)
    return LabelNoise(replace(table, noise=_covariance(table, drawn, values)), expected, errors)


def _values(
    topics: Sequence[JudgedTopic],
    drawn: Sequence[DrawnLabels],
    runs: Sequence[Run],
    measure: Measure,
    *,
    duplicates: DuplicateGroups,
    progress: Callable[[int], None] | None,
) -> list[Floats]:
    """Return for each topic the value of each outcome (a row) for each run, where it is needed."""
    ready = [ReadyRun(run) for run in runs]
    needed = [each.used() for each in drawn]
    values = [np.full(each.shape, np.nan) for each in needed]
    place = {topic.topic: at for at, topic in enumerate(topics)}
    most = max(map(len, needed))
    nothing = Preferences.from_judgments(())
    for outcome in range(most):
        here = [at for at, each in enumerate(needed) if outcome < len(each)]
        kept = {topics[at].topic: drawn[at].outcomes[outcome] for at in here}
        labels = make_labels(kept, nothing, duplicates)
        truth = Truth.of([labels.qrels, *([labels.duplicates] if len(labels.duplicates) else [])])
        of_truth = [place[topic] for topic in measure.items(truth).topics]
        for run in np.flatnonzero(np.any([needed[at][outcome] for at in here], axis=0)).tolist():
            give_way()
            for at, value in zip(of_truth, measure.values(truth, ready[run]).tolist(), strict=True):
                values[at][outcome, run] = value
        if progress is not None:
            progress(100 * (outcome + 1) // most - 100 * outcome // most)
    return values


def _covariance(table: ScoreTable, drawn: Sequence[DrawnLabels], values: Sequence[Floats]) -> Floats:
    """Return the covariances of the runs' means over judgings; topics that a run lacks have no part in its mean."""
    summed = np.zeros((len(table.runs), len(table.runs)))
    for each, scored, weight in zip(drawn, values, table.weights.tolist(), strict=True):
        apart = weight * np.nan_to_num(scored[each.again[:, 0]] - scored[each.again[:, 1]])
        summed += apart.T @ apart / (2 * len(apart))
    total = (~np.isnan(table.values) * table.weights).sum(axis=1)
    return np.asarray(summed / np.maximum(np.outer(total, total), 1e-300), dtype=np.float64)


def _expected(
    table: ScoreTable, drawn: Sequence[DrawnLabels], values: Sequence[Floats], knowledge: Knowledge | None
) -> tuple[ScoreTable, Floats]:
    """Return the expected score of each run and topic, and the standard errors of the means.

    A topic's part in the error of a mean is its own value, and what it adds through the estimates over all topics.
    """
    runs, spreads = range(len(table.runs)), range(len(SPREADS))
    scores = np.full(table.values.shape, np.nan)
    gradients = np.zeros((*table.values.shape, 1 + len(SPREADS)))
    for at, (each, scored) in enumerate(zip(drawn, values, strict=True)):
        true = np.array([scored[each.true[run], run] for run in runs]).reshape(len(runs), -1)
        scores[:, at] = true.mean(axis=1)
        apart = true - true.mean(axis=1, keepdims=True)
        by_spread = [(apart * (each.spread == spread)).mean(axis=1) for spread in spreads]
        gradients[:, at] = np.column_stack(((apart * each.steeper).mean(axis=1), *by_spread))
    expected = ScoreTable(table.runs, table.topics, scores, table.weights, table.limits)
    known = ~np.isnan(scores) * table.weights
    shares = known / np.maximum(known.sum(axis=1, keepdims=True), 1e-300)
    parts = shares * np.nan_to_num(scores - expected.means()[:, None])
    if knowledge is not None:
        parts += knowledge.influence(np.nansum(shares[:, :, None] * gradients, axis=1))
    count = np.count_nonzero(known, axis=1)
    square = np.square(parts).sum(axis=1) * count / np.maximum(count - 1, 1)
    return expected, np.where(count > 1, np.sqrt(square), np.nan)


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
            topics.append(JudgedTopic.of(topic, levels, judged, by_phase=by_phase))
        return topics, duplicates_of(tx, {topic.topic for topic in topics})

    return campaign.read(work)


def with_label_noise(
    evaluation: Evaluation,
    campaign: Campaign,
    runs: Sequence[Run],
    parts: Collection[NoisePart] = EXPECTED,
    *,
    baseline: str | None = None,
    correction: str = "none",
    level: float = 0.95,
    weights: Mapping[str, float] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Return the evaluation of a campaign's runs with what the noise of its labels adds.

    Measures over preferences have none of this: they are computed from the answers themselves.
    """
    topics, duplicates = judged_topics(campaign)
    noises: dict[str, LabelNoise] = {}
    notes = []
    for measure in evaluation.measures:
        if isinstance(measure, OverPreferences):
            what = "expected score" if "expected" in parts else "interval" if "interval" in parts else "test"
            notes.append(f"{measure}: no {what}, for it is computed from preferences, not from labels")
            continue
        wanted = set(evaluation.tables[str(measure)].topics)
        noises[str(measure)] = label_noise(
            [topic for topic in topics if topic.topic in wanted],
            runs,
            measure,
            duplicates=duplicates,
            weights=weights,
            again_only="expected" not in parts,
            seed=seed,
            progress=progress,
        )
    if "test" in parts:
        evaluation = _tested_again(evaluation, noises, baseline, correction)
    if "interval" in parts:
        ends = {name: noise.judged_again(level) for name, noise in noises.items()}
        evaluation = evaluation.with_intervals(ends, [f"[low, high]: {_again_note(level)}"] if ends else [])
    if "expected" in parts:
        scores = {
            name: ExpectedScores(noise.expected.means(), noise.judged_again(level), noise.new_topics(level))
            for name, noise in noises.items()
        }
        evaluation = evaluation.with_expected(scores, _expected_notes(level) if scores else [])
    return replace(evaluation, header=(*evaluation.header, *notes), _by_key={})


def _tested_again(
    evaluation: Evaluation, noises: Mapping[str, LabelNoise], baseline: str | None, correction: str
) -> Evaluation:
    """Return the evaluation with tables that know their noise, and with p-values against the baseline."""
    tables = {
        **evaluation.tables,
        **{name: replace(noise.table, runs=evaluation.runs) for name, noise in noises.items()},
    }
    if baseline is None:
        return replace(evaluation, tables=tables, _by_key={})
    name = find_run(baseline, evaluation.labels).name
    tested = {
        (one.a, measure): one
        for measure in noises
        for one in against_baseline(tables[measure], name, AGAIN, correction)
    }
    note = (
        f"* p < .05, ** p < .01 against {name}: again test (these topics, labels judged again), "
        f"correction {correction}"
    )
    rows = tuple(
        replace(row, p=one.p, p_corrected=one.p_corrected)
        if (one := tested.get((row.run, row.measure)))
        else row
        for row in evaluation.rows
    )
    return replace(
        evaluation, tables=tables, rows=rows, baseline=name, header=(*evaluation.header, note), _by_key={}
    )


def _expected_notes(level: float) -> list[str]:
    return [
        "expected: the score by the best items themselves, as far as answers and the run's own ranking tell them",
        f"on new topics: {level:.0%} confidence interval of the expected score, over topics and noisy labels",
        f"judged again, same topics: {_again_note(level)}",
    ]


def _again_note(level: float) -> str:
    return f"where the mean falls if the same topics are judged again, in {level:.0%} of cases"
