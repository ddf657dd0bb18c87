"""duelpool.evaluate and the command: every format, intervals and tests, folders and frames, clear errors."""

import csv
import gzip
import io
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import typer
from typer.testing import CliRunner, Result

import duelpool
from duelpool.cli.evaluation.evaluate import evaluate as command
from duelpool.cli.evaluation.power import power
from duelpool.comparison import (
    against_baseline,
    all_pairs,
    anytime_behind,
    anytime_difference,
    anytime_means,
    kendall_tau,
    leave_group_out,
    measure_agreement,
    overlap,
    plan_topics,
    sensitivity,
    tau_ap,
    topics_needed,
)
from duelpool.errors import BadFile, BadParameter, BadRecord, DuelpoolError, UnknownName
from duelpool.evaluation import FORMATS, kind_of, record_of
from duelpool.files import Preferences, Qrels, Run, read_qrels, read_run
from duelpool.files.source import stem
from duelpool.measures import MEASURES, Compat, nDCG
from duelpool.plots import leaderboard, save_figure, scatter
from duelpool.report import Table, latex_text, markdown_text, plain_text
from duelpool.seeds import rng_for

TOPICS = [str(100 + number) for number in range(12)]
DOCS = [f"doc{number}" for number in range(30)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Qrels, preferences and four runs, each better than the one before it."""
    place = tmp_path_factory.mktemp("collection")
    rng = rng_for(5, "collection")
    worth = {topic: rng.normal(0, 1, len(DOCS)) for topic in TOPICS}
    grades = {topic: np.clip(np.round(values), 0, 3).astype(int) for topic, values in worth.items()}
    (place / "qrels.txt").write_text(
        "".join(f"{t} 0 {d} {g}\n" for t in TOPICS for d, g in zip(DOCS, grades[t], strict=True))
    )
    votes = []
    for topic in TOPICS:
        for _ in range(25):
            a, b = rng.choice(len(DOCS), 2, replace=False).tolist()
            better = a if worth[topic][a] > worth[topic][b] else b
            votes.append(f"{topic} {DOCS[a]} {DOCS[b]} {DOCS[better]}\n")
    (place / "prefs.txt").write_text("".join(votes))
    (place / "runs").mkdir()
    for name, noise in {"poor": 9.0, "fair": 2.0, "good": 0.7, "great": 0.1}.items():
        lines = []
        for topic in TOPICS:
            scores = worth[topic] + rng.normal(0, noise, len(DOCS))
            for rank, at in enumerate(np.argsort(-scores)[:20], 1):
                lines.append(f"{topic} Q0 {DOCS[at]} {rank} {scores[at]:.4f} {name}\n")
        (place / "runs" / f"{name}.run.gz").write_bytes(gzip.compress("".join(lines).encode()))
    return place


def called(*words: object) -> Result:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "70"})


def rows_of(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, (result.output, result.exception)
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def test_means_are_those_of_the_measures(folder: Path) -> None:
    scores = duelpool.evaluate(folder / "qrels.txt", folder / "runs", ["nDCG@10", Compat(p=0.8)])
    assert scores.runs == ("fair", "good", "great", "poor")
    run = read_run(folder / "runs" / "good.run.gz")
    values = nDCG(10).calc(record_of(found_grades(folder)), run)
    assert scores.mean("good", "nDCG@10") == pytest.approx(np.mean(list(values.values())))
    assert scores.tables["nDCG@10"].row("good") == pytest.approx(list(values.values()))
    assert scores.tables["nDCG@10"].order() == ["great", "good", "fair", "poor"]
    assert [(row.run, row.measure, row.topic) for row in scores.rows[:2]] == [
        ("fair", "nDCG@10", "all"),
        ("fair", "Compat(p=0.8)", "all"),
    ]
    with pytest.raises(UnknownName, match="no measure in this evaluation called 'AP'"):
        scores.mean("good", "AP")
    with pytest.raises(UnknownName, match="no run called 'bad'"):
        scores.mean("bad", "nDCG@10")


def found_grades(folder: Path) -> pl.DataFrame:
    rows = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
    return pl.DataFrame({"query_id": [r[0] for r in rows], "doc_id": [r[2] for r in rows],
                         "relevance": [int(r[3]) for r in rows]})  # fmt: skip


def test_same_scores_from_paths_patterns_records_and_frames(folder: Path) -> None:
    expected = duelpool.evaluate(folder / "qrels.txt", folder / "runs", "AP").means("AP")
    frames = {name: read_run(folder / "runs" / f"{name}.run.gz").frame for name in expected}
    pandas_frames = {name: pd.DataFrame(frame.to_dict(as_series=False)) for name, frame in frames.items()}
    for truth, runs in (
        (str(folder / "qrels.txt"), str(folder / "runs" / "*.gz")),
        (found_grades(folder), [read_run(folder / "runs" / f"{name}.run.gz") for name in expected]),
        (found_grades(folder).lazy(), frames),
        (pd.DataFrame(found_grades(folder).to_dict(as_series=False)), pandas_frames),
    ):
        assert duelpool.evaluate(truth, runs, "map").means("AP") == pytest.approx(expected)


def test_frames_are_recognised_by_their_columns() -> None:
    won = pl.DataFrame({"topic": ["1"], "winner": ["a"], "loser": ["b"]})
    assert isinstance(record_of(won), Preferences)
    assert isinstance(record_of(pl.DataFrame({"topic": [1], "docno": [2], "score": [0.5]})), Run)
    assert isinstance(record_of(pl.DataFrame({"qid": [1], "docid": [2], "label": [1]})), Qrels)
    outcomes = pl.DataFrame({"topic": ["1"], "left": ["a"], "right": ["b"], "outcome": ["tie"]})
    assert isinstance(record_of(outcomes), Preferences)
    for frame in (pl.DataFrame({"topic": [1]}), pl.DataFrame({"docno": [1]}), "text", 3):
        with pytest.raises(BadParameter):
            record_of(frame)
    with pytest.raises(BadParameter, match="'score' has empty cells"):
        record_of(pl.DataFrame({"topic": [1, 1], "docno": [2, 3], "score": [0.5, float("nan")]}))
    with pytest.raises(BadParameter, match="hold a run"):
        duelpool.evaluate(Qrels.from_grades({"1": {"a": 1}}), {"x": won}, "AP")


def test_grades_and_preferences_side_by_side(folder: Path) -> None:
    both = [folder / "qrels.txt", folder / "prefs.txt"]
    scores = duelpool.evaluate(both, folder / "runs", [*(set(MEASURES) - {"RBO"}), "RBO"][:-1])
    assert set(scores.tables) == set(MEASURES) - {"RBO"}
    for name in ("PGC", "ppref", "wpref", "BestRR", "Compat"):
        assert scores.mean("great", name) > scores.mean("poor", name)
    inferred = duelpool.evaluate(folder / "qrels.txt", folder / "runs", "ppref", rules={"inferred": True})
    assert str(inferred.measures[0]) == "ppref(inferred=True)"
    reference = duelpool.evaluate(folder / "runs" / "great.run.gz", folder / "runs", "RBO(p=0.8)")
    assert reference.tables["RBO(p=0.8)"].order() == ["great", "good", "fair", "poor"]


def test_intervals_tests_and_corrections(folder: Path) -> None:
    scores = duelpool.evaluate(
        folder / "qrels.txt", folder / "runs", ["nDCG@10", "P@5"], baseline="fair", correction="bonferroni",
        interval="bootstrap", level=0.9,
    )  # fmt: skip
    row = scores.row("great", "nDCG@10")
    assert row.low is not None
    assert row.high is not None
    assert row.low < row.value < row.high
    assert row.p is not None
    assert row.p_corrected == pytest.approx(min(1, 3 * row.p))
    assert scores.row("fair", "nDCG@10").p is None
    frame = scores.to_polars()
    columns = ["run", "measure", "topic", "value", "low", "high", "p", "p_corrected", "tag", "file"]
    assert frame.columns == columns
    assert scores.to_polars(by_topic=True).height == 4 * 2 * 12 + 8
    text = str(scores)
    assert "90% interval of the mean (bootstrap)" in text
    assert "against fair: t test, correction bonferroni" in text
    table = text.partition("\n\n")[0].splitlines()  # without its notes
    assert any(line.endswith("**") for line in table)
    assert len({line.index(" [") for line in table[1:]}) == 1  # numbers stand below each other


def test_weights_and_chosen_topics(folder: Path) -> None:
    plain = duelpool.evaluate(folder / "qrels.txt", folder / "runs", "RR")
    values = plain.tables["RR"].row("fair")
    weighed = duelpool.evaluate(folder / "qrels.txt", folder / "runs", "RR", weights={TOPICS[0]: 12.0})
    assert weighed.mean("fair", "RR") == pytest.approx((12 * values[0] + values[1:].sum()) / 23)
    some = duelpool.evaluate(folder / "qrels.txt", folder / "runs", "RR", topics=TOPICS[:2])
    assert some.mean("fair", "RR") == pytest.approx(values[:2].mean())
    with pytest.raises(BadParameter, match="None of the chosen topics"):
        duelpool.evaluate(folder / "qrels.txt", folder / "runs", "RR", topics=["7"])


def test_runs_keep_their_order_whichever_task_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    qrels = Qrels.from_grades({"1": {"d0": 1.0}})
    runs = [
        Run.from_rankings(f"r{at}", {"1": [(f"d{(at - rank) % 9}", -rank) for rank in range(9)]})
        for at in range(9)
    ]
    monkeypatch.setattr("concurrent.futures.as_completed", lambda tasks: reversed(list(tasks)))
    with ThreadPoolExecutor(1) as executor:
        means = duelpool.evaluate(qrels, runs, ["RR"], executor=executor).means("RR")
    assert means == pytest.approx({f"r{at}": 1 / (at + 1) for at in range(9)})


def test_executor_gives_the_same_scores_and_reports_progress(folder: Path) -> None:
    done: list[int] = []
    here = duelpool.evaluate(folder / "qrels.txt", folder / "runs", ["AP", "Compat"], progress=done.append)
    assert done == [1, 1, 1, 1]
    with ThreadPoolExecutor(2) as executor:
        there = duelpool.evaluate(folder / "qrels.txt", folder / "runs", ["AP", "Compat"], executor=executor)
    assert here.to_polars(by_topic=True).equals(there.to_polars(by_topic=True))


def test_runs_are_found_by_tag_and_by_file_in_results_and_options(folder: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    for file, tag in {
        "final.txt": "final.txt",
        "bm25.run": "Anserini",
        "splade.run": "Anserini",
        "one.run": "1st",
    }.items():
        rows = [f"{topic} Q0 {docno} 0 {-at} {tag}" for topic in TOPICS for at, docno in enumerate(DOCS)]
        (runs / file).write_text("".join(f"{row}\n" for row in rows))
    scores = duelpool.evaluate(folder / "qrels.txt", runs, "AP", baseline="final.txt")
    found = {row["run"]: (row["tag"], row["file"]) for row in scores.to_polars().to_dicts()}
    assert found == {
        "final.txt": ("final.txt", str(runs / "final.txt")),
        "bm25": ("Anserini", str(runs / "bm25.run")),
        "splade": ("Anserini", str(runs / "splade.run")),
        "one": ("1st", str(runs / "one.run")),
    }
    assert (
        "3 runs have another tag than their file's name: bm25 (Anserini), one (1st), splade (Anserini)"
        in scores.header
    )
    assert scores.row("1st", "AP").run == scores.row("one.run", "AP").run == "one"
    by_topic = rows_of(
        called(folder / "qrels.txt", runs, "-m", "AP", "--by-topic", "--json", "--baseline", "1st")
    )
    assert {(row["run"], row["tag"], row["file"]) for row in by_topic} == {
        (run, *of_run) for run, of_run in found.items()
    }
    assert all("p" in row for row in by_topic if row["topic"] == "all" and row["run"] != "one")
    csv = called(folder / "qrels.txt", runs, "-m", "AP", "--format", "csv").stdout
    assert csv.splitlines()[0] == "run,measure,topic,value,tag,file"
    with pytest.raises(BadParameter, match="2 runs are called 'Anserini'"):
        duelpool.evaluate(folder / "qrels.txt", runs, "AP", baseline="Anserini")
    (tmp_path / "groups.txt").write_text("final.txt ours\nAnserini theirs\none.run third\n")
    left_out = rows_of(called(folder / "qrels.txt", runs, "-m", "AP", "--report", "leave-out", "--groups",
                              tmp_path / "groups.txt", "--json"))  # fmt: skip
    assert {(row["run"], row["group"]) for row in left_out} == {
        ("final.txt", "ours"), ("bm25", "theirs"), ("splade", "theirs"), ("one", "third"),
    }  # fmt: skip


def test_runs_in_a_mapping_have_its_names(folder: Path) -> None:
    path = folder / "runs" / "good.run.gz"
    scores = duelpool.evaluate(folder / "qrels.txt", {"mine": path, "yours": read_run(path)}, "AP")
    assert scores.runs == ("mine", "yours")
    assert {label.file for label in scores.labels} == {str(path)}


def test_columns_of_a_table_order_equal_scores_alike_or_a_note_says_how(folder: Path) -> None:
    truths, runs = [folder / "qrels.txt", folder / "prefs.txt"], folder / "runs"
    names = ["nDCG@10", "Compat(p=0.8)", "PGC", "ppref", "BestRR", "RBP"]
    assert "equal scores" not in "\n".join(duelpool.evaluate(truths, runs, names).header)
    mixed = duelpool.evaluate(truths, runs, ["nDCG@10", "AP", "PGC(ties='file', scores='double')"])
    note = (
        "equal scores are ordered in 2 ways: nDCG@10, AP by docno descending, compared in single precision; "
        "PGC(ties='file', scores='double') in the order of the file, compared in double precision. "
        "Give --ties and --scores for one order"
    )
    assert note in mixed.header
    assert note in called("--json", folder / "qrels.txt", runs, "-m", "nDCG@10", "-m", "AP", "--preferences",
                          folder / "prefs.txt", "-m", "PGC(ties='file', scores='double')").stderr  # fmt: skip
    one = duelpool.evaluate(truths, runs, names, rules={"ties": "file", "scores": "double"})
    assert "equal scores" not in "\n".join(one.header)


def test_header_has_the_rules_and_what_was_dropped(folder: Path) -> None:
    lacking = Run.from_rankings("lacking", {TOPICS[0]: [(DOCS[0], 1.0), (DOCS[0], 0.5)]})
    scores = duelpool.evaluate([folder / "qrels.txt", folder / "prefs.txt"], [lacking], ["nDCG", "wpref"])
    header = "\n".join(scores.header)
    assert (
        "nDCG by these rules: log 2, gain linear, ties docno-descending, scores single, missing drop, "
        in header
    )
    assert "unjudged keep, duplicates first" in header
    assert "wpref by these rules: votes multiset, inferred False, bad_votes 1, weight lower" in header
    assert "nDCG: 11 of 12 topics dropped" in header
    assert "topics are missing in 1 run: lacking (11)" in header
    zeros = duelpool.evaluate(folder / "qrels.txt", [lacking], "nDCG", rules={"missing": "zero"})
    assert zeros.mean("lacking", "nDCG(missing='zero')") == pytest.approx(scores.mean("lacking", "nDCG") / 12)


def test_one_topic_gives_no_interval_and_the_notes_say_so(folder: Path) -> None:
    words = (folder / "qrels.txt", folder / "runs", "-m", "AP", "--ci", "t")
    assert "[low, high]: 95% interval of the mean (t)" in called(*words).stdout
    single = Run.from_rankings("single", {TOPICS[0]: [(DOCS[0], 1.0)]})
    header = duelpool.evaluate(folder / "qrels.txt", [single], "AP", interval="t").header
    assert "AP: no intervals, for they take two topics or more" in header
    assert not any(line.startswith("[low, high]") for line in header)


def test_a_notebook_shows_a_table(folder: Path) -> None:
    html = duelpool.evaluate(folder / "qrels.txt", folder / "runs", "nDCG@10")._repr_html_()
    assert html.count("<tr>") == 5
    assert '<th scope="row">great</th><td class="n">0.' in html


@pytest.mark.peer("ir_measures")
def test_ir_measures_computes_the_rest_and_the_header_says_so(folder: Path) -> None:
    scores = duelpool.evaluate(folder / "qrels.txt", folder / "runs", ["Rprec", "nDCG@10"])
    assert any("Rprec: not a measure of duelpool, computed by ir_measures" in line for line in scores.header)
    assert scores.tables["Rprec"].order()[0] == "great"


def test_json_rows(folder: Path) -> None:
    rows = rows_of(called(folder / "qrels.txt", folder / "runs", "-m", "nDCG@10", "--json"))
    assert set(rows[0]) == {"run", "measure", "topic", "value", "tag", "file"}
    assert {row["topic"] for row in rows} == {"all"}
    full = rows_of(
        called(folder / "qrels.txt", folder / "runs", "-m", "nDCG@10", "-m", "P_5", "-f", "json",
               "--by-topic", "--baseline", "fair", "--ci", "t", "--correct", "holm", "--test", "wilcoxon")
    )  # fmt: skip
    means = [row for row in full if row["topic"] == "all"]
    assert len(full) == 4 * 2 * 12 + 8
    assert set(means[-1]) == {
        "run",
        "measure",
        "topic",
        "value",
        "low",
        "high",
        "p",
        "p_corrected",
        "tag",
        "file",
    }
    assert [row["value"] for row in means if row["measure"] == "nDCG@10"] == [row["value"] for row in rows]


def test_every_format_prints_the_same_means(folder: Path) -> None:
    words = (folder / "qrels.txt", folder / "runs", "-m", "nDCG@10", "-m", "AP")
    means = {(row["run"], row["measure"]): row["value"] for row in rows_of(called(*words, "--json"))}
    for form in FORMATS:
        result = called(*words, "--format", form)
        assert result.exit_code == 0
        for value in means.values():
            assert f"{value:.4f}" in result.stdout or str(value) in result.stdout
        header = result.stdout if form in ("table", "latex") else result.stderr
        assert "ties docno-descending" in header.replace("\n ", "")
        assert form != "table" or max(len(line) for line in result.stdout.splitlines()) <= 70
    listed = list(csv.DictReader(io.StringIO(called(*words, "-f", "csv").stdout)))
    assert {(row["run"], row["measure"]): float(row["value"]) for row in listed} == means
    trec = [line.split("\t") for line in called(*words, "-f", "trec", "--by-topic").stdout.splitlines()]
    assert [parts[2] for parts in trec if parts[0].strip() == "runid"] == ["fair", "good", "great", "poor"]
    assert len(trec) == 4 * (1 + 2 * 12 + 2)
    table = called(*words).stdout.splitlines()
    assert [line.split()[0] for line in table[1:5]] == ["great", "good", "fair", "poor"]
    assert table[5] == ""  # then the notes
    assert table[6].startswith("nDCG@10 by these rules: ")


def test_preferences_options_and_rules_of_the_command(folder: Path) -> None:
    rows = rows_of(
        called(folder / "prefs.txt", folder / "runs", "-m", "wpref", "--votes", "majority", "--json")
    )
    assert rows[0]["measure"] == "wpref(votes='majority')"
    both = rows_of(
        called(folder / "qrels.txt", folder / "runs", "-m", "nDCG@10", "-m", "PGC", "--preferences",
               folder / "prefs.txt", "--json", "--missing", "zero", "--ties", "file")
    )  # fmt: skip
    assert {row["measure"] for row in both} == {
        "nDCG(ties='file', missing='zero')@10",
        "PGC(ties='file', missing='zero')",
    }
    inferred = rows_of(called(folder / "qrels.txt", folder / "runs", "-m", "ppref", "--inferred", "--json"))
    assert len(inferred) == 4


def test_several_processes_give_the_same_output(folder: Path) -> None:
    words = (folder / "qrels.txt", folder / "runs", "-m", "Compat", "-m", "AP", "--json")
    assert called(*words, "--jobs", "2").stdout == called(*words).stdout


def test_topics_file_weighs_and_chooses(folder: Path, tmp_path: Path) -> None:
    topics = tmp_path / "topics.jsonl"
    rows = [
        {"id": t, "text": "?", "weight": 1 + at, "tags": ["odd" if at % 2 else "even"]}
        for at, t in enumerate(TOPICS)
    ]
    topics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = (folder / "qrels.txt", folder / "runs", "-m", "RR", "--topics", topics, "--json")
    values = duelpool.evaluate(folder / "qrels.txt", folder / "runs", "RR").tables["RR"].row("fair")
    weighed = {row["run"]: row["value"] for row in rows_of(called(*words))}
    assert weighed["fair"] == pytest.approx(np.average(values, weights=range(1, 13)))
    odd = {row["run"]: row["value"] for row in rows_of(called(*words, "--tag", "odd"))}
    assert odd["fair"] == pytest.approx(np.average(values[1::2], weights=range(2, 13, 2)))
    assert isinstance(called(*words, "--tag", "strange").exception, UnknownName)
    assert isinstance(called(*words[:4], "--tag", "odd").exception, BadParameter)


def test_output_goes_to_a_file(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "scores.json"
    assert called(folder / "qrels.txt", folder / "runs", "-m", "AP", "--json", "-o", target).stdout == ""
    assert len(json.loads(target.read_text())) == 4


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_pictures_are_written_and_the_same_each_time(folder: Path, tmp_path: Path, ending: str) -> None:
    words = (folder / "qrels.txt", folder / "runs", "-m", "nDCG@10", "-m", "Compat", "--json")
    for name in ("a", "b"):
        assert called(*words, "--plot", tmp_path / f"{name}.{ending}").exit_code == 0
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_pictures_show_the_scores(folder: Path, tmp_path: Path) -> None:
    scores = duelpool.evaluate(folder / "qrels.txt", folder / "runs", ["nDCG@10", "AP"], interval="t")
    tau = kendall_tau(scores.means("nDCG@10"), scores.means("AP"))
    axes = scatter(scores, "nDCG@10", "AP").axes[0]
    assert f"{tau:.3f}" in axes.get_title()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("nDCG@10", "AP")
    assert len(np.asarray(axes.lines[0].get_xdata())) == 4
    board = leaderboard(scores).axes[0]
    assert [label.get_text() for label in board.get_yticklabels()] == ["poor", "fair", "good", "great"]
    assert len(board.collections) == 1
    with pytest.raises(BadParameter, match=r"\.svg, \.png, \.pdf"):
        save_figure(leaderboard(scores), tmp_path / "picture.gif")


def test_tables_fit_the_terminal_and_text_is_escaped() -> None:
    table = Table(
        ("run", *(f"measure{number}" for number in range(12))), (("a_long&name" * 5, *[0.123456] * 12),)
    )
    text = plain_text(table, width=60)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert text.count("0.1235") == 12
    assert r"a\_long\&name" in latex_text(table)
    assert r"a\_long&name" in markdown_text(table)


def lines(path: Path, *rows: str) -> Path:
    path.write_text("".join(row + "\n" for row in rows))
    return path


def test_kinds_of_files_are_recognised(tmp_path: Path) -> None:
    for kind, rows in {
        "qrels": ("1 0 d1 0", "1 0 d2 1"),
        "preferences": ("1 a b b", "1 c a =", "2 x y x"),
        "run": ("1 Q0 d 1 0.5 tag",),
    }.items():
        assert kind_of(lines(tmp_path / kind, *rows)) == kind
    assert kind_of(lines(tmp_path / "zeros", "1 0 d1 0", "1 0 d2 0")) == "qrels"
    assert kind_of(lines(tmp_path / "winners", "1 a b")) == "preferences"
    assert kind_of(lines(tmp_path / "jsonl", '{"topic": "1"}')) == "preferences"
    with pytest.raises(BadFile, match="has 2 fields"):
        kind_of(lines(tmp_path / "pairs", "a b"))
    with pytest.raises(BadFile, match="comments"):
        kind_of(lines(tmp_path / "comments", "# nothing"))


def test_errors_say_problem_place_and_remedy(folder: Path, tmp_path: Path) -> None:
    qrels, runs = folder / "qrels.txt", folder / "runs"
    stranger = lines(tmp_path / "stranger.run", "7 Q0 d 1 0.5 tag")
    broken = lines(tmp_path / "broken.run", "7 Q0 d 1 high tag")
    (tmp_path / "empty").mkdir()
    cases: list[tuple[type[DuelpoolError], str, tuple[object, ...]]] = [
        (UnknownName, "no measure called 'compact'. Did you mean 'Compat'", (qrels, runs, "-m", "compact")),
        (
            BadRecord,
            "'stranger' shares no topic with the qrels. It has topics such as 7",
            (qrels, stranger, "-m", "AP"),
        ),
        (
            BadFile,
            "broken.run:1: The score of a run must be a number, not 'high'",
            (qrels, broken, "-m", "AP"),
        ),
        (BadFile, "A line of a run has 6 fields", (qrels, qrels, "-m", "AP")),
        (
            BadParameter,
            "This measure needs grades; given: preferences",
            (folder / "prefs.txt", runs, "-m", "AP"),
        ),
        (BadParameter, "write inferred=True", (qrels, runs, "-m", "ppref")),
        (
            UnknownName,
            "no run called 'grate'. Did you mean 'great'",
            (qrels, runs, "-m", "AP", "--baseline", "grate"),
        ),
        (UnknownName, "no test called 'z'", (qrels, runs, "-m", "AP", "--test", "z")),
        (UnknownName, "no correction called 'x'", (qrels, runs, "-m", "AP", "--correct", "x")),
        (UnknownName, "no interval called 'z'", (qrels, runs, "-m", "AP", "--ci", "z")),
        (UnknownName, "no format called 'xml'", (qrels, runs, "-m", "AP", "-f", "xml")),
        (UnknownName, "no kind of file called 'x'", (qrels, runs, "-m", "AP", "--kind", "x")),
        (BadParameter, "known picture format", (qrels, runs, "-m", "AP", "--plot", "x.gif")),
        (
            BadParameter,
            "None of the measures has a rule 'votes'",
            (qrels, runs, "-m", "AP", "--votes", "majority"),
        ),
        (BadFile, "No file matches this pattern", (qrels, tmp_path / "*.gz", "-m", "AP")),
        (BadFile, "The folder holds no files", (qrels, tmp_path / "empty", "-m", "AP")),
        (BadFile, "There is no such file", (qrels, tmp_path / "none.run", "-m", "AP")),
        (
            BadParameter,
            "Two runs are called 'runs/good.run.gz'",
            (qrels, runs / "good.run.gz", runs / "good.run.gz", "-m", "AP"),
        ),
    ]
    for kind, text, words in cases:
        error = called(*words).exception
        assert isinstance(error, kind), (words, error)
        assert text in str(error)
        assert str(error).rstrip()[-1] in ".:')]", str(error)
    with pytest.raises(BadParameter, match="No measure was given"):
        duelpool.evaluate(qrels, runs, [])
    with pytest.raises(BadParameter, match="Two qrels were given"):
        duelpool.evaluate([qrels, qrels], runs, "AP")


def test_runs_of_one_name_get_the_name_of_their_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    copied = tmp_path / "other" / "good.run.gz"
    copied.write_bytes((folder / "runs" / "good.run.gz").read_bytes())
    scores = duelpool.evaluate(folder / "qrels.txt", [folder / "runs" / "good.run.gz", copied], "AP")
    assert scores.runs == ("runs/good", "other/good")


def test_missing_folder_is_an_error(folder: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone" / "scores.csv"
    result = called(folder / "qrels.txt", folder / "runs", "-m", "AP", "--format", "csv", "-o", gone)
    assert isinstance(result.exception, BadFile)


def test_reports_equal_the_functions(folder: Path, tmp_path: Path) -> None:
    words = [folder / "qrels.txt", folder / "runs", "-m", "nDCG@10", "-m", "AP"]
    scores = duelpool.evaluate(folder / "qrels.txt", folder / "runs", ["nDCG@10", "AP"])
    rows = rows_of(called(*words, "--report", "sensitivity", "--json", "--alpha", "0.01"))
    assert [row["measure"] for row in rows] == ["nDCG@10", "AP"]
    for row in rows:
        for column, correction in (("share", "none"), ("holm", "holm"), ("bh", "bh")):
            table = scores.tables[row["measure"]]
            assert row[column] == sensitivity(table, alpha=0.01, correction=correction).share
    assert set(rows_of(called(*words, "--report", "sensitivity", "--test", "tukey", "--json"))[0]) == {
        "measure", "test", "pairs", "told_apart", "share",
    }  # fmt: skip
    (agreed,) = rows_of(called(*words, "--report", "agreement", "--json"))
    means = scores.means("nDCG@10"), scores.means("AP")
    (by_topic,) = measure_agreement(scores.tables)
    assert (agreed["a"], agreed["b"]) == ("nDCG@10", "AP")
    assert (agreed["tau"], agreed["tau_ap"]) == (kendall_tau(*means), tau_ap(*means))
    assert agreed["rbo"] == overlap(*means)
    assert (agreed["pearson"], agreed["same_sign"]) == (by_topic.pearson, by_topic.same_sign)
    pairs = rows_of(called(*words, "--report", "pairs", "--correct", "holm", "--json"))
    assert len(pairs) == 12
    expected = all_pairs(scores.tables["AP"], correction="holm")
    assert [row["p_corrected"] for row in pairs[6:]] == [one.p_corrected for one in expected]
    printed = called(*words, "--report", "pairs", "--test", "tukey")
    assert "tukey test of a - b" in printed.stdout
    assert printed.stdout.count("fair") >= 3
    for form in ("csv", "markdown", "latex"):
        assert "told" in called(*words, "--report", "sensitivity", "--format", form).stdout

    groups = tmp_path / "groups.txt"
    groups.write_text("poor here\nfair here\ngood there\ngreat there\n")
    left = rows_of(called(*words, "--report", "leave-out", "--groups", groups, "--pool-depth", 3, "--json"))
    runs = [replace(read_run(path), name=stem(path)) for path in sorted((folder / "runs").iterdir())]
    of = dict(line.split() for line in groups.read_text().splitlines())
    outcome = leave_group_out(read_qrels(folder / "qrels.txt"), runs, of, nDCG(10), 3)
    assert [(row["run"], row["score_without"], row["place_without"]) for row in left[:4]] == [
        (one.run, one.score_without, one.place_without) for one in outcome
    ]


def test_tukeys_test_marks_the_table(folder: Path) -> None:
    words = [folder / "qrels.txt", folder / "runs", "-m", "nDCG@10", "--baseline", "fair", "--json"]
    rows = {row["run"]: row for row in rows_of(called(*words, "--test", "tukey"))}
    table = duelpool.evaluate(folder / "qrels.txt", folder / "runs", "nDCG@10").tables["nDCG@10"]
    assert {run: row["p"] for run, row in rows.items() if run != "fair"} == {
        one.a: one.p for one in against_baseline(table, "fair", "tukey")
    }


def test_power_from_files_and_from_a_spread(folder: Path) -> None:
    def planned(*words: object) -> Any:
        app = typer.Typer()
        app.command()(power)
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.stdout

    files = [folder / "qrels.txt", folder / "runs", "-m", "AP", "-d", 0.1, "--rounds", 100]
    rows = json.loads(planned(*files, "--baseline", "fair", "--json"))
    table = duelpool.evaluate(folder / "qrels.txt", folder / "runs", "AP").tables["AP"]
    plans = [asdict(one) for one in plan_topics(table, 0.1, "fair", rounds=100)]
    assert [{**row, "any_time": None} for row in rows] == plans
    assert planned(*files).count("\n") == 7
    assert json.loads(planned("-d", 0.05, "--spread", 0.2, "--json")) == [
        {"spread": 0.2, "needed": topics_needed(0.05, 0.2)}
    ]
    assert json.loads(planned("-d", 0.05, "--spread", 0.2, "--topics", 50, "--json"))[0]["power"] < 0.8
    for words in (["-d", 0.05], [*files, "--spread", 0.2], ["-d", 0.05, "--spread", 0.2, "-m", "AP"]):
        with pytest.raises(BadParameter, match="or from a spread"):
            planned(*words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--report", "everything"], "no report called 'everything'"),
        (["--report", "leave-out"], "need each other"),
        (["--groups", "groups.txt"], "need each other"),
        (["--report", "pairs", "--format", "trec"], "no report called pairs"),
        (["--report", "agreement"], "two measures"),
        (["--report", "pairs", "--test", "tukey", "--correct", "holm"], "would correct twice"),
        (["--report", "sensitivity", "--alpha", "5"], "Alpha lies between 0 and 1"),
    ],
)
def test_impossible_reports_are_refused(folder: Path, words: list[str], message: str) -> None:
    result = called(folder / "qrels.txt", folder / "runs", "-m", "AP", *words)
    assert isinstance(result.exception, DuelpoolError)
    assert message in str(result.exception)


def test_package_has_no_other_lazy_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = duelpool.nonsense


def test_each_run_file_is_read_once(folder: Path) -> None:
    script = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == 'open' else None)\n"
        "from duelpool.cli import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        "runs = [name for name in opened if name.endswith('.run.gz')]\n"
        "sys.exit(0 if len(runs) == len(set(runs)) > 1 else f'opened: {sorted(runs)}')\n"
    )
    runs = [str(path) for path in sorted((folder / "runs").iterdir())]
    words = ["evaluate", str(folder / "qrels.txt"), *runs, "-m", "ndcg@10", "-m", "AP"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_intervals_of_shares_stay_between_0_and_1() -> None:
    truth = {"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 1}}
    run = {"1": ["a"], "2": ["a"], "3": ["b", "a"]}
    scores = duelpool.evaluate(truth, {"run": run}, ["RR", "DCG@10"], interval="t")
    rr, dcg = scores.rows
    assert rr.low == pytest.approx(0.116, abs=0.001)
    assert rr.high == 1
    assert dcg.high is not None
    assert dcg.high > 1


def test_at_any_time_topics_count_in_the_order_of_their_last_judgments(folder: Path, tmp_path: Path) -> None:
    """The order of topics in the file decides which looks there were; so a file that only grows keeps its looks."""
    lines = (folder / "qrels.txt").read_text().splitlines(keepends=True)
    turned = tmp_path / "turned.txt"
    turned.write_text("".join(sorted(lines, key=lambda line: -int(line.split()[0]))))
    scores = duelpool.evaluate(folder / "qrels.txt", folder / "runs", "nDCG@10")
    table = scores.tables["nDCG@10"]
    for qrels, topics in ((folder / "qrels.txt", TOPICS), (turned, TOPICS[::-1])):
        ordered = table.only([table.topics.index(topic) for topic in topics])
        call = (
            qrels,
            folder / "runs",
            "-m",
            "nDCG@10",
            "--any-time",
            "--baseline",
            "poor",
            "--correct",
            "bonferroni",
        )
        rows = {row["run"]: row for row in rows_of(called(*call, "--json"))}
        ends = dict(zip(table.runs, anytime_means(ordered).tolist(), strict=True))
        for run in table.runs:
            assert [rows[run]["low"], rows[run]["high"]] == pytest.approx(ends[run])
            assert rows[run]["could_be_first"] == (run not in anytime_behind(ordered))
        assert rows["great"]["p"] == pytest.approx(anytime_difference(ordered, "great", "poor").p)
        assert rows["great"]["p_corrected"] == pytest.approx(min(1, 3 * rows["great"]["p"]))
        assert "p" not in rows["poor"]
    bounded = {row["run"]: row for row in rows_of(called(*call, "--bets", "bounded", "--json"))}
    assert bounded["great"]["p"] != rows["great"]["p"]
    assert "could be first, at every look: great" in called(*call).output
    for more in (("--ci", "t"), ("--test", "wilcoxon"), ("--report", "pairs")):
        refused = called(*call, *more)
        assert isinstance(refused.exception, BadParameter)
        assert "intervals and tests of its own" in str(refused.exception)
