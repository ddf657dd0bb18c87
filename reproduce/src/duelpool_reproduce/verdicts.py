"""Our figures beside a paper's, each with a verdict: the report that most experiments come to.

A figure agrees when it equals what the paper states, as far as that is printed and as three standard errors allow, and
when these could have shown a difference of a tenth; otherwise there were too few trials to say. A bar of our own is
kept or missed by the same rule. What simulated people do is neither: the paper's were others.

Where a paper's figure can't be had again, `known` may hold what an independent measurement on the data at hand
gave; a figure that differs says why, and one that differs from what is known as well is not explained by that.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from duelpool_reproduce.base import Cell, Printed, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Stated: TypeAlias = float | tuple[float, float]
"""A stated figure: a number, or the ends between which it lies (inf for "over")."""

AGREES, DIFFERS, NOT_TO_BE_HAD, NEW = "agrees", "differs", "can't be had", "ours alone"
TOO_FEW, PEOPLE = "too few", "simulated"
KEPT, MISSED = "kept", "missed"  # of a bar

Kind: TypeAlias = Literal["figure", "bar", "people"]
"""What a figure stands beside: a paper's figure, a bar of our own, or a study whose people we simulate."""

TENTH = 0.1  # of a figure: the difference that three standard errors must be able to show


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure: what the paper states, what was measured before, and what we measure."""

    figure: str
    paper: Stated | None
    ours: float | None
    known: Stated | None = None
    error: float | None = None  # the standard error of ours
    within: float = 0.0  # how far from a stated figure still agrees: half of its last digit, or as `why` says
    why: str = ""  # it differs, or it can't be had
    part: str = ""  # the table that it belongs to
    digits: int = 3
    kind: Kind = "figure"
    whole: float | None = None  # of a share: what all trials would be, such as 1 or 1,000

    @property
    def verdict(self) -> str:
        """Whether ours agrees with the paper's; where the paper has none, with what is known."""
        if self.ours is None:
            return NOT_TO_BE_HAD
        stated = self.known if self.paper is None else self.paper
        if stated is None:
            return NEW
        if self.kind == "people":
            return PEOPLE
        if not self.near(stated):
            return MISSED if self.kind == "bar" else DIFFERS
        if not self.could_tell(stated):
            return TOO_FEW
        return KEPT if self.kind == "bar" else AGREES

    def could_tell(self, stated: Stated) -> bool:
        """Whether three standard errors would have shown a difference of a tenth: of the figure, of a share's whole.

        Where ours lies inside what is stated by three standard errors, nothing more has to be shown.
        """
        if not self.error or self.ours is None:
            return True
        low, high = stated if isinstance(stated, tuple) else (stated, stated)
        if low <= self.ours - 3 * self.error and self.ours + 3 * self.error <= high:
            return True
        whole = self.whole or max(abs(end) for end in (low, high) if math.isfinite(end))
        return 3 * self.error <= TENTH * whole + 1e-9

    @property
    def explained(self) -> bool:
        """Whether ours is what is known of these data, and a difference from the paper or a missed bar has a reason."""
        if (
            self.kind != "bar"
            and self.ours is not None
            and self.known is not None
            and not self.near(self.known)
        ):
            return False
        return self.verdict not in (DIFFERS, MISSED) or bool(self.why)

    def near(self, stated: Stated) -> bool:
        """Whether ours lies as near to a stated figure as can be asked."""
        if self.ours is None:
            return False
        low, high = stated if isinstance(stated, tuple) else (stated, stated)
        leeway = self.within + 3 * (self.error or 0.0) + 1e-9
        return low - leeway <= self.ours <= high + leeway

    def texts(self) -> tuple[str, str, str]:
        """Return the paper's figure, the known one and ours for a person."""
        mine = "" if self.ours is None else _number(self.ours, self.digits)
        if self.ours is not None and self.error:
            mine += f"±{_number(self.error, self.digits)}"
        return _stated(self.paper, self.digits), _stated(self.known, self.digits), mine


def _number(value: float, digits: int) -> str:
    if isinstance(value, int) or (float(value).is_integer() and abs(value) >= 1):
        return f"{int(value):,}"
    return f"{value:,.{digits}f}"


def _stated(stated: Stated | None, digits: int) -> str:
    if stated is None:
        return ""
    if not isinstance(stated, tuple):
        return _number(stated, digits)
    low, high = stated
    if math.isinf(high):
        return f"over {_number(low, digits)}"
    if math.isinf(low):
        return f"at most {_number(high, digits)}"
    return f"{_number(low, digits)}-{_number(high, digits)}"


def _needs_reason(row: Measured) -> bool:
    return bool(row.why) and row.verdict in (DIFFERS, MISSED, PEOPLE, NOT_TO_BE_HAD)


def reasons_of(rows: Sequence[Measured]) -> list[str]:
    """Return why figures differ or can't be had, each reason once; tables name them by their places from 1."""
    return list(dict.fromkeys(row.why for row in rows if _needs_reason(row)))


def table_of(title: str, compared: Sequence[Measured], reasons: Sequence[str] = ()) -> Section:
    """Return figures as a table for a person; a column that says nothing is left out."""
    bars = all(row.kind == "bar" for row in compared)
    columns = ["figure", "bar" if bars else "paper", "bar" if bars else "before", "ours", "verdict"]
    rows: list[tuple[Cell, ...]] = []
    for row in compared:
        number = f" [{reasons.index(row.why) + 1}]" if _needs_reason(row) and row.why in reasons else ""
        rows.append((row.figure, *row.texts(), ("" if row.verdict == NEW else row.verdict) + number))
    for at in (4, 2, 1):
        if not any(row[at] for row in rows):
            rows = [row[:at] + row[at + 1 :] for row in rows]
            del columns[at]
    return Section(title, tuple(columns), tuple(rows))


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """An experiment's figures beside the paper's, in one or several tables."""

    experiment: str
    rows: tuple[Measured, ...]
    draw: Callable[[], "Figure"]
    remarks: tuple[str, ...] = ()
    tables: tuple[Section, ...] = ()  # further ones, of ours alone
    trials: int = 1
    seed: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)  # what else a program may want to read

    def compared(self) -> tuple[Measured, ...]:
        """Return every figure with its verdict."""
        return self.rows

    def sections(self) -> Sequence[Section]:
        """Return a table a part, a row a figure, and the further tables."""
        reasons = reasons_of(self.rows)
        sections = []
        for part in dict.fromkeys(row.part for row in self.rows):
            mine = [row for row in self.rows if row.part == part]
            sections.append(table_of(part or self.experiment, mine, reasons))
        return [*sections, *self.tables]

    def figures(self) -> Section:
        """Return every figure in one table, the ends of what is stated in columns of their own."""
        columns = (
            *("table", "figure", "paper_low", "paper_high", "known_low", "known_high"),
            *("ours", "ours_se", "verdict", "why"),
        )
        rows = tuple(
            (
                row.part,
                row.figure,
                *ends_of(row.paper),
                *ends_of(row.known),
                row.ours,
                row.error,
                row.verdict,
                row.why,
            )
            for row in self.rows
        )
        return Section(self.experiment, columns, rows)

    def notes(self) -> Sequence[str]:
        """Return the reasons by their numbers, and the remarks."""
        notes = [f"[{at}] {why}" for at, why in enumerate(reasons_of(self.rows), 1)]
        if any(row.known is not None for row in self.rows):
            notes.append("before: measured on these data by another program.")
        return [*notes, *self.remarks]

    def as_json(self) -> dict[str, Any]:
        """Return the figures, the further tables and the notes."""
        return {
            "experiment": self.experiment,
            "trials": self.trials,
            "seed": self.seed,
            "agrees": all(row.verdict not in (DIFFERS, MISSED) for row in self.rows),
            "explained": all(row.explained for row in self.rows),
            "figures": _as_records(self.figures()),
            "tables": {table.title: _as_records(table) for table in self.tables},
            "values": dict(self.values),
            "notes": list(self.notes()),
        }

    def drawing(self) -> "Figure":
        """Draw it as the paper does."""
        return self.draw()


def ends_of(stated: Stated | None) -> tuple[float | None, float | None]:
    """Return the two ends of a stated figure, None where it is open or there is none."""
    if stated is None:
        return None, None
    low, high = stated if isinstance(stated, tuple) else (stated, stated)
    return (None if math.isinf(low) else low), (None if math.isinf(high) else high)


def _as_records(table: Section) -> list[dict[str, Cell]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """How many figures of a report agree, differ, and so on; a bar that is kept agrees, one that is missed differs."""

    agree: int = 0
    differ: int = 0
    too_few: int = 0
    not_to_be_had: int = 0
    new: int = 0
    people: int = 0
    unexplained: tuple[str, ...] = ()

    @classmethod
    def of(cls, report: Printed) -> "VerdictCounts":
        """Count the verdicts of a report's figures."""
        rows = compared_rows(report)
        words = (
            [row.verdict for row in rows]
            if rows is not None
            else [str(record.get("verdict") or NEW) for record in _as_records(report.figures())]
        )
        unexplained = tuple(row.figure for row in rows or () if not row.explained)
        return cls(**Counter(_COUNTED_AS.get(word, "differ") for word in words), unexplained=unexplained)


def compared_rows(report: Printed) -> Sequence[Measured] | None:
    """Return a report's figures with verdicts, where it holds them apart from the table of all of them."""
    compared: Callable[[], Sequence[Measured] | None] | None = getattr(report, "compared", None)
    return None if compared is None else compared()


_COUNTED_AS: Mapping[str, str] = MappingProxyType(
    {
        AGREES: "agree",
        KEPT: "agree",
        TOO_FEW: "too_few",
        NOT_TO_BE_HAD: "not_to_be_had",
        NEW: "new",
        PEOPLE: "people",
    }
)
