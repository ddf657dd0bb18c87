"""The experiment on votes: its losses against formulas, its splits, and its bars."""

import os
from pathlib import Path

import numpy as np
import pytest

from duelpool.preferences.assessors import AssessorVotes
from duelpool.seeds import rng_for
from duelpool_reproduce.beyond import votes as experiment
from duelpool_reproduce.verdicts import KEPT


def few_votes() -> AssessorVotes:
    return AssessorVotes.of(
        topics=["s", "s", "t", "t"],
        first=["a", "b", "a", "a"],
        second=["b", "a", "b", "b"],
        shares=[1.0, 0.5, 1.0, 0.0],
        assessors=["x", "y", "x", "y"],
    )


def test_the_loss_leaves_ties_out() -> None:
    found = experiment.log_loss(np.array([0.8, 0.1, 0.6, 0.3]), few_votes())
    assert found == pytest.approx(-np.mean(np.log([0.8, 0.6, 0.7])))


def test_splits_hold_whole_pairs_out() -> None:
    table, _, _ = experiment.simulated_votes((5, 6, 8, 900, 0.5), rng_for(1, "splits"))
    fitted, held = experiment.split(table, "name", 0)
    pairs = [
        {(min(i, j), max(i, j)) for i, j in zip(table.i[rows].tolist(), table.j[rows].tolist(), strict=True)}
        for rows in (fitted, held)
    ]
    assert len(fitted) + len(held) == 900
    assert not pairs[0] & pairs[1]
    assert 0.05 < len(held) / 900 < 0.4
    again = experiment.split(table, "name", 0)
    assert np.array_equal(held, again[1])
    assert not np.array_equal(held, experiment.split(table, "name", 1)[1])


def test_plain_strengths_are_those_of_each_topic() -> None:
    table = few_votes()
    strengths = experiment.plain_strengths(table, 1.0)
    names = dict(zip(table.items, strengths.tolist(), strict=True))
    assert names["s", "a"] > 0 > names["s", "b"]
    assert names["t", "a"] == pytest.approx(names["t", "b"], abs=1e-9)


def test_the_model_beats_plain_strengths_on_simulated_votes_that_it_has_not_seen() -> None:
    table, _, _ = experiment.simulated_votes((20, 8, 20, 5_000, 0.7), rng_for(2, "losses"))
    ours, plain = experiment.losses(table, "simulated", 2, 0)
    assert np.all(ours < plain)


@pytest.mark.long
@pytest.mark.data
def test_public_votes_are_predicted_better_than_by_the_others() -> None:
    report = experiment.votes(1, 0, data=Path(os.environ["DUELPOOL_DATA"]), simulations=2)
    held_out = [row for row in report.rows if row.part == "Held-out votes"]
    assert len(held_out) == 18
    assert {row.verdict for row in held_out} == {KEPT}
    assert all(row.ours is not None and row.ours < 0 for row in held_out)
    tables = {section.title: section.rows for section in report.sections()}
    assert len(tables["Loss on held-out votes, 1 splits"]) == 9
    report.drawing()
