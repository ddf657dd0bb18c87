"""PyTerrier: a transformer that pools the results of pipelines, and one that scores results, without Java.

from duelpool.adaptors.pyterrier import pooled, scored
candidates = pooled(bm25, dense, depth=10)          # qid, query, docno, score, rank
scores = (bm25 >> scored(qrels, ["nDCG@10", "RR"]))(topics)
"""

from collections.abc import Sequence
from typing import Any

from duelpool.errors import BadParameter, MissingExtra
from duelpool.evaluation import evaluate
from duelpool.files import Run
from duelpool.measures import Measure


def pooled(*pipelines: Any, depth: int = 10) -> Any:
    """Return a transformer from topics to the pool of the pipelines' first `depth` documents of each topic.

    A document's score is the number of pipelines that have it, less a fraction for its best rank: documents that more
    pipelines agree on come first.
    """
    terrier = _terrier()
    if not pipelines or depth < 1:
        raise BadParameter("A pool needs one pipeline or more, and a depth from 1 on.")

    class PoolTransformer(terrier.Transformer):  # type: ignore[misc,name-defined]
        """Pools the results of pipelines."""

        def transform(self, topics: Any) -> Any:
            """Run the pipelines over the topics, and return the pool."""
            runs = [run_of(pipeline(topics), f"pipeline-{at}") for at, pipeline in enumerate(pipelines, 1)]
            return _pool(topics, runs, depth)

    return PoolTransformer()


def scored(truth: Any, measures: "str | Measure | Sequence[str | Measure]") -> Any:
    """Return a transformer from results to their scores: a row a topic, a column a measure.

    `truth` is a frame of qrels (`qid, docno, label`), a path, or what `duelpool.evaluate` takes.
    """
    terrier = _terrier()
    listed = [measures] if isinstance(measures, str | Measure) else list(measures)

    class ScoreTransformer(terrier.Transformer):  # type: ignore[misc,name-defined]
        """Scores results by Duelpool's measures."""

        def transform(self, results: Any) -> Any:
            """Score the results."""
            return scores_of(results, truth, listed)

    return ScoreTransformer()


def scores_of(results: Any, truth: Any, measures: Sequence[str | Measure]) -> Any:
    """Return the scores of results as a data frame: `qid`, and a column for each measure."""
    import pandas

    evaluation = evaluate(truth, run_of(results, "results"), list(measures))
    tables = list(evaluation.tables.items())
    columns: dict[str, Any] = {"qid": list(tables[0][1].topics)}
    for name, table in tables:
        known = dict(zip(table.topics, table.row("results").tolist(), strict=True))
        columns[name] = [known.get(topic) for topic in columns["qid"]]
    return pandas.DataFrame(columns)


def run_of(results: Any, name: str) -> Run:
    """Return results (`qid, docno` and `score` or `rank`) as a run; without scores, ranks give the order."""
    columns = set(results.columns)
    if missing := sorted({"qid", "docno"} - columns) or ([] if columns & {"score", "rank"} else ["score"]):
        raise BadParameter(
            f"The results have no column '{missing[0]}'.",
            remedy="A pipeline's results have qid, docno, score and rank.",
        )
    scores = results["score"] if "score" in columns else -results["rank"]
    rankings: dict[str, list[tuple[str, float]]] = {}
    for qid, docno, score in zip(results["qid"], results["docno"], scores, strict=True):
        rankings.setdefault(str(qid), []).append((str(docno), float(score)))
    return Run.from_rankings(name, rankings)


def _pool(topics: Any, runs: Sequence[Run], depth: int) -> Any:
    import pandas

    best: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        for topic, docno, rank in run.top(depth).select("topic", "docno", "rank").iter_rows():
            best.setdefault((topic, docno), []).append(rank)
    texts = dict(zip(topics["qid"].astype(str), topics["query"], strict=True)) if "query" in topics else {}
    rows = [
        {
            "qid": topic,
            "query": texts.get(topic, ""),
            "docno": docno,
            "score": len(ranks) - min(ranks) / (depth + 1),
        }
        for (topic, docno), ranks in best.items()
    ]
    frame = pandas.DataFrame(rows, columns=["qid", "query", "docno", "score"])
    frame = frame.sort_values(["qid", "score", "docno"], ascending=[True, False, False], kind="stable")
    frame["rank"] = frame.groupby("qid").cumcount()
    return frame.reset_index(drop=True)


def _terrier() -> Any:
    try:
        import pyterrier
    except ImportError:
        raise MissingExtra("pyterrier", "pyterrier") from None
    return pyterrier
