"""Here or There (2008), Tables 1 to 4, beside a simulated study, and every statistic beside its true value."""

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scipy.stats import chi2_contingency

from duelpool.agreements import (
    Finding,
    chi_square,
    definite_table,
    find,
    inferred_table,
    preference_table,
    transitivity,
)
from duelpool.agreements.effort import sights
from duelpool.errors import BadParameter
from duelpool.records import Kind
from duelpool.simulation import Progress
from duelpool_reproduce.assessor_study import (
    QUERIES,
    SimulatedStudy,
    StatisticCheck,
    all_checks,
    simulated_study,
)
from duelpool_reproduce.base import Cell, Experiment, Section
from duelpool_reproduce.verdicts import Measured, reasons_of, table_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = tuple[tuple[Cell, ...], ...]

TABLE_1: Rows = (
    ("Bad", 0.579, 0.290, 0.118, 0.014, 0.000, 221),
    ("Fair", 0.208, 0.332, 0.309, 0.147, 0.003, 307),
    ("Good", 0.095, 0.348, 0.286, 0.260, 0.011, 273),
    ("Excellent", 0.011, 0.167, 0.264, 0.535, 0.022, 269),
    ("Perfect", 0.000, 0.042, 0.125, 0.250, 0.583, 24),
)
TABLE_2A: Rows = (
    ("A<B", 0.752, 0.033, 0.215, 2580),
    ("both bad", 0.208, 0.567, 0.225, 413),
    ("A>B", 0.201, 0.034, 0.765, 2757),
)
TABLE_2B: Rows = (
    ("A<B", 0.657, 0.051, 0.292, 2530),
    ("both bad", 0.297, 0.380, 0.323, 437),
    ("A>B", 0.278, 0.053, 0.669, 2654),
)
TABLE_3: Rows = (
    ("A<<B", 0.247, 0.621, 0.000, 0.132, 0.000, 219),
    ("A<B", 0.059, 0.661, 0.043, 0.221, 0.015, 2288),
    ("both bad", 0.000, 0.244, 0.453, 0.300, 0.002, 406),
    ("A>B", 0.012, 0.212, 0.051, 0.670, 0.055, 2389),
    ("A>>B", 0.000, 0.180, 0.005, 0.680, 0.134, 194),
)
TABLE_4: Rows = (
    ("Assessor 1", 3.50, 3.41, 7.96, 3.70),
    ("Assessor 2", 3.24, 3.67, 6.12, 3.55),
    ("Assessor 3", 2.35, 2.82, 5.56, 2.82),
    ("Assessor 4", 4.13, 4.30, 8.78, 4.71),
    ("Assessor 5", 2.72, 3.30, 8.20, 3.17),
    ("Assessor 6", 2.09, 2.40, 3.21, 2.31),
    ("all assessors", 2.87, 3.15, 6.33, 3.23),
)
FIRST_SIGHT = {Kind.PREFERENCE: 3.89, Kind.DEFINITE: 5.40, Kind.GRADE: 6.33}
PAPERS_CHI_SQUARE = 143.0
TABLES: dict[str, tuple[str, Rows, str]] = {
    "table 1": ("absolute judgments", TABLE_1, "grades"),
    "table 2(a)": ("preferences", TABLE_2A, "preferences"),
    "table 2(b)": ("preferences inferred from grades, ties as coin flips", TABLE_2B, "inferred"),
    "table 3": ("definite preferences", TABLE_3, "definite"),
    "table 4": ("median seconds per judgment", TABLE_4, "seconds"),
}
NEAR = 3.0
SIMULATED = "The study's judgments were never released: these are of simulated people, queries and pages."
NOISY = "Simulated people err by chance, and one of eight doesn't look."


def agreed(table: Rows) -> float:
    """Return the share that agrees over all rows of a table of conditional shares."""
    shares = [(float(row[at + 1] or 0), float(row[-1] or 0)) for at, row in enumerate(table)]
    return sum(share * total for share, total in shares) / sum(total for _, total in shares)


def papers_chi_square() -> float:
    """Return chi-square, with one degree of freedom, of agreed and disagreed pairs in tables 2(a) and 2(b).

    The shares are printed to three digits, which moves it by up to one.
    """
    counts = []
    for table in (TABLE_2A, TABLE_2B):
        total = sum(float(row[-1] or 0) for row in table)
        counts.append((agreed(table) * total, (1 - agreed(table)) * total))
    return float(chi2_contingency(counts, correction=True).statistic)


def _shown(row: Sequence[Cell], digits: int) -> tuple[Cell, ...]:
    return tuple(f"{cell:.{digits}f}" if isinstance(cell, float) else cell for cell in row)


def papers_bad() -> float:
    """Return the share of Bad among the paper's grades, by the totals of its table."""
    totals = {str(row[0]): float(str(row[-1])) for row in TABLE_1}
    return totals["Bad"] / sum(totals.values())


@dataclass(frozen=True, slots=True)
class StudyReport:
    """The paper's tables beside those of a simulated study, and every statistic beside its true value."""

    study: SimulatedStudy
    findings: dict[str, Finding]
    checks: tuple[StatisticCheck, ...]
    queries: int
    seed: int

    def missed(self) -> tuple[StatisticCheck, ...]:
        """Return the statistics that lie three standard errors or more from the truth."""
        return tuple(each for each in self.checks if abs(each.z) >= NEAR)

    def compared(self) -> tuple[Measured, ...]:
        """Return what the paper's tables and text come to beside the simulated study's, with verdicts."""
        votes = self.study.votes
        checks = {each.name: each for each in self.checks}
        own, simulated = "Worked out from the paper's own tables", "The simulated study beside the paper's"
        rows = [
            Measured(
                "chi-square of tables 2(a) and 2(b)",
                PAPERS_CHI_SQUARE,
                papers_chi_square(),
                within=1.0,
                part=own,
            ),
            Measured(
                "Bad among the grades of table 1 ('about 20 %')", 0.20, papers_bad(), within=0.005, part=own
            ),
        ]
        for name, table in (
            ("preferences agree", TABLE_2A),
            ("inferred, ties at 0.5, agree", TABLE_2B),
            ("definite preferences agree", TABLE_3),
            ("grades agree", TABLE_1),
        ):
            rows.append(
                Measured(
                    name,
                    agreed(table),
                    checks[name].measured,
                    error=checks[name].error,
                    why=SIMULATED,
                    part=simulated,
                    kind="people",
                )
            )
        chi = chi_square(preference_table(votes), inferred_table(votes, bad=0.0), both_ways=True).statistic
        pooled = definite_table(votes, pooled=True).agreement.value or 0.0
        between = (
            checks["inferred, ties at 0.5, agree"].measured < pooled < checks["preferences agree"].measured
        )
        rows += [
            Measured("chi-square", PAPERS_CHI_SQUARE, chi, why=SIMULATED, part=simulated, digits=0,
                     kind="people"),
            Measured("pooled, definite ones agree less than plain, more than inferred (1: yes)", 1, int(between),
                     why=SIMULATED, part=simulated, kind="people"),
        ]  # fmt: skip
        last = self.findings["seconds"].table.rows[-1]
        for at, (kind, first) in enumerate(FIRST_SIGHT.items(), 1):
            for what, paper, ours in (
                ("median seconds", TABLE_4[-1][at], last[at]),
                ("median seconds at first sight", first, self._first(kind)),
            ):
                if isinstance(paper, float) and isinstance(ours, float):
                    rows.append(
                        Measured(
                            f"{kind}: {what}",
                            paper,
                            ours,
                            within=0.005,
                            why=SIMULATED,
                            part=simulated,
                            kind="people",
                            digits=2,
                        )
                    )
        triplets = transitivity(votes)
        alone = [share for each in triplets.by_assessor.values() if (share := each.share) is not None]
        rows += [
            Measured("triplets are transitive", (0.99, math.inf), triplets.overall.share, why=NOISY, part=simulated,
                     kind="people"),
            Measured("those of the least transitive person", (0.98, math.inf), min(alone, default=None), why=NOISY,
                     part=simulated, kind="people"),
            Measured("statistics within three errors of the truth", (len(self.checks), math.inf),
                     len(self.checks) - len(self.missed()), part="Our own check of the simulated study", kind="bar"),
        ]  # fmt: skip
        return tuple(rows)

    def _first(self, kind: Kind) -> float | None:
        return next((each.first for each in sights(self.study.votes) if each.kind is kind), None)

    def sections(self) -> Sequence[Section]:
        """Return the paper's tables, ours beside each, the verdicts, and the truth beside each measured statistic."""
        tables = []
        for name, (about, paper, statistic) in TABLES.items():
            table = self.findings[statistic].table
            digits = 2 if statistic == "seconds" else 3
            columns = tuple(table.columns[: len(paper[0])])
            ours = tuple(_shown(row[: len(columns)], digits) for row in table.rows)
            theirs = tuple(_shown(row, digits) for row in paper)
            tables.append(Section(f"The paper's {name}: {about}", columns, theirs))
            tables.append(Section(f"The same of the simulated study, seed {self.seed}", columns, ours))
        rows = self.compared()
        tables += [
            table_of(part, [row for row in rows if row.part == part], reasons_of(rows))
            for part in dict.fromkeys(row.part for row in rows)
        ]
        tables += [self._first_sights(), self._truth()]
        return tuple(tables)

    def _first_sights(self) -> Section:
        rows = tuple(
            (str(each.kind), f"{FIRST_SIGHT[each.kind]:.2f}", _seconds(each.first), _seconds(each.later))
            for each in sights(self.study.votes)
        )
        return Section(
            "Median seconds at first sight of an item", ("kind", "paper", "ours", "ours, later"), rows
        )

    def _truth(self) -> Section:
        shown = [
            each for each in self.checks if ":" not in each.name and not each.name.startswith("Assessor")
        ]
        rows = [
            (each.name, f"{each.truth:.4f}", f"{each.measured:.4f}", f"{each.error:.4f}", f"{each.z:+.2f}")
            for each in shown
        ]
        rest = [each for each in self.checks if each not in shown]
        most = max((abs(each.z) for each in rest), default=0.0)
        rows.append((f"{len(rest)} more: cells, assessors", "", "", "", f"{most:.2f} at most"))
        return Section(
            "What is true, and what was found", ("statistic", "truth", "found", "error", "z"), tuple(rows)
        )

    def figures(self) -> Section:
        """Return every statistic beside its true value."""
        rows = tuple(
            (each.name, round(each.truth, 6), round(each.measured, 6), round(each.error, 6), round(each.z, 4))
            for each in self.checks
        )
        return Section("assessor-study", ("statistic", "truth", "found", "error", "z"), rows)

    def notes(self) -> Sequence[str]:
        """Return the reasons by their numbers, and how the figures are meant."""
        return (
            *(f"[{at}] {why}" for at, why in enumerate(reasons_of(self.compared()), 1)),
            "The study's judgments were never released. Eight simulated people, one of them careless, judge "
            f"{self.queries} queries in three kinds: two people per kind, nobody sees a query twice.",
            f"{len(self.checks) - len(self.missed())} of {len(self.checks)} statistics lie within three standard "
            "errors (over queries) of their true value; cells that expect fewer than 20 votes aren't held to it.",
            "chi-square: each pair of votes counted both ways, as in the paper; once each, it is half of that.",
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "experiment": "assessor-study",
            "queries": self.queries,
            "seed": self.seed,
            "checks": [
                {
                    "name": each.name,
                    "truth": each.truth,
                    "found": each.measured,
                    "error": each.error,
                    "z": each.z,
                }
                for each in self.checks
            ],
            "verdicts": [
                {
                    "figure": row.figure,
                    "paper": row.paper,
                    "ours": row.ours,
                    "verdict": row.verdict,
                    "why": row.why,
                }
                for row in self.compared()
            ],
            "tables": {
                name: {
                    "paper": [list(row) for row in paper],
                    "ours": [list(row) for row in self.findings[of].table.rows],
                }
                for name, (_, paper, of) in TABLES.items()
            },
            "notes": list(self.notes()),
        }

    def drawing(self) -> "Figure":
        """Draw the tables and the assessors."""
        from duelpool.plots import agreement_picture

        return agreement_picture(tuple(self.findings.values()))


FEWEST_QUERIES = 15  # with which every assessor meets every other


def _seconds(value: float | None) -> Cell:
    return None if value is None else f"{value:.2f}"


def assessor_study(
    trials: int = QUERIES, seed: int = 0, executor: Executor | None = None, progress: Progress | None = None
) -> StudyReport:
    """Simulate the study with a number of queries, and compare every statistic with its true value."""
    if trials < FEWEST_QUERIES:
        raise BadParameter(
            f"A study of {trials} queries leaves some assessors without a pair of their own.",
            remedy=f"Take {FEWEST_QUERIES} or more.",
        )
    study = simulated_study(trials, seed=seed)
    if progress is not None:
        progress(trials)
    names = (*(of for _, _, of in TABLES.values()), "assessors")
    findings = {name: find(study.votes, name) for name in names}
    checks = tuple(all_checks(study))
    if progress is not None:
        progress(trials)
    return StudyReport(study, findings, checks, trials, seed)


ASSESSOR_STUDY = Experiment(
    "assessor-study",
    "Here or There, Tables 1-4: agreement and seconds, beside a simulated study whose truth is known",
    QUERIES,
    2,
    assessor_study,
    paper="here or there",
    shows={
        "Table 1": "agreement on grades",
        "Table 2": "agreement on preferences, and on those inferred from grades",
        "Table 3": "agreement on definite preferences",
        "Table 4": "seconds for a judgment, by assessor and kind",
    },
    quick=30,
    seconds=(10, 40),
)
