"""The command line: one file a command. Commands translate: parse, one call, print."""

from collections.abc import Callable
from typing import Annotated

import typer

from duelpool import __version__
from duelpool.cli.assign import assign
from duelpool.cli.budget import budget
from duelpool.cli.challenge import challenge
from duelpool.cli.change import change
from duelpool.cli.compare import compare
from duelpool.cli.demo import demo
from duelpool.cli.evaluate import evaluate
from duelpool.cli.export import export
from duelpool.cli.frame import DuelpoolCommands
from duelpool.cli.intake import take_in
from duelpool.cli.judge import judge
from duelpool.cli.pool import pool
from duelpool.cli.power import power
from duelpool.cli.quality import exclude, reinstate, retract, rewind
from duelpool.cli.reproduce import reproduce
from duelpool.cli.serve import link, serve
from duelpool.cli.simulate import simulate
from duelpool.cli.status import status
from duelpool.cli.upkeep import backup, log, migrate

app = typer.Typer(
    cls=DuelpoolCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

PANELS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "A campaign, from the pool to the scores": {
        "pool": pool,
        "serve": serve,
        "judge": judge,
        "status": status,
        "export": export,
        "evaluate": evaluate,
    },
    "Along the way": {
        "link": link,
        "change": change,
        "import": take_in,
        "assign": assign,
        "budget": budget,
        "challenge": challenge,
        "compare": compare,
        "exclude": exclude,
        "reinstate": reinstate,
        "retract": retract,
        "rewind": rewind,
        "log": log,
        "backup": backup,
        "migrate": migrate,
    },
    "Before it, and for those who check": {
        "demo": demo,
        "power": power,
        "simulate": simulate,
        "reproduce": reproduce,
    },
}
COMMANDS = {name: command for panel in PANELS.values() for name, command in panel.items()}

for _panel, _commands in PANELS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):  # a command with commands of its own
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"duelpool {__version__}")
        raise typer.Exit


@app.callback()
def duelpool(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find the best answers in a pool with few human preferences, and score rankers against them."""


def main() -> None:
    """Run the command line."""
    app(prog_name="duelpool")
