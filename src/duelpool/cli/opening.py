"""What the commands on a campaign share: its store and name on the command line, and opening it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from duelpool.access import audit_log
from duelpool.campaign import Campaign
from duelpool.campaign.campaign import Also
from duelpool.store import open_store

StoreArgument: TypeAlias = Annotated[str, typer.Argument(help="The campaign's file, or a PostgreSQL URL.")]
CampaignOption: TypeAlias = Annotated[
    str | None, typer.Option("--campaign", help="Which campaign, where the store holds several.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
ReasonOption: TypeAlias = Annotated[str, typer.Option(help="Why; it stands in the log.")]
STORE_ENDINGS = (".db", ".sqlite", ".sqlite3")


def is_store(output: str) -> bool:
    """Say whether a name is a store's, rather than that of a file of pools or scores."""
    return "://" in output or Path(output).suffix in STORE_ENDINGS


@contextmanager
def opened(store: str, name: str | None, *, writable: bool = False) -> Iterator[Campaign]:
    """Open a campaign; only where it is to be changed may an old store be upgraded, after a backup."""
    with open_store(store, writable=writable) as found:
        yield Campaign.open(found, name)


def audit_entry(campaign: Campaign, action: str, **about: object) -> Also:
    """Return the entry of the audit log for an action from the command line."""
    told = "; ".join(f"{name}: {value}" for name, value in about.items() if value not in ("", None))
    return audit_log.entry(audit_log.shell_user(), action, told, campaign=campaign.id)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on standard error, where a person looks at it, that something is under way."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(what):
        yield


def confirmed(question: str, yes: bool) -> bool:
    """Ask a person, unless the command says yes already; where nobody can answer, that is a no."""
    if yes:
        return True
    if not sys.stdin.isatty():
        typer.echo("Nothing was changed. Add --yes to do it.", err=True)
        return False
    return typer.confirm(question)
