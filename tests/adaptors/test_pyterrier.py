"""PyTerrier's frames: results become runs, pools and scores; live where PyTerrier is installed."""

import sys
from typing import Any

import pandas
import pytest

from duelpool.adaptors.pyterrier import pooled, run_of, scored, scores_of
from duelpool.errors import BadParameter, MissingExtra

TOPICS = pandas.DataFrame({"qid": ["1", "2"], "query": ["what", "why"]})
QRELS = pandas.DataFrame(
    {"qid": ["1", "1", "1", "2", "2"], "docno": ["a", "b", "c", "d", "e"], "label": [2, 0, 1, 1, 0]}
)


def results(*orders: str) -> Any:
    rows = [
        (str(at), docno, float(-rank), rank)
        for at, order in enumerate(orders, 1)
        for rank, docno in enumerate(order)
    ]
    return pandas.DataFrame(rows, columns=["qid", "docno", "score", "rank"])


def test_results_are_scored_topic_by_topic() -> None:
    scores = scores_of(results("abc", "ed"), QRELS, ["nDCG@10", "RR"])
    assert list(scores.columns) == ["qid", "nDCG@10", "RR"]
    assert scores["qid"].tolist() == ["1", "2"]
    assert scores["RR"].tolist() == [1.0, 0.5]


def test_results_without_scores_keep_their_ranks_and_others_are_refused() -> None:
    ranked = results("cab").drop(columns="score")
    assert run_of(ranked, "x").ranked().get_column("docno").to_list() == ["c", "a", "b"]
    for lacking in ("qid", "docno"):
        with pytest.raises(BadParameter, match=f"no column '{lacking}'"):
            run_of(results("abc").drop(columns=lacking), "x")
    with pytest.raises(BadParameter, match="no column 'score'"):
        run_of(results("abc").drop(columns=["score", "rank"]), "x")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyterrier", None)
    with pytest.raises(MissingExtra, match=r"duelpool\[pyterrier\]"):
        scored(QRELS, "RR")


@pytest.mark.peer("pyterrier")
@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_gives_the_scores_of_pyterrier() -> None:
    import pyterrier

    found = results("bac", "ed")
    pipeline = pyterrier.Transformer.from_df(found)
    ours = (pipeline >> scored(QRELS, ["nDCG", "AP", "P@2"]))(TOPICS)
    theirs = pyterrier.Evaluate(found, QRELS, metrics=["ndcg", "map", "P_2"], perquery=True)
    for row in ours.itertuples(index=False):
        assert list(row)[1:] == pytest.approx([theirs[row[0]][name] for name in ("ndcg", "map", "P_2")])


@pytest.mark.peer("pyterrier")
@pytest.mark.filterwarnings("ignore")
def test_pipelines_are_pooled_by_depth_and_agreement() -> None:
    import pyterrier

    one, other = (
        pyterrier.Transformer.from_df(each) for each in (results("abc", "de"), results("bxy", "df"))
    )
    pool = pooled(one, other, depth=2)(TOPICS)
    assert list(pool.columns) == ["qid", "query", "docno", "score", "rank"]
    assert pool[pool.qid == "1"].docno.tolist() == ["b", "a", "x"]
    assert pool[pool.qid == "2"].docno.tolist() == ["d", "f", "e"]
    assert pool["rank"].tolist() == [0, 1, 2, 0, 1, 2]
    assert set(pool["query"]) == {"what", "why"}
    with pytest.raises(BadParameter):
        pooled(depth=2)
