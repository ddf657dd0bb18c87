"""`duelpool demo`: the main job end to end, on a small collection of our own."""

import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from duelpool.campaign import Campaign
from duelpool.campaign.views.watch import Watch
from duelpool.campaign_report import chapters, facts
from duelpool.cli.output import tell
from duelpool.demo.ending import budget_chapter, found_best, truth_chapter, write_grades
from duelpool.demo.story import DemoFiles, write_collection
from duelpool.errors import BadFile
from duelpool.files.source import write_lines
from duelpool.report import Chapter, html_page
from duelpool.store import open_store

CARELESS = 0.2  # of the people, who flip a coin whatever they are shown
GRADES = 120  # that the budget buys
PACE = 0.7  # seconds between two answers, while somebody watches


def demo(
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(min=0, help="Fixes everything random.")] = 1,
    serve: Annotated[
        bool, typer.Option("--serve", help="Open the dashboard, with simulated people at work.")
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="With --serve: the port.")] = 8000,
    pace: Annotated[float, typer.Option(min=0, help="With --serve: seconds between two answers.")] = PACE,
) -> None:
    """Run the main job end to end on a small collection: pool, judge, find the best, score the rankers.

    People are simulated: they see a hidden utility of each passage, with noise, and some of them don't look.
    At the end there is a report, and one line that opens the page on the same campaign.

    Examples:

      duelpool demo

      duelpool demo --folder my-demo --seed 3

      duelpool demo --serve
    """
    store = folder / "demo.db"
    _make_room(store)
    files = write_collection(folder, seed)
    tell(f"The demo collection is in {folder}: topics, passages, qrels and {len(files.runs)} runs.")
    _run(
        "The pools: the runs' top ten, thinned by coarse grades, duplicates merged; and what judging will cost.",
        f"pool {_quoted(folder / 'runs')} --qrels {_quoted(files.qrels)} --texts {_quoted(files.passages)}"
        f" --topics {_quoted(files.topics)} --thin 5 --strategy swissfinals --judges crowd --seed {seed}"
        f" -o {_quoted(store)}",
    )
    if serve:
        _watch_them_work(store, seed, port, pace)
    else:
        _tell_the_story(folder, files, store, seed)


def _tell_the_story(folder: Path, files: DemoFiles, store: Path, seed: int) -> None:
    runs, best = folder / "runs", folder / "best.qrels"
    plan, grades, page = folder / "plan.jsonl", folder / "grades.qrels", folder / "report.html"
    _run(
        f"A crowd judges side by side, in assignments of ten pairs and three test pairs. One in {1 / CARELESS:.0f}"
        " doesn't look; who fails the test pairs is excluded, paid, and their pairs are asked again.",
        f"judge simulated {_quoted(store)} --model demo --careless {CARELESS} --seed {seed}",
    )
    _run("What they found, and what it cost.", f"status {_quoted(store)}")
    _run(
        "How far they agree, with each other and with themselves.",
        f"agreement {_quoted(store)} --report summary --report alpha",
    )
    _run("The best answers as labels.", f"export {_quoted(store)} --as qrels --best -o {_quoted(best)}")
    _run(
        "The rankers, scored by where they put the best answers.",
        f"evaluate {_quoted(store)} -m RR -m 'Compat(p=0.8)' --ci t",
    )
    _run(
        f"Another way, with {GRADES} grades instead: which ones say most about all rankers?",
        f"budget plan {_quoted(runs)} --metric P@10 --n {GRADES} --seed {seed} -o {_quoted(plan)}",
    )
    count = write_grades(plan, grades)
    _run(
        f"A careful person grades those {count}. What they say of P@10, without bias:",
        f"budget estimate {_quoted(plan)} {_quoted(runs)} --judgments {_quoted(grades)}",
    )
    with open_store(store, writable=False) as opened:
        campaign = Campaign.open(opened)
        watch = Watch(campaign)
        snapshot = watch.look()
        told = [
            *chapters(campaign, watch),
            truth_chapter(campaign, runs),
            budget_chapter(plan, grades, runs),
            Chapter("Go on", ("Judge some yourself, or watch others do it:",), commands=_next_steps(store)),
        ]
        right, topics = found_best(campaign)
    lead = "A small collection of our own, judged by a simulated crowd: the answers are made up, the rest is not."
    write_lines(page, [html_page("The demo", lead, facts(snapshot), told).rstrip("\n")])
    typer.echo(
        f"\n{snapshot.total('judgments')} judgments found the truly best answer of {right} of {topics} questions."
        f"\n\nThe report, with plots and the truth beside everything: {page}"
        f"\nThe page, on the same campaign: {_next_steps(store)[0]}"
    )


def _next_steps(store: Path) -> tuple[str, ...]:
    return (
        f"duelpool serve {_quoted(store)}",
        f"duelpool judge terminal {_quoted(store)}",
        "duelpool demo --serve",
    )


def _watch_them_work(store: Path, seed: int, port: int, pace: float) -> None:
    """Serve the page while simulated people judge, slowly enough to look on."""
    words = [
        *("judge", "simulated", str(store), "--model", "demo", "--careless", str(CARELESS)),
        *("--seed", str(seed), "--pace", str(pace)),
    ]
    tell("People begin to judge. Open the link behind 'to manage' and watch the leaderboard move.")
    # The server passes a SIGTERM on once it has ended: as an exit, so that the people stop as well.
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    crowd = subprocess.Popen(
        [sys.executable, "-m", "duelpool", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _run("The judging page and the dashboard.", f"serve {_quoted(store)} --port {port}")
    finally:
        crowd.terminate()
        crowd.wait()
        signal.signal(signal.SIGTERM, before)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _run(about: str, words: str) -> None:
    """Say what comes, show the command, and run just that."""
    from duelpool.cli import app  # the commands know the demo, so the demo can't know them sooner

    typer.echo(f"\n{about}\n$ duelpool {words}\n")
    app(shlex.split(words), standalone_mode=False)


def _make_room(store: Path) -> None:
    """Remove the demo's own store of last time; anybody else's stays."""
    if not store.exists():
        return
    with open_store(store, writable=False) as opened:
        ours = Campaign.open(opened).name == store.stem
    if not ours:
        raise BadFile.at(str(store), None, "This isn't the demo's own store.", "Name another folder.")
    for leftover in store.parent.glob("demo.db*"):
        leftover.unlink()
