"""Options that commands on a campaign share, and opening the campaign."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from duelpool.access import audit_log
from duelpool.campaign import Campaign
from duelpool.campaign.campaign import Also
from duelpool.campaign.questions.held_back import HeldTopics
from duelpool.cli.output import tell
from duelpool.errors import DuelpoolError
from duelpool.store import open_store
from duelpool.store.maintenance import rights_notice


@contextmanager
def opened(store: str, name: str | None, *, writable: bool = False) -> Iterator[Campaign]:
    """Open a campaign; an old store is upgraded (after a backup) only when `writable`."""
    with open_store(store, writable=writable) as opened_store:
        if notice := rights_notice(opened_store):
            tell(f"Notice: {notice}")
        campaign = Campaign.open(opened_store, name)
        for refused in campaign.refused_settings:
            tell(f"Notice: {refused}")
        yield campaign


def tell_held(held: HeldTopics, store: str) -> None:
    """Say which topics are held back from judging, and how to release them."""
    if not held:
        return
    files = [
        name for name, missing in (("PASSAGES", held.items), ("--topics TOPICS", held.questions)) if missing
    ]
    tell(f"Notice: {held} Add what is missing with: duelpool texts {shlex.quote(store)} {' '.join(files)}")


def audit_entry(campaign: Campaign, action: str, **about: object) -> Also:
    """Return the entry of the audit log for an action from the command line."""
    details = "; ".join(f"{name}: {value}" for name, value in about.items() if value not in ("", None))
    return audit_log.entry(audit_log.shell_user(), action, details, campaign=campaign.id)


@contextmanager
def recorded(campaign: Campaign, action: str, **about: object) -> Iterator[None]:
    """Record a call to another service before it is made, and afterwards whether it succeeded.

    Where the process is killed in between, the audit log says that the call was begun, and not more.
    """
    campaign.write(audit_entry(campaign, action, **about, outcome="begun"))
    try:
        yield
    except BaseException as error:
        said = str(error) if isinstance(error, DuelpoolError) else type(error).__name__
        campaign.write(audit_entry(campaign, action, **about, outcome=f"failed: {said}"))
        raise
    campaign.write(audit_entry(campaign, action, **about, outcome="done"))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on standard error while something runs, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, emoji=False).status(what):
        yield


def confirmed(question: str, yes: bool) -> bool:
    """Ask for confirmation unless `yes`; without a terminal the answer is no."""
    if yes:
        return True
    if not sys.stdin.isatty():
        typer.echo("Nothing was changed. Add --yes to do it.", err=True)
        return False
    return typer.confirm(question)
