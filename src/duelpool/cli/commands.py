"""All commands by name, each imported when it is called: a command doesn't wait for the imports of others."""

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
    "During a campaign": {
        "link": "serve:link",
        "agreement": "agreement:agreement",
        "change": "change:change",
        "panel": "panel:panel",
        "import": "importing:import_judgments",
        "assign": "assign:assign",
        "budget": "budget:budget",
        "challenge": "challenge:challenge",
        "llm": "llm:llm",
        "prompt": "llm:prompt",
        "compare": "compare:compare",
        "exclude": "exclude:exclude",
        "reinstate": "exclude:reinstate",
        "retract": "retract:retract",
        "rewind": "retract:rewind",
        "account": "account:account",
        "token": "account:token",
        "key": "account:key",
        "log": "log:log",
        "backup": "backup:backup",
        "restore": "backup:restore",
        "migrate": "backup:migrate",
    },
    "Try, plan and reproduce": {
        "demo": "demo:demo",
        "power": "power:power",
        "simulate": "simulate:simulate",
        "reproduce": "reproduce:reproduce",
    },
}
"""The commands as `--help` lists them, each as `file:function` of this folder."""

COMMANDS = {name: place for panel in COMMAND_GROUPS.values() for name, place in panel.items()}


def _no_callback() -> None:
    """Make typer build a group even where it holds one command."""


def _load(name: str) -> Any:
    file, attribute = COMMANDS[name].split(":")
    command = getattr(import_module(f"duelpool.cli.{file}"), attribute)
    panel = next(title for title, names in COMMAND_GROUPS.items() if name in names)
    if isinstance(command, DuelpoolCommand):  # stands in for a command that isn't installed
        command.rich_help_panel = panel
        return command
    holder = typer.Typer(rich_markup_mode="rich")
    holder.callback()(_no_callback)
    if isinstance(command, typer.Typer):
        for subcommand in command.registered_commands:
            subcommand.cls = DuelpoolCommand
        holder.add_typer(command, name=name, rich_help_panel=panel)
    else:
        holder.command(name, rich_help_panel=panel, cls=DuelpoolCommand)(command)
    group: Any = get_command(holder)
    return group.commands[name]


class _Commands(MutableMapping[str, Any]):
    """Commands by name, each imported when it is looked up."""

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
    """The group of all commands; errors that a user can fix are printed and end with exit code 2."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands = _Commands()

    def invoke(self, ctx: Any) -> Any:
        """Run the named command."""
        try:
            return super().invoke(ctx)
        except DuelpoolError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except OSError as error:
            if error.filename is None:  # about no file: a closed pipe, for example
                raise
            problem = f"{error.filename}: {error.strerror}."
            typer.echo(f"Error: {problem} Check the name and your permissions.", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from None
