"""What the peers are asked: measures, and the committed inputs as every side reads them.

An answer is a number with a name such as `long ndcg_cut_10 7`: the input, the measure and the topic.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

Answers: TypeAlias = dict[str, float]

FOLDER = Path(__file__).parent / "inputs"
DECIMALS: Mapping[str, int] = MappingProxyType(
    {
        "trec_eval": 4,  # as many as it prints
        "pytrec_eval": 10,
        "ir_measures": 10,
        "choix": 8,
        "evalica": 8,
        "krippendorff": 10,
        "statsmodels": 10,
    }
)
"""The decimals that a peer's answers and ours must share."""

GRADED = ("hostile", "long", "negative")
PRECISE = ("precision",)  # scores that differ in double precision: to trec_eval 10, not to all before it
GRADES = (0, 1, 2, 3)
DISTANCES = ("nominal", "ordinal", "interval")
TREC_MEASURES = (
    *("ndcg", "ndcg_cut_3", "ndcg_cut_10", "map", "map_cut_3", "recip_rank", "P_5", "P_10"),
    *("recall_5", "recall_10", "success_1", "success_5", "bpref"),
)
IR_MEASURES = (
    *("nDCG", "nDCG@10", "AP", "AP(rel=2)", "RR", "P@5", "P(rel=2)@10", "R@10"),
    *("Success@5", "Judged@10", "Bpref"),
)  # not Compat: theirs goes to another depth and orders unranked documents differently
NEGATIVE = {"bpref", "Bpref", "Judged@10"}
"""Not asked on `negative`: ir_measures counts such a grade as judged. trec_eval doesn't, and is asked on `corners`."""

CORNERS = "trec_eval/corners"  # what trec_eval alone is asked, with its options
TREC_OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "": (*TREC_MEASURES, "set_P", "set_recall"),
        "-l 0": ("map", "recip_rank", "P_5", "recall_5", "success_1", "bpref", "set_P", "set_recall"),
        "-l 2": (*TREC_MEASURES, "set_P", "set_recall"),
        "-J": (*TREC_MEASURES, "set_P", "set_recall"),
        "-M 3": ("map", "recip_rank", "set_recall"),
    }
)
"""The measures that are asked with each option: the level of relevance, judged documents only, the depth."""


def asked(name: str, measures: tuple[str, ...]) -> list[str]:
    """Return the measures that are asked on an input."""
    return [each for each in measures if name != "negative" or each not in NEGATIVE]


def named(option: str, measure: str, topic: str) -> str:
    """Name an answer on `corners`: `corners -l 2 map all`."""
    return " ".join(("corners", *option.split(), measure, topic))


def pairs_of_grades() -> Iterator[tuple[str, str, str]]:
    """Take neighbours in the long qrels whose grades differ as preferences: topic, better, worse."""
    rows = [line.split() for line in (FOLDER / "long.qrels").read_text(encoding="utf-8").splitlines()]
    for (topic, _, a, grade), (next_topic, _, b, other) in pairwise(rows):
        if topic == next_topic and grade != other:
            yield (topic, a, b) if int(grade) > int(other) else (topic, b, a)


def votes(name: str) -> list[tuple[str, str, str]]:
    """Read comparisons: two items, and the winner or `=`."""
    rows = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [(a, b, winner) for a, b, winner in (row.split() for row in rows)]


def ratings(name: str) -> list[list[float]]:
    """Read the grades of each unit by person, nan where one gave none."""
    rows = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [[math.nan if grade == "-" else float(grade) for grade in row.split()] for row in rows]
