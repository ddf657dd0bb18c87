"""A model of leases and answers in a few dictionaries; a store of each back end must behave the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run
from sqlalchemy import select

from duelpool.errors import DuelpoolError
from duelpool.records import Answer, Outcome
from duelpool.store import Store, Writing, leases, log, open_store, overdue, retractions, schema
from duelpool.store.leases import Conflict, TooLate, UnknownQuestion, Wanted
from duelpool.testing.stores import Scene, audit
from support.stores import new_target

PEOPLE = ("p0", "p1", "p2")
OTHERS = ("b", "b", "b", "c")  # most steps are on one pair
CAP = 2
SECONDS = 60.0
OUTCOMES = (Outcome.LEFT, Outcome.RIGHT, Outcome.SKIP, Outcome.CANNOT_JUDGE)
ENDS_AS = {Outcome.SKIP: "skipped", Outcome.CANNOT_JUDGE: "cannot-judge"}


@dataclass
class ModelQuestion:
    """A question in the model."""

    other: str  # the pair is a and this item
    person: str
    test: bool
    expires: float
    state: str = "leased"
    attempt: int = 1
    place: int = 0  # seq of the current answer, 0 for none

    @property
    def live(self) -> bool:
        return self.state in {"leased", "answered"}


@dataclass
class StoreModel:
    """The expected behaviour, written plainly."""

    questions: dict[str, ModelQuestion]
    log: list[tuple[str, str, Outcome | None, int | None]]  # event, question, outcome, the line it is about

    def barred(self, person: str, other: str, besides: str = "") -> bool:
        return any(
            name != besides
            and (each.person, each.other) == (person, other)
            and (each.live or each.state == "cannot-judge")
            for name, each in self.questions.items()
        )

    def room(self, other: str, test: bool) -> bool:
        taken = sum(each.other == other and each.live and not each.test for each in self.questions.values())
        return test or taken < CAP

    def counts(self, place: int) -> bool:
        about = [event for event, _, _, refers in self.log if refers == place]
        return not about or about[-1] == log.RESTORATION

    def write(self, event: str, name: str, outcome: Outcome | None = None, refers: int | None = None) -> int:
        self.log.append((event, name, outcome, refers))
        return len(self.log)

    def lease(self, name: str, person: str, other: str, test: bool, now: float) -> bool:
        if self.barred(person, other) or not self.room(other, test):
            return False
        self.questions[name] = ModelQuestion(other, person, test, now + SECONDS)
        return True

    def admit_late(self, name: str) -> None:
        question = self.questions[name]
        if self.barred(question.person, question.other, besides=name) or not self.room(
            question.other, question.test
        ):
            raise TooLate("late")

    def answer(self, name: str, person: str, outcome: Outcome) -> int:
        question = self.questions.get(name)
        if question is None or question.person != person:
            raise UnknownQuestion("unknown")
        if question.state in {"answered", "skipped", "cannot-judge"}:
            if self.log[question.place - 1][2] is not outcome:
                raise Conflict("another")
            return question.place
        if question.state == "retracted":
            raise Conflict("retracted")
        ended = ENDS_AS.get(outcome, "answered")
        if question.state != "leased" and ended == "answered":
            self.admit_late(name)
        question.state = ended
        question.place = self.write(log.JUDGMENT, name, outcome)
        return question.place

    def undo(self, name: str, person: str, now: float) -> None:
        question = self.questions.get(name)
        if question is None or question.person != person:
            raise UnknownQuestion("unknown")
        if question.state not in {"answered", "skipped", "cannot-judge"} or not self.counts(question.place):
            raise Conflict("nothing to undo")
        if question.state != "answered":
            self.admit_late(name)
        self.write(log.RETRACTION, "", refers=question.place)
        question.state, question.place, question.expires = "leased", 0, now + SECONDS
        question.attempt += 1

    def end(self, name: str, state: str) -> int:
        question = self.questions.get(name)
        if question is None or question.state != "leased":
            return 0
        question.state = state
        return 1

    def retract(self, places: list[int]) -> list[int]:
        retracted = []
        for place in sorted(set(places)):
            if (
                not 0 < place <= len(self.log)
                or self.log[place - 1][0] != log.JUDGMENT
                or not self.counts(place)
            ):
                continue
            self.write(log.RETRACTION, "", refers=place)
            question = self.questions[self.log[place - 1][1]]
            if question.state in {"answered", "cannot-judge"} and question.place == place:
                question.state = "retracted"
            retracted.append(place)
        return retracted

    def restore(self, places: list[int]) -> list[int]:
        restored = []
        for place in sorted(set(places)):
            if not 0 < place <= len(self.log) or self.log[place - 1][0] != log.JUDGMENT or self.counts(place):
                continue
            name = self.log[place - 1][1]
            question = self.questions[name]
            if question.place != place:
                continue  # its assessor has undone it
            if question.state == "retracted":
                ended = ENDS_AS.get(self.log[place - 1][2] or Outcome.LEFT, "answered")
                try:
                    if ended == "answered":
                        self.admit_late(name)
                except TooLate:
                    continue
                question.state = ended
            self.write(log.RESTORATION, "", refers=place)
            restored.append(place)
        return restored


class StoreMachine(RuleBasedStateMachine):
    """All actions of assessors and managers on questions, in any order."""

    store: ClassVar[Store]
    numbers = count()

    @initialize()
    def set_up(self) -> None:
        self.scene = Scene.set_up(self.store, people=len(PEOPLE), cap=CAP)
        self.model = StoreModel({}, [])
        self.now = 1_000.0

    def known(self, at: int) -> str:
        names = list(self.model.questions)
        return names[at % len(names)] if names else "nothing"

    def holder(self, name: str, stranger: bool) -> str:
        question = self.model.questions.get(name)
        person = PEOPLE[0] if question is None else question.person
        return PEOPLE[(PEOPLE.index(person) + 1) % len(PEOPLE)] if stranger else person

    def in_the_log(self, places: list[int]) -> list[int]:
        """Return places that mostly exist in the log."""
        return [place % (len(self.model.log) + 2) for place in places]

    def both(self, real: Any, modelled: Any) -> None:
        """Do it in the store and in the model: the same result, or the same refusal."""
        results: list[object] = []
        for work in (
            lambda: self.store.of(self.scene.campaign).write(lambda tx: real(tx.at(self.now))),
            modelled,
        ):
            try:
                results.append(work())
            except DuelpoolError as error:
                results.append(type(error))
        assert results[0] == results[1]

    @rule(
        person=st.sampled_from(PEOPLE),
        other=st.sampled_from(OTHERS),
        test=st.sampled_from([False] * 4 + [True]),
    )
    def lease(self, person: str, other: str, test: bool) -> None:
        name = f"{self.scene.campaign}-{next(self.numbers)}"
        want = Wanted("t1", other, "a", test_pair="k" if test else None)
        self.both(
            lambda tx: bool(leases.lease(tx, [want], [name], assessor=person, cap=CAP, seconds=SECONDS)),
            lambda: self.model.lease(name, person, other, test, self.now),
        )

    @rule(
        at=st.integers(0, 40),
        outcome=st.sampled_from(OUTCOMES),
        stranger=st.sampled_from([False] * 9 + [True]),
    )
    def answer(self, at: int, outcome: Outcome, stranger: bool) -> None:
        name = self.known(at)
        person = self.holder(name, stranger)

        def work(tx: Writing) -> int:
            row = leases.lock_own_question(tx, name, person)
            return leases.answer(tx, row, Answer(outcome), cap=CAP, at_once=True).seq

        self.both(
            work,
            lambda: self.model.answer(name, person, outcome),
        )

    @precondition(lambda self: any(each.state == "leased" for each in self.model.questions.values()))
    @rule(at=st.integers(0, 40), outcome=st.sampled_from(OUTCOMES))
    def answer_open_question(self, at: int, outcome: Outcome) -> None:
        names = [name for name, each in self.model.questions.items() if each.state == "leased"]
        self.answer(list(self.model.questions).index(names[at % len(names)]), outcome, stranger=False)

    @rule(at=st.integers(0, 40), stranger=st.sampled_from([False] * 9 + [True]))
    def undo(self, at: int, stranger: bool) -> None:
        name = self.known(at)
        person = self.holder(name, stranger)

        def undone(tx: Writing) -> None:
            again = retractions.undo(tx, leases.lock_own_question(tx, name, person), cap=CAP, seconds=SECONDS)
            assert (again.id, again.assessor, again.expires) == (name, person, self.now + SECONDS)

        self.both(undone, lambda: self.model.undo(name, person, self.now))

    @rule(seconds=st.sampled_from([1.0, 30.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        over = [
            name
            for name, each in self.model.questions.items()
            if each.state == "leased" and each.expires < self.now
        ]
        self.both(
            overdue.expire,
            lambda: sum(self.model.end(name, "expired") for name in over),
        )

    @rule(at=st.integers(0, 40))
    def return_question(self, at: int) -> None:
        name = self.known(at)
        self.both(lambda tx: leases.return_questions(tx, [name]), lambda: self.model.end(name, "returned"))

    @rule(at=st.integers(0, 40), stranger=st.sampled_from([False] * 9 + [True]))
    def extend(self, at: int, stranger: bool) -> None:
        name = self.known(at)
        person = self.holder(name, stranger)

        def modelled() -> float:
            question = self.model.questions.get(name)
            if question is None or question.person != person:
                raise UnknownQuestion("unknown")
            if question.state != "leased":
                raise TooLate("over")
            question.expires = self.now + SECONDS
            return question.expires

        self.both(
            lambda tx: leases.extend(tx, leases.lock_own_question(tx, name, person), seconds=SECONDS),
            modelled,
        )

    @rule(places=st.lists(st.integers(0, 30), min_size=1, max_size=3))
    def retract(self, places: list[int]) -> None:
        places = self.in_the_log(places)
        self.both(
            lambda tx: retractions.retract(tx, "t1", places, reason="r"),
            lambda: self.model.retract(places),
        )

    @rule(places=st.lists(st.integers(0, 30), min_size=1, max_size=3))
    def restore(self, places: list[int]) -> None:
        places = self.in_the_log(places)
        self.both(
            lambda tx: retractions.restore(tx, "t1", places, cap=CAP, reason="r"),
            lambda: self.model.restore(places),
        )

    @invariant()
    def rows_equal_the_model(self) -> None:
        lines = [
            (
                line.event,
                line.judgment.question if line.judgment else "",
                line.judgment.outcome if line.judgment else None,
                line.refers_to,
            )
            for line in self.scene.lines()
        ]
        assert lines == self.model.log
        columns = schema.question.c
        rows = self.store.read(
            lambda connection: connection.execute(
                select(columns.id, columns.state, columns.attempt, columns.live, columns.expires).where(
                    columns.campaign == self.scene.campaign
                )
            ).all()
        )
        assert {row.id: (row.state, row.attempt, bool(row.live), row.expires) for row in rows} == {
            name: (each.state, each.attempt, each.live, each.expires)
            for name, each in self.model.questions.items()
        }

    def teardown(self) -> None:
        assert audit(self.store, self.scene.campaign, CAP) == []


@pytest.fixture(params=["sqlite", "postgresql"])
def machine(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[type[StoreMachine]]:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as opened:
        yield type("StoreMachine", (StoreMachine,), {"store": opened})


def test_store_behaves_like_the_model_property(
    machine: type[StoreMachine], request: pytest.FixtureRequest
) -> None:
    share = 2 if request.node.callspec.params["machine"] == "sqlite" else 6
    run(
        machine,
        settings=settings(max_examples=max(1, settings().max_examples // share), stateful_step_count=40),
    )
