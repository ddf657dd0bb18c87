"""Which pair to ask about next: one file a family, every strategy in one table.

A new strategy is one file, one row in `STRATEGIES` and one section in the documentation; the contract suite
in `duelpool.testing` runs every row of the table. Installed packages add rows by the entry point `duelpool.strategies`.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from duelpool.errors import BadParameter, UnknownName, known_names
from duelpool.plugins import PluginTable, lacks, misnamed
from duelpool.strategies.allpairs import AllPairs
from duelpool.strategies.base import Strategy, replay
from duelpool.strategies.difference import RankingDifference
from duelpool.strategies.knockout import Knockout
from duelpool.strategies.parameters import parameters_of, read_value, split_spec
from duelpool.strategies.peers.activeranking import ActiveRanking
from duelpool.strategies.peers.beatthemean import BeatTheMean
from duelpool.strategies.peers.infogain import InfoGainSwiss
from duelpool.strategies.peers.mergerucb import MergeRUCB
from duelpool.strategies.peers.parwis import Parwis
from duelpool.strategies.peers.rucb import RelativeUCB
from duelpool.strategies.prefbest import PrefBest
from duelpool.strategies.roundefficient import RoundEfficient
from duelpool.strategies.sorting import CarryOn, Sorting
from duelpool.strategies.swissfinals import SwissFinals
from duelpool.strategies.thompson import DoubleThompson, MergeDTS
from duelpool.strategies.topk import TopK

__all__ = ["STRATEGIES", "Strategy", "make_strategy", "replay"]

_OWN: dict[str, type[Strategy]] = {
    "swissfinals": SwissFinals,
    "prefbest": PrefBest,
    "topk": TopK,
    "knockout": Knockout,
    "allpairs": AllPairs,
    "sorting": Sorting,
    "carry-on": CarryOn,
    "difference": RankingDifference,
    "dts": DoubleThompson,
    "mergedts": MergeDTS,
    "round-efficient": RoundEfficient,
    "rucb": RelativeUCB,
    "mergerucb": MergeRUCB,
    "beat-the-mean": BeatTheMean,
    "active-ranking": ActiveRanking,
    "infogain-swiss": InfoGainSwiss,
    "parwis": Parwis,
}

_MEMBERS = (
    *("name", "version", "pools_judgments", "sequential", "goal", "first_questions_vary"),
    *("ask", "tell", "done", "closed", "result", "most_judgments", "expected_judgments"),
)


def _problem_of(name: str, made: Any) -> str:
    """Return why a class of a package can't be used as a strategy; an empty text where it can."""
    if problem := lacks(made, _MEMBERS) or misnamed(name, made):
        return problem
    parameters_of(made)  # what its constructor takes can be read
    return ""


STRATEGIES: PluginTable[type[Strategy]] = PluginTable("strategy", "duelpool.strategies", _OWN, _problem_of)


def make_strategy(
    spec: str,
    items: Sequence[str],
    *,
    seed: int,
    topic: str = "",
    cap: int | None = None,
    stored: bool = False,
    **parameters: Any,
) -> Strategy:
    """Return a new strategy from a text such as `prefbest:n=7,final_phases=2`.

    Parameters that can't be written as text, such as the two rankings of `difference`, are given by keyword. A `stored`
    text is that of a campaign, and may have what only earlier releases accepted: a budget of 0, or no rankings, with
    which it asks nothing.
    """
    name, texts = split_spec(spec)
    if name not in STRATEGIES:
        raise UnknownName("strategy", name, STRATEGIES)
    make = cast("Callable[..., Strategy]", STRATEGIES[name])
    known = parameters_of(make)
    for parameter in (*texts, *parameters):
        if parameter not in known:
            raise BadParameter(
                f"{name} has no parameter '{parameter}'.", remedy=known_names(parameter, known)
            )
    if repeated := sorted(set(texts) & set(parameters)):
        raise BadParameter(
            f"'{repeated[0]}' is given twice, in '{spec}' and by keyword.", remedy="Give it once."
        )
    values = {key: read_value(name, key, text, known[key]) for key, text in texts.items()}
    if not stored and {**values, **parameters}.get("budget") == 0:
        raise BadParameter("The budget must be a number of judgments from 1 on, not 0.")
    made = make(tuple(items), seed=seed, topic=topic, cap=cap, **values, **parameters)
    needs: Sequence[str] = getattr(made, "needs", ())
    if not stored and (missing := [each for each in needs if each not in parameters]):
        raise BadParameter(
            f"{name} compares two rankings, and has no '{missing[0]}'.",
            remedy=f"Give {' and '.join(needs)} in Python; a campaign takes another strategy.",
        )
    return made
