"""`duelpool exclude` and `duelpool reinstate`: leave an assessor's judgments out, or count them again."""

from dataclasses import asdict
from typing import Annotated

import typer

from duelpool.campaign.work.ledger import full_price
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
        _refuse_unknown(assessor, found.read(holdings.assessors))
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
            found.exclude(assessor, reason, also=entry)
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
        _refuse_unknown(assessor, found.read(holdings.assessors))
        entry = audit_entry(found, "reinstate", assessor=assessor, reason=reason)
        back = found.reinstate(assessor, reason, also=entry)
    if as_json:
        print_json({"assessor": assessor, "judgments": back})
    else:
        typer.echo(f"Re-instated {assessor}: {back} judgments count again.")


def _refuse_unknown(assessor: str, known: dict[str, holdings.AssessorRow]) -> None:
    if assessor not in known:
        raise BadParameter(
            f"Nobody called '{assessor}' takes part.",
            remedy="See `duelpool status --assessors`.",
        )
