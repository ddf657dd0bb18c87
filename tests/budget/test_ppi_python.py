"""The plain mean against ppi-python: `difference` is PPI, and without guesses it is the mean of what was judged."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelpool.budget import Frame, Population, Sample, estimated, targets_of

RECORDED: dict[str, Any] = json.loads(
    Path(__file__).with_name("ppi_python.json").read_text(encoding="utf-8")
)  # ppi-python 0.2.3
GUESSES, JUDGED, UTILITIES = (np.array(RECORDED[name]) for name in ("guesses", "judged", "utilities"))
ASKED = {1.0: "ppi_mean_pointestimate(lam=1)", 0.0: "ppi_mean_pointestimate(lam=0)"}


@pytest.mark.parametrize("weight", ASKED)
def test_difference_is_prediction_powered_inference(weight: float) -> None:
    count = len(GUESSES)
    population = Population(
        ("mean",), ("t",), np.zeros(count, dtype=np.int64), np.full((count, 1), 1 / count)
    )
    chance = np.full(len(JUDGED), len(JUDGED) / count)
    times = np.ones(len(JUDGED), dtype=np.int64)
    sample = Sample("pivotal", len(JUDGED), JUDGED, times, chance, UTILITIES)
    frame = Frame.of(targets_of(population, "absolute"), weight * GUESSES)
    found = estimated(frame, sample, "difference").values[0]
    assert found == pytest.approx(RECORDED[ASKED[weight]], abs=1e-12)


@pytest.mark.peer("ppi_py")
@pytest.mark.parametrize("weight", ASKED)
def test_live_answers_equal_the_recorded_ones(weight: float) -> None:
    theirs = import_module("ppi_py").ppi_mean_pointestimate(UTILITIES, GUESSES[JUDGED], GUESSES, lam=weight)
    assert float(np.ravel(theirs)[0]) == pytest.approx(RECORDED[ASKED[weight]], abs=1e-12)
