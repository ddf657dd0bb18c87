"""`duelpool pool`: runs and grades in, judging pools out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.table import Table

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.informing import take_prior
from duelpool.campaign.known import draw_known_pairs, read_known_pairs
from duelpool.campaign.settings import Judges
from duelpool.campaign.settings_file import read_settings
from duelpool.cli.frame import expand, print_json, print_table, tell, tell_notices, with_progress
from duelpool.cli.simulate import prior_read
from duelpool.cost import Estimate, Pay, estimate
from duelpool.errors import BadFile, BadParameter
from duelpool.files import (
    Run,
    read_passages,
    read_preferences,
    read_qrels,
    read_run,
    read_topics,
    write_pools,
)
from duelpool.files.source import read_source
from duelpool.leaderboard import keep_runs
from duelpool.pool import Pools, build_pools
from duelpool.prior import Prior
from duelpool.records import Passage
from duelpool.store import open_store
from duelpool.store.holdings import KnownPair

STORE_ENDINGS = (".db", ".sqlite", ".sqlite3")


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
    simulated: Annotated[
        bool, typer.Option("--simulate", help="Estimate by simulation, with the share of best items found.")
    ] = False,
    reward: Annotated[int, typer.Option(min=0, help="Pay for an assignment of ten, in cents.")] = 200,
    fee: Annotated[int, typer.Option(min=0, help="The platform's fee in percent.")] = 20,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Pools as JSON lines, or a campaign: FILE.db, postgresql://..."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The campaign's name. Default: the file's.")] = None,
    topics: Annotated[str | None, typer.Option(help="The questions, as assessors see them.")] = None,
    judges: Annotated[str, typer.Option(help="Who will judge: dedicated or crowd.")] = "dedicated",
    cap: Annotated[int, typer.Option(min=1, help="The most judgments of one pair.")] = 6,
    tests: Annotated[
        str | None, typer.Option(help="Test pairs: a file of preferences, auto or none. A crowd: auto.")
    ] = None,
    guidelines: Annotated[str | None, typer.Option(help="A text file for the assessors.")] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="FILE of preferences (an LLM's, say), qrels or a run that swissfinals starts from."
        ),
    ] = None,
    settings_file: Annotated[
        str | None,
        typer.Option(
            "--settings", help="More settings, as TOML or JSON: consent, check, completion_code, ..."
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=0, help="Stop new assignments when so much is spent, in cents.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Fixes every random choice of the campaign.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Build judging pools from runs, grades and texts, and say what judging them will take.

    Examples:

      duelpool pool runs/*.gz --qrels qrels.txt --thin 5 --texts passages.tsv.gz -o pools.jsonl

      duelpool pool --qrels qrels.txt --thin 5 --json

      duelpool pool runs/ --qrels qrels.txt --texts passages.jsonl --topics topics.tsv -o campaign.db
    """
    options = Settings(
        strategy=strategy,
        seed=seed,
        judges=cast("Judges", judges),
        cap=cap,
        reward=reward,
        fee_percent=fee,
        budget=budget,
        guidelines=_text(guidelines) if guidelines else "",
    )
    settings = read_settings(settings_file, options) if settings_file else options
    paths = expand([*(more_runs or []), *(runs or [])])
    if not (paths or qrels or prefs):
        raise BadParameter("There is nothing to pool.", remedy="Give runs, --qrels or --prefs.")
    read_runs = [_told(path) for path in with_progress(paths, "Reading runs")]
    _refuse_equal_names(read_runs)
    read_grades = read_qrels(qrels) if qrels else None
    read_prefs = read_preferences(prefs) if prefs else None
    read_texts = read_passages(texts) if texts else None
    for file, read in ((qrels, read_grades), (prefs, read_prefs), (texts, read_texts)):
        if read is not None:
            tell_notices(str(file), read.notices)
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
        groups=read_groups(groups) if groups else None,
    )
    if not pools.pools:
        raise BadParameter(
            "No topic has a candidate.", remedy="Check that runs, qrels and preferences share their topics."
        )
    expected = estimate(
        pools.sizes.values(),
        settings.strategy,
        Pay(settings.reward, settings.fee_percent, settings.targets),
        cap=settings.cap,
        simulated=simulated,
        seed=settings.seed,
    )
    told = ""
    if output and is_store(output):
        told = make(
            output,
            name or stem_of(output),
            settings,
            pools,
            topics=topics,
            tests=tests,
            grades=read_grades.grades() if read_grades else {},
            texts=read_texts.by_id if read_texts else None,
            runs=read_runs,
            prior=prior_read(prior, [settings.strategy]),
        )
    elif output:
        write_pools(output, pools.pools)
        told = f"Wrote {len(pools.pools)} pools to {output}."
    if as_json:
        print_json(figures(pools, expected))
    else:
        show(pools, expected)
    if told:
        tell(told)


def is_store(output: str) -> bool:
    """Say whether an output is to hold a campaign, rather than pools alone."""
    return "://" in output or Path(output).suffix in STORE_ENDINGS


def stem_of(store: str) -> str:
    """Return the name that a campaign gets from its store."""
    return Path(store.split("?", 1)[0]).stem or "campaign"


def make(
    store: str,
    name: str,
    settings: Settings,
    pools: Pools,
    *,
    topics: str | None,
    tests: str | None,
    grades: Mapping[str, Mapping[str, float]],
    texts: Mapping[str, Passage] | None,
    runs: Sequence[Run] = (),
    prior: Prior | None = None,
) -> str:
    """Make a campaign from pools, with the runs for its leaderboard, and say what it holds."""
    questions = read_topics(topics) if topics else None
    if questions is not None:
        tell_notices(str(topics), questions.notices)
    if prior is not None and not any(
        item in prior.get(each.topic, {}) for each in pools.pools for item in each.items
    ):
        raise BadParameter(
            "The prior knows none of the candidates.", remedy="Check its topics and documents."
        )
    known = list(_known(tests, settings, pools, grades, texts))
    if not known:
        settings = replace(settings, tests=0)
    elif settings.judges == "crowd" and len(known) < settings.tests:
        raise BadParameter(
            f"An assignment takes {settings.tests} test pairs, and there are {len(known)}.",
            remedy="Give more of them with --tests, or none with --tests none.",
        )
    shown = {item for each in pools.pools for item in each.items}
    shown |= {item for pair in known for item in (pair.better, pair.worse)}
    passages = [texts[item] for item in sorted(shown) if item in texts] if texts else []
    with open_store(store, create=True) as opened:
        campaign = Campaign.create(
            opened,
            name,
            settings,
            topics=questions or (),
            pools=pools.pools,
            passages=passages,
            known_pairs=known,
        )
        keep_runs(campaign, runs)
        if prior is not None:
            take_prior(campaign, prior)
    return (
        f"Made the campaign '{name}' in {store}: {len(pools.pools)} topics, {pools.candidates:,} candidates, "
        f"{len(passages):,} texts, {len(known)} test pairs."
    )


def _known(
    tests: str | None,
    settings: Settings,
    pools: Pools,
    grades: Mapping[str, Mapping[str, float]],
    texts: Mapping[str, Passage] | None,
) -> Iterable[KnownPair]:
    way = tests or ("auto" if settings.judges == "crowd" else "none")
    if way == "none":
        return ()
    if way == "auto":
        return draw_known_pairs(pools.pools, texts=texts, grades=grades, seed=settings.seed)
    known, notices = read_known_pairs(way, pools.sizes)
    tell_notices(way, notices)
    return known


def _text(path: str) -> str:
    return read_source(path).data.decode(errors="replace").strip()


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
            "found": expected.found,
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
    if expected.found is not None:
        facts.add_row("best items found, simulated", f"{expected.found:.0%}")
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


def read_groups(path: str) -> dict[str, str]:
    """Read a file of lines `run group`."""
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
