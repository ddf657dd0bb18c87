"""The database's time, moved by a test."""

from collections.abc import Callable

import pytest

from duelpool.store import Store


def move_time(store: Store, monkeypatch: pytest.MonkeyPatch, now: Callable[[], float]) -> None:
    """Let a store have this time, wherever it is asked for it."""
    monkeypatch.setattr(store.database, "now", lambda connection: now())
    monkeypatch.setattr(store.database, "known_time", now)
