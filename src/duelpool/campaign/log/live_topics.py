"""The topics of a campaign in memory: each topic's strategy, brought up to date with the log before it is asked.

This is a cache of a replay of the log; any process may drop it at any time.
"""

import copy
import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeVar, cast

from sqlalchemy import bindparam, select

from duelpool.campaign.log import campaign_events, summary_rows, systems
from duelpool.campaign.log.campaign_events import WeighedPart
from duelpool.campaign.log.newcomers import is_challenge
from duelpool.campaign.log.replay import TopicState, counted
from duelpool.campaign.log.run_scores import RunScores
from duelpool.campaign.log.summary_forms import WITHOUT_RESULT, Forms
from duelpool.campaign.log.topic_strategies import topic_strategy
from duelpool.campaign.settings import Settings
from duelpool.deciders import (
    ALL,
    Decider,
    Spending,
    TopicPool,
    VoteSource,
    Weighs,
    make_decider,
    read_goal,
    read_spend,
)
from duelpool.errors import BadParameter
from duelpool.records import Judgment, Levels, PhaseClosed, Proposal
from duelpool.store import CampaignStore, Reading, Writing, holdings, log, schema
from duelpool.store.statements import Statement
from duelpool.strategies import Strategy
from duelpool.strategies.base import ask_lazily, is_slow
from duelpool.strategies.tables.pair_numbers import without

T = TypeVar("T")

RESTED_SECONDS = 600.0  # lines that were not read for this long are dropped from memory
LINES_AT_MOST = (
    500_000  # replayed into the cached states, about 80 bytes each; beyond, unused states are dropped
)
_SETTLE_AT_MOST = 100  # rounds of closings or pool changes that follow one another

_TOPICS = schema.topic.c
_HEADS = Statement(
    lambda _: (
        select(_TOPICS.id, _TOPICS.next_seq, _TOPICS.pool_version)
        .where(_TOPICS.campaign == bindparam("campaign"), _TOPICS.state == "open")
        .order_by(_TOPICS.position, _TOPICS.id)
    )
)
_HEAD = Statement(
    lambda _: select(
        _TOPICS.id, _TOPICS.next_seq, _TOPICS.pool_version, _TOPICS.strategy, _TOPICS.state
    ).where(_TOPICS.campaign == bindparam("campaign"), _TOPICS.id == bindparam("topic"))
)


@dataclass(slots=True)
class _CachedTopic:
    state: TopicState
    items: tuple[str, ...]
    version: int  # of the topic's pool
    sources: dict[str, VoteSource]  # where judgments are weighed: a model that comes later is added
    lock: threading.RLock = field(default_factory=threading.RLock)
    asked: tuple[object, Sequence[Proposal]] | None = None  # the strategy's last inputs, and its proposals
    result: tuple[int, Levels] | None = None  # one that takes long, as of a place of the log
    used: float = field(default_factory=time.monotonic)


class LogHead(Protocol):
    """The end of a topic's log, and the version of its pool."""

    id: str
    next_seq: int
    pool_version: int


class _TopicHead(LogHead, Protocol):
    """The head of one topic, with its state and its own strategy; empty: the campaign's."""

    state: str
    strategy: str


class _Size(NamedTuple):
    """How many open or leased questions a topic had at a position of its log and a version of its pool."""

    position: int
    questions: int
    version: int


@dataclass(frozen=True, slots=True)
class _Beginning:
    """What a topic's part is made of, with the version of its pool and what is known of who answered."""

    version: int
    pool: TopicPool
    sources: dict[str, VoteSource] = field(default_factory=dict)


class LiveTopics:
    """The strategy of each topic, up to date with the log."""

    def __init__(self, store: CampaignStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self.goal = read_goal(settings.goal)
        self.spend = read_spend(settings.spend)
        self._run_scores = RunScores(self.spend)
        self.decider: Decider = make_decider(
            self.goal,
            settings.strategy,
            seed=settings.seed,
            cap=max(1, settings.cap),
            make=self._make_strategy,
            spend=self.spend,
            judgments=settings.spend_judgments,
        )
        self._cache: dict[str, _CachedTopic] = {}
        self._sizes: dict[str, _Size] = {}
        self._lock = threading.Lock()
        self._items: Mapping[str, int] | None = None  # pool sizes, for topics that were never asked
        self._done: Mapping[str, tuple[int, int]] | None = (
            None  # when stored summaries were read: by place and pool
        )

    def limited(self, judgments: int | None) -> "LiveTopics":
        """Return these topics, for no more judgments than these in all where they aren't spent evenly."""
        if isinstance(self.decider, Spending):
            self.decider.judgments = judgments
        return self

    # ---- following the log

    def heads(self, only: str | None = None) -> dict[str, int]:
        """Return the seq of the last line of each open topic's log, or of one topic's alone."""
        rows: Sequence[LogHead]
        if only is None:
            rows = self._store.read(self.read_heads)
        else:
            row = self._store.read(lambda tx: self._read_head(tx, only))
            rows = [] if row is None or row.state != "open" else [row]
        self.drop_outdated(rows)
        return {row.id: row.next_seq - 1 for row in rows}

    def unfinished_heads(self) -> dict[str, int]:
        """Return the heads of the open topics, without those that a stored summary says are done: they ask nothing."""
        rows = self._store.read(self.read_heads)
        self.drop_outdated(rows)
        if self._done is None:
            forms = Forms(self._settings)
            heads, done = self._store.read(lambda tx: (summary_rows.heads(tx), summary_rows.done_topics(tx)))
            self._done = {
                topic: (tag.position, tag.pool_version)
                for topic, tag in done.items()
                if topic in heads and tag.form.removesuffix(WITHOUT_RESULT) == forms.of(heads[topic])
            }
        ended = self._done
        return {
            row.id: row.next_seq - 1
            for row in rows
            if ended.get(row.id) != (row.next_seq - 1, row.pool_version)
        }

    def read_heads(self, tx: Reading) -> list[LogHead]:
        """Return the heads of the open topics; a caller that reads more in its snapshot calls `drop_outdated` later."""
        return _HEADS.run(tx.connection, {"campaign": tx.campaign})

    def drop_outdated(self, heads: Iterable[LogHead]) -> None:
        """Drop the states whose pools have changed; not inside a read, for it may wait for a lock."""
        for head in heads:
            cached = self._cache.get(head.id)
            known = cached or self._sizes.get(head.id)  # its size may be known though its state was dropped
            if known is not None and head.pool_version > known.version:
                self.forget(head.id, cached)

    def state(self, topic: str, head: int | None = None) -> TopicState:
        """Return a topic's state, up to date with its log, after every closing that is due was logged."""
        return self.with_state(topic, head, lambda state: state)

    def with_state(self, topic: str, head: int | None, work: Callable[[TopicState], T]) -> T:
        """Return what `work` makes of a topic's state, while no other thread can change it."""
        return self._with(topic, head, lambda cached: work(cached.state))

    def _with(self, topic: str, head: int | None, work: Callable[[_CachedTopic], T]) -> T:
        """Bring a topic up to date with its log, and return what `work` makes of it under its lock."""
        for _ in range(_SETTLE_AT_MOST):
            cached = self._cached(topic)
            with cached.lock:
                if self._catch_up(cached, topic, head):
                    return work(cached)
            self.forget(topic, cached)
        raise BadParameter(f"The items of topic '{topic}' keep changing.")  # pragma: no cover

    def _catch_up(self, cached: _CachedTopic, topic: str, head: int | None) -> bool:
        """Bring a state up to a position of the log; return False when its pool has changed.

        Lines beyond the position may be about items that were added after it was read.
        """
        for _ in range(_SETTLE_AT_MOST):
            if head is None:
                now = self._store.read(lambda tx: self._read_head(tx, topic))
                if now is None:
                    return True  # there is no such topic, and no log
                if now.pool_version > cached.version:
                    return False
                head = now.next_seq - 1
            if cached.state.position < head:
                if self.decider.weighs:
                    for model in self._store.read(campaign_events.models):
                        cached.sources.setdefault(model, VoteSource(model=True))
                cached.state.feed(self._new_lines(topic, cached.state.position, head))
            closings = cached.state.unlogged_closings()
            if not closings:
                return True
            self._log_closings(topic, cached.state.position, closings)
            head = None
        raise BadParameter(f"Topic '{topic}' keeps closing phases.")  # pragma: no cover

    def _read_head(self, tx: Reading, topic: str) -> _TopicHead | None:
        rows: list[_TopicHead] = _HEAD.run(tx.connection, {"campaign": tx.campaign, "topic": topic})
        return rows[0] if rows else None

    def release_memory(self, seconds: float = RESTED_SECONDS, lines_at_most: int = LINES_AT_MOST) -> None:
        """Drop the lines that were not read for `seconds`, and the states beyond `lines_at_most` lines in all.

        The least recently used states are dropped first; they are replayed from the log when they are needed.
        """
        now = time.monotonic()
        with self._lock:
            latest_first = sorted(self._cache.items(), key=lambda each: each[1].used, reverse=True)
            lines = 0
            for topic, cached in latest_first:
                lines += cached.state.position
                if lines > lines_at_most and now - cached.used >= seconds:
                    del self._cache[topic]
            remaining = list(self._cache.values())
        for cached in remaining:
            with cached.lock:
                cached.state.drop_unused_lines(seconds)

    def _new_lines(self, topic: str, after: int, upto: int) -> list[log.Line]:
        return self._store.read(lambda tx: log.new_lines(tx, topic, after, upto))

    def _lines_upto(self, topic: str, place: int) -> list[log.Line]:
        lines = self._new_lines(topic, 0, place)
        if len(lines) < place:  # from a snapshot that is older than the state
            self._store.store.refresh()
            lines = self._new_lines(topic, 0, place)
        return lines

    def _log_closings(self, topic: str, position: int, closings: Collection[PhaseClosed]) -> None:
        """Log closings, unless the log has grown since; then the next catch-up decides again."""

        def work(tx: Writing) -> None:
            log.lock_topic(tx, topic)
            if log.head(tx, topic) == position:
                for closing in closings:
                    log.append(
                        tx,
                        topic,
                        log.PHASE_CLOSED,
                        phase=closing.phase,
                        survivors=json.dumps(closing.survivors),
                    )

        self._store.write(work)

    def _cached(self, topic: str) -> _CachedTopic:
        with self._lock:
            if topic not in self._cache:
                self._store.store.refresh()  # the state must not be older than the last call of `forget`
                found = self._store.read(lambda tx: self._look_up(tx, topic))
                state = TopicState.new(
                    lambda: self._make(found), lambda place: self._lines_upto(topic, place)
                )
                self._cache[topic] = _CachedTopic(state, found.pool.items, found.version, found.sources)
            cached = self._cache[topic]
            cached.used = time.monotonic()
            return cached

    def forget(self, topic: str, cached: _CachedTopic | None = None) -> None:
        """Drop a topic's state (or only the given one), for its items have changed."""
        with self._lock:
            if cached is not None and self._cache.get(topic) is not cached:
                return  # another thread has dropped it already
            self._cache.pop(topic, None)
            self._sizes.pop(topic, None)
            self._items = None

    def new_strategy(self, tx: Reading, topic: str, newcomers: Collection[str] = ()) -> Strategy:
        """Return a topic's strategy before any judgment, for callers that replay a log themselves.

        `newcomers` are items of the pool that join by lines that aren't in the log yet.
        """
        return self._make(self._look_up(tx, topic, newcomers))

    def beginning(self, topic: str, spec: str, rows: Iterable[holdings.ItemRow]) -> Strategy:
        """Return the strategy of a topic without lines, from what was read of it; `spec` may be empty."""
        own = [row for row in rows if row.twin_of is None and row.state == "in"]
        items = tuple(row.id for row in own)
        prior = {row.id: row.prior for row in own if row.prior is not None}
        return self._make_strategy(TopicPool(topic, items, items, spec or self._settings.strategy, prior))

    def _look_up(self, tx: Reading, topic: str, newcomers: Collection[str] = ()) -> _Beginning:
        now = self._read_head(tx, topic)
        rows = holdings.items(tx, topic)
        items = tuple(row.id for row in rows if row.twin_of is None and row.state == "in")
        version = 0 if now is None else now.pool_version
        if self.goal.of_systems:
            same_text = {row.id: row.twin_of for row in rows if row.twin_of is not None and row.state == "in"}
            pool = TopicPool(topic, items, items, answers=systems.answers(tx, topic), same_text=same_text)
            return _Beginning(version, pool, campaign_events.sources(tx) if self.decider.weighs else {})
        columns = schema.log.c
        closings = tx.connection.execute(
            select(columns.phase, columns.survivors).where(
                columns.campaign == tx.campaign,
                columns.topic == topic,
                columns.event == log.PHASE_CLOSED,
            )
        )
        came = {item for row in closings if is_challenge(row.phase) for item in json.loads(row.survivors)}
        came.update(newcomers)
        weights, shares = campaign_events.counts_in(tx, topic)
        pool = TopicPool(
            topic,
            items,
            tuple(item for item in items if item not in came),
            (now.strategy if now is not None else "") or self._settings.strategy,
            {row.id: row.prior for row in rows if row.prior is not None and row.id in items},
            scores=self._run_scores.of(tx, topic, rows),
            weights=weights,
            shares=shares,
        )
        return _Beginning(version, pool)

    def _make(self, found: _Beginning) -> Strategy:
        part = self.decider.part(found.pool)
        return cast("Strategy", WeighedPart(part, found.sources)) if isinstance(part, Weighs) else part

    def _make_strategy(self, pool: TopicPool) -> Strategy:
        return topic_strategy(self._settings, self.spend, pool)

    # ---- one assessor's judgments

    def judged_by(self, topic: str, assessor: str) -> list[Judgment]:
        """Return an assessor's grades and judgments of a topic that count, in the order of the log."""

        def work(state: TopicState) -> list[Judgment]:
            return [
                line.judgment
                for line in state.lines
                if line.judgment is not None
                and line.judgment.assessor == assessor
                and counted(line, state.counts)
            ]

        return self.with_state(topic, None, work)

    def strategy_for(self, topic: str, name: str) -> Strategy:
        """Return a topic's strategy before any judgment, whose random choices depend on this name."""
        found = self._store.read(lambda tx: self._look_up(tx, topic))
        return self._make(replace(found, pool=replace(found.pool, topic=f"{topic}/{name}")))

    # ---- proposals

    def proposals(
        self, topic: str, n: int, leased: Collection[Proposal], parked: Collection[tuple[str, str]], head: int
    ) -> Sequence[Proposal]:
        """Return up to n proposals of a topic, given the leased ones; parked pairs are left out."""

        def ask(cached: _CachedTopic) -> Sequence[Proposal]:
            state = cached.state
            pending = [*leased, *(_as_proposal(each) for each in state.held())]
            inputs = (state.position, n + len(parked), tuple(sorted(pending, key=_order)))
            if cached.asked is None or cached.asked[0] != inputs:
                cached.asked = (inputs, ask_lazily(state.strategy, n + len(parked), pending))
            proposals = cached.asked[1]
            if n >= ALL:
                self._note_size(topic, cached, len(proposals) + len(leased))
            return proposals

        proposals = self._with(topic, head, ask)
        return without(proposals, parked)[:n]

    def look(self, topic: str, head: int | None, work: Callable[[Strategy], T]) -> T:
        """Return what `work` makes of a topic's part, while no other thread can change it."""
        return self.with_state(topic, head, lambda state: work(part_of(state.strategy)))

    def stamp(self, topic: str, head: int | None) -> object:
        """Return the version of its pool and the place in its log that a topic's part has, for `Parts.stamp`."""
        return self._with(topic, head, lambda cached: (cached.version, cached.state.position))

    def held(self, topic: str, head: int | None) -> list[Proposal]:
        """Return the judgments that wait for their assignments, as proposals."""
        return self.with_state(topic, head, lambda state: [_as_proposal(each) for each in state.held()])

    def _note_size(self, topic: str, cached: _CachedTopic, questions: int) -> None:
        with self._lock:
            if self._cache.get(topic) is cached:  # else its items may have changed
                self._sizes[topic] = _Size(cached.state.position, questions, cached.version)

    def sizes(self, heads: Mapping[str, int], leased: Mapping[str, int]) -> list[float]:
        """Return about how many open questions each topic has, without asking any strategy.

        That is the number when its strategy was last asked for all, less what was leased or logged since. A topic
        that seems to have none left counts as one while its log grows, so that it is asked again. One that was
        never asked counts by its items, at the average rate of the others; one that was added later or was empty
        counts as one item.
        """
        by_topic: dict[str, float] = {}
        for topic, head in heads.items():
            size = self._sizes.get(topic)
            if size is not None:
                since = head - size.position
                left = size.questions - leased.get(topic, 0) - max(since, 0)
                by_topic[topic] = float(max(left, since > 0, 0))
        if len(by_topic) < len(heads):
            items = self._pool_sizes()
            seen = sum(items.get(topic, 0) for topic in by_topic)
            per_item = max(sum(by_topic.values()) / seen, 0.1) if seen else 1.0
            by_topic |= {
                topic: max(items.get(topic, 0), 1) * per_item for topic in heads if topic not in by_topic
            }
        return [by_topic[topic] for topic in heads]

    def _pool_sizes(self) -> Mapping[str, int]:
        if self._items is None:
            self._items = self._store.read(holdings.pool_sizes)
        return self._items

    def version_of(self, topic: str) -> str:
        """Return the name and version of what chooses a topic's questions, for the log."""
        if self.goal.of_systems:
            return f"{self.decider.name}/{self.decider.version}"
        strategy = self._cached(topic).state.strategy
        return f"{strategy.name}/{strategy.version}"

    def result(self, topic: str) -> Levels:
        """Return a topic's levels as the log gives them; one that takes long is worked out while no question waits."""

        def work(cached: _CachedTopic) -> tuple[_CachedTopic, int, Strategy | Levels]:
            position, strategy = cached.state.position, cached.state.strategy
            if not is_slow(strategy):
                return cached, position, strategy.result()
            if cached.result is not None and cached.result[0] == position:
                return cached, position, cached.result[1]
            return cached, position, copy.deepcopy(strategy)

        cached, position, found = self._with(topic, None, work)
        if isinstance(found, Levels):
            return found
        levels = found.result()
        cached.result = (position, levels)
        return levels

    def items(self, topic: str) -> tuple[str, ...]:
        """Return the items of a topic's pool that are judged."""
        return self._cached(topic).items


def part_of(strategy: Strategy) -> Strategy:
    """Return a topic's part itself, which may be told with weights."""
    return strategy.part if isinstance(strategy, WeighedPart) else strategy


def _order(proposal: Proposal) -> tuple[tuple[str, str], str, str]:
    return proposal.pair, proposal.phase, proposal.proposal


def _as_proposal(judgment: Judgment) -> Proposal:
    return Proposal(judgment.pair, judgment.phase, judgment.proposal)
