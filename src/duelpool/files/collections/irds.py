"""Datasets of ir_datasets: qrels, scored documents, queries and documents, by the name that ir_datasets gives them."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from duelpool.errors import BadFile, MissingExtra, known_names

_TITLED = ("title", "headline")


def irds_rows(name: str, what: str, only: Collection[str] | None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset that a reader wants, with columns that it knows."""
    try:
        import ir_datasets
    except ImportError:
        raise MissingExtra("ir_datasets", "irds") from None
    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        remedy = known_names(
            name,
            [each for each in ir_datasets.registry if each.split("/")[0] == name.split("/", maxsplit=1)[0]],
        )
        raise BadFile.at(f"irds:{name}", None, "ir_datasets has no such dataset.", remedy) from None
    part = {
        "run": "scoreddocs",
        "qrels": "qrels",
        "truth": "qrels",
        "topics": "queries",
        "passages": "docs",
    }.get(what)
    if part is None or not getattr(dataset, f"has_{part}")():
        has = [
            each for each in ("docs", "queries", "qrels", "scoreddocs") if getattr(dataset, f"has_{each}")()
        ]
        raise BadFile.at(
            f"irds:{name}",
            None,
            f"The dataset has no {part or what}: it has {', '.join(has) or 'nothing that is read here'}.",
            "Name another dataset, or a file.",
        )
    if part == "docs":
        return _docs(dataset, only)
    return {"scoreddocs": _scored, "qrels": _graded, "queries": _queries}[part](dataset)


def _scored(dataset: Any) -> Iterator[dict[str, Any]]:
    for row in dataset.scoreddocs_iter():
        yield {"topic": row.query_id, "docno": row.doc_id, "score": row.score}


def _graded(dataset: Any) -> Iterator[dict[str, Any]]:
    for row in dataset.qrels_iter():
        yield {"topic": row.query_id, "docno": row.doc_id, "grade": row.relevance}


def _queries(dataset: Any) -> Iterator[dict[str, Any]]:
    for row in dataset.queries_iter():
        about = {key: getattr(row, key) for key in ("description", "narrative") if getattr(row, key, None)}
        yield {"id": row.query_id, "text": row.default_text(), **about}


def _docs(dataset: Any, only: Collection[str] | None) -> Iterator[dict[str, Any]]:
    docs: Iterable[Any] = dataset.docs_iter()
    if only is not None:
        docs = dataset.docs_store().get_many(set(only)).values()
    for row in docs:
        passage = {"id": row.doc_id, "text": _body(row)}
        title = next((getattr(row, key) for key in _TITLED if getattr(row, key, None)), "")
        url = getattr(row, "url", "")
        yield {**passage, **({"title": title} if title else {}), **({"url": url} if url else {})}


def _body(row: Any) -> str:
    """Return a document's text without its title, where it has a field for that."""
    for key in ("text", "body", "abstract"):
        if isinstance(text := getattr(row, key, None), str) and text:
            return text
    return str(row.default_text())
