"""Judges for the calibration: strengths fitted to real votes, and problems whose settings are drawn by a generator.

The generator draws a shape's settings from the experiment's seed: another seed gives other problems, and no rule of a
strategy was fitted to any of them.
"""

import gzip
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.errors import BadFile
from duelpool.files import read_assessed
from duelpool.judges import Dice, SimulatedJudge
from duelpool.judges.replayed import fitted_strengths, win_counts
from duelpool.judges.simulated import (
    AnyPool,
    Fallible,
    MatrixJudge,
    hidden_places,
    odds_of_wins,
    with_even_diagonal,
)
from duelpool.records import Judgment, Outcome
from duelpool.seeds import rng_for

CRITERION = "quality_overall"  # of crowdrag25's seven
JITTER = 0.05  # standard deviation of the strengths around those of few systems, in log odds


# ---- many near-ties, from real votes


@dataclass(frozen=True, slots=True)
class FittedPool(AnyPool):
    """Bradley-Terry judges of a pool whose strengths are drawn from those fitted to real votes.

    `file` holds votes on few systems (arena) or on the answers to many questions (crowdrag25). Where the pool has more
    items than there are strengths, items get one each with a little noise: groups of items that are nearly equal.
    """

    file: str

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge for strengths drawn from the fitted ones."""
        known = strengths_in(self.file)
        rng = rng_for(seed, topic, "fitted strengths")
        few = len(items) > len(known)
        strengths = rng.choice(known, len(items), replace=few)
        if few:
            strengths = strengths + rng.normal(0.0, JITTER, len(items))
        return MatrixJudge(items, odds_of_wins(strengths), Dice(seed, topic, "answers"))


@lru_cache(maxsize=4)
def strengths_in(file: str) -> Floats:
    """Return the Bradley-Terry strengths fitted to a file of votes; a tie is half a win."""
    counts = [_arena_counts(file)] if file.endswith(".jsonl.gz") else _crowd_counts(file)
    return np.concatenate([fitted_strengths(each) for each in counts])


def _arena_counts(file: str) -> Floats:
    """Return how often each system won against each other, over all questions."""
    votes: list[tuple[str, str, float]] = []
    half = {"model_a": 1.0, "model_b": 0.0}
    try:
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            for line in stream:
                vote = json.loads(line)
                votes.append((vote["model_a"], vote["model_b"], half.get(vote["winner"], 0.5)))
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        problem = f"It can't be read as votes on two systems a line: {error!r}."
        raise BadFile.at(file, None, problem, "Use the public release.") from error
    at = {name: place for place, name in enumerate(sorted({name for vote in votes for name in vote[:2]}))}
    counts = np.zeros((len(at), len(at)))
    for one, other, won in votes:
        counts[at[one], at[other]] += won
        counts[at[other], at[one]] += 1.0 - won
    return counts


def _crowd_counts(file: str) -> list[Floats]:
    """Return each topic's counts of wins between its answers."""
    by_topic: defaultdict[str, list[Judgment]] = defaultdict(list)
    for each in read_assessed(Path(file)):
        if each.criterion == CRITERION:
            by_topic[each.topic].append(each)
    return [
        win_counts(tuple(sorted({item for each in votes for item in each.pair})), votes)
        for votes in by_topic.values()
    ]


# ---- drawn by a generator


@dataclass(frozen=True, slots=True)
class DrawnJudges(AnyPool):
    """Judges of a shape of `SHAPES` with the settings that were drawn for it.

    `ties` is the share of ties between equals, `guess` the share of answers that are coin flips; with several
    `people` it is the mean over them, and each has a share of their own.
    """

    shape: str
    settings: tuple[float, ...]
    ties: float = 0.0
    guess: float = 0.0
    people: int = 1

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge of a pool drawn with these settings."""
        rng = rng_for(seed, topic, "drawn")
        wins = SHAPES[self.shape].wins(rng, hidden_places(len(items), topic, seed), *self.settings)
        judge: SimulatedJudge = MatrixJudge(
            items, with_even_diagonal(wins), Dice(seed, topic, "answers"), ties=self.ties
        )
        if not self.guess:
            return judge
        dice = Dice(seed, topic, "assessors")
        if self.people == 1:
            return Fallible(judge, dice, error=0.0, guess=self.guess)
        return MixedAssessors(judge, dice, people_of(rng, self.people, self.guess))


class MixedAssessors(Fallible):
    """Assessors of different care: each judgment is by one of them, who flips a coin in a share of their own."""

    def __init__(self, judge: SimulatedJudge, dice: Dice, guesses: Floats) -> None:
        super().__init__(judge, dice, error=0.0, guess=float(guesses.mean()))
        self._each = [Fallible(judge, dice, error=0.0, guess=float(guess)) for guess in guesses]
        self._draw = dice

    def answer(self, topic: str, left: str, right: str, nth: int) -> Outcome:
        """Return the answer of the assessor who is drawn."""
        first, second = sorted((left, right))
        who = int(self._draw.roll(f"who\x1f{first}\x1f{second}\x1f{nth}") * len(self._each))
        return self._each[who].answer(topic, left, right, nth)


def people_of(rng: np.random.Generator, count: int, guess: float) -> Floats:
    """Return the share of coin flips of each assessor: most are careful, a few aren't, and the mean is near `guess`."""
    return rng.beta(0.6, 0.6 * (1.0 - guess) / guess, count)


Wins: TypeAlias = Callable[..., Floats]
"""Win probabilities from a generator, the items' places and a shape's settings."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of pool: its win probabilities, and how its settings are drawn."""

    words: str
    wins: Wins
    draw: Callable[[np.random.Generator], tuple[float, ...]]


def _student(rng: np.random.Generator, places: Ints, freedom: float, scale: float) -> Floats:
    return odds_of_wins(scale * rng.standard_t(freedom, len(places)))


def _two_humps(rng: np.random.Generator, places: Ints, upper: float, apart: float, spread: float) -> Floats:
    centre = np.where(places < upper * len(places), apart, 0.0)
    return odds_of_wins(centre + rng.normal(0.0, spread, len(places)))


def _uniform(rng: np.random.Generator, places: Ints, width: float) -> Floats:
    return odds_of_wins(rng.uniform(0.0, width, len(places)))


def _gaps(rng: np.random.Generator, places: Ints, gap: float) -> Floats:
    strengths = -np.cumsum(rng.exponential(gap, len(places)))
    return odds_of_wins(strengths[places])


def _distance(rng: np.random.Generator, places: Ints, most: float, half: float) -> Floats:
    """Win probabilities that grow from 1/2 with the distance of two ranks, half of the way at `half` ranks."""
    apart = places[None, :] - places[:, None]
    wins: Floats = 0.5 + (most - 0.5) * apart / (np.abs(apart) + half)
    return wins


def _clear_best(rng: np.random.Generator, places: Ints, q: float) -> Floats:
    best = (places == 0).astype(np.float64)
    wins: Floats = 0.5 + (q - 0.5) * (best[:, None] - best[None, :])
    return wins


def _three_groups(rng: np.random.Generator, places: Ints, top: float, middle: float, apart: float) -> Floats:
    """Return the win probabilities of three groups of equals; `top` and `middle` are the shares of the pool above."""
    share = (places + 0.5) / len(places)
    level = np.where(share <= max(top, 1 / len(places)), 2.0, np.where(share <= middle, 1.0, 0.0))
    return odds_of_wins(apart * level)


def _own_tastes(rng: np.random.Generator, places: Ints, sd: float, taste: float) -> Floats:
    """Return Bradley-Terry's log odds, to which each pair adds its own: not every pair agrees with the strengths."""
    strengths = rng.normal(0.0, sd, len(places))
    own = np.triu(rng.normal(0.0, taste, (len(places), len(places))), 1)
    logits = strengths[:, None] - strengths[None, :] + own - own.T
    return 1.0 / (1.0 + np.exp(-logits))


def _bradley_terry(rng: np.random.Generator, places: Ints, sd: float) -> Floats:
    return odds_of_wins(rng.normal(0.0, sd, len(places)))


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


SHAPES: Mapping[str, Shape] = MappingProxyType(
    {
        "student": Shape(
            "strengths from Student's t, with long tails",
            _student,
            lambda rng: (rng.uniform(2, 6), _log_uniform(rng, 0.3, 1.5)),
        ),
        "two humps": Shape(
            "strengths from two normal humps",
            _two_humps,
            lambda rng: (rng.uniform(0.05, 0.5), rng.uniform(0.5, 3), rng.uniform(0.1, 0.6)),
        ),
        "uniform": Shape("uniform strengths", _uniform, lambda rng: (_log_uniform(rng, 0.8, 5),)),
        "gaps": Shape(
            "exponential gaps between neighbours", _gaps, lambda rng: (_log_uniform(rng, 0.01, 0.08),)
        ),
        "distance": Shape(
            "accuracy by the distance of the ranks",
            _distance,
            lambda rng: (rng.uniform(0.65, 0.95), rng.uniform(2, 40)),
        ),
        "clear best": Shape(
            "one clear best, the others equal", _clear_best, lambda rng: (rng.uniform(0.65, 0.9),)
        ),
        "three groups": Shape(
            "three groups of equals",
            _three_groups,
            lambda rng: (rng.uniform(0.02, 0.15), rng.uniform(0.3, 0.6), rng.uniform(0.3, 1.5)),
        ),
        "own tastes": Shape(
            "Bradley-Terry, and each pair with log odds of its own",
            _own_tastes,
            lambda rng: (_log_uniform(rng, 0.4, 1.5), rng.uniform(0.3, 1.0)),
        ),
        "assessors": Shape(
            "Bradley-Terry, judged by people of mixed care",
            _bradley_terry,
            lambda rng: (_log_uniform(rng, 0.5, 2),),
        ),
    }
)
"""The generator's shapes by name."""

_SIZES = (40, 60, 80, 100, 120, 150)


def drawn_judges(shape: str, seed: int) -> tuple[DrawnJudges, int]:
    """Return a shape's judges with the settings that the seed gives, and the size of its pools.

    Half of the problems have ties, and half have guesses; people of mixed care always guess.
    """
    rng = rng_for(seed, "calibration", shape)
    settings = tuple(round(float(value), 3) for value in SHAPES[shape].draw(rng))
    items = int(rng.choice(_SIZES))
    ties = round(float(rng.uniform(0.05, 0.35)), 3) if rng.random() < 0.5 else 0.0
    guess = round(float(rng.uniform(0.05, 0.25)), 3) if rng.random() < 0.5 else 0.0
    if shape == "assessors":
        return DrawnJudges(shape, settings, ties, round(float(rng.uniform(0.15, 0.35)), 3), 12), items
    return DrawnJudges(shape, settings, ties, guess), items
