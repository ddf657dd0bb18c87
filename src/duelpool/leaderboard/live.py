"""A leaderboard that is kept up to date: after a judgment only its topic is scored again.

`leaderboard` scores a campaign once, from its whole log. `LiveLeaderboard` returns the same figures again and again,
and more: which runs could still be first, the history, and the means by tag.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from duelpool.arrays import Floats
from duelpool.campaign.log.replay import TopicState, usable
from duelpool.campaign.log.topic_cache import TopicCache
from duelpool.campaign.views.reading import ReadTopic, kept_levels
from duelpool.campaign.views.status import CampaignStatus
from duelpool.campaign.views.summaries import has_slow_results
from duelpool.campaign.views.watch import Watch
from duelpool.comparison import ScoreTable, anytime_behind
from duelpool.errors import UnknownName
from duelpool.evaluation import measures_of
from duelpool.files import Preferences, Run
from duelpool.leaderboard.board import SIGNIFICANT, Board, BoardRow, board_rows, figure_of, with_noise
from duelpool.leaderboard.live_noise import LiveNoise, MakeFigures, SlowFigures, has_label_noise
from duelpool.leaderboard.noise import label_noise
from duelpool.leaderboard.possible import JudgedTopic
from duelpool.leaderboard.scoring import duplicates_of, make_labels, runs_of, topic_weights
from duelpool.measures import Measure, ReadyRun, Truth
from duelpool.records import Judgment
from duelpool.store import holdings, log
from duelpool.store.log import Line

POINTS = 16
"""How many points a history has at most."""

SLOW_POINTS = 5
"""The same where results take long: each point takes one of every topic."""

AT_ONCE = 3000
"""The history of a log with up to this many lines is worked out at once; that of a longer one in a thread."""


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


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A topic's kept levels and counted judgments at one place of its log."""

    position: int
    kept: tuple[tuple[str, ...], ...]
    judged: tuple[Judgment, ...]
    by_phase: bool  # a final's wins decide, not all judgments

    def as_judged(self, topic: str) -> JudgedTopic:
        """Return what the labels rest on."""
        return JudgedTopic.of(topic, self.kept, self.judged, by_phase=self.by_phase)


@dataclass(slots=True)
class LiveLeaderboard:
    """The leaderboard of one campaign for readers who look again and again."""

    watch: Watch
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _runs: list[Run] = field(default_factory=list)
    _parts: list[dict[str, pl.DataFrame]] = field(default_factory=list)
    _names: tuple[str, ...] = ()
    _weights: Mapping[str, float] = field(default_factory=dict)  # of topics
    _pools: Mapping[str, int] = field(default_factory=dict)  # their versions, by topic
    _scores: dict[str, TopicCache[Floats]] = field(default_factory=dict)  # by measure, a value per run
    _past: dict[str, dict[float, Point]] = field(default_factory=dict)
    _working: dict[str, threading.Thread] = field(default_factory=dict)
    _noise: LiveNoise = field(default_factory=LiveNoise)

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs that the campaign keeps."""
        self._read_runs()
        return tuple(run.name for run in self._runs)

    # ---- now

    def table(self, measure: str) -> ScoreTable:
        """Return every run's value in every judged topic, up to the log."""
        chosen = _measure(measure)
        with self._lock:
            self._read_runs()
            snapshot = self._look()
            scores = self._scores.setdefault(str(chosen), TopicCache())
            stamps = {view.status.topic: (view.position, view.kept) for view in snapshot.topics if view.kept}
            scores.refresh(stamps, lambda stale: self._score(chosen, self._labelled_topics(stale)))
            values = {topic: scores[topic] for topic in stamps if topic in scores}
            return self._as_table(values, list(values), chosen)

    def _labelled_topics(self, topics: Iterable[str]) -> dict[str, _Labelled]:
        labelled = {
            topic: self.watch.state_of(topic, _labelled_now(topic, self.watch.known_levels(topic)))
            for topic in topics
        }
        return {topic: each for topic, each in labelled.items() if each.kept}

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
        chosen = str(_measure(measure))
        snapshot = self._look()
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
        table = self.table(measure)
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
        measure, runs, snapshot = _measure(board.measure), self._runs, self._look()
        stamps = {view.status.topic: view.position for view in snapshot.topics if view.kept}

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
        last = {topic: self.watch.state_of(topic, _ends)[1] for topic in done}
        places = [at for at, topic in enumerate(table.topics) if topic in done]
        return table.only(sorted(places, key=lambda at: (last[table.topics[at]], table.topics[at])))

    def slices(self, measure: str) -> tuple[Slice, ...]:
        """Return the runs' means by tag."""
        snapshot = self._look()
        if not self.runs or not any(view.kept for view in snapshot.topics):
            return ()
        tags = {view.status.topic: view.tags for view in snapshot.topics}
        slices = []
        for tag, table in self.table(measure).slices(tags).items():
            means = dict(zip(table.runs, map(figure_of, table.means()), strict=True))
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
        times = self._times()
        past = self._past.setdefault(chosen, {})
        if any(time not in past for time in times):
            if wait or (lines <= AT_ONCE and not has_slow_results(self.watch.campaign)):
                self._look_back(chosen, times)
            else:
                self._look_back_in_thread(chosen, times)
        points = [past[time] for time in times if time in past]
        table = self.table(measure)
        means = dict(zip(table.runs, map(figure_of, table.means()), strict=True))
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
        released = [self.watch.state_of(topic, _ends)[1] for topic in topics]
        # hosts' clocks differ: the last line needn't have the last time
        times.append(max(judged[-1], *released))
        past = self._past.setdefault(chosen, {})
        self._look_back(chosen, times)
        return tuple(past[time] for time in dict.fromkeys(times))

    def _now(self) -> float:
        store = self.watch.campaign.store
        return store.now()

    def _times(self) -> list[float]:
        """Return the times of the history: evenly spread, and stable while the campaign goes on.

        The step is a power of two of seconds since the first line, so that a longer campaign keeps every
        second point of a shorter one.
        """
        ends = [
            self.watch.state_of(view.status.topic, _ends)
            for view in self.watch.look().topics
            if view.position
        ]
        if not ends:
            return []
        first, last = min(each[0] for each in ends), max(each[1] for each in ends)
        start = math.floor(first)
        step = 2.0 ** math.ceil(math.log2(max(last - start, 1.0) / self._most_points()))
        return [start + step * at for at in range(1, math.floor((last - start) / step) + 1)]

    def _look_back_in_thread(self, measure: str, times: Sequence[float]) -> None:
        with self._lock:
            running = self._working.get(measure)
            if running is None or not running.is_alive():
                thread = threading.Thread(target=self._look_back, args=(measure, times), daemon=True)
                self._working[measure] = thread
                thread.start()

    def _look_back(self, measure: str, times: Sequence[float]) -> None:
        """Replay every topic once, stop at each time, and score the topics that changed since the time before."""
        chosen = _measure(measure)
        past = self._past.setdefault(measure, {})
        then: list[dict[str, _Labelled]] = [{} for _ in times]
        for view in self.watch.look().topics:
            topic = view.status.topic
            lines = self.watch.state_of(topic, lambda state: list(state.lines))
            for at, labelled in enumerate(_labelled_at(self.watch, topic, lines, times)):
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
            values.update(self._score(chosen, changed))
            table = self._as_table(values, list(values), chosen)
            means = dict(zip(table.runs, map(figure_of, table.means()), strict=True))
            judgments = sum(len(each.judged) for each in known.values())
            past[time] = Point(log.iso_time(time), judgments, means)

    # ---- scoring

    def _look(self) -> CampaignStatus:
        """Return the campaign's status; drop scores and history of topics whose pool has changed."""
        with self._lock:
            snapshot = self.watch.look()
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
                self._runs = runs_of(campaign) if names else []
                self._parts = [
                    {str(key[0]): part for key, part in run.frame.partition_by("topic", as_dict=True).items()}
                    for run in self._runs
                ]
                self._names = names
                self._scores.clear()
                self._past.clear()

    def _score(self, measure: Measure, topics: Mapping[str, _Labelled]) -> dict[str, Floats]:
        """Return a value per run for each of these topics."""
        if not topics:
            return {}
        duplicates = self.watch.campaign.read(lambda tx: duplicates_of(tx, topics))
        judged = [judgment for labelled in topics.values() for judgment in labelled.judged]
        preferences = Preferences.from_judgments(judged)
        labels = make_labels({topic: each.kept for topic, each in topics.items()}, preferences, duplicates)
        truth = Truth.of([*labels.truths(), *([labels.duplicates] if len(labels.duplicates) else [])])
        scored = measure.items(truth).topics
        columns = []
        for run, parts in zip(self._runs, self._parts, strict=True):
            own = [parts[topic] for topic in topics if topic in parts]
            frame = pl.concat(own) if own else run.frame.clear()
            columns.append(measure.values(truth, ReadyRun(Run(run.name, frame))))
        whole = np.array(columns)
        return {topic: whole[:, at] for at, topic in enumerate(scored)}

    def _as_table(self, values: Mapping[str, Floats], topics: Sequence[str], measure: Measure) -> ScoreTable:
        whole = np.array([values[topic] for topic in topics]).T.reshape(len(self._runs), len(topics))
        if any(topic not in self._weights for topic in topics):
            self._weights = topic_weights(self.watch.campaign)
        weights = np.array([self._weights.get(topic, 1.0) for topic in topics])
        names = tuple(run.name for run in self._runs)
        return ScoreTable(names, tuple(topics), whole, weights, measure.limits)


def _measure(name: str) -> Measure:
    return measures_of(name, {})[0]


def _ends(state: TopicState) -> tuple[float, float]:
    if state.times is None:
        raise ValueError("an empty log has no times")
    return state.times


def _times_of_judgments(state: TopicState) -> list[float]:
    return [line.time for line in state.lines if line.judgment is not None]


def _labelled_now(
    topic: str, levels: tuple[tuple[str, ...], ...] | None = None
) -> Callable[[TopicState], _Labelled]:
    """Return a function that labels a topic's state, by its present levels or by those that are given."""

    def work(state: TopicState) -> _Labelled:
        judged = tuple(
            line.judgment for line in state.lines if line.judgment is not None and usable(line, state.counts)
        )
        by_phase = not state.strategy.pools_judgments
        if not judged or levels is not None:
            return _Labelled(state.position, (levels or ()) if judged else (), judged, by_phase)
        read = ReadTopic(topic, state.strategy, len(judged), (), state.position)
        return _Labelled(state.position, kept_levels(read), judged, by_phase)

    return work


def _labelled_at(watch: Watch, topic: str, lines: Sequence[Line], times: Iterable[float]) -> list[_Labelled]:
    """Return a topic's labels as of these times, in one pass over its lines, while its questions go on."""
    campaign, at = watch.campaign, 0
    then = TopicState.new(
        lambda: campaign.read(lambda tx: campaign.live.new_strategy(tx, topic)),
        lambda upto: [line for line in lines if line.seq <= upto],
    )
    labelled: list[_Labelled] = []
    read = _labelled_now(topic)
    for time in times:
        upto = at
        while upto < len(lines) and lines[upto].time <= time:
            upto += 1
        if upto > at or not labelled:
            then.feed(lines[at:upto])
            at = upto
            labelled.append(read(then))
        else:
            labelled.append(labelled[-1])
    return labelled
