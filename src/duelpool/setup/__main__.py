"""What a server does in a process of its own, so that judging isn't slowed down.

`python -m duelpool.setup` is a dry run's simulation: it reads a comparison as JSON, and writes each step as a line of
JSON. `python -m duelpool.setup read` reads uploaded files.
"""

import json
import sys

from duelpool.setup import reading
from duelpool.setup.comparisons import Compared, Comparison, compare


def main() -> None:
    """Run the comparison on standard input, and write its state after each step."""

    def write(now: Compared) -> None:
        sys.stdout.write(json.dumps(now.as_json()) + "\n")
        sys.stdout.flush()

    compare(Comparison.from_json(json.load(sys.stdin)), write, few_trials_first=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["read"]:
        reading.main()
    else:
        main()
