"""A campaign in which everything happens, in processes that are killed; it is checked and recounted after each kill.

python -m support.killed_campaigns TARGET FOLDER STRATEGY SEED KILLS

KILLS is JSON, a pair for each: after how many turns of a process, and how many milliseconds later. A thread of the
process stores summaries all the while, as a server does. Prints, as JSON, what is wrong and what was seen. It forks,
so whatever starts threads runs in a process of its own.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any, TypeAlias

import numpy as np
import pytest

from duelpool.campaign import Campaign
from duelpool.campaign.checks import check_store
from duelpool.campaign.views import summaries
from duelpool.campaign.views.status import recounted_status, status
from duelpool.store import open_store
from support.eventful import LEASE_SECONDS, TURNS, Eventful, clock_for

LINES_AT_MOST = 20  # of which one call stores summaries
Say: TypeAlias = Callable[[Any], object]


def started(work: Callable[[Say], None]) -> tuple[int, int]:
    """Do some work in a new process; return its number and the pipe of what it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    code = 3
    try:
        os.close(reading)
        work(lambda value: os.write(writing, json.dumps(value).encode() + b"\n"))
        code = 0
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def ended(child: int) -> int:
    """Wait for a process; return its code, negative where a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def begin(target: str, folder: Path, strategy: str, seed: int, say: Say) -> None:
    """Make the campaign."""
    with open_store(target, create=True) as store, pytest.MonkeyPatch.context() as patch:
        say(Eventful.begin(store, seed, folder, patch, strategy).clock[0])


def go_on(target: str, seed: int, turn: int, now: float, say: Say) -> None:
    """Play from a turn on, and say after each which it was and what time it is."""
    with open_store(target) as store, pytest.MonkeyPatch.context() as patch:
        clock = clock_for(store, patch, now)
        played = Eventful(store, Campaign.open(store), np.random.default_rng([seed, turn]), clock)
        turns = iter(range(turn, 10**9))

        def look(played: Eventful) -> None:
            if played.rng.random() < 0.6:
                summaries.refresh(played.campaign)
            say([next(turns), played.clock[0]])

        Thread(target=summarise, args=(Campaign.open(store),), daemon=True).start()
        played.go_on(turn, look)
        os._exit(0)  # the thread is at work


def summarise(campaign: Campaign) -> None:
    """Store summaries, a few lines of a topic at a time."""
    while True:
        summaries.refresh(campaign, lines_at_most=LINES_AT_MOST)
        time.sleep(0.001)


def check(target: str, now: float, say: Say) -> None:
    """Check the store, and compare its status, which is read from summaries, with a recount of the log."""
    with open_store(target) as store, pytest.MonkeyPatch.context() as patch:
        clock_for(store, patch, now)
        campaign = Campaign.open(store)
        wrong = [str(each) for each in check_store(target).findings]
        stale = campaign.read(lambda tx: summaries.stale_lines(tx, campaign))
        for _ in range(2):  # as the process left it, and with all summaries stored
            if status(campaign) != recounted_status(campaign):
                wrong.append("the status differs from a recount")
            summaries.refresh(campaign)
        wrong += [str(each) for each in check_store(target).findings]
        lines = sum(campaign.live.heads().values())
        say({"wrong": wrong, "stale": stale, "lines": lines})


def play(target: str, folder: Path, strategy: str, seed: int, kills: list[tuple[int, int]]) -> dict[str, Any]:
    """Play a campaign to its end, with kills on the way; return what is wrong, and what was seen after each kill."""
    child, pipe = started(lambda say: begin(target, folder, strategy, seed, say))
    with os.fdopen(pipe) as said:
        now = float(said.readline() or 0)
    wrong = [f"making the campaign ended with {code}"] if (code := ended(child)) else []
    turn, seen = 0, []
    for turns, milliseconds in [*kills, (TURNS + 1, 0)]:
        child, pipe = started(lambda say, turn=turn, now=now: go_on(target, seed, turn, now, say))  # type: ignore[misc]
        with os.fdopen(pipe) as said:
            lines = [json.loads(line) for line in islice(said, turns)]
            if len(lines) == turns:
                time.sleep(milliseconds / 1000)
                os.kill(child, signal.SIGKILL)
            code = ended(child)
        if lines:
            turn, now = lines[-1][0] + 1, lines[-1][1]
        if code not in {0, -signal.SIGKILL}:
            wrong.append(f"a process ended with {code}")
        if code:  # the turn that it was in is over; its clock was at most this much further
            turn, now = turn + 1, now + 2 * LEASE_SECONDS
        child, pipe = started(lambda say, now=now: check(target, now, say))  # type: ignore[misc]
        with os.fdopen(pipe) as said:
            seen.append(
                {"code": code, "turn": turn, **json.loads(said.readline() or '{"wrong": ["no check"]}')}
            )
        ended(child)
        wrong += seen[-1].pop("wrong")
    return {"wrong": wrong, "seen": seen}


if __name__ == "__main__":
    target, folder, strategy, seed, kills = sys.argv[1:]
    print(json.dumps(play(target, Path(folder), strategy, int(seed), json.loads(kills))))
