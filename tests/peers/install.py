"""Install the peers, each by itself: one that can't be installed here is left out, and named.

    python tests/peers/install.py LOG peers

The list is an extra of pyproject.toml: `peers` or `adaptors`. Why one could not be installed is in the log. Tests then
use its recorded answers, and benchmarks leave its lines out.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MINUTES = 10  # a peer without a wheel may take its time to build


def install(requirement: str) -> str:
    """Install one peer, and return what went wrong."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MINUTES * 60)
    except subprocess.TimeoutExpired:
        return f"gave up after {MINUTES} minutes"
    return done.stdout + done.stderr if done.returncode else ""


def main(log: Path, extra: str) -> None:
    """Try every peer."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    failed = {}
    for requirement in project["optional-dependencies"][extra]:
        if problem := install(requirement):
            failed[requirement] = problem
    log.write_text("".join(f"{name}\n{problem}\n" for name, problem in failed.items()), encoding="utf-8")
    if failed:
        print(f"Left out, for they can't be installed here: {', '.join(failed)} ({log} says why).")
        print("The tests use recorded answers of peers instead, and leave out what needs the others.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
