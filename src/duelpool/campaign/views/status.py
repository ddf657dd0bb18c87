"""How a campaign stands: what is judged, out and left, who judged, what it cost, and what blocks it.

A `Status` is a snapshot. Reading it writes nothing.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.settings import Settings
from duelpool.campaign.views.people import AssessorStatus, assessors, retracted
from duelpool.campaign.views.reading import Read, read_topic, topics_of
from duelpool.campaign.work.ledger import REWARD, full_price, money
from duelpool.records import Kind, Outcome, Proposal
from duelpool.store import Reading, holdings, leases, log, schema

_ALL = 10**6


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """How one topic stands.

    `open` are questions that could be asked now, `held` judgments that wait for their assignment to end (they
    are among `judgments`), `parked` pairs that too many people could not judge.
    """

    topic: str
    text: str
    phase: str
    items: int
    judgments: int
    expected: int
    open: int
    leased: int
    held: int
    parked: int
    done: bool
    best: tuple[str, ...]
    confidence: float | None
    waits: str


@dataclass(frozen=True, slots=True)
class MoneyStatus:
    """What a campaign cost, in minor units; `left` is None without a budget, the last two without figures."""

    currency: str
    rewards: int
    fees: int
    others: int
    spent: int
    committed: int
    budget: int | None
    left: int | None
    per_usable_judgment: float | None
    pay_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Status:
    """How a campaign stands now."""

    campaign: str
    state: str
    stage: str
    strategy: str
    topics: tuple[TopicStatus, ...]
    assessors: tuple[AssessorStatus, ...]
    money: MoneyStatus
    blocks: tuple[str, ...]

    def total(self, name: str) -> int:
        """Return the sum of a figure over all topics."""
        return sum(int(getattr(each, name)) for each in self.topics)

    @property
    def done(self) -> bool:
        """Whether every topic has all that it needs."""
        return all(each.done for each in self.topics)

    def as_json(self) -> dict[str, Any]:
        """Return everything for a program."""
        totals = ("items", "judgments", "expected", "open", "leased", "held", "parked", "done")
        return {
            **dataclasses.asdict(self),
            "done": self.done,
            "totals": {"topics": len(self.topics), **{name: self.total(name) for name in totals}},
        }


def status(campaign: Campaign, progress: Callable[[int], None] | None = None) -> Status:
    """Look at a campaign; `progress` hears of each topic that was read."""
    return campaign.read(lambda tx: _status(tx, campaign, progress))


def _status(tx: Reading, campaign: Campaign, progress: Callable[[int], None] | None) -> Status:
    row = holdings.find_campaign(tx.connection, campaign.id)
    settings = campaign.settings
    asked = Asked.now(tx, campaign, row.state)
    texts = {name: topic.text for name, topic in holdings.topics(tx).items()}
    topics: list[TopicStatus] = []
    for name in topics_of(tx):
        if settings.stage == "grading":
            topics.append(graded_topic(tx, campaign, name, texts[name], asked))
        else:
            topics.append(_topic(tx, campaign, name, texts[name], asked))
        if progress is not None:
            progress(1)
    people = assessors(tx)
    own = sum(person.usable for person in people if person.kind != "imported")
    spent = money_status(tx, campaign, own)
    return Status(
        campaign=row.name,
        state=row.state,
        stage=settings.stage,
        strategy=settings.strategy,
        topics=tuple(topics),
        assessors=people,
        money=spent,
        blocks=tuple(
            blocks_of(
                tx,
                campaign,
                asked.state,
                topics=topics,
                nobody_left=bool(people) and all(person.state == "excluded" for person in people),
                spent=spent,
            )
        ),
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What is out now, and what nobody could judge, by topic."""

    state: str  # of the campaign
    leased: Mapping[str, Sequence[Proposal]]
    parked: Mapping[str, frozenset[tuple[str, str]]]

    @classmethod
    def now(cls, tx: Reading, campaign: Campaign, state: str) -> "Asked":
        """Look at what is out."""
        columns = schema.question.c
        rows = tx.connection.execute(
            select(columns.topic, columns.a, columns.b, columns.phase, columns.proposal, columns.state).where(
                columns.campaign == campaign.id,
                columns.test_pair.is_(None),
                columns.source != leases.REPEATED,
                ((columns.state == leases.LEASED) & (columns.expires >= tx.now))
                | (columns.state == leases.CANNOT_JUDGE),
            )
        )
        leased: dict[str, list[Proposal]] = {}
        refused: dict[str, Counter[tuple[str, str]]] = {}
        for row in rows:
            if row.state == leases.LEASED:
                proposal = Proposal((row.a, row.b), row.phase, row.proposal)
                leased.setdefault(row.topic, []).append(proposal)
            else:
                refused.setdefault(row.topic, Counter())[row.a, row.b] += 1
        after = campaign.settings.parked_after
        return cls(
            state,
            leased,
            {
                topic: frozenset(pair for pair, count in counts.items() if count >= after)
                for topic, counts in refused.items()
            },
        )


def _topic(tx: Reading, campaign: Campaign, topic: str, text: str, asked: Asked) -> TopicStatus:
    return topic_status(read_topic(tx, campaign, topic), text, asked)


def topic_status(found: Read, text: str, asked: Asked) -> TopicStatus:
    """Say how a topic stands, from what its log has made of it and what is out."""
    topic = found.topic
    strategy = found.strategy
    leased = asked.leased.get(topic, ())
    parked = asked.parked.get(topic, frozenset())
    pending = [*leased, *(Proposal(each.pair, each.phase, each.proposal) for each in found.held)]
    proposals = [each for each in strategy.ask(_ALL, pending) if each.pair not in parked]
    levels = strategy.result()
    items = sum(map(len, levels.levels))
    phases = [each.phase for each in (*proposals, *pending)]
    return TopicStatus(
        topic=topic,
        text=text,
        phase="done" if strategy.done else next(iter(phases), ""),
        items=items,
        judgments=found.usable,
        expected=found.usable if strategy.done else max(found.usable, _expected(found, items)),
        open=len(proposals),
        leased=len(leased),
        held=len(found.held),
        parked=len(parked),
        done=strategy.done,
        best=levels.best if found.judged else (),
        confidence=levels.confidence,
        waits=""
        if strategy.done
        else _waits(asked.state, len(proposals), len(leased), len(found.held), len(parked)),
    )


def _expected(found: Read, items: int) -> int:
    return round(found.strategy.expected_judgments(items))


def graded_topic(tx: Reading, campaign: Campaign, topic: str, text: str, asked: Asked) -> TopicStatus:
    """Say how a topic stands whose items are graded."""
    rows = holdings.items(tx, topic)
    items = [row.id for row in rows if row.twin_of is None and row.state == "in"]
    columns = schema.log.c
    gone = retracted(tx)
    given = Counter(
        row.left_item
        for row in tx.connection.execute(
            select(columns.seq, columns.left_item).where(
                columns.campaign == campaign.id,
                columns.topic == topic,
                columns.event == log.JUDGMENT,
                columns.outcome == str(Outcome.GRADE),
                columns.kind == str(Kind.GRADE),
            )
        )
        if (topic, row.seq) not in gone
    )
    wanted = campaign.settings.slots
    left = sum(max(0, wanted - given[item]) for item in items)
    leased = len(asked.leased.get(topic, ()))
    parked = len(asked.parked.get(topic, ()))
    open_now = max(0, left - leased - parked)
    return TopicStatus(
        topic=topic,
        text=text,
        phase="grading" if left else "done",
        items=len(items),
        judgments=sum(given.values()),
        expected=len(items) * wanted,
        open=open_now,
        leased=leased,
        held=0,
        parked=parked,
        done=not left,
        best=(),
        confidence=None,
        waits=_waits(asked.state, open_now, leased, 0, parked) if left else "",
    )


def _waits(state: str, open_now: int, leased: int, held: int, parked: int) -> str:
    if state != "open":
        return f"the campaign is {state}"
    if open_now:
        return ""
    reasons = [
        f"{count} {what}"
        for count, what in (
            (leased, "leased to assessors"),
            (held, "held until their assignment ends"),
            (parked, "parked: assessors could not judge them"),
        )
        if count
    ]
    return ", ".join(reasons) or "nothing to ask"


# ---- money


def money_status(tx: Reading, campaign: Campaign, usable: int) -> MoneyStatus:
    """Say what a campaign has cost, given how many judgments of its own people count."""
    settings: Settings = campaign.settings
    found = money(tx, settings)
    columns = schema.log.c
    paid = select(schema.ledger.c.assignment).where(
        schema.ledger.c.campaign == campaign.id, schema.ledger.c.entry == REWARD
    )
    seconds = tx.connection.execute(
        select(func.sum(columns.seconds)).where(
            columns.campaign == campaign.id, columns.event == log.JUDGMENT, columns.assignment.in_(paid)
        )
    ).scalar()
    return MoneyStatus(
        currency=settings.currency,
        rewards=found.rewards,
        fees=found.fees,
        others=found.others,
        spent=found.spent,
        committed=found.committed,
        budget=settings.budget,
        left=None if settings.budget is None else settings.budget - found.spent - found.committed,
        per_usable_judgment=found.spent / usable if usable and found.spent else None,
        pay_per_hour=found.rewards / (float(seconds) / 3600) if seconds else None,
    )


def blocks_of(
    tx: Reading,
    campaign: Campaign,
    state: str,
    *,
    topics: Sequence[TopicStatus],
    nobody_left: bool,
    spent: MoneyStatus,
) -> list[str]:
    """Say in sentences what keeps a campaign from going on."""
    settings = campaign.settings
    found: list[str] = []
    if all(topic.done for topic in topics):
        return found
    if state != "open":
        found.append(f"The campaign is {state}: no questions are asked.")
    if settings.judges == "crowd":
        if spent.left is not None and spent.left < full_price(settings):
            found.append("The budget doesn't cover another assignment.")
        known = len(holdings.test_pairs(tx))
        if settings.tests and settings.stage != "grading" and known < settings.tests:
            found.append(f"An assignment takes {settings.tests} test pairs, and there are {known}.")
    if parked := sum(topic.parked for topic in topics):
        found.append(f"{parked} pairs are parked: {settings.parked_after} people could not judge them.")
    if nobody_left:
        found.append("Every assessor is excluded.")
    stuck = [topic.topic for topic in topics if topic.waits == "nothing to ask"]
    if stuck and state == "open":
        found.append(f"{len(stuck)} topics have nothing to ask and aren't done: {', '.join(stuck[:5])}.")
    return found
