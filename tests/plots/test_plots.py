"""Pictures show the record's figures, and are written whole and reproducibly."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from duelpool.agreements import Finding
from duelpool.errors import BadParameter
from duelpool.plots import (
    bars_beside,
    found_by_budget,
    found_curve,
    growth_curve,
    judgments_by_size,
    reliability_plot,
    save_figure,
    scorecard,
    stated_and_right,
)
from duelpool.plots.agreed import agreement_picture
from duelpool.plots.panels import Bars, panels
from duelpool.plots.pictures import drawing, name_points
from duelpool.report import Table
from duelpool.shares import wilson
from duelpool.simulation import ReliabilityBin, SimulationResult, Trial


def values(data: Any) -> list[float]:
    return [float(value) for value in data]


def names_in(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def result(strategy: str, items: int, curve: tuple[bool, ...] = ()) -> SimulationResult:
    trial = Trial("t", items, (0,), 1, True, True, 1.0, 7 * items, 3, 5, curve=curve)
    return SimulationResult(
        strategy, "A", items, "", 6, 0, (trial,), tuple(range(10, 10 * len(curve) + 10, 10))
    )


def test_the_curve_is_drawn_through_its_points() -> None:
    figure = found_curve([result("one", 10, (False, True)), result("two", 10, (False, False))])
    lines = figure.axes[0].get_lines()
    assert [values(line.get_ydata()) for line in lines] == [[0.0, 1.0], [0.0, 0.0]]
    assert [values(line.get_xdata()) for line in lines] == [[10.0, 20.0]] * 2
    assert [line.get_label() for line in lines] == ["one", "two"]


def test_bands_of_the_curve_have_a_width_where_all_trials_are_right() -> None:
    (band,) = found_curve([result("one", 10, (False, True))]).axes[0].collections
    points = np.asarray(band.get_paths()[0].vertices)
    heights = points[points[:, 0] == 20.0, 1]
    assert (heights.min(), heights.max()) == pytest.approx(wilson(1, 1))


def test_a_simulation_without_a_curve_is_refused() -> None:
    with pytest.raises(BadParameter, match="has no curve"):
        found_curve([result("one", 10)])


def test_growth_is_drawn_by_size() -> None:
    figure = growth_curve([result("one", 30), result("one", 10), result("two", 10)])
    judgments, share = figure.axes
    assert [values(line.get_xdata()) for line in judgments.get_lines()] == [[10, 30], [10]]
    assert [values(line.get_ydata()) for line in judgments.get_lines()] == [[70, 210], [70]]
    assert [values(line.get_ydata()) for line in share.get_lines()] == [[1.0, 1.0], [1.0]]


def test_all_pairs_are_drawn_with_the_other_counts() -> None:
    figure = judgments_by_size({"sorting": {5: 7, 15: 40}, "difference": {15: 16, 5: 5}})
    every, sorting, difference = figure.axes[0].get_lines()
    assert values(every.get_ydata()) == [10, 105]
    assert values(sorting.get_ydata()) == [7, 40]
    assert values(difference.get_ydata()) == [5, 16]


def test_reliability_is_drawn_against_the_diagonal() -> None:
    figure = reliability_plot({"s": [ReliabilityBin(0.5, 0.6, 10), ReliabilityBin(0.9, 0.8, 30)]})
    diagonal, line = figure.axes[0].get_lines()
    assert values(diagonal.get_ydata()) == [0, 1]
    assert values(line.get_xdata()) == [0.5, 0.9]
    assert values(line.get_ydata()) == [0.6, 0.8]


def test_bars_skip_unknown_values() -> None:
    figure = bars_beside(
        ["x", "y"], {"paper": [(3.0, 2.9, 3.3), None], "here": [(4.0, 3.9, 4.1), (5.0, 4.8, 5.1)]}, "count"
    )
    heights = [
        [bar.get_width() for bar in container]
        for container in figure.axes[0].containers
        if len(container) < 3
    ]
    assert [3.0] in heights
    assert [4.0, 5.0] in heights


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_format_follows_the_name_and_bytes_are_reproducible(
    suffix: str, start: bytes, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        save_figure(judgments_by_size({"sorting": {5: 7}}), tmp_path / "new" / f"{name}{suffix}")
    one, two = sorted((tmp_path / "new").iterdir())
    assert one.read_bytes().startswith(start)
    assert one.read_bytes() == two.read_bytes()


def test_unknown_format_writes_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="known picture format"):
        save_figure(judgments_by_size({}), tmp_path / "plot.bmp")
    assert list(tmp_path.iterdir()) == []


def test_failed_drawing_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "plot.svg"
    place.write_text("old")
    figure = judgments_by_size({"sorting": {5: 7}})

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        save_figure(figure, place)
    assert [path.name for path in tmp_path.iterdir()] == ["plot.svg"]
    assert place.read_text() == "old"


def test_a_scorecard_shows_every_figure_and_the_pooled_reliability() -> None:
    bins = (ReliabilityBin(0.5, 0.4, 10), ReliabilityBin(0.9, 0.8, 30))
    figure = scorecard(
        ["x", "y"],
        bars=[(0.5, 0.6), (0.7, 0.7)],
        ours=[(0.55, 0.01), (0.6, 0.02)],
        others=[0.3, None],
        reliable={"pooled": bins, "x": bins[:1]},
    )
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["x", "y"]
    assert names_in(right) == ["pooled", "single problems"]
    assert values(right.get_lines()[1].get_xdata()) == [0.5, 0.9]


def test_budgets_are_drawn_as_lines_with_the_mark() -> None:
    lines = {"with": [(10.0, 0.3, 0.2, 0.4), (20.0, 0.5, 0.4, 0.6)], "without": [(10.0, 0.2, 0.1, 0.3)]}
    axes = found_by_budget(lines, ("other", 70.0, 0.45), "title").axes[0]
    assert names_in(axes) == ["with", "without", "other"]
    assert values(axes.get_lines()[0].get_ydata()) == [0.3, 0.5]
    assert axes.get_title() == "title"


def test_assessors_without_comparisons_are_not_drawn() -> None:
    table = Table(("assessor", "agrees", "low", "high"), (("ann", 0.5, 0.4, 0.6), ("bob", None, None, None)))
    (axes,) = agreement_picture([Finding("assessors", "Assessors", table)]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ann"]


def test_bar_without_a_value_leaves_its_place_empty() -> None:
    (axes,) = panels([Bars("title", "y", ("a", "b"), {"one": (None, 2.0)})]).axes
    (bar,) = axes.patches
    assert isinstance(bar, Rectangle)
    assert bar.get_x() + bar.get_width() / 2 == pytest.approx(1.0)
    assert bar.get_height() == pytest.approx(2.0)


def test_problems_that_state_too_much_are_marked() -> None:
    rows = {"too sure": (0.8, 0.5), "modest": (0.4, 0.6), "silent": (None, 0.3)}
    left, right = stated_and_right(rows, 0.1, [ReliabilityBin(0.8, 0.5, 3)]).axes
    joined = [line for line in left.get_lines() if line.get_linewidth() == 2 and values(line.get_xdata())]
    assert [(values(line.get_xdata()), line.get_color()) for line in joined] == [
        ([0.8, 0.5], "tab:orange"),
        ([0.4, 0.6], "0.7"),
    ]
    assert [label.get_text() for label in left.get_yticklabels()] == list(rows)
    assert names_in(right) == ["all problems"]
    assert stated_and_right(rows, 0.1, []).axes[1].get_legend() is None


def test_names_of_points_stay_within_the_picture_and_apart() -> None:
    figure, axes = drawing("x", "y", width=5, height=5)
    points = {
        "a-long-name-of-a-run": (0.98, 0.5),
        "another-long-name": (0.97, 0.5),
        "near-it": (0.96, 0.49),
        "left": (0.0, 0.9),
    }
    axes.plot([0, 1], [0, 1], ".")
    name_points(axes, points)
    figure.canvas.draw()
    inside = axes.get_window_extent()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 4
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 for box in boxes)
    assert not any(a.overlaps(b) for at, a in enumerate(boxes) for b in boxes[:at])
