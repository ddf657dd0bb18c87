"""Streams: the same draw however the population is cut and whoever does the work, with exact probabilities."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.arrays import Floats
from duelpool.budget import Beliefs, Population, estimated, inclusion_probabilities, sizes
from duelpool.budget.streams import Chunk, StreamDesign, StreamPlan, stream_plan
from duelpool.errors import BadFile, BadParameter


def whole(units: int, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return rng.gamma(0.3, size=(units, 2)) / units, rng.random(units)


def cut(folder: Path, weights: Floats, guess: Floats, borders: list[int]) -> list[Chunk]:
    chunks = []
    edges = [0, *borders, len(weights)]
    for at, (start, end) in enumerate(pairwise(edges)):
        paths = folder / f"{at}.weights.npy", folder / f"{at}.guess.npy"
        np.save(paths[0], weights[start:end])
        np.save(paths[1], guess[start:end])
        chunks.append(Chunk(*paths))
    return chunks


def drawn(plan: StreamPlan, borders: list[int]) -> list[int]:
    places: list[int] = (np.array([0, *borders])[plan.chunk] + plan.unit).tolist()
    return places


@given(st.lists(st.integers(1, 199), max_size=6, unique=True), st.integers(1, 60), st.integers(0, 5))
def test_however_it_is_cut_the_draw_is_the_same_property(
    tmp_path_factory: pytest.TempPathFactory, places: list[int], n: int, seed: int
) -> None:
    weights, guess = whole(200, seed)
    design = StreamDesign(("a", "b"), n)
    folder = tmp_path_factory.mktemp("chunks")
    borders = sorted(places)
    one = stream_plan(cut(folder, weights, guess, []), design, seed=seed)
    many = stream_plan(cut(folder, weights, guess, borders), design, seed=seed)
    assert drawn(one, []) == drawn(many, borders)
    assert len(set(drawn(one, []))) == n
    assert many.expected == pytest.approx(one.expected)
    assert many.totals == pytest.approx(guess @ weights)


def test_probabilities_are_those_of_a_population_in_memory(tmp_path: Path) -> None:
    weights, guess = whole(300)
    population = Population(("a", "b"), ("",), np.zeros(300, dtype=np.int64), weights)
    size = sizes(population, "doubt", "absolute", Beliefs(guess=guess), mix=0.1)
    expected = inclusion_probabilities(size, 90)
    assert (expected == 1).any()
    borders = [40, 41, 200]
    chunks = cut(tmp_path, weights, guess, borders)
    plan = stream_plan(chunks, StreamDesign(("a", "b"), 90), seed=1)
    assert plan.expected == pytest.approx(expected[drawn(plan, borders)])
    counts = np.zeros(300)
    trials = 120
    for seed in range(trials):
        counts[drawn(stream_plan(chunks, StreamDesign(("a", "b"), 90), seed=seed), borders)] += 1
    errors = np.sqrt(expected * (1 - expected) / trials)
    assert (np.abs(counts / trials - expected) <= 4.5 * errors + 1e-9).all()


def test_estimates_from_a_stream_are_unbiased(tmp_path: Path) -> None:
    weights, guess = whole(400, seed=3)
    utility = np.clip(guess + np.random.default_rng(4).normal(0, 0.2, 400), 0, 1)
    borders = [100, 250]
    chunks = cut(tmp_path, weights, guess, borders)
    found = []
    for seed in range(80):
        plan = stream_plan(chunks, StreamDesign(("a", "b"), 40), seed=seed)
        judged = utility[drawn(plan, borders)]
        found.append(estimated(plan.frame(), plan.sample(judged), "difference").values)
    error = np.std(found, axis=0) / np.sqrt(80)
    assert (np.abs(np.mean(found, axis=0) - utility @ weights) <= 4 * error).all()


def test_workers_give_what_one_process_gives(tmp_path: Path) -> None:
    weights, guess = whole(500)
    chunks = cut(tmp_path, weights, guess, [100, 200, 300])
    design = StreamDesign(("a", "b"), 50, goal="difference", design="PW")
    alone = stream_plan(chunks, design, seed=2)
    with ThreadPoolExecutor(2) as executor:
        together = stream_plan(chunks, design, seed=2, executor=executor)
    assert alone.unit.tolist() == together.unit.tolist()
    assert alone.expected.tolist() == together.expected.tolist()
    assert alone.names == ("a - b",)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs duelpool[cluster]")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
def test_a_dask_cluster_gives_what_one_process_gives(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    weights, guess = whole(5000)
    chunks = cut(tmp_path, weights, guess, [1000, 2000, 3000])
    design = StreamDesign(("a", "b"), 200)
    alone = stream_plan(chunks, design, seed=2)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        client.get_executor() as executor,
    ):
        together = stream_plan(chunks, design, seed=2, executor=executor)
    assert alone.unit.tolist() == together.unit.tolist()
    assert alone.expected.tolist() == together.expected.tolist()


def test_bad_streams_are_refused(tmp_path: Path) -> None:
    weights, guess = whole(20)
    chunks = cut(tmp_path, weights, guess, [10])
    with pytest.raises(BadParameter, match="larger than the population"):
        stream_plan(chunks, StreamDesign(("a", "b"), 21))
    with pytest.raises(BadParameter, match="No chunk"):
        stream_plan([], StreamDesign(("a", "b"), 2))
    for wrong in ({"design": "hedged"}, {"design": "TOP"}, {"n": 0}, {"mix": 1.0}):
        with pytest.raises(BadParameter):
            StreamDesign(("a", "b"), **{"n": 2, **wrong})  # type: ignore[arg-type]
    np.save(tmp_path / "0.guess.npy", guess[:3])
    with pytest.raises(BadFile, match="a number per unit"):
        stream_plan(chunks, StreamDesign(("a", "b"), 2))
    chunks[1].weights.write_text("not numbers")
    with pytest.raises(BadFile, match="can't be read"):
        stream_plan(chunks[1:], StreamDesign(("a", "b"), 2))
    with pytest.raises(BadFile, match="can't be read"):
        stream_plan([Chunk(tmp_path / "nowhere.npy")], StreamDesign(("a", "b"), 2))
