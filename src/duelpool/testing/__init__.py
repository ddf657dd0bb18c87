"""The contracts of strategies, stores and panels as code. Run them over your own.

    from duelpool.testing import panel_contract, store_contract, strategy_contract
    strategy_contract("prefbest")        # raises ContractError, which names the broken promise
    store_contract(store)
    panel_contract("prolific")

A strategy that is added to the table `STRATEGIES`, or a panel to `PANELS`, is checked without more code.
"""

from duelpool.testing.panels import PANEL_CHECKS, panel_contract
from duelpool.testing.promises import ContractError
from duelpool.testing.stores import STORE_CHECKS, store_contract
from duelpool.testing.strategies import STRATEGY_CHECKS, strategy_contract

__all__ = [
    "PANEL_CHECKS",
    "STORE_CHECKS",
    "STRATEGY_CHECKS",
    "ContractError",
    "panel_contract",
    "store_contract",
    "strategy_contract",
]
