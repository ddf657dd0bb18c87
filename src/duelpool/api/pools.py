"""`dp.pool`: the candidates of each topic, with what is known of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import polars as pl

from duelpool.api.inputs import (
    Data,
    as_runs,
    is_path,
    read_answers,
    read_passages,
    read_preferences,
    read_qrels,
    read_topics,
)
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import Answers, Passages, Preferences, Qrels, Run, Topics, read_pools
from duelpool.frames import Tabular, counted, frame_of, html_table
from duelpool.pooling import Pools, build_pools
from duelpool.records import UNNAMED, Pool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PoolSet(Mapping[str, Pool], Tabular):
    """The pools of all topics, with the runs, questions and texts that they come from.

    It reads like a dictionary from topics to pools. `made` counts what was left out or merged.
    """

    made: Pools
    runs: tuple[Run, ...] = ()
    topics: Topics | None = None
    texts: Passages | None = None
    qrels: Qrels | None = None
    preferences: Preferences | None = None
    answers: Answers | None = None
    _by_topic: dict[str, Pool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_topic.update({each.topic: each for each in self.made.pools})

    def __getitem__(self, topic: str) -> Pool:
        if topic not in self._by_topic:
            raise UnknownName("topic in the pools", topic, self._by_topic)
        return self._by_topic[topic]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_topic)

    def __len__(self) -> int:
        return len(self._by_topic)

    def __contains__(self, topic: object) -> bool:
        return topic in self._by_topic

    def __repr__(self) -> str:
        systems = counted(len(self.runs), "system" if self.answers is not None else "run")
        return f"PoolSet({counted(len(self), 'topic')}, {counted(self.made.candidates, 'item')}, {systems})"

    def _repr_html_(self) -> str:
        rows = [
            (topic, self.question(topic), len(pool), sum(map(len, pool.twins.values())))
            for topic, pool in self._by_topic.items()
        ]
        kinds = {"topic": "String", "question": "String", "items": "Int64", "duplicates": "Int64"}
        return html_table(frame_of(rows, kinds), repr(self))

    def text(self, item: str) -> str:
        """Return the text of an item; empty where none was given."""
        passage = None if self.texts is None else self.texts.by_id.get(item)
        return "" if passage is None else passage.text

    def question(self, topic: str) -> str:
        """Return the text of a topic; its id where none was given."""
        known = None if self.topics is None else self.topics.by_id.get(topic)
        return topic if known is None else known.text

    def to_polars(self) -> pl.DataFrame:
        """Return a row an item: topic, item, grade, duplicates."""
        return pl.concat([pool.to_polars() for pool in self._by_topic.values()])

    def to_dict(self) -> dict[str, Any]:
        """Return the items by topic."""
        return {topic: list(pool.items) for topic, pool in self._by_topic.items()}


def pool(
    runs: Data = None,
    *,
    answers: Data = None,
    qrels: Data = None,
    preferences: Data = None,
    topics: Data = None,
    texts: Data = None,
    depth: int = 10,
    thin: int | None = None,
    relevant_from: float | None = None,
    keep_ungraded: bool = False,
    keep_duplicates: bool = False,
    groups: Mapping[str, str] | None = None,
) -> PoolSet:
    """Return the items to judge, topic by topic: the first of each run, or the answers of systems.

    `runs` are files, a folder, a pattern, data frames or a dictionary by name. With `qrels`, items without a grade
    above 0 are left out; `thin` takes whole grades, the best first, until a pool holds that many. With `texts`,
    items of the same text become one.

    >>> import duelpool as dp
    >>> pools = dp.pool({"a": {"q1": ["d1", "d2"]}, "b": {"q1": ["d2", "d3"]}})
    >>> pools
    PoolSet(1 topic, 3 items, 2 runs)
    >>> pools["q1"].items
    ('d1', 'd2', 'd3')
    """
    known = None if topics is None else read_topics(topics)
    passages = None if texts is None else read_passages(texts)
    if answers is not None:
        if runs is not None or qrels is not None or preferences is not None:
            raise BadParameter(
                "Answers make the pools, and there are runs, grades or preferences beside them.",
                remedy="Give answers alone, with topics for the questions.",
            )
        given = read_answers(answers)
        return PoolSet(
            build_pools(given.runs, depth=1, texts=given.passages.by_id, keep_twins=keep_duplicates),
            given.runs,
            known or given.topics,
            given.passages,
            answers=given,
        )
    read = [] if runs is None else as_runs(runs)
    grades = None if qrels is None else read_qrels(qrels)
    judged = None if preferences is None else read_preferences(preferences)
    if not read and grades is None and judged is None:
        raise BadParameter("There is nothing to pool.", remedy="Give runs, answers, qrels or preferences.")
    made = build_pools(
        read,
        qrels=grades,
        preferences=judged,
        depth=depth,
        thin=thin,
        relevant_from=relevant_from,
        keep_ungraded=keep_ungraded,
        texts=None if passages is None else passages.by_id,
        keep_twins=keep_duplicates,
        groups=groups,
    )
    if not made.pools:
        raise BadParameter("No topic has an item.", remedy="Check that all files have the same topics.")
    return PoolSet(made, tuple(read), known, passages, grades, judged)


def as_pools(value: Data) -> PoolSet:
    """Return pools from a PoolSet, a pool, a file of pools, items by topic, or a list of items."""
    if isinstance(value, PoolSet):
        return value
    if isinstance(value, Pool):
        pools: tuple[Pool, ...] = (value,)
    elif is_path(value):
        pools = read_pools(cast("str", value))
    elif isinstance(value, Mapping):
        pools = tuple(
            of if isinstance(of, Pool) else Pool(str(topic), checked_items(of)) for topic, of in value.items()
        )
    else:
        pools = (Pool(UNNAMED, checked_items(value)),)
    return PoolSet(Pools(pools))


def checked_items(items: Data) -> tuple[str, ...]:
    """Return items as a tuple of ids; refuse what isn't one."""
    if isinstance(items, Pool):
        return items.items
    if isinstance(items, str) or not hasattr(items, "__iter__"):
        raise BadParameter(
            f"Items are a list of ids, not {items!r}.", remedy='Give them as ["d1", "d2", "d3"].'
        )
    listed = tuple(items)
    if wrong := [each for each in listed if not isinstance(each, str) or not each]:
        raise BadParameter(f"An item's id is a text, not {wrong[0]!r}.", remedy="Use str(...) of it.")
    if len(set(listed)) != len(listed):
        raise BadParameter("An item is listed twice.", remedy="Keep one of them.")
    return listed
