"""`duelpool pool`: runs and grades in, judging pools out."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from duelpool.cli.frame import expand, print_json, print_table, tell, tell_notices, with_progress
from duelpool.cost import Estimate, Pay, estimate
from duelpool.errors import BadFile, BadParameter
from duelpool.files import (
    Run,
    read_passages,
    read_preferences,
    read_qrels,
    read_run,
    write_pools,
)
from duelpool.files.source import read_source
from duelpool.pool import Pools, build_pools


def pool(
    runs: Annotated[list[str] | None, typer.Argument(help="Run files, folders of them, or patterns.")] = None,
    more_runs: Annotated[list[str] | None, typer.Option("--runs", help="The same, as an option.")] = None,
    qrels: Annotated[str | None, typer.Option(help="Grades: only items above 0 are kept.")] = None,
    prefs: Annotated[str | None, typer.Option(help="Preferences whose items are the candidates.")] = None,
    depth: Annotated[int, typer.Option(min=1, help="How deep each run is pooled.")] = 10,
    thin: Annotated[
        int | None, typer.Option(min=1, help="Take grades top down until this many are in.")
    ] = None,
    relevant_from: Annotated[float | None, typer.Option(help="The lowest grade to keep.")] = None,
    keep_ungraded: Annotated[
        bool, typer.Option("--keep-ungraded", help="Keep items without a grade.")
    ] = False,
    texts: Annotated[str | None, typer.Option(help="Passages: items of the same text are merged.")] = None,
    keep_twins: Annotated[
        bool, typer.Option("--keep-twins", help="Don't merge items of the same text.")
    ] = False,
    groups: Annotated[str | None, typer.Option(help="Lines `run group`, for contributions by group.")] = None,
    strategy: Annotated[str, typer.Option(help="Whose judgments and cost to estimate.")] = "swissfinals",
    reward: Annotated[int, typer.Option(min=0, help="Pay for an assignment of ten, in cents.")] = 200,
    fee: Annotated[int, typer.Option(min=0, help="The platform's fee in percent.")] = 20,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the pools as JSON lines.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Build judging pools from runs, grades and texts, and say what judging them will take.

    Examples:

      duelpool pool runs/*.gz --qrels qrels.txt --thin 5 --texts passages.tsv.gz -o pools.jsonl

      duelpool pool --qrels qrels.txt --thin 5 --json
    """
    paths = expand([*(more_runs or []), *(runs or [])])
    if not (paths or qrels or prefs):
        raise BadParameter("There is nothing to pool.", remedy="Give runs, --qrels or --prefs.")
    read_runs = [_told(path) for path in with_progress(paths, "Reading runs")]
    _refuse_equal_names(read_runs)
    read_grades = read_qrels(qrels) if qrels else None
    read_prefs = read_preferences(prefs) if prefs else None
    read_texts = read_passages(texts) if texts else None
    for name, read in ((qrels, read_grades), (prefs, read_prefs), (texts, read_texts)):
        if read is not None:
            tell_notices(str(name), read.notices)
    pools = build_pools(
        read_runs,
        qrels=read_grades,
        preferences=read_prefs,
        depth=depth,
        thin=thin,
        relevant_from=relevant_from,
        keep_ungraded=keep_ungraded,
        texts=read_texts.by_id if read_texts else None,
        keep_twins=keep_twins,
        groups=_read_groups(groups) if groups else None,
    )
    if not pools.pools:
        raise BadParameter(
            "No topic has a candidate.", remedy="Check that runs, qrels and preferences share their topics."
        )
    expected = estimate(pools.sizes.values(), strategy, Pay(reward, fee))
    if output:
        write_pools(output, pools.pools)
    if as_json:
        print_json(figures(pools, expected))
    else:
        show(pools, expected)
    if output:
        tell(f"Wrote {len(pools.pools)} pools to {output}.")


def figures(pools: Pools, expected: Estimate) -> dict[str, object]:
    """Return the figures of pools for a program."""
    largest = pools.largest
    return {
        "topics": len(pools.pools),
        "candidates": pools.candidates,
        "largest": len(largest) if largest else 0,
        "largest_topic": largest.topic if largest else None,
        "sizes": pools.sizes,
        "twins": pools.merged,
        "near_twins": {
            topic: [list(group) for group in groups] for topic, groups in pools.near_twins.items()
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
        },
    }


def show(pools: Pools, expected: Estimate) -> None:
    """Print pools for a person: the figures, the largest topics, and who brought what."""
    sizes = sorted(pools.sizes.values())
    largest = pools.largest
    facts = Table(title="Pools", show_header=False, title_justify="left")
    facts.add_column("what")
    facts.add_column("figure", justify="right")
    facts.add_row("topics", f"{len(pools.pools):,}")
    facts.add_row("candidates", f"{pools.candidates:,}")
    facts.add_row("smallest, median, largest", f"{sizes[0]}, {sizes[len(sizes) // 2]}, {sizes[-1]}")
    facts.add_row("largest topic", largest.topic if largest else "")
    facts.add_row("twins merged", f"{pools.merged:,}")
    for name, count in (
        ("near-twins to look at", sum(map(len, pools.near_twins.values()))),
        ("without text", len(pools.without_text)),
        ("left out: no grade", pools.ungraded),
        ("left out: not relevant", pools.not_relevant),
        ("left out: thinned", pools.thinned),
        ("topics without candidates", len(pools.empty_topics)),
        ("topics without grades", len(pools.ungraded_topics)),
        ("topics without runs", len(pools.unpooled_topics)),
    ):
        if count:
            facts.add_row(name, f"{count:,}")
    facts.add_section()
    facts.add_row(f"judgments, with {expected.strategy}", f"about {expected.judgments:,}")
    facts.add_row("assignments of ten", f"{expected.assignments:,}")
    facts.add_row("cost", f"{expected.cost / 100:,.2f}")
    print_table(facts)
    for title, contributions in (("Runs", pools.runs), ("Groups", pools.groups)):
        if contributions:
            table = Table(title=title, title_justify="left")
            table.add_column(title.lower()[:-1], overflow="fold")
            table.add_column("candidates", justify="right")
            table.add_column("only from it", justify="right")
            for each in sorted(contributions, key=lambda each: (-each.unique, -each.items, each.name)):
                table.add_row(each.name, f"{each.items:,}", f"{each.unique:,}")
            print_table(table)


def _told(path: str) -> Run:
    run = read_run(path)
    tell_notices(path, run.notices)
    return run


def _refuse_equal_names(runs: list[Run]) -> None:
    names = [run.name for run in runs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise BadParameter(
            f"Two runs are called '{min(twice)}'.",
            remedy="Runs are named after their files: rename one of them.",
        )


def _read_groups(path: str) -> dict[str, str]:
    source = read_source(path)
    found = {}
    for number, line in enumerate(source.lines(), 1):
        words = line.decode(errors="backslashreplace").split(None, 1)
        if not words:
            continue
        if len(words) != 2:
            raise BadFile.at(
                source.name, number, "A line names a run and its group.", "Example: bm25 my-team"
            )
        found[words[0]] = words[1].strip()
    return found
