"""Pools and assessors for the contract of strategies: consistent, cyclic, noisy, or one who calls an item Bad."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from duelpool.records import Outcome
from duelpool.seeds import rng_for

Answer: TypeAlias = Callable[[str, str], Outcome]
"""An assessor's answer about two items."""


def pool_of(size: int) -> tuple[str, ...]:
    """Return a pool of items, the truly best first; the ids tell nothing about that."""
    names = [f"item-{at:03d}" for at in range(size)]
    return tuple(rng_for(size, "names").permutation(names).tolist())


def shuffled(items: Sequence[str]) -> tuple[str, ...]:
    """Return the items in the order in which a strategy gets them."""
    return tuple(rng_for(len(items), "given").permutation(list(items)).tolist())


def consistent(truth: Sequence[str]) -> Answer:
    """Return an assessor who always prefers the better item."""
    place = {item: at for at, item in enumerate(truth)}
    return lambda left, right: Outcome.LEFT if place[left] < place[right] else Outcome.RIGHT


def cyclic(truth: Sequence[str]) -> Answer:
    """Return an assessor to whom each item is better than the next half of the circle."""
    place = {item: at for at, item in enumerate(truth)}
    size = len(truth)
    return lambda left, right: (
        Outcome.LEFT if 0 < (place[right] - place[left]) % size <= size // 2 else Outcome.RIGHT
    )


def noisy(truth: Sequence[str], seed: int, outcomes: Sequence[Outcome] = ()) -> Answer:
    """Return an assessor who is right three times of four, and sometimes gives one of the outcomes."""
    rng = rng_for(seed, "noisy")
    sure = consistent(truth)
    other = {Outcome.LEFT: Outcome.RIGHT, Outcome.RIGHT: Outcome.LEFT}

    def answer(left: str, right: str) -> Outcome:
        if outcomes and rng.random() < 0.1:
            return outcomes[int(rng.integers(len(outcomes)))]
        return sure(left, right) if rng.random() < 0.75 else other[sure(left, right)]

    return answer


def calling_bad(truth: Sequence[str], bad: str) -> Answer:
    """Return a consistent assessor to whom one item is Bad."""
    sure = consistent(truth)
    sides = {0: Outcome.LEFT_BAD, 1: Outcome.RIGHT_BAD}
    return lambda left, right: sides[(left, right).index(bad)] if bad in (left, right) else sure(left, right)
