"""Check the wheel and the sdist in `dist`: what they hold, what they say of themselves, and how the README is shown.

python release/check_dist.py dist
"""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = "src/duelpool"
EXPECTED = ("README.md", "LICENSE", "CHANGELOG.md", "Makefile", "pyproject.toml", "constraints.txt")
LARGEST = 5 * 2**20  # bytes of a wheel; ours has a small demo collection and no data


def tracked() -> set[str]:
    """Return the files that belong to the project, by their path from its root."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


def wheel_problems(names: set[str], files: set[str]) -> list[str]:
    """Return what a wheel's list of files lacks or has too much: it is the package and its metadata, nothing else."""
    info = next((name.split("/")[0] for name in names if ".dist-info/" in name), "")
    ours = {name.removeprefix("src/") for name in files if name.startswith(f"{PACKAGE}/")}
    shipped = {name for name in names if not name.startswith(f"{info}/")}
    metadata = {f"{info}/{name}" for name in ("METADATA", "entry_points.txt", "licenses/LICENSE")}
    return [
        *(f"the wheel lacks {name}" for name in sorted((ours | metadata) - names)),
        *(f"the wheel has {name}, which is no file of the package" for name in sorted(shipped - ours)),
    ]


def sdist_problems(names: set[str], files: set[str]) -> list[str]:
    """Return what an sdist lacks or has too much: the sources with their tests and docs, nothing untracked."""
    inside = {name.partition("/")[2] for name in names} - {"", "PKG-INFO"}
    wanted = {name for name in files if name.startswith((f"{PACKAGE}/", "tests/", "docs/", "benchmarks/"))}
    return [
        *(f"the sdist lacks {name}" for name in sorted((wanted | set(EXPECTED)) - inside)),
        *(f"the sdist has {name}, which is no file of the project" for name in sorted(inside - files)),
    ]


def metadata_problems(metadata: Message) -> list[str]:
    """Return what the metadata don't say as pyproject.toml has it, and links that lead nowhere from an index."""
    stated = {
        "Name": PROJECT["name"],
        "Version": PROJECT["version"],
        "Requires-Python": PROJECT["requires-python"],
        "License-Expression": PROJECT["license"],
        "Description-Content-Type": "text/markdown",
    }
    problems = [
        f"{field} is {metadata[field]!r}, not {value!r}"
        for field, value in stated.items()
        if metadata[field] != value
    ]
    for field, values in (("Classifier", PROJECT["classifiers"]), ("Project-URL", PROJECT["urls"])):
        if len(metadata.get_all(field, [])) != len(values):
            problems.append(f"{field} has {len(metadata.get_all(field, []))} lines, not {len(values)}")
    relative = re.findall(r"\]\((?!https?:|#)([^)\s]+)\)", str(metadata.get_payload()))
    return problems + [f"the README links to {link}, which an index can't show" for link in relative]


def check(folder: Path) -> list[str]:
    """Return all that is wrong with what lies in the folder: one wheel and one sdist."""
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        return [f"{folder} holds {len(wheels)} wheels and {len(sdists)} sdists, not one of each"]
    files = tracked()
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = set(wheel.namelist())
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        problems = metadata_problems(message_from_string(wheel.read(metadata).decode("utf-8")))
    record = metadata.replace("METADATA", "RECORD"), metadata.replace("METADATA", "WHEEL")
    problems += wheel_problems(names - set(record), files)
    if wheels[0].stat().st_size > LARGEST:
        problems.append(f"the wheel has {wheels[0].stat().st_size} bytes, more than {LARGEST}")
    with tarfile.open(sdists[0]) as sdist:
        return problems + sdist_problems({each.name for each in sdist if each.isfile()}, files)


if __name__ == "__main__":
    found = check(Path(sys.argv[1]))
    sys.stdout.write(
        "".join(f"{problem}\n" for problem in found) or "Wheel and sdist hold what they should.\n"
    )
    sys.exit(bool(found))
