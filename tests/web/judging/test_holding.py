"""What visitors may hold is bounded: extensions of a question, the work of idle visitors, people from an address."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.campaign import ARRIVING_AT_MOST
from duelpool.campaign.work.holding import IDLE_SECONDS
from duelpool.records import Answer, Outcome, Pool
from duelpool.store import schema
from duelpool.store.leases import EXTENSIONS
from support.campaigns import make_campaign
from support.clocks import move_time
from support.managed import key_for
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, TESTS, Person, crowd_settings, new_store, seen_from, served

LEASE = 1800.0


@pytest.fixture(params=BACK_ENDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_target(request.param, tmp_path) as made:
        yield made


def made(target: str, **settings: Any) -> None:
    pools = [Pool("one", tuple("abcdefgh")), Pool("two", tuple("abcdefgh"))]
    with new_store(target) as store:
        crowd = crowd_settings(lease_seconds=LEASE, strategy="allpairs", cap=1, **settings)
        make_campaign(store, pools, known=TESTS, **crowd)


class Time:
    """The database's time, moved forward."""

    def __init__(self, app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        move_time(app.state.store, monkeypatch, lambda: time.time() + self.ahead)


def extended(person: Person, question: str) -> Any:
    return person.send("extend", {"question": question})


def test_a_question_is_extended_a_limited_number_of_times(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(target)
    with served(target) as app:
        clock, person = Time(app, monkeypatch), Person(app)
        question = person.work()["questions"][0]["id"]
        ends = 0.0
        for _ in range(50):
            got = extended(person, question)
            if got.status_code != 200:
                break
            ends = clock.ahead + got.json()["expires_in"]
            clock.ahead += LEASE * 0.9
            app.state.campaigns.sweep()
        assert got.status_code == 410
        assert ends == pytest.approx((1 + EXTENSIONS) * LEASE, abs=5)
        assert person.work()["questions"][0]["id"] != question  # and it may begin anew


def test_whoever_answers_may_extend_on(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(target)
    with served(target) as app:
        clock, person = Time(app, monkeypatch), Person(app)
        for _ in range(3):
            for _ in range(EXTENSIONS):
                clock.ahead += LEASE * 0.9
                assert extended(person, person.work()["questions"][0]["id"]).status_code == 200
            assert person.judge_on(1)["state"] == "judging"
        assert person.work()["progress"]["done"] == 3


def test_idle_visitors_hold_at_most_half_while_others_wait(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(target)
    with served(target) as app:
        clock = Time(app, monkeypatch)
        idle = [Person(app) for _ in range(6)]
        assert [person.state for person in idle] == ["judging"] * 6  # 56 pairs, ten each
        busy, late = idle.pop(), Person(app)
        assert late.state == "waiting"
        clock.ahead = IDLE_SECONDS + 60.0
        busy.judge_on(1)
        for person in idle:
            assert extended(person, person.work()["questions"][0]["id"]).status_code == 200
        assert held(app) == 6
        assert late.state == "judging"
        assert late.work()["progress"]["of"] == 13
        assert busy.judge_on(1)["state"] == "judging"
        assert 2 <= sum(open_still(app, person) for person in idle) <= 3
        assert held(app) >= 4


def test_nobody_loses_work_while_nobody_waits(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(target)
    with served(target) as app:
        clock, person = Time(app, monkeypatch), Person(app)
        question = person.work()["questions"][0]
        clock.ahead = LEASE - 60.0
        app.state.campaigns.sweep()
        assert Person(app).state == "judging"
        assert person.answer(question).json()["saved"]["late"] is False


def test_an_assignment_with_every_answer_ends_by_itself(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(target)
    with served(target) as app:
        clock, person = Time(app, monkeypatch), Person(app)
        work = person.work()
        campaign = app.state.campaigns.flow(person.campaign).campaign
        visit = app.state.links.read("visit", person.client.cookies[f"duelpool_{person.campaign}"])
        for question in work["questions"]:  # and the server is killed before it ends the assignment
            campaign.answer(question["id"], visit["assessor"], Answer(Outcome.LEFT))
        app.state.campaigns.sweep()
        assert open_still(app, person)  # an answer can be undone
        clock.ahead = LEASE + 60.0
        app.state.campaigns.sweep()
        columns = schema.assignment.c
        states = app.state.store.read(
            lambda connection: connection.execute(select(columns.state)).scalars().all()
        )
        assert states == ["finished"]


def held(app: FastAPI) -> int:
    """Return how many assignments are open."""
    columns = schema.assignment.c
    return int(
        app.state.store.read(
            lambda connection: connection.execute(
                select(func.count()).where(columns.state == "open")
            ).scalar()
        )
    )


def open_still(app: FastAPI, person: Person) -> bool:
    visit = app.state.links.read("visit", person.client.cookies[f"duelpool_{person.campaign}"])
    columns = schema.assignment.c
    query = select(columns.id).where(columns.assessor == visit["assessor"], columns.state == "open")
    return app.state.store.read(lambda connection: connection.execute(query).first()) is not None


def test_the_dashboard_says_who_holds_how_much(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(target)
    with served(target) as app:
        clock = Time(app, monkeypatch)
        assert [Person(app).state for _ in range(3)] == ["judging"] * 3
        clock.ahead = IDLE_SECONDS + 60.0
        busy = Person(app)
        busy.judge_on(1)
        client = TestClient(seen_from("192.0.2.1", app), base_url=ORIGIN)
        client.get(f"/manage/{busy.campaign}", params={"key": key_for(app, busy.campaign)})
        page = " ".join(client.get(f"/manage/{busy.campaign}/assessors").text.split())
        assert "4 people hold 51 questions" in page
        assert "3 of them have given no answer for 10 minutes, and hold 39" in page


def test_a_hundred_arrivals_leave_threads_to_those_who_answer(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(target)
    with served(target) as app:
        busy, late = Person(app), Person(app)
        question = busy.work()["questions"][0]
        campaign = app.state.campaigns.flow(busy.campaign).campaign
        waiting, go_on = threading.Semaphore(0), threading.Event()

        def slow(assessor: str) -> None:  # one assignment is being drawn; the others wait for it
            waiting.release()
            assert go_on.wait(60)

        monkeypatch.setattr(campaign._dispatch, "new_assignment", slow)
        crowd = [
            threading.Thread(target=campaign.next_assignment, args=(name,))
            for name in enrolled(app, campaign)
        ]
        for each in crowd:
            each.start()
        try:
            for _ in crowd:
                assert waiting.acquire(timeout=60)
            assert late.state == "waiting"  # at once: the page asks again by itself
            assert busy.answer(question).status_code == 200
        finally:
            go_on.set()
            for each in crowd:
                each.join()
        monkeypatch.undo()
        assert late.state == "judging"


def enrolled(app: FastAPI, campaign: Campaign) -> list[str]:
    names = [f"worker-{at}" for at in range(ARRIVING_AT_MOST)]
    for name in names:
        campaign.enrol(name, "crowd")
    return names


# ---- new visitors per address


@contextmanager
def at_the_full_hour(
    target: str, monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> Iterator[tuple[FastAPI, Time]]:
    """Serve a campaign; an hour, in which new visitors are counted, has just begun."""
    made(target, **settings)
    with served(target) as app:
        clock = Time(app, monkeypatch)
        clock.ahead = 3600.0 - time.time() % 3600.0
        yield app, clock


def from_address(app: FastAPI, address: str, **how: Any) -> Person:
    """Return a visitor who comes from this address."""
    person = Person(app, link="none")
    person.client = TestClient(seen_from(address, app), base_url=ORIGIN, raise_server_exceptions=False)
    person.entered = person.enter(how.pop("key", "") or person.key(), **how)
    return person


def arrived(person: Person) -> int:
    """Return the status of a visitor's first page."""
    return person.entered.status_code if person.entered.status_code != 303 else person.page().status_code


def people(app: FastAPI) -> int:
    """Return how many people take part."""
    query = select(func.count()).select_from(schema.assessor)
    return int(app.state.store.read(lambda connection: connection.execute(query).scalar()))


def test_new_visitors_of_an_address_are_limited(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_the_full_hour(target, monkeypatch, visitors_per_address=3) as (app, clock):
        first = [from_address(app, "192.0.2.1") for _ in range(3)]
        assert [arrived(person) for person in first] == [200] * 3
        more = from_address(app, "192.0.2.1")
        refused = more.page()
        assert refused.status_code == 429
        assert 3500 <= int(refused.headers["Retry-After"]) <= 3600
        assert "your network" in refused.text
        assert people(app) == 3
        assert arrived(first[0]) == 200  # who is known isn't counted again
        assert first[0].judge_on(1)["state"] == "judging"
        assert arrived(from_address(app, "192.0.2.2")) == 200
        clock.ahead += 3600.0
        assert arrived(more) == 200


def test_the_consent_is_where_a_visitor_is_counted(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_the_full_hour(target, monkeypatch, visitors_per_address=1, steps=("consent",)) as (app, _):
        first, second = (from_address(app, "192.0.2.1") for _ in range(2))
        assert [arrived(first), arrived(second)] == [200, 200]
        agreed = [each.post("step", {"step": "consent", "agree": "yes"}) for each in (first, second)]
        assert [each.status_code for each in agreed] == [303, 429]
        assert people(app) == 1
        assert second.state == "consent"


def test_addresses_of_one_ipv6_line_count_as_one(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_the_full_hour(target, monkeypatch, visitors_per_address=2) as (app, _):
        one_line = [from_address(app, f"2001:db8:1:2::{at}") for at in range(3)]
        assert [arrived(person) for person in one_line] == [200, 200, 429]
        assert arrived(from_address(app, "2001:db8:1:3::1")) == 200


def test_ids_that_anyone_can_make_up_are_counted_once_a_person(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with at_the_full_hour(target, monkeypatch, visitors_per_address=2) as (app, _):
        ids = ("w1", "w2", "w1", "w3", "w2")
        statuses = [arrived(from_address(app, "192.0.2.1", worker=each)) for each in ids]
        assert statuses == [200, 200, 200, 429, 200]


def test_invited_people_are_not_counted(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_the_full_hour(target, monkeypatch, visitors_per_address=1) as (app, _):
        assert arrived(from_address(app, "192.0.2.1")) == 200
        asker = Person(app, link="none")
        for name, once in (("anna", False), ("ben", False), ("cleo", True), ("dora", True)):
            key = asker.key("personal", assessor=name, once=once)
            assert arrived(from_address(app, "192.0.2.1", key=key)) == 200
        assert arrived(from_address(app, "192.0.2.1", key=asker.key("manager"))) == 200  # a preview
        assert arrived(from_address(app, "192.0.2.1")) == 429


def test_zero_lets_any_number_in(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_the_full_hour(target, monkeypatch, visitors_per_address=0) as (app, _):
        assert {arrived(from_address(app, "192.0.2.1")) for _ in range(5)} == {200}


def test_a_class_behind_one_address_is_let_in() -> None:
    assert Settings().visitors_per_address >= 100


def test_arrivals_at_once_pass_the_limit_together_no_more_than_one_by_one(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with at_the_full_hour(target, monkeypatch, visitors_per_address=5) as (app, _):
        waiting = [from_address(app, "192.0.2.1") for _ in range(20)]
        with ThreadPoolExecutor(10) as threads:
            statuses = Counter(threads.map(arrived, waiting))
        assert statuses == {200: 5, 429: 15}
        assert people(app) == 5


def test_the_dashboard_shows_the_limits_and_how_many_were_turned_away(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with at_the_full_hour(target, monkeypatch, visitors_per_address=1) as (app, _):
        persons = [from_address(app, "192.0.2.1") for _ in range(3)]
        assert [arrived(person) for person in persons] == [200, 429, 429]
        campaign = persons[0].campaign
        client = TestClient(seen_from("192.0.2.9", app), base_url=ORIGIN)
        client.get(f"/manage/{campaign}", params={"key": key_for(app, campaign)})
        page = " ".join(client.get(f"/manage/{campaign}/assessors").text.split())
        assert "1 new visitor an hour from one address" in page
        assert "2 were turned away in the last seven days" in page
        assert "at most 120 minutes without an answer" in page  # a lease of 30 minutes, extended three times
        assert "at most 50 % of the questions" in page


def test_an_address_is_stored_as_a_hash_alone(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_the_full_hour(target, monkeypatch, visitors_per_address=1) as (app, _):
        assert [arrived(from_address(app, "192.0.2.77")) for _ in range(2)] == [200, 429]

        def look(connection: Any) -> str:
            return repr([connection.execute(select(each)).all() for each in schema.metadata.tables.values()])

        assert "192.0.2.77" not in app.state.store.read(look)


def test_people_from_a_panel_are_counted_for_their_ids_are_not_signed(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with at_the_full_hour(target, monkeypatch, visitors_per_address=2, panel="prolific") as (app, _):
        statuses = []
        for who, stay in (("p1", "s1"), ("p2", "s2"), ("p1", "s3"), ("p3", "s4")):
            person = Person(app, link="none")
            person.client = TestClient(seen_from("192.0.2.1", app), base_url=ORIGIN)
            study = {"key": person.key(), "PROLIFIC_PID": who, "STUDY_ID": "study", "SESSION_ID": stay}
            got = person.client.get(f"{person.base}/from/prolific", params=study, follow_redirects=False)
            statuses.append(got.status_code)
        assert statuses == [303, 303, 303, 429]
