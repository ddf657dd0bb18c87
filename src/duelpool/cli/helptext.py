"""How `--help` looks: examples that can be copied from a narrow window, and switches without a type."""

import inspect
import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from duelpool.cli.plain_values import take_plain_values

NARROW = 76  # characters that help text has in a window of 80
_EXAMPLES = re.compile(r"^Examples?:$", re.MULTILINE)
_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")


def fitted(text: str) -> str:
    """Return a help text with its paragraphs unwrapped and its examples wrapped where a shell allows it."""
    text = inspect.cleandoc(text)
    heading = _EXAMPLES.search(text)
    if heading is None:
        return _unwrapped(text)
    examples = re.sub(r" \\\n\s*", " ", text[heading.end() :])  # undo line breaks made by hand
    lines = [wrapped(line) for line in examples.splitlines() if line.strip()]
    return "\n\n".join([_unwrapped(text[: heading.end()]), *lines])


def wrapped(example: str, width: int = NARROW) -> str:
    """Return a command over several lines where it is longer than the width, each option beside its value."""
    parts: list[str] = []
    for word in _WORD.findall(example):
        if parts and not word.startswith("-"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    lines = parts[:1]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + len("  \\") > width:
            lines.append(f"  {part}")
        else:
            lines[-1] += f" {part}"
    return " \\\n".join(lines)


def _unwrapped(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


class _FittedHelp:
    """Fits the help of a command or group, and shows switches as `--yes`, not `--yes <bool>`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        command: Any = self
        command.help = fitted(command.help or "")
        take_plain_values(command.params)
        for option in command.params:
            if getattr(option, "is_flag", False):
                option.metavar = ""

    def get_help_option(self, ctx: Any) -> Any:
        """Return `--help`, a switch as well."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
            take_plain_values([option])
        return option


class DuelpoolCommand(_FittedHelp, TyperCommand):
    """A command whose help fits."""


class DuelpoolGroup(_FittedHelp, TyperGroup):
    """A group of commands whose help fits."""


def command_group(summary: str, *examples: str, cls: type[DuelpoolGroup] = DuelpoolGroup) -> typer.Typer:
    """Make a command that has subcommands, such as `duelpool panel`."""
    return typer.Typer(
        cls=cls,
        no_args_is_help=True,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        help="\n\n".join([summary, "Examples:", *examples]),
    )
