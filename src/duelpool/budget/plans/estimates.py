"""Scores from plans and judgments: for the systems that were planned for, and for later ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget.estimation.assisted import STUDENT, refuse_interval, refuse_noise
from duelpool.budget.estimation.choices import refuse_metric, refuse_misfit
from duelpool.budget.estimation.estimators import Estimates, estimated, estimator_named
from duelpool.budget.estimation.intervals import (
    Interval,
    Ranges,
    UnitKnowledge,
    doubts,
    interval_named,
    plain_spread,
)
from duelpool.budget.estimation.moments import Moments, Spread
from duelpool.budget.estimation.ratios import shares_by_topic
from duelpool.budget.plans.assisted_plans import AssistedPlan
from duelpool.budget.plans.judged import JudgedUnits
from duelpool.budget.plans.lineups import Lineup, can_be_pooled, lined_up, mixture, pooled_reach, sample_of
from duelpool.budget.plans.plan import Plan, PlannedQuestion
from duelpool.budget.units.goals import Targets, targets_of
from duelpool.budget.units.metrics import NotASum
from duelpool.budget.units.populations import Population
from duelpool.errors import BadFile, BadParameter
from duelpool.frames import Tabular, counted, frame_of

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class TargetEstimate:
    """One target's estimate.

    `low` and `high` hold the sampling error; `least` and `most` also what unanswered questions and unreachable
    units could change.
    """

    name: str
    estimate: float
    low: float | None
    high: float | None
    least: float | None
    most: float | None
    unreachable: float
    planned: bool  # whether the plan knew all systems that this is about


@dataclass(frozen=True, slots=True, repr=False)
class BudgetEstimate(Tabular):
    """What judged plans say about systems."""

    metric: str
    goal: str
    estimator: str
    unbiased: str
    interval: str
    guaranteed: bool
    level: float
    rounds: int
    questions: int
    answered: int
    judgments: int
    targets: tuple[TargetEstimate, ...]
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        best = max(self.targets, key=lambda each: each.estimate)
        shown = f"first {best.name} {best.estimate:.4f}"
        return f"BudgetEstimate({self.metric} of {counted(len(self.targets), 'target')}, {shown})"

    def to_polars(self) -> "pl.DataFrame":
        """Return a row a system, with its estimate and the ends of its interval, the best first."""
        names = ("estimate", "low", "high", "least", "most", "unreachable")
        ordered = sorted(self.targets, key=lambda each: (-each.estimate, each.name))
        rows = ((each.name, *(getattr(each, name) for name in names), each.planned) for each in ordered)
        return frame_of(rows, {"name": "String", **dict.fromkeys(names, "Float64"), "planned": "Boolean"})

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return self.as_json()

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "metric": self.metric, "goal": self.goal, "estimator": self.estimator, "unbiased": self.unbiased,
            "interval": self.interval, "guaranteed": self.guaranteed, "level": self.level, "rounds": self.rounds,
            "questions": self.questions, "answered": self.answered, "judgments": self.judgments,
            "systems": [
                {name: getattr(each, name) for name in TargetEstimate.__dataclass_fields__} for each in self.targets
            ],
            "notes": list(self.notes),
        }  # fmt: skip


def estimate_plans(
    plans: Sequence[Plan],
    judged: JudgedUnits,
    population: Population,
    *,
    estimator: str | None = None,
    interval: str = "usual",
    level: float = 0.95,
    goal: str | None = None,
    others: str = "refuse",
    noisy: bool = False,
) -> BudgetEstimate:
    """Estimate the scores of a population's systems from one or several judged plans.

    The systems need not be those of the plans: weights on units that no plan could draw are reported as unreachable.
    Rounds drawn with replacement under fixed designs are pooled by their mixture; others are weighed by their
    draws. `others` is "refuse" or "ignore", for judgments that no plan drew. With `noisy`, judges may contradict
    themselves, which makes intervals without replacement wider.
    """
    if not plans:
        raise BadParameter("No plan was given.")
    if not 0 < level < 1:
        raise BadParameter(f"A level of confidence lies between 0 and 1, not at {level}.")
    first = plans[0]
    for plan in plans[1:]:
        if (plan.metric, plan.topics, plan.top) != (first.metric, first.topics, first.top):
            raise BadParameter(
                "These plans are for different metrics, topics or grades.", remedy="Estimate each alone."
            )
    ways = [estimator or plan.estimator for plan in plans]
    for plan, way in zip(plans, ways, strict=True):
        refuse_misfit(way, plan.draw)
        refuse_metric(way, population.metric)
    _check_judged(plans, judged, others)
    targets = targets_of(population, goal or first.goal)
    rounds = [lined_up(plan, population, targets) for plan in plans]
    noise = noisy or any(plan.repeats > 1 for plan in plans)
    missing = [each for plan in plans for each in plan.questions if each.key not in judged.utilities]
    summed = not {"ratio", "assisted"} & set(ways)
    method = interval_named(interval, first.draw) if summed else None
    assisted = None
    if isinstance(population.metric, NotASum):
        refuse_interval(interval)
        refuse_noise(noise)
        assisted = AssistedPlan.of(plans, population, goal or first.goal)
    if method is not None and len(plans) > 1 and not can_be_pooled(rounds) and method.needs != "moments":
        method = interval_named("wald", first.draw)
    options = _EstimateOptions(judged, tuple(ways), method, level, noise, assisted)
    ends = [
        _estimated_together(rounds, options, fill) for fill in (None, 0.0, first.top)[: 3 if missing else 1]
    ]
    middle = ends[0]
    values = middle.values
    unreachable = (
        np.max([each.unreachable for each in rounds], axis=0)
        if not can_be_pooled(rounds)
        else pooled_reach(rounds, targets, first.top)
    )
    if assisted is not None:  # an item adds at most its weight to a share of the best
        unreachable = np.minimum(unreachable / first.top, 1.0)
    planned = set.intersection(*(set(plan.systems) for plan in plans))
    notes = _notes(options, missing, middle, targets, unreachable)
    lows, highs = np.min([end.low for end in ends], axis=0), np.max([end.high for end in ends], axis=0)
    signed = assisted is not None or bool((targets.weights < 0).any())
    bottom, ceiling = _range(targets, first.top) if assisted is None else assisted.limits

    def within(ends: Floats) -> Floats:
        return np.clip(ends, bottom, ceiling)

    low, high = within(middle.low), within(middle.high)
    least, most = within(lows - (unreachable if signed else 0.0)), within(highs + unreachable)
    rows = []
    for at, name in enumerate(targets.names):
        known = name in planned if (goal or first.goal) == "absolute" else set(population.systems) <= planned
        rows.append(
            TargetEstimate(
                name,
                float(values[at]),
                _plain(low[at]),
                _plain(high[at]),
                _plain(least[at]),
                _plain(most[at]),
                float(unreachable[at]),
                bool(known),
            )
        )
    return BudgetEstimate(
        metric=first.metric,
        goal=goal or first.goal,
        estimator=", ".join(dict.fromkeys(ways)),
        unbiased="no" if missing or unreachable.any() else _least_unbiased(ways),
        interval=STUDENT if assisted is not None else "none" if method is None else method.name,
        guaranteed=method is not None and method.guaranteed and not missing,
        level=level,
        rounds=len(plans),
        questions=sum(len(plan.questions) for plan in plans),
        answered=sum(len(plan.questions) for plan in plans) - len(missing),
        judgments=sum(len(judged.utilities.get(each.key, ())) for plan in plans for each in plan.questions),
        targets=tuple(rows),
        notes=tuple(notes),
    )


def _range(targets: Targets, top: float) -> tuple[Floats, Floats]:
    """Return the least and the most that each target can be: every utility lies between 0 and `top`."""
    negative, positive = (
        part(targets.weights, 0).sum(axis=0, dtype=np.float64) for part in (np.minimum, np.maximum)
    )
    # weights have single precision
    return np.round(negative * top + targets.offsets, 6), np.round(positive * top + targets.offsets, 6)


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _check_judged(plans: Sequence[Plan], judged: JudgedUnits, others: str) -> None:
    if others not in ("refuse", "ignore"):
        raise BadParameter(f"Judgments that no plan drew are refused or ignored, not '{others}'.")
    planned = {each.key for plan in plans for each in plan.questions}
    planned |= {
        plan.propensities.key(at)
        for plan in plans
        if plan.propensities.known is not None
        for at in np.flatnonzero(~np.isnan(plan.propensities.known)).tolist()
    }
    strays = sorted(key for key in judged.utilities if key not in planned)
    if strays and others == "refuse":
        raise BadFile.at(
            judged.place or "judgments",
            None,
            f"{len(strays)} judgments are about what no plan drew, first: {' '.join(strays[0])}.",
            "Estimates rest on what was drawn; leave the others out, or ignore them with --others ignore.",
        )
    top = plans[0].top
    for key in planned:
        for value in judged.utilities.get(key, ()):
            if not 0 <= value <= top * (1 + 1e-9):
                raise BadFile.at(
                    judged.place or "judgments",
                    None,
                    f"The utility of {' '.join(key)} is {value:g}, and the plan was made for 0 to {top:g}.",
                    "Correct the grade, or plan with the highest grade that there can be.",
                )


@dataclass(frozen=True, slots=True, eq=False)
class _EstimateOptions:
    """The options that hold for all rounds; `ways` are their estimators."""

    judged: JudgedUnits
    ways: tuple[str, ...]
    interval: Interval | None
    level: float
    noisy: bool
    assisted: AssistedPlan | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Bounds:
    """The estimates with both ends of their intervals."""

    values: Floats
    low: Floats
    high: Floats
    estimates: tuple[Estimates, ...] = ()


def _least_unbiased(ways: Sequence[str]) -> str:
    order = ("no", "in the limit", "exactly")
    return min((estimator_named(way).unbiased for way in ways), key=order.index)


def _estimated_together(rounds: Sequence[Lineup], options: _EstimateOptions, fill: float | None) -> _Bounds:
    if can_be_pooled(rounds):
        rounds = [mixture(rounds)]
    if options.assisted is not None:
        without_sum = options.assisted.estimated(options.judged, fill)
        return _Bounds(without_sum.values, *without_sum.around(options.level))
    if "ratio" in options.ways:
        return _ratios(rounds, options, fill)
    results, knowns = [], []
    for each, way in zip(rounds, options.ways, strict=False):
        sample = sample_of(each, options.judged, fill, options.noisy)
        estimates = estimated(each.frame(way), sample, way)
        results.append(estimates)
        knowns.append(_known(each, estimates, options))
    if len(rounds) == 1:
        nothing = np.full(len(results[0].values), np.nan)
        low, high = nothing, nothing
        if options.interval is not None:
            low, high = options.interval.make(results[0], knowns[0], options.level)
        return _Bounds(results[0].values, low, high, tuple(results))
    shares = np.array([each.plan.n for each in rounds], dtype=np.float64)
    shares /= shares.sum()
    values = np.asarray(sum(share * each.values for share, each in zip(shares, results, strict=True)))
    spreads = [
        _spread(each, known).scaled(share) for share, each, known in zip(shares, results, knowns, strict=True)
    ]
    low, high = reduce(add, spreads).around(values, options.level)
    return _Bounds(values, low, high, tuple(results))


def _spread(estimates: Estimates, known: UnitKnowledge) -> Spread:
    return known.spread(estimates) if isinstance(known, Moments) else plain_spread(estimates)


def _ratios(rounds: Sequence[Lineup], options: _EstimateOptions, fill: float | None) -> _Bounds:
    if len(rounds) > 1:
        raise BadParameter("The ratio estimator takes one plan.", remedy="Give AP's R when you plan.")
    sample = sample_of(rounds[0], options.judged, fill, options.noisy)
    keys = {place: key for key, place in rounds[0].places.items()}
    selves = np.array([float(keys[unit][1] == keys[unit][-1]) for unit in sample.units.tolist()])
    scaled = sample.utility * sample.times / sample.expected
    values = shares_by_topic(sample.topic, selves, rounds[0].targets.weights[sample.units], scaled)
    return _Bounds(values, np.full(len(values), np.nan), np.full(len(values), np.nan))


def _known(each: Lineup, estimates: Estimates, options: _EstimateOptions) -> UnitKnowledge:
    """Return what the interval uses about all units, drawn or not."""
    interval, sample = options.interval, estimates.sample
    if interval is None:
        return None
    if interval.needs == "moments":
        columns = [column for column in (each.guess, each.prior) if column is not None]
        noisy = sample.noisy and sample.noise is None
        return Moments.of(each.targets, each.expected, sample.kind, columns, each.plan.top, noisy=noisy)
    if interval.needs == "ranges":
        if estimates.coefficients is not None and estimates.coefficients.size != 1:
            raise BadParameter(
                f"The interval {interval.name} needs guesses that were made before judging, and greg fits them after.",
                remedy="Use the estimator difference, or the interval clt.",
            )
        guess = (
            None if estimates.coefficients is None else (each.guess if each.guess is not None else each.prior)
        )
        if each.rounds:
            if interval.name != "hoeffding" or guess is not None:
                raise BadParameter(
                    f"The interval {interval.name} is not for several rounds pooled with these estimates.",
                    remedy="Use clt, or hoeffding with the estimator importance.",
                )
            return Ranges.over_rounds(each.targets, each.expected, each.rounds, each.plan.top)
        return Ranges.of(each.targets, each.expected, each.plan.n, each.plan.top, guess, kind=each.plan.draw)
    return None


def _notes(
    options: _EstimateOptions,
    missing: Sequence[PlannedQuestion],
    middle: _Bounds,
    targets: Targets,
    unreachable: Floats,
) -> list[str]:
    notes = []
    if options.assisted is not None:
        notes.append(
            f"The interval {STUDENT} is an approximation: the grades' model says what no judgment can, such as a "
            "topic's best possible score."
        )
    if options.interval is not None:
        kind = "a guarantee" if options.interval.guaranteed else "an approximation"
        notes.append(f"The interval {options.interval.name} is {kind}: {options.interval.about}.")
        if not options.interval.guaranteed:
            notes += doubts(middle.estimates[-1], targets.names)
    for way in dict.fromkeys(options.ways):
        unbiased = estimator_named(way).unbiased
        if unbiased != "exactly":
            notes.append(
                f"The estimator {way} is {'biased' if unbiased == 'no' else 'unbiased in the limit'}."
            )
    if missing:
        notes.append(
            f"{len(missing)} questions are unanswered; the estimate takes them as the others are on average, and "
            "'least' and 'most' say what they could change."
        )
    if options.judged.unused:
        notes.append(f"{options.judged.unused} answers say nothing (skipped, or couldn't be judged).")
    worst = int(np.argmax(unreachable))
    if unreachable[worst] > 0:
        notes.append(
            f"No plan could draw some of what counts for {targets.names[worst]}: that could add up to "
            f"{unreachable[worst]:.4g} to it. The estimate takes it as nothing; 'most' holds it."
        )
    return notes
