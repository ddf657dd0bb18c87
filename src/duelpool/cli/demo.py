"""`duelpool demo`: the main job end to end, on a small collection of our own."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from duelpool.cli.frame import print_table
from duelpool.cli.pool import pool
from duelpool.demo.story import write_collection
from duelpool.files import read_pools, read_topics


def demo(
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(min=0, help="Fixes everything random.")] = 1,
    depth: Annotated[int, typer.Option(min=1, help="How deep each run is pooled.")] = 10,
    thin: Annotated[int, typer.Option(min=1, help="Take grades top down until this many are in.")] = 5,
) -> None:
    """Write the demo collection as files of the field, and build judging pools from them.

    Examples:

      duelpool demo

      duelpool demo --folder my-demo --seed 3
    """
    files = write_collection(folder, seed)
    typer.echo(
        f"Wrote the demo collection to {folder}: topics, passages, qrels and {len(files.runs)} runs.\n"
    )
    runs, pools = folder / "runs", folder / "pools.jsonl"
    typer.echo(
        f"$ duelpool pool {runs} --qrels {files.qrels} --texts {files.passages}"
        f" --depth {depth} --thin {thin} -o {pools}\n"
    )
    pool(
        runs=[str(runs)],
        qrels=str(files.qrels),
        texts=str(files.passages),
        depth=depth,
        thin=thin,
        output=str(pools),
    )
    show_pools(files.topics, pools)


def show_pools(topics: Path, pools: Path) -> None:
    """Print a line per pool: the question, how many candidates it has, and of what grade."""
    questions = read_topics(topics).by_id
    table = Table(title="Who will be judged", title_justify="left")
    table.add_column("question", overflow="fold")
    table.add_column("candidates", justify="right")
    for grade in (3, 2, 1):
        table.add_column(f"grade {grade}", justify="right")
    table.add_column("twins", justify="right")
    for each in read_pools(pools):
        grades = Counter(each.grades.values())
        table.add_row(
            questions[each.topic].text,
            str(len(each)),
            *(str(grades[grade]) for grade in (3, 2, 1)),
            str(sum(map(len, each.twins.values()))),
        )
    print_table(table)
