"""Figures, and their files: SVG, PNG or PDF, by the ending of the name."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from duelpool.errors import BadParameter
from duelpool.files.source import written_whole

FORMATS = (".svg", ".png", ".pdf")


def save_figure(figure: Figure, path: Path | str) -> None:
    """Write a figure in the format of the file's ending; a reader sees the old file or the whole new one."""
    place = Path(path)
    refuse_unknown_format(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    # No date and fixed ids: the same record gives the same file, byte for byte.
    metadata: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(place.suffix, {})
    with (
        written_whole(place) as written,
        rc_context({"svg.hashsalt": "duelpool", "svg.fonttype": "none"}),
    ):
        figure.savefig(written, format=place.suffix[1:], dpi=150, metadata=metadata)


def refuse_unknown_format(path: Path) -> None:
    """Refuse a file name that doesn't say in which format to draw."""
    if path.suffix not in FORMATS:
        problem = f"'{path.name}' doesn't end in a known picture format."
        raise BadParameter(problem, remedy=f"Known: {', '.join(FORMATS)}.")


class NotebookFigure(Figure):
    """A figure that a notebook shows by itself, whether or not pyplot is in use."""

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=90, metadata={"Software": None})
        return data.getvalue()


def drawing(x: str, y: str, *, width: float = 7.0, height: float = 4.5) -> tuple[Figure, Axes]:
    """Return an empty figure with named axes, drawn without a screen."""
    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    return figure, axes


def name_points(axes: Axes, points: Mapping[str, tuple[float, float]], size: int = 7) -> None:
    """Name points of a picture: to their left in its right half, and never on top of each other."""
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    apart = (top - bottom) * 1.4 * size / 72 * axes.figure.dpi / axes.get_window_extent().height
    lowest: dict[bool, float] = {}
    for name, (x, y) in sorted(points.items(), key=lambda each: (-each[1][1], each[0])):
        beyond = x > (left + right) / 2
        place = min(y, lowest.get(beyond, top) - apart) if beyond in lowest else y
        lowest[beyond] = place
        axes.annotate(
            name,
            (x, place),
            fontsize=size,
            xytext=(-5 if beyond else 5, 0),
            textcoords="offset points",
            ha="right" if beyond else "left",
            va="center",
        )
