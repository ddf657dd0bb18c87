"""`duelpool reproduce votes`: how well the model of votes predicts votes that it hasn't seen, and whether it is right.

Public votes of named assessors are split by pair: a fifth of the pairs is held out. The loss is the mean of -log p of
the held-out votes that are no ties. Beside it: plain Bradley-Terry, with the prior that suits the held-out votes best,
and NoisyBradleyTerry of Crowd-Kit 1.4.2, recorded on the same splits. Simulated votes show whether figures and
intervals are true.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from itertools import product
from math import inf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from duelpool.agreements import Votes
from duelpool.agreements.system_orders import votes_between_systems
from duelpool.agreements.worth import assessor_votes
from duelpool.arrays import Floats, Ints
from duelpool.files import read_assessed, read_votes
from duelpool.preferences import WinMatrix, bradley_terry
from duelpool.preferences.assessors import FIRST, SECOND, TIE, AssessorVotes, fit_assessors
from duelpool.seeds import rng_for
from duelpool.simulation import Progress
from duelpool_reproduce.base import Cell, Experiment, Section
from duelpool_reproduce.verdicts import ComparisonReport, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPLITS = 10
HELD_OUT = 0.2
PRIORS = (None, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Drawn games that plain Bradley-Terry gives to each item; None: one, and only where it must."""

UKP, RAG, LLMFAO = (
    "ukpconvarg1/judgments.tsv.gz",
    "crowdrag25/judgments.tsv.gz",
    "llmfao/crowd-comparisons.csv.gz",
)
NOISY: Mapping[str, tuple[float, ...]] = {
    "ukpconvarg1": (0.4932, 0.4897, 0.4867, 0.4989, 0.4856, 0.4894, 0.4936, 0.4928, 0.4859, 0.4919),
    "llmfao": (0.5833, 0.5711, 0.5868, 0.6219, 0.5884, 0.5752, 0.5527, 0.5818, 0.5738, 0.6135),
    "crowdrag25, coherence_logical": (
        0.6677,
        0.6517,
        0.7032,
        0.6724,
        0.6612,
        0.6512,
        0.7035,
        0.7213,
        0.6669,
        0.6609,
    ),
    "crowdrag25, coherence_stylistic": (
        0.7191,
        0.6972,
        0.6902,
        0.6962,
        0.7164,
        0.6853,
        0.7202,
        0.7075,
        0.7354,
        0.7052,
    ),
    "crowdrag25, consistency_internal": (
        0.6941,
        0.6824,
        0.7052,
        0.6911,
        0.6662,
        0.6973,
        0.6513,
        0.6870,
        0.6685,
        0.6874,
    ),
    "crowdrag25, correctness_topical": (
        0.6952,
        0.6713,
        0.6669,
        0.6426,
        0.6386,
        0.6510,
        0.6798,
        0.6350,
        0.6639,
        0.6272,
    ),
    "crowdrag25, coverage_broad": (
        0.5649,
        0.5719,
        0.5896,
        0.6084,
        0.5646,
        0.5809,
        0.5488,
        0.5307,
        0.6017,
        0.5744,
    ),
    "crowdrag25, coverage_deep": (
        0.5820,
        0.6036,
        0.5517,
        0.5860,
        0.6049,
        0.5972,
        0.5604,
        0.5784,
        0.5952,
        0.5862,
    ),
    "crowdrag25, quality_overall": (
        0.6502,
        0.6722,
        0.6691,
        0.6716,
        0.6908,
        0.6828,
        0.6807,
        0.6779,
        0.6888,
        0.6738,
    ),
}
"""The losses of NoisyBradleyTerry (Crowd-Kit 1.4.2, 100 iterations) on the splits of seed 0."""

SIMULATED: Mapping[str, tuple[int, int, int, int, float]] = {
    "60 x 200": (30, 12, 60, 12_000, 0.5),
    "300 x 100": (200, 10, 300, 30_000, 0.5),
    "60 x 100, wide": (30, 12, 60, 6_000, 0.8),
    "60 x 50": (30, 12, 60, 3_000, 0.5),
}
"""Topics, items a topic, assessors, votes, and the spread of reliabilities; named by assessors and votes of each."""


def public_votes(data: Path) -> Iterator[tuple[str, AssessorVotes]]:
    """Return the public votes by name: each criterion apart."""
    yield "ukpconvarg1", assessor_votes(Votes.of(read_assessed(data / UKP).rows))
    yield "llmfao", assessor_votes(votes_between_systems(read_votes(data / LLMFAO).votes))
    votes = Votes.of(read_assessed(data / RAG).rows)
    for criterion in sorted(votes.criteria):
        yield f"crowdrag25, {criterion}", assessor_votes(votes.of_criterion(criterion))


def split(votes: AssessorVotes, name: str, number: int, seed: int = 0) -> tuple[Ints, Ints]:
    """Return the places of the votes to fit and of those that are held out, whole pairs of each."""
    low, high = np.minimum(votes.i, votes.j), np.maximum(votes.i, votes.j)
    _, pair = np.unique(low * len(votes.items) + high, return_inverse=True)
    out = rng_for(seed, "votes", name, number).random(int(pair.max()) + 1) < HELD_OUT
    return np.flatnonzero(~out[pair]), np.flatnonzero(out[pair])


def log_loss(chances: Floats, votes: AssessorVotes) -> float:
    """Return the mean of -log p over the votes that are no ties; `chances` are those of the first item."""
    decided = votes.outcome != TIE
    sure = np.clip(chances[decided], 1e-9, 1 - 1e-9)
    return float(-np.mean(np.log(np.where(votes.outcome[decided] == FIRST, sure, 1 - sure))))


def plain_strengths(votes: AssessorVotes, prior: float | None) -> Floats:
    """Return the strengths of plain Bradley-Terry, topic by topic, a tie as half a win for each."""
    found = np.zeros(len(votes.items))
    of_vote = votes.topic[votes.i]
    for topic in np.unique(of_vote).tolist():
        rows = of_vote == topic
        places, where = np.unique(np.concatenate((votes.i[rows], votes.j[rows])), return_inverse=True)
        i, j = np.split(where, 2)
        outcome = votes.outcome[rows]
        wins, ties = (np.zeros((len(places), len(places))) for _ in range(2))
        first, second, tie = outcome == FIRST, outcome == SECOND, outcome == TIE
        np.add.at(wins, (i[first], j[first]), 1)
        np.add.at(wins, (j[second], i[second]), 1)
        for one, other in ((i, j), (j, i)):
            np.add.at(ties, (one[tie], other[tie]), 1)
        matrix = WinMatrix(tuple(f"{place:09d}" for place in places.tolist()), wins, ties)
        found[places] = bradley_terry(matrix, prior).values
    return found


def losses(votes: AssessorVotes, name: str, splits: int, seed: int) -> tuple[Floats, Floats]:
    """Return the losses of the model, and of plain Bradley-Terry with the prior that is best on the held-out votes."""
    ours, plain = np.zeros(splits), np.zeros((len(PRIORS), splits))
    for number in range(splits):
        fitted, held = (votes.only(rows) for rows in split(votes, name, number, seed))
        ours[number] = log_loss(fit_assessors(fitted).first_wins(held), held)
        for at, prior in enumerate(PRIORS):
            strengths = plain_strengths(fitted, prior)
            apart = strengths[held.i] - strengths[held.j]
            plain[at, number] = log_loss(1 / (1 + np.exp(-apart)), held)
    return ours, plain[int(plain.mean(axis=1).argmin())]


# ---- simulated votes


def simulated_votes(
    shape: tuple[int, int, int, int, float], rng: np.random.Generator
) -> tuple[AssessorVotes, Floats, Floats]:
    """Return votes, the strengths of the items, and the reliability, lean and ties of the assessors that gave them."""
    topics, items, people, votes, spread = shape
    strengths = rng.normal(0, 1.2, topics * items)
    figures = np.column_stack(
        (rng.normal(1, spread, people), rng.normal(0.1, 0.3, people), rng.normal(-0.5, 0.6, people))
    )
    topic, first = rng.integers(topics, size=votes), rng.integers(items, size=votes)
    second = (first + rng.integers(1, items, size=votes)) % items
    who, side = rng.integers(people, size=votes), rng.choice([-1, 1], votes)
    i, j = topic * items + first, topic * items + second
    x = figures[who, 0] * (strengths[i] - strengths[j]) + figures[who, 1] * side
    parts = np.exp(np.stack((x / 2, figures[who, 2], -x / 2)))
    chances = np.cumsum(parts / parts.sum(axis=0), axis=0)
    outcome = (rng.random(votes) > chances).sum(axis=0)
    names = tuple((f"{t:04d}", f"{item:04d}") for t, item in product(range(topics), range(items)))
    table = AssessorVotes(
        names,
        np.repeat(np.arange(topics), items),
        tuple(f"{person:04d}" for person in range(people)),
        *(i, j, who, outcome, side),
    )
    return table, strengths, figures


def recovery(
    shape: tuple[int, int, int, int, float], rng: np.random.Generator
) -> tuple[list[float], list[float]]:
    """Return the coverage of 95 % intervals (differences of strength, reliability, lean, ties), and errors of means.

    The errors are those of the spread of strengths and reliabilities, relative, and of the mean lean and ties.
    """
    votes, strengths, figures = simulated_votes(shape, rng)
    model = fit_assessors(votes)
    scale = figures[:, 0].mean()  # the model's mean reliability is 1
    strengths, figures = strengths * scale, figures / [scale, 1, 1]
    found, variance = model.difference(votes.i, votes.j)
    apart = strengths[votes.i] - strengths[votes.j]
    errors = np.sqrt(np.diagonal(model.covariance, axis1=1, axis2=2))
    covered = [
        float(np.mean(np.abs(found - apart) < 1.96 * np.sqrt(variance))),
        *(np.abs(model.figures - figures) < 1.96 * errors).mean(axis=0).tolist(),
    ]
    off = [
        model.spreads[0] / strengths.std() - 1,
        model.spreads[1] / figures[:, 0].std() - 1,
        model.centre[1] - figures[:, 1].mean(),
        model.centre[2] - figures[:, 2].mean(),
    ]
    return covered, [float(each) for each in off]


# ---- the experiment


def votes(
    trials: int = SPLITS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
    *,
    simulations: int = 100,
) -> ComparisonReport:
    """Predict held-out votes, and recover what simulated votes were drawn from."""
    rows: list[Measured] = []
    lines: list[tuple[Cell, ...]] = []
    for name, table in public_votes(data) if data is not None else ():
        ours, plain = losses(table, name, trials, seed)
        noisy = np.array(NOISY.get(name, ())[:trials]) if seed == 0 else np.array([])
        for other, loss in (("Bradley-Terry", plain), ("NoisyBradleyTerry", noisy)):
            if len(loss):
                apart = ours - loss
                error = float(apart.std(ddof=1)) / sqrt(trials) if trials > 1 else None
                figure = f"{name}: held-out log loss minus {other}'s"
                rows.append(
                    Measured(
                        figure,
                        (-inf, 0),
                        float(apart.mean()),
                        error=error,
                        part="Held-out votes",
                        digits=4,
                        kind="bar",
                    )
                )
        shown = f"{noisy.mean():.4f}" if len(noisy) else ""
        lines.append((name, f"{len(table):,}", f"{ours.mean():.4f}", f"{plain.mean():.4f}", shown))
        if progress is not None:
            progress(1)
    coverage: list[tuple[Cell, ...]] = []
    biases: list[tuple[Cell, ...]] = []
    parts = ("differences of strength", "reliability", "lean", "ties")
    for name, shape in SIMULATED.items():
        done = [recovery(shape, rng_for(seed, "votes", name, number)) for number in range(simulations)]
        covered, off = (np.array(each) for each in zip(*done, strict=True))
        few = name == "60 x 50"
        for part, values in zip(parts, covered.T, strict=True):
            error = max(float(values.std()), sqrt(0.95 * 0.05 / shape[2])) / sqrt(simulations)
            bar = None if few else (0.93, 0.97)
            rows.append(
                Measured(
                    f"{name}: {part}",
                    bar,
                    float(values.mean()),
                    error=error,
                    part="Simulated votes",
                    kind="bar",
                    whole=1,
                )
            )
        coverage.append((name, *(f"{value:.3f}" for value in covered.mean(axis=0))))
        biases.append((name, *(f"{value:+.3f}" for value in off.mean(axis=0))))
        if progress is not None:
            progress(1)
    columns = ("assessors x votes", "strengths", "reliability", "lean", "ties")
    tables = (
        Section(
            f"Loss on held-out votes, {trials} splits",
            ("votes", "number", "ours", "Bradley-Terry", "NoisyBradleyTerry"),
            tuple(lines),
        ),
        Section(
            f"Simulated votes, {simulations} trials: coverage of 95 % intervals", columns, tuple(coverage)
        ),
        Section("Simulated votes: bias", columns, tuple(biases)),
    )
    remarks = (
        "Loss: the mean of -log p of held-out votes that are no ties; lower is better. Bradley-Terry has the prior "
        "that suits the held-out votes best; the model has none to choose.",
        "bias: of the spreads of strengths and reliabilities, relative; of the mean lean and ties, in log odds.",
        "50 votes of each assessor leave too little to estimate the spreads well: intervals are somewhat short there.",
    )

    def draw() -> "Figure":
        from duelpool.plots import Bars, panels

        kinds = {"ours": 2, "Bradley-Terry": 3}
        shares = {kind: [float(str(line[at])) for line in lines] for kind, at in kinds.items()}
        return panels([Bars("Loss on held-out votes", "-log p", [str(line[0]) for line in lines], shares)])

    return ComparisonReport(
        "votes", tuple(rows), draw, remarks, tables, trials, seed, {"simulations": simulations}
    )


VOTES = Experiment(
    "votes",
    "What a vote of each assessor is worth: held-out votes, and simulated ones",
    SPLITS,
    9 + len(SIMULATED),
    votes,
    reads=(UKP, RAG, LLMFAO),
    shows={"Votes": "a model of votes against Bradley-Terry and Crowd-Kit's"},
    quick=1,
    quick_form={"simulations": 4},
    seconds=(30, 400),
)
