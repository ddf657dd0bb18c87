"""Judgments added up: a win counts by its weight wherever wins are read."""

import numpy as np
import pytest

from duelpool.records import Judgment
from duelpool.strategies.swissfinals import SwissFinals
from duelpool.strategies.tables.win_table import WinTable
from duelpool.testing.strategies import Loop, consistent, pool_of


def test_a_win_counts_by_its_weight() -> None:
    truth = pool_of(2)
    log = Loop(SwissFinals(truth, seed=1, cap=6), consistent(truth)).play(batch=1).log
    line = next(each for each in log if isinstance(each, Judgment))
    table = WinTable(truth)
    table.add(line)
    table.add(line, 0.25)
    assert (table.times(0, 1), table.judgments) == (2, 2)
    assert (table.won(0, 1), table.won(1, 0)) == (1.25, 0.0)
    assert table.wins(np.array([0, 1])).tolist() == [[0.0, 1.25], [0.0, 0.0]]
    assert table.score.tolist() == pytest.approx([1.25, -1.25])
    pairs = table.pairs()
    first_won = pairs.won if pairs.first[0] == 0 else pairs.judged - pairs.won
    assert (first_won.tolist(), pairs.judged.tolist()) == ([1.25], [1.25])


def test_a_judgment_without_weight_decides_no_pair() -> None:
    truth = pool_of(2)
    log = Loop(SwissFinals(truth, seed=1, cap=6), consistent(truth)).play(batch=1).log
    table = WinTable(truth)
    table.add(next(each for each in log if isinstance(each, Judgment)), 0.0)
    assert table.judgments == 1
    assert not len(table.pairs().first)
