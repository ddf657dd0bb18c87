"""Paired tests of runs over topics, corrections for many tests, and effect sizes."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from duelpool.arrays import Floats
from duelpool.comparison.scores import ScoreTable
from duelpool.errors import BadParameter, UnknownName
from duelpool.frames import counted
from duelpool.seeds import rng_for

_KNOTS = 64
_EXACT_RANKS = 50  # differences: Wilcoxon's distribution is exact up to here, as in scipy
_EXACT_TIED_RANKS = 13  # ... with ties among them, or topics without a difference
SKEWED = 1.0
SKEWED_SCORES = 1.4  # from here on intervals of means cover less than .90 on ten topics
FEW_TOPICS = 10
ENOUGH_TOPICS = 50  # from here on skewed differences hardly matter
UNALIKE = 4.0
TUKEY = "tukey"
"""The test that isn't paired: it looks at all runs at once, and its p-values allow for that already."""
AGAIN = "again"
"""The test on these very topics: could the difference be one of noisy labels alone? It needs a table with `noise`."""

PairedTest: TypeAlias = Callable[[Floats, int, "np.random.Generator"], tuple[float, float]]
"""Takes differences, rounds and a generator; returns the statistic and the two-sided p-value."""


def _all_equal(mean: float, spread: float) -> bool:
    return spread <= 1e-15 * max(1.0, abs(mean))


def _of_equal_differences(mean: float, n: int) -> tuple[float, float]:
    """Return statistic and p where all differences are equal, so that they show no variance.

    Measures with few values do that on few topics by chance. So p is that of equal signs, as in Fisher's test, not 0.
    """
    return (0.0, 1.0) if abs(mean) < 1e-15 else (float(np.copysign(np.inf, mean)), 2.0 ** (1 - n))


def paired_t(differences: Floats, rounds: int, rng: "np.random.Generator") -> tuple[float, float]:
    """Student's paired t-test."""
    import scipy

    n = len(differences)
    spread = float(differences.std(ddof=1))
    mean = float(differences.mean())
    if _all_equal(mean, spread):
        return _of_equal_differences(mean, n)
    statistic = mean / (spread / np.sqrt(n))
    return float(statistic), float(2 * scipy.stats.t.sf(abs(statistic), n - 1))


def wilcoxon(differences: Floats, rounds: int, rng: "np.random.Generator") -> tuple[float, float]:
    """Wilcoxon's signed-rank test; topics without a difference are left out.

    Exact for up to 50 different differences, and for up to 13 with ties, as in scipy; a normal approximation otherwise.
    scipy also approximates where few of many topics differ, and gives four equal differences among 20 topics
    p = .046, where equal signs have .125: here that is exact, too.
    """
    import scipy

    known = differences[differences != 0]
    n = len(known)
    if not n:
        return 0.0, 1.0
    ranks = scipy.stats.rankdata(np.abs(known))
    above = float(ranks[known > 0].sum())
    statistic = min(above, n * (n + 1) / 2 - above)
    distinct = n == len(differences) == len(np.unique(ranks))
    if n <= (_EXACT_RANKS if distinct else _EXACT_TIED_RANKS):
        sums = _signed_rank_sums(tuple(np.sort(np.rint(2 * ranks)).astype(int).tolist()))
        return statistic, min(1.0, 2 * float(sums[: round(2 * statistic) + 1].sum()))
    tied = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    variance = n * (n + 1) * (2 * n + 1) / 24 - float(np.sum(tied**3 - tied)) / 48
    z = (statistic - n * (n + 1) / 4) / np.sqrt(variance)
    return statistic, min(1.0, 2 * float(scipy.special.ndtr(z)))


@lru_cache(maxsize=64)
def _signed_rank_sums(doubled: tuple[int, ...]) -> Floats:
    """Return the chance of each sum of twice the ranks with a plus sign, where all signs are equally likely."""
    chances = np.zeros(sum(doubled) + 1)
    chances[0] = 1.0
    for rank in doubled:
        chances[rank:] = (chances[rank:] + chances[:-rank]) / 2
        chances[:rank] /= 2
    return chances


def randomisation(differences: Floats, rounds: int, rng: "np.random.Generator") -> tuple[float, float]:
    """Fisher's randomisation test: signs of the differences at random, all of them where they are few."""
    n = len(differences)
    mean = float(differences.mean())
    if 2**n <= rounds:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        reached = np.abs(signs @ differences / n) >= abs(mean) - 1e-12
        return mean, float(reached.mean())
    reached_by_chance = 0
    for start in range(0, rounds, 1000):
        signs = 1.0 - 2.0 * rng.integers(0, 2, (min(1000, rounds - start), n))
        reached_by_chance += int(np.count_nonzero(np.abs(signs @ differences / n) >= abs(mean) - 1e-12))
    return mean, (reached_by_chance + 1) / (rounds + 1)


def bootstrap(differences: Floats, rounds: int, rng: "np.random.Generator") -> tuple[float, float]:
    """The shift test: how often resampled, centred differences have a t as large as the real one.

    Resamples of equal differences have an infinite t, so they count as large. No p is below that of equal signs of the
    topics that differ, as in Fisher's test: few topics with few values have too few resamples to tell more.
    """
    n = len(differences)
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    if _all_equal(mean, spread):
        return _of_equal_differences(mean, n)
    statistic = mean / (spread / np.sqrt(n))
    centred = differences - mean
    reached = 0
    for start in range(0, rounds, 1000):
        drawn = centred[rng.integers(0, n, (min(1000, rounds - start), n))]
        spreads, means = drawn.std(axis=1, ddof=1), drawn.mean(axis=1)
        flat = spreads <= 1e-12 * spread
        by_chance = np.divide(means, spreads / np.sqrt(n), out=np.zeros(len(drawn)), where=~flat)
        by_chance[flat & (np.abs(means) > 1e-12 * spread)] = np.inf
        reached += int(np.count_nonzero(np.abs(by_chance) >= abs(statistic)))
    differ = int(np.count_nonzero(differences))
    return float(statistic), max((reached + 1) / (rounds + 1), 2.0 ** (1 - differ))


TESTS: Mapping[str, PairedTest] = MappingProxyType(
    {"t": paired_t, "wilcoxon": wilcoxon, "randomisation": randomisation, "bootstrap": bootstrap}
)


def _uncorrected(p: Floats) -> Floats:
    return p.copy()


def _bonferroni(p: Floats) -> Floats:
    return np.minimum(1.0, p * len(p))


def _holm(p: Floats) -> Floats:
    order = np.argsort(p, kind="stable")
    raised = np.empty_like(p)
    raised[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p)))))
    return raised


def _benjamini_hochberg(p: Floats) -> Floats:
    import scipy

    return np.asarray(scipy.stats.false_discovery_control(p))


CORRECTIONS: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType(
    {"none": _uncorrected, "bonferroni": _bonferroni, "holm": _holm, "bh": _benjamini_hochberg}
)


def corrected(p_values: Sequence[float] | Floats, correction: str) -> Floats:
    """Return p-values corrected for many tests; nan stays, and doesn't count."""
    if correction not in CORRECTIONS:
        raise UnknownName("correction", correction, CORRECTIONS)
    p = np.asarray(p_values, dtype=np.float64)
    known = ~np.isnan(p)
    raised = p.copy()
    if known.any():
        raised[known] = CORRECTIONS[correction](p[known])
    return raised


@dataclass(frozen=True, slots=True)
class Difference:
    """How run a differs from run b over the topics that both have."""

    a: str
    b: str
    topics: int
    mean: float  # of a - b
    effect: float  # Cohen's d for pairs: the mean in standard deviations of the differences
    statistic: float
    p: float
    p_corrected: float


def difference(
    table: ScoreTable, a: str, b: str, test: str = "t", *, rounds: int = 10_000, seed: int = 0
) -> Difference:
    """Test whether two runs differ; with fewer than two shared topics there is no result (p is nan)."""
    if test == AGAIN:
        return _judged_again(table, a, b)
    if test not in TESTS:
        raise UnknownName("test", test, TESTS)
    if rounds < 1:
        raise BadParameter(f"A test needs 1 round or more, not {rounds}.")
    gaps = table.row(a) - table.row(b)
    gaps = gaps[~np.isnan(gaps)]
    if len(gaps) < 2:
        mean = float(gaps.mean()) if len(gaps) else np.nan
        return Difference(a, b, len(gaps), mean, np.nan, np.nan, np.nan, np.nan)
    statistic, p = TESTS[test](gaps, rounds, rng_for(seed, "paired test", test, a, b))
    spread = float(gaps.std(ddof=1))
    effect = float(gaps.mean()) / spread if spread else (0.0 if not gaps.any() else np.inf)
    return Difference(a, b, len(gaps), float(gaps.mean()), effect, statistic, p, p)


def _judged_again(table: ScoreTable, a: str, b: str) -> Difference:
    """Test whether the means on these topics differ by more than the noise of their labels."""
    import scipy

    if table.noise is None:
        raise BadParameter(
            "Labels alone don't tell how noisy they are.",
            remedy="Evaluate a campaign, which has the answers; or choose another test.",
        )
    count = int(np.count_nonzero(~np.isnan(table.row(a) - table.row(b))))
    one, other = table.runs.index(a), table.runs.index(b)
    means, both = table.means(), table.noise
    gap = float(means[one] - means[other])
    error = float(np.sqrt(max(0.0, both[one, one] + both[other, other] - 2 * both[one, other])))
    if count < 2 or not np.isfinite(gap):
        return Difference(a, b, count, gap, np.nan, np.nan, np.nan, np.nan)
    if error > 1e-12:
        statistic = gap / error
        p = float(2 * scipy.stats.t.sf(abs(statistic), len(table.topics) - 1))
    else:
        statistic, p = _of_equal_differences(gap, count)
    return Difference(a, b, count, gap, statistic / np.sqrt(count), statistic, p, p)


def against_baseline(
    table: ScoreTable,
    baseline: str,
    test: str = "t",
    correction: str = "none",
    *,
    rounds: int = 10_000,
    seed: int = 0,
) -> list[Difference]:
    """Test every other run against a baseline, and correct for having tested all of them.

    With "tukey", all runs are compared at once, and the pairs with the baseline are returned.
    """
    table.row(baseline)
    if test == TUKEY:
        every = all_pairs(table, test, correction)
        return [one if one.b == baseline else _turned(one) for one in every if baseline in (one.a, one.b)]
    others = [run for run in table.runs if run != baseline]
    return _all_corrected(
        [difference(table, run, baseline, test, rounds=rounds, seed=seed) for run in others], correction
    )


def behind_leader(table: ScoreTable, alpha: float = 0.05) -> set[str]:
    """Return the runs that are significantly below the run with the highest mean, by paired t-tests.

    The scores themselves picked that run, so any of all pairs of runs could have been tested: p counts as many times as
    the runs that aren't behind yet make pairs. Holm's correction, for a baseline named before, would be too low.
    """
    if len(table.runs) < 2 or len(table.topics) < 2:
        return set()
    tests = [one for one in against_baseline(table, table.order()[0]) if one.mean < 0 and one.p < alpha]
    left = len(table.runs)
    behind = set()
    for one in sorted(tests, key=lambda each: each.p):
        if one.p * left * (left - 1) / 2 >= alpha:
            break
        behind.add(one.a)
        left -= 1
    return behind


def all_pairs(
    table: ScoreTable, test: str = "t", correction: str = "none", *, rounds: int = 10_000, seed: int = 0
) -> list[Difference]:
    """Test every two runs against each other, and correct for having tested all of them."""
    if test == TUKEY:
        if correction != "none":
            raise BadParameter(
                f"Tukey's test already corrects for many runs; '{correction}' would correct twice.",
                remedy="Leave the correction out.",
            )
        return tukey_hsd(table)
    pairs = combinations(table.runs, 2)
    return _all_corrected(
        [difference(table, a, b, test, rounds=rounds, seed=seed) for a, b in pairs], correction
    )


def _turned(one: Difference) -> Difference:
    return replace(one, a=one.b, b=one.a, mean=-one.mean, effect=-one.effect)


def _all_corrected(differences: list[Difference], correction: str) -> list[Difference]:
    raised = corrected([one.p for one in differences], correction)
    return [replace(one, p_corrected=float(p)) for one, p in zip(differences, raised, strict=True)]


def doubts(table: ScoreTable, test: str = "t", baseline: str | None = None) -> list[str]:
    """Return where p may be too small: skewed differences on few topics; for Tukey's test, runs that vary unalike.

    Symmetric bets, as a test, take differences as symmetric: with skewed ones more topics don't help.
    """
    if test == TUKEY:
        values = table.complete().values
        if min(values.shape) < 2:
            return []
        between = np.cov(values)
        spreads = (between.diagonal()[:, None] + between.diagonal() - 2 * between)[
            np.triu_indices(len(values), 1)
        ]
        least, most = float(spreads.min()), float(spreads.max())
        if most <= UNALIKE * least or most <= 1e-15:
            return []
        ratio = f"{most / least:.0f} times as much as another" if least > 1e-15 else "and another doesn't"
        return [
            f"Tukey's test takes all differences to vary alike, but one varies {ratio}: p may be too small"
        ]
    if test in (AGAIN, "bounded"):
        return []
    bets = test == "symmetric"
    pairs = combinations(table.runs, 2) if baseline is None else ((baseline, run) for run in table.runs)
    most = sys.maxsize if bets else ENOUGH_TOPICS
    skewed = [f"{a} and {b}" for a, b in pairs if _is_skewed(table.row(a) - table.row(b), most=most)]
    if not skewed:
        return []
    more = f" and of {counted(len(skewed) - 1, 'other pair')}" if len(skewed) > 1 else ""
    why = ", which symmetric bets take for a difference" if bets else " on few topics: p may be too small"
    return [f"the differences of {skewed[0]}{more} are skewed{why}"]


def interval_doubts(table: ScoreTable) -> list[str]:
    """Return where intervals of means may be too short: few topics, or equal or skewed scores on few topics."""
    known = {run: row[~np.isnan(row)] for run, row in zip(table.runs, table.values, strict=True)}
    short = [run for run, scores in known.items() if 1 < len(scores) < FEW_TOPICS]
    if short:
        return [f"intervals over fewer than {FEW_TOPICS} topics may be too short"]
    odd = [
        run
        for run, scores in known.items()
        if FEW_TOPICS <= len(scores) < ENOUGH_TOPICS
        and (np.ptp(scores) <= 1e-12 or _is_skewed(scores, SKEWED_SCORES))
    ]
    if not odd:
        return []
    more = f" and {counted(len(odd) - 1, 'other run')}" if len(odd) > 1 else ""
    return [f"the scores of {odd[0]}{more} are equal or skewed on few topics: intervals may be too short"]


def _is_skewed(gaps: Floats, limit: float = SKEWED, most: int = ENOUGH_TOPICS) -> bool:
    known = gaps[~np.isnan(gaps)]
    if not 2 < len(known) < most:
        return False
    off = known - known.mean()
    spread = float(np.sqrt(np.mean(off**2)))
    return spread > 1e-12 and abs(float(np.mean(off**3))) >= limit * spread**3


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How many of all pairs of runs differ significantly under a measure."""

    pairs: int
    told_apart: int

    @property
    def share(self) -> float:
        """The share of pairs that differ significantly."""
        return self.told_apart / self.pairs if self.pairs else float("nan")


def sensitivity(
    table: ScoreTable,
    test: str = "t",
    alpha: float = 0.05,
    correction: str = "none",
    *,
    rounds: int = 10_000,
    seed: int = 0,
) -> Sensitivity:
    """Return the share of pairs of runs whose difference has p < alpha, corrected on request."""
    p_values = [one.p_corrected for one in all_pairs(table, test, correction, rounds=rounds, seed=seed)]
    return Sensitivity(len(p_values), int(np.count_nonzero(np.array(p_values) < alpha)))


def tukey_hsd(table: ScoreTable) -> list[Difference]:
    """Test all pairs at once by Tukey's honestly significant differences, topics as blocks.

    Over the topics that every run has: the residual of a two-way layout of runs and topics is the noise, and
    each difference is compared with the distribution of the largest. The p-values are corrected by design.
    """
    whole = table.complete()
    m, n = whole.values.shape
    if m < 2 or n < 2:
        raise BadParameter(
            f"Tukey's test needs two runs and two topics that all of them have; here are {m} and {n}.",
            remedy="Leave out the runs that lack topics, or choose another test.",
        )
    means = whole.values.mean(axis=1)
    residual = whole.values - means[:, None] - whole.values.mean(axis=0)[None, :] + whole.values.mean()
    freedom = (m - 1) * (n - 1)
    noise = float(np.sum(residual**2) / freedom)
    pairs = list(combinations(range(m), 2))
    gaps = np.array([means[i] - means[j] for i, j in pairs])
    if noise > 0:
        ranges = np.abs(gaps) / np.sqrt(noise / n)
        p = _range_tail(ranges, m, freedom)
    else:
        ranges, p = np.where(gaps == 0, 0.0, np.inf), np.where(gaps == 0, 1.0, 2.0 ** (1 - n))
    spread = np.sqrt(2 * noise)
    return [
        Difference(
            whole.runs[i],
            whole.runs[j],
            n,
            float(gap),
            float(gap / spread) if spread else 0.0,
            float(q),
            float(one),
            float(one),
        )
        for (i, j), gap, q, one in zip(pairs, gaps, ranges, p, strict=True)
    ]


def _range_tail(ranges: Floats, runs: int, freedom: int) -> Floats:
    """Return the tail of the studentized range, by a spline where there are many: it is slow.

    The spline is off by less than 0.0001; where the tail is below 1e-9 it is taken as constant.
    """
    import scipy

    def tail(at: Floats) -> Floats:
        shares: Floats = np.clip(scipy.stats.studentized_range.sf(at, runs, freedom), 0.0, 1.0)
        return shares

    if len(ranges) <= _KNOTS:
        return tail(ranges)
    end = 4.0
    while end < ranges.max() and tail(np.array([end]))[0] > 1e-9:
        end *= 1.5
    knots = end * np.linspace(0.0, 1.0, _KNOTS) ** 1.5  # closer together where the tail falls
    between: Floats = np.clip(
        scipy.interpolate.CubicSpline(knots, tail(knots))(np.minimum(ranges, end)), 0.0, 1.0
    )
    return between
