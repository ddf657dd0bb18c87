"""Locks belong to writes: on both back ends a read that locks rows fails alike."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

import duelpool
from duelpool.store import Reading, Store, leases, open_store, schema
from duelpool.store.statements import LockInRead
from support.campaigns import make_campaign
from support.stores import BACK_ENDS, new_target

QUESTIONS = select(schema.question)
LOCKS: dict[str, Callable[[Any], object]] = {
    "a query": lambda tx: tx.connection.execute(QUESTIONS.with_for_update()).all(),
    "a query that skips locked rows": lambda tx: tx.connection.execute(
        QUESTIONS.with_for_update(skip_locked=True)
    ).all(),
    "a statement of the hot path": lambda tx: leases.lock_question(tx, "none"),
}


@pytest.fixture(scope="module", params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("locks")
    with new_target(request.param, folder) as target, open_store(target, create=True) as opened:
        yield opened


@pytest.mark.parametrize("how", LOCKS)
def test_a_read_cannot_lock_rows(store: Store, how: str) -> None:
    campaign = make_campaign(store, name=how)
    with pytest.raises(LockInRead, match="can't lock rows"):
        campaign.read(LOCKS[how])
    with store.shared_snapshot(), pytest.raises(LockInRead):
        campaign.read(LOCKS[how])
    campaign.write(LOCKS[how])
    assert campaign.read(lambda tx: tx.connection.execute(QUESTIONS).all()) == []


def test_only_writes_have_a_lock() -> None:
    """Rows are locked by `Writing.lock`, which a `Reading` hasn't, or by a statement that only writes run.

    Those are of `store/leases.py`, and the claim of a webhook's delivery, which is of no campaign.
    """
    assert not hasattr(Reading, "lock")
    source = Path(duelpool.__file__).parent
    places = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"with_for_update|for update", path.read_text(encoding="utf-8"), re.IGNORECASE)
    }
    assert places == {"store/transactions.py", "store/leases.py", "webhooks/sending.py"}
