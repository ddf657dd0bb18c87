"""The one loop that all judges share: ask, answer, take back, finish.

`Campaign` has the verbs; page, command line and programs only translate. Every verb is one transaction: what it
returns is stored, and a verb that raises has changed nothing.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Literal, Self, TypeAlias, TypeVar

from duelpool.campaign.log.live_topics import LiveTopics
from duelpool.campaign.log.replay import TopicState, usable
from duelpool.campaign.questions import grading
from duelpool.campaign.questions.crossed_design import CrossedDesign
from duelpool.campaign.questions.dispatch import Dispatch
from duelpool.campaign.questions.proposals import Proposals
from duelpool.campaign.settings import Settings
from duelpool.campaign.settings.changes import same_fixed_settings
from duelpool.campaign.work import assignments, exclusion, participants
from duelpool.campaign.work.assignments import Assignment, Ending, Finished
from duelpool.campaign.work.participants import ParticipantState
from duelpool.errors import BadParameter, BadRecord, DuelpoolError
from duelpool.records import Answer, Judgment, Kind, Levels, Outcome, Passage, Pool, Question, Topic
from duelpool.store import Reading, Store, Writing, holdings, imports, leases, log, retractions
from duelpool.store.leases import Receipt

AssessorKind = Literal["crowd", "dedicated", "program", "llm"]
Also: TypeAlias = Callable[[Writing], None]
"""What is written in the same transaction as a manager's step, such as the audit log."""
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
        self.own_store = store.of(row.id)
        self.name = row.name
        self._set(Settings.from_json(row.settings), earlier)

    def _set(self, settings: Settings, earlier: "Campaign | None" = None) -> None:
        if earlier is not None and same_fixed_settings(earlier.settings, settings):
            self.live = earlier.live
        else:
            self.live = LiveTopics(self.own_store, settings)
        self.settings = settings
        self._proposals = Proposals(self.own_store, settings, self.live)
        self._crossed_design = CrossedDesign(self.own_store, settings, self.live, self._proposals)
        self._dispatch = Dispatch(self.own_store, settings, self._proposals, self._crossed_design)

    def read(self, work: Callable[[Reading], T], *, once: bool = False) -> T:
        """Run work on a consistent snapshot of the campaign; it may run again, unless `once`."""
        return self.own_store.read(work, once=once)

    def write(self, work: Callable[[Writing], T]) -> T:
        """Run work in one transaction, and return its result once it is durable; it may run again."""
        return self.own_store.write(work)

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
        test_pairs: Iterable[holdings.TestPair] = (),
        runs: Iterable[holdings.PackedRun] = (),
        state: Literal["open", "paused"] = "open",
    ) -> Self:
        """Make a campaign with all it needs, in one transaction; topics without a pool are left out."""
        campaign = secrets.token_hex(8)
        pools, passages, test_pairs, runs = list(pools), list(passages), list(test_pairs), list(runs)
        known = {topic.id: topic for topic in topics}
        asked = [known.get(pool.topic, Topic(pool.topic, pool.topic)) for pool in pools]

        def work(tx: Writing) -> holdings.CampaignRow:
            holdings.create_campaign(tx, name, settings.as_json())
            holdings.add_topics(tx, asked)
            for pool in pools:
                holdings.add_pool(tx, pool)
            holdings.add_passages(tx, passages)
            holdings.add_test_pairs(tx, test_pairs)
            for run in runs:
                holdings.add_run(tx, run)
            if state != "open":
                holdings.set_campaign(tx, state=state)
            return holdings.find_campaign(tx.connection, campaign)

        return cls(store, store.of(campaign).write(work))

    @classmethod
    def open(cls, store: Store, name: str | None = None) -> Self:
        """Return the campaign of this name, or the only one of the store."""
        return cls(store, store.read(lambda connection: holdings.find_campaign(connection, name)))

    def _step(self, work: Callable[[Writing], T], also: Also | None) -> T:
        """Run a manager's step and what is written with it in one transaction."""

        def both(tx: Writing) -> T:
            result = work(tx)
            if also is not None:
                also(tx)
            return result

        return self.write(both)

    def set_state(self, state: Literal["open", "paused", "closed"], *, also: Also | None = None) -> None:
        """Open, pause or close the campaign."""
        self._step(lambda tx: holdings.set_campaign(tx, state=state), also)

    def change(self, settings: Settings, *, also: Also | None = None) -> None:
        """Take other settings from now on; what was asked and answered stays as it is."""
        self._step(
            lambda tx: holdings.set_campaign(tx, settings=settings.as_json()),
            also,
        )
        self._set(settings, self)

    def add_items(self, pool: Pool, passages: Iterable[Passage] = ()) -> int:
        """Let items join a topic (or a new topic join); return how many are new."""
        texts = list(passages)

        def work(tx: Writing) -> int:
            holdings.add_topics(tx, [Topic(pool.topic, pool.topic)])
            holdings.add_passages(tx, texts)
            return holdings.add_pool(tx, pool)

        added = self.write(work)
        self.live.forget(pool.topic)
        return added

    def remove(self, topic: str, item: str | None = None) -> None:
        """Let an item leave its topic, or a whole topic leave; what was judged stays in the log."""

        def work(tx: Writing) -> bool:
            if item is None:
                return holdings.set_topic_state(tx, topic, "left")
            return holdings.set_item_state(tx, topic, item, "left")

        if not self.write(work):
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
        sizes = self.write(lambda tx: grading.thin(tx, self.settings))
        self.change(replace(self.settings, stage="preferences"))
        return sizes

    def enrol(self, assessor: str, kind: AssessorKind | None = None) -> None:
        """Let an assessor in, by pseudonym."""
        chosen = kind or self.settings.judges
        self.write(lambda tx: holdings.enrol(tx, assessor, chosen))

    def assign(self, topics: Iterable[str], assessors: Iterable[str], *, also: Also | None = None) -> None:
        """Keep topics for these people alone, who then judge nothing else; nobody: for everybody again."""
        kept, people = list(topics), list(assessors)

        def work(tx: Writing) -> None:
            known = holdings.topics(tx)
            for topic in kept:
                if topic not in known:
                    raise log.UnknownTopic(f"The campaign has no topic '{topic}'.", remedy="Check its name.")
                holdings.reserve_topic(tx, topic, people)

        if kept:
            self._step(work, also)

    # ---- asking

    def next_question(self, assessor: str, topics: Collection[str] | None = None) -> Question | None:
        """Return the next question for a dedicated assessor or a program, one topic at a time.

        A question that this person holds already is returned again. None: there is nothing for them now.
        """
        found = self.next_questions(assessor, 1, topics)
        return found[0] if found else None

    def next_questions(
        self,
        assessor: str,
        n: int,
        topics: Collection[str] | None = None,
        *,
        one_topic: bool = False,
        state: ParticipantState | None = None,
    ) -> tuple[Question, ...]:
        """Lease up to n questions to an assessor, and return them in the order in which to answer them.

        With `one_topic`, all further questions are of the first one's topic. `state` is the assessor's state where
        the caller has just read it.
        """
        self._check(assessor, state)
        held = self._dispatch.held(assessor)[:n]
        while len(held) < n:
            among = {held[0].topic} if one_topic and held else topics
            another = self._dispatch.one_more(assessor, among)
            if another is None:
                break
            held.append(another)
        return tuple(held)

    def held(self, assessor: str) -> list[Question]:
        """Return the questions outside of assignments that this person holds."""
        return self._dispatch.held(assessor)

    def next_assignment(self, assessor: str, *, state: ParticipantState | None = None) -> Assignment | None:
        """Return the assignment that this person has open, or a new one; None when there is no work or money.

        Questions are drawn at random over all topics, none that this person has answered, at most three of a
        topic where possible, with test pairs and, where wanted, repeated ones mixed in. `state` is the assessor's
        state where the caller has just read it.
        """
        self._check(assessor, state)
        held = self.open_assignment(assessor)
        if held is not None:
            return held
        return self._dispatch.new_assignment(assessor)

    def open_assignment(self, assessor: str) -> Assignment | None:
        """Return the assignment that this person has open, with all its questions in order."""
        return self.read(lambda tx: assignments.find_open(tx, assessor))

    # ---- answering

    def answer(self, question: str, assessor: str, given: Answer) -> Receipt:
        """Store an answer; sending it again changes nothing, another answer is a conflict."""
        _refuse_outcome(given.outcome, self.settings.outcomes)
        if given.outcome is Outcome.GRADE and given.grade not in self.settings.grades:
            raise BadRecord(
                f"The grade {given.grade} isn't on the scale.",
                remedy=f"It is one of {', '.join(f'{grade:g}' for grade in self.settings.grades)}.",
            )

        def work(tx: Writing) -> Receipt:
            row = leases.lock_own_question(tx, question, assessor)
            if self.settings.crossed:
                _refuse_outcome(given.outcome, self.settings.outcomes_of(Kind(row.kind)))
            kind, standing, assignment = participants.answer_context(tx, assessor, row.assignment)
            if standing == "excluded" and row.state in (leases.LEASED, leases.EXPIRED, leases.RETURNED):
                raise leases.TooLate("Your participation has ended.", remedy="Finished work is paid.")
            # What comes after its assignment has ended waits for nothing any more.
            at_once = kind != "crowd" or assignment not in (None, "open")
            return leases.answer(tx, row, given, cap=self.settings.slots, at_once=at_once)

        return self.write(work)

    def undo(self, question: str, assessor: str) -> Question:
        """Take an answer back and hold the same question again."""

        def work(tx: Writing) -> Question:
            row = leases.lock_own_question(tx, question, assessor)
            if row.assignment is not None:
                held = assignments.find_open(tx, assessor)
                if held is None or held.id != row.assignment:
                    raise leases.Conflict("The assignment is finished.", remedy="Its answers count.")
            return retractions.undo(tx, row, cap=self.settings.slots, seconds=self.settings.lease_seconds)

        return self.write(work)

    def forfeit(self, question: str, assessor: str) -> None:
        """Count a question as done whose answer came too late to be kept: the person is paid for it."""

        def work(tx: Writing) -> None:
            leases.lock_own_question(tx, question, assessor)
            leases.forfeit(tx, question)

        self.write(work)

    def question(self, question: str, assessor: str) -> Question:
        """Return a question that this person holds or has answered."""

        def work(tx: Reading) -> Question:
            return leases.question_of(leases.find_own_question(tx, question, assessor))

        return self.read(work)

    def extend(self, question: str, assessor: str) -> float:
        """Give somebody who is still looking more time, for the whole assignment; return when it ends."""

        def work(tx: Writing) -> float:
            row = leases.lock_own_question(tx, question, assessor)
            seconds = self.settings.lease_seconds
            ends = leases.extend(tx, row, seconds=seconds)
            if row.assignment is not None:
                leases.extend_assignment(tx, row.assignment, ends)
            return ends

        return self.write(work)

    def give_back(self, question: str, assessor: str) -> None:
        """End a lease without an answer."""

        def work(tx: Writing) -> None:
            leases.lock_own_question(tx, question, assessor)
            leases.return_questions(tx, [question])

        self.write(work)

    def sweep(self) -> int:
        """Free the slots of leases that ran out, and end assignments that nobody works on any more."""

        def work(tx: Writing) -> int:
            freed = leases.expire(tx)
            for assignment in assignments.overdue(tx):
                assignments.finish(tx, self.settings, assignment, ending="timed-out")
            return freed

        return self.write(work)

    def finish(self, assignment: str, ending: Ending = "finished") -> Finished:
        """End an assignment: look at the tests, let its judgments count or exclude the person, and pay.

        Ending it again changes nothing and returns the same.
        """
        return self.write(lambda tx: assignments.finish(tx, self.settings, assignment, ending=ending))

    # ---- the manager's verbs; `also` is written in the same transaction

    def preview_exclusion(self, assessor: str) -> exclusion.Exclusion:
        """Say what excluding somebody would take away."""
        return self.read(lambda tx: exclusion.preview(tx, assessor))

    def exclude(self, assessor: str, reason: str, *, also: Also | None = None) -> exclusion.Exclusion:
        """Take somebody's judgments out of every score and let them in no more; they are paid all the same."""
        return self._step(
            lambda tx: exclusion.exclude(tx, assessor, reason=reason),
            also,
        )

    def reinstate(self, assessor: str, reason: str = "re-instated", *, also: Also | None = None) -> int:
        """Let somebody in again; return how many of their judgments count again."""
        return self._step(
            lambda tx: exclusion.reinstate(tx, assessor, cap=self.settings.slots, reason=reason),
            also,
        )

    def retract(self, topic: str, seqs: Sequence[int], reason: str, *, also: Also | None = None) -> list[int]:
        """Take judgments out of every score, with a reason; return those that counted until now."""
        return self._step(
            lambda tx: retractions.retract(tx, topic, seqs, reason=reason),
            also,
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

    def rewind(self, topic: str, phase: str, reason: str, *, also: Also | None = None) -> int:
        """Open a closed phase again; return how many judgments of later phases are set aside."""
        aside = self.preview_rewind(topic, phase)
        self._step(
            lambda tx: log.append(tx, topic, log.REWIND, phase=phase, reason=reason),
            also,
        )
        return aside

    def add_judgments(self, judgments: Iterable[Judgment]) -> int:
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

        return len(self.write(lambda tx: imports.add_judgments(tx, given)))

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
            return self._crossed_design.done
        if self.settings.stage == "grading":
            return self.read(lambda tx: grading.all_graded(tx, self.settings))
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

    def _check(self, assessor: str, state: ParticipantState | None) -> None:
        """Refuse to ask an assessor who may not judge now."""
        state = state or self.read(lambda tx: participants.participant_state(tx, assessor))
        if state.campaign != "open":
            raise NotAllowed(f"The campaign is {state.campaign}.", remedy="Come back later.")
        if state.person is None:
            raise NotAllowed(f"The campaign has no assessor '{assessor}'.", remedy="Enrol them first.")
        if state.person == "excluded":
            raise NotAllowed("This assessor is excluded.", remedy="Finished work is paid.")
