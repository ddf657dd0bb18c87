"""A small campaign for the checks, and concurrent calls on it."""

import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from duelpool.errors import DuelpoolError
from duelpool.records import Answer, Judgment, Outcome, Question, Topic
from duelpool.store import Store, Writing, holdings, imports, leases, log, overdue, retractions
from duelpool.store.leases import Receipt, Wanted
from duelpool.testing.promises import ContractError, require
from duelpool.testing.stores.audit import audit

A = TypeVar("A")
T = TypeVar("T")

TOPIC = "t1"
LONG = 1_000.0  # seconds, longer than any lease


@dataclass
class Scene:
    """A small campaign in a store, with the actions that the checks need."""

    store: Store
    campaign: str
    cap: int = 3

    @classmethod
    def set_up(
        cls, store: Store, *, topics: Sequence[str] = (TOPIC,), people: int = 6, cap: int = 3
    ) -> "Scene":
        """Create a campaign with topics, and assessors called p0, p1, ..."""
        campaign = uuid.uuid4().hex

        def work(tx: Writing) -> None:
            holdings.create_campaign(tx, f"contract {campaign}", {})
            holdings.add_topics(tx, [Topic(topic, f"text of {topic}") for topic in topics])
            for person in range(people):
                holdings.enrol(tx, f"p{person}", "crowd")

        store.of(campaign).write(work)
        return cls(store, campaign, cap)

    def enrol(self, person: str) -> None:
        """Enrol an assessor."""
        self.store.of(self.campaign).write(lambda tx: holdings.enrol(tx, person, "crowd"))

    def lease_all(
        self, person: str, wanted: Sequence[Wanted], *, later: float = 0.0, at_most: int | None = None
    ) -> list[Question]:
        """Lease the wanted pairs that the rules allow; `later` moves the clock forward."""
        ids = [uuid.uuid4().hex for _ in wanted]
        return self.store.of(self.campaign).write(
            lambda tx: leases.lease(
                tx.at(tx.now + later),
                wanted,
                ids,
                assessor=person,
                cap=self.cap,
                seconds=60.0,
                at_most=at_most,
            )
        )

    def lease(self, person: str, want: Wanted | None = None, *, later: float = 0.0) -> Question | None:
        """Lease one pair, by default a and b; None if it isn't granted."""
        granted = self.lease_all(person, [want or Wanted(TOPIC, "a", "b")], later=later)
        return granted[0] if granted else None

    def leased(self, person: str, want: Wanted | None = None, *, later: float = 0.0) -> Question:
        """Lease one pair that must be granted."""
        granted = self.lease(person, want, later=later)
        if granted is None:
            raise ContractError(f"{person} should have been leased the pair")
        return granted

    def answer(self, question: Question | str, person: str, outcome: Outcome = Outcome.LEFT) -> Receipt:
        """Answer a question with an outcome."""
        return self.give(question, person, Answer(outcome))

    def give(
        self, question: Question | str, person: str, response: Answer, *, at_once: bool = True
    ) -> Receipt:
        """Answer a question with a full answer."""
        name = question if isinstance(question, str) else question.id

        def work(tx: Writing) -> Receipt:
            row = leases.lock_own_question(tx, name, person)
            return leases.answer(tx, row, response, cap=self.cap, at_once=at_once)

        return self.store.of(self.campaign).write(work)

    def judged(self, person: str, outcome: Outcome = Outcome.LEFT, want: Wanted | None = None) -> Receipt:
        """Lease a pair and answer it."""
        return self.answer(self.leased(person, want), person, outcome)

    def add_judgments(self, *judgments: Judgment) -> list[int]:
        """Add judgments from elsewhere; return their places."""
        return self.store.of(self.campaign).write(lambda tx: imports.add_judgments(tx, judgments))

    def undo(self, question: Question, person: str) -> Question:
        """Undo an answer."""
        return self.store.of(self.campaign).write(
            lambda tx: retractions.undo(
                tx, leases.lock_own_question(tx, question.id, person), cap=self.cap, seconds=60.0
            )
        )

    def expire(self, later: float = LONG) -> int:
        """Expire the leases that end within `later` seconds."""
        return self.store.of(self.campaign).write(lambda tx: overdue.expire(tx.at(tx.now + later)))

    def retract(self, *seqs: int, topic: str = TOPIC) -> list[int]:
        """Retract lines."""
        return self.store.of(self.campaign).write(
            lambda tx: retractions.retract(tx, topic, seqs, reason="test")
        )

    def restore(self, *seqs: int, topic: str = TOPIC) -> list[int]:
        """Restore lines."""
        return self.store.of(self.campaign).write(
            lambda tx: retractions.restore(tx, topic, seqs, cap=self.cap, reason="test")
        )

    def lines(self, topic: str = TOPIC) -> list[log.Line]:
        """Return a topic's log."""
        return self.store.of(self.campaign).read(lambda tx: list(log.read_lines(tx, topic)))

    def require_consistent(self) -> None:
        """Raise unless the audit finds no contradiction."""
        wrong = audit(self.store, self.campaign, self.cap)
        require(not wrong, "the campaign's rows are consistent", wrong=wrong)


def refused(kind: type[DuelpoolError], work: Callable[[], object], promise: str) -> DuelpoolError:
    """Raise unless the work is refused with this error and a remedy."""
    try:
        result = work()
    except kind as error:
        require(bool(error.problem and error.remedy), "an error says the problem and the remedy", error=error)
        return error
    raise ContractError(f"{promise} (got {result!r})")


def run_concurrently(work: Callable[[A], T], arguments: Sequence[A]) -> list[T | DuelpoolError]:
    """Run work for all arguments at the same moment, each in a thread; return the results or refusals."""
    gate = threading.Barrier(len(arguments))

    def run(one: A) -> T | DuelpoolError:
        gate.wait()
        try:
            return work(one)
        except DuelpoolError as error:
            return error

    with ThreadPoolExecutor(len(arguments)) as threads:
        return list(threads.map(run, arguments))
