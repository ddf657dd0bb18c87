"""`duelpool exclude`, `reinstate`, `retract` and `rewind`: what a manager takes back, and gives back."""

from dataclasses import asdict
from typing import Annotated

import typer

from duelpool.campaign.work.ledger import full_price
from duelpool.cli.frame import print_json
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
from duelpool.errors import BadParameter
from duelpool.store import holdings


def exclude(
    store: StoreArgument,
    assessor: Annotated[str, typer.Argument(help="The assessor's pseudonym.")],
    reason: ReasonOption = "excluded by the manager",
    yes: YesOption = False,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take an assessor's judgments out of every score, open their pairs again, and ask them no more.

    Says first what that takes away. What was done stays in the log and stays paid; `reinstate` undoes it.

    Examples:

      duelpool exclude campaign.db worker-3

      duelpool exclude campaign.db worker-3 --reason "clicked through" --yes
    """
    with opened(store, campaign, writable=True) as found:
        _refuse_unknown(assessor, found.store.read(lambda c: holdings.assessors(c, found.id)))
        preview = found.preview_exclusion(assessor)
        price = full_price(found.settings) if found.settings.judges == "crowd" else 0
        cost = -(-preview.judgments * price // found.settings.targets)
        about = f", which costs about {cost / 100:,.2f} {found.settings.currency}" if cost else ""
        if not as_json:
            typer.echo(
                f"This takes out {preview.judgments} judgments of {preview.topics} topics "
                f"and re-opens {preview.pairs} pairs{about}."
            )
        sure = confirmed(f"Exclude {assessor}?", yes)
        if sure:
            entry = audit_entry(found, "exclude", assessor=assessor, reason=reason)
            found.exclude(assessor, reason, beside=entry)
    if as_json:
        print_json({**asdict(preview), "cost": cost, "excluded": sure})
    elif sure:
        typer.echo(f"Excluded {assessor}.")


def reinstate(
    store: StoreArgument,
    assessor: Annotated[str, typer.Argument(help="The assessor's pseudonym.")],
    reason: ReasonOption = "re-instated by the manager",
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let an excluded assessor in again; their judgments count again where their pairs have room.

    Examples:

      duelpool reinstate campaign.db worker-3 --reason "mistaken identity"
    """
    with opened(store, campaign, writable=True) as found:
        _refuse_unknown(assessor, found.store.read(lambda c: holdings.assessors(c, found.id)))
        entry = audit_entry(found, "reinstate", assessor=assessor, reason=reason)
        back = found.reinstate(assessor, reason, beside=entry)
    if as_json:
        print_json({"assessor": assessor, "judgments": back})
    else:
        typer.echo(f"Re-instated {assessor}: {back} judgments count again.")


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
        taken = found.retract(topic, seqs, reason, beside=entry)
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
            found.rewind(topic, phase, reason, beside=entry)
    if as_json:
        print_json({"topic": topic, "phase": phase, "set_aside": aside, "rewound": sure})
    elif sure:
        typer.echo(f"Opened {phase} of {topic} again.")


def _refuse_unknown(assessor: str, known: dict[str, holdings.AssessorRow]) -> None:
    if assessor not in known:
        raise BadParameter(
            f"Nobody called '{assessor}' takes part.",
            remedy="See `duelpool status --assessors`.",
        )
