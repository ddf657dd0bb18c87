"""The loop that all judges share: ask, answer, undo, finish.

`Campaign` has the operations; pages, command line and programs only translate to them. Every operation is one
transaction: what it returns is stored, and one that raises has changed nothing.
"""

import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self, TypeAlias, TypeVar

from duelpool.background import give_way
from duelpool.campaign.log import campaign_events, replay, systems
from duelpool.campaign.log.live_topics import LiveTopics
from duelpool.campaign.questions import grading
from duelpool.campaign.questions.crossed_design import CrossedDesign
from duelpool.campaign.questions.dispatch import Dispatch
from duelpool.campaign.questions.held_back import HeldTopics
from duelpool.campaign.questions.proposals import NOTHING_OUTSTANDING, Proposals
from duelpool.campaign.settings import Settings
from duelpool.campaign.settings.beginning import settings_of_new
from duelpool.campaign.settings.changes import same_fixed_settings, stored_settings
from duelpool.campaign.work import assignments, exclusion, holding, participants
from duelpool.campaign.work.assignments import Assignment, Ending, Finished
from duelpool.campaign.work.participants import NotAllowed, ParticipantState, Paused
from duelpool.deciders import Result, read_goal
from duelpool.errors import BadParameter, BadRecord
from duelpool.records import Answer, Judgment, Kind, Levels, Outcome, Passage, Pool, Question, Topic
from duelpool.store import Reading, Store, Writing, holdings, imports, leases, log, reservations, retractions
from duelpool.store.leases import Receipt
from duelpool.store.overdue import expire

AssessorKind = Literal["crowd", "dedicated", "program", "llm"]
Also: TypeAlias = Callable[[Writing], None]
"""What is written in the same transaction as a manager's step, such as the audit log."""
T = TypeVar("T")
ARRIVING_AT_MOST = 40
"""How many people at once wait in a process for a new assignment: others ask again, and leave threads to answers."""


def _refuse_outcome(outcome: Outcome, allowed: Collection[Outcome]) -> None:
    if outcome not in allowed:
        raise BadRecord(
            f"This campaign doesn't accept the answer '{outcome}' here.",
            remedy=f"Accepted answers: {', '.join(sorted(allowed))}.",
        )


class Campaign:
    """One campaign of a store."""

    settings: Settings
    live: LiveTopics
    held_back: Callable[..., HeldTopics]  # the topics that lack what the setting `required` names

    def __init__(self, store: Store, row: holdings.CampaignRow, reuse_from: "Campaign | None" = None) -> None:
        """Open a campaign; `reuse_from` is the same campaign with other settings, whose cached topics are reused."""
        self.store = store
        self.id = row.id
        self.own_store = store.of(row.id)
        self.name = row.name
        settings, self.refused_settings = stored_settings(row.name, row.settings)
        self._set(settings, reuse_from)

    def _set(self, settings: Settings, reuse_from: "Campaign | None" = None) -> None:
        if reuse_from is not None and same_fixed_settings(reuse_from.settings, settings):
            self.live = reuse_from.live.limited(settings.spend_judgments)
        else:
            self.live = LiveTopics(self.own_store, settings)
        self.settings = settings
        self._proposals = Proposals(self.own_store, settings, self.live)
        self._proposals.texts_needed = reuse_from is None or reuse_from._proposals.texts_needed
        self.held_back = self._proposals.held_back.now
        self._crossed_design = CrossedDesign(self.own_store, settings, self.live, self._proposals)
        self._dispatch = Dispatch(self.own_store, settings, self.live, self._proposals, self._crossed_design)
        self._arriving = threading.BoundedSemaphore(ARRIVING_AT_MOST)

    def read(self, work: Callable[[Reading], T], *, once: bool = False) -> T:
        """Run work on a consistent snapshot of the campaign; it may run again, unless `once`."""
        return self.own_store.read(work, once=once)

    def write(self, work: Callable[[Writing], T]) -> T:
        """Run work in one transaction, and return its result once it is durable; it may run again."""
        return self.own_store.write(work)

    # ---- creation and settings

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
        """Create a campaign with its topics, pools, texts, test pairs and runs in one transaction.

        Topics without a pool are left out.
        """
        goal = read_goal(settings.goal)
        campaign_id = secrets.token_hex(8)
        pools, passages, test_pairs, runs = list(pools), list(passages), list(test_pairs), list(runs)
        by_id = {topic.id: topic for topic in topics}
        settings = settings_of_new(settings, [*map(len, pools)], [run.name for run in runs])
        pooled = [by_id.get(pool.topic, Topic(pool.topic, "")) for pool in pools]

        def work(tx: Writing) -> holdings.CampaignRow:
            holdings.create_campaign(tx, name, settings.as_json())
            holdings.add_topics(tx, pooled)
            for pool in pools:
                holdings.add_pool(tx, pool)
            holdings.add_passages(tx, passages)
            holdings.add_test_pairs(tx, test_pairs)
            for run in runs:
                holdings.add_run(tx, run)
            if goal.of_systems:
                systems.add_answers_of_runs(tx, goal, runs)
            if state != "open":
                holdings.set_campaign(tx, state=state)
            return holdings.find_campaign(tx.connection, campaign_id)

        return cls(store, store.of(campaign_id).write(work))

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
        """Use other settings from now on; questions and answers so far stay as they are.

        A setting that is the same as before stays as it is in the store: another process may have changed it.
        """
        before = self.settings.as_json()
        new = {name: value for name, value in settings.as_json().items() if value != before[name]}
        self._set(self._step(lambda tx: self._save(tx, new), also), self)
        self.refused_settings = tuple(each for each in self.refused_settings if each.kept)

    def add_items(self, pool: Pool, passages: Iterable[Passage] = ()) -> int:
        """Add items to a topic, which may be new; return how many items are new."""
        texts = list(passages)

        def work(tx: Writing) -> int:
            holdings.add_topics(tx, [Topic(pool.topic, "")])
            holdings.add_passages(tx, texts)
            return holdings.add_pool(tx, pool)

        added = self.write(work)
        self.live.forget(pool.topic)
        return added

    def add_system(self, system: str, answers: Mapping[str, str]) -> int:
        """Add a system's answers, by topic, which the pools must hold; return how many count. Earlier votes stay."""
        return self.write(lambda tx: systems.add_answers(tx, system, answers))

    def weigh(self, weights: Mapping[str, float], reason: str = "", *, also: Also | None = None) -> int:
        """Weigh the judgments of assessors from now on, earlier ones included; return the event's seq.

        The weights are an event of the campaign's log. Those left out weigh 1; strategies that don't weigh count 1.
        """
        return self._step(lambda tx: campaign_events.append_weights(tx, weights, reason), also)

    def remove(self, topic: str, item: str | None = None) -> None:
        """Remove an item from its topic, or a whole topic; its judgments stay in the log."""

        def work(tx: Writing) -> bool:
            if item is None:
                return holdings.set_topic_state(tx, topic, "left")
            return holdings.set_item_state(tx, topic, item, "left")

        if not self.write(work):
            raise BadParameter(f"There is no '{item or topic}' to remove.", remedy="Check its name.")
        self.live.forget(topic)

    def next_stage(self) -> dict[str, int]:
        """End the grading stage: thin the pools by their grades, and collect preferences from now on.

        Returns the new pool sizes by topic.
        """
        late = BadParameter("The campaign collects preferences already.", remedy="There is no later stage.")

        def work(tx: Writing) -> tuple[dict[str, int], Settings]:
            before, _ = stored_settings(self.name, holdings.lock_settings(tx))
            if before.stage != "grading":
                raise late
            return grading.thin(tx, before), self._save(tx, {"stage": "preferences"})

        sizes, settings = self.write(work)
        self._set(settings, self)
        return sizes

    def _save(self, tx: Writing, values: Mapping[str, Any]) -> Settings:
        """Store new values of some settings; return all settings."""
        settings, _ = stored_settings(self.name, {**holdings.lock_settings(tx), **values})
        holdings.set_campaign(tx, settings=settings.as_json())
        return settings

    def enrol(self, assessor: str, kind: AssessorKind | None = None) -> None:
        """Enrol an assessor under a pseudonym."""
        self.write(lambda tx: holdings.enrol(tx, assessor, kind or self.settings.judges))

    def assign(self, topics: Iterable[str], assessors: Iterable[str], *, also: Also | None = None) -> None:
        """Reserve topics for these assessors, who then judge nothing else; without assessors, open them to all."""
        reserved, people = list(topics), list(assessors)

        def work(tx: Writing) -> None:
            known = holdings.topics(tx)
            for topic in reserved:
                if topic not in known:
                    raise log.UnknownTopic(f"The campaign has no topic '{topic}'.", remedy="Check its name.")
                reservations.reserve_topic(tx, topic, people)

        if reserved:
            self._step(work, also)

    # ---- questions

    def next_question(self, assessor: str, topics: Collection[str] | None = None) -> Question | None:
        """Return the next question for a dedicated assessor or a program, one topic at a time.

        A question that the assessor holds already is returned again. None: there is no question for them now.
        """
        questions = self.next_questions(assessor, 1, topics)
        return questions[0] if questions else None

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
        self._require_may_judge(assessor, state)
        held = self._dispatch.held(assessor)[:n]
        while len(held) < n:
            among = {held[0].topic} if one_topic and held else topics
            another = self._dispatch.one_more(assessor, among)
            if another is None:
                break
            held.append(another)
        return tuple(held)

    def held(self, assessor: str) -> list[Question]:
        """Return the questions that an assessor holds outside of assignments."""
        return self._dispatch.held(assessor)

    def next_assignment(self, assessor: str, *, state: ParticipantState | None = None) -> Assignment | None:
        """Return the assessor's open assignment, or a new one; None when there are no questions or no money left.

        Questions are drawn at random over all topics, never a pair that the assessor has answered, and at most
        `per_topic` of a topic where possible. Test pairs and, where wanted, repeated questions are mixed in.
        `state` is the assessor's state where the caller has just read it.
        """
        self._require_may_judge(assessor, state)
        held = self.open_assignment(assessor)
        if held is not None:
            return held
        if not self._arriving.acquire(blocking=False):
            raise NotAllowed("Many people have arrived at once.", remedy="Ask again in a few seconds.")
        try:
            return self._dispatch.new_assignment(assessor)
        finally:
            self._arriving.release()

    def open_assignment(self, assessor: str) -> Assignment | None:
        """Return the assessor's open assignment, with all its questions in order."""
        return self.read(lambda tx: assignments.find_open(tx, assessor))

    def judge_by_ids(self) -> None:
        """Ask about topics that are held back, too, for judges that need no texts."""
        self._proposals.texts_needed = False

    # ---- answers

    def answer(self, question: str, assessor: str, response: Answer) -> Receipt:
        """Store an answer; sending it again changes nothing, another answer is a conflict."""
        _refuse_outcome(response.outcome, self.settings.outcomes)
        if response.outcome is Outcome.GRADE and response.grade not in self.settings.grades:
            raise BadRecord(
                f"The grade {response.grade} isn't on the scale.",
                remedy=f"Use one of {', '.join(f'{grade:g}' for grade in self.settings.grades)}.",
            )

        def work(tx: Writing) -> Receipt:
            row = leases.lock_own_question(tx, question, assessor)
            if self.settings.crossed:
                _refuse_outcome(response.outcome, self.settings.outcomes_of(Kind(row.kind)))
            # Read after the lock: an exclusion that held it until now must be seen.
            kind, state, assignment = participants.answer_context(tx, assessor, row.assignment)
            if state == "excluded" and row.state in (leases.LEASED, leases.EXPIRED, leases.RETURNED):
                raise leases.TooLate("Your participation has ended.", remedy="Finished work is paid.")
            # The release of an assignment that has ended is past: its late answers don't wait for it.
            at_once = kind != "crowd" or assignment not in (None, "open")
            slots = self._proposals.slots(row.topic, row.left_item)
            return leases.answer(tx, row, response, cap=slots, at_once=at_once)

        return self.write(work)

    def undo(self, question: str, assessor: str) -> Question:
        """Take an answer back, and lease its question to the assessor again."""

        def work(tx: Writing) -> Question:
            ended = assignments.lock_assignment_of(tx, question) not in (None, "open")
            row = leases.lock_own_question(tx, question, assessor)
            if ended:
                raise leases.Conflict("The assignment is finished.", remedy="Its answers count.")
            slots = self._proposals.slots(row.topic, row.left_item)
            return retractions.undo(tx, row, cap=slots, seconds=self.settings.lease_seconds)

        return self.write(work)

    def forfeit(self, question: str, assessor: str) -> None:
        """Count a question as worked on whose answer came too late to be stored: the assessor is paid for it."""

        def work(tx: Writing) -> None:
            leases.lock_own_question(tx, question, assessor)
            leases.forfeit(tx, question)

        self.write(work)

    def question(self, question: str, assessor: str) -> Question:
        """Return a question that the assessor holds or has answered."""

        def work(tx: Reading) -> Question:
            return leases.question_of(leases.find_own_question(tx, question, assessor))

        return self.read(work)

    def extend(self, question: str, assessor: str) -> float:
        """Extend the lease of a question and of its whole assignment; return when it ends."""

        def work(tx: Writing) -> float:
            row = leases.lock_own_question(tx, question, assessor)
            seconds = self.settings.lease_seconds
            ends = leases.extend(tx, row, seconds=seconds)
            if row.assignment is not None:
                leases.extend_assignment(tx, row.assignment, ends)
            return ends

        return self.write(work)

    def free_idle(self, besides: str) -> bool:
        """Free questions of idle people for someone who finds none; return whether there were any.

        Idle people keep their share; see `holding`.
        """
        if not self.read(lambda tx: holding.held(tx, besides).too_many()):
            return False

        def work(tx: Writing) -> bool:
            over = holding.held(tx, besides).too_many()
            if over:
                holding.expire_leases_of(tx, over)
                assignments.end_abandoned(tx, self.settings)
            return bool(over)

        return self.write(work)

    def give_back(self, question: str, assessor: str) -> None:
        """End a lease without an answer."""

        def work(tx: Writing) -> None:
            leases.lock_own_question(tx, question, assessor)
            leases.return_questions(tx, [question])

        self.write(work)

    def sweep(self) -> int:
        """Free the slots of expired leases, and end each assignment without a live lease, in its own transaction."""
        freed = self.write(expire)
        left = {*self.read(assignments.abandoned)}
        while left:  # other processes do the same
            for assignment in assignments.some_of(left):
                give_way()
                self.write(partial(assignments.end_abandoned, settings=self.settings, only=assignment))
                left.discard(assignment)
            left &= self.read(assignments.abandoned).keys()
        return freed

    def finish(self, assignment: str, ending: Ending = "finished") -> Finished:
        """End an assignment: check the test pairs, release its judgments or exclude the assessor, and pay.

        Ending it again changes nothing and returns the same.
        """
        return self.write(lambda tx: assignments.finish(tx, self.settings, assignment, ending=ending))

    # ---- the manager's operations; `also` is written in the same transaction

    def preview_exclusion(self, assessor: str) -> exclusion.Exclusion:
        """Return what excluding an assessor would remove."""
        return self.read(lambda tx: exclusion.preview(tx, assessor))

    def exclude(self, assessor: str, reason: str, *, also: Also | None = None) -> exclusion.Exclusion:
        """Take an assessor's judgments out of every score and admit them no more; they are paid all the same.

        An assignment that they are working on ends, and what they have answered is paid.
        """
        return self._step(lambda tx: assignments.exclude(tx, self.settings, assessor, reason=reason), also)

    def reinstate(self, assessor: str, reason: str = "re-instated", *, also: Also | None = None) -> int:
        """Admit an excluded assessor again; return how many of their judgments count again."""
        return self._step(
            lambda tx: exclusion.reinstate(tx, assessor, cap=self.settings.slots, reason=reason), also
        )

    def retract(self, topic: str, seqs: Sequence[int], reason: str, *, also: Also | None = None) -> list[int]:
        """Take judgments out of every score, with a reason; return those that counted until now."""
        return self._step(lambda tx: retractions.retract(tx, topic, seqs, reason=reason), also)

    def preview_rewind(self, topic: str, phase: str) -> int:
        """Return how many judgments of later phases reopening a closed phase would set aside."""
        return len(self.live.with_state(topic, None, lambda at: replay.preview_rewind(at, topic, phase)))

    def rewind(self, topic: str, phase: str, reason: str, *, also: Also | None = None) -> int:
        """Reopen a closed phase; return how many judgments of later phases are set aside."""
        set_aside = self.preview_rewind(topic, phase)
        self._step(lambda tx: replay.rewind(tx, topic, phase, reason), also)
        return set_aside

    def add_judgments(self, judgments: Iterable[Judgment]) -> int:
        """Add judgments from elsewhere to the log as they are; refuse unknown topics and items."""
        added = list(judgments)
        replay.refuse_unknown(added, {topic: set(self.live.items(topic)) for topic in self.live.heads()})
        return len(self.write(lambda tx: imports.add_judgments(tx, added)))

    # ---- results

    def result(self, topic: str) -> Levels:
        """Return a topic's levels as the judgments so far give them."""
        return self.live.result(topic)

    def results(self) -> dict[str, Levels]:
        """Return the levels of every open topic."""
        if self.live.goal.of_systems:
            return dict(self.decision().topics)
        return {topic: self.live.result(topic) for topic in self.live.heads()}

    @property
    def done(self) -> bool:
        """Whether every open topic has all the judgments that it needs."""
        if self.settings.crossed:
            return self._crossed_design.done
        if self.settings.stage == "grading":
            return self.read(lambda tx: grading.all_graded(tx, self.settings))
        return self.live.decider.done(self._proposals.now(self.live.unfinished_heads(), NOTHING_OUTSTANDING))

    def decision(self) -> Result:
        """Return what is known now: the levels of each open topic, and the order of systems where they compete."""
        return self.live.decider.result(self._proposals.now(self.live.heads(), NOTHING_OUTSTANDING))

    def judgments(self, topic: str) -> list[Judgment]:
        """Return a topic's usable judgments of pairs, in the order of the log."""
        return self.live.with_state(topic, None, lambda state: state.judgments())

    # ---- internal

    def _require_may_judge(self, assessor: str, state: ParticipantState | None) -> None:
        """Refuse to ask an assessor who may not judge now."""
        state = state or self.read(lambda tx: participants.participant_state(tx, assessor))
        if state.campaign != "open":
            refusal = Paused if state.campaign == "paused" else NotAllowed
            raise refusal(f"The campaign is {state.campaign}.", remedy="Come back later.")
        if state.person is None:
            raise NotAllowed(f"The campaign has no assessor '{assessor}'.", remedy="Enrol them first.")
        if state.person == "excluded":
            raise NotAllowed("This assessor is excluded.", remedy="Finished work is paid.")
        if kept := next((each for each in self.refused_settings if each.kept), None):
            raise NotAllowed(str(kept), remedy="Create another campaign.")
