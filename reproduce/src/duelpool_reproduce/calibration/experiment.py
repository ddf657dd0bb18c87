"""`duelpool reproduce calibration`: what the flagship states of its answers beside what is true, and a verdict."""

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duelpool.errors import UnknownName
from duelpool.simulation import (
    Calibration,
    Progress,
    SimulationResult,
    calibration_error,
    judgments_allowed,
    reliability,
)
from duelpool_reproduce.base import Cell, Experiment, Section
from duelpool_reproduce.calibration.checks import (
    CHANCES,
    POOLED,
    BarCheck,
    checks_of_stated,
    checks_of_stops,
    within_goal,
    worst_of,
)
from duelpool_reproduce.calibration.judges import SHAPES
from duelpool_reproduce.calibration.problems import (
    FILES,
    GOAL_OVER,
    LEAST_RIGHT_WHEN_STOPPED,
    MOST_OVER,
    MOST_OVER_POOLED,
    STOPPING,
    STRATEGY,
    SURE,
    CalibrationProblem,
    problems,
)
from duelpool_reproduce.cells import NOT_KEPT, Cells
from duelpool_reproduce.verdicts import MISSED, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 1000
STOPPING_SHARE = 0.1  # of the trials: one that may stop computes its confidence after every round


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """Every problem that was run: with its whole budget, and stopped once the strategy was sure enough."""

    whole: dict[str, SimulationResult]
    stopping: dict[str, SimulationResult]
    left_out: tuple[str, ...]  # problems whose data are not there
    trials: int
    seed: int

    @property
    def stopping_trials(self) -> int:
        """How many trials of a problem might stop."""
        return _stopping_trials(self.trials)

    def checks(self) -> tuple[BarCheck, ...]:
        """Return every figure that has a bar."""
        return (*checks_of_stated(self.whole), *checks_of_stops(self.stopping))

    def compared(self) -> tuple[Measured, ...]:
        """Return every figure beside its bar."""
        return tuple(each.measured() for each in self.checks())

    def pooled(self, chance: str = "best") -> Calibration:
        """Return what was stated over the trials of all problems, and how often it was so."""
        return Calibration.of((trial for result in self.whole.values() for trial in result.outcomes), chance)

    def sections(self) -> Sequence[Section]:
        """Return stated against right for the set, for the first item, at the moment of stopping, and by bins."""
        checks = self.checks()
        of_set, of_first = [], []
        for name, result in self.whole.items():
            found = [result.calibration(chance) for chance in CHANCES]
            verdicts = [each for each in checks if each.problem == name and "stopped" not in each.figure]
            first = [each for each in verdicts if each.figure.startswith(("top 5", "near best"))]
            of_set.append(_set_row(name, found[0], [each for each in verdicts if each not in first]))
            of_first.append(_first_row(name, found[1:], first))
        if self.whole:
            found = [self.pooled(chance) for chance in CHANCES]
            pooled = [each for each in checks if each.problem == POOLED and "stopped" not in each.figure]
            of_set.append(_set_row(POOLED, found[0], pooled[:1]))
            of_first.append(_first_row(POOLED, found[1:], pooled[1:]))
        stopping = {name: [result] for name, result in self.stopping.items()}
        if stopping:
            stopping[POOLED] = list(self.stopping.values())
        return (
            Section(
                f"A best item is among those returned ({self.trials} trials a problem, seed {self.seed})",
                ("problem", "stated", "right", "over", "refused", "verdict"),
                tuple(of_set),
            ),
            Section(
                "The first item: one of the five best; the best beats it by at most epsilon",
                ("problem", "top 5", "true", "near best", "true", "verdict"),
                tuple(of_first),
            ),
            Section(
                f"Stopped once it states {SURE:g} ({self.stopping_trials} trials a problem)",
                ("problem", "stopped", "right", "judgments", "of", "verdict"),
                tuple(
                    _stop_row(name, results, [each for each in checks if each.problem == name])
                    for name, results in stopping.items()
                ),
            ),
            Section(
                "Stated, all problems pooled",
                ("stated", "right", "trials"),
                tuple((f"{row.stated:.3f}", f"{row.right:.3f}", row.trials) for row in self._bins()),
            ),
        )

    def figures(self) -> Section:
        """Return every figure that has a bar in one table."""
        rows = tuple(
            (
                each.problem,
                each.figure,
                None if each.value is None else round(each.value, 4),
                round(each.error, 4),
                "least" if each.least else "most",
                each.bar,
                each.verdict,
            )
            for each in self.checks()
        )
        return Section(
            "calibration", ("problem", "figure", "ours", "ours_se", "side", "bar", "verdict"), rows
        )

    def notes(self) -> Sequence[str]:
        """Return how the figures are meant, and what they come to."""
        checks = self.checks()
        counted = Counter(each.verdict for each in checks)
        missed = [each for each in checks if each.verdict == MISSED]
        near, of = within_goal(checks)
        notes = [
            "stated: the mean; a refusal to state a number counts as what chance gives (items returned / K, 5 / K, and "
            "0 for near best). right, true: the share of trials in which it was so.",
            f"Bars: stated less right at most {MOST_OVER:.2f} on each problem and {MOST_OVER_POOLED:.2f} over all; "
            "coin flips refused in at least 0.85; where the best can be found, few refusals and little modesty; when "
            f"stopped, right in at least {LEAST_RIGHT_WHEN_STOPPED:.2f}. A row has the worst verdict of its figures, "
            "and names them where others have a better one.",
            *(
                f"{each.name}: {each.trials(self.trials)} trials and {_stopping_trials(each.trials(self.trials))}."
                for each in problems(self.seed)
                if each.share < 1 and each.name in self.whole
            ),
            "coins 0.5: an order that no answer shows (q = 0.500001). near-ties: strengths drawn from those fitted to "
            "real votes. drawn: settings from a generator, by the seed; another seed gives other problems.",
            *(f"drawn: {shape}: {about.words}." for shape, about in SHAPES.items() if self._ran(shape)),
            "judgments, of: the mean that was taken, and the whole budget.",
            f"Of {len(checks)} figures {', '.join(f'{count} {word}' for word, count in counted.items())}. Stated less "
            f"right is at most the goal of {GOAL_OVER:.2f} on {near} of {of} problems.",
            *(
                f"Missed: {each.problem}, {each.figure}: {each.value:.3f}. {each.why}".rstrip()
                for each in missed
            ),
        ]
        if self.left_out:
            notes.append(
                f"Not run: {', '.join(self.left_out)}. They need real judgments: --data FOLDER with "
                f"{', '.join(FILES)}."
            )
        return notes

    def _ran(self, shape: str) -> bool:
        return f"drawn: {shape}" in self.whole

    def as_json(self) -> dict[str, Any]:
        """Return the figures, the reliability and every simulation's summary."""
        table = self.figures()
        return {
            "experiment": "calibration",
            "trials": self.trials,
            "seed": self.seed,
            "missed": sum(each.verdict == MISSED for each in self.checks()),
            "pooled": {chance: self.pooled(chance).as_json() for chance in CHANCES} if self.whole else {},
            "calibration_error": calibration_error(list(self.whole.values())) if self._bins() else None,
            "figures": [dict(zip(table.columns, row, strict=True)) for row in table.rows],
            "problems": {
                each.name: {"judges": str(each.judges), "items": each.items, "budget": each.budget}
                for each in problems(self.seed)
                if each.name in self.whole
            },
            "reliability": [asdict(row) for row in self._bins()],
            "simulations": [
                {"problem": name} | result.as_json()
                for results in (self.whole, self.stopping)
                for name, result in results.items()
            ],
            "notes": list(self.notes()),
        }

    def _bins(self) -> tuple[Any, ...]:
        stating = [
            result
            for result in self.whole.values()
            if any(trial.confidence is not None for trial in result.outcomes)
        ]
        return reliability(stating) if stating else ()

    def drawing(self) -> "Figure":
        """Draw stated and right of each problem, and over all of them by bins of what was stated."""
        from duelpool.plots import stated_and_right

        found = {name: result.calibration() for name, result in self.whole.items()}
        return stated_and_right(
            {name: (each.stated, each.right) for name, each in found.items()}, MOST_OVER, self._bins()
        )


def _set_row(name: str, found: Calibration, checks: Sequence[BarCheck]) -> tuple[Cell, ...]:
    return (name, *_shares(found), _over(found), _share(found.refused), worst_of(checks))


def _first_row(name: str, found: Sequence[Calibration], checks: Sequence[BarCheck]) -> tuple[Cell, ...]:
    return (name, *(cell for each in found for cell in _shares(each)), worst_of(checks))


def _stop_row(name: str, results: Sequence[SimulationResult], checks: Iterable[BarCheck]) -> tuple[Cell, ...]:
    trials = [trial for result in results for trial in result.outcomes]
    early = [trial for trial in trials if trial.stopped]
    allowed = [
        judgments_allowed(result.budget, trial.items) or 0 for result in results for trial in result.outcomes
    ]
    return (
        name,
        f"{len(early)} of {len(trials)}",
        f"{sum(trial.hits > 0 for trial in early) / len(early):.3f}" if early else "",
        f"{sum(trial.comparisons for trial in trials) / len(trials):.0f}",
        f"{sum(allowed) / len(trials):.0f}",
        worst_of([each for each in checks if "stopped" in each.figure]),
    )


def _shares(found: Calibration) -> tuple[str, str]:
    return _share(found.stated), _share(found.right)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _over(found: Calibration) -> str:
    return "" if found.stated is None else f"{found.stated - found.right:+.3f}"


def calibration(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
    *,
    only: Iterable[str] | None = None,
    cells: Cells = NOT_KEPT,
) -> CalibrationReport:
    """Run the flagship on every problem, or on `only` some, with its whole budget and stopped when it is sure."""
    whole: dict[str, SimulationResult] = {}
    stopping: dict[str, SimulationResult] = {}
    left_out = []
    for problem in _chosen(only, seed):
        if problem.file is not None and (data is None or not (data / problem.file).is_file()):
            left_out.append(problem.name)
            continue
        wanted = problem.trials(trials)
        runs = ((STRATEGY, wanted, whole), (STOPPING, _stopping_trials(wanted), stopping))
        for strategy, count, results in runs:
            results[problem.name] = cells.simulate(
                strategy,
                problem.judges_in(data),
                items=problem.items,
                budget=problem.budget,
                trials=count,
                seed=seed,
                executor=executor,
                progress=progress,
                case=problem.name,
            )
    return CalibrationReport(whole, stopping, tuple(left_out), trials, seed)


def _stopping_trials(trials: int) -> int:
    return max(1, round(STOPPING_SHARE * trials))


def _chosen(only: Iterable[str] | None, seed: int) -> tuple[CalibrationProblem, ...]:
    known = {problem.name: problem for problem in problems(seed)}
    names = list(known if only is None else only)
    for name in names:
        if name not in known:
            raise UnknownName("problem", name, known)
    return tuple(known[name] for name in names)


CALIBRATION = Experiment(
    "calibration",
    "Whether what our own strategy states of its answers is true, on problems of many kinds",
    TRIALS,
    2 * len(problems(0)),
    calibration,
    reads=FILES,
    shows={"Calibration": "stated confidence against the share that was right"},
    quick=4,
    seconds=(40, 20000),
    partial=True,
    resumable=True,
)
