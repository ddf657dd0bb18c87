"""Duelpool finds the best answers in a pool with as few human preferences as possible.

    import duelpool as dp

    pools = dp.pool("runs/", qrels="qrels.txt", depth=10)
    result = dp.run(pools, judge=lambda topic, a, b: ...)   # returns the better one
    result.leaderboard().plot()

Data are paths, data frames of pandas or polars, dictionaries, or records. What is listed here is public; names of
modules below, such as `duelpool.files`, may change without notice.
"""

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from duelpool.api.asking import AskTell, strategy
    from duelpool.api.budgets import estimate, plan
    from duelpool.api.campaigns import Campaigns, OpenCampaign, open  # noqa: A004 - it is dp.open
    from duelpool.api.inputs import (
        read_answers,
        read_passages,
        read_preferences,
        read_qrels,
        read_run,
        read_topics,
    )
    from duelpool.api.pools import PoolSet, pool
    from duelpool.api.powering import powered
    from duelpool.api.running import JudgedPools, run
    from duelpool.api.scoring import Agreement, agreement, compare, evaluate, gate, simulate
    from duelpool.budget.plans.estimates import BudgetEstimate
    from duelpool.budget.plans.plan import Plan
    from duelpool.campaign.views.status import CampaignStatus
    from duelpool.client import Client, Refused
    from duelpool.errors import (
        BadFile,
        BadParameter,
        BadRecord,
        DuelpoolError,
        MissingExtra,
        UnknownName,
    )
    from duelpool.evaluation.compare import RunComparison
    from duelpool.evaluation.gate import GateResult
    from duelpool.evaluation.powered import PoweredBoard
    from duelpool.evaluation.result import Evaluation
    from duelpool.evaluation.systems import SystemBoard
    from duelpool.files import Answers, Passages, Preferences, Qrels, Run, Topics
    from duelpool.records import Judgment, Levels, Outcome, Passage, Pool, Proposal, Question, Topic
    from duelpool.simulation import SimulationResult
    from duelpool.strategies.base import Strategy

    __version__: str

_PLACES = {
    "api.inputs": "read_run read_qrels read_preferences read_topics read_passages read_answers",
    "api.pools": "pool PoolSet",
    "api.asking": "strategy AskTell",
    "api.running": "run JudgedPools",
    "api.scoring": "evaluate compare gate simulate agreement Agreement",
    "api.budgets": "plan estimate",
    "api.powering": "powered",
    "api.campaigns": "open Campaigns OpenCampaign",
    "campaign.views.status": "CampaignStatus",
    "client": "Client Refused",
    "files": "Run Qrels Preferences Topics Passages Answers",
    "records": "Topic Passage Pool Proposal Question Judgment Outcome Levels",
    "strategies.base": "Strategy",
    "evaluation.result": "Evaluation",
    "evaluation.compare": "RunComparison",
    "evaluation.gate": "GateResult",
    "evaluation.systems": "SystemBoard",
    "evaluation.powered": "PoweredBoard",
    "simulation": "SimulationResult",
    "budget.plans.plan": "Plan",
    "budget.plans.estimates": "BudgetEstimate",
    "errors": "DuelpoolError BadFile BadRecord BadParameter UnknownName MissingExtra",
}
_MODULE_OF = {name: f"duelpool.{place}" for place, names in _PLACES.items() for name in names.split()}

__all__ = [
    "Agreement",
    "Answers",
    "AskTell",
    "BadFile",
    "BadParameter",
    "BadRecord",
    "BudgetEstimate",
    "CampaignStatus",
    "Campaigns",
    "Client",
    "DuelpoolError",
    "Evaluation",
    "GateResult",
    "JudgedPools",
    "Judgment",
    "Levels",
    "MissingExtra",
    "OpenCampaign",
    "Outcome",
    "Passage",
    "Passages",
    "Plan",
    "Pool",
    "PoolSet",
    "PoweredBoard",
    "Preferences",
    "Proposal",
    "Qrels",
    "Question",
    "Refused",
    "Run",
    "RunComparison",
    "SimulationResult",
    "Strategy",
    "SystemBoard",
    "Topic",
    "Topics",
    "UnknownName",
    "__version__",
    "agreement",
    "compare",
    "estimate",
    "evaluate",
    "gate",
    "open",
    "plan",
    "pool",
    "powered",
    "read_answers",
    "read_passages",
    "read_preferences",
    "read_qrels",
    "read_run",
    "read_topics",
    "run",
    "simulate",
    "strategy",
]


def __getattr__(name: str) -> object:
    """Import a name when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("duelpool")
    elif name in _MODULE_OF:
        from importlib import import_module

        value = getattr(import_module(_MODULE_OF[name]), name)
    else:
        from duelpool.errors import known_names

        raise AttributeError(
            f"module 'duelpool' has no attribute '{name}'. {known_names(name, _MODULE_OF)}", name=name
        )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
