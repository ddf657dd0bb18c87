"""Topics judged stage by stage, as spending where it helps judges them, with answers replayed from real judgments.

What is asked in a topic depends on that topic alone: ways of spending differ only in how far they take each one. So
each topic of a trial is played once, through all its stages, and every way is read from the same courses.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from duelpool import __version__
from duelpool.arrays import Floats
from duelpool.deciders import StagedTopic, Stake, staged_topic
from duelpool.deciders.staged import stages_of
from duelpool.files import read_run
from duelpool.judges.replayed import Replay
from duelpool.records import Judgment
from duelpool.seeds import rng_for
from duelpool.simulation import Match
from duelpool.strategies.posterior.games import GameTable
from duelpool.strategies.posterior.strengths import strongest
from duelpool.strategies.swissfinals import SwissFinals
from duelpool_reproduce.cells import Cells, described

CAP = 6
PLAIN = (3.5, 7.0)
"""Judgments an item of `swissfinals` without stages: even spending as it is by default."""
SCALE = 10**5  # chances are kept as whole numbers of this


@dataclass(frozen=True, slots=True)
class TopicCourse:
    """One topic of a trial: judgments and the chance of each item to be the best, a row for each stage.

    The first row is before the first judgment. `plain` are those after `PLAIN` judgments an item without stages.
    `answered` are the judgments of all stages, and `recorded` those of them that the file has a judgment of.
    """

    topic: str
    truth: tuple[int, ...]
    judgments: Floats
    chances: Floats
    plain_judgments: Floats
    plain_chances: Floats
    answered: int
    recorded: int

    @property
    def size(self) -> int:
        """How many items the topic has."""
        return int(self.chances.shape[1])

    @property
    def found(self) -> Floats:
        """Whether the likeliest item is the best, for each row; before the first judgment that is chance."""
        right = np.isin(self.chances.argmax(axis=1), self.truth).astype(np.float64)
        right[0] = len(self.truth) / self.size
        return right

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values; chances of 0 are left out."""
        return {
            "topic": self.topic,
            "size": self.size,
            "truth": list(self.truth),
            "judgments": [int(each) for each in self.judgments],
            "chances": _sparse(self.chances),
            "plain_judgments": [int(each) for each in self.plain_judgments],
            "plain_chances": _sparse(self.plain_chances),
            "answered": self.answered,
            "recorded": self.recorded,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "TopicCourse":
        """Return the course that `as_json` gave."""
        size = int(stored["size"])
        return cls(
            str(stored["topic"]),
            tuple(int(each) for each in stored["truth"]),
            np.array(stored["judgments"], dtype=np.float64),
            _dense(stored["chances"], size),
            np.array(stored["plain_judgments"], dtype=np.float64),
            _dense(stored["plain_chances"], size),
            int(stored["answered"]),
            int(stored["recorded"]),
        )


def _sparse(chances: Floats) -> list[dict[str, int]]:
    rows = np.round(chances * SCALE).astype(int)
    return [{str(at): int(row[at]) for at in np.flatnonzero(row)} for row in rows]


def _dense(rows: Sequence[dict[str, int]], size: int) -> Floats:
    chances = np.zeros((len(rows), size))
    for at, row in enumerate(rows):
        for item, share in row.items():
            chances[at, int(item)] = share
    return np.asarray(chances / chances.sum(axis=1, keepdims=True), dtype=np.float64)


class _NeverSettled(Stake):
    """A topic goes through all its stages."""

    def is_slight(self, worth: float) -> bool:
        return False


class _Course(Match):
    """Notes the chances at the end of each stage, and how many answers are of pairs that were really judged."""

    def __init__(self, staged: StagedTopic, replay: Replay, items: tuple[str, ...], seed: int) -> None:
        super().__init__(staged, replay.judge(staged.topic, items, seed), staged.topic, seed)
        self._staged = staged
        self._recorded_pairs = replay.judged_pairs(staged.topic)
        self._ends = stages_of(len(items), CAP)
        self.recorded = 0
        self.judgments = [0]
        self.chances = [staged.chances]

    def after(self, judgment: Judgment) -> None:
        self.recorded += judgment.pair in self._recorded_pairs
        if self.spent in self._ends:
            self.judgments.append(self.spent)
            self.chances.append(self._staged.chances)


def play_topic(replay: Replay, topic: str, items: tuple[str, ...], seed: int) -> TopicCourse:
    """Play a topic through all its stages; and once for each number of `PLAIN`, without stages."""
    judge = replay.judge(topic, items, seed)
    course = _Course(
        staged_topic(SwissFinals.name, items, _NeverSettled(), seed=seed, topic=topic, cap=CAP),
        *(replay, items, seed),
    )
    while course.play_round():
        pass
    played = [_plain(replay, topic, items, seed, per_item) for per_item in PLAIN]
    return TopicCourse(
        topic,
        tuple(sorted(items.index(item) for item in judge.truth.best)),
        np.array(course.judgments, dtype=np.float64),
        np.array(course.chances),
        np.array([judgments for judgments, _ in played], dtype=np.float64),
        np.array([chances for _, chances in played]),
        course.spent,
        course.recorded,
    )


def _plain(
    replay: Replay, topic: str, items: tuple[str, ...], seed: int, per_item: float
) -> tuple[int, Floats]:
    budget = even_judgments(len(items), per_item)
    strategy = SwissFinals(items, seed=seed, topic=topic, cap=CAP, budget=budget)
    match = Match(strategy, replay.judge(topic, items, seed), topic, seed)
    while match.play_round():
        pass
    games = GameTable.among(strategy.table.pairs(), np.arange(len(items)), len(items))
    return match.spent, strongest(games, rng_for(seed, topic, "spending", "plain", budget))


def even_judgments(size: int, per_item: float) -> int:
    """Return what a topic costs at so many judgments an item, within the cap of its pairs."""
    return min(CAP * math.comb(size, 2), math.ceil(per_item * size))


def play_trial(replay: Replay, trial: int, seed: int) -> list[TopicCourse]:
    """Play every topic of a trial."""
    drawn = int(rng_for(seed, "spending", trial).integers(2**31))
    return [play_topic(replay, topic, items, drawn) for topic, items in replay.pools.items()]


def kept_trial(cells: Cells, case: str, replay: Replay, trial: int, seed: int) -> list[TopicCourse]:
    """Return a trial from the folder of results; where it isn't there, play it and keep it."""
    wanted = {
        "duelpool": __version__,
        "strategies": [SwissFinals.version, StagedTopic.version],
        "stages": stages_of(1000, CAP),
        "judges": described(replay),
        "trial": trial,
        "seed": seed,
    }
    name = f"spending-{case.replace(' ', '-')}-seed{seed}-trial{trial:03}.json.gz"
    courses = cells.stored(name, wanted, _courses)
    if courses is None:
        played = {"topics": [each.as_json() for each in play_trial(replay, trial, seed)]}
        cells.keep(name, wanted, played)
        courses = _courses(played)
    return courses


def _courses(stored: dict[str, Any]) -> list[TopicCourse]:
    return [TopicCourse.from_json(each) for each in stored["topics"]]


def run_scores(files: Iterable[Path], pools: dict[str, tuple[str, ...]]) -> dict[str, Floats]:
    """Return the reciprocal rank of each item in each run: for each topic a row a run and a column an item."""
    paths = list(files)
    scores = {topic: np.zeros((len(paths), len(items))) for topic, items in pools.items()}
    places = {topic: {item: at for at, item in enumerate(items)} for topic, items in pools.items()}
    for row, path in enumerate(paths):
        ranked = read_run(path).ranked().select("topic", "docno", "rank")
        for topic, docno, rank in ranked.iter_rows():
            if (at := places.get(topic, {}).get(docno)) is not None:
                scores[topic][row, at] = 1 / rank
    return scores
