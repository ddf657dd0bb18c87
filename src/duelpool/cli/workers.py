"""Who does the work of a long command, and how far it has got."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from duelpool.errors import DuelpoolError, MissingExtra
from duelpool.simulation import Progress as Ended
from duelpool.simulation import processes

TRIALS_PER_WORKER = 25  # fewer aren't worth the second that a process takes to start


@contextmanager
def workforce(workers: int | None, cluster: str | None, trials: int) -> Iterator[Executor | None]:
    """Give an executor: processes here (by default one a core), or the workers of a Dask cluster."""
    if cluster is not None:
        with _dask(cluster) as executor:
            yield executor
        return
    if workers is None:
        workers = max(1, min(available_cores(), trials // TRIALS_PER_WORKER))
    with processes(workers) as executor:
        yield executor


def available_cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not every system can say
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtra("distributed", "cluster") from error
    try:
        client: Any = Client(address, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        problem = f"No Dask scheduler answers at {address}."
        raise DuelpoolError(problem, remedy="Start one with: dask scheduler") from error
    with client, client.get_executor() as executor:
        yield executor


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Ended]:
    """Give a function that moves a bar on standard error, shown where a person looks at it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    quiet = not sys.stderr.isatty()
    console = Console(stderr=True, quiet=quiet)  # rich before 14.3 ends even a hidden bar with a line
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(what, total=total)
        yield lambda ended: bar.update(task, advance=ended)
