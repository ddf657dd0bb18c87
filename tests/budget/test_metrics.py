"""Metrics as weights: the sum over units is the measure's own value; grammar, topic weights, files of weights."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.budget import (
    METRICS,
    item_population,
    pair_population,
    parse_metric,
    prior_by_rank,
    read_weights,
)
from duelpool.budget.estimation.ratios import true_ratios
from duelpool.budget.units.beliefs import guesses_from
from duelpool.budget.units.metrics import APMetric, Metric
from duelpool.budget.units.populations import ranked_rows
from duelpool.budget.units.sources import known_from, population_from, read_counts, relevant_items
from duelpool.errors import BadFile, BadParameter, BadRecord, UnknownName
from duelpool.files import Preferences, Qrels, Run
from duelpool.measures import parse_measure
from duelpool.records import Judgment, Outcome
from support.budgets import small_runs


def mean_of(measure: str, truth: Qrels | Preferences, run: Run) -> float:
    return float(np.mean(list(parse_measure(measure).calc(truth, run).values())))


@pytest.mark.parametrize(
    ("metric", "measure"),
    [
        ("P@4", "P@4"),
        ("DCG@5", "DCG@5"),
        ("DCG(log=e)@5", "DCG(log=e)@5"),
        ("DCG(gain=exponential)@6", "DCG(gain=exponential)@6"),
    ],
)
def test_items_add_up_to_the_measure(metric: str, measure: str) -> None:
    runs, qrels = small_runs(seed=3)
    known = known_from(item_population(runs, parse_metric(metric)), qrels)
    assert known.left_out == 0
    assert known.population.scores(known.utility) == pytest.approx(
        [mean_of(measure, qrels, run) for run in runs]
    )


def graded_pairs(qrels: Qrels, runs: list[Run], depth: int) -> Preferences:
    """Every pair of pooled items with different grades, as a preference."""
    grades = qrels.grades()
    pool: dict[str, set[str]] = {}
    for run in runs:
        for topic, docno, *_ in ranked_rows(run, depth).iter_rows():
            pool.setdefault(topic, set()).add(docno)
    rows = [
        Judgment(topic, a, b, Outcome.LEFT)
        for topic, items in pool.items()
        for a in sorted(items)
        for b in sorted(items)
        if grades[topic][a] > grades[topic][b]
    ]
    return Preferences.from_judgments(rows)


@pytest.mark.parametrize(("metric", "measure"), [("ppref@6", "ppref"), ("wpref@6", "wpref")])
def test_pairs_add_up_to_the_preference_measures(metric: str, measure: str) -> None:
    """With distinct grades every pair has a preference, and the sum over all pairs is the measure."""
    runs, qrels = small_runs(seed=4)
    distinct = Qrels.from_grades(
        {
            topic: {doc: float(at) for at, doc in enumerate(sorted(of, key=hash_of))}
            for topic, of in qrels.grades().items()
        }
    )
    known = known_from(pair_population(runs, parse_metric(metric)), distinct)
    preferences = graded_pairs(distinct, runs, 6)
    assert known.population.scores(known.utility) == pytest.approx(
        [mean_of(measure, preferences, run) for run in runs]
    )


def hash_of(docno: str) -> int:
    return int(docno[1:]) * 7919 % 101


def test_swaps_by_their_definition() -> None:
    runs, qrels = small_runs(topics=2, depth=4, seed=5)
    grades = qrels.grades()
    for name, weigh in (("Swaps@4", lambda a, b: 1 / 6), ("WSwaps@4", lambda a, b: 1 / 6 / (a * b))):
        known = known_from(pair_population(runs, parse_metric(name)), qrels)
        expected = []
        for run in runs:
            total = 0.0
            for topic in grades:
                rows = ranked_rows(run, 4).filter(ranked_rows(run, 4)["topic"] == topic)
                order = rows.get_column("docno").to_list()
                for a in range(4):
                    for b in range(a + 1, 4):
                        above, below = grades[topic][order[a]], grades[topic][order[b]]
                        swapped = 0.5 if above == below else float(above < below)
                        total += weigh(a + 1, b + 1) * swapped / len(grades)
            expected.append(total)
        assert known.population.scores(known.utility) == pytest.approx(expected)


def test_average_precision_with_r_and_as_a_ratio() -> None:
    runs, qrels = small_runs(topics=3, depth=12, systems=2, seed=6)
    metric = parse_metric("AP@12")
    relevant = relevant_items(qrels, metric, qrels.topics)
    known = known_from(pair_population(runs, metric, relevant=relevant), qrels)
    assert known.population.scores(known.utility) == pytest.approx(
        [mean_of("AP", qrels, run) for run in runs]
    )
    pool = item_population(runs, parse_metric("P@12")).places()
    pooled = Qrels.from_grades(
        {
            topic: {doc: grade for doc, grade in of.items() if (topic, doc) in pool}
            for topic, of in qrels.grades().items()
        }
    )
    without = known_from(pair_population(runs, metric), pooled)
    expected = [mean_of("AP", pooled, run) for run in runs]
    assert true_ratios(without.population, without.utility) == pytest.approx(expected)
    with pytest.raises(BadParameter, match="number of relevant items"):
        pair_population(runs, metric, relevant={"t0": 1.0})


def test_topics_may_have_weights() -> None:
    runs, qrels = small_runs(seed=7)
    weights = {"t0": 3.0, "t1": 1.0, "t2": 0.0, "t3": 4.0}
    known = known_from(item_population(runs, parse_metric("P@3"), topic_weights=weights), qrels)
    values = parse_measure("P@3").calc(qrels, runs[0])
    expected = sum(values[topic] * weight for topic, weight in weights.items()) / 8
    assert known.population.scores(known.utility)[0] == pytest.approx(expected)
    for bad in ({"t0": 1.0}, {**weights, "t0": -1.0}, dict.fromkeys(weights, 0.0)):
        with pytest.raises(BadParameter, match="weight"):
            item_population(runs, parse_metric("P@3"), topic_weights=bad)


def test_mean_metrics_give_each_item_an_equal_share() -> None:
    runs, _ = small_runs(seed=8)
    for name, grade, utility in (
        ("Mean", 0.5, 0.5),
        ("Accuracy", 1.0, 1.0),
        ("MAE", -0.5, 0.5),
        ("MSE", -0.5, 0.25),
    ):
        metric = parse_metric(name)
        population = item_population(runs, metric)
        assert population.weights.sum(axis=0) == pytest.approx([1, 1, 1])
        assert metric.utility(np.array([grade]))[0] == utility


@given(st.sampled_from(sorted(METRICS)), st.integers(1, 50))
def test_text_forms_parse_back_property(name: str, cutoff: int) -> None:
    metric: Metric = parse_metric(name if name == "Compat" else f"{name}@{cutoff}")
    assert parse_metric(str(metric)) == metric
    assert metric.about


def test_unknown_metrics_and_parameters_are_refused() -> None:
    assert str(parse_metric("dcg(log=2)@10")) == "DCG@10"
    assert str(parse_metric("Prec@10")) == "P@10"
    with pytest.raises(UnknownName, match="Did you mean 'DCG'"):
        parse_metric("DGC@10")
    for wrong in ("P", "DCG(log=10)@5", "DCG(base=2)", "P@0", "DCG@@3"):
        with pytest.raises(BadParameter):
            parse_metric(wrong)
    assert isinstance(parse_metric("AP@5"), APMetric)


def test_weights_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.txt"
    path.write_text("t1 a one 0.5\nt1 b one 0.25\nt2 a two 2\nt1 a two 1\n")
    population = read_weights(path)
    assert population.systems == ("one", "two")
    assert population.weights.tolist() == [[0.25, 0.5], [0.125, 0.0], [0.0, 1.0]]
    for text, problem in (
        ("t1 a one -1\n", "below 0"),
        ("t1 a one x\n", "must be a number"),
        ("t1 a one nan\n", "finite"),
        ("t1 a one 1\nt1 a one 2\n", "twice"),
        ("t1 a one\n", "4 fields"),
    ):
        path.write_text(text)
        with pytest.raises(BadFile, match=problem) as error:
            read_weights(path)
        assert error.value.remedy
        assert "weights.txt:1" in error.value.place


def test_populations_refuse_invalid_input(tmp_path: Path) -> None:
    runs, qrels = small_runs()
    with pytest.raises(BadParameter, match="Two runs"):
        item_population([runs[0], runs[0]], parse_metric("P@3"))
    with pytest.raises(BadParameter, match="No run"):
        item_population([], parse_metric("P@3"))
    with pytest.raises(BadParameter, match="topic ids"):
        item_population(runs, parse_metric("P@3"), topics=["other"])
    with pytest.raises(BadParameter, match="judge nothing"):
        known_from(item_population(runs, parse_metric("P@3")), Qrels.from_grades({"t0": {"zzz": 1.0}}))
    with pytest.raises(BadParameter, match="needs a file"):
        population_from(runs, "Given")
    with pytest.raises(BadParameter, match="not from both"):
        population_from(runs, "Given", weights=tmp_path / "w")
    population = item_population(runs, parse_metric("P@3"))
    with pytest.raises(UnknownName, match="no system"):
        population.with_systems(["other"])
    with pytest.raises(BadRecord, match="row per unit"):
        type(population)(("a",), ("t",), np.zeros(2, dtype=np.int64), np.ones((3, 1)))
    with pytest.raises(BadRecord, match="missing or infinite"):
        type(population)(("a",), ("t",), np.zeros(2, dtype=np.int64), np.array([[np.nan], [1.0]]))
    counts = tmp_path / "r.txt"
    counts.write_text("t0 4\nt1 2\n")
    assert read_counts(counts) == {"t0": 4.0, "t1": 2.0}
    assert qrels.topics


def test_priors_by_rank() -> None:
    runs, _ = small_runs(systems=2)
    population = item_population(runs, parse_metric("P@6"))
    assert population.ranks is not None
    believed = prior_by_rank(population, "hyperbolic(a=16, b=34)")
    first = population.ranks[0]
    assert believed[0] == pytest.approx(sum(16 / (rank + 34) for rank in first if rank > 0) / 2)
    assert prior_by_rank(population, "linear(depth=6)", 4.0).max() <= 4.0
    assert prior_by_rank(population, "flat(value=0.5)")[0] == pytest.approx(0.5 * (first > 0).mean())
    for wrong in ("steep", "linear(depht=6)", "linear(depth=six)"):
        with pytest.raises((UnknownName, BadParameter)):
            prior_by_rank(population, wrong)


def test_guesses_of_a_file_are_shares_of_its_highest_and_their_mean_where_it_has_none(tmp_path: Path) -> None:
    run = Run.from_rankings("r", {"t": [("a", 3.0), ("b", 2.0), ("c", 1.0)]})
    population = item_population([run], parse_metric("P@3"))
    file = tmp_path / "guesses"
    file.write_text("t 0 a 4\nt 0 b 1\nt 0 z 2\n")
    guesses, lacking = guesses_from(file, population, top=2.0)
    assert population.items is not None
    assert dict(zip(population.items.to_list(), guesses.tolist(), strict=True)) == {
        "a": 2.0,
        "b": 0.5,
        "c": 1.25,
    }
    assert lacking == 1
