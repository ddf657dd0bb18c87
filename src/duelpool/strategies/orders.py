"""The exact posterior over all orders of a few items, by dynamic programming over their subsets.

The model: there is one true order, and each judgment of a pair names its better item with probability q,
whatever the pair. With `net[a, b]` the wins of a over b less its losses and h = ln(q / (1 - q)) / 2, an order
has the weight exp(h x the sum of net[a, b] over all a above b). Summed over the m! orders by its first item,

    Z(empty) = 1,    Z(S) = sum over a in S of exp(h x sum over b in S of net[a, b]) x Z(S without a),

which takes m 2^(m-1) steps. q is not known: a grid of values with equal prior weight stands for it. All sums
are kept as logarithms, so that thousands of judgments don't overflow.
"""

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from duelpool.errors import BadParameter

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]

MOST_ITEMS = 12
"""Beyond this the tables (2^m subsets) are no longer small."""

Q_GRID: tuple[float, ...] = (0.55, 0.65, 0.75, 0.85, 0.95)
"""The chances, equally likely beforehand, that a judgment names the better item."""


@dataclass(frozen=True, slots=True)
class OrderPosterior:
    """What the judgments of a few items say about their order.

    `first[a]` is the chance that a is the best of them, `mean_rank[a]` the expected number of items above it
    (None when it wasn't asked for), `accuracy[k]` the posterior weight of the k-th q of the grid.
    """

    first: Floats
    accuracy: Floats
    mean_rank: Floats | None = None


@dataclass(frozen=True, slots=True)
class _Layer:
    """All subsets of one size: their members, and the subset that is left without each member."""

    subsets: Indices  # (n,)
    members: Indices  # (n, size)
    without: Indices  # (n, size)


@cache
def _layers(m: int) -> tuple[_Layer, ...]:
    by_size: list[list[int]] = [[] for _ in range(m + 1)]
    for subset in range(1 << m):
        by_size[subset.bit_count()].append(subset)
    layers = []
    for size in range(1, m + 1):
        subsets = np.array(by_size[size], dtype=np.intp)
        members = np.array([[a for a in range(m) if s >> a & 1] for s in by_size[size]], dtype=np.intp)
        layers.append(_Layer(subsets, members, subsets[:, None] ^ (1 << members)))
    return tuple(layers)


@cache
def _membership(m: int) -> Floats:
    return ((np.arange(1 << m)[:, None] >> np.arange(m)) & 1).astype(np.float64)


def _log_sum_exp(values: Floats, axis: int) -> Floats:
    top = values.max(axis=axis, keepdims=True)
    return np.asarray(np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis), dtype=np.float64)


def _fold(m: int, steps: Floats, h: Floats) -> Floats:
    """Return ln T(q, S), T(S) the sum over a in S of exp(h steps[S, a]) T(S without a), T(empty) = 1."""
    table = np.zeros((len(h), 1 << m))
    for layer in _layers(m):
        exponent = steps[layer.subsets[:, None], layer.members]
        table[:, layer.subsets] = _log_sum_exp(h[:, None, None] * exponent + table[:, layer.without], axis=2)
    return table


def order_posterior(
    net: Floats,
    judged: float,
    *,
    outside: Floats | None = None,
    grid: tuple[float, ...] = Q_GRID,
    ranks: bool = False,
) -> OrderPosterior:
    """Return the chance of each item to be first, and with `ranks` its mean rank (0 for the first).

    `net` is antisymmetric (wins less losses, a tie half a win each), `judged` the number of judgments behind
    it, and `outside[a]` the log weight that evidence from outside these items gives to a being the first.
    """
    m = len(net)
    if net.shape != (m, m) or m > MOST_ITEMS:
        raise BadParameter(
            f"The exact posterior takes a square matrix of at most {MOST_ITEMS} items, not {net.shape}.",
            remedy="Give fewer finalists.",
        )
    if m == 0:
        return OrderPosterior(np.zeros(0), np.full(len(grid), 1 / len(grid)), np.zeros(0) if ranks else None)
    q = np.array(grid)
    h = np.log(q / (1 - q)) / 2
    within = _membership(m) @ net.T  # within[S, a]: wins less losses of a against S
    below = _fold(m, within, h)  # ln Z(q, S): all orders of S
    everyone = (1 << m) - 1
    total = net.sum(axis=1)
    noise = judged / 2 * np.log(q * (1 - q))
    first = noise[:, None] + h[:, None] * total + below[:, everyone ^ (1 << np.arange(m))]
    if outside is not None:
        first = first + outside
    weights = np.exp(first - first.max())
    chance = weights.sum(axis=0) / weights.sum()
    accuracy = weights.sum(axis=1) / weights.sum()
    if not ranks:
        return OrderPosterior(chance, accuracy)
    above = _fold(m, total[None, :] - within, h)  # ln A(q, S): S, in any order, on top of all the others
    rank = np.zeros((len(q), m))
    for layer in _layers(m):
        exponent = total[layer.members] - within[layer.subsets[:, None], layer.members]
        log_chance = (
            above[:, layer.without]
            + h[:, None, None] * exponent
            + below[:, everyone ^ layer.subsets][:, :, None]
            - below[:, everyone][:, None, None]
        )
        size = layer.members.shape[1]
        for k in range(len(q)):
            np.add.at(rank[k], layer.members.ravel(), (size - 1) * np.exp(log_chance[k]).ravel())
    return OrderPosterior(chance, accuracy, accuracy @ rank)
