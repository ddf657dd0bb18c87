"""Simulated assessors with known answer probabilities: noisy utilities, a side they lean to, and carelessness.

The chances of each answer have a closed form, so that a study of such people has a truth to which statistics can be
held. They answer a campaign's questions (`reply`), and without one single pairs and items (`judge`, `grade`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TypeVar

from duelpool.errors import BadParameter
from duelpool.judges.base import Dice
from duelpool.judges.live import Sheet
from duelpool.records import Answer, Judgment, Kind, Outcome

T = TypeVar("T")

_PAIRS = (
    Outcome.DEFINITELY_LEFT,
    Outcome.LEFT,
    Outcome.BOTH_BAD,
    Outcome.LEFT_BAD,
    Outcome.RIGHT_BAD,
    Outcome.RIGHT,
    Outcome.DEFINITELY_RIGHT,
)


def normal_cdf(x: float) -> float:
    """Return the chance that a standard normal number is at most x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@dataclass(slots=True)
class LatentAssessor:
    """One person, by what they see and how.

    An item is called bad with the chance that its utility, through the noise, falls below `bad_below`. Of two that
    aren't, the left one wins if the difference of utilities, plus the `lean` to the left and the noise of both, is
    above zero, and surely so beyond `sure_beyond`. A grade is the number of `steps` that an item's utility, through
    the noise, lies above. The share `careless` of the answers is drawn at random.
    """

    name: str
    utilities: Mapping[str, Mapping[str, float]]
    seed: int
    noise: float = 0.5
    grade_noise: float | None = None  # None: the same as that of one item of a pair
    lean: float = 0.0
    careless: float = 0.0
    bad_below: float = -math.inf
    sure_beyond: float = math.inf
    steps: tuple[float, ...] = (-0.84, -0.05, 0.61, 2.05)
    seconds: Mapping[Kind, float] = field(default_factory=dict)  # medians, later than at first sight
    first_sight: float = 1.0  # how many times as long when an item is new
    spread: float = 0.5  # of the logarithm of seconds
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _asked: dict[tuple[str, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if min(self.noise, self.grade_noise or 1.0) <= 0 or not 0 <= self.careless <= 1:
            raise BadParameter("Noise is above 0, and a careless share lies from 0 to 1.")

    # ---- chances

    def chances(
        self, topic: str, left: str, right: str, kind: Kind = Kind.PREFERENCE
    ) -> dict[Outcome, float]:
        """Return the chance of every answer to a pair."""
        known = self.utilities[topic]
        bad_left, bad_right = (self._bad(known[item]) for item in (left, right))
        gap = known[left] - known[right] + self.lean
        spread = self.noise * math.sqrt(2.0)
        margin = self.sure_beyond if kind is Kind.DEFINITE else math.inf
        surely_left, surely_right = normal_cdf((gap - margin) / spread), normal_cdf((-gap - margin) / spread)
        wins = normal_cdf(gap / spread)
        neither = (1 - bad_left) * (1 - bad_right)
        careful = (
            neither * surely_left,
            neither * (wins - surely_left),
            bad_left * bad_right,
            bad_left * (1 - bad_right),
            (1 - bad_left) * bad_right,
            neither * (1 - wins - surely_right),
            neither * surely_right,
        )
        coin = {Outcome.LEFT: 0.5, Outcome.RIGHT: 0.5}
        return {
            outcome: (1 - self.careless) * chance + self.careless * coin.get(outcome, 0.0)
            for outcome, chance in zip(_PAIRS, careful, strict=True)
        }

    def grade_chances(self, topic: str, item: str) -> tuple[float, ...]:
        """Return the chance of every grade, from the lowest on."""
        utility = self.utilities[topic][item]
        noise = self.noise if self.grade_noise is None else self.grade_noise
        above = [1.0, *(1 - normal_cdf((step - utility) / noise) for step in self.steps), 0.0]
        grades = len(self.steps) + 1
        return tuple(
            (1 - self.careless) * (above[at] - above[at + 1]) + self.careless / grades for at in range(grades)
        )

    def median_seconds(self, kind: Kind, fresh: bool) -> float:
        """Return the median of the seconds of an answer, at first sight of an item or later."""
        return self.seconds.get(kind, 1.0) * (self.first_sight if fresh else 1.0)

    def _bad(self, utility: float) -> float:
        return normal_cdf((self.bad_below - utility) / self.noise)

    # ---- answers

    def judge(
        self, topic: str, left: str, right: str, kind: Kind = Kind.PREFERENCE, *, repeated: bool = False
    ) -> Judgment:
        """Return the answer to a pair."""
        dice = self._dice(topic, left, right, kind)
        outcome = _drawn(self.chances(topic, left, right, kind), dice.roll("outcome"))
        took = self._took(dice, topic, kind, (left, right))
        return Judgment(
            topic, left, right, outcome, assessor=self.name, kind=kind, seconds=took, repeated=repeated
        )

    def grade(self, topic: str, item: str) -> Judgment:
        """Return the grade of an item."""
        dice = self._dice(topic, item, "", Kind.GRADE)
        chances = dict(enumerate(self.grade_chances(topic, item)))
        value = _drawn(chances, dice.roll("grade"))
        took = self._took(dice, topic, Kind.GRADE, (item,))
        return Judgment(
            topic,
            item,
            None,
            Outcome.GRADE,
            assessor=self.name,
            kind=Kind.GRADE,
            grade=float(value),
            seconds=took,
        )

    def reply(self, sheet: Sheet) -> Answer:
        """Return the answer to a campaign's question."""
        if sheet.right is None:
            judgment = self.grade(sheet.topic.id, sheet.left.id)
            place = min(int(judgment.grade or 0), len(sheet.grades) - 1)
            return Answer(Outcome.GRADE, grade=sheet.grades[place], seconds=judgment.seconds)
        kind = Kind.DEFINITE if Outcome.DEFINITELY_LEFT in sheet.outcomes else Kind.PREFERENCE
        judgment = self.judge(sheet.topic.id, sheet.left.id, sheet.right.id, kind)
        return Answer(judgment.outcome, seconds=judgment.seconds)

    def _dice(self, topic: str, left: str, right: str, kind: Kind) -> Dice:
        key = (topic, *sorted((left, right)), str(kind))
        self._asked[key] = nth = self._asked.get(key, 0) + 1
        return Dice(self.seed, "latent", self.name, *key, nth)

    def _took(self, dice: Dice, topic: str, kind: Kind, items: Sequence[str]) -> float:
        fresh = any((topic, item) not in self._seen for item in items)
        self._seen.update((topic, item) for item in items)
        away = NormalDist().inv_cdf(min(max(dice.roll("seconds"), 1e-12), 1 - 1e-12))
        return self.median_seconds(kind, fresh) * math.exp(self.spread * away)


def _drawn(chances: Mapping[T, float], roll: float) -> T:
    """Return the answer that a number from 0 to 1 falls on."""
    below = 0.0
    for answer, chance in chances.items():
        below += chance
        if roll < below:
            return answer
    return max(chances, key=lambda answer: chances[answer])
