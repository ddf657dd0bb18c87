"""Judges of a campaign: the questions they see, their replies, and simulated people."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

import numpy as np

from duelpool.errors import BadParameter, DuelpoolError
from duelpool.judges.base import Dice, JudgeModel, SimulatedJudge
from duelpool.judges.simulated import MatrixJudge, bradley_terry_wins
from duelpool.records import Answer, Outcome, Passage, Topic

SEEN_THREE_OUT_OF_FOUR = math.log(3.0)
"""The log-odds of a win per unit of utility: a reader sees the difference three times out of four."""

SIMULATED = "simulated-"
"""The names of simulated people begin with this, so that nobody takes their answers for real ones."""

_UNSEEN = -5.0  # the utility of an unknown item, far below every other


def is_simulated(assessor: str) -> bool:
    """Return whether an assessor is one that `duelpool judge simulated` named."""
    return assessor.startswith(SIMULATED)


class JudgeError(DuelpoolError):
    """A judge gave no usable answer: its question is released."""


class JudgeAction(StrEnum):
    """What a judge may do instead of answering."""

    UNDO = "undo"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A question as a judge sees it; `right` is None when one item is to be graded."""

    question: str
    topic: Topic
    left: Passage
    right: Passage | None
    outcomes: frozenset[Outcome]
    grades: tuple[float, ...] = ()
    criterion: str = "overall"
    guidelines: str = ""
    judged: int = 0  # by this judge in this session, to show the progress
    can_undo: bool = True  # whether this session has an answer to undo


class LiveJudge(Protocol):
    """A person or program that answers a campaign's questions; raises `JudgeError` when it can't."""

    def reply(self, sheet: Sheet) -> Answer | JudgeAction:
        """Return the answer to a question, or an action."""
        ...


JudgeOfTopic: TypeAlias = Callable[[str], tuple[SimulatedJudge, tuple[str, ...]]]


@dataclass(slots=True)
class TopicJudges:
    """The simulated judge of each topic, made when it is first asked for and again when its pool has changed."""

    model: JudgeModel
    items: Callable[[str], tuple[str, ...]]
    seed: int
    _made: dict[str, tuple[SimulatedJudge, tuple[str, ...]]] = field(default_factory=dict)

    def __call__(self, topic: str) -> tuple[SimulatedJudge, tuple[str, ...]]:
        """Return a topic's judge and the items that it knows."""
        items = self.items(topic)
        if topic not in self._made or self._made[topic][1] != items:
            self._made[topic] = self.model.judge(topic, items, self.seed), items
        return self._made[topic]


class SimulatedPerson:
    """Answers as a model does; a careless one flips a coin, whatever is shown.

    The answer depends on the seed, the person's number and the pair alone, not on when it is asked. An item
    from outside the pool, as in test pairs, loses to every item of the pool.
    """

    def __init__(self, number: int, judges: JudgeOfTopic, seed: int, *, careless: float = 0.0) -> None:
        if not 0 <= careless <= 1:
            raise BadParameter(f"'careless' is a share of people from 0 to 1, not {careless}.")
        self._number = number
        self._judges = judges
        self._dice = Dice(seed, "simulated person", number)
        self.careless = self._dice.roll("careless") < careless

    def reply(self, sheet: Sheet) -> Answer:
        """Return this person's answer."""
        shown = "" if sheet.right is None else sheet.right.id
        roll = self._dice.roll(f"seconds\x1f{sheet.topic.id}\x1f{sheet.left.id}\x1f{shown}")
        seconds = 1.0 + 2.0 * roll if self.careless else 4.0 + 12.0 * roll
        if sheet.right is None:
            return Answer(Outcome.GRADE, grade=self._grade(sheet), seconds=round(seconds, 1))
        outcome = self._outcome(sheet, sheet.left.id, sheet.right.id)
        return Answer(outcome, seconds=round(seconds, 1))

    def _outcome(self, sheet: Sheet, left: str, right: str) -> Outcome:
        judge, items = self._judges(sheet.topic.id)
        known = (left in items, right in items)
        if self.careless or known == (False, False):
            return self._coin(sheet.topic.id, left, right)
        if known != (True, True):
            return Outcome.LEFT if known[0] else Outcome.RIGHT
        outcome = judge.answer(sheet.topic.id, left, right, self._number)
        return outcome if outcome in sheet.outcomes else self._coin(sheet.topic.id, left, right)

    def _coin(self, topic: str, left: str, right: str) -> Outcome:
        heads = self._dice.roll(f"coin\x1f{topic}\x1f{left}\x1f{right}") < 0.5
        return Outcome.LEFT if heads else Outcome.RIGHT

    def _grade(self, sheet: Sheet) -> float:
        grades = sheet.grades or (0.0, 1.0)
        share = self._dice.roll(f"grade\x1f{sheet.topic.id}\x1f{sheet.left.id}")
        judge, items = self._judges(sheet.topic.id)
        if not self.careless and sheet.left.id in items:
            order = [item for level in judge.truth.levels for item in level]
            share = 1.0 - (order.index(sheet.left.id) + 0.5) / len(order)
        return grades[min(len(grades) - 1, int(share * len(grades)))]


@dataclass(frozen=True, slots=True)
class Utilities:
    """Judges who see how good items are: the log-odds of a win are the difference of the utilities."""

    utilities: Mapping[str, Mapping[str, float]]
    log_odds: float = SEEN_THREE_OUT_OF_FOUR

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        """The topics and items whose utilities are known."""
        return {topic: tuple(values) for topic, values in self.utilities.items()}

    @property
    def size(self) -> int | None:
        """Any number of items."""
        return None

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge of a topic's pool; an item without a utility is worse than all others."""
        known = self.utilities.get(topic)
        if known is None:
            raise BadParameter(
                f"The utilities of topic '{topic}' aren't known.",
                remedy="Name another model, such as bt:sd=1.",
            )
        strengths = np.array([known.get(item, _UNSEEN) for item in items]) * self.log_odds
        return MatrixJudge(items, bradley_terry_wins(strengths), Dice(seed, topic, "answers"))
