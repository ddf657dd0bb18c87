"""`duelpool export`: a campaign as files."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from duelpool.campaign import Campaign
from duelpool.campaign.exports import forms
from duelpool.campaign.exports.bundle import write_bundle
from duelpool.campaign.exports.files import (
    Progress,
    Written,
    write_csv,
    write_levels,
    write_log,
    write_prefs,
    write_qrels,
)
from duelpool.campaign.views import summaries
from duelpool.campaign.views.reading import Values
from duelpool.cli.opening import opened
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, progress_bar, quiet_broken_pipe, tell, tell_notices
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import read_qrels

OF_SYSTEMS = ("votes", "pairs")
"""The forms for campaigns in which systems compete."""

FORMS = (*forms.FORMS, *OF_SYSTEMS, "bundle")


def export(
    store: StoreArgument,
    form: Annotated[str, typer.Option("--as", help=f"What to write: {', '.join(FORMS)}.")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="The file (.gz packs it); a folder or .zip for a bundle. Votes and pairs are JSON lines, or what the "
            "ending says: .csv, .tsv, .parquet.",
        ),
    ] = "-",
    best: Annotated[bool, typer.Option("--best", help="qrels: the best items only.")] = False,
    top: Annotated[
        int | None, typer.Option(min=1, help="qrels: as many first levels as it takes to have N items.")
    ] = None,
    levels: Annotated[bool, typer.Option("--levels", help="qrels: a value for every level.")] = False,
    above: Annotated[
        str | None, typer.Option(help="qrels: rank the result above these grades (a file, or pool).")
    ] = None,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a campaign's preferences, qrels, levels, log or spreadsheet, or a bundle of all files for a release.

    Where systems compete: their votes as `model_a, model_b, winner`, or pairs `prompt, chosen, rejected` to train with.

    Examples:

      duelpool export campaign.db --as qrels -o best.qrels

      duelpool export campaign.db --as qrels --top 5 --above graded.qrels -o combined.qrels

      duelpool export campaign.db --as prefs -o preferences.txt

      duelpool export campaign.db --as bundle -o release.zip

      duelpool export campaign.db --as votes -o votes.parquet
    """
    if form not in FORMS:
        raise UnknownName("form of export", form, FORMS)
    if form == "bundle" and output == "-":
        raise BadParameter("A bundle is a folder or a .zip file.", remedy="Name it with -o.")
    if as_json and output == "-":
        raise BadParameter("The export and --json would both go to standard output.", remedy="Give -o FILE.")
    options = _qrels_options(best, top, levels, above)
    if options and form not in ("qrels", "bundle"):
        raise BadParameter("--best, --top, --levels and --above are for qrels.", remedy="Leave them out.")
    with (
        quiet_broken_pipe(),
        opened(store, campaign_name) as campaign,
        progress_bar("Exporting", len(campaign.live.heads())) as advance,
    ):
        written = write(campaign, form, output, advance, options)
    tell_notices(output, written.notices)
    if as_json:
        print_json(
            {
                "files": list(written.files),
                "rows": written.rows,
                "notices": {notice.what: notice.count for notice in written.notices},
            }
        )
    elif output != "-":
        tell(f"Wrote {written.rows:,} rows to {', '.join(written.files)}.")


def write(
    campaign: Campaign, form: str, output: str, progress: Progress, options: Mapping[str, Any]
) -> Written:
    """Write a campaign in one of the forms."""
    if form in forms.OF_RESULTS:
        summaries.work_out(campaign)
    if form in OF_SYSTEMS:
        return _write_systems(campaign, form, output)
    if form == "bundle":
        return write_bundle(campaign, output, progress=progress, **options)
    if form == "qrels":
        return write_qrels(campaign, output, progress=progress, **options)
    return {"prefs": write_prefs, "levels": write_levels, "jsonl": write_log, "csv": write_csv}[form](
        campaign, output, progress
    )


def _write_systems(campaign: Campaign, form: str, output: str) -> Written:
    """Write votes between systems, or the pairs of answers of which one won."""
    from duelpool.campaign.views.system_votes import votes_of
    from duelpool.leaderboard.systems import arena_rows, training_rows, write_table

    votes = votes_of(campaign, texts=True).votes
    rows: Sequence[Mapping[str, Any]] = arena_rows(votes) if form == "votes" else training_rows(votes)
    if not rows:
        what = "vote" if form == "votes" else "pair of answers with texts of which one won more votes"
        raise BadParameter(f"The campaign has no {what} yet.", remedy="Judge first.")
    write_table(output, rows)
    return Written((output,), len(rows))


def _qrels_options(best: bool, top: int | None, levels: bool, above: str | None) -> dict[str, Any]:
    wanted_by: dict[Values, bool] = {"best": best, "top": top is not None, "levels": levels}
    ways = [way for way, wanted in wanted_by.items() if wanted]
    if len(ways) > 1:
        raise BadParameter("--best, --top and --levels exclude each other.", remedy="Give one of them.")
    options: dict[str, Any] = {"values": ways[0]} if ways else {}
    if top is not None:
        options["k"] = top
    if above is not None:
        grades: Literal["pool"] | Mapping[str, Mapping[str, float]] = (
            "pool" if above == "pool" else read_qrels(above).grades()
        )
        options["above"] = grades
    return options
