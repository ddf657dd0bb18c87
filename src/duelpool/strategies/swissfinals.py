"""A Swiss tournament with a shrinking field, then finals by the exact posterior over the finalists' orders.

Items of equal standing meet until few are left; nobody's judgments are thrown away, and an item may come back
into the field. The rest of the budget goes to the finalists: pairs are drawn by the chance of each finalist
to be the best, summed exactly over all their orders and over how reliable the assessors may be.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from duelpool.errors import BadParameter
from duelpool.records import Judgment, Levels, PhaseClosed, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies.informed import learnt_weight, standardised
from duelpool.strategies.orders import OrderPosterior, order_posterior
from duelpool.strategies.standings import Standings

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

SWISS = "swiss"
FINALS = "swiss-finals"

REST = 2.0  # lambda: a game more than the other's weighs like two points of standing
REPEAT = 0.5  # a former meeting weighs like half a point
OUTSIDE = 0.2  # eta: log weight of a point won against items that are no finalists
LOST = 0.33  # c: log odds per point that an item outside the finals is the best
TRIES = 30


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a budget is spent: all of it is fixed before the first judgment."""

    budget: int
    pruning: int  # judgments told before the finals begin
    power: float  # 1: the field shrinks evenly; below: faster at first
    games_per_round: float
    prior_mean: float


@dataclass(frozen=True, slots=True)
class _Seeding:
    """The standings as they were when the finals began; they are not looked at again."""

    ranking: Indices
    standing: Floats


@dataclass(frozen=True, slots=True)
class Finals:
    """The finalists, best standing first, and what is known of them."""

    members: Indices
    chances: OrderPosterior
    met: NDArray[np.int64]
    lost: float  # the chance that the best item isn't among them


def schedule_for(size: int, budget: int | None, finalists: int, games_per_round: float | None) -> Schedule:
    """Return how a budget (7 judgments an item when None) is spent on a pool of this size."""
    total = 7 * size if budget is None else budget
    scarce = total <= 3.5 * size
    finals = min(max(20.0, (0.2 if scarce else 0.115) * total), 0.4 * total)
    games = games_per_round if games_per_round is not None else (1.0 if scarce else 2.0)
    return Schedule(
        budget=total,
        pruning=0 if size <= finalists else math.ceil(total - finals),
        power=0.7 if scarce else 1.0,
        games_per_round=games,
        prior_mean=0.2 if scarce else 0.0,
    )


class SwissFinals:
    """Finds the best item (or the ordered top few) and says how sure it is.

    `budget` is the number of judgments (7 an item when None), `cap` the most of one pair. While the field is
    pruned at most `games_per_round` games an item are out at once, in the finals `finals_round` pairs: the
    fewer, the better the choices; the more, the fewer rounds. `prior` gives a score to items, `confidence`
    ends the work once the best is that sure. An item leaves after `bad_votes` Bad votes. Items whose chance
    to be the best is at least `tie_share` of the largest share the first level; with `top` above 1 the
    answer is an order of single items instead.
    """

    name: ClassVar[str] = "swissfinals"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = 6,
        budget: int | None = None,
        finalists: int = 8,
        top: int = 1,
        games_per_round: float | None = None,
        finals_round: int = 8,
        prior: Mapping[str, float] | None = None,
        confidence: float | None = None,
        bad_votes: int = 1,
        tie_share: float = 0.3,
    ) -> None:
        _check(cap, budget, finalists, top, games_per_round, finals_round, confidence, tie_share)
        self.topic = topic
        self.seed = seed
        self.cap = math.inf if cap is None else cap
        self.top = top
        self.finals_round = finals_round
        self.confidence = confidence
        self.tie_share = tie_share
        self.finalists = max(finalists, min(10, top + 3)) if top > 1 else finalists
        self.schedule = schedule_for(len(items), budget, self.finalists, games_per_round)
        self._standings = Standings(items, bad_votes=bad_votes)
        self._prior = None if prior is None else standardised(prior, self._standings.items)
        self._answers: tuple[list[float], list[float], list[float]] = ([], [], [])
        self._seeding: _Seeding | None = None
        self._weight: tuple[int, float] = (-1, 0.0)
        self._finals: tuple[int, Finals] | None = None

    # ---- the log

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log; the first judgment of the finals fixes who is in them."""
        if isinstance(event, PhaseClosed):
            self._obey(event)
            return
        if event.phase == FINALS and self._seeding is None:
            self._seeding = self._seed_now()
        places = self._standings.add(event)
        if places is not None and self._prior is not None and self._seeding is None:
            self._learn(event, *places)

    def _obey(self, closing: PhaseClosed) -> None:
        if closing.phase != SWISS:
            return
        place = self._standings.place
        survivors = [place[item] for item in closing.survivors if item in place]
        seeding = self._seeding or self._seed_now()
        ranking = np.array(
            survivors + [i for i in seeding.ranking.tolist() if i not in set(survivors)], dtype=np.intp
        )
        self._seeding = replace(seeding, ranking=ranking)
        self._finals = None

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
    def prior_weight(self) -> float:
        """How many points of standing one deviation of the prior is worth, by the answers so far."""
        if self._prior is None:
            return 0.0
        if self._weight[0] != len(self._answers[0]):
            arrays = [np.array(column) for column in self._answers]
            b, deviation = learnt_weight(arrays[0], arrays[1], arrays[2], self.schedule.prior_mean)
            self._weight = (len(self._answers[0]), 4 * max(0.0, b - 0.5 * deviation))
        return self._weight[1]

    def _standing(self) -> Floats:
        if self._prior is None:
            return self._standings.score.copy()
        return self._standings.score + self.prior_weight * self._prior

    def _ranking(self) -> Indices:
        """Return the items that are in, the best standing first, ties at random."""
        chance = rng_for(self.seed, self.topic, self.name, "field", self._standings.told).random(
            len(self._standings.items)
        )
        order = np.lexsort((chance, -self._standing()))
        return order[~self._standings.out[order]]

    @property
    def field_size(self) -> int:
        """How many items the field has now, before the finals."""
        size = self._standings.left
        if size <= self.finalists:
            return size
        start = math.ceil(size * (1 - 0.5 * min(1.0, self.prior_weight / 2)))
        share = (
            (self._standings.told / self.schedule.pruning) ** self.schedule.power
            if self.schedule.pruning
            else 1.0
        )
        return max(self.finalists, math.ceil(start - (start - self.finalists) * min(1.0, share)))

    @property
    def in_finals(self) -> bool:
        """Whether the field has been pruned to the finalists."""
        return (
            self._seeding is not None
            or self._standings.told >= self.schedule.pruning
            or self._standings.left <= self.finalists
        )

    def finals(self) -> Finals:
        """Return the finalists (those that would be, while the field is still pruned) and their chances."""
        if self._finals is None or self._finals[0] != self._standings.told:
            self._finals = (self._standings.told, self._finals_now())
        return self._finals[1]

    def _finals_now(self) -> Finals:
        seeding = self._seeding or self._seed_now()
        ranking = seeding.ranking[~self._standings.out[seeding.ranking]]
        members = ranking[: self.finalists]
        net = self._standings.net(members)
        beyond = self._standing()[members] - net.sum(axis=1)
        posterior = order_posterior(
            net, self._standings.decided(members), outside=OUTSIDE * beyond, ranks=self.top > 1
        )
        odds = np.exp(LOST * (seeding.standing[ranking] - seeding.standing[ranking].max(initial=0.0)))
        lost = float(odds[self.finalists :].sum() / odds.sum()) if len(ranking) else 0.0
        return Finals(members, posterior, self._standings.met(members), lost)

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """The end of the pruning, once the finals have begun."""
        if self._seeding is None:
            return ()
        items = self._standings.items
        survivors = tuple(items[i] for i in self._seeding.ranking[: self.finalists].tolist())
        return (PhaseClosed(self.topic, SWISS, survivors),)

    @property
    def done(self) -> bool:
        """Whether the budget is spent, the wanted confidence reached, or no pair is left to ask."""
        if self._standings.left < 2 or self._standings.told >= self.schedule.budget:
            return True
        if not self.in_finals and self._open_in_field():
            return False
        finals = self.finals()
        if self.confidence is not None and self._sureness(finals) >= self.confidence:
            return True
        pairs = np.triu_indices(len(finals.members), 1)
        return bool((finals.met[pairs] >= self.cap).all())

    def _open_in_field(self) -> bool:
        size = self.field_size
        field = self._ranking()[:size].tolist()
        inside = set(field)
        for i in field:
            full = sum(
                1 for j, times in self._standings.meetings(i).items() if times >= self.cap and j in inside
            )
            if full < size - 1:
                return True
        return False

    # ---- asking

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs to judge now; empty while what is out must come back first, or when done."""
        if n <= 0 or self.done:
            return []
        out = self._standings.places(pending)
        room = min(n, self.schedule.budget - self._standings.told - len(pending))
        if not self.in_finals and self._open_in_field():
            limit = max(1, math.ceil(self.field_size * self.schedule.games_per_round / 2))
            room = min(room, limit - len(pending))
            phase, pairs = SWISS, self._swiss_pairs(room, out) if room > 0 else []
        else:
            room = min(room, self.finals_round - len(pending))
            phase, pairs = FINALS, self._finals_pairs(room, out) if room > 0 else []
        return [self._proposal(i, j, phase, len(pending) + at) for at, (i, j) in enumerate(pairs)]

    def _proposal(self, i: int, j: int, phase: str, at: int) -> Proposal:
        items, score = self._standings.items, self._standings.score
        pair = pair_of(items[i], items[j])
        lead = score[i] - score[j] if pair[0] == items[i] else score[j] - score[i]
        return Proposal(pair, phase=phase, proposal=f"{self._standings.told}.{at}{lead:+g}")

    def _swiss_pairs(self, room: int, out: list[tuple[int, int]]) -> list[tuple[int, int]]:
        field = self._ranking()[: self.field_size]
        size = len(field)
        at = {i: k for k, i in enumerate(field.tolist())}
        standing = self._standing()[field]
        games = self._standings.games[field]
        waiting: dict[int, dict[int, int]] = {}

        def count(k: int, other: int) -> None:
            games[k] += 1
            waiting.setdefault(k, {})[other] = waiting.get(k, {}).get(other, 0) + 1

        for i, j in out:
            if i in at:
                count(at[i], at.get(j, -1))
            if j in at:
                count(at[j], at.get(i, -1))
        chances = rng_for(self.seed, self.topic, self.name, SWISS, self._standings.told)
        chances.bit_generator.advance(2 * size * len(out))  # type: ignore[attr-defined]
        pairs: list[tuple[int, int]] = []
        for _ in range(room):
            u = chances.random(2 * size)
            turn = games + 0.5 * u[:size]
            while True:
                k = int(turn.argmin())
                if turn[k] == np.inf:
                    return pairs
                cost = np.abs(standing - standing[k])
                cost += REST * games
                cost += 0.2 * u[size:]
                for j, times in self._standings.meetings(int(field[k])).items():
                    if (other := at.get(j)) is not None:
                        cost[other] += REPEAT * times if times < self.cap else np.inf
                for other, times in waiting.get(k, {}).items():
                    if other < 0:
                        continue
                    cost[other] += REPEAT * times
                    if times + self._standings.meetings(int(field[k])).get(int(field[other]), 0) >= self.cap:
                        cost[other] = np.inf
                cost[k] = np.inf
                partner = int(cost.argmin())
                if cost[partner] < np.inf:
                    break
                turn[k] = np.inf
            count(k, partner)
            count(partner, k)
            pairs.append((int(field[k]), int(field[partner])))
        return pairs

    def _finals_pairs(self, room: int, out: list[tuple[int, int]]) -> list[tuple[int, int]]:
        finals = self.finals()
        members = finals.members.tolist()
        size = len(members)
        at = {i: k for k, i in enumerate(members)}
        met = finals.met.copy()
        for i, j in out:
            if i in at and j in at:
                met[at[i], at[j]] += 1
                met[at[j], at[i]] += 1
        np.fill_diagonal(met, np.iinfo(np.int64).max)
        first = finals.chances.first
        ladder = np.cumsum(first)
        chances = rng_for(self.seed, self.topic, self.name, FINALS, self._standings.told)
        chances.bit_generator.advance(2 * TRIES * len(out))  # type: ignore[attr-defined]
        pairs: list[tuple[int, int]] = []
        for turn in range(room):
            open_pairs = met < self.cap
            if not open_pairs.any():
                break
            drawn = np.searchsorted(ladder, chances.random((TRIES, 2)) * ladder[-1], side="right").clip(
                0, size - 1
            )
            usable = open_pairs[drawn[:, 0], drawn[:, 1]]
            ranks = finals.chances.mean_rank
            if ranks is not None and (self._standings.told + len(out) + turn) % 2:
                apart = met + 0.3 * np.abs(ranks[:, None] - ranks[None, :])
                x, y = divmod(int(np.where(open_pairs, apart, np.inf).argmin()), size)
            elif usable.any():
                x, y = drawn[int(usable.argmax())].tolist()
            else:
                x, y = divmod(int(np.where(open_pairs, np.outer(first, first), -1.0).argmax()), size)
            met[x, y] += 1
            met[y, x] += 1
            pairs.append((members[x], members[y]))
        return pairs

    # ---- the answer

    def _sureness(self, finals: Finals) -> float:
        return 0.9 * float(finals.chances.first.max(initial=0.0)) * (1 - finals.lost / 2)

    @property
    def posterior(self) -> dict[str, float]:
        """The chance of each finalist to be the best of the finalists."""
        finals = self.finals()
        return {
            self._standings.items[i]: float(chance)
            for i, chance in zip(finals.members.tolist(), finals.chances.first, strict=True)
        }

    @property
    def best_one(self) -> str | None:
        """The one item that is most likely the best; None when no item is left."""
        posterior = self.posterior
        return max(posterior, key=posterior.__getitem__) if posterior else None

    def result(self) -> Levels:
        """Return the tied best (or the ordered top), the other finalists, the rest by standing, Bad ones last."""
        items = self._standings.items
        finals = self.finals()
        first = finals.chances.first
        order = np.argsort(-first, kind="stable")
        levels: list[tuple[str, ...]] = []
        if len(order):
            tied = 1 if self.top > 1 else int((first >= self.tie_share * first.max()).sum())
            levels.append(tuple(items[finals.members[k]] for k in order[:tied].tolist()))
            rest = order[tied:]
            if finals.chances.mean_rank is not None:
                rest = rest[np.argsort(finals.chances.mean_rank[rest], kind="stable")]
            levels.extend((items[finals.members[k]],) for k in rest.tolist())
        standing = self._standing()
        outside = [
            i
            for i in range(len(items))
            if not self._standings.out[i] and i not in set(finals.members.tolist())
        ]
        values = sorted({float(standing[i]) for i in outside}, reverse=True)
        levels.extend(tuple(items[i] for i in outside if standing[i] == value) for value in values)
        if bad := tuple(items[i] for i in np.flatnonzero(self._standings.out).tolist()):
            levels.append(bad)
        return Levels(tuple(levels), self._sureness(finals) if len(order) else None)


def _lead_written_in(proposal: str) -> float:
    for sign in "+-":
        number = proposal.rpartition(sign)[2]
        if number != proposal:
            try:
                return float(sign + number)
            except ValueError:
                return 0.0
    return 0.0


def _check(  # noqa: PLR0917
    cap: int | None,
    budget: int | None,
    finalists: int,
    top: int,
    games_per_round: float | None,
    finals_round: int,
    confidence: float | None,
    tie_share: float,
) -> None:
    if cap is not None and cap < 1:
        raise BadParameter(
            f"The cap must be at least 1 judgment of a pair, not {cap}.", remedy="None: no cap."
        )
    if budget is not None and budget < 0:
        raise BadParameter(f"The budget must be a number of judgments from 0 on, not {budget}.")
    if not 2 <= finalists <= 10:
        raise BadParameter(f"There are 2 to 10 finalists, not {finalists}.")
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
