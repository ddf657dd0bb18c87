"""`duelpool status`: how a campaign stands."""

from typing import Annotated

import typer
from rich.table import Table

from duelpool.campaign.status import Status
from duelpool.campaign.status import status as look
from duelpool.cli.frame import print_json, print_table
from duelpool.cli.opening import CampaignOption, JsonOption, StoreArgument, opened
from duelpool.cli.workers import progress_bar


def status(
    store: StoreArgument,
    people: Annotated[bool, typer.Option("--assessors", help="A line for each assessor, too.")] = False,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how a campaign stands: topics, questions out and left, assessors, money, and what blocks.

    Examples:

      duelpool status campaign.db

      duelpool status campaign.db --assessors

      duelpool status campaign.db --json
    """
    with opened(store, campaign) as found, progress_bar("Reading", len(found.live.heads())) as ended:
        now = look(found, ended)
    if as_json:
        print_json(now.as_json())
    else:
        show(now, people=people)


def show(now: Status, *, people: bool) -> None:
    """Print a status for a person."""
    print_table(_facts(now))
    topics = Table(title="Topics", title_justify="left")
    topics.add_column("topic", overflow="fold")
    topics.add_column("phase", overflow="fold")
    for name in ("items", "judged", "open", "out"):
        topics.add_column(name, justify="right")
    topics.add_column("best so far", overflow="fold")
    waiting = any(each.waits for each in now.topics)  # else the room is for long names
    if waiting:
        topics.add_column("waits for", overflow="fold")
    for each in now.topics:
        best = ", ".join(each.best[:3]) + (f" and {len(each.best) - 3} more" if len(each.best) > 3 else "")
        sure = "" if each.confidence is None or not each.best else f" ({each.confidence:.2f})"
        topics.add_row(
            each.topic,
            each.phase,
            str(each.items),
            str(each.judgments),
            str(each.open),
            str(each.leased + each.held),
            best + sure,
            *((each.waits,) if waiting else ()),
        )
    print_table(topics)
    if people:
        print_table(_people(now))
    for block in now.blocks:
        typer.echo(f"Blocked: {block}")


def _facts(now: Status) -> Table:
    facts = Table(title=f"Campaign {now.campaign}", show_header=False, title_justify="left")
    facts.add_column("what")
    facts.add_column("figure", justify="right")
    facts.add_row("state", now.state)
    facts.add_row("strategy", now.strategy)
    facts.add_row("topics done", f"{now.total('done')} of {len(now.topics)}")
    facts.add_row("judgments that count", f"{now.total('judgments'):,} of about {now.total('expected'):,}")
    facts.add_row("open, out, held", ", ".join(f"{now.total(name):,}" for name in ("open", "leased", "held")))
    if now.total("parked"):
        facts.add_row("parked", f"{now.total('parked'):,}")
    gone = sum(person.state == "excluded" for person in now.assessors)
    facts.add_row("assessors", f"{len(now.assessors)}, {gone} excluded" if gone else str(len(now.assessors)))
    spent = now.money
    if spent.spent or spent.committed or spent.budget is not None:
        facts.add_section()
        rows = [("rewards", spent.rewards), ("fees", spent.fees), ("other", spent.others)]
        rows += [("spent", spent.spent), ("promised to people at work", spent.committed)]
        for name, amount in rows:
            if amount or name == "spent":
                facts.add_row(name, _amount(amount, spent.currency))
        if spent.left is not None:
            facts.add_row("left of the budget", _amount(spent.left, spent.currency))
        if spent.per_usable_judgment is not None:
            facts.add_row("per judgment that counts", _amount(spent.per_usable_judgment, spent.currency))
        if spent.pay_per_hour is not None:
            facts.add_row("pay per hour", _amount(spent.pay_per_hour, spent.currency))
    return facts


def _people(now: Status) -> Table:
    table = Table(title="Assessors", title_justify="left")
    table.add_column("assessor", overflow="fold")
    table.add_column("state")
    for name in ("judged", "count", "tests", "left", "seconds", "pay"):
        table.add_column(name, justify="right")
    for each in now.assessors:
        table.add_row(
            each.assessor,
            each.state,
            str(each.judgments),
            str(each.usable),
            f"{each.tests_passed}/{each.tests_seen}" if each.tests_seen else "",
            "" if each.left is None else f"{each.left:.2f}",
            "" if each.seconds is None else f"{each.seconds:.1f}",
            f"{each.pay / 100:,.2f}" if each.pay else "",
        )
    return table


def _amount(minor: float, currency: str) -> str:
    return f"{minor / 100:,.2f} {currency}"
