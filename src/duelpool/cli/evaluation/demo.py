"""`duelpool demo`: a campaign from start to end, on a small collection that comes with the package."""

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
from duelpool.report.page import Chapter, html_page
from duelpool.store import open_store

CARELESS = 0.2  # the share of simulated people who guess
GRADES = 120  # grades that the budget buys
PACE = 0.7  # seconds between two answers, with --serve


def demo(
    folder: Annotated[Path, typer.Option(help="The folder for the files.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(min=0, help="Fixes everything random.")] = 1,
    serve: Annotated[
        bool, typer.Option("--serve", help="Open the dashboard while simulated people judge.")
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="With --serve: the port.")] = 8000,
    pace: Annotated[float, typer.Option(min=0, help="With --serve: seconds between two answers.")] = PACE,
) -> None:
    """Run a campaign from start to end on a small collection: pool, judge, find the best, score the rankers.

    The assessors are simulated: they see a hidden utility of each passage, with noise, and some of them guess.
    At the end there is a report, and a command that opens the judging page of the same campaign.

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
        " guesses. Workers who fail the test pairs are paid and excluded, and their pairs are asked again.",
        f"judge simulated {_quoted(store)} --model demo --careless {CARELESS} --seed {seed}",
    )
    _run("The best answers so far, and the cost.", f"status {_quoted(store)}")
    _run(
        "Agreement of the workers, with each other and with themselves.",
        f"agreement {_quoted(store)} --report summary --report alpha",
    )
    _run("The best answers as labels.", f"export {_quoted(store)} --as qrels --best -o {_quoted(best)}")
    _run(
        "The rankers, scored by where they rank the best answers.",
        f"evaluate {_quoted(store)} -m RR -m 'Compat(p=0.8)' --ci t",
    )
    _run(
        f"Instead of preferences, {GRADES} grades: which ones say most about all rankers?",
        f"budget plan {_quoted(runs)} --metric P@10 --n {GRADES} --seed {seed} -o {_quoted(plan)}",
    )
    count = write_grades(plan, grades)
    _run(
        f"A careful person grades those {count}. Unbiased estimates of P@10 from them:",
        f"budget estimate {_quoted(plan)} {_quoted(runs)} --judgments {_quoted(grades)}",
    )
    with open_store(store, writable=False) as opened:
        campaign = Campaign.open(opened)
        watch = Watch(campaign)
        snapshot = watch.look()
        further = [
            truth_chapter(campaign, runs),
            budget_chapter(plan, grades, runs),
            Chapter(
                "Continue", ("Judge some yourself, or watch others do it:",), commands=_next_steps(store)
            ),
        ]
        sections = chapters(campaign, watch, further=further)
        right, topics = found_best(campaign)
    lead = (
        "A small collection, judged by a simulated crowd. The answers are made up; everything else is real."
    )
    write_lines(page, [html_page("The demo", lead, facts(snapshot), sections).rstrip("\n")])
    typer.echo(
        f"\n{snapshot.total('judgments')} judgments found the truly best answer of {right} of {topics} questions."
        f"\n\nThe report, with charts and the true values: {page}"
        f"\nThe judging page of the same campaign: {_next_steps(store)[0]}"
    )


def _next_steps(store: Path) -> tuple[str, ...]:
    return (
        f"duelpool serve {_quoted(store)}",
        f"duelpool judge terminal {_quoted(store)}",
        "duelpool demo --serve",
    )


def _watch_them_work(store: Path, seed: int, port: int, pace: float) -> None:
    """Serve the dashboard while simulated people judge slowly."""
    words = [
        *("judge", "simulated", str(store), "--model", "demo", "--careless", str(CARELESS)),
        *("--seed", str(seed), "--pace", str(pace)),
    ]
    tell("Simulated people start judging. Open the link 'to manage' and watch the leaderboard change.")
    # The server re-raises SIGTERM when it has ended: turn it into an exit, so that the judging process ends too.
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
    """Announce a command, show it, and run it."""
    from duelpool.cli import app  # here, because the app imports this module

    typer.echo(f"\n{about}\n$ duelpool {words}\n")
    app(shlex.split(words), standalone_mode=False)


def _make_room(store: Path) -> None:
    """Remove the store of an earlier demo; refuse to remove any other store."""
    if not store.exists():
        return
    with open_store(store, writable=False) as opened:
        ours = Campaign.open(opened).name == store.stem
    if not ours:
        raise BadFile.at(str(store), None, "This store isn't one of the demo's.", "Name another folder.")
    for leftover in store.parent.glob("demo.db*"):
        leftover.unlink()
