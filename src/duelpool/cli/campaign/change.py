"""`duelpool change`: a campaign's state, and the settings of its pages and pay."""

from typing import Annotated, Literal, cast, get_args

import typer

from duelpool.campaign.runners.weighing import keep_weights
from duelpool.campaign.settings.changes import changes
from duelpool.campaign.settings.file import read_changes
from duelpool.cli.opening import audit_entry, opened
from duelpool.cli.options import CampaignOption, StoreArgument
from duelpool.errors import BadParameter, UnknownName
from duelpool.files.source import shown_name

State = Literal["open", "paused", "closed"]


def change(
    store: StoreArgument,
    state: Annotated[str | None, typer.Option(help="open, paused, or closed.")] = None,
    settings: Annotated[
        str | None, typer.Option(help="A TOML or JSON file with settings of the pages and the pay.")
    ] = None,
    campaign_name: CampaignOption = None,
) -> None:
    """Pause, close or open a campaign, or change the settings of its pages and pay.

    Examples:

      duelpool change campaign.db --state paused

      duelpool change campaign.db --settings page.toml
    """
    if state is None and settings is None:
        raise BadParameter("There is nothing to change.", remedy="Give --state, --settings, or both.")
    if state is not None and state not in get_args(State):
        raise UnknownName("state", state, get_args(State))
    with opened(store, campaign_name, writable=True) as campaign:
        if settings is not None:
            after = read_changes(settings, campaign.settings)
            names = ", ".join(each.name for each in changes(campaign.settings, after))
            campaign.change(after, also=audit_entry(campaign, "settings", changed=names or "nothing"))
            keep_weights(campaign)
            typer.echo(f"Campaign {campaign.name} has the settings of {shown_name(settings)} from now on.")
        if state is not None:
            campaign.set_state(cast("State", state), also=audit_entry(campaign, "state", state=state))
            typer.echo(f"Campaign {campaign.name} is {state}.")
