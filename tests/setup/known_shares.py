"""Simulates the figures of `duelpool.simulation.known` again, and prints them beside those that are there.

python tests/setup/known_shares.py [strategy ...]
"""

import sys

from duelpool.simulation import simulate
from duelpool.simulation.known import CAP, KNOWN, SIMULATED_JUDGES, known_share

SIZES = (2, 3, 5, 8, 12, 20, 35, 60, 100)
MANY, LARGE = 2000, 1000  # trials, and those on pools of 60 items and more
SLOW = {"swissfinals": 300, "swissfinals:per_item=3.5": 300}  # which work out chances


def main(names: list[str]) -> None:
    """Print a line a strategy and size: trials, the percentage found with its error, rounds, and what is known."""
    for name in names or KNOWN:
        for size in SIZES:
            known = known_share([size], name)
            if known is None:
                continue
            trials = SLOW.get(name, MANY if size < 60 else LARGE)
            found = simulate(name, SIMULATED_JUDGES, items=size, cap=CAP, trials=trials, seed=1000 + size)
            share = f"{100 * found.single:.1f}±{100 * found.standard_error(found.single):.1f}"
            print(
                f"{name:26} {size:4} {trials:5} {share:>9} {found.rounds:7.1f}   known {100 * known.found:.0f}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
