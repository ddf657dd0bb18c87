"""The settings of a new campaign: what only earlier releases accepted is refused, and what is left open filled in."""

import math
from collections.abc import Sequence
from dataclasses import replace

from duelpool.campaign.settings.settings import Settings
from duelpool.deciders import read_goal, read_spend
from duelpool.strategies import make_strategy


def settings_of_new(settings: Settings, pool_sizes: Sequence[int], runs: Sequence[str]) -> Settings:
    """Return the settings of a new campaign with these pools and runs.

    One that doesn't spend evenly gets as many judgments in all as spending evenly would take, unless a number is given.
    """
    if read_goal(settings.goal).of_systems:
        return settings
    plain = make_strategy(settings.strategy, (), seed=settings.seed, cap=settings.cap)
    spend = read_spend(settings.spend)
    spend.refuse_without(runs)
    if spend.is_even or settings.spend_judgments is not None:
        return settings
    even = math.fsum(plain.expected_judgments(size) for size in pool_sizes if size > 1)
    return replace(settings, spend_judgments=max(1, round(even)))
