"""Check that a tag, pyproject.toml, the changelog and the citation file name the same release.

python release/check_tag.py v0.2.0
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Return what doesn't name the release of a tag such as v0.2.0."""
    version = tag.removeprefix("v")
    stated = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    checks = {
        f"{tag} is no tag of a release, such as v0.2.0": bool(re.fullmatch(r"v\d+\.\d+\.\d+", tag)),
        f"pyproject.toml says {stated}": stated == version,
        f"CHANGELOG.md has no dated section {version}": bool(
            re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)
        ),
        f"CITATION.cff doesn't say version: {version}": f"\nversion: {version}\n" in citation,
    }
    return [problem for problem, holds in checks.items() if not holds]


if __name__ == "__main__":
    found = problems(sys.argv[1])
    sys.stdout.write("".join(f"{problem}\n" for problem in found) or f"{sys.argv[1]} may be released.\n")
    sys.exit(bool(found))
