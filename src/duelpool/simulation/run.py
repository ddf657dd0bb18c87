"""Many trials, over one process or many: with the same results.

Trial number t has a seed of its own, drawn from the simulation's seed and t, so the trials are the same
whatever executor runs them, in however many pieces.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeAlias

from duelpool.errors import BadParameter
from duelpool.judges import BORDA, JudgeModel, make_judges, require_truth
from duelpool.simulation.records import SimulationResult, Trial
from duelpool.simulation.trial import StrategyMaker, TrialPlan, judgments_allowed, made_strategy, run_trials

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of trials that have just ended."""

DEFAULT_ITEMS = 100
POINTS_OF_A_CURVE = 25
COMPARISONS_PER_ITEM = 10  # how far a curve goes when no budget bounds it
LARGEST_CHUNK = 25  # trials that a worker takes on at once


def simulate(
    strategy: str | StrategyMaker,
    judges: str | JudgeModel,
    *,
    items: int | None = None,
    budget: int | str | None = None,
    cap: int | None = 6,
    trials: int = 1000,
    seed: int = 0,
    batch: int | None = None,
    outstanding: int | None = None,
    checkpoints: Sequence[int] = (),
    prior: Mapping[str, Mapping[str, float]] | None = None,
    truth: str = BORDA,
    executor: Executor | None = None,
    progress: Progress | None = None,
    case: str = "",
) -> SimulationResult:
    """Run a strategy against simulated judges, many times, and return its results and costs.

    `items` is the size of invented pools (100, or as many as a matrix has rows). `budget` bounds the
    comparisons of a trial: a number, or a text such as "7K" for seven per item; a strategy with a `budget` of
    its own gets it. `batch` bounds how many pairs are asked and judged at once (default: as many as the
    strategy gives); with `outstanding`, that many pairs are being judged at any time and are answered in random order,
    one at a time. `prior` holds a score per item by topic, for strategies that take one; its topics are those
    of judges that bring their own pools. `truth` says which items are truly the best: Borda's, Copeland's or
    Condorcet's, see `judges.truth`. `executor` is any of concurrent.futures' kind, such as
    `processes(2)` or a Dask client's.
    """
    model = make_judges(judges) if isinstance(judges, str) else judges
    size = _pool_size(model, items)
    points = tuple(sorted(checkpoints))
    plan = TrialPlan(strategy, model, size, budget, cap, seed, batch, outstanding, points, prior, truth)
    require_truth(truth)
    _refuse_bad_numbers(plan, trials)
    started = time.perf_counter()
    outcomes = _run_all(plan, trials, executor, progress)
    return SimulationResult(
        strategy=strategy if isinstance(strategy, str) else getattr(strategy, "name", repr(strategy)),
        case=case or (judges if isinstance(judges, str) else type(judges).__name__),
        items=None if model.pools else size,
        budget="" if budget is None else str(budget),
        cap=cap,
        seed=seed,
        outcomes=outcomes,
        checkpoints=plan.checkpoints,
        seconds=time.perf_counter() - started,
        truth=truth,
    )


def curve_points(budget: int | str | None, items: int | None, points: int = POINTS_OF_A_CURVE) -> list[int]:
    """Return the numbers of judgments at which a curve is measured, for `checkpoints`."""
    size = DEFAULT_ITEMS if items is None else items
    most = judgments_allowed(budget, max(1, size)) or COMPARISONS_PER_ITEM * max(1, size)
    return sorted({max(1, round(most * at / points)) for at in range(1, points + 1)})


@contextmanager
def processes(workers: int) -> Iterator[Executor | None]:
    """Return an executor of `workers` processes on this machine; None, for this process, when it is one."""
    if workers < 1:
        raise BadParameter(f"At least one worker is needed, not {workers}.")
    if workers == 1:
        yield None
        return
    executor = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))  # fork and threads don't mix
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def _pool_size(model: JudgeModel, items: int | None) -> int:
    if items is None:
        return DEFAULT_ITEMS if model.size is None else model.size
    if items < 0:
        raise BadParameter(f"A pool can't have {items} items.")
    if model.size is not None and model.size != items:
        problem = f"These judges know {model.size} items, not {items}."
        raise BadParameter(problem, remedy="Leave the number of items out.")
    if model.pools:
        problem = "These judges bring their own pools."
        raise BadParameter(problem, remedy="Leave the number of items out; min_items skips small pools.")
    return items


def _refuse_bad_numbers(plan: TrialPlan, trials: int) -> None:
    counts = {"trials": trials, "cap": plan.cap, "batch": plan.batch, "outstanding": plan.outstanding}
    for name, value in counts.items():
        if value is not None and value < 1:
            raise BadParameter(f"'{name}' is at least 1, not {value}.")
    if plan.seed < 0:
        raise BadParameter(f"A seed is a whole number from 0 on, not {plan.seed}.")
    if plan.prior is not None and plan.prior.keys().isdisjoint(plan.judges.pools):
        problem = "The prior knows none of the topics that are judged."
        raise BadParameter(
            problem, remedy="Simulate a replay or graded pools, and give scores for their topics."
        )
    allowed = judgments_allowed(plan.budget, max(1, plan.items))
    # Refuse a wrong name or parameter here rather than inside a worker.
    made_strategy(plan.strategy, ("a", "b"), seed=0, topic="none", cap=plan.cap, budget=allowed)


def _run_all(
    plan: TrialPlan, trials: int, executor: Executor | None, progress: Progress | None
) -> tuple[Trial, ...]:
    size = 1 if executor is None else max(1, min(LARGEST_CHUNK, trials // 40))
    pieces = [(start, min(size, trials - start)) for start in range(0, trials, size)]
    if executor is None:
        chunks = [_reported(run_trials(plan, start, count), progress) for start, count in pieces]
        return tuple(trial for chunk in chunks for trial in chunk)
    futures: dict[Future[list[Trial]], int] = {
        executor.submit(run_trials, plan, start, count): start for start, count in pieces
    }
    ended: dict[int, list[Trial]] = {}
    for future in as_completed(futures):
        ended[futures[future]] = _reported(future.result(), progress)
    return tuple(trial for start in sorted(ended) for trial in ended[start])


def _reported(chunk: list[Trial], progress: Progress | None) -> list[Trial]:
    if progress is not None:
        progress(len(chunk))
    return chunk
