"""List the licences of all packages in an environment, as a page of the documentation.

python release/licences.py build/plain/bin/python > docs/licences.md
"""

import json
import subprocess
import sys

ASK = """
import importlib.metadata as m, json
print(json.dumps([
    [d.metadata["Name"], d.version, d.metadata["License-Expression"], d.metadata["License"],
     d.metadata.get_all("Classifier") or []] for d in m.distributions()
]))
"""
HEAD = """# Licences

Duelpool is under the Apache License 2.0. An installation with the extras `postgres`, `cluster`, `sso` and `testing`
brings these packages along, in the pinned versions; the licence is the one that each states in its own metadata. The
extra `ir` adds ir_measures (Apache License 2.0) and pytrec_eval-terrier (MIT License). `make licences` writes this
page, `make sbom` a bill of materials in CycloneDX's form.

| package | version | licence |
|---|---|---|
"""
OURS = {"duelpool", "pip", "setuptools"}  # the environment itself
PREFIX = "License :: OSI Approved :: "


def licence(expression: str | None, text: str | None, classifiers: list[str]) -> str:
    """Return what a package calls its licence: the expression, the classifier, or the first line of the text."""
    named = [each.removeprefix(PREFIX) for each in classifiers if each.startswith(PREFIX)]
    first = (text or "").strip().splitlines()
    return expression or ", ".join(named) or (first[0] if first else "not stated")


def page(python: str) -> str:
    """Return the page for the environment of an interpreter."""
    listed = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True).stdout
    rows = sorted(
        (name.lower(), name, version, licence(*rest)) for name, version, *rest in json.loads(listed)
    )
    lines = [f"| {name} | {version} | {what} |\n" for key, name, version, what in rows if key not in OURS]
    return HEAD + "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1]))
