"""What each run would score if an item were the best of its topic: the reciprocal rank at which it has the item."""

import threading
from collections.abc import Mapping, Sequence

from sqlalchemy import select

from duelpool.deciders import Spend
from duelpool.files.packed import unpack_run
from duelpool.store import Reading, holdings, schema

Scores = dict[str, dict[str, float]]


class RunScores:
    """The reciprocal ranks of a campaign's runs; they are read where the worth of a topic depends on them.

    A duplicate of an item counts as the item.
    """

    def __init__(self, spend: Spend) -> None:
        self._spend = spend
        self._items: set[tuple[str, str]] = set()
        self._by_topic: dict[str, Scores] = {}
        self._lock = threading.Lock()

    def of(self, tx: Reading, topic: str, rows: Sequence[holdings.ItemRow]) -> Scores:
        """Return the score of each run by item of a topic's pool; empty where nothing depends on it."""
        if not self._spend.needs_runs:
            return {}
        with self._lock:
            if any(
                (topic, row.id) not in self._items for row in rows
            ):  # the first time, and after items joined
                self._read(tx)
            by_run = self._by_topic.get(topic, {})
        item_of = {row.id: row.twin_of or row.id for row in rows}
        return {name: _by_item(scores, item_of) for name, scores in by_run.items()}

    def _read(self, tx: Reading) -> None:
        columns = schema.item.c
        query = select(columns.topic, columns.id).where(columns.campaign == tx.campaign)
        self._items = {(topic, item) for topic, item in tx.connection.execute(query)}
        self._by_topic = {}
        for packed in holdings.runs(tx):
            if self._spend.systems and packed.name not in self._spend.systems:
                continue
            ranked = unpack_run(packed.name, packed.data).ranked()
            for topic, docno, rank in ranked.select("topic", "docno", "rank").iter_rows():
                if (topic, docno) in self._items:
                    self._by_topic.setdefault(topic, {}).setdefault(packed.name, {})[docno] = 1 / rank


def _by_item(scores: Mapping[str, float], item_of: Mapping[str, str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for docno, score in scores.items():
        if (item := item_of.get(docno)) is not None:
            found[item] = max(score, found.get(item, 0.0))
    return found
