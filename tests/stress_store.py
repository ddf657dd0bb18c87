"""The long form of the store's trial: processes full of assessors, killed at random, on both back ends.

python tests/stress_store.py [--back-end sqlite] [--kills 50] [--every 2] [--threads 50]
"""

import argparse
import sys
import tempfile
from pathlib import Path

from support.crowds import Crowd, Outcomes, let_judge
from support.stores import BACK_ENDS, new_target

ENOUGH = 5_000  # acknowledged judgments


def verdict(seen: Outcomes, kills: int) -> list[str]:
    """Return what went wrong, in words."""
    wrong = list(seen.wrong)
    if seen.lost:
        wrong.append(f"{seen.lost} acknowledged judgments are not there")
    if seen.failures:
        wrong.append(f"{seen.failures} processes ended with an error")
    if seen.acknowledged < (ENOUGH if kills else 1):
        wrong.append(f"only {seen.acknowledged} were acknowledged, and that is too few")
    if seen.kills < kills * 0.9:
        wrong.append(f"only {seen.kills} of {kills} kills met a living process")
    return wrong


def main() -> int:
    """Try each back end without kills and with them; return how many trials failed."""
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("--back-end", choices=BACK_ENDS)
    reading.add_argument("--kills", type=int, default=50)
    reading.add_argument("--every", type=float, default=2.0)
    reading.add_argument("--threads", type=int, default=50)
    reading.add_argument("--seconds", type=float, default=15.0)
    asked = reading.parse_args()
    failed = 0
    for back_end in [asked.back_end] if asked.back_end else BACK_ENDS:
        for kills in (0, asked.kills):
            with tempfile.TemporaryDirectory() as name, new_target(back_end, Path(name)) as target:
                crowd = Crowd(threads=asked.threads)
                seen = let_judge(
                    target, Path(name), crowd, seconds=asked.seconds, kills=kills, every=asked.every
                )
            wrong = verdict(seen, kills)
            failed += bool(wrong)
            print(
                f"{back_end}: {crowd.processes} processes x {crowd.threads} assessors, {seen.kills} killed, "
                f"{seen.acknowledged} acknowledged in {seen.seconds:.0f} s, {seen.lost} lost:",
                "; ".join(wrong[:5]) or "all well",
                flush=True,
            )
    return failed


if __name__ == "__main__":
    sys.exit(main())
