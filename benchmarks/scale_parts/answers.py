"""Answers a second that a server of four processes holds, the simulated people on the same cores.

A rate depends on what else runs on the machine; the CPU milliseconds of an answer hardly do. So the rates rise until
one isn't held twice, and every try is told. An answer is one request: it stores the answer and brings the next
question. The server alone: a few people answer without thinking, by requests whose heads are prepared; what they cost
is measured, and taken off the time. Beside it stands what the CPU time of the server's processes (and of PostgreSQL's)
allows: it hardly depends on other work on the machine.

People arrive over a quarter of a minute, in which nothing is counted; then those whose assignment is complete are
followed by new ones, so people keep arriving. At the end those in the middle of an assignment press "stop". What the
same people get who all arrive within a second is told apart.
"""

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from benchmarks.scale_parts.measuring import Row
from duelpool.store import open_store
from stress_http import SUBMIT_MS, Scene, Trial, scene
from support.simulated_visitors import Seen, visit_all
from support.stores import BACK_ENDS

BARS = {"sqlite": 150.0, "postgresql": 120.0}
GOAL, GOAL_ALONE = 300.0, 1000.0
SECONDS = 30.0
MEDIAN = 1.0  # seconds to think
ARRIVING = 15.0  # seconds: about an assignment's
PEOPLE = 101
MORE = 1.2  # times as many people at each step
STEPS = 10
CORES = 2
EAGER = 16  # people who answer without thinking


@dataclass
class Spent:
    """CPU seconds so far: of the server's processes, of PostgreSQL's connections, of the people."""

    server: float
    database: float
    people: float

    @classmethod
    def of(cls, at: Scene) -> "Spent":
        """Return what a server at work has cost."""
        return cls(at.server.cpu_seconds(), _of_database(at.target), time.process_time())

    def since(self, before: "Spent") -> "Spent":
        """Return what was spent since then."""
        return Spent(
            self.server - before.server, self.database - before.database, self.people - before.people
        )


def _of_database(target: str) -> float:
    """Return the CPU seconds of the processes of PostgreSQL that serve a database, 0 for SQLite."""
    if "://" not in target:
        return 0.0
    query = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    with open_store(target, writable=False) as store:
        pids = store.read(lambda connection: list(connection.execute(text(query)).scalars()))
    spent = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        spent += int(fields[11]) + int(fields[12])
    return spent / os.sysconf("SC_CLK_TCK")


@dataclass
class Step:
    """One load: how many people, what they saw, and what it cost."""

    people: int
    seen: Seen
    spent: Spent

    @property
    def answers(self) -> int:
        """How many answers were acknowledged."""
        return len(self.seen.acknowledged)

    @property
    def allowed(self) -> float:
        """Answers a second that the CPU time of the server and its database allows on all cores."""
        return CORES * self.answers / max(1e-9, self.spent.server + self.spent.database)

    @property
    def alone(self) -> float:
        """Answers a second of a busy server, without the time that the people take on the cores."""
        return self.answers / max(1e-9, self.seen.seconds - self.spent.people / CORES)


def measure(size: float) -> list[Row]:
    """Return the rows of both back ends."""
    return [row for back_end in BACK_ENDS for row in _rows(back_end, size)]


def _rows(back_end: str, size: float) -> list[Row]:
    with scene(Trial(back_end)) as at:
        steps = _climb(at, max(5.0, SECONDS * size))
        held = [step for step in steps if step.seen.percentile(0.99) < SUBMIT_MS]
        best = max(held or steps[:1], key=lambda step: step.seen.rate)
        herd = _step(at, best.people, max(5.0, SECONDS * size), thinking=MEDIAN, seed=STEPS + 1)
        eager = _step(at, EAGER, max(5.0, SECONDS * size), thinking=0.0, seed=STEPS)
        wrong = at.judged(_whole([*steps, herd, eager]))
    if wrong:
        raise SystemExit("\n".join(wrong))
    costs = ", ".join(
        f"{step.people}: {step.seen.rate:.0f} a second, p99 {step.seen.percentile(0.99):.0f} ms"
        for step in steps
    )
    each = 1000 / max(1, best.answers)
    spent = best.spent
    rows = [
        Row(
            f"answers held, {back_end}",
            best.seen.rate if held else 0.0,
            "a second",
            BARS[back_end],
            GOAL,
            note=costs,
        ),
        Row(
            f"99 % of answers, {best.people} people arriving at once, {back_end}",
            herd.seen.percentile(0.99),
            "ms",
            note=f"{herd.seen.rate:.0f} a second",
        ),
        Row(f"server, for an answer, {back_end}", spent.server * each, "CPU ms"),
        Row(f"people, for an answer, {back_end}", spent.people * each, "CPU ms"),
        Row(
            f"server alone, {back_end}",
            eager.alone,
            "a second",
            goal=GOAL_ALONE,
            note=f"its CPU time allows {eager.allowed:.0f}; "
            f"{1000 * eager.spent.people / max(1, eager.answers):.2f} CPU ms of the people taken off",
        ),
    ]
    if spent.database:
        rows.insert(2, Row(f"PostgreSQL, for an answer, {back_end}", spent.database * each, "CPU ms"))
    return rows


def _climb(at: Scene, seconds: float) -> list[Step]:
    """Let more and more people judge, until answers take too long twice: once may be other work on the machine."""
    steps: list[Step] = []
    people, again = PEOPLE, False
    for number in range(STEPS):
        arriving = ARRIVING * min(1.0, seconds / SECONDS)
        steps.append(_step(at, people, seconds, thinking=MEDIAN, seed=number, arriving=arriving))
        if steps[-1].seen.percentile(0.99) < SUBMIT_MS:
            people, again = round(people * MORE), False
        elif again:
            break
        else:
            again = True
    return steps


def _step(
    at: Scene, people: int, seconds: float, *, thinking: float, seed: int, arriving: float = 0.0
) -> Step:
    before = Spent.of(at)
    seen = asyncio.run(
        visit_all(
            at.server.port, at.doors, people, seconds, thinking, seed=seed, arriving=arriving, stopping=True
        )
    )
    return Step(people, seen, Spent.of(at).since(before))


def _whole(steps: list[Step]) -> Seen:
    whole = Seen()
    for step in steps:
        whole += step.seen
    return whole
