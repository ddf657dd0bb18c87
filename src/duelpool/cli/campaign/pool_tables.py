"""What `duelpool pool` prints: figures of the pools, what is noteworthy about them, and what other strategies cost."""

from collections.abc import Iterable, Mapping, Sequence

import typer
from rich.console import Console
from rich.table import Table

from duelpool.campaign.settings import Settings
from duelpool.cli.output import print_table
from duelpool.pooling import Pools
from duelpool.setup import Compared, Forecast, Observed, Recommendation, pay_of, recommend
from duelpool.setup.checks import PoolCheck
from duelpool.setup.comparisons import EVERY_PAIR, THIN
from duelpool.simulation.cost import SECONDS_EACH, Estimate, hours

_WHY_NOT_ALL = (
    " allpairs asks about each pair once, also where repeated votes on the best few would tell more."
)
_NAMED = 12
"""Runs and groups that are listed; further ones are counted."""


def figures(pools: Pools, expected: Estimate) -> dict[str, object]:
    """Return the figures of pools as JSON values."""
    largest = pools.largest
    return {
        "topics": len(pools.pools),
        "candidates": pools.candidates,
        "largest": len(largest) if largest else 0,
        "largest_topic": largest.topic if largest else None,
        "sizes": pools.sizes,
        "twins": pools.merged,
        "near_twins": {
            topic: [list(group) for group in groups] for topic, groups in pools.near_duplicates.items()
        },
        "without_text": len(pools.without_text),
        "left_out": {
            "ungraded": pools.ungraded,
            "not_relevant": pools.not_relevant,
            "thinned": pools.thinned,
        },
        "topics_without_candidates": list(pools.empty_topics),
        "topics_without_grades": list(pools.ungraded_topics),
        "topics_without_runs": list(pools.unpooled_topics),
        "runs": {each.name: {"items": each.items, "unique": each.unique} for each in pools.runs},
        "groups": {each.name: {"items": each.items, "unique": each.unique} for each in pools.groups},
        "estimate": {
            "strategy": expected.strategy,
            "judgments": expected.judgments,
            "assignments": expected.assignments,
            "cost": expected.cost,
            "found": expected.found,
        },
    }


def show(pools: Pools, expected: Estimate, settings: Settings) -> None:
    """Print the figures of pools, and the contribution of each run and group."""
    sizes = sorted(pools.sizes.values())
    largest = pools.largest
    facts = Table(title="Pools", show_header=False, title_justify="left")
    facts.add_column("what")
    facts.add_column("figure", justify="right")
    facts.add_row("topics", f"{len(pools.pools):,}")
    facts.add_row("candidates", f"{pools.candidates:,}")
    facts.add_row("smallest, median, largest", f"{sizes[0]}, {sizes[len(sizes) // 2]}, {sizes[-1]}")
    facts.add_row("largest topic", largest.topic if largest else "")
    facts.add_row("duplicates merged", f"{pools.merged:,}")
    for name, count in (
        ("near-duplicates to review", pools.near_duplicate_items),
        ("without text", len(pools.without_text)),
        ("items left out: no grade", pools.ungraded),
        ("items left out: not relevant", pools.not_relevant),
        ("items left out: thinned", pools.thinned),
    ):
        if count:
            facts.add_row(name, f"{count:,}")
    facts.add_section()
    facts.add_row(f"judgments, with {expected.strategy}", f"about {expected.judgments:,}")
    add_effort(facts, expected, settings)
    if expected.found is not None:
        facts.add_row("best items found, simulated", f"{expected.found:.0%}")
    print_table(facts)
    for title, contributions in (("Runs", pools.runs), ("Groups", pools.groups)):
        if contributions:
            table = Table(title=title, title_justify="left")
            table.add_column(title.lower()[:-1], overflow="fold")
            table.add_column("candidates", justify="right")
            table.add_column("from it alone", justify="right")
            ordered = sorted(contributions, key=lambda each: (-each.unique, -each.items, each.name))
            named = ordered if len(ordered) <= _NAMED else ordered[: _NAMED - 2]
            for each in named:
                table.add_row(each.name, f"{each.items:,}", f"{each.unique:,}")
            if left := len(ordered) - len(named):
                table.add_row(f"and {left:,} more: --json lists all", "", "")
            print_table(table)


def add_effort(facts: Table, expected: Estimate, settings: Settings) -> None:
    """Add what the judgments take: a crowd's assignments and cost, or the hours of your own people."""
    if settings.judges == "crowd":
        facts.add_row(f"assignments of {settings.targets}", f"{expected.assignments:,}")
        facts.add_row("cost", f"{expected.cost / 100:,.2f} {settings.currency}")
        return
    facts.add_row(f"hours, at {SECONDS_EACH} seconds each", hours(expected.judgments))
    facts.add_row("cost, if a paid crowd judged", f"{expected.cost / 100:,.2f} {settings.currency}")


def show_comparison(compared: Compared, seen: Observed | None, settings: Settings) -> None:
    """Print the forecast of every strategy, the pilot's figures, and the recommendation."""
    table = Table(title="Strategies, simulated on all topics' pools", title_justify="left")
    table.add_column("strategy", overflow="fold")
    for column in ("judgments", "rounds", "cost", "found"):
        table.add_column(column, justify="right", no_wrap=True)
    for each in sorted(compared.forecasts, key=lambda each: (-each.found, each.cost)):
        table.add_row(
            each.strategy,
            f"{each.judgments:,}",
            f"{each.rounds:.0f}",
            f"{each.cost / 100:,.2f}",
            f"{each.found:.0%} ±{each.error:.0%}",
        )
    print_table(table)
    if seen is not None:
        typer.echo(pilot_summary(seen, settings))
    typer.echo(compared.judges.note)
    if compared.recommendation is not None:
        typer.echo(f"Recommended: {compared.recommendation.reason}")


def pilot_summary(seen: Observed, settings: Settings) -> str:
    """Return the figures of a pilot in a sentence."""
    parts = [f"{seen.judgments:,} judgments of {seen.topics} topics"]
    if seen.agreement is not None:
        parts.append(f"two votes on a pair agree {seen.agreement:.0%}")
    if seen.ties:
        parts.append(f"{seen.ties:.0%} ties")
    if seen.answered:
        parts.append(seen.test_pairs)
    if seen.usable < 1:
        parts.append(f"{seen.usable:.0%} of the judgments usable")
    if seen.seconds is not None:
        hourly = seen.hourly(pay_of(settings))
        parts.append(f"{seen.seconds:.0f} seconds each, {(hourly or 0) / 100:,.2f} an hour")
    return f"The pilot '{seen.campaign}': {'; '.join(parts)}."


def show_checks(checks: Iterable[PoolCheck]) -> None:
    """Print what is noteworthy about the pools, a line each."""
    for each in checks:
        Console(emoji=False).print(each.sentence, markup=False, highlight=False)


def _finds_less(estimates: Sequence[Estimate], forecasts: Mapping[str, Forecast]) -> bool:
    """Return whether every pair once finds the best item less often than the chosen strategy, which is the first."""
    shares = {
        each.strategy: forecasts[each.strategy].found if each.strategy in forecasts else each.found
        for each in estimates
    }
    own, every = shares[estimates[0].strategy], shares.get(EVERY_PAIR)
    return own is not None and every is not None and every < own


def show_alternatives(
    estimates: Sequence[Estimate],
    forecasts: Sequence[Forecast],
    settings: Settings,
    recommended: Recommendation | None = None,
    fewer: Estimate | None = None,
) -> None:
    """Print what other strategies, or `fewer` items, would take and find; the chosen strategy is the first.

    How often they find the best item is their simulation's, where there was one; else it is known for pools like these.
    """
    if len(estimates) < 2:
        return
    found = {each.strategy: each for each in forecasts}
    crowd = settings.judges == "crowd"
    table = Table(title="Alternatives", title_justify="left")
    table.add_column("strategy", overflow="fold")
    told = bool(found) or any(each.found is not None for each in estimates)
    for column in ("judgments", "cost" if crowd else "hours", *(("best found",) if told else ())):
        table.add_column(column, justify="right", no_wrap=True)
    for each in estimates:
        seen = found.get(each.strategy)
        share = f"{seen.found:.0%} ±{seen.error:.0%}" if seen else ""
        share = share or ("" if each.found is None else f"about {each.found:.0%}")
        effort = f"{each.cost / 100:,.2f}" if crowd else hours(each.judgments)
        table.add_row(each.strategy, f"{each.judgments:,}", effort, *([share] if told else []))
    print_table(table)
    say = Console(emoji=False)
    if told:
        say.print(
            "Best found: the share of topics whose best item comes out first, if judges choose the better of two "
            "items in 72% of cases. Careful judges find more."
            + (_WHY_NOT_ALL if _finds_less(estimates, found) else ""),
            markup=False,
            highlight=False,
        )
    if not found and any(each.found is None for each in estimates):
        say.print("What the others find on your pools: add --simulate.", markup=False, highlight=False)
    if recommended is None and forecasts:
        recommended = recommend(forecasts)
    if recommended is not None:
        say.print(f"Recommended: {recommended.reason}", markup=False, highlight=False)
    say.print(
        "Choose one with --strategy, as in: --strategy knockout. --dry-run simulates and compares all of them.",
        markup=False,
        highlight=False,
    )
    if fewer is not None:
        say.print(
            f"With the highest grades alone, at least {THIN} items a topic, about {fewer.judgments:,} judgments: "
            f"--thin {THIN}.",
            markup=False,
            highlight=False,
        )
