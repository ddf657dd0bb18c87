"""Files made to keep a reader busy: how the CPU time of every reader grows with the size of the file.

python benchmarks/hostile.py [--reader read_run] [--kib 8 32 128 512]

For each reader the file whose time grew fastest, from one size to the next: its time at both, and the growth of the
time as a multiple of the growth of the file. A linear reader has 1, a quadratic one 4 where the file grows fourfold.
Times below 0.05 seconds count as that, since short times say nothing. Exit code 1 if a multiple is over 2.25.
"""

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from duelpool.errors import DuelpoolError
from fuzz_files import READERS, try_on
from support.hostile import HOSTILE

ALLOWED = 2.25
UNSEEN_SECONDS = 0.05

# What these read takes longer by its nature.
NOT_LINEAR = {
    "import": "a transaction a file",
    "read_prior": "a model is fitted to the preferences that were read",
}
NOT_OURS = {
    ("read_settings", "tables in tables of a setting"): "Python reads TOML; settings files aren't uploaded",
    ("read_changes", "tables in tables of a setting"): "the same",
}


class Growth(NamedTuple):
    """Of the time of a reader, from one size of a file to the next."""

    multiple: float
    seconds: float
    before: float
    size: int
    file: str


def cpu_seconds(name: str, data: bytes, folder: Path) -> float:
    """Return the CPU time that a reader takes, the shorter of two where it is long enough to matter."""
    times: list[float] = []
    while len(times) < 2 and (not times or times[0] > UNSEEN_SECONDS):
        gc.collect()  # what earlier files left isn't this one's
        start = time.process_time()
        try:
            try_on(name, data, folder)
        except AssertionError as error:
            if not isinstance(error.__cause__, DuelpoolError):  # what a message says is tested elsewhere
                raise
        times.append(time.process_time() - start)
    return max(UNSEEN_SECONDS, min(times))


def fastest_growth(name: str, sizes: Sequence[int], folder: Path) -> Growth:
    grown = []
    for file, make in HOSTILE.items():
        if (name, file) in NOT_OURS:
            continue
        seconds = [cpu_seconds(name, make(size), folder) for size in sizes]
        for at in range(1, len(sizes)):
            multiple = seconds[at] / seconds[at - 1] / (sizes[at] / sizes[at - 1])
            grown.append(Growth(multiple, seconds[at], seconds[at - 1], sizes[at], file))
    return max(grown)


def main() -> int:
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument(
        "--reader", choices=[name for name in READERS if name not in NOT_LINEAR], action="append"
    )
    reading.add_argument("--kib", type=int, nargs="+", default=[8, 32, 128, 512])
    asked = reading.parse_args()
    sizes = sorted({kib << 10 for kib in asked.kib})
    if len(sizes) < 2:
        reading.error("--kib needs two sizes or more")
    slow = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.reader or [name for name in READERS if name not in NOT_LINEAR]:
            grown = fastest_growth(name, sizes, Path(folder))
            slow += grown.multiple > ALLOWED
            print(
                f"{name:22} {grown.multiple:5.2f}{'' if grown.multiple <= ALLOWED else ' too fast'}  "
                f"{grown.before:.2f} to {grown.seconds:.2f} s at {grown.size >> 10} KiB, {grown.file}",
                flush=True,
            )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
