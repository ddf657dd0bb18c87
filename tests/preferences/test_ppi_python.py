"""Powered win rates against ppi-python: of two systems, the rate of one is the mean that PPI++ estimates."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelpool.preferences.powered import PoweredRates, VotedPairs, powered_rates

RECORDED: dict[str, Any] = json.loads(
    Path(__file__).with_name("ppi_python.json").read_text(encoding="utf-8")
)  # 1,200 pairs of x and y: a model's vote on each, people's on 240
MODEL, PEOPLE = (np.array([float(vote) for vote in RECORDED[name]]) for name in ("model", "people"))
ASKED = np.array(RECORDED["asked"])
POWERED, ALONE = "ppi_mean_ci(alpha=.05)", "classical_mean_ci(alpha=.05)"


def estimate(use_model: bool) -> PoweredRates:
    count = len(MODEL)
    people = np.full((count, 2), np.nan)
    people[ASKED] = np.column_stack((PEOPLE, 1 - PEOPLE))
    model = np.column_stack((MODEL, 1 - MODEL))
    zeros = np.zeros(count, dtype=np.int64)
    return powered_rates(
        VotedPairs(("x", "y"), zeros, zeros + 1, people, model, np.arange(count)), use_model=use_model
    )


def test_rate_is_the_mean_of_prediction_powered_inference() -> None:
    rates = estimate(use_model=True).rates
    assert rates[0] == pytest.approx(RECORDED["ppi_mean_pointestimate()"], abs=1e-4)
    assert rates.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("use_model", "asked"), [(True, POWERED), (False, ALONE)])
def test_interval_is_a_hundredth_wider_for_few_votes(use_model: bool, asked: str) -> None:
    """Theirs has the normal quantile, and takes residuals as they are; ours Student's, and allows for the fit."""
    low, high = estimate(use_model).contest.intervals(0.95)[0]
    theirs = RECORDED[asked]
    assert 1 <= (high - low) / (theirs[1] - theirs[0]) <= 1.02
    assert [low, high] == pytest.approx(theirs, abs=0.001)


@pytest.mark.peer("ppi_py")
def test_live_answers_equal_the_recorded_ones() -> None:
    peer = import_module("ppi_py")
    rest = np.setdiff1d(np.arange(len(MODEL)), ASKED)
    data = (PEOPLE, MODEL[ASKED], MODEL[rest])
    assert float(np.ravel(peer.ppi_mean_pointestimate(*data))[0]) == pytest.approx(
        RECORDED["ppi_mean_pointestimate()"], abs=1e-12
    )
    for name, ends in (
        (POWERED, peer.ppi_mean_ci(*data, alpha=0.05)),
        (ALONE, peer.classical_mean_ci(PEOPLE, alpha=0.05)),
    ):
        assert [float(np.ravel(end)[0]) for end in ends] == pytest.approx(RECORDED[name], abs=1e-12)
