"""The stated confidence: its evidence, the effect of each part, and its calibration on fresh seeds."""

from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duelpool.records import Judgment, Outcome
from duelpool.seeds import rng_for
from duelpool.simulation import simulate
from duelpool.strategies.confidence import Evidence, stated_confidence
from duelpool.strategies.tables.win_table import WinTable

ITEMS = tuple("abcdef")
ORDINARY = Evidence(mass=0.8, lost=0.15, spread=1.1, lead=15)
games = st.lists(
    st.tuples(
        st.sampled_from(ITEMS),
        st.sampled_from(ITEMS),
        st.sampled_from([Outcome.LEFT, Outcome.RIGHT, Outcome.TIE]),
    ).filter(lambda game: game[0] != game[1]),
    max_size=25,
)


def table_of(played: list[tuple[str, str, Outcome]]) -> WinTable:
    table = WinTable(ITEMS)
    for left, right, outcome in played:
        table.add(Judgment("t", left, right, outcome))
    return table


@settings(max_examples=50)
@given(played=games, leaders=st.sets(st.sampled_from(range(6)), max_size=2))
def test_spread_is_that_of_the_games_without_the_leaders_property(
    played: list[tuple[str, str, Outcome]], leaders: set[int]
) -> None:
    gone = {ITEMS[i] for i in leaders}
    others = table_of([game for game in played if not gone & {game[0], game[1]}])
    expected = float((others.score**2).sum() / others.games.sum()) if others.games.sum() else 1.0
    assert table_of(played).spread(np.array(sorted(leaders), dtype=np.intp)) == pytest.approx(expected)


def test_spread_of_coin_flips_is_one() -> None:
    """200 tournaments of 40 flips in which the leader always plays: mean 1, standard error about .06."""
    spreads = []
    for number in range(200):
        coin = rng_for(number, "coin")
        table = WinTable(ITEMS)
        for _ in range(40):
            first = int(table.score.argmax())
            second = int(coin.choice([i for i in range(6) if i != first]))
            outcome = Outcome.LEFT if coin.random() < 0.5 else Outcome.RIGHT
            table.add(Judgment("t", ITEMS[first], ITEMS[second], outcome))
        spreads.append(table.spread(np.array([], dtype=np.intp)))
    assert fmean(spreads) == pytest.approx(1.0, abs=0.2)


def test_each_part_of_the_evidence_moves_the_confidence() -> None:
    sure = stated_confidence(ORDINARY)
    assert stated_confidence(replace(ORDINARY, mass=0.95)) > sure
    assert stated_confidence(replace(ORDINARY, lost=0.4)) < sure
    assert stated_confidence(replace(ORDINARY, lead=25)) > sure
    assert stated_confidence(replace(ORDINARY, spread=1.0)) > sure  # the same lead, among equals
    graded = replace(ORDINARY, spread=1.5)
    assert stated_confidence(replace(graded, lead=25)) == stated_confidence(graded)


@given(mass=st.floats(0, 1), lost=st.floats(0, 1), spread=st.floats(0, 50), lead=st.floats(-100, 1000))
def test_confidence_is_a_probability_for_any_evidence_property(
    mass: float, lost: float, spread: float, lead: float
) -> None:
    assert 0 < stated_confidence(Evidence(mass, lost, spread, lead)) < 1


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("judges", "items"), [("case-a", 30), ("case-b", 30), ("bt:sd=1", 40)], ids=["A", "B", "bt"]
)
def test_stated_confidence_is_the_share_of_right_answers(judges: str, items: int) -> None:
    """On seeds that had no part in the fit: off by .10 at most, and three standard errors of .02 to .06."""
    result = simulate("swissfinals", judges, items=items, trials=60, seed=4711)
    stated = fmean(trial.confidence or 0.0 for trial in result.outcomes)
    assert abs(stated - result.found) <= 0.10 + 3 * max(0.02, result.standard_error(result.found))
    assert min(trial.confidence or 0.0 for trial in result.outcomes) < stated - 0.1  # it does tell apart


@pytest.mark.statistics
def test_two_equal_bests_keep_the_confidence_high() -> None:
    """Case B: a best item is returned in more than 95 of 100 trials, and the mean stated confidence is at least .8."""
    result = simulate("swissfinals", "case-b", items=30, trials=40, seed=4712)
    assert result.found >= 0.9
    assert fmean(trial.confidence or 0.0 for trial in result.outcomes) >= 0.8
