"""One round of a Swiss tournament: items of similar score meet, those with the fewest games first."""

from collections.abc import Sequence

import numpy as np

from duelpool.arrays import Floats, Indices
from duelpool.strategies.tables.win_table import WinTable

REST = 2.0  # one game more than the other's weighs like two points of score
REPEAT = 0.5  # a former meeting weighs like half a point


def swiss_pairs(
    table: WinTable,
    field: Indices,
    standing: Floats,
    *,
    room: int,
    pending: Sequence[tuple[int, int]],
    cap: float,
    at_once: int,
    chances: np.random.Generator,
) -> list[tuple[int, int]]:
    """Return up to `room` pairs of the field's items, given the pending pairs.

    `standing` has a score for each item of the field. No pair gets more than `cap` judgments, nor is it pending
    more than `at_once` times. The n-th pair, pending ones counted, draws the n-th numbers of `chances`.
    """
    size = len(field)
    at = {i: k for k, i in enumerate(field.tolist())}
    games = table.games[field]
    waiting: dict[int, dict[int, int]] = {}

    def count(k: int, other: int) -> None:
        games[k] += 1
        row = waiting.setdefault(k, {})
        row[other] = row.get(other, 0) + 1

    for i, j in pending:
        if i in at:
            count(at[i], at.get(j, -1))
        if j in at:
            count(at[j], at.get(i, -1))
    chances.bit_generator.advance(2 * size * len(pending))  # type: ignore[attr-defined]
    pairs: list[tuple[int, int]] = []
    for _ in range(room):
        u = chances.random(2 * size)
        turn = games + 0.5 * u[:size]
        while True:
            k = int(turn.argmin())
            if turn[k] == np.inf:
                return pairs
            met = table.meetings(int(field[k]))
            cost = np.abs(standing - standing[k])
            cost += REST * games
            cost += 0.2 * u[size:]
            for j, times in met.items():
                if (other := at.get(j)) is not None:
                    cost[other] += REPEAT * times if times < cap else np.inf
            for other, times in waiting.get(k, {}).items():
                if other >= 0:
                    full = times >= at_once or times + met.get(int(field[other]), 0) >= cap
                    cost[other] += np.inf if full else REPEAT * times
            cost[k] = np.inf
            partner = int(cost.argmin())
            if cost[partner] < np.inf:
                break
            turn[k] = np.inf
        count(k, partner)
        count(partner, k)
        pairs.append((int(field[k]), int(field[partner])))
    return pairs


def any_open_pair(table: WinTable, field: Indices, cap: float) -> bool:
    """Whether some pair of the field is still under its cap."""
    inside = set(field.tolist())
    for i in inside:
        full = sum(1 for j, times in table.meetings(i).items() if times >= cap and j in inside)
        if full < len(inside) - 1:
            return True
    return False
