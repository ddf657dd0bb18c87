"""All pairs: asked in an order that the seed fixes, those with the fewest judgments first."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest

from duelpool.records import Judgment, Outcome, Pair, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies import allpairs
from duelpool.strategies.allpairs import AllPairs
from duelpool.strategies.tables.pair_numbers import without
from support.traced import bytes_of_proposals, in_a_new_process

OUTCOMES = (Outcome.LEFT, Outcome.RIGHT, Outcome.TIE, Outcome.LEFT_BAD, Outcome.BOTH_BAD)


@pytest.mark.parametrize("seed", range(30))
def test_pairs_are_asked_in_the_order_of_a_plain_list(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(allpairs, "_AT_ONCE", 5)
    random = Random(seed)
    items = [f"i{at}" for at in range(random.randrange(0, 12))]
    repeats = random.randrange(1, 4)
    strategy = AllPairs(items, seed=seed, topic="t", repeats=repeats)
    pairs = [pair_of(a, b) for a, b in combinations(items, 2)]
    order = [pairs[at] for at in rng_for(seed, "t", "allpairs", "order").permutation(len(pairs))]
    judged: Counter[Pair] = Counter()
    bad: set[str] = set()
    for _ in range(40 if len(items) > 1 else 1):
        n = random.choice([0, 1, 4, 999])
        pending = {random.choice(pairs) for _ in range(random.randrange(3))} if pairs else set()
        still = [pair for pair in order if judged[pair] < repeats and bad.isdisjoint(pair)]
        free = sorted((pair for pair in still if pair not in pending), key=lambda pair: judged[pair])
        asked = strategy.ask(n, [Proposal(pair) for pair in pending])
        assert [each.pair for each in asked] == free[:n]
        assert_lists(strategy.ask_lazily(n, [Proposal(pair) for pair in pending]), asked, random)
        assert strategy.done == (not still)
        if pairs:
            left, right = random.sample(items, 2)
            judgment = Judgment("t", left, right, random.choices(OUTCOMES, (9, 9, 3, 1, 1))[0])
            strategy.tell(judgment)
            judged[judgment.pair] += 1
            bad.update(judgment.bad_items)


def assert_lists(lazily: Sequence[Proposal], asked: list[Proposal], random: Random) -> None:
    """Check that a sequence of proposals is this list, however it is looked at."""
    assert (list(lazily), len(lazily)) == (asked, len(asked))
    places = range(-len(asked), len(asked))
    assert [lazily[at] for at in places] == [asked[at] for at in places]
    assert list(lazily[2:7]) == asked[2:7]
    with pytest.raises(IndexError):
        lazily[len(asked)]
    some = {each.pair for each in random.sample(asked, min(3, len(asked)))} | {("elsewhere", "i0")}
    assert list(without(lazily, some)) == without(asked, some)
    assert {each.pair for each in asked if each not in without(asked, some)} == some - {("elsewhere", "i0")}


def test_a_million_proposals_take_little_memory() -> None:
    kept = in_a_new_process(bytes_of_proposals, 2_000, 10**6)  # of two million pairs
    assert kept < 20 * 10**6  # a number for each proposal and each pair of the order, not an object
