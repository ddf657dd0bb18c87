"""The finals: what is known of the few best, and which of their pairs to ask next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from duelpool.arrays import Bools, Floats, Indices, Ints
from duelpool.strategies.orders import STUBBORN, OrderPosterior
from duelpool.strategies.tables.win_table import WinTable
from duelpool.strategies.tables.winshares import expected_wins

TRIES = 30
SELDOM = 100.0  # one meeting less outweighs any difference in score
WORTH_A_LOOK = 0.01  # below this chance of stubborn pairs, expected wins aren't computed


@dataclass(frozen=True, slots=True)
class Finals:
    """The finalists, highest score first, and what their judgments say."""

    members: Indices
    orders: OrderPosterior
    met: Ints

    @property
    def stubborn(self) -> float:
        """The chance that repeats of a pair agree because of the pair, not because of the order."""
        return float(self.orders.stubbornness[1:].sum())


def chances_to_win(finals: Finals, table: WinTable) -> tuple[Floats, Floats | None]:
    """Return each finalist's chance to be the best of them, and its mean rank where it was asked for.

    In proportion to how stubborn pairs are, the best is the item with the most expected wins: each win less divides
    its chance by e.
    """
    first, ranks = finals.orders.first, finals.orders.mean_rank
    if finals.stubborn < WORTH_A_LOOK or len(first) == 0:
        return first, ranks
    wins = expected_wins(table, finals.members)
    most = np.exp(wins - wins.max())
    first = (1 - finals.stubborn) * first + finals.stubborn * most / most.sum()
    if ranks is not None:
        places = np.argsort(np.argsort(-wins, kind="stable"), kind="stable")
        ranks = (1 - finals.stubborn) * ranks + finals.stubborn * places
    return first, ranks


def finals_pairs(
    finals: Finals,
    table: WinTable,
    *,
    room: int,
    pending: Sequence[tuple[int, int]],
    cap: float,
    at_once: int,
    chances: np.random.Generator,
    wide_chances: Callable[[int], np.random.Generator],
) -> list[tuple[int, int]]:
    """Return up to `room` pairs to ask, given the pending ones.

    Both items are drawn by their chance to be the best. Where pairs are stubborn, repeats become rarer
    the more often a pair was judged, and some questions pair a finalist with an item that it hasn't met.
    """
    members = finals.members.tolist()
    size = len(members)
    at = {i: k for k, i in enumerate(members)}
    met = finals.met.astype(np.float64)
    waiting = np.zeros((size, size))
    waiting_of: list[dict[int, int]] = [{} for _ in members]

    def count(i: int, j: int) -> None:
        for one, other in ((i, j), (j, i)):
            if one in at:
                waiting_of[at[one]][other] = waiting_of[at[one]].get(other, 0) + 1
        if i in at and j in at:
            for one, other in ((at[i], at[j]), (at[j], at[i])):
                met[one, other] += 1
                waiting[one, other] += 1

    for i, j in pending:
        count(i, j)
    ladder = np.cumsum(finals.orders.first)
    wide = float(finals.orders.stubbornness @ [r for r, _ in STUBBORN])
    numbers = 3 * TRIES + 2
    chances.bit_generator.advance(numbers * len(pending))  # type: ignore[attr-defined]
    pairs: list[tuple[int, int]] = []
    for turn in range(room):
        u = chances.random(numbers)
        drawn = np.searchsorted(ladder, u[: 2 * TRIES + 1] * ladder[-1], side="right").clip(0, size - 1)
        pair: tuple[int, int] | None = None
        if u[-1] < wide:
            k = int(drawn[-1])
            tie_breaks = wide_chances(len(pending) + turn).random(len(table.items))
            pair = _new_pair(
                table, members[k], waiting_of[k], cap=cap, at_once=at_once, tie_breaks=tie_breaks
            )
        if pair is None:
            usable = (met < cap) & (waiting < at_once) & ~np.eye(size, dtype=bool)
            if not usable.any():
                break
            if finals.orders.mean_rank is not None and (table.judgments + len(pending) + turn) % 2:
                x, y = _neighbours(finals.orders.mean_rank, usable, met)
            else:
                tries = drawn[:-1].reshape(TRIES, 2)
                x, y = _contenders(finals.orders, usable, met, tries, u[2 * TRIES + 1 : -1])
            pair = (members[x], members[y])
        count(*pair)
        pairs.append(pair)
    return pairs


def _contenders(
    orders: OrderPosterior, usable: Bools, met: Floats, tries: Indices, luck: Floats
) -> tuple[int, int]:
    """Return the first drawn pair that may be asked and is informative enough, else the likeliest pair."""
    x, y = tries[:, 0], tries[:, 1]
    taken = usable[x, y] & (luck < _information(met[x, y], orders.stubbornness))
    if taken.any():
        at = int(taken.argmax())
        return int(x[at]), int(y[at])
    likeliest = np.where(usable, np.outer(orders.first, orders.first), -1.0)
    one, other = divmod(int(likeliest.argmax()), len(usable))
    return one, other


def _neighbours(ranks: Floats, usable: Bools, met: Floats) -> tuple[int, int]:
    """Return the pair of near rank that met least: for the order below the first."""
    apart = met + 0.3 * np.abs(ranks[:, None] - ranks[None, :])
    one, other = divmod(int(np.where(usable, apart, np.inf).argmin()), len(usable))
    return one, other


def _information(met: Floats, stubbornness: Floats) -> Floats:
    """Return how much one more judgment of a pair adds, relative to the first: 1 unless pairs are stubborn."""
    information = np.zeros(met.shape)
    for (r, _), weight in zip(STUBBORN, stubbornness.tolist(), strict=True):
        information += weight * np.where(met == 0, 1.0, (1 - r) / ((1 + (met - 1) * r) * (1 + met * r)))
    return information


def _new_pair(
    table: WinTable, i: int, waiting: dict[int, int], *, cap: float, at_once: int, tie_breaks: Floats
) -> tuple[int, int] | None:
    """Return a finalist with the opponent that it met least; among several, one with a high score."""
    cost = tie_breaks - 0.3 * table.score
    cost[table.bad] = np.inf
    cost[i] = np.inf
    met = table.meetings(i)
    for j in met.keys() | waiting.keys():
        times = met.get(j, 0) + waiting.get(j, 0)
        cost[j] += np.inf if times >= cap or waiting.get(j, 0) >= at_once else SELDOM * times
    j = int(cost.argmin())
    return (i, j) if cost[j] < np.inf else None
