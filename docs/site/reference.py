"""The reference pages, from the code itself: every command with its options, every public name of the package."""

import argparse
import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import typer.main

import duelpool
from duelpool.cli import COMMAND_GROUPS, COMMANDS, app

SOURCE = Path(duelpool.__file__).parent
WIDE = 90  # characters of a call that still read well on one line
UNSEEN = {"cli", "__main__", "__init__"}  # the command line has a page of its own


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


def python_page() -> str:
    """Return the page of all that may be imported, room by room."""
    lines = [
        "# Python",
        "",
        "Every public name, room by room. `help(NAME)` says the same. Names that aren't here may change without "
        "notice.",
    ]
    for name in public_modules():
        module = importlib.import_module(name)
        lines += ["", f"## {name}", "", _unwrapped(inspect.getdoc(module) or "")]
        for part in public_names(module):
            lines += _described(part, getattr(module, part))
    return "\n".join(lines) + "\n"


def public_modules() -> list[str]:
    """Return the rooms that programs may import, by name."""
    rooms = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    return ["duelpool", *(f"duelpool.{room}" for room in sorted(rooms - UNSEEN))]


def public_names(module: ModuleType) -> list[str]:
    """Return what a module offers: its `__all__`, or what it defines without an underscore."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("__")]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _described(name: str, value: Any) -> Iterator[str]:
    if inspect.ismodule(value):
        return
    if not callable(value):
        known = isinstance(value, type | enum.Enum) or not hasattr(value, "__len__")
        yield from (
            "",
            f"### {name}",
            "",
            "A value." if known else f"A table of {len(value)}: {_keys(value)}.",
        )
        return
    yield from ("", f"### {name}", "", "```text", f"{name}{_signature(value)}", "```", "")
    yield _unwrapped(inspect.getdoc(value) or "")
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
    """Write both pages into a folder, and return them."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"commands.md": command_page(), "python.md": python_page()}
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in pages]


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    write_reference(options.parse_args().folder)
