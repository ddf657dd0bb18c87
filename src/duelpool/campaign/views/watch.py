"""A campaign as its manager watches it: looked at often, and worked out anew only where something changed.

`Watch` gives what `status` gives and more. Between two looks it keeps what it found of every topic, and folds
only the lines that have come since. It is a cache over the log; throwing it away costs one full reading.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sqlalchemy import case, func, select

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log.live_topics import LogHead
from duelpool.campaign.log.replay import TopicState, usable
from duelpool.campaign.views.exports import kept_levels
from duelpool.campaign.views.reading import Read
from duelpool.campaign.views.status import (
    Asked,
    MoneyStatus,
    TopicStatus,
    blocks_of,
    graded_topic,
    money_status,
    topic_status,
)
from duelpool.campaign.views.tally import Deeds, deeds_of
from duelpool.campaign.work.ledger import REWARD, full_price
from duelpool.errors import DuelpoolError
from duelpool.records import Topic
from duelpool.store import Reading, holdings, log, schema

T = TypeVar("T")


class NotFound(DuelpoolError):
    """The campaign has no topic, pair or assessor of this name."""


@dataclass(frozen=True, slots=True)
class Closing:
    """A phase that ended: when, and with whom."""

    phase: str
    seq: int
    time: str
    survivors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic as it stands: its status, what of it becomes grades, its closed phases, its tags."""

    status: TopicStatus
    position: int
    pool_version: int
    tags: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    kept: tuple[tuple[str, ...], ...]
    closings: tuple[Closing, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Person:
    """An assessor as a manager sees them.

    `left` is the share of decisions for the left side, `agreement` the share of the others' votes on the same
    pairs that have the same winner, `seconds` the mean of an answer, `pay` in minor units.
    """

    assessor: str
    kind: str
    state: str
    judgments: int
    usable: int
    topics: int
    tests_passed: int
    tests_seen: int
    left: float | None
    sided: int
    seconds: float | None
    agreement: float | None
    compared: int
    pay: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A campaign at one moment; `version` is another one as soon as anything is."""

    version: int
    campaign: str
    state: str
    stage: str
    strategy: str
    topics: tuple[TopicView, ...]
    people: tuple[Person, ...]
    money: MoneyStatus
    blocks: tuple[str, ...]
    active: int
    left_choices: int
    right_choices: int
    price: float | None  # of one usable judgment, as it was or as it is expected to be

    def total(self, name: str) -> int:
        """Return the sum of a figure over all topics."""
        return sum(int(getattr(each.status, name)) for each in self.topics)

    @property
    def done(self) -> bool:
        """Whether every topic has all that it needs."""
        return all(each.status.done for each in self.topics)


@dataclass(frozen=True, slots=True)
class _Signs:
    """What tells that something has changed."""

    state: str
    heads: Mapping[str, LogHead]
    asked: Asked
    people: Mapping[str, Any]
    ledger: int
    known: int
    open: int


@dataclass(slots=True)
class _Kept:
    key: object
    view: TopicView
    deeds: Mapping[str, Deeds]


@dataclass(slots=True)
class Watch:
    """Looks at one campaign again and again."""

    campaign: Campaign
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _deeds: dict[str, Deeds] = field(default_factory=dict)
    _texts: dict[str, Topic] = field(default_factory=dict)
    _better: dict[str, str] = field(default_factory=dict)
    _seconds_paid: tuple[int, int, MoneyStatus] | None = None
    _signs: _Signs | None = None
    _last: Snapshot | None = None
    _last_beat: tuple[Any, ...] = ()

    def look(self) -> Snapshot:
        """Return the campaign as it stands now."""
        with self._lock:
            beat = self.campaign.read(self._beat)
            if self._last is not None and beat == self._last_beat:
                return self._last
            signs = self.campaign.read(self._read_signs)
            found = self._last
            if found is None or signs != self._signs:
                found = self._anew(signs)
            self._last_beat, self._signs, self._last = beat, signs, found
            return found

    def progress(self) -> tuple[int, int]:
        """Return how many topics the first look has read, and of how many."""
        return len(self._kept), len(self.campaign.live.heads())

    def lines(self) -> int:
        """Return about how many lines the log has."""
        return sum(self.campaign.live.heads().values())

    def with_settings_of(self, campaign: Campaign) -> bool:
        """Go on with the same campaign under other settings; return False where all must be read anew."""
        with self._lock:
            if campaign.live is not self.campaign.live:
                return False
            self.campaign = campaign
            self._signs = self._seconds_paid = None
            self._last_beat = ()
            return True

    def pulse(self) -> str:
        """Return a text that is another one as soon as something has changed; cheap to ask for."""
        return "-".join(str(each) for each in self.campaign.read(self._beat))

    # ---- one of them

    def topic(self, topic: str) -> TopicView:
        """Return one topic as it stands."""
        self.look()
        return self._of(topic).view

    def person(self, assessor: str) -> Person:
        """Return one assessor."""
        for each in self.look().people:
            if each.assessor == assessor:
                return each
        raise NotFound(f"The campaign has no assessor '{assessor}'.", remedy="Check the name.")

    def state_of(self, topic: str, work: Callable[[TopicState], T]) -> T:
        """Return what somebody makes of a topic's state."""
        return self.campaign.live.look(topic, self._of(topic).view.position, work)

    def text(self, topic: str) -> Topic:
        """Return a topic's question with all that belongs to it."""
        self._of(topic)
        return self._texts[topic]

    def judged_by(self, topic: str) -> Mapping[str, Deeds]:
        """Return what everybody did in a topic."""
        return self._of(topic).deeds

    def _of(self, topic: str) -> _Kept:
        found = self._kept.get(topic)
        if found is None:
            raise NotFound(f"The campaign has no topic '{topic}'.", remedy="Check its name.")
        return found

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
        campaign = self.campaign.id
        row = holdings.find_campaign(tx.connection, campaign)

        def count(table: Any, column: Any, *conditions: Any) -> int:
            query = select(column).select_from(table).where(table.c.campaign == campaign, *conditions)
            return int(tx.connection.execute(query).scalar() or 0)

        return _Signs(
            state=row.state,
            heads={each.id: each for each in self.campaign.live.read_heads(tx)},
            asked=Asked.now(tx, self.campaign, row.state),
            people=holdings.assessors(tx),
            ledger=count(schema.ledger, func.max(schema.ledger.c.id)),
            known=count(schema.test_pair, func.count()),
            open=count(schema.assignment, func.count(), schema.assignment.c.state == "open"),
        )

    def _anew(self, signs: _Signs) -> Snapshot:
        campaign = self.campaign
        campaign.live.notice(signs.heads.values())
        if signs.heads.keys() != self._texts.keys():
            texts = campaign.read(holdings.topics)
            self._texts = {topic: texts[topic] for topic in signs.heads}
        if len(self._better) != signs.known:
            known = campaign.read(holdings.test_pairs)
            self._better = {name: pair.better for name, pair in known.items()}
            self._kept.clear()
            self._deeds.clear()
        for topic in [each for each in self._kept if each not in signs.heads]:
            self._put(topic, None)
        for topic, head in signs.heads.items():
            key = (
                head,
                signs.state,
                tuple(signs.asked.leased.get(topic, ())),
                signs.asked.parked.get(topic, frozenset()),
            )
            kept = self._kept.get(topic)
            if kept is None or kept.key != key:
                self._put(topic, self._topic(topic, head, signs.asked, key))
        topics = tuple(self._kept[topic].view for topic in signs.heads)
        return self._snapshot(signs, topics)

    def _put(self, topic: str, kept: _Kept | None) -> None:
        """Keep what was found of a topic, and keep the sums over all topics right."""
        before = self._kept.pop(topic, None)
        for sign, deeds in ((-1, before.deeds if before else {}), (1, kept.deeds if kept else {})):
            for assessor, each in deeds.items():
                self._deeds.setdefault(assessor, Deeds()).add(each, sign)
        if kept is not None:
            self._kept[topic] = kept

    def _topic(self, topic: str, head: LogHead, asked: Asked, key: object) -> _Kept:
        text = self._texts[topic]
        if self.campaign.settings.stage == "grading":
            graded = self.campaign.read(lambda tx: graded_topic(tx, self.campaign, topic, text.text, asked))
        else:
            graded = None

        def work(state: TopicState) -> _Kept:
            position = state.position
            used = sum(usable(line, state.counts) for line in state.lines)
            read = Read(topic, state.strategy, used, tuple(state.held()), position)
            found = graded or topic_status(read, text.text, asked)
            closings = tuple(
                Closing(line.phase, line.seq, log.iso_time(line.time), line.survivors)
                for line in state.lines
                if line.event == log.PHASE_CLOSED and line.seq not in state.counts.rewound
            )
            view = TopicView(
                status=found,
                position=position,
                pool_version=head.pool_version,
                tags=tuple(text.tags),
                levels=read.strategy.result().levels if read.judged else (),
                kept=kept_levels(read) if read.usable else (),
                closings=closings,
                why=_why(found, closings),
            )
            return _Kept(key, view, deeds_of(state, self._better))

        return self.campaign.live.look(topic, head.next_seq - 1, work)

    # ---- adding up

    def _snapshot(self, signs: _Signs, topics: tuple[TopicView, ...]) -> Snapshot:
        campaign = self.campaign
        settings = campaign.settings
        pay = self._pay()
        people = []
        others = sorted(
            name for name, each in self._deeds.items() if each.topics and name not in signs.people
        )
        for name in (*signs.people, *(name for name in others if name)):
            row = signs.people.get(name)
            people.append(_person(name, row, self._deeds.get(name) or Deeds(), pay.get(name, 0)))
        own = sum(each.usable for each in people if each.kind != "imported")
        spent = self._money(signs, own)
        blocks = campaign.read(
            lambda tx: blocks_of(
                tx,
                campaign,
                signs.state,
                topics=[each.status for each in topics],
                nobody_left=bool(people) and all(each.state == "excluded" for each in people),
                spent=spent,
            )
        )
        price = spent.per_usable_judgment
        if price is None and settings.judges == "crowd":
            price = full_price(settings) / settings.targets
        return Snapshot(
            version=(self._last.version + 1) if self._last else 1,
            campaign=campaign.name,
            state=signs.state,
            stage=settings.stage,
            strategy=settings.strategy,
            topics=topics,
            people=tuple(people),
            money=spent,
            blocks=tuple(blocks),
            active=self._active(),
            left_choices=sum(each.left for each in self._deeds.values()),
            right_choices=sum(each.right for each in self._deeds.values()),
            price=price,
        )

    def _pay(self) -> dict[str, int]:
        columns = schema.ledger.c
        rows = self.campaign.read(
            lambda tx: tx.connection.execute(
                select(columns.assessor, func.sum(columns.amount).label("total"))
                .where(columns.campaign == self.campaign.id, columns.entry == REWARD)
                .group_by(columns.assessor)
            ).all()
        )
        return {row.assessor: int(row.total) for row in rows}

    def _money(self, signs: _Signs, usable_now: int) -> MoneyStatus:
        """Return what it cost; the seconds behind the pay are added up again only after new pay."""
        key = (signs.ledger, signs.open)
        kept = self._seconds_paid
        if kept is None or kept[:2] != key:
            found = self.campaign.read(lambda tx: money_status(tx, self.campaign, usable_now))
            self._seconds_paid = (*key, found)
            return found
        found = kept[2]
        per = found.spent / usable_now if usable_now and found.spent else None
        return replace(found, per_usable_judgment=per)

    def _active(self) -> int:
        """Return how many people hold a question now."""
        columns = schema.question.c

        def work(tx: Reading) -> int:
            query = select(func.count(func.distinct(columns.assessor))).where(
                columns.campaign == self.campaign.id, columns.state == "leased", columns.expires >= tx.now
            )
            return int(tx.connection.execute(query).scalar_one())

        return self.campaign.read(work)


def _person(name: str, row: Any, deeds: Deeds, pay: int) -> Person:
    sided = deeds.left + deeds.right
    return Person(
        assessor=name,
        kind=row.kind if row else "imported",
        state=row.state if row else "in",
        judgments=deeds.judgments,
        usable=deeds.usable,
        topics=deeds.topics,
        tests_passed=deeds.tests_passed,
        tests_seen=deeds.tests_seen,
        left=deeds.left / sided if sided else None,
        sided=sided,
        seconds=deeds.seconds / deeds.timed if deeds.timed else None,
        agreement=deeds.agreed / deeds.compared if deeds.compared else None,
        compared=deeds.compared,
        pay=pay,
    )


def _why(found: TopicStatus, closings: tuple[Closing, ...]) -> str:
    """Say why a topic has stopped, or what it waits for; empty while it goes on."""
    if not found.done:
        return found.waits
    if found.phase == "done" and not closings:
        return "Done: no more questions are needed."
    sizes = " → ".join(str(size) for size in (found.items, *(len(each.survivors) for each in closings)))
    return f"Done: all phases are closed ({sizes} items)."
