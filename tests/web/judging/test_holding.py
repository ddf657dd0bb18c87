"""What visitors may hold is bounded: extensions of a question, the work of idle visitors, people from an address."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from duelpool.campaign import Campaign
from duelpool.campaign.campaign import ARRIVING_AT_MOST
from duelpool.campaign.work.holding import IDLE_SECONDS
from duelpool.records import Pool
from duelpool.store import schema
from duelpool.store.leases import EXTENSIONS
from support.campaigns import make_campaign
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
        monkeypatch.setattr(app.state.store.database, "now", lambda connection: time.time() + self.ahead)


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
