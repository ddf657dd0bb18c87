"""Systems as competitors: strengths from votes over many questions, and how sure they are.

i beats j with probability 1 / (1 + exp(s_j - s_i)); a tie is half a vote for each, or an outcome of its own (Davidson).
Votes on one question are alike, so the errors are clustered by question; votes without questions stand for themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from duelpool.arrays import Bools, Floats, Ints, Singles
from duelpool.errors import BadParameter
from duelpool.preferences.boundaries import planned_votes, progress_of, within_plan, without_plan
from duelpool.preferences.matrix import WinMatrix
from duelpool.preferences.strengths import bradley_terry
from duelpool.records import TIE_MODELS, TieModel
from duelpool.seeds import rng_for

ELO = 400 / np.log(10)
"""Points of the Elo-like scale for one unit of strength; 1000 is the average system."""

_STEPS = 100
_TOLERANCE = 1e-10
_JACKKNIFED = 1000  # clusters: with more of them, leaving one out changes nothing that matters
_LOOSE = (
    0.05  # of a drawn game: where a question is all that holds a system, leaving it out must leave something
)
_FLOOR = 0.5  # of the variance that independent votes would have
_NUMBERS = 2_000_000  # of the matrices that are solved together
_ROUNDED = 1e-12  # of the largest variance of a difference: a smaller one is 0, but for rounding
_LARGE = 1e30  # more standard errors than any difference has
_DRAWS = 4000
_AT_ONCE = 500
_FEW = 100  # clusters


@dataclass(frozen=True, slots=True, eq=False)
class VoteTable:
    """Votes as columns: the two systems by their places, the first one's share, the weight, and the question.

    `question` is the place of a question, or -1 for a vote of none.
    """

    systems: tuple[str, ...]
    i: Ints
    j: Ints
    share: Floats
    weight: Floats
    question: Ints

    @classmethod
    def of(
        cls,
        votes: Sequence[tuple[str, str, float, str]],
        weights: Sequence[float] | None = None,
        systems: Sequence[str] = (),
    ) -> "VoteTable":
        """Make a table of (system, other, the first's share, question) rows; `systems` may have no votes.

        An empty question is none.
        """
        names = tuple(sorted({*systems, *(name for vote in votes for name in vote[:2])}))
        place = {name: at for at, name in enumerate(names)}
        questions: dict[str, int] = {"": -1}
        rows = [
            (place[a], place[b], share, questions.setdefault(question, len(questions) - 1))
            for a, b, share, question in votes
        ]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 4)
        return cls(
            names,
            table[:, 0].astype(np.int64),
            table[:, 1].astype(np.int64),
            table[:, 2],
            np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64),
            table[:, 3].astype(np.int64),
        )

    @property
    def clusters(self) -> Ints:
        """The cluster of each vote: its question, or itself."""
        alone = self.question < 0
        own = self.question.copy()
        own[alone] = self.question.max(initial=-1) + 1 + np.arange(int(alone.sum()))
        _, clusters = np.unique(own, return_inverse=True)
        return clusters.astype(np.int64)

    def only(self, rows: Bools) -> "VoteTable":
        """Return some of the votes, of the same systems."""
        return VoteTable(
            self.systems,
            *(self.i[rows], self.j[rows], self.share[rows], self.weight[rows], self.question[rows]),
        )

    def matrix(self) -> WinMatrix:
        """Return the wins and ties of each two systems, by weight."""
        n = len(self.systems)
        wins, ties = np.zeros((n, n)), np.zeros((n, n))
        decided = self.share != 0.5
        first = self.share > 0.5
        winner, loser = np.where(first, self.i, self.j), np.where(first, self.j, self.i)
        np.add.at(wins, (winner[decided], loser[decided]), self.weight[decided])
        for one, other in ((self.i, self.j), (self.j, self.i)):
            np.add.at(ties, (one[~decided], other[~decided]), self.weight[~decided])
        return WinMatrix(self.systems, wins, ties)


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """Strengths of systems with their joint uncertainty; the mean strength is 0.

    `covariance` has the errors over questions and votes together, `freedom` its degrees of freedom. `prior` is the
    number of drawn games that each system was given where the votes alone have no finite best fit. `progress` is the
    share of a plan's information about each difference that the votes have; None without a plan.
    """

    table: VoteTable
    values: Floats
    covariance: Floats
    floor: Floats  # the covariance that the votes alone would have: the other can be too small by chance
    freedom: float
    ties: TieModel = "halves"
    tie_rate: float = 0.0  # Davidson's nu
    prior: float = 0.0
    progress: Floats | None = None
    _settled: list[Bools] = field(default_factory=list, repr=False)

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, sorted by name."""
        return self.table.systems

    def share(self, difference: Floats | float) -> Floats:
        """Return the expected share of votes, ties as halves, for a difference of strengths."""
        up, down = np.exp(np.asarray(difference) / 2), np.exp(-np.asarray(difference) / 2)
        share: Floats = (up + self.tie_rate / 2) / (up + down + self.tie_rate)
        return share if self.ties == "davidson" else up / (up + down)

    def errors(self) -> Floats:
        """Return the standard error of each strength."""
        return np.sqrt(np.maximum(np.diag(self.covariance), np.diag(self.floor)))

    def difference_errors(self) -> Floats:
        """Return the standard error of each difference of two strengths."""
        found: Floats = np.sqrt(np.maximum(_of_differences(self.covariance), _of_differences(self.floor)))
        return found

    def intervals(self, level: float = 0.95) -> Floats:
        """Return a low and a high end per system, of its strength against the average."""
        half = _quantile(level, self.freedom) * self.errors()
        return np.stack((self.values - half, self.values + half), axis=1)

    def difference_intervals(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the low and the high ends of s_i - s_j, a row per i."""
        gap = self.values[:, None] - self.values[None, :]
        half = _quantile(level, self.freedom) * self.difference_errors()
        return gap - half, gap + half

    def above(self, level: float = 0.95, seed: int = 0) -> Bools:
        """Return which systems are above which others, such that all of these hold at once with this confidence.

        The largest of all standardised differences is simulated (max-T); what is settled leaves, and the others are
        held to the largest of the rest (stepping down).
        """
        n = len(self.systems)
        errors = self.difference_errors()
        gap = self.values[:, None] - self.values[None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(_of_differences(self.covariance) > 0, np.abs(gap) / errors, 0.0)
        one, other = np.triu_indices(n, 1)
        settled = np.zeros(len(one), dtype=np.bool_)
        draws = None
        while n > 1 and not settled.all():
            if draws is None:
                draws = _standardised(self, one, other, seed)
            limit = np.quantile(np.max(draws[:, ~settled], axis=1), level)
            new = ~settled & (score[one, other] > limit)
            if not new.any():
                break
            settled |= new
        above = np.zeros((n, n), dtype=np.bool_)
        above[one[settled], other[settled]] = gap[one[settled], other[settled]] > 0
        above[other[settled], one[settled]] = gap[one[settled], other[settled]] < 0
        return above

    def ranks(self, level: float = 0.95, seed: int = 0) -> tuple[Ints, Ints]:
        """Return the first and the last rank of each system; the sets hold for all systems at once."""
        above = self.above(level, seed)
        return 1 + above.sum(axis=0), len(self.systems) - above.sum(axis=1)

    def settled(self, level: float = 0.95) -> Bools:
        """Return which systems are above which others for good: one may look after every vote, and stop at any time.

        A worse system is above a better one with probability 1 - level at most, over all looks: until the end of the
        plan, or for ever without one. An order is settled when all neighbours are: it is wrong only if a pair that is
        truly the other way round is settled while all others are settled too, so that no share of the level is lost to
        their number.
        """
        n = len(self.systems)
        if self._settled and level == 0.95:
            return self._settled[0]
        errors = self.difference_errors()
        gap = self.values[:, None] - self.values[None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(errors > 0, gap / errors, 0.0)
        settled = score > self.boundary(errors, level)
        if n < 2 or self.freedom < 2:
            settled = np.zeros((n, n), dtype=np.bool_)
        if level == 0.95:
            self._settled.append(settled)
        return settled

    def boundary(self, errors: Floats, level: float = 0.95) -> Floats:
        """Return how many standard errors a difference must have to be settled, for these standard errors."""
        if self.progress is None:
            return without_plan(errors, level, self.freedom)
        return within_plan(self.progress, level, self.freedom)

    def needed(self, first: str, second: str, level: float = 0.95) -> int | None:
        """Return how many questions (or votes without one) would settle two systems, if their difference stays.

        Errors shrink with the root of the number. As many as there are: the votes that the plan still has would. None:
        more than a hundred times as many as there are.
        """
        i, j = self.systems.index(first), self.systems.index(second)
        gap, error = abs(float(self.values[i] - self.values[j])), float(self.difference_errors()[i, j])
        count = round(self.freedom) + 1
        if not gap or not error:
            return None
        if self.progress is not None:
            error *= float(np.sqrt(self.progress[i, j]))  # at the end of the plan

        def settles(number: int) -> bool:
            then = np.array([error * np.sqrt(count / number)])
            limit = (
                without_plan(then, level, number - 1.0)
                if self.progress is None
                else within_plan(np.ones(1), level, number - 1.0)
            )
            return bool(gap > then[0] * limit[0])

        low, high = count, 100 * count
        if settles(low) or not settles(high):
            return low if settles(low) else None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if settles(middle) else (middle, high)
        return high


def _quantile(level: float, freedom: float) -> float:
    import scipy

    if not 0 < level < 1:
        raise BadParameter(f"A level of confidence lies between 0 and 1, not at {level}.")
    return float(scipy.special.stdtrit(max(freedom, 1.0), 0.5 + level / 2))


def _of_differences(covariance: Floats) -> Floats:
    own = np.diag(covariance)
    found: Floats = own[:, None] + own[None, :] - 2 * covariance
    return np.where(found > _ROUNDED * found.max(initial=0.0), found, 0.0)


def _standardised(contest: Contest, one: Ints, other: Ints, seed: int) -> Singles:
    """Return draws of all standardised differences, in absolute value, around equal strengths."""
    rng = rng_for(seed, "contest", "ranks")
    n = len(contest.systems)
    values, vectors = np.linalg.eigh(contest.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    scale = np.sqrt(_of_differences(contest.covariance)[one, other])
    scale[scale <= 0] = np.inf
    draws: Singles = np.empty((_DRAWS, len(one)), dtype=np.float32)
    few = contest.freedom <= _FEW
    for start in range(0, _DRAWS, _AT_ONCE):
        drawn = rng.standard_normal((_AT_ONCE, n)) @ root.T
        gap = np.abs(drawn[:, one] - drawn[:, other])
        if few:  # each difference has an estimated error of its own
            clusters = rng.standard_normal((_AT_ONCE, round(contest.freedom), n)) @ root.T
            errors = clusters.transpose(0, 2, 1) @ clusters / contest.freedom
            own = np.einsum("dii->di", errors)
            spread = np.sqrt(np.maximum(own[:, one] + own[:, other] - 2 * errors[:, one, other], 1e-300))
            draws[start : start + _AT_ONCE] = np.minimum(
                np.where(np.isfinite(scale), gap / spread, 0.0), _LARGE
            )
        else:
            spread = np.sqrt(rng.chisquare(contest.freedom, _AT_ONCE) / contest.freedom)
            draws[start : start + _AT_ONCE] = gap / scale / spread[:, None]
    return draws


# ---- the fit


def fit_contest(
    table: VoteTable,
    ties: TieModel = "halves",
    prior: float | None = None,
    planned: Mapping[tuple[str, str], float] | None = None,
) -> Contest:
    """Fit strengths to votes; with `prior` None each system is given a drawn game only where it must be.

    `prior=0` is refused where some systems won every vote against the others. `planned` is how many votes a campaign
    has in all for each two systems.
    """
    if ties not in TIE_MODELS:
        raise BadParameter(f"There is no way '{ties}' to count ties.", remedy="Use halves or davidson.")
    fit = bradley_terry(table.matrix(), prior)
    values, rate = fit.values, 0.0
    if ties == "davidson":
        values, rate = _davidson(table, fit.values, fit.prior)
    information, scores = _pieces(table, values, rate, fit.prior, ties)
    covariance, freedom = _clustered(table, information, scores, fit.prior, rated=rate > 0)
    spread = _dispersion(table, values, scores) if not fit.prior and ties == "halves" else 1.0
    floor = _inverse(_summed(table, information, len(values), fit.prior, rate > 0))
    floor = floor[: len(values), : len(values)] * spread * _FLOOR
    centre = np.eye(len(values)) - 1 / max(1, len(values))
    progress = None
    if planned is not None and len(values) > 1:
        given = table.matrix()
        progress = progress_of(values, given.played, planned_votes(table.systems, planned), fit.prior)
    return Contest(
        table,
        values - (values.mean() if len(values) else 0.0),
        centre @ covariance @ centre,
        centre @ floor @ centre,
        freedom,
        ties,
        rate,
        fit.prior,
        progress,
    )


def _pieces(
    table: VoteTable, values: Floats, rate: float, prior: float, ties: TieModel
) -> tuple[Floats, Floats]:
    """Return each vote's information (gap-gap, gap-rate, rate-rate) and its score (gap, rate)."""
    gap = values[table.i] - values[table.j]
    zero = np.zeros_like(gap)
    if ties == "halves":
        chance = 1 / (1 + np.exp(-gap))
        information = np.stack((chance * (1 - chance), zero, zero), axis=1)
        return information * table.weight[:, None], np.stack(
            ((table.share - chance) * table.weight, zero), axis=1
        )
    up, down = np.exp(gap / 2), np.exp(-gap / 2)
    whole = up + down + rate
    lead, tied = (up - down) / whole, rate / whole
    information = np.stack(
        ((up + down) / whole / 4 - lead**2 / 4, -lead * tied / 2, tied * (1 - tied)), axis=1
    )
    score = np.stack((table.share - 0.5 - lead / 2, (table.share == 0.5) - tied), axis=1)
    return information * table.weight[:, None], score * table.weight[:, None]


def _summed(table: VoteTable, information: Floats, n: int, prior: float, rated: bool) -> Floats:
    """Return the information of all votes about the strengths, and about the rate of ties."""
    size = n + rated
    total = np.zeros((size, size))
    i, j, gap = table.i, table.j, information[:, 0]
    np.add.at(total, (i, j), -gap)
    np.add.at(total, (j, i), -gap)
    np.add.at(total, (i, i), gap)
    np.add.at(total, (j, j), gap)
    total[:n, :n] += np.eye(n) * prior / 4 + 1 / max(1, n)
    if rated:
        np.add.at(total[:, n], i, information[:, 1])
        np.add.at(total[:, n], j, -information[:, 1])
        total[n, :n] = total[:n, n]
        total[n, n] = information[:, 2].sum() + 1e-9
    return total


def _inverse(matrix: Floats) -> Floats:
    if not matrix.size:
        return matrix
    return np.asarray(np.linalg.pinv(matrix, hermitian=True), dtype=np.float64)


def _clustered(
    table: VoteTable, information: Floats, scores: Floats, prior: float, *, rated: bool
) -> tuple[Floats, float]:
    """Return the covariance of the strengths by leaving out one question at a time, and its degrees of freedom."""
    n = len(table.systems)
    size = n + rated
    clusters = table.clusters
    count = int(clusters.max(initial=-1)) + 1
    if count < 2:  # one question: its votes stand for themselves
        clusters = np.arange(len(table.i))
        count = len(table.i)
    if count < 2:
        return np.zeros((n, n)), 1.0
    total = _summed(table, information, n, prior, rated)
    by_cluster = np.zeros((count, size))
    np.add.at(by_cluster, (clusters, table.i), scores[:, 0])
    np.add.at(by_cluster, (clusters, table.j), -scores[:, 0])
    if rated:
        np.add.at(by_cluster[:, n], clusters, scores[:, 1])
    if count > _JACKKNIFED:
        moves = by_cluster @ _inverse(total)
        return (moves.T @ moves * (count / (count - 1)))[:n, :n], float(count - 1)
    moves = np.empty((count, size))
    order = np.argsort(clusters, kind="stable")
    ends = np.searchsorted(clusters[order], np.arange(count + 1))
    loose = total + np.eye(size) * _LOOSE / 4
    together = max(1, _NUMBERS // size**2)
    for start in range(0, count, together):
        stop = min(start + together, count)
        rows = order[ends[start] : ends[stop]]
        left = loose - _by_cluster(
            table, information, rows, clusters[rows] - start, (stop - start, size, size)
        )
        moves[start:stop] = np.linalg.solve(left, by_cluster[start:stop, :, None])[..., 0]
    moves -= moves.mean(axis=0)
    return (moves.T @ moves * ((count - 1) / count))[:n, :n], float(count - 1)


def _by_cluster(
    table: VoteTable, information: Floats, rows: Ints, clusters: Ints, shape: tuple[int, int, int]
) -> Floats:
    """Return the information of the votes of each cluster."""
    own = np.zeros(shape)
    n = len(table.systems)
    i, j, gap = table.i[rows], table.j[rows], information[rows, 0]
    np.add.at(own, (clusters, i, j), -gap)
    np.add.at(own, (clusters, j, i), -gap)
    np.add.at(own, (clusters, i, i), gap)
    np.add.at(own, (clusters, j, j), gap)
    if shape[1] > n:
        for system, sign in ((i, 1.0), (j, -1.0)):
            np.add.at(own, (clusters, system, np.full(len(rows), n)), sign * information[rows, 1])
            np.add.at(own, (clusters, np.full(len(rows), n), system), sign * information[rows, 1])
        np.add.at(own, (clusters, np.full(len(rows), n), np.full(len(rows), n)), information[rows, 2])
    return own


def _dispersion(table: VoteTable, values: Floats, scores: Floats) -> float:
    """Return how much votes vary against what the model expects: less than 1 where there are ties."""
    gap = values[table.i] - values[table.j]
    chance = 1 / (1 + np.exp(-gap))
    expected = float((table.weight**2 * chance * (1 - chance)).sum())
    if expected <= 0:
        return 1.0
    spared = max(1, len(table.i) - len(values) + 1)
    return min(1.0, float((scores[:, 0] ** 2).sum()) / expected * len(table.i) / spared)


def _davidson(table: VoteTable, start: Floats, prior: float) -> tuple[Floats, float]:
    """Fit strengths and the rate of ties by Newton's method with halved steps."""
    n = len(start)
    tied = float(table.weight[table.share == 0.5].sum())
    if not tied:
        return start, 0.0
    rate = np.log(2 * max(tied, 0.5) / max(float(table.weight.sum()) - tied, 0.5))

    def height(values: Floats, rate: float) -> float:
        gap = values[table.i] - values[table.j]
        whole = np.log(np.exp(gap / 2) + np.exp(-gap / 2) + np.exp(rate))
        own = np.where(table.share == 0.5, rate, gap * (table.share - 0.5))
        return float((table.weight * (own - whole)).sum() - prior / 8 * (values**2).sum())

    values, now = start - start.mean(), height(start - start.mean(), rate)
    for _ in range(_STEPS):
        information, scores = _pieces(table, values, float(np.exp(rate)), prior, "davidson")
        gradient = np.zeros(n + 1)
        np.add.at(gradient, table.i, scores[:, 0])
        np.add.at(gradient, table.j, -scores[:, 0])
        gradient[:n] -= prior / 4 * values
        gradient[n] = scores[:, 1].sum()
        if np.abs(gradient).max() < _TOLERANCE * max(1.0, float(table.weight.sum())):
            break
        step = np.linalg.solve(_summed(table, information, n, prior, True), gradient)
        part = 1.0
        while height(values + part * step[:n], rate + part * step[n]) < now and part > 1e-8:
            part /= 2
        values, rate = values + part * step[:n], float(rate + part * step[n])
        now = height(values, rate)
    return values, float(np.exp(rate))
