"""Real files: read with correct notices only, and written back equal."""

from pathlib import Path

import pytest

from duelpool.files import (
    read_passages,
    read_preferences,
    read_qrels,
    read_run,
    read_topics,
    write_preferences,
    write_qrels,
    write_run,
)
from duelpool.files.columns import read_fast, read_tolerant
from duelpool.files.runs import RUN_LAYOUT
from duelpool.files.source import read_source


@pytest.mark.long
@pytest.mark.parametrize(
    ("folder", "count"),
    [
        ("dl21/runs", 63),
        ("trec8/runs-top100", 129),
        ("cast19/runs-decaf", 16),
        ("cast19/runs-thunlp", 7),
        ("cast19/runs-eiriksak", 2),
    ],
)
def test_every_run_reads_without_notices_and_every_third_writes_back_equal(
    data: Path, tmp_path: Path, folder: str, count: int
) -> None:
    paths = sorted((data / folder).iterdir())
    assert len(paths) == count
    for at, path in enumerate(paths):
        run = read_run(path)
        assert run.notices == (), path.name
        docnos, scores = run.row_keys().docnos.read(), run.scores()
        source = read_source(path)
        fast = read_fast(source, RUN_LAYOUT)
        assert fast is not None, f"{path.name} is regular"
        assert docnos == fast.frame.get_column("docno").to_list(), path.name
        assert scores.tolist() == fast.frame.get_column("score").to_list(), path.name
        if at % 3 == 0:
            write_run(tmp_path / "again.run", run)
            assert read_run(tmp_path / "again.run") == run, path.name
        if at % 10 == 0:  # the tolerant path takes its time: a tenth of the files will do
            assert fast.frame.equals(read_tolerant(source, RUN_LAYOUT).frame), path.name


@pytest.mark.parametrize(
    ("name", "rows", "topics", "complaints"),
    [
        ("dl21/qrels.dl21-passage.txt", 10828, 53, 0),
        ("dl21/umbrela_gpt4_dl21.qrels.gz", 10828, 53, 0),
        ("dl21/Set-I.qrels", 75, 50, 0),
        ("cast19/2019qrels.txt", 29350, 173, 0),
        ("cast19/TREC-CAsT-2019.qrels", 29350, 173, 0),
        ("cast19/TREC-CAST-2019.local.qrels", 173, 173, 0),
        ("cast19/train_topics_mod.qrel", 2397, 120, 2),  # two documents are truly graded twice
        ("trec8/trec8.qrels.gz", 86830, 50, 0),
    ],
)
def test_qrels_read_and_write_back_equal(
    data: Path, tmp_path: Path, name: str, rows: int, topics: int, complaints: int
) -> None:
    qrels = read_qrels(data / name)
    assert (len(qrels), len(qrels.topics)) == (rows, topics)
    assert sum(notice.count for notice in qrels.notices) == complaints
    write_qrels(tmp_path / "again.gz", qrels)
    assert read_qrels(tmp_path / "again.gz") == qrels


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "rows", "topics"),
    [
        ("dl21/judgments.txt", 11681, 50),
        ("dl21/gpt4o-prefs/judge.00.gz", 22731, 53),
        ("cast19/TREC-CAsT-2019.pref", 14573, 171),
        ("cast19/TREC-CAsT-2019.local.pref", 3743, 171),
    ],
)
def test_preferences_read_and_write_back_equal(
    data: Path, tmp_path: Path, name: str, rows: int, topics: int
) -> None:
    preferences = read_preferences(data / name)
    assert (len(preferences), len(preferences.topics)) == (rows, topics)
    assert preferences.notices == ()
    for form in ("pairs", "jsonl"):
        write_preferences(tmp_path / "again", preferences, form)
        assert read_preferences(tmp_path / "again") == preferences


def test_cast_grades_are_as_counted_in_the_paper(data: Path) -> None:
    grades = read_qrels(data / "cast19" / "2019qrels.txt").frame.get_column("grade").to_list()
    assert [grades.count(grade) for grade in (4, 3, 2, 1, 0)] == [1618, 1456, 2157, 2889, 21230]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("dl21/questions.tsv", 50),
        ("dl21/test-queries.tsv", 477),
        ("cast19/evaluation_topics_annotated_resolved_v1.0.tsv", 479),
        ("cast19/evaluation_topics_v1.0.json", 479),
        ("crowdrag25/queries.tsv", 65),
        ("ukpconvarg1/topics.tsv", 32),
    ],
)
def test_topics_read(data: Path, name: str, count: int) -> None:
    topics = read_topics(data / name)
    assert len(topics) == count
    assert all(topic.text and topic.text == topic.text.strip() for topic in topics)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("dl21/passages_text.tsv.gz", 10824),
        ("crowdrag25/responses.jsonl.gz", 390),
        ("ukpconvarg1/arguments.tsv.gz", 1052),
    ],
)
def test_passages_read(data: Path, name: str, count: int) -> None:
    passages = read_passages(data / name)
    assert len(passages) == count
    assert all(passage.text for passage in passages)
