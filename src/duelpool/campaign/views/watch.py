"""A campaign's status, kept up to date: read often, worked out again only where something changed.

`Watch` returns what `status` returns. It keeps each topic's view and counts, and reads only the lines that are new.
It is a cache over the log; throwing it away costs one full reading.
"""

import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sqlalchemy import case, func, select

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log.live_topics import LogHead
from duelpool.campaign.log.replay import TopicState
from duelpool.campaign.log.topic_cache import TopicCache
from duelpool.campaign.questions.proposals import Outstanding
from duelpool.campaign.views.reading import ReadTopic
from duelpool.campaign.views.status import (
    AssessorStatus,
    CampaignStatus,
    MoneyStatus,
    TopicView,
    active_assessors,
    better_items,
    campaign_status,
    graded_items,
    money_status,
    outstanding,
    rewards_earned,
    topic_view,
)
from duelpool.campaign.views.tally import AssessorTally, TopicTally
from duelpool.errors import DuelpoolError
from duelpool.records import Topic
from duelpool.store import Reading, holdings, schema
from duelpool.store.holdings import AssessorRow

T = TypeVar("T")


class NotFound(DuelpoolError):
    """The campaign has no topic, pair or assessor of this name."""


@dataclass(frozen=True, slots=True)
class _Signs:
    """What a status is made of, apart from the logs: a status is worked out again when one of these changes."""

    state: str
    heads: Mapping[str, LogHead]
    out: Outstanding
    enrolled: Mapping[str, AssessorRow]
    ledger: int
    test_pairs: int
    open: int


@dataclass(frozen=True, slots=True)
class _Topic:
    view: TopicView
    assessors: Mapping[str, AssessorTally]


@dataclass(slots=True)
class Watch:
    """The status of one campaign for readers who look again and again."""

    campaign: Campaign
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _topics: TopicCache[_Topic] = field(default_factory=TopicCache)
    _tallies: dict[str, AssessorTally] = field(default_factory=dict)
    _texts: dict[str, Topic] = field(default_factory=dict)
    _better: dict[str, str] = field(default_factory=dict)
    _money: tuple[tuple[int, int], MoneyStatus] | None = None  # as of a ledger and its open assignments
    _signs: _Signs | None = None
    _last: CampaignStatus | None = None
    _last_beat: tuple[Any, ...] = ()
    _topics_read: int = 0

    def look(self) -> CampaignStatus:
        """Return the campaign's status now."""
        with self._lock:
            beat = self.campaign.read(self._beat)
            if self._last is not None and beat == self._last_beat:
                return self._last
            signs = self.campaign.read(self._read_signs)
            latest = self._last
            if latest is None or signs != self._signs:
                latest = self._refresh(signs)
            self._last_beat, self._signs, self._last = beat, signs, latest
            return latest

    def progress(self) -> tuple[int, int]:
        """Return how many topics the first look has read, and of how many."""
        return self._topics_read, len(self.campaign.live.heads())

    def lines(self) -> int:
        """Return about how many lines the log has."""
        return sum(self.campaign.live.heads().values())

    def with_settings_of(self, campaign: Campaign) -> bool:
        """Go on with the same campaign under other settings; return False where all must be read again."""
        with self._lock:
            if campaign.live is not self.campaign.live:
                return False
            self.campaign = campaign
            self._signs = self._money = None
            self._last_beat = ()
            return True

    def pulse(self) -> str:
        """Return a text that differs as soon as something has changed; cheap to ask for."""
        return "-".join(str(figure) for figure in self.campaign.read(self._beat))

    # ---- one topic, one assessor

    def topic(self, topic: str) -> TopicView:
        """Return one topic's view."""
        self.look()
        return self._known(topic).view

    def assessor(self, assessor: str) -> AssessorStatus:
        """Return one assessor's status."""
        for each in self.look().assessors:
            if each.assessor == assessor:
                return each
        raise NotFound(f"The campaign has no assessor '{assessor}'.", remedy="Check the name.")

    def state_of(self, topic: str, work: Callable[[TopicState], T]) -> T:
        """Return the result of work on a topic's live state, as of the last look."""
        return self.campaign.live.with_state(topic, self._known(topic).view.position, work)

    def text(self, topic: str) -> Topic:
        """Return a topic's question with all that belongs to it."""
        self._known(topic)
        return self._texts[topic]

    def judged_by(self, topic: str) -> Mapping[str, AssessorTally]:
        """Return the per-assessor counts of a topic."""
        return self._known(topic).assessors

    def _known(self, topic: str) -> _Topic:
        known = self._topics.get(topic)
        if known is None:
            raise NotFound(f"The campaign has no topic '{topic}'.", remedy="Check its name.")
        return known

    # ---- reading

    def _beat(self, tx: Reading) -> tuple[Any, ...]:
        """Return a few figures of which at least one moves with every change: places of the log only grow."""
        campaign = self.campaign.id
        topic, question, person = schema.topic.c, schema.question.c, schema.assessor.c
        queries = (
            select(schema.campaign.c.state).where(schema.campaign.c.id == campaign),
            select(func.sum(topic.next_seq), func.sum(topic.pool_version), func.count()).where(
                topic.campaign == campaign, topic.state == "open"
            ),
            select(func.count(), func.max(question.asked)).where(
                question.campaign == campaign, question.state == "leased", question.expires >= tx.now
            ),
            select(func.count()).where(question.campaign == campaign, question.state == "cannot-judge"),
            select(func.max(schema.ledger.c.id)).where(schema.ledger.c.campaign == campaign),
            select(func.count(), func.sum(case((person.state == "in", 1), else_=0))).where(
                person.campaign == campaign
            ),
            select(func.count()).where(schema.test_pair.c.campaign == campaign),
            select(func.count()).where(
                schema.assignment.c.campaign == campaign, schema.assignment.c.state == "open"
            ),
        )
        return tuple(value for query in queries for value in tx.connection.execute(query).one())

    def _read_signs(self, tx: Reading) -> _Signs:
        def count(table: Any, column: Any, *conditions: Any) -> int:
            query = select(column).select_from(table).where(table.c.campaign == tx.campaign, *conditions)
            return int(tx.connection.execute(query).scalar() or 0)

        return _Signs(
            state=holdings.find_campaign(tx.connection, tx.campaign).state,
            heads={head.id: head for head in self.campaign.live.read_heads(tx)},
            out=outstanding(tx, self.campaign.settings),
            enrolled=holdings.assessors(tx),
            ledger=count(schema.ledger, func.max(schema.ledger.c.id)),
            test_pairs=count(schema.test_pair, func.count()),
            open=count(schema.assignment, func.count(), schema.assignment.c.state == "open"),
        )

    def _refresh(self, signs: _Signs) -> CampaignStatus:
        campaign = self.campaign
        campaign.live.drop_outdated(signs.heads.values())
        if signs.heads.keys() != self._texts.keys():
            texts = campaign.read(holdings.topics)
            self._texts = {topic: texts[topic] for topic in signs.heads}
        if len(self._better) != signs.test_pairs:
            self._better = campaign.read(better_items)
            self._topics.forget()
            self._tallies.clear()
        stamps: dict[str, Hashable] = {
            topic: (
                head,
                signs.state,
                tuple(signs.out.leased.get(topic, ())),
                frozenset(signs.out.parked.get(topic, ())),
            )
            for topic, head in signs.heads.items()
        }
        changes = self._topics.refresh(
            stamps, lambda stale: {topic: self._read_topic(topic, signs) for topic in stale}
        )
        for before, after in changes.values():
            for sign, topic in ((-1, before), (1, after)):
                for assessor, tally in (topic.assessors if topic else {}).items():
                    self._tallies.setdefault(assessor, AssessorTally()).add(tally, sign)
        return campaign_status(
            campaign,
            state=signs.state,
            topics=[self._topics[topic].view for topic in signs.heads],
            tallies=self._tallies,
            enrolled=signs.enrolled,
            pay=campaign.read(rewards_earned),
            money=lambda usable: self._money_of(signs, usable),
            test_pairs=signs.test_pairs,
            active=campaign.read(active_assessors),
            version=(self._last.version + 1) if self._last else 1,
        )

    def _read_topic(self, topic: str, signs: _Signs) -> _Topic:
        settings, head = self.campaign.settings, signs.heads[topic]
        graded = (
            self.campaign.read(lambda tx: graded_items(tx, topic)) if settings.stage == "grading" else None
        )

        def work(state: TopicState) -> _Topic:
            tally = TopicTally.of(state, self._better)
            read = ReadTopic(topic, state.strategy, tally.usable, tuple(state.held()), state.position)
            view = topic_view(
                settings,
                read,
                tally,
                self._texts[topic],
                state=signs.state,
                out=signs.out,
                graded=graded,
                pool_version=head.pool_version,
            )
            return _Topic(view, tally.assessors)

        result = self.campaign.live.with_state(topic, head.next_seq - 1, work)
        self._topics_read += 1
        return result

    def _money_of(self, signs: _Signs, usable: int) -> MoneyStatus:
        """Return what the campaign cost; the seconds behind the pay are added up again only after new pay."""
        key = (signs.ledger, signs.open)
        if self._money is None or self._money[0] != key:
            now = self.campaign.read(lambda tx: money_status(tx, self.campaign.settings, usable))
            self._money = (key, now)
            return now
        before = self._money[1]
        return replace(before, per_usable_judgment=before.spent / usable if usable and before.spent else None)
