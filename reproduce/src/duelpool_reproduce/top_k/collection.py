"""TREC CAsT 2019 as the paper's release and the public runs have it."""

from pathlib import Path

import polars as pl

from duelpool.files import Qrels, read_qrels

GRADES = "cast19/2019qrels.txt"
COMBINED = "cast19/TREC-CAsT-2019.qrels"
LOCAL = "cast19/TREC-CAST-2019.local.qrels"
CROWD_JUDGMENTS = "cast19/TREC-CAsT-2019.pref"
LOCAL_JUDGMENTS = "cast19/TREC-CAsT-2019.local.pref"
RUN_FOLDERS = ("cast19/runs-decaf", "cast19/runs-thunlp", "cast19/runs-eiriksak")
BEST_VALUE, LEAST_TOP_VALUE = 50, 10  # values of the crowd's top five among the grades


def run_files(data: Path) -> list[Path]:
    """Return the public runs."""
    return sorted(path for folder in RUN_FOLDERS for path in (data / folder).glob("*.gz"))


def crowd_top(data: Path, least: float = LEAST_TOP_VALUE) -> Qrels:
    """Return the crowd's top five alone, or its best alone with `least` at 50."""
    return Qrels(read_qrels(data / COMBINED).frame.filter(pl.col("grade") >= least))
