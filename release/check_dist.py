"""Check the wheels and sdists in `dist`: what they hold, what they say of themselves, and how the README is shown.

python release/check_dist.py dist
"""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from email import message_from_string
from email.message import Message
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LARGEST = 5 * 2**20  # bytes of a wheel; ours has a small demo collection and no data


@dataclass(frozen=True)
class Distribution:
    """One distribution of the repository: where it lies, and what belongs into its wheel and its sdist."""

    package: str  # as it is imported, and as its files are called
    folder: str  # from the root, with a slash at its end; empty for the root itself
    metadata: tuple[str, ...]  # of its wheel
    parts: tuple[str, ...]  # folders of its sdist
    expected: tuple[str, ...]  # files of its sdist

    @property
    def project(self) -> dict[str, Any]:
        """Return the table `project` of its pyproject.toml."""
        path = ROOT / self.folder / "pyproject.toml"
        return dict(tomllib.loads(path.read_text(encoding="utf-8"))["project"])


DUELPOOL = Distribution(
    "duelpool",
    "",
    ("METADATA", "entry_points.txt", "licenses/LICENSE"),
    ("src/duelpool/", "reproduce/", "tests/", "docs/", "benchmarks/"),
    ("README.md", "LICENSE", "CHANGELOG.md", "Makefile", "pyproject.toml", "constraints.txt", "conftest.py"),
)
REPRODUCE = Distribution(
    "duelpool_reproduce",
    "reproduce/",
    ("METADATA", "licenses/LICENSE"),
    ("src/duelpool_reproduce/", "tests/"),
    ("README.md", "LICENSE", "pyproject.toml"),
)


def tracked() -> set[str]:
    """Return the files that belong to the project, by their path from its root."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


def wheel_problems(names: set[str], files: set[str], of: Distribution = DUELPOOL) -> list[str]:
    """Return what a wheel's list of files lacks or has too much: it is the package and its metadata, nothing else."""
    info = next((name.split("/")[0] for name in names if ".dist-info/" in name), "")
    source = f"{of.folder}src/"
    ours = {name.removeprefix(source) for name in files if name.startswith(f"{source}{of.package}/")}
    shipped = {name for name in names if not name.startswith(f"{info}/")}
    metadata = {f"{info}/{name}" for name in of.metadata}
    return [
        *(f"the wheel lacks {name}" for name in sorted((ours | metadata) - names)),
        *(f"the wheel has {name}, which is no file of the package" for name in sorted(shipped - ours)),
    ]


def sdist_problems(names: set[str], files: set[str], of: Distribution = DUELPOOL) -> list[str]:
    """Return what an sdist lacks or has too much: the sources with their tests and docs, nothing untracked."""
    inside = {name.partition("/")[2] for name in names} - {
        "",
        "PKG-INFO",
        ".gitignore",
    }  # the build adds these
    files = {name.removeprefix(of.folder) for name in files if name.startswith(of.folder)}
    wanted = {name for name in files if name.startswith(of.parts)} | set(of.expected)
    return [
        *(f"the sdist lacks {name}" for name in sorted(wanted - inside)),
        *(f"the sdist has {name}, which is no file of the project" for name in sorted(inside - files)),
    ]


def metadata_problems(metadata: Message, of: Distribution = DUELPOOL) -> list[str]:
    """Return what the metadata don't say as pyproject.toml has it, and links that lead nowhere from an index."""
    project = of.project
    stated = {
        "Name": project["name"],
        "Version": project["version"],
        "Requires-Python": project["requires-python"],
        "License-Expression": project["license"],
        "Description-Content-Type": "text/markdown",
    }
    problems = [
        f"{field} is {metadata[field]!r}, not {value!r}"
        for field, value in stated.items()
        if metadata[field] != value
    ]
    for field, values in (("Classifier", project["classifiers"]), ("Project-URL", project["urls"])):
        if len(metadata.get_all(field, [])) != len(values):
            problems.append(f"{field} has {len(metadata.get_all(field, []))} lines, not {len(values)}")
    relative = re.findall(r"\]\((?!https?:|#)([^)\s]+)\)", str(metadata.get_payload()))
    return problems + [f"the README links to {link}, which an index can't show" for link in relative]


def check(folder: Path, of: Distribution) -> list[str]:
    """Return all that is wrong with what lies in the folder: one wheel and one sdist of the distribution."""
    wheels, sdists = (sorted(folder.glob(f"{of.package}-*{suffix}")) for suffix in (".whl", ".tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        return [f"{folder} holds {len(wheels)} wheels and {len(sdists)} sdists, not one of each"]
    files = tracked()
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = set(wheel.namelist())
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        problems = metadata_problems(message_from_string(wheel.read(metadata).decode("utf-8")), of)
    record = metadata.replace("METADATA", "RECORD"), metadata.replace("METADATA", "WHEEL")
    problems += wheel_problems(names - set(record), files, of)
    if wheels[0].stat().st_size > LARGEST:
        problems.append(f"the wheel has {wheels[0].stat().st_size} bytes, more than {LARGEST}")
    with tarfile.open(sdists[0]) as sdist:
        return problems + sdist_problems({each.name for each in sdist if each.isfile()}, files, of)


def main() -> None:
    """Check both distributions, and exit with 1 where something is wrong."""
    problems = [
        f"{each.package}: {problem}"
        for each in (DUELPOOL, REPRODUCE)
        for problem in check(Path(sys.argv[1]), each)
    ]
    sys.stdout.write("\n".join(problems or ["Wheels and sdists hold what they should."]) + "\n")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
