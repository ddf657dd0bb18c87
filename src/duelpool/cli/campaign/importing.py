"""`duelpool import`: judgments from a file into a campaign."""

import re
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from duelpool.campaign.imports.importer import Phases, import_file
from duelpool.campaign.views import summaries
from duelpool.cli.opening import audit_entry, opened, working
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, tell_notices
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import PreferenceForm


def import_judgments(
    store: StoreArgument,
    file: Annotated[
        str,
        typer.Argument(
            help="Preferences, a table (CSV, TSV), JSON lines, or votes of systems; - is standard input."
        ),
    ],
    rows: Annotated[
        str | None,
        typer.Option(help="Only these rows, in this order, such as 1-9713,10698-11681,9714-10697."),
    ] = None,
    phases: Annotated[
        str,
        typer.Option(
            help="as-given, or blocks: the order of the rows tells the phases. A topic's consecutive rows are a "
            "phase, the finals of several topics may be interleaved, and each range of --rows begins a phase."
        ),
    ] = "as-given",
    skip_finals: Annotated[
        int,
        typer.Option(
            min=0,
            help="With --phases blocks: leave out each topic's first N finals; later ones replace them.",
        ),
    ] = 0,
    form: Annotated[
        str | None,
        typer.Option(
            help=f"The file's form, if it can't be detected: {', '.join(get_args(PreferenceForm))}."
        ),
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Skip unknown topics and items, and report how many.")
    ] = False,
    assessor: Annotated[str, typer.Option(help="The pseudonym of judgments that name none.")] = "",
    by_model: Annotated[
        bool,
        typer.Option("--by-model", help="The judges are models, where the file doesn't say who they are."),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Import rows again that were imported before.")
    ] = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import judgments from a file into a campaign's log: all of them, or none.

    A table has a header that names its columns: topic, left and right (or a and b), outcome or winner, assessor.
    Where systems compete, the file may have votes: model_a, model_b (or left, right), winner, question_id, judge
    and judge_type (human or model).
    A phase that closes with fewer judgments than its rule needs is refused, with the line, the topic and both numbers.

    Examples:

      duelpool import campaign.db preferences.txt

      duelpool import campaign.db judgments.csv

      duelpool import systems.db votes.csv

      duelpool import systems.db gpt-4.csv --assessor gpt-4 --by-model

      duelpool import campaign.db judgments.txt --rows 1-9713,10698-11681 --phases blocks

      duelpool import campaign.db judgments.txt --rows 1-9713,9714-10697 --phases blocks --skip-finals 1

      duelpool import campaign.db other-campaign.jsonl --skip-unknown
    """
    if phases not in get_args(Phases):
        raise UnknownName("rule for phases", phases, get_args(Phases))
    if form is not None and form not in get_args(PreferenceForm):
        raise UnknownName("preference form", form, get_args(PreferenceForm))
    with opened(store, campaign_name, writable=True) as campaign, working("Importing judgments"):
        taken = import_file(
            campaign,
            file,
            form=cast("PreferenceForm | None", form),
            rows=ranges(rows) if rows else (),
            phases=cast("Phases", phases),
            skip_finals=skip_finals,
            skip_unknown=skip_unknown,
            assessor=assessor,
            by_model=by_model,
            again=again,
        )
        # A large file is imported in several transactions, so the entry follows them.
        campaign.write(audit_entry(campaign, "import", file=Path(file).name, judgments=taken.judgments))
        summaries.keep_up(campaign)  # of a long log, or whoever looks first would wait
    tell_notices(file, taken.notices)
    if as_json:
        print_json(
            {
                "judgments": taken.judgments,
                "other_lines": taken.others,
                "topics": taken.topics,
                "phases_closed": taken.closings,
                "notices": {notice.what: notice.count for notice in taken.notices},
            }
        )
        return
    closed = f", {taken.closings:,} phases closed" if taken.closings else ""
    typer.echo(f"Imported {taken.judgments:,} judgments of {taken.topics:,} topics{closed}.")


def ranges(text: str) -> list[tuple[int, int]]:
    """Return the ranges of rows that a text such as `1-100,201` names."""
    rows: list[tuple[int, int]] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match:
            raise BadParameter(f"'{part.strip()}' is no range of rows.", remedy="Write 1-100,201-300.")
        rows.append((int(match[1]), int(match[2] or match[1])))
    return rows
