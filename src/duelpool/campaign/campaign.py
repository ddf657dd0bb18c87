"""The one loop that all judges share: ask, answer, take back, finish.

`Campaign` has the verbs; page, command line and programs only translate. Every verb is one transaction: what it
returns is stored, and a verb that raises has changed nothing.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, TypeAlias, TypeVar

from sqlalchemy import Connection, Row

from duelpool.campaign.log.live_topics import LiveTopics
from duelpool.campaign.log.replay import TopicState, usable
from duelpool.campaign.questions import grading
from duelpool.campaign.questions.crossed_design import Crossing
from duelpool.campaign.questions.dispatch import Handing
from duelpool.campaign.questions.proposals import Asking
from duelpool.campaign.settings import Settings
from duelpool.campaign.settings.file import decides_alike
from duelpool.campaign.work import assignments, exclusion, participants
from duelpool.campaign.work.assignments import Assignment, Ending, Finished
from duelpool.errors import BadParameter, BadRecord, DuelpoolError
from duelpool.records import Judgment, Kind, Levels, Outcome, Passage, Pool, Question, Topic
from duelpool.store import Store, holdings, imports, leases, log, retractions
from duelpool.store.leases import Answer, Receipt

AssessorKind = Literal["crowd", "dedicated", "program", "llm"]
Beside: TypeAlias = Callable[[Connection, float], None]
"""What is written in the same transaction as a manager's step, such as who took it."""
T = TypeVar("T")


class NotAllowed(DuelpoolError):
    """The campaign is paused or closed, or this assessor may not judge in it."""


def _refuse_outcome(outcome: Outcome, taken: Collection[Outcome]) -> None:
    if outcome not in taken:
        raise BadRecord(
            f"This campaign doesn't take the answer '{outcome}' here.",
            remedy=f"It takes: {', '.join(sorted(taken))}.",
        )


class Campaign:
    """One campaign of a store."""

    settings: Settings
    live: LiveTopics

    def __init__(self, store: Store, row: holdings.CampaignRow, earlier: "Campaign | None" = None) -> None:
        """Open a campaign; `earlier` is the same one with other settings, whose topics needn't be read again."""
        self.store = store
        self.id = row.id
        self.name = row.name
        self._set(Settings.from_json(row.settings), earlier)

    def _set(self, settings: Settings, earlier: "Campaign | None" = None) -> None:
        if earlier is not None and decides_alike(earlier.settings, settings):
            self.live = earlier.live
        else:
            self.live = LiveTopics(self.store, self.id, settings)
        self.settings = settings
        self._asking = Asking(self.store, self.id, settings, self.live)
        self._crossing = Crossing(self.store, self.id, settings, self.live, self._asking)
        self._handing = Handing(self.store, self.id, settings, self._asking, self._crossing)

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
        runs: Iterable[holdings.PackedRun] = (),
        state: Literal["open", "paused"] = "open",
    ) -> Self:
        """Make a campaign with all it needs, in one transaction; topics without a pool are left out."""
        campaign = secrets.token_hex(8)
        pools, passages, known_pairs, runs = list(pools), list(passages), list(known_pairs), list(runs)
        known = {topic.id: topic for topic in topics}
        asked = [known.get(pool.topic, Topic(pool.topic, pool.topic)) for pool in pools]

        def work(connection: Connection, now: float) -> holdings.CampaignRow:
            holdings.create_campaign(connection, campaign, name, settings.as_json(), now)
            holdings.add_topics(connection, campaign, asked)
            for pool in pools:
                holdings.add_pool(connection, campaign, pool)
            holdings.add_passages(connection, campaign, passages)
            holdings.add_test_pairs(connection, campaign, known_pairs)
            for run in runs:
                holdings.add_run(connection, campaign, run, now)
            if state != "open":
                holdings.set_campaign(connection, campaign, state=state)
            return holdings.find_campaign(connection, campaign)

        return cls(store, store.write(work))

    @classmethod
    def open(cls, store: Store, name: str | None = None) -> Self:
        """Return the campaign of this name, or the only one of the store."""
        return cls(store, store.read(lambda connection: holdings.find_campaign(connection, name)))

    def _step(self, work: Callable[[Connection, float], T], beside: Beside | None) -> T:
        """Take a manager's step, with what is to be written beside it, in one transaction."""

        def both(connection: Connection, now: float) -> T:
            found = work(connection, now)
            if beside is not None:
                beside(connection, now)
            return found

        return self.store.write(both)

    def set_state(self, state: Literal["open", "paused", "closed"], *, beside: Beside | None = None) -> None:
        """Open, pause or close the campaign."""
        self._step(lambda connection, now: holdings.set_campaign(connection, self.id, state=state), beside)

    def change(self, settings: Settings, *, beside: Beside | None = None) -> None:
        """Take other settings from now on; what was asked and answered stays as it is."""
        self._step(
            lambda connection, now: holdings.set_campaign(connection, self.id, settings=settings.as_json()),
            beside,
        )
        self._set(settings, self)

    def add_items(self, pool: Pool, passages: Iterable[Passage] = ()) -> int:
        """Let items join a topic (or a new topic join); return how many are new."""
        texts = list(passages)

        def work(connection: Connection, now: float) -> int:
            holdings.add_topics(connection, self.id, [Topic(pool.topic, pool.topic)])
            holdings.add_passages(connection, self.id, texts)
            return holdings.add_pool(connection, self.id, pool)

        added = self.store.write(work)
        self.live.forget(pool.topic)
        return added

    def let_go(self, topic: str, item: str | None = None) -> None:
        """Let an item leave its topic, or a whole topic leave; what was judged stays in the log."""

        def work(connection: Connection, now: float) -> bool:
            if item is None:
                return holdings.set_topic_state(connection, self.id, topic, "left")
            return holdings.set_item_state(connection, self.id, topic, item, "left")

        if not self.store.write(work):
            raise BadParameter(f"There is no '{item or topic}' that could leave.", remedy="Check its name.")
        self.live.forget(topic)

    def next_stage(self) -> dict[str, int]:
        """End the grading stage: thin the pools by the grades given, and go on to preferences.

        Returns the pool sizes from now on.
        """
        if self.settings.stage != "grading":
            raise BadParameter(
                "The campaign collects preferences already.", remedy="There is no later stage."
            )
        sizes = self.store.write(lambda connection, now: grading.thin(connection, self.id, self.settings))
        self.change(replace(self.settings, stage="preferences"))
        return sizes

    def enrol(self, assessor: str, kind: AssessorKind | None = None) -> None:
        """Let an assessor in, by pseudonym."""
        chosen = kind or self.settings.judges
        self.store.write(lambda connection, now: holdings.enrol(connection, self.id, assessor, chosen, now))

    def assign(
        self, topics: Iterable[str], assessors: Iterable[str], *, beside: Beside | None = None
    ) -> None:
        """Keep topics for these people alone, who then judge nothing else; nobody: for everybody again."""
        kept, people = list(topics), list(assessors)

        def work(connection: Connection, now: float) -> None:
            known = holdings.topics(connection, self.id)
            for topic in kept:
                if topic not in known:
                    raise log.UnknownTopic(f"The campaign has no topic '{topic}'.", remedy="Check its name.")
                holdings.assign(connection, self.id, topic, people, now)

        if kept:
            self._step(work, beside)

    # ---- asking

    def next_question(self, assessor: str, topics: Collection[str] | None = None) -> Question | None:
        """Return the next question for a dedicated assessor or a program, one topic at a time.

        A question that this person holds already is returned again. None: there is nothing for them now.
        """
        found = self.next_questions(assessor, 1, topics)
        return found[0] if found else None

    def next_questions(
        self, assessor: str, n: int, topics: Collection[str] | None = None, *, one_topic: bool = False
    ) -> tuple[Question, ...]:
        """Return up to n questions that this person holds from now on, the one to be answered first first.

        With `one_topic`, what is added to the first is of its topic: nobody is sent to and fro between topics.
        """
        self._check(assessor)
        held = self._handing.held(assessor)[:n]
        while len(held) < n:
            among = {held[0].topic} if one_topic and held else topics
            another = self._handing.one_more(assessor, among)
            if another is None:
                break
            held.append(another)
        return tuple(held)

    def held(self, assessor: str) -> list[Question]:
        """Return the questions outside of assignments that this person holds."""
        return self._handing.held(assessor)

    def next_assignment(self, assessor: str) -> Assignment | None:
        """Return the assignment that this person has open, or a new one; None when there is no work or money.

        Questions are drawn at random over all topics, none that this person has answered, at most three of a
        topic where possible, with test pairs and, where wanted, repeated ones mixed in.
        """
        self._check(assessor)
        held = self.open_assignment(assessor)
        if held is not None:
            return held
        return self._handing.new_assignment(assessor)

    def open_assignment(self, assessor: str) -> Assignment | None:
        """Return the assignment that this person has open, with all its questions in order."""
        return self.store.read(lambda connection: assignments.find_open(connection, self.id, assessor))

    # ---- answering

    def answer(self, question: str, assessor: str, given: Answer) -> Receipt:
        """Store an answer; sending it again changes nothing, another answer is a conflict."""
        _refuse_outcome(given.outcome, self.settings.outcomes)
        if given.outcome is Outcome.GRADE and given.grade not in self.settings.grades:
            raise BadRecord(
                f"The grade {given.grade} isn't on the scale.",
                remedy=f"It is one of {', '.join(f'{grade:g}' for grade in self.settings.grades)}.",
            )

        def work(connection: Connection, now: float) -> Receipt:
            row = self._own(connection, question, assessor)
            if self.settings.crossed:
                _refuse_outcome(given.outcome, self.settings.outcomes_of(Kind(row.kind)))
            kind, standing, assignment = participants.behind_answer(
                connection, self.id, assessor, row.assignment
            )
            if standing == "excluded" and row.state in (leases.LEASED, leases.EXPIRED, leases.RETURNED):
                raise leases.TooLate("You take part no more.", remedy="What was done is paid.")
            # What comes after its assignment has ended waits for nothing any more.
            at_once = kind != "crowd" or assignment not in (None, "open")
            return leases.answer(
                connection, question, assessor, given, cap=self.settings.slots, now=now, told=at_once
            )

        return self.store.write(work)

    def undo(self, question: str, assessor: str) -> Question:
        """Take an answer back and hold the same question again."""

        def work(connection: Connection, now: float) -> Question:
            row = self._own(connection, question, assessor)
            if row.assignment is not None:
                held = assignments.find_open(connection, self.id, assessor)
                if held is None or held.id != row.assignment:
                    raise leases.Conflict("The assignment is finished.", remedy="Its answers stand.")
            return retractions.undo(
                connection,
                question,
                assessor,
                cap=self.settings.slots,
                now=now,
                seconds=self.settings.lease_seconds,
            )

        return self.store.write(work)

    def let_pass(self, question: str, assessor: str) -> None:
        """Count a question as done whose answer came too late to be kept: the person is paid for it."""

        def work(connection: Connection, now: float) -> None:
            self._own(connection, question, assessor)
            leases.give_up(connection, question)

        self.store.write(work)

    def question(self, question: str, assessor: str) -> Question:
        """Return a question that this person holds or has answered."""

        def work(connection: Connection) -> Question:
            return leases.question_of(self._own(connection, question, assessor))

        return self.store.read(work)

    def extend(self, question: str, assessor: str) -> float:
        """Give somebody who is still looking more time, for the whole assignment; return when it ends."""

        def work(connection: Connection, now: float) -> float:
            row = self._own(connection, question, assessor)
            seconds = self.settings.lease_seconds
            ends = leases.extend(connection, question, assessor, now=now, seconds=seconds)
            if row.assignment is not None:
                leases.extend_assignment(connection, row.assignment, ends)
            return ends

        return self.store.write(work)

    def give_back(self, question: str, assessor: str) -> None:
        """End a lease without an answer."""

        def work(connection: Connection, now: float) -> None:
            self._own(connection, question, assessor)
            leases.give_back(connection, [question])

        self.store.write(work)

    def sweep(self) -> int:
        """Free the slots of leases that ran out, and end assignments that nobody works on any more."""

        def work(connection: Connection, now: float) -> int:
            freed = leases.expire(connection, self.id, now)
            for assignment in assignments.overdue(connection, self.id, now):
                assignments.finish(
                    connection, self.id, self.settings, assignment, ending="timed-out", now=now
                )
            return freed

        return self.store.write(work)

    def finish(self, assignment: str, ending: Ending = "finished") -> Finished:
        """End an assignment: look at the tests, let its judgments count or exclude the person, and pay.

        Ending it again changes nothing and returns the same.
        """
        return self.store.write(
            lambda connection, now: assignments.finish(
                connection, self.id, self.settings, assignment, ending=ending, now=now
            )
        )

    # ---- the manager's verbs; `beside` is written in the same transaction

    def preview_exclusion(self, assessor: str) -> exclusion.Exclusion:
        """Say what excluding somebody would take away."""
        return self.store.read(lambda connection: exclusion.preview(connection, self.id, assessor))

    def exclude(self, assessor: str, reason: str, *, beside: Beside | None = None) -> exclusion.Exclusion:
        """Take somebody's judgments out of every score and let them in no more; they are paid all the same."""
        return self._step(
            lambda connection, now: exclusion.exclude(connection, self.id, assessor, reason=reason, now=now),
            beside,
        )

    def reinstate(self, assessor: str, reason: str = "re-instated", *, beside: Beside | None = None) -> int:
        """Let somebody in again; return how many of their judgments count again."""
        return self._step(
            lambda connection, now: exclusion.reinstate(
                connection, self.id, assessor, cap=self.settings.slots, reason=reason, now=now
            ),
            beside,
        )

    def retract(
        self, topic: str, seqs: Sequence[int], reason: str, *, beside: Beside | None = None
    ) -> list[int]:
        """Take judgments out of every score, with a reason; return those that counted until now."""
        return self._step(
            lambda connection, now: retractions.retract(
                connection, self.id, topic, seqs, reason=reason, now=now
            ),
            beside,
        )

    def preview_rewind(self, topic: str, phase: str) -> int:
        """Say how many judgments of later phases opening a closed phase again would set aside."""

        def work(state: TopicState) -> int:
            if phase not in state.closed_in_log:
                raise BadParameter(
                    f"Phase '{phase}' of topic '{topic}' isn't closed.",
                    remedy=f"Closed: {', '.join(state.closed_in_log) or 'none'}.",
                )
            kept = {*state.closed_in_log[: state.closed_in_log.index(phase) + 1], ""}
            return sum(
                usable(line, state.counts)
                and line.seq not in state.counts.set_aside
                and line.judgment is not None
                and line.judgment.phase not in kept
                for line in state.lines
            )

        return self.live.look(topic, None, work)

    def rewind(self, topic: str, phase: str, reason: str, *, beside: Beside | None = None) -> int:
        """Open a closed phase again; return how many judgments of later phases are set aside."""
        aside = self.preview_rewind(topic, phase)
        self._step(
            lambda connection, now: log.append(
                connection, self.id, topic, log.REWIND, now, phase=phase, reason=reason
            ),
            beside,
        )
        return aside

    def take_in(self, judgments: Iterable[Judgment]) -> int:
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
                        remedy="Add it to the pool first, or leave it out.",
                    )

        return len(self.store.write(lambda connection, now: imports.take_in(connection, self.id, given, now)))

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
        """Whether every open topic has all that it needs."""
        if self.settings.crossed:
            return self._crossing.done
        if self.settings.stage == "grading":
            return self.store.read(lambda connection: grading.all_graded(connection, self.id, self.settings))
        return all(self.live.state(topic, head).strategy.done for topic, head in self.live.heads().items())

    def judgments(self, topic: str) -> list[Judgment]:
        """Return a topic's judgments of pairs that count, in the order of the log."""
        return self.live.look(
            topic,
            None,
            lambda state: [
                line.judgment
                for line in state.lines
                if line.judgment is not None and usable(line, state.counts)
            ],
        )

    # ---- inside

    def _check(self, assessor: str) -> None:
        state, person = self.store.read(
            lambda connection: participants.standing_of(connection, self.id, assessor)
        )
        if state != "open":
            raise NotAllowed(f"The campaign is {state}.", remedy="Come back later.")
        if person is None:
            raise NotAllowed(f"Nobody called '{assessor}' takes part.", remedy="Enrol them first.")
        if person == "excluded":
            raise NotAllowed("This assessor takes part no more.", remedy="What was done is paid.")

    def _own(self, connection: Connection, question: str, assessor: str) -> Row[Any]:
        """Return a question's row, locked; another campaign's question is unknown here."""
        row = leases.held(connection, question, assessor)
        if row.campaign != self.id:
            raise leases.UnknownQuestion(
                f"There is no question '{question}' in this campaign.", remedy="Ask for the next question."
            )
        return row
