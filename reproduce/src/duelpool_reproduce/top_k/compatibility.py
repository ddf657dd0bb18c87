"""Tables 1 and 3 of the paper: how compatibility orders and tells apart the runs, beside nDCG.

The paper scored the 42 automatic runs of the track, which are not public; here are 25 public runs of others on the
same topics. What must hold on both is the relation: high tau, and sensitivity that rises from grades to combined.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from duelpool.comparison import ScoreTable, difference, kendall_tau, sensitivity
from duelpool.evaluation import Evaluation, evaluate
from duelpool.measures import Compat, parse_measure
from duelpool.simulation import Progress
from duelpool_reproduce.base import Experiment, Section
from duelpool_reproduce.top_k.collection import (
    BEST_VALUE,
    COMBINED,
    GRADES,
    LOCAL,
    RUN_FOLDERS,
    crowd_top,
    run_files,
)
from duelpool_reproduce.verdicts import ComparisonReport, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from duelpool.plots import Intervals

PERSISTENCE: Mapping[int, float] = {3: 0.80, 5: 0.85, 10: 0.90, 20: 0.95}  # p for nDCG at a rank, as tuned
TUNED_OVER = tuple(round(0.50 + 0.01 * step, 2) for step in range(50))
OTHER_RUNS = "The paper's 42 runs are not public: these are 25 others on the same topics and judgments."
STARRED = "The paper's 42 runs are not public, and no public run has these two's names."
TREC_8 = ("trec8/trec8.qrels.gz", "trec8/runs-top100")
DL_21 = ("dl21/qrels.dl21-passage.txt", "dl21/runs")


@cache
def compat(p: float, *, as_trec_eval: bool = True) -> str:
    """Return compatibility's name, with equal scores ordered as trec_eval does or as its authors do."""
    return str(Compat(p=p) if as_trec_eval else Compat(p=p, ties="docno-ascending", scores="double"))


def ndcg(k: int) -> str:
    """Return the name of nDCG at a rank."""
    return str(parse_measure(f"nDCG@{k}"))


def scored(data: Path) -> dict[str, Evaluation]:
    """Score the runs under each kind of judgments that the paper has."""
    runs = run_files(data)
    measures = [compat(p, as_trec_eval=by) for p in PERSISTENCE.values() for by in (True, False)]
    kinds: Mapping[str, object] = {
        "combined": data / COMBINED,
        "top-5 only": crowd_top(data),
        "best only, local": data / LOCAL,
        "best only, crowd": crowd_top(data, BEST_VALUE),
    }
    graded = evaluate(data / GRADES, runs, [*map(ndcg, PERSISTENCE), *measures])
    return {"graded only": graded} | {name: evaluate(truth, runs, measures) for name, truth in kinds.items()}


def table1(
    trials: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path = Path(),
    *,
    tuned_over: Sequence[float] = TUNED_OVER,
) -> ComparisonReport:
    """Compare nDCG@k and compatibility by grades at four ranks, and tune p on other collections."""
    runs = run_files(data)
    names = [compat(p, as_trec_eval=by) for p in PERSISTENCE.values() for by in (True, False)]
    evaluation = evaluate(data / GRADES, runs, [*map(ndcg, PERSISTENCE), *names])
    paper = {
        3: (0.717, 0.710, 0.907),
        5: (0.726, 0.735, 0.920),
        10: (0.766, 0.765, 0.910),
        20: (0.782, 0.794, 0.956),
    }
    before = {3: (0.803, 0.820, 0.880)}
    rows = []
    for k, p in PERSISTENCE.items():
        ours = (
            sensitivity(evaluation.tables[ndcg(k)]).share,
            sensitivity(evaluation.tables[compat(p)]).share,
            kendall_tau(evaluation.means(ndcg(k)), evaluation.means(compat(p))),
        )
        what = (f"sensitivity of nDCG@{k}", f"sensitivity of Compat, p={p:.2f}", "tau of the two")
        for at, name in enumerate(what):
            known = before[k][at] if k in before else None
            rows.append(
                Measured(name, paper[k][at], ours[at], known, None, 0.0005, OTHER_RUNS, f"Table 1, k={k}", 3)
            )
    taus = [row.ours or 0.0 for row in rows if row.figure.startswith("tau")]
    relation = "What the paper concludes"
    rows.append(
        Measured("of 4 taus, those over 0.9 (Figure 4)", 4, sum(tau > 0.9 for tau in taus), part=relation,
                 why=OTHER_RUNS)
    )  # fmt: skip
    rows.append(
        Measured("largest gap of the two sensitivities", (-inf, 0.012), _largest_gap(rows), None, None, 0.005,
                 part=relation, why=OTHER_RUNS)
    )  # fmt: skip
    shares = [
        [row.ours or 0.0 for row in rows if row.figure.startswith(f"sensitivity of {m}")] for m in ("n", "C")
    ]
    rows += [
        Measured(
            f"sensitivity of {name} rises with {by} (1: yes)", 1, int(line == sorted(line)), part=relation
        )
        for name, by, line in zip(("nDCG@k", "Compat"), "kp", shares, strict=True)
    ]
    curves = tuning_curves(data, tuned_over)
    rows += _tuned(curves)

    def draw() -> "Figure":
        from duelpool.plots import Scatter, panels

        pictures = []
        for k, p in PERSISTENCE.items():
            x, y = evaluation.means(ndcg(k)), evaluation.means(compat(p))
            title = f"Figure 4: τ = {kendall_tau(x, y):.3f}"
            points = {run: (x[run], y[run]) for run in x}
            pictures.append(Scatter(title, ndcg(k), f"compatibility, p={p:.2f}", points))
        return panels(pictures)

    authors = [
        f"k={k}: {sensitivity(table).share:.3f} and {kendall_tau(evaluation.means(ndcg(k)), _means(table)):.3f}"
        for k, p in PERSISTENCE.items()
        if (table := evaluation.tables[compat(p, as_trec_eval=False)])
    ]
    remarks = (
        "Equal scores are ordered as trec_eval does for both measures. By the order of compatibility's authors its "
        f"sensitivity and tau are, {'; '.join(authors)}.",
        "The paper tuned p by hand on the TREC Web Track. Here: all p from 0.50 to 0.99 on three other collections, "
        "the tau with nDCG@k of the best p beside that of the paper's p.",
    )
    values = {"tuning": {name: {str(k): line for k, line in of.items()} for name, of in curves.items()}}
    return ComparisonReport("topk-table1", tuple(rows), draw, remarks, seed=seed, values=values)


def _largest_gap(rows: list[Measured]) -> float:
    shares = [row.ours or 0.0 for row in rows if row.figure.startswith("sensitivity")]
    return max(abs(a - b) for a, b in zip(shares[::2], shares[1::2], strict=True))


def tuning_curves(
    data: Path, tuned_over: Sequence[float] = TUNED_OVER
) -> dict[str, dict[int, dict[float, float]]]:
    """Return tau of nDCG@k and compatibility for every p tried, on each collection that is there."""
    collections: dict[str, tuple[object, object]] = {"CAsT 2019": (data / GRADES, run_files(data))}
    for name, files in {"DL 2021": DL_21, "TREC-8": TREC_8}.items():
        if all((data / file).exists() for file in files):
            collections[name] = (data / files[0], data / files[1])
    curves = {}
    for name, (truth, runs) in collections.items():
        names = {p: compat(p) for p in tuned_over}
        result = evaluate(truth, runs, [*map(ndcg, PERSISTENCE), *names.values()])
        curves[name] = {
            k: {p: kendall_tau(result.means(ndcg(k)), result.means(names[p])) for p in tuned_over}
            for k in PERSISTENCE
        }
    return curves


def _tuned(curves: Mapping[str, Mapping[int, Mapping[float, float]]]) -> list[Measured]:
    rows = []
    for name, of_collection in curves.items():
        for k, line in of_collection.items():
            best = max(line, key=lambda p: line[p])
            rows.append(
                Measured(
                    f"{name}, k={k}: tau short of the best p ({best:.2f})",
                    None,
                    line[best] - line[PERSISTENCE[k]],
                    part="Tuning p to nDCG@k: how much the paper's p gives away",
                )
            )
    return rows


def table3(
    trials: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path = Path(),
) -> ComparisonReport:
    """Compare compatibility under grades, both combined, the top five and the best alone, with nDCG."""
    evaluations = scored(data)
    graded = evaluations["graded only"]
    paper: dict[tuple[int, str], tuple[float | None, float | None]] = {
        (3, "combined"): (0.765, 0.851),
        (3, "top-5 only"): (0.733, 0.814),
        (3, "best only, local"): (0.552, 0.775),
        (3, "best only, crowd"): (None, None),
        (5, "combined"): (0.778, 0.851),
    }
    before = {(3, "combined"): (0.830, 0.833)}
    shares: dict[str, float] = {}
    rows = []
    for k in (3, 5):
        shares[f"nDCG@{k}"] = sensitivity(graded.tables[ndcg(k)]).share
        shares[f"graded only {k}"] = sensitivity(graded.tables[compat(PERSISTENCE[k])]).share
        for (at, kind), (in_paper, tau_in_paper) in paper.items():
            if at != k:
                continue
            table = evaluations[kind].tables[compat(PERSISTENCE[k])]
            shares[f"{kind} {k}"] = share = sensitivity(table).share
            tau = kendall_tau(graded.means(ndcg(k)), _means(table))
            known_share, known_tau = before.get((k, kind), (None, None))
            part = f"Table 3, k={k}"
            rows += [
                Measured(
                    f"sensitivity, {kind}", in_paper, share, known_share, None, 0.0005, OTHER_RUNS, part
                ),
                Measured(
                    f"tau with nDCG@{k}, {kind}", tau_in_paper, tau, known_tau, None, 0.0005, OTHER_RUNS, part
                ),
            ]
    rows += _relations(shares)
    rows += [
        Measured(
            f"pgbert over clacBase by {name}, %",
            stated,
            None,
            why=STARRED,
            part="The starred and the circled run",
        )
        for name, stated in (("nDCG@3", 15), ("compatibility", 97))
    ]
    authors = [
        kendall_tau(graded.means(ndcg(3)), evaluations[kind].means(compat(0.8, as_trec_eval=False)))
        for kind in ("graded only", "combined")
    ]
    best, rest = _leaders(evaluations["combined"].tables[compat(0.8)])
    remarks = (
        "Its rows of nDCG and of grades alone are Table 1's: see topk-table1.",
        f"By the order of equal scores of compatibility's authors the taus at k=3 are {authors[0]:.3f} graded and "
        f"{authors[1]:.3f} combined: one pair of runs changes places.",
        f"Here the best run, {best}, is above {len(graded.runs) - 1 - rest} of the others with p < 0.05, uncorrected.",
    )

    def draw() -> "Figure":
        from duelpool.plots import Intervals, Panel, Scatter, panels

        def against(kind: str, k: int, title: str) -> Scatter:
            x, y = graded.means(ndcg(k)), evaluations[kind].means(compat(PERSISTENCE[k]))
            label = f"compatibility, p={PERSISTENCE[k]:.2f}, {kind}"
            return Scatter(title, ndcg(k), label, {run: (x[run], y[run]) for run in x})

        def by_run(table: ScoreTable, label: str) -> "Intervals":
            return Intervals("Figure 9: 95 % intervals", label, intervals_by_run(table))

        pictures: list[Panel] = []
        for k in (3, 5):
            pictures += [
                against("combined", k, "Figure 9"),
                by_run(
                    evaluations["combined"].tables[compat(PERSISTENCE[k])],
                    f"compatibility, p={PERSISTENCE[k]:.2f}",
                ),
                by_run(graded.tables[ndcg(k)], ndcg(k)),
            ]
        pictures += [
            against("top-5 only", 3, "Figure 10"),
            against("best only, local", 3, "Figure 11"),
            against("best only, crowd", 3, "as Figure 11, crowd"),
        ]
        return panels(pictures, across=3)

    tables = {ndcg(3): graded.tables[ndcg(3)], "combined": evaluations["combined"].tables[compat(0.8)]}
    values = {
        "intervals": {
            name: {run: [mean, low, high] for run, mean, low, high in intervals_by_run(table)}
            for name, table in tables.items()
        }
    }
    listed = intervals_table(*tables.values())
    return ComparisonReport("topk-table3", tuple(rows), draw, remarks, (listed,), seed=seed, values=values)


def _means(table: ScoreTable) -> dict[str, float]:
    return dict(zip(table.runs, table.means().tolist(), strict=True))


def _relations(shares: Mapping[str, float]) -> list[Measured]:
    """Return what the paper concludes from Table 3, each 1 where it holds here too."""
    holds = {
        "combined tells more apart than grades, k=3": shares["combined 3"] > shares["graded only 3"],
        "combined tells more apart than grades, k=5": shares["combined 5"] > shares["graded only 5"],
        "combined tells more apart than nDCG@3": shares["combined 3"] > shares["nDCG@3"],
        "top five alone: less than combined": shares["top-5 only 3"] < shares["combined 3"],
        "top five alone: more than grades": shares["top-5 only 3"] > shares["graded only 3"],
        "best alone tells the fewest apart": min(shares, key=lambda name: shares[name])
        == "best only, local 3",
    }
    return [
        Measured(name, 1, int(held), part="What the paper concludes (1: it holds)", why=OTHER_RUNS)
        for name, held in holds.items()
    ]


def _leaders(table: ScoreTable) -> tuple[str, int]:
    """Return the best run, and how many others it is not above for sure."""
    best, *others = table.order()
    return best, sum(difference(table, best, other).p >= 0.05 for other in others)


def intervals_by_run(table: ScoreTable) -> list[tuple[str, float, float, float]]:
    """Return every run's mean and its 95 % interval, the best run first."""
    ends = dict(zip(table.runs, table.intervals().tolist(), strict=True))
    means = _means(table)
    return [(run, means[run], *ends[run]) for run in table.order()]


def intervals_table(graded: ScoreTable, combined: ScoreTable) -> Section:
    """Return every run's mean and 95 % interval under nDCG@3 and under compatibility, combined."""
    first, second = ({row[0]: row[1:] for row in intervals_by_run(table)} for table in (graded, combined))
    rows = tuple(
        (run, *("{:.3f} ({:.3f}-{:.3f})".format(*ends[run]) for ends in (first, second)))
        for run in combined.order()
    )
    return Section("Figure 9: means and 95 % intervals by run", ("run", "nDCG@3", "Compat, combined"), rows)


TABLE1 = Experiment(
    "topk-table1",
    "Compatibility by grades beside nDCG@k: sensitivity and tau; p tuned anew",
    1,
    1,
    table1,
    reads=(GRADES, *RUN_FOLDERS),
    paper="top-k",
    shows={
        "Table 1": "sensitivity and tau of nDCG@k and compatibility, by grades",
        "Figure 4": "runs under nDCG@k against compatibility",
    },
    quick_form={"tuned_over": TUNED_OVER[::5]},
    seconds=(6, 12),
)
TABLE3 = Experiment(
    "topk-table3",
    "Compatibility by grades, top five, best alone and combined: sensitivity, tau, intervals",
    1,
    1,
    table3,
    reads=(GRADES, COMBINED, LOCAL, *RUN_FOLDERS),
    paper="top-k",
    shows={
        "Table 3": "sensitivity and tau of compatibility under four kinds of judgments",
        "Figure 9": "nDCG against compatibility, combined; 95 % intervals by run",
        "Figure 10": "nDCG@3 against compatibility, top five only",
        "Figure 11": "nDCG@3 against compatibility, best answer only",
    },
    seconds=(3, 3),
)
