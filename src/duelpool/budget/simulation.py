"""A budget simulated many times with known utilities: bias, squared error, coverage and width."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget.estimation.assisted import STUDENT, AssistedMetric, RankedUnits, refuse_interval
from duelpool.budget.estimation.choices import predictors_of, refuse_metric, refuse_misfit, usual_draw
from duelpool.budget.estimation.estimators import Estimates, Frame, estimated, estimator_named
from duelpool.budget.estimation.intervals import Ranges, UnitKnowledge, doubts, interval_named
from duelpool.budget.estimation.moments import Moments
from duelpool.budget.estimation.ratios import ratio_estimates, true_ratios
from duelpool.budget.sampling.designs import design_named, sizes
from duelpool.budget.sampling.draws import Lottery, lottery
from duelpool.budget.sampling.samples import Sample
from duelpool.budget.units.beliefs import Beliefs
from duelpool.budget.units.goals import beyond_reach, goal_named, targets_of
from duelpool.budget.units.metrics import NotASum
from duelpool.budget.units.populations import Population
from duelpool.errors import BadParameter
from duelpool.seeds import rng_for

Progress: TypeAlias = Callable[[int], None]
PIECE = 50  # trials per job of a worker


@dataclass(frozen=True, slots=True, eq=False)
class BudgetTrial:
    """Everything that a trial needs except its number; it is sent to workers."""

    population: Population
    frame: Frame
    lottery: Lottery
    utility: Floats
    estimator: str
    interval: str
    level: float
    seed: int
    known: UnitKnowledge = None
    assisted: AssistedMetric | None = None

    def drawn(self, trial: int) -> Sample:
        """Draw and judge once."""
        drawn = self.lottery.draw(rng_for(self.seed, "budget", trial), self.population)
        return Sample(
            self.lottery.kind,
            self.lottery.n,
            drawn.units,
            drawn.times,
            self.lottery.expected_of(drawn.units),
            self.utility[drawn.units],
            topic=np.asarray(self.population.topic[drawn.units], dtype=np.int64),
            topics=len(self.population.topics),
        )

    def run(self, start: int, count: int) -> tuple[Floats, Floats, Floats]:
        """Return estimates and both ends of their intervals, a row a trial."""
        way = interval_named(self.interval, self.lottery.kind)
        rows = []
        for trial in range(start, start + count):
            if self.estimator == "ratio":
                ratios = ratio_estimates(self.population, self.drawn(trial))
                nothing = np.full(len(ratios), np.nan)
                rows.append((ratios, nothing, nothing))
                continue
            if self.assisted is not None:
                estimate = self.assisted.estimated(self.drawn(trial))
                rows.append((estimate.values, *estimate.around(self.level)))
                continue
            estimates = estimated(self.frame, self.drawn(trial), self.estimator)
            if way is None:
                nothing = np.full(len(estimates.values), np.nan)
                rows.append((estimates.values, nothing, nothing))
            else:
                rows.append((estimates.values, *way.make(estimates, self.known, self.level)))
        values, low, high = (np.array(column) for column in zip(*rows, strict=True))
        return values, low, high

    def first(self) -> Estimates:
        """Return the first trial's estimates, for warnings about their intervals."""
        return estimated(self.frame, self.drawn(0), self.estimator)


@dataclass(frozen=True, slots=True)
class TargetResult:
    """How well one target was estimated."""

    name: str
    true: float
    mean: float
    bias: float
    bias_error: float  # the bias' standard error
    sd: float
    mse: float
    coverage: float
    width: float  # of the whole interval


@dataclass(frozen=True, slots=True)
class BudgetSimulation:
    """The errors and intervals of a way to spend a budget, over many trials."""

    metric: str
    goal: str
    design: str
    draw: str
    estimator: str
    unbiased: str
    interval: str
    guaranteed: bool
    level: float
    n: int
    trials: int
    seed: int
    units: int
    topics: int
    targets: tuple[TargetResult, ...]
    unreachable: float  # the most that any target has beyond the reach of every draw
    mse_error: float = math.nan  # the standard error of the targets' mean squared error
    warnings: tuple[str, ...] = ()

    def mean(self, part: str) -> float:
        """Return the mean of a figure over the targets."""
        return float(np.mean([getattr(target, part) for target in self.targets]))

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values; a figure that there isn't (nan) is None."""
        parts = ("true", "mean", "bias", "bias_error", "sd", "mse", "coverage", "width")
        rows = [
            {"name": each.name, **{part: _plain(getattr(each, part)) for part in parts}}
            for each in self.targets
        ]
        means = {part: _plain(self.mean(part)) for part in parts}
        means["mse_error"] = _plain(self.mse_error)
        means["absolute_bias"] = float(np.mean([abs(each.bias) for each in self.targets]))
        return {
            "metric": self.metric, "goal": self.goal, "design": self.design, "draw": self.draw,
            "estimator": self.estimator, "unbiased": self.unbiased, "interval": self.interval,
            "guaranteed": self.guaranteed, "level": self.level, "n": self.n, "trials": self.trials,
            "seed": self.seed, "units": self.units, "topics": self.topics, "unreachable": self.unreachable,
            "systems": rows, "means": means, "warnings": list(self.warnings),
        }  # fmt: skip


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def simulate_budget(
    population: Population,
    utility: Floats,
    *,
    n: int,
    design: str = "SQRT",
    estimator: str = "importance",
    goal: str = "absolute",
    beliefs: Beliefs | None = None,
    draw: str | None = None,
    interval: str = "usual",
    level: float = 0.95,
    epsilon: float | None = None,
    mix: float | None = None,
    trials: int = 1000,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> BudgetSimulation:
    """Spend a budget of n judgments many times, and compare the estimates with the truth."""
    known = Beliefs() if beliefs is None else beliefs
    check_utilities(utility, known.top, len(population))
    if trials < 1 or not 0 < level < 1:
        raise BadParameter("At least one trial, and a level between 0 and 1, are needed.")
    with_truth = Beliefs(known.prior, known.guess, utility, known.top)
    way = estimator_named(estimator)
    kind = draw or usual_draw(design, estimator)
    refuse_misfit(estimator, kind, design)
    refuse_metric(estimator, population.metric)
    if estimator == "ratio" and (goal != "absolute" or not population.metric.products):
        raise BadParameter(
            "The ratio estimator is for AP without R, and for the goal 'absolute'.", remedy="Use another one."
        )
    targets = targets_of(population, goal)
    size = sizes(population, design, goal, with_truth, epsilon=epsilon, mix=mix)
    chances = lottery(population, kind, size, n)
    frame = Frame.of(targets, predictors_of(known, chances.expected, estimator))
    assisted = None
    if isinstance(population.metric, NotASum):
        refuse_interval(interval)
        units = RankedUnits.of_population(population, chances.expected, (known.guess, known.prior))
        assisted = AssistedMetric(population.metric, units, goal_named(goal).rows(len(population.systems)))
    summed = estimator not in ("ratio", "assisted")
    method = interval_named(interval, kind) if summed else None
    about: UnitKnowledge = None
    if method is not None and method.needs == "moments" and kind != "deep":
        columns = [column for column in (known.guess, known.prior) if column is not None]
        about = Moments.of(targets, chances.expected, kind, columns, known.top)
    if method is not None and method.needs == "ranges":
        guess = frame.predictors[:, 0] if way.guess == "predictor" and frame.predictors is not None else None
        if way.guess == "fitted":
            raise BadParameter(
                f"The interval {method.name} needs guesses that were made before judging, and greg fits them after.",
                remedy="Use the estimator difference, or the interval clt.",
            )
        about = Ranges.of(targets, chances.expected, chances.n, known.top, guess, kind=kind)
    trial = BudgetTrial(
        population, frame, chances, utility, estimator, interval, level, seed, about, assisted
    )
    values, low, high = _run_all(trial, trials, executor, progress)
    truth = targets.offsets + utility @ targets.weights
    never = chances.expected <= 0
    missed = utility[never] @ targets.weights[never]
    if estimator == "ratio":
        truth = true_ratios(population, utility)
    if assisted is not None:
        truth = assisted.true(utility)
    return BudgetSimulation(
        metric=str(population.metric),
        goal=goal,
        design=design_named(design).name,
        draw=kind,
        estimator=estimator,
        unbiased="no" if missed.any() else way.unbiased,
        interval=STUDENT if assisted is not None else "none" if method is None else method.name,
        guaranteed=method is not None and method.guaranteed,
        level=level,
        n=n,
        trials=trials,
        seed=seed,
        units=len(population),
        topics=len(population.topics),
        targets=tuple(
            _target(name, truth[at], values[:, at], low[:, at], high[:, at])
            for at, name in enumerate(targets.names)
        ),
        unreachable=float(beyond_reach(targets.weights, chances.expected, known.top).max(initial=0.0)),
        mse_error=float(((values - truth) ** 2).mean(axis=1).std(ddof=1) / math.sqrt(trials))
        if trials > 1
        else math.nan,
        warnings=tuple(doubts(trial.first(), targets.names))
        if method is not None and not method.guaranteed
        else (),
    )


def check_utilities(utility: Floats, top: float, units: int) -> None:
    """Refuse utilities that are missing or out of their range."""
    if len(utility) != units or not np.isfinite(utility).all():
        raise BadParameter("Every unit needs a utility.", remedy="Leave units without a judgment out.")
    if utility.min() < 0 or utility.max() > top * (1 + 1e-9):
        raise BadParameter(
            f"Utilities lie between 0 and {top:g}, not at {utility.min():g} or {utility.max():g}.",
            remedy="Give the highest grade there can be, or correct the grades.",
        )


def _target(name: str, true: float, values: Floats, low: Floats, high: Floats) -> TargetResult:
    sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    slack = 1e-12 * max(1.0, abs(true))  # an interval of width 0 holds a truth equal to its ends
    inside = (low - slack <= true) & (true <= high + slack)
    return TargetResult(
        name=name,
        true=float(true),
        mean=float(values.mean()),
        bias=float(values.mean() - true),
        bias_error=sd / math.sqrt(len(values)),
        sd=sd,
        mse=float(np.mean((values - true) ** 2)),
        coverage=float(inside.mean()) if np.isfinite(low).all() else math.nan,
        width=float(np.mean(high - low)),
    )


def _run_all(
    trial: BudgetTrial, trials: int, executor: Executor | None, progress: Progress | None
) -> tuple[Floats, Floats, Floats]:
    pieces = [(start, min(PIECE, trials - start)) for start in range(0, trials, PIECE)]
    results: dict[int, Sequence[Floats]] = {}
    if executor is None:
        for start, count in pieces:
            results[start] = trial.run(start, count)
            if progress is not None:
                progress(count)
    else:
        futures = {executor.submit(trial.run, start, count): (start, count) for start, count in pieces}
        for future in as_completed(futures):
            start, count = futures[future]
            results[start] = future.result()
            if progress is not None:
                progress(count)
    values, low, high = (np.concatenate([results[start][part] for start, _ in pieces]) for part in range(3))
    return values, low, high
