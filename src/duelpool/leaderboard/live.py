"""A leaderboard that is kept up to date: after a judgment only its topic is scored again.

`leaderboard` scores a campaign once, from its whole log. `LiveLeaderboard` returns the same figures again and again,
and more: which runs could still be first, the history, and the means by tag.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from duelpool.arrays import Floats
from duelpool.background import give_way, locked, start_in_background
from duelpool.campaign.log.many_topics import line_times
from duelpool.campaign.log.replay import TopicState
from duelpool.campaign.log.topic_cache import TopicCache
from duelpool.campaign.views.status import CampaignStatus
from duelpool.campaign.views.summaries import has_slow_results
from duelpool.campaign.views.watch import Watch
from duelpool.comparison import ScoreTable, anytime_behind
from duelpool.errors import DuelpoolError, UnknownName
from duelpool.evaluation import measures_of
from duelpool.files import Preferences
from duelpool.leaderboard.board import SIGNIFICANT, Board, BoardRow, board_rows, figure_of, with_noise
from duelpool.leaderboard.labelled import LabelledTopic, RunByTopic, labelled_at, labelled_now
from duelpool.leaderboard.live_noise import LiveNoise, MakeFigures, SlowFigures, has_label_noise
from duelpool.leaderboard.noise import label_noise
from duelpool.leaderboard.scoring import duplicates_of, make_labels, runs_of, topic_weights
from duelpool.measures import Measure, ReadyRun, Truth
from duelpool.store import holdings, log

T = TypeVar("T")

POINTS = 16
"""How many points a history has at most."""

SLOW_POINTS = 5
"""The same where results take long: each point takes one of every topic."""

_TOPICS_AT_ONCE = 500  # are scored, then requests have their turn

AT_ONCE = 3000
"""The history of a log with up to this many lines is worked out at once; that of a longer one in a thread."""

MEASURES_KEPT = 16
"""Measures whose scores are kept; beyond, the one that was first asked for goes."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The runs' means over the topics of one tag, the best first."""

    tag: str
    topics: int
    means: tuple[tuple[str, float | None], ...]


@dataclass(frozen=True, slots=True)
class Point:
    """The leaderboard as of a time, after this many usable judgments."""

    time: str
    judgments: int
    means: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class History:
    """The history of a leaderboard; `ready` is False while earlier points are still worked out."""

    measure: str
    points: tuple[Point, ...]
    ready: bool


class _Scores:
    """The scores by one measure: a value per run and topic. Its lock is held while some are worked out."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.values: TopicCache[Floats] = TopicCache()
        self.known = False  # worked out once


@dataclass(slots=True)
class LiveLeaderboard:
    """The leaderboard of one campaign for readers who look again and again."""

    watch: Watch
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _runs: tuple[RunByTopic, ...] = ()
    _names: tuple[str, ...] = ()
    _weights: Mapping[str, float] = field(default_factory=dict)  # of topics
    _pools: Mapping[str, int] = field(default_factory=dict)  # their versions, by topic
    _scores: dict[str, _Scores] = field(default_factory=dict)  # by measure
    _seen: CampaignStatus | None = None
    _of_seen: dict[object, Any] = field(default_factory=dict)  # worked out from it
    _times_of: TopicCache[tuple[float, float]] = field(default_factory=TopicCache)  # first and last line
    _past: dict[str, dict[float, Point]] = field(default_factory=dict)
    _working: dict[str, threading.Thread] = field(default_factory=dict)
    _scoring: threading.Thread | None = None
    _noise: LiveNoise = field(default_factory=LiveNoise)

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs that the campaign keeps."""
        self._read_runs()
        return tuple(each.run.name for each in self._runs)

    # ---- now

    def is_scored(self, measure: str) -> bool:
        """Whether the runs are scored by a measure, or soon; otherwise a thread scores them."""
        name = str(_measure(measure))
        with self._lock:
            self._read_runs()
            lines = sum(view.position for view in self._look().topics)
            if not self._runs or lines <= AT_ONCE or self._of_measure(name).known:
                return True
            if self._scoring is None or not self._scoring.is_alive():
                self._scoring = start_in_background(self._score_in_thread, name)
            return False

    def _score_in_thread(self, measure: str) -> None:
        try:
            self.table(measure)
        except DuelpoolError:
            self._of_measure(measure).known = True  # the next look raises it

    def _of_measure(self, name: str) -> _Scores:
        with self._lock:
            while len(self._scores) >= MEASURES_KEPT and name not in self._scores:
                del self._scores[next(iter(self._scores))]
            return self._scores.setdefault(name, _Scores())

    def table(self, measure: str) -> ScoreTable:
        """Return every run's value in every judged topic, up to the log."""
        chosen = _measure(measure)
        with self._lock:
            self._read_runs()
            snapshot, runs, scores = self._look(), self._runs, self._of_measure(str(chosen))
        with locked(scores.lock):  # those of other measures go on meanwhile
            return self._once(
                ("table", str(chosen)), snapshot, lambda: self._scored(chosen, snapshot, runs, scores)
            )

    def _scored(
        self, measure: Measure, snapshot: CampaignStatus, runs: Sequence[RunByTopic], scores: _Scores
    ) -> ScoreTable:
        views = {view.status.topic: view for view in snapshot.topics if view.kept}

        def score(stale: Iterable[str]) -> Mapping[str, Floats]:
            if has_label_noise(measure):  # labels alone decide
                by_labels = {
                    topic: LabelledTopic(views[topic].position, views[topic].kept) for topic in stale
                }
                return self._score(measure, by_labels, runs)
            return self._score(measure, self._labelled_topics(stale), runs)

        scores.values.refresh({topic: (view.position, view.kept) for topic, view in views.items()}, score)
        scores.known = True
        values = {topic: value for topic in views if (value := scores.values.get(topic)) is not None}
        return self._as_table(values, measure, runs)

    def _once(self, key: object, snapshot: CampaignStatus, make: Callable[[], T]) -> T:
        """Return what was worked out from a status, or work it out."""
        kept = self._of_seen
        if snapshot is not self._seen or key not in kept:
            made = make()
            with self._lock:
                if snapshot is not self._seen:
                    return made  # of an earlier one
                kept = self._of_seen
                kept[key] = made
        value: T = kept[key]
        return value

    def _labelled_topics(self, topics: Iterable[str]) -> dict[str, LabelledTopic]:
        labelled = {}
        for topic in topics:
            give_way()
            known = self.watch.state_of(topic, labelled_now(topic, self.watch.kept_levels(topic)))
            if known.kept:
                labelled[topic] = known
        return labelled

    def board(
        self,
        measure: str,
        *,
        baseline: str | None = None,
        test: str = "t",
        correction: str = "holm",
        tag: str | None = None,
    ) -> Board:
        """Return the leaderboard by a measure, over all judged topics or those of a tag."""
        snapshot = self._look()
        asked = (str(_measure(measure)), baseline, test, correction, tag)
        self._read_runs()
        return self._once(("board", *asked), snapshot, lambda: self._board(snapshot, *asked))

    def _board(  # noqa: PLR0917 (what a leaderboard is asked for)
        self,
        snapshot: CampaignStatus,
        chosen: str,
        baseline: str | None,
        test: str,
        correction: str,
        tag: str | None,
    ) -> Board:
        tags = tuple(sorted({each for view in snapshot.topics for each in view.tags}))
        if tag is not None and tag not in tags:
            raise UnknownName("tag", tag, tags)
        if baseline is not None and baseline not in self.runs:
            raise UnknownName("run", baseline, self.runs)
        judged = sum(bool(view.kept) for view in snapshot.topics)

        def made(rows: tuple[BoardRow, ...], topics: int, note: str = "") -> Board:
            return Board(chosen, rows, topics, judged, baseline, tag, tags, note)

        if not self.runs:
            return made((), 0, "The campaign has no runs.")
        if not judged:
            return made((), 0, "No judgments yet.")
        table = self.table(chosen)
        if tag is not None:
            table = table.slices({view.status.topic: view.tags for view in snapshot.topics}).get(
                tag, table.only([])
            )
        if not table.topics:
            return made((), 0, "No topic with this tag is judged yet.")
        return made(board_rows(table, baseline, test, correction), len(table.topics))

    def with_slow_figures(self, board: Board, *, wait: bool = False) -> Board:
        """Return a leaderboard of all topics with expected scores, and who is behind at every look.

        As far as that is worked out already; with `wait`, as of now.
        """
        if board.tag is not None or not board.rows:
            return board
        measure, runs, snapshot = _measure(board.measure), [each.run for each in self._runs], self._look()
        stamps = self._once(
            "stamps",
            snapshot,
            lambda: {view.status.topic: view.position for view in snapshot.topics if view.kept},
        )

        def prepare() -> MakeFigures:
            done = self._done_in_order(self.table(board.measure), snapshot)
            labelled = self._labelled_topics(stamps) if has_label_noise(measure) else {}
            topics = [each.as_judged(topic) for topic, each in labelled.items()]
            duplicates = self.watch.campaign.read(lambda tx: duplicates_of(tx, labelled))
            weights = topic_weights(self.watch.campaign)

            def make() -> SlowFigures:
                behind = frozenset(() if done is None else anytime_behind(done, SIGNIFICANT))
                if not topics:
                    return SlowFigures(None, behind)
                noise = label_noise(topics, runs, measure, duplicates=duplicates, weights=weights)
                return SlowFigures(noise, behind)

            return make

        state = (tuple(run.name for run in runs), stamps)
        kept = self._noise.look(measure, state, snapshot.total("judgments"), prepare, wait=wait)
        return board if kept is None else with_noise(board, kept)

    def _done_in_order(self, table: ScoreTable, snapshot: CampaignStatus) -> ScoreTable | None:
        """Return the finished topics in the order of completion, for any-time bets, which count all topics alike."""
        if table.weights.size and np.ptp(table.weights) > 0:
            return None
        done = {view.status.topic for view in snapshot.topics if view.status.done and view.position}
        last = {topic: times[1] for topic, times in self._line_times(done).items()}
        places = [at for at, topic in enumerate(table.topics) if topic in done]
        return table.only(sorted(places, key=lambda at: (last[table.topics[at]], table.topics[at])))

    def slices(self, measure: str) -> tuple[Slice, ...]:
        """Return the runs' means by tag."""
        snapshot = self._look()
        if not self.runs or not any(view.kept for view in snapshot.topics):
            return ()
        return self._once(
            ("slices", str(_measure(measure))), snapshot, lambda: self._slices(snapshot, measure)
        )

    def _slices(self, snapshot: CampaignStatus, measure: str) -> tuple[Slice, ...]:
        tags = {view.status.topic: view.tags for view in snapshot.topics}
        slices = []
        for tag, table in self.table(measure).slices(tags).items():
            means = _means(table)
            slices.append(Slice(tag, len(table.topics), tuple((run, means[run]) for run in table.order())))
        return tuple(slices)

    # ---- history

    def history(self, measure: str, wait: bool = False) -> History:
        """Return the leaderboard at up to sixteen times of the campaign and now.

        The past doesn't change, so each point is worked out once; for a long log in a thread, unless `wait`.
        """
        chosen = str(_measure(measure))
        snapshot = self._look()
        if not self.runs or not any(view.kept for view in snapshot.topics):
            return History(chosen, (), True)
        lines = sum(view.position for view in snapshot.topics)
        times = self._once("times", snapshot, lambda: self._times(snapshot))
        past = self._past.setdefault(chosen, {})
        if any(time not in past for time in times):
            if wait or (lines <= AT_ONCE and not has_slow_results(self.watch.campaign)):
                self._look_back(chosen, times)
            else:
                self._look_back_in_thread(chosen, times)
        points = [past[time] for time in times if time in past]
        means = self._once(("means", chosen), snapshot, lambda: _means(self.table(chosen)))
        now = Point(log.iso_time(self._now()), snapshot.total("judgments"), means)
        return History(chosen, (*points, now), all(time in past for time in times))

    def _most_points(self) -> int:
        return SLOW_POINTS if has_slow_results(self.watch.campaign) else POINTS

    def growth(self, measure: str, points: int | None = None) -> tuple[Point, ...]:
        """Return the leaderboard after evenly spread numbers of judgments, for a report."""
        chosen = str(_measure(measure))
        points = points or self._most_points()
        topics = [view.status.topic for view in self._look().topics if view.position]
        judged = sorted(time for topic in topics for time in self.watch.state_of(topic, _times_of_judgments))
        if not self.runs or not judged:
            return ()
        times = [judged[math.ceil(len(judged) * at / points) - 1] for at in range(1, points)]
        released = [last for _, last in self._line_times(topics).values()]
        # hosts' clocks differ: the last line needn't have the last time
        times.append(max(judged[-1], *released))
        past = self._past.setdefault(chosen, {})
        self._look_back(chosen, times)
        return tuple(past[time] for time in dict.fromkeys(times))

    def _line_times(self, topics: Iterable[str]) -> dict[str, tuple[float, float]]:
        names = list(topics)
        return self.watch.campaign.read(lambda tx: line_times(tx, names))

    def _now(self) -> float:
        store = self.watch.campaign.store
        return store.now()

    def _times(self, snapshot: CampaignStatus) -> list[float]:
        """Return the times of the history: evenly spread, and stable while the campaign goes on.

        The step is a power of two of seconds since the first line, so that a longer campaign keeps every
        second point of a shorter one.
        """
        places = {view.status.topic: view.position for view in snapshot.topics if view.position}
        if not places:
            return []
        with self._lock:
            known = self._times_of
            known.refresh(places, self._line_times)
            ends = [known[topic] for topic in places]
        first, last = min(each[0] for each in ends), max(each[1] for each in ends)
        start = math.floor(first)
        step = 2.0 ** math.ceil(math.log2(max(last - start, 1.0) / self._most_points()))
        return [start + step * at for at in range(1, math.floor((last - start) / step) + 1)]

    def _look_back_in_thread(self, measure: str, times: Sequence[float]) -> None:
        with self._lock:
            running = self._working.get(measure)
            if running is None or not running.is_alive():
                self._working[measure] = start_in_background(self._look_back, measure, times)

    def _look_back(self, measure: str, times: Sequence[float]) -> None:
        """Replay every topic once, stop at each time, and score the topics that changed since the time before."""
        chosen, runs = _measure(measure), self._runs
        past = self._past.setdefault(measure, {})
        then: list[dict[str, LabelledTopic]] = [{} for _ in times]
        for view in self.watch.look().topics:
            topic = view.status.topic
            give_way()
            lines = self.watch.state_of(topic, lambda state: list(state.lines))
            for at, labelled in enumerate(labelled_at(self.watch, topic, lines, times)):
                then[at][topic] = labelled
        values: dict[str, Floats] = {}
        stamps: dict[str, int] = {}
        for time, known in zip(times, then, strict=True):
            changed = {
                topic: each
                for topic, each in known.items()
                if stamps.get(topic) != each.position and each.kept
            }
            for topic, each in known.items():
                if not each.kept:
                    values.pop(topic, None)
                stamps[topic] = each.position
            values.update(self._score(chosen, changed, runs))
            means = _means(self._as_table(values, chosen, runs))
            judgments = sum(len(each.judged) for each in known.values())
            past[time] = Point(log.iso_time(time), judgments, means)

    # ---- scoring

    def _look(self) -> CampaignStatus:
        """Return the campaign's status; drop scores and history of topics whose pool has changed."""
        with self._lock:
            snapshot = self.watch.look()
            if snapshot is self._seen:
                return snapshot
            self._seen, self._of_seen = snapshot, {}
            pools = {view.status.topic: view.pool_version for view in snapshot.topics}
            if any(self._pools.get(topic, version) != version for topic, version in pools.items()):
                self._scores.clear()
                self._past.clear()
            self._pools = pools
            return snapshot

    def _read_runs(self) -> None:
        """Read the runs of the campaign, again when their names have changed."""
        campaign = self.watch.campaign
        with self._lock:
            names = campaign.read(holdings.run_names)
            if names != self._names:
                self._runs = tuple(map(RunByTopic, runs_of(campaign))) if names else ()
                self._names = names
                self._scores.clear()
                self._past.clear()
                self._of_seen = {}

    def _score(
        self, measure: Measure, topics: Mapping[str, LabelledTopic], runs: Sequence[RunByTopic]
    ) -> dict[str, Floats]:
        """Return a value per run for each of these topics."""
        values: dict[str, Floats] = {}
        names = list(topics)
        for at in range(0, len(names), _TOPICS_AT_ONCE):
            give_way()
            some = {topic: topics[topic] for topic in names[at : at + _TOPICS_AT_ONCE]}
            values.update(self._score_some(measure, some, runs))
        return values

    def _score_some(
        self, measure: Measure, topics: Mapping[str, LabelledTopic], runs: Sequence[RunByTopic]
    ) -> dict[str, Floats]:
        duplicates = self.watch.campaign.read(lambda tx: duplicates_of(tx, topics))
        judged = [judgment for labelled in topics.values() for judgment in labelled.judged]
        preferences = Preferences.from_judgments(judged)
        labels = make_labels({topic: each.kept for topic, each in topics.items()}, preferences, duplicates)
        truth = Truth.of([*labels.truths(), *([labels.duplicates] if len(labels.duplicates) else [])])
        scored = measure.items(truth).topics
        whole = np.array([measure.values(truth, ReadyRun(each.of_topics(topics))) for each in runs])
        return {topic: whole[:, at] for at, topic in enumerate(scored)}

    def _as_table(
        self, values: Mapping[str, Floats], measure: Measure, runs: Sequence[RunByTopic]
    ) -> ScoreTable:
        topics = tuple(values)
        whole = np.array(list(values.values())).T.reshape(len(runs), len(topics))
        if any(topic not in self._weights for topic in topics):
            self._weights = topic_weights(self.watch.campaign)
        weights = np.array([self._weights.get(topic, 1.0) for topic in topics])
        return ScoreTable(tuple(each.run.name for each in runs), topics, whole, weights, measure.limits)


def _measure(name: str) -> Measure:
    return measures_of(name, {})[0]


def _means(table: ScoreTable) -> dict[str, float | None]:
    return dict(zip(table.runs, map(figure_of, table.means()), strict=True))


def _times_of_judgments(state: TopicState) -> list[float]:
    return [line.time for line in state.lines if line.judgment is not None]
