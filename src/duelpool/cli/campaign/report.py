"""`duelpool report`: the result of a campaign as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from duelpool.campaign.views import summaries
from duelpool.campaign.views.watch import Watch
from duelpool.campaign_report import MEASURES, chapters, facts
from duelpool.cli.opening import opened
from duelpool.cli.options import CampaignOption, StoreArgument
from duelpool.cli.output import tell, working
from duelpool.files.source import write_lines
from duelpool.frames import counted
from duelpool.report.page import html_page


def report(
    store: StoreArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")] = Path("report.html"),
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help=f"A measure for the leaderboard; may be repeated. Default: {', '.join(MEASURES)}.",
        ),
    ] = None,
    campaign_name: CampaignOption = None,
) -> None:
    """Write the result of a campaign as one HTML file: the answer first, then what it rests on.

    It has the leaderboard, the best answers, assessors and costs, with charts and tables.

    The file opens without a server, and names assessors by their pseudonyms.

    Examples:

      duelpool report campaign.db -o report.html

      duelpool report campaign.db -m RR -m nDCG@10 -m ppref
    """
    with opened(store, campaign_name) as campaign:
        with working("Working out the best items, then the scores"):
            summaries.work_out(campaign)
            watch = Watch(campaign)
            sections = chapters(campaign, watch, measure or MEASURES)
        page = html_page(
            f"Campaign {campaign.name}",
            "What was found, how sure it is, and what it took.",
            facts(watch.look()),
            sections,
        )
    write_lines(output, [page.rstrip("\n")])
    tell(f"Wrote {output}: {counted(len(sections), 'chapter')}, {len(page) // 1024:,} KB.")
