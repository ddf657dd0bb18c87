"""All commands by name, each loaded when it is called: a command shouldn't wait for what others need."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

import typer
from typer.main import get_command

from duelpool.cli.helptext import DuelpoolCommand, DuelpoolGroup
from duelpool.errors import DuelpoolError

BAD_INPUT = 2
INTERRUPTED = 130

COMMAND_GROUPS: dict[str, dict[str, str]] = {
    "A campaign, from the pool to the scores": {
        "pool": "pool:pool",
        "serve": "serve:serve",
        "judge": "judge:judge",
        "status": "status:status",
        "export": "export:export",
        "evaluate": "evaluate:evaluate",
        "report": "report:report",
    },
    "Along the way": {
        "link": "serve:link",
        "agreement": "agreement:agreement",
        "change": "change:change",
        "panel": "panel:panel",
        "import": "intake:take_in",
        "assign": "assign:assign",
        "budget": "budget:budget",
        "challenge": "challenge:challenge",
        "llm": "model:llm",
        "prompt": "model:prompt",
        "compare": "compare:compare",
        "exclude": "quality:exclude",
        "reinstate": "quality:reinstate",
        "retract": "quality:retract",
        "rewind": "quality:rewind",
        "account": "account:account",
        "token": "account:token",
        "key": "account:key",
        "log": "upkeep:log",
        "backup": "upkeep:backup",
        "restore": "upkeep:restore",
        "migrate": "upkeep:migrate",
    },
    "Before it, and for those who check": {
        "demo": "demo:demo",
        "power": "power:power",
        "simulate": "simulate:simulate",
        "reproduce": "reproduce:reproduce",
    },
}
"""The commands as `--help` lists them: the file of this folder, and what it calls the command."""

COMMANDS = {name: place for panel in COMMAND_GROUPS.values() for name, place in panel.items()}


def _nothing() -> None:
    """Stand before the commands of a group of one."""


def _load(name: str) -> Any:
    file, what = COMMANDS[name].split(":")
    loaded = getattr(import_module(f"duelpool.cli.{file}"), what)
    panel = next(title for title, names in COMMAND_GROUPS.items() if name in names)
    if isinstance(loaded, DuelpoolCommand):  # a stand-in for a command that isn't installed
        loaded.rich_help_panel = panel
        return loaded
    holder = typer.Typer(rich_markup_mode="rich")
    holder.callback()(_nothing)
    if isinstance(loaded, typer.Typer):  # a command with commands of its own
        for below in loaded.registered_commands:
            below.cls = DuelpoolCommand
        holder.add_typer(loaded, name=name, rich_help_panel=panel, cls=DuelpoolGroup)
    else:
        holder.command(name, rich_help_panel=panel, cls=DuelpoolCommand)(loaded)
    group: Any = get_command(holder)
    return group.commands[name]


class _Commands(MutableMapping[str, Any]):
    """Names to commands, each loaded when it is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            if name not in COMMANDS:
                raise KeyError(name)
            self._loaded[name] = _load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]


class DuelpoolCommands(DuelpoolGroup):
    """The group of all commands: what a user can mend is told in words and ends with exit code 2."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.commands = _Commands()

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except DuelpoolError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except OSError as error:
            if error.filename is None:  # nobody named a file: the reader of a pipe has gone, say
                raise
            problem = f"{error.filename}: {error.strerror}."
            typer.echo(f"Error: {problem} Check the name, and whether you may use it.", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from None
