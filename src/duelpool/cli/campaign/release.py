"""`duelpool release`: judgments for others, without what could identify a person."""

from typing import Annotated

import typer

from duelpool.campaign.exports.anonymous import FEW, write_anonymous
from duelpool.cli.opening import opened
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, tell


def release(
    store: StoreArgument,
    output: Annotated[str, typer.Option("--output", "-o", help="The folder, or a .zip file.")],
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Keep texts that look like addresses or ids, after you have looked."),
    ] = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write an anonymised release: judgments with new pseudonyms, a codebook, a data card and Croissant metadata.

    Notes, clock times and ids of panels are left out. All texts are searched for what could identify a person; where
    something is found, nothing is written.

    Examples:

    duelpool release campaign.db -o release

    duelpool release campaign.db -o release.zip --accept
    """
    with opened(store, campaign_name) as campaign:
        made = write_anonymous(campaign, output, accept=accept)
    if as_json:
        print_json(
            {
                "files": list(made.files),
                "judgments": made.judgments,
                "assessors": made.assessors,
                "assessors_with_few_judgments": made.with_few,
                "accepted": list(made.accepted),
            }
        )
        return
    tell(f"Wrote {made.judgments:,} judgments of {made.assessors:,} assessors to {output}, with a codebook.")
    if made.with_few:
        tell(
            f"Notice: {made.with_few:,} assessors have fewer than {FEW} judgments, and are easier to recognise."
        )
