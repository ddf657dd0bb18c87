"""Bradley-Terry strengths and their bootstrap, against evalica."""

from benchmarks import measures
from benchmarks.scale_parts.measuring import Row
from peers.installed import installed, tell_missing

ROUNDS = 5


def measure(size: float) -> list[Row]:
    """Measure at a size; 1.0 is a million pairs, and 100 resamples of 20,000."""
    tell_missing("evalica")
    if not installed("evalica"):
        return []
    rows = []
    pairs = max(10_000, round(1_000_000 * size))
    ours, theirs = measures.bradley_terry_ratio(pairs, 200, ROUNDS)
    rows.append(Row("Bradley-Terry, a million pairs of 200 items", ours, note=f"{pairs:,} pairs"))
    rows.append(Row("the same against evalica", theirs / ours, "times", 15, 20))
    ours, theirs = measures.bootstrap_ratio(20_000, 200, ROUNDS)
    rows.append(Row("100 resamples of 20,000 pairs of 200 items", ours))
    rows.append(Row("the resamples against evalica", theirs / ours, "times", 20, 30))
    ours, theirs = measures.bootstrap_ratio(20_000, 200, ROUNDS, in_a_new_process=True)
    rows.append(Row("the same in a new process: no compiled loop", theirs / ours, "times"))
    return rows
