"""Scoring runs, one file at a time, in this process or in others, with the same result."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duelpool.arrays import Floats
from duelpool.errors import BadRecord
from duelpool.evaluation.sources import RunSource, run_of
from duelpool.files import Run
from duelpool.files.notices import Notice
from duelpool.files.run_names import RunLabel
from duelpool.measures import Measure, ReadyRun, Truth
from duelpool.measures.truth import Record

if TYPE_CHECKING:
    from concurrent.futures import Executor

_CHUNK = 4  # runs a task: few enough for a progress bar, enough to share the work of making the truth ready


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """One run's values: an array per measure, in the order of that measure's topics."""

    values: tuple[Floats, ...]
    notices: tuple[Notice, ...]
    lacks: int  # topics of the truth that the run hasn't
    label: RunLabel  # what the run is called


def score_run(truth: Truth, source: RunSource, measures: Sequence[Measure]) -> Scored:
    """Score one run with every measure."""
    ready = ReadyRun(run_of(source))
    topics = ready.rankings("keep").topics
    _refuse_disjoint_topics(truth, topics, ready.run.name, source)
    values = tuple(measure.values(truth, ready) for measure in measures)
    known = {topic for measure in measures for topic in measure.items(truth).topics}
    return Scored(values, ready.run.notices, len(known.difference(topics)), ready.run.label)


def _refuse_disjoint_topics(truth: Truth, topics: Sequence[str], name: str, source: RunSource) -> None:
    for what, theirs in truth.topics().items():
        if theirs.isdisjoint(topics):
            raise BadRecord(
                f"The run '{name}' shares no topic with the {what}.",
                place=name if isinstance(source, Run) else os.fspath(source),
                remedy=f"It has topics such as {', '.join(topics[:3])}; the {what}: "
                f"{', '.join(sorted(theirs)[:3])}. Check that both are of one collection.",
            )


def _score_chunk(
    records: Sequence[Record], sources: Sequence[RunSource], measures: Sequence[Measure]
) -> list[Scored]:
    truth = Truth.of(records)
    return [score_run(truth, source, measures) for source in sources]


def score_runs(
    truth: Truth,
    sources: Sequence[RunSource],
    measures: Sequence[Measure],
    executor: "Executor | None" = None,
    progress: Callable[[int], None] | None = None,
) -> list[Scored]:
    """Score all runs, in their order; `progress` is called with the number of runs just scored."""
    tell = progress or (lambda _: None)
    if executor is None:
        return list(_one_by_one(truth, sources, measures, tell))
    from concurrent.futures import as_completed

    records = truth.records()
    starts = range(0, len(sources), _CHUNK)
    tasks = {
        executor.submit(_score_chunk, records, sources[start : start + _CHUNK], measures): start
        for start in starts
    }
    results: dict[int, list[Scored]] = {}
    for task in as_completed(tasks):
        results[tasks[task]] = task.result()
        tell(len(results[tasks[task]]))
    return [scored for start in starts for scored in results[start]]


def _one_by_one(
    truth: Truth, sources: Sequence[RunSource], measures: Sequence[Measure], tell: Callable[[int], None]
) -> Iterator[Scored]:
    for source in sources:
        yield score_run(truth, source, measures)
        tell(1)
