"""Runs and grades in, candidates per topic out: depth pooling, filtering, duplicates, thinning.

The steps, in this order: candidates come from the top of the runs, else from preferences, else from the
qrels; items of the same text become one candidate (the item with the highest grade, then the smallest id); items that
the grades call not relevant are left out; the grades are taken from the top down until k items are in.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from duelpool.errors import BadParameter
from duelpool.files import Preferences, Qrels, Run
from duelpool.files.run_names import by_run
from duelpool.frames import counted
from duelpool.records import Passage, Pool


@dataclass(frozen=True, slots=True)
class Contribution:
    """The items that one run, or one group of runs, contributes to the pools."""

    name: str
    items: int
    unique: int  # items that no other run or group contributes


@dataclass(frozen=True, slots=True, repr=False)
class Pools:
    """The pools of all topics, with counts of what was left out or merged."""

    pools: tuple[Pool, ...]
    empty_topics: tuple[str, ...] = ()  # topics that had items, none of which stayed
    ungraded: int = 0  # items left out because the qrels don't grade them
    not_relevant: int = 0  # items left out because their grade is too low
    thinned: int = 0  # items left out because better grades filled the pool
    near_duplicates: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    without_text: tuple[tuple[str, str], ...] = ()  # (topic, item)
    runs: tuple[Contribution, ...] = ()
    groups: tuple[Contribution, ...] = ()
    ungraded_topics: tuple[str, ...] = ()  # in the runs, not in the qrels
    unpooled_topics: tuple[str, ...] = ()  # in the qrels, not in the runs

    def __repr__(self) -> str:
        return f"Pools({counted(len(self.pools), 'topic')}, {counted(self.candidates, 'item')})"

    @property
    def sizes(self) -> dict[str, int]:
        """The number of candidates per topic."""
        return {pool.topic: len(pool) for pool in self.pools}

    @property
    def candidates(self) -> int:
        """The number of candidates over all topics."""
        return sum(map(len, self.pools))

    @property
    def largest(self) -> Pool | None:
        """The pool with the most candidates, the first of them if there are several."""
        return max(self.pools, key=len, default=None)

    @property
    def merged(self) -> int:
        """The number of duplicates that were merged into a candidate."""
        return sum(len(others) for pool in self.pools for others in pool.twins.values())

    @property
    def near_duplicate_items(self) -> int:
        """The number of items of which another item of the topic differs in white space or case only."""
        return sum(len(group) for groups in self.near_duplicates.values() for group in groups)


def build_pools(
    runs: Sequence[Run] = (),
    *,
    qrels: Qrels | None = None,
    preferences: Preferences | None = None,
    depth: int = 10,
    thin: int | None = None,
    relevant_from: float | None = None,
    keep_ungraded: bool = False,
    texts: Mapping[str, Passage] | None = None,
    keep_twins: bool = False,
    groups: Mapping[str, str] | None = None,
    topics: Collection[str] | None = None,
) -> Pools:
    """Build one judging pool a topic.

    With qrels, only items graded above 0 stay (or graded `relevant_from` and more); items without a grade
    leave unless `keep_ungraded`. `thin` takes whole grades, the best first, until a pool holds at least that
    many. With texts, items of one topic with the same text are merged unless `keep_twins`. `topics` restricts
    the work to some topics.
    """
    if depth < 1 or (thin is not None and thin < 1):
        raise BadParameter("A pool's depth and its thinning threshold are whole numbers from 1 on.")
    if thin is not None and qrels is None:
        raise BadParameter(
            "Thinning goes by grades, and there are none.", remedy="Give qrels, or don't thin."
        )
    groups = None if groups is None else by_run(groups, [run.label for run in runs])
    if groups is not None and (strays := [run.name for run in runs if run.name not in groups]):
        raise BadParameter(
            f"The groups don't name the run '{strays[0]}' ({len(strays)} such).",
            remedy="Add a line for each run.",
        )
    grades = qrels.grades() if qrels is not None else {}
    tops = {run.name: _top_items(run, depth) for run in runs}
    candidates = _candidates(tops, preferences, grades)
    if topics is not None:
        candidates = {topic: items for topic, items in candidates.items() if topic in topics}
    rules = _Rules(qrels is not None, thin, relevant_from, keep_ungraded, texts, keep_twins)
    made = [_one_pool(topic, items, grades.get(topic, {}), rules) for topic, items in candidates.items()]
    kept = {each.pool.topic: each for each in made if len(each.pool)}
    return Pools(
        pools=tuple(each.pool for each in kept.values()),
        empty_topics=tuple(each.pool.topic for each in made if not len(each.pool)),
        ungraded=sum(each.ungraded for each in made),
        not_relevant=sum(each.not_relevant for each in made),
        thinned=sum(each.thinned for each in made),
        near_duplicates={topic: each.near_duplicates for topic, each in kept.items() if each.near_duplicates},
        without_text=tuple((topic, item) for topic, each in kept.items() for item in each.without_text),
        runs=_contributions(tops, kept),
        groups=_contributions(_by_group(tops, groups), kept) if groups is not None else (),
        ungraded_topics=tuple(topic for topic in candidates if topic not in grades)
        if qrels is not None
        else (),
        unpooled_topics=tuple(topic for topic in grades if topic not in candidates),
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    graded: bool
    thin: int | None
    relevant_from: float | None
    keep_ungraded: bool
    texts: Mapping[str, Passage] | None
    keep_twins: bool


@dataclass(frozen=True, slots=True)
class _Made:
    pool: Pool
    ungraded: int
    not_relevant: int
    thinned: int
    near_duplicates: tuple[tuple[str, ...], ...]
    without_text: tuple[str, ...]
    candidate_of: Mapping[str, str]  # every item of the pool, duplicates included, to its candidate


def _top_items(run: Run, depth: int) -> dict[str, list[str]]:
    items: dict[str, list[str]] = {}
    for topic, docno in run.top(depth).select("topic", "docno").iter_rows():
        items.setdefault(topic, []).append(docno)
    return items


def _candidates(
    tops: Mapping[str, Mapping[str, Sequence[str]]],
    preferences: Preferences | None,
    grades: Mapping[str, Mapping[str, float]],
) -> dict[str, tuple[str, ...]]:
    by_topic: dict[str, dict[str, None]] = {}  # a dictionary keeps the order of first appearance
    if tops:
        for rankings in tops.values():
            for topic, items in rankings.items():
                by_topic.setdefault(topic, {}).update(dict.fromkeys(items))
    elif preferences is not None:
        for topic, left, right in preferences.frame.select("topic", "left", "right").iter_rows():
            by_topic.setdefault(topic, {}).update({left: None, right: None})
    else:
        by_topic = {topic: dict.fromkeys(items) for topic, items in grades.items()}
    return {topic: tuple(items) for topic, items in by_topic.items()}


def _one_pool(topic: str, items: Sequence[str], grades: Mapping[str, float], rules: _Rules) -> _Made:
    groups: list[tuple[str, ...]] = [(item,) for item in items]
    near: tuple[tuple[str, ...], ...] = ()
    without_text: tuple[str, ...] = ()
    if rules.texts is not None:
        without_text = tuple(item for item in items if not (rules.texts.get(item) and rules.texts[item].text))
        if not rules.keep_twins:
            groups = group_duplicates(items, rules.texts, grades)
        near = near_duplicates([group[0] for group in groups], rules.texts)
    kept = groups
    ungraded = not_relevant = thinned = 0
    if rules.graded:
        graded = [group for group in groups if group[0] in grades]
        ungraded = 0 if rules.keep_ungraded else len(groups) - len(graded)
        relevant = [group for group in graded if _is_relevant(grades[group[0]], rules.relevant_from)]
        not_relevant = len(graded) - len(relevant)
        kept = relevant
        if rules.thin is not None:
            kept = thin_by_grade(relevant, lambda group: grades[group[0]], rules.thin)
            thinned = len(relevant) - len(kept)
        if rules.keep_ungraded:
            kept = kept + [group for group in groups if group[0] not in grades]
    members = tuple(group[0] for group in kept)
    pool = Pool(
        topic,
        members,
        grades={item: grades[item] for item in members if item in grades},
        twins={group[0]: group[1:] for group in kept if len(group) > 1},
    )
    stay = set(members)
    return _Made(
        pool,
        ungraded,
        not_relevant,
        thinned,
        near_duplicates=tuple(
            alike for group in near if len(alike := tuple(item for item in group if item in stay)) > 1
        ),
        without_text=tuple(item for item in without_text if item in stay),
        candidate_of={item: group[0] for group in kept for item in group},
    )


def _is_relevant(grade: float, relevant_from: float | None) -> bool:
    return grade > 0 if relevant_from is None else grade >= relevant_from


T = TypeVar("T")


def thin_by_grade(items: Sequence[T], grade_of: Callable[[T], float], k: int) -> list[T]:
    """Take whole grades, the best first, until k items are in; the items keep their order."""
    counts = Counter(grade_of(item) for item in items)
    lowest, held = float("inf"), 0
    for grade in sorted(counts, reverse=True):
        if held >= k:
            break
        lowest, held = grade, held + counts[grade]
    return [item for item in items if grade_of(item) >= lowest]


def group_duplicates(
    items: Iterable[str], texts: Mapping[str, Passage], grades: Mapping[str, float]
) -> list[tuple[str, ...]]:
    """Group items of exactly the same text; the first of a group is judged for all of them."""
    groups: dict[str, list[str]] = {}
    for item in items:
        passage = texts.get(item)
        # an item without a text has no duplicates
        key = f"item {item}"
        if passage is not None and passage.text:  # an answer with other sources is another answer
            key = f"text {passage.text}" + "".join(map(repr, passage.sources))
        groups.setdefault(key, []).append(item)
    lowest = float("-inf")
    return [
        tuple(sorted(group, key=lambda item: (-grades.get(item, lowest), item))) for group in groups.values()
    ]


def near_duplicates(items: Iterable[str], texts: Mapping[str, Passage]) -> tuple[tuple[str, ...], ...]:
    """Group items whose texts differ only in white space, case or Unicode form: reported, not merged."""
    groups: dict[str, list[str]] = {}
    for item in items:
        passage = texts.get(item)
        if passage is not None and passage.text:
            plain = " ".join(unicodedata.normalize("NFKC", passage.text).casefold().split())
            groups.setdefault(plain, []).append(item)
    return tuple(tuple(sorted(group)) for group in groups.values() if len({texts[i].text for i in group}) > 1)


def _by_group(
    tops: Mapping[str, Mapping[str, Sequence[str]]], groups: Mapping[str, str]
) -> dict[str, dict[str, list[str]]]:
    by_group: dict[str, dict[str, list[str]]] = {}
    for run, rankings in tops.items():
        group = by_group.setdefault(groups[run], {})
        for topic, items in rankings.items():
            group.setdefault(topic, []).extend(items)
    return by_group


def _contributions(
    tops: Mapping[str, Mapping[str, Sequence[str]]], kept: Mapping[str, _Made]
) -> tuple[Contribution, ...]:
    candidates = {
        name: {
            (topic, kept[topic].candidate_of[item])
            for topic, items in rankings.items()
            if topic in kept
            for item in items
            if item in kept[topic].candidate_of
        }
        for name, rankings in tops.items()
    }
    times = Counter(chain.from_iterable(candidates.values()))
    return tuple(
        Contribution(name, len(own), sum(times[each] == 1 for each in own))
        for name, own in candidates.items()
    )
