"""The experiment on systems: its figures and bars, on a problem that takes a moment."""

import os
from pathlib import Path

import pytest

from duelpool.errors import BadParameter
from duelpool.simulation.systems import PlantedSystems, SystemsTrial
from duelpool_reproduce.beyond import systems
from duelpool_reproduce.beyond.powered import WAYS, powered
from duelpool_reproduce.verdicts import KEPT, MISSED, TOO_FEW


def trial(*, settled: bool = True, right: bool = True, covered: float = 0.95) -> SystemsTrial:
    return SystemsTrial(100, settled, right, right, covered, True)


def test_bars_can_be_missed() -> None:
    good = systems.SettledShares("p", tuple(trial() for _ in range(200)))
    assert {row.verdict for row in good.rows("part")} == {KEPT}
    bad = systems.SettledShares("p", tuple(trial(right=at % 4 > 0, covered=0.8) for at in range(200)))
    verdicts = {row.figure.split(": ")[1]: row.verdict for row in bad.rows("part")}
    assert verdicts == {
        "settled and wrong": MISSED,
        "right when settled": MISSED,
        "intervals": MISSED,
        "ranks": KEPT,
    }
    assert bad.row()[:5] == ("p", "1.00", "100", "100", "0.750")


def test_coverage_has_the_error_that_its_trials_show() -> None:
    short = systems.SettledShares("p", tuple(trial(covered=0.8 if at < 60 else 1.0) for at in range(100)))
    (row,) = (each for each in short.rows("part") if each.figure == "p: intervals")
    assert row.error == pytest.approx(0.0098, abs=1e-4)
    assert row.verdict == MISSED  # .88 is five of them below .93
    full = systems.SettledShares("p", tuple(trial(covered=1.0) for _ in range(100)))
    (row,) = (each for each in full.rows("part") if each.figure == "p: intervals")
    assert row.error == pytest.approx(0.0097, abs=1e-4)
    single = systems.SettledShares("p", (trial(covered=0.6),))
    assert [each.verdict for each in single.rows("part") if each.figure == "p: intervals"] == [TOO_FEW]


def test_equal_systems_have_no_right_order() -> None:
    found = systems.SettledShares("p", tuple(trial(settled=at < 8, right=False) for at in range(100)), True)
    assert [row.figure for row in found.rows("part")] == ["p: settled and wrong", "p: intervals", "p: ranks"]
    assert found.rows("part")[0].verdict == KEPT


def test_the_experiment_runs_without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    small = PlantedSystems.even(3, 3.0, questions=8)
    monkeypatch.setattr(systems, "PROBLEMS", dict.fromkeys(systems.COMPARED[:1], small))
    report = systems.systems(2, only=systems.COMPARED[:1])
    assert [section.title for section in report.sections()][-1] == "By strategy"
    assert len(report.sections()[-1].rows) == 3
    assert any("Not replayed" in note for note in report.notes())
    assert report.as_json()["trials"] == 2
    report.drawing()


@pytest.mark.long
@pytest.mark.data
def test_prediction_powered_ranks_are_beside_other_ways() -> None:
    report = powered(2, data=Path(os.environ["DUELPOOL_DATA"]))
    (table,) = report.tables
    assert [row[1] for row in table.rows] == [*WAYS] * 3
    assert len(report.rows) == 10
    assert "14,942 pairs" in table.title


def test_prediction_powered_ranks_need_their_data() -> None:
    with pytest.raises(BadParameter, match="arena's votes"):
        powered(2)
