"""Check that a tag, both pyproject.toml, the changelog and the citation file name the same release.

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
    stated, reproduce = (
        tomllib.loads((root / name).read_text(encoding="utf-8"))["project"]
        for name in ("pyproject.toml", "reproduce/pyproject.toml")
    )
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    checks = {
        f"{tag} is no tag of a release, such as v0.2.0": bool(re.fullmatch(r"v\d+\.\d+\.\d+", tag)),
        f"pyproject.toml says {stated['version']}": stated["version"] == version,
        f"reproduce/pyproject.toml says {reproduce['version']}": reproduce["version"] == version,
        f"reproduce/pyproject.toml needs {reproduce['dependencies'][0]}": reproduce["dependencies"]
        == [f"duelpool=={version}"],
        f"CHANGELOG.md has no dated section {version}": bool(
            re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)
        ),
        f"CITATION.cff doesn't say version: {version}": f"\nversion: {version}\n" in citation,
    }
    return [problem for problem, holds in checks.items() if not holds]


if __name__ == "__main__":
    mismatches = problems(sys.argv[1])
    sys.stdout.write("".join(f"{problem}\n" for problem in mismatches) or f"{sys.argv[1]} may be released.\n")
    sys.exit(bool(mismatches))
