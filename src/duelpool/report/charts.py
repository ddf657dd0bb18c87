"""Charts of pages and reports: SVG and text drawn on the server, alike in both.

Places along the page are shares of the width, and letters keep their size, so that a chart fits a phone as it fits a
screen. `charts.css` has the colours, light and dark. Hover and keyboard focus show the value of a mark. A name is
escaped here; the text that is returned is safe to put on a page.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import TypeAlias

from duelpool.frames import counted

COLOURS = 8  # classes c0 ... c7 of the stylesheet
REST = "rest"  # the class of what has no colour of its own
OPEN_ROWS = 20  # of a chart of intervals; further ones are folded
HEIGHT = 240  # of a chart of lines, in pixels
_LABEL = 17  # pixels between two labels
_TIP = 212  # width of the box that shows a point's values
_STRIP = 160
_UNLIMITED = (-math.inf, math.inf)
SHARES = (0.0, 1.0)
OUTLIERS = 0.1  # the share of intervals whose ends a chart without limits may cut off


class Chart(str):
    """The markup of a chart; templates put it on the page as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


@dataclass(frozen=True, slots=True)
class Mark:
    """A value with the ends of its interval, if it has one; `label` says what it is where a row has several."""

    value: float
    low: float | None = None
    high: float | None = None
    colour: str = "c0"
    shape: str = "dot"
    label: str = ""


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A row of a chart of intervals: its name and its marks; one that isn't `strong` is shown in muted letters."""

    name: str
    marks: tuple[Mark, ...]
    strong: bool = True


def style() -> str:
    """Return the stylesheet of all charts."""
    return (resources.files("duelpool.report") / "charts.css").read_text(encoding="utf-8")


def colours(ranked: Sequence[str]) -> dict[str, str]:
    """Return a colour class for each name; of many names only the first eight have a colour.

    Among those with a colour the place in the alphabet decides, so that a change of ranks moves no colour.
    """
    coloured = sorted(ranked[:COLOURS])
    return {name: f"c{coloured.index(name)}" if name in coloured else REST for name in ranked}


def heat(share: float | None) -> str:
    """Return the class of a cell in a table of shares: the larger the share, the stronger the colour."""
    return "" if share is None else f"h{min(9, int(share * 10))}"


# ---- scales


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
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 2)


def ticks(low: float, high: float, limits: tuple[float, float] = _UNLIMITED) -> list[float]:
    """Return about five round numbers that cover a range, none of them beyond the limits."""
    span = max(high - low, abs(high) * 1e-6, 1e-9)
    unit = 10.0 ** math.floor(math.log10(span))
    step = next(unit * part for part in (0.2, 0.5, 1.0, 2.0, 5.0) if span / (unit * part) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    values = [round(at * step, 10) for at in range(first, max(last, first + 1) + 1)]
    return [value for value in values if limits[0] - 1e-9 <= value <= limits[1] + 1e-9] or [low, high]


def _reach(marks: Sequence[Mark], middle: float | None, outliers: float) -> tuple[float, float]:
    """Return the range that a chart shows: all intervals, or all values and most intervals.

    A share of the ends is left out where a chart with all of them would be wider by more than 30 %.
    """
    lows = sorted(mark.value if mark.low is None else mark.low for mark in marks)
    highs = sorted(mark.value if mark.high is None else mark.high for mark in marks)
    few = int(len(marks) * outliers)
    values = [mark.value for mark in marks] + ([] if middle is None else [middle])
    low, high = min(lows[few], *values), max(highs[-1 - few], *values)
    lowest, highest = min(lows[0], low), max(highs[-1], high)
    return (lowest, highest) if highest - lowest <= 1.3 * (high - low) else (low, high)


def _within(value: float, limits: tuple[float, float]) -> float:
    return min(max(value, limits[0]), limits[1])


def _shape(mark: Mark, y: float, x: float) -> str:
    kind = f'class="mark {mark.colour}"'
    if mark.shape == "square":
        return f'<svg x="{x}%" y="{y}" class="at"><rect {kind} x="-5" y="-5" width="10" height="10"/></svg>'
    return f'<circle {kind} cx="{x}%" cy="{y}" r="5.5"/>'


# ---- intervals


def interval_chart(
    title: str,
    rows: Sequence[ChartRow],
    limits: tuple[float, float] = _UNLIMITED,
    *,
    at: Sequence[float] = (),
    digits: int = 3,
    guide: float | None = None,
) -> Chart:
    """Return values with their intervals, a row each, in the given order; the text is empty without rows.

    No interval goes beyond the limits. `at` are the ticks, where they aren't to follow from the values; `guide` draws a
    line through all rows.
    """
    shown = [replace_ends(row, limits) for row in rows if row.marks]
    if not shown:
        return Chart("")
    few = 0 if math.isfinite(limits[1]) else OUTLIERS
    low, high = _reach([mark for row in shown for mark in row.marks], guide, few)
    places = list(at) or ticks(low, high, limits)
    scale = _Scale(min(places[0], low), max(places[-1], high), 2, 98)
    lines = "".join(
        f'<line class="grid" x1="{scale(x)}%" x2="{scale(x)}%" y1="0" y2="100%"/>' for x in places
    )
    if guide is not None:
        lines += f'<line class="guide" x1="{scale(guide)}%" x2="{scale(guide)}%" y1="0" y2="100%"/>'
    drawn = [_row(row, scale, lines, digits) for row in shown]
    axis = "".join(
        f'<text class="tick" x="{scale(x)}%" y="13" text-anchor="middle">{x:g}</text>' for x in places
    )
    foot = f'<div class="axis" aria-hidden="true"><svg width="100%" height="18">{axis}</svg></div>'
    parts = [f"<ul>{''.join(drawn[:OPEN_ROWS])}</ul>{foot}"]
    if more := drawn[OPEN_ROWS:]:
        folded = f"<ul>{''.join(more)}</ul>{foot}"
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")  # by its name a live page keeps it open
        parts.append(f'<details id="more-{name}"><summary>{len(more)} more</summary>{folded}</details>')
    return _chart("intervals", title, "".join(parts))


def replace_ends(row: ChartRow, limits: tuple[float, float]) -> ChartRow:
    """Return a row whose intervals lie within the limits."""
    marks = tuple(
        Mark(
            mark.value,
            None if mark.low is None else _within(mark.low, limits),
            None if mark.high is None else _within(mark.high, limits),
            mark.colour,
            mark.shape,
            mark.label,
        )
        for mark in row.marks
    )
    return ChartRow(row.name, marks, row.strong)


def value_text(mark: Mark, digits: int = 3) -> str:
    """Return a value with its interval in words."""
    label = f"{mark.label}: " if mark.label else ""
    if mark.low is None or mark.high is None:
        return f"{label}{mark.value:.{digits}f}"
    return f"{label}{mark.value:.{digits}f} ({mark.low:.{digits}f} to {mark.high:.{digits}f})"


def _row(row: ChartRow, scale: _Scale, lines: str, digits: int) -> str:
    height = 24 if len(row.marks) == 1 else 16 * len(row.marks) + 4
    step = height / len(row.marks)
    parts = [lines]
    for place, mark in enumerate(row.marks):
        y = step * (place + 0.5)
        if mark.low is not None and mark.high is not None:
            ends = f'x1="{scale(mark.low)}%" x2="{scale(mark.high)}%"'
            parts.append(f'<line class="whisker {mark.colour}" {ends} y1="{y}" y2="{y}"/>')
        parts.append(_shape(mark, y, scale(mark.value)))
    told = "; ".join(value_text(mark, digits) for mark in row.marks)
    values = "".join(f"<span>{mark.value:.{digits}f}</span>" for mark in row.marks)
    kind = "" if row.strong else ' class="behind"'
    name = escape(row.name)
    return (
        f'<li tabindex="0"{kind}><span class="name" dir="auto">{name}</span>'
        f'<svg width="100%" height="{height}" aria-hidden="true">{"".join(parts)}</svg>'
        f'<span class="value" aria-hidden="true">{values}</span><span class="tip">{escape(told)}</span></li>'
    )


def _chart(kind: str, title: str, inside: str) -> Chart:
    return Chart(
        f'<div class="chart" role="group" aria-label="{escape(title)}"><div class="{kind}">{inside}</div></div>'
    )


# ---- lines

Point: TypeAlias = tuple[float, Mapping[str, float | None]]
"""A place on the axis, and the value of each line there."""


def line_chart(
    title: str,
    ranked: Sequence[str],
    points: Sequence[Point],
    across: str,
    limits: tuple[float, float] = _UNLIMITED,
) -> Chart:
    """Return a line for each name over `points`, at their true distance along the axis.

    The first eight names have a colour and a label at the end of their lines; the text is empty below two points.
    """
    drawn = [point for point in points if any(value is not None for value in point[1].values())]
    if len(drawn) < 2:
        return Chart("")
    values = [value for _, each in drawn for value in each.values() if value is not None]
    rows = ticks(min(values), max(values), limits)
    y = _Scale(min(rows[0], *values), max(rows[-1], *values), HEIGHT - 8, 8)
    x = _Scale(0.0, max(drawn[-1][0], 1.0), 0, 100)
    return _Lines(drawn, x, y, colours(ranked), across).chart(title, rows)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines over one axis: their points, the scales, and the colour of each in the order of their ranks."""

    points: Sequence[Point]
    x: _Scale
    y: _Scale
    shade: Mapping[str, str]
    across: str

    def chart(self, title: str, rows: Sequence[float]) -> Chart:
        """Return the whole chart: both axes, the lines, their labels beside them or, where it is narrow, below."""
        lines, ends = self._drawn()
        named = [name for name in ends if self.shade[name] != REST]
        y, last = self.y, self.points[-1][0]
        grid = "".join(f'<line class="grid" x1="0" x2="100%" y1="{y(row)}" y2="{y(row)}"/>' for row in rows)
        up = "".join(
            f'<text class="tick" x="100%" y="{y(row) + 4}" text-anchor="end">{row:g}</text>' for row in rows
        )
        places = [(self.x(tick), tick) for tick in ticks(0.0, last) if tick <= last]
        foot = "".join(
            f'<text class="tick" x="{place}%" y="13" text-anchor="{_anchor(place)}">{tick:,g}</text>'
            for place, tick in places
        )
        keys = "".join(
            f'<li><span class="key-mark {self.shade[name]}" aria-hidden="true"></span>{escape(name)}</li>'
            for name in named
        )
        note = f"The first {len(named)} of {len(ends)} have a colour and a label."
        moments = "".join(self._moment(at, named) for at in range(len(self.points)))
        labels, deepest = self._labels({name: ends[name] for name in named})
        return _chart(
            "lines",
            title,
            f'<svg class="up" height="{HEIGHT}" aria-hidden="true">{up}</svg>'
            f'<svg class="plot" width="100%" height="{HEIGHT}">{grid}'
            f'<svg viewBox="0 0 100 {HEIGHT}" preserveAspectRatio="none" width="100%" height="{HEIGHT}">{lines}</svg>'
            f"{moments}</svg>"
            f'<svg class="labels" height="{max(HEIGHT, deepest)}" aria-hidden="true">{labels}</svg>'
            f'<svg class="across" width="100%" height="18" aria-hidden="true">{foot}</svg>'
            f'<p class="axis-name" aria-hidden="true">{escape(self.across)}</p><ul class="legend">{keys}</ul>'
            + (f'<p class="note">{note}</p>' if len(ends) > len(named) else ""),
        )

    def _drawn(self) -> tuple[str, dict[str, float]]:
        """Return the lines, the first on top, and how high each ends."""
        lines: list[str] = []
        ends: dict[str, float] = {}
        for name, colour in self.shade.items():
            known = [
                (self.x(at), self.y(value))
                for at, each in self.points
                if (value := each.get(name)) is not None
            ]
            if known:
                through = " ".join(f"{px},{py}" for px, py in known)
                lines.append(f'<polyline class="line {colour}" points="{through}"/>')
                ends[name] = known[-1][1]
        return "".join(reversed(lines)), ends

    def _labels(self, ends: Mapping[str, float]) -> tuple[str, int]:
        """Return labels at the ends of lines, moved apart where they would overlap, and where the last one ends."""
        ordered = sorted(ends, key=lambda name: (ends[name], name))
        places = apart([ends[name] for name in ordered], _LABEL, 8, HEIGHT - 8)
        drawn = "".join(
            f'<path class="lead {self.shade[name]}" d="M2 {ends[name]}L12 {place}"/>'
            f'<text class="name" x="16" y="{place + 4}">{escape(short(name))}<title>{escape(name)}</title></text>'
            for name, place in zip(ordered, places, strict=True)
        )
        return drawn, int(max(places, default=0)) + 8

    def _moment(self, at: int, named: Sequence[str]) -> str:
        """Return one point of all lines: it shows its values on hover and focus."""
        place, values = self.points[at]
        x = self.x(place)
        before = (self.x(self.points[at - 1][0]) + x) / 2 if at else 0.0
        after = (self.x(self.points[at + 1][0]) + x) / 2 if at + 1 < len(self.points) else 100.0
        known = sorted(
            ((value, name) for name in named if (value := values.get(name)) is not None),
            key=lambda each: -each[0],
        )
        head = f"{place:,.0f} {self.across}"
        told = f"{head}: " + ", ".join(f"{name} {value:.3f}" for value, name in known)
        dots = "".join(
            f'<circle class="mark {self.shade[name]}" cx="{x}%" cy="{self.y(value)}" r="4"/>'
            for value, name in known
        )
        lines = "".join(
            f'<circle class="mark {self.shade[name]}" cx="12" cy="{32 + 16 * row}" r="4"/>'
            f'<text x="22" y="{36 + 16 * row}">{value:.3f} {escape(short(name, 17))}</text>'
            for row, (value, name) in enumerate(known)
        )
        side, shift = ("0", 0) if x > 50 else ("100%", -_TIP)
        return (
            f'<g class="moment" tabindex="0" role="img" aria-label="{escape(told)}">'
            f'<rect class="catch" x="{before:.2f}%" y="0" width="{max(after - before, 0.1):.2f}%" height="{HEIGHT}"/>'
            f'<g class="shown"><line class="guide" x1="{x}%" x2="{x}%" y1="0" y2="{HEIGHT}"/>{dots}'
            f'<svg class="at" x="{side}" y="4"><g transform="translate({shift} 0)">'
            f'<rect class="box" width="{_TIP}" height="{26 + 16 * len(known)}" rx="6"/>'
            f'<text class="tip-head" x="8" y="18">{escape(head)}</text>{lines}</g></svg></g></g>'
        )


def apart(wanted: Sequence[float], step: float, top: float, bottom: float) -> list[float]:
    """Return places for labels in the order of those wanted: as near as they can be, and a step apart at least."""
    places: list[float] = []
    for each in wanted:
        places.append(max(each, places[-1] + step if places else top))
    limit = max(bottom, top + step * (len(places) - 1))
    for at in range(len(places) - 1, -1, -1):
        places[at] = round(min(places[at], limit), 2)
        limit = places[at] - step
    return places


def _anchor(percent: float) -> str:
    return "start" if percent < 4 else "end" if percent > 94 else "middle"


def short(name: str, letters: int = 20) -> str:
    """Return a name cut to a number of letters."""
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


# ---- bars


def parts_chart(title: str, parts: Mapping[str, tuple[int, str]], whole: int) -> Chart:
    """Return one bar, split into parts of a whole: each its count and that in words; the rest stays empty."""
    at, drawn = 0.0, ['<rect class="empty-part" x="0" y="22" width="100%" height="22" rx="4"/>']
    for place, (name, (count, told)) in enumerate(parts.items()):
        width = 100 * count / whole if whole else 0.0
        if count:
            words = escape(f"{name}: {told}")
            anchor, x = ("start", at) if at < 50 else ("end", at + width)
            drawn.append(
                f'<g class="part" tabindex="0" role="img" aria-label="{words}">'
                f'<rect class="bar c{place}" x="{at:.2f}%" y="22" width="{max(width, 0.3):.2f}%" height="22"/>'
                f'<text class="shown" x="{x:.2f}%" y="15" text-anchor="{anchor}">{words}</text></g>'
            )
        at += width
    return _chart("bars", title, f'<svg width="100%" height="46">{"".join(drawn)}</svg>')


def columns_chart(title: str, sizes: Sequence[tuple[int, int]], what: str, of: str) -> Chart:
    """Return how many there are of each size, as columns over a true axis; many sizes are grouped.

    `what` names what is counted, in the singular; `of` what the size counts.
    """
    if not sizes:
        return Chart("")
    low, high = sizes[0][0], sizes[-1][0]
    wide = max(1, math.ceil((high - low + 1) / 40))
    columns: dict[int, int] = {}
    for size, count in sizes:
        columns[(size - low) // wide] = columns.get((size - low) // wide, 0) + count
    most, places = max(columns.values()), max(max(columns) + 1, 6)
    x = _Scale(low, low + wide * places, 0, 100)
    drawn = []
    for at, count in sorted(columns.items()):
        start = low + wide * at
        sized = f"{start:,}" if wide == 1 else f"{start:,} to {start + wide - 1:,}"
        words = escape(f"{sized} {of}: {counted(count, what)}")
        tall = 90 * count / most
        left, right = x(start), x(start + wide)
        anchor, place = ("start", left) if left < 50 else ("end", right)
        if count == most:
            drawn.append(f'<text class="tick" x="{left + 0.15:.2f}%" y="26">{count:,}</text>')
        drawn.append(
            f'<g class="part" tabindex="0" role="img" aria-label="{words}">'
            f'<rect class="catch" x="{left}%" y="20" width="{right - left:.2f}%" height="100"/>'
            f'<rect class="bar c0" x="{left + 0.15:.2f}%" y="{120 - tall:.1f}" '
            f'width="{max(right - left - 0.3, 0.3):.2f}%" height="{tall:.1f}"/>'
            f'<text class="shown" x="{place}%" y="13" text-anchor="{anchor}">{words}</text></g>'
        )
    foot = "".join(
        f'<text class="tick" x="{place}%" y="136" text-anchor="{_anchor(place)}">{tick:,g}</text>'
        for place, tick in _size_ticks(low, high, wide, x)
    )
    axis = f'<p class="axis-name" aria-hidden="true">{escape(of)}</p>'
    return _chart("bars", title, f'<svg width="100%" height="140">{"".join(drawn)}{foot}</svg>{axis}')


def _size_ticks(low: int, high: int, wide: int, x: _Scale) -> list[tuple[float, float]]:
    """Return where sizes are written: each under the middle of its column, or round numbers between the ends."""
    if wide == 1 and high - low < 12:
        return [((x(size) + x(size + 1)) / 2, size) for size in range(low, high + 1)]
    between = [tick for tick in ticks(low, high) if tick == int(tick)]
    room = (high - low) / 12
    kept = [tick for tick in between if low + room < tick < high - room]
    return [(x(tick + wide / 2), tick) for tick in (low, *kept, high)]


# ---- drawings in a table's rows


def strips(rows: Mapping[str, Sequence[Mark]], middle: float, digits: int = 0) -> dict[str, Chart]:
    """Return each row's marks as a small drawing, all on one scale with a line in the middle; no marks, no drawing."""
    marks = [mark for own in rows.values() for mark in own]
    if not marks:
        return {}
    low, high = _reach(marks, middle, OUTLIERS)
    scale = _Scale(low, high if high > low else low + 1, 6, _STRIP - 6)
    height = 20 * max(map(len, rows.values()))
    return {
        name: Chart(
            f'<svg class="strip" viewBox="0 0 {_STRIP} {height}" aria-hidden="true">'
            f"<title>{escape('; '.join(value_text(mark, digits) for mark in own))}</title>"
            f'<line class="grid" x1="{scale(middle)}" x2="{scale(middle)}" y1="0" y2="{height}"/>'
            + "".join(_strip_mark(mark, scale, 10 + 20 * at) for at, mark in enumerate(own))
            + "</svg>"
        )
        for name, own in rows.items()
        if own
    }


def _strip_mark(mark: Mark, scale: _Scale, y: int) -> str:
    x = scale(mark.value)
    low, high = (mark.value if end is None else end for end in (mark.low, mark.high))
    shape = (
        f'<rect class="mark {mark.colour}" x="{x - 5}" y="{y - 5}" width="10" height="10"/>'
        if mark.shape == "square"
        else f'<circle class="mark {mark.colour}" cx="{x}" cy="{y}" r="5.5"/>'
    )
    return (
        f'<line class="whisker {mark.colour}" x1="{scale(low)}" x2="{scale(high)}" y1="{y}" y2="{y}"/>{shape}'
    )
