"""`duelpool webhook`: tell chat tools and programs what happens in a campaign."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from duelpool.access.keys import read_keys
from duelpool.campaign.events import EVENTS
from duelpool.cli.helptext import command_group
from duelpool.cli.opening import audit_entry, opened
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, print_table
from duelpool.errors import BadFile, BadParameter
from duelpool.webhooks import setting_up
from duelpool.webhooks.bodies import BODIES
from duelpool.webhooks.finding import look
from duelpool.webhooks.sending import deliver

webhook = command_group(
    "Tell chat tools and programs what happens in a campaign: it is done, a topic is, the budget is reached.",
    "duelpool webhook add campaign.db https://hooks.slack.com/services/...",
    "duelpool webhook add campaign.db https://example.org/hook --event campaign.done",
    "duelpool webhook list campaign.db",
)

IdArgument = Annotated[str, typer.Argument(help="The webhook's id, as `list` shows it.")]


@webhook.command()
def add(
    store: StoreArgument,
    url: Annotated[str, typer.Argument(help="Where to send events: an https:// address.")],
    event: Annotated[
        list[str] | None,
        typer.Option(help=f"Send only this event; may be repeated. One of {', '.join(EVENTS)}."),
    ] = None,
    body: Annotated[
        str, typer.Option(help=f"What to send, one of {', '.join(BODIES)}. json fits most chat tools.")
    ] = "json",
    secret_file: Annotated[
        Path | None, typer.Option(help="A file with the secret that signs. Default: a new one, printed once.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A host that may be in your own network; may be repeated.")
    ] = None,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a webhook: events from now on are sent to it. The secret that signs them is printed once.

    Examples:

      duelpool webhook add campaign.db https://hooks.slack.com/services/T0/B0/x

      duelpool webhook add campaign.db http://intranet:8080/hook --allow-host intranet --event topic.done
    """
    secret = "" if secret_file is None else _read_secret(secret_file)
    with opened(store, campaign_name, writable=True) as campaign:
        read_keys(campaign.store)  # refuses a key outside of the store that isn't the server's
        only = event or []
        entry = audit_entry(campaign, "add a webhook", events=", ".join(only) or "all")
        added = setting_up.add(
            campaign, url, only=only, body=body, secret=secret, allow=allow_host or (), also=entry
        )
    if as_json:
        print_json(asdict(added))
        return
    typer.echo(f"Added {added.id}, to {added.host}.")
    if secret_file is None:
        typer.echo(f"It signs with this secret, which is shown only now:\n{added.secret}")


def _read_secret(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile.at(str(file), None, f"The secret can't be read ({error}).", "Check the name.") from None


@webhook.command("list")
def list_webhooks(
    store: StoreArgument, campaign_name: CampaignOption = None, as_json: JsonOption = False
) -> None:
    """List the webhooks, their last delivery, and events that haven't arrived.

    Examples:

      duelpool webhook list campaign.db
    """
    with opened(store, campaign_name) as campaign:
        listed, late = campaign.read(lambda tx: (setting_up.webhooks(tx), setting_up.undelivered(tx)))
    if as_json:
        print_json(
            {"webhooks": [asdict(each) for each in listed], "undelivered": [asdict(each) for each in late]}
        )
        return
    if not listed:
        typer.echo("The campaign has no webhook. Add one with `duelpool webhook add`.")
        return
    table = Table("id", "host", "events", "state", "delivered", "waiting", "failed", "last attempt")
    for each in listed:
        counts = (str(number) for number in (each.delivered, each.waiting, each.failed))
        last = f"{each.last_attempt} {each.last_result}".strip()
        table.add_row(each.id, each.host, " ".join(each.events) or "all", each.state, *counts, last)
    print_table(table)
    for one in late:
        again = "given up" if one.state == "failed" else f"again at {one.next_attempt}"
        typer.echo(
            f"{one.webhook} {one.kind} of {one.time}: {one.attempts} attempts, {again}. {one.last_result}"
        )


@webhook.command()
def remove(store: StoreArgument, which: IdArgument, campaign_name: CampaignOption = None) -> None:
    """Remove a webhook, with its secret and the events that wait for it.

    Examples:

      duelpool webhook remove campaign.db 1f0c9a4e
    """
    with opened(store, campaign_name, writable=True) as campaign:
        host = setting_up.remove(
            campaign, which, also=audit_entry(campaign, "remove a webhook", webhook=which)
        )
    typer.echo(f"Removed {which}, to {host}.")


@webhook.command("test")
def send_test(store: StoreArgument, which: IdArgument, campaign_name: CampaignOption = None) -> None:
    """Send a test, and say what the receiver answered.

    Examples:

      duelpool webhook test campaign.db 1f0c9a4e
    """
    with opened(store, campaign_name) as campaign:
        outcome = setting_up.send_test(campaign, which)
    if not outcome.arrived:
        raise BadParameter(
            f"The test didn't arrive: {outcome.said}", remedy="Check the receiver, or add the webhook again."
        )
    typer.echo(f"The test arrived: the receiver answered {outcome.status}.")


@webhook.command()
def send(
    store: StoreArgument,
    failed: Annotated[bool, typer.Option("--failed", help="Also send again what was given up.")] = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send the events that are due. A running server does that automatically; use it where none runs.

    Examples:

      duelpool webhook send campaign.db

      duelpool webhook send campaign.db --failed
    """
    with opened(store, campaign_name, writable=True) as campaign:
        if failed:
            setting_up.resend(campaign, also=audit_entry(campaign, "send failed events again"))
        look(campaign)
        sent = deliver(campaign.store)
        waiting = sum(each.waiting for each in campaign.read(setting_up.webhooks))
    if as_json:
        print_json({**asdict(sent), "waiting": waiting})
    else:
        typer.echo(
            f"{sent.delivered} delivered, {sent.failed} failed, {waiting} wait for their next attempt."
        )
