"""The one loop that all judges share: ask, answer, take back, finish.

`Campaign` has the verbs; page, command line and programs only translate. Every verb is one transaction: what it
returns is stored, and a verb that raises has changed nothing.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from sqlalchemy import Connection, Row, func, insert, select, update

from duelpool.campaign import money, quality
from duelpool.campaign.settings import Settings
from duelpool.campaign.topics import LiveTopics, done_by, leased_by_topic, parked_by_topic
from duelpool.errors import BadParameter, BadRecord, DuelpoolError
from duelpool.records import Judgment, Levels, Passage, Pool, Proposal, Question, Topic
from duelpool.seeds import rng_for
from duelpool.store import Store, holdings, leases, log, schema
from duelpool.store.leases import Answer, Receipt, Wanted
from duelpool.strategies import STRATEGIES
from duelpool.strategies.parameters import split_spec

AssignmentRow: TypeAlias = Row[Any]

_ASK_WIDELY = 10**6
_FEWEST_TESTS = 2
_RESERVE = 6  # more questions are chosen than needed, for others may be quicker


class NotAllowed(DuelpoolError):
    """The campaign is paused or closed, or this assessor may not judge in it."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a person accepts and is paid for: some questions, test pairs among them."""

    id: str
    assessor: str
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of an assignment: what it is paid, and whether its judgments count."""

    assignment: str
    state: str
    answered: int
    questions: int
    reward: int
    counted: bool
    tests_passed: int
    tests_seen: int


@dataclass(frozen=True, slots=True)
class _Out:
    """What is not to be asked now: a person's own pairs, what is leased, and what waits for the manager."""

    seen: Mapping[str, Collection[tuple[str, str]]]
    leased: Mapping[str, Collection[Proposal]]
    parked: Mapping[str, Collection[tuple[str, str]]]


class Campaign:
    """One campaign of a store."""

    def __init__(self, store: Store, row: holdings.CampaignRow) -> None:
        self.store = store
        self.id = row.id
        self.name = row.name
        self.settings = Settings.from_json(row.settings)
        self.live = LiveTopics(store, row.id, self.settings)

    # ---- setting up

    @classmethod
    def create(
        cls,
        store: Store,
        name: str,
        settings: Settings,
        *,
        topics: Iterable[Topic],
        pools: Iterable[Pool],
        passages: Iterable[Passage] = (),
        known_pairs: Iterable[holdings.KnownPair] = (),
    ) -> Self:
        """Make a campaign with all it needs, in one transaction."""
        campaign = secrets.token_hex(8)
        pools = list(pools)
        known = {topic.id: topic for topic in topics}
        asked = [known.get(pool.topic, Topic(pool.topic, pool.topic)) for pool in pools]

        def work(connection: Connection, now: float) -> holdings.CampaignRow:
            holdings.create_campaign(connection, campaign, name, settings.as_json(), now)
            holdings.add_topics(connection, campaign, asked)
            for pool in pools:
                holdings.add_pool(connection, campaign, pool)
            holdings.add_passages(connection, campaign, passages)
            holdings.add_test_pairs(connection, campaign, known_pairs)
            return holdings.find_campaign(connection, campaign)

        return cls(store, store.write(work))

    @classmethod
    def open(cls, store: Store, name: str | None = None) -> Self:
        """Return the campaign of this name, or the only one of the store."""
        return cls(store, store.read(lambda connection: holdings.find_campaign(connection, name)))

    def set_state(self, state: Literal["open", "paused", "closed"]) -> None:
        """Open, pause or close the campaign."""
        self.store.write(lambda connection, now: holdings.set_campaign(connection, self.id, state=state))

    def add_items(self, pool: Pool) -> int:
        """Let items join a topic (or a new topic join); return how many are new."""

        def work(connection: Connection, now: float) -> int:
            holdings.add_topics(connection, self.id, [Topic(pool.topic, pool.topic)])
            return holdings.add_pool(connection, self.id, pool)

        added = self.store.write(work)
        self.live.forget(pool.topic)
        return added

    def enrol(self, assessor: str, kind: Literal["crowd", "dedicated", "program"] | None = None) -> None:
        """Let an assessor in, by pseudonym."""
        chosen = kind or self.settings.judges
        self.store.write(lambda connection, now: holdings.enrol(connection, self.id, assessor, chosen, now))

    # ---- asking

    def next_question(self, assessor: str, topics: Collection[str] | None = None) -> Question | None:
        """Return the next question for a dedicated assessor or a program, one topic at a time.

        A question that this person holds already is returned again. None: there is nothing for them now.
        """
        self._check(assessor)
        held = self._held_by(assessor)
        if held is not None:
            return held
        out = self._what_is_out(assessor)
        for topic, head in self.live.heads().items():
            if topics is not None and topic not in topics:
                continue
            for n in (_RESERVE, _ASK_WIDELY):  # a few will do, unless this person has answered just those
                granted = self._lease(self._wanted(topic, n, head, out, assessor), assessor, at_most=1)
                if granted:
                    return granted[0]
        return None

    def next_assignment(self, assessor: str) -> Assignment | None:
        """Return the assignment that this person has open, or a new one; None when there is no work or money.

        Ten questions at random over all topics, none that this person has answered, at most three of a topic
        where possible, with test pairs mixed in.
        """
        self._check(assessor)
        held = self.open_assignment(assessor)
        if held is not None:
            return held
        out = self._what_is_out(assessor)
        wanted = [
            want
            for topic, head in self.live.heads().items()
            for want in self._wanted(topic, _ASK_WIDELY, head, out, assessor)
        ]
        if not wanted:
            return None
        rng = rng_for(self.settings.seed, "assignment", assessor, sum(map(len, out.seen.values())))
        shuffled = [wanted[at] for at in rng.permutation(len(wanted))]
        chosen = spread(shuffled, self.settings.per_topic)[: self.settings.targets + _RESERVE]
        return self._open_assignment(assessor, chosen, self._tests(assessor, rng), rng)

    def _tests(self, assessor: str, rng: np.random.Generator) -> list[Wanted]:
        if not self.settings.tests:
            return []
        known = self.store.read(lambda connection: holdings.known_pairs(connection, self.id))
        done = self.store.read(
            lambda connection: set(
                connection.execute(
                    select(schema.question.c.test_pair).where(
                        schema.question.c.campaign == self.id,
                        schema.question.c.assessor == assessor,
                        schema.question.c.test_pair.is_not(None),
                    )
                ).scalars()
            )
        )
        fresh = [pair for name, pair in known.items() if name not in done]
        if len(fresh) < self.settings.tests:
            return []
        picked = [fresh[at] for at in rng.permutation(len(fresh))[: self.settings.tests]]
        return [
            replace(self._want(pair.topic, Proposal((pair.better, pair.worse)), assessor), test_pair=pair.id)
            for pair in picked
        ]

    def _open_assignment(
        self, assessor: str, chosen: Sequence[Wanted], tests: Sequence[Wanted], rng: np.random.Generator
    ) -> Assignment | None:
        assignment = secrets.token_hex(8)
        if self.settings.tests and not tests:
            raise BadParameter(
                "There are no test pairs left for this assessor.",
                remedy="Add test pairs, or make a campaign without them (tests: 0).",
            )

        order = rng.permutation(self.settings.targets + len(tests))  # drawn here: work may run twice

        def work(connection: Connection, now: float) -> Assignment | None:
            leases.expire(connection, self.id, now)
            if not self._affordable(connection):
                return None
            connection.execute(
                insert(schema.assignment).values(
                    id=assignment, campaign=self.id, assessor=assessor, questions=0, created=now
                )
            )

            def lease(wanted: Sequence[Wanted], at_most: int) -> list[Question]:
                return leases.lease(
                    connection,
                    self.id,
                    wanted,
                    [secrets.token_hex(8) for _ in wanted],
                    assessor=assessor,
                    cap=self.settings.cap,
                    now=now,
                    seconds=self.settings.lease_seconds,
                    at_most=at_most,
                    assignment=assignment,
                )

            targets = lease(chosen, self.settings.targets)
            if not targets:
                connection.execute(schema.assignment.delete().where(schema.assignment.c.id == assignment))
                return None
            short = len(targets) < self.settings.targets
            checks = lease(tests, min(len(tests), _FEWEST_TESTS) if short else len(tests))
            mixed = [*targets, *checks]
            mixed = [mixed[at] for at in order[order < len(mixed)]]
            for place, question in enumerate(mixed):
                connection.execute(
                    update(schema.question).where(schema.question.c.id == question.id).values(place=place)
                )
            connection.execute(
                update(schema.assignment)
                .where(schema.assignment.c.id == assignment)
                .values(questions=len(mixed))
            )
            return Assignment(assignment, assessor, tuple(mixed))

        return self.store.write(work)

    def _affordable(self, connection: Connection) -> bool:
        if self.settings.budget is None:
            return True
        found = money.money(connection, self.id, self.settings)
        one = self.settings.reward + money.fee_on(self.settings.reward, self.settings.fee_percent)
        return found.spent + found.committed + one <= self.settings.budget

    def open_assignment(self, assessor: str) -> Assignment | None:
        """Return the assignment that this person has open, with all its questions in order."""

        def work(connection: Connection) -> Assignment | None:
            columns = schema.assignment.c
            found = connection.execute(
                select(columns.id).where(
                    columns.campaign == self.id, columns.assessor == assessor, columns.state == "open"
                )
            ).scalar_one_or_none()
            if found is None:
                return None
            rows = connection.execute(
                select(schema.question)
                .where(schema.question.c.assignment == found)
                .order_by(schema.question.c.place)
            )
            return Assignment(found, assessor, tuple(leases.question_of(row) for row in rows))

        return self.store.read(work)

    # ---- answering

    def answer(self, question: str, assessor: str, given: Answer) -> Receipt:
        """Store an answer; sending it again changes nothing, another answer is a conflict."""
        if given.outcome not in self.settings.outcomes:
            raise BadRecord(
                f"This campaign doesn't take the answer '{given.outcome}'.",
                remedy=f"It takes: {', '.join(sorted(self.settings.outcomes))}.",
            )

        def work(connection: Connection, now: float) -> Receipt:
            crowd = self._kind_of(connection, assessor) == "crowd"
            return leases.answer(
                connection, question, assessor, given, cap=self.settings.cap, now=now, told=not crowd
            )

        return self.store.write(work)

    def undo(self, question: str, assessor: str) -> Question:
        """Take an answer back and hold the same question again."""

        def work(connection: Connection, now: float) -> Question:
            row = leases.held(connection, question, assessor)
            if row.assignment is not None and self._assignment_state(connection, row.assignment) != "open":
                raise leases.Conflict("The assignment is finished.", remedy="Its answers stand as they are.")
            return leases.undo(
                connection,
                question,
                assessor,
                cap=self.settings.cap,
                now=now,
                seconds=self.settings.lease_seconds,
            )

        return self.store.write(work)

    def extend(self, question: str, assessor: str) -> float:
        """Give somebody who is still looking more time."""
        return self.store.write(
            lambda connection, now: leases.extend(
                connection, question, assessor, now=now, seconds=self.settings.lease_seconds
            )
        )

    def give_back(self, question: str, assessor: str) -> None:
        """End a lease without an answer."""

        def work(connection: Connection, now: float) -> None:
            leases.held(connection, question, assessor)
            leases.give_back(connection, [question])

        self.store.write(work)

    def expire(self) -> int:
        """Free the slots of leases that ran out; asking does this too."""
        return self.store.write(lambda connection, now: leases.expire(connection, self.id, now))

    # ---- finishing

    def finish(
        self, assignment: str, state: Literal["finished", "stopped", "returned", "timed-out"] = "finished"
    ) -> Finished:
        """End an assignment: look at the tests, let its judgments count or exclude the person, and pay.

        Ending it again changes nothing and returns the same.
        """

        def work(connection: Connection, now: float) -> Finished:
            row = connection.execute(
                select(schema.assignment).where(schema.assignment.c.id == assignment).with_for_update()
            ).one_or_none()
            if row is None or row.campaign != self.id:
                raise leases.UnknownQuestion(f"There is no assignment '{assignment}'.")
            answered = self._answered(connection, assignment)
            if row.state != "open":
                return self._as_finished(connection, row, answered)
            unanswered = connection.execute(
                select(schema.question.c.id).where(
                    schema.question.c.assignment == assignment, schema.question.c.state == leases.LEASED
                )
            ).scalars()
            leases.give_back(connection, list(unanswered))
            connection.execute(
                update(schema.assignment)
                .where(schema.assignment.c.id == assignment)
                .values(state=state, closed=now)
            )
            staying, _ = quality.keeps(connection, self.id, row.assessor, assignment, self.settings)
            self._release(connection, assignment, now)
            if not staying and self.settings.test_rule == "share":
                quality.exclude(connection, self.id, row.assessor, reason="failed the test pairs", now=now)
            elif not staying:
                self._discard(connection, assignment, now)
            if state in {"finished", "stopped"}:
                money.pay(
                    connection,
                    self.id,
                    row.assessor,
                    assignment,
                    self.settings,
                    answered=answered,
                    questions=row.questions,
                    now=now,
                    reason=state,
                )
            ended = connection.execute(
                select(schema.assignment).where(schema.assignment.c.id == assignment)
            ).one()
            return self._as_finished(connection, ended, answered)

        return self.store.write(work)

    def _release(self, connection: Connection, assignment: str, now: float) -> None:
        topics = connection.execute(
            select(schema.log.c.topic)
            .where(
                schema.log.c.campaign == self.id,
                schema.log.c.assignment == assignment,
                schema.log.c.event == log.JUDGMENT,
                schema.log.c.test_pair.is_(None),
            )
            .distinct()
            .order_by(schema.log.c.topic)
        ).scalars()
        for topic in list(topics):
            log.append(connection, self.id, topic, log.RELEASE, now, assignment=assignment)

    def _discard(self, connection: Connection, assignment: str, now: float) -> None:
        rows = connection.execute(
            select(schema.log.c.topic, schema.log.c.seq).where(
                schema.log.c.campaign == self.id,
                schema.log.c.assignment == assignment,
                schema.log.c.event == log.JUDGMENT,
                schema.log.c.test_pair.is_(None),
            )
        ).all()
        for topic in sorted({row.topic for row in rows}):
            seqs = [row.seq for row in rows if row.topic == topic]
            leases.retract(connection, self.id, topic, seqs, reason="failed a test pair", now=now)

    def _answered(self, connection: Connection, assignment: str) -> int:
        ended = (leases.ANSWERED, leases.CANNOT_JUDGE, leases.RETRACTED)
        return int(
            connection.execute(
                select(func.count()).where(
                    schema.question.c.assignment == assignment, schema.question.c.state.in_(ended)
                )
            ).scalar_one()
        )

    def _as_finished(self, connection: Connection, row: AssignmentRow, answered: int) -> Finished:
        reward = connection.execute(
            select(func.coalesce(func.sum(schema.ledger.c.amount), 0)).where(
                schema.ledger.c.assignment == row.id, schema.ledger.c.entry == money.REWARD
            )
        ).scalar_one()
        staying, record = quality.keeps(connection, self.id, row.assessor, row.id, self.settings)
        return Finished(
            row.id, row.state, answered, row.questions, int(reward), staying, record.passed, record.seen
        )

    # ---- the manager's verbs

    def preview_exclusion(self, assessor: str) -> quality.Exclusion:
        """Say what excluding somebody would take away."""
        return self.store.read(lambda connection: quality.preview(connection, self.id, assessor))

    def exclude(self, assessor: str, reason: str) -> quality.Exclusion:
        """Take somebody's judgments out of every score and let them in no more; they are paid all the same."""
        return self.store.write(
            lambda connection, now: quality.exclude(connection, self.id, assessor, reason=reason, now=now)
        )

    def reinstate(self, assessor: str, reason: str = "re-instated") -> int:
        """Let somebody in again; return how many of their judgments count again."""
        return self.store.write(
            lambda connection, now: quality.reinstate(
                connection, self.id, assessor, cap=self.settings.cap, reason=reason, now=now
            )
        )

    def retract(self, topic: str, seqs: Sequence[int], reason: str) -> list[int]:
        """Take judgments out of every score, with a reason; return those that counted until now."""
        return self.store.write(
            lambda connection, now: leases.retract(connection, self.id, topic, seqs, reason=reason, now=now)
        )

    def rewind(self, topic: str, phase: str, reason: str) -> int:
        """Open a closed phase again; what came after it is set aside. Return how many judgments that is."""
        state = self.live.state(topic)
        if phase not in state.closed_in_log:
            raise BadParameter(
                f"Phase '{phase}' of topic '{topic}' isn't closed.",
                remedy=f"Closed: {', '.join(state.closed_in_log) or 'none'}.",
            )
        before = len(state.counts.set_aside)
        self.store.write(
            lambda connection, now: log.append(
                connection, self.id, topic, log.REWIND, now, phase=phase, reason=reason
            )
        )
        return len(self.live.state(topic).counts.set_aside) - before

    def take_in(self, judgments: Iterable[Judgment], assessor_kind: str = "program") -> int:
        """Add judgments from elsewhere to the log, as they are; unknown topics and items are refused."""
        given = list(judgments)
        known = {topic: set(self.live.items(topic)) for topic in self.live.heads()}
        for judgment in given:
            if judgment.topic not in known:
                raise log.UnknownTopic(
                    f"The campaign has no topic '{judgment.topic}'.", remedy="Add it first, or leave it out."
                )
            for item in (judgment.left, judgment.right):
                if item is not None and item not in known[judgment.topic]:
                    raise BadRecord(
                        f"Topic '{judgment.topic}' has no candidate '{item}'.",
                        remedy="Add it to the pool first.",
                    )

        def work(connection: Connection, now: float) -> int:
            for judgment in given:
                log.append_judgment(connection, self.id, replace(judgment, question=""), now, told=True)
            return len(given)

        return self.store.write(work)

    # ---- what was found

    def result(self, topic: str) -> Levels:
        """Return what is known of a topic now."""
        return self.live.result(topic)

    def results(self) -> dict[str, Levels]:
        """Return what is known of every open topic now."""
        return {
            topic: self.live.state(topic, head).strategy.result() for topic, head in self.live.heads().items()
        }

    @property
    def done(self) -> bool:
        """Whether every open topic's strategy is done."""
        return all(self.live.state(topic, head).strategy.done for topic, head in self.live.heads().items())

    def judgments(self, topic: str) -> list[Judgment]:
        """Return a topic's judgments that count, in the order of the log; twice-asked and held ones too."""
        from duelpool.campaign.fold import usable

        state = self.live.state(topic)
        return [
            line.judgment for line in state.lines if line.judgment is not None and usable(line, state.counts)
        ]

    # ---- inside

    def _check(self, assessor: str) -> None:
        def work(connection: Connection) -> tuple[str, holdings.AssessorRow | None]:
            row = holdings.find_campaign(connection, self.id)
            return row.state, holdings.assessors(connection, self.id).get(assessor)

        state, person = self.store.read(work)
        if state != "open":
            raise NotAllowed(f"The campaign is {state}.", remedy="Come back later.")
        if person is None:
            raise NotAllowed(f"Nobody called '{assessor}' takes part.", remedy="Enrol them first.")
        if person.state == "excluded":
            raise NotAllowed("This assessor takes part no more.", remedy="What was done is paid.")

    def _kind_of(self, connection: Connection, assessor: str) -> str:
        columns = schema.assessor.c
        return str(
            connection.execute(
                select(columns.kind).where(columns.campaign == self.id, columns.id == assessor)
            ).scalar_one_or_none()
        )

    def _assignment_state(self, connection: Connection, assignment: str) -> str:
        return str(
            connection.execute(
                select(schema.assignment.c.state).where(schema.assignment.c.id == assignment)
            ).scalar_one()
        )

    def _held_by(self, assessor: str) -> Question | None:
        columns = schema.question.c

        def work(connection: Connection, now: float) -> Question | None:
            leases.expire(connection, self.id, now)
            row = connection.execute(
                select(schema.question)
                .where(
                    columns.campaign == self.id,
                    columns.assessor == assessor,
                    columns.state == leases.LEASED,
                    columns.assignment.is_(None),
                )
                .order_by(columns.asked, columns.id)
                .limit(1)
            ).one_or_none()
            return None if row is None else leases.question_of(row)

        return self.store.write(work)

    def _what_is_out(self, assessor: str) -> _Out:
        return self.store.read(
            lambda connection: _Out(
                done_by(connection, self.id, assessor),
                leased_by_topic(connection, self.id),
                parked_by_topic(connection, self.id, self.settings.parked_after),
            )
        )

    def _wanted(self, topic: str, n: int, head: int, out: _Out, assessor: str) -> list[Wanted]:
        return [
            self._want(topic, each, assessor)
            for each in self.live.proposals(
                topic, n, out.leased.get(topic, ()), out.parked.get(topic, ()), head
            )
            if each.pair not in out.seen.get(topic, ())
        ]

    def _want(self, topic: str, proposal: Proposal, assessor: str) -> Wanted:
        name, _ = split_spec(self.settings.strategy)
        first, second = proposal.pair
        turn = rng_for(self.settings.seed, topic, first, second, assessor, "side").random() < 0.5
        left, right = (first, second) if turn else (second, first)
        return Wanted(
            topic,
            left,
            right,
            criterion=self.settings.criterion,
            kind=self.settings.kind,
            phase=proposal.phase,
            proposal=proposal.proposal,
            propensity=proposal.propensity,
            strategy=f"{name}/{STRATEGIES[name].version}",
        )

    def _lease(self, wanted: Sequence[Wanted], assessor: str, at_most: int) -> list[Question]:
        if not wanted:
            return []
        ids = [secrets.token_hex(8) for _ in wanted]
        return self.store.write(
            lambda connection, now: leases.lease(
                connection,
                self.id,
                wanted,
                ids,
                assessor=assessor,
                cap=self.settings.cap,
                now=now,
                seconds=self.settings.lease_seconds,
                at_most=at_most,
            )
        )


def spread(wanted: Sequence[Wanted], per_topic: int) -> list[Wanted]:
    """Put first what keeps to so many questions a topic, then the rest, each in its order."""
    counts: dict[str, int] = {}
    first: list[Wanted] = []
    rest: list[Wanted] = []
    for want in wanted:
        counts[want.topic] = counts.get(want.topic, 0) + 1
        (first if counts[want.topic] <= per_topic else rest).append(want)
    return first + rest
