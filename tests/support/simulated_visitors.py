"""Simulated assessors over HTTP: they come by a link, think, answer, click twice, take back, and go.

What a server acknowledged is kept with its question and attempt; afterwards the store must hold all of it.
"""

import asyncio
import contextlib
import math
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from duelpool.campaign import Campaign, Settings
from duelpool.files import Run
from duelpool.files.packed import pack_run
from duelpool.records import Passage, Pool, Topic
from duelpool.store import Store, schema
from duelpool.store.holdings import PackedRun, TestPair
from duelpool.testing.stores import audit
from duelpool.web.access.links import link_keys
from support.plainhttp import Dropped, Reply, Wire

MEDIAN = 2.87  # seconds to think
SPREAD = 0.5  # of their logarithm
CAP = 3
WORDS = (
    "the",
    "answer",
    "to",
    "this",
    "question",
    "is",
    "told",
    "in",
    "a",
    "passage",
    "that",
    "people",
    "read",
)


def set_up(
    store: Store,
    name: str,
    judges: str,
    *,
    topics: int = 60,
    items: int = 40,
    systems: int = 0,
    **settings: Any,
) -> Campaign:
    """Make a campaign of texts as long as passages are; the number in a text says how good it is.

    With `systems`, so many of them compete, each by an item of its own in every topic.
    """
    rng = random.Random(name)
    pools = [
        Pool(f"{name}-{at}", tuple(f"{name}-{at}-{n:03d}" for n in range(items))) for at in range(topics)
    ]

    def text(number: int) -> str:
        return f"{number:03d} " + " ".join(rng.choices(WORDS, k=90))

    known = [
        TestPair(f"k{at}", pools[at % topics].topic, pools[at % topics].items[0], f"off-{at}")
        for at in range(60)
    ]
    passages = [Passage(item, text(at)) for pool in pools for at, item in enumerate(pool.items)]
    passages += [Passage(pair.worse, text(999)) for pair in known]
    return Campaign.create(
        store,
        name,
        Settings(
            **{
                **(
                    {"goal": "systems", "strategy": "round-robin:votes=2"}
                    if systems
                    else {"strategy": "prefbest"}
                ),
                "judges": judges,
                "cap": CAP,
                "steps": (),
                "visitors_per_address": 0,  # all of them come from here
                "feedback": False,
                "lease_seconds": 60.0,
                **settings,
            }
        ),
        topics=[Topic(pool.topic, f"What is {pool.topic}?") for pool in pools],
        pools=pools,
        passages=passages,
        test_pairs=known,
        runs=[
            _run_of(f"system-{at}", {pool.topic: pool.items[at] for pool in pools}) for at in range(systems)
        ],
    )


def _run_of(system: str, answers: dict[str, str]) -> PackedRun:
    run = Run.from_rankings(system, {topic: [(item, 1.0)] for topic, item in answers.items()})
    return PackedRun(system, len(answers), pack_run(run))


@dataclass
class Seen:
    """What the visitors measured."""

    submits: list[float] = field(default_factory=list)  # seconds from click to acknowledgement
    others: list[float] = field(default_factory=list)  # of every other request
    statuses: Counter[int] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    acknowledged: dict[tuple[str, int], str] = field(default_factory=dict)
    dropped: int = 0
    odd: list[str] = field(default_factory=list)  # replies that must not occur
    seconds: float = 0.0
    longest: float = 0.0  # seconds until any reply
    early: int = 0  # answers while people still arrived: they are acknowledged, and not among the submits

    def __iadd__(self, other: "Seen") -> "Seen":
        self.submits += other.submits
        self.others += other.others
        self.statuses += other.statuses
        self.states += other.states
        self.acknowledged |= other.acknowledged
        self.dropped += other.dropped
        self.odd += other.odd
        self.seconds += other.seconds
        self.longest = max(self.longest, other.longest)
        self.early += other.early
        return self

    @property
    def rate(self) -> float:
        return (len(self.acknowledged) - self.early) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        """Return the time within which this share of the submits was acknowledged, in milliseconds."""
        if not self.submits:
            return math.nan
        ordered = sorted(self.submits)
        return 1000 * ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]

    @property
    def failures(self) -> int:
        """How many replies were 5xx."""
        return sum(count for status, count in self.statuses.items() if status >= 500)


class Assessor:
    """A sequence of assessors on one connection: when one is done, the next begins."""

    def __init__(
        self, port: int, campaign: str, key: str, seen: Seen, name: str, median: float, rng: random.Random
    ) -> None:
        self.wire = Wire(port)
        self.base = f"/j/{campaign}"
        self.key, self.seen, self.name, self.median, self.rng = key, seen, name, median, rng
        self.arrives = rng.random() * median  # seconds from now
        self.counts_from = 0.0  # answers before this time are early
        self.stops = False  # by the page's button when the time is over; otherwise it just leaves
        self.number = 0
        self.held: dict[str, dict[str, Any]] = {}  # questions with their texts, as the page keeps them

    async def judge_on(self, until: float) -> None:
        """Judge until the time is over."""
        try:
            await self._judge_on(until)
            if self.stops and self.wire.cookies:
                await self._call("POST", f"{self.base}/stop", {}, time.monotonic())
        finally:  # it may be called away while it thinks
            self.wire.close()

    async def _judge_on(self, until: float) -> None:
        await asyncio.sleep(self.arrives)
        work: dict[str, Any] | None = None
        while time.monotonic() < until:
            if work is None:
                work = await self._come_in(until)
                if work is None:
                    continue
            self.seen.states[work["state"]] += 1
            if work["state"] == "judging" and work["questions"]:
                work = await self._one(work["questions"][0], until)
            elif work["state"] in {"complete", "excluded", "ended"}:
                self.wire.cookies.clear()
                work = None
            else:
                await asyncio.sleep(min(2.0, self.median))
                work = await self._look(until)

    async def _come_in(self, until: float) -> dict[str, Any] | None:
        if not self.wire.cookies:
            self.number += 1
            query = f"?key={self.key}&worker={self.name}-{self.number}"
            if await self._call("GET", f"{self.base}{query}", None, until) is None:
                return None
        return await self._look(until)

    async def _look(self, until: float) -> dict[str, Any] | None:
        got = await self._call("GET", f"{self.base}/work", None, until)
        return self._kept(got.json()) if got is not None and got.status == 200 else None

    async def _one(self, question: dict[str, Any], until: float) -> dict[str, Any] | None:
        """Think, answer one question, and return where that leads."""
        await asyncio.sleep(self.median * math.exp(self.rng.gauss(0.0, SPREAD)))
        if time.monotonic() > until:
            return None
        answer = {
            "question": question["id"],
            "attempt": question["attempt"],
            "outcome": self._choice(question),
            "have": [
                f"{each['id']}:{each['attempt']}" for each in self.held.values() if each is not question
            ],
        }
        began = time.perf_counter()
        got = await self._call("POST", f"{self.base}/answer", answer, until)
        if got is None:
            return None
        if got.status != 200:
            return None  # for example too late: ask for the current state
        if time.monotonic() >= self.counts_from:
            self.seen.submits.append(time.perf_counter() - began)
        else:
            self.seen.early += 1
        work = got.json()
        self._note(answer, work)
        dice = self.rng.random()
        if dice < 0.02:  # a double click
            again = await self._call("POST", f"{self.base}/answer", answer, until)
            if again is not None and again.status == 200:
                self._note(answer, again.json())
        elif dice < 0.03:
            back = await self._call("POST", f"{self.base}/undo", {"question": question["id"]}, until)
            return self._kept(back.json()) if back is not None and back.status == 200 else None
        return self._kept(work)

    def _kept(self, work: dict[str, Any]) -> dict[str, Any]:
        """Keep the questions with their texts: the server doesn't send again what the page has."""
        questions = [{**self.held.get(each["id"], {}), **each} for each in work["questions"]]
        self.held = {each["id"]: each for each in questions}
        return {**work, "questions": questions}

    def _choice(self, question: dict[str, Any]) -> str:
        """Return the better side mostly, and always where the worse one is off topic."""
        left, right = question["left"]["text"][:3], question["right"]["text"][:3]
        dice = self.rng.random()
        if "999" not in (left, right):
            if dice < 0.03:
                return "cannot-judge"
            if dice < 0.15:
                left, right = right, left
        return "left" if left < right else "right"

    def _note(self, answer: dict[str, Any], work: dict[str, Any]) -> None:
        saved = work["saved"]
        key = (answer["question"], answer["attempt"])
        if saved["outcome"] != answer["outcome"]:
            self.seen.odd.append(f"{key} was {answer['outcome']}, and {saved['outcome']} is saved")
        self.seen.acknowledged[key] = answer["outcome"]

    async def _call(self, method: str, path: str, values: Any, until: float) -> Reply | None:
        """Send, and send again while connections break; None when the time is over."""
        while True:
            began = time.perf_counter()
            try:
                if method == "GET":
                    got = await self.wire.get(path)
                else:
                    got = await self.wire.post(path, values)
            except Dropped:
                self.seen.dropped += 1
                if time.monotonic() > until + 30:
                    return None
                await asyncio.sleep(0.1 + 0.2 * self.rng.random())
                continue
            self.seen.statuses[got.status] += 1
            self.seen.longest = max(self.seen.longest, time.perf_counter() - began)
            if not path.endswith("/answer"):
                self.seen.others.append(time.perf_counter() - began)
            if got.status >= 500:
                self.seen.odd.append(f"{got.status} {method} {path}: {got.body[:300]!r}")
            return got


async def visit_all(
    port: int,
    doors: list[tuple[str, str]],
    people: int,
    seconds: float,
    median: float,
    *,
    seed: int = 1,
    arriving: float = 0.0,
    stopping: bool = False,
    until: Callable[[], bool] | None = None,
    seen: Seen | None = None,
) -> Seen:
    """Let assessors judge concurrently, spread over the campaigns, for a time or `until`; return what they measured.

    They all arrive within the time that they think about a pair, or evenly over the seconds of `arriving`; what is
    answered in these comes on top of the time and isn't counted. With `stopping`, those who are in the middle of an
    assignment when the time is over stop by the page's button; otherwise their questions are leased until they expire.
    """
    seen = Seen() if seen is None else seen
    began = time.monotonic() + arriving
    at_work = []
    for at in range(people):
        campaign, key = doors[at % len(doors)]
        rng = random.Random(f"{seed} {at}")
        one = Assessor(port, campaign, key, seen, f"w{seed}-{at}", median, rng)
        if arriving:
            one.arrives, one.counts_from = arriving * at / people, began
        one.stops = stopping
        at_work.append(asyncio.create_task(one.judge_on(began + seconds)))
    while until is not None and not until() and time.monotonic() < began + seconds:
        await asyncio.sleep(0.1)
    if until is not None:
        for task in at_work:
            task.cancel()
    await asyncio.gather(*at_work, return_exceptions=until is not None)
    seen.seconds = min(
        seconds, time.monotonic() - began
    )  # an assessor who is still thinking at the end doesn't answer
    await asyncio.sleep(0.1)  # sockets close on the loop's next rounds
    return seen


def doors_of(store: Store, campaigns: list[Campaign]) -> list[tuple[str, str]]:
    """Return each campaign's id with an open key."""
    keys = link_keys(store)
    return [(each.id, keys.key(each.id, "open", time.time())) for each in campaigns]


def verdict(store: Store, campaigns: list[Campaign], seen: Seen) -> list[str]:
    """Return the contradictions between the store and the visitors, as sentences."""
    wrong = list(seen.odd[:5])
    if seen.failures:
        wrong.append(f"{seen.failures} replies were 5xx")

    def stored_outcomes(connection: Connection) -> dict[tuple[str, int], str]:
        columns = schema.log.c
        query = select(columns.question, columns.attempt, columns.outcome).where(columns.event == "judgment")
        return {(row[0], row[1]): row[2] for row in connection.execute(query) if row[0]}

    stored = store.read(stored_outcomes)
    lost = [key for key, outcome in seen.acknowledged.items() if stored.get(key) != outcome]
    if lost:
        wrong.append(f"{len(lost)} acknowledged judgments are not there, such as {lost[0]}")
    for each in campaigns:
        wrong += audit(store, each.id, CAP)
    if store.read(lambda connection: connection.dialect.name) == "sqlite":
        check = store.read(lambda connection: connection.exec_driver_sql("pragma integrity_check").scalar())
        wrong += [] if check == "ok" else [f"integrity check: {check}"]
    return wrong


async def ten_at_once(port: int, campaign: str, key: str) -> list[str]:
    """Send one answer ten times concurrently, then a different one; return what is wrong with the replies."""
    wires = [Wire(port) for _ in range(10)]
    first = wires[0]
    await first.get(f"/j/{campaign}?key={key}&worker=ten-{time.time_ns()}")
    work = (await first.get(f"/j/{campaign}/work")).json()
    question = work["questions"][0]
    for wire in wires:
        wire.cookies = first.cookies
    answer = {"question": question["id"], "attempt": question["attempt"], "outcome": "left"}
    got = await asyncio.gather(*(wire.post(f"/j/{campaign}/answer", answer) for wire in wires))
    wrong = [f"one of ten replies was {each.status}" for each in got if each.status != 200]
    saved = [each.json().get("saved") for each in got]
    first_ones = sum(not each["repeated"] for each in saved if each)
    if first_ones != 1:
        wrong.append(f"{first_ones} of ten equal answers say that they were the first")
    if len({str({**each, "repeated": None}) for each in saved if each}) != 1:
        wrong.append("ten equal answers got different replies")
    other = await first.post(f"/j/{campaign}/answer", {**answer, "outcome": "right"})
    if other.status != 409:
        wrong.append(f"another choice got {other.status}, not 409")
    for wire in wires:
        with contextlib.suppress(OSError):
            wire.close()
    return wrong
