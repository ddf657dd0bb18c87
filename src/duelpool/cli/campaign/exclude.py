"""`duelpool exclude` and `duelpool reinstate`: leave an assessor's judgments out, or count them again."""

from dataclasses import asdict
from typing import Annotated

import typer

from duelpool.campaign.work.ledger import full_price
from duelpool.cli.opening import audit_entry, confirmed, opened
from duelpool.cli.options import CampaignOption, JsonOption, ReasonOption, StoreArgument, YesOption
from duelpool.cli.output import print_json
from duelpool.errors import BadParameter
from duelpool.store import holdings


def exclude(
    store: StoreArgument,
    assessor: Annotated[str, typer.Argument(help="The assessor's pseudonym.")],
    reason: ReasonOption = "excluded by the manager",
    yes: YesOption = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Exclude an assessor: their judgments no longer count, their pairs open again, they get no more questions.

    Shows first what that takes out. The judgments stay in the log and stay paid; `reinstate` undoes it.

    Examples:

      duelpool exclude campaign.db worker-3

      duelpool exclude campaign.db worker-3 --reason "clicked through" --yes
    """
    with opened(store, campaign_name, writable=True) as campaign:
        _refuse_unknown(assessor, campaign.read(holdings.assessors))
        preview = campaign.preview_exclusion(assessor)
        price = full_price(campaign.settings) if campaign.settings.judges == "crowd" else 0
        cost = -(-preview.again * price // campaign.settings.targets)
        about = f", which costs about {cost / 100:,.2f} {campaign.settings.currency}" if cost else ""
        if not as_json:
            typer.echo(
                f"This takes out {preview.judgments} judgments of {preview.topics} topics "
                f"and reopens {preview.opened} of their {preview.pairs} pairs{about}."
            )
        sure = confirmed(f"Exclude {assessor}?", yes)
        if sure:
            entry = audit_entry(campaign, "exclude", assessor=assessor, reason=reason)
            campaign.exclude(assessor, reason, also=entry)
    if as_json:
        print_json({**asdict(preview), "cost": cost, "excluded": sure})
    elif sure:
        typer.echo(f"Excluded {assessor}.")


def reinstate(
    store: StoreArgument,
    assessor: Annotated[str, typer.Argument(help="The assessor's pseudonym.")],
    reason: ReasonOption = "reinstated by the manager",
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reinstate an excluded assessor; their judgments count again where their pairs have free slots.

    Examples:

      duelpool reinstate campaign.db worker-3 --reason "mistaken identity"
    """
    with opened(store, campaign_name, writable=True) as campaign:
        _refuse_unknown(assessor, campaign.read(holdings.assessors))
        entry = audit_entry(campaign, "reinstate", assessor=assessor, reason=reason)
        back = campaign.reinstate(assessor, reason, also=entry)
    if as_json:
        print_json({"assessor": assessor, "judgments": back})
    else:
        typer.echo(f"Reinstated {assessor}: {back} judgments count again.")


def _refuse_unknown(assessor: str, known: dict[str, holdings.AssessorRow]) -> None:
    if assessor not in known:
        raise BadParameter(
            f"The campaign has no assessor '{assessor}'.",
            remedy="See `duelpool status --assessors`.",
        )
