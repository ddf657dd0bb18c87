"""What a pilot teaches: how noisy its judges were, and which strategy to take under a cost cap.

A pilot is a small campaign on a share of the topics. Its judgments say how often two people agree on a pair, how
often they tie, how long they take, how many test pairs they fail, and how much of what was paid counts. From that
come simulated judges who behave alike, and with these every candidate is simulated on the pools of all topics.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from duelpool.campaign import Campaign
from duelpool.campaign.views.reading import read_counted_lines, read_topic, topics_of
from duelpool.campaign.views.status import better_items
from duelpool.campaign.views.tally import TopicTally
from duelpool.errors import BadParameter
from duelpool.judges import JudgeModel, SimulatedJudge, make_judges
from duelpool.records import Judgment, Levels, Outcome
from duelpool.setup.forecasts import Forecast
from duelpool.simulation import simulate
from duelpool.simulation.cost import SIMULATED_JUDGES, Pay
from duelpool.store import Reading, holdings

ENOUGH_COMPARED = 20  # votes on pairs that others judged too; below that, noise is anybody's guess
SPREADS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
_FIT_JUDGMENTS = 4_000
_FIT_TRIALS = 30


@dataclass(frozen=True, slots=True)
class Observed:
    """What a pilot's judgments say; shares are from 0 to 1, None where nothing was seen.

    `agreement` is the share of two votes on one pair that have the same winner, `usable` the share of judgments
    on target pairs that count, `failed` the share of test pairs failed by those whose judgments count.
    """

    campaign: str
    strategy: str
    topics: int
    sizes: tuple[int, ...]
    judgments: int
    compared: int
    agreement: float | None
    ties: float
    seconds: float | None
    tests: int
    failed: float | None
    usable: float

    def hourly(self, pay: Pay) -> float | None:
        """Return what an hour's work is paid at these seconds a judgment, in minor units."""
        return None if not self.seconds else pay.reward * 3600.0 / (self.seconds * pay.questions)


def observe(campaign: Campaign) -> Observed:
    """Read what a campaign's judgments say of its judges; nothing is written."""
    return campaign.read(lambda tx: _observe(tx, campaign))


def _observe(tx: Reading, campaign: Campaign) -> Observed:
    judged: list[Judgment] = []
    sizes = []
    made = tests = passed = 0
    better = better_items(tx)
    excluded = {name for name, row in holdings.assessors(tx).items() if row.state == "excluded"}
    for topic in topics_of(tx):
        before = len(judged)
        tally = TopicTally(read_counted_lines(tx, topic), better)
        read_topic(tx, campaign, topic, on_judgment=judged.append, visit=tally.add)
        if len(judged) > before:
            sizes.append(len(campaign.live.items(topic)))
        for assessor, own in tally.assessors.items():
            made += own.judgments
            if assessor not in excluded:
                tests += own.tests_seen
                passed += own.tests_passed
    timed = [each.seconds for each in judged if each.seconds is not None]
    same, compared = _agreement(judged)
    return Observed(
        campaign=campaign.name,
        strategy=campaign.settings.strategy,
        topics=len(sizes),
        sizes=tuple(sizes),
        judgments=len(judged),
        compared=compared,
        agreement=same / compared if compared else None,
        ties=sum(each.outcome is Outcome.TIE for each in judged) / len(judged) if judged else 0.0,
        seconds=math.fsum(timed) / len(timed) if timed else None,
        tests=tests,
        failed=1.0 - passed / tests if tests else None,
        usable=min(1.0, len(judged) / made) if made > 0 and judged else 1.0,
    )


def _agreement(judged: Collection[Judgment]) -> tuple[int, int]:
    """Return how many of the comparisons of two votes on one pair have the same winner, and how many there are."""
    winners: dict[tuple[str, tuple[str, str]], Counter[str]] = {}
    for each in judged:
        if each.winner is not None and each.right is not None:
            winners.setdefault((each.topic, each.pair), Counter())[each.winner] += 1
    return _same_of(winners.values())


def _same_of(votes: Collection[Counter[str]]) -> tuple[int, int]:
    same = sum(count * (count - 1) // 2 for each in votes for count in each.values())
    compared = sum(each.total() * (each.total() - 1) // 2 for each in votes)
    return same, compared


# ---- judges who behave alike


@dataclass(frozen=True, slots=True)
class FittedJudges:
    """Simulated judges who behave as those of a pilot did, and how that was found."""

    judges: str
    note: str


def fit_judges(observed: Observed, *, cap: int | None = 6, seed: int = 1) -> FittedJudges:
    """Return judges whose votes on a pair agree as often as a pilot's did.

    Failed test pairs give the rate of slips, for there everybody knows the answer. The spread of the items'
    strengths is then the one with which the pilot's own strategy, on pools of the same sizes, meets the same
    agreement: a strategy asks about close pairs more often, so the agreement alone wouldn't say.
    """
    slips = min(0.45, observed.failed or 0.0)
    extra = (f",error={slips:.3f}" if slips else "") + (f",ties={observed.ties:.3f}" if observed.ties else "")
    if observed.agreement is None or observed.compared < ENOUGH_COMPARED:
        return FittedJudges(
            SIMULATED_JUDGES + extra,
            f"Only {observed.compared} votes could be compared with others on the same pair, so the default "
            "noise is assumed.",
        )
    met = [(spread, _agreement_of(f"bt:sd={spread}{extra}", observed, cap, seed)) for spread in SPREADS]
    known = [(spread, share) for spread, share in met if share is not None]
    if not known:
        return FittedJudges(
            SIMULATED_JUDGES + extra,
            f"{observed.strategy} judges no pair twice, so the default noise is assumed.",
        )
    spread = _crossing(known, observed.agreement)
    return FittedJudges(
        f"bt:sd={spread:.2f}{extra}",
        f"Two votes on one pair agree {observed.agreement:.0%} of the time ({observed.compared} comparisons).",
    )


def _crossing(met: list[tuple[float, float]], wanted: float) -> float:
    """Return the spread at which the agreement is the wanted one, between two that were simulated."""
    if wanted <= met[0][1]:
        return met[0][0]
    for (low, below), (high, above) in pairwise(met):
        if below <= wanted <= above and above > below:
            return low + (high - low) * (wanted - below) / (above - below)
    return met[-1][0]


@dataclass(slots=True)
class _Listening:
    """Judges whose votes are counted."""

    model: JudgeModel
    votes: dict[tuple[str, str, str], Counter[str]] = field(default_factory=dict)

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        return self.model.pools

    @property
    def size(self) -> int | None:
        return self.model.size

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        return _Heard(self.model.judge(topic, items, seed), self, len(items))


@dataclass(slots=True)
class _Heard:
    judged: SimulatedJudge
    ear: _Listening
    items: int

    @property
    def truth(self) -> Levels:
        return self.judged.truth

    def answer(self, topic: str, left: str, right: str, nth: int) -> Outcome:
        outcome = self.judged.answer(topic, left, right, nth)
        if outcome in {Outcome.LEFT, Outcome.RIGHT}:
            winner = left if outcome is Outcome.LEFT else right
            low, high = sorted((left, right))
            self.ear.votes.setdefault((f"{self.items} {topic}", low, high), Counter())[winner] += 1
        return outcome


def _agreement_of(judges: str, observed: Observed, cap: int | None, seed: int) -> float | None:
    """Return how often two votes on one pair agree in a simulation of the pilot; None without such votes."""
    ear = _Listening(make_judges(judges))
    mean = max(1.0, observed.judgments / max(1, observed.topics))
    trials = max(len(set(observed.sizes)), min(_FIT_TRIALS, int(_FIT_JUDGMENTS / mean)))
    each = Counter(observed.sizes)
    for size, count in each.items():
        if size > 1:
            share = max(1, round(trials * count / len(observed.sizes)))
            simulate(observed.strategy, ear, items=size, cap=cap, trials=share, seed=seed)
    same, compared = _same_of(ear.votes.values())
    return same / compared if compared else None


# ---- what to take


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The strategy to take, None where none fits, and why."""

    strategy: str | None
    reason: str


def candidates(
    sizes: Collection[int], pay: Pay, max_cost: int | None, usable: float = 1.0
) -> tuple[str, ...]:
    """Return strategies with parameters to compare; under a cap also some that spend just what it allows."""
    found = [
        *("swissfinals", "prefbest:n=3,m=5", "prefbest:n=5,m=7", "prefbest", "prefbest:final_phases=2"),
        *("topk", "knockout", "sorting", "allpairs", "allpairs:repeats=3"),
    ]
    if max_cost is not None:
        allowed = pay.questions * (max_cost // max(1, pay.per_assignment)) * usable
        per_topic = int(allowed / len(sizes)) if sizes else 0
        largest = max(sizes, default=0)
        if per_topic > largest:
            found += [f"swissfinals:budget={per_topic}", f"round-efficient:budget={per_topic}"]
    return tuple(found)


def recommend(forecasts: Collection[Forecast], max_cost: int | None = None) -> Recommendation:
    """Choose among forecasts: the cheapest of those that find as much as the best, within one standard error.

    With a cost cap, among those that it pays for.
    """
    if not forecasts:
        raise BadParameter("There is nothing to choose from.", remedy="Simulate some strategies first.")
    within = [each for each in forecasts if max_cost is None or each.cost <= max_cost]
    if not within:
        cheapest = min(forecasts, key=lambda each: (each.cost, -each.found))
        assert max_cost is not None  # noqa: S101 (without a cap all of them are within it)
        return Recommendation(
            None,
            f"No strategy costs at most {max_cost / 100:,.2f}: the cheapest, {cheapest.strategy}, costs "
            f"{cheapest.cost / 100:,.2f}. Raise the limit, thin the pools, or judge about "
            f"{max_cost / max(1, cheapest.cost):.0%} of the topics.",
        )
    best = max(within, key=lambda each: (each.found, -each.cost))
    enough = [each for each in within if each.found >= best.found - best.error]
    chosen = min(enough, key=lambda each: (each.cost, each.rounds, -each.found))
    cap = "" if max_cost is None else f", within the limit of {max_cost / 100:,.2f}"
    others = "" if chosen is best else f" {best.strategy} finds {best.found:.0%} for {best.cost / 100:,.2f}."
    return Recommendation(
        chosen.strategy,
        f"{chosen.strategy} finds the best item of {chosen.found:.0%} of the topics (±{chosen.error:.0%}) for "
        f"{chosen.cost / 100:,.2f}{cap}; it is the cheapest within one standard error of the best.{others}",
    )
