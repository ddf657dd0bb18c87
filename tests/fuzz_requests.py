"""Requests that are nearly right, over every route and by every kind of caller: no 5xx that isn't documented.

python tests/fuzz_requests.py [--count 100000] [--seconds 600] [--store sqlite] [--seed 1] [--only api] [--url]

Each request is right or has a few things wrong with it: path, query, body, upload, headers, method. Requests come in
sequences that carry state, some of them at the same moment. A failure is a 5xx that docs/operation.md doesn't list, a
traceback in the log, no reply within five seconds, JSON that isn't, or a store that contradicts what was acknowledged.
Its requests are kept in a file, as few as show it; `--replay FILE` sends them again. A short form runs with the tests.

In this process by default, which is fast; with `--url`, over a socket to `duelpool serve`, with broken HTTP as well.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support.fuzz_calls import Call, Grammar, opening_calls, smaller
from support.fuzz_recipes import RECIPES
from support.fuzz_world import Reply, Troubles, World, world_of
from support.plainhttp import alone
from support.quick_stores import made_quickly
from support.stores import BACK_ENDS

CALLS_A_WORLD = 4000  # then another store: campaigns end, and people come to an end of their questions
GROUPS = {"api": ("/api/",), "pages": ("/",)}
"""Parts of the routes, by how their paths begin; pages are all others."""
_FRAME = re.compile(r'File "[^"]*/(duelpool/[^"]+)", line (\d+), in (\w+)')
WITHOUT_PROVIDER = ("GET /login/sso", "GET /login/sso/callback")
"""Routes that answer 404 here: the servers of the fuzz have no provider of single sign-on."""


@dataclass
class Failure:
    """What went wrong, and the requests that show it."""

    what: str
    calls: list[list[Call]]
    seed: int
    store: str
    told: str = ""

    def save(self, folder: Path, number: int) -> Path:
        """Write the requests to a file, and return its path."""
        path = folder / f"failure-{self.store}-{self.seed}-{number}.json"
        values = {
            "what": self.what,
            "told": self.told,
            "seed": self.seed,
            "store": self.store,
            "calls": [[each.as_json() for each in group] for group in self.calls],
        }
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values, indent=1), encoding="utf-8")
        return path


@dataclass
class Results:
    """How many requests each route got, and what came back."""

    counts: dict[str, Counter[int]] = field(default_factory=dict)
    callers: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    repeats: Counter[str] = field(default_factory=Counter)
    slow: int = 0
    worlds: int = 0
    acknowledged: int = 0

    @property
    def requests(self) -> int:
        """How many requests were sent."""
        return sum(sum(each.values()) for each in self.counts.values())

    def count(self, call: Call, reply: Reply) -> None:
        """Count a request."""
        if not call.method.startswith("!"):
            self.counts.setdefault(call.route, Counter())[reply.status] += 1
            self.callers[call.who.partition("#")[0]] += 1

    def unreached(self, routes: list[str]) -> list[str]:
        """Return the routes that never gave 2xx or 3xx, though they could."""
        return [
            route
            for route in routes
            if route not in WITHOUT_PROVIDER
            and not any(200 <= status < 400 for status in self.counts.get(route, ()))
        ]


# ---- what is wrong with a reply


def is_documented(call: Call, reply: Reply) -> bool:
    """Say whether a 5xx is one that docs/operation.md lists: a dashboard that is still reading the log."""
    return (
        reply.status == 503
        and b"has been read" in reply.body
        and bool(reply.header("retry-after") or b"counting" in reply.body)
    )


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def wrong_with(call: Call, reply: Reply, logged: list[str]) -> str:
    """Say what is wrong with a reply, empty where nothing is."""
    if call.method.startswith("!"):
        return ""
    told = next((each for each in logged if "Traceback" in each), reply.error)
    if "Traceback" in told:
        frames = _FRAME.findall(told)
        place = f" in {frames[-1][0]}:{frames[-1][2]}" if frames else ""
        return f"traceback: {told.strip().splitlines()[-1][:100]}{place}"
    if reply.error:
        return reply.error
    if reply.status >= 500 and not is_documented(call, reply):
        return f"{reply.status}: {reply.body[:200]!r}"
    if logged:
        return f"logged: {logged[0][:200]}"
    if b"Traceback (most recent call last)" in reply.body:
        return "the reply shows a traceback"
    if reply.status >= 200 and not call.wire and not call.cut:
        of_uvicorn = reply.body.startswith(b"Invalid HTTP request")  # what isn't HTTP reaches no application
        if not reply.header("x-content-type-options") and not of_uvicorn:
            return f"{reply.status}: the headers of every response are missing"
        if call.method == "HEAD" and reply.body:
            return "a reply to HEAD has a body"
        if reply.header("content-type").startswith("application/json") and call.method != "HEAD":
            try:
                json.loads(reply.body, parse_constant=_no_constant)
            except ValueError as error:
                return f"{reply.status}: the JSON can't be read: {error}"
    return ""


# ---- running


class Fuzz:
    """Runs requests against worlds, one after the other."""

    def __init__(
        self,
        store: str,
        seed: int,
        folder: Path,
        *,
        only: str = "",
        over_socket: bool = False,
        kept: Path | None = None,
        tries: int = 40,
    ) -> None:
        self.store, self.seed, self.folder, self.over_socket = store, seed, folder, over_socket
        self.tries = tries
        self.kept = kept or folder / "failures"
        own = {name: [route for route in RECIPES if ("/api/" in route) == (name == "api")] for name in GROUPS}
        self.routes = own.get(only, list(RECIPES))
        if over_socket:
            self.routes.remove("GET /")  # needs a store without campaigns
        self.results = Results()
        self._made = 0
        self._end = float("inf")

    def run(self, count: int, seconds: float = float("inf")) -> Results:
        """Send so many requests, for at most so long."""
        self._end = time.monotonic() + seconds
        while self.results.requests < count and time.monotonic() < self._end:
            number = self.results.worlds
            self.results.worlds += 1
            alone(self._world(number, min(CALLS_A_WORLD, count - self.results.requests)))
        return self.results

    def _new_world(self) -> Any:
        self._made += 1
        return world_of(
            self.store, self.folder / f"world-{self._made}", self.seed, over_socket=self.over_socket
        )

    async def _world(self, number: int, count: int) -> None:
        rng = random.Random(f"{self.seed} {number}")
        grammar = Grammar(rng, self.routes, wire=self.over_socket)
        sent: list[list[Call]] = []
        enough = self.results.requests + count
        with self._new_world() as world, Troubles() as troubles:
            await self._groups(world, troubles, [[each] for each in opening_calls(self.routes)], sent)
            episode = number * 1000
            while self.results.requests < enough and time.monotonic() < self._end:
                episode += 1
                await self._groups(world, troubles, grammar.episode(episode), sent)
            wrong = await asyncio.to_thread(world.verdict)
            self.results.acknowledged += len(world.acknowledged)
            for each in wrong:
                self._failed(f"the store: {each}", sent, "\n".join(wrong))
            print(f"{self.results.requests:,} requests, {len(self.results.failures)} failures", flush=True)
            for each in troubles.taken():
                self._failed(f"logged: {each[:200]}", sent, each)

    async def _groups(
        self, world: World, troubles: Troubles, groups: list[list[Call]], sent: list[list[Call]]
    ) -> None:
        for group in groups:
            allowed = [each for each in group if each.route in self.routes or each.method.startswith("!")]
            if not allowed:
                continue
            sent.append(allowed)
            for call, reply, wrong, told in await tried(world, troubles, allowed):
                self.results.count(call, reply)
                if wrong:
                    await self._look_into(wrong, told, sent, call)

    async def _look_into(self, wrong: str, told: str, sent: list[list[Call]], call: Call) -> None:
        """Find few requests that show a failure, and note it."""
        kind = wrong if wrong.startswith("traceback") else f"{wrong} ({call.route})"
        self.results.repeats[kind] += 1
        if self.results.repeats[kind] > 1:
            return
        own = [[call]]
        with_state = [[each for each in group if each.who in {call.who, "store"}] for group in sent[-60:]]
        for tries in (own, [group for group in with_state if group]):
            if await self._shows(tries, wrong):
                shrunk = await self._shrunk(tries, wrong)
                self._note(Failure(kind, shrunk, self.seed, self.store, told))
                return
        if "no reply within" in wrong:
            self.results.slow += 1  # the machine was busy: sent again, it was answered
            return
        self._note(Failure(kind, sent[-200:], self.seed, self.store, told))

    async def _shows(self, calls: list[list[Call]], wrong: str) -> bool:
        with self._new_world() as world, Troubles() as troubles:
            for group in calls:
                for _, _, found, _ in await tried(world, troubles, group):
                    if found == wrong:
                        return True
        return False

    async def _shrunk(self, calls: list[list[Call]], wrong: str) -> list[list[Call]]:
        """Return fewer and smaller requests that still show it."""
        tries = self.tries
        at = 0
        while at < len(calls) - 1 and tries > 0:
            tries -= 1
            less = calls[:at] + calls[at + 1 :]
            if await self._shows(less, wrong):
                calls = less
            else:
                at += 1
        going = True
        while going and tries > 0:
            going = False
            for less_in_it in smaller(calls[-1][-1]):
                tries -= 1
                less = [*calls[:-1], [*calls[-1][:-1], less_in_it]]
                if tries > 0 and await self._shows(less, wrong):
                    calls, going = less, True
                    break
        return calls

    def _failed(self, what: str, calls: list[list[Call]], told: str) -> None:
        self.results.repeats[what] += 1
        if self.results.repeats[what] == 1:
            self._note(Failure(what, list(calls), self.seed, self.store, told))

    def _note(self, failure: Failure) -> None:
        self.results.failures.append(failure)
        path = failure.save(self.kept, len(self.results.failures))
        print(f"FAILED: {failure.what}\n  {path}", flush=True)
        if len(failure.calls) < 4:
            for group in failure.calls:
                for call in group:
                    print("  " + json.dumps(replace(call, body=call.body[:300]).as_json())[:1200], flush=True)
        print("  " + "\n  ".join(failure.told.strip().splitlines()[-6:]), flush=True)


async def tried(world: World, troubles: Troubles, group: list[Call]) -> list[tuple[Call, Reply, str, str]]:
    """Send requests at the same moment; return each with its reply and what is wrong with it."""
    if len(group) == 1:
        replies = [await world.send(group[0])]
    else:
        for call in group:
            if not call.method.startswith("!"):
                await world.caller(call.who)
        replies = list(await asyncio.gather(*map(world.send, group)))
    logged = troubles.taken() + world.troubles()
    found = []
    for call, reply in zip(group, replies, strict=True):
        own = [] if is_documented(call, reply) else logged
        found.append((call, reply, wrong_with(call, reply, own), "\n".join(own) or reply.error))
    return found


def replay(path: Path, folder: Path, *, over_socket: bool = False) -> int:
    """Send the requests of a file again; say what came back, and return how many replies are wrong."""
    values = json.loads(path.read_text(encoding="utf-8"))
    groups = [[Call.of(each) for each in group] for group in values["calls"]]

    async def all_of_them() -> int:
        wrong = 0
        with (
            world_of(values["store"], folder / "replay", values["seed"], over_socket=over_socket) as world,
            Troubles() as troubles,
        ):
            for group in groups:
                for call, reply, found, told in await tried(world, troubles, group):
                    print(
                        f"{call.who}: {call.method} {call.target[:100]}: {reply.status} {found}", flush=True
                    )
                    if found:
                        wrong += 1
                        print(told, flush=True)
            for each in world.verdict():
                wrong += 1
                print(f"the store: {each}", flush=True)
        return wrong

    return alone(all_of_them())


def report(fuzz: Fuzz, seconds: float, *, whole: bool) -> int:
    """Print the figures; return 1 if anything failed or a route was never reached."""
    results = fuzz.results
    if whole:
        for route in fuzz.routes:
            counts = results.counts.get(route, Counter())
            print(f"{route}: " + ", ".join(f"{status} {number}" for status, number in sorted(counts.items())))
        print("callers: " + ", ".join(f"{who} {number}" for who, number in results.callers.most_common()))
    unreached = results.unreached(fuzz.routes)
    for route in unreached:
        print(f"never reached with 2xx or 3xx: {route}")
    statuses: Counter[int] = sum(results.counts.values(), Counter())
    print("statuses: " + ", ".join(f"{status} {number}" for status, number in sorted(statuses.items())))
    figures = (
        f"{results.requests:,} requests over {len(fuzz.routes)} routes in {seconds:.0f} s",
        f"{results.requests / max(seconds, 0.001):.0f} a second",
        f"{results.worlds} stores",
        f"{results.acknowledged:,} answers acknowledged",
        f"{results.slow} slow once",
        f"{len(results.failures)} failures",
        f"{len(unreached)} routes not reached",
    )
    print(f"{fuzz.store}, seed {fuzz.seed}: " + ", ".join(figures), flush=True)
    return 1 if results.failures or unreached else 0


def main() -> int:
    """Read the options and run."""
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--count", type=int, default=100_000)
    reading.add_argument("--seconds", type=float, default=float("inf"))
    reading.add_argument("--store", choices=("sqlite", "postgres", *BACK_ENDS), default="sqlite")
    reading.add_argument("--seed", type=int, default=1)
    reading.add_argument("--only", choices=GROUPS, default="")
    reading.add_argument("--url", action="store_true", help="over a socket, to a server of its own")
    reading.add_argument("--replay", type=Path)
    reading.add_argument("--failures", type=Path, help="where to keep the requests that failed")
    asked = reading.parse_args()
    store = "postgresql" if asked.store == "postgres" else asked.store
    with tempfile.TemporaryDirectory(prefix="dp-fuzz-", ignore_cleanup_errors=True) as folder, made_quickly():
        if asked.replay:
            return 1 if replay(asked.replay, Path(folder), over_socket=asked.url) else 0
        fuzz = Fuzz(
            store, asked.seed, Path(folder), only=asked.only, over_socket=asked.url, kept=asked.failures
        )
        print(f"seed {asked.seed}", flush=True)
        began = time.monotonic()
        fuzz.run(asked.count, asked.seconds)
        return report(fuzz, time.monotonic() - began, whole=True)


if __name__ == "__main__":
    sys.exit(main())
