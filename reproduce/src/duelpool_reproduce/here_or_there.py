"""Here or There (2008), Figure 2: how many judgments are needed when not all pairs are judged.

Three engines bring their first five pages, 5 to 15 different ones. All pairs are judged; or the pages are
sorted; or sorted with Bad pages leaving at once; or only as many pairs are judged as tell two of the engines
apart. The study's own judgments were never released: its assessors are simulated, a fifth of the pages Bad.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from duelpool.errors import BadParameter
from duelpool.records import Judgment, Outcome, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies.base import Strategy
from duelpool.strategies.difference import AbsoluteDifference, Measure, RankingDifference
from duelpool.strategies.sorting import Sorting

ENGINES = 3
DEPTH = 5  # pages that each engine brings
TOPIC = "query"
GRADE_SHARES = (0.20, 0.28, 0.25, 0.25, 0.02)  # Bad, Fair, Good, Excellent, Perfect in the study


@dataclass(frozen=True, slots=True)
class Effort:
    """The mean number of judgments for pools of one size, under each way to judge them.

    `agreement` is the share of queries where stopping early names the engine that all pairs name.
    """

    items: int
    all_pairs: float
    sorting: float
    sorting_with_bad: float
    difference: float
    grades: float  # all pages graded
    grades_difference: float  # only those that tell the two engines apart
    agreement: float


@dataclass(frozen=True, slots=True)
class Query:
    """A simulated query: its pages from the best to the worst, their grades, and each engine's ranking."""

    pages: tuple[str, ...]
    grades: tuple[int, ...]
    runs: tuple[tuple[str, ...], ...]


def simulated_query(items: int, rng: np.random.Generator) -> Query:
    """Return a query with a number of different pages among three engines' first five."""
    if not DEPTH <= items <= ENGINES * DEPTH:
        raise BadParameter(f"{ENGINES} engines bring {DEPTH} to {ENGINES * DEPTH} pages, not {items}.")
    rankings: list[list[int]] = [[] for _ in range(ENGINES)]
    for page in rng.permutation(items).tolist():  # each page has an engine that found it
        open_engines = [engine for engine in rankings if len(engine) < DEPTH]
        open_engines[int(rng.integers(len(open_engines)))].append(page)
    for engine in rankings:  # the others found it too
        others = [page for page in range(items) if page not in engine]
        engine.extend(rng.permutation(others)[: DEPTH - len(engine)].tolist())
    quality = np.sort(rng.normal(size=items))[::-1]
    runs = []
    for engine in rankings:
        seen = quality[engine] + rng.normal(size=DEPTH)  # an engine sees the quality through its own noise
        runs.append(tuple(f"page-{engine[at]:02d}" for at in np.argsort(-seen).tolist()))
    # Grades in the study's shares; the pages stand from the best to the worst, so the lowest grades last.
    steps = np.searchsorted(np.cumsum(GRADE_SHARES)[:-1], rng.random(items), side="right")
    grades = tuple(sorted(steps.tolist(), reverse=True))
    return Query(tuple(f"page-{at:02d}" for at in range(items)), grades, tuple(runs))


def _answer(
    query: Query, rng: np.random.Generator, slips: float, *, bad: bool
) -> Callable[[str, str], Outcome]:
    place = {page: at for at, page in enumerate(query.pages)}
    by_bad = {
        (True, True): Outcome.BOTH_BAD,
        (True, False): Outcome.LEFT_BAD,
        (False, True): Outcome.RIGHT_BAD,
    }

    def answer(left: str, right: str) -> Outcome:
        named = (query.grades[place[left]] == 0, query.grades[place[right]] == 0)
        if bad and named in by_bad:
            return by_bad[named]
        right_one = place[left] < place[right]
        return Outcome.LEFT if right_one != (rng.random() < slips) else Outcome.RIGHT

    return answer


def _judged(strategy: Strategy, answer: Callable[[str, str], Outcome]) -> int:
    """Judge what the strategy asks, one pair at a time, and return how many there were."""
    count = 0
    while not strategy.done:
        proposal: Proposal = strategy.ask(1)[0]
        strategy.tell(Judgment(TOPIC, *proposal.pair, answer(*proposal.pair)))
        count += 1
    return count


def _graded(query: Query, run_a: Sequence[str], run_b: Sequence[str]) -> int:
    study = AbsoluteDifference(query.pages, run_a=run_a, run_b=run_b)
    grade = dict(zip(query.pages, query.grades, strict=True))
    count = 0
    while not study.done:
        (page,) = study.ask(1)
        study.tell(page, grade[page])
        count += 1
    return count


def _one_query(items: int, key: tuple[int, int], measure: Measure, slips: float) -> Effort:
    seed, trial = key
    rng = rng_for(seed, "here or there", items, trial)
    query = simulated_query(items, rng)
    run_a, run_b = query.runs[0], query.runs[1]
    with_bad = _answer(query, rng, slips, bad=True)
    stopping = RankingDifference(query.pages, seed=seed, run_a=run_a, run_b=run_b, measure=measure)
    thorough = RankingDifference(
        query.pages, seed=seed, run_a=run_a, run_b=run_b, measure=measure, early_stopping=False
    )
    sure = _answer(query, rng, 0.0, bad=True)
    _judged(thorough, sure)
    return Effort(
        items=items,
        all_pairs=math.comb(items, 2),
        sorting=_judged(Sorting(query.pages, seed=trial), _answer(query, rng, slips, bad=False)),
        sorting_with_bad=_judged(Sorting(query.pages, seed=trial), with_bad),
        difference=_judged(stopping, with_bad),
        grades=items,
        grades_difference=_graded(query, run_a, run_b),
        agreement=float(stopping.verdict().leader == thorough.verdict().leader),
    )


def judging_effort(
    sizes: Sequence[int] = range(DEPTH, ENGINES * DEPTH + 1),
    *,
    trials: int = 200,
    seed: int = 0,
    measure: Measure = "ppref",
    slips: float = 0.005,
) -> tuple[Effort, ...]:
    """Return the mean numbers of judgments for each size of the pool, over a number of simulated queries.

    `slips` is the chance that an assessor prefers the worse of two pages: at .005 more than 99 % of the
    triplets are transitive, as in the study.
    """
    if trials < 1 or not 0 <= slips < 0.5:
        raise BadParameter("At least one trial, and fewer slips than right answers, are needed.")
    rows = []
    for items in sizes:
        queries = [_one_query(items, (seed, trial), measure, slips) for trial in range(trials)]
        means = {
            each.name: float(np.mean([getattr(query, each.name) for query in queries]))
            for each in fields(Effort)
            if each.name != "items"
        }
        rows.append(Effort(items=items, **means))
    return tuple(rows)
