"""Judges, and what a simulation needs to know of them besides their answers.

A `Judge` answers questions. A `SimulatedJudge` also knows the truth, so that a strategy's result can be
checked. A `JudgeModel` makes the simulated judge of a topic from a seed.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Protocol

from duelpool.judges.truth import TrueOrder
from duelpool.records import Levels, Outcome
from duelpool.seeds import rng_for


class Judge(Protocol):
    """A person or program that says which of two items is better."""

    def answer(self, topic: str, left: str, right: str, nth: int) -> Outcome:
        """Return the answer when the pair is judged for the nth time, counted from 1."""
        ...


class SimulatedJudge(Judge, Protocol):
    """A judge of one topic whose truth is known."""

    @property
    def truth(self) -> Levels:
        """The items in their true order by Borda's rule, equally good ones in one level."""
        ...

    def true_order(self, rule: str) -> TrueOrder:
        """Return the items in their true order by one of the rules of `TRUTHS`."""
        ...

    def win_chance(self, item: str, other: str) -> float:
        """Return the chance that an item wins a judgment against another, as these judges answer.

        A tie is half a win.
        """
        ...


class JudgeModel(Protocol):
    """Makes simulated judges, for any pool or for the pools that the model knows."""

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        """The topics and items that the model knows; empty when it can judge any pool."""
        ...

    @property
    def size(self) -> int | None:
        """The number of items that a pool must have; None when any number will do."""
        ...

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge of a topic's pool; the seed fixes the truth and every answer."""
        ...


class Dice:
    """Random numbers by name: the same roll for the same name, in whatever order they are drawn.

    A judge draws the answer to a pair's nth question under the name (pair, nth). What it answers then depends
    on neither the order of the questions nor the process that asks. A keyed hash does this in one
    microsecond, where a generator per question (`rng_for`) takes twenty.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int, *key: str | int) -> None:
        self._state = blake2b(digest_size=8, key=rng_for(seed, *key).bytes(32))

    def roll(self, name: str) -> float:
        """Return this name's number, uniform over [0, 1)."""
        state = self._state.copy()
        state.update(name.encode())
        return (int.from_bytes(state.digest(), "big") >> 11) * 2.0**-53  # 53 bits: never rounded up to 1
