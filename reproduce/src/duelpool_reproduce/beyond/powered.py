"""`duelpool reproduce powered`: systems ranked by few votes of people and many of a model, beside other ways."""

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from math import inf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from duelpool.arrays import Ints
from duelpool.errors import BadParameter
from duelpool.evaluation.powered import voted_pairs
from duelpool.files import read_votes
from duelpool.preferences.contests import Contest, VoteTable
from duelpool.preferences.powered import VotedPairs, powered_rates
from duelpool.seeds import rng_for
from duelpool.simulation import Progress
from duelpool_reproduce.base import Experiment, Section
from duelpool_reproduce.verdicts import ComparisonReport, Measured, error_of_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 200
PEOPLE, MODEL = "arena/human.jsonl.gz", "arena/gpt-4.jsonl.gz"
SYSTEMS_COMPARED = (
    *("vicuna-13b", "koala-13b", "gpt-3.5-turbo", "gpt-4", "oasst-pythia-12b", "alpaca-13b", "claude-v1"),
    *("RWKV-4-Raven-14B", "chatglm-6b", "fastchat-t5-3b", "palm-2", "claude-instant-v1"),
)
MOST_RANKS = {500: 6.8, 1000: 5.4, 2000: 4.2}
MOST_ERROR = {1000: 10.5}  # mean squared error of the rates, in 1e-4
WAYS = (
    "share of votes, max-T",
    "PPI++, max-T",
    "people alone",
    "with the model",
    "with the model, shuffled",
)
OURS = WAYS[2:]
PPI_PYTHON = {500: {40: 21.20, 200: 22.24}, 1000: {40: 10.14, 200: 10.65}, 2000: {40: 4.44, 200: 4.80}}
"""The squared error of ppi-python 0.2.3 (`ppi_mean_pointestimate` of each system), in 1e-4: by votes and draws."""
SET_SIZE = "mean size of the rank set"
DRAWN = 4000


@dataclass(frozen=True, slots=True)
class PoweredTrial:
    """One draw of people's votes: how many ranks a system may have, whether all hold, the rates' squared error."""

    ranks: float
    hold: bool
    error: float


def powered(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
) -> ComparisonReport:
    """Draw people's votes many times, and compare ranks and rates with those by all of their votes."""
    if data is None:
        raise BadParameter("This needs the arena's votes.", remedy="Name the folder of the data with --data.")
    pairs = _pairs(data)
    rng = rng_for(seed, "powered", "shuffled")
    order = rng.permutation(len(pairs))
    shuffled = replace(pairs, model=pairs.model[order])
    rows: list[Measured] = []
    lines = []
    sizes: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for votes, most in MOST_RANKS.items():
        found: dict[str, list[PoweredTrial]] = {way: [] for way in WAYS}
        for trial in range(trials):
            asked = rng_for(seed, "powered", votes, trial).permutation(len(pairs))[:votes]
            for way in WAYS:
                source = shuffled if way == WAYS[4] else pairs
                found[way].append(_trial(source, asked, way, trial))
            if progress is not None:
                progress(1)
        part = f"{votes:,} votes of people"
        for way, some in found.items():
            ranks, hold, error = (
                np.array([getattr(each, name) for each in some]) for name in ("ranks", "hold", "error")
            )
            spread, width = (error_of_mean(each) for each in (error, ranks))
            sizes[way].append((float(votes), float(ranks.mean())))
            shown = (
                f"{ranks.mean():.2f}±{width:.2f}",
                f"{hold.mean():.3f}",
                f"{1e4 * error.mean():.2f}±{1e4 * spread:.2f}",
            )
            lines.append((f"{votes:,}", way, *shown))
            if way != WAYS[3]:
                continue
            smooth = (hold.sum() + 1) / (trials + 2)
            rows += [
                Measured(
                    SET_SIZE,
                    (-inf, most),
                    float(ranks.mean()),
                    error=width,
                    part=part,
                    kind="bar",
                ),
                Measured(
                    "all ranks hold",
                    (0.95, inf),
                    float(hold.mean()),
                    error=sqrt(smooth * (1 - smooth) / trials),
                    part=part,
                    kind="bar",
                    whole=1,
                    trials=trials,
                ),
            ]
            if votes in MOST_ERROR:
                bar = (-inf, MOST_ERROR[votes])
                rows.append(
                    Measured(
                        "squared error, 1e-4",
                        bar,
                        1e4 * float(error.mean()),
                        error=1e4 * spread,
                        part=part,
                        kind="bar",
                    )
                )
        if seed == 0 and trials in PPI_PYTHON[votes]:
            lines.append((f"{votes:,}", "ppi-python, recorded", "", "", f"{PPI_PYTHON[votes][trials]:.2f}"))
        alone, mixed = (np.array([each.ranks for each in found[way]]) for way in (WAYS[2], WAYS[4]))
        ratio = float(mixed.mean() / alone.mean())
        off = error_of_mean(mixed - alone) / float(alone.mean())
        rows.append(
            Measured(
                f"{SET_SIZE}, shuffled over alone", (-inf, 1.02), ratio, error=off, part=part, kind="bar"
            )
        )
    table = Section(
        f"{len(pairs.systems)} systems, {len(pairs):,} pairs, {trials} draws of people's votes",
        ("votes", "way", SET_SIZE, "all hold", "squared error, 1e-4"),
        tuple(lines),
    )

    def draw() -> "Figure":
        from duelpool.plots import Lines, panels

        return panels([Lines("Ranks that a system may have", "votes of people", SET_SIZE, sizes)])

    remarks = (
        "Rank set: the ranks that a system may have; all ranks hold: each system's true rank is in its set.",
        "The truth is the share of all votes of people that a system won, a tie being no win.",
        "ppi-python: version 0.2.3, its mean of each system from the same draws; it has no ranks.",
        "share of votes: each system's own votes. PPI++: with a tuned weight of the model for each system. Both by "
        "max-T without stepping down, about pairs like these. The others predict a vote from both systems, step down, "
        "and are about these very pairs.",
    )
    return ComparisonReport("powered", tuple(rows), draw, remarks, (table,), trials, seed)


def _pairs(data: Path) -> VotedPairs:
    """Return the pairs that both people and the model judged; a tie is no win."""
    kept = set(SYSTEMS_COMPARED)
    votes = [
        vote
        for file, model in ((PEOPLE, False), (MODEL, True))
        for vote in read_votes(data / file, model=model)
        if vote.a in kept and vote.b in kept
    ]
    pairs = voted_pairs(votes, "losses")
    both = pairs.asked & ~np.isnan(pairs.model[:, 0])
    return replace(
        pairs,
        first=pairs.first[both],
        second=pairs.second[both],
        people=pairs.people[both],
        model=pairs.model[both],
        question=pairs.question[both],
    )


def _trial(pairs: VotedPairs, asked: Ints, way: str, seed: int) -> PoweredTrial:
    own = np.concatenate((pairs.first, pairs.second))
    truth = np.bincount(own, pairs.people.T.ravel()) / np.bincount(own)
    seen = np.full_like(pairs.people, np.nan)
    seen[asked] = pairs.people[asked]
    given = replace(pairs, people=seen)
    if way in OURS:
        use_model = False if way == OURS[0] else None
        contest = powered_rates(given, these_pairs=True, use_model=use_model).contest
        first, last = contest.ranks(seed=seed)
    else:
        contest = _plain(given, tuned=way == WAYS[1])
        first, last = _max_t(contest, seed)
    rank = 1 + (truth > truth[:, None]).sum(axis=1)
    hold = bool(((first <= rank) & (rank <= last)).all())
    return PoweredTrial(float((last - first + 1).mean()), hold, float(((contest.values - truth) ** 2).mean()))


def _plain(pairs: VotedPairs, *, tuned: bool) -> Contest:
    """Return each system's share of its own votes; tuned, with a weight of the model for each system (PPI++)."""
    k, n, rows = len(pairs.systems), len(pairs), np.arange(len(pairs))
    votes, model, met = np.zeros((3, n, k))
    asked = pairs.asked
    for side, system in enumerate((pairs.first, pairs.second)):
        votes[rows, system], model[rows, system] = np.nan_to_num(pairs.people[:, side]), pairs.model[:, side]
        met[rows, system] = 1.0
    values, parts = np.zeros(k), np.zeros((int(asked.sum()), k))
    for at in range(k):
        mine, judged = met[:, at] > 0, asked & (met[:, at] > 0)
        weight = 0.0
        if tuned and judged.sum() > 2 and model[judged, at].std() > 0:
            both = np.cov(votes[judged, at], model[judged, at])
            weight = both[0, 1] / both[1, 1] / (1.0 + judged.sum() / mine.sum())
        off = votes[:, at] - weight * model[:, at]
        mean = off[judged].mean()
        values[at] = mean + weight * model[mine, at].mean()
        parts[:, at] = np.where(met[asked, at] > 0, off[asked] - mean, 0.0) / judged.sum()
    covariance = parts.T @ parts
    return Contest(
        VoteTable.of([], systems=pairs.systems), values, covariance, np.zeros((k, k)), float(len(parts) - 1)
    )


def _max_t(contest: Contest, seed: int) -> tuple[Ints, Ints]:
    """Return ranks by the largest standardised difference of all, without stepping down."""
    k = len(contest.values)
    one, other = np.triu_indices(k, 1)
    rng = rng_for(seed, "powered", "max-T")
    values, vectors = np.linalg.eigh(contest.covariance)
    drawn = rng.standard_normal((DRAWN, k)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    errors = np.maximum(contest.difference_errors(), 1e-12)
    limit = np.quantile((np.abs(drawn[:, one] - drawn[:, other]) / errors[one, other]).max(axis=1), 0.95)
    above = (contest.values[:, None] - contest.values) / errors > limit
    return 1 + above.sum(axis=0), k - above.sum(axis=1)


POWERED = Experiment(
    "powered",
    "Ranks of systems from few votes of people and many of a model, prediction-powered",
    TRIALS,
    len(MOST_RANKS),
    powered,
    reads=(PEOPLE, MODEL),
    shows={"Prediction-powered ranks": "ranks that systems may have, and whether all hold"},
    quick=40,
    seconds=(40, 200),
)
