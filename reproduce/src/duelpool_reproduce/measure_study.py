"""Here or There (2008), Table 5: how DCG, nDCG, ppref and wpref go together.

The study's queries were never released. Three simulated engines bring five pages each, as in its Figure 2; preferences
are inferred from the grades, as the study did. Beside it: the 63 runs of DL 2021 under grades and the crowd's duels.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from duelpool.comparison import MeasureAgreement, measure_agreement
from duelpool.evaluation import evaluate
from duelpool.files import Preferences, Qrels, Run
from duelpool.records import Judgment, Outcome
from duelpool.seeds import rng_for
from duelpool.simulation import Progress
from duelpool_reproduce.base import Experiment
from duelpool_reproduce.dueling_bandits.campaign import JUDGMENTS, QRELS, RUNS, papers_judgments
from duelpool_reproduce.here_or_there import DEPTH, ENGINES, Query, simulated_query
from duelpool_reproduce.verdicts import ComparisonReport, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 1000
MEASURES = {
    "DCG": "DCG(gain='exponential')@5",
    "nDCG": "nDCG(gain='exponential')@5",
    "ppref": "ppref",
    "wpref": "wpref",
}
CORRELATION = {
    ("DCG", "nDCG"): 0.748,
    ("DCG", "ppref"): 0.485,
    ("DCG", "wpref"): 0.584,
    ("nDCG", "ppref"): 0.662,
    ("nDCG", "wpref"): 0.738,
    ("ppref", "wpref"): 0.950,
}
SAME_SIGN = {
    ("DCG", "nDCG"): 1.000,
    ("DCG", "ppref"): 0.873,
    ("DCG", "wpref"): 0.866,
    ("nDCG", "ppref"): 0.873,
    ("nDCG", "wpref"): 0.866,
    ("ppref", "wpref"): 0.941,
}
NOT_RELEASED = "The study's queries, engines and judgments were never released: these are simulated."


def simulated_study(queries: int, seed: int) -> tuple[Qrels, Preferences, list[Run]]:
    """Return grades, preferences inferred from them, and the engines' rankings, of a number of queries."""
    rng = rng_for(seed, "queries of table 5")
    made = {
        f"q{at}": simulated_query(int(rng.integers(DEPTH + 2, ENGINES * DEPTH + 1)), rng)
        for at in range(queries)
    }
    grades = {
        topic: dict(zip(query.pages, map(float, query.grades), strict=True)) for topic, query in made.items()
    }
    runs = [
        Run.from_rankings(
            f"engine-{at}",
            {
                topic: [(page, -rank) for rank, page in enumerate(query.runs[at])]
                for topic, query in made.items()
            },
        )
        for at in range(ENGINES)
    ]
    inferred = Preferences.from_judgments(
        judgment for topic, query in made.items() for judgment in inferred_preferences(topic, query)
    )
    return Qrels.from_grades(grades), inferred, runs


def inferred_preferences(topic: str, query: Query) -> Iterator[Judgment]:
    """Yield the better graded of every two pages as preferred; equal grades say nothing."""
    for (a, grade), (b, other) in combinations(zip(query.pages, query.grades, strict=True), 2):
        if grade != other:
            yield Judgment(topic, a, b, Outcome.LEFT if grade > other else Outcome.RIGHT)


def together(truths: list[object], runs: object) -> dict[tuple[str, str], MeasureAgreement]:
    """Return how every two of the four measures go together."""
    evaluation = evaluate(truths, runs, list(MEASURES.values()))
    tables = dict(zip(MEASURES, evaluation.tables.values(), strict=True))
    return {(each.a, each.b): each for each in measure_agreement(tables)}


def table5(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
) -> ComparisonReport:
    """Correlate the four measures over simulated queries, and over DL 2021 where that is there."""
    grades, inferred, engines = simulated_study(trials, seed)
    if progress is not None:
        progress(trials)
    ours = together([grades, inferred], engines)
    rows = []
    for part, stated in (("(a) correlation", CORRELATION), ("(b) agreement on the sign", SAME_SIGN)):
        for pair, value in stated.items():
            mine = ours[pair].pearson if stated is CORRELATION else ours[pair].same_sign
            table = f"Table 5 {part}, simulated"
            rows.append(
                Measured(" and ".join(pair), value, mine, why=NOT_RELEASED, part=table, kind="people")
            )
    rows += _concluded(ours)
    if data is not None and all((data / file).exists() for file in (QRELS, JUDGMENTS, RUNS)):
        real = together([data / QRELS, papers_judgments(data)], data / RUNS)
        part = "The 63 runs of DL 2021: correlation"
        rows += [Measured(" and ".join(pair), None, each.pearson, part=part) for pair, each in real.items()]

    def draw() -> "Figure":
        from duelpool.plots import Bars, panels

        labels = ["-".join(pair) for pair in CORRELATION]
        correlations = {
            "paper": list(CORRELATION.values()),
            "ours": [ours[pair].pearson for pair in CORRELATION],
        }
        signs = {"paper": list(SAME_SIGN.values()), "ours": [ours[pair].same_sign for pair in SAME_SIGN]}
        return panels(
            [
                Bars("Table 5(a)", "correlation", labels, correlations),
                Bars("Table 5(b)", "same sign", labels, signs),
            ]
        )

    remarks = (
        f"{trials} queries of {DEPTH + 2} to {ENGINES * DEPTH} pages; equal grades infer no preference.",
    )
    return ComparisonReport("measures-table5", tuple(rows), draw, remarks, trials=trials, seed=seed)


def _concluded(ours: Mapping[tuple[str, str], MeasureAgreement]) -> list[Measured]:
    pearson = {pair: each.pearson for pair, each in ours.items()}
    signs = {pair: each.same_sign for pair, each in ours.items()}
    preferences = ("ppref", "wpref")
    mixed = [pair for pair in ours if pair[0] in ("DCG", "nDCG") and pair[1] in preferences]
    holds = {
        "ppref and wpref correlate most": max(pearson, key=lambda pair: pearson[pair]) == preferences,
        "wpref is nearer to nDCG than ppref is": pearson["nDCG", "wpref"] > pearson["nDCG", "ppref"],
        "nDCG is nearer to both than DCG is": all(
            pearson["nDCG", p] > pearson["DCG", p] for p in preferences
        ),
        "ppref and wpref agree more with each other": all(signs[preferences] > signs[pair] for pair in mixed),
    }
    return [
        Measured(
            name, 1, int(held), part="What the study concludes (1: it holds)", why=NOT_RELEASED, kind="people"
        )
        for name, held in holds.items()
    ]


TABLE5 = Experiment(
    "measures-table5",
    "DCG, nDCG, ppref and wpref: correlation and agreement",
    TRIALS,
    1,
    table5,
    reads=(QRELS, JUDGMENTS, RUNS),
    paper="here or there",
    shows={"Table 5": "how four measures go together, on simulated queries"},
    quick=300,
    seconds=(4, 6),
    partial=True,
)
