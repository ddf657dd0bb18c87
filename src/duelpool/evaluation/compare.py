"""Which of two runs is better, how sure that is, and what to judge next to find out.

On each topic, only the pairs that the two rankings order differently can decide between them. The verdict says whether
the judgments so far settle the sign of the topic's difference, whatever the other judgments will be; over topics the
differences are tested as any two systems' scores are, for a number of topics that is fixed in advance, and on request
in a way that holds at every look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from duelpool.comparison import (
    AnytimeDifference,
    AnytimeMethod,
    ScoreTable,
    anytime_difference,
    difference,
    doubts,
    interval_doubts,
)
from duelpool.errors import BadParameter
from duelpool.files import Preferences, Qrels, Run
from duelpool.frames import Tabular, counted, frame_of
from duelpool.records import Judgment
from duelpool.strategies.difference import AbsoluteDifference, DifferenceVerdict, RankingDifference

PreferenceMeasure: TypeAlias = Literal["ppref", "wpref"]


@dataclass(frozen=True, slots=True)
class TopicVerdict:
    """The verdict on one topic, and what to judge next, the most informative first."""

    topic: str
    verdict: DifferenceVerdict
    judged: int
    done: bool
    ask_next: tuple[tuple[str, ...], ...]  # pairs, or single items to grade


@dataclass(frozen=True, slots=True, repr=False)
class RunComparison(Tabular):
    """Two runs compared: topic by topic, and over all topics."""

    a: str
    b: str
    measure: str
    topics: tuple[TopicVerdict, ...]
    mean_a: float
    mean_b: float
    low: float | None  # of the mean difference a - b, over topics with judgments
    high: float | None
    p: float | None
    doubt: str = ""  # why p may be too small, or the interval too short
    any_time: AnytimeDifference | None = None  # the same over the topics that are done, right at every look

    def __repr__(self) -> str:
        gap = f"{self.mean_a - self.mean_b:+.4f}"
        ends = "" if self.low is None or self.high is None else f" [{self.low:+.4f}, {self.high:+.4f}]"
        p = "" if self.p is None else f", p {self.p:.3g}"
        topics = counted(len(self.topics), "topic")
        return f"RunComparison({self.a} - {self.b} by {self.measure}: {gap}{ends}{p}, {topics})"

    def to_polars(self) -> pl.DataFrame:
        """Return a row a topic: both scores, the bounds of their difference, who leads, and what is judged."""
        rows = (
            (
                *(each.topic, each.verdict.a, each.verdict.b, each.verdict.low, each.verdict.high),
                *({"a": self.a, "b": self.b}.get(each.verdict.leader), each.judged, each.done),
            )
            for each in self.topics
        )
        numbers = dict.fromkeys(("a", "b", "low", "high"), "Float64")
        rest = {"leader": "String", "judged": "Int64", "done": "Boolean"}
        return frame_of(rows, {"topic": "String", **numbers, **rest})

    def won_by(self, leader: str) -> int:
        """Return on how many topics the sign is settled for "a", for "b", or not yet ("")."""
        return sum(each.verdict.leader == leader for each in self.topics)


def compare_runs(
    a: Run,
    b: Run,
    *,
    preferences: Preferences | None = None,
    qrels: Qrels | None = None,
    measure: PreferenceMeasure = "ppref",
    depth: int = 10,
    ask: int = 3,
    seed: int = 1,
    any_time: AnytimeMethod | None = None,
) -> RunComparison:
    """Compare two runs to a depth, from preferences, or from grades (by DCG) when qrels are given.

    With `any_time` ("symmetric" or "bounded") they are also compared in a way that holds at every look while judgments
    arrive: over the topics that are done, in the order of their last judgments.
    """
    if preferences is not None and qrels is not None:
        raise BadParameter("Preferences and qrels are two ways to judge.", remedy="Give one of them.")
    rankings_a, rankings_b = _rankings(a, depth), _rankings(b, depth)
    shared = [topic for topic in rankings_a if topic in rankings_b]
    if not shared:
        raise BadParameter(
            f"'{a.name}' and '{b.name}' share no topic.", remedy="Check that the files belong together."
        )
    if qrels is not None:
        grades = qrels.grades()
        highest = max(1, *(int(grade) for of_topic in grades.values() for grade in of_topic.values()))
        by_grades = [
            _by_grades(
                topic, rankings_a[topic], rankings_b[topic], grades.get(topic, {}), highest=highest, ask=ask
            )
            for topic in shared
        ]
        compared = _over_topics(a.name, b.name, f"DCG@{depth}", by_grades)
        return _at_any_time(compared, qrels.frame.get_column("topic").to_list(), any_time)
    judgments = _by_topic(preferences)
    by_pairs = [
        _by_pairs(
            topic,
            rankings_a[topic],
            rankings_b[topic],
            judgments.get(topic, ()),
            measure=measure,
            ask=ask,
            seed=seed,
        )
        for topic in shared
    ]
    compared = _over_topics(a.name, b.name, measure, by_pairs)
    arrived = [] if preferences is None else preferences.frame.get_column("topic").to_list()
    return _at_any_time(compared, arrived, any_time)


def _rankings(run: Run, depth: int) -> dict[str, list[str]]:
    rows = run.top(depth).unique(["topic", "docno"], keep="first", maintain_order=True)
    rankings: dict[str, list[str]] = {}
    for topic, docno in rows.select("topic", "docno").iter_rows():
        rankings.setdefault(topic, []).append(docno)
    return rankings


def _by_topic(preferences: Preferences | None) -> dict[str, list[Judgment]]:
    judgments: dict[str, list[Judgment]] = {}
    for judgment in preferences.judgments() if preferences is not None else ():
        judgments.setdefault(judgment.topic, []).append(judgment)
    return judgments


def _by_pairs(
    topic: str,
    a: Sequence[str],
    b: Sequence[str],
    judgments: Sequence[Judgment],
    *,
    measure: PreferenceMeasure,
    ask: int,
    seed: int,
) -> TopicVerdict:
    strategy = RankingDifference(
        tuple(dict.fromkeys((*a, *b))), seed=seed, topic=topic, run_a=a, run_b=b, measure=measure
    )
    for judgment in judgments:
        strategy.tell(judgment)
    ask_next = tuple(proposal.pair for proposal in strategy.ask(ask))
    return TopicVerdict(topic, strategy.verdict(), len(judgments), strategy.done, ask_next)


def _by_grades(
    topic: str, a: Sequence[str], b: Sequence[str], grades: Mapping[str, float], *, highest: int, ask: int
) -> TopicVerdict:
    items = tuple(dict.fromkeys((*a, *b)))
    strategy = AbsoluteDifference(items, run_a=a, run_b=b, highest_grade=highest)
    judged = [item for item in items if item in grades]
    for item in judged:
        strategy.tell(item, grades[item])
    ask_next = tuple((item,) for item in strategy.ask(ask))
    return TopicVerdict(topic, strategy.verdict(), len(judged), strategy.done, ask_next)


def _over_topics(a: str, b: str, measure: str, topics: Sequence[TopicVerdict]) -> RunComparison:
    known = [each for each in topics if each.judged]
    scores = {side: {each.topic: getattr(each.verdict, side) for each in known} for side in ("a", "b")}
    mean_a, mean_b = (fmean(scores[side].values()) if known else 0.0 for side in ("a", "b"))
    low = high = p = None
    doubt = ""
    if len(known) > 1:
        p = difference(ScoreTable.of(scores), "a", "b").p
        doubt = "".join(doubts(ScoreTable.of(scores)))
        gaps = {topic: scores["a"][topic] - scores["b"][topic] for topic in scores["a"]}
        between = ScoreTable.of({"a - b": gaps})
        (low, high), *_ = between.intervals()
        doubt = doubt or "".join(interval_doubts(between))
    return RunComparison(a, b, measure, tuple(topics), mean_a, mean_b, low, high, p, doubt)


def _at_any_time(
    compared: RunComparison, arrived: Sequence[str], method: AnytimeMethod | None
) -> RunComparison:
    """Compare over the topics that are done, in the order of their last judgments."""
    if method is None:
        return compared
    last = {topic: at for at, topic in enumerate(arrived)}
    done = sorted(
        (each for each in compared.topics if each.judged and each.done), key=lambda each: last[each.topic]
    )
    scores = {side: {each.topic: getattr(each.verdict, side) for each in done} for side in ("a", "b")}
    limits = (-np.inf, np.inf) if compared.measure.startswith("DCG") else (0.0, 1.0)
    table = replace(ScoreTable.of(scores), limits=limits)
    found = anytime_difference(table, "a", "b", method=method)
    doubt = compared.doubt or "".join(doubts(table, method))
    return replace(compared, any_time=replace(found, a=compared.a, b=compared.b), doubt=doubt)
