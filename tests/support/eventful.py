"""A campaign in which everything happens that a campaign allows, at random from a seed, on a clock of its own."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from duelpool.campaign import Campaign
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.work import ledger
from duelpool.campaign.work.assignments import Ending
from duelpool.errors import DuelpoolError
from duelpool.records import Answer, Judgment, Outcome, Pool, Question
from duelpool.setup.challenge import Challenge, challenge
from duelpool.store import Store, holdings, retractions
from duelpool.store.holdings import TestPair
from support.campaigns import make_campaign

LEASE_SECONDS = 600.0
_KNOWN = tuple(
    TestPair(f"known-{at}", ("one", "two")[at % 2], "a", f"off-{at}") for at in range(18)
)  # fmt: skip
_POOLS = (Pool("one", tuple("abcdef"), twins={"a": ("a2",)}), Pool("two", tuple("abcde")))
_ANSWERS = (
    *[Outcome.LEFT] * 5, *[Outcome.RIGHT] * 4, Outcome.TIE, Outcome.LEFT_BAD, Outcome.BOTH_BAD,
    Outcome.SKIP, *[Outcome.CANNOT_JUDGE] * 3,
)  # fmt: skip
_ENDINGS: tuple[Ending, ...] = ("finished", "finished", "stopped", "returned")
WORKERS = 6
TURNS = 16


def clock_for(store: Store, patch: pytest.MonkeyPatch, now: float) -> list[float]:
    """Return the time that a store tells from now on, to be set."""
    clock = [now]
    patch.setattr(type(store.database), "now", lambda self, connection: clock[0])
    return clock


@dataclass
class Eventful:
    """The campaign, and how often each kind of event happened in it."""

    store: Store
    campaign: Campaign
    rng: np.random.Generator
    clock: list[float]
    happened: Counter[str] = field(default_factory=Counter)

    @classmethod
    def play(
        cls,
        store: Store,
        seed: int,
        folder: Path,
        patch: pytest.MonkeyPatch,
        strategy: str,
        look: "Callable[[Eventful], None] | None" = None,
    ) -> "Eventful":
        """Make a campaign, and let workers and the manager do at random all that it allows; `look` after each turn."""
        played = cls.begin(store, seed, folder, patch, strategy)
        played.go_on(look=look)
        return played

    @classmethod
    def begin(
        cls, store: Store, seed: int, folder: Path, patch: pytest.MonkeyPatch, strategy: str
    ) -> "Eventful":
        """Make a campaign that has imported judgments."""
        clock = clock_for(store, patch, 1_000_000.0)
        campaign = make_campaign(
            store, _POOLS, known=_KNOWN, strategy=strategy, judges="crowd", ties=True, targets=6, tests=2,
            per_topic=4, repeat_every=4, parked_after=2, bad_votes=3, cap=3, budget=30_000, fee_percent=33,
            reward=199, lease_seconds=LEASE_SECONDS,
        )  # fmt: skip
        played = cls(store, campaign, np.random.default_rng(seed), clock)
        played._import(folder)
        return played

    def go_on(self, first: int = 0, look: "Callable[[Eventful], None] | None" = None) -> None:
        """Play the turns from this one on; at the end somebody is at work."""
        for turn in range(first, TURNS):
            self._turn(turn)
            if look is not None:
                look(self)
        self._leave_one_at_work()
        if look is not None:
            look(self)

    def _chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def _import(self, folder: Path) -> None:
        rows = ["one a2 b a2", "one c b c", "two a d a", "two a c c", "one a b b"]
        (folder / "given.txt").write_text("\n".join(rows))
        self.happened["imported"] += import_file(
            self.campaign, folder / "given.txt", assessor="them"
        ).judgments
        more = Judgment("two", "b", "c", Outcome.TIE, phase="prune-1", assessor="others", seconds=4.0)
        self.happened["imported"] += self.campaign.add_judgments([more])

    def _turn(self, turn: int) -> None:
        self.clock[0] += 50.0
        worker = f"w{turn % WORKERS}"
        self._work(worker)
        if turn == TURNS // 3:
            self.happened["late topic"] += self.campaign.add_items(Pool("three", tuple("abcd")))
            self.happened["late item"] += self.campaign.add_items(Pool("two", ("z",)))
        if turn == TURNS // 2:
            newcomers = [Challenge("one", (), ("y", "x"), {})]
            self.happened["challenge"] += challenge(self.campaign, newcomers)
        self._manage(worker)
        if self._chance(0.15):
            self.clock[0] += LEASE_SECONDS + 1.0
            self.happened["expired"] += self.campaign.sweep()

    def _work(self, worker: str) -> None:
        campaign = self.campaign
        if worker not in campaign.read(holdings.assessors):
            campaign.enrol(worker, "crowd")
        try:
            assignment = campaign.next_assignment(worker)
        except DuelpoolError:
            return  # excluded, or without fresh test pairs
        if assignment is None:
            return
        to_do = assignment.left if self._chance(0.8) else assignment.left[:3]
        for question in to_do:
            self._answer(question, worker)
        if self._chance(0.85):
            ending = _ENDINGS[self.rng.integers(len(_ENDINGS))] if to_do == assignment.left else "stopped"
            campaign.finish(assignment.id, ending)
            self.happened[f"assignment {ending}"] += 1

    def _answer(self, question: Question, worker: str) -> None:
        off = question.left.startswith("off"), str(question.right).startswith("off")
        outcome = _ANSWERS[self.rng.integers(len(_ANSWERS))]
        if any(off) and self._chance(0.85):
            outcome = Outcome.RIGHT if off[0] else Outcome.LEFT
        seconds = None if self._chance(0.1) else float(self.rng.integers(1, 9))
        self.campaign.answer(question.id, worker, Answer(outcome, seconds=seconds))
        self.happened[str(outcome)] += 1
        if self._chance(0.08):
            self.campaign.undo(question.id, worker)
            self.campaign.answer(question.id, worker, Answer(Outcome.RIGHT, seconds=2.0))
            self.happened["undone"] += 1

    def _manage(self, worker: str) -> None:
        campaign = self.campaign
        topic = ("one", "two")[self.rng.integers(2)]
        lines = campaign.live.state(topic).lines
        if lines and self._chance(0.4):
            seq = int(self.rng.integers(1, len(lines) + 1))
            self.happened["retraction"] += len(campaign.retract(topic, [seq], "by hand"))
            if self._chance(0.4):
                restored = campaign.write(
                    lambda tx: retractions.restore(tx, topic, [seq], cap=campaign.settings.slots, reason="no")
                )
                self.happened["restoration"] += len(restored)
        people = campaign.read(holdings.assessors)
        if self._chance(0.2):
            campaign.exclude(worker, "by hand")
            self.happened["exclusion"] += 1
        elif people[worker].state == "excluded" and self._chance(0.5):
            campaign.reinstate(worker)
            self.happened["reinstated"] += 1
        closed = campaign.live.state(topic).closed_in_log
        if closed and self._chance(0.3):
            campaign.rewind(topic, closed[self.rng.integers(len(closed))], "by hand")
            self.happened["rewind"] += 1
        if self._chance(0.15):
            campaign.write(
                lambda tx: ledger.compensate(tx, worker, campaign.settings, amount=45, reason="sorry")
            )
            campaign.write(lambda tx: ledger.enter(tx, worker, [(ledger.BONUS, 30)], reason="well done"))
            self.happened["bonus"] += 1

    def _leave_one_at_work(self) -> None:
        """Let a new worker hold an assignment, some of whose questions are answered; an old lease has run out."""
        self.campaign.enrol("late", "crowd")
        assignment = self.campaign.next_assignment("late")
        if assignment is not None:
            for question in assignment.left[: len(assignment.left) // 2]:
                self._answer(question, "late")
            self.happened["at work"] += 1
