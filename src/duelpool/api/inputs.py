"""Data as users have them: paths, data frames of pandas and polars, dictionaries, lists, or records."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import polars as pl

from duelpool import files
from duelpool.errors import BadParameter
from duelpool.evaluation.sources import polars_frame, record_of, run_of, run_sources
from duelpool.files import Answers, Passages, Preferences, Qrels, Run, Topics
from duelpool.files.paths import is_store
from duelpool.files.source import Source
from duelpool.records import Judgment, Passage, Topic

if TYPE_CHECKING:
    from duelpool.api.campaigns import OpenCampaign

Data: TypeAlias = object
"""A path ("-" is standard input), a data frame, a dictionary, a list of rows, or a record that was read before."""

T = TypeVar("T")


def is_path(value: object) -> bool:
    """Whether a value names a file."""
    return isinstance(value, str | os.PathLike)


def is_frame(value: object) -> bool:
    """Whether a value is a data frame."""
    return isinstance(value, pl.DataFrame | pl.LazyFrame) or type(value).__module__.startswith("pandas")


def with_campaign(source: object, work: "Callable[[OpenCampaign], T]") -> T | None:
    """Run work on an open campaign, or on the only one of a store that is named; None where it is neither."""
    named = isinstance(source, str | os.PathLike) and is_store(os.fspath(source))
    if not named and type(source).__name__ != "OpenCampaign":  # nothing of a store is imported
        return None
    from duelpool.api import campaigns

    if isinstance(source, campaigns.OpenCampaign):
        return work(source)
    with campaigns.open(cast("str", source), create=False) as store:
        return work(store.campaign())


def read_run(source: Data, name: str = "") -> Run:
    """Read one system's rankings: a run file, a data frame, or scores by topic and document.

    A frame has the columns topic (or qid), docno and score (or rank), as PyTerrier's results do.

    >>> import duelpool as dp
    >>> dp.read_run({"q1": {"d1": 2.0, "d2": 1.0}}, name="mine")
    Run('mine', 1 topic, 2 rows)
    """
    if isinstance(source, Run):
        made = source
    elif is_path(source):
        made = files.read_run(cast("str", source))
    elif isinstance(source, Mapping):
        made = Run.from_rankings(name or "run", {str(topic): _scores(of) for topic, of in source.items()})
    else:
        made = _record(source, Run, "a run", "qid, docno and score", name or "run")
    return replace(made, name=name) if name and made.name != name else made


def _scores(of: object) -> list[tuple[str, float]]:
    if isinstance(of, Mapping):
        return [(str(docno), float(score)) for docno, score in of.items()]
    if isinstance(of, list | tuple) and all(isinstance(each, str) for each in of):
        return [(docno, float(len(of) - at)) for at, docno in enumerate(of)]  # the best first
    raise BadParameter(
        f"The ranking of a topic is a {type(of).__name__}.",
        remedy='Give scores by document, {"d1": 2.5}, or a list of documents, the best first.',
    )


def read_qrels(source: Data) -> Qrels:
    """Read grades: a qrels file, a data frame, or grades by topic and document.

    >>> import duelpool as dp
    >>> dp.read_qrels({"q1": {"d1": 3, "d2": 0}}).to_dict()
    {'q1': {'d1': 3.0, 'd2': 0.0}}
    """
    if isinstance(source, Qrels):
        return source
    if is_path(source):
        return files.read_qrels(cast("str", source))
    if isinstance(source, Mapping):
        if not all(isinstance(of, Mapping) for of in source.values()):
            raise BadParameter("Grades are by topic and document.", remedy='Give {"q1": {"d1": 3}}.')
        return Qrels.from_grades(
            {str(topic): {str(docno): grade for docno, grade in of.items()} for topic, of in source.items()}
        )
    return _record(source, Qrels, "grades", "qid, docno and label")


def read_preferences(source: Data) -> Preferences:
    """Read who was preferred to whom: a file in any form, a data frame, judgments, or rows of dictionaries.

    >>> import duelpool as dp
    >>> dp.read_preferences([{"topic": "q1", "winner": "d1", "loser": "d2"}])
    Preferences(1 topic, 1 judgment)
    """
    if isinstance(source, Preferences):
        return source
    if is_path(source):
        return files.read_preferences(cast("str", source))
    if isinstance(source, list | tuple) and source and all(isinstance(each, Judgment) for each in source):
        return Preferences.from_judgments(source)
    return _record(source, Preferences, "preferences", "topic, winner and loser")


def read_topics(source: Data) -> Topics:
    """Read topics: a file in any form, a data frame (qid, query), or texts by id.

    >>> import duelpool as dp
    >>> dp.read_topics({"q1": "Which river is the longest?"})
    Topics(1 topic)
    """
    if isinstance(source, Topics):
        return source
    return files.read_topics(_readable(source, Topic, ("id", "text"), "topics"))


def read_passages(source: Data) -> Passages:
    """Read the texts of items: a file, a data frame (docno, text), or texts by id.

    >>> import duelpool as dp
    >>> dp.read_passages({"d1": "The Nile.", "d2": "The Amazon."}).to_dict()["d1"]
    'The Nile.'
    """
    if isinstance(source, Passages):
        return source
    return files.read_passages(_readable(source, Passage, ("id", "text"), "passages"))


def read_answers(*sources: Data, fields: Mapping[str, str] | None = None) -> Answers:
    """Read answers of systems to questions: files in any form, data frames, or rows of dictionaries.

    `fields` leads from question, system and answer to the names in the data.

    >>> import duelpool as dp
    >>> rows = [{"question": "How long is the Nile?", "system": name, "answer": text}
    ...         for name, text in (("small", "Long."), ("large", "About 6,650 km."))]
    >>> dp.read_answers(rows)
    Answers(2 systems, 1 question, 2 answers)
    """
    if len(sources) == 1 and isinstance(sources[0], Answers):
        return sources[0]
    if not sources:
        raise BadParameter("No answers were given.", remedy="Give files, data frames or lists of rows.")
    read = [
        cast("str", each) if is_path(each) else json_lines(_rows(each, "answers"), f"answers {at}")
        for at, each in enumerate(sources, 1)
    ]
    return files.read_answers(read, fields)


def as_runs(value: Data) -> list[Run]:
    """Return one run or several: files, a folder, a pattern, frames, or a dictionary by name (or of one run)."""
    if isinstance(value, Mapping):
        if any(_is_ranking(of) for of in value.values()):
            return [read_run(value)]
        return [read_run(each, str(name)) for name, each in value.items()]
    several = value if isinstance(value, list | tuple) else [value]
    rows = [each for each in several if isinstance(each, Mapping)]
    if rows and len(rows) == len(several):
        return [read_run(pl.DataFrame(rows))] if "docno" in rows[0] else [read_run(each) for each in rows]
    runs: list[Run] = []
    for each in several:
        if is_path(each) or isinstance(each, Run):
            runs += map(run_of, run_sources(cast("str", each)))
        else:
            runs.append(read_run(each, "" if len(several) == 1 else f"run{len(runs) + 1}"))
    return runs


def _is_ranking(of: object) -> bool:
    """Whether a value is one topic's ranking: scores by document, or a list of documents."""
    if isinstance(of, Mapping):
        return any(isinstance(score, int | float) for score in of.values())
    return isinstance(of, list | tuple) and all(isinstance(each, str) for each in of)


def _record(source: Data, kind: type[T], what: str, columns: str, name: str = "run") -> T:
    """Return the record that a frame or rows of dictionaries hold, or say which columns it needs."""
    frame = polars_frame(source) if is_frame(source) else pl.DataFrame(_rows(source, what))
    made = record_of(frame, name)
    if not isinstance(made, kind):
        raise BadParameter(
            f"A frame with the columns {', '.join(frame.columns)} doesn't hold {what}.",
            remedy=f"Name the columns {columns}.",
        )
    return made


def _rows(source: Data, what: str) -> list[dict[str, Any]]:
    if is_frame(source):
        return polars_frame(source).to_dicts()
    if isinstance(source, list | tuple) and source and all(isinstance(each, Mapping) for each in source):
        return [dict(each) for each in source]
    raise BadParameter(
        f"A {type(source).__name__} can't be read as {what}.",
        remedy="Give a path, a data frame of pandas or polars, a list of dictionaries, or a record.",
    )


def _readable(source: Data, kind: type, names: tuple[str, str], what: str) -> str | Source:
    """Return what a reader of lines takes: the path, or the data as JSON lines."""
    if is_path(source):
        return os.fspath(cast("str", source))
    rows: Iterable[Mapping[str, Any]]
    if isinstance(source, Mapping):
        rows = [{names[0]: str(key), names[1]: text} for key, text in source.items()]
    elif isinstance(source, list | tuple) and source and all(isinstance(each, kind) for each in source):
        rows = [asdict(each) for each in source]
    else:
        rows = _rows(source, what)
    return json_lines(rows, what)


def json_lines(rows: Iterable[Mapping[str, Any]], name: str) -> Source:
    """Return rows as the JSON lines of a file, so that one reader checks both; empty cells are left out."""
    lines = [
        json.dumps({str(key): each for key, each in row.items() if each is not None}, default=str)
        for row in rows
    ]
    return Source(name, "\n".join(lines).encode())
