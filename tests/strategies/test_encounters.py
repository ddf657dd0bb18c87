"""Encounters: arrays of plain numbers give the same answers as dictionaries."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from duelpool.strategies.tables.encounters import LONG, Encounters

SIZE = 5

meetings = st.lists(
    st.tuples(
        st.integers(0, SIZE - 1),
        st.integers(0, SIZE - 1),
        st.sampled_from([(1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (0.0, 0.0)]),
    ).filter(lambda meeting: meeting[0] != meeting[1]),
    max_size=60,
)


@given(meetings)
def test_encounters_equal_dictionaries(played: list[tuple[int, int, tuple[float, float]]]) -> None:
    met = Encounters(SIZE)
    times: dict[int, dict[int, int]] = defaultdict(dict)
    wins: dict[int, dict[int, float]] = defaultdict(dict)
    latest: dict[tuple[int, int], float] = {}
    for i, j, (won, lost) in played:
        met.add(i, j, won, lost)
        for one, other, share in ((i, j, won), (j, i, lost)):
            times[one][other] = times[one].get(other, 0) + 1
            wins[one][other] = wins[one].get(other, 0.0) + share
            latest[one, other] = share
    for i in range(SIZE):
        assert list(met.of(i).items()) == list(times[i].items())  # in the order in which they met
        assert list(met.wins_of(i).items()) == list(wins[i].items())
        for j in range(SIZE):
            assert met.times(i, j) == times[i].get(j, 0)
            assert met.won(i, j) == wins[i].get(j, 0.0)
            assert met.latest(i, j) == latest.get((i, j), 0.0)
    assert list(met.pairs()) == [
        (i, j, won, wins[j][i]) for i in range(SIZE) for j, won in wins[i].items() if i < j
    ]


def test_a_pair_may_meet_a_billion_times() -> None:
    met, many = Encounters(2), 2**30 - 1
    met.add(0, 1, 1.0, 0.0)
    for tallies, latest in zip(met._tallies, (2, 0), strict=True):  # in halves
        tallies[0] = (tallies[0] - latest) * many + latest
    met.add(1, 0, 0.5, 0.5)
    assert (met.times(0, 1), met.times(1, 0)) == (many + 1, many + 1)
    assert (met.won(0, 1), met.won(1, 0)) == (many + 0.5, 0.5)


def test_item_with_many_opponents_gets_an_index() -> None:
    size = 3 * LONG
    met = Encounters(size)
    for turn in range(2):
        for j in range(1, size):
            met.add(0, j, float(j % 2 == turn), float(j % 2 != turn))
    assert list(met.of(0)) == list(range(1, size))
    assert all(met.times(0, j) == met.times(j, 0) == 2 for j in range(1, size))
    assert all(met.won(0, j) == met.won(j, 0) == 1 for j in range(1, size))
    assert all(met.latest(0, j) == (j % 2 == 1) for j in range(1, size))
    assert met.times(0, 0) == 0
