"""A Swiss tournament with a shrinking field, then finals; the answer is taken from a posterior over all items.

Items of equal score meet until few are left; no judgment is discarded, and an item may return to the field. The
rest of the budget goes to the finalists: pairs are drawn by the chance of each finalist to be the best,
summed exactly over all their orders and over how reliable the assessors may be. What is returned, and how sure that is,
comes from `posterior`: several models of how people judge, weighed by the answers.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from duelpool.arrays import Bools, Floats, Indices
from duelpool.errors import BadParameter
from duelpool.records import Judgment, Levels, PhaseClosed, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies.base import Shortfall
from duelpool.strategies.finals import Finals, chances_to_win, finals_pairs
from duelpool.strategies.informed import BEST_PER_SLOPE, checked_slope, learnt_weight, standardised
from duelpool.strategies.orders import MOST_ITEMS, order_posterior
from duelpool.strategies.posterior.answer import PoolAnswer, WantedCertainty, answer_of
from duelpool.strategies.schedule import finalists_of, schedule_for, usual_budget
from duelpool.strategies.swiss import any_open_pair, swiss_pairs
from duelpool.strategies.tables.win_table import DecidedPairs, WinTable

SWISS = "swiss"
FINALS = "swiss-finals"

OUTSIDE = 0.2  # log weight of a point won against items that are no finalists
LOOK_EVERY = 8  # judgments, or a quarter of the pool's size: so often the confidence is looked at
EARLY_BEST = 2  # while the field is pruned, an answer that ties more items is no reason to stop


@dataclass(frozen=True, slots=True)
class _Seeding:
    """The ranking and the scores at the start of the finals; later judgments don't change them."""

    ranking: Indices
    standing: Floats


@dataclass(frozen=True, slots=True)
class _Look:
    """All judgments at one moment, and the finalists, or those that would be."""

    judgments: int
    pairs: DecidedPairs
    bad: Bools
    members: Indices
    pruning: bool

    def wins(self, group: Indices) -> Floats:
        """Return how often each item of a group won against each other one, ties as half wins."""
        table = np.zeros((len(self.bad), len(self.bad)))
        table[self.pairs.first, self.pairs.second] = self.pairs.won
        table[self.pairs.second, self.pairs.first] = self.pairs.judged - self.pairs.won
        return table[np.ix_(group, group)]


class SwissFinals:
    """Finds the best item (or the ordered top few) and says how sure it is.

    `budget` is the number of judgments, or `per_item` that of each item; without them it is 7 an item, but never more
    than judging every pair once. `cap` is the most of one pair. While the field is pruned at most `games_per_round`
    games an item are pending at once, in the finals `finals_round` pairs: fewer make better choices, more make fewer
    rounds. `prior` gives a score to items, `prior_slope` says what it is worth: see `informed`. With `confidence` it is
    done once it is that sure that a best item is among those returned; with `epsilon` besides, that the first is as
    good as the best within epsilon; with `top_share`, that the first is in this share of the pool. An item leaves after
    `bad_votes` Bad votes. Items whose chance to be the best is at least `tie_share` of the largest share the first
    level; with `top` above 1 the answer is an order of single items instead. `weights` says by how
    much a judgment of an assessor counts, `shares` how much of the budget it uses: from 0 to 1, of those not named 1.
    """

    name: ClassVar[str] = "swissfinals"
    version: ClassVar[int] = 5  # 5: the evidence of sharp orders isn't too low
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "best"
    first_questions_vary: ClassVar[bool] = False
    slow_result: ClassVar[bool] = True

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = 6,
        budget: int | None = None,
        per_item: float | None = None,
        finalists: int | None = None,
        top: int = 1,
        games_per_round: float | None = None,
        finals_round: int = 8,
        at_once: int = 1,
        prior: Mapping[str, float] | None = None,
        prior_slope: float | None = None,
        confidence: float | None = None,
        epsilon: float | None = None,
        top_share: float | None = None,
        bad_votes: int = 1,
        tie_share: float = 0.3,
        weights: Mapping[str, float] | None = None,
        shares: Mapping[str, float] | None = None,
    ) -> None:
        _check_parameters(
            cap,
            budget,
            per_item,
            finalists,
            top,
            games_per_round,
            finals_round,
            at_once,
            confidence,
            tie_share,
        )
        self.statement = WantedCertainty(
            wanted=confidence, epsilon=epsilon, share=top_share, tie_share=tie_share, top=top
        )
        self.topic = topic
        self.seed = seed
        self.cap = math.inf if cap is None else cap
        self.top = top
        self._budget = budget
        self._per_item = per_item
        self.finals_round = finals_round
        self.at_once = at_once
        self.finalists = finalists or finalists_of(len(items), top)
        self.schedule = schedule_for(
            len(items),
            self.most_judgments(len(items)),
            cap=cap,
            finalists=self.finalists,
            games_per_round=games_per_round,
        )
        self._table = WinTable(items, bad_votes=bad_votes)
        self._weights = _from_zero_to_one("weight", weights or {})
        self._shares = _from_zero_to_one("share", shares or {})
        self._prior = None if prior is None else standardised(prior, self._table.items)
        self._slope = checked_slope(prior_slope)
        self._answers: tuple[list[float], list[float], list[float]] = ([], [], [])
        self._seeding: _Seeding | None = None
        self._weight: tuple[int, float] = (-1, 0.0)
        self._finals: tuple[int, Finals] | None = None
        self._answered: tuple[int, PoolAnswer] | None = None
        self._every = max(LOOK_EVERY, len(items) // 4)
        self._look: _Look | None = None
        self._looked: tuple[int, bool] = (-1, False)
        self._ranked: Indices | None = None
        self._still_pruning: bool | None = None

    # ---- the log

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log; the first judgment of the finals fixes who is in them."""
        if isinstance(event, PhaseClosed):
            self._apply_closing(event)
            return
        if event.phase == FINALS and self._seeding is None:
            self._seeding = self._seed_now()
        who = event.assessor
        places = self._table.add(event, self._weights.get(who, 1.0), self._shares.get(who, 1.0))
        self._ranked = self._still_pruning = None
        if places is not None and self._is_time_to_look:
            self._look = self._look_now()
        if places is not None and self._prior is not None and self._seeding is None:
            self._learn(event, *places)

    def _look_now(self) -> _Look:
        ranking = self._ranking() if self._seeding is None else self._seeding.ranking
        members = ranking[~self._table.bad[ranking]][: self.finalists]
        return _Look(
            self._table.judgments, self._table.pairs(), self._table.bad.copy(), members, self._seeding is None
        )

    def _apply_closing(self, closing: PhaseClosed) -> None:
        if closing.phase != SWISS:
            return
        place = self._table.place
        survivors = [place[item] for item in closing.survivors if item in place]
        seeding = self._seeding or self._seed_now()
        ranking = np.array(
            survivors + [i for i in seeding.ranking.tolist() if i not in set(survivors)], dtype=np.intp
        )
        self._seeding = replace(seeding, ranking=ranking)
        self._finals = self._answered = self._ranked = self._still_pruning = None

    def _seed_now(self) -> _Seeding:
        return _Seeding(self._ranking(), self._standing())

    def _learn(self, judgment: Judgment, i: int, j: int) -> None:
        effect = judgment.effect
        if self._prior is None or not (effect.left or effect.right):
            return
        leads = self._answers
        leads[0].append(float(self._prior[i] - self._prior[j]))
        lead = _lead_written_in(judgment.proposal)
        leads[1].append(lead if judgment.pair[0] == judgment.left else -lead)
        leads[2].append(effect.left)

    # ---- the state, all from the log

    @property
    def table(self) -> WinTable:
        """All judgments added up, to read from."""
        return self._table

    @property
    def prior_weight(self) -> float:
        """How many points of score one standard deviation of the prior is worth, by the answers so far."""
        if self._prior is None:
            return 0.0
        if self._slope is not None:
            return 4 * self._slope
        if self._weight[0] != len(self._answers[0]):
            arrays = [np.array(column) for column in self._answers]
            b, deviation = learnt_weight(arrays[0], arrays[1], arrays[2], self.schedule.prior_mean)
            self._weight = (len(self._answers[0]), 4 * max(0.0, b - 0.5 * deviation))
        return self._weight[1]

    def _standing(self) -> Floats:
        if self._prior is None:
            return self._table.score.copy()
        return self._table.score + self.prior_weight * self._prior

    def _ranking(self) -> Indices:
        """Return the items that are still in, the highest score first, ties in random order."""
        if self._ranked is None:
            tie_breaks = self._chances_for("field").random(len(self._table.items))
            order = np.lexsort((tie_breaks, -self._standing()))
            self._ranked = order[~self._table.bad[order]]
        return self._ranked

    @property
    def field_size(self) -> int:
        """How many items the field has now, before the finals."""
        size = self._table.remaining
        if size <= self.finalists:
            return size
        start = math.ceil(size * (1 - 0.5 * min(1.0, self.prior_weight / 2)))
        share = (
            (self._table.spent / self.schedule.pruning) ** self.schedule.power
            if self.schedule.pruning
            else 1.0
        )
        return max(self.finalists, math.ceil(start - (start - self.finalists) * min(1.0, share)))

    @property
    def in_finals(self) -> bool:
        """Whether the field has been pruned to the finalists."""
        return (
            self._seeding is not None
            or self._table.spent >= self.schedule.pruning
            or self._table.remaining <= self.finalists
        )

    def finals(self) -> Finals:
        """Return the finalists (those that would be, while the field is still pruned) and their chances."""
        if self._finals is None or self._finals[0] != self._table.judgments:
            self._finals = (self._table.judgments, self._finals_now())
        return self._finals[1]

    def _finals_now(self) -> Finals:
        seeding = self._seeding or self._seed_now()
        ranking = seeding.ranking[~self._table.bad[seeding.ranking]]
        members = ranking[: self.finalists]
        wins = self._table.wins(members)
        beyond = self._standing()[members] - (wins - wins.T).sum(axis=1)
        outside = OUTSIDE * beyond
        if self._prior is not None and self._slope is not None:  # `beyond` has a part of it
            outside += (BEST_PER_SLOPE - 4 * OUTSIDE) * self._slope * self._prior[members]
        orders = order_posterior(wins, outside=outside, ranks=self.top > 1)
        return Finals(members, orders, self._table.met(members))

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """The end of the pruning, once the finals have begun."""
        if self._seeding is None:
            return ()
        items = self._table.items
        survivors = tuple(items[i] for i in self._seeding.ranking[: self.finalists].tolist())
        return (PhaseClosed(self.topic, SWISS, survivors),)

    def shortfall(self, phase: str, duplicates: Mapping[str, int] = {}) -> Shortfall | None:
        """Return what the pruning lacks to be closed now; every judgment of the topic counts for it."""
        judged, needed = int(self._table.spent), self.schedule.pruning
        if phase != SWISS or judged >= needed or self._table.remaining <= self.finalists:
            return None
        if not any_open_pair(self._table, self._ranking()[: self.field_size], self.cap):
            return None
        return Shortfall(judged, needed, f"the pruning to {self.finalists} items takes them")

    @property
    def done(self) -> bool:
        """Whether the budget is spent, the wanted confidence reached, or no pair is left to ask."""
        if self._table.remaining < 2 or self._table.spent >= self.schedule.budget:
            return True
        if self._is_sure():
            return True
        if not self._table.judgments or self._pruning():
            return False
        finals = self.finals()
        pairs = np.triu_indices(len(finals.members), 1)
        return bool((finals.met[pairs] >= self.cap).all())

    @property
    def _is_time_to_look(self) -> bool:
        return self.statement.wanted is not None and not self._table.judgments % self._every

    def _is_sure(self) -> bool:
        """Whether the wanted confidence was reached at the last look."""
        if self._look is None:
            return False
        if self._looked[0] != self._look.judgments:
            self._looked = (self._look.judgments, self._was_sure_at(self._look))
        return self._looked[1]

    def _was_sure_at(self, look: "_Look") -> bool:
        """Whether the judgments of a look give the wanted confidence, and every finalist was judged by then.

        The finals' own posterior is the more confident one, and quick: where even that isn't sure, nothing more is
        worked out.
        """
        members = look.members
        judged = np.zeros(len(look.bad), dtype=bool)
        judged[look.pairs.first] = judged[look.pairs.second] = True
        if not judged[members].all():
            return False
        if self.statement.by_best:
            likely = order_posterior(look.wins(members)).first
            near = likely >= self.statement.tie_share * likely.max(initial=0.0)
            if likely[near].sum() < (self.statement.wanted or 0.0):
                return False
        answer = self._answer_from(look, np.zeros(len(look.bad)))
        if look.pruning and self.top == 1 and len(answer.levels[0]) > EARLY_BEST:
            return False
        return self.statement.reached(answer)

    def most_judgments(self, n_items: int) -> int:
        """Return the budget."""
        if self._budget is not None:
            return self._budget
        return usual_budget(n_items) if self._per_item is None else math.ceil(self._per_item * n_items)

    def expected_judgments(self, n_items: int) -> float:
        """Return the budget."""
        return float(self.most_judgments(n_items))

    def _pruning(self) -> bool:
        if self._still_pruning is None:
            self._still_pruning = not self.in_finals and any_open_pair(
                self._table, self._ranking()[: self.field_size], self.cap
            )
        return self._still_pruning

    # ---- asking

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs to judge now; empty when done, or when pending pairs must be answered first."""
        if n <= 0 or self.done:
            return []
        waiting = self._table.places(pending)
        room = min(n, math.ceil(self.schedule.budget - self._table.spent) - len(pending))
        if self._pruning():
            limit = max(1, math.ceil(self.field_size * self.schedule.games_per_round / 2))
            room = min(room, limit - len(pending))
            phase, pairs = SWISS, self._swiss_pairs(room, waiting) if room > 0 else []
        else:
            room = min(room, self.finals_round - len(pending))
            phase, pairs = FINALS, self._finals_pairs(room, waiting) if room > 0 else []
        return [self._proposal(i, j, phase, len(pending) + at) for at, (i, j) in enumerate(pairs)]

    def _proposal(self, i: int, j: int, phase: str, at: int) -> Proposal:
        items, score = self._table.items, self._table.score
        pair = pair_of(items[i], items[j])
        lead = score[i] - score[j] if pair[0] == items[i] else score[j] - score[i]
        return Proposal(pair, phase=phase, proposal=f"{self._table.judgments}.{at}{lead:+g}")

    def _swiss_pairs(self, room: int, pending: list[tuple[int, int]]) -> list[tuple[int, int]]:
        field = self._ranking()[: self.field_size]
        return swiss_pairs(
            self._table,
            field,
            self._standing()[field],
            room=room,
            pending=pending,
            cap=self.cap,
            at_once=self.at_once,
            chances=self._chances_for(SWISS),
        )

    def _finals_pairs(self, room: int, pending: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return finals_pairs(
            self.finals(),
            self._table,
            room=room,
            pending=pending,
            cap=self.cap,
            at_once=self.at_once,
            chances=self._chances_for(FINALS),
            wide_chances=lambda turn: self._chances_for("new pair", turn),
        )

    def _chances_for(self, *decision: str | int) -> np.random.Generator:
        return rng_for(self.seed, self.topic, self.name, *decision, self._table.judgments)

    # ---- the answer

    def _answer(self) -> PoolAnswer:
        if self._answered is None or self._answered[0] != self._table.judgments:
            finals = self.finals()
            favoured = np.zeros(len(self._table.items))
            favoured[finals.members] = chances_to_win(finals, self._table)[0]
            self._answered = (self._table.judgments, self._answer_from(self._look_now(), favoured))
        return self._answered[1]

    def _answer_from(self, look: "_Look", favoured: Floats) -> PoolAnswer:
        chances = rng_for(self.seed, self.topic, self.name, "posterior", look.judgments)
        weight = OUTSIDE * self.prior_weight if self._slope is None else BEST_PER_SLOPE * self._slope
        prior = None if self._prior is None else weight * self._prior
        return answer_of(look.pairs, look.bad, self.statement, chances, favoured=favoured, prior=prior)

    @property
    def posterior(self) -> dict[str, float]:
        """The chance of each item to be a best one."""
        return dict(zip(self._table.items, self._answer().best.tolist(), strict=True))

    @property
    def best_one(self) -> str | None:
        """The one item that is most likely the best; None when no item is left."""
        levels = self._answer().levels
        return self._table.items[levels[0][0]] if self._table.remaining else None

    def result(self) -> Levels:
        """Return the tied best (or the ordered top), the others by their mean rank, the Bad."""
        answer, items = self._answer(), self._table.items
        levels = [tuple(items[i] for i in level) for level in answer.levels]
        bad = tuple(items[i] for i in np.flatnonzero(self._table.bad).tolist())
        return Levels((*levels, bad) if bad else tuple(levels), answer.certainty)


def _from_zero_to_one(name: str, values: Mapping[str, float]) -> Mapping[str, float]:
    for assessor, value in values.items():
        if not 0 <= value <= 1:
            raise BadParameter(f"The {name} of a judgment lies from 0 to 1; that of '{assessor}' is {value}.")
    return dict(values)


def _lead_written_in(proposal: str) -> float:
    for sign in "+-":
        number = proposal.rpartition(sign)[2]
        if number != proposal:
            try:
                return float(sign + number)
            except ValueError:
                return 0.0
    return 0.0


def _check_parameters(  # noqa: PLR0917
    cap: int | None,
    budget: int | None,
    per_item: float | None,
    finalists: int | None,
    top: int,
    games_per_round: float | None,
    finals_round: int,
    at_once: int,
    confidence: float | None,
    tie_share: float,
) -> None:
    if cap is not None and cap < 1:
        raise BadParameter(
            f"The cap must be at least 1 judgment of a pair, not {cap}.", remedy="None: no cap."
        )
    if budget is not None and budget < 0:  # of 0: see `make_strategy`
        raise BadParameter(f"The budget must be a number of judgments from 1 on, not {budget}.")
    if per_item is not None and (budget is not None or not 0 < per_item < math.inf):
        raise BadParameter(
            "'per_item' is a number of judgments above 0, and takes the place of 'budget'.",
            remedy="Give one of them.",
        )
    if finalists is not None and not 2 <= finalists <= MOST_ITEMS:
        raise BadParameter(f"There are 2 to {MOST_ITEMS} finalists, not {finalists}.")
    if at_once < 1:
        raise BadParameter(f"'at_once' is at least 1 assessor per pending pair, not {at_once}.")
    if not 1 <= top <= 10:
        raise BadParameter(f"The top can have 1 to 10 items, not {top}.")
    if games_per_round is not None and not games_per_round > 0:
        raise BadParameter(f"Games an item and round must be above 0, not {games_per_round}.")
    if finals_round < 1:
        raise BadParameter(f"A round of the finals has at least 1 pair, not {finals_round}.")
    if confidence is not None and not 0 < confidence <= 1:
        raise BadParameter(f"A confidence lies above 0 and at most at 1, not at {confidence}.")
    if not 0 < tie_share <= 1:
        raise BadParameter(f"The tie share lies above 0 and at most at 1, not at {tie_share}.")
