"""Before the consent nothing of a visitor is stored: no id of a panel or link, no name, no address."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import insert, select

from duelpool.access.administration import Administration
from duelpool.access.limits import KEY_BY_ADDRESS, add_attempts
from duelpool.store import schema
from support.campaigns import make_campaign
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, Person, crowd_settings, new_store, seen_from, served

STUDY = {"PROLIFIC_PID": "5f0c1d2e3a4b5c6d7e8f9a0b", "STUDY_ID": "study7", "SESSION_ID": "stay8"}
PASSWORD = "a few words of ours"


@pytest.fixture(params=BACK_ENDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_target(request.param, tmp_path) as made:
        yield made


def everything(app: FastAPI) -> dict[str, list[Any]]:
    """Return all rows of a store, by table."""

    def look(connection: Any) -> dict[str, list[Any]]:
        return {
            name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for name, table in schema.metadata.tables.items()
        }

    return dict(app.state.store.read(look))


def by_worker(app: FastAPI) -> Person:
    return Person(app, worker="worker-17")


def by_panel(app: FastAPI) -> Person:
    person = Person(app, link="none")
    query = {"key": person.key(), **STUDY}
    got = person.client.get(f"{person.base}/from/prolific", params=query, follow_redirects=False)
    assert got.status_code == 303
    return person


def by_link_for_one_use(app: FastAPI) -> Person:
    person = Person(app, link="none")
    assert person.enter(person.key("personal", assessor="anna", once=True)).status_code == 303
    return person


def by_link_for_another(app: FastAPI) -> Person:
    person = Person(app, link="none")
    assert person.enter(person.key("personal", assessor="ben")).status_code == 303
    return person


def by_account(app: FastAPI) -> Person:
    person = Person(app, link="none")
    person.client.post("/login", data={"name": "ida", "password": PASSWORD}, headers=person.headers)
    before = person.client.post(
        f"/account/judge/{person.campaign}", headers=person.headers, follow_redirects=False
    )
    assert before.status_code == 303
    return person


IDENTITIES: dict[Callable[[FastAPI], Person], str] = {
    by_worker: "worker-17",
    by_panel: STUDY["PROLIFIC_PID"],
    by_account: "ida",
}
ENTRIES: list[Callable[[FastAPI], Person]] = [*IDENTITIES, by_link_for_one_use, by_link_for_another, Person]


def made(target: str, **more: Any) -> None:
    panel = {"panel": "prolific", "panel_study": "study7", "completion_code": "DONE"}
    with new_store(target) as store:
        make_campaign(store, **crowd_settings(steps=("consent", "guide"), **panel, **more))
        Administration(store, "test").add_account("ida", PASSWORD, "assessor")


def test_a_visit_that_ends_before_the_consent_leaves_nothing(target: str) -> None:
    made(target)
    with served(target) as app:
        for enter in ENTRIES:
            before = everything(app)
            person = enter(app)
            assert person.state == "consent"
            assert person.work()["state"] == "consent"
            assert person.post("step", {"step": "consent"}).status_code == 303  # without a yes
            after = everything(app)
            changed = {name for name in after if after[name] != before[name]}
            assert changed <= (
                {"deed", "limit_count", "secret", "session"} if enter is by_account else set()
            ), enter
            assert "ida" not in repr(after["limit_count"])


def test_the_consent_stores_the_identity_and_the_next_browser_continues(target: str) -> None:
    made(target)
    with served(target) as app:
        for number, enter in enumerate(ENTRIES, 1):
            person = enter(app)
            assert person.post("step", {"step": "consent", "agree": "yes"}).status_code == 303
            assert person.state == "guide"
            external = IDENTITIES.get(enter)
            rows = everything(app)
            assert len(rows["assessor"]) == number
            if external:
                assert external in [row[3] for row in rows["identity"]]
                kept = app.state.links.read("visit", person.client.cookies[f"duelpool_{person.campaign}"])
                assert kept["assessor"] in [row[1] for row in rows["assessor"]]
                assert external not in repr(kept)
                assert external not in repr(rows["assessor"])
                assert enter(app).state == "guide"
                assert len(everything(app)["assessor"]) == number
        assert [row[5] for row in everything(app)["submission"]] == ["stay8"]
        assert len(everything(app)["identity"]) == len(IDENTITIES)


def test_two_browsers_that_agree_are_one_person(target: str) -> None:
    made(target)
    with served(target) as app:
        for enter in (by_worker, by_panel):
            first, second = enter(app), enter(app)
            assert (first.state, second.state) == ("consent", "consent")
            before = len(everything(app)["assessor"])
            for person in (first, second):
                person.post("step", {"step": "consent", "agree": "yes"})
                assert person.state == "guide"
            assert len(everything(app)["assessor"]) == before + 1
            second.post("step", {"step": "guide"})
            assert first.state != "guide"


def test_a_link_for_one_use_belongs_to_the_browser_that_agreed_first(target: str) -> None:
    made(target)
    with served(target) as app:
        first, second = Person(app, link="none"), Person(app, link="none")
        key = first.key("personal", assessor="anna", once=True)
        assert [each.enter(key).status_code for each in (first, second)] == [303, 303]
        lost = dict(first.client.cookies)
        first.post("step", {"step": "consent", "agree": "yes"})
        assert first.state == "guide"
        assert second.page().status_code == 410
        assert second.post("step", {"step": "consent", "agree": "yes"}).status_code == 410
        assert second.enter(key).status_code == 410
        assert first.enter(key).status_code == 303
        first.client.cookies.clear()
        for name, value in lost.items():  # the reply to the consent was lost, and the cookie with it
            first.client.cookies.set(name, value)
        assert first.state == "guide"


def test_limits_keep_no_address_and_no_name(target: str) -> None:
    made(target)
    with served(target) as app:
        client = TestClient(seen_from("203.0.113.77", app), base_url=ORIGIN)
        for name in ("ida", "mallory@example.org"):
            client.post("/login", data={"name": name, "password": "wrong"}, headers={"Origin": ORIGIN})
        campaign = app.state.campaigns.all()[0].id
        forged = {"Authorization": "Bearer forged"}
        assert client.get(f"/api/v1/campaigns/{campaign}", headers=forged).status_code == 403
        kept = everything(app)["limit_count"]
        assert len({row[0] for row in kept}) == 4  # two names, the address for passwords and for keys
        assert not re.search(r"203\.0|ida|mallory", repr([row[0] for row in kept]))


def test_counts_and_their_keys_go_when_their_time_is_over(target: str) -> None:
    made(target)
    with served(target) as app:
        store = app.state.store
        now = store.read(store.database.now)
        names = []
        for days in (3, 2, 0):  # a hash can't be linked to that of another day
            at = now - days * 86400
            store.write(
                lambda connection, _, at=at: add_attempts(connection, KEY_BY_ADDRESS, "203.0.113.77", at)
            )
            (row,) = everything(app)["limit_count"]
            names.append(row[0])
        assert len(set(names)) == 3
        long_ago = {"what": "keys from 203.0.113.77", "span": 1, "count": 1, "until": now - 3600}
        store.write(lambda connection, _: connection.execute(insert(schema.limit_count).values(long_ago)))
        old_key = {"name": "limits 1 86400", "value": "00", "created": 0, "until": 86400.0}
        store.write(lambda connection, _: connection.execute(insert(schema.secret).values(old_key)))
        app.state.campaigns.sweep()
        after = everything(app)
        assert [row[0] for row in after["limit_count"]] == names[2:]
        assert [row[0] for row in after["secret"] if row[0].startswith("limits")] == [
            f"limits {int(now // 86400)} 86400"
        ]
        before = everything(app)
        app.state.campaigns.sweep()
        assert everything(app) == before
