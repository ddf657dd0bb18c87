"""`duelpool status`: the progress of a campaign."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import takewhile
from typing import Annotated, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from duelpool.agreements.vote_values import VoteValues, vote_values
from duelpool.campaign import Campaign
from duelpool.campaign.log.systems import answers
from duelpool.campaign.runners.two_sources import decisions
from duelpool.campaign.views.certainty import NOT_FROM_CHANCE, in_short, on_what
from duelpool.campaign.views.status import CampaignStatus, TopicStatus
from duelpool.campaign.views.status import status as look
from duelpool.campaign.views.summaries import Turns, work_out
from duelpool.cli.opening import opened
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, print_table, progress_bar
from duelpool.deciders import Spend, read_goal
from duelpool.frames import counted
from duelpool.judges.live import is_simulated
from duelpool.labels import phase_said

LISTED_WAITING = 10
"""Topics that aren't begun up to which they are listed."""
RESULTS_AT_ONCE = 200
"""Results that take long and are worked out by one call that states them, at most; they are stored."""
RESULTS_BESIDE = 15
"""The same for a call that shows the progress alone: it takes a few seconds, however many topics there are."""


def status(
    store: StoreArgument,
    people: Annotated[bool, typer.Option("--assessors", help="Show a line for each assessor, too.")] = False,
    certainty: Annotated[
        bool, typer.Option("--certainty", help="Say for each topic how sure its best items are.")
    ] = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the progress of a campaign: topics, questions, assessors, money, and what is blocked.

    Examples:

      duelpool status campaign.db

      duelpool status campaign.db --assessors

      duelpool status campaign.db --certainty

      duelpool status campaign.db --json
    """
    with (
        opened(store, campaign_name) as campaign,
        progress_bar("Reading", len(campaign.live.heads())) as advance,
    ):
        turns = Turns(RESULTS_AT_ONCE if certainty or as_json else min(RESULTS_BESIDE, RESULTS_AT_ONCE))
        work_out(campaign, turns)
        now = look(campaign, advance, turns)
        if not as_json and read_goal(campaign.settings.goal).of_systems:
            now = _with_systems(now, campaign)
        values = vote_values(campaign) if people else VoteValues()
        models = decisions(campaign)
    if as_json:
        more: dict[str, Any] = {"models": [asdict(each) for each in models]} if models else {}
        more |= {"vote_values": values.as_json()} if people else {}
        print_json({**now.as_json(), **more})
    else:
        show(now, people=people, certainty=certainty, values=values)
        for each in models:
            typer.echo(each.said)


def _with_systems(now: CampaignStatus, campaign: Campaign) -> CampaignStatus:
    """Return the status with the systems that gave the best answers in place of the answers' ids."""
    best = [each.topic for each in now.topic_statuses if each.best]
    given = campaign.read(lambda tx: {topic: answers(tx, topic) for topic in best})
    views = []
    for view in now.topics:
        own = sorted(given.get(view.status.topic, {}).items())
        names = tuple(name for item in view.status.best for name, gave in own if gave == item)
        views.append(replace(view, status=replace(view.status, best=names or view.status.best)))
    return replace(now, topics=tuple(views))


def show(
    now: CampaignStatus,
    *,
    people: bool = False,
    certainty: bool = False,
    values: VoteValues = VoteValues(),  # noqa: B008 (frozen)
) -> None:
    """Print a status as tables; `values` says what votes of the assessors are worth."""
    print_table(_topics(now))
    for note in _notes(now, certainty):
        typer.echo(note)
    for reason, waiting in _reasons(now).items():
        typer.echo(f"Waiting, {reason}: {_first(waiting, 10)}")
    if people:
        print_table(_people(now, values))
        if values.said:
            typer.echo(f"worth: 1 for an average vote, 0 for a guess. {values.said}")
    print_table(_facts(now))  # below the long tables, where a terminal ends
    for block in now.blocks:
        typer.echo(f"Blocked: {block}")


def _is_begun(topic: TopicStatus) -> bool:
    return bool(topic.done or topic.judgments or topic.leased or topic.held)


def _waiting(now: CampaignStatus) -> int:
    """Return how many topics aren't begun, where they are too many to be listed."""
    waiting = sum(not _is_begun(each) for each in now.topic_statuses)
    return waiting if waiting > LISTED_WAITING else 0


def _topics(now: CampaignStatus) -> Table:
    """Return a table of the topics that fits a narrow window even if items have long names."""
    topics = [each for each in now.topic_statuses if _is_begun(each)] if _waiting(now) else now.topic_statuses
    columns = [
        ("topic", *(each.topic for each in topics)),
        ("phase", *(phase_said(each.phase) if _is_begun(each) else "not begun" for each in topics)),
    ]
    for name, figures in (
        ("items", (each.items for each in topics)),
        ("judged", (each.judgments for each in topics)),
        ("open", (each.open for each in topics)),
        ("asked", (each.leased + each.held for each in topics)),
    ):
        columns.append((name, *map(str, figures)))
    if now.spending is not None:
        spend = now.spending.spend
        columns.append(("still open", *(_still_open(each, spend) for each in topics)))
    frame = 3 * (len(columns) + 1) + 1
    room = Console().width - frame - sum(max(map(cell_len, column)) for column in columns)
    best = [_best(each, each.best) for each in topics]
    caption = None
    if max(map(cell_len, best), default=0) > room:
        shared = shared_beginning([name for each in topics for name in each.best])
        caption = f"… is {escape(shared)}" if shared else None
        short = "…" if shared else ""
        best = [_best(each, [short + name[len(shared) :] for name in each.best], room) for each in topics]
    table = Table(title="Topics", title_justify="left", caption=caption, caption_justify="left")
    for number, (name, *_) in enumerate(columns):
        table.add_column(name, overflow="fold", justify="left" if number < 2 else "right")
    table.add_column("best so far", overflow="fold")
    for *cells, names in zip(*(column[1:] for column in columns), best, strict=True):
        table.add_row(*map(escape, cells), escape(names))
    return table


def _still_open(topic: TopicStatus, spend: Spend) -> str:
    """Return what a topic is still worth: a chance for its best item, a standard deviation for scores of runs."""
    return "settled" if topic.settled else "" if topic.worth is None else spend.in_short(topic.worth)


def _notes(now: CampaignStatus, each_topic: bool) -> Iterator[str]:
    """Say what the brackets beside the best items mean, or for each topic how sure its best items are."""
    if waiting := _waiting(now):
        yield f"{counted(waiting, 'topic')} without judgments: not begun, and not listed."
    said = [each for each in now.topic_statuses if each.statement]
    if each_topic:
        yield from (f"{each.topic}, {_first(each.best, 3)}: {each.statement}" for each in said)
    else:
        if any(each.confidence is not None for each in said):
            yield "In brackets: the chance that a best item is among those named."
        if any(each.certainty is not None and each.certainty.by_chance for each in said):
            yield f"(chance): {NOT_FROM_CHANCE}"
    yield from filter(None, dict.fromkeys(on_what(each.certainty) for each in said))
    if now.spending is not None:
        yield f"Still open: a topic is settled when {now.spending.spend.settled_at}."
    if left := now.total("outdated"):
        yield (
            f"The best items of {left:,} topics aren't worked out yet. With --certainty, status works out "
            f"{RESULTS_AT_ONCE} of them; `duelpool export --as levels` all, and a server does so in the background."
        )


def _best(topic: TopicStatus, names: Sequence[str], room: int | None = None) -> str:
    """Return a topic's best items: three of them, or as many as fit."""
    if not names:
        return ""
    sure = f" ({in_short(topic.certainty)})" if topic.statement else ""
    some = [_first(names, count) + sure for count in (3, 2, 1)]
    return next((each for each in some if room is None or cell_len(each) <= room), some[-1])


def _first(names: Sequence[str], count: int) -> str:
    more = len(names) - count
    return ", ".join(names[:count]) + (f" and {more} more" if more > 0 else "")


def shared_beginning(names: Sequence[str]) -> str:
    """Return the common prefix of names, up to a separator, if it is long enough to leave out."""
    if len(set(names)) < 2:
        return ""
    both = zip(min(names), max(names), strict=False)  # what these two share, all do
    shared = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], both))
    end = max((place + 1 for place, sign in enumerate(shared) if not sign.isalnum()), default=0)
    return shared[:end] if end > 5 else ""


def _reasons(now: CampaignStatus) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for each in now.topic_statuses:
        if each.waits:
            reasons.setdefault(each.waits, []).append(each.topic)
    return reasons


def _facts(now: CampaignStatus) -> Table:
    facts = Table(title=f"Campaign {now.campaign}", show_header=False, title_justify="left")
    facts.add_column("what")
    facts.add_column("figure", justify="right")
    facts.add_row("state", now.state)
    facts.add_row("strategy", now.strategy)
    facts.add_row("topics done", f"{now.total('done')} of {len(now.topic_statuses)}")
    spending = now.spending
    limit = None if spending is None else spending.budget
    wanted = f"about {now.total('expected'):,}" if limit is None else f"at most {limit:,}"
    facts.add_row("judgments that count", f"{now.total('judgments'):,} of {wanted}")
    if spending is not None:
        facts.add_row("spending", str(spending))
    facts.add_row("questions open, being answered", f"{now.total('open'):,}, {now.total('leased'):,}")
    if now.total("held"):
        facts.add_row("answers in unfinished assignments", f"{now.total('held'):,}")
    if now.total("parked"):
        facts.add_row("parked", f"{now.total('parked'):,}")
    gone = sum(person.state == "excluded" for person in now.assessors)
    made_up = sum(is_simulated(person.assessor) for person in now.assessors)
    parts = [str(len(now.assessors)), *([f"{made_up} simulated"] if made_up else [])]
    facts.add_row("assessors", ", ".join([*parts, *([f"{gone} excluded"] if gone else [])]))
    spent = now.money
    if spent.spent or spent.committed or spent.budget is not None:
        facts.add_section()
        rows = [("rewards", spent.rewards), ("fees", spent.fees), ("other", spent.others)]
        rows += [("spent", spent.spent), ("committed to open assignments", spent.committed)]
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


def _people(now: CampaignStatus, values: VoteValues) -> Table:
    known = values.by_name
    table = Table(title="Assessors", title_justify="left")
    table.add_column("assessor", overflow="fold")
    table.add_column("state")
    for name in ("judged", "count", "worth", "tests", "left", "seconds", "pay"):
        table.add_column(name, justify="right")
    for each in now.assessors:
        table.add_row(
            each.assessor,
            each.state,
            str(each.judgments),
            str(each.usable),
            f"{known[each.assessor].worth:.1f}" if each.assessor in known else "",
            f"{each.tests_passed}/{each.tests_seen}" if each.tests_seen else "",
            "" if each.left is None else f"{each.left:.2f}",
            "" if each.seconds is None else f"{each.seconds:.1f}",
            f"{each.pay / 100:,.2f}" if each.pay else "",
        )
    return table


def _amount(minor: float, currency: str) -> str:
    return f"{minor / 100:,.2f} {currency}"
