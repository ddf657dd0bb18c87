"""What `--help` shows: examples that can be copied from a narrow window, and switches without a type."""

import inspect
import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

NARROW = 76  # characters that help text has in a window of 80
_EXAMPLES = re.compile(r"^Examples?:$", re.MULTILINE)
_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")


def fitted(text: str) -> str:
    """Return a help text with its paragraphs unwrapped and its examples broken where a shell allows it."""
    text = inspect.cleandoc(text)
    heading = _EXAMPLES.search(text)
    if heading is None:
        return _unwrapped(text)
    examples = re.sub(r" \\\n\s*", " ", text[heading.end() :])  # broken by hand: once more, by one rule
    lines = [broken(line) for line in examples.splitlines() if line.strip()]
    return "\n\n".join([_unwrapped(text[: heading.end()]), *lines])


def broken(example: str, width: int = NARROW) -> str:
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


def _settled(command: Any) -> None:
    """Fit a command's help, and take the type from options that have no value: `--yes`, not `--yes <bool>`."""
    command.help = fitted(command.help or "")
    for option in command.params:
        if getattr(option, "is_flag", False):
            option.metavar = ""


class _Fitted:
    """What commands and groups of them have in common: help that fits."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        _settled(self)

    def get_help_option(self, ctx: Any) -> Any:
        """Return `--help`, which has no value either."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class DuelpoolCommand(_Fitted, TyperCommand):
    """A command whose help fits."""


class DuelpoolGroup(_Fitted, TyperGroup):
    """A group of commands whose help fits."""
