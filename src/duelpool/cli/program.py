"""The app: all commands in one group."""

from typing import Annotated

import typer

from duelpool.cli.commands import DuelpoolCommands

app = typer.Typer(
    cls=DuelpoolCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from duelpool import __version__  # here, because reading it takes longer than all of this

        typer.echo(f"duelpool {__version__}")
        raise typer.Exit


@app.callback()
def duelpool(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Find the best answers in a pool with few human preferences, and score rankers against them."""
