"""`duelpool reproduce systems`: how soon an order of systems is settled, and whether what is stated of it is true."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from math import inf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from duelpool.files import read_votes
from duelpool.preferences.contests import VoteTable, fit_contest
from duelpool.seeds import rng_for
from duelpool.simulation import Progress
from duelpool.simulation.systems import (
    PlantedSystems,
    SystemsTrial,
    replay_systems,
    simulate_systems,
    votes_by_pair,
)
from duelpool_reproduce.base import Cell, Experiment, Section
from duelpool_reproduce.verdicts import (
    NOT_EXPLAINED,
    ComparisonReport,
    Measured,
    Stated,
    error_of_mean,
    with_error,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIES_FOR_ALL = "5 x 30, gaps 1.4, ties 0.15 for all"
TRIALS = 100
SEEDS = 40
ARENA, LLMFAO = "arena/human.jsonl.gz", "llmfao/crowd-comparisons.csv.gz"
MARKS = (500, 1000, 2000)
LEAST_TAU: Mapping[int, float] = {1000: 0.88, 2000: 0.925}
DRAWN = 20  # draws of five systems from those of llmfao
PROBLEMS: Mapping[str, PlantedSystems] = {
    "5 x 30, gaps 0.4": PlantedSystems.even(5, 0.4),
    "5 x 30, gaps 0.8": PlantedSystems.even(5, 0.8),
    "5 x 30, gaps 1.2": PlantedSystems.even(5, 1.2),
    "5 x 30, gaps 1.6": PlantedSystems.even(5, 1.6),
    "5 x 30, gaps 1.0, effects 0.9, ties 0.35": PlantedSystems.even(5, 1.0, effect=0.9, ties=0.35),
    TIES_FOR_ALL: PlantedSystems((0, -1.4, -2.8, -4.2, -5.6), effect=0.3, ties=0.15, constant_ties=True),
    "5 x 30, wild effects of two": PlantedSystems((2, 0.9, -0.2, -1.3, -2.4), wild=(0.2, 1.2, 1.2, 0.2, 0.2)),
    "4 x 40, uneven gaps": PlantedSystems((1.6, 0.5, -0.2, -1.8), questions=40, effect=0.6, ties=0.25),
    "2 x 50, gap 0.8, effects 0.8": PlantedSystems.even(2, 0.8, questions=50, effect=0.8),
    "5 x 30, two equal": PlantedSystems((3, 1, 1, -1, -3), effect=0.7),
    "2 x 50, equal": PlantedSystems.even(2, 0.0, questions=50, effect=0.7),
    "5 x 30, all equal": PlantedSystems.even(5, 0.0, effect=0.7),
}
ON_THE_WAY = ("5 x 30, gaps 0.4", "5 x 30, gaps 1.2", "5 x 30, all equal")
COMPARED = ("5 x 30, gaps 1.2", "5 x 30, gaps 1.6")
STRATEGIES = ("systems", "round-robin", "random")


@dataclass(frozen=True, slots=True)
class SettledShares:
    """What the campaigns of one problem came to."""

    name: str
    trials: tuple[SystemsTrial, ...]
    equals: bool = False  # some systems are equal: no order is right

    @property
    def settled(self) -> list[SystemsTrial]:
        """The campaigns that were settled."""
        return [each for each in self.trials if each.settled]

    def rows(self, part: str) -> list[Measured]:
        """Return the figures that have bars."""
        n = len(self.trials)
        wrong = sum(not each.right for each in self.settled)
        found = [
            _share(
                f"{self.name}: settled and wrong",
                (-inf, 0.1 if self.equals else 0.05),
                wrong,
                n,
                part,
            )
        ]
        if not self.equals and self.settled:
            right = len(self.settled) - wrong
            found.append(
                _share(f"{self.name}: right when settled", (0.95, inf), right, len(self.settled), part)
            )
        return [*found, *coverage_rows(self.name, self.trials, part)]

    def row(self) -> tuple[Cell, ...]:
        """Return the row of a table."""
        votes = [each.votes for each in self.trials]
        done = self.settled
        return (
            self.name,
            f"{len(done) / len(self.trials):.2f}",
            f"{np.median([each.votes for each in done]):.0f}" if done else "",
            f"{np.mean(votes):.0f}",
            "" if self.equals or not done else f"{sum(each.right for each in done) / len(done):.3f}",
            "" if self.equals else f"{np.mean([each.right for each in self.trials]):.2f}",
            f"{np.mean([each.covered for each in self.trials]):.3f}",
            f"{np.mean([each.ranks for each in self.trials]):.3f}",
        )


SHORT: Mapping[str, str] = {
    TIES_FOR_ALL: "Ties as frequent between unlike systems as between equals fit no Bradley-Terry strengths.",
    "5 x 30, all equal, a third of the votes": f"{NOT_EXPLAINED} With all votes the same intervals hold.",
}
"""Why intervals hold too rarely, by problem."""

MOST_SYSTEMS = 5  # of a problem

COLUMNS = ("problem", "settled", "after", "votes", "right when settled", "right", "intervals", "ranks")


def _share(figure: str, bar: Stated, count: float, n: int, part: str) -> Measured:
    smooth = (count + 1) / (n + 2)
    error = sqrt(smooth * (1 - smooth) / n)
    return Measured(figure, bar, count / n, error=error, part=part, kind="bar", whole=1, trials=n)


def coverage_rows(name: str, trials: Sequence[SystemsTrial], part: str) -> list[Measured]:
    """Return the coverage of 95 % intervals and of all ranks at once, beside their bars."""
    n = len(trials)
    covered = [each.covered for each in trials]
    # Where nearly all intervals hold, their spread is taken as that of independent ones that hold in .95.
    # A single trial shows no spread.
    error = max(error_of_mean(covered), sqrt(0.95 * 0.05 / (n * MOST_SYSTEMS))) if n > 1 else 0.0
    return [
        Measured(
            f"{name}: intervals",
            (0.93, 0.97),
            float(np.mean(covered)),
            error=error,
            part=part,
            kind="bar",
            whole=1,
            why=SHORT.get(name, ""),
        ),
        _share(f"{name}: ranks", (0.95, inf), sum(each.ranks for each in trials), n, part),
    ]


def llmfao_problems(data: Path, seed: int) -> list[PlantedSystems]:
    """Return problems with five systems each, whose strengths were fitted to the crowd's votes on 59."""
    votes = read_votes(data / LLMFAO)
    table = VoteTable.of([(vote.a, vote.b, vote.share, vote.question) for vote in votes])
    values = fit_contest(table).values
    ties = float(np.mean(table.share == 0.5))
    rng = rng_for(seed, "systems", "llmfao")
    return [
        PlantedSystems(tuple(sorted(rng.choice(values, 5, replace=False).tolist(), reverse=True)), ties=ties)
        for _ in range(DRAWN)
    ]


def systems(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
    *,
    seeds: int = SEEDS,
    only: Sequence[str] | None = None,
) -> ComparisonReport:
    """Replay the arena's votes, and play campaigns with planted strengths until they are settled."""
    rows: list[Measured] = []
    tables: list[Section] = []
    remarks: list[str] = []
    curves: dict[str, list[tuple[float, float]]] = {}
    play = partial(simulate_systems, trials=trials, seed=seed, executor=executor, progress=progress)
    if data is not None and (data / ARENA).is_file():
        rows, table, curves = _replay(data / ARENA, range(seed, seed + seeds), executor, progress)
        tables.append(table)
    else:
        remarks.append(f"Not replayed: it needs {ARENA}; name its folder with --data.")
    names = list(PROBLEMS) if only is None else list(only)
    found = [
        SettledShares(
            name,
            tuple(play(PROBLEMS[name])),
            len(set(PROBLEMS[name].strengths)) < len(PROBLEMS[name].strengths),
        )
        for name in names
    ]
    if data is not None and (data / LLMFAO).is_file() and only is None:
        drawn = play(llmfao_problems(data, seed))
        found.append(SettledShares("llmfao, 5 of 59 systems x 30", tuple(drawn)))
    for each in found:
        rows += each.rows("Planted strengths")
    tables.append(
        Section(
            f"Until settled, {trials} campaigns each, looked at after every vote",
            COLUMNS,
            tuple(each.row() for each in found),
        )
    )
    way = [
        (name, play(PROBLEMS[name], budget=PROBLEMS[name].pairs // 3)) for name in ON_THE_WAY if name in names
    ]
    for name, some in way:
        rows += coverage_rows(f"{name}, a third of the votes", some, "On the way")
    compared = [
        (name, strategy, play(PROBLEMS[name], strategy))
        for name in COMPARED
        if name in names
        for strategy in STRATEGIES[1:]
    ]
    own = {each.name: each for each in found}
    lines = [
        (each.name, strategy, *each.row()[1:4])
        for name in COMPARED
        if name in own
        for strategy, each in (
            (STRATEGIES[0], own[name]),
            *((way, SettledShares(name, tuple(some))) for which, way, some in compared if which == name),
        )
    ]
    if lines:
        tables.append(
            Section("By strategy", ("problem", "strategy", "settled", "after", "votes"), tuple(lines))
        )
    remarks += [
        "settled: the share of campaigns. after: the median votes of those; votes: the mean of all, a vote for every "
        "two answers being the most. right: the order at the end, settled or not.",
        "Equal systems have no right order: there, settled in at most 0.10 is asked, 0.05 for each direction.",
        "intervals: the share of 95 % intervals of strengths that hold when a campaign ends; ranks: all hold at once.",
    ]

    def draw() -> "Figure":
        from duelpool.plots import Bars, Lines, Panel, panels

        shares = {
            "settled": [len(each.settled) / len(each.trials) for each in found],
            "right at the end": [float(np.mean([one.right for one in each.trials])) for each in found],
        }
        shown: list[Panel] = [Bars("Settled, and right", "share", [each.name for each in found], shares)]
        if curves:
            shown.insert(0, Lines("Replay of the arena's votes", "votes", "Kendall's tau", curves))
        return panels(shown)

    return ComparisonReport(
        "systems", tuple(rows), draw, tuple(remarks), tuple(tables), trials, seed, {"seeds": seeds}
    )


def _replay(
    file: Path, seeds: range, executor: Executor | None, progress: Progress | None
) -> tuple[list[Measured], Section, dict[str, list[tuple[float, float]]]]:
    rows: list[Measured] = []
    votes = votes_by_pair(read_votes(file))
    curves: dict[str, list[tuple[float, float]]] = {}
    lines: list[tuple[Cell, ...]] = []
    part = "Replay of the arena's votes"
    for strategy in ("systems", "random"):
        taus = np.array(
            replay_systems(
                votes,
                strategy,
                marks=MARKS,
                seeds=seeds,
                executor=executor,
                progress=progress,
            )
        )
        means, errors = taus.mean(axis=0), np.apply_along_axis(error_of_mean, 0, taus)
        curves[strategy] = list(zip(map(float, MARKS), means.tolist(), strict=True))
        told = (with_error(mean, error, 3) for mean, error in zip(means, errors, strict=True))
        lines.append((strategy, *told))
        for mark, mean, error in zip(MARKS, means.tolist(), errors.tolist(), strict=True):
            bar = (LEAST_TAU[mark], inf) if mark in LEAST_TAU and strategy == "systems" else None
            if bar is not None or (strategy == "random" and mark in LEAST_TAU):
                rows.append(
                    Measured(
                        f"{strategy}: tau after {mark:,} votes", bar, mean, error=error, part=part, kind="bar"
                    )
                )
    table = Section(
        f"Kendall's tau with the order by all votes, {len(seeds)} seeds",
        ("strategy", *(f"{mark:,} votes" for mark in MARKS)),
        tuple(lines),
    )
    return rows, table, curves


SYSTEMS = Experiment(
    "systems",
    "How soon an order of systems is found and settled, and whether what is stated of it is true",
    TRIALS,
    len(PROBLEMS) + 1 + len(ON_THE_WAY) + len(COMPARED) * (len(STRATEGIES) - 1),
    systems,
    reads=(ARENA, LLMFAO),
    shows={"Systems": "votes until an order of systems is settled, and what is right then"},
    quick=3,
    quick_form={"seeds": 2},
    seconds=(90, 2700),
    partial=True,
)
