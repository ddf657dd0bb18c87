"""Dedicated people against the crowd, and both against grades: Figures 7 and 8 of the paper."""

from collections import Counter
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from duelpool.files import read_preferences, read_qrels
from duelpool.pooling import build_pools
from duelpool.records import Judgment
from duelpool.simulation import Progress
from duelpool.strategies.phases import is_round_robin, tell_phases
from duelpool.strategies.topk import TopK
from duelpool_reproduce.base import Experiment
from duelpool_reproduce.top_k.collection import (
    BEST_VALUE,
    COMBINED,
    CROWD_JUDGMENTS,
    GRADES,
    LEAST_TOP_VALUE,
    LOCAL,
)
from duelpool_reproduce.verdicts import ComparisonReport, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOP_VALUES = {10, 20, 30, 40, 50}  # of the top five; equal ones share theirs
PLACES = ("1st", "2nd", "3rd", "4th", "5th", "none")


def assessors(
    trials: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path = Path(),
) -> ComparisonReport:
    """Find the dedicated assessors' best among the crowd's top five, and the grades of both."""
    released, local, grades = (read_qrels(data / file).grades() for file in (COMBINED, LOCAL, GRADES))
    tops = {
        topic: {item: value for item, value in of_topic.items() if value >= LEAST_TOP_VALUE}
        for topic, of_topic in released.items()
    }
    topics = [topic for topic, top in tops.items() if top]
    placed = Counter(_place(tops[topic], set(local[topic])) for topic in topics)
    best = [(topic, item) for topic in topics for item, value in tops[topic].items() if value == BEST_VALUE]
    top = [(topic, item) for topic in topics for item in tops[topic]]
    highest = {topic: max(of_topic.values()) for topic, of_topic in grades.items()}
    below = {
        name: Counter(round(highest[topic] - grades[topic][item]) for topic, item in items)
        for name, items in (("top 1", best), ("top 5", top))
    }
    valued = sum(set(tops[topic].values()) <= TOP_VALUES for topic in topics)
    small, round_robins, exact, pruned = rebuilt_levels(data)
    figure7, figure8, levels = (
        "Figure 7: local and crowd",
        "Figure 8: grades of the crowd's best",
        "Released levels",
    )
    two_topics = (
        "Of 173 topics two have one candidate and no crowd judgments: 171 are compared, the paper counts 173."
    )
    rows = [
        Measured("topics compared", None, len(topics), 171, part=figure7),
        Measured("topics with the same best", 63, placed[0], part=figure7),
        Measured("topics with the local best in the crowd's top five", 141, len(topics) - placed[5], part=figure7),
        Measured("topics with the local best outside it", 32, placed[5], 30, part=figure7, why=two_topics),
        Measured("crowd's best answers, ties counted", None, len(best), 265, part=figure8),
        Measured("of them with the highest grade ('over 68 %')", (0.68, 0.69), below["top 1"][0] / len(best), 182 / 265,
                 part=figure8),
        Measured("crowd's top-five answers", None, len(top), 917, part=figure8),
        Measured("of them with the highest grade ('over 61 %')", (0.61, 0.62), below["top 5"][0] / len(top), 565 / 917,
                 part=figure8),
        Measured("topics whose top five have values of 10, 20, ... 50", None, valued, 171, part=levels),
        Measured("topics with at most 9 candidates and judgments", None, small, 78, part=levels),
        Measured("of them one round robin in the file", None, round_robins, 69, part=levels),
        Measured("of those, released levels rebuilt exactly", None, exact, 69, part=levels),
        Measured("of them with extra votes", None, small - round_robins, 9, part=levels),
        Measured("topics whose phases the file has lost", None, pruned, 93, part=levels),
    ]  # fmt: skip

    def draw() -> "Figure":
        from duelpool.plots import Bars, panels

        gaps = sorted(set(below["top 1"]) | set(below["top 5"]))
        series = {
            name: [100 * counts[gap] / counts.total() for gap in gaps] for name, counts in below.items()
        }
        labels = ["top grade", *(f"{gap} below" for gap in gaps[1:])]
        places = {"topics": [placed[at] for at in range(6)]}
        return panels(
            [
                Bars("Figure 7: the local best among the crowd's", "topics", PLACES, places),
                Bars("Figure 8: grades of the crowd's answers", "% of answers", labels, series),
            ]
        )

    remarks = (
        "Equal answers share a place. The released file is sorted by pair, so phases can be read off it only where "
        "there was one round robin.",
    )
    return ComparisonReport("topk-assessors", tuple(rows), draw, remarks, seed=seed)


def _place(top: dict[str, float], best: set[str]) -> int:
    """Return the place of the local best among the crowd's top five, from 0; 5 for none."""
    values = [value for item, value in top.items() if item in best]
    return min(5, round((BEST_VALUE - max(values)) / 10)) if values else 5


def rebuilt_levels(data: Path) -> tuple[int, int, int, int]:
    """Return how many small topics there are, are one round robin, are rebuilt; and how many aren't small."""
    qrels = read_qrels(data / GRADES)
    grades, released = qrels.grades(), read_qrels(data / COMBINED).grades()
    pools = {pool.topic: pool.items for pool in build_pools(qrels=qrels, thin=5).pools}
    by_topic: dict[str, list[Judgment]] = {}
    for judgment in read_preferences(data / CROWD_JUDGMENTS).judgments():
        by_topic.setdefault(judgment.topic, []).append(judgment)
    small = [topic for topic in by_topic if len(pools[topic]) <= 9]
    readable = [topic for topic in small if is_round_robin(by_topic[topic], pools[topic])]
    exact = 0
    for topic in readable:
        strategy = TopK(pools[topic], seed=0, topic=topic)
        tell_phases(strategy, [], [by_topic[topic]])
        exact += strategy.graded_preferences(grades[topic]) == released[topic]
    return len(small), len(readable), exact, len(by_topic) - len(small)


ASSESSORS = Experiment(
    "topk-assessors",
    "Dedicated people against the crowd, and the grades of the crowd's best",
    1,
    1,
    assessors,
    reads=(GRADES, COMBINED, LOCAL, CROWD_JUDGMENTS),
    paper="top-k",
    shows={
        "Figure 7": "the dedicated assessors' best among the crowd's top five",
        "Figure 8": "grades of the crowd's answers",
    },
)
