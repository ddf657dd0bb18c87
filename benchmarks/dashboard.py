"""How long each page and each request of the dashboard takes on a large campaign.

A campaign of 100,000 judgments, 500 topics and 1,000 assessors is written straight into a store; then every
page and every request of the API is asked for three times over HTTP, and once more right after a judgment.
The slowest of these, without the first time, is compared with the aim; the first time works out what is kept.
"""

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import uvicorn
from sqlalchemy import Connection, insert

from duelpool.campaign import Campaign, Settings
from duelpool.files import Run
from duelpool.leaderboard.scoring import keep_runs
from duelpool.records import Answer, Outcome, Passage, Pool, Topic
from duelpool.seeds import rng_for
from duelpool.store import open_store, schema
from duelpool.web.access.links import link_keys
from duelpool.web.manage.keys import manager_key
from duelpool.web.manage.showing import PAGES
from duelpool.web.server.app import make_app

AIM = 0.3
ITEMS = 25


def fill(target: Path, judgments: int, topics: int, people: int, runs: int) -> str:
    """Write a campaign with its log straight into a store; return its id."""
    rng = rng_for(1, "a large campaign")
    names = [f"t{at:03}" for at in range(topics)]
    pools = [Pool(name, tuple(f"{name}-{at:02}" for at in range(ITEMS))) for name in names]
    subjects = [Topic(name, f"Question {name}?", tags=(f"tag {at % 5}",)) for at, name in enumerate(names)]
    with open_store(target, create=True) as store:
        campaign = Campaign.create(
            store,
            "large",
            Settings(strategy="allpairs", judges="crowd", budget=10_000_000),
            topics=subjects,
            pools=pools,
            passages=[Passage(item, f"Text of {item}.") for pool in pools for item in pool.items],
        )
        keep_runs(campaign, [_run(f"run {at:02}", pools, at) for at in range(runs)])
        each = judgments // topics
        pairs = [(a, b) for a in range(ITEMS) for b in range(a + 1, ITEMS)]

        def work(connection: Connection, now: float) -> None:
            start = now - 86400.0
            connection.execute(
                insert(schema.assessor),
                [
                    {"campaign": campaign.id, "id": f"w{at:04}", "kind": "crowd", "created": start + at}
                    for at in range(people)
                ],
            )
            rows, questions = [], []
            for at, pool in enumerate(pools):
                picked = rng.permutation(len(pairs))[: (each + 1) // 2]
                for place in range(each):  # every pair twice, by different people
                    a, b = (pool.items[side] for side in pairs[picked[place % len(picked)]])
                    left, right = (a, b) if rng.random() < 0.5 else (b, a)
                    good = rng.random() < 0.85
                    won = left if (left == a) == good else right
                    who = f"w{(at * 7 + place * 13) % people:04}"
                    question = f"q{at}-{place}"
                    when = start + 86000.0 * (place * topics + at) / (each * topics)
                    shared = {
                        "campaign": campaign.id,
                        "topic": pool.topic,
                        "criterion": "overall",
                        "stage": "",
                        "kind": "preference",
                        "left_item": left,
                        "right_item": right,
                        "assessor": who,
                        "phase": "",
                        "proposal": "",
                        "propensity": None,
                        "strategy": "allpairs/1",
                    }
                    questions.append(
                        {
                            **shared,
                            "id": question,
                            "a": a,
                            "b": b,
                            "slot": 1 + place // len(picked),
                            "asked": when,
                            "expires": when + 60,
                            "state": "answered",
                            "live": 1,
                        }
                    )
                    rows.append(
                        {
                            **shared,
                            "seq": place + 1,
                            "event": "judgment",
                            "time": when,
                            "question": question,
                            "attempt": 1,
                            "outcome": "left" if won == left else "right",
                            "seconds": float(rng.gamma(2.0, 6.0)),
                            "context_uses": 0,
                            "note": "",
                            "sides_known": 1,
                            "inferred": 0,
                            "repeated": 0,
                            "told": 1,
                        }
                    )
            for table, many in ((schema.question, questions), (schema.log, rows)):
                for at in range(0, len(many), 5000):
                    connection.execute(insert(table), many[at : at + 5000])
            connection.execute(
                schema.topic.update().where(schema.topic.c.campaign == campaign.id).values(next_seq=each + 1)
            )
            connection.execute(
                insert(schema.ledger),
                [
                    {
                        "campaign": campaign.id,
                        "assessor": f"w{at % people:04}",
                        "entry": entry,
                        "amount": amount,
                        "time": start + at,
                        "assignment": None,
                    }
                    for at in range(judgments // 13)
                    for entry, amount in (("compensation", 200), ("bonus", 40))
                ],
            )

        store.write(work)
        return campaign.id


def _run(name: str, pools: list[Pool], noise: int) -> Run:
    rng = rng_for(1, name)
    return Run.from_rankings(
        name,
        {
            pool.topic: [(item, -at + noise * float(rng.normal())) for at, item in enumerate(pool.items)]
            for pool in pools
        },
    )


class Caller:
    """Sends a manager's requests, and times them."""

    def __init__(self, root: str, campaign: str, key: str) -> None:
        self._root, self._campaign, self._key = root, campaign, key

    def __call__(self, path: str, **query: Any) -> tuple[float, bytes]:
        """Return the seconds that an answer took, and the answer."""
        address = f"{self._root}{path.replace('C', self._campaign, 1)}"
        request = Request(
            address + (f"?{urlencode(query)}" if query else ""),
            headers={"Authorization": f"Bearer {self._key}"},
        )
        begin = time.perf_counter()
        with urlopen(request, timeout=600) as answer:
            body = answer.read()
        return time.perf_counter() - begin, body

    def is_ready(self, path: str) -> tuple[float, bool]:
        """Return the seconds that an answer took, and whether it has figures already."""
        begin = time.perf_counter()
        try:
            return self(path)[0], True
        except HTTPError as error:
            if error.code != 503:
                raise
            return time.perf_counter() - begin, False


def requests(far: str, item: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the requests: every page, and every list and figure of the API.

    `far` is a cursor of the log, `item` was judged against the first item of the first topic.
    """
    api, page = "/api/v1/campaigns/C", "/manage/C"
    pair = {"topic": "t000", "a": "t000-00", "b": item}
    return [
        (api, {}),
        (f"{api}/overview", {}),
        (f"{api}/settings", {}),
        (f"{api}/pulse", {}),
        (f"{api}/leaderboard", {"baseline": "run 05"}),
        (f"{api}/leaderboard", {"measure": "nDCG@10"}),
        (f"{api}/leaderboard/history", {}),
        (f"{api}/leaderboard/slices", {}),
        (f"{api}/leaderboard/systems", {}),
        (f"{api}/topics", {"limit": 500}),
        (f"{api}/topic", {"topic": "t250"}),
        (f"{api}/pairs", {"limit": 500}),
        (f"{api}/pairs", {"assessor": "w0500"}),
        (f"{api}/pair", pair),
        (f"{api}/assessors", {"limit": 500, "order": "agreement"}),
        (f"{api}/assessor", {"assessor": "w0500"}),
        (f"{api}/llm", {}),
        (f"{api}/agreement", {}),
        (f"{api}/agreement", {"report": "summary,assessors", "cluster": "pair", "rows": 1000}),
        (f"{api}/ledger", {"limit": 500}),
        (f"{api}/log", {"limit": 500}),
        (f"{api}/log", {"limit": 500, "cursor": far}),
        (f"{api}/log", {"limit": 500, "order": "assessor"}),
        (f"{api}/log", {"assessor": "w0500"}),
        (f"{api}/deeds", {}),
        *((f"{page}/{name}", {}) for name, _ in PAGES),
        (f"{page}/leaderboard", {"measure": "RR"}),
        (f"{page}/topic", {"topic": "t250"}),
        (f"{page}/pair", pair),
        (f"{page}/assessor", {"assessor": "w0500"}),
    ]


def far_cursor(call: Caller) -> str:
    """Return a cursor behind the first 20,000 lines of the log, or behind most of a shorter one."""
    cursor, pages = "", 0
    while pages < 40:
        following = json.loads(call("/api/v1/campaigns/C/log", limit=500, cursor=cursor)[1])["next"]
        if following is None:
            break
        cursor, pages = following, pages + 1
    return cursor


def judge(campaign: Campaign) -> None:
    """Let somebody judge one more pair."""
    question = campaign.next_question("late")
    if question is not None:
        campaign.answer(question.id, "late", Answer(Outcome.LEFT, seconds=3.0))


def json_pair(call: Caller) -> str:
    """Return an item that was judged against the first one."""
    rows = json.loads(call("/api/v1/campaigns/C/pairs", topic="t000", limit=1)[1])["rows"]
    return str(rows[0]["b"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--judgments", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=500)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "large.db"
        begin = time.perf_counter()
        campaign = fill(target, options.judgments, options.topics, options.people, options.runs)
        print(f"{options.judgments:,} judgments written in {time.perf_counter() - begin:.1f} s")
        app = make_app(target, sweep_seconds=3600)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, ws="none"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        root = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        with open_store(target) as store:
            key = manager_key(link_keys(store), campaign, time.time())
        call = Caller(root, campaign, key)
        try:
            measure(app, call, campaign)
        finally:
            server.should_exit = True
            thread.join()


def measure(app: Any, call: Caller, campaign: str) -> None:
    """Print the time of every request: the first one, a later one, and one right after a judgment."""
    begin = time.perf_counter()
    slowest = polls = 0.0
    while True:
        first, ready = call.is_ready("/api/v1/campaigns/C")
        if ready:
            break
        slowest, polls = max(slowest, first), polls + 1
        time.sleep(0.5)
    whole = time.perf_counter() - begin
    print(
        f"the log was read once beside, {whole:.1f} s after the start; asked {polls:.0f} times meanwhile, "
        f"the server said so within {slowest * 1000:.0f} ms; the first figures took {first * 1000:.0f} ms"
    )
    print(f"first leaderboard: {call('/api/v1/campaigns/C/leaderboard')[0]:.2f} s")
    begin = time.perf_counter()
    while not json.loads(call("/api/v1/campaigns/C/leaderboard/history")[1])["ready"]:
        time.sleep(0.2)
    print(f"history, worked out beside: {time.perf_counter() - begin:.1f} s")
    print(f"{'request':62} {'first':>8} {'again':>8} {'judged':>8}   aim {AIM * 1000:.0f} ms")
    slow = 0
    held: Campaign = app.state.campaigns.flow(campaign).campaign
    held.enrol("late", "dedicated")
    for path, query in requests(far_cursor(call), json_pair(call)):
        first = call(path, **query)[0]
        again = max(call(path, **query)[0] for _ in range(2))
        judge(held)
        after = call(path, **query)[0]
        slow += max(again, after) > AIM
        shown = (
            path.replace("C", "", 1).removeprefix("/api/v1/campaigns/") if path.startswith("/api") else path
        )
        name = ("API  " if path.startswith("/api") else "page ") + shown + (f" {query}" if query else "")
        told = " ".join(f"{each * 1000:6.0f}ms" for each in (first, again, after))
        print(f"{name[:62]:62} {told}   {'over' if max(again, after) > AIM else 'ok'}")
    begin = time.perf_counter()
    call("/api/v1/campaigns/C/export/csv")
    print(f"export of all judgments: {time.perf_counter() - begin:.2f} s")
    print(f"{slow} requests over the aim")


if __name__ == "__main__":
    main()
