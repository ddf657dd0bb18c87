"""The state of a campaign: what is judged, leased and left, who judged, what it cost, and what blocks it.

`CampaignStatus` is the one view that the dashboard, `duelpool status`, the API and the report share. `status` reads
it once; `views.watch.Watch` keeps it up to date.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log import summary_rows as stored
from duelpool.campaign.log.summary_rows import Caption, Summary
from duelpool.campaign.questions.held_back import NONE_HELD, HeldTopics
from duelpool.campaign.questions.proposals import Outstanding, read_outstanding
from duelpool.campaign.settings import Settings
from duelpool.campaign.views import certainty, summaries
from duelpool.campaign.views.reading import ReadTopic
from duelpool.campaign.views.summaries import Summarised
from duelpool.campaign.views.tally import AssessorTally
from duelpool.campaign.views.topic_summary import Closing, TopicSummary, first_phase, pending_of
from duelpool.campaign.work.ledger import REWARD, full_price, money
from duelpool.deciders import ALL, SpendingStatus, TopicWorth, read_spend
from duelpool.frames import Tabular, counted, frame_of
from duelpool.records import Certainty, Proposal
from duelpool.store import Reading, holdings, leases, log, schema
from duelpool.store.holdings import AssessorRow
from duelpool.strategies.base import ask_lazily
from duelpool.strategies.tables.pair_numbers import without

if TYPE_CHECKING:
    import polars as pl

NOTHING_TO_ASK = "nothing to ask"


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """The state of one topic.

    `open` are questions that could be asked now, `held` judgments that wait for their assignment to end (they
    are among `judgments`), `parked` pairs that too many people could not judge. `expected` is about how many judgments
    the topic takes in all: what the strategy expects, at least those that are there, leased and open. `certainty` is
    how sure the best items are, `confidence` the chance in it that a best one is among them, `statement` what it says
    in words. `outdated`: best items and certainty are those of an earlier moment, or none yet; the present ones take
    long, and are still to be worked out. Where judgments aren't spent evenly, `worth` is how much is still open (the
    chance that the likeliest item isn't the best, or a variance of scores); None once the topic is `settled`. `gain` is
    what ten more judgments are expected to take off it, `still_open` both in words.
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
    certainty: Certainty | None
    statement: str
    outdated: bool
    waits: str
    worth: float | None = None
    settled: bool | None = None
    gain: float | None = None
    still_open: str = ""


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic with all that pages show of it: its status, levels, closed phases and tags.

    `kept` are the levels that become grades; `why` says why the topic stopped, or what it waits for.
    """

    status: TopicStatus
    position: int
    tags: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    kept: tuple[tuple[str, ...], ...]
    closings: tuple[Closing, ...]
    why: str
    pool_version: int = 0
    worth: TopicWorth | None = None


@dataclass(frozen=True, slots=True)
class AssessorStatus:
    """One assessor's work.

    `left` is the share of decisions that count for the left side (of `sided`), `agreement` the share of the others'
    votes on the same pairs that have the same winner (of `compared`), `seconds` the mean of an answer, `pay` in minor
    units.
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
class MoneyStatus:
    """What a campaign cost, in minor units.

    `left` is None without a budget; `per_usable_judgment` and `pay_per_hour` are None without figures. The hours are
    those of paid assignments, without those whose reward was withdrawn.
    """

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
class Hindrance:
    """What keeps a campaign from going on: its kind, and a sentence about it."""

    kind: str  # state, held, budget, tests, parked, excluded or stuck
    sentence: str


@dataclass(frozen=True, slots=True, repr=False)
class CampaignStatus(Tabular):
    """The state of a campaign at one moment; a `Watch` gives each change a new `version`.

    `active` people hold a question now. `price` is that of one usable judgment: so far, or as expected. `spending` says
    how many topics are settled, where judgments aren't spent evenly.
    """

    campaign: str
    state: str
    stage: str
    strategy: str
    topics: tuple[TopicView, ...]
    assessors: tuple[AssessorStatus, ...]
    money: MoneyStatus
    hindrances: tuple[Hindrance, ...]
    active: int
    left_choices: int
    right_choices: int
    price: float | None
    version: int = 1
    spending: SpendingStatus | None = None

    def __repr__(self) -> str:
        finished = sum(topic.done for topic in self.topic_statuses)
        shown = f"{finished} of {counted(len(self.topics), 'topic')} done"
        judgments = counted(self.total("judgments"), "judgment")
        return f"CampaignStatus({self.campaign!r}, {self.state}, {shown}, {judgments})"

    def to_polars(self) -> "pl.DataFrame":
        """Return a row a topic: its judgments, what is open, and the best items."""
        names = ("topic", "phase", "items", "judgments", "expected", "open", "leased")
        rows = (
            (*(getattr(each, name) for name in names), each.done, " ".join(each.best))
            for each in self.topic_statuses
        )
        kinds = {name: "String" if name in ("topic", "phase") else "Int64" for name in names}
        return frame_of(rows, {**kinds, "done": "Boolean", "best": "String"})

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return self.as_json()

    @property
    def topic_statuses(self) -> tuple[TopicStatus, ...]:
        """The status of every topic, without what pages show beside it."""
        return tuple(view.status for view in self.topics)

    def total(self, name: str) -> int:
        """Return the sum of a figure over all topics."""
        return sum(int(getattr(topic, name)) for topic in self.topic_statuses)

    @property
    def blocks(self) -> tuple[str, ...]:
        """What keeps the campaign from going on, in sentences."""
        return tuple(each.sentence for each in self.hindrances)

    @property
    def done(self) -> bool:
        """Whether every topic has all that it needs, or all judgments are spent."""
        spent = self.spending is not None and self.spending.done
        return spent or all(topic.done for topic in self.topic_statuses)

    def as_json(self) -> dict[str, Any]:
        """Return the figures for a program."""
        totals = ("items", "judgments", "expected", "open", "leased", "held", "parked", "done", "outdated")
        return {
            "campaign": self.campaign,
            "state": self.state,
            "stage": self.stage,
            "strategy": self.strategy,
            "topics": [dataclasses.asdict(topic) for topic in self.topic_statuses],
            "assessors": [dataclasses.asdict(each) for each in self.assessors],
            "money": dataclasses.asdict(self.money),
            "blocks": self.blocks,
            "done": self.done,
            "spending": None if self.spending is None else self.spending.as_json(),
            "totals": {"topics": len(self.topics), **{name: self.total(name) for name in totals}},
        }


def status(
    campaign: Campaign,
    progress: Callable[[int], None] | None = None,
    turns: summaries.Turns | None = None,
) -> CampaignStatus:
    """Read the state of a campaign as of one moment; `progress(1)` follows each topic.

    A topic's log is read only where its summary is missing or old, or where its strategy must be asked. Summaries that
    took long to work out are stored, if the store can be written. With `turns`, so many results that take long are
    worked out; the topics of the others are `outdated`.
    """
    rows: list[Summary] = []
    left = None if turns is None else turns.left

    def work(tx: Reading) -> CampaignStatus:
        rows.clear()
        return _status(
            tx, campaign, summaries.read(tx, campaign, rows.append, turns=summaries.Turns(left)), progress
        )

    now = campaign.read(work)
    summaries.keep(campaign, rows)
    return now


def recounted_status(campaign: Campaign) -> CampaignStatus:
    """Read the state of a campaign from its whole log: what `status` is held to."""
    return campaign.read(lambda tx: _status(tx, campaign, summaries.recount(tx, campaign), None))


def _status(
    tx: Reading, campaign: Campaign, topics: Iterable[Summarised], progress: Callable[[int], None] | None
) -> CampaignStatus:
    settings = campaign.settings
    state = holdings.find_campaign(tx.connection, tx.campaign).state
    out = outstanding(tx, settings)
    captions = stored.captions(tx)
    graded = graded_items(tx) if settings.stage == "grading" else None
    views: list[TopicView] = []
    totals: dict[str, AssessorTally] = {}
    for each in topics:
        known, read = each.known, each.read
        if read is None and needs_strategy(known, each.topic, out, graded is not None):
            read = summaries.replay(tx, campaign, each.topic)
        own = None if graded is None else graded.get(each.topic, ())
        views.append(
            topic_view(
                settings, each.topic, known, captions[each.topic], state=state, out=out, read=read, graded=own
            )
        )
        for assessor, tally in known.assessors.items():
            totals.setdefault(assessor, AssessorTally()).add(tally)
        if progress is not None:
            progress(1)
    return campaign_status(
        campaign,
        state=state,
        topics=views,
        tallies=totals,
        enrolled=holdings.assessors(tx),
        pay=rewards_earned(tx),
        money=lambda usable: money_status(tx, settings, usable),
        test_pairs=len(better_items(tx)),
        active=active_assessors(tx),
        held_back=campaign.held_back(tx),
    )


# ---- what `status` and `Watch` read from the store


def outstanding(tx: Reading, settings: Settings) -> Outstanding:
    """Return the live leases and the parked pairs of all topics."""
    return read_outstanding(tx, "", settings.parked_after, live_only=True)


def better_items(tx: Reading) -> dict[str, str]:
    """Return the better item of each test pair."""
    return {name: pair.better for name, pair in holdings.test_pairs(tx).items()}


def graded_items(tx: Reading, topic: str | None = None) -> dict[str, list[str]]:
    """Return the items that are graded, by topic: those in the pools, duplicates left out."""
    return holdings.judged_items(tx, topic)


def rewards_earned(tx: Reading) -> dict[str, int]:
    """Return the rewards of each assessor in the ledger, in minor units."""
    columns = schema.ledger.c
    rows = tx.connection.execute(
        select(columns.assessor, func.sum(columns.amount).label("total"))
        .where(columns.campaign == tx.campaign, columns.entry == REWARD)
        .group_by(columns.assessor)
    )
    return {row.assessor: int(row.total) for row in rows}


def active_assessors(tx: Reading) -> int:
    """Return how many people hold a question now."""
    columns = schema.question.c
    query = select(func.count(func.distinct(columns.assessor))).where(
        columns.campaign == tx.campaign, columns.state == leases.LEASED, columns.expires >= tx.now
    )
    return int(tx.connection.execute(query).scalar_one())


def money_status(tx: Reading, settings: Settings, usable: int) -> MoneyStatus:
    """Return what a campaign has cost; `usable` is the number of usable judgments by its own assessors."""
    sums = money(tx, settings)
    seconds = _paid_seconds(tx) if sums.rewards else None  # without rewards no line of the log need be read
    return MoneyStatus(
        currency=settings.currency,
        rewards=sums.rewards,
        fees=sums.fees,
        others=sums.others,
        spent=sums.spent,
        committed=sums.committed,
        budget=settings.budget,
        left=None if settings.budget is None else settings.budget - sums.spent - sums.committed,
        per_usable_judgment=sums.spent / usable if usable and sums.spent else None,
        pay_per_hour=sums.rewards / (seconds / 3600) if seconds else None,
    )


def _paid_seconds(tx: Reading) -> float | None:
    """Return how long people judged in assignments that were rewarded, and not withdrawn."""
    columns, ledger, payment = schema.log.c, schema.ledger.c, schema.payment.c
    withdrawn = select(payment.ledger).where(
        payment.campaign == tx.campaign, payment.kind == "withdrawal", payment.ledger.is_not(None)
    )
    paid = select(ledger.assignment).where(
        ledger.campaign == tx.campaign, ledger.entry == REWARD, ledger.id.not_in(withdrawn)
    )
    query = select(func.sum(columns.seconds)).where(
        columns.campaign == tx.campaign, columns.event == log.JUDGMENT, columns.assignment.in_(paid)
    )
    seconds = tx.connection.execute(query).scalar()
    return None if seconds is None else float(seconds)


# ---- one topic


def needs_strategy(known: TopicSummary, topic: str, out: Outstanding, grading: bool) -> bool:
    """Whether the strategy must be asked: pairs are out or parked, and it decides which others may be asked."""
    return not grading and not known.done and bool(out.leased.get(topic) or out.parked.get(topic))


def topic_view(
    settings: Settings,
    topic: str,
    known: TopicSummary,
    caption: Caption,
    *,
    state: str,
    out: Outstanding,
    read: ReadTopic | None = None,
    graded: Sequence[str] | None = None,
    pool_version: int = 0,
) -> TopicView:
    """Return the view of a topic; `graded` are its items while the campaign collects grades.

    `read` is the replayed topic, where its strategy must be asked.
    """
    leased = out.leased.get(topic, ())
    parked = out.parked.get(topic, ())
    if graded is None:
        own = _judged_topic(topic, known, read, caption.text, state, leased, parked)
    else:
        planned = settings.grades_wanted(topic)
        own = _graded_topic(
            topic,
            caption.text,
            state,
            wanted={item: planned[item] or settings.slots for item in graded},
            grades=Counter(known.grades),
            leased=Counter(each.pair[0] for each in leased),
            parked={item for item, _ in parked},
        )
    if known.worth is not None and own.worth is not None:
        spend = read_spend(settings.spend)
        gain = known.worth.gain(spend)
        own = dataclasses.replace(own, gain=gain, still_open=spend.in_words(own.worth, gain))
    return TopicView(
        status=own,
        position=known.position,
        tags=caption.tags,
        levels=known.levels,
        kept=known.levels[: known.kept],
        closings=known.closings,
        why=_why(own, known.closings),
        pool_version=pool_version,
        worth=known.worth,
    )


def _judged_topic(  # noqa: PLR0917
    topic: str,
    known: TopicSummary,
    read: ReadTopic | None,
    text: str,
    state: str,
    leased: Sequence[Proposal],
    parked: Collection[tuple[str, str]],
) -> TopicStatus:
    opened, phase = known.open, known.phase
    if read is not None:
        pending = pending_of(read, leased)
        proposals = without(ask_lazily(read.strategy, ALL, pending), parked)
        opened, phase = len(proposals), first_phase(proposals, pending)
    asked = known.judgments + len(leased) + opened
    return TopicStatus(
        topic=topic,
        text=text,
        phase="done" if known.done else phase,
        items=known.items,
        judgments=known.judgments,
        expected=known.judgments if known.done else max(asked, known.by_strategy),
        open=opened,
        leased=len(leased),
        held=known.held,
        parked=len(parked),
        done=known.done,
        **_result_of(known),
        waits="" if known.done else _waits(state, opened, len(leased), known.held, len(parked)),
        worth=None if known.worth is None or known.worth.settled else known.worth.worth,
        settled=None if known.worth is None else known.worth.settled,
    )


def _result_of(known: TopicSummary) -> dict[str, Any]:
    """Return what a topic's status has of its result."""
    best = known.levels[0] if known.levels else ()
    return {
        "best": best,
        "confidence": None if known.certainty is None else known.certainty.best,
        "certainty": known.certainty,
        "statement": certainty.in_words(known.certainty, len(best)),
        "outdated": not known.stated,
    }


def with_result(view: TopicView, known: TopicSummary, grading: bool) -> TopicView:
    """Return a topic's view with its result, once that is worked out."""
    return dataclasses.replace(
        view,
        status=view.status if grading else dataclasses.replace(view.status, **_result_of(known)),
        levels=known.levels,
        kept=known.levels[: known.kept],
    )


def _graded_topic(
    topic: str,
    text: str,
    state: str,
    *,
    wanted: Mapping[str, int],
    grades: Counter[str],
    leased: Counter[str],
    parked: Collection[str],
) -> TopicStatus:
    lacking = {item: max(0, most - grades[item]) for item, most in wanted.items()}
    left = sum(lacking.values())
    open_now = sum(max(0, number - leased[item]) for item, number in lacking.items() if item not in parked)
    return TopicStatus(
        topic=topic,
        text=text,
        phase="grading" if left else "done",
        items=len(wanted),
        judgments=grades.total(),
        expected=grades.total() + left,
        open=open_now,
        leased=leased.total(),
        held=0,  # a grade counts at once
        parked=len(parked),
        done=not left,
        best=(),
        confidence=None,
        certainty=None,
        statement="",
        outdated=False,
        waits=_waits(state, open_now, leased.total(), 0, len(parked)) if left else "",
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
    return ", ".join(reasons) or NOTHING_TO_ASK


def _why(topic: TopicStatus, closings: Sequence[Closing]) -> str:
    """Say why a topic has stopped, or what it waits for; empty while it goes on."""
    if not topic.done:
        return topic.waits
    if topic.phase == "done" and not closings:
        return "Done: no more questions are needed."
    sizes = " → ".join(str(size) for size in (topic.items, *(len(each.survivors) for each in closings)))
    return f"Done: all phases are closed ({sizes} items)."


# ---- the whole campaign


def campaign_status(
    campaign: Campaign,
    *,
    state: str,
    topics: Sequence[TopicView],
    tallies: Mapping[str, AssessorTally],
    enrolled: Mapping[str, AssessorRow],
    pay: Mapping[str, int],
    money: Callable[[int], MoneyStatus],
    test_pairs: int,
    active: int,
    held_back: HeldTopics = NONE_HELD,
    version: int = 1,
) -> CampaignStatus:
    """Put the parts together; `money(usable)` is asked once the usable judgments are known."""
    settings = campaign.settings
    imported = sorted(name for name, own in tallies.items() if name and own.topics and name not in enrolled)
    people = tuple(
        _assessor(name, enrolled.get(name), tallies.get(name) or AssessorTally(), pay.get(name, 0))
        for name in (*enrolled, *imported)
    )
    worths = [view.worth for view in topics if view.worth is not None]
    spending = SpendingStatus.of(campaign.live.spend, worths, settings.spend_judgments) if worths else None
    spent = money(sum(each.usable for each in people if each.kind != "imported"))
    price = spent.per_usable_judgment
    if price is None and settings.judges == "crowd":
        price = full_price(settings) / settings.targets
    return CampaignStatus(
        campaign=campaign.name,
        state=state,
        stage=settings.stage,
        strategy=settings.strategy,
        topics=tuple(topics),
        assessors=people,
        money=spent,
        hindrances=tuple(
            _hindrances(
                settings,
                state,
                topics=topics,
                people=people,
                spent=spent,
                done=spending is not None and spending.done,
                test_pairs=test_pairs,
                held_back=held_back,
            )
        ),
        active=active,
        left_choices=sum(own.left for own in tallies.values()),
        right_choices=sum(own.right for own in tallies.values()),
        price=price,
        version=version,
        spending=spending,
    )


def _assessor(name: str, row: AssessorRow | None, tally: AssessorTally, pay: int) -> AssessorStatus:
    sided = tally.left + tally.right
    return AssessorStatus(
        assessor=name,
        kind=row.kind if row else "imported",
        state=row.state if row else "in",
        judgments=tally.judgments,
        usable=tally.usable,
        topics=tally.topics,
        tests_passed=tally.tests_passed,
        tests_seen=tally.tests_seen,
        left=tally.left / sided if sided else None,
        sided=sided,
        seconds=tally.seconds / tally.timed if tally.timed else None,
        agreement=tally.agreed / tally.compared if tally.compared else None,
        compared=tally.compared,
        pay=pay,
    )


def _hindrances(
    settings: Settings,
    state: str,
    *,
    topics: Sequence[TopicView],
    people: Sequence[AssessorStatus],
    spent: MoneyStatus,
    done: bool,
    test_pairs: int,
    held_back: HeldTopics,
) -> Iterator[Hindrance]:
    """Yield what keeps a campaign from going on."""
    if done or all(view.status.done for view in topics):
        return
    if state != "open":
        yield Hindrance("state", f"The campaign is {state}: no questions are asked.")
    if held_back:
        yield Hindrance("held", f"{held_back} Add what is missing in the settings, or with `duelpool texts`.")
    if settings.judges == "crowd":
        if spent.left is not None and spent.left < full_price(settings):
            yield Hindrance("budget", "The budget doesn't cover another assignment.")
        if settings.tests and settings.stage != "grading" and test_pairs < settings.tests:
            needed = counted(settings.tests, "test pair")
            are = "there is 1" if test_pairs == 1 else f"there are {test_pairs}"
            yield Hindrance("tests", f"An assignment takes {needed}, and {are}.")
    if parked := sum(view.status.parked for view in topics):
        are = "pair is" if parked == 1 else "pairs are"
        people_who = counted(settings.parked_after, "person", "people")
        yield Hindrance(
            "parked",
            f"{parked:,} {are} parked: {people_who} could not judge {'it' if parked == 1 else 'them'}.",
        )
    if people and all(each.state == "excluded" for each in people):
        yield Hindrance("excluded", "Every assessor is excluded.")
    stuck = [view.status.topic for view in topics if view.status.waits == NOTHING_TO_ASK]
    if stuck and state == "open":
        have = (
            "topic has nothing to ask and isn't done"
            if len(stuck) == 1
            else "topics have nothing to ask and aren't done"
        )
        yield Hindrance("stuck", f"{len(stuck):,} {have}: {', '.join(stuck[:5])}.")
