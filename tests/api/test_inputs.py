"""Data in any form: a path, a frame of pandas or polars, a dictionary and a record give the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import duelpool as dp

RANKED = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d4": 2.0, "d5": 1.0}}
GRADES = {"q1": {"d1": 0, "d2": 2, "d3": 1}, "q2": {"d4": 1, "d5": 0}}
ROWS = [(topic, docno, score) for topic, of in RANKED.items() for docno, score in of.items()]


def as_file(folder: Path) -> Path:
    place = folder / "mine.run"
    place.write_text("".join(f"{topic} Q0 {docno} 1 {score} mine\n" for topic, docno, score in ROWS))
    return place


def pyterrier(frame: type) -> Any:
    """A frame as PyTerrier has it: qid, docno, score, rank, and columns of its own."""
    topics, docnos, scores = zip(*ROWS, strict=True)
    ranks = [0, 1, 2, 0, 1]
    columns = {
        "qid": topics,
        "docid": range(5),
        "docno": docnos,
        "rank": ranks,
        "score": scores,
        "query": topics,
    }
    return frame({name: list(values) for name, values in columns.items()})


FORMS: dict[str, Callable[[Path], Any]] = {
    "file": as_file,
    "pandas": lambda _: pyterrier(pd.DataFrame),
    "polars": lambda _: pyterrier(pl.DataFrame),
    "lazy": lambda _: pyterrier(pl.DataFrame).lazy(),
    "rank alone": lambda _: pyterrier(pd.DataFrame).drop(columns="score"),
    "dictionary": lambda _: RANKED,
    "lists": lambda _: {topic: list(of) for topic, of in RANKED.items()},
    "record": lambda folder: dp.read_run(as_file(folder)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_run_gives_the_same_pools_and_scores(form: str, tmp_path: Path) -> None:
    run = FORMS[form](tmp_path)
    assert dp.pool(run, depth=2).to_dict() == {"q1": ["d1", "d2"], "q2": ["d4", "d5"]}
    known = dp.evaluate(GRADES, RANKED, "nDCG@10").rows[0].value
    assert dp.evaluate(GRADES, run, "nDCG@10").rows[0].value == known
    assert dp.evaluate(GRADES, {"mine": run}).runs == ("mine",)


def test_runs_are_named_by_a_dictionary_a_folder_or_a_list(tmp_path: Path) -> None:
    as_file(tmp_path)
    assert [run.name for run in dp.pool({"x": RANKED, "y": as_file(tmp_path)}).runs] == ["x", "y"]
    assert [run.name for run in dp.pool(tmp_path).runs] == ["mine"]
    assert dp.evaluate(GRADES, [pyterrier(pd.DataFrame), pyterrier(pl.DataFrame)]).runs == ("run1", "run2")


def test_grades_preferences_topics_and_texts_come_from_frames(tmp_path: Path) -> None:
    labels = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["d1", "d2"], "label": [2, 0]})
    assert dp.read_qrels(labels).to_dict() == {"q1": {"d1": 2.0, "d2": 0.0}}
    won = pd.DataFrame({"qid": ["q1"], "a": ["d1"], "b": ["d2"], "winner": ["d2"]})
    assert dp.read_preferences(won).to_dict()["outcome"] == ["right"]
    queries = pd.DataFrame({"qid": ["q1"], "query": ["rivers"]})
    assert dp.read_topics(queries).to_dict() == {"q1": "rivers"}
    assert dp.read_topics(list(dp.read_topics(queries))) == dp.read_topics(queries)
    texts = pl.DataFrame({"docno": ["d1", "d2"], "text": ["same", "same"]})
    assert dp.pool({"q1": ["d1", "d2"]}, texts=texts)["q1"].twins == {"d1": ("d2",)}


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: dp.read_run(7), "int can't be read as a run"),
    (lambda: dp.read_run({"q1": 7}), "Give scores by document"),
    (lambda: dp.read_qrels({"q1": 3}), "Give {.q1.: {.d1.: 3}}"),
    (lambda: dp.read_run(pl.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]})), "doesn't hold a run"),
    (
        lambda: dp.read_preferences(pl.DataFrame({"topic": ["1"], "a": ["x"], "b": ["y"], "winner": ["z"]})),
        "'z'",
    ),
    (dp.read_answers, "No answers were given"),
    (dp.pool, "There is nothing to pool"),
    (lambda: dp.pool(RANKED, answers=[{"question": "a"}]), "Give answers alone"),
    (lambda: dp.evaluate(GRADES), "No run was given"),
    (lambda: dp.agreement(7), "int holds no judgments"),
    (lambda: dp.strategy("knockout", "abc"), "Items are a list of ids"),
    (lambda: dp.strategy("knockout", ["a", 1]), "An item's id is a text"),  # type: ignore[list-item]
    (lambda: dp.strategy("knockout", ["a", "a"]), "listed twice"),
    (lambda: dp.strategy("nockout", ["a", "b"]), "Did you mean 'knockout'"),
    (lambda: dp.run(["a", "b"], judge=7), "A judge is a function"),  # type: ignore[arg-type]
    (lambda: dp.run(["a", "b"], judge=lambda topic, a, b: "c"), "Return one of the two items"),
    (lambda: dp.open("no-such.db", create=False), "There is no such store"),
]


@pytest.mark.parametrize(("call", "said"), WRONG, ids=[said for _, said in WRONG])
def test_wrong_data_are_refused_with_a_remedy(
    call: Callable[[], object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dp.DuelpoolError, match=said) as caught:
        call()
    assert caught.value.remedy
    assert list(tmp_path.iterdir()) == []
