"""Limits hold however many requests arrive at once, in several processes, on both back ends."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import select
from starlette.testclient import TestClient

from duelpool.access import accounts, limits, self_service
from duelpool.access.limits import Limit, TooMany
from duelpool.store import open_store, schema
from support.campaigns import make_campaign
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, Person, new_store, served

AT_ONCE = 24


@pytest.fixture(params=BACK_ENDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_target(request.param, tmp_path) as made:
        yield made


def all_at_once(work: Callable[[int], Any], times: int = AT_ONCE) -> list[Any]:
    """Run work in threads that start together; return its results."""
    start = threading.Barrier(times)

    def one(at: int) -> Any:
        start.wait()
        return work(at)

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(one, range(times)))


def test_wrong_passwords_at_once_are_checked_up_to_the_limit(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_store(target) as store:
        make_campaign(store)
    checked: list[str] = []
    check = accounts.sign_in

    def counted(*given: Any) -> Any:
        checked.append(given[1])
        return check(*given)

    monkeypatch.setattr(accounts, "sign_in", counted)
    with served(target) as first, served(target) as second:
        clients = [
            TestClient(each, base_url=ORIGIN, headers={"Origin": ORIGIN})
            for each in (first, second)
            for _ in range(AT_ONCE // 2)
        ]

        for each in (clients[0], clients[-1]):
            each.get("/nowhere")  # the framework makes its table at the first request, in one thread

        def guess(at: int) -> int:
            form = {"name": "anna", "password": f"guess number {at}"}
            return int(clients[at].post("/login", data=form).status_code)

        statuses = Counter(all_at_once(guess) + all_at_once(guess))
    most = limits.PASSWORD_BY_NAME.most
    assert len(checked) == most
    assert statuses == {403: most, 429: 2 * AT_ONCE - most}


def test_a_right_password_is_given_back(target: str) -> None:
    """Only wrong ones count: a program that signs in every minute is never refused."""
    password = "a password for the tests"
    with new_store(target) as store:
        make_campaign(store)
        store.write(lambda connection, now: accounts.add(connection, "anna", password, "manager", now))
    with served(target) as app:
        client = TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN}, follow_redirects=False)
        for _ in range(limits.PASSWORD_BY_NAME.most + 2):
            assert client.post("/login", data={"name": "anna", "password": password}).status_code == 303
        form = {"present": "wrong", "new": "another password"}
        statuses = [client.post("/account/password", data=form).status_code for _ in range(12)]
        assert statuses == [403] * 10 + [429] * 2


GUESS = """
import sys
from duelpool.access.limits import Limit, TooMany, take_attempt
from duelpool.store import open_store
with open_store(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    taken = 0
    for _ in range(20):
        try:
            take_attempt(store, [(Limit("tries of", 30, 10**6), "anna"), (Limit("from", 10**6, 10**6), "here")])
            taken += 1
        except TooMany:
            pass
    print(taken)
"""


@pytest.mark.long
def test_processes_at_once_take_as_many_attempts_as_the_limit(target: str) -> None:
    new_store(target).close()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", GUESS, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    try:
        for each in processes:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        taken = 0
        for each in processes:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        for each in processes:
            taken += int(each.communicate(timeout=60)[0])
    finally:
        for each in processes:
            each.kill()
            each.wait()
    assert taken == 30


def test_a_refused_attempt_is_not_counted(target: str) -> None:
    new_store(target).close()
    limit, other = Limit("tries of", 2, 10**6), Limit("tries from", 3, 10**6)
    with open_store(target) as store:
        back = [limits.take_attempt(store, [(other, "here"), (limit, "anna")]) for _ in range(2)]
        for _ in range(3):
            with pytest.raises(TooMany):
                limits.take_attempt(store, [(other, "here"), (limit, "anna")])
        rows = store.read(
            lambda connection: connection.execute(select(schema.limit_count.c.count)).scalars().all()
        )
        assert list(rows) == [2, 2]
        for give_back in back:
            give_back()
        limits.take_attempt(store, [(other, "here"), (limit, "anna")])


def test_wrong_keys_at_once_are_counted_up_to_the_limit(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEY_BY_ADDRESS", Limit("keys from", 7, 900))
    with new_store(target) as store:
        campaign = make_campaign(store).id
    with served(target) as app:
        clients = [TestClient(app, base_url=ORIGIN) for _ in range(AT_ONCE)]
        clients[0].get("/nowhere")
        headers = {"Authorization": f"Bearer dp_{'0' * 12}_{'x' * 43}"}

        def guess(at: int) -> int:
            return int(clients[at].get(f"/api/v1/campaigns/{campaign}", headers=headers).status_code)

        assert Counter(all_at_once(guess)) == {403: 7, 429: AT_ONCE - 7}


def test_one_of_several_at_once_becomes_the_first_manager(target: str) -> None:
    new_store(target).close()
    with open_store(target) as store:
        made = all_at_once(
            lambda at: self_service.make_first_manager(store, f"boss{at}", "a password for the tests"), 8
        )
        assert sum(each is not None for each in made) == 1
        assert len(store.read(accounts.all_accounts)) == 1


def test_the_check_before_judging_has_two_tries(target: str) -> None:
    """However many forms arrive at once."""
    with new_store(target) as store:
        make_campaign(store, judges="crowd", steps=("check",))
    with served(target) as app:
        person = Person(app, worker="w1")
        assert person.state == "check"
        tabs = [same_browser(app, person) for _ in range(12)]
        for _ in range(2):
            all_at_once(lambda at: tabs[at].post("step", {"step": "check"}).status_code, 12)
        assert person.state == "check-failed"
        steps = app.state.store.read(
            lambda connection: connection.execute(select(schema.step.c.name, schema.step.c.outcome)).all()
        )
        assert Counter(map(tuple, steps)) == {("check", "failed"): 2}


def same_browser(app: FastAPI, person: Person) -> Person:
    """Return another tab of a person's browser."""
    tab = Person(app, person.campaign, link="none")
    tab.client.cookies.update(person.client.cookies)
    return tab
