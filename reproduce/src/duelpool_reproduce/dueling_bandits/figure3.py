"""Human Preferences as Dueling Bandits (SIGIR 2022): how often each algorithm finds the best of 100 items.

Case A is a total order, in case B two items are equally the best; a better item wins with probability .75. An
algorithm may return several items; "found" means that the best is among them.
"""

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from duelpool.shares import wilson
from duelpool.simulation import Progress, SimulationResult
from duelpool_reproduce.base import Cell, Experiment, Section
from duelpool_reproduce.cells import NOT_KEPT, Cells
from duelpool_reproduce.dueling_bandits.returned import returned
from duelpool_reproduce.verdicts import AGREES, DIFFERS, NEW, NOT_EXPLAINED, TENTH, Measured, share_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ITEMS = 100
TRIALS = 1000  # of the paper, and the base of its counts
FIGURES = (("A", "found"), ("B", "one"), ("B", "both"))
COMPARISONS, SAME_PAIR = TAKEN = "comparisons", "most judged pair"


@dataclass(frozen=True, slots=True)
class KnownCount:
    """A figure that we did not measure: how many of 1,000 trials, and from how many it was had."""

    count: float
    trials: int

    @property
    def standard_error(self) -> float:
        """The standard error of the count in 1,000."""
        return self.standard_error_with(self.trials)

    def standard_error_with(self, trials: int) -> float:
        """Return the standard error that the count would have in a number of trials."""
        share = self.count / 1000
        return 1000 * math.sqrt(share * (1 - share) / trials)


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A row of Figure 3: the strategy it is about, the paper's figures, and an independent measurement."""

    name: str
    strategy: str
    budget: int | None
    paper: tuple[int, int, int]  # A found, B one, B both, of 1,000
    independent: tuple[int, int, int]
    independent_trials: int
    comparisons: tuple[str, str]  # A, B
    same_pair: tuple[str, str]


PAPER = (
    PaperRow("DTS", "dts", 1000, (124, 710, 7), (137, 723, 7), 300, ("1000", "1000"), ("4-24", "4-20")),
    PaperRow(
        "MergeDTS",
        "mergedts",
        1000,
        (108, 581, 58),
        (116, 588, 51),
        1000,
        ("1000", "1000"),
        ("31-93", "28-81"),
    ),
    PaperRow(
        "Round-Efficient",
        "round-efficient",
        1000,
        (141, 680, 89),
        (142, 674, 82),
        10_000,
        ("1000", "1000"),
        ("2-5", "2-5"),
    ),
    PaperRow(
        "prefBest",
        "prefbest",
        None,
        (502, 666, 94),
        (480, 654, 94),
        10_000,
        ("599-759", "592-764"),
        ("2-5", "2-5"),
    ),
    PaperRow(
        "prefBest + extra",
        "prefbest:final_phases=2",
        None,
        (510, 733, 81),
        (519, 731, 82),
        10_000,
        ("624-781", "616-795"),
        ("3-6", "3-6"),
    ),
)

DTS_REPEATS = (
    f"{NOT_EXPLAINED} The range of our DTS is wider than the paper's: in some trials no pair is judged more than "
    "twice. How often it finds the best agrees."
)
SLOW = ("dts", "mergedts")  # ten times as slow as the others: the quick form gives them fewer trials
FLAGSHIP = "swissfinals"
FLAGSHIP_BUDGET = 700
FLAGSHIP_CAP = 6


@dataclass(frozen=True, slots=True)
class Figure3Check:
    """One of our figures, in 1,000 trials, beside the paper's and the independent one."""

    row: str
    case: str
    measure: str
    trials: int
    ours: float
    standard_error: float
    paper: KnownCount | None
    independent: KnownCount | None

    @property
    def verdict(self) -> str:
        """Its verdict beside the paper's; empty where there is none."""
        word = self.compared().verdict
        return "" if word == NEW else word

    @property
    def text(self) -> str:
        """Ours with its standard error; none and all of the trials with Wilson's interval."""
        return replace(self.compared(), error=self.standard_error).text

    def compared(self) -> Measured:
        """Return it beside the paper's; the independent one says whether a difference is ours alone."""
        name = f"{self.row}, {self.case}: {self.measure}"
        if self.paper is None:
            return Measured(name, None, self.ours, digits=0, whole=TRIALS, trials=self.trials)
        # Where few trials found nothing at all, our own error would be 0: then the paper's figure tells ours.
        error = max(self.standard_error, self.paper.standard_error_with(self.trials))
        return Measured(
            name,
            self.paper.count,
            self.ours,
            None if self.independent is None else self.independent.count,
            error,
            digits=0,
            whole=TRIALS,
            paper_error=self.paper.standard_error,
            trials=self.trials,
            known_error=None if self.independent is None else self.independent.standard_error,
        )


@dataclass(frozen=True, slots=True)
class Figure3:
    """All rows of Figure 3, both cases, ours beside the paper's."""

    results: tuple[tuple[str, SimulationResult, SimulationResult], ...]  # name, case A, case B
    trials: int
    seed: int

    def checks(self) -> tuple[Figure3Check, ...]:
        """Return every figure beside those it can be held against."""
        known = {row.name: row for row in PAPER}
        checks = []
        for name, *cases in self.results:
            row = known.get(name)
            for at, (case, measure) in enumerate(FIGURES):
                result = cases["AB".index(case)]
                share = float(getattr(result, measure))
                checks.append(
                    Figure3Check(
                        name,
                        case,
                        measure,
                        result.trials,
                        1000 * share,
                        1000 * result.standard_error(share),
                        KnownCount(row.paper[at], TRIALS) if row else None,
                        KnownCount(row.independent[at], row.independent_trials) if row else None,
                    )
                )
        return tuple(checks)

    def compared(self) -> tuple[Measured, ...]:
        """Return every figure with its verdict: best items found, items returned, judgments needed."""
        return (*(check.compared() for check in self.checks()), *self.returned(), *self.taken())

    def returned(self) -> list[Measured]:
        """Return the counts of the paper's text beside ours: how many items were returned, and which."""
        return returned(self.results)

    def taken(self) -> list[Measured]:
        """Return the least and most comparisons, and judgments of the most judged pair, beside the paper's.

        Extremes widen with the trials: only those of as many as the paper's are held to them, within a tenth.
        """
        known = {row.name: row for row in PAPER}
        rows: list[Measured] = []
        for name, *cases in self.results:
            if (row := known.get(name)) is None:
                continue
            for at, (case, result) in enumerate(zip("AB", cases, strict=True)):
                for what, stated, ours in (
                    (COMPARISONS, row.comparisons[at], result.comparisons),
                    (SAME_PAIR, row.same_pair[at], result.same_pair),
                ):
                    ends = {"least": _ends(stated)[0], "most": _ends(stated)[1]}
                    if ends["least"] == ends["most"]:
                        del ends["most"]
                    rows += (
                        Measured(
                            f"{name}, {case}: {what}, {end}",
                            value if result.trials >= TRIALS else None,
                            ours["min" if end == "least" else "max"],
                            within=TENTH * value,
                            why=DTS_REPEATS if (name, what) == ("DTS", SAME_PAIR) else "",
                            digits=0,
                        )
                        for end, value in ends.items()
                    )
        return rows

    def sections(self) -> Sequence[Section]:
        """Return best items found, judgments needed, one returned item instead of several, and the text's counts."""
        found_rows: list[tuple[Cell, ...]] = [
            (
                check.row,
                f"{check.case} {check.measure}",
                "" if check.paper is None else f"{check.paper.count:.0f}",
                "" if check.independent is None else _with_error(check.independent),
                check.text,
                check.verdict,
            )
            for check in self.checks()
        ]
        known = {row.name: row for row in PAPER}
        verdicts: dict[str, list[str]] = {}
        for row in self.taken():
            verdicts.setdefault(row.figure.rpartition(", ")[0], []).append(row.verdict)
        taken_rows: list[tuple[Cell, ...]] = []
        pair_rows: list[tuple[Cell, ...]] = []
        single_rows: list[tuple[Cell, ...]] = []
        for name, *cases in self.results:
            for case, result in zip("AB", cases, strict=True):
                stated = known.get(name)
                at = "AB".index(case)
                spent, same = result.comparisons, result.same_pair
                words = {what: _all(verdicts.get(f"{name}, {case}: {what}", [])) for what in TAKEN}
                taken_rows.append(
                    (
                        name,
                        case,
                        "" if stated is None else stated.comparisons[at],
                        _range(spent["min"], spent["max"]),
                        f"{spent['mean']:.0f}",
                        words[COMPARISONS],
                    )
                )
                pair_rows.append(
                    (
                        name,
                        case,
                        "" if stated is None else stated.same_pair[at],
                        _range(same["min"], same["max"]),
                        words[SAME_PAIR],
                    )
                )
                single_rows.append(
                    (
                        name,
                        case,
                        share_text(result.single, result.trials, result.standard_error(result.single)),
                        f"{result.best_on_top:.3f}",
                        f"{result.returned:.2f}",
                        f"{_wrong_items(result):.0f}",
                        f"{result.rounds:.0f}",
                    )
                )
        fewest = min(case.trials for _, *cases in self.results for case in cases)
        few = "" if fewest == self.trials else f", {fewest} of DTS and MergeDTS"
        title = f"Figure 3: trials in 1,000 ({self.trials} run{few}; seed {self.seed})"
        return (
            Section(title, ("algorithm", "case", "paper", "before", "ours", "verdict"), tuple(found_rows)),
            Section(
                "Comparisons: least and most",
                ("algorithm", "case", "paper", "ours", "our mean", "verdict"),
                tuple(taken_rows),
            ),
            Section(
                "Judgments of the most judged pair: least and most",
                ("algorithm", "case", "paper", "ours", "verdict"),
                tuple(pair_rows),
            ),
            Section(
                "If one item is returned (equals drawn by lot)",
                ("algorithm", "case", "right", "on top", "set", "wrong", "rounds"),
                tuple(single_rows),
            ),
            Section(
                "Items returned, in 1,000 trials (section 4)",
                ("figure", "paper", "before", "ours", "verdict"),
                tuple(
                    (row.figure, *row.texts(), "" if row.verdict == NEW else row.verdict)
                    for row in self.returned()
                ),
            ),
        )

    def figures(self) -> Section:
        """Return every checked figure in one table."""
        columns = (
            "algorithm",
            "case",
            "measure",
            "paper",
            "independent",
            "independent_se",
            "ours",
            "ours_se",
            "verdict",
        )
        rows = tuple(
            (
                check.row,
                check.case,
                check.measure,
                None if check.paper is None else check.paper.count,
                None if check.independent is None else check.independent.count,
                None if check.independent is None else round(check.independent.standard_error, 2),
                round(check.ours, 3),
                round(check.standard_error, 3),
                check.verdict,
            )
            for check in self.checks()
        )
        told = tuple(
            (
                *row.figure.split(", ", 1)[0:1],
                *row.figure.split(", ", 1)[1].split(": ", 1),
                row.paper if not isinstance(row.paper, tuple) else None,
                None if not isinstance(row.known, tuple) else sum(row.known) / 2,
                None,
                None if row.ours is None else round(row.ours, 3),
                None if row.error is None else round(row.error, 3),
                row.verdict,
            )
            for row in (*self.returned(), *self.taken())
        )
        return Section("figure3", columns, rows + told)

    def notes(self) -> Sequence[str]:
        """Return how the figures are meant and why some differ."""
        return (
            "One: exactly one of the two best items of case B is returned; both: the two of them.",
            "agrees: within 3 standard errors of the paper's figure, ours and that of its 1,000 trials together, where "
            "they are at most 100 in 1,000; of a figure below 100, at most a tenth of it. ± is ours alone.",
            "Items returned: of counts of items the three errors must be at most a tenth of the count. The paper calls "
            "its 497, 489 and 290 simulations that returned several items; they are its items beyond one a simulation "
            "(502 + 995 - 1,000; 666 + 94 + 729 - 1,000; 510 + 780 - 1,000), and so they are compared here. By the "
            "second of these sums, a simulation of prefBest in case B that returns both of the best has one item "
            "beyond the best, though the paper's words are 'neither item 0 nor item 1': so both rows of prefBest in "
            "case B count it. Counted by its words, as the other algorithms are, ours are 'wrong' in the table before.",
            "right: the share of trials in which the one item returned is a best one, equals by lot; on top: the first "
            "item (B: the first two) is the best; set: items returned, mean; wrong: those that aren't best, in 1,000 "
            "trials.",
            "Least and most are of the trials run. They have no standard error: they agree within a tenth, and with "
            "fewer trials than the paper's they aren't compared. prefBest's ends move by 30 with the seed.",
            f"DTS, most judged pair: {DTS_REPEATS}",
            "prefBest in case A: the paper's 502 is 1.3 standard errors above the 480 of 10,000 simulations.",
            "before: measured by another program; ± its own standard error.",
            f"{FLAGSHIP}: {FLAGSHIP_BUDGET} judgments, at most {FLAGSHIP_CAP} of a pair; others have no cap.",
        )

    def as_json(self) -> dict[str, Any]:
        """Return the checks and every simulation's summary."""
        table = self.figures()
        return {
            "experiment": "figure3",
            "trials": self.trials,
            "seed": self.seed,
            "agrees": all(check.verdict != DIFFERS for check in self.checks()),
            "checks": [dict(zip(table.columns, row, strict=True)) for row in table.rows],
            "simulations": [
                {"algorithm": name} | result.as_json() for name, *cases in self.results for result in cases
            ],
            "notes": list(self.notes()),
        }

    def drawing(self) -> "Figure":
        """Draw the counts of the paper, of the independent measurement and ours side by side."""
        from duelpool.plots import bars_beside

        checks = self.checks()
        rows = [f"{check.row}, {check.case} {check.measure}" for check in checks]
        groups: dict[str, list[tuple[float, float, float] | None]] = {
            "paper": [_bar(check.paper) for check in checks],
            "measured before": [_bar(check.independent) for check in checks],
            "here": [_bar(KnownCount(check.ours, check.trials)) for check in checks],
        }
        return bars_beside(rows, groups, "trials in 1,000, with 95 % intervals over trials")


def _ends(stated: str) -> tuple[float, float]:
    """Return the two ends of a range such as `599-759`."""
    least, _, most = stated.partition("-")
    return float(least), float(most or least)


def _all(verdicts: Sequence[str]) -> str:
    """Return what several verdicts come to: they agree when each does; of a figure of ours alone nothing."""
    word = next((word for word in verdicts if word != AGREES), AGREES)
    return "" if not verdicts or word == NEW else word


def _range(least: float, most: float) -> str:
    return f"{least:.0f}-{most:.0f}" if least < most else f"{least:.0f}"


def _bar(known: KnownCount | None) -> tuple[float, float, float] | None:
    if known is None:
        return None
    low, high = wilson(known.count / 1000 * known.trials, known.trials) or (0.0, 1.0)
    return known.count, 1000 * low, 1000 * high


def _with_error(known: KnownCount) -> str:
    return f"{known.count:.0f}±{known.standard_error:.0f}"


def _wrong_items(result: SimulationResult) -> float:
    """Return how many items that aren't best were returned, in 1,000 trials."""
    wrong = sum(len(trial.ranks) - trial.hits for trial in result.outcomes)
    return 1000 * wrong / result.trials


def figure3(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    *,
    slow_share: float = 1.0,
    cells: Cells = NOT_KEPT,
) -> Figure3:
    """Run every row of Figure 3 and the flagship's under it, in both cases; of the trials, the slow ones a share."""
    plans: list[tuple[str, str, int | None, int | None]] = [
        (row.name, row.strategy, row.budget, None) for row in PAPER
    ]
    plans.append((FLAGSHIP, FLAGSHIP, FLAGSHIP_BUDGET, FLAGSHIP_CAP))
    results = []
    for name, strategy, budget, cap in plans:
        count = max(1, round(slow_share * trials)) if strategy in SLOW else trials
        case_a, case_b = (
            cells.simulate(
                strategy,
                f"case-{case.lower()}",
                items=ITEMS,
                budget=budget,
                cap=cap,
                trials=count,
                seed=seed,
                executor=executor,
                progress=progress,
                case=case,
            )
            for case in "AB"
        )
        results.append((name, case_a, case_b))
    return Figure3(tuple(results), trials, seed)


FIGURE3 = Experiment(
    "figure3",
    "Human Preferences as Dueling Bandits, Figure 3: who finds the best of 100 items",
    TRIALS,
    2 * (len(PAPER) + 1),
    figure3,
    paper="dueling bandits",
    shows={"Figure 3": "who finds the best of 100 items, in cases A and B"},
    quick=48,
    quick_form={"slow_share": 0.25},
    seconds=(10, 900),
    resumable=True,
)
