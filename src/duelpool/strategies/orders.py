"""The exact posterior over all orders of a few items, by dynamic programming over their subsets.

The model: there is one true order, and a judgment of a pair names its better item with a probability: p where
the first of all is one of the two, q among the others, p >= q, because the best is often easy to tell. Pairs may be
stubborn: with stubbornness r, a pair has a probability of its own, drawn with that mean from a beta
distribution whose intraclass correlation is r, so that its repeats agree with each other more than with the
order. None of p, q and r is known: the judgments weigh the points of a grid over them.

With d[a, b] half the log likelihood ratio of "a above b" to "b above a" given their judgments (for r = 0 it
is ln(q / (1 - q)) / 2 times wins less losses), the weight of an order is exp(sum of d[a, b] over all a above
b), and summed over the m! orders by their first item

    Z(empty) = 1,    Z(S) = sum over a in S of exp(sum over b in S of d[a, b]) x Z(S without a),

which takes m 2^(m-1) steps. Where the sums could overflow (many hundreds of judgments) they are kept as
logarithms, which is slower.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy  # its parts are loaded when they are used, and statistics take half a second

from duelpool.arrays import Floats, Indices
from duelpool.errors import BadParameter

MOST_ITEMS = 12
"""Beyond this the tables (2^m subsets) are no longer small."""

ACCURACIES: tuple[float, ...] = (0.55, 0.65, 0.75, 0.85, 0.95)
"""The chances, equally likely beforehand, that a judgment names the better item."""

STUBBORN: tuple[tuple[float, float], ...] = ((0.0, 0.8), (0.6, 0.2))
"""How stubborn pairs may be, and how likely that is beforehand."""


SAFE_EXPONENT = 650.0  # exp of it is far from overflow even after m! orders are added up


@dataclass(frozen=True, slots=True)
class OrderPosterior:
    """What the judgments of a few items say about their order.

    `first[a]` is the chance that a is the best of them, `mean_rank[a]` the expected number of items above it
    (None when it wasn't asked for); `accuracy`, of judgments about the first, and `stubbornness` hold the
    posterior weights of their grids.
    """

    first: Floats
    accuracy: Floats
    stubbornness: Floats
    mean_rank: Floats | None = None


@dataclass(frozen=True, slots=True)
class _Layer:
    """All subsets of one size: their members, and the subset that is left without each member."""

    subsets: Indices  # (n,)
    members: Indices  # (n, size)
    entries: Indices  # (n, size): where a table of (subset, item) has subset and member
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
        layers.append(
            _Layer(subsets, members, subsets[:, None] * m + members, subsets[:, None] ^ (1 << members))
        )
    return tuple(layers)


def _leads_over_subsets(lead: Floats) -> Floats:
    """Return the sum of lead[a, b, g] over b in S as [S, a, g]; grid points move as one, last."""
    m = len(lead)
    within = np.zeros((1 << m, *lead.shape[1:]))
    for b in range(m):
        np.add(within[: 1 << b], lead[:, b], out=within[1 << b : 2 << b])
    return within


def _fold(steps: Floats) -> Floats:
    """Return ln T(S, g), T(S) the sum over a in S of exp(steps[S, a, g]) T(S without a), T(empty) = 1."""
    subsets, m, points = steps.shape
    entries = steps.reshape(-1, points)
    if np.abs(steps).max(axis=0, initial=0.0).sum(axis=0).max(initial=0.0) < SAFE_EXPONENT:
        growth = np.exp(entries)
        plain = np.ones((subsets, points))
        for layer in _layers(m):
            terms = growth.take(layer.entries, axis=0)
            terms *= plain.take(layer.without, axis=0)
            plain[layer.subsets] = terms.sum(axis=1)
        return np.log(plain)
    table = np.zeros((subsets, points))
    for layer in _layers(m):
        terms = entries.take(layer.entries, axis=0) + table.take(layer.without, axis=0)
        top = terms.max(axis=1)
        table[layer.subsets] = np.log(np.exp(terms - top[:, None]).sum(axis=1)) + top
    return table


def _log_likelihood(wins: Floats, accuracy: float, stubbornness: float) -> Floats:
    """Return, for every a and b, the log likelihood of their judgments if a is above b."""
    losses = wins.T
    if stubbornness == 0:
        return np.asarray(wins * np.log(accuracy) + losses * np.log(1 - accuracy), dtype=np.float64)
    held = 1 / stubbornness - 1  # the judgments that a pair's mean q is worth
    right, wrong = held * accuracy, held * (1 - accuracy)
    gammaln = scipy.special.gammaln
    won = gammaln(right + wins) - gammaln(right)
    lost = gammaln(wrong + losses) - gammaln(wrong)
    return np.asarray(won + lost + gammaln(held) - gammaln(held + wins + losses), dtype=np.float64)


def order_posterior(
    wins: Floats,
    *,
    outside: Floats | None = None,
    accuracies: tuple[float, ...] = ACCURACIES,
    stubborn: tuple[tuple[float, float], ...] = STUBBORN,
    ranks: bool = False,
) -> OrderPosterior:
    """Return the chance of each item to be first, and with `ranks` its mean rank (0 for the first).

    `wins[a, b]` is how often a won against b, a tie half a win for each; `outside[a]` is the log weight that
    evidence from outside these items gives to a being the first.
    """
    m = len(wins)
    if wins.shape != (m, m) or m > MOST_ITEMS:
        raise BadParameter(
            f"The exact posterior takes a square matrix of at most {MOST_ITEMS} items, not {wins.shape}.",
            remedy="Give fewer finalists.",
        )
    q_first, q_rest = np.tril_indices(len(accuracies))  # the grid ascends: p >= q
    likelihood = [[_log_likelihood(wins, q, r) for q in accuracies] for r, _ in stubborn]
    # [a, b, grid point]
    above = np.array(likelihood).reshape(len(stubborn) * len(accuracies), m, m).transpose(1, 2, 0)
    below = above.transpose(1, 0, 2)
    lead = (above - below) / 2
    even = (above + below) / 2
    within = _leads_over_subsets(lead)
    all_orders = _fold(within)  # ln Z(S, grid point)
    everyone = (1 << m) - 1
    beats_all = above.sum(axis=1)
    of_others = even.sum(axis=(0, 1)) / 2 - even.sum(axis=1) + all_orders[everyone ^ (1 << np.arange(m))]
    shape = (m, len(stubborn), len(accuracies))
    joint = beats_all.reshape(shape)[:, :, q_first] + of_others.reshape(shape)[:, :, q_rest]
    joint += np.log([weight for _, weight in stubborn])[:, None]
    if outside is not None:
        joint += outside[:, None, None]
    weights = np.exp(joint - joint.max()) if m else np.ones((1, *joint.shape[1:]))
    weights /= weights.sum()
    by_item, by_first = weights.sum(axis=(1, 2))[:m], weights.sum(axis=(0, 1))
    by_point = np.zeros(shape[1:])
    for at, rest in enumerate(q_rest.tolist()):
        by_point[:, rest] += weights[:, :, at].sum(axis=0)
    return OrderPosterior(
        first=by_item,
        accuracy=np.bincount(q_first, weights=by_first, minlength=len(accuracies)).astype(np.float64),
        stubbornness=weights.sum(axis=(0, 2)),
        mean_rank=_mean_ranks(within, lead.sum(axis=1), all_orders) @ by_point.ravel() if ranks else None,
    )


def _mean_ranks(within: Floats, total: Floats, all_orders: Floats) -> Floats:
    """Return the expected number of items above each item, by grid point.

    With A(S) the weight of all ways to place S above the others, exactly S is above a with the chance
    A(S) x exp(the leads of a over those outside S) x Z(those outside S and a) / Z(all).
    """
    subsets, m, points = within.shape
    over_others = total - within
    on_top = _fold(over_others)
    entries = over_others.reshape(-1, points)
    rank = np.zeros((m, points))
    for layer in _layers(m):
        log_chance = (
            on_top.take(layer.without, axis=0)
            + entries.take(layer.entries, axis=0)
            + all_orders[subsets - 1 - layer.subsets][:, None]
            - all_orders[-1]
        )
        above = layer.members.shape[1] - 1
        chance = above * np.exp(log_chance)
        for a in range(m):
            rank[a] += chance[layer.members == a].sum(axis=0)
    return rank
