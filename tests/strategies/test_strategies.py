"""The table of strategies, their specs, and a new strategy in the table."""

from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import Any, ClassVar

import pytest

from duelpool.errors import BadParameter, UnknownName
from duelpool.records import Judgment, Levels, Outcome, PhaseClosed, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies import STRATEGIES, make_strategy
from duelpool.strategies.prefbest import PrefBest
from duelpool.strategies.tables.win_table import WinTable
from duelpool.testing.promises import ContractError
from duelpool.testing.strategies import (
    STRATEGY_CHECKS,
    Loop,
    check_cap,
    check_finds,
    check_pending,
    check_prefix,
    check_replay,
    check_same_next_pairs,
    consistent,
    pool_of,
    strategy_contract,
)

ITEMS = ("a", "b", "c", "d")


def test_spec_makes_a_strategy_with_its_parameters() -> None:
    strategy = make_strategy("prefbest:n=3, m=4,final_phases=2", ITEMS, seed=1, topic="t", cap=6)
    assert isinstance(strategy, PrefBest)
    assert (strategy.degree, strategy.final_size, strategy.final_phases) == (3, 4, 2)


def test_values_are_read_as_the_types_of_the_constructor() -> None:
    dts: Any = make_strategy("dts:alpha=1e-1,budget=none", ITEMS, seed=1)
    assert (dts.alpha, dts.budget) == (0.1, 40)
    difference: Any = make_strategy(
        "difference:measure=wpref,early_stopping=no", ITEMS, seed=1, run_a=ITEMS, run_b=ITEMS[::-1]
    )
    assert (difference.measure, difference.early_stopping) == ("wpref", False)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("prefbest:depth=3", "Known: bad_votes, final_phases, m, n."),
        ("prefbest:n=seven", "whole number"),
        ("prefbest:n", "gives no value"),
        ("prefbest:n=0", "'n' is at least 1"),
        ("prefbest:final_phases=0", "'final_phases' is at least 1"),
        ("prefbest:final_phases=2.5", "whole number"),
        ("prefbest:bad_votes=0", "'bad_votes' is at least 1"),
        ("topk:k=7", "k < P < F"),
        ("knockout:k=0", "'k' is at least 1"),
        ("dts:alpha=-1", "'alpha' is at least 0"),
        ("dts:alpha=nan", "'alpha' is at least 0"),
        ("dts:alpha=inf", "'alpha' is a finite number"),
        ("mergedts:M=1", "'M' is at least 2"),
        ("mergedts:C=inf", "'C' is a finite number"),
        ("rucb:alpha=-1", "'alpha' is at least 0"),
        ("mergerucb:alpha=0.5", "'alpha' lies above 0.5"),
        ("mergerucb:M=1", "'M' is at least 2"),
        ("mergerucb:delta=0", "'delta' lies between 0 and 1"),
        ("beat-the-mean:gamma=-1", "'gamma' is at least 0"),
        ("active-ranking:delta=1", "'delta' lies between 0 and 1"),
        ("infogain-swiss:K=-1", "'K' is at least 0"),
        ("parwis:budget=0", "from 1 on, not 0"),
        ("round-efficient:delta=1", "'delta' lies between 0 and 1"),
        ("carry-on:passes=0", "'passes' is at least 1"),
        ("difference:measure=map", "ppref or wpref"),
        ("difference:run_a=a.run", "only Python can give"),
        ("difference:early_stopping=perhaps", "true or false"),
    ],
)
def test_a_bad_parameter_is_refused_with_a_remedy(spec: str, message: str) -> None:
    with pytest.raises(BadParameter) as refused:
        make_strategy(spec, ITEMS, seed=1)
    assert message in str(refused.value)


@pytest.mark.parametrize("given", [{}, {"run_a": ITEMS}, {"run_b": ITEMS}])
def test_difference_without_its_two_rankings_is_refused(given: dict[str, Any]) -> None:
    for items in (ITEMS, ()):
        with pytest.raises(BadParameter, match="compares two rankings") as refused:
            make_strategy("difference:measure=wpref", items, seed=1, **given)
        assert "in Python" in str(refused.value)
    assert make_strategy("difference", ITEMS, seed=1, stored=True).done  # as a campaign of an earlier release


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'prefbest'\?.*swissfinals"):
        make_strategy("prefbst", ITEMS, seed=1)


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(BadParameter, match="given twice"):
        make_strategy("knockout:k=2", ITEMS, seed=1, k=3)


@pytest.mark.parametrize("phases", [2, 3, 5])
def test_a_cap_below_the_final_phases_is_refused(phases: int) -> None:
    spec = f"prefbest:final_phases={phases}"
    with pytest.raises(BadParameter, match=f"too small for {phases} final phases"):
        make_strategy(spec, ITEMS, seed=1, cap=phases - 1)
    assert isinstance(make_strategy(spec, ITEMS, seed=1, cap=phases), PrefBest)


def test_a_pool_with_an_item_twice_is_refused() -> None:
    for name in STRATEGIES:
        with pytest.raises(BadParameter):
            make_strategy(name, ("a", "b", "a"), seed=1)


# ---- one more strategy: one class, one row


class Toy:
    """Asks about every pair once, in random order, and counts the wins."""

    name: ClassVar[str] = "toy"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "order"
    first_questions_vary: ClassVar[bool] = False

    def __init__(self, items: Sequence[str], *, seed: int, topic: str = "", cap: int | None = None) -> None:
        self.items = tuple(items)
        self.wins = dict.fromkeys(self.items, 0.0)
        pairs = [pair_of(a, b) for a, b in combinations(self.items, 2)]
        rng_for(seed, topic, self.name).shuffle(pairs)
        self.missing = dict.fromkeys(pairs)
        self.bad: set[str] = set()

    def tell(self, event: Judgment | PhaseClosed) -> None:
        if isinstance(event, PhaseClosed) or not event.effect.usable or not {*event.pair} <= {*self.items}:
            return
        self.missing.pop(event.pair, None)
        self.bad |= {*event.bad_items}
        if event.right is not None:
            self.wins[event.left] += event.effect.left
            self.wins[event.right] += event.effect.right

    def open_pairs(self) -> list[tuple[str, str]]:
        return [pair for pair in self.missing if self.bad.isdisjoint(pair)]

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        waiting = {proposal.pair for proposal in pending}
        return [Proposal(pair) for pair in self.open_pairs() if pair not in waiting][:n]

    @property
    def done(self) -> bool:
        return not self.open_pairs()

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        return ()

    def result(self) -> Levels:
        scores = {item: -1.0 if item in self.bad else wins for item, wins in self.wins.items()}
        levels = sorted(set(scores.values()), reverse=True)
        return Levels(tuple(tuple(i for i in self.items if scores[i] == level) for level in levels))

    def most_judgments(self, n_items: int) -> int | None:
        return n_items * (n_items - 1) // 2

    def expected_judgments(self, n_items: int) -> float:
        return n_items * (n_items - 1) / 2


def test_new_strategy_needs_only_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "toy", Toy)
    strategy_contract("toy")
    loop = Loop(make_strategy("toy", pool_of(5), seed=1), consistent(pool_of(5))).play()
    assert loop.strategy.result().best == (pool_of(5)[0],)


class Forgetful(Toy):
    """Asks for pending pairs again."""

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        return super().ask(n)


class Hasty(Toy):
    """Takes the first answers for the whole truth."""

    @property
    def done(self) -> bool:
        return len(self.missing) <= 1


class Backward(Toy):
    """Counts losses for wins."""

    def result(self) -> Levels:
        return Levels(super().result().levels[::-1])


class Wandering(Toy):
    """Draws from a generator of its own whenever it is asked."""

    calls = 0

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        Wandering.calls += 1
        asked = super().ask(n, pending)
        return asked[Wandering.calls % 2 :] or asked


class Repeating(Toy):
    """Asks about each pair three times, whatever the cap."""

    def __init__(self, items: Sequence[str], **options: Any) -> None:
        super().__init__(items, **options)
        self.seen: list[tuple[str, str]] = []

    def tell(self, event: Judgment | PhaseClosed) -> None:
        if isinstance(event, Judgment):
            self.seen.append(event.pair)
            if self.seen.count(event.pair) < 3 and event.pair in self.missing:
                return
        super().tell(event)


class Live(Toy):
    """Counts what it asked, which a replay of the log can't know."""

    asked = 0

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        self.asked += 1
        return super().ask(n, pending)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (Forgetful, check_pending),
        (Hasty, check_finds),
        (Backward, check_finds),
        (Wandering, check_prefix),
        (Wandering, check_same_next_pairs),
        (Repeating, check_cap),
        (Live, check_replay),
    ],
)
def test_the_contract_catches_a_planted_fault(
    monkeypatch: pytest.MonkeyPatch, fault: type[Toy], check: Callable[[str], None]
) -> None:
    monkeypatch.setitem(STRATEGIES, "toy", fault)
    with pytest.raises(ContractError):
        check("toy")


def test_every_check_of_the_contract_is_in_its_table() -> None:
    import duelpool.testing.strategies

    written = {name for name in vars(duelpool.testing.strategies) if name.startswith("check_")}
    assert written == {check.__name__ for check in STRATEGY_CHECKS}


def test_a_bad_vote_counts_once_per_assessor() -> None:
    strategy = make_strategy("allpairs:bad_votes=2,repeats=3", ("a", "b", "c"), seed=0)
    vote = Judgment("t", "a", "b", Outcome.LEFT_BAD, assessor="ann")
    strategy.tell(vote)
    strategy.tell(vote)
    assert any("a" in proposal.pair for proposal in strategy.ask(9))
    strategy.tell(Judgment("t", "a", "c", Outcome.LEFT_BAD, assessor="bob"))
    assert not any("a" in proposal.pair for proposal in strategy.ask(9))
    assert strategy.result().levels[-1] == ("a",)


def test_bad_votes_without_a_name_are_of_different_assessors() -> None:
    table = WinTable(("a", "b", "c"), bad_votes=2)
    for other in ("b", "c"):
        assert not table.bad.any()
        table.add(Judgment("t", "a", other, Outcome.LEFT_BAD))
    assert table.bad.tolist() == [True, False, False]
