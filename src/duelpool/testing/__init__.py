"""The contracts as code: what every strategy and every store must keep. Run them over your own.

    from duelpool.testing import store_contract, strategy_contract
    strategy_contract("prefbest")        # raises ContractError, which says what isn't kept
    store_contract(store)

A strategy that is added to the table `STRATEGIES` is checked without further ado.
"""

from duelpool.testing.promises import ContractError
from duelpool.testing.stores import STORE_CHECKS, store_contract
from duelpool.testing.strategies import STRATEGY_CHECKS, strategy_contract

__all__ = ["STORE_CHECKS", "STRATEGY_CHECKS", "ContractError", "store_contract", "strategy_contract"]
