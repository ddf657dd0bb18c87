"""Checking a whole store, and copies of it that are checked."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, func, select

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.checks.campaigns import Advance, contradictions, slots_of
from duelpool.campaign.checks.findings import Contradiction, Contradictions
from duelpool.campaign.checks.tables import dangling_rows, missing_parts
from duelpool.campaign.views.summaries import check_summaries
from duelpool.errors import BadFile, DuelpoolError
from duelpool.store import Reading, Store, StoreError, holdings, maintenance, open_store, schema
from duelpool.store.database import SqliteDatabase, open_database, sqlite_path
from duelpool.store.opening import bring_to, version_of
from duelpool.store.sqlite.copies import backup_sqlite
from duelpool.store.sqlite.damage import damage_of

_NO_DATABASE = "file is not a database"  # as SQLite says
_SHOWN = 5  # findings in the message of an error


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check has read, and what it has found: nothing in a sound store."""

    findings: tuple[Contradiction, ...]
    schema: str = ""
    campaigns: int = 0
    lines: int = 0
    questions: int = 0

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def check_store(
    target: str | Path,
    *,
    begin: Callable[[int], None] = lambda lines: None,
    advance: Advance = lambda lines: None,
) -> CheckResult:
    """Check a store from end to end; it changes nothing, and people may judge meanwhile.

    A SQLite store of an older release is copied to a temporary folder, and the copy is upgraded and checked. `begin` is
    told the number of log lines, and `advance` how many of them were read.
    """
    path = sqlite_path(target)
    version = ""
    if path is not None and path.is_file():
        damage = damage_of(path)
        if _NO_DATABASE in damage:
            raise StoreError("This is not a Duelpool store.", place=str(path), remedy="Name another file.")
        if damage:
            return CheckResult((Contradiction("file", f"The file is damaged: {damage}"),))
        version = _version_of(path)
    if path is None or not version or version >= schema.SCHEMA_VERSION:  # a newer one is refused there
        with open_store(target, writable=False) as store:
            return _check(store, schema.SCHEMA_VERSION, begin, advance)
    with tempfile.TemporaryDirectory(prefix="duelpool-check-") as folder:
        copy = Path(folder) / "upgraded.db"
        backup_sqlite(path, copy)
        database = SqliteDatabase(copy)
        try:
            database.write(bring_to)
            return _check(Store(database), version, begin, advance)
        finally:
            database.close()


def _version_of(path: Path) -> str:
    database = open_database(path)
    try:
        return version_of(database) or ""
    finally:
        database.close()


def _check(store: Store, version: str, begin: Callable[[int], None], advance: Advance) -> CheckResult:
    whole = Contradictions()
    store.read(lambda connection: whole.extend("schema", list(missing_parts(connection))), once=True)
    if whole.all():  # the rows are read by these tables and columns
        return CheckResult(tuple(whole.all()), version)
    rows, lines, questions = store.read(_sizes)
    begin(lines)
    store.read(lambda connection: whole.extend("foreign key", list(dangling_rows(connection))), once=True)
    findings = whole.all()
    for row in rows:
        try:
            campaign = Campaign(store, row)
        except DuelpoolError as error:
            findings.append(Contradiction("settings", error.problem, row.name))
            continue
        findings += campaign.read(partial(_recount, campaign, advance), once=True)
    return CheckResult(tuple(findings), version, len(rows), lines, questions)


def _recount(campaign: Campaign, advance: Advance, tx: Reading) -> list[Contradiction]:
    rows = contradictions(tx, slots_of(campaign.settings), campaign.name, advance)
    if rows:  # a log that contradicts the rows may not be replayed
        return rows
    found = Contradictions(campaign.name)
    found.extend("summary", check_summaries(tx, campaign))
    return found.all()


def _sizes(connection: Connection) -> tuple[list[holdings.CampaignRow], int, int]:
    lines = connection.execute(select(func.coalesce(func.sum(schema.topic.c.next_seq - 1), 0))).scalar_one()
    questions = connection.execute(select(func.count()).select_from(schema.question)).scalar_one()
    return holdings.campaigns(connection), int(lines), int(questions)


def back_up(
    store: str,
    output: Path,
    *,
    begin: Callable[[int], None] = lambda lines: None,
    advance: Advance = lambda lines: None,
) -> CheckResult:
    """Copy a SQLite store to a new file while people judge, and check the copy; it is kept whatever is found.

    The copy is checked, not the store: the server isn't held up, and what is checked is what would be restored. A copy
    that can't be checked, such as on a full disk, is removed.
    """
    maintenance.back_up(store, output)
    try:
        return check_store(output, begin=begin, advance=advance)
    except (DuelpoolError, OSError):
        for each in (output, *(output.with_name(f"{output.name}{end}") for end in ("-wal", "-shm", "-head"))):
            with suppress(OSError):
                each.unlink()
        raise


def restore(
    copy: Path,
    output: Path,
    *,
    accept_damage: bool = False,
    begin: Callable[[int], None] = lambda lines: None,
    advance: Advance = lambda lines: None,
) -> CheckResult:
    """Make a store from a copy after checking the copy from end to end; an existing store is never overwritten.

    A copy whose rows contradict each other is restored only with `accept_damage`, one whose file is damaged never.
    """
    maintenance.check_places(copy, output)
    verdict = check_store(copy, begin=begin, advance=advance)
    if not verdict.sound:
        in_file = verdict.findings[0].kind == "file"
        if in_file or not accept_damage:
            shown = " ".join(each.problem for each in verdict.findings[:_SHOWN])
            remedy = "Restore an older one" + ("." if in_file else ", or add --accept-damage.")
            raise BadFile.at(str(copy), None, f"The copy is damaged. {shown}", remedy)
    backup_sqlite(copy, output)
    return verdict
