"""The contract that every strategy keeps, as code: run it over your own before you rely on it.

    from duelpool.testing import strategy_contract
    strategy_contract("prefbest")        # raises ContractError, which names the broken promise

Each check of `STRATEGY_CHECKS` takes the name of a strategy in `STRATEGIES`, or its name and parameters
(`prefbest:final_phases=3`); a test suite may run them one by one. A strategy that is added to the table is checked
without more code.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import pairwise, product
from typing import Any, TypeAlias

import numpy as np

from duelpool.errors import BadParameter
from duelpool.records import Judgment, Levels, Outcome, PhaseClosed, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies import STRATEGIES, Strategy, make_strategy, replay
from duelpool.strategies.parameters import parameters_of, split_spec
from duelpool.testing.assessors import Answer, calling_bad, consistent, cyclic, noisy, pool_of, shuffled
from duelpool.testing.promises import ContractError, require

__all__ = [
    "STRATEGY_CHECKS",
    "Answer",
    "Loop",
    "calling_bad",
    "consistent",
    "contract_strategy",
    "cyclic",
    "milestone",
    "noisy",
    "pool_of",
    "same_state",
    "shuffled",
    "state_of",
    "strategy_contract",
    "two_runs",
]

Event: TypeAlias = Judgment | PhaseClosed

TOPIC = "contract"
EXACT_UP_TO = 9  # up to this size every strategy for the top k finds it exactly
SIZES = (2, 3, 5, 9, 13)
SEEDS = (1, 2, 3)
EXTREMES = ("0", "1", "2", "10000", "1e-9", "0.5", "0.89", "1.0", "100.0", "true", "false")  # of parameters


# ---- one topic's loop, in memory


@dataclass
class Loop:
    """A strategy, an assessor and the log between them."""

    strategy: Strategy
    answer: Answer
    seed: int = 0
    log: list[Event] = field(default_factory=list)
    closings: int = 0

    @property
    def judgments(self) -> list[Judgment]:
        """The judgments of the log."""
        return [event for event in self.log if isinstance(event, Judgment)]

    def judge(self, proposal: Proposal) -> Judgment:
        """Let the assessor judge a pair, tell the strategy, and log the judgment and the phases that it closed."""
        number = len(self.log)
        left, right = proposal.pair
        if rng_for(self.seed, "side", number).random() < 0.5:
            left, right = right, left
        judgment = Judgment(
            TOPIC,
            left,
            right,
            self.answer(left, right),
            phase=proposal.phase,
            proposal=proposal.proposal,
            assessor=f"assessor-{number}",
        )
        self.strategy.tell(judgment)
        self.log.append(judgment)
        self.log.extend(self.strategy.closed[self.closings :])
        self.closings = len(self.strategy.closed)
        return judgment

    def rounds(self, batch: int, limit: int = 100_000) -> Iterator[list[Proposal]]:
        """Ask for a batch, yield it, judge it in random order, until the strategy is done."""
        while not self.strategy.done:
            proposals = self.strategy.ask(batch)
            require(bool(proposals), "Not done and nothing pending: it must ask", events=len(self.log))
            yield proposals
            order = rng_for(self.seed, "order", len(self.log)).permutation(len(proposals))
            for at in order.tolist():
                self.judge(proposals[at])
            require(len(self.log) <= limit, "It must end", events=len(self.log))
        require(not self.strategy.ask(batch), "When it is done it doesn't ask")

    def play_live(self, outstanding: int, cap: int, limit: int = 100_000) -> "Loop":
        """Keep this many pairs pending; they are answered in random order, and one in ten is never answered."""
        pending: list[Proposal] = []
        for step in range(limit):
            pending += self.strategy.ask(outstanding - len(pending), tuple(pending))
            pairs = Counter(proposal.pair for proposal in pending)
            require(max(pairs.values(), default=0) <= 1, "A pending pair isn't asked again", pairs=pairs)
            pairs.update(judgment.pair for judgment in self.judgments)
            require(max(pairs.values(), default=0) <= cap, "Judged and pending keep to the cap", pairs=pairs)
            if not pending:
                require(self.strategy.done, "Not done and nothing pending: it must ask", events=len(self.log))
                return self
            rng = rng_for(self.seed, "live", step)
            proposal = pending.pop(int(rng.integers(len(pending))))
            if rng.random() >= 0.1:
                self.judge(proposal)
        raise ContractError("It must end, with answers in any order too")

    def play(self, batch: int = 1, limit: int = 100_000) -> "Loop":
        """Judge until the strategy is done."""
        for _ in self.rounds(batch, limit):
            pass
        return self


def _row_of(name: str) -> type[Strategy]:
    """Return the row of `STRATEGIES` that a name with or without parameters means."""
    return STRATEGIES[split_spec(name)[0]]


def _cap_for(name: str, cap: int) -> int:
    """Return a cap that the strategy accepts: each of its final phases needs a judgment of a pair."""
    return max(cap, int(split_spec(name)[1].get("final_phases", 1)))


def contract_strategy(
    name: str, truth: Sequence[str], seed: int = 0, cap: int | None = None, **parameters: Any
) -> Strategy:
    """Return the strategy over a pool as the contract makes it: one that compares runs gets two."""
    if _row_of(name).goal == "difference":
        parameters |= dict(zip(("run_a", "run_b"), two_runs(truth, seed), strict=True))
    return make_strategy(name, shuffled(truth), seed=seed, topic=TOPIC, cap=cap, **parameters)


def two_runs(truth: Sequence[str], seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two rankings of most of the pool, in random order."""
    keep = max(1, math.ceil(0.8 * len(truth)))
    first, second = (rng_for(seed, "run", at).permutation(list(truth))[:keep].tolist() for at in (0, 1))
    return tuple(first), tuple(second)


def state_of(value: object) -> object:
    """Return an object's whole state as plain values that can be compared bit for bit."""
    if isinstance(value, np.ndarray):
        return (value.shape, str(value.dtype), value.tobytes())
    if isinstance(value, dict):
        return tuple((state_of(key), state_of(inner)) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return tuple(state_of(inner) for inner in value)
    if isinstance(value, set | frozenset):
        return tuple(sorted(map(repr, value)))
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(state_of(getattr(value, each.name)) for each in fields(value))
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    if (slots or hasattr(value, "__dict__")) and not isinstance(value, type) and not callable(value):
        held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        held |= getattr(value, "__dict__", {})
        return tuple((name, state_of(inner)) for name, inner in sorted(held.items()))
    return repr(value)


def same_state(one: Strategy, other: Strategy) -> bool:
    """Whether two strategies have the same answers and the same state."""
    for strategy in (one, other):  # fills what is computed on demand
        strategy.ask(7)
        strategy.result()
    return (
        one.ask(7) == other.ask(7)
        and one.done == other.done
        and one.closed == other.closed
        and one.result() == other.result()
        and state_of(one) == state_of(other)
    )


# ---- the checks


def milestone(number: int) -> bool:
    """Whether to check this round: rounds 0, 1, 2, 4, 8 and so on."""
    return number & (number - 1) == 0


def check_row(name: str) -> None:
    """The row's name is the strategy's, and it says what it is."""
    strategy = _row_of(name)
    own = split_spec(name)[0]
    require(strategy.name == own, "The row has the strategy's own name", row=own, name=strategy.name)
    require(strategy.version >= 1, "It has a version from 1 on")
    require(strategy.goal in {"best", "top-k", "order", "difference"}, "It says what it finds")
    require(bool(strategy.__doc__), "It says in a sentence what it is")
    require(isinstance(contract_strategy(name, pool_of(3)), Strategy), "It has every method of a strategy")


def check_finds(name: str) -> None:
    """With a judge who never errs it reaches its goal, within its stated number of judgments.

    A strategy that ends with its budget states an ample one (`ample_per_item`).
    """
    ample: int | None = getattr(_row_of(name), "ample_per_item", None)
    for size in SIZES:
        for seed in SEEDS:
            truth = pool_of(size)
            parameters = {} if ample is None else {"budget": ample * size}
            strategy = contract_strategy(name, truth, seed, **parameters)
            loop = Loop(strategy, consistent(truth), seed).play()
            _require_goal(loop.strategy, truth, seed)
            most = loop.strategy.most_judgments(size)
            count = len(loop.judgments)
            require(most is None or count <= most, "It keeps to its stated count", count=count, most=most)
            expected = loop.strategy.expected_judgments(size)
            require(most is None or 0 <= expected <= most, "It expects no more than its stated count")


def _require_goal(strategy: Strategy, truth: Sequence[str], seed: int) -> None:
    result = strategy.result()
    seen = {"size": len(truth), "seed": seed, "levels": result.levels[:5]}
    if strategy.goal == "difference":
        _require_leader(strategy, truth, seed)
        return
    require(truth[0] in result.best, "It finds the best", **seen)
    if strategy.goal == "order":
        require(result.levels == tuple((item,) for item in truth), "It finds the exact order", **seen)
    elif strategy.goal == "top-k" and len(truth) <= EXACT_UP_TO:
        k = getattr(strategy, "k", 1)
        require(result.top(k) == tuple((item,) for item in truth[:k]), "It finds the top k in order", **seen)


def _require_leader(strategy: Any, truth: Sequence[str], seed: int) -> None:
    """Compare the verdict with precision of preferences, computed pair by pair from its definition."""
    scores = []
    for run in two_runs(truth, seed):
        rank = {item: at for at, item in enumerate(run)}
        pairs = [(a, b) for at, a in enumerate(truth) for b in truth[at + 1 :] if a in rank or b in rank]
        right = sum(rank.get(a, math.inf) < rank.get(b, math.inf) for a, b in pairs)
        scores.append(right / len(pairs) if pairs else 0.0)
    leader = "" if math.isclose(*scores) else "a" if scores[0] > scores[1] else "b"
    require(strategy.verdict().leader == leader, "It finds the better run", scores=scores, seed=seed)


def check_replay(name: str) -> None:
    """A strategy replayed from the log equals the live one, bit for bit."""
    truth = pool_of(12)
    odd = (Outcome.TIE, Outcome.LEFT_BAD, Outcome.DEFINITELY_RIGHT, Outcome.SKIP)
    for seed in SEEDS:
        loop = Loop(contract_strategy(name, truth, seed), noisy(truth, seed, odd), seed)
        for number, _ in enumerate(loop.rounds(batch=4)):
            if milestone(number):
                again = replay(contract_strategy(name, truth, seed), loop.log)
                require(
                    same_state(loop.strategy, again), "Replay equals live", seed=seed, events=len(loop.log)
                )
        again = replay(contract_strategy(name, truth, seed), loop.log)
        require(same_state(loop.strategy, again), "Replay equals live at the end", seed=seed)


def check_same_next_pairs(name: str) -> None:
    """The seed and the log fix the next pairs; asking changes nothing; other seeds ask other pairs."""
    truth = pool_of(12)
    first_asked = set()
    for seed in range(8):
        asked = contract_strategy(name, truth, seed).ask(5)
        first_asked.add(tuple(proposal.pair for proposal in asked))
    for seed in SEEDS:
        loop = Loop(contract_strategy(name, truth, seed), noisy(truth, seed), seed)
        for number, proposals in enumerate(loop.rounds(batch=3)):
            if milestone(number):
                again = replay(contract_strategy(name, truth, seed), loop.log).ask(3)
                require(again == proposals == loop.strategy.ask(3), "Same seed and log, same next pairs")
    require(len(first_asked) > 1, "The seed changes the choice", asked=first_asked)


def check_prefix(name: str) -> None:
    """Asking for k gives a prefix of asking for n, whatever is pending."""
    truth = pool_of(12)
    loop = Loop(contract_strategy(name, truth), noisy(truth, 1), 1)
    for number, _ in enumerate(loop.rounds(batch=3)):
        if number % 4 == 0:
            for pending in ((), tuple(loop.strategy.ask(2))):
                asked = loop.strategy.ask(20, pending)
                prefixes = (loop.strategy.ask(k, pending) == asked[:k] for k in (0, 1, 2, 5, 19))
                require(len(asked) <= 20 and all(prefixes), "Asking for k is a prefix of asking for n")


def check_pending(name: str) -> None:
    """Pending pairs are not asked again until they are no longer pending."""
    truth = pool_of(12)
    loop = Loop(contract_strategy(name, truth), noisy(truth, 2), 2)
    for number, _ in enumerate(loop.rounds(batch=3)):
        if number % 4:
            continue
        pending = loop.strategy.ask(4)
        more = loop.strategy.ask(10, pending)
        pairs = [proposal.pair for proposal in (*pending, *more)]
        require(len(set(pairs)) == len(pairs), "A pending pair isn't asked again", pairs=pairs)
        require(loop.strategy.ask(4) == pending, "A pair that is no longer pending is asked again")


def check_cap(name: str) -> None:
    """No pair is judged more often than its cap, with one judge at a time or several."""
    truth = pool_of(7)
    for cap in sorted({_cap_for(name, cap) for cap in (1, 2, 3)}):
        for batch in (1, 10):
            loop = Loop(contract_strategy(name, truth, 3, cap), noisy(truth, 3), 3).play(batch)
            most = max(Counter(judgment.pair for judgment in loop.judgments).values(), default=0)
            require(most <= cap, "The cap is kept", cap=cap, judged=most)


def check_live(name: str) -> None:
    """With several assessors, who answer in any order or not at all, the contract holds."""
    truth = pool_of(11)
    odd = (Outcome.TIE, Outcome.RIGHT_BAD)
    cap = _cap_for(name, 3)
    for seed in SEEDS:
        loop = Loop(contract_strategy(name, truth, seed, cap=cap), noisy(truth, seed, odd), seed)
        loop.play_live(outstanding=4, cap=cap)
        again = replay(contract_strategy(name, truth, seed, cap=cap), loop.log)
        require(same_state(loop.strategy, again), "Replay equals live with several assessors", seed=seed)


def check_order_within_phase(name: str) -> None:
    """Judgments that were pending together may arrive in any order, unless the strategy is sequential."""
    truth = pool_of(14)
    if _row_of(name).sequential:
        strategy = contract_strategy(name, truth)
        require(len(strategy.ask(5)) <= 1, "A sequential strategy asks one pair at a time")
        return
    loop = Loop(contract_strategy(name, truth, 4), noisy(truth, 4, (Outcome.TIE, Outcome.RIGHT_BAD)), 4)
    before: list[Event] = []
    for _ in loop.rounds(batch=1000):
        batch, before = loop.log[len(before) :], list(loop.log)
        start = before[: len(before) - len(batch)]
        judgments = [event for event in batch if isinstance(event, Judgment)]
        for turn in range(3):
            order = rng_for(turn, "shuffle", len(before)).permutation(len(judgments)).tolist()
            other = replay(contract_strategy(name, truth, 4), [*start, *(judgments[at] for at in order)])
            same = replay(contract_strategy(name, truth, 4), before)
            require(
                other.result() == same.result()
                and other.closed == same.closed
                and other.ask(99) == same.ask(99),
                "The order of judgments that were pending together doesn't matter",
                events=len(before),
            )


def check_closed_phases(name: str) -> None:
    """A phase that the log closes is closed, even when a judgment of it has been retracted."""
    truth = pool_of(24)
    loop = Loop(contract_strategy(name, truth, 5), noisy(truth, 5), 5).play(batch=1000)
    if not loop.strategy.closed:
        return
    first = loop.strategy.closed[0].phase
    retracted = next(judgment for judgment in loop.judgments if judgment.phase == first)
    again = replay(contract_strategy(name, truth, 5), [event for event in loop.log if event is not retracted])
    require(again.closed == loop.strategy.closed, "Replay follows the closed phases", closed=again.closed)


def check_small_pools(name: str) -> None:
    """Pools of 0, 1 and 2 items work, and every item is in the result at any time."""
    for size in (0, 1, 2, 3):
        truth = pool_of(size)
        strategy = contract_strategy(name, truth)
        _require_all_items(strategy.result(), truth)
        if size < 2:
            require(
                strategy.done and strategy.ask(3) == [], "Nothing to ask of fewer than two items", size=size
            )
        loop = Loop(strategy, consistent(truth)).play()
        _require_all_items(loop.strategy.result(), truth)


def _require_all_items(result: Levels, items: Sequence[str]) -> None:
    ranked = sorted(item for level in result.levels for item in level)
    require(ranked == sorted(items), "Every item is in the result once", ranked=ranked)


def check_asks_first(name: str) -> None:
    """Two or more items are never done without a judgment, and before the first no confidence is stated.

    Made as a campaign makes it, from text alone, a strategy asks too, or is refused for what it lacks.
    """
    made = _row_of(name)
    own = made.name
    try:
        plain = make_strategy(own, pool_of(5), seed=1, topic=TOPIC, cap=6)
    except BadParameter:
        lacks: Sequence[str] = getattr(made, "needs", ())
        require(bool(lacks), "It is made from its name alone, or says what it needs")
    else:
        require(bool(plain.ask(1)), "It asks when it is made from its name alone")
    specs = [own, *(f"{own}:{each}={value}" for each in parameters_of(made) for value in EXTREMES)]
    for spec in specs:
        for size, seed in product(range(2, 16), SEEDS):
            runs: dict[str, Any] = {"run_a": pool_of(size), "run_b": pool_of(size)[::-1]}
            runs = runs if made.goal == "difference" else {}
            try:
                strategy = make_strategy(spec, pool_of(size), seed=seed, topic=TOPIC, cap=6, **runs)
            except BadParameter:
                break  # no value of this parameter
            require(not strategy.done, "It isn't done before the first judgment", spec=spec, size=size)
            if spec == own:
                require(bool(strategy.ask(1)), "It asks", size=size)
                require(strategy.result().confidence is None, "No confidence without judgments", size=size)


def check_first_questions(name: str) -> None:
    """How many pairs it asks before any judgment follows from the size of the pool, unless it says otherwise."""
    for size in () if _row_of(name).first_questions_vary else (1, 2, 3, 4, 7, 11, 16, 23):
        found = set()
        for seed in SEEDS:
            strategy = make_strategy(name, [f"{seed}-{at}" for at in range(size)], seed=seed, cap=3)
            found.add((tuple(each.phase for each in strategy.ask(10_000)), strategy.done))
        require(len(found) == 1, "Pools of one size begin alike", size=size, found=found)


def check_ends(name: str) -> None:
    """Whether answers are tied, cyclic, Bad or erratic, it ends and has a result."""
    for size in (2, 3, 7, 11):
        truth = pool_of(size)
        answers: dict[str, Answer] = {
            "tied": lambda left, right: Outcome.TIE,
            "same": lambda left, right: Outcome.SAME,
            "both bad": lambda left, right: Outcome.BOTH_BAD,
            "left bad": lambda left, right: Outcome.LEFT_BAD,
            "cyclic": cyclic(truth),
            "erratic": noisy(truth, 7, tuple(Outcome)[:8]),
        }
        for answer in answers.values():
            for batch in (1, 50):
                loop = Loop(contract_strategy(name, truth, 6), answer, 6).play(
                    batch, limit=40 * size * size + 200
                )
                _require_all_items(loop.strategy.result(), truth)


def check_bad_item(name: str) -> None:
    """An item called Bad isn't asked about again and ranks below all others."""
    truth = pool_of(8)
    bad = truth[1]
    loop = Loop(contract_strategy(name, truth, 8), calling_bad(truth, bad), 8).play(batch=1)
    shown = sum(bad in judgment.pair for judgment in loop.judgments)
    require(shown <= 1, "A Bad item isn't asked about again", shown=shown)
    require(not shown or loop.strategy.result().levels[-1] == (bad,), "A Bad item ranks below all others")


def check_foreign(name: str) -> None:
    """Judgments that weren't asked for count; those of other items, and non-answers, change nothing."""
    truth = pool_of(6)
    strategy = contract_strategy(name, truth)
    before = strategy.ask(9)
    strategy.tell(Judgment(TOPIC, "unknown", truth[0], Outcome.LEFT))
    strategy.tell(Judgment(TOPIC, truth[0], truth[1], Outcome.CANNOT_JUDGE))
    require(strategy.ask(9) == before, "A judgment without news about the pool changes nothing")
    for better, worse in pairwise(truth):
        strategy.tell(Judgment(TOPIC, better, worse, Outcome.LEFT))
    loop = Loop(strategy, consistent(truth)).play()
    if strategy.goal != "difference":
        require(truth[0] in loop.strategy.result().best, "Judgments that weren't asked for do no harm")


STRATEGY_CHECKS: tuple[Callable[[str], None], ...] = (
    check_row,
    check_finds,
    check_replay,
    check_same_next_pairs,
    check_prefix,
    check_pending,
    check_cap,
    check_live,
    check_order_within_phase,
    check_closed_phases,
    check_small_pools,
    check_asks_first,
    check_first_questions,
    check_ends,
    check_bad_item,
    check_foreign,
)


def strategy_contract(name: str) -> None:
    """Run every check over one strategy, with any parameters; raise ContractError for the first that fails."""
    for check in STRATEGY_CHECKS:
        check(name)
