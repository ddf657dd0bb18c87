"""Which of two rankings is better, from the few judgments that can tell: expected utility and early stopping.

A pair that both rankings order alike can't tell them apart; one that they order differently can, and so can
what follows from it by transitivity. Judging stops when the remaining pairs, all answered in favour of the
ranking behind, could no longer change the sign of the difference.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are used, and statistics take half a second

from duelpool.arrays import Bools, Floats
from duelpool.errors import BadParameter
from duelpool.records import Judgment, Levels, PhaseClosed, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.tables.transitivity import KnownPreferences
from duelpool.strategies.tables.win_table import WinTable

Measure = Literal["ppref", "wpref"]
Weight = Literal["lower", "upper"]

PRIOR_PRECISION = (
    0.1  # of a strength in the Bradley-Terry fit: wide, for assessors seldom contradict themselves
)
TIE_NOISE = 1e-9  # utilities closer than this are equal, and chance decides
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class DifferenceVerdict:
    """The difference of two rankings on one topic, as far as it is known.

    `a` and `b` are the scores over the pairs known so far; `low` and `high` bound the final difference a - b
    when every other pair gets a preference. `leader` is "a" or "b" once the sign is certain.
    """

    measure: str
    a: float
    b: float
    low: float
    high: float

    @property
    def leader(self) -> str:
        """The better ranking, when it is certain."""
        return "a" if self.low > ROUNDING else "b" if self.high < -ROUNDING else ""


def ranks_in(run: Sequence[str], items: Sequence[str]) -> Floats:
    """Return each item's rank from 1 in a ranking, infinite when it isn't ranked; the first place counts."""
    rank: dict[str, int] = {}
    for at, item in enumerate(run, 1):
        rank.setdefault(item, at)
    return np.array([rank.get(item, math.inf) for item in items], dtype=float)


def pair_weights(ranks: Floats, measure: Measure, weight: Weight, depth: int) -> Floats:
    """Return what each pair weighs in a measure for one ranking: 0 when neither item is ranked.

    For `wpref` a pair weighs 1 / log2(r + 1), r being the rank of its lower-ranked item ("lower") or of its
    higher-ranked one ("upper"). An unranked item counts as one rank below the last ranked one.
    """
    ranked = np.isfinite(ranks)
    counted = ranked[:, None] | ranked[None, :]
    np.fill_diagonal(counted, val=False)
    if measure == "ppref":
        return counted.astype(float)
    filled = np.where(ranked, ranks, depth + 1.0)
    chosen = np.maximum if weight == "lower" else np.minimum
    weights: Floats = counted / np.log2(chosen(filled[:, None], filled[None, :]) + 1)
    return weights


def bradley_terry_chances(wins: Floats, precision: float = PRIOR_PRECISION) -> Floats:
    """Return p(i beats j) from a logistic fit of strengths, drawn towards equal ones by a normal prior."""
    strengths = np.zeros(len(wins))
    played = np.flatnonzero((wins + wins.T).any(axis=1))  # the others stay at 0
    wins = wins[np.ix_(played, played)]
    games = wins + wins.T
    strength = np.zeros(len(played))
    for _ in range(50):
        chance = scipy.special.expit(strength[:, None] - strength[None, :])
        gradient = (wins - games * chance).sum(axis=1) - precision * strength
        information = games * chance * (1 - chance)
        hessian = np.diag(information.sum(axis=1) + precision) - information
        step = np.linalg.solve(hessian, gradient)
        strength += step
        if np.abs(step).max(initial=0.0) < 1e-8:
            break
    strengths[played] = strength
    chances: Floats = scipy.special.expit(strengths[:, None] - strengths[None, :])
    return chances


class _PairState(NamedTuple):
    """What the judgments say about all pairs.

    `better`: the first is known to be better. `still`: there is no preference, and there may be one.
    `stakes`: what a preference for the first adds to the score of a less that of b.
    """

    better: Bools
    still: Bools
    stakes: Floats


class RankingDifference:
    """Tells which of two rankings of the pool is better with the fewest judgments.

    `run_a` and `run_b` list items, the best first. `measure` is "ppref" or "wpref", `weight` the rank that
    weighs a pair in wpref. With `early_stopping` it ends as soon as the sign is certain.
    """

    name: ClassVar[str] = "difference"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "difference"
    first_questions_vary: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("run_a", "run_b")  # parameters without which it asks nothing

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        run_a: Sequence[str] = (),
        run_b: Sequence[str] = (),
        measure: Measure = "ppref",
        weight: Weight = "lower",
        early_stopping: bool = True,
        bad_votes: int = 1,
    ) -> None:
        at_least(cap=(cap, 1), bad_votes=(bad_votes, 1))
        if measure not in {"ppref", "wpref"}:
            raise BadParameter(f"'{measure}' isn't a measure of preferences.", remedy="Use ppref or wpref.")
        if weight not in {"lower", "upper"}:
            raise BadParameter(f"'{weight}' isn't a weight of pairs.", remedy="Use lower or upper.")
        self.seed = seed
        self.topic = topic
        self.measure: Measure = measure
        self.early_stopping = early_stopping
        self._table = WinTable(items, bad_votes=bad_votes)
        self._preferences = KnownPreferences(self._table)
        size = len(self._table.items)
        self._wins: Floats = np.zeros((size, size))
        self._worked_out: _PairState | None = None  # forgotten with each judgment
        ranks = [ranks_in(run, self._table.items) for run in (run_a, run_b)]
        # An unranked item's rank is infinite, so the ranked one of two is above, as the measures have it.
        self._above = [rank[:, None] < rank[None, :] for rank in ranks]
        self._weights = [
            pair_weights(rank, measure, weight, len(run))
            for rank, run in zip(ranks, (run_a, run_b), strict=True)
        ]

    # ---- what is known

    def _pair_state(self) -> _PairState:
        if self._worked_out is None:
            better = self._preferences.better()
            bad = self._table.bad
            still = ~(better | better.T | self._preferences.judged) & ~bad[:, None] & ~bad[None, :]
            np.fill_diagonal(still, val=False)
            self._worked_out = _PairState(better, still, self._stakes(better, still))
        return self._worked_out

    def _stakes(self, better: Bools, still: Bools) -> Floats:
        counted = better | better.T | still  # ties and pairs of Bad items are no preferences
        stakes = np.zeros(still.shape)
        for sign, above, weights in zip((1, -1), self._above, self._weights, strict=True):
            total = float((weights * counted).sum() / 2)
            if total > 0:
                stakes += sign * above * weights / total
        return stakes

    def verdict(self) -> DifferenceVerdict:
        """Return the scores so far and the bounds of the final difference."""
        better, still, stakes = self._pair_state()
        known = float(stakes[better].sum())
        upper = np.triu(still, 1)
        highest, lowest = np.maximum(stakes, stakes.T), np.minimum(stakes, stakes.T)
        scores: list[float] = []
        for above, weights in zip(self._above, self._weights, strict=True):
            total = float((weights * better).sum())
            scores.append(float((weights * (better & above)).sum()) / total if total else 0.0)
        return DifferenceVerdict(
            self.measure,
            a=scores[0],
            b=scores[1],
            low=known + float(lowest[upper].sum()),
            high=known + float(highest[upper].sum()),
        )

    def utilities(self) -> Floats:
        """Return the expected utility of judging each pair: how far it and its consequences may move the difference."""
        better, still, stakes = self._pair_state()
        gap = np.abs(stakes - stakes.T) * still
        chains = better.astype(float).T
        gain = gap + gap @ chains + chains @ gap
        expected = bradley_terry_chances(self._wins) * gain
        utilities: Floats = np.where(still, expected + expected.T, 0.0)
        return utilities

    # ---- ask and tell

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        if isinstance(event, PhaseClosed):
            return
        places = self._table.add(event)
        if places is None:
            return
        i, j = places
        self._wins[i, j] += event.effect.left
        self._wins[j, i] += event.effect.right
        self._preferences.add(i, j)
        self._worked_out = None

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs in decreasing expected utility."""
        if self.done or n < 1:
            return []
        utilities = self.utilities()
        # Unequal only by rounding is equal; then the decision's own chance breaks the tie.
        first, second = np.nonzero(np.triu(utilities > TIE_NOISE * max(1.0, utilities.max(initial=0.0)), 1))
        worth = np.round(utilities[first, second] / (TIE_NOISE * 10))
        chance = rng_for(self.seed, self.topic, self.name, self._table.judgments).random(len(first))
        waiting = {proposal.pair for proposal in pending}
        items = self._table.items
        proposals: list[Proposal] = []
        for at in np.lexsort((chance, -worth)).tolist():
            pair = pair_of(items[first[at]], items[second[at]])
            if pair not in waiting:
                proposals.append(Proposal(pair))
                if len(proposals) == n:
                    break
        return proposals

    @property
    def done(self) -> bool:
        """Whether the sign of the difference is certain, or no pair is left that could tell."""
        if self.early_stopping and self.verdict().leader:
            return True
        _, still, stakes = self._pair_state()
        return not bool((np.abs(stakes - stakes.T)[still] > TIE_NOISE).any())

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """Nothing: there are no phases."""
        return ()

    def result(self) -> Levels:
        """Return the items by how many are known to be worse, less those known to be better."""
        return levels_by_score(self._table, self._preferences.known_lead())

    def most_judgments(self, n_items: int) -> int | None:
        """Return the number of pairs."""
        return math.comb(n_items, 2)

    def expected_judgments(self, n_items: int) -> float:
        """Return the number of items: about that many judgments tell two rankings apart."""
        return float(min(n_items, math.comb(n_items, 2)))


class AbsoluteDifference:
    """The same idea for grades, to compare with: the items whose grade may tell two rankings apart, by DCG.

    Items are graded in decreasing order of how differently the two rankings discount them, until the rest,
    all graded in favour of the ranking behind, could no longer change the sign.
    """

    def __init__(
        self, items: Iterable[str], *, run_a: Sequence[str], run_b: Sequence[str], highest_grade: int = 4
    ) -> None:
        at_least(highest_grade=(highest_grade, 1))
        self.items = tuple(items)
        self.highest_gain = 2.0**highest_grade - 1
        a, b = ranks_in(run_a, self.items), ranks_in(run_b, self.items)
        leads = 1 / np.log2(a + 1) - 1 / np.log2(b + 1)  # an unranked item is discounted to nothing
        self._leads: Mapping[str, float] = dict(zip(self.items, leads.tolist(), strict=True))
        self._gains: dict[str, float] = {}

    def tell(self, item: str, grade: float) -> None:
        """Take in the grade of an item."""
        self._gains[item] = 2.0**grade - 1

    def ask(self, n: int) -> list[str]:
        """Return up to n items, those that may tell most first."""
        if self.done:
            return []
        worth = sorted(self._ungraded(), key=lambda item: (-abs(self._leads[item]), item))
        return worth[: max(0, n)]

    def _ungraded(self) -> list[str]:
        return [item for item in self.items if item not in self._gains and abs(self._leads[item]) > ROUNDING]

    def verdict(self) -> DifferenceVerdict:
        """Return the bounds of the difference in DCG; the scores are what speaks for a, and for b."""
        parts = [self._leads[item] * gain for item, gain in self._gains.items()]
        ahead = math.fsum(part for part in parts if part > 0)
        behind = -math.fsum(part for part in parts if part < 0)
        rest = [self._leads[item] * self.highest_gain for item in self._ungraded()]
        low = ahead - behind + math.fsum(part for part in rest if part < 0)
        high = ahead - behind + math.fsum(part for part in rest if part > 0)
        return DifferenceVerdict("DCG", ahead, behind, low, high)

    @property
    def done(self) -> bool:
        """Whether the sign is certain, or nothing is left to grade."""
        return bool(self.verdict().leader) or not self._ungraded()
