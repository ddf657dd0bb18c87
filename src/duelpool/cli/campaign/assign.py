"""`duelpool assign`: topics for certain assessors."""

from typing import Annotated

import typer

from duelpool.cli.opening import audit_entry, opened
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json
from duelpool.errors import BadParameter
from duelpool.store import reservations


def assign(
    store: StoreArgument,
    topics: Annotated[
        list[str] | None, typer.Argument(help="The topics. Default: show the assigned ones.")
    ] = None,
    to: Annotated[
        list[str] | None, typer.Option("--to", help="An assessor's pseudonym; may be repeated.")
    ] = None,
    anyone: Annotated[
        bool, typer.Option("--anyone", help="Let every assessor judge these topics again.")
    ] = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Assign topics to assessors: only they judge these topics, and they judge no others.

    Examples:

      duelpool assign campaign.db 31_1 31_2 --to anna

      duelpool assign campaign.db 32_1 --to anna --to bert

      duelpool assign campaign.db 31_1 --anyone

      duelpool assign campaign.db
    """
    if topics and bool(to) == anyone:
        raise BadParameter("No assessor is named for these topics.", remedy="Give --to NAME, or --anyone.")
    if to and not topics:
        raise BadParameter("No topic is named.", remedy="Name topics before --to.")
    with opened(store, campaign_name, writable=bool(topics)) as campaign:
        whose = ", ".join(to or ()) or "anyone"
        entry = audit_entry(campaign, "assign", topics=", ".join(topics or ()), to=whose)
        campaign.assign(topics or (), to or (), also=entry)
        assigned = campaign.read(reservations.reserved_topics)
    if as_json:
        print_json({topic: sorted(people) for topic, people in assigned.items()})
        return
    for topic, people in assigned.items():
        typer.echo(f"{topic}  {', '.join(sorted(people))}")
    if not assigned:
        typer.echo("Every topic is open to every assessor.")
