"""What a predictor is worth: our estimators' squared errors over those of the paper's best, at the same budget.

TREC-8: half of the systems are the source of a predictor, the other half is evaluated. DL21: an LLM's grades are the
predictor, and all systems are evaluated on what was judged. Both are compared with a useless predictor, random numbers.
The paper's best is the least error of its two designs for k systems, each with u~ by the systems' mean rank, by each
system's own rank, by the predictor or the same for all, and each with nine values of epsilon. Its estimator is unbiased
and its variance has a formula, so that its error needs no trials, and the best is chosen with all utilities known,
which no user could do.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget import (
    Beliefs,
    BudgetSimulation,
    Population,
    prior_by_rank,
    simulate_budget,
    sizes,
    targets_of,
    true_variance,
)
from duelpool.budget.units.metrics import parse_metric
from duelpool.budget.units.populations import item_population
from duelpool.budget.units.sources import known_from
from duelpool.errors import BadParameter
from duelpool.files import Run, read_qrels, read_run
from duelpool.seeds import rng_for
from duelpool.simulation import Progress
from duelpool_reproduce.base import Experiment, Section
from duelpool_reproduce.budget_sets import read_trec8
from duelpool_reproduce.budget_tables import by_own_rank
from duelpool_reproduce.verdicts import Measured, Stated, reasons_of, table_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

TRIALS = 200
BUDGETS = (250, 1000, 4000)
EPSILONS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
NOT_GIVEN = (
    "The simulated set, like TREC-8, on which these were measured is not given. On TREC-8 and DL21 the same ways are "
    "measured above; their ratios depend on how good the predictor is."
)
HOEFFDING = f"{NOT_GIVEN} On TREC-8 itself the half-width is 3.10 too, for each of three systems: Table 9 under budget."
BEFORE: Mapping[str, Mapping[str, Stated]] = MappingProxyType(
    {
        "pivotal sampling over the paper's best": {
            "1 system, n=250": 0.76, "1 system, n=1000": 0.62,
            "64 systems, n=250": 0.86, "64 systems, n=1000": 0.76, "64 systems, n=4000": 0.59,
        },
        "difference with a predictor": {
            "1 system, n=250": 0.47, "1 system, n=1000": 0.35,
            "64 systems, n=250": 0.48, "64 systems, n=1000": 0.42, "64 systems, n=4000": 0.34,
            "coverage": (0.952, 0.968),
        },
        "self-normalising": {"ratio": 1.02, "ratio on SYNTH": (3.6, 4.8)},
        "systematic sampling in a fixed order": {"ratio": (0.12, 1.50)},
        "95 % interval, n=250": {
            "CLT": 1.64, "CLT, coverage": 0.942, "Hoeffding": 3.10, "empirical Bernstein": 3.96,
            "betting": 2.00, "betting, coverage": 0.960,
        },
    }
)  # fmt: skip
OURS = (("doubt", "difference"), ("hedged", "difference"), ("hedged", "greg"))
USUAL = "hedged, greg"
PREDICTOR = "the predictor"
AT_MOST = {
    "predictor": 0.6,
    "useless": 1.05,
}  # of the paper's best, with an LLM's grades and with random numbers


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A collection with a predictor."""

    name: str
    population: Population
    utility: Floats
    guess: Floats


@dataclass(frozen=True, slots=True)
class Worth:
    """One way's squared error over the paper's best."""

    case: str
    n: int
    predictor: str
    way: str
    ratio: float
    error: float  # the ratio's standard error; the paper's error is exact
    coverage: float
    least_coverage: float
    bias: float  # the largest, in standard errors of the mean of the trials
    best: str  # the paper's best
    bar: float | None = None  # what the ratio should be at most

    def measured(self) -> Measured:
        """Return the ratio beside its bar."""
        return Measured(
            f"{self.case}, n={self.n}, {self.predictor}: {self.way}",
            None,
            self.ratio,
            None if self.bar is None else (-inf, self.bar),
            error=self.error,
            part="Squared error over the paper's best, at most",
            kind="bar",
        )

    @property
    def verdict(self) -> str:
        """Its verdict; empty without a bar."""
        return "" if self.bar is None else self.measured().verdict


@dataclass(frozen=True, slots=True)
class PredictorReport:
    """What predictors are worth."""

    rows: tuple[Worth, ...]
    trials: int
    seed: int

    def compared(self) -> tuple[Measured, ...]:
        """Return the ratios that have a bar, and what was measured before on a set that is not given."""
        before = [
            Measured(
                f"{what}: {figure}",
                None,
                None,
                known,
                why=HOEFFDING if figure == "Hoeffding" else NOT_GIVEN,
                part="Measured before, on a simulated set",
            )
            for what, figures in BEFORE.items()
            for figure, known in figures.items()
        ]
        bars = [row.measured() for row in self.rows if row.bar is not None]
        return (*bars, *before)

    def sections(self) -> Sequence[Section]:
        """Return a table for each collection, then the verdicts."""
        tables = []
        for case in dict.fromkeys(row.case for row in self.rows):
            rows = tuple(
                (
                    row.n,
                    row.predictor,
                    row.way,
                    f"{row.ratio:.3f}±{row.error:.3f}",
                    "" if row.bar is None else f"{row.bar:g}",
                    row.verdict,
                    f"{row.coverage:.3f}",
                    f"{row.least_coverage:.3f}",
                )
                for row in self.rows
                if row.case == case
            )
            columns = ("n", "predictor", "way", "mse ratio", "at most", "verdict", "coverage", "least")
            tables.append(Section(f"{case}: squared error over the paper's best", columns, rows))
        checks = self.compared()
        for part in dict.fromkeys(row.part for row in checks):
            mine = [row for row in checks if row.part == part]
            tables.append(table_of(part, mine, reasons_of(checks)))
        return tables

    def figures(self) -> Section:
        """Return every figure in one table."""
        columns = (*Worth.__dataclass_fields__, "verdict")
        return Section(
            "budget-predictors", columns, tuple(tuple(getattr(row, c) for c in columns) for row in self.rows)
        )

    def notes(self) -> Sequence[str]:
        """Return the reasons by their numbers, and how the figures are meant."""
        return (
            *(f"[{at}] {why}" for at, why in enumerate(reasons_of(self.compared()), 1)),
            "The paper's best: SQRT or MEAN with replacement, with the best u~ (by the systems' mean rank, by each "
            "system's own rank, by the predictor, the same for all) and the best of nine epsilons, by the formula.",
            "Beside the useless predictor it doesn't have to take the predictor's u~, which is more than fair to it.",
            "coverage: of 95 % intervals, the mean over systems, and that of the worst system.",
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        columns = (*Worth.__dataclass_fields__, "verdict")
        rows = [{name: getattr(row, name) for name in columns} for row in self.rows]
        return {"experiment": "budget-predictors", "trials": self.trials, "seed": self.seed, "rows": rows,
                "verdicts": [{"figure": each.figure, "ours": each.ours, "known": each.known, "verdict": each.verdict}
                             for each in self.compared()],
                "notes": list(self.notes())}  # fmt: skip

    def drawing(self) -> "Drawing":
        """Draw the ratios against the budget, a line a way."""
        from duelpool.plots import errors_by_budget

        lines: dict[str, dict[int, float]] = {}
        for row in self.rows:
            lines.setdefault(f"{row.case}: {row.way}, {row.predictor}", {})[row.n] = row.ratio
        return errors_by_budget(lines, "squared error over the paper's best")


def trec8_case(data: Path, seed: int) -> Case:
    """Return TREC-8's one half of systems, with a predictor from the other."""
    trec = read_trec8(data)
    if trec is None:
        raise BadParameter(
            "TREC-8 isn't in the data folder.", remedy="Name a folder that holds it with --data."
        )
    whole, utility = trec.population()
    order = rng_for(seed, "halves").permutation(len(whole.systems))
    source, rest = ([whole.systems[at] for at in sorted(half)] for half in (order[:32], order[32:]))
    evaluated = whole.with_systems(rest)
    ranked = np.asarray((evaluated.weights > 0).any(axis=1))
    guess = prior_by_rank(whole.with_systems(source).subset(ranked))
    return Case("TREC-8, the other half of the systems", evaluated.subset(ranked), utility[ranked], guess)


@lru_cache(maxsize=1)  # for each of the metrics
def _runs(folder: Path) -> tuple[Run, ...]:
    return tuple(read_run(path) for path in sorted(folder.iterdir()))


def dl21_case(data: Path, metric: str = "DCG(log=e)@100") -> Case:
    """Return DL21's systems on what was judged, with an LLM's grades; grades become shares of the highest."""
    folder = data / "dl21"
    if not (folder / "umbrela_gpt4_dl21.qrels.gz").is_file():
        raise BadParameter(
            "DL21 isn't in the data folder.", remedy="Name a folder that holds it with --data."
        )
    qrels = read_qrels(folder / "qrels.dl21-passage.txt")
    known = known_from(
        item_population(_runs(folder / "runs"), parse_metric(metric), topics=sorted(qrels.topics)), qrels
    )
    guess = known.population.values_of(read_qrels(folder / "umbrela_gpt4_dl21.qrels.gz").grades())
    return Case(f"DL21, an LLM's grades, {metric}", known.population, known.utility / known.top, guess / 3.0)


def worths(
    case: Case, n: int, trials: int, seed: int, errors: Mapping[str, float] | None = None
) -> list[Worth]:
    """Return our ways' errors over the paper's best at one budget, with the predictor and with a useless one.

    `errors` are the paper's ways' with one judgment, where they are known already.
    """
    errors = papers_errors(case) if errors is None else errors
    prior = prior_by_rank(case.population)
    useless = rng_for(seed, "useless").random(len(prior))
    paper = {name: value / n for name, value in errors.items()}
    unaided = {name: value for name, value in paper.items() if PREDICTOR not in name}
    rows = []
    for label, guess in (("predictor", case.guess), ("useless", useless)):
        fair = paper if label == "predictor" else unaided
        best = min(fair, key=lambda name: fair[name])
        for design, estimator in OURS if label == "predictor" else OURS[1:]:
            result = simulate_budget(
                case.population, case.utility, n=n, design=design, estimator=estimator,
                beliefs=Beliefs(prior, guess), trials=trials, seed=seed,
            )  # fmt: skip
            rows.append(_worth(case, (label, f"{design}, {estimator}"), result, best, fair[best]))
    result = simulate_budget(
        case.population, case.utility, n=n, design="root", estimator="ht", beliefs=Beliefs(prior), trials=trials,
        seed=seed,
    )  # fmt: skip
    best = min(unaided, key=lambda name: unaided[name])
    rows.append(_worth(case, ("none", "root, ht"), result, best, unaided[best]))
    return rows


def papers_errors(case: Case) -> dict[str, float]:
    """Return the mean squared error of each of the paper's ways to spend one judgment on several systems.

    The draws are with replacement: with n judgments it is an nth of that.
    """
    population = case.population
    targets = targets_of(population, "absolute")
    flat = np.ones(len(population))
    errors = {}
    for label, weighed, believed in (
        ("mean rank", population, prior_by_rank(population)),
        ("own rank", by_own_rank(population), flat),
        ("nothing", population, flat),
        (PREDICTOR, population, case.guess),
    ):
        for design in ("SQRT", "MEAN"):
            plain = sizes(weighed, design, "absolute", Beliefs(believed), epsilon=0.0)
            for epsilon in EPSILONS:
                size = plain + epsilon
                variance = true_variance(targets, size / size.sum(), case.utility, 1)
                errors[f"{design}, u~ by {label}, epsilon {epsilon:g}"] = float(variance.mean())
    return errors


def _worth(case: Case, labels: tuple[str, str], result: BudgetSimulation, best: str, least: float) -> Worth:
    cover = [target.coverage for target in result.targets]
    moved = [abs(target.bias) / target.bias_error for target in result.targets if target.bias_error > 0]
    predictor, way = labels
    held = way == USUAL and ("LLM" in case.name or predictor == "useless")
    return Worth(
        case.name,
        result.n,
        *labels,
        result.mean("mse") / least,
        result.mse_error / least,
        float(np.mean(cover)),
        min(cover),
        max(moved, default=0.0),
        best,
        AT_MOST[predictor] if held else None,
    )


def run(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
    *,
    budgets: Sequence[int] = BUDGETS,
) -> PredictorReport:
    """Measure both collections at each budget."""
    if data is None:
        raise BadParameter("This needs TREC-8 and DL21.", remedy="Name their folder with --data.")
    rows: list[Worth] = []
    for case in (trec8_case(data, seed), dl21_case(data), dl21_case(data, "P(rel=2)@10")):
        errors = papers_errors(case)
        for n in budgets:
            rows += worths(case, n, trials, seed, errors)
            if progress is not None:
                progress(trials)
    return PredictorReport(tuple(rows), trials, seed)


PREDICTORS = Experiment(
    "budget-predictors",
    "What a predictor is worth at the same budget",
    TRIALS,
    3 * len(BUDGETS),
    run,
    reads=(
        "trec8/trec8.qrels.gz",
        "trec8/runs-top100",
        "dl21/qrels.dl21-passage.txt",
        "dl21/runs",
        "dl21/umbrela_gpt4_dl21.qrels.gz",
    ),
)
