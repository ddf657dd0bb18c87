"""`duelpool report`: a campaign as one page that can be handed on."""

from pathlib import Path
from typing import Annotated

import typer

from duelpool.campaign.views.watch import Watch
from duelpool.campaign_report import MEASURES, chapters, facts
from duelpool.cli.opening import CampaignOption, StoreArgument, opened
from duelpool.cli.output import tell
from duelpool.files.source import write_lines
from duelpool.report import html_page


def report(
    store: StoreArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page's file.")] = Path("report.html"),
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", help=f"How to score the runs. Default: {', '.join(MEASURES)}."),
    ] = None,
    campaign: CampaignOption = None,
) -> None:
    """Write a campaign as one page with plots: leaderboard, best answers, people, money.

    The file holds everything it shows; it opens without a server, and names people by their pseudonyms.

    Examples:

      duelpool report campaign.db -o report.html

      duelpool report campaign.db -m RR -m nDCG@10 -m ppref
    """
    with opened(store, campaign) as found:
        watch = Watch(found)
        told = chapters(found, watch, measure or MEASURES)
        page = html_page(
            f"Campaign {found.name}",
            "Who leads, which answers are the best, who judged, and what it cost.",
            facts(watch.look()),
            told,
        )
    write_lines(output, [page.rstrip("\n")])
    tell(f"Wrote {output}: {len(told)} chapters, {len(page) // 1024:,} KB.")
