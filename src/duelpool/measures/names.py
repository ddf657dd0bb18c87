"""Measures by name: one table, and the grammar of their text forms."""

import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from types import MappingProxyType
from typing import Any, cast

from duelpool.errors import BadParameter, known_names
from duelpool.measures.base import Measure
from duelpool.measures.binary import AP, RR, Bpref, Judged, P, R, Success
from duelpool.measures.external import external
from duelpool.measures.gain import DCG, RBP, nDCG
from duelpool.measures.grammar import name_and_parameters
from duelpool.measures.graph import PGC
from duelpool.measures.overlap import RBO, Compat
from duelpool.measures.preference import BestRR, ppref, wpref
from duelpool.plugins import PluginTable, lacks, misnamed

_OWN: dict[str, type[Measure]] = {
    measure.name: measure
    for measure in (
        nDCG, DCG, AP, RR, P, R, RBP, Bpref, Success, Judged, Compat, RBO, PGC, ppref, wpref, BestRR,
    )
}  # fmt: skip


def _problem_of(name: str, made: Any) -> str:
    """Return why a class of a package can't be used as a measure; an empty text where it can."""
    if problem := lacks(made, ("name",)) or misnamed(name, made):
        return problem
    if not issubclass(made, Measure) or not is_dataclass(made):
        return "it is no frozen dataclass of the base `duelpool.measures.Measure`."
    if not name.isidentifier():
        return "its name isn't made of letters, digits and underscores."
    cast("type[Measure]", made)()  # made from its name alone
    return ""


MEASURES: PluginTable[type[Measure]] = PluginTable("measure", "duelpool.measures", _OWN, _problem_of)

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "map": "AP",
        "mrr": "RR",
        "recip_rank": "RR",
        "precision": "P",
        "recall": "R",
        "ndcg_cut": "nDCG",
        "map_cut": "AP",
        "set_p": "P",
        "set_recall": "R",
        "compatibility": "Compat",
    }
)
"""Other names of the same measures, trec_eval's among them; a number after them is the cutoff."""

_BY_NAME = {name.casefold(): name for name in _OWN} | dict(ALIASES)
_TREC_NAME = re.compile(r"([A-Za-z][A-Za-z_]*?)[_.]([0-9]+)")
_DCG_FORMS = {"log2": "linear", "exp-log2": "exponential"}  # what ir_measures calls nDCG's gains


def parse_measure(text: str) -> Measure:
    """Return the measure that a text such as `nDCG@10`, `Compat(p=0.8)` or `ndcg_cut_10` names."""
    text = text.strip()
    if trec := _TREC_NAME.fullmatch(text):
        name = _BY_NAME.get(trec[1].casefold())
        if name:
            return _made(name, {"cutoff": int(trec[2])}, text)
    name, parameters = name_and_parameters(text)
    known = _BY_NAME.get(name.casefold()) or (name if name in MEASURES else None)
    return external(text, MEASURES, ALIASES) if known is None else _made(known, parameters, text)


def _made(name: str, parameters: dict[str, object], text: str) -> Measure:
    measure = MEASURES[name]
    if name == "nDCG" and parameters.get("dcg") in _DCG_FORMS:
        parameters["gain"] = _DCG_FORMS[str(parameters.pop("dcg"))]
    if parameters.get("judged_only") in (True, False):
        parameters["unjudged"] = "remove" if parameters.pop("judged_only") else "keep"
    if parameters.get("log") == 2:
        parameters["log"] = "2"
    known = measure.parameters()
    if unknown := [key for key in parameters if key not in known]:
        what = "cutoff" if unknown[0] == "cutoff" else f"parameter '{unknown[0]}'"
        raise BadParameter(f"{name} has no {what} (in '{text}').", remedy=known_names(unknown[0], known))
    return measure(**parameters)  # type: ignore[arg-type]
