"""The reference pages, from the code itself: every command with its options, every public name of the package."""

import argparse
import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import typer.main

import duelpool
from duelpool.cli import COMMAND_GROUPS, COMMANDS, app

SOURCE = Path(duelpool.__file__).parent
WIDE = 90  # characters of a call that still read well on one line
UNSEEN = {"cli", "api", "__main__", "__init__"}  # these have pages of their own


def command_page() -> str:
    """Return the page of all commands, in the order of `duelpool --help`."""
    group: Any = typer.main.get_command(app)
    lines = [
        "# Commands",
        "",
        "Written by the commands themselves: `duelpool COMMAND --help` says the same.",
    ]
    for panel, names in COMMAND_GROUPS.items():
        links = ", ".join(f"[{name}](#duelpool-{name})" for name in names)
        lines += ["", f"**{panel}:** {links}."]
    for name in COMMANDS:
        lines += _command(f"duelpool {name}", group.commands[name], 2)
    return "\n".join(lines) + "\n"


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    """Write a command, its examples as code, and those below it."""
    before, _, examples = inspect.cleandoc(command.help or "").partition("Examples:")
    if not examples:
        before, _, examples = before.partition("Example:")
    yield from ("", f"{'#' * level} {name}", "", _unwrapped(before).strip())
    if found := [line.rstrip() for line in examples.splitlines() if line.strip()]:
        yield from ("", *(f"    {line}" for line in found))
    below = getattr(command, "commands", {})
    rows = [_row(each) for each in command.params if not each.hidden and each.name != "help"]
    if rows and not below:
        yield from ("", "| | meaning | default |", "|---|---|---|", *rows)
    for part in below:
        yield from _command(f"{name} {part}", below[part], level + 1)


def _row(parameter: Any) -> str:
    is_option = parameter.opts[0].startswith("-")
    names = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.name.upper()]
    shown = ", ".join(f"`{name}`" for name in names)
    if parameter.required:
        default = "needed"
    elif isinstance(parameter.default, bool) or not parameter.default or callable(parameter.default):
        default = "`0`" if parameter.default == 0 and not isinstance(parameter.default, bool) else ""
    else:
        default = f"`{getattr(parameter.default, 'value', parameter.default)}`"
    meaning = " ".join((parameter.help or "").split()).replace("|", "\\|")
    return f"| {shown} | {_plain(meaning)} | {default} |"


def _plain(text: str) -> str:
    """Take out rich's marks, and keep Markdown from reading our own."""
    text = re.sub(r"\[/?(?:bold|italic|dim|green|red|yellow|cyan)\]", "", text)
    return text.replace("*", "\\*").replace("<", "&lt;")


def _unwrapped(text: str) -> str:
    """Return paragraphs as they stand; the blanks in which a docstring is folded are no code."""
    return "\n".join(_plain(line.strip()) for line in text.splitlines())


SUBJECTS = {
    "Read": ("read", "Files, data frames and dictionaries as records."),
    "Pool and judge": ("judge", "Pools, strategies, a loop of your own, simulated judges."),
    "Score": ("score", "Measures, tests, agreement, budgets."),
    "Campaigns": ("campaigns", "A store with campaigns, and the client of a server."),
    "Records": ("records", "What functions take and return."),
    "Errors": ("errors", "What can go wrong, each with a remedy."),
}
"""The pages of what is public, by the headings of docs/python.md, with their file names."""

ROOMS = {
    "files": ("Rooms: files and records", ("errors", "records", "files", "frames")),
    "strategies": (
        "Rooms: pools, strategies, judges",
        ("pooling", "strategies", "deciders", "preferences", "judges", "simulation"),
    ),
    "evaluation": (
        "Rooms: measures and evaluation",
        ("measures", "comparison", "evaluation", "leaderboard", "agreements", "plots", "report"),
    ),
    "budgets": ("Rooms: budgets", ("budget",)),
    "campaign": (
        "Rooms: campaigns",
        ("campaign", "setup", "panels", "recruitment", "campaign_report", "webhooks"),
    ),
    "server": ("Rooms: store, server, access", ("store", "access", "web", "net", "client")),
    "contracts": ("Rooms: contracts for your own parts", ("testing",)),
}
"""The pages of the rooms below; those that no page names are on the last one."""


def python_pages() -> dict[str, str]:
    """Return the pages of Python by file name: an overview, a page a subject, and the rooms below."""
    pages = {}
    overview = [
        "# Python reference",
        "",
        "What `import duelpool as dp` offers, a page a subject. `help(dp.NAME)` says the same.",
        "",
    ]
    where = public_places()
    for subject, (stem, about) in SUBJECTS.items():
        names = [name for name, page in where.items() if page == f"python-{stem}.md"]
        lines = [f"# {subject}", "", f"{about} Part of [`import duelpool as dp`](../python.md)."]
        lines += ["", "`Data` is a path, a data frame, a dictionary, a list of rows, or a record."]
        for name in names:
            lines += _described(name, getattr(duelpool, name), "##", where)
        pages[f"python-{stem}.md"] = "\n".join(lines) + "\n"
        links = ", ".join(f"[`{name}`](python-{stem}.md#{name.lower()})" for name in names)
        overview += [f"- [{subject}](python-{stem}.md): {links}."]
    overview += ["", "## The rooms below", "", "They may change without notice.", ""]
    for stem, (title, rooms) in rooms_by_page().items():
        lines = [f"# {title}", "", "Names of these rooms may change without notice."]
        for room in rooms:
            module = importlib.import_module(f"duelpool.{room}")
            lines += ["", f"## duelpool.{room}", "", _unwrapped(inspect.getdoc(module) or "")]
            for part in public_names(module):
                lines += _described(part, getattr(module, part), "###", {})
        pages[f"rooms-{stem}.md"] = "\n".join(lines) + "\n"
        overview.append(f"- [{title}](rooms-{stem}.md): {', '.join(f'`duelpool.{room}`' for room in rooms)}.")
    listing = "\n".join(name.removesuffix(".md") for name in pages)
    overview += ["", "```{toctree}", ":hidden:", "", listing, "```"]
    return {"python.md": "\n".join(overview) + "\n", **pages}


def public_places() -> dict[str, str]:
    """Return the page of each public name, as docs/python.md groups them."""
    text = (SOURCE.parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
    places: dict[str, str] = {}
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        stem = SUBJECTS[part.partition("\n")[0]][0]
        places |= dict.fromkeys(re.findall(r"^\| `dp\.(\w+)`", part, re.MULTILINE), f"python-{stem}.md")
    return places


def rooms_by_page() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the title and the rooms of each page; rooms that no page names are on a last one."""
    rooms = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    placed = {room for _, of in ROOMS.values() for room in of}
    rest = tuple(sorted(rooms - placed - UNSEEN))
    return {**ROOMS, "others": ("Rooms: the rest", rest)}


def public_names(module: ModuleType) -> list[str]:
    """Return what a module offers: its `__all__`, or what it defines without an underscore."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("__")]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _described(name: str, value: Any, level: str, where: Mapping[str, str]) -> Iterator[str]:
    """Write a name: an entry of the index, its call, what it does, an example, and its methods."""
    if inspect.ismodule(value):
        return
    if where:  # public: the index has it
        yield from ("", f"```{{index}} ! single: {name}", "```")
    if not callable(value):
        known = isinstance(value, type | enum.Enum) or not hasattr(value, "__len__")
        yield from (
            "",
            f"{level} {name}",
            "",
            "A value." if known else f"A table of {len(value)}: {_keys(value)}.",
        )
        return
    yield from ("", f"{level} {name}", "", "```text", f"{name}{_signature(value)}", "```", "")
    about, mark, example = (inspect.getdoc(value) or "").partition(">>> ")
    yield _unwrapped(about)
    if mark:
        yield from ("```pycon", f">>> {example.rstrip()}", "```")
    if seen := _seen(value, name, where):
        yield from ("", f"See also: {', '.join(seen)}.")
    if isinstance(value, type):
        for part, method in vars(value).items():
            inner = getattr(method, "__func__", method)
            text = inspect.getdoc(inner.fget if isinstance(inner, property) else inner)
            if (
                part.startswith("_")
                or not text
                or not (inspect.isfunction(inner) or isinstance(inner, property))
            ):
                continue
            call = "" if isinstance(inner, property) else _signature(inner)
            yield from ("", f"- `{part}{call}`: {_unwrapped(text.split(chr(10) * 2)[0])}")


def _seen(value: Any, name: str, where: Mapping[str, str]) -> list[str]:
    """Return links to the other public names that a call takes or returns, or that take or return this record."""
    linked = []
    for other, page in where.items():
        sides = (value, other), (getattr(duelpool, other), name)
        if other != name and any(
            inspect.isfunction(one) and re.search(rf"(?<!\w){two}(?!\w)", _signature(one))
            for one, two in sides
        ):
            linked.append(f"[`{other}`]({page}#{other.lower()})")
    return linked


def _keys(table: Any) -> str:
    return ", ".join(f"`{key}`" for key in table)


def _signature(value: Any) -> str:
    """Return the call as it is written, without the package's own prefixes and without what self is."""
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return ": " + ", ".join(str(member.value) for member in value)
    try:
        signature = inspect.signature(value)
    except ValueError:
        return "(...)"
    kept = [each for each in signature.parameters.values() if each.name not in {"self", "cls"}]
    if isinstance(value, type):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
        if dataclasses.is_dataclass(value):
            kept = [each.replace(default=_shown(each.default)) for each in kept]
    text = str(signature.replace(parameters=kept))
    if len(text) > WIDE:  # a parameter a line
        after = text.rpartition(")")[2] if ") ->" in text else ""
        text = "(\n" + "".join(f"    {line},\n" for line in _each(kept)) + ")" + after
    if (getattr(value, "__module__", None) or "").startswith("duelpool.api"):
        text = text.replace(": object", ": Data")  # as the code calls it
    text = re.sub(
        r"\b(?:duelpool|collections|numpy|typing|pathlib|concurrent)(?:\.[a-z_]+)*\.(?=[A-Za-z])", "", text
    )
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _each(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Write each parameter, with the star after which they go by name."""
    starred = False
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL or (each.kind is each.KEYWORD_ONLY and not starred):
            starred = True
            if each.kind is each.KEYWORD_ONLY:
                yield "*"
        yield str(each)


def _shown(default: Any) -> Any:
    """Return a default that reads the same on every machine."""
    return ... if "factory" in repr(default) else default


def write_reference(folder: Path) -> list[Path]:
    """Write all pages into a folder, and return them."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"commands.md": command_page(), **python_pages()}
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in pages]


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    write_reference(options.parse_args().folder)
