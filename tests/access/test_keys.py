"""Keys that sign links: with a key outside of the store, a copy of the store signs nothing."""

from pathlib import Path

import pytest
from sqlalchemy import select

from duelpool.access import keys
from duelpool.errors import BadFile, BadParameter
from duelpool.store import Store, open_store, schema

SECRET, OTHER = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "c.db", create=True)


def stored_values(store: Store) -> list[str]:
    return list(
        store.read(lambda connection: connection.execute(select(schema.secret.c.value)).scalars().all())
    )


def test_without_a_key_the_store_signs_alone(store: Store) -> None:
    assert keys.read_keys(store, {}).current in stored_values(store)


def test_with_a_key_outside_what_signs_isnt_in_the_store(store: Store, tmp_path: Path) -> None:
    before = keys.read_keys(store, {}).current
    file = tmp_path / "key"
    file.write_text(f"{SECRET}\n")
    signing = keys.read_keys(store, {"DUELPOOL_KEY_FILE": str(file)})
    assert signing == keys.read_keys(store, {"DUELPOOL_KEY": SECRET})
    assert signing.current != before
    assert not {signing.current, SECRET} & set(stored_values(store))
    store.write(lambda connection, now: keys.rotate(connection, now, 5.0))
    rotated = keys.read_keys(store, {"DUELPOOL_KEY": SECRET})
    assert [value for value, _ in rotated.older] == [signing.current]


@pytest.mark.parametrize(
    ("given", "words"), [({}, "no key is given"), ({"DUELPOOL_KEY": OTHER}, "another key is given")]
)
def test_a_missing_or_other_key_is_refused(given: dict[str, str], words: str, store: Store) -> None:
    keys.read_keys(store, {"DUELPOOL_KEY": SECRET})
    with pytest.raises(BadParameter, match=words):
        keys.read_keys(store, given)
    store.write(lambda connection, now: keys.rotate(connection, now, 0.0))
    assert keys.read_keys(store, given)


def test_a_short_key_and_a_missing_file_are_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="has 5 characters, and 16 are needed"):
        keys.read_keys(store, {"DUELPOOL_KEY": "short"})
    with pytest.raises(BadFile, match="The key can't be read"):
        keys.read_keys(store, {"DUELPOOL_KEY_FILE": str(tmp_path / "none")})
