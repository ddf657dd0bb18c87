"""The contract of simulated judges: the seed fixes the truth and every answer, in any order and on either side."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from duelpool.judges import TRUTHS, JudgeModel, make_judges
from duelpool.records import Outcome
from duelpool.testing.assessors import pool_of
from duelpool.testing.promises import require

MIRRORED = {
    Outcome.LEFT: Outcome.RIGHT,
    Outcome.DEFINITELY_LEFT: Outcome.DEFINITELY_RIGHT,
    Outcome.LEFT_BAD: Outcome.RIGHT_BAD,
}
MIRRORED |= {right: left for left, right in MIRRORED.items()}


def _pool(model: JudgeModel) -> tuple[str, tuple[str, ...]]:
    """Return a topic and its items: one that the model knows, or any."""
    return next(iter(model.pools.items()), ("contract", tuple(pool_of(model.size or 6))))


def answers_follow_the_seed(model: JudgeModel) -> None:
    """The same seed has the same answers, in whatever order pairs are asked and whichever side items are on."""
    topic, items = _pool(model)
    questions = [(a, b, nth) for a in items for b in items if a < b for nth in (1, 2, 3)]
    forward, backward = model.judge(topic, items, 5), model.judge(topic, items, 5)
    answers = {each: forward.answer(topic, *each) for each in questions}
    for a, b, nth in reversed(questions):
        swapped = backward.answer(topic, b, a, nth)
        require(
            answers[a, b, nth] == MIRRORED.get(swapped, swapped),
            "The seed fixes every answer, in any order and on either side",
            pair=(a, b),
            nth=nth,
        )
    require(forward.truth == backward.truth, "The seed fixes the truth")


def truth_holds_every_item(model: JudgeModel) -> None:
    """The true order has every item once, by every rule, and `truth` is Borda's."""
    topic, items = _pool(model)
    judge = model.judge(topic, items, 5)
    for rule in TRUTHS:
        listed = sorted(item for level in judge.true_order(rule).levels.levels for item in level)
        require(listed == sorted(items), "The truth has every item once", rule=rule, listed=listed)
    require(judge.true_order("borda").levels == judge.truth, "`truth` is the order by Borda's rule")


def chances_add_up(model: JudgeModel) -> None:
    """The chances that an item wins and that it loses add up to one."""
    topic, items = _pool(model)
    judge = model.judge(topic, items, 5)
    for a in items:
        for b in set(items) - {a}:
            both = (judge.win_chance(a, b), judge.win_chance(b, a))
            require(
                math.isclose(sum(both), 1.0), "The chances of two items add up to 1", pair=(a, b), seen=both
            )


JUDGE_CHECKS: Mapping[str, Callable[[JudgeModel], None]] = MappingProxyType(
    {check.__name__: check for check in (answers_follow_the_seed, truth_holds_every_item, chances_add_up)}
)
"""Every promise of simulated judges, by name."""


def judge_contract(spec: str) -> None:
    """Check every promise of judges such as `bt:sd=1`; raise ContractError for the first that is broken."""
    model = make_judges(spec)
    for check in JUDGE_CHECKS.values():
        check(model)
