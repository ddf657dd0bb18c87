"""A dry run's simulation as a program: a comparison as JSON comes in, and each step of it goes out as a line.

`python -m duelpool.setup`; a server starts it beside itself, so that those who judge don't notice.
"""

import json
import sys

from duelpool.setup.comparisons import Compared, Comparison, compare


def main() -> None:
    """Compare what standard input asks for, and write what it has come to, line by line."""

    def told(now: Compared) -> None:
        sys.stdout.write(json.dumps(now.as_json()) + "\n")
        sys.stdout.flush()

    compare(Comparison.from_json(json.load(sys.stdin)), told)


if __name__ == "__main__":
    main()
