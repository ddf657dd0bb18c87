"""Large campaigns for the parts: a file of judgments, the pools that go with it, and a store that holds them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sqlalchemy import insert, update

from duelpool.campaign import Campaign, Settings
from duelpool.records import Judgment, Outcome, Pool, Topic
from duelpool.store import Writing, log, open_store, schema

ITEMS = 50
PEOPLE = 500
AT_ONCE = 20_000
START = 1767225600  # the first second of 2026


def pools_of(topics: int, items: int = ITEMS) -> list[Pool]:
    """Return pools with ids as in a passage collection."""
    random = np.random.default_rng(1)
    numbers = random.choice(10**9, size=(topics, items), replace=False)
    return [
        Pool(f"{2000000 + at}", tuple(f"msmarco_passage_{n % 70:02d}_{n}" for n in numbers[at].tolist()))
        for at in range(topics)
    ]


def create(target: Path | str, pools: list[Pool], strategy: str = "allpairs", **settings: object) -> Campaign:
    """Create a campaign without judgments; the caller closes `campaign.store`."""
    store = open_store(target, create=True)
    topics = [Topic(pool.topic, f"what is the answer to question {pool.topic}") for pool in pools]
    chosen = Settings(strategy=strategy, cap=3, seed=1, **settings)  # type: ignore[arg-type]
    return Campaign.create(store, "large", chosen, topics=topics, pools=pools)


def judgments(pools: list[Pool], count: int) -> Iterator[dict[str, object]]:
    """Yield judgments in the form of `duelpool export --what judgments`: every pair by up to three people."""
    random = np.random.default_rng(2)
    each = -(-count // len(pools))
    made = 0
    for pool in pools:
        items = pool.items
        lefts, rights = np.triu_indices(len(items), 1)
        pairs = random.permutation(len(lefts))
        places = np.concatenate([pairs] * 3)[:each]
        first = int(random.integers(PEOPLE))
        choices = random.random(len(places))
        swapped = random.random(len(places)) < 0.5
        seconds = random.lognormal(1.05, 0.5, len(places)).round(2)
        for at, place in enumerate(places.tolist()):
            if made == count:
                return
            made += 1
            a, b = items[lefts[place]], items[rights[place]]
            better_first = choices[at] < 0.75
            left, right = (b, a) if swapped[at] else (a, b)
            yield {
                "topic": pool.topic,
                "left": left,
                "right": right,
                "outcome": "left" if better_first != bool(swapped[at]) else "right",
                "assessor": f"w{(first + at // len(pairs) * 7 + at % 40) % PEOPLE:03d}",
                "seconds": float(seconds[at]),
                "time": datetime.fromtimestamp(START + made, UTC).isoformat(),
            }


def fill(campaign: Campaign, pools: list[Pool], count: int) -> None:
    """Write judgments straight into the log, as an import leaves them; much faster than to import them."""
    lines: list[dict[str, object]] = []
    ends: dict[str, int] = {}

    def write(tx: Writing) -> None:
        tx.connection.execute(insert(schema.log), lines)
        for topic, end in ends.items():
            own = (schema.topic.c.campaign == tx.campaign, schema.topic.c.id == topic)
            tx.connection.execute(update(schema.topic).where(*own).values(next_seq=end + 1))

    for row in judgments(pools, count):
        topic = str(row["topic"])
        ends[topic] = ends.get(topic, 0) + 1
        judgment = Judgment(
            topic,
            str(row["left"]),
            str(row["right"]),
            Outcome(str(row["outcome"])),
            assessor=str(row["assessor"]),
        )
        lines.append(
            {
                "campaign": campaign.id, "topic": topic, "seq": ends[topic], "event": log.JUDGMENT, "told": 1,
                "time": START + float(len(lines)), **log.columns_of(judgment), "seconds": row["seconds"],
            }
        )  # fmt: skip
        if len(lines) >= AT_ONCE:
            campaign.write(write)
            lines.clear()
            ends = {topic: ends[topic]}
    if lines:
        campaign.write(write)


def write_judgments(path: Path, pools: list[Pool], count: int) -> int:
    """Write the judgments as JSON lines; return how many."""
    written = 0
    with path.open("w", encoding="utf-8") as out:
        for row in judgments(pools, count):
            out.write(json.dumps(row) + "\n")
            written += 1
    return written
