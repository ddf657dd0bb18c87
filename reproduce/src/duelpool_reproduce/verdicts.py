"""Our figures beside a paper's, each with a verdict: the report that most experiments come to.

A figure agrees when it equals what the paper states, as far as that is printed and as three standard errors allow, and
when these could have shown a difference of a tenth; otherwise there were too few trials to say. A bar of our own is
kept or missed by the same rule. What simulated people do is neither: the paper's were others.

`known` holds what another program measured on the data at hand. Where no paper has the figure, ours is as before or
differs from that; where a paper has it, a difference from both has no cause. A figure that differs says why, or that it
is not explained.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from duelpool.shares import wilson
from duelpool_reproduce.base import Cell, Printed, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Stated: TypeAlias = float | tuple[float, float]
"""A stated figure: a number, or the ends between which it lies (inf for "over")."""

AGREES, DIFFERS, NOT_TO_BE_HAD, NEW = "agrees", "differs", "can't be had", "ours alone"
AS_BEFORE = "as before"  # no paper has it, another program does
TOO_FEW, PEOPLE = "too few", "simulated"
KEPT, MISSED, NONE_STOPPED = "kept", "missed", "none stopped"  # of a bar

NOT_EXPLAINED = "Not explained."
"""How the reason begins of a figure that differs without a known cause; what was ruled out may follow."""

NEVER_STOPPED = "No trial stopped."
WILSON = "Of a share of none or all of the trials: Wilson's 95 % interval in parentheses."

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
    error: float | None = None  # the standard error of ours; None: it is counted, or by a formula
    within: float = 0.0  # how far from a stated figure still agrees: half of its last digit, or as `why` says
    why: str = ""  # it differs, or it can't be had
    part: str = ""  # the table that it belongs to
    digits: int = 3
    kind: Kind = "figure"
    whole: float | None = None  # of a share: what all trials would be, such as 1 or 1,000
    paper_error: float | None = None  # the standard error of the paper's figure, where that is from trials
    trials: int | None = None  # of a share: how many trials it is of
    known_error: float | None = None  # the standard error of what is known

    @property
    def verdict(self) -> str:
        """Whether ours agrees with the paper's; where the paper has none, whether it is what is known."""
        if self.ours is None:
            return NONE_STOPPED if self.why == NEVER_STOPPED else NOT_TO_BE_HAD
        stated = self.known if self.paper is None else self.paper
        if stated is None:
            return NEW
        if self.kind == "people":
            return PEOPLE
        if self.error == 0:  # all trials are the same, or there is one: their spread isn't known
            return TOO_FEW
        if not self.near(stated):
            return MISSED if self.kind == "bar" else DIFFERS
        if not self.could_tell(stated):
            return TOO_FEW
        if self.kind == "bar":
            return KEPT
        return AS_BEFORE if self.paper is None else AGREES

    @property
    def both_errors(self) -> float:
        """The standard error of the difference of ours and the paper's."""
        return math.hypot(self.error or 0.0, self.paper_error or 0.0)

    def could_tell(self, stated: Stated) -> bool:
        """Whether three standard errors would have shown a difference of a tenth.

        That is a tenth of the figure, or of a share's whole unless the figure is below a tenth of it. Where ours lies
        inside what is stated by three standard errors, nothing more has to be shown.
        """
        error = 3 * self.both_errors
        if not error or self.ours is None:
            return True
        low, high = _ends(stated)
        if low <= self.ours - error and self.ours + error <= high:
            return True
        figure = max(abs(end) for end in (low, high) if math.isfinite(end))
        least = figure if self.whole is None or figure < TENTH * self.whole else self.whole
        return error <= TENTH * least + 1e-9

    @property
    def papers_too_few(self) -> bool:
        """Whether no trials of ours could tell, for the paper's own are too few."""
        return (
            self.verdict == TOO_FEW
            and bool(self.paper_error)
            and replace(self, error=None).verdict == TOO_FEW
        )

    @property
    def explained(self) -> bool:
        """Whether ours is what is known of these data, and a difference from the paper or a missed bar has a cause."""
        known = None if self.kind == "bar" or self.ours is None else self.known
        if known is not None and not self.near(known, math.hypot(self.error or 0.0, self.known_error or 0.0)):
            return False
        return self.verdict not in (DIFFERS, MISSED) or (bool(self.why) and not self.called_unexplained)

    @property
    def called_unexplained(self) -> bool:
        """Whether its reason says that it is not explained."""
        return self.why.startswith(NOT_EXPLAINED)

    def near(self, stated: Stated, error: float | None = None) -> bool:
        """Whether ours lies as near to a stated figure as can be asked; without an error, by ours and the paper's."""
        if self.ours is None:
            return False
        low, high = _ends(stated)
        leeway = self.within + 3 * (self.both_errors if error is None else error) + 1e-9
        return low - leeway <= self.ours <= high + leeway

    @property
    def text(self) -> str:
        """Ours with its standard error for a person; none or all of the trials with Wilson's interval."""
        if self.ours is None:
            return ""
        if self.ends is not None:
            ours, low, high = (f"{each:,.{self.digits}f}" for each in (self.ours, *self.ends))
            return f"{ours} ({low}-{high})"
        return with_error(self.ours, self.error, self.digits)

    @property
    def ends(self) -> tuple[float, float] | None:
        """Wilson's interval of a share of none or all of the trials."""
        if self.whole is None or self.trials is None or self.ours not in (0, self.whole):
            return None
        low, high = wilson(self.ours / self.whole * self.trials, self.trials) or (0.0, 1.0)
        return low * self.whole, high * self.whole

    def texts(self) -> tuple[str, str, str]:
        """Return the paper's figure, the known one and ours for a person."""
        paper, known = (_stated(each, self.digits, self.kind) for each in (self.paper, self.known))
        return paper, known, self.text


def share_text(share: float, trials: int, error: float, digits: int = 3) -> str:
    """Return a share with its standard error for a person; none or all of the trials with Wilson's interval."""
    return Measured("", None, share, error=error, digits=digits, whole=1, trials=trials).text


def error_of_mean(values: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """Return the standard error of the mean of independent values; 0, which says nothing, of a single one."""
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def with_error(value: float, error: float | None, digits: int) -> str:
    """Return a figure with its standard error, unless that rounds to nothing."""
    shown = _number(error or 0.0, digits)
    return _number(value, digits) + (f"±{shown}" if float(shown.replace(",", "")) else "")


def _ends(stated: Stated) -> tuple[float, float]:
    return stated if isinstance(stated, tuple) else (stated, stated)


def _number(value: float, digits: int) -> str:
    if abs(value) >= 1e15:
        return f"{value:.1e}".replace("+", "")
    if isinstance(value, int) or (float(value).is_integer() and abs(value) >= 1):
        return f"{int(value):,}"
    return f"{value:,.{digits}f}"


def _stated(stated: Stated | None, digits: int, kind: Kind = "figure") -> str:
    if stated is None:
        return ""
    low, high = _ends(stated)
    if low == high:
        return _number(low, digits)
    if math.isinf(high):
        return f"{'at least' if kind == 'bar' else 'over'} {_number(low, digits)}"
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
        if any(row.known is not None and row.kind != "bar" for row in self.rows):
            notes.append("before: measured on these data by another program.")
        if any(row.ends is not None for row in self.rows):
            notes.append(WILSON)
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
    low, high = _ends(stated)
    return (None if math.isinf(low) else low), (None if math.isinf(high) else high)


def _as_records(table: Section) -> list[dict[str, Cell]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """How many figures of a report agree, differ, and so on."""

    agree: int = 0
    as_before: int = 0
    differ: int = 0
    kept: int = 0
    missed: int = 0
    too_few: int = 0
    none_stopped: int = 0
    not_to_be_had: int = 0
    new: int = 0
    people: int = 0
    unexplained: tuple[str, ...] = ()  # those that differ without a known cause
    without_reason: tuple[str, ...] = ()  # those of them that don't say so

    @classmethod
    def of(cls, report: Printed) -> "VerdictCounts":
        """Count the verdicts of a report's figures."""
        rows = compared_rows(report)
        words = (
            [row.verdict for row in rows]
            if rows is not None
            else [str(record.get("verdict") or NEW) for record in _as_records(report.figures())]
        )
        unexplained = [row for row in rows or () if not row.explained]
        return cls(
            **Counter(_COUNTED_AS[word] for word in words),
            unexplained=tuple(row.figure for row in unexplained),
            without_reason=tuple(row.figure for row in unexplained if not row.called_unexplained),
        )


def compared_rows(report: Printed) -> Sequence[Measured] | None:
    """Return a report's figures with verdicts, where it holds them apart from the table of all of them."""
    compared: Callable[[], Sequence[Measured] | None] | None = getattr(report, "compared", None)
    return None if compared is None else compared()


_COUNTED_AS: Mapping[str, str] = MappingProxyType(
    {
        AGREES: "agree",
        AS_BEFORE: "as_before",
        DIFFERS: "differ",
        KEPT: "kept",
        MISSED: "missed",
        TOO_FEW: "too_few",
        NONE_STOPPED: "none_stopped",
        NOT_TO_BE_HAD: "not_to_be_had",
        NEW: "new",
        PEOPLE: "people",
    }
)
