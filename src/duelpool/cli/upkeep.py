"""`duelpool backup`, `migrate` and `log`: a store's care, and a look into what happened."""

import json
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Connection

from duelpool.access import audit_log
from duelpool.access.audit_log import AuditEntry
from duelpool.campaign.views.exports import line_to_json, log_rows
from duelpool.campaign.views.reading import topics_of
from duelpool.cli.frame import print_json, quiet_broken_pipe
from duelpool.cli.opening import CampaignOption, JsonOption, StoreArgument, opened, working
from duelpool.errors import BadFile, BadParameter
from duelpool.store import holdings, open_store
from duelpool.store.database import backup_sqlite, open_database, sqlite_path
from duelpool.store.opening import version_of
from duelpool.store.schema import SCHEMA_VERSION


def backup(
    store: StoreArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The copy, a file that isn't there yet.")],
    as_json: JsonOption = False,
) -> None:
    """Copy a store while people judge on: a consistent snapshot, complete or not there at all.

    Examples:

      duelpool backup campaign.db -o campaign-monday.db
    """
    path = sqlite_path(store)
    if path is None:
        raise BadParameter("A PostgreSQL database has a tool of its own for this.", remedy="Use pg_dump.")
    if output.exists():
        raise BadFile.at(str(output), None, "The file is there already.", "Name another one.")
    open_store(store, writable=False).close()  # a copy of something else would be no backup
    with working("Copying"):
        backup_sqlite(path, output)
    if as_json:
        print_json({"backup": str(output), "bytes": output.stat().st_size})
    else:
        typer.echo(f"Copied {store} to {output}, {output.stat().st_size:,} bytes.")


def restore(
    copy: Annotated[Path, typer.Argument(help="A copy that `duelpool backup` has made.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The store, a file that isn't there yet.")],
    as_json: JsonOption = False,
) -> None:
    """Make a store from a copy, after the copy has been checked from end to end.

    Stop the server first, and move the file that is to be replaced aside: nothing is ever written over.

    Examples:

      duelpool restore campaign-monday.db -o campaign.db
    """
    for beside in (output, output.with_name(f"{output.name}-wal")):
        if beside.exists():
            raise BadFile.at(
                str(beside), None, "The file is there already.", "Stop the server and move it aside."
            )
    if not copy.is_file():
        raise BadFile.at(str(copy), None, "There is no such copy.", "Check its name.")
    database = open_database(copy)
    try:
        version = version_of(database)
        if version is None:
            raise BadFile.at(str(copy), None, "This is no copy of a store.", "Name another file.")
        with working("Checking"):
            said = database.read(lambda found: found.exec_driver_sql("pragma integrity_check").scalar())
    finally:
        database.close()
    if said != "ok":
        raise BadFile.at(str(copy), None, f"The copy is damaged: {said}.", "Go back to an older one.")
    backup_sqlite(copy, output)
    if as_json:
        print_json({"store": str(output), "schema": version, "bytes": output.stat().st_size})
    else:
        typer.echo(f"{output} is what {copy} was, schema {version}.")


def migrate(store: StoreArgument, as_json: JsonOption = False) -> None:
    """Bring a store to the newest schema; a SQLite file is copied beside itself first.

    Examples:

      duelpool migrate campaign.db
    """
    path = sqlite_path(store)
    before = None
    if path is None or path.exists():
        database = open_database(store)
        try:
            before = version_of(database)
        finally:
            database.close()
    with working("Upgrading"):
        open_store(store).close()
    if as_json:
        print_json({"before": before, "schema": SCHEMA_VERSION})
    elif before == SCHEMA_VERSION:
        typer.echo(f"{store} has the newest schema, {SCHEMA_VERSION}.")
    else:
        typer.echo(f"{store} went from schema {before} to {SCHEMA_VERSION}.")


def log(
    store: StoreArgument,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; may be repeated.")] = None,
    assessor: Annotated[str | None, typer.Option(help="Only what this assessor judged.")] = None,
    event: Annotated[str | None, typer.Option(help="Only one kind of line, such as retraction.")] = None,
    last: Annotated[int | None, typer.Option(min=1, help="Only the last lines of each topic.")] = None,
    who: Annotated[
        bool, typer.Option("--deeds", help="Who did what instead: signed in, excluded, exported, ...")
    ] = False,
    campaign: CampaignOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Print the log: every judgment, retraction, release, closed phase and rewind, topic by topic.

    Examples:

      duelpool log campaign.db --topic bread --last 20

      duelpool log campaign.db --event retraction --json

      duelpool log campaign.db --deeds --last 20
    """
    if who:
        _print_deeds(store, campaign, last or 1000, as_json)
        return
    with quiet_broken_pipe(), opened(store, campaign) as found:

        def show(connection: Connection) -> None:
            for name in topics_of(connection, found.id):
                if topic and name not in topic:
                    continue
                for row in log_rows(connection, found, name, last):
                    if (event and row.event != event) or (assessor and row.assessor != assessor):
                        continue
                    line = line_to_json(row)
                    typer.echo(json.dumps(line, ensure_ascii=False) if as_json else told(line))

        if topic and (unknown := sorted(set(topic) - set(found.live.heads()))):
            raise BadParameter(f"The campaign has no topic '{unknown[0]}'.", remedy="See `duelpool status`.")
        found.store.read(show, once=True)


def _print_deeds(store: str, campaign: str | None, last: int, as_json: bool) -> None:
    """Print the audit log of a campaign or of the whole store, the oldest first."""
    with quiet_broken_pipe(), open_store(store, writable=False) as found:

        def look(connection: Connection) -> list[AuditEntry]:
            of = None if campaign is None else holdings.find_campaign(connection, campaign).id
            return list(audit_log.read(connection, of, limit=last))

        for each in reversed(found.read(look)):
            line = {"time": each.time, "who": each.who, "deed": each.action, "about": each.about}
            typer.echo(json.dumps(line, ensure_ascii=False) if as_json else "  ".join(line.values()).rstrip())


def told(line: dict[str, object]) -> str:
    """Return a line of the log for a person."""
    words = [f"{line['topic']} {line['seq']}", str(line["time"]), str(line["event"])]
    if line["event"] == "judgment":
        words.append(f"{line['left']} | {line.get('right', '')}: {line['outcome']}")
    for name in ("phase", "assessor", "test_pair", "refers_to", "survivors", "reason", "note"):
        if name in line:
            value = line[name]
            shown = " ".join(map(str, value)) if isinstance(value, list) else value
            words.append(f"{name.replace('_', ' ')}: {shown}")
    return "  ".join(words)
