"""Whether a new run may replace an old one: pass, fail or inconclusive, for continuous integration.

The difference is that of the means, new - old, and `min_effect` the smallest loss that matters.

pass          the interval of the difference lies above -min_effect: any loss is smaller than what matters
fail          it lies below 0, and reaches -min_effect: the new run is worse, perhaps by as much as matters
inconclusive  neither: more topics, or a larger min_effect, would decide

With equal runs it fails with a chance of alpha / 2 at most. With the topics that `duelpool power` plans for a loss of
min_effect, it fails a run that is worse by that, and passes an equal one, with the power planned for.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from duelpool.arrays import Floats
from duelpool.comparison import (
    AnytimeMethod,
    ScoreTable,
    anytime_difference,
    anytime_topics,
    doubts,
    interval_doubts,
    topics_needed,
)
from duelpool.errors import BadParameter
from duelpool.evaluation import evaluate
from duelpool.evaluation.sources import Record
from duelpool.files import Duplicates, Preferences, Qrels, Run
from duelpool.measures import Measure

Verdict: TypeAlias = Literal["pass", "fail", "inconclusive"]

EXIT_CODES: Mapping[str, int] = MappingProxyType({"pass": 0, "fail": 1, "inconclusive": 3})
"""What the command ends with; 2 stays for input that can't be used."""

_POWER = 0.8  # the chance that as many topics as it names would decide
_DEPTH = 10  # ranks in which unjudged documents are counted
_UNJUDGED = 0.1  # a new run with this share more of them than the old one is warned of


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate found: the verdict, the difference of the means (new - old) and its interval."""

    verdict: Verdict
    old: str
    new: str
    measure: str
    difference: float
    low: float | None  # None where there are too few topics for an interval
    high: float | None
    min_effect: float
    alpha: float
    topics: int
    mean_old: float
    mean_new: float
    method: str  # how the interval was made
    more_topics: (
        int | None
    )  # that would decide in four of five cases, if the difference stays; None if decided
    more_judgments: int | None  # the same in judgments, as many a topic as now
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """What the command ends with: 0 for pass, 1 for fail, 3 for inconclusive."""
        return EXIT_CODES[self.verdict]

    @property
    def reason(self) -> str:
        """The verdict in a sentence."""
        return {
            "pass": f"{self.new} isn't worse than {self.old} by {self.min_effect:g} or more",
            "fail": f"{self.new} is worse than {self.old}, perhaps by {self.min_effect:g} or more",
            "inconclusive": f"{self.topics} topics don't tell whether {self.new} is worse than {self.old} "
            f"by {self.min_effect:g}",
        }[self.verdict] + "."

    @property
    def figures(self) -> str:
        """The difference with its interval."""
        ends = "" if self.low is None or self.high is None else f" [{self.low:+.4f}, {self.high:+.4f}]"
        return f"{self.difference:+.4f}{ends}"

    @property
    def remedy(self) -> str:
        """What would decide, where nothing is decided."""
        if self.verdict != "inconclusive":
            return ""
        if self.more_topics is None:
            return "These topics don't say how many would decide; a larger minimum effect needs fewer."
        judgments = "" if self.more_judgments is None else f" (about {self.more_judgments:,} judgments)"
        return f"About {self.more_topics:,} more topics{judgments} would decide, if the difference stays as it is."


def gate(
    old: Run,
    new: Run,
    truths: Sequence[Record],
    measure: str | Measure,
    *,
    min_effect: float,
    alpha: float = 0.05,
    any_time: AnytimeMethod | None = None,
    rules: Mapping[str, object] | None = None,
    weights: Mapping[str, float] | None = None,
    open_topics: Iterable[str] = (),
    order: Mapping[str, int] | None = None,
    twins: Duplicates | None = None,
    seed: int = 0,
) -> GateResult:
    """Decide whether the new run may replace the old one.

    A topic that one of the two runs lacks scores 0 for it, so that no run passes by leaving topics out; topics that
    neither has don't count, nor do `open_topics`, whose judging isn't over. The interval is Student's for a number of
    topics fixed in advance, or with `any_time` one that holds at every look; then topics count in the order in which
    the judgments have them (by their last one), or in the given `order`.
    """
    if not (math.isfinite(min_effect) and min_effect >= 0):
        raise BadParameter(
            f"The smallest loss that matters is a number from 0 on, not {min_effect:g}.",
            remedy="Give it in units of the measure, such as 0.02; 0 asks for a run that is better.",
        )
    if not 0 < alpha < 1:
        raise BadParameter(f"The level alpha lies between 0 and 1, not at {alpha:g}.")
    ranked = {topic for run in (old, new) for topic in run.frame.get_column("topic").unique().to_list()}
    closed = [topic for topic in _judged_topics(truths) if topic in ranked - set(open_topics)]
    if not closed:
        raise BadParameter(
            f"'{old.name}' and '{new.name}' have no topic that is judged.",
            remedy="Check that the files belong together; a campaign's topics count once they are done.",
        )
    evaluation = evaluate(
        list(truths),
        {"old": old, "new": new},
        measure,
        rules={"missing": "zero", **(rules or {})},
        weights=weights,
        topics=closed,
        twins=twins,
    )
    ((_, table),) = evaluation.tables.items()
    table = table.complete()
    if any_time is not None:
        arrived = arrival(truths) if order is None else order
        table = table.only(sorted(range(len(table.topics)), key=lambda at: arrived.get(table.topics[at], -1)))
    names = (old.name, new.name) if old.name != new.name else (f"{old.name} (old)", f"{new.name} (new)")
    found = gate_of(
        table, str(measure), names, min_effect=min_effect, alpha=alpha, any_time=any_time, seed=seed
    )
    notes = [*found.notes, *_lacking(names, (old, new), table.topics), *_unjudged(names, (old, new), truths)]
    if found.more_topics is not None:
        per_topic = sum(len(each) for each in truths[:1]) / max(1, len(set(_judged_topics(truths[:1]))))
        found = replace(found, more_judgments=math.ceil(found.more_topics * per_topic))
    return replace(found, notes=tuple(notes))


def gate_of(
    table: ScoreTable,
    measure: str,
    names: tuple[str, str],
    *,
    min_effect: float,
    alpha: float = 0.05,
    any_time: AnytimeMethod | None = None,
    seed: int = 0,
) -> GateResult:
    """Decide from the scores by topic of the runs "old" and "new", in the order of the topics."""
    gaps = table.row("new") - table.row("old")
    means = dict(zip(table.runs, table.means().tolist(), strict=True))
    low: float | None
    high: float | None
    if any_time is None:
        low, high, notes = _fixed_interval(table, gaps, alpha)
        method = f"Student's t, {1 - alpha:.0%}, for topics fixed in advance"
    else:
        always = anytime_difference(table, "new", "old", method=any_time, alpha=alpha)
        low, high = (end if math.isfinite(end) else None for end in (always.low, always.high))
        method, notes = f"{any_time}, {1 - alpha:.0%} at any time", doubts(table, any_time)
    verdict: Verdict = "inconclusive"
    if low is not None and low > -min_effect:
        verdict = "pass"
    elif high is not None and high < 0 and (low is None or low <= -min_effect):
        verdict = "fail"
    more = (
        None
        if verdict != "inconclusive"
        else _more_topics(table, gaps, min_effect, alpha=alpha, any_time=any_time, seed=seed)
    )
    return GateResult(
        verdict, *names, measure, means["new"] - means["old"], low, high, min_effect, alpha, len(gaps), means["old"],
        means["new"], method, more, None, tuple(notes),
    )  # fmt: skip


def _fixed_interval(
    table: ScoreTable, gaps: Floats, alpha: float
) -> tuple[float | None, float | None, list[str]]:
    """Return Student's interval; none where all topics differ alike and are too few to rule out chance."""
    if len(gaps) < 2:
        return None, None, ["an interval needs two topics at least"]
    if gaps.any() and np.ptp(gaps) <= 1e-12 and 2.0 ** (1 - len(gaps)) > alpha:
        return None, None, ["all topics differ alike, and are too few for an interval"]
    span = table.limits[1] - table.limits[0]
    one = ScoreTable(("difference",), table.topics, gaps[None, :], table.weights, (-span, span))
    low, high = one.intervals(level=1 - alpha)[0].tolist()
    return low, high, doubts(table) or interval_doubts(one) if gaps.any() else []


def _more_topics(
    table: ScoreTable,
    gaps: Floats,
    min_effect: float,
    *,
    alpha: float,
    any_time: AnytimeMethod | None,
    seed: int,
) -> int | None:
    """Return how many more topics would decide in four of five cases, if the difference and its spread stay."""
    if len(gaps) < 2 or not np.ptp(gaps) > 0:
        return None
    mean = float(gaps.mean())
    if any_time is not None:
        span = table.limits[1] - table.limits[0]
        needed = anytime_topics(
            gaps,
            above=-min_effect,
            limits=(-span, span),
            method=any_time,
            alpha=alpha,
            power=_POWER,
            seed=seed,
        )
        return None if needed is None else max(1, needed - len(gaps))
    room = max(mean + min_effect, -mean)  # how far the interval may reach to the side that decides
    if room <= 0:
        return None
    try:
        return max(1, topics_needed(room, float(gaps.std(ddof=1)), _POWER, alpha) - len(gaps))
    except BadParameter:
        return None


def _judged_topics(truths: Sequence[Record]) -> list[str]:
    return [
        topic
        for truth in truths
        for topic in truth.frame.get_column("topic").unique(maintain_order=True).to_list()
    ]


def arrival(truths: Sequence[Record]) -> dict[str, int]:
    """Return the place of each topic's last judgment."""
    topics = [topic for truth in truths for topic in truth.frame.get_column("topic").to_list()]
    return {topic: at for at, topic in enumerate(topics)}


def _lacking(names: tuple[str, str], runs: tuple[Run, Run], topics: Sequence[str]) -> list[str]:
    notes = []
    for name, run in zip(names, runs, strict=True):
        lacks = len(set(topics).difference(run.frame.get_column("topic").unique().to_list()))
        if lacks:
            notes.append(f"{name} lacks {lacks} of {len(topics)} topics, which count 0")
    return notes


def _unjudged(names: tuple[str, str], runs: tuple[Run, Run], truths: Sequence[Record]) -> list[str]:
    """Warn where the new run has many more unjudged documents among its first than the old one."""
    grades = [truth for truth in truths if isinstance(truth, Qrels)]
    if not grades or any(isinstance(truth, Preferences) for truth in truths):
        return []
    judged = grades[0].frame.select("topic", "docno")
    shares = []
    for run in runs:
        first = run.top(_DEPTH).join(judged.select("topic").unique(), on="topic", how="semi")
        known = first.join(judged, on=["topic", "docno"], how="semi").select(pl.len()).item()
        shares.append(1 - known / max(1, first.height))
    if shares[1] - shares[0] < _UNJUDGED:
        return []
    return [
        f"of the first {_DEPTH} documents of {names[1]} {shares[1]:.0%} are unjudged, of {names[0]} {shares[0]:.0%}: "
        "a loss may be one of judgments"
    ]
