"""A plan seen from the systems that are estimated: its propensities in their order, and its sample."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from duelpool.arrays import Bools, Floats
from duelpool.budget.estimation.estimators import Frame, estimator_named
from duelpool.budget.plans.judged import JudgedUnits
from duelpool.budget.plans.plan import Plan, PlannedQuestion
from duelpool.budget.sampling.samples import Sample
from duelpool.budget.units.goals import Targets
from duelpool.budget.units.populations import Population
from duelpool.errors import BadFile


@dataclass(frozen=True, slots=True, eq=False)
class Lineup:
    """One plan seen from the systems that are estimated: its units in their order, then drawn units that they lack."""

    plan: Plan
    targets: Targets
    expected: Floats
    guess: Floats | None
    prior: Floats | None
    places: dict[tuple[str, ...], int]
    unreachable: Floats
    rounds: tuple[tuple[int, Bools], ...] = ()  # of a mixture: each round's draws and what they can reach

    def frame(self, estimator: str) -> Frame:
        """Return what the estimator knows without judging."""
        way = estimator_named(estimator).guess
        columns = [column for column in (self.guess, self.prior) if column is not None]
        if way == "none" or not columns:
            return Frame.of(self.targets)
        if way == "predictor":
            return Frame.of(self.targets, columns[0][:, None])
        return Frame.of(self.targets, np.column_stack([*columns, self.expected > 0]))


def lined_up(plan: Plan, population: Population, targets: Targets) -> Lineup:
    """Align a plan with a population: propensities in the population's order, then drawn units that it lacks."""
    places = dict(population.places())
    others = [each.key for each in plan.questions if each.key not in places]
    for key in others:
        places[key] = len(places)
    size = len(places)
    own = plan.propensities
    expected, known = np.zeros(size), np.full(size, np.nan)
    guess = None if own.guess is None else np.zeros(size)
    prior = None if own.prior is None else np.zeros(size)
    there = np.array(
        [(place, own.places[key]) for key, place in places.items() if key in own.places], dtype=np.int64
    )
    here, at = there.reshape(-1, 2).T
    expected[here] = own.expected[at]
    for column, source in ((guess, own.guess), (prior, own.prior), (known, own.known)):
        if column is not None and source is not None:
            column[here] = source[at]
    weights = np.zeros((size, len(targets)))
    weights[: len(population)] = targets.weights
    settled = ~np.isnan(known)
    worth = np.where(settled, known, 0.0)
    offsets = targets.offsets + worth @ weights
    open_weights = np.where(settled[:, None], 0.0, weights)
    beyond = np.abs(open_weights[expected <= 0]).sum(axis=0) * plan.top
    for column in (guess, prior):
        if column is not None:  # no guess about what can't be checked
            column[(expected <= 0)] = 0.0
    return Lineup(plan, Targets(targets.names, open_weights, offsets), expected, guess, prior, places, beyond)


def can_be_pooled(rounds: Sequence[Lineup]) -> bool:
    """Return whether rounds can be pooled by their mixture: fixed designs, drawn with replacement."""
    return len(rounds) > 1 and all(each.plan.draw == "replacing" and each.plan.round == 1 for each in rounds)


def pooled_reach(rounds: Sequence[Lineup], targets: Targets, top: float) -> Floats:
    """Return, for each target, the most that units which no round can reach could add to it."""
    size = len(targets.weights)
    never = np.all([each.expected[:size] <= 0 for each in rounds], axis=0)
    return np.asarray(np.abs(targets.weights[never]).sum(axis=0) * top, dtype=np.float64)


def mixture(rounds: Sequence[Lineup]) -> Lineup:
    """Return rounds as one: a unit is expected as often as all of them together expect it."""
    places = dict(rounds[0].places)
    size = len(rounds[0].targets.weights)
    for each in rounds[1:]:
        for key in each.places:
            places.setdefault(key, len(places))
    weights = np.zeros((len(places), len(rounds[0].targets)))
    weights[:size] = rounds[0].targets.weights
    expected = np.zeros(len(places))
    questions: dict[tuple[str, ...], PlannedQuestion] = {}
    reaches = []
    for each in rounds:
        own = each.plan.propensities
        mine = np.array([own.expected[own.places[key]] if key in own.places else 0.0 for key in places])
        expected += mine
        reaches.append((each.plan.n, mine > 0))
        for question in each.plan.questions:
            before = questions.get(question.key)
            times = question.times + (0 if before is None else before.times)
            questions[question.key] = PlannedQuestion(
                question.topic, question.item, question.other, times, question.expected
            )
    first = rounds[0]
    plan = replace(first.plan, n=sum(each.plan.n for each in rounds), questions=tuple(questions.values()))

    def widened(column: Floats | None) -> Floats | None:
        return None if column is None else np.concatenate((column, np.zeros(len(places) - len(column))))

    targets = Targets(first.targets.names, weights, first.targets.offsets)
    return Lineup(
        plan,
        targets,
        expected,
        widened(first.guess),
        widened(first.prior),
        places,
        first.unreachable,
        tuple(reaches),
    )


def sample_of(each: Lineup, judged: JudgedUnits, fill: float | None, noisy: bool) -> Sample:
    """Return a round's sample; unanswered questions count as `fill`, or as the answered ones do on average."""
    questions = each.plan.questions
    answers = [judged.utilities.get(question.key, ()) for question in questions]
    means = np.array([np.mean(values) if values else np.nan for values in answers])
    if np.isnan(means).all():
        raise BadFile.at(
            judged.place or "judgments", None, "None of the plan's questions is answered.", "Judge it first."
        )
    units = np.array([each.places[question.key] for question in questions], dtype=np.int64)
    missing = np.isnan(means)
    if missing.any():
        average = means[~missing].mean()
        means = np.where(missing, average if fill is None else fill, means)
    noise = None
    if noisy and all(len(values) > 1 for values in answers if values):
        noise = np.array(
            [np.var(values, ddof=1) / len(values) if len(values) > 1 else 0.0 for values in answers]
        )
    topics = {topic: at for at, topic in enumerate(each.plan.topics)}
    order = np.argsort(units, kind="stable")
    return Sample(
        each.plan.draw,
        each.plan.n,
        units[order],
        np.array([question.times for question in questions], dtype=np.int64)[order],
        each.expected[units][order],
        means[order],
        topic=np.array([topics[question.topic] for question in questions], dtype=np.int64)[order],
        topics=len(topics),
        noise=None if noise is None else noise[order],
        noisy=noisy,
    )
