"""Duplicates in measures: their files, runs and judgments by canonical ids, and what the output says of them."""

import json
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import duelpool
from duelpool.cli.evaluation.evaluate import evaluate as command
from duelpool.errors import BadFile, BadParameter, BadRecord
from duelpool.files import Duplicates, Preferences, Qrels, Run, read_duplicates
from duelpool.measures import AP, RBO, BestRR, Truth, nDCG, parse_measure, ppref, wpref
from duelpool.records import Judgment, Outcome

DUPLICATES = Duplicates.from_groups({"1": {"a": ["a2", "a3"], "b": ["b2"]}, "2": {"x": ["a"]}})

docnos = st.sampled_from(["a", "a2", "a3", "b", "b2", "c", "d"])
rankings = st.lists(docnos, min_size=1, unique=True)
votes = st.lists(st.tuples(docnos, docnos).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=12)
CANONICAL = {"a2": "a", "a3": "a", "b2": "b"}


def run_of(ranking: list[str], topic: str = "1") -> Run:
    return Run.from_rankings("r", {topic: [(docno, float(-at)) for at, docno in enumerate(ranking)]})


def prefs_of(pairs: list[tuple[str, str]]) -> Preferences:
    return Preferences.from_judgments([Judgment("1", a, b, Outcome.LEFT) for a, b in pairs])


def by_canonical_ids(ranking: list[str]) -> list[str]:
    return list(dict.fromkeys(CANONICAL.get(docno, docno) for docno in ranking))


@given(rankings, votes)
def test_merging_equals_scoring_canonical_ids_at_their_first_rank(
    ranking: list[str], pairs: list[tuple[str, str]]
) -> None:
    mapped = [(CANONICAL.get(a, a), CANONICAL.get(b, b)) for a, b in pairs]
    mapped = [(a, b) for a, b in mapped if a != b]
    truth = Truth.of([prefs_of(pairs), DUPLICATES])
    for measure in (ppref(), wpref(), parse_measure("PGC(p=0.7)")):
        expected = measure.calc(prefs_of(mapped), run_of(by_canonical_ids(ranking))) if mapped else {}
        assert measure.calc(truth, run_of(ranking)) == expected


@given(rankings, st.dictionaries(docnos, st.integers(0, 3), min_size=1))
def test_graded_measures_merge_on_request_only(ranking: list[str], grades: dict[str, int]) -> None:
    qrels, run = Qrels.from_grades({"1": grades}), run_of(ranking)
    truth = Truth.of([qrels, DUPLICATES])
    assert nDCG(5).calc(truth, run) == nDCG(5).calc(qrels, run)
    highest: dict[str, int] = {}
    for docno, grade in grades.items():
        name = CANONICAL.get(docno, docno)
        highest[name] = max(grade, highest.get(name, grade))
    merged = Qrels.from_grades({"1": highest})
    mapped = run_of(by_canonical_ids(ranking))
    for text in ("nDCG(twins='merge')@5", "AP(twins='merge')", "Compat(twins='merge')"):
        measure = parse_measure(text)
        expected = parse_measure(text.replace("twins='merge'", "twins='keep'")).calc(merged, mapped)
        assert measure.calc(truth, run) == pytest.approx(expected)


def test_duplicates_belong_to_their_topic() -> None:
    run = Run.from_rankings("r", {"1": [("x", 2.0), ("a", 1.0)], "2": [("c", 3.0), ("a", 2.0), ("x", 1.0)]})
    merged = DUPLICATES.in_run(run).frame
    assert merged.rows() == [("1", "x", 2.0), ("1", "a", 1.0), ("2", "c", 3.0), ("2", "x", 2.0)]


def test_document_listed_twice_is_left_to_the_measures() -> None:
    run = Run.from_rankings("r", {"1": [("c", 3.0), ("a2", 2.0), ("c", 1.0), ("a", 0.5)]})
    assert DUPLICATES.in_run(run).frame.rows() == [("1", "c", 3.0), ("1", "a", 2.0), ("1", "c", 1.0)]
    even = Run.from_rankings("r", {"1": [("a2", 2.0), ("a", 2.0)]})
    assert DUPLICATES.in_run(even).frame.rows() == [("1", "a", 2.0)]


def test_best_scored_row_of_a_group_is_kept_wherever_the_file_lists_it() -> None:
    run = Run.from_rankings("r", {"1": [("a2", 1.0), ("c", 2.0), ("a", 3.0)]})
    assert DUPLICATES.in_run(run).frame.rows() == [("1", "c", 2.0), ("1", "a", 3.0)]


def test_reference_runs_and_labels_are_merged_too() -> None:
    truth = Truth.of([run_of(["a2", "c"]), DUPLICATES])
    assert RBO(twins="merge").calc(truth, run_of(["a", "c"])) == RBO().calc(
        run_of(["a", "c"]), run_of(["a", "c"])
    )
    labels = Truth.of([Qrels.from_grades({"1": {"a": 1}}), DUPLICATES])
    assert BestRR().calc(labels, run_of(["c", "a3", "a"])) == {"1": 0.5}
    assert BestRR(twins="keep").calc(labels, run_of(["c", "a3", "a"])) == {"1": 1 / 3}


def test_files_of_duplicates(tmp_path: Path) -> None:
    lines = tmp_path / "votes.twins.txt"
    lines.write_text("1 a a2\n1 a a3\n1 b b2\n1 b b2\n2 x a\n")
    pools = tmp_path / "pools.jsonl"
    pools.write_text(
        '{"topic": "1", "items": ["a", "b"], "twins": {"a": ["a2", "a3"], "b": ["b2"]}}\n'
        '{"topic": "2", "items": ["x"], "twins": {"x": ["a"]}}\n'
    )
    assert read_duplicates(lines) == read_duplicates(pools) == DUPLICATES
    for text, message in {
        "1 a\n": "has 3 fields",
        "1 a b\n1 b c\n": "'b' is both canonical and a duplicate",
        "1 a b\n1 c b\n": "'b' is listed more than once",
        "1 a a\n": "'a' is both canonical and a duplicate",
    }.items():
        lines.write_text(text)
        with pytest.raises(BadFile, match=message):
            read_duplicates(lines)
    with pytest.raises(BadRecord):
        Duplicates.from_groups({"1": {"a": ["b"], "b": ["c"]}})


def called(*words: object) -> Result:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "votes.txt").write_text("1 a b a\n1 c b c\n1 a a2 a\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 a2 2\n1 0 b 0\n")
    (tmp_path / "mine.run").write_text("1 Q0 a2 1 3 mine\n1 Q0 b 2 2 mine\n1 Q0 a 3 1 mine\n")
    (tmp_path / "same.txt").write_text("1 a a2\n")
    return tmp_path


def test_command_reports_merged_duplicates(folder: Path) -> None:
    words = [folder / "qrels.txt", folder / "mine.run", "--preferences", folder / "votes.txt"]
    measures = ["-m", "ppref", "-m", "AP"]
    apart = called(*words, *measures, "--json")
    assert [row["value"] for row in json.loads(apart.stdout)] == [0.0, pytest.approx(5 / 6)]
    assert "twins" not in apart.stderr
    merged = called(*words, *measures, "--json", "--twins", folder / "same.txt")
    assert [row["value"] for row in json.loads(merged.stdout)] == [0.5, pytest.approx(5 / 6)]
    assert "1 document counted as the one of the same text that was judged, by ppref" in merged.stderr
    assert "judgments: votes between duplicates dropped: 1" in merged.stderr
    assert "twins merge" in merged.stderr
    assert "twins keep" in merged.stderr
    (folder / "votes.twins.txt").write_text("1 a a2\n")
    beside = called(*words, *measures, "--json")
    assert (beside.stdout, beside.stderr) == (merged.stdout, merged.stderr)
    kept = called(*words, "-m", "ppref", "-m", "AP", "--json", "--twin-rule", "keep")
    assert [row["value"] for row in json.loads(kept.stdout)] == [0.0, pytest.approx(5 / 6)]
    both = called(*words, "-m", "AP(twins='merge')", "--json", "--jobs", 2)
    assert [row["value"] for row in json.loads(both.stdout)] == [1.0]


def test_merging_without_a_file_of_duplicates_is_refused(folder: Path) -> None:
    with pytest.raises(BadParameter, match="no duplicates are given"):
        duelpool.evaluate(folder / "qrels.txt", folder / "mine.run", "AP(twins='merge')")
    with pytest.raises(BadParameter, match="is 'join'"):
        AP(twins="join")  # type: ignore[arg-type]
    scores = duelpool.evaluate(folder / "votes.txt", folder / "mine.run", "ppref", twins=folder / "same.txt")
    assert scores.mean("mine", "ppref") == 0.5
