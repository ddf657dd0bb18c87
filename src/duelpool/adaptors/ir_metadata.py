"""The heads of runs by ir_metadata: who made a run, on what, by which method, and how it was scored.

from duelpool.adaptors.ir_metadata import evaluated, read_head, this_platform, write_head
head = {"tag": "bm25", "actor": {"team": "ours"}, "platform": this_platform(), **evaluated(scores)}
write_head("bm25.run", head, "bm25-described.run")
read_head("bm25-described.run")["actor"]
"""

import os
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from typing import Any

from duelpool.errors import BadFile, BadParameter, MissingExtra
from duelpool.evaluation import Evaluation
from duelpool.files.source import not_text, open_source, shown_name, write_lines

START, END = "# ir_metadata.start", "# ir_metadata.end"
SECTIONS = ("tag", "actor", "platform", "implementation", "method", "data", "research goal")


def read_head(run: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the head of a run as a dictionary; an empty one for a run without a head."""
    yaml = _yaml()
    name = shown_name(run)
    inside: list[str] = []
    with open_source(run) as opened:
        lines = (line.decode(errors="replace").rstrip("\r") for line in opened.lines())
        if next(lines, "").strip() != START:
            return {}
        for line in lines:
            if line.strip() == END:
                break
            if not line.startswith("#"):
                raise BadFile.at(
                    name,
                    len(inside) + 2,
                    f"The head doesn't end with '{END}'.",
                    "Add this line after the head.",
                )
            inside.append(line.removeprefix("#").removeprefix(" "))
    try:
        head = yaml.safe_load("\n".join(inside))
    except yaml.YAMLError as error:
        at = getattr(error, "problem_mark", None)
        place = None if at is None else at.line + 2
        raise BadFile.at(name, place, "The head isn't YAML.", "Write it as ir_metadata does.") from None
    if head is None:
        return {}
    if not isinstance(head, dict):
        raise BadFile.at(
            name, 2, "The head isn't a mapping of names to values.", "Write it as ir_metadata does."
        )
    return head


def write_head(run: str | os.PathLike[str], head: Mapping[str, Any], output: str | os.PathLike[str]) -> None:
    """Write a copy of a run with this head, in place of one that it has. Lines of results stay as they are."""
    yaml = _yaml()
    if unknown := sorted(set(head) - set(SECTIONS)):
        raise BadParameter(
            f"A head has no section '{unknown[0]}'.", remedy=f"Sections are {', '.join(SECTIONS)}."
        )
    ordered = {name: head[name] for name in SECTIONS if name in head}
    text = yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=4096)
    read_head(run)  # a broken head is refused before anything is written
    write_lines(output, _described(run, text.splitlines()))


def _described(run: str | os.PathLike[str], head: list[str]) -> Iterator[str]:
    yield START
    yield from (f"# {line}" for line in head)
    yield END
    before = None
    with open_source(run) as opened:
        for line in opened.lines():
            try:
                text = line.decode().rstrip("\r")
            except UnicodeDecodeError:
                raise not_text(opened.name) from None
            if before is None:
                before = text.strip() == START
            if before:
                before = text.strip() != END
            else:
                yield text


def this_platform() -> dict[str, Any]:
    """Return the section `platform` for this machine: processor, system and Python's packages."""
    packages = sorted(
        {each.metadata["Name"] for each in distributions() if each.metadata["Name"]}, key=str.lower
    )
    return {
        "hardware": {"cpu": {"architecture": platform.machine(), "number of cores": os.cpu_count()}},
        "operating system": {"kernel": platform.release(), "name": platform.system()},
        "software": {
            "libraries": {"python": packages},
            "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
        },
    }


def evaluated(scores: Evaluation) -> dict[str, Any]:
    """Return the section `research goal` for an evaluation: its measures, and its baseline if it has one."""
    found: dict[str, Any] = {"reported measures": list(scores.tables)}
    if scores.baseline is not None:
        found["baseline"] = [scores.baseline]
    return {"research goal": {"evaluation": found}}


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtra("pyyaml", "ir-metadata") from None
    return yaml
