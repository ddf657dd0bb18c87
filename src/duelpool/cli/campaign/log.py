"""`duelpool log`: every line of a campaign's log, or the activity log of who did what."""

import json
from typing import Annotated

import typer

from duelpool.access import audit_log
from duelpool.campaign.exports.files import visit_log
from duelpool.cli.opening import opened
from duelpool.cli.options import CampaignOption, StoreArgument
from duelpool.cli.output import quiet_broken_pipe
from duelpool.errors import BadParameter
from duelpool.store import open_store

LAST_ACTIVITIES = 1000  # entries of the activity log, unless --last says otherwise


def log(
    store: StoreArgument,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; may be repeated.")] = None,
    assessor: Annotated[str | None, typer.Option(help="Only judgments of this assessor.")] = None,
    event: Annotated[str | None, typer.Option(help="Only one kind of line, such as retraction.")] = None,
    last: Annotated[int | None, typer.Option(min=1, help="Only the last N lines of each topic.")] = None,
    activity: Annotated[
        bool,
        typer.Option(
            "--activity", "--deeds", help="The activity log instead: who signed in, excluded, exported, ..."
        ),
    ] = False,
    campaign_name: CampaignOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print the log: every judgment, retraction, release, closed phase and rewind, topic by topic.

    Examples:

      duelpool log campaign.db --topic bread --last 20

      duelpool log campaign.db --event retraction --json

      duelpool log campaign.db --activity --last 20
    """
    if activity:
        _print_activity(store, campaign_name, last or LAST_ACTIVITIES, as_json)
        return

    def print_line(line: dict[str, object]) -> None:
        if (event and line["event"] != event) or (assessor and line.get("assessor") != assessor):
            return
        typer.echo(json.dumps(line, ensure_ascii=False) if as_json else line_text(line))

    with quiet_broken_pipe(), opened(store, campaign_name) as campaign:
        if topic and (unknown := sorted(set(topic) - set(campaign.live.heads()))):
            raise BadParameter(f"The campaign has no topic '{unknown[0]}'.", remedy="See `duelpool status`.")
        visit_log(campaign, print_line, topics=topic, last=last)


def _print_activity(store: str, campaign: str | None, last: int, as_json: bool) -> None:
    """Print the activity log of a campaign or of the whole store, the oldest entry first."""
    with quiet_broken_pipe(), open_store(store, writable=False) as opened_store:
        for entry in reversed(audit_log.newest(opened_store, campaign, limit=last)):
            line = {"time": entry.time, "who": entry.who, "deed": entry.action, "about": entry.about}
            typer.echo(json.dumps(line, ensure_ascii=False) if as_json else "  ".join(line.values()).rstrip())


def line_text(line: dict[str, object]) -> str:
    """Return a line of the log as text."""
    parts = [f"{line['topic']} {line['seq']}", str(line["time"]), str(line["event"])]
    if line["event"] == "judgment":
        parts.append(f"{line['left']} | {line.get('right', '')}: {line['outcome']}")
    for name in ("phase", "assessor", "test_pair", "refers_to", "survivors", "reason", "note"):
        if name in line:
            value = line[name]
            shown = " ".join(map(str, value)) if isinstance(value, list) else value
            parts.append(f"{name.replace('_', ' ')}: {shown}")
    return "  ".join(parts)
