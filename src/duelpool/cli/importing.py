"""`duelpool import`: judgments from files into a campaign."""

import re
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from duelpool.campaign.imports.importer import Phases, import_file
from duelpool.cli.opening import CampaignOption, JsonOption, StoreArgument, audit_entry, opened, working
from duelpool.cli.output import print_json, tell_notices
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import PreferenceForm


def import_judgments(
    store: StoreArgument,
    file: Annotated[str, typer.Argument(help="Preferences in any form, or JSON lines; - is standard input.")],
    rows: Annotated[str | None, typer.Option(help="Only these rows, such as 1-9713,10698-11681.")] = None,
    phases: Annotated[
        str, typer.Option(help="as-given, or blocks: consecutive rows of one topic are a phase.")
    ] = "as-given",
    form: Annotated[
        str | None,
        typer.Option(help=f"The file's form, where it can't be told: {', '.join(get_args(PreferenceForm))}."),
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out unknown topics and items, and count them.")
    ] = False,
    assessor: Annotated[str, typer.Option(help="The pseudonym of judgments that name none.")] = "",
    again: Annotated[
        bool, typer.Option("--again", help="Count rows that were taken in before once more.")
    ] = False,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take judgments from a file into a campaign's log: all of them, or none.

    Examples:

      duelpool import campaign.db preferences.txt

      duelpool import campaign.db judgments.txt --rows 1-9713,10698-11681 --phases blocks

      duelpool import campaign.db other-campaign.jsonl --skip-unknown
    """
    if phases not in get_args(Phases):
        raise UnknownName("way of telling phases", phases, get_args(Phases))
    if form is not None and form not in get_args(PreferenceForm):
        raise UnknownName("preference form", form, get_args(PreferenceForm))
    with opened(store, campaign, writable=True) as found, working("Taking judgments in"):
        taken = import_file(
            found,
            file,
            form=cast("PreferenceForm | None", form),
            rows=ranges(rows) if rows else (),
            phases=cast("Phases", phases),
            skip_unknown=skip_unknown,
            assessor=assessor,
            again=again,
        )
        # After the fact: a large file goes in pieces, each a transaction of its own.
        found.write(audit_entry(found, "import", file=Path(file).name, judgments=taken.judgments))
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
    typer.echo(f"Took in {taken.judgments:,} judgments of {taken.topics:,} topics{closed}.")


def ranges(text: str) -> list[tuple[int, int]]:
    """Return the ranges of rows that a text such as `1-100,201` names."""
    found: list[tuple[int, int]] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match:
            raise BadParameter(f"'{part.strip()}' is no range of rows.", remedy="Write 1-100,201-300.")
        found.append((int(match[1]), int(match[2] or match[1])))
    return found
