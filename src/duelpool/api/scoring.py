"""`dp.evaluate`, `dp.compare`, `dp.gate`, `dp.simulate` and `dp.agreement`: figures from data in any form."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, cast

import polars as pl

from duelpool import evaluation, simulation
from duelpool.agreements import (
    STATISTICS,
    AgreementOptions,
    Finding,
    Votes,
    find_all,
    in_two_groups,
    regrouped,
)
from duelpool.agreements.shares import Cluster
from duelpool.api.inputs import (
    Data,
    as_runs,
    is_frame,
    is_path,
    read_preferences,
    read_qrels,
    read_run,
    with_campaign,
)
from duelpool.api.pools import PoolSet
from duelpool.api.running import JudgedPools
from duelpool.comparison import AnytimeMethod, IntervalMethod
from duelpool.errors import BadParameter, UnknownName
from duelpool.evaluation import Evaluation
from duelpool.evaluation import gate as gates
from duelpool.evaluation.compare import PreferenceMeasure, RunComparison, compare_runs
from duelpool.evaluation.gate import GateResult
from duelpool.evaluation.sources import polars_frame, read_truth, record_of
from duelpool.files import Duplicates, Preferences, Qrels, Run, read_assessed
from duelpool.files.source import Source, stem
from duelpool.frames import Tabular
from duelpool.judges import JudgeModel
from duelpool.leaderboard import USUAL_MEASURE
from duelpool.measures import Measure
from duelpool.records import Judgment
from duelpool.report import html_text
from duelpool.simulation import SimulationResult, StrategyMaker, curve_points


def evaluate(
    truth: Data,
    runs: Data = None,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    rules: Mapping[str, object] | None = None,
    baseline: str | None = None,
    test: str = "t",
    correction: str = "none",
    interval: IntervalMethod | None = None,
    level: float = 0.95,
    weights: Mapping[str, float] | None = None,
    topics: Sequence[str] | None = None,
    twins: Duplicates | str | os.PathLike[str] | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Score runs against grades, preferences, judged pools, a campaign or another run.

    `truth` and `runs` are paths, data frames, dictionaries or records; `truth` may be a list of different kinds, `runs`
    a folder, a pattern, a list, or a dictionary by name. Without `measures` it is nDCG@10 for grades, ppref for
    preferences alone. `rules` overrides a rule of the measures, with a `baseline` each other run is tested against it,
    and with `interval` ("t" or "bootstrap") means have intervals.

    >>> import duelpool as dp
    >>> scores = dp.evaluate({"q1": {"d1": 1, "d2": 0}}, {"good": {"q1": ["d1", "d2"]}, "bad": {"q1": ["d2", "d1"]}})
    >>> scores
    Evaluation(2 runs, nDCG@10, best by nDCG@10: good 1.0000)
    """
    several = truth if isinstance(truth, list | tuple) and not _is_rows(truth) else [truth]
    truths = [one for each in several for one in _truths(each)]
    if runs is None:
        runs = (
            truth.pools
            if isinstance(truth, JudgedPools)
            else with_campaign(truth, lambda campaign: campaign.runs())
        )
        if runs is None:
            raise BadParameter("No run was given.", remedy="Give runs: files, data frames or dictionaries.")
    if isinstance(runs, PoolSet):
        scored: object = list(runs.runs)
    elif isinstance(runs, Mapping) or _is_rows(runs):
        scored = as_runs(runs)
    else:
        scored = runs
    if measures is None:
        measures = USUAL_MEASURE if isinstance(truth, JudgedPools) else _usual_measure(truths)
    return evaluation.evaluate(
        truths,
        scored,
        measures,
        rules=rules,
        baseline=baseline,
        test=test,
        correction=correction,
        interval=interval,
        level=level,
        weights=weights,
        topics=topics,
        twins=twins,
        seed=seed,
        executor=executor,
        progress=progress,
    )


def _is_rows(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _truths(value: Data) -> list[Qrels | Preferences | Run]:
    if isinstance(value, JudgedPools):
        return [value.qrels(), value.preferences()]
    if isinstance(value, Qrels | Preferences | Run):
        return [value]
    if (own := with_campaign(value, lambda campaign: campaign.truths())) is not None:
        return [*own]
    if isinstance(value, Mapping):
        return [read_qrels(value)]
    if is_path(value):
        return [read_truth(cast("str", value))]
    return [record_of(pl.DataFrame(cast("list[Any]", value)) if _is_rows(value) else value)]


def _usual_measure(truths: Sequence[object]) -> str:
    if any(isinstance(each, Qrels) for each in truths):
        return "nDCG@10"
    if any(isinstance(each, Preferences) for each in truths):
        return "ppref"
    return "RBO"


def compare(
    a: Data,
    b: Data,
    *,
    preferences: Data = None,
    qrels: Data = None,
    measure: PreferenceMeasure = "ppref",
    depth: int = 10,
    ask: int = 3,
    seed: int = 1,
    any_time: AnytimeMethod | None = None,
) -> RunComparison:
    """Say which of two runs is better from preferences or grades, how sure that is, and what to judge next.

    With `any_time` ("symmetric" or "bounded") it is also said in a way that holds at every look while judgments arrive.

    >>> import duelpool as dp
    >>> known = [{"topic": "q1", "winner": "d1", "loser": "d2"}]
    >>> verdict = dp.compare({"q1": ["d1", "d2"]}, {"q1": ["d2", "d1"]}, preferences=known)
    >>> verdict.mean_a, verdict.mean_b
    (1.0, 0.0)
    """
    runs = [read_run(a, "" if is_path(a) or isinstance(a, Run) else "a")]
    runs.append(read_run(b, "" if is_path(b) or isinstance(b, Run) else "b"))
    return compare_runs(
        *runs,
        preferences=None if preferences is None else read_preferences(preferences),
        qrels=None if qrels is None else read_qrels(qrels),
        measure=measure,
        depth=depth,
        ask=ask,
        seed=seed,
        any_time=any_time,
    )


def gate(
    old: Data,
    new: Data,
    truth: Data,
    measure: str | Measure | None = None,
    *,
    min_effect: float,
    alpha: float = 0.05,
    any_time: AnytimeMethod | None = None,
    rules: Mapping[str, object] | None = None,
    seed: int = 0,
) -> GateResult:
    """Decide whether a new run may replace an old one: "pass", "fail" or "inconclusive", with an interval.

    It passes when any loss is smaller than `min_effect`, the smallest that matters, and fails when the new run is
    worse, perhaps by that much. `truth` is what `dp.evaluate` takes. With `any_time` ("symmetric" or "bounded") it
    holds at every look, for a gate that is asked again as judgments arrive.

    >>> import duelpool as dp
    >>> judged = {f"q{at}": {"d1": 1, "d2": 0} for at in range(20)}
    >>> old, new = ({topic: order for topic in judged} for order in (["d1", "d2"], ["d2", "d1"]))
    >>> dp.gate(old, new, judged, "nDCG@10", min_effect=0.02).verdict
    'fail'
    """
    runs = [
        read_run(each, "" if is_path(each) or isinstance(each, Run) else name)
        for name, each in (("old", old), ("new", new))
    ]
    known: dict[str, Any] = with_campaign(truth, lambda campaign: campaign.gate_topics()) or {}
    truths = _truths(truth)
    return gates.gate(
        runs[0],
        runs[1],
        truths,
        _usual_measure(truths) if measure is None else measure,
        min_effect=min_effect,
        alpha=alpha,
        any_time=any_time,
        rules=rules,
        seed=seed,
        **known,
    )


def simulate(
    strategy: str | StrategyMaker = "swissfinals",
    judges: str | JudgeModel = "bt:sd=1",
    *,
    items: int | None = None,
    budget: int | str | None = None,
    cap: int | None = 6,
    trials: int = 200,
    curve: bool = False,
    prior: Mapping[str, Mapping[str, float]] | None = None,
    truth: str = "borda",
    seed: int = 1,
    executor: Executor | None = None,
    progress: Callable[[int], None] | None = None,
) -> SimulationResult:
    """Run a strategy against simulated judges many times: how often it finds the best, with how many judgments.

    `judges` are named as the command line has them: "bt:sd=1", "case-a", "case-b:error=.1", "replay:file=...".
    `budget` bounds the judgments of a trial: a number, or "7K" for seven per item. With `curve`, the result also says
    what was right after fewer judgments, and `plot` draws that.

    >>> import duelpool as dp
    >>> dp.simulate("allpairs", "order", items=4, trials=3).found
    1.0
    """
    size = getattr(judges, "size", None) if items is None else items
    return simulation.simulate(
        strategy,
        judges,
        items=items,
        budget=budget,
        cap=cap,
        trials=trials,
        seed=seed,
        checkpoints=curve_points(budget, size) if curve else (),
        prior=prior,
        truth=truth,
        executor=executor,
        progress=progress,
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Agreement(Mapping[str, Finding], Tabular):
    """Statistics of agreement by name: `agreement["summary"]` and others, each a table with notes."""

    findings: tuple[Finding, ...]
    votes: int
    seed: int = 0

    def __getitem__(self, name: str) -> Finding:
        for each in self.findings:
            if each.name == name:
                return each
        raise UnknownName("statistic here", name, self)

    def __iter__(self) -> Iterator[str]:
        return (each.name for each in self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __contains__(self, name: object) -> bool:
        return any(each.name == name for each in self.findings)

    def __repr__(self) -> str:
        rows = self["summary"].to_polars().to_dicts() if "summary" in self else []
        shown = [
            f"{label} {rows[0][name]:.2f}"
            for name, label in (("agreement", "agree"), ("alpha", "alpha"))
            if rows and rows[0][name] is not None
        ]
        return f"Agreement({', '.join([f'{self.votes:,} votes', *shown])})"

    def to_polars(self, name: str = "summary") -> pl.DataFrame:
        """Return the table of a statistic."""
        return self[name].to_polars()

    def to_dict(self) -> dict[str, Any]:
        """Return every table as plain values."""
        return {each.name: each.as_json() for each in self.findings if each.table.rows}

    def _repr_html_(self) -> str:
        tables = [replace(each.shown, caption=each.title) for each in self.findings if each.table.rows]
        return "".join(map(html_text, tables))


def agreement(
    source: Data,
    other: Data = None,
    *,
    statistics: Sequence[str] = (),
    criterion: str | None = None,
    groups: Mapping[str, str] | None = None,
    cluster: str = "auto",
    tie_rate: float = 0.5,
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement:
    """Say how far assessors agree with each other and with themselves, and how fast they are.

    `source` is a campaign, a file or a data frame of judgments with assessors, or a list of judgments; with `other`,
    the two are compared as groups. `statistics` names some of them; without names it is all.

    >>> import duelpool as dp
    >>> rows = [{"topic": "q1", "a": "d1", "b": "d2", "winner": "d1", "assessor": name} for name in ("ann", "bob")]
    >>> dp.agreement(rows, statistics=["summary"])["summary"].to_polars()["agreement"][0]
    1.0
    """
    for name in statistics:
        if name not in STATISTICS:
            raise UnknownName("statistic", name, STATISTICS)
    votes = votes_in(source)
    if other is not None:
        names = tuple(
            stem(str(each)) if is_path(each) else way for each, way in ((source, "a"), (other, "b"))
        )
        if names[0] == names[1]:
            names = ("a", "b")
        votes = in_two_groups(votes, votes_in(other), cast("tuple[str, str]", names))
    if groups is not None:
        votes = regrouped(votes, groups)
    if criterion is not None:
        votes = votes.of_criterion(criterion)
    options = AgreementOptions(cast("Cluster", cluster), tie_rate, resamples, seed)
    return Agreement(find_all(votes, statistics, options), len(votes), seed)


def votes_in(source: Data) -> Votes:
    """Return the votes of a campaign, of judgments, or of a file or frame of them."""
    if isinstance(source, JudgedPools):
        return Votes.of(source.judgments)
    if isinstance(source, Preferences):
        return Votes.of(source.judgments())
    if (own := with_campaign(source, lambda campaign: campaign.votes())) is not None:
        return own
    if is_path(source):
        return Votes.of(read_assessed(cast("str", source)))
    if isinstance(source, list | tuple) and source and all(isinstance(each, Judgment) for each in source):
        return Votes.of(source)
    if is_frame(source):
        rows = Source("judgments", polars_frame(source).write_csv().encode())
    elif _is_rows(source):
        frame = pl.DataFrame(cast("list[dict[str, Any]]", source))
        rows = Source("judgments", frame.write_csv().encode())
    else:
        raise BadParameter(
            f"A {type(source).__name__} holds no judgments.",
            remedy="Give a campaign, a path, a data frame with topic, a, b, winner, assessor, or a list of judgments.",
        )
    return Votes.of(read_assessed(rows))
