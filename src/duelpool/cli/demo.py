"""`duelpool demo`: the main job end to end, on a small collection of our own."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from duelpool.campaign import Campaign
from duelpool.cli.frame import tell
from duelpool.demo import load_collection
from duelpool.demo.story import write_collection
from duelpool.errors import BadFile
from duelpool.store import open_store


def demo(
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(min=0, help="Fixes everything random.")] = 1,
) -> None:
    """Run the main job end to end on a small collection: pool, judge, find the best, score the rankers.

    People are simulated: they see a hidden utility of each passage, with noise.

    Examples:

      duelpool demo

      duelpool demo --folder my-demo --seed 3
    """
    store = folder / "demo.db"
    if store.exists():
        if not _is_ours(store):
            raise BadFile.at(str(store), None, "This isn't the demo's own store.", "Name another folder.")
        for leftover in folder.glob("demo.db*"):
            leftover.unlink()
    files = write_collection(folder, seed)
    tell(f"The demo collection is in {folder}: topics, passages, qrels and {len(files.runs)} runs.")
    _run(
        "The pools: the runs' top ten, thinned by coarse grades, twins merged.",
        f"pool {folder}/runs --qrels {files.qrels} --texts {files.passages} --topics {files.topics}"
        f" --thin 5 --strategy swissfinals --seed {seed} -o {store}",
    )
    _run(
        "Eight people judge side by side. Each question goes where it tells most.",
        f"judge {store} --judge simulated --model demo --seed {seed}",
    )
    _run("What they found.", f"status {store}")
    _run("The best answers as labels.", f"export {store} --as qrels --best -o {folder}/best.qrels")
    _run(
        "The rankers, scored by where they put the best answers.",
        f"evaluate {folder}/best.qrels {folder}/runs -m RR -m 'Compat(p=0.8)' --ci t",
    )
    _tell_the_truth(store)


def _run(about: str, words: str) -> None:
    """Say what comes, show the command, and run just that."""
    from duelpool.cli import app  # the commands know the demo, so the demo can't know them sooner

    typer.echo(f"\n{about}\n$ duelpool {words}\n")
    app(shlex.split(words), standalone_mode=False)


def _is_ours(store: Path) -> bool:
    with open_store(store, writable=False) as opened:
        return Campaign.open(opened).name == store.stem


def _tell_the_truth(store: Path) -> None:
    """Compare what was found with the hidden utilities."""
    utilities = load_collection().utilities
    with open_store(store, writable=False) as opened:
        campaign = Campaign.open(opened)
        results = campaign.results()
        judgments = sum(len(campaign.judgments(topic)) for topic in results)
    right = sum(
        max(utilities[topic].values()) == max(utilities[topic][item] for item in levels.best)
        for topic, levels in results.items()
    )
    typer.echo(
        f"\n{judgments} judgments found the truly best answer of {right} of {len(results)} questions."
        f"\nLook around: duelpool status {store}, or judge some yourself: duelpool judge {store}"
    )
