"""What chooses the questions of one topic: its strategy, with rounds for late items, or a budget plan."""

from typing import Any

from duelpool.campaign.log.newcomers import with_newcomers
from duelpool.campaign.log.plan_source import PlanSource
from duelpool.campaign.settings import Settings
from duelpool.deciders import Spend, Stake, TopicPool, staged_topic
from duelpool.strategies import STRATEGIES, Strategy, make_strategy
from duelpool.strategies.parameters import parameters_of, split_spec
from duelpool.strategies.swissfinals import SwissFinals


def topic_strategy(settings: Settings, spend: Spend, pool: TopicPool) -> Strategy:
    """Return a topic's own strategy, with rounds for late items; or its questions of the plan."""
    if settings.plan:
        return PlanSource(pool.items, settings.planned(pool.topic) if settings.stage == "preferences" else ())
    name, parameters = split_spec(pool.strategy)
    more: dict[str, Any] = {}
    taken = parameters_of(STRATEGIES[name])
    if "bad_votes" in taken and "bad_votes" not in parameters:
        more["bad_votes"] = settings.bad_votes_needed
    if pool.prior and "prior" in taken:
        more["prior"] = pool.prior
    if pool.weights and "weights" in taken:
        more["weights"] = {name: min(1.0, weight) for name, weight in pool.weights.items()}
    if pool.shares and "shares" in taken:
        more["shares"] = pool.shares
    seed, cap = (
        settings.seed,
        max(1, settings.cap),
    )  # a refused cap of an old store: its log is read all the same

    def make(items: tuple[str, ...], called: str) -> Strategy:
        return make_strategy(pool.strategy, items, seed=seed, topic=called, cap=cap, stored=True, **more)

    if spend.is_even or name != SwissFinals.name:
        own = make(pool.first, pool.topic)
    else:
        stake = Stake.of(spend, pool.first, pool.scores)
        own = staged_topic(pool.strategy, pool.first, stake, seed=seed, topic=pool.topic, cap=cap, **more)
    return with_newcomers(own, pool.first, lambda items, late: make(items, f"{pool.topic}/{late}"))
