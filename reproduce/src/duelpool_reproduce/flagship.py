"""The flagship on every problem that it was made for: what it reaches, beside prefBest, and how honest it is."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duelpool.errors import UnknownName
from duelpool.simulation import (
    Progress,
    ReliabilityBin,
    SimulationResult,
    calibration_error,
    reliability,
)
from duelpool_reproduce.base import Cell, Experiment, Section
from duelpool_reproduce.cells import NOT_KEPT, Cells
from duelpool_reproduce.flagship_cells import (
    BARS,
    BASELINE,
    FILES,
    LARGE_POOL,
    PEER_SHARE,
    PEERS,
    PROBLEMS,
    QUICK_PEERS,
    Bar,
    FlagshipProblem,
    Range,
)
from duelpool_reproduce.verdicts import MISSED, WILSON, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 1000
TOP = "top 5: "  # such a problem is compared with prefBest on the problem without this prefix
TOGETHER = "all figures: ours less the bar, mean"
MOST_SHORT = 0.01  # of all figures together: the bars are stated to a hundredth


@dataclass(frozen=True, slots=True)
class Reached:
    """One figure of ours beside its bar, and beside prefBest with its extra phase where that was run."""

    bar: Bar
    ours: float
    standard_error: float
    theirs: float | None

    trials: int = 1

    def measured(self) -> Measured:
        """Return it as a figure with a verdict beside its bar."""
        is_share = self.bar.measure != "top5_recall"
        return Measured(
            _label(self.bar),
            None,
            self.ours,
            (self.bar.value, math.inf),
            self.error_at_bar(),
            kind="bar",
            whole=1,
            trials=self.trials if is_share else None,
        )

    @property
    def verdict(self) -> str:
        """Its verdict."""
        return self.measured().verdict

    def error_at_bar(self) -> float:
        """Return our standard error, or where it is larger that of a share at the bar: few trials may all fail.

        A share moves in steps of one trial, so that half of one is the least error.
        """
        if self.bar.measure == "top5_recall":
            return self.standard_error
        at_bar = math.sqrt(self.bar.value * (1 - self.bar.value) / self.trials)
        return max(self.standard_error, at_bar, 1 / (2 * self.trials))


def measured(result: SimulationResult, measure: str) -> tuple[float, float]:
    """Return a share or mean of the trials, and its standard error."""
    value = float(getattr(result, measure))
    if measure != "top5_recall":
        return value, result.standard_error(value)
    spread = math.fsum((trial.top_recall - value) ** 2 for trial in result.outcomes)
    return value, math.sqrt(spread) / result.trials


@dataclass(frozen=True, slots=True)
class FlagshipReport:
    """Every problem that was run: the flagship's trials, and prefBest's where it is run too."""

    ours: dict[str, SimulationResult]
    theirs: dict[str, SimulationResult]
    left_out: tuple[str, ...]  # problems that were not run
    trials: int
    seed: int
    peers: dict[str, dict[str, SimulationResult]] = field(default_factory=dict)  # by problem, then by peer

    def reached(self) -> tuple[Reached, ...]:
        """Return every figure that has a bar."""
        rows = []
        for bar in BARS:
            if (result := self.ours.get(bar.problem)) is None:
                continue
            beside = self.theirs.get(bar.problem.removeprefix(TOP))
            theirs = None if beside is None else measured(beside, bar.measure)[0]
            rows.append(Reached(bar, *measured(result, bar.measure), theirs, result.trials))
        return tuple(rows)

    def compared(self) -> tuple[Measured, ...]:
        """Return every figure beside its bar, and all of them together."""
        rows = self.reached()
        figures = [row.measured() for row in rows]
        if not rows:
            return ()
        # Figures of one problem come from the same trials: their errors are added up, not their squares.
        errors: dict[str, float] = {}
        for row in rows:
            errors[row.bar.problem] = errors.get(row.bar.problem, 0.0) + row.error_at_bar()
        mean = math.fsum(row.ours - row.bar.value for row in rows) / len(rows)
        error = math.hypot(*errors.values()) / len(rows)
        together = Measured(
            TOGETHER, None, mean, (0.0, math.inf), error, within=MOST_SHORT, whole=1, kind="bar"
        )
        return (*figures, together)

    def stating(self) -> dict[str, SimulationResult]:
        """Return the problems on which a confidence was stated in some trial: few trials may all refuse."""
        return {
            name: result
            for name, result in self.ours.items()
            if any(trial.confidence is not None for trial in result.outcomes)
        }

    def errors(self) -> dict[str, float]:
        """Return the calibration error of the stated confidence on each problem on which one was stated."""
        return {name: calibration_error([result]) for name, result in self.stating().items()}

    @property
    def pooled_error(self) -> float | None:
        """The calibration error over the trials of all problems; None where no confidence was stated."""
        results = list(self.stating().values())
        return calibration_error(results) if results else None

    def pooled(self) -> tuple[ReliabilityBin, ...]:
        """Return stated confidence against the share that was right, over the trials of all problems."""
        results = list(self.stating().values())
        return reliability(results) if results else ()

    def sections(self) -> Sequence[Section]:
        """Return what was reached, what it took, and how reliable the confidence is."""
        rows: list[tuple[Cell, ...]] = [
            (
                _label(row.bar),
                _beside(row),
                _range(row.bar.reach),
                replace(row.measured(), error=row.standard_error).text,
                row.verdict,
            )
            for row in self.reached()
        ]
        taken: list[tuple[Cell, ...]] = []
        errors = self.errors()
        for name, result in self.ours.items():
            beside = self.theirs.get(name)
            taken.append(
                (
                    name,
                    result.trials,
                    "" if beside is None else f"{beside.comparisons['mean']:.0f}",
                    f"{result.comparisons['mean']:.0f}",
                    result.same_pair["max"],
                    f"{result.rounds:.0f}",
                    f"{result.returned:.2f}",
                    f"{errors[name]:.3f}" if name in errors else "",
                )
            )
        pooled: list[tuple[Cell, ...]] = [
            (f"{row.stated:.3f}", f"{row.right:.3f}", row.trials) for row in self.pooled()
        ]
        peers: list[tuple[Cell, ...]] = [
            (
                name,
                f"{self.ours[name].single:.3f}",
                *(f"{results[peer].single:.3f}" if peer in results else "" for peer in PEERS),
            )
            for name, results in self.peers.items()
        ]
        return (
            Section(
                f"The flagship ({self.trials} trials a problem, seed {self.seed})",
                ("problem", "prefBest+", "bar", "ours", "verdict"),
                tuple(rows),
            ),
            Section(
                "Judgments (mean), rounds, and the error of the stated confidence",
                ("problem", "trials", "prefBest+", "ours", "pair", "rounds", "set", "error"),
                tuple(taken),
            ),
            *(
                [Section("Peers: one item is returned", ("problem", "ours", *PEERS.values()), tuple(peers))]
                if peers
                else []
            ),
            Section(
                f"Stated confidence, all problems pooled: error {_error(self.pooled_error)}",
                ("stated", "right", "trials"),
                tuple(pooled),
            ),
        )

    def beaten(self) -> tuple[str, ...]:
        """Return where a peer finds the best more often than ours, by more than three standard errors."""
        words = []
        for name, results in self.peers.items():
            mine = self.ours[name]
            for peer, result in results.items():
                ahead = result.single - mine.single
                errors = (each.standard_error(each.single) for each in (result, mine))
                if ahead > 3 * max(math.hypot(*errors), 1 / (2 * result.trials)):
                    words.append(f"{peer} on {name} ({result.single:.3f} against {mine.single:.3f})")
        return tuple(words)

    def figures(self) -> Section:
        """Return every figure in one table."""
        columns = (
            "problem",
            "measure",
            "bar_low",
            "bar_high",
            "ours",
            "ours_se",
            "prefbest_known",
            "prefbest_here",
            "verdict",
        )
        rows = tuple(
            (
                row.bar.problem,
                row.bar.measure,
                *row.bar.reach,
                round(row.ours, 4),
                round(row.standard_error, 4),
                None if row.bar.theirs is None else round(sum(row.bar.theirs) / 2, 4),
                None if row.theirs is None else round(row.theirs, 4),
                row.verdict,
            )
            for row in self.reached()
        )
        return Section("flagship", columns, rows)

    def notes(self) -> Sequence[str]:
        """Return how the figures are meant."""
        errors = self.errors()
        counted = Counter(row.verdict for row in self.reached())
        notes = [
            "The bar is what two prototypes reached (of a range, its middle). kept: ours is no more than 3 standard "
            "errors below it; the error is ours or that of a share at the bar, whichever is larger.",
            WILSON,
            "prefBest+: prefBest with its extra phase, run here; in parentheses, known from before.",
            "ours: one item is returned, but for 'a set', 'both on top' (the first two are the two best) and "
            "top 5 (the share of the true top five among the first five).",
            "error: the confidence's expected calibration error, ten equal bins, weighted by their trials; "
            "right: a true best item is among those returned as best.",
            f"Of {len(self.reached())} figures {', '.join(f'{count} {word}' for word, count in counted.items())}.",
            *(
                f"{row.figure[0].upper()}{row.figure[1:]}: {row.ours:+.3f}±{row.error:.3f}; {row.verdict}: the bar is "
                f"{MOST_SHORT:g} below 0."
                for row in self.compared()
                if row.figure == TOGETHER
            ),
        ]
        if errors:
            worst = max(errors, key=errors.__getitem__)
            notes.append(
                f"Confidence: pooled error {_error(self.pooled_error)}, largest {errors[worst]:.3f} on {worst}. Too "
                "little stated counts as an error, too: `reproduce calibration` has bars for stating too much."
            )
        if self.peers:
            names = ", ".join(f"{word}: {peer}" for peer, word in PEERS.items() if word != peer)
            notes += [
                f"Peers: {names}. They have the judgments and the cap of ours, and a tenth of its trials; pools of "
                f"{LARGE_POOL} are for the quick ones ({', '.join(QUICK_PEERS)}).",
                "A peer finds the best more often than ours, by over three standard errors: "
                f"{'; '.join(self.beaten()) or 'none'}.",
            ]
        if self.left_out:
            notes.append(
                f"Not run: {', '.join(self.left_out)}. The replays need the real judgments: --data FOLDER "
                f"with {', '.join(FILES)}."
            )
        return notes

    def as_json(self) -> dict[str, Any]:
        """Return the figures, the reliability and every simulation's summary."""
        table = self.figures()
        return {
            "experiment": "flagship",
            "trials": self.trials,
            "seed": self.seed,
            "missed": sum(row.verdict == MISSED for row in self.reached()),
            "figures": [dict(zip(table.columns, row, strict=True)) for row in table.rows],
            "confidence": {
                "pooled_error": self.pooled_error,
                "errors": self.errors(),
                "reliability": {
                    name: [asdict(row) for row in reliability([result])]
                    for name, result in self.stating().items()
                },
            },
            "simulations": [
                {"problem": name} | result.as_json()
                for results in (self.ours, self.theirs)
                for name, result in results.items()
            ],
            "peers": [
                {"problem": name} | result.as_json()
                for name, results in self.peers.items()
                for result in results.values()
            ],
            "notes": list(self.notes()),
        }

    def drawing(self) -> "Figure":
        """Draw the figures beside their bars, and stated confidence against the share that was right."""
        from duelpool.plots import scorecard

        rows = self.reached()
        return scorecard(
            [_label(row.bar) for row in rows],
            bars=[row.bar.reach for row in rows],
            ours=[(row.ours, row.standard_error) for row in rows],
            others=[row.theirs for row in rows],
            reliable={"pooled": self.pooled()}
            | {name: reliability([result]) for name, result in self.stating().items()}
            if self.stating()
            else {},
        )


def _error(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _label(bar: Bar) -> str:
    return f"{bar.problem} ({bar.words})" if bar.words else bar.problem


def _range(known: Range) -> str:
    low, high = known
    return f"{low:.3f}" if low == high else f"{low:.3f}-{high:.3f}"


def _beside(row: Reached) -> str:
    """Return prefBest's figure as it was run here, else the known one in parentheses."""
    if row.theirs is not None:
        return f"{row.theirs:.3f}"
    return "" if row.bar.theirs is None else f"({sum(row.bar.theirs) / 2:.3f})"


def flagship(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
    *,
    only: Iterable[str] | None = None,
    peers_on: Iterable[str] | None = None,
    cells: Cells = NOT_KEPT,
) -> FlagshipReport:
    """Run the flagship on every problem, or on `only` some; replays need the folder with the real data.

    `peers_on` are the problems on which the peers are run: all where prefBest is, unless it is given.
    """
    with_peers = None if peers_on is None else set(peers_on)
    wanted = _chosen(only)
    ours: dict[str, SimulationResult] = {}
    theirs: dict[str, SimulationResult] = {}
    peers: dict[str, dict[str, SimulationResult]] = {}
    left_out = []
    for problem in wanted:
        if problem.file is not None and (data is None or not (data / problem.file).is_file()):
            left_out.append(problem.name)
            continue
        judges = problem.judges_in(str(data))
        count = problem.trials(trials)
        ours[problem.name] = cells.simulate(
            problem.strategy,
            judges,
            items=problem.items,
            budget=problem.budget,
            cap=problem.cap,
            trials=count,
            seed=seed,
            outstanding=problem.outstanding,
            executor=executor,
            progress=progress,
            case=problem.name,
        )
        if problem.beside:
            theirs[problem.name] = cells.simulate(
                BASELINE,
                judges,
                items=problem.items,
                cap=problem.cap,
                trials=count,
                seed=seed,
                executor=executor,
                progress=progress,
                case=problem.name,
            )
        if problem.peers and (with_peers is None or problem.name in with_peers):
            peers[problem.name] = {
                peer: cells.simulate(
                    peer,
                    judges,
                    items=problem.items,
                    budget=problem.budget,
                    cap=problem.cap,
                    trials=problem.peer_trials(trials),
                    seed=seed,
                    executor=executor,
                    progress=progress,
                    case=problem.name,
                )
                for peer in problem.peers
            }
    return FlagshipReport(ours, theirs, tuple(left_out), trials, seed, peers)


def _chosen(only: Iterable[str] | None) -> tuple[FlagshipProblem, ...]:
    if only is None:
        return PROBLEMS
    by_name = {problem.name: problem for problem in PROBLEMS}
    names = list(only)
    for name in names:
        if name not in by_name:
            raise UnknownName("problem", name, by_name)
    return tuple(by_name[name] for name in names)


FLAGSHIP_TABLE = Experiment(
    "flagship",
    "Our own strategy against prefBest with its extra phase and six peers, on every problem it was made for",
    TRIALS,
    round(
        sum(problem.share * (1 + problem.beside + PEER_SHARE * len(problem.peers)) for problem in PROBLEMS)
    ),
    flagship,
    reads=FILES,
    shows={"The flagship": "swissfinals on every problem that it was made for"},
    quick=12,
    quick_form={"peers_on": ("A", "B", "bt 1")},
    seconds=(30, 25000),
    partial=True,
    resumable=True,
)
