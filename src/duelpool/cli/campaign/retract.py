"""`duelpool retract` and `duelpool rewind`: take judgments out of the scores, and open a closed phase again."""

from typing import Annotated

import typer

from duelpool.cli.opening import audit_entry, confirmed, opened
from duelpool.cli.options import CampaignOption, JsonOption, ReasonOption, StoreArgument, YesOption
from duelpool.cli.output import print_json
from duelpool.errors import BadParameter


def retract(
    store: StoreArgument,
    topic: Annotated[str, typer.Argument(help="The topic.")],
    seqs: Annotated[
        list[int],
        typer.Argument(min=1, help="The lines of its log, by number, as `duelpool log` shows them."),
    ],
    reason: Annotated[str, typer.Option(help="The reason, for the log.")],
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Retract judgments: they no longer count, and their pairs open again.

    Examples:

      duelpool retract campaign.db bread 12 15 --reason "the passage was cut off on the screen"
    """
    with opened(store, campaign_name, writable=True) as campaign:
        if topic not in campaign.live.heads():
            raise BadParameter(f"The campaign has no topic '{topic}'.", remedy="See `duelpool status`.")
        entry = audit_entry(campaign, "retract", topic=topic, seqs=seqs, reason=reason)
        taken = campaign.retract(topic, seqs, reason, also=entry)
    if as_json:
        print_json({"topic": topic, "retracted": taken})
        return
    typer.echo(f"Retracted {len(taken)} judgments of topic {topic}.")
    if others := [str(seq) for seq in seqs if seq not in taken]:
        typer.echo(f"No counted judgment at: {', '.join(others)}.")


def rewind(
    store: StoreArgument,
    topic: Annotated[str, typer.Argument(help="The topic.")],
    phase: Annotated[str, typer.Argument(help="The closed phase to open again, such as prune-1.")],
    reason: ReasonOption = "rewound by the manager",
    yes: YesOption = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open a closed phase of a topic again; the judgments of later phases are set aside.

    Shows first how many that are. Needed only when retractions should change which items leave the phase.

    Examples:

      duelpool rewind campaign.db bread prune-1

      duelpool rewind campaign.db bread prune-1 --yes --reason "after excluding worker-3"
    """
    with opened(store, campaign_name, writable=True) as campaign:
        if topic not in campaign.live.heads():
            raise BadParameter(f"The campaign has no topic '{topic}'.", remedy="See `duelpool status`.")
        aside = campaign.preview_rewind(topic, phase)
        if not as_json:
            typer.echo(f"This sets {aside} judgments of later phases aside.")
        sure = confirmed(f"Open {phase} of {topic} again?", yes)
        if sure:
            entry = audit_entry(campaign, "rewind", topic=topic, phase=phase, reason=reason)
            campaign.rewind(topic, phase, reason, also=entry)
    if as_json:
        print_json({"topic": topic, "phase": phase, "set_aside": aside, "rewound": sure})
    elif sure:
        typer.echo(f"Opened {phase} of {topic} again.")
