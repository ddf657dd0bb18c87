"""`duelpool campaigns`: the campaigns of a store; list, rename or remove them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from duelpool.access import audit_log
from duelpool.cli.helptext import command_group
from duelpool.cli.opening import confirmed
from duelpool.cli.options import JsonOption, StoreArgument, YesOption
from duelpool.cli.output import print_json, print_table, tell
from duelpool.errors import BadParameter
from duelpool.store import Store, holdings, log, open_store
from duelpool.store.administration.campaigns import judgments_of, remove_campaign, rename_campaign
from duelpool.store.maintenance import back_up

campaigns = command_group(
    "List, rename or remove the campaigns of a store.",
    "duelpool campaigns list campaign.db",
    "duelpool campaigns rename campaign.db pilot 'pilot 2026'",
    "duelpool campaigns remove campaign.db pilot",
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The campaign's name.")]


@campaigns.command("list")
def list_campaigns(store: StoreArgument, as_json: JsonOption = False) -> None:
    """List the campaigns of a store, the oldest first.

    Examples:

    duelpool campaigns list campaign.db
    """
    with open_store(store) as opened:
        rows = [
            {
                "name": row.name,
                "state": row.state,
                "goal": row.settings.get("goal", "best"),
                "strategy": row.settings.get("strategy", ""),
                "log_lines": judgments_of(opened, row.id),
                "created": log.iso_time(row.created),
            }
            for row in opened.read(holdings.campaigns)
        ]
    if as_json:
        print_json(rows)
        return
    table = Table(title="Campaigns", title_justify="left")
    for column in ("name", "state", "goal", "strategy", "lines of the log", "created"):
        table.add_column(column, overflow="fold")
    for row in rows:
        shown = {**row, "log_lines": f"{row['log_lines']:,}", "created": row["created"][:16]}
        table.add_row(*map(str, shown.values()))
    print_table(table)


@campaigns.command("rename")
def rename(
    store: StoreArgument,
    name: NameArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
) -> None:
    """Give a campaign another name; links and the log stay as they are.

    Examples:

    duelpool campaigns rename campaign.db pilot 'pilot 2026'
    """
    with open_store(store, writable=True) as opened:
        row = rename_campaign(opened, name, new)
        _note(opened, "campaign renamed", f"{row.name} is {new} from now on")
    typer.echo(f"The campaign {row.name} is called {new} from now on.")


@campaigns.command("remove")
def remove(
    store: StoreArgument,
    name: NameArgument,
    backup: Annotated[
        Path | None,
        typer.Option(help="The copy that is made first. Default: beside the store, with the time."),
    ] = None,
    no_backup: Annotated[
        bool, typer.Option("--no-backup", help="Make no copy first: PostgreSQL has its own tools.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Remove a campaign with its judgments, texts and people, after a copy of the whole store was made.

    Examples:

    duelpool campaigns remove campaign.db pilot

    duelpool campaigns remove campaign.db pilot --backup before.db --yes
    """
    with open_store(store) as opened:
        row = opened.read(lambda connection: holdings.find_campaign(connection, name))
        lines = judgments_of(opened, row.id)
    if not confirmed(f"Remove the campaign {row.name} with {lines:,} lines of its log?", yes):
        return
    if not no_backup:
        if "://" in store:
            raise BadParameter(
                "A PostgreSQL database is backed up with its own tools.",
                remedy="Use pg_dump, then remove the campaign with --no-backup.",
            )
        copy = backup or _copy_name(Path(store))
        back_up(store, copy)
        tell(f"Copied {store} to {copy}.")
    with open_store(store, writable=True) as opened:
        row, count = remove_campaign(opened, row.id)
        _note(opened, "campaign removed", f"{row.name}, {count} rows")
    typer.echo(f"Removed the campaign {row.name}: {count:,} rows.")


def _copy_name(store: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return store.with_name(f"{store.stem}-before-removal-{stamp}{store.suffix}")


def _note(store: Store, action: str, about: str) -> None:
    who = audit_log.shell_user()
    store.write(lambda connection, now: audit_log.record(connection, now, who, action, about))
