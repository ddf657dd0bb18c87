"""Our scores beside the official ones: TREC Deep Learning 2021 and TREC-8."""

import csv
from concurrent.futures import Executor
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from duelpool.evaluation import evaluate
from duelpool.simulation import Progress
from duelpool_reproduce.base import Experiment
from duelpool_reproduce.budget_sets import read_trec8
from duelpool_reproduce.dueling_bandits.campaign import QRELS, RUNS
from duelpool_reproduce.verdicts import ComparisonReport, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DL_SCORES, TREC_SCORES = "dl21/official-summary-scores.tsv", "trec8/official-summary-scores.tsv"
TREC_QRELS, TREC_RUNS = "trec8/trec8.qrels.gz", "trec8/runs-top100"
THREE = "Which three documents, and with which scores and grades, is not given."
HALF_DIGIT = 0.00005
TREC_HALF_DIGIT = 0.00011  # its figures were cut, not rounded


def stated(path: Path, measure: str, task: str | None = None) -> dict[str, float]:
    """Return the official scores of the runs under a measure."""
    with path.open(encoding="utf-8") as lines:
        return {
            row["run"]: float(row["value"])
            for row in csv.DictReader(lines, delimiter="\t")
            if row["measure"] == measure
            and (task is None or (row["task"], row["summary"]) == (task, f"{task}-eval"))
        }


def official(
    trials: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path = Path(),
) -> ComparisonReport:
    """Score the submitted runs of two tracks, and count those that have their official scores."""
    theirs = stated(data / DL_SCORES, "ndcg_cut_10", "passages")
    ours = evaluate(data / QRELS, data / RUNS, "nDCG@10").means("nDCG@10")
    deep, ad_hoc = "TREC Deep Learning 2021", "TREC-8 ad hoc"
    rows = [
        Measured("runs of 63 with the official nDCG@10, to its last digit", 63,
                 sum(abs(value - theirs[run]) <= HALF_DIGIT for run, value in ours.items()), part=deep),
    ]  # fmt: skip
    scores = evaluate(data / TREC_QRELS, data / TREC_RUNS, ["P@15", "P@100"], rules={"missing": "zero"})
    columns = {"P_10": "P(missing='zero')@15", "P_100": "P(missing='zero')@100"}
    cut = "uwmt8a0's file was cut at rank 100 in double precision, which took away tied documents that had counted."
    known = {"P_100": 128}
    for column, measure in columns.items():
        truth = stated(data / TREC_SCORES, column)
        same = sum(abs(value - truth[run]) <= TREC_HALF_DIGIT for run, value in scores.means(measure).items())
        what = measure.replace("(missing='zero')", "")
        rows.append(
            Measured(f"runs of 129 whose {what} is the official column {column}", 129, same, known.get(column),
                     part=ad_hoc, why=cut)
        )  # fmt: skip
    trec = read_trec8(data)
    if trec is not None:
        precision = evaluate(data / TREC_QRELS, list(trec.runs), "P@10").means("P@10")
        rows += [
            Measured("runs judged to rank 100", None, trec.complete, 65, part=ad_hoc),
            Measured("of them different", None, len(trec.runs), 64, part=ad_hoc),
            Measured("mean P@10 of the different ones", None, fmean(precision.values()), 0.4203, within=HALF_DIGIT,
                     part=ad_hoc, digits=4),
        ]  # fmt: skip

    rows += [
        Measured(
            f"Compat of a run of three documents, {whose}",
            None,
            None,
            value,
            part="Other programs",
            why=THREE,
        )
        for whose, value in (("ir_measures", 0.377), ("its authors' script", 0.549))
    ]

    def draw() -> "Figure":
        from duelpool.plots import Scatter, panels

        p15 = stated(data / TREC_SCORES, "P_10")
        points = {run: (p15[run], value) for run, value in scores.means(columns["P_10"]).items()}
        return panels(
            [
                Scatter(deep, "official nDCG@10", "ours", {run: (theirs[run], ours[run]) for run in ours}),
                Scatter(ad_hoc, "official P@15 (column P_10)", "ours", points),
            ]
        )

    remarks = (
        "The column P_10 of TREC-8's scores holds P@15. Scores are compared in single precision, as trec_eval does: "
        "in double precision uwmt8a0 differs there too.",
        "The column paper holds the track's figures. The budget paper's figures of TREC-8 are under budget.",
    )
    return ComparisonReport("official-scores", tuple(rows), draw, remarks, seed=seed)


OFFICIAL = Experiment(
    "official-scores",
    "Our scores beside the tracks' official ones",
    1,
    1,
    official,
    reads=(QRELS, RUNS, DL_SCORES, TREC_QRELS, TREC_RUNS, TREC_SCORES),
    paper="trec",
    shows={"Official scores": "nDCG@10 of 63 runs, P@15 and P@100 of 129"},
    seconds=(6, 6),
)
