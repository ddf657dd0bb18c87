"""Answers of TREC's RAG tracks: sentences with citations, one file a system.

The older form has `run_id`, `topic_id` and `topic` beside `references` and `answer`; the newer has them in `metadata`,
as `narrative_id` and `narrative`, and its sentences may be called `responses`. A citation is a place in `references`,
counted from 0, or a document's id; a mapping of ids to scores counts as its ids.
"""

from collections.abc import Mapping
from typing import Any

from duelpool.errors import BadRecord
from duelpool.files.answers.fields import shortened
from duelpool.files.answers.rows import AnswerRow, RowPlace
from duelpool.files.jsonlines import Row, text_of
from duelpool.records import SourceText

_SENTENCES = ("answer", "responses", "response")
_SYSTEM = ("run_id", "rag_run_id", "run_tag", "run", "system")
_ID = ("topic_id", "narrative_id", "request_id", "question_id", "query_id", "qid")
_TEXT = ("topic", "narrative", "title", "problem_statement", "question", "query")


def is_trec_rag(row: Row) -> bool:
    """Whether a row is an answer of sentences with citations."""
    return any(_has_sentences(row.get(name)) for name in _SENTENCES) and (
        "references" in row or isinstance(row.get("metadata"), Mapping)
    )


def _has_sentences(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) and "text" in each for each in value)


def trec_rag_row(row: Row, place: RowPlace) -> AnswerRow:
    """Return the answer: its sentences, each followed by the numbers of what it cites."""
    about = {**row.get("metadata", {}), **row} if isinstance(row.get("metadata"), Mapping) else row
    listed = row.get("references") or []
    references = list(listed) if isinstance(listed, list | Mapping) else [listed]
    sentences = next(row[name] for name in _SENTENCES if _has_sentences(row.get(name)))
    numbers: dict[str, int] = {}
    parts = []
    for sentence in sentences:
        cited = [_document(each, references) for each in _citations(sentence.get("citations"))]
        marks = "".join(f"[{numbers.setdefault(each, len(numbers) + 1)}]" for each in dict.fromkeys(cited))
        text = str(sentence["text"]).strip()
        parts.append(f"{text} {marks}" if marks and text else text or marks)
    named = next((name for name in _ID if name in about), "")
    return AnswerRow(
        place,
        text_of(about, *_SYSTEM),
        " ".join(filter(None, parts)),
        text_of(about, *_ID),
        text_of(about, *(name for name in _TEXT if name != named)),
        sources=tuple(SourceText(document, kind="citation") for document in numbers),
    )


def _citations(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | Mapping) else [value]


def _document(citation: Any, references: list[Any]) -> str:
    """Return the document that a citation names, by its place in the references or by its id."""
    if isinstance(citation, int) and not isinstance(citation, bool):
        if 0 <= citation < len(references):
            return str(references[citation])
        raise BadRecord(
            f'A citation is {citation}, and "references" has {len(references)}.',
            remedy="Citations are places in the references, counted from 0.",
        )
    if isinstance(citation, str) and citation.strip():
        return citation.strip()
    raise BadRecord(
        f'"citations" has {shortened(citation)}.', remedy="A citation is a place in the references, or an id."
    )
