"""All commands by name, each imported when it is called: a command doesn't wait for the imports of others."""

import os
import sys
import warnings
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import typer
from typer.main import get_command

from duelpool.cli.helptext import DuelpoolCommand, DuelpoolGroup
from duelpool.cli.plain_values import take_plain_values
from duelpool.cli.stored_help import stored_help
from duelpool.durable import NO_SPACE
from duelpool.errors import DuelpoolError
from duelpool.plugins import PluginWarning

BAD_INPUT = 2
_COMPLETION = ("install_completion", "show_completion")
INTERRUPTED = 130

COMMAND_GROUPS: dict[str, dict[str, str]] = {
    "A campaign, from the pool to the scores": {
        "pool": "campaign.pool:pool",
        "serve": "server.serve:serve",
        "judge": "campaign.judge:judge",
        "status": "campaign.status:status",
        "export": "campaign.export:export",
        "release": "campaign.release:release",
        "evaluate": "evaluation.evaluate:evaluate",
        "report": "campaign.report:report",
    },
    "During a campaign": {
        "link": "server.serve:link",
        "agreement": "evaluation.agreement:agreement",
        "change": "campaign.change:change",
        "panel": "campaign.panel:panel",
        "import": "campaign.importing:import_judgments",
        "texts": "campaign.texts:texts",
        "assign": "campaign.assign:assign",
        "budget": "evaluation.budget:budget",
        "challenge": "campaign.challenge:challenge",
        "join": "campaign.join:join",
        "llm": "campaign.llm:llm",
        "prompt": "campaign.llm:prompt",
        "compare": "evaluation.compare:compare",
        "gate": "evaluation.gate:gate",
        "exclude": "campaign.exclude:exclude",
        "reinstate": "campaign.exclude:reinstate",
        "retract": "campaign.retract:retract",
        "rewind": "campaign.retract:rewind",
        "account": "server.account:account",
        "token": "server.account:token",
        "key": "server.account:key",
        "webhook": "server.webhook:webhook",
        "log": "campaign.log:log",
        "check": "server.check:check",
        "campaigns": "server.campaigns:campaigns",
        "backup": "server.backup:backup",
        "restore": "server.backup:restore",
        "migrate": "server.backup:migrate",
    },
    "Try, plan and reproduce": {
        "demo": "evaluation.demo:demo",
        "check-runs": "evaluation.submissions:check_submissions",
        "sheets": "evaluation.submissions:sheets",
        "power": "evaluation.power:power",
        "simulate": "evaluation.simulate:simulate",
        "reproduce": "evaluation.reproduce:reproduce",
        "plugins": "server.plugins:plugins",
        "schema": "evaluation.schema:schema",
    },
}
"""The commands as `--help` lists them, each as `module:function` of this package."""

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


_show_warning = warnings.showwarning


def _show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print a warning about a plugin as a notice; all others as Python does."""
    if issubclass(category, PluginWarning):
        typer.echo(f"Notice: {message}", err=True)
    else:
        _show_warning(message, category, *where, **more)


def _drop_output() -> None:
    """Discard what is still to be printed: where that failed once, Python would try again when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class DuelpoolCommands(DuelpoolGroup):
    """The group of all commands; errors that a user can fix are printed and end with exit code 2."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands = _Commands()

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete a command's name without importing the commands."""
        from typer._click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return list(super().shell_complete(ctx, incomplete))
        return [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options; those that typer adds for completion are switches like others."""
        options = list(super().get_params(ctx))
        take_plain_values([option for option in options if option.name in _COMPLETION])
        for option in options:
            if option.name in _COMPLETION:
                option.metavar = ""
        return options

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the list of commands, as it is stored: making it imports all of them."""
        if (text := stored_help(())) is None:
            super().format_help(ctx, formatter)
        else:
            typer.echo(text, nl=False, color=True)

    def invoke(self, ctx: Any) -> Any:
        """Run the named command."""
        warnings.showwarning = _show
        try:
            return super().invoke(ctx)
        except DuelpoolError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            problem = error.strerror or str(error)
            if error.filename is None:  # about no file: what is printed can't be written
                _drop_output()
                where, remedy = "The output can't be written", "Free some space, or print to another place."
            else:
                full = error.errno in NO_SPACE
                where = str(error.filename)
                remedy = "Free some space." if full else "Check the name and your permissions."
            typer.echo(f"Error: {where}: {problem}. {remedy}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from None
