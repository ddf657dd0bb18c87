"""Several questions are leased at once, on both back ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import bindparam, select

from duelpool.store import Store, leases, open_store, schema
from duelpool.store.leases import Wanted
from duelpool.store.statements import Statement
from duelpool.testing.stores.scene import TOPIC, Scene
from support.stores import BACK_ENDS, new_target

PAIRS = [Wanted(TOPIC, "a", other) for other in "bcd"]


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as opened:
        yield opened


def rows_of(scene: Scene, person: str) -> dict[str, tuple[int, int]]:
    """Return the slot and place of each of a person's questions, by its second item."""
    columns = schema.question.c
    query = select(columns.b, columns.slot, columns.place).where(columns.assessor == person)
    rows = scene.store.read(lambda connection: connection.execute(query).all())
    return {row.b: (row.slot, row.place) for row in rows}


def lease_three(scene: Scene, person: str, **options: Any) -> list[str | None]:
    """Lease three pairs at once; return the second items of those that are granted."""
    ids = [f"{person}-{at}" for at in range(3)]
    granted = scene.store.of(scene.campaign).write(
        lambda tx: leases.lease(tx, PAIRS, ids, assessor=person, cap=scene.cap, seconds=60.0, **options)
    )
    return [each.right for each in granted]


def test_questions_get_their_slots_and_places(store: Store) -> None:
    scene = Scene.set_up(store)
    scene.leased("p0", PAIRS[1])
    assert lease_three(scene, "p1", places=[2, 0, 1]) == ["b", "c", "d"]
    assert rows_of(scene, "p1") == {"b": (1, 2), "c": (2, 0), "d": (1, 1)}
    assert lease_three(scene, "p2", at_most=2) == ["b", "c"]
    assert rows_of(scene, "p2") == {"b": (2, 0), "c": (3, 1)}


def test_a_slot_that_others_have_just_taken_is_passed_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene.set_up(store)
    scene.leased("p0", PAIRS[0])
    looks: list[str] = []
    taken = leases._taken

    def at_first_all_free(rows: Any, want: Wanted, person: str) -> set[int] | None:
        looks.append(str(want.right))
        return set() if len(looks) <= 3 else taken(rows, want, person)

    monkeypatch.setattr(leases, "_taken", at_first_all_free)
    assert lease_three(scene, "p1", places=[2, 0, 1]) == ["c", "d", "b"]
    assert looks == ["b", "c", "d", "b"]
    assert rows_of(scene, "p1") == {"c": (1, 2), "d": (1, 0), "b": (2, 1)}


def test_a_statement_runs_once_for_each_of_many_values(store: Store) -> None:
    scene = Scene.set_up(store)
    for person in ("p0", "p1"):
        scene.leased(person, PAIRS[0])
    of_pair = Statement(
        lambda _: select(schema.question.c.assessor).where(schema.question.c.b == bindparam("other"))
    )
    values = [{"other": other} for other in "xbx"]
    found = store.read(lambda connection: of_pair.each(connection, values))
    assert [sorted(row.assessor for row in rows) for rows in found] == [[], ["p0", "p1"], []]
    assert store.read(lambda connection: of_pair.each(connection, [])) == []
