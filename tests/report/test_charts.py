"""Charts: every value is there and in its place, labels keep apart, and hover and focus show the figures."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

from duelpool.leaderboard.board import BoardRow
from duelpool.leaderboard.charts import board_chart, history_chart, history_table
from duelpool.leaderboard.live import History, Point
from duelpool.report import charts
from duelpool.report.charts import (
    Chart,
    ChartRow,
    Mark,
    apart,
    columns_chart,
    interval_chart,
    parts_chart,
    strips,
    ticks,
)
from duelpool.report.page import Chapter, html_page

RUNS = [f"run_{at}_of_a_group_with_a_long_name" if at % 3 == 0 else f"r{at}" for at in range(63)]


def board(runs: int = 63) -> list[BoardRow]:
    """Return rows whose intervals would go beyond 0 and 1."""
    return [
        BoardRow(at + 1, run, 0.9 - at / 80, 0.6 - at / 80, 1.2 - at / 80, 5, at < 3)
        for at, run in enumerate(RUNS[:runs])
    ]


def history(runs: int = 63) -> History:
    means = [{run: (0.9 - at / 80) * step / 4 for at, run in enumerate(RUNS[:runs])} for step in (1, 2, 4)]
    judged = (100, 200, 1000)
    points = (Point("2026-01-01T00:00:00Z", n, each) for n, each in zip(judged, means, strict=True))
    return History("RR", tuple(points), ready=True)


def test_every_run_is_drawn_and_those_after_the_twentieth_are_folded() -> None:
    drawn = board_chart(board(), "Compat(p=0.8)")
    assert drawn.count('class="mark') == drawn.count('class="whisker') == drawn.count("<li ") == 63
    first, folded = drawn.split('<details id="more-mean-compat-p-0-8-with-95-intervals-the-best-on-top">')
    assert first.count("<li ") == 20
    assert "<summary>43 more</summary>" in folded
    assert board_chart([], "RR") == ""


def test_intervals_stay_within_the_range_of_the_measure() -> None:
    shown = re.findall(r'class="tip">\S+ \((\S+) to (\S+)\)', board_chart(board(), "Compat(p=0.8)"))
    assert len(shown) == 63
    assert min(float(low) for low, _ in shown) == 0
    assert max(float(high) for _, high in shown) == 1
    open_ended = re.findall(r'class="tip">\S+ \((\S+) to (\S+)\)', board_chart(board(), "DCG"))
    assert max(float(high) for _, high in open_ended) == 1.2
    assert min(float(low) for low, _ in open_ended) == 0


def test_names_are_escaped() -> None:
    evil = "<b>\"&'"
    mark = (Mark(0.5, 0.4, 0.6),)
    points = tuple(Point("2026-01-01T00:00:00Z", at, {evil: at / 9}) for at in range(4))
    for drawn in (
        interval_chart(evil, [ChartRow(evil, mark)]),
        history_chart(History("RR", points, ready=True), [evil]),
        parts_chart(evil, {evil: (1, evil)}, 2),
        columns_chart(evil, [(1, 2)], evil, evil),
        strips({"x": [Mark(1, label=evil)]}, 1)["x"],
    ):
        assert "<b>" not in drawn
        assert '""' not in drawn
        assert drawn


def test_history_has_judgments_at_their_true_distance() -> None:
    drawn = history_chart(history(2), RUNS[:2])
    (line, _) = re.findall(r'points="([^"]+)"', drawn)
    assert [float(point.split(",")[0]) for point in line.split()] == [10, 20, 100]
    assert history_chart(History("RR", history().points[:1], ready=True), RUNS) == ""


def test_of_many_lines_the_first_eight_have_a_colour_and_a_label() -> None:
    drawn = history_chart(history(), RUNS)
    assert drawn.count("<polyline") == 63
    assert drawn.count('class="line rest"') == 55
    labels = drawn.split('class="labels"')[1].split("</svg>")[0]
    assert labels.count("<text") == 8
    assert "The first 8 of 63 have a colour and a label." in drawn
    assert "have a colour" not in history_chart(history(8), RUNS[:8])
    places = [float(y) for y in re.findall(r'<text class="name" x="16" y="([\d.]+)"', labels)]
    assert all(after - before >= 17 for before, after in pairwise(places))


def test_history_is_a_table_too() -> None:
    table = history_table(history(2), RUNS[:2])
    assert table.columns == ("after judgments", "100", "200", "1,000")
    assert table.rows[1][0] == "r1"
    assert table.rows[1][1:] == pytest.approx((0.8875 / 4, 0.8875 / 2, 0.8875), abs=1e-4)


@given(st.lists(st.floats(0, 240), max_size=14).map(sorted))
def test_labels_keep_apart_and_on_the_page(wanted: list[float]) -> None:
    places = apart(wanted, 17, 8, 232)
    assert all(after - before >= 16.98 for before, after in pairwise(places))
    assert all(8 - 0.01 <= place <= max(232, 8 + 17 * len(wanted)) for place in places)


@given(st.floats(0, 1), st.floats(0, 1))
def test_ticks_are_few_and_within_the_limits(one: float, other: float) -> None:
    low, high = sorted((one, other))
    found = ticks(low, high, (0.0, 1.0))
    assert 1 <= len(found) <= 8
    assert -1e-9 <= found[0] <= found[-1] <= 1 + 1e-9


def test_parts_of_nothing_are_not_drawn() -> None:
    assert parts_chart("t", {"a": (3, "3"), "b": (0, "0")}, 10).count('class="bar ') == 1
    assert parts_chart("t", {"a": (0, "0")}, 0).count('class="bar ') == 0


def test_columns_are_grouped_where_there_are_many_sizes() -> None:
    drawn = columns_chart("sizes", [(5, 1), (6, 2), (130, 4)], "topic", "items")
    assert 'aria-label="5 to 8 items: 3 topics"' in drawn
    assert 'aria-label="129 to 132 items: 4 topics"' in drawn
    assert 'aria-label="6 items: 1 topic"' in columns_chart("sizes", [(6, 1)], "topic", "items")
    assert columns_chart("sizes", [], "topic", "items") == ""


def test_a_row_without_marks_has_no_strip() -> None:
    assert set(strips({"a": [Mark(1.0, 0.5, 1.5)], "b": []}, 1.0)) == {"a"}
    assert strips({}, 1.0) == {}


@pytest.mark.long
def test_the_report_draws_without_matplotlib() -> None:
    code = "import sys, duelpool.campaign_report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- in a browser


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Page:
    drawn = (board_chart(board(), "Compat(p=0.8)"), history_chart(history(), RUNS))
    more = (
        parts_chart("Spent", {"Rewards": (3, "3 USD")}, 10),
        columns_chart("s", [(6, 1), (9, 2)], "topic", "items"),
    )
    target = tmp_path / "page.html"
    target.write_text(html_page("t", "", [], [Chapter("c", charts=(*drawn, *more))]), encoding="utf-8")
    tab = browser.new_page()
    tab.goto(target.as_uri())
    return tab


def test_hover_and_focus_show_the_values(page: Page) -> None:
    row = page.locator(".intervals li").nth(2)
    tip = row.locator(".tip")
    assert tip.evaluate("e => getComputedStyle(e).opacity") == "0"
    row.focus()
    assert tip.evaluate("e => getComputedStyle(e).opacity") == "1"
    assert tip.inner_text() == "0.875 (0.575 to 1.000)"
    moment = page.locator(".moment").nth(1)
    assert not moment.locator(".shown").is_visible()
    moment.focus()
    assert moment.locator(".shown").is_visible()
    assert moment.locator("text").first.text_content() == "200 judgments"
    page.locator(".part").first.hover()
    assert page.locator(".part .shown").first.is_visible()
    page.close()


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_letters_keep_their_size_and_charts_fit(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.evaluate(
        "[...document.querySelectorAll('.chart text, .chart span')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 12
    beside = page.locator(".lines .labels").is_visible()
    assert beside == (width > 600)
    assert page.locator(".lines .legend").is_visible() == (not beside)
    page.close()


def test_colours_of_the_first_eight_do_not_move_with_their_ranks() -> None:
    one = charts.colours(["b", "a", "c"])
    assert one == charts.colours(["c", "b", "a"]) == {"a": "c0", "b": "c1", "c": "c2"}
    assert charts.colours(RUNS)[RUNS[8]] == "rest"


def _whiskers(drawn: dict[str, Chart]) -> dict[str, tuple[float, float]]:
    found = {
        name: re.search(r'whisker [^>]*x1="([\d.]+)" x2="([\d.]+)"', each) for name, each in drawn.items()
    }
    return {name: (float(at[1]), float(at[2])) for name, at in found.items() if at}


def test_small_drawings_cut_off_no_interval_but_one_that_would_make_all_others_tiny() -> None:
    marks = {f"run {at}": [Mark(0.5 - at / 100, 0.3 - at / 100, 0.7 - at / 100)] for at in range(20)}
    ends = _whiskers(strips(marks, 0.4))
    assert len({low for low, _ in ends.values()}) == len({high for _, high in ends.values()}) == 20
    wide = _whiskers(strips({**marks, "wide": [Mark(0.4, -9, 9)]}, 0.4))
    assert wide["run 5"][1] - wide["run 5"][0] > 40
    assert wide["wide"][1] - wide["wide"][0] < 160
