"""The experiment on an informed start: what an LLM's preferences save."""

from pathlib import Path

import numpy as np
import pytest

from duelpool.errors import BadParameter
from duelpool.strategies.swissfinals import SwissFinals
from duelpool_reproduce.informed import WAYS, Informed, InformedReport, informed, shuffled
from duelpool_reproduce.savings import BudgetPoint, FoundCurves, judgments_for, needed, risen, savings


def point(way: str, judgments: float, rate: float) -> BudgetPoint:
    return BudgetPoint(way, judgments / 10, judgments, rate, 0.01)


def report_of(*points: BudgetPoint, mark: float = 0.5) -> InformedReport:
    curves = FoundCurves(WAYS, points, 5, 0)
    return InformedReport(curves, point("prefBest + extra", 70, mark), 3, 10.0, 0.2)


def test_judgments_needed_lie_on_the_line_between_budgets() -> None:
    report = report_of(point(WAYS[0], 10, 0.3), point(WAYS[0], 20, 0.4), point(WAYS[0], 40, 0.8))
    assert report.needed(WAYS[0]) == pytest.approx(25)
    assert report_of(point(WAYS[0], 10, 0.6)).needed(WAYS[0]) == 10
    assert report_of(point(WAYS[0], 10, 0.3)).needed(WAYS[0]) is None


def test_what_one_curve_needs_by_hand() -> None:
    line = [(100.0, 0.2), (300.0, 0.6)]
    many = needed(line, 0.4, trials=1_000_000, seed=1)
    few = needed(line, 0.4, trials=1000, seed=1)
    assert many is not None
    assert few is not None
    assert many[0] == few[0] == pytest.approx(200.0)
    assert many[1] < 1
    # the found-rate in the middle has the error of the mean of both ends, and the slope is .4 in 200
    middle = ((0.2 * 0.8 + 0.6 * 0.4) / 1000) ** 0.5 / 2
    assert few[1] == pytest.approx(middle * 200 / 0.4, rel=0.1)
    assert needed(line, 0.6, trials=1000, seed=1) is None  # half of the draws don't reach it
    assert needed(line, 0.1, trials=1000, seed=1) == (100.0, 0.0)


def test_savings_by_hand() -> None:
    """Without, .2 at 100 and .6 at 300; with, .2 at 50 and .6 at 150: half is saved wherever both are."""
    with_it = [(50.0, 0.2), (150.0, 0.6)]
    without = [(300.0, 0.6), (100.0, 0.2)]
    rows = savings(without, with_it, trials=100_000, seed=1, levels=(0.1, 0.2, 0.3, 0.4, 0.7))
    assert [row.found for row in rows] == [0.3, 0.4]  # the others lie outside, or at an end
    assert [row.plain for row in rows] == pytest.approx([150, 200])
    assert [row.informed for row in rows] == pytest.approx([75, 100])
    assert [row.share for row in rows] == pytest.approx([0.5, 0.5])
    assert all(0 < row.share_error < 0.01 for row in rows)
    noisy = savings(without, with_it, trials=1000, seed=1, levels=(0.4,))[0]
    # by the delta method: sd(found at a point) is about .0126 and .0155, each half of the way to the middle
    assert noisy.plain_error == pytest.approx(500 * 0.5 * (0.0126**2 + 0.0155**2) ** 0.5, rel=0.1)
    late = savings(without, [(50.0, 0.5), (150.0, 0.6)], trials=1000, seed=1, levels=(0.4,))[0]
    assert late.at_most
    assert late.told[2:] == ("≤50", f"≥75±{100 * late.share_error:.0f} %")
    assert savings([], with_it, trials=10, seed=1) == ()


def test_a_curve_that_falls_is_taken_as_level() -> None:
    judgments, rates = np.array([10.0, 20.0, 30.0]), risen(np.array([0.2, 0.6, 0.4]))
    assert judgments_for(0.5, judgments, rates) == pytest.approx(20.0)
    assert judgments_for(0.35, judgments, rates) == pytest.approx(15.0)
    assert np.isnan(judgments_for(0.55, judgments, rates))


def test_shuffled_scores_are_the_same_scores() -> None:
    prior = {f"i{at}": float(at) for at in range(30)}
    items = [*prior, "unscored"]
    dealt = shuffled(prior, items, 1)
    assert sorted(dealt.values()) == sorted(prior.values())
    assert dealt != prior
    assert dealt == shuffled(prior, items, 1) != shuffled(prior, items, 2)


def test_each_way_has_its_prior(tmp_path: Path) -> None:
    items = tuple(f"i{at:02}" for at in range(30))
    people = tmp_path / "people.pref"  # every item beats those below it, once
    people.write_text("".join(f"t1 {a} {b} {a}\n" for at, a in enumerate(items) for b in items[at + 1 :]))
    made = [Informed(way, str(people), 2.0)(items, seed=1, topic="t1", cap=6) for way in WAYS]
    assert all(isinstance(each, SwissFinals) and each.schedule.budget == 60 for each in made)
    starts = [each.field_size for each in made if isinstance(each, SwissFinals)]
    assert starts[0] == 30  # a prior lets a scarce budget begin with fewer
    assert starts[1] < 30


def test_it_wants_its_data(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match=r"judgments\.txt"):
        informed(trials=1, data=tmp_path)
