"""Where a long command computes: in processes here, or on a Dask cluster."""

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from duelpool.errors import DuelpoolError, MissingExtra
from duelpool.simulation import processes

TRIALS_PER_WORKER = 25  # with fewer, starting a process takes longer than it saves


@contextmanager
def open_executor(workers: int | None, cluster: str | None, trials: int) -> Iterator[Executor | None]:
    """Open an executor: processes here (by default one per core), or a Dask cluster by its address."""
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
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
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
