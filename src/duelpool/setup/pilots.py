"""Pilots: how noisy the judges are, and which strategy to take under a cost cap.

A pilot is a small campaign on a share of the topics. Its judgments show how often two people agree on a pair, how
often they tie, how long they take, how many test pairs they fail, and how many of the paid judgments count.
Simulated judges are fitted to that, and every candidate strategy is simulated with them on the pools of all topics.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from duelpool.campaign import Campaign
from duelpool.campaign.log.replay import read_counted_lines
from duelpool.campaign.views.reading import read_topic, topics_of
from duelpool.campaign.views.status import better_items
from duelpool.campaign.views.tally import TopicTally, agreement_with_others
from duelpool.errors import BadParameter
from duelpool.judges import JudgeModel, SimulatedJudge, TrueOrder, make_judges
from duelpool.records import Judgment, Levels, Outcome
from duelpool.setup.forecasts import Forecast, strategies_for_people
from duelpool.simulation import simulate
from duelpool.simulation.cost import Pay
from duelpool.simulation.known import SIMULATED_JUDGES
from duelpool.store import Reading, holdings, log
from duelpool.strategies import STRATEGIES
from duelpool.strategies.parameters import parameters_of

ENOUGH_COMPARED = 20  # pairs of votes on one pair; with fewer, the noise can't be estimated
SPREADS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"prefbest": ("n=3,m=5", "n=5,m=7", "final_phases=2"), "allpairs": ("repeats=3",)}
)
"""Parameters of strategies that are compared besides their defaults."""
MOST_AN_ITEM = 20
"""Judgments an item of the largest budget to compare: more find hardly more, and take long to simulate."""
POINTS_A_DOUBLING = 0.05
"""How much more often twice the judgments have to find the best item to be worth it."""
_WORTH_IT = (
    "A strategy that takes twice as many judgments is recommended only if it finds the best item of at least "
    f"{100 * POINTS_A_DOUBLING:.0f} more of 100 topics."
)
_FIT_JUDGMENTS = 4_000
_FIT_TRIALS = 30


@dataclass(frozen=True, slots=True)
class Observed:
    """The figures of a pilot's judgments; shares are from 0 to 1, None without data.

    `agreement` is the share of two people's votes on one pair that have the same winner, `usable` the share of paid
    questions about target pairs whose answers count, `failed` the share of test pairs failed by those whose judgments
    count. `answered` and `missed` count the test pairs that all own assessors were asked and failed, those of excluded
    people too.
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
    answered: int = 0
    missed: int = 0

    @property
    def test_pairs(self) -> str:
        """How many test pairs were failed, in words: by all, and by the people whose judgments count."""
        counted = round(self.tests * (self.failed or 0.0))
        said = f"{self.missed} of {self.answered} test pairs failed"
        if (counted, self.tests) != (self.missed, self.answered):
            said += f"; {counted} of {self.tests} by people whose judgments count"
        return said

    def hourly(self, pay: Pay) -> float | None:
        """Return the hourly pay at these seconds per judgment, in minor units."""
        return None if not self.seconds else pay.reward * 3600.0 / (self.seconds * pay.questions)


def observe(campaign: Campaign) -> Observed:
    """Return the figures of a campaign's judgments; nothing is written."""
    if campaign.live.goal.of_systems:
        raise BadParameter(
            f"The campaign '{campaign.name}' compares systems, and has no strategy to learn from.",
            remedy="Learn from a campaign with the goal 'best'.",
        )
    return campaign.read(lambda tx: _observe(tx, campaign))


def _observe(tx: Reading, campaign: Campaign) -> Observed:
    judged: list[Judgment] = []
    sizes = []
    tests = passed = answered = missed = 0
    better = better_items(tx)
    enrolled = {name: row for name, row in holdings.assessors(tx).items() if row.kind != "imported"}
    paid = _Paid(enrolled)
    for topic in topics_of(tx):
        before = len(judged)
        tally = TopicTally(read_counted_lines(tx, topic), better)

        def visit(line: log.Line, tally: TopicTally = tally) -> None:
            tally.add(line)
            paid.add(line)

        read_topic(tx, campaign, topic, on_judgment=judged.append, visit=visit)
        if len(judged) > before:
            sizes.append(len(campaign.live.items(topic)))
        for assessor, own in tally.assessors.items():
            if assessor in enrolled:
                answered += own.tests_seen
                missed += own.tests_seen - own.tests_passed
                if enrolled[assessor].state != "excluded":
                    tests += own.tests_seen
                    passed += own.tests_passed
    timed = [each.seconds for each in judged if each.seconds is not None]
    same, compared = _agreement(judged)
    own_judged = sum(each.assessor in enrolled for each in judged)
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
        usable=own_judged / len(paid.questions) if own_judged else 1.0,
        answered=answered,
        missed=missed,
    )


@dataclass(slots=True)
class _Paid:
    """The questions about target pairs that the campaign's own assessors have ended, with whatever answer.

    An answer that its assessor has undone and given again is one question; imported judgments aren't paid.
    """

    enrolled: Collection[str]
    questions: set[tuple[str, str]] = field(default_factory=set)

    def add(self, line: log.Line) -> None:
        """Count a line of the log."""
        judgment = line.judgment
        if judgment is None or line.test_pair is not None or judgment.repeated or judgment.right is None:
            return
        if judgment.assessor in self.enrolled:
            self.questions.add((line.topic, judgment.question or str(line.seq)))


def _agreement(judged: Collection[Judgment]) -> tuple[int, int]:
    """Return how often two people name the same winner of a pair, and how often two people have voted on one."""
    votes: dict[tuple[str, tuple[str, str]], list[tuple[str, str]]] = {}
    for each in judged:
        if each.winner is not None and each.right is not None:
            votes.setdefault((each.topic, each.pair), []).append((each.assessor, each.winner))
    sides = [counts for own in votes.values() for counts in agreement_with_others(own).values()]
    return sum(same for same, _ in sides) // 2, sum(compared for _, compared in sides) // 2


def _same_of(votes: Collection[Counter[str]]) -> tuple[int, int]:
    same = sum(count * (count - 1) // 2 for each in votes for count in each.values())
    compared = sum(each.total() * (each.total() - 1) // 2 for each in votes)
    return same, compared


# ---- fitting simulated judges


@dataclass(frozen=True, slots=True)
class FittedJudges:
    """Simulated judges that behave like those of a pilot, and how they were fitted."""

    judges: str
    note: str


def fit_judges(observed: Observed, *, cap: int | None = 6, seed: int = 1) -> FittedJudges:
    """Return simulated judges whose votes on a pair agree as often as a pilot's did.

    Failed test pairs give the rate of slips, for their answers are known. The spread of the items' strengths is the
    one with which the pilot's own strategy, simulated on pools of the same sizes, meets the same agreement: a
    strategy asks about close pairs more often, so the agreement alone isn't enough.
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
    spread = _interpolate(known, observed.agreement)
    return FittedJudges(
        f"bt:sd={spread:.2f}{extra}",
        f"Two votes on one pair agree {observed.agreement:.0%} of the time ({observed.compared} comparisons).",
    )


def _interpolate(met: list[tuple[float, float]], wanted: float) -> float:
    """Interpolate the spread at which the simulated agreement is the wanted one."""
    if wanted <= met[0][1]:
        return met[0][0]
    for (low, below), (high, above) in pairwise(met):
        if below <= wanted <= above and above > below:
            return low + (high - low) * (wanted - below) / (above - below)
    return met[-1][0]


@dataclass(slots=True)
class _CountingJudges:
    """Simulated judges whose votes are counted."""

    model: JudgeModel
    votes: dict[tuple[str, str, str], Counter[str]] = field(default_factory=dict)

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        return self.model.pools

    @property
    def size(self) -> int | None:
        return self.model.size

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        return _CountingJudge(self.model.judge(topic, items, seed), self, len(items))


@dataclass(slots=True)
class _CountingJudge:
    judge: SimulatedJudge
    counts: _CountingJudges
    items: int

    @property
    def truth(self) -> Levels:
        return self.judge.truth

    def true_order(self, rule: str) -> TrueOrder:
        return self.judge.true_order(rule)

    def win_chance(self, item: str, other: str) -> float:
        return self.judge.win_chance(item, other)

    def answer(self, topic: str, left: str, right: str, nth: int) -> Outcome:
        outcome = self.judge.answer(topic, left, right, nth)
        if outcome in {Outcome.LEFT, Outcome.RIGHT}:
            winner = left if outcome is Outcome.LEFT else right
            low, high = sorted((left, right))
            self.counts.votes.setdefault((f"{self.items} {topic}", low, high), Counter())[winner] += 1
        return outcome


def _agreement_of(judges: str, observed: Observed, cap: int | None, seed: int) -> float | None:
    """Return how often two votes on one pair agree in a simulation of the pilot; None without two votes on a pair."""
    counting = _CountingJudges(make_judges(judges))
    mean = max(1.0, observed.judgments / max(1, observed.topics))
    trials = max(len(set(observed.sizes)), min(_FIT_TRIALS, int(_FIT_JUDGMENTS / mean)))
    each = Counter(observed.sizes)
    for size, count in each.items():
        if size > 1:
            share = max(1, round(trials * count / len(observed.sizes)))
            simulate(observed.strategy, counting, items=size, cap=cap, trials=share, seed=seed)
    same, compared = _same_of(counting.votes.values())
    return same / compared if compared else None


# ---- recommendation


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended strategy, None where none fits, and the reason."""

    strategy: str | None
    reason: str


def candidates(
    sizes: Collection[int], pay: Pay, max_cost: int | None, usable: float = 1.0
) -> tuple[str, ...]:
    """Return strategies to compare; under a cost cap also some with the budget that it allows."""
    names = strategies_for_people(None)
    specs = [*names, *(f"{name}:{values}" for name in names for values in VARIANTS.get(name, ()))]
    if max_cost is not None:
        allowed = pay.questions * (max_cost // max(1, pay.per_assignment)) * usable
        per_topic = int(allowed / len(sizes)) if sizes else 0
        largest = max(sizes, default=0)
        per_topic = min(per_topic, MOST_AN_ITEM * largest)
        if per_topic > largest:
            takers = [name for name in names if "budget" in parameters_of(STRATEGIES[name])]
            specs += [f"{name}:budget={per_topic}" for name in takers]
    return tuple(specs)


def recommend(forecasts: Collection[Forecast], max_cost: int | None = None) -> Recommendation:
    """Recommend the strategy whose judgments are worth it: twice as many have to find 5 points more.

    With a cost cap, only strategies within it are considered, and the cheapest is recommended of those within one
    standard error of the one that finds most: the cap says what the best items are worth. A strategy of few trials
    is taken for one that finds one standard error less.
    """
    if not forecasts:
        raise BadParameter("There are no forecasts to choose from.", remedy="Simulate some strategies first.")
    affordable = [each for each in forecasts if max_cost is None or each.cost <= max_cost]
    if not affordable:
        cheapest = min(forecasts, key=lambda each: (each.cost, -each.found))
        assert max_cost is not None  # noqa: S101 (without a cap all are affordable)
        return Recommendation(
            None,
            f"No strategy costs at most {max_cost / 100:,.2f}: the cheapest, {cheapest.strategy}, costs "
            f"{cheapest.cost / 100:,.2f}. Raise the limit, thin the pools, or judge about "
            f"{max_cost / max(1, cheapest.cost):.0%} of the topics.",
        )
    best = max(affordable, key=lambda each: (each.found, -each.cost))
    if max_cost is None:
        chosen = max(affordable, key=lambda each: (_worth(each), -each.rounds))
        limit, why = "", _WORTH_IT
    else:
        surest = max(affordable, key=lambda each: (each.found - each.error, -each.cost))
        enough = [each for each in affordable if each.found >= surest.found - surest.error]
        chosen = min(enough, key=lambda each: (each.cost, each.rounds, -each.found))
        limit = f" for {chosen.cost / 100:,.2f}, within the limit of {max_cost / 100:,.2f}"
        why = "It is the cheapest within one standard error of the best."
    cheaper = [each for each in affordable if each.judgments <= chosen.judgments / 2]
    told = [best] if chosen is not best else []
    told += [max(cheaper, key=lambda each: (each.found, -each.cost))] if cheaper else []
    others = "".join(
        f" {each.strategy} finds {each.found:.0%} (±{each.error:.0%}) with {each.judgments:,}."
        for each in told
    )
    return Recommendation(
        chosen.strategy,
        f"{chosen.strategy} finds the best item of {chosen.found:.0%} of the topics (±{chosen.error:.0%}) with "
        f"{chosen.judgments:,} judgments{limit}. {why}{others}",
    )


def _worth(each: Forecast) -> float:
    """Return what a strategy surely finds, less what its judgments are worth."""
    return each.found - each.error - POINTS_A_DOUBLING * math.log2(max(1, each.judgments))
