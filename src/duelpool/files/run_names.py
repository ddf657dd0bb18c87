"""The names of a run: its own, the tag in its last column, and the file that it was read from."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from duelpool.errors import BadFile, BadParameter, UnknownName
from duelpool.files.source import read_source, stem

_SUBMITTED = "input."  # how TREC calls the file of a submitted run

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class RunLabel:
    """What a run is called: the name in results, the tag as its file has it, and the file ("": none)."""

    name: str
    tag: str
    file: str = ""

    def called(self) -> tuple[str, ...]:
        """Return everything that a user may call the run, the name first and the tag last."""
        file = (self.file, Path(self.file).name, stem(self.file)) if self.file else ()
        return (self.name, *file, self.tag)


def run_name(file: str | os.PathLike[str], tag: str) -> str:
    """Return the name of a run: its file's, without folder and usual endings, or its tag where the file has it.

    A file is named after the tag when its name is the tag, perhaps with usual endings behind and `input.` in front: the
    run tagged `final.txt` in `final.txt.gz` is `final.txt`.
    """
    whole = Path(file).name
    for name in (whole, whole.removeprefix(_SUBMITTED)):
        if tag and name.startswith(tag) and stem(f"-{name.removeprefix(tag)}") == "-":
            return tag
    return stem(file)


def find_run(text: str, labels: Iterable[RunLabel]) -> RunLabel:
    """Return the run that a user calls so: by its name, its file or its tag."""
    listed = list(labels)
    found = [label for label in listed if label.name == text] or [
        label for label in listed if text in label.called()
    ]
    if not found:
        raise UnknownName("run", text, [label.name for label in listed])
    if len(found) > 1:
        raise BadParameter(
            f"{len(found)} runs are called '{text}': {', '.join(label.name for label in found[:5])}.",
            remedy="Use one of these names.",
        )
    return found[0]


def by_run(values: Mapping[str, Value], labels: Iterable[RunLabel]) -> dict[str, Value]:
    """Return values by the runs' names, whatever each run is called there; runs without a value are left out."""
    found = {label.name: [called for called in label.called() if called in values] for label in labels}
    return {name: values[called[0]] for name, called in found.items() if called}


def distinct(labels: Iterable[RunLabel]) -> list[RunLabel]:
    """Return labels whose names differ: those that are equal get the file's folder, or its endings too."""
    listed = list(labels)
    for longer in (_with_folder, _with_endings):
        equal = _repeated(listed)
        listed = [
            replace(label, name=longer(label)) if label.name in equal and label.file else label
            for label in listed
        ]
    if again := _repeated(listed):
        raise BadParameter(f"Two runs are called '{min(again)}'.", remedy="Rename one, or give it once.")
    return listed


def _repeated(labels: Iterable[RunLabel]) -> set[str]:
    return {name for name, times in Counter(label.name for label in labels).items() if times > 1}


def _with_folder(label: RunLabel) -> str:
    return f"{Path(label.file).resolve().parent.name}/{label.name}"


def _with_endings(label: RunLabel) -> str:
    return "/".join(Path(label.file).resolve().parts[-2:])


def read_groups(path: str) -> dict[str, str]:
    """Read a file of lines `run group`."""
    source = read_source(path)
    groups = {}
    for number, line in enumerate(source.lines(), 1):
        words = line.decode(errors="backslashreplace").split(None, 1)
        if not words:
            continue
        if len(words) != 2:
            raise BadFile.at(
                source.name, number, "A line names a run and its group.", "Example: bm25 my-team"
            )
        groups[words[0]] = words[1].strip()
    return groups
