"""Which questions an assessor may be asked: the strategies' proposals less the outstanding ones, and test pairs."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import ColumnElement, CompoundSelect, Select, bindparam, select, union_all

from duelpool.campaign.log.live_topics import LiveTopics
from duelpool.campaign.questions.held_back import HeldBack
from duelpool.campaign.settings import Settings, Stage
from duelpool.deciders import ALL
from duelpool.errors import BadParameter
from duelpool.records import Kind, Proposal
from duelpool.seeds import rng_for
from duelpool.store import CampaignStore, Reading, holdings, leases, reservations, schema
from duelpool.store.leases import Wanted
from duelpool.store.statements import Statement
from duelpool.strategies import Strategy

T = TypeVar("T")
Pairs = Collection[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Outstanding:
    """The outstanding pairs by topic: an assessor's own and skipped ones, those leased to anyone, and the parked ones.

    Own and parked pairs are not asked now, skipped ones last.
    """

    own: Mapping[str, Pairs]
    skipped: Mapping[str, Pairs]
    leased: Mapping[str, Sequence[Proposal]]
    parked: Mapping[str, Pairs]
    any_overdue: bool = field(default=False, compare=False)  # among the leases that were read

    @property
    def seen(self) -> int:
        """How many pairs the assessor holds or has judged."""
        return sum(map(len, self.own.values()))


NOTHING_OUTSTANDING = Outstanding({}, {}, {}, {})

_QUESTIONS = schema.question.c


def _questions(*where: ColumnElement[bool]) -> Select[Any]:
    return select(
        _QUESTIONS.topic,
        _QUESTIONS.a,
        _QUESTIONS.b,
        _QUESTIONS.phase,
        _QUESTIONS.proposal,
        _QUESTIONS.state,
        _QUESTIONS.assessor,
        _QUESTIONS.expires,
    ).where(
        _QUESTIONS.campaign == bindparam("campaign"),
        _QUESTIONS.test_pair.is_(None),
        _QUESTIONS.source != leases.REPEATED,
        *where,
    )


# A union, so that each part uses an index of its own; with "or", all questions of the campaign would be read.
def _outstanding(*where: ColumnElement[bool]) -> CompoundSelect[Any]:
    own = _QUESTIONS.assessor == bindparam("assessor")
    return union_all(
        _questions(_QUESTIONS.state == leases.LEASED, *where),
        _questions(_QUESTIONS.state == leases.CANNOT_JUDGE, *where),
        _questions(own, _QUESTIONS.state == leases.ANSWERED, *where),
        _questions(own, _QUESTIONS.state == leases.SKIPPED, *where),
    )


_TESTS_SEEN = Statement(
    lambda _: select(_QUESTIONS.test_pair).where(
        _QUESTIONS.campaign == bindparam("campaign"),
        _QUESTIONS.assessor == bindparam("assessor"),
        _QUESTIONS.test_pair.is_not(None),
    )
)
_OUTSTANDING = Statement(lambda _: _outstanding())
_OUTSTANDING_IN = Statement(lambda _: _outstanding(_QUESTIONS.topic == bindparam("topic")))


def read_outstanding(
    tx: Reading, assessor: str, parked_after: int, *, live_only: bool = False, topic: str | None = None
) -> Outstanding:
    """Return what this assessor isn't asked now, of one `topic` or of all.

    With `live_only`, expired leases don't count as leased.
    """
    values = {"campaign": tx.campaign, "assessor": assessor}
    if topic is None:
        rows = _OUTSTANDING.tuples(tx.connection, values)
    else:
        rows = _OUTSTANDING_IN.tuples(tx.connection, {**values, "topic": topic})
    own: dict[str, set[tuple[str, str]]] = {}
    skipped: dict[str, set[tuple[str, str]]] = {}
    leased: dict[str, list[tuple[tuple[str, str], str, str]]] = {}
    not_judged: dict[str, dict[tuple[str, str], int]] = {}
    any_overdue = False
    now = tx.now
    for where, a, b, phase, proposal, state, person, expires in rows:
        pair = (a, b)
        if state == leases.SKIPPED:
            skipped.setdefault(where, set()).add(pair)
        elif person == assessor:
            own.setdefault(where, set()).add(pair)
        if state == leases.LEASED:
            overdue = expires < now
            any_overdue = any_overdue or overdue
            if not (live_only and overdue):
                leased.setdefault(where, []).append((pair, phase, proposal))
        elif state == leases.CANNOT_JUDGE:
            counts = not_judged.setdefault(where, {})
            counts[pair] = counts.get(pair, 0) + 1
    parked = {
        each: {pair for pair, count in counts.items() if count >= parked_after}
        for each, counts in not_judged.items()
    }
    return Outstanding(own, skipped, _Leased(leased), parked, any_overdue)


class _Leased(Mapping[str, Sequence[Proposal]]):
    """What is leased, by topic: of many topics few are asked, so proposals are made for those that are looked at."""

    def __init__(self, rows: Mapping[str, list[tuple[tuple[str, str], str, str]]]) -> None:
        self._rows = rows
        self._made: dict[str, Sequence[Proposal]] = {}

    def __getitem__(self, topic: str) -> Sequence[Proposal]:
        if topic not in self._made:
            self._made[topic] = [Proposal(*row) for row in self._rows[topic]]
        return self._made[topic]

    def __contains__(self, topic: object) -> bool:
        return topic in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def counts(self) -> dict[str, int]:
        """Return how many questions of each topic are leased."""
        return {topic: len(rows) for topic, rows in self._rows.items()}


class Proposals:
    """Turns the strategies' proposals into questions for one assessor."""

    def __init__(self, store: CampaignStore, settings: Settings, live: LiveTopics) -> None:
        self._store = store
        self._settings = settings
        self._live = live
        self.held_back = HeldBack(store, settings)
        self.texts_needed = True  # False: judges go by ids, and are asked about topics without texts too
        graded = settings.plan if settings.stage == "grading" else ()
        self._grades_wanted = {(row[0], row[1]): row[4] for row in graded}

    def slots(self, topic: str, item: str) -> int:
        """Return how many judgments a pair may get, or an item: those of the plan, if there is one."""
        return self._grades_wanted.get((topic, item), self._settings.slots)

    def now(
        self,
        heads: Mapping[str, int],
        outstanding: Outstanding,
        *,
        topics: Sequence[str] | None = None,
        skipped: bool = False,
    ) -> "TopicsNow":
        """Return the topics as a decider sees them for one person; with `skipped`, only what they have skipped."""
        return TopicsNow(self._settings, self._live, heads, outstanding, topics, skipped=skipped)

    def topics_for(self, assessor: str, among: Collection[str] | None = None) -> dict[str, int]:
        """Return the topics that an assessor may judge and that aren't known to be done, each with the end of its log.

        A reserved topic is judged by its assessors alone, who judge nothing else.
        """
        reserved = self._store.read(reservations.reserved_topics)
        held = self.held()
        own = {topic for topic, people in reserved.items() if assessor in people}
        only = next(iter(among)) if among is not None and len(among) == 1 else None
        grading = self._settings.stage == "grading"  # a strategy that is done says nothing about grades
        heads = self._live.heads(only) if grading or only is not None else self._live.unfinished_heads()
        return {
            topic: head
            for topic, head in heads.items()
            if (among is None or topic in among)
            and (topic in own if own else topic not in reserved)
            and topic not in held
        }

    def held(self) -> Collection[str]:
        """Return the topics that are held back from these judges."""
        return self.held_back.now().topics if self.texts_needed else ()

    def tests(self, assessor: str, rng: np.random.Generator) -> list[Wanted]:
        """Return test pairs that an assessor hasn't seen, as many as an assignment takes."""
        wanted = self._settings.tests
        if not wanted or self._settings.stage == "grading":
            return []
        fresh = self._store.read(lambda tx: self._fresh_tests(tx, assessor))
        if len(fresh) < wanted:
            raise BadParameter(
                f"Only {len(fresh)} test pairs are left for this assessor, and an assignment takes {wanted}.",
                remedy="Add test pairs, or make a campaign with fewer of them (tests: 0 for none).",
            )
        picked = [fresh[at] for at in rng.permutation(len(fresh))[:wanted]]
        return [
            replace(
                self.want(
                    pair.topic, (pair.better, pair.worse), Proposal((pair.better, pair.worse)), assessor
                ),
                test_pair=pair.id,
            )
            for pair in picked
        ]

    def _fresh_tests(self, tx: Reading, assessor: str) -> list[holdings.TestPair]:
        rows = _TESTS_SEEN.tuples(tx.connection, {"campaign": tx.campaign, "assessor": assessor})
        seen = {name for (name,) in rows}
        held = self.held_back.now(tx).topics if self.texts_needed else ()
        return [
            pair
            for name, pair in holdings.test_pairs(tx).items()
            if name not in seen and pair.topic not in held
        ]

    def want(
        self,
        topic: str,
        pair: tuple[str, str],
        proposal: Proposal,
        assessor: str,
        *,
        kind: Kind | None = None,
    ) -> Wanted:
        """Return a proposal as a question for an assessor; the sides are drawn here."""
        first, second = pair
        stage: Stage = self._settings.stage
        kind = kind or (Kind.GRADE if stage == "grading" else self._settings.kind)
        if kind is Kind.GRADE:
            return Wanted(
                topic,
                first,
                None,
                criterion=self._settings.criterion,
                stage=stage,
                kind=kind,
                propensity=proposal.propensity,
                strategy=self._live.version_of(topic) if self._settings.plan else "",
                most=self._grades_wanted.get((topic, first)),
            )
        swap = rng_for(self._settings.seed, topic, *sorted(pair), assessor, "side").random() < 0.5
        low, high = sorted((first, second))
        return Wanted(
            topic,
            high if swap else low,
            low if swap else high,
            criterion=self._settings.criterion,
            stage=stage,
            kind=kind,
            phase=proposal.phase,
            proposal=proposal.proposal,
            propensity=proposal.propensity,
            strategy=self._live.version_of(topic),
        )


class TopicsNow:
    """The topics that one person may be asked about now, as a decider sees them.

    What the person has judged or holds is left out, and so are parked pairs. What they have skipped is left out too, or
    is all that there is.
    """

    def __init__(
        self,
        settings: Settings,
        live: LiveTopics,
        heads: Mapping[str, int],
        outstanding: Outstanding,
        topics: Sequence[str] | None = None,
        *,
        skipped: bool = False,
    ) -> None:
        self._settings = settings
        self._live = live
        self._heads = heads
        self._outstanding = outstanding
        self._skipped = skipped
        among = heads if topics is None else topics
        self.topics = [topic for topic in among if not skipped or topic in outstanding.skipped]
        self._all: dict[str, int] | None = None
        self._pending_pairs: dict[str, set[tuple[str, str]]] = {}

    @property
    def all_topics(self) -> list[str]:
        """All open topics, those included that this person isn't asked about."""
        return list(self._all_heads())

    def _all_heads(self) -> Mapping[str, int]:
        if self._all is None:
            self._all = {**self._live.heads(), **self._heads}
        return self._all

    def proposals(self, topic: str, n: int) -> Sequence[Proposal]:
        """Return up to n proposals of a topic for this person, the first choice first."""
        own = self._outstanding.own.get(topic, ())
        passed = self._outstanding.skipped.get(topic, ())
        proposals: Sequence[Proposal]
        if self._settings.stage == "grading":
            chances = {row[1]: row[3] for row in self._settings.planned(topic)}
            proposals = [
                Proposal((item, ""), propensity=chances.get(item)) for item in self._live.items(topic)
            ]
            n = ALL  # leases aren't subtracted here: the caller needs every item
        else:
            # The person's own and skipped pairs may come first: ask for as many more.
            proposals = self._live.proposals(
                topic,
                n + len(own) + len(passed),
                self._outstanding.leased.get(topic, ()),
                self._outstanding.parked.get(topic, ()),
                self._head(topic),
            )
        if not own and not passed and not self._skipped:
            return proposals[:n]
        fresh = [
            each for each in proposals if each.pair not in own and (each.pair in passed) == self._skipped
        ]
        return fresh[:n]

    def pending(self, topic: str) -> list[Proposal]:
        """Return what is leased to anyone, and what waits for its assignment."""
        return [*self._outstanding.leased.get(topic, ()), *self._live.held(topic, self._head(topic))]

    def may_ask(self, topic: str, pair: tuple[str, str]) -> bool:
        """Whether this person may be asked about an open pair of a topic now."""
        if pair in self._outstanding.own.get(topic, ()) or pair in self._outstanding.parked.get(topic, ()):
            return False
        if (pair in self._outstanding.skipped.get(topic, ())) != self._skipped:
            return False
        if topic not in self._pending_pairs:
            self._pending_pairs[topic] = {each.pair for each in self.pending(topic)}
        return pair not in self._pending_pairs[topic]

    def sizes(self) -> list[float]:
        """Return about how many open questions each topic has, without asking any strategy."""
        out = self._outstanding.leased
        leased = (
            out.counts() if isinstance(out, _Leased) else {topic: len(each) for topic, each in out.items()}
        )
        return self._live.sizes({topic: self._heads[topic] for topic in self.topics}, leased)

    def stamp(self, topic: str) -> object:
        """Return what changes whenever a topic's part does."""
        return self._live.stamp(topic, self._head(topic))

    def look(self, topic: str, work: Callable[[Strategy], T]) -> T:
        """Return what `work` makes of a topic's part."""
        return self._live.look(topic, self._head(topic), work)

    def _head(self, topic: str) -> int:
        return self._heads[topic] if topic in self._heads else self._all_heads()[topic]
