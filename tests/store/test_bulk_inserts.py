"""Rows are inserted in bulk as they are given, whatever a column holds."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, select

from duelpool.store import Store, open_store, schema
from duelpool.store.statements import BulkInsert
from support.campaigns import make_campaign
from support.stores import BACK_ENDS, new_target

COLUMNS = ("campaign", "topic", "seq", "event", "time", "left_item", "grade", "note", "told", "reason")
TEXTS = ("it's", "'); drop table log; --", "?", "\\'", "", "é ✓", 'a "b"', "%s :x", "long " * 999, "\n\t")
VALUES: dict[str, tuple[Any, ...]] = {
    "left_item": (*TEXTS, None),
    "grade": (None, 0.5, -1.0, 1e300, 0),
    "note": (*TEXTS, None),
    "told": (0, 1, None, 2**31 - 1),
    "reason": TEXTS,
}


@pytest.fixture(scope="module", params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder: Path = tmp_path_factory.mktemp("bulk")
    with new_target(request.param, folder) as target, open_store(target, create=True) as opened:
        yield opened


@pytest.mark.parametrize("seed", range(12))
def test_bulk_insert_stores_every_value_as_it_is(store: Store, seed: int) -> None:
    random = Random(seed)
    campaign = make_campaign(store, {"one": "ab"}, name=f"it's {seed}")
    one_value = {name: random.random() < 0.6 for name in VALUES}
    fixed = {name: random.choice(values) for name, values in VALUES.items()}
    rows = [
        (
            *(campaign.id, "one", seq, "judgment", 1.5),
            *(fixed[name] if one_value[name] else random.choice(VALUES[name]) for name in VALUES),
        )
        for seq in range(1, random.choice((2, 3, 40, 130)))
    ]

    def write(connection: Connection, now: float) -> None:
        BulkInsert(schema.log, COLUMNS).run(connection, iter(rows))

    store.write(write)
    query = select(*(schema.log.c[name] for name in COLUMNS)).where(schema.log.c.campaign == campaign.id)
    found = store.read(lambda connection: connection.execute(query.order_by(schema.log.c.seq)).all())
    assert [tuple(row) for row in found] == rows
