"""How alike are two orderings of systems, or two measures?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from duelpool.arrays import Floats
from duelpool.comparison.scores import ScoreTable
from duelpool.errors import BadParameter
from duelpool.measures import rbo


def _aligned(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[Floats, Floats]:
    shared = [name for name in a if name in b and not (np.isnan(a[name]) or np.isnan(b[name]))]
    if len(shared) < 2:
        raise BadParameter(
            f"The two orderings share {len(shared)} systems.",
            remedy="Two are needed at least: check the names.",
        )
    return np.array([a[name] for name in shared]), np.array([b[name] for name in shared])


def kendall_tau(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return Kendall's tau (tau-b, which allows for ties) between two scorings of the same systems."""
    import scipy

    return float(scipy.stats.kendalltau(*_aligned(a, b)).statistic)


def tau_ap(reference: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the AP correlation of an ordering with a reference: tau with most weight at the top.

    For each system but the first, it takes the share of the systems above it in `other` that the reference
    has above it too; systems that the reference holds equal count half, and equal ones of `other` are not
    above each other.
    """
    true, ranked = _aligned(reference, other)
    shares = []
    for at in range(len(true)):
        above = ranked > ranked[at]
        if above.any():
            right = np.where(true[above] > true[at], 1.0, np.where(true[above] == true[at], 0.5, 0.0))
            shares.append(float(right.mean()))
    return 2 * float(np.mean(shares)) - 1 if shares else float("nan")


def overlap(a: Mapping[str, float], b: Mapping[str, float], p: float = 0.9) -> float:
    """Return the rank-biased overlap of two orderings of the same systems, 1 for equal ones."""
    _aligned(a, b)
    shared = [name for name in a if name in b and not (np.isnan(a[name]) or np.isnan(b[name]))]
    orders = [sorted(shared, key=lambda name: (-scores[name], name)) for scores in (a, b)]
    return rbo(orders[0], orders[1], p, depth=len(orders[0]))


@dataclass(frozen=True, slots=True)
class MeasureAgreement:
    """How two measures agree: Pearson's r over (run, topic), and on which of two runs a topic goes to."""

    a: str
    b: str
    pearson: float
    same_sign: float
    compared: int  # differences of two runs on a topic in which at least one measure sees one


def measure_agreement(tables: Mapping[str, ScoreTable]) -> list[MeasureAgreement]:
    """Compare every two measures over the runs and topics that both have.

    Two measures agree on a topic's difference between two runs when both call it positive or both negative;
    differences that both call zero are left out.
    """
    return [_agreement(a, b, tables[a], tables[b]) for a, b in combinations(tables, 2)]


def _agreement(a: str, b: str, one: ScoreTable, two: ScoreTable) -> MeasureAgreement:
    x, y = _shared_cells(one, two)
    known = ~(np.isnan(x) | np.isnan(y))
    varied = known.any() and np.ptp(x[known]) > 0 and np.ptp(y[known]) > 0
    pearson = float(np.corrcoef(x[known], y[known])[0, 1]) if varied else float("nan")
    agreed = compared = 0
    for i, j in combinations(range(len(x)), 2):
        signs_x, signs_y = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        with np.errstate(invalid="ignore"):
            counted = ~(np.isnan(signs_x) | np.isnan(signs_y)) & ((signs_x != 0) | (signs_y != 0))
        compared += int(np.count_nonzero(counted))
        agreed += int(np.count_nonzero(counted & (signs_x == signs_y)))
    return MeasureAgreement(a, b, pearson, agreed / compared if compared else float("nan"), compared)


def _shared_cells(one: ScoreTable, two: ScoreTable) -> tuple[Floats, Floats]:
    runs = [run for run in one.runs if run in two.runs]
    topics = [topic for topic in one.topics if topic in set(two.topics)]
    return tuple(  # type: ignore[return-value]
        table.values[np.ix_(_places(table.runs, runs), _places(table.topics, topics))] for table in (one, two)
    )


def _places(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    place = {name: at for at, name in enumerate(names)}
    return [place[name] for name in wanted]
