"""The experiment on systems: its figures and bars, on a problem that takes a moment."""

import pytest

from duelpool.simulation.systems import PlantedSystems, SystemsTrial
from duelpool_reproduce.beyond import systems
from duelpool_reproduce.verdicts import AGREES, DIFFERS


def trial(*, settled: bool = True, right: bool = True, covered: float = 0.95) -> SystemsTrial:
    return SystemsTrial(100, settled, right, right, covered, True)


def test_bars_can_be_missed() -> None:
    good = systems.SettledShares("p", tuple(trial() for _ in range(200)))
    assert {row.verdict for row in good.rows("part")} == {AGREES}
    bad = systems.SettledShares("p", tuple(trial(right=at % 4 > 0, covered=0.8) for at in range(200)))
    verdicts = {row.figure.split(": ")[1]: row.verdict for row in bad.rows("part")}
    assert verdicts == {
        "settled and wrong": DIFFERS,
        "right when settled": DIFFERS,
        "intervals": DIFFERS,
        "ranks": AGREES,
    }
    assert bad.row()[:5] == ("p", "1.00", "100", "100", "0.750")


def test_equal_systems_have_no_right_order() -> None:
    found = systems.SettledShares("p", tuple(trial(settled=at < 8, right=False) for at in range(100)), True)
    assert [row.figure for row in found.rows("part")] == ["p: settled and wrong", "p: intervals", "p: ranks"]
    assert found.rows("part")[0].verdict == AGREES


def test_the_experiment_runs_without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    small = PlantedSystems.even(3, 3.0, questions=8)
    monkeypatch.setattr(systems, "PROBLEMS", dict.fromkeys(systems.COMPARED[:1], small))
    report = systems.systems(2, only=systems.COMPARED[:1])
    assert [section.title for section in report.sections()][-1] == "By strategy"
    assert len(report.sections()[-1].rows) == 3
    assert any("Not replayed" in note for note in report.notes())
    assert report.as_json()["trials"] == 2
    report.drawing()
