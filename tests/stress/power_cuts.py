"""Power cuts: answers that were acknowledged, and files that a command has written, are there afterwards.

python tests/stress_all.py --part power-cuts --count 50

A process judges through the campaign, a command writes a file, or a server answers people over HTTP, all of them with
`disk.c`. At a random change the process is killed, what wasn't synced is lost in part or in whole, and what is left is
opened. Every 50th round leaves syncing out on purpose, and must lose something: or this trial can't see a loss.
"""

import asyncio
import atexit
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from duelpool.campaign import Campaign
from duelpool.cli import app
from duelpool.errors import DuelpoolError
from duelpool.records import Answer, Outcome
from duelpool.store import database, open_store, schema
from duelpool.store.sqlite import connecting
from duelpool.testing.stores import audit
from stress.disk import Control, Disk, after_the_cut, is_loaded, library, unavailable
from stress.results import Round, run_rounds
from support.serving import begin
from support.simulated_visitors import CAP, Seen, doors_of, set_up, visit_all

PEOPLE = 4
TOPICS, ITEMS = 6, 12
OUTCOMES = (Outcome.LEFT, Outcome.RIGHT)
STORE, COPY, ENTRIES = "campaign.db", "copy.db", "entries.jsonl"
PLANTED_EVERY = 50  # rounds
PLANTED_TRIES = 40
Key = tuple[str, int]


# ---- children: this process has no threads and no open stores, so that it can be copied


def in_child(work: Callable[[int], None], *, group: bool = False) -> tuple[int, bytes]:
    """Run work in a copy of this process, with a pipe to write to; return its exit code and what it wrote.

    A child that was killed has the signal's number below 0. With `group`, it is a process group of its own.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            if group:
                os.setsid()
            work(writing)
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        except BaseException:
            os.write(writing, f"\n{traceback.format_exc()}".encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), told


def answer_of(work: Callable[[], Any]) -> Any:
    """Return what work returns in a copy of this process."""
    code, told = in_child(lambda pipe: _tell(pipe, json.dumps(work()).encode()))
    if code != 0:
        raise RuntimeError(told.decode()[-2000:])
    return json.loads(told)


def _tell(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


# ---- stores to begin with


@cache
def templates() -> tuple[Path, ...]:
    """Return folders with a store: a new one, and one whose write-ahead log is nearly long enough to be copied back."""
    folder = Path(tempfile.mkdtemp(prefix="stress-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = folder / "new"
    answer_of(partial(_make, made))
    for name, pages in (("short", 300), ("long", 960)):
        answer_of(partial(_fill, made, folder / name, pages))
    return made, folder / "short", folder / "long"


def _make(place: Path) -> None:
    place.mkdir()
    with open_store(place / STORE, create=True) as store:
        campaign = set_up(store, "cut", "dedicated", strategy="allpairs", topics=TOPICS, items=ITEMS)
        for at in range(PEOPLE):
            campaign.enrol(f"p{at}", "dedicated")
        imported = set_up(store, "imported", "dedicated", strategy="allpairs", topics=2, items=ITEMS)
        topics = list(imported.live.heads())
    rng = random.Random(1)
    with (place / ENTRIES).open("w", encoding="utf-8") as out:
        for at in range(900):
            topic = topics[at % len(topics)]
            left, right = (f"{topic}-{number:03d}" for number in rng.sample(range(ITEMS), 2))
            line = {"event": "judgment", "topic": topic, "left": left, "right": right, "outcome": "left"}
            out.write(json.dumps({**line, "assessor": f"a{at % 30}", "kind": "preference"}) + "\n")


def _fill(source: Path, place: Path, pages: int) -> None:
    """Judge until the write-ahead log has so many pages, and copy the files as they are then."""
    work = place.with_name(f"{place.name}-work")
    shutil.copytree(source, work)
    with open_store(work / STORE) as store:
        campaign = Campaign.open(store, "cut")
        log = work / f"{STORE}-wal"
        at = 0
        while not log.exists() or log.stat().st_size < pages * 4120:
            question = campaign.next_question(f"p{at % PEOPLE}")
            assert question is not None
            campaign.answer(question.id, question.assessor, Answer(Outcome.LEFT))
            at += 1
        shutil.copytree(work, place, ignore=shutil.ignore_patterns("*-shm"))


# ---- what is cut


@dataclass
class Scene:
    """A folder whose changes are noted, with a store in it."""

    place: Path
    folder: Path
    control: Control
    rng: random.Random
    disk: Disk
    acknowledged: dict[Key, str] = field(default_factory=dict)
    before: dict[Key, str] = field(default_factory=dict)

    @property
    def kept(self) -> Path:
        """What is left after the cut."""
        return self.folder / "kept"


@contextmanager
def scene(rng: random.Random) -> Iterator[Scene]:
    """Make a folder with a store; its changes are noted by children that `watch` it."""
    source = rng.choice(templates())
    with tempfile.TemporaryDirectory(prefix="stress-") as name:
        folder = Path(name)
        place = folder / "place"
        shutil.copytree(source, place)
        control = Control(folder)
        try:
            yield Scene(place, folder, control, rng, Disk(place))
        finally:
            control.close()


def judge(at: Scene, *, fault: bool) -> tuple[int, list[str]]:
    """Judge through the campaign in some threads, until the power is cut."""
    small_log = at.rng.random() < 0.3
    seed = at.rng.random()
    at.control["cut_at"] = at.rng.randint(1, at.rng.choice((100, 500, 1500)))

    def work(pipe: int) -> None:
        if fault:
            _leave_syncing_out()
        if small_log:  # it is truncated often
            database.LOG_AT_MOST, database.LOG_SECONDS = 100_000, 0.0
        at.control.watch(at.place)
        with open_store(at.place / STORE) as store:
            campaign = Campaign.open(store, "cut")
            threads = [
                threading.Thread(
                    target=_judge_on, args=(campaign, f"p{n}", random.Random(f"{seed} {n}"), pipe)
                )
                for n in range(PEOPLE)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    code, told = in_child(work, group=True)
    wrong = []
    for line in told.splitlines():
        with suppress(ValueError):
            question, attempt, outcome = line.decode().split()
            at.acknowledged[question, int(attempt)] = outcome
    if code not in (0, -signal.SIGKILL):
        wrong.append(f"the process that judges ended with {code}: {told.decode()[-300:]}")
    return code, wrong


def _judge_on(campaign: Campaign, person: str, rng: random.Random, pipe: int) -> None:
    while (question := campaign.next_question(person)) is not None:
        outcome = rng.choice(OUTCOMES)
        campaign.answer(question.id, person, Answer(outcome))
        os.write(pipe, f"{question.id} {question.attempt} {outcome}\n".encode())
        if rng.random() < 0.03:
            campaign.undo(question.id, person)


def _leave_syncing_out() -> None:
    """A fault on purpose: nothing is brought to the disk."""
    connect = connecting.connect_to_write

    def careless(path: Path) -> Any:
        connection = connect(path)
        connection.execute("PRAGMA synchronous=OFF")
        return connection

    vars(database)["connect_to_write"] = careless
    os.fsync = lambda fd: None


def serve(at: Scene) -> tuple[int, list[str]]:
    """Let people judge at a server, until the power is cut."""
    at.acknowledged |= answer_of_server(at)
    return -signal.SIGKILL, []


def doors_into(at: Scene) -> list[tuple[str, str]]:
    """Return the campaign's id with an open key; what that writes is on the disk."""

    def work() -> list[tuple[str, str]]:
        with open_store(at.place / STORE) as store:
            return doors_of(store, [Campaign.open(store, "cut")])

    doors = [(campaign, key) for campaign, key in answer_of(work)]
    at.disk = Disk(at.place)
    return doors


def answer_of_server(at: Scene) -> dict[Key, str]:
    """Run a server with the library and people in a child; return what was acknowledged."""
    workers = at.rng.choice((1, 1, 2))
    early = at.rng.random() < 0.15
    first = at.rng.randint(1, 60 if early else at.rng.choice((1000, 4000)))

    doors = doors_into(at)

    def work() -> list[list[Any]]:
        environment = at.control.environment(Path(os.environ["LD_PRELOAD"]), at.place)
        os.environ.update(environment)
        if early:
            at.control["cut_at"] = first
        server = begin(str(at.place / STORE), at.folder, workers=workers)
        at.control["group"] = server.process.pid
        seen = Seen()
        try:
            if not early:
                server.wait()
                at.control["cut_at"] = at.control["changes"] + first

            def cut() -> bool:
                return server.process.poll() is not None

            asyncio.run(visit_all(server.port, doors, 8, 60.0, 0.02, until=cut, seen=seen))
        finally:
            server.kill() if server.process.poll() is None else server.process.wait()
        wrong = [each for each in seen.odd if "503" not in each]
        if wrong:
            raise RuntimeError(wrong[0])
        return [[*key, outcome] for key, outcome in seen.acknowledged.items()]

    acknowledged = {(question, attempt): outcome for question, attempt, outcome in answer_of(work)}
    with suppress(ProcessLookupError):
        os.killpg(at.control["group"], signal.SIGKILL)
    return acknowledged


# ---- commands

RUN = "".join(f"q{topic} Q0 d{at} {at + 1} {30 - at} run\n" for topic in range(3) for at in range(30))


@dataclass(frozen=True)
class Command:
    """A command that writes; `output` is the file or folder that it makes, or the store."""

    words: tuple[str, ...]
    output: str = STORE
    again: tuple[int, ...] = (0,)  # the exit codes that the same command may end with after the cut


COMMANDS = {
    "jsonl": Command(("export", STORE, "--campaign", "cut", "--as", "jsonl", "-o", "out.jsonl"), "out.jsonl"),
    "csv": Command(("export", STORE, "--campaign", "cut", "--as", "csv", "-o", "out.csv"), "out.csv"),
    "packed": Command(
        ("export", STORE, "--campaign", "cut", "--as", "jsonl", "-o", "o.jsonl.gz"), "o.jsonl.gz"
    ),
    "bundle": Command(("export", STORE, "--campaign", "cut", "--as", "bundle", "-o", "b"), "b", (0, 2)),
    "zip": Command(("export", STORE, "--campaign", "cut", "--as", "bundle", "-o", "b.zip"), "b.zip"),
    "report": Command(("report", STORE, "--campaign", "cut", "-o", "report.html"), "report.html"),
    "backup": Command(("backup", STORE, "-o", COPY), COPY, (0, 2)),
    "restore": Command(("restore", STORE, "-o", "restored.db"), "restored.db", (0, 2)),
    "pool": Command(("pool", "a.run", "-o", "new.db"), "new.db", (0, 2)),
    "import": Command(("import", STORE, ENTRIES, "--campaign", "imported"), again=(0, 2)),
    "simulated": Command(("judge", "simulated", STORE, "--campaign", "cut", "--limit", "20")),
}


def run_command(
    place: Path, words: Sequence[str], control: Control | None, fault: bool = False
) -> tuple[int, str]:
    """Run a command of the command line in a copy of this process; return its exit code and what it wrote."""

    def work(pipe: int) -> None:
        for stream in (1, 2):
            os.dup2(pipe, stream)
        os.chdir(place)
        if fault:
            _leave_syncing_out()
        if control is not None:
            control.watch(place)
        app(list(words), prog_name="duelpool")

    code, told = in_child(work, group=True)
    return code, told.decode(errors="replace")


def content(path: Path) -> Any:
    """Return what is under a name: a file's bytes, a folder's files, or None."""
    if path.is_dir():
        return {each.name: content(each) for each in path.iterdir()}
    return path.read_bytes() if path.exists() else None


def cut_command(at: Scene, name: str, *, fault: bool) -> tuple[int, list[str]]:
    """Cut the power while a command writes, or right after it; return its exit code and what is wrong."""
    command = COMMANDS[name]
    (at.place / "a.run").write_text(RUN, encoding="utf-8")
    old = None
    if command.output not in (STORE, COPY, "restored.db", "new.db", "b") and at.rng.random() < 0.5:
        old = b"what was there before\n"
        (at.place / command.output).write_bytes(old)
    at.disk = Disk(at.place)
    at.control["cut_at"] = at.rng.choice((0, at.rng.randint(1, changes_of(name))))
    code, told = run_command(at.place, command.words, at.control, fault)
    if code not in (0, -signal.SIGKILL):
        return code, [f"{name} ended with {code}: {told[-300:]}"]
    written = content(at.place / command.output)
    after_the_cut(at.disk, at.control, at.kept, at.rng)
    wrong = []
    if command.output.endswith(".db"):
        wrong += _store_problems(at, name, code)
    else:
        found = content(at.kept / command.output)
        if code == 0 and found != written:
            wrong.append(f"{name} was done, and {_described(found, written)}")
        elif found not in (old, written):
            wrong.append(f"{name} was cut off, and {_described(found, written)}")
    code_again, told = run_command(at.kept, command.words, None)
    if code_again not in command.again or "Traceback" in told:
        wrong.append(f"{name} ended with {code_again} after the cut: {told[-300:]}")
    if name == "import" and not wrong:
        count = answer_of(lambda: _imported(at.kept))
        wrong += [] if count == 900 else [f"{count} of 900 lines are there after the import ran again"]
    return code, wrong


def _described(found: Any, written: Any) -> str:
    if isinstance(found, dict) and isinstance(written, dict):
        broken = [name for name in written if found.get(name) != written[name]]
        return f"its folder lacks {broken[:3]}"
    size = None if found is None else len(found)
    return f"its file has {size} bytes instead of {None if written is None else len(written)}"


def _imported(place: Path) -> int:
    with open_store(place / STORE) as store:
        campaign = Campaign.open(store, "imported")
        return sum(len(campaign.judgments(topic)) for topic in campaign.live.heads())


def _store_problems(at: Scene, name: str, code: int) -> list[str]:
    """Return what is wrong with a store that a command has made: it is whole, or wasn't acknowledged."""
    path = at.kept / COMMANDS[name].output
    if path == at.kept / STORE:
        return []
    if not path.exists():
        return [f"{name} was done, and {path.name} is gone"] if code == 0 else []

    def look() -> str:
        try:
            with open_store(path) as store:
                found = store.read(lambda each: each.exec_driver_sql("pragma integrity_check").scalar())
                rows = store.read(lambda each: each.execute(select(schema.campaign.c.id)).all())
                return "" if found == "ok" and rows else f"{path.name}: {found}, {len(rows)} campaigns"
        except DuelpoolError as error:
            return str(error)

    problem = answer_of(look)
    complete = code == 0 or name in ("backup", "restore")  # those appear when they are complete
    return [f"{name} ended with {code}, and then: {problem}"] if problem and complete else []


@cache
def changes_of(name: str) -> int:
    """Return about how many changes a command makes."""
    with scene(random.Random(1)) as at:
        (at.place / "a.run").write_text(RUN, encoding="utf-8")
        code, told = run_command(at.place, COMMANDS[name].words, at.control)
        if code != 0:
            raise RuntimeError(f"{name} ended with {code}: {told[-2000:]}")
        return at.control["changes"] + 2


# ---- what is left


def check(at: Scene) -> list[str]:
    """Open the store on what is left; return what is wrong with it."""
    wanted = [[*key, outcome] for key, outcome in at.acknowledged.items()]
    return list(answer_of(lambda: _check(at.kept / STORE, wanted)))


def _check(path: Path, acknowledged: list[list[Any]]) -> list[str]:
    wrong = []
    try:
        with open_store(path) as store:
            stored = store.read(_stored)
            lost = [each for each in acknowledged if stored.get((each[0], each[1])) != each[2]]
            if lost:
                wrong.append(f"{len(lost)} of {len(acknowledged)} acknowledged answers are lost")
            found = store.read(lambda each: each.exec_driver_sql("pragma integrity_check").scalar())
            wrong += [] if found == "ok" else [f"integrity check: {found}"]
            campaign = Campaign.open(store, "cut")
            wrong += audit(store, campaign.id, CAP)
            for at in range(PEOPLE):  # people judge on
                question = campaign.next_question(f"p{at}")
                if question is not None:
                    campaign.answer(question.id, question.assessor, Answer(Outcome.LEFT))
            wrong += audit(store, campaign.id, CAP)
    except DuelpoolError as error:
        wrong.append(f"the store can't be opened: {error}")
    return wrong


def _stored(connection: Connection) -> dict[Key, str]:
    columns = schema.log.c
    query = select(columns.question, columns.attempt, columns.outcome).where(columns.event == "judgment")
    return {(row[0], row[1]): row[2] for row in connection.execute(query) if row[0]}


def one_round(seed: int, *, fault: bool = False, kind: str | None = None) -> Round:
    """Cut the power once, in the way that the seed names."""
    rng = random.Random(f"power {seed}")
    if kind is None:
        kind = rng.choices(("judge", "serve", *COMMANDS), (140, 8, *(3 for _ in COMMANDS)))[0]
    figures = {}
    with scene(rng) as at:
        if kind == "judge":
            _, wrong = judge(at, fault=fault)
            after_the_cut(at.disk, at.control, at.kept, rng)
        elif kind == "serve":
            _, wrong = serve(at)
            after_the_cut(at.disk, at.control, at.kept, rng)
        else:
            _, wrong = cut_command(at, kind, fault=fault)
        if at.kept.exists():
            wrong += check(at)
        figures = {
            "acknowledged": len(at.acknowledged),
            "changes": at.control["changes"],
            f"cuts of {'commands' if kind in COMMANDS else kind}": 1,
        }
    return Round(1, figures, [f"{kind}: {each}" for each in wrong])


def planted(seed: int) -> tuple[int, list[str]]:
    """Leave syncing out, and see that the trial finds a loss: of answers, and of a file."""
    seen = 0
    wrong = []
    for kind, sign in (("judge", "acknowledged answers are lost"), ("jsonl", "was done")):
        for at in range(PLANTED_TRIES):
            result = one_round(seed * 1000 + at, fault=True, kind=kind)
            if any(sign in each for each in result.wrong):
                seen += 1
                break
        else:
            wrong.append(
                f"{kind} without a sync lost nothing in {PLANTED_TRIES} cuts: the trial sees no loss"
            )
    return seen, wrong


def with_control(seed: int) -> Round:
    """Cut the power once; every so often, first show that a missing sync is found."""
    result = one_round(seed)
    if seed % PLANTED_EVERY == 1:
        seen, wrong = planted(seed)
        result.figures = {**result.figures, "planted losses found": seen}
        result.wrong += wrong
    return result


def in_process_with_library(part: str, module: str, work: Callable[[], int], given: list[str] | None) -> int:
    """Run work in a process that has the library: this one, or a new one that runs the module."""
    if reason := unavailable():
        print(f"{part}: left out, for {reason}.")
        return 0
    if is_loaded():
        return work()
    with tempfile.TemporaryDirectory(prefix="stress-") as name:
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
        environment = {
            **os.environ,
            **threads,
            "LD_PRELOAD": str(library(Path(name))),
            "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
        }
        command = [sys.executable, "-m", module, *(sys.argv[1:] if given is None else given)]
        return subprocess.run(command, env=environment, check=False).returncode


def main(given: list[str] | None = None) -> int:
    """Run in a process that has the library; return how many rounds were wrong."""
    work = partial(run_rounds, "power-cuts", with_control, given)
    return in_process_with_library("power-cuts", __spec__.name, work, given)


if __name__ == "__main__":
    sys.exit(main())
