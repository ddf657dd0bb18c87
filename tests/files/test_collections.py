"""Datasets and Parquet wherever a file is taken: the same records as from text files, and clear errors."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.errors import BadFile, MissingExtra
from duelpool.evaluation.sources import read_truth
from duelpool.files import (
    Run,
    read_answers,
    read_passages,
    read_qrels,
    read_run,
    read_topics,
    read_votes,
    write_qrels,
    write_run,
)

RUN = "1 Q0 a 1 3.5 bm\n1 Q0 b 2 2.25 bm\n2 Q0 c 1 1.0 bm\n2 Q0 a 2 0.5 bm\n"
QRELS = "1 0 a 2\n1 0 b 0\n2 0 c 1\n2 0 a 1\n"
TOPICS = "1\twhat is a pool\n2\twho wins a duel\n"
PASSAGES = "a\tA pool holds water.\nb\tA bridge.\nc\tThe better one.\nd\tNot in any run.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"bm.run": RUN, "x.qrels": QRELS, "topics.tsv": TOPICS, "texts.tsv": PASSAGES}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


# ---- Parquet


def test_runs_and_qrels_read_back_from_parquet(folder: Path) -> None:
    run, qrels = read_run(folder / "bm.run"), read_qrels(folder / "x.qrels")
    write_run(folder / "bm.parquet", run)
    write_qrels(folder / "x.parquet", qrels)
    assert read_run(folder / "bm.parquet") == run
    assert read_qrels(folder / "x.parquet") == qrels
    assert read_truth(folder / "x.parquet") == qrels
    assert isinstance(read_truth(folder / "bm.parquet"), Run)
    assert pl.read_parquet(folder / "bm.parquet").columns == ["topic", "docno", "score", "rank", "tag"]


@pytest.mark.parametrize(
    "columns",
    [
        ("qid", "docno", "score", "name"),
        ("query_id", "doc_id", "score", "run"),
        ("query-id", "corpus-id", "sim", "tag"),
    ],
)
def test_usual_names_of_columns_are_known(folder: Path, columns: tuple[str, ...]) -> None:
    rows = [line.split() for line in RUN.splitlines()]
    table = [(row[0], row[2], float(row[4]), row[5]) for row in rows]
    pl.DataFrame(table, schema=list(columns), orient="row").write_parquet(folder / "t.parquet")
    assert read_run(folder / "t.parquet") == read_run(folder / "bm.run")


def test_a_run_with_ranks_alone_keeps_their_order(folder: Path) -> None:
    pl.DataFrame({"qid": [1, 1], "docno": ["x", "y"], "rank": [2, 1]}).write_parquet(folder / "r.parquet")
    assert read_run(folder / "r.parquet").ranked().get_column("docno").to_list() == ["y", "x"]


def test_topics_and_passages_come_from_parquet(folder: Path) -> None:
    pl.DataFrame({"qid": ["1"], "query": ["what is a pool"]}).write_parquet(folder / "t.parquet")
    assert read_topics(folder / "t.parquet").by_id["1"].text == "what is a pool"
    pl.DataFrame({"docno": ["a"], "text": ["A pool."]}).write_parquet(folder / "p.parquet")
    assert read_passages(folder / "p.parquet").by_id["a"].text == "A pool."


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"qid": ["1"], "score": [1.0]}, "no column for the document; the columns are qid, score"),
        ({"qid": ["1"], "docno": ["a"]}, "no column for the score"),
        ({"qid": ["1"], "docno": ["a"], "score": ["high"]}, "'high' is no number"),
        ({"qid": ["a b"], "docno": ["a"], "score": [1.0]}, "a b"),
    ],
)
def test_parquet_without_a_needed_column_is_refused(
    folder: Path, table: dict[str, Any], problem: str
) -> None:
    pl.DataFrame(table).write_parquet(folder / "t.parquet")
    with pytest.raises(BadFile, match=problem):
        read_run(folder / "t.parquet")


def test_damaged_parquet_is_refused(folder: Path) -> None:
    (folder / "t.parquet").write_bytes(b"PAR1" + bytes(40))
    with pytest.raises(BadFile, match="damaged"):
        read_qrels(folder / "t.parquet")


# ---- ir_datasets


@pytest.fixture
def irds(folder: Path) -> Iterator[str]:
    """Register a dataset of the files in the folder."""
    import ir_datasets
    from ir_datasets.formats import TrecQrels, TrecScoredDocs, TsvDocs, TsvQueries
    from ir_datasets.util import LocalDownload

    def local(name: str) -> Any:
        return LocalDownload(folder / name)

    parts = (
        TsvDocs(local("texts.tsv")),
        TsvQueries(local("topics.tsv")),
        TrecQrels(local("x.qrels"), {}),
        TrecScoredDocs(local("bm.run")),
    )
    ir_datasets.registry.register("duelpool-tiny", ir_datasets.Dataset(*parts))
    yield "irds:duelpool-tiny"
    ir_datasets.registry._registered.pop("duelpool-tiny", None)


@pytest.mark.peer("ir_datasets")
def test_irds_gives_the_records_of_the_files(folder: Path, irds: str) -> None:
    assert read_run(irds).frame.equals(read_run(folder / "bm.run").frame)
    assert read_qrels(irds) == read_qrels(folder / "x.qrels") == read_truth(irds)
    assert read_topics(irds).by_id == read_topics(folder / "topics.tsv").by_id
    assert read_passages(irds).by_id == read_passages(folder / "texts.tsv").by_id


@pytest.mark.peer("ir_datasets")
def test_irds_and_files_give_identical_pools(
    folder: Path, irds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pools, the questions and the texts of two campaigns; the texts of other documents aren't fetched."""
    monkeypatch.chdir(folder)
    made = {}
    for name, words in {
        "files": ("bm.run", "--qrels", "x.qrels", "--topics", "topics.tsv", "--texts", "texts.tsv"),
        "irds": (irds, "--qrels", irds, "--topics", irds, "--texts", irds),
    }.items():
        done = CliRunner().invoke(app, ["pool", *words, "-o", f"{name}.db", "--json", "--name", "x"])
        assert done.exit_code == 0, done.output
        told = CliRunner().invoke(app, ["status", f"{name}.db", "--json"])
        made[name] = (pools(f"{name}.db"), told.output)
    assert made["files"] == made["irds"]


def pools(store: str) -> Any:
    from sqlalchemy import select

    from duelpool.campaign import Campaign
    from duelpool.store import open_store, schema

    with open_store(store) as opened:
        campaign = Campaign.open(opened, None)
        kept: list[str] = []
        for table in (schema.item, schema.passage, schema.topic):
            columns = [column for column in table.columns if column.name != "campaign"]
            rows = campaign.read(lambda tx, columns=columns: tx.connection.execute(select(*columns)).all())  # type: ignore[misc]
            kept += sorted(map(str, rows))
        return kept


@pytest.mark.peer("ir_datasets")
def test_irds_scores_runs(folder: Path, irds: str) -> None:
    scores = [
        CliRunner().invoke(app, ["evaluate", truth, str(folder / "bm.run"), "-m", "nDCG@10", "--json"]).output
        for truth in (irds, str(folder / "x.qrels"))
    ]
    assert scores[0].partition('"runs"')[2] == scores[1].partition('"runs"')[2]


@pytest.mark.peer("ir_datasets")
def test_irds_says_what_it_lacks(irds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import ir_datasets

    with pytest.raises(BadFile, match="no such dataset"):
        read_qrels("irds:no-such-thing")
    docs = ir_datasets.Dataset()
    monkeypatch.setattr(ir_datasets, "load", lambda name: docs)
    with pytest.raises(BadFile, match="has no qrels: it has nothing"):
        read_qrels("irds:empty")

    class Offline:
        def has_qrels(self) -> bool:
            return True

        def qrels_iter(self) -> Any:
            raise ConnectionError("name resolution failed")

    monkeypatch.setattr(ir_datasets, "load", lambda name: Offline())
    with pytest.raises(BadFile, match=r"can't be loaded \(name resolution failed\).*needs the network"):
        read_qrels("irds:far")


# ---- Hugging Face


@pytest.fixture
def hugging_face(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(folder / "cache"))
    datasets.disable_progress_bars()
    return folder


@pytest.mark.peer("datasets")
@pytest.mark.filterwarnings("ignore")
def test_hugging_face_gives_the_records_of_the_files(hugging_face: Path) -> None:
    import datasets

    rows = [line.split() for line in QRELS.splitlines()]
    table = {"query-id": [row[0] for row in rows], "corpus-id": [row[2] for row in rows]}
    graded = datasets.Dataset.from_dict({**table, "score": [int(row[3]) for row in rows]})
    whole = hugging_face / "whole"
    datasets.DatasetDict({"test": graded}).save_to_disk(whole)
    assert read_qrels(f"hf:{whole}") == read_qrels(hugging_face / "x.qrels")
    data = hugging_face / "data"
    data.mkdir()
    write_run(data / "train.parquet", read_run(hugging_face / "bm.run"))
    assert read_run(f"hf:{data}").frame.equals(read_run(hugging_face / "bm.run").frame)
    two = hugging_face / "two"
    datasets.DatasetDict({"a": graded, "b": graded}).save_to_disk(two)
    assert len(read_qrels(f"hf:{two}:b")) == 4
    for name, problem in ((f"hf:{two}", "several splits"), (f"hf:{two}:c", "no split 'c'.*a, b")):
        with pytest.raises(BadFile, match=problem):
            read_qrels(name)


@pytest.mark.peer("datasets")
@pytest.mark.filterwarnings("ignore")
def test_votes_and_answers_come_from_hugging_face(hugging_face: Path) -> None:
    import datasets

    votes = datasets.Dataset.from_dict({"model_a": ["x"], "model_b": ["y"], "winner": ["model_a"]})
    votes.save_to_disk(hugging_face / "votes")
    assert read_votes(f"hf:{hugging_face / 'votes'}").votes[0].outcome == "a"
    given = {"question": ["Why?"] * 2, "system": ["x", "y"], "answer": ["So.", "Thus."]}
    datasets.Dataset.from_dict(given).save_to_disk(hugging_face / "answers")
    assert len(read_answers([f"hf:{hugging_face / 'answers'}"]).runs) == 2


@pytest.mark.peer("datasets")
def test_no_network_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def offline(*_: Any) -> None:
        raise ConnectionError("Couldn't reach the hub")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(BadFile, match=r"can't be loaded \(Couldn't reach the hub\).*network"):
        read_topics("hf:someone/something")


# ---- without the extras


@pytest.mark.parametrize(("name", "package"), [("irds:x", "ir_datasets"), ("hf:a/b", "datasets")])
def test_a_missing_extra_is_named(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"'{package}'.*pip install 'duelpool\["):
        read_qrels(name)


def test_a_file_that_no_dataset_has_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["pool", "--prefs", "irds:x", "-o", str(tmp_path / "x.db")])
    assert done.exit_code == 2
    assert "name a file" in done.output
