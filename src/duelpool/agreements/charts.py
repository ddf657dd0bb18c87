"""Statistics of agreement as charts."""

from collections.abc import Sequence

from duelpool.agreements.findings import Finding
from duelpool.report import Cell
from duelpool.report.charts import SHARES, Chart, ChartRow, Mark, interval_chart

CHARTED = ("summary", "groups", "assessors", "left")
_COLUMNS = ("agreement", "agrees", "agree", "left")
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def finding_chart(finding: Finding) -> Chart:
    """Return the shares of a statistic with intervals, a row each; an empty text without shares."""
    columns = finding.table.columns
    share = next((name for name in _COLUMNS if {name, "low", "high"} <= set(columns)), None)
    if share is None or finding.name not in CHARTED:
        return Chart("")
    rows = []
    for row in finding.table.rows:
        value, low, high = (_number(row[columns.index(name)]) for name in (share, "low", "high"))
        if value is not None:
            rows.append(ChartRow(_name(finding, row), (Mark(value, low, high),)))
    return shares_chart(finding.title, rows)


def shares_chart(title: str, rows: list[ChartRow]) -> Chart:
    """Return shares from 0 to 1 with their intervals; half of all is marked, where chance would be."""
    return interval_chart(f"{title}, with 95 % intervals", rows, SHARES, at=TICKS, guide=0.5)


def _name(finding: Finding, row: Sequence[Cell]) -> str:
    """Return a row's name; of groups, which are compared: with each other, or each within itself."""
    names = [str(cell) for cell in row[: finding.table.keys] if cell]
    if finding.name == "groups":
        return f"within {names[0]}" if len(set(names)) == 1 else " and ".join(names)
    return " ".join(names)


def _number(cell: Cell) -> float | None:
    return None if cell is None else float(cell)
