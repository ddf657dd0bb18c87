"""All pairs: asked in an order that the seed fixes, those with the fewest judgments first."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest

from duelpool.records import Judgment, Outcome, Pair, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies import allpairs
from duelpool.strategies.allpairs import AllPairs

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
        assert [each.pair for each in strategy.ask(n, [Proposal(pair) for pair in pending])] == free[:n]
        assert strategy.done == (not still)
        if pairs:
            left, right = random.sample(items, 2)
            judgment = Judgment("t", left, right, random.choices(OUTCOMES, (9, 9, 3, 1, 1))[0])
            strategy.tell(judgment)
            judged[judgment.pair] += 1
            bad.update(judgment.bad_items)
