"""The plan of a campaign in which systems compete: questions, answers, pairs, and what each system misses."""

from typing import Any

from rich.table import Table

from duelpool.cli.campaign.pool_tables import add_effort
from duelpool.cli.output import print_table
from duelpool.setup import Draft
from duelpool.setup.comparisons import pairs_of_answers
from duelpool.simulation.cost import Estimate

_NAMED = 5


def answer_figures(draft: Draft) -> dict[str, Any]:
    """Return the systems with their answers, and the pairs of answers, as JSON values."""
    held = set(draft.pools.sizes)
    return {
        "systems": {run.name: len(held & set(run.topics)) for run in draft.inputs.runs},
        "questions": len(held),
        "identical": draft.pools.merged,
        "pairs": pairs_of_answers(draft),
    }


def show_answers(draft: Draft, expected: Estimate) -> None:
    """Print the plan: how many pairs there are, how many votes are planned, and what is missing."""
    of = answer_figures(draft)
    pages = draft.inputs.files.pages
    facts = Table(title="Result pages" if pages else "Answers", show_header=False, title_justify="left")
    facts.add_column("what")
    facts.add_column("figure", justify="right")
    answers = sum(of["systems"].values())
    facts.add_row("questions", f"{of['questions']:,}")
    facts.add_row("systems", f"{len(of['systems']):,}")
    facts.add_row("pages" if pages else "answers", f"{answers:,}")
    facts.add_row("identical ones, which tie without a vote", f"{of['identical']:,}")
    for count, what in (
        (len(draft.pools.without_text), "without a text"),
        (draft.pools.near_duplicate_items, "that differ in white space or case only"),
        (
            sum(size < 2 for size in draft.pools.sizes.values()),
            "questions with one answer: nothing to compare",
        ),
    ):
        if count:
            facts.add_row(what, f"{count:,}")
    facts.add_section()
    facts.add_row("pairs of answers", f"{of['pairs']:,}")
    facts.add_row("votes, at most", f"{expected.judgments:,}")
    add_effort(facts, expected, draft.settings)
    print_table(facts)
    missing = {name: of["questions"] - had for name, had in of["systems"].items() if had < of["questions"]}
    if missing:
        table = Table(title=f"Systems that miss answers: {len(missing)}", title_justify="left")
        table.add_column("system", overflow="fold")
        table.add_column("answers", justify="right")
        table.add_column("missing", justify="right")
        for name in sorted(missing, key=lambda name: (-missing[name], name))[: 4 * _NAMED]:
            table.add_row(name, f"{of['systems'][name]:,}", f"{missing[name]:,}")
        if len(missing) > 4 * _NAMED:
            table.add_row("...", "", "")
        print_table(table)
