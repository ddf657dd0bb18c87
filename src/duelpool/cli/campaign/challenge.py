"""`duelpool challenge`: compare a late run's unjudged items with the best ones."""

from typing import Annotated

import typer
from rich.table import Table

from duelpool.cli.opening import audit_entry, opened, working
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, print_table, tell_notices
from duelpool.files import read_passages, read_run
from duelpool.leaderboard.scoring import keep_runs
from duelpool.setup.challenge import challenge as let_join
from duelpool.setup.challenge import find_challenges


def challenge(
    store: StoreArgument,
    run: Annotated[str, typer.Argument(help="The late run.")],
    texts: Annotated[
        str | None, typer.Option(help="Passages, for assessors to read and to detect duplicates.")
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="How deep the run is read.")] = 10,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; may be repeated.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would join, and change nothing.")
    ] = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the unjudged items that a late run ranks above the best ones, to be compared with them.

    The newcomers join the pools, and meet the best item of their topic when that topic is done;
    `duelpool judge` asks about them.

    Examples:

      duelpool challenge campaign.db new.run --texts passages.jsonl

      duelpool challenge campaign.db new.run --depth 5 --dry-run
    """
    read = read_run(run)
    tell_notices(run, read.notices)
    shown = read_passages(texts) if texts else None
    if shown is not None:
        tell_notices(str(texts), shown.notices)
    by_id = shown.by_id if shown is not None else None
    with opened(store, campaign_name, writable=not dry_run) as campaign, working("Looking for newcomers"):
        challenges = find_challenges(campaign, read, depth=depth, texts=by_id, topics=topic)
        if not dry_run and challenges:
            let_join(campaign, challenges, by_id)
        if not dry_run:
            keep_runs(campaign, [read])
            joined = sum(len(each.newcomers) for each in challenges)
            campaign.write(audit_entry(campaign, "challenge", run=read.name, newcomers=joined))
    newcomers = sum(len(each.newcomers) for each in challenges)
    same = sum(len(each.twins) for each in challenges)
    if as_json:
        print_json(
            {
                "run": read.name,
                "newcomers": newcomers,
                "twins": same,
                "joined": not dry_run,
                "topics": {
                    each.topic: {
                        "best": list(each.best),
                        "newcomers": list(each.newcomers),
                        "twins": dict(each.twins),
                    }
                    for each in challenges
                },
            }
        )
        return
    if challenges:
        table = Table(title=f"Newcomers of {read.name}", title_justify="left")
        for column in ("topic", "best so far", "newcomers", "duplicates of known items"):
            table.add_column(column, overflow="fold")
        for each in challenges:
            table.add_row(each.topic, ", ".join(each.best), ", ".join(each.newcomers), ", ".join(each.twins))
        print_table(table)
    verb = "would join" if dry_run else "joined"
    typer.echo(
        f"{newcomers} newcomers {verb} {len(challenges)} topics, and {same} duplicates of known items."
    )
