"""The contracts of strategies, deciders, measures, judges, stores and panels as code. Run them over your own.

    from duelpool.testing import decider_contract, judge_contract, measure_contract, panel_contract
    from duelpool.testing import store_contract, strategy_contract
    strategy_contract("prefbest")        # raises ContractError, which names the broken promise
    decider_contract("round-robin")
    measure_contract("nDCG")
    judge_contract("bt:sd=1")
    store_contract(store)
    panel_contract("prolific")

A strategy that is added to the table `STRATEGIES`, a decider to `DECIDERS`, a measure to `MEASURES`, or a panel to
`PANELS`, is checked without more code. So is what an installed package adds: `duelpool plugins --check`.
"""

from duelpool.testing.deciders import DECIDER_CHECKS, decider_contract
from duelpool.testing.judges import JUDGE_CHECKS, judge_contract
from duelpool.testing.measures import MEASURE_CHECKS, measure_contract
from duelpool.testing.panels import PANEL_CHECKS, panel_contract
from duelpool.testing.promises import ContractError
from duelpool.testing.stores import STORE_CHECKS, store_contract
from duelpool.testing.strategies import STRATEGY_CHECKS, strategy_contract

__all__ = [
    "DECIDER_CHECKS",
    "JUDGE_CHECKS",
    "MEASURE_CHECKS",
    "PANEL_CHECKS",
    "STORE_CHECKS",
    "STRATEGY_CHECKS",
    "ContractError",
    "decider_contract",
    "judge_contract",
    "measure_contract",
    "panel_contract",
    "store_contract",
    "strategy_contract",
]
