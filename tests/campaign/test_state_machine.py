"""Operations in any order: replaying the log gives the live state and the next questions, bit for bit."""

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import func, select

from duelpool.campaign import Assignment, Campaign, NotAllowed, Settings
from duelpool.campaign.log import campaign_events
from duelpool.campaign.log.live_topics import part_of
from duelpool.files import Run
from duelpool.files.packed import pack_run
from duelpool.records import Answer, Judgment, Outcome, Pool, Question, Topic
from duelpool.store import Store, imports, open_store, schema
from duelpool.store.holdings import PackedRun, TestPair
from duelpool.store.leases import Conflict, TooLate
from duelpool.testing.stores import audit
from duelpool.testing.strategies import state_of
from support.stores import new_target

ITEMS = tuple("abcdef")
TOPICS = ("one", "two")
DEDICATED = ("ann", "ben", "cem")
CROWD = ("w1", "w2", "w3")
STRATEGIES = (
    "prefbest:n=2,m=3",
    "prefbest:n=2,m=3,final_phases=2",
    "swissfinals:finalists=4",
    "topk:k=1,P=2,F=3",
    "allpairs",
    "knockout",
    "sorting",
)
GOALS = ("systems", "compare:A,C")
OUTCOMES = (
    Outcome.LEFT,
    Outcome.RIGHT,
    Outcome.LEFT_BAD,
    Outcome.BOTH_BAD,
    Outcome.TIE,
    Outcome.SKIP,
    Outcome.CANNOT_JUDGE,
)
CAP = 2

ANSWERS = {"A": "a", "B": "b", "C": "c", "D": "d", "E": "c2"}

answers = st.sampled_from(OUTCOMES)
people = st.sampled_from(DEDICATED)
workers = st.sampled_from(CROWD)
topic_names = st.sampled_from(TOPICS)


def packed(system: str, answers: dict[str, str]) -> PackedRun:
    run = Run.from_rankings(system, {topic: [(item, 1.0)] for topic, item in answers.items()})
    return PackedRun(system, len(answers), pack_run(run))


class CampaignMachine(RuleBasedStateMachine):
    """People, workers and a manager do whatever they like to one campaign."""

    back_end = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.places = ExitStack()
        folder = Path(self.places.enter_context(tempfile.TemporaryDirectory()))
        target = self.places.enter_context(new_target(self.back_end, folder))
        self.store: Store = self.places.enter_context(open_store(target, create=True))
        self.held: dict[str, Question] = {}
        self.answered: list[tuple[str, str]] = []
        self.working: dict[str, Assignment] = {}
        self.steps = 0

    def teardown(self) -> None:
        try:
            if self.steps:
                self.replay_gives_the_live_state()
        finally:
            self.places.close()

    @initialize(strategy=st.sampled_from(STRATEGIES))
    def begin(self, strategy: str) -> None:
        self.create(Settings(strategy=strategy, cap=CAP))

    def create(self, how: Settings) -> None:
        self.topics = list(TOPICS)
        self.campaign = Campaign.create(
            self.store,
            "any",
            replace(how, ties=True, targets=3, tests=1, bad_votes=1),
            topics=[Topic(name, name) for name in TOPICS],
            pools=[Pool(name, ITEMS, twins={"c": ("c2",)}) for name in TOPICS],
            runs=[packed(system, dict.fromkeys(TOPICS, item)) for system, item in ANSWERS.items()],
            test_pairs=[TestPair(f"k{at}", TOPICS[at % 2], "a", f"off{at}") for at in range(30)],
        )
        for person in DEDICATED:
            self.campaign.enrol(person, "dedicated")
        for worker in CROWD:
            self.campaign.enrol(worker, "crowd")

    # ---- dedicated people

    @rule(person=people)
    def ask(self, person: str) -> None:
        try:
            question = self.campaign.next_question(person)
        except NotAllowed:
            return
        if question is not None:
            self.held[person] = question

    @rule(person=people, outcome=answers)
    def answer(self, person: str, outcome: Outcome) -> None:
        question = self.held.pop(person, None)
        if question is not None:
            try:
                self.campaign.answer(question.id, person, Answer(outcome))
            except TooLate:
                return
            self.answered.append((question.id, person))

    @precondition(lambda self: self.answered)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        question, person = self.answered.pop(data.draw(st.integers(0, len(self.answered) - 1)))
        try:
            again = self.campaign.undo(question, person)
        except (Conflict, TooLate):
            return
        if person not in self.held:
            self.held[person] = again

    # ---- the crowd

    @rule(worker=workers)
    def accept(self, worker: str) -> None:
        try:
            assignment = self.campaign.next_assignment(worker)
        except NotAllowed:
            return
        if assignment is not None:
            self.working[worker] = assignment

    @rule(worker=workers, careless=st.booleans(), ending=st.sampled_from(["finished", "stopped", "returned"]))
    def work(self, worker: str, careless: bool, ending: str) -> None:
        assignment = self.working.pop(worker, None)
        if assignment is None:
            return
        done = assignment.questions if ending == "finished" else assignment.questions[:2]
        for question in done:
            off_left = question.left.startswith("off")
            right = off_left if not careless else not off_left
            self.campaign.answer(question.id, worker, Answer(Outcome.RIGHT if right else Outcome.LEFT))
        self.campaign.finish(assignment.id, ending)  # type: ignore[arg-type]

    # ---- the manager

    @rule(who=people | workers)
    def exclude(self, who: str) -> None:
        preview = self.campaign.preview_exclusion(who)
        assert self.campaign.exclude(who, "by hand") == preview
        assert self.campaign.preview_exclusion(who).judgments == 0
        self.held.pop(who, None)
        self.answered = [each for each in self.answered if each[1] != who]
        if (assignment := self.working.pop(who, None)) is not None:
            self.campaign.finish(assignment.id, "returned")

    @rule(who=people | workers)
    def reinstate(self, who: str) -> None:
        self.campaign.reinstate(who)

    @rule(topic=topic_names, data=st.data())
    def retract(self, topic: str, data: st.DataObject) -> None:
        judged = self.campaign.judgments(topic)
        if judged:
            seq = data.draw(st.sampled_from([judgment.seq for judgment in judged]))
            assert seq is not None
            assert self.campaign.retract(topic, [seq], "by hand") == [seq]

    @rule(topic=topic_names, data=st.data())
    def rewind(self, topic: str, data: st.DataObject) -> None:
        closed = self.campaign.live.state(topic).closed_in_log
        if closed:
            self.campaign.rewind(topic, data.draw(st.sampled_from(closed)), "by hand")

    @rule(topic=topic_names, pair=st.permutations(ITEMS), left=st.booleans())
    def take_in(self, topic: str, pair: list[str], left: bool) -> None:
        outcome = Outcome.LEFT if left else Outcome.RIGHT
        if {pair[0], pair[1]} <= set(self.campaign.live.items(topic)):  # others have left, and are refused
            self.campaign.add_judgments([Judgment(topic, pair[0], pair[1], outcome, assessor="elsewhere")])

    @rule(who=people | workers, weight=st.sampled_from([0.0, 0.5, 2.0]))
    def weigh(self, who: str, weight: float) -> None:
        seq = self.campaign.weigh({who: weight}, "refitted")
        events = self.campaign.read(campaign_events.events)
        assert [each.seq for each in events] == list(range(1, seq + 1))

    @rule(topic=topic_names, left=st.booleans())
    def take_in_a_vote_between_same_answers(self, topic: str, left: bool) -> None:
        if self.campaign.live.goal.of_systems:
            outcome = Outcome.LEFT if left else Outcome.RIGHT
            votes = [Judgment(topic, "c2", "c", outcome, assessor="elsewhere")]
            self.campaign.write(lambda tx: imports.add_judgments(tx, votes))

    @rule(topic=topic_names, system=st.sampled_from(["F", "G"]))
    def join_late(self, topic: str, system: str) -> None:
        if self.campaign.live.goal.of_systems:
            self.campaign.add_items(Pool(topic, (*ITEMS, "z")))
            self.campaign.add_system(system, {topic: "z"})

    @rule(topic=topic_names, item=st.sampled_from(["b", "c2", "c"]))
    def leave(self, topic: str, item: str) -> None:
        if self.campaign.live.goal.of_systems:
            self.campaign.remove(topic, item)

    @rule()
    def add_topic(self) -> None:
        if len(self.topics) == len(TOPICS):
            self.campaign.add_items(Pool("late", ITEMS))
            self.campaign.add_system("A", {"late": "a"})
            self.campaign.add_system("C", {"late": "c"})
            self.topics.append("late")

    @rule()
    def restart(self) -> None:
        self.replay_gives_the_live_state()
        self.campaign = Campaign.open(self.store)

    # ---- what must always hold

    @invariant()
    def replay_gives_the_live_state_now_and_then(self) -> None:
        self.steps += 1  # what differs goes on to differ, and is seen at the end at the latest
        if self.steps % 4 == 0:
            self.replay_gives_the_live_state()

    def replay_gives_the_live_state(self) -> None:
        fresh = Campaign.open(self.store)
        assert self.campaign.decision() == fresh.decision()
        assert self.campaign.done == fresh.done
        for topic in self.topics:
            mine, theirs = self.campaign.live.state(topic), fresh.live.state(topic)
            assert mine.position == theirs.position
            assert mine.closed_in_log == theirs.closed_in_log
            assert mine.held() == theirs.held()
            assert mine.strategy.done == theirs.strategy.done
            assert mine.strategy.result() == theirs.strategy.result()
            assert mine.strategy.ask(30) == theirs.strategy.ask(30)
            if self.campaign.live.goal.of_systems:
                assert state_of(part_of(mine.strategy)) == state_of(part_of(theirs.strategy))

    @invariant()
    def the_cap_holds_and_no_assessor_answers_twice(self) -> None:
        columns = schema.question.c

        def most(*by: object) -> int:
            counts = select(func.count().label("n")).where(
                columns.live == 1, columns.test_pair.is_(None), columns.source == "asked"
            )
            counts = counts.group_by(columns.topic, columns.a, columns.b, *by)  # type: ignore[arg-type]
            return self.store.read(
                lambda connection: connection.execute(select(func.max(counts.subquery().c.n))).scalar() or 0
            )

        assert most() <= CAP
        assert most(columns.assessor) <= 1
        assert audit(self.store, self.campaign.id, CAP) == []

    @invariant()
    def the_log_has_no_gaps(self) -> None:
        for topic in self.topics:
            seqs = [line.seq for line in self.campaign.live.state(topic).lines]
            assert seqs == list(range(1, len(seqs) + 1))


class SystemsMachine(CampaignMachine):
    """The same where systems compete."""

    @initialize(goal=st.sampled_from(GOALS), votes=st.integers(1, 2))
    def begin(self, goal: str, votes: int) -> None:
        self.create(Settings(goal=goal, strategy=f"round-robin:votes={votes}", cap=CAP))


class SystemsMachineOnPostgreSQL(SystemsMachine):
    """The same, on the other back end."""

    back_end = "postgresql"


TestCampaign = CampaignMachine.TestCase
TestSystems = SystemsMachine.TestCase
TestSystemsOnPostgreSQL = pytest.mark.long(SystemsMachineOnPostgreSQL.TestCase)
TestCampaign.settings = TestSystems.settings = settings(
    max_examples=max(5, settings().max_examples // 8), stateful_step_count=40
)
TestSystemsOnPostgreSQL.settings = settings(
    max_examples=max(5, settings().max_examples // 20), stateful_step_count=40
)
