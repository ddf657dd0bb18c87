"""Whole result pages as items: the first results of a run for a topic, so that systems are compared as lists."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from duelpool.errors import BadParameter
from duelpool.files import Passages, Run
from duelpool.files.answers import item_id
from duelpool.records import Passage, SourceText
from duelpool.setup.inputs import Inputs

SNIPPET = 300
"""Characters of a text that a page shows of a result."""


def as_pages(inputs: Inputs, depth: int) -> Inputs:
    """Return inputs in which each run has one item a topic: the page of its first `depth` results."""
    if inputs.texts is None:
        raise BadParameter(
            "Result pages show titles and snippets, and there are no texts.",
            remedy="Give them with --texts FILE.",
        )
    if inputs.qrels is not None or inputs.preferences is not None:
        raise BadParameter("Result pages are of runs alone.", remedy="Leave out grades and preferences.")
    runs: list[Run] = []
    passages: dict[str, Passage] = {}
    copies: Counter[str] = Counter()
    for run in inputs.runs:
        rankings: dict[str, list[tuple[str, float]]] = {}
        for topic, documents in _first(run, depth).items():
            sources = tuple(_result(document, inputs.texts.by_id) for document in documents)
            text = page_text(sources)
            plain = item_id(topic, text, sources)
            copies[plain] += 1
            item = item_id(topic, text, sources, copies[plain])
            passages[item] = Passage(item, text, format="markdown", sources=sources)
            rankings[topic] = [(item, 1.0)]
        runs.append(Run.from_rankings(run.name, rankings))
    return replace(inputs, runs=tuple(runs), texts=Passages(passages))


def _first(run: Run, depth: int) -> dict[str, list[str]]:
    pages: dict[str, list[str]] = {}
    for topic, document in run.top(depth).select("topic", "docno").iter_rows():
        pages.setdefault(topic, []).append(document)
    return pages


def _result(document: str, texts: Mapping[str, Passage]) -> SourceText:
    passage = texts.get(document)
    if passage is None:
        return SourceText(document, kind="result")
    return SourceText(document, snippet_of(passage.text), passage.title, passage.url, "result")


def snippet_of(text: str) -> str:
    """Return the beginning of a text, up to a word's end."""
    plain = " ".join(text.split())
    if len(plain) <= SNIPPET:
        return plain
    return f"{plain[:SNIPPET].rsplit(' ', 1)[0]} …"


def page_text(results: Sequence[SourceText]) -> str:
    """Return a page as Markdown: a numbered list of titles and snippets; a result without a text shows its id."""
    rows = []
    for at, each in enumerate(results, 1):
        title = f"**{_plain(each.title)}**  \n   " if each.title else ""
        rows.append(f"{at}. {title}{_plain(each.text or each.id)}")
    return "\n".join(rows)


def _plain(text: str) -> str:
    """Return a text whose signs Markdown leaves alone."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()#+-.!|<>~" else sign for sign in text)
