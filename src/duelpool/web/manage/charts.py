"""Charts as static SVG; each has a table with the same values on its page."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from duelpool.agreements import Finding
from duelpool.evaluation.side_by_side import RowBySide
from duelpool.evaluation.systems import AVERAGE, SystemRow
from duelpool.leaderboard.live import BoardRow, History

WIDTH = 720
NARROW = 480
STRIP = 160
COLOURS = 8  # classes c0 ... c7 of the stylesheet; further runs differ by shape
_SHAPES = ("dot", "square", "diamond")
_SHARES = (
    ("agreement", "low", "high"),
    ("agrees", "low", "high"),
    ("agree", "low", "high"),
    ("left", "low", "high"),
)
_CHARTED = ("summary", "groups", "assessors", "left")


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 2)


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers that cover a range."""
    span = max(high - low, 1e-9)
    unit = 10.0 ** _floor_log10(span)
    step = next(unit * part for part in (0.2, 0.5, 1.0, 2.0, 5.0) if span / (unit * part) <= 5)
    first = round(low / step - 0.4999) * step
    values = []
    at = first
    while at < high + step * 0.999:
        values.append(round(at, 10))
        at += step
    return values


def _floor_log10(value: float) -> int:
    exponent = 0
    while value >= 10:
        value /= 10
        exponent += 1
    while value < 1:
        value *= 10
        exponent -= 1
    return exponent


def _mark(shape: str, x: float, y: float, colour: str) -> str:
    if shape == "square":
        return f'<rect class="mark {colour}" x="{x - 5}" y="{y - 5}" width="10" height="10"/>'
    if shape == "diamond":
        return f'<path class="mark {colour}" d="M{x} {y - 6.5}l6.5 6.5l-6.5 6.5l-6.5 -6.5z"/>'
    return f'<circle class="mark {colour}" cx="{x}" cy="{y}" r="5.5"/>'


def _frame(name: str, title: str, height: int, parts: Sequence[str], width: int = WIDTH) -> Markup:
    inside = "".join(parts)
    kind = "chart wide" if width == WIDTH else "chart"
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{escape(name)}-t">'
        f'<title id="{escape(name)}-t">{escape(title)}</title>{inside}</svg>'
    )


def colours(runs: Sequence[str]) -> dict[str, str]:
    """Return a colour class per run, independent of its rank."""
    return {run: f"c{at % COLOURS}" for at, run in enumerate(sorted(runs))}


def interval_chart(rows: Sequence[BoardRow], measure: str) -> Markup:
    """Return the means with intervals, a line per run, the best on top."""
    known = [row for row in rows if row.mean is not None]
    if not known:
        return Markup("")
    lows = [row.low if row.low is not None else row.mean for row in known]
    highs = [row.high if row.high is not None else row.mean for row in known]
    ticks = _ticks(min(each for each in lows if each is not None), max(e for e in highs if e is not None))
    x = _Scale(ticks[0], ticks[-1], 170, NARROW - 60)
    bottom = 14 + 28 * len(known)
    parts = [
        f'<line class="grid" x1="{x(tick)}" x2="{x(tick)}" y1="6" y2="{bottom}"/>'
        f'<text class="tick" x="{x(tick)}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
        for tick in ticks
    ]
    shade = colours([row.run for row in known])
    for at, row in enumerate(known):
        y = 22 + 28 * at
        mean = row.mean or 0.0
        if row.low is not None and row.high is not None:
            parts.append(
                f'<line class="whisker {shade[row.run]}" x1="{x(row.low)}" x2="{x(row.high)}" y1="{y}" y2="{y}"/>'
            )
        first = "first" if row.could_be_first else "behind"
        parts.append(
            f'<text class="name {first}" x="158" y="{y + 4}" text-anchor="end">{escape(_short(row.run, 20))}</text>'
            + _mark("dot", x(mean), y, shade[row.run])
            + f'<text class="value" x="{NARROW - 4}" y="{y + 4}" text-anchor="end">{mean:.3f}</text>'
        )
    return _frame("intervals", f"{measure} with 95 % intervals, the best on top", bottom + 24, parts, NARROW)


def strips(rows: Sequence[SystemRow]) -> dict[str, Markup]:
    """Return each system's strength and interval as a small drawing, all on one scale with a line at the average.

    Systems without votes have no drawing: their intervals would set the scale for all others.
    """
    shade = colours([row.system for row in rows])
    return _strips({row.system: [(row, "dot", shade[row.system])] for row in rows})


def strips_by_side(rows: Sequence[RowBySide]) -> dict[str, Markup]:
    """Return each system's two strengths and intervals: people's above, models' below, all on one scale."""
    return _strips(
        {
            row.system: [
                (own, shape, colour)
                for own, shape, colour in ((row.people, "dot", "c0"), (row.models, "square", "c1"))
                if own is not None
            ]
            for row in rows
        }
    )


def _strips(drawn: Mapping[str, Sequence[tuple[SystemRow, str, str]]]) -> dict[str, Markup]:
    known = {
        system: lines for system, own in drawn.items() if (lines := [each for each in own if each[0].votes])
    }
    rows = [row for lines in known.values() for row, _, _ in lines]
    if not rows:
        return {}
    x = _strip_scale(rows)
    height = 20 * max(map(len, drawn.values()))
    return {
        system: Markup(
            f'<svg class="strip" viewBox="0 0 {STRIP} {height}" aria-hidden="true">'
            f'<line class="grid" x1="{x(AVERAGE)}" x2="{x(AVERAGE)}" y1="0" y2="{height}"/>'
            + "".join(
                f'<line class="whisker {colour}" x1="{x(row.elo_low)}" x2="{x(row.elo_high)}" y1="{y}" y2="{y}"/>'
                + _mark(shape, x(row.elo), y, colour)
                for (row, shape, colour), y in zip(lines, range(10, height, 20), strict=False)
            )
            + "</svg>"
        )
        for system, lines in known.items()
    }


def _strip_scale(rows: Sequence[SystemRow]) -> Callable[[float], float]:
    """Return where a strength is drawn: all strengths have room, and all but the widest intervals."""
    lows, highs = sorted(row.elo_low for row in rows), sorted(row.elo_high for row in rows)
    few = len(rows) // 10
    low = min(lows[few], *(row.elo for row in rows), AVERAGE)
    high = max(highs[-1 - few], *(row.elo for row in rows), AVERAGE)
    scale = _Scale(low, max(high, low + 1), 6, STRIP - 6)
    return lambda value: min(max(scale(value), 0.0), float(STRIP))


def _short(name: str, letters: int = 20) -> str:
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def history_chart(history: History) -> Markup:
    """Return every run's mean over the number of judgments, labelled at its end."""
    points = [point for point in history.points if any(mean is not None for mean in point.means.values())]
    if len(points) < 2:
        return Markup("")
    means = [mean for point in points for mean in point.means.values() if mean is not None]
    ticks = _ticks(min(means), max(means))
    y = _Scale(ticks[0], ticks[-1], 232, 12)
    x = _Scale(points[0].judgments, points[-1].judgments, 44, WIDTH - 170)
    parts = [
        f'<line class="grid" x1="44" x2="{WIDTH - 170}" y1="{y(tick)}" y2="{y(tick)}"/>'
        f'<text class="tick" x="38" y="{y(tick) + 4}" text-anchor="end">{tick:g}</text>'
        for tick in ticks
    ]
    ends: list[tuple[float, str, str]] = []
    shade = colours(list(points[-1].means))
    for at, run in enumerate(sorted(points[-1].means)):
        line = [
            f"{x(point.judgments)},{y(mean)}"
            for point in points
            if (mean := point.means.get(run)) is not None
        ]
        if not line:
            continue
        parts.append(f'<polyline class="line {shade[run]}" points="{" ".join(line)}"/>')
        px, py = map(float, line[-1].split(","))
        parts.append(_mark(_SHAPES[at // COLOURS % len(_SHAPES)], px, py, shade[run]))
        ends.append((py, run, shade[run]))
    last = -100.0
    for py, run, _ in sorted(ends):
        last = max(py, last + 15)
        parts.append(f'<text class="name" x="{WIDTH - 156}" y="{last + 4}">{escape(_short(run))}</text>')
    parts.append(
        f'<text class="tick" x="44" y="256">{points[0].judgments:,} judgments</text>'
        f'<text class="tick" x="{WIDTH - 170}" y="256" text-anchor="end">{points[-1].judgments:,}</text>'
    )
    return _frame("history", f"{history.measure} as judgments came in", max(264, int(last) + 16), parts)


def finding_chart(finding: Finding) -> Markup:
    """Return the shares of a statistic with intervals, a line each; an empty text without shares."""
    columns = finding.table.columns
    ends = next((each for each in _SHARES if set(each) <= set(columns)), None)
    if ends is None or finding.name not in _CHARTED:
        return Markup("")
    at = [columns.index(name) for name in ends]
    rows = [
        (" ".join(str(cell) for cell in row[: finding.table.keys] if cell), *(row[place] for place in at))
        for row in finding.table.rows
        if row[at[0]] is not None
    ]
    return shares_chart(finding.name, finding.title, rows)


def shares_chart(name: str, title: str, rows: Sequence[tuple[Any, ...]]) -> Markup:
    """Return shares from 0 to 1: each a name, a value, and the ends of its interval if it has one."""
    if not rows:
        return Markup("")
    x = _Scale(0.0, 1.0, 170, NARROW - 60)
    bottom = 14 + 28 * len(rows)
    parts = [
        f'<line class="grid" x1="{x(tick)}" x2="{x(tick)}" y1="6" y2="{bottom}"/>'
        f'<text class="tick" x="{x(tick)}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
        for tick in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    for at, (label, value, low, high) in enumerate(rows):
        y = 22 + 28 * at
        if low is not None and high is not None:
            parts.append(f'<line class="whisker c0" x1="{x(low)}" x2="{x(high)}" y1="{y}" y2="{y}"/>')
        parts.append(
            f'<text class="name" x="158" y="{y + 4}" text-anchor="end">{escape(_short(label, 20))}</text>'
            + _mark("dot", x(value), y, "c0")
            + f'<text class="value" x="{NARROW - 4}" y="{y + 4}" text-anchor="end">{value:.3f}</text>'
        )
    return _frame(name, f"{title}, with 95 % intervals", bottom + 24, parts, NARROW)


def heat(share: float | None) -> str:
    """Return the class of a cell in a table of shares: the larger the share, the stronger the colour."""
    return "" if share is None else f"h{min(9, int(share * 10))}"


def bars_chart(name: str, title: str, parts_of: Mapping[str, int], whole: int) -> Markup:
    """Return one bar, split into parts of a whole; the rest stays empty."""
    at = 0.0
    parts = [f'<rect class="rest" x="0" y="4" width="{WIDTH}" height="22" rx="4"/>']
    for place, count in enumerate(parts_of.values()):
        width = WIDTH * count / whole if whole else 0
        if count:
            parts.append(
                f'<rect class="bar c{place}" x="{at:.1f}" y="4" width="{max(width, 1):.1f}" height="22"/>'
            )
        at += width
    return _frame(name, title, 30, parts)


def sizes_chart(sizes: Sequence[tuple[int, int]]) -> Markup:
    """Return the number of topics by pool size, as columns; many sizes are grouped."""
    if not sizes:
        return Markup("")
    wide = max(1, math.ceil((sizes[-1][0] - sizes[0][0] + 1) / 40))
    columns: dict[int, int] = {}
    for size, topics in sizes:
        at = (size - sizes[0][0]) // wide
        columns[at] = columns.get(at, 0) + topics
    most, count = max(columns.values()), max(columns) + 1
    step = (WIDTH - 60) / max(count, 6)
    parts = [
        f'<rect class="bar c0" x="{44 + at * step:.1f}" y="{132 - 120 * topics / most:.1f}" '
        f'width="{max(step - 2, 1):.1f}" height="{120 * topics / most:.1f}"/>'
        for at, topics in sorted(columns.items())
    ]
    parts.append(
        f'<text class="tick" x="38" y="22" text-anchor="end">{most:,}</text>'
        f'<text class="tick" x="44" y="152">{sizes[0][0]:,} items</text>'
        f'<text class="tick" x="{44 + count * step:.1f}" y="152" text-anchor="end">{sizes[-1][0]:,}</text>'
        if count > 8
        else f'<text class="tick" x="38" y="22" text-anchor="end">{most:,}</text>'
        f'<text class="tick" x="44" y="152">{sizes[0][0]:,} to {sizes[-1][0]:,} items</text>'
    )
    return _frame("sizes", "Number of topics by pool size", 160, parts)
