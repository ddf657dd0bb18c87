"""`duelpool join`: a system, or a new version of one, joins a campaign of answers."""

from typing import Annotated

import typer

from duelpool.cli.opening import audit_entry, opened, working
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, tell, tell_notices
from duelpool.files import read_answers, read_passages
from duelpool.files.answers import parse_fields
from duelpool.files.paths import expand_paths
from duelpool.setup.joining import join as let_join
from duelpool.store import holdings


def join(
    store: StoreArgument,
    answers: Annotated[list[str], typer.Argument(help="Answers of the new systems, as for pool --answers.")],
    fields: Annotated[
        str, typer.Option(help="The fields of the answers: question=prompt,system=model,answer=result, ...")
    ] = "",
    texts: Annotated[str | None, typer.Option(help="The texts of what the answers cite.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would join, and change nothing.")
    ] = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let further systems join a campaign that compares answers; the votes so far stay.

    Each system needs a new name. Answers that are the same as known ones tie with them, without a vote.

    Examples:

      duelpool join mine.db new-version.jsonl

      duelpool join mine.db results.csv --fields system=model+size --dry-run
    """
    shown = read_passages(texts) if texts else None
    if shown is not None:
        tell_notices(str(texts), shown.notices)
    with opened(store, campaign_name, writable=not dry_run) as campaign, working("Reading answers"):
        known = campaign.read(holdings.topics)
        read = read_answers(
            expand_paths(answers),
            parse_fields(fields),
            texts=None if shown is None else shown.by_id,
            topics=known,
        )
        for file, notices in read.notices:
            tell_notices(file, notices)
        joined = let_join(campaign, read, dry_run=dry_run)
        if not dry_run:
            campaign.write(audit_entry(campaign, "join", systems=sorted(joined.systems)))
    if joined.unknown:
        tell(
            f"Questions that the campaign doesn't have, left out: {len(joined.unknown):,} (first: {joined.unknown[0]})."
        )
    if as_json:
        print_json(
            {
                "systems": joined.systems,
                "identical": joined.identical,
                "unknown_questions": list(joined.unknown),
                "joined": not dry_run,
            }
        )
        return
    verb = "would join" if dry_run else "joined"
    for system, count in joined.systems.items():
        typer.echo(f"'{system}' {verb} with {count:,} answers.")
    typer.echo(f"The same as known answers: {joined.identical:,}.")
