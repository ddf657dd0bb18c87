"""Evaluation from files against the field's tools, and what a command costs before it does anything.

Peers that aren't installed are named and left out. The TREC-8 rows need the runs (DUELPOOL_DATA) and trec_eval's
binary, on the PATH or as TREC_EVAL.
"""

import gzip
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import measures
from benchmarks.scale_parts.measuring import Row, cost_of, folder_for, least
from duelpool.cli.stored_help import FOLDER
from peers.installed import installed, tell_missing

RUNS = 60
TREC_RUNS = 40
OUR_MEASURES = ("nDCG@10", "AP", "P@10", "RR")
THEIR_MEASURES = ("ndcg_cut.10", "map", "P.10", "recip_rank")


def measure(size: float) -> list[Row]:
    """Measure at a size; 1.0 is 60 runs of 200 topics x 1000."""
    return [*_whole_evaluations(size), *_tiny_run(), *_trec_8(size), *_starts()]


def _whole_evaluations(size: float) -> Iterator[Row]:
    runs = max(2, round(RUNS * size))
    everybody = {"ours": measures.ours(*measures.MEASURES)}
    if installed("ir_measures"):
        everybody["ir_measures"] = measures.by_ir_measures()
    everybody["the Compat script"] = measures.Contender(
        measures.read_positive_grades, measures.plain_compatibility
    )
    if installed("pytrec_eval"):
        everybody["pytrec_eval"] = measures.by_pytrec_eval()
    with folder_for("files") as name:
        folder = Path(name)
        measures.make_collection(folder, runs)
        took = dict(zip(everybody, measures.seconds_of(list(everybody.values()), folder, 3), strict=True))
    tell_missing("pytrec_eval", "ir_measures")
    ours = took.pop("ours")
    yield Row(f"{RUNS} runs x 200 topics x 1000: load + four measures", ours, note=f"{runs} runs")
    bars = {"ir_measures": (40, 50), "the Compat script": (20, 35), "pytrec_eval": (5, 5)}
    for peer, theirs in took.items():
        yield Row(f"the same against {peer}", theirs / ours, "times", *bars[peer])


def _tiny_run() -> Iterator[Row]:
    with folder_for("tiny") as name:
        folder = Path(name)
        (folder / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 0\n", encoding="utf-8")
        (folder / "tiny.run").write_text("q1 Q0 d1 1 3.5 tiny\nq1 Q0 d2 2 2.5 tiny\n", encoding="utf-8")
        words = ("duelpool", "evaluate", str(folder / "qrels.txt"), str(folder / "tiny.run"), "-m", "nDCG@10")
        cost = least([cost_of(*words) for _ in range(5)])
    yield Row("evaluate of one tiny run, start included", cost.cpu, bar=0.5, goal=0.3)


def _trec_8(size: float) -> Iterator[Row]:
    program = os.environ.get("TREC_EVAL") or shutil.which("trec_eval")
    data = Path(os.environ.get("DUELPOOL_DATA", "nowhere"), "trec8")
    packed = sorted(data.glob("runs-top100/*.gz"))[: max(2, round(TREC_RUNS * size))]
    if program is None or not packed:
        print("TREC-8 is left out: it needs DUELPOOL_DATA, and trec_eval on the PATH or as TREC_EVAL.")
        return
    with folder_for("trec8") as name:
        folder = Path(name)
        (folder / "runs").mkdir()
        qrels = folder / "qrels.txt"
        qrels.write_bytes(gzip.decompress((data / "trec8.qrels.gz").read_bytes()))
        for path in packed:
            (folder / "runs" / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        asked = [word for each in OUR_MEASURES for word in ("-m", each)]
        ours = least([
            cost_of("duelpool", "evaluate", str(qrels), str(folder / "runs"), *asked, "--missing", "zero")
            for _ in range(3)
        ])  # fmt: skip
        asked = [word for each in THEIR_MEASURES for word in ("-m", each)]
        theirs = min(
            sum(
                cost_of(program, "-c", *asked, str(qrels), str(path)).cpu
                for path in (folder / "runs").iterdir()
            )
            for _ in range(3)
        )
    what = f"{len(packed)} TREC-8 runs of depth 100"
    yield Row(f"{TREC_RUNS} TREC-8 runs x 4 measures", ours.cpu, note=what)
    yield Row("the same against one call of trec_eval a run", theirs / ours.cpu, "times", 2, 4)


def _starts() -> Iterator[Row]:
    commands = [
        () if file.stem.startswith("duelpool") else file.stem.split(".") for file in FOLDER.glob("*.txt")
    ]
    slowest = max(least([cost_of("duelpool", *each, "--help") for _ in range(2)]).cpu for each in commands)
    yield Row("--help of any command", slowest, bar=0.25, note=f"the slowest of {len(commands)}")
    cost = least([cost_of(sys.executable, "-c", "import duelpool") for _ in range(5)])
    yield Row("import duelpool", cost.cpu, bar=0.2)
