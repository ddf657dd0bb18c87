"""Metrics for Prometheus: the request counts of all processes of a server, and counts of the store.

Each process counts in a small memory-mapped file of its own; the process that gets the request for metrics adds the
files up. The file of a process that died is kept, so that no counter ever falls.
"""

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from duelpool.store import Store
from duelpool.store.counts import campaign_counts, wal_bytes

BOUNDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the histogram of answer times, in seconds."""

_EXPOSED_AS = {
    "log_lines": ("log_lines_total", "counter"),
    "leases": ("leases", "gauge"),
    "assessors": ("assessors", "gauge"),
    "imports_under_way": ("imports_under_way", "gauge"),
}
"""The store's counts, each with its name and type for Prometheus."""
_STATUSES = tuple(range(1, 6))
_SLOTS = len(_STATUSES) + 1 + len(BOUNDS) + 1  # statuses, total seconds, buckets and the one above all bounds
_SIZE = 8 * _SLOTS
_SECONDS = len(_STATUSES)
_BUCKETS = _SECONDS + 1


class RequestCounts:
    """The request counts of one process; with a folder, other processes can read them."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._own: mmap.mmap | bytearray = bytearray(_SIZE)
        if folder is not None:
            with (folder / f"{os.getpid()}.counts").open("w+b") as file:
                file.truncate(_SIZE)
                self._own = mmap.mmap(file.fileno(), _SIZE)

    def answered(self, status: int, seconds: float, is_answer: bool) -> None:
        """Count a request, and its time if it stored an answer."""
        self._add(min(max(status // 100, 1), 5) - 1, 1.0)
        if is_answer:
            self._add(_SECONDS, seconds)
            place = next((at for at, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
            self._add(_BUCKETS + place, 1.0)

    def _add(self, slot: int, value: float) -> None:
        (before,) = struct.unpack_from("d", self._own, 8 * slot)
        struct.pack_into("d", self._own, 8 * slot, before + value)

    def totals(self) -> list[float]:
        """Return the sum over all processes, slot by slot."""
        totals = [0.0] * _SLOTS
        for each in self._of_processes():
            for slot, (value,) in enumerate(struct.iter_unpack("d", each)):
                totals[slot] += value
        return totals

    def _of_processes(self) -> Iterator[bytes]:
        if self._folder is None:
            yield bytes(self._own)
            return
        for file in sorted(self._folder.glob("*.counts")):
            data = file.read_bytes()
            if len(data) == _SIZE:
                yield data


def exposition(counts: RequestCounts, store: Store) -> str:
    """Return all metrics in Prometheus' text format."""
    totals = counts.totals()
    lines = ["# TYPE duelpool_requests_total counter"]
    lines += [f'duelpool_requests_total{{status="{each}xx"}} {totals[each - 1]:.0f}' for each in _STATUSES]
    lines.append("# TYPE duelpool_answer_seconds histogram")
    sum_so_far = 0.0
    for at, bound in enumerate((*map(str, BOUNDS), "+Inf")):
        sum_so_far += totals[_BUCKETS + at]
        lines.append(f'duelpool_answer_seconds_bucket{{le="{bound}"}} {sum_so_far:.0f}')
    lines.append(f"duelpool_answer_seconds_sum {totals[_SECONDS]:.6f}")
    lines.append(f"duelpool_answer_seconds_count {sum_so_far:.0f}")
    for count in store.read(campaign_counts):
        name, kind = _EXPOSED_AS[count.name]
        lines.append(f"# TYPE duelpool_{name} {kind}")
        lines += [
            f'duelpool_{name}{{campaign="{campaign}"}} {value}'
            for campaign, value in count.by_campaign.items()
        ]
    wal = wal_bytes(store)
    if wal is not None:
        lines += ["# TYPE duelpool_wal_bytes gauge", f"duelpool_wal_bytes {wal}"]
    return "\n".join(lines) + "\n"
