"""Paths as users give them: files, folders, and patterns that the shell left alone."""

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from duelpool.errors import BadFile


def expand_paths(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the files that paths name: a folder stands for its files, a pattern for the files that match it.

    Hidden files are left out. Every other path is returned as it is, whether or not there is such a file.
    """
    files: list[str] = []
    for path in [os.fspath(each) for each in paths]:
        if Path(path).is_dir():
            inside = [
                each for each in Path(path).iterdir() if each.is_file() and not each.name.startswith(".")
            ]
            if not inside:
                raise BadFile.at(path, None, "The folder holds no files.", "Check its name.")
            files += sorted(map(str, inside))
        elif glob.has_magic(path) and not Path(path).exists():
            matches = map(Path, glob.glob(path, recursive=True))  # noqa: PTH207 - takes absolute patterns too
            matched = sorted(str(each) for each in matches if each.is_file())
            if not matched:
                raise BadFile.at(path, None, "No file matches this pattern.", "Check folder and spelling.")
            files += matched
        else:
            files.append(path)
    return files


STORE_ENDINGS = (".db", ".sqlite", ".sqlite3")


def is_store(output: str) -> bool:
    """Say whether a name is that of a store, not of another file."""
    return "://" in output or Path(output).suffix in STORE_ENDINGS
