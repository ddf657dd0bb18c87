"""A full disk: at a random write there is no room any more, and later there is room again.

python tests/stress_all.py --part full-disk --count 20

A server says 503 and when to try again, a command ends with 2 and a remedy, nothing that was acknowledged is lost, and
both work on when there is room again. Three kinds of full disks: files can't grow; nothing can be written; and fsync
notices it. Every third round cuts the power while the disk is full.
"""

import asyncio
import os
import random
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from duelpool.campaign import Campaign
from duelpool.errors import DuelpoolError
from duelpool.records import Answer
from duelpool.store import open_store
from stress.disk import after_the_cut
from stress.power_cuts import (
    COMMANDS,
    OUTCOMES,
    PEOPLE,
    RUN,
    STORE,
    Scene,
    answer_of,
    changes_of,
    check,
    content,
    doors_into,
    in_child,
    in_process_with_library,
    run_command,
    scene,
)
from stress.results import Round, run_rounds
from support.plainhttp import Dropped, Wire
from support.serving import Server, begin
from support.simulated_visitors import Seen, visit_all

KINDS = (1, 2, 3)  # see full_kind in disk.c
TIMES = 5  # how often a server's disk is full
REFUSED = 10  # calls, at least, before there is room again
MORE = 10  # answers, at least, afterwards
PATIENCE = 60.0  # seconds; a trial that waits longer has found something
REMEDIES = ("Free some space", "Check the disk", "free space", "answers so far are saved")


# ---- people at a server


def serve(at: Scene) -> tuple[int, list[str]]:
    """Let people judge at a server whose disk is full now and then; return how often, and what is wrong."""
    workers, cut = at.rng.choice((1, 2)), at.rng.random() < 0.33
    plan = [(at.rng.randint(1, 300), at.rng.choice(KINDS)) for _ in range(TIMES)]
    doors = doors_into(at)

    def work() -> dict[str, Any]:
        os.environ.update(at.control.environment(Path(os.environ["LD_PRELOAD"]), at.place))
        server = begin(str(at.place / STORE), at.folder, workers=workers)
        try:
            server.wait()
            return asyncio.run(_fill_and_empty(at, server, doors, plan, cut))
        finally:
            at.control["full_from"] = 0
            server.stop()

    got = answer_of(work)
    at.acknowledged |= {(question, attempt): outcome for question, attempt, outcome in got["acknowledged"]}
    if cut:
        after_the_cut(at.disk, at.control, at.kept, at.rng)
    said = (at.folder / "server.txt").read_text(encoding="utf-8", errors="replace")
    if "Traceback" in said:
        got["wrong"].append(f"the server wrote a traceback: {said[-600:]}")
    return got["times"], got["wrong"]


async def _fill_and_empty(
    at: Scene, server: Server, doors: list[tuple[str, str]], plan: list[tuple[int, int]], cut: bool
) -> dict[str, Any]:
    seen, wrong, times = Seen(), list[str](), 0
    over = False
    people = asyncio.create_task(
        visit_all(server.port, doors, 8, 600.0, 0.02, until=lambda: over, seen=seen, seed=times)
    )
    wire = Wire(server.port)

    async def wait_for(what: str, reached: Any) -> bool:
        end = time.monotonic() + PATIENCE
        while not reached():
            if time.monotonic() > end or people.done():
                wrong.append(f"{what} within {PATIENCE:.0f} seconds: {seen.statuses}")
                return False
            await asyncio.sleep(0.02)
        return True

    for number, (after, kind) in enumerate(plan):
        before, refused = len(seen.acknowledged), at.control["refused"]
        at.control["full_kind"] = kind
        at.control["full_from"] = at.control["changes"] + after
        times += 1

        def is_full(refused: int = refused) -> bool:
            return at.control["refused"] >= refused + REFUSED

        if not await wait_for("no write was refused", is_full):
            break
        with suppress(Dropped):
            ready = await wire.get("/readyz")
            if ready.status == 503 and "retry-after" not in ready.headers:
                wrong.append("/readyz says 503, and not when to try again")
        if cut and number == len(plan) - 1:
            os.killpg(server.process.pid, signal.SIGKILL)
            break
        at.control["full_from"] = 0
        before = len(seen.acknowledged)

        def judged(before: int = before) -> bool:
            return len(seen.acknowledged) >= before + MORE

        if not await wait_for("people didn't judge on when there was room", judged):
            break
        ready = await wire.get("/readyz")
        if ready.status != 200:
            await asyncio.sleep(1.1)  # the check of a second ago
            ready = await wire.get("/readyz")
        if ready.status != 200:
            wrong.append(f"/readyz says {ready.status} when there is room: {ready.body!r}")
    over = True
    await people
    wire.close()
    wrong += [each for each in seen.odd if not each.startswith("503 ")]
    wrong += [each for each in seen.odd if each.startswith("503 ") and not _explained(each)][:2]
    acknowledged = [[*key, outcome] for key, outcome in seen.acknowledged.items()]
    return {"times": times, "wrong": wrong, "acknowledged": acknowledged}


def _explained(reply: str) -> bool:
    return any(words in reply for words in REMEDIES)


# ---- a program that judges


def judge(at: Scene) -> tuple[int, list[str]]:
    """Judge through the campaign; whoever meets an error tries again."""
    seed = at.rng.random()
    at.control["full_kind"], at.control["full_from"] = at.rng.choice(KINDS), at.rng.randint(1, 400)

    def work(pipe: int) -> None:
        at.control.watch(at.place)
        over = threading.Event()
        count = [0]

        def judge_on(campaign: Campaign, person: str) -> None:
            rng = random.Random(f"{seed} {person}")
            while not over.is_set():
                try:
                    question = campaign.next_question(person)
                    if question is None:
                        return
                    outcome = rng.choice(OUTCOMES)
                    campaign.answer(question.id, person, Answer(outcome))
                except DuelpoolError as error:
                    if not _explained(str(error)):
                        os.write(pipe, f"odd {error}\n".encode())
                    time.sleep(0.01)
                    continue
                os.write(pipe, f"{question.id} {question.attempt} {outcome}\n".encode())
                count[0] += 1

        store = _open_patiently(at.place / STORE, at)
        with store:
            campaign = Campaign.open(store, "cut")
            threads = [threading.Thread(target=judge_on, args=(campaign, f"p{n}")) for n in range(PEOPLE)]
            for thread in threads:
                thread.start()
            end = time.monotonic() + PATIENCE
            while at.control["refused"] < REFUSED and time.monotonic() < end:
                time.sleep(0.005)
            at.control["full_from"] = 0
            before = count[0]
            while count[0] < before + MORE and any(each.is_alive() for each in threads):
                if time.monotonic() > end:
                    os.write(pipe, b"odd nobody judged on\n")
                    break
                time.sleep(0.005)
            over.set()
            for thread in threads:
                thread.join()

    code, told = in_child(work, group=True)
    wrong = [] if code == 0 else [f"the process that judges ended with {code}: {told.decode()[-600:]}"]
    for line in told.decode().splitlines():
        if line.startswith("odd "):
            wrong.append(line)
            continue
        with suppress(ValueError):
            question, attempt, outcome = line.split()
            at.acknowledged[question, int(attempt)] = outcome
    return 1, wrong


def _open_patiently(path: Path, at: Scene) -> Any:
    while True:
        try:
            return open_store(path)
        except DuelpoolError:
            if at.control["refused"] >= REFUSED:
                at.control["full_from"] = 0


# ---- commands


def run(at: Scene, name: str) -> tuple[int, list[str]]:
    """Run a command whose disk is full from some change on, and again when there is room."""
    command = COMMANDS[name]
    (at.place / "a.run").write_text(RUN, encoding="utf-8")
    at.control["full_kind"] = at.rng.choice(KINDS)
    at.control["full_from"] = at.rng.randint(1, changes_of(name))
    code, told = run_command(at.place, command.words, at.control)
    wrong = []
    if code not in (0, 2) or "Traceback" in told:
        wrong.append(f"{name} ended with {code}: {told[-600:]}")
    elif code == 2 and not _explained(" ".join(told.split())):
        wrong.append(f"{name} gave no remedy: {told[-300:]}")
    output = at.place / command.output
    if code == 2 and command.output != STORE and name != "pool" and content(output) is not None:
        wrong.append(f"{name} failed, and left {command.output}")
    left = [each.name for each in at.place.iterdir() if each.name.startswith(".")]
    wrong += [f"{name} ended with {code}, and left {left}"] if left else []
    at.control["full_from"] = 0
    if code == 2:
        again, told = run_command(at.place, command.words, None)
        if again not in command.again or "Traceback" in told:
            wrong.append(f"{name} ended with {again} when there was room: {told[-300:]}")
    return 1, wrong


# ---- rounds


def one_round(seed: int, kind: str | None = None) -> Round:
    """Fill the disk in the way that the seed names."""
    rng = random.Random(f"full {seed}")
    if kind is None:
        kind = rng.choices(("judge", "serve", *COMMANDS), (20, 8, *(2 for _ in COMMANDS)))[0]
    with scene(rng) as at:
        done, wrong = {"judge": judge, "serve": serve}[kind](at) if kind not in COMMANDS else run(at, kind)
        if not at.kept.exists():
            shutil.copytree(at.place, at.kept)
        wrong += check(at)
        figures = {
            "acknowledged": len(at.acknowledged),
            "refused calls": at.control["refused"],
            f"full disks of {'commands' if kind in COMMANDS else kind}": done,
        }
    return Round(done, figures, [f"{kind}: {each}" for each in wrong])


def main(given: list[str] | None = None) -> int:
    """Run in a process that has the library; return how many rounds were wrong."""
    work = partial(run_rounds, "full-disk", one_round, given)
    return in_process_with_library("full-disk", __spec__.name, work, given)


if __name__ == "__main__":
    sys.exit(main())
