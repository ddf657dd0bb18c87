"""The contracts of strategies, deciders, stores and panels as code. Run them over your own.

    from duelpool.testing import decider_contract, panel_contract, store_contract, strategy_contract
    strategy_contract("prefbest")        # raises ContractError, which names the broken promise
    decider_contract("round-robin")
    store_contract(store)
    panel_contract("prolific")

A strategy that is added to the table `STRATEGIES`, a decider to `DECIDERS`, or a panel to `PANELS`, is checked
without more code.
"""

from duelpool.testing.deciders import DECIDER_CHECKS, decider_contract
from duelpool.testing.panels import PANEL_CHECKS, panel_contract
from duelpool.testing.promises import ContractError
from duelpool.testing.stores import STORE_CHECKS, store_contract
from duelpool.testing.strategies import STRATEGY_CHECKS, strategy_contract

__all__ = [
    "DECIDER_CHECKS",
    "PANEL_CHECKS",
    "STORE_CHECKS",
    "STRATEGY_CHECKS",
    "ContractError",
    "decider_contract",
    "panel_contract",
    "store_contract",
    "strategy_contract",
]
