"""Which peers this machine has, and where: Python packages by import, trec_eval as a program or from its source."""

import importlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        "pytrec_eval": "pytrec_eval-terrier",
        "ir_measures": "ir_measures",
        "choix": "choix",
        "evalica": "evalica",
        "krippendorff": "krippendorff",
        "statsmodels": "statsmodels",
    }
)
"""Peers that Python imports, and the distribution that each comes with."""

ADAPTED = frozenset(
    {
        "anywidget",
        "autojudge_base",
        "basedpyright",
        "datasets",
        "ir_datasets",
        "mlcroissant",
        "pyarrow",
        "pyterrier",
    }
)
"""What the extra `adaptors` brings: `make test-long` installs it, and runs the tests that need it."""

PROGRAM = "trec_eval"
NODE_PACKAGE = "oidc-provider"  # which npm fetches for its test
PEERS = (PROGRAM, *PACKAGES)


def installed(peer: str) -> bool:
    """Return whether a peer can be asked on this machine."""
    if peer == NODE_PACKAGE:
        return bool(shutil.which("node") and shutil.which("npm"))
    if peer == PROGRAM:
        return bool(shutil.which(PROGRAM)) or (_source() is not None and _can_build())
    return importlib.util.find_spec(peer) is not None


def missing() -> list[str]:
    """Return the peers that can't be asked on this machine."""
    return [peer for peer in PEERS if not installed(peer)]


def tell_missing(*peers: str) -> None:
    """Print which of some peers a benchmark had to leave out."""
    if lacking := [peer for peer in peers if not installed(peer)]:
        print(f"Not compared with {', '.join(lacking)}: not installed here.")


def load(peer: str) -> Any:
    """Import a peer; its types are its own affair."""
    return importlib.import_module(peer)


def version(peer: str, folder: Path) -> str:
    """Return the version of a peer; `folder` is where trec_eval may be built."""
    if peer != PROGRAM:
        return importlib.metadata.version(PACKAGES[peer])
    told = subprocess.run([trec_eval(folder), "--version"], capture_output=True, text=True, check=False)
    named = (told.stdout + told.stderr).strip().rsplit(maxsplit=1)[-1]
    source = None if shutil.which(PROGRAM) else _source()
    return f"{named} (built from {source.name})" if source else named


@cache
def trec_eval(folder: Path) -> str:
    """Return the path of trec_eval: the installed one, or one built in `folder` from the source beside the data."""
    if program := shutil.which(PROGRAM):
        return program
    source = _source()
    if source is None:
        message = f"{PROGRAM} is neither on the PATH nor is its source beside the data."
        raise FileNotFoundError(message)
    with tarfile.open(source) as archive:
        if sys.version_info >= (3, 12):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
    makefile = next(folder.glob(f"{PROGRAM}*/Makefile"))
    subprocess.run(["make", "-s"], cwd=makefile.parent, check=True, capture_output=True)
    return str(makefile.parent / PROGRAM)


def _source() -> Path | None:
    """Return the archive with trec_eval's source: in the folder `peers` in the data folder, or beside it."""
    data = os.environ.get("DUELPOOL_DATA")
    for folder in (Path(data, "peers"), Path(data).parent / "peers") if data else ():
        for archive in sorted(folder.glob(f"{PROGRAM}*.tar.gz")):
            return archive
    return None


def _can_build() -> bool:
    return all(shutil.which(tool) for tool in ("make", "gcc"))
