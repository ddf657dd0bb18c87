"""Figure 2 of the 2008 study as a report: its table, its figures and its drawing say the same."""

import csv
import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from duelpool_reproduce.command import reproduce
from duelpool_reproduce.judging_effort import SIZES, EffortReport, effort

app = typer.Typer()
app.command("reproduce")(reproduce)
app.callback()(lambda: None)


@pytest.fixture(scope="module")
def report() -> EffortReport:
    return effort(trials=2, seed=3)


def test_every_size_has_its_row_and_its_progress() -> None:
    ended: list[int] = []
    report = effort(trials=1, seed=3, progress=ended.append)
    assert [row.items for row in report.rows] == list(SIZES) == list(range(5, 16))
    assert ended == [1] * 11


@pytest.mark.long
def test_the_drawing_holds_the_figures(report: EffortReport) -> None:
    drawn: dict[str, Any] = {str(line.get_label()): line for line in report.drawing().axes[0].get_lines()}
    assert len(drawn) == 6
    assert list(drawn["sorting"].get_ydata()) == [row.sorting for row in report.rows]
    assert list(drawn["all pairs"].get_ydata()) == [row.all_pairs for row in report.rows]


def test_csv_and_json_hold_the_same_means(report: EffortReport) -> None:
    rows = list(csv.DictReader(report.figures().as_csv().splitlines()))
    values = json.loads(json.dumps(report.as_json()))["rows"]
    for row, value in zip(rows, values, strict=True):
        assert float(row["sorting_with_bad"]) == pytest.approx(value["sorting_with_bad"], abs=1e-4)
    assert all(len(row) == len(section.columns) for section in report.sections() for row in section.rows)


def test_the_command_prints_it() -> None:
    done = CliRunner().invoke(app, ["reproduce", "judging-effort", "--trials", "1"], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    assert "105" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
