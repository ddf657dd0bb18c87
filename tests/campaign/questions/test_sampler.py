"""The sampler of assignments: random over all open questions, few per topic, and no topic asked in vain."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.checks.campaigns import contradictions
from duelpool.campaign.questions import proposals
from duelpool.campaign.questions.proposals import Proposals, read_outstanding
from duelpool.campaign.work import assignments
from duelpool.campaign.work.assignments import finish
from duelpool.deciders import Asked, ByTopic, CampaignGoal, Draw, TopicPool
from duelpool.records import Answer, Outcome, Passage, Pool, Proposal, Question, Topic
from duelpool.seeds import rng_for
from duelpool.store import Store, Writing, holdings, leases, open_store
from duelpool.store.holdings import TestPair
from duelpool.store.leases import Conflict, Wanted
from duelpool.store.statements import Statement
from duelpool.strategies import Strategy
from support.eventful import Eventful
from support.stores import BACK_ENDS, new_target

SIZES = {"small": 4, "middle": 12, "large": 24}


class FixedTopics:
    """Topics with fixed numbers of open questions; records which topics are asked."""

    topics: Sequence[str] = tuple(SIZES)
    all_topics: Sequence[str] = tuple(SIZES)

    def __init__(self, guesses: dict[str, float] | None = None) -> None:
        self.guesses = guesses or {topic: float(size) for topic, size in SIZES.items()}
        self.asked: list[str] = []

    def sizes(self) -> list[float]:
        return [self.guesses[topic] for topic in SIZES]

    def proposals(self, topic: str, n: int) -> list[Proposal]:
        self.asked.append(topic)
        return [Proposal((topic, f"{at:02d}")) for at in range(SIZES[topic])]

    def pending(self, topic: str) -> list[Proposal]:
        return []

    def may_ask(self, topic: str, pair: tuple[str, str]) -> bool:
        return True

    def stamp(self, topic: str) -> object:
        return None

    def look(self, topic: str, work: Callable[[Strategy], Any]) -> Any:
        raise NotImplementedError


def no_strategy(pool: TopicPool) -> Strategy:
    raise NotImplementedError


def drawn_from(topics: FixedTopics, number: int) -> Iterator[Asked]:
    return ByTopic(CampaignGoal(), no_strategy).ask(topics, 3, Draw(rng_for(1, "urn", number), 3))


@pytest.mark.long
def test_first_draw_is_uniform_over_open_questions() -> None:
    drawn = Counter(next(drawn_from(FixedTopics(), at)).proposal.pair for at in range(8_000))
    assert len(drawn) == 40
    counts = np.array(list(drawn.values()))
    assert ((counts - 200) ** 2 / 200).sum() < 39 + 5 * np.sqrt(2 * 39)


def test_draw_limits_each_topic_and_repeats_no_question() -> None:
    for number in range(50):
        drawn = list(drawn_from(FixedTopics(), number))
        first = Counter(each.topic for each in drawn[:9])
        assert set(first.values()) == {3}
        assert len({each.proposal.pair for each in drawn}) == len(drawn) == 40


def test_only_drawn_topics_are_asked_once_each() -> None:
    topics = FixedTopics()
    drawn = list(islice(drawn_from(topics, 1), 2))
    assert sorted(topics.asked) == sorted({each.topic for each in drawn})


def test_wrong_size_estimate_loses_no_question() -> None:
    topics = FixedTopics({"small": 500.0, "middle": 0.5, "large": 1.0})
    assert len(list(drawn_from(topics, 1))) == 40


# ---- with a campaign


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    back_end = getattr(request, "param", "sqlite")
    with new_target(back_end, tmp_path) as target, open_store(target, create=True) as opened:
        yield opened


def elsewhere(work: Callable[[], object]) -> None:
    """Do something in another thread, as another visitor does."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def a_crowd(store: Store, topics: int, items: int, **settings: object) -> Campaign:
    names = [f"t{at:02d}" for at in range(topics)]
    texts = [f"i{at:02d}" for at in range(items)]
    return Campaign.create(
        store,
        "crowd",
        Settings(judges="crowd", **settings),  # type: ignore[arg-type]
        topics=[Topic(name, f"What is {name}?") for name in names],
        pools=[Pool(name, tuple(texts)) for name in names],
        passages=[Passage(item, f"text of {item}") for item in texts],
        test_pairs=[TestPair(f"k{at}", names[at % topics], texts[0], f"off-{at}") for at in range(20)],
    )


def test_campaign_is_judged_to_its_last_question(store: Store) -> None:
    campaign = a_crowd(store, topics=5, items=6, strategy="allpairs")
    for number in range(40):
        campaign.enrol(f"w{number}")
        assignment = campaign.next_assignment(f"w{number}")
        if assignment is None:
            break
        for question in assignment.questions:
            assert question.right is not None
            left = question.right.startswith("off") or question.left < question.right
            outcome = Outcome.LEFT if left and not question.left.startswith("off") else Outcome.RIGHT
            campaign.answer(question.id, f"w{number}", Answer(outcome))
        campaign.finish(assignment.id)
    assert campaign.done
    assert all(len(campaign.judgments(topic)) == 15 for topic in campaign.live.heads())


def test_graders_get_the_items_below_the_cap(store: Store) -> None:
    """Which items are full isn't known before they are leased: sixteen of them drawn may all be."""
    campaign = a_crowd(store, topics=6, items=10, stage="grading", scale="abc", tests=0, cap=1)
    graded = 0
    for number in range(10):
        campaign.enrol(f"w{number}")
        assignment = campaign.next_assignment(f"w{number}")
        assert assignment is not None or graded == 60
        for question in assignment.questions if assignment is not None else ():
            campaign.answer(question.id, f"w{number}", Answer(Outcome.GRADE, grade=1.0))
            graded += 1
    assert graded == 60


def test_a_grader_passes_over_many_full_items_in_few_transactions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Campaign.create(
        store,
        "graded",
        Settings(stage="grading", scale="abc", cap=1),
        topics=[Topic("t", "t")],
        pools=[Pool("t", tuple(f"d{at:03d}" for at in range(200)))],
    )
    for person in ("ann", "ben"):
        campaign.enrol(person, "dedicated")
    for question in campaign.next_questions("ann", 199):
        campaign.answer(question.id, "ann", Answer(Outcome.GRADE, grade=1.0))
    tried: list[int] = []
    plain = leases.lease

    def counting(tx: Writing, wanted: Sequence[Wanted], *args: Any, **options: Any) -> list[Question]:
        tried.append(len(wanted))
        return plain(tx, wanted, *args, **options)

    monkeypatch.setattr(leases, "lease", counting)
    assert campaign.next_question("ben") is not None
    assert sum(tried) == 200
    assert len(tried) <= 8


@pytest.mark.parametrize("store", BACK_ENDS, indirect=True)
def test_two_tabs_of_an_assessor_get_the_same_assignment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have seen that there is none: in one process, and in another one while the first was choosing.

    There are test pairs for one assignment only.
    """
    campaign, other = a_crowd(store, topics=4, items=6, strategy="allpairs", tests=20), Campaign.open(store)
    monkeypatch.setattr(Campaign, "open_assignment", lambda *_: None)
    campaign.enrol("w")
    tests = Proposals.tests
    opened: list[str | None] = []

    def meanwhile(self: Proposals, assessor: str, rng: np.random.Generator) -> list[Wanted]:
        chosen = tests(self, assessor, rng)
        if not opened:
            opened.append("")
            opened.append(getattr(other.next_assignment("w"), "id", None))
        return chosen

    monkeypatch.setattr(Proposals, "tests", meanwhile)
    first = campaign.next_assignment("w")
    again = campaign.next_assignment("w")
    assert first is not None
    assert again is not None
    assert opened[1] == first.id == again.id
    assert [each.id for each in first.questions] == [each.id for each in again.questions]


@pytest.mark.parametrize("store", BACK_ENDS, indirect=True)
def test_waiting_assessor_sees_the_leases_of_others(store: Store) -> None:
    campaign = a_crowd(store, topics=4, items=6, strategy="allpairs", tests=0)
    taken: list[tuple[str, frozenset[str]]] = []

    def take(assessor: str) -> None:
        assignment = campaign.next_assignment(assessor)
        assert assignment is not None
        taken.extend((each.topic, frozenset((each.left, str(each.right)))) for each in assignment.questions)

    for number in range(6):
        campaign.enrol(f"w{number}")
    with store.shared_snapshot():
        assert campaign.open_assignment("w5") is None
        for number in range(5):
            elsewhere(lambda number=number: take(f"w{number}"))  # type: ignore[misc]
        take("w5")
    assert len(taken) == len(set(taken)) == 60


def test_items_added_during_a_read_are_asked(store: Store) -> None:
    campaign = a_crowd(store, topics=2, items=3)
    with store.shared_snapshot():
        assert campaign.live.heads()
        elsewhere(lambda: campaign.add_items(Pool("t00", ("i00", "new"))))
        assert "new" in campaign.live.items("t00")
    assert "new" in campaign.live.items("t00")


def test_topic_added_in_another_process_is_drawn(store: Store) -> None:
    campaign = a_crowd(store, topics=1, items=8, strategy="allpairs", tests=0)
    campaign.enrol("first")
    assert campaign.next_assignment("first") is not None
    Campaign.open(store).add_items(Pool("late", tuple("abcdefgh")))
    campaign.enrol("second")
    assignment = campaign.next_assignment("second")
    assert assignment is not None
    assert "late" in {each.topic for each in assignment.questions}


def test_what_is_read_of_one_topic_is_its_part_of_what_is_read_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path / "campaign.db", create=True) as store:
        campaign = Eventful.play(store, 3, tmp_path, monkeypatch, "prefbest").campaign
        heads = campaign.live.heads()
        assert [campaign.live.heads(topic) for topic in heads] == [{topic: heads[topic]} for topic in heads]
        assert campaign.live.heads("no such topic") == {}
        people = campaign.read(lambda tx: list(holdings.assessors(tx)))
        seen = 0
        for person in people:
            whole = campaign.read(partial(read_outstanding, assessor=person, parked_after=2))
            for topic in heads:
                part = campaign.read(partial(read_outstanding, assessor=person, parked_after=2, topic=topic))
                for name in ("own", "skipped", "leased", "parked"):
                    mine, theirs = getattr(part, name), getattr(whole, name)
                    assert mine == {key: value for key, value in theirs.items() if key == topic}
                    seen += len(mine)
        assert seen > len(people)


# ---- what is read, however long the log is


def test_outstanding_pairs_and_judgments_are_read_by_index(tmp_path: Path) -> None:
    plans: list[str] = []

    def explain(connection: Connection, text: str, values: Any) -> None:
        driver: Any = connection.connection.dbapi_connection
        plans.extend(row[3] for row in driver.execute(f"explain query plan {text}", values))

    def out(connection: Connection, *statements: Statement) -> None:
        for statement in statements:
            written = statement.compiled("sqlite")
            given = {"campaign": "c", "assessor": "anna", "topic": "t", "assignment": "nothing"}
            explain(connection, written.text, {**written.fixed, **given})

    with open_store(tmp_path / "campaign.db", create=True) as store:
        store.read(lambda connection: out(connection, proposals._OUTSTANDING, proposals._OUTSTANDING_IN))
        searches = [each for each in plans if " question " in each]
        assert len(searches) == 8
        assert all("state=?" in each for each in searches), searches
        plans.clear()
        store.read(lambda connection: out(connection, assignments._JUDGMENTS_IN))
    assert any("question_by_assignment" in each for each in plans), plans
    assert any("log_answer_once" in each for each in plans), plans


@pytest.mark.parametrize("store", BACK_ENDS, indirect=True)
def test_an_answer_is_not_undone_while_its_assignment_ends(store: Store) -> None:
    campaign = a_crowd(store, 3, 6, tests=1)
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    question = assignment.questions[0]
    campaign.answer(question.id, "w", Answer(Outcome.LEFT))
    undone: list[object] = []

    def undo() -> None:
        try:
            undone.append(campaign.undo(question.id, "w"))
        except Conflict as error:
            undone.append(error)

    thread = threading.Thread(target=undo)

    def ends(tx: Writing) -> None:
        finish(tx, campaign.settings, assignment.id, ending="stopped")
        thread.start()
        thread.join(timeout=0.5)  # it waits for this transaction

    campaign.write(ends)
    thread.join()
    assert isinstance(undone[0], Conflict)
    assert campaign.read(lambda tx: contradictions(tx, campaign.settings.cap)) == []
