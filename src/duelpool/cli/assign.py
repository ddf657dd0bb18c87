"""`duelpool assign`: topics for certain people."""

from typing import Annotated

import typer

from duelpool.cli.opening import CampaignOption, JsonOption, StoreArgument, audit_entry, opened
from duelpool.cli.output import print_json
from duelpool.errors import BadParameter
from duelpool.store import holdings


def assign(
    store: StoreArgument,
    topics: Annotated[list[str] | None, typer.Argument(help="The topics. None: show who has which.")] = None,
    to: Annotated[
        list[str] | None, typer.Option("--to", help="A pseudonym; may be repeated for several people.")
    ] = None,
    anyone: Annotated[bool, typer.Option("--anyone", help="Let everybody judge these topics again.")] = False,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep topics for certain people: nobody else is asked about them, and they are asked about nothing else.

    Examples:

      duelpool assign campaign.db 31_1 31_2 --to anna

      duelpool assign campaign.db 32_1 --to anna --to bert

      duelpool assign campaign.db 31_1 --anyone

      duelpool assign campaign.db
    """
    if topics and bool(to) == anyone:
        raise BadParameter("Whose are these topics?", remedy="Give --to NAME, or --anyone.")
    if to and not topics:
        raise BadParameter("No topic is named.", remedy="Name topics before --to.")
    with opened(store, campaign, writable=bool(topics)) as found:
        whose = ", ".join(to or ()) or "anyone"
        entry = audit_entry(found, "assign", topics=", ".join(topics or ()), to=whose)
        found.assign(topics or (), to or (), also=entry)
        kept = found.read(holdings.reserved_topics)
    if as_json:
        print_json({topic: sorted(people) for topic, people in kept.items()})
        return
    for topic, people in kept.items():
        typer.echo(f"{topic}  {', '.join(sorted(people))}")
    if not kept:
        typer.echo("Every topic is for everybody.")
