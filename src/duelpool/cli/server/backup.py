"""`duelpool backup`, `duelpool restore` and `duelpool migrate`: copies of a store, and its schema."""

from pathlib import Path
from typing import Annotated

import typer

from duelpool.access import audit_log
from duelpool.campaign import checks
from duelpool.cli.opening import working
from duelpool.cli.options import JsonOption, StoreArgument
from duelpool.cli.output import print_json
from duelpool.cli.server.check import FOUND, as_json_value, checking, told
from duelpool.store import maintenance, open_store
from duelpool.store.schema import SCHEMA_VERSION


def backup(
    store: StoreArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The copy: a file that doesn't exist yet.")],
    as_json: JsonOption = False,
) -> None:
    """Copy a store, even while people judge: the copy is a consistent snapshot, complete or not there at all.

    The copy is checked from end to end, as `duelpool check` does. A copy of a damaged store is kept, and what is wrong
    with it is said; the exit code is then 1.

    Examples:

      duelpool backup campaign.db -o campaign-monday.db
    """
    with checking() as steps:
        verdict = checks.back_up(store, output, **steps)
    size = output.stat().st_size
    if as_json:
        print_json({"backup": str(output), "bytes": size, **as_json_value(verdict)})
    else:
        typer.echo(f"Copied {store} to {output}, {size:,} bytes.")
        told(str(output), verdict)
    if not verdict.sound:
        raise typer.Exit(FOUND)


def restore(
    copy: Annotated[Path, typer.Argument(help="A copy made by `duelpool backup`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The store: a file that doesn't exist yet.")],
    accept: Annotated[
        bool,
        typer.Option("--accept-damage", help="Restore a copy whose rows contradict each other as it is."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a store from a copy, after checking the copy from end to end, as `duelpool check` does.

    Stop the server first, and move the file that you want to replace away: nothing is ever overwritten.

    Examples:

      duelpool restore campaign-monday.db -o campaign.db
    """
    with checking() as steps:
        verdict = checks.restore(copy, output, accept_damage=accept, **steps)
    if as_json:
        print_json({"store": str(output), "bytes": output.stat().st_size, **as_json_value(verdict)})
    else:
        typer.echo(f"Restored {output} from {copy}, schema {verdict.schema}.")
        told(str(output), verdict)
    if not verdict.sound:
        raise typer.Exit(FOUND)


def migrate(
    store: StoreArgument,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="Continue with a store that lacks changes: its -wal file is gone."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Upgrade a store to the newest schema; a SQLite file is backed up beside itself first.

    Examples:

      duelpool migrate campaign.db
    """
    lost = maintenance.accept_loss(store) if accept else 0
    with working("Upgrading"):
        before = maintenance.migrate(store)
    if lost:
        with open_store(store) as opened:
            who, about = audit_log.shell_user(), f"{lost} changes are missing"
            opened.write(lambda connection, now: audit_log.record(connection, now, who, "accept loss", about))
    if as_json:
        print_json({"before": before, "schema": SCHEMA_VERSION} | ({"lost": lost} if accept else {}))
        return
    if lost:
        typer.echo(f"{store} continues without the {lost} changes that it lacks.")
    if before == SCHEMA_VERSION:
        typer.echo(f"{store} has the newest schema, {SCHEMA_VERSION}.")
    else:
        typer.echo(f"Upgraded {store} from schema {before} to {SCHEMA_VERSION}.")
