"""Gibbs's sampler of orders: items change their place within windows of an order, by the posterior.

With the extra `fast` the moves are compiled, five to nine times as fast, to the last bit the same.
"""

from functools import lru_cache

import numpy as np

from duelpool.arrays import Floats, Indices, Singles
from duelpool.background import give_way
from duelpool.compiling import CompiledLoop

SUREST = 28.0  # nats between two items: so many for each of a window's places are within a float's range


def moved_orders(
    orders: Indices,
    leads: Singles,
    sweeps: int,
    chances: np.random.Generator,
    *,
    window: int,
    depth: int | None = None,
) -> Indices:
    """Return orders after sweeps in which items change their place within a window, by their posterior.

    The orders of each group follow its own leads: `leads[g, a, b]` is the log ratio of "a above b" to "b above a". With
    `depth` only items at the first places move.
    """
    size = orders.shape[2]
    depth = size if depth is None else depth
    width = min(window, depth)
    orders = np.array(orders, dtype=np.intp, order="C")
    odds = np.exp(-np.clip(leads, -SUREST, SUREST, dtype=np.float64))
    rows = orders.shape[0] * orders.shape[1]
    for number in range(sweeps):
        give_way()
        marks = chances.random((width, rows, max(1, depth // width)))
        starts = (
            width // 2 * ((np.arange(width) + number) % 2)
        )  # every other turn moves items across the windows' ends
        starts[depth - starts < width] = 0
        move(
            orders,
            odds,
            marks,
            np.stack((chances.permutation(width), starts, (depth - starts) // width), axis=1),
        )
    return orders


def swept(orders: Indices, odds: Floats, marks: Floats, turns: Indices) -> None:
    """Move items of the orders (group, particle, place) in place, turn by turn: a loop to be compiled.

    `odds` are those of each two items (group, above, below), `marks` are random numbers (turn, order, window), and
    `turns` says what each turn moves: the item at which place of every window, where the first window begins, and
    how many there are.
    """
    particles = orders.shape[1]
    width = len(turns)
    ladder = np.ones(width)
    for row in range(orders.shape[0] * particles):
        group = row // particles
        order, own = orders[group, row % particles], odds[group]
        for turn in range(width):
            at, start, count = turns[turn]
            for window in range(count):
                first = start + window * width
                item = order[first + at]
                weight = whole = 1.0
                last = 0
                for place in range(width):
                    if place != at:
                        weight *= own[item, order[first + place]]
                        whole += weight
                        last += 1
                        ladder[last] = whole
                mark = marks[turn, row, window] * whole
                to = 0
                while to < last and ladder[to] <= mark:
                    to += 1
                step = 1 if to > at else -1
                for place in range(at, to, step):
                    order[first + place] = order[first + place + step]
                order[first + to] = item


def plain_sweep(orders: Indices, odds: Floats, marks: Floats, turns: Indices) -> None:
    """Move items of all orders at once, a turn after the other; see `swept`."""
    groups, particles, size = orders.shape
    width, rows, most = marks.shape
    flat, each = orders.reshape(rows, size), odds.ravel()
    base = (np.arange(groups).repeat(particles) * size * size)[:, None, None]
    others, insertions = _insertions(width)
    weights = np.ones((rows, most, width))
    firsts = np.arange(0, weights.size, width)
    for turn, (at, start, count) in enumerate(turns.tolist()):
        part = slice(start, start + count * width)
        span = flat[:, part].reshape(rows, count, width)
        weight = weights[:, :count]
        rest = span.take(others[at], axis=2)
        rest += span[:, :, at : at + 1] * size + base
        np.multiply.accumulate(each.take(rest), axis=2, out=weight[:, :, 1:])
        ladder = np.add.accumulate(weight, axis=2)
        slot = (ladder > marks[turn, :, :count, None] * ladder[:, :, -1:]).argmax(axis=2)
        taken = insertions[at].take(slot, axis=0)
        taken += firsts[: rows * count].reshape(rows, count, 1)
        flat[:, part] = span.ravel().take(taken).reshape(rows, count * width)


@lru_cache(maxsize=8)
def _insertions(width: int) -> tuple[Indices, Indices]:
    """Return for each place of a window the others, and for each two places the order after a move between them."""
    places = np.arange(width)
    others = np.array([np.delete(places, at) for at in places]).reshape(width, width - 1)
    moves = np.array([[np.insert(others[at], to, at) for to in places] for at in places])
    return others.astype(np.intp), moves.astype(np.intp)


move = CompiledLoop(plain_sweep, swept)
"""Moves items in place; see `swept`."""
