"""Measures: frozen values that score a run from grades, from preferences, or against another run."""

from duelpool.measures.base import Measure
from duelpool.measures.binary import AP, RR, Bpref, Judged, P, R, Success
from duelpool.measures.external import External
from duelpool.measures.gain import DCG, RBP, nDCG
from duelpool.measures.graph import PGC, Graph, greedy_order
from duelpool.measures.names import ALIASES, MEASURES, parse_measure
from duelpool.measures.overlap import RBO, Compat, rbo
from duelpool.measures.preference import BestRR, ppref, wpref
from duelpool.measures.rankings import ReadyRun
from duelpool.measures.truth import Truth

__all__ = [
    "ALIASES",
    "AP",
    "DCG",
    "MEASURES",
    "PGC",
    "RBO",
    "RBP",
    "RR",
    "BestRR",
    "Bpref",
    "Compat",
    "External",
    "Graph",
    "Judged",
    "Measure",
    "P",
    "R",
    "ReadyRun",
    "Success",
    "Truth",
    "greedy_order",
    "nDCG",
    "parse_measure",
    "ppref",
    "rbo",
    "wpref",
]
