"""Several small pictures in one: one measure against another, bars, intervals by run, lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from duelpool.errors import BadParameter
from duelpool.plots.pictures import drawing, name_points


@dataclass(frozen=True, slots=True)
class Scatter:
    """A point a run: its score under one measure and under another; some are named."""

    title: str
    x: str
    y: str
    points: Mapping[str, tuple[float, float]]
    named: Sequence[str] = ()

    def draw(self, axes: Axes) -> None:
        """Draw the points."""
        across, up = zip(*self.points.values(), strict=True)
        axes.plot(across, up, "o", color="tab:blue", markersize=3)
        name_points(axes, {name: self.points[name] for name in self.named}, 6)
        axes.set_xlabel(self.x)
        axes.set_ylabel(self.y)


@dataclass(frozen=True, slots=True)
class Bars:
    """A cluster of bars for each label, one a series; None is left out."""

    title: str
    y: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]

    def draw(self, axes: Axes) -> None:
        """Draw the bars, with a legend where there are several series."""
        width = 0.8 / len(self.series)
        for at, (name, heights) in enumerate(self.series.items()):
            known = [(place, height) for place, height in enumerate(heights) if height is not None]
            places = [place - 0.4 + (at + 0.5) * width for place, _ in known]
            axes.bar(places, [height for _, height in known], width * 0.9, label=name)
        axes.set_xticks(range(len(self.labels)), list(self.labels), fontsize=7)
        axes.set_ylabel(self.y)
        if len(self.series) > 1:
            axes.legend(fontsize=7, loc="upper right")


@dataclass(frozen=True, slots=True)
class Intervals:
    """Runs from the best to the worst, each with its mean and the ends of its interval."""

    title: str
    y: str
    rows: Sequence[tuple[str, float, float, float]]  # name, mean, low, high

    def draw(self, axes: Axes) -> None:
        """Draw the means and their intervals."""
        places = range(len(self.rows))
        axes.vlines(places, [row[2] for row in self.rows], [row[3] for row in self.rows], color="0.6")
        axes.plot(places, [row[1] for row in self.rows], "o", color="tab:blue", markersize=3)
        axes.set_xticks(places, [row[0] for row in self.rows], rotation=90, fontsize=4)
        axes.set_ylabel(self.y)


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines through (x, y) points, one a name; the axes may be logarithmic."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    logarithmic: bool = False

    def draw(self, axes: Axes) -> None:
        """Draw the lines with their names."""
        for name, points in self.lines.items():
            across, up = zip(*points, strict=True)
            axes.plot(across, up, marker="o", markersize=3, label=name)
        if self.logarithmic:
            axes.set_xscale("log")
            axes.set_yscale("log")
            places = sorted({place for points in self.lines.values() for place, _ in points})
            axes.set_xticks(places, [f"{place:g}" for place in places], minor=False)
            axes.set_xticks([], minor=True)
        axes.set_xlabel(self.x)
        axes.set_ylabel(self.y)
        axes.legend(fontsize=7, loc="upper right")


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often values fall into equal bins, with marked places."""

    title: str
    x: str
    values: Sequence[float]
    marks: Mapping[str, float]

    def draw(self, axes: Axes) -> None:
        """Draw the bins and the marks."""
        axes.hist(list(self.values), bins=30, color="0.7")
        for at, (name, place) in enumerate(self.marks.items()):
            axes.axvline(place, color=f"C{at}", label=name)
        axes.set_xlabel(self.x)
        axes.set_ylabel("trials")
        axes.legend(fontsize=7, loc="upper right")


Panel: TypeAlias = Scatter | Bars | Intervals | Lines | Histogram


def panels(pictures: Sequence[Panel], across: int = 2) -> Figure:
    """Draw pictures side by side, `columns` in a row."""
    if not pictures:
        raise BadParameter("There is nothing to draw.")
    columns = min(across, len(pictures))
    rows = -(-len(pictures) // columns)
    figure, axes = drawing("", "", width=4.6 * columns, height=3.8 * rows)
    figure.delaxes(axes)
    for at, picture in enumerate(pictures, 1):
        place = figure.add_subplot(rows, columns, at)
        place.tick_params(labelsize=7)  # first: a picture may want smaller names
        picture.draw(place)
        place.set_title(picture.title, fontsize=8)
        place.xaxis.label.set_fontsize(8)
        place.yaxis.label.set_fontsize(8)
    return figure
