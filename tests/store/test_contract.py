"""The store's contract, on SQLite and on PostgreSQL."""

from collections.abc import Callable, Iterator

import pytest

from duelpool.store import Store, leases, open_store, overdue, retractions
from duelpool.store.leases import Wanted
from duelpool.testing.promises import ContractError
from duelpool.testing.stores import STORE_CHECKS, Scene, audit
from support.stores import BACK_ENDS, new_target


@pytest.fixture(scope="module", params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all checks: each creates its own campaign, and must not depend on the others."""
    with (
        new_target(request.param, tmp_path_factory.mktemp("store")) as target,
        open_store(target, create=True) as opened,
    ):
        yield opened


@pytest.mark.parametrize("check", STORE_CHECKS.values(), ids=STORE_CHECKS)
def test_store_keeps_the_contract(store: Store, check: Callable[[Store], None]) -> None:
    check(store)


def break_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair looks empty: only the database enforces the cap."""
    monkeypatch.setattr(leases, "_taken", lambda *_: set())


def break_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second answer is accepted."""
    monkeypatch.setattr(
        leases, "_again", lambda tx, row, given, attempt: leases.Receipt(row.id, row.topic, 0)
    )


def break_expiry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases never expire."""
    monkeypatch.setattr(overdue, "expire", lambda tx: 0)


def break_retraction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retracted judgments still count."""
    monkeypatch.setattr(retractions, "_counts", lambda *_: True)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (break_answer, "the same answer ten times"),
        (break_answer, "cannot judge and skip"),
        (break_expiry, "expiry"),
        (break_retraction, "retract and restore"),
        (break_lease, "cannot judge and skip"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_contract_detects_a_faulty_store(
    store: Store, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None], check: str
) -> None:
    fault(monkeypatch)
    with pytest.raises(ContractError):
        STORE_CHECKS[check](store)


def test_database_enforces_the_cap_without_the_code(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    break_lease(monkeypatch)
    STORE_CHECKS["the cap under threads"](store)


def test_retracted_lines_of_some_places_are_none_of_others(store: Store) -> None:
    scene = Scene.set_up(store, topics=("t1", "t2"))
    for topic in ("t1", "t2"):
        for person in ("p0", "p1"):
            scene.judged(person, want=Wanted(topic, "a", "b"))
        scene.retract(1, 2, topic=topic)
    scene.restore(2, topic="t2")
    campaign = store.of(scene.campaign)
    assert campaign.read(retractions.retracted_lines) == {("t1", 1), ("t1", 2), ("t2", 1)}
    places = [("t1", 1), ("t2", 2)]
    assert campaign.read(lambda tx: retractions.retracted_lines(tx, places)) == {("t1", 1)}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("update log set seq = 9 where seq = 2", "is at the place of line"),
        ("delete from log where seq = 3", "the next line is 3"),
        (
            "update question set state = 'expired', live = null where assessor = 'p1'",
            "its question is expired",
        ),
        ("update question set live = null where assessor = 'p1'", "doesn't hold its slot"),
        ("update question set slot = null where slot = 1", "4 live slots"),
    ],
)
def test_audit_reports_damaged_rows(store: Store, damage: str, words: str) -> None:
    scene = Scene.set_up(store)
    for person in ("p0", "p1", "p2"):
        scene.judged(person)
    assert audit(store, scene.campaign, 3) == []
    clause = " and " if " where " in damage else " where "
    whole = f"{damage}{clause}campaign = '{scene.campaign}'"
    store.write(lambda connection, now: connection.exec_driver_sql(whole))
    if "slot" in damage:  # the unique key no longer covers one of three
        scene.judged("p3")
    assert any(words in wrong for wrong in audit(store, scene.campaign, 3))
