"""`duelpool retract` and `duelpool rewind`: take judgments out of the scores, and open a closed phase again."""

from typing import Annotated

import typer

from duelpool.cli.opening import (
    CampaignOption,
    JsonOption,
    ReasonOption,
    StoreArgument,
    YesOption,
    audit_entry,
    confirmed,
    opened,
)
from duelpool.cli.output import print_json
from duelpool.errors import BadParameter


def retract(
    store: StoreArgument,
    topic: Annotated[str, typer.Argument(help="The topic.")],
    seqs: Annotated[
        list[int], typer.Argument(min=1, help="Places in its log, as `duelpool log` shows them.")
    ],
    reason: Annotated[str, typer.Option(help="Why; it stands in the log.")],
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take single judgments out of every score; their pairs open again.

    Examples:

      duelpool retract campaign.db bread 12 15 --reason "the passage was cut off on the screen"
    """
    with opened(store, campaign, writable=True) as found:
        if topic not in found.live.heads():
            raise BadParameter(f"The campaign has no topic '{topic}'.", remedy="See `duelpool status`.")
        entry = audit_entry(found, "retract", topic=topic, seqs=seqs, reason=reason)
        taken = found.retract(topic, seqs, reason, also=entry)
    if as_json:
        print_json({"topic": topic, "retracted": taken})
        return
    typer.echo(f"Retracted {len(taken)} judgments of topic {topic}.")
    if others := [str(seq) for seq in seqs if seq not in taken]:
        typer.echo(f"No judgment that counts stands at: {', '.join(others)}.")


def rewind(
    store: StoreArgument,
    topic: Annotated[str, typer.Argument(help="The topic.")],
    phase: Annotated[str, typer.Argument(help="The closed phase to open again, such as prune-1.")],
    reason: ReasonOption = "rewound by the manager",
    yes: YesOption = False,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open a closed phase of a topic again; the judgments of later phases are set aside.

    Says first how many that are. Needed only when retractions should change who went on from the phase.

    Examples:

      duelpool rewind campaign.db bread prune-1

      duelpool rewind campaign.db bread prune-1 --yes --reason "after excluding worker-3"
    """
    with opened(store, campaign, writable=True) as found:
        if topic not in found.live.heads():
            raise BadParameter(f"The campaign has no topic '{topic}'.", remedy="See `duelpool status`.")
        aside = found.preview_rewind(topic, phase)
        if not as_json:
            typer.echo(f"This sets {aside} judgments of later phases aside.")
        sure = confirmed(f"Open {phase} of {topic} again?", yes)
        if sure:
            entry = audit_entry(found, "rewind", topic=topic, phase=phase, reason=reason)
            found.rewind(topic, phase, reason, also=entry)
    if as_json:
        print_json({"topic": topic, "phase": phase, "set_aside": aside, "rewound": sure})
    elif sure:
        typer.echo(f"Opened {phase} of {topic} again.")
