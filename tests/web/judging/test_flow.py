"""The flow of a visitor: entry by a link, the steps, judging, and the end."""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import Connection, event, func, insert, select

from duelpool.campaign import Campaign
from duelpool.campaign.settings.welcome import CheckQuestion, PracticePair
from duelpool.campaign.work import participants
from duelpool.campaign.work.participants import Step
from duelpool.records import Answer, Kind, Outcome, Passage, Pool
from duelpool.store import Reading, Writing, holdings, leases, log, open_store, overdue, schema
from duelpool.store.statements import Statement
from duelpool.web.judging import routes
from duelpool.web.judging.flow import TRIES_OF_OWN
from support.campaigns import make_campaign
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, Person, crowd_campaign, crowd_settings, new_store, served


@pytest.fixture(params=BACK_ENDS)
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_target(request.param, tmp_path) as target:
        yield target


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(tmp_path / "campaign.db")


def made(target: str, **settings: Any) -> str:
    with new_store(target) as store:
        return make_campaign(store, **settings).id


def made_crowd(target: str, **settings: Any) -> str:
    with new_store(target) as store:
        return crowd_campaign(store, **settings).id


def count(app: FastAPI, table: Any) -> int:
    return int(
        app.state.store.read(
            lambda connection: connection.execute(select(func.count()).select_from(table)).scalar()
        )
    )


def open_campaign(app: FastAPI) -> Campaign:
    return Campaign.open(app.state.store)


# ---- before judging


def test_a_first_visit_passes_every_step_in_order(target: str) -> None:
    check = (CheckQuestion("Which wins?", ("the longer", "the better"), 1),)
    practice = (PracticePair("Q?", "good", "bad", "left", "It answers."),)
    made(target, check=check, practice=practice, consent="Do you **agree**?", guidelines="# Judge well")
    with served(target) as app:
        person = Person(app)
        assert person.state == "consent"
        assert "<strong>agree</strong>" in person.page().text
        assert person.post("step", {"step": "guide"}).status_code == 303
        assert person.post("step", {"step": "consent"}).status_code == 303  # without a yes
        assert person.state == "consent"
        person.post("step", {"step": "consent", "agree": "yes"})
        assert person.state == "guide"
        person.post("step", {"step": "guide"})
        assert person.state == "check"
        assert '"1"' in person.page().text
        person.post("step", {"step": "check", "c1": "0"})
        assert person.state == "check"
        person.post("step", {"step": "check", "c1": "1"})
        assert person.state == "practice"
        assert "It answers." not in person.page().text
        person.post("step", {"step": "practice", "number": "1", "outcome": "right"})
        assert person.state == "practice"
        assert "It answers." in person.page().text
        person.post("step", {"step": "practice", "number": "1", "go_on": "yes"})
        assert person.state == "judging"


def test_invited_colleague_judges_after_consent_and_guide(target: str) -> None:
    made(target)
    with served(target) as app:
        key = Person(app, link="none").key
        invited, stranger = Person(app, link=key("personal", assessor="anna")), Person(app)
        for person in (invited, stranger):
            person.post("step", {"step": "consent", "agree": "yes"})
            person.post("step", {"step": "guide"})
        assert (invited.state, stranger.state) == ("judging", "check")


def test_invited_worker_of_a_crowd_takes_every_step(target: str) -> None:
    made_crowd(target, steps=("consent", "guide", "check", "practice"))
    with served(target) as app:
        worker = Person(app, link=Person(app, link="none").key("personal", assessor="anna"))
        worker.post("step", {"step": "consent", "agree": "yes"})
        worker.post("step", {"step": "guide"})
        assert worker.state == "check"


def test_dedicated_assessors_read_the_guide_again_instead_of_leaving(target: str) -> None:
    made(target, steps=("check",), check=(CheckQuestion("?", ("a", "b"), 1),))
    with served(target) as app:
        person = Person(app)
        assert "Some answers were wrong" not in person.page().text
        for _ in range(TRIES_OF_OWN - 1):
            person.post("step", {"step": "check", "c1": "0"})
            assert person.state == "check"
        assert "Some answers were wrong" in person.page().text
        assert "Tries left" not in person.page().text
        person.post("step", {"step": "check", "c1": "1"})
        assert person.state == "judging"


def test_the_check_has_two_tries_for_a_crowd(target: str) -> None:
    made(target, judges="crowd", steps=("check",), check=(CheckQuestion("?", ("a", "b"), 1),))
    with served(target) as app:
        person = Person(app)
        for _ in range(2):
            assert person.state == "check"
            person.post("step", {"step": "check", "c1": "0"})
        assert person.state == "check-failed"
        person.post("step", {"step": "check", "c1": "1"})
        assert person.state == "check-failed"
        assert count(app, schema.question) == 0


def test_default_check_and_practice_pairs(target: str) -> None:
    made(target, steps=("check", "practice"))
    with served(target) as app:
        person = Person(app)
        assert person.state == "check"
        from duelpool.web.i18n import catalogue

        answers = {each["id"]: each["answer"] for each in catalogue("en").listed("check")}
        person.post("step", {"step": "check", **answers})
        for number in (1, 2):
            assert person.state == "practice"
            person.post("step", {"step": "practice", "number": number, "outcome": "left"})
            person.post("step", {"step": "practice", "number": number, "go_on": "yes"})
        assert person.state == "judging"


def test_a_visitor_who_only_looks_is_not_stored(target: str) -> None:
    made(target)
    with served(target) as app:
        assert Person(app).state == "consent"
        assert count(app, schema.assessor) == 0


def test_an_outside_identity_has_one_pseudonym_in_every_browser(target: str) -> None:
    made(target, steps=("consent",), identity_parameter="worker")
    with served(target) as app:
        first, second, other = (Person(app, worker=name) for name in ("w1", "w1", "w2"))
        first.post("step", {"step": "consent", "agree": "yes"})
        assert second.state == "judging"
        assert other.state == "consent"
        assert count(app, schema.assessor) == count(app, schema.identity) == 1
        names = app.state.store.read(lambda connection: connection.execute(select(schema.identity)).all())
        assert all("w1" not in row.assessor for row in names)


# ---- a crowd


def test_a_skipped_question_earns_nothing(tmp_path: Path) -> None:
    where = str(tmp_path / "c.db")
    made_crowd(where)
    with served(where) as app:
        person = Person(app, worker="w1")
        skipped, judged = person.work()["questions"][:2]
        campaign = open_campaign(app)
        assessor = campaign.read(lambda tx: tx.connection.execute(select(schema.assessor.c.id)).scalar_one())
        campaign.answer(skipped["id"], assessor, Answer(Outcome.SKIP))  # an earlier release's page took it
        got = person.answer(judged, "left").json()
        assert got["progress"] == {"done": 2, "of": 13}
        assert got["credit"]["done"] == 1


def test_a_whole_assignment(anywhere: str) -> None:
    made_crowd(
        anywhere, feedback=True, completion_code="CODE-7", completion_url="https://panel.example/?cc=7"
    )
    with served(anywhere) as app:
        person = Person(app, worker="w1")
        work = person.work()
        assert (work["state"], len(work["questions"]), work["progress"]) == (
            "judging",
            13,
            {"done": 0, "of": 13},
        )
        assert work["credit"] == {"done": 0, "of": 13, "pay": "0.00 USD"}
        work = person.judge_on(4)
        assert work["progress"] == {"done": 4, "of": 13}
        assert work["credit"]["pay"] == "0.62 USD"
        assert [each["id"] for each in person.work()["questions"]] == [
            each["id"] for each in work["questions"]
        ]
        work = person.judge_on()
        assert (work["state"], work["questions"], work["can_undo"]) == ("feedback", [], None)
        assert "CODE-7" not in person.page().text
        person.post("feedback", {"confidence": "4", "understanding": "5", "text": "fine"})
        assert person.state == "complete"
        page = person.page().text
        assert "CODE-7" in page
        assert "https://panel.example/?cc=7" in page
        assert "2.00 USD" in page
        row = app.state.store.read(lambda connection: connection.execute(select(schema.feedback)).one())
        assert (row.confidence, row.understanding, row.text) == (4, 5, "fine")
        person.post("feedback", {"confidence": "1"})
        assert count(app, schema.feedback) == 1


def test_forms_work_without_scripts(target: str) -> None:
    made_crowd(target)
    with served(target) as app:
        person = Person(app)
        for _ in range(13):
            question = person.work()["questions"][0]
            got = person.post(
                "answer", {"question": question["id"], "attempt": 1, "outcome": person.better(question)}
            )
            assert (got.status_code, got.headers["location"]) == (303, f"{person.base}/")
        assert person.state == "complete"
        assert count(app, schema.log) == 13 + 2  # and a release in each topic


def test_further_assignments_up_to_the_limit(target: str) -> None:
    made_crowd(target, assignments_each=2, cap=1)
    with served(target) as app:
        person = Person(app)
        person.judge_on()
        assert person.state == "complete"
        assert person.work()["state"] == "complete"
        person.post("step", {"step": "another"})
        assert person.state == "judging"
        person.judge_on()
        assert person.state == "complete"
        person.post("step", {"step": "another"})
        assert person.state == "complete"


def test_stopping_early_pays_the_answered_questions(target: str) -> None:
    made_crowd(target)
    with served(target) as app:
        person = Person(app)
        person.judge_on(3)
        got = person.send("stop")
        assert (got.json()["state"], got.json()["credit"]) == (
            "complete",
            {"done": 3, "of": 13, "pay": "0.47 USD"},
        )
        held = app.state.store.read(
            lambda connection: connection.execute(
                select(func.count()).where(schema.question.c.state == leases.LEASED)
            ).scalar()
        )
        assert held == 0


def test_failing_test_pairs_excludes_and_pays_with_a_neutral_page(anywhere: str) -> None:
    made_crowd(anywhere, completion_code="CODE-7", feedback=True)
    with served(anywhere) as app:
        person = Person(app)
        work = person.judge_on(well=False)
        assert work["state"] == "excluded"
        page = person.page()
        assert page.status_code == 200
        assert "CODE-7" in page.text
        assert "2.00 USD" in page.text
        assert "test" not in page.text.lower().replace("latest", "")
        assert person.work()["questions"] == []


def test_undo_reopens_the_question_and_puts_it_first(target: str) -> None:
    made_crowd(target)
    with served(target) as app:
        person = Person(app)
        question = person.work()["questions"][0]
        assert person.work()["can_undo"] is None
        got = person.answer(question, "left").json()
        assert got["can_undo"] == question["id"]
        got = person.send("undo", {"question": question["id"]})
        assert got.status_code == 200
        again = got.json()["questions"][0]
        assert (again["id"], again["attempt"]) == (question["id"], 2)
        assert got.json()["can_undo"] is None
        assert person.send("undo", {"question": question["id"]}).status_code == 409
        late = person.answer(question, "left")  # long under way; it was taken back since
        assert late.json()["saved"]["repeated"]
        assert person.answer(again, "right").json()["saved"] == {
            "question": question["id"],
            "attempt": 2,
            "outcome": "right",
            "repeated": False,
            "late": False,
        }


def test_answers_of_a_finished_assignment_cannot_be_undone(target: str) -> None:
    made_crowd(target)
    with served(target) as app:
        person = Person(app)
        person.judge_on(12)
        last = person.work()["questions"][0]
        assert person.answer(last, person.better(last)).json()["state"] == "complete"
        assert person.send("undo", {"question": last["id"]}).status_code == 409
        assert person.answer(last, person.better(last)).json()["saved"]["repeated"]


def test_questions_that_the_page_has_are_sent_briefly(target: str) -> None:
    made_crowd(target)
    with served(target) as app:
        person = Person(app)
        first, second, *rest = person.work()["questions"]
        have = [f"{each['id']}:{each['attempt']}" for each in rest]
        got = person.answer(first, "left", have=have).json()["questions"]
        assert got[0] == {**second, "expires_in": got[0]["expires_in"]}
        assert all(set(each) == {"id", "attempt", "expires_in"} for each in got[1:])


# ---- dedicated people


def test_progress_in_a_topic_counts_what_all_have_judged(anywhere: str) -> None:
    made(anywhere, pools={"one": "abcd"}, strategy="allpairs:repeats=2", cap=2, steps=())
    with served(anywhere) as app:
        keys = Person(app, link="none")
        anna, ben = (Person(app, link=keys.key("personal", assessor=name)) for name in ("anna", "ben"))
        question = anna.work()["questions"][0]
        anna.answer(question, "left")
        assert anna.work()["progress"] == {"done": 1, "of": None, "topic": {"done": 1, "of": 12}}
        assert ben.work()["progress"] == {"done": 0, "of": None, "topic": {"done": 1, "of": 12}}
        undone = anna.send("undo", {"question": question["id"]}).json()["progress"]
        assert undone == {"done": 0, "of": None, "topic": {"done": 0, "of": 12}}


def test_a_dedicated_assessor_judges_topic_by_topic(anywhere: str) -> None:
    made(anywhere, pools={"one": "abc", "two": "abc"}, strategy="allpairs", cap=1, steps=(), feedback=True)
    with served(anywhere) as app:
        person = Person(app, link=Person(app, link="none").key("personal", assessor="anna"))
        work = person.work()
        assert len(work["questions"]) == 2
        assert {each["topic"]["text"] for each in work["questions"]} == {"Question one?"}
        assert work["progress"] == {"done": 0, "of": None, "topic": {"done": 0, "of": 3}}
        assert work["credit"] is None
        work = person.judge_on()
        assert work["state"] == "feedback"
        page = person.page().text
        assert '<p class="about" dir="auto">Question one?</p>' in page
        assert "Send and continue" in page
        person.post("feedback", {"understanding": "5"})
        assert person.work()["progress"]["topic"] == {"done": 0, "of": 3}
        person.judge_on()
        person.post("feedback", {})
        assert person.state == "no-work"
        assert count(app, schema.log) == 6
        who = app.state.store.read(
            lambda connection: connection.execute(select(schema.log.c.assessor).distinct()).scalars().all()
        )
        assert who == ["anna"]


def test_no_topic_feedback_while_others_hold_its_questions(target: str) -> None:
    made(target, pools={"one": "abc"}, strategy="allpairs", cap=1, steps=(), feedback=True)
    with served(target) as app:
        key = Person(app, link="none").key
        anna, bert = (Person(app, link=key("personal", assessor=name)) for name in ("anna", "bert"))
        assert (len(anna.work()["questions"]), len(bert.work()["questions"])) == (2, 1)
        assert anna.judge_on()["state"] == "waiting"
        assert bert.judge_on()["state"] == "feedback"
        assert anna.state == "feedback"


def test_stopping_before_judging_changes_nothing(target: str) -> None:
    made(target)
    with served(target) as app:
        person = Person(app)
        assert person.post("stop").status_code == 303
        assert person.send("stop").json()["state"] == "consent"
        assert count(app, schema.step) == 0


def test_outdated_forms_change_nothing(target: str) -> None:
    made(target, steps=("practice",), feedback=False)
    with served(target) as app:
        person = Person(app)
        for form in (
            {"step": "another"},
            {"step": "consent", "agree": "yes"},
            {"step": "practice", "go_on": "yes"},
        ):
            assert person.post("step", form).status_code == 303
        assert count(app, schema.step) == 0
        person.post("step", {"step": "practice", "number": "1", "outcome": "left"})
        person.post("step", {"step": "practice", "number": "1", "outcome": "right"})
        assert count(app, schema.step) == 1
        assert person.post("step", {"step": "practice", "number": "2", "outcome": "right"}).status_code == 303
        assert count(app, schema.step) == 1


def test_no_default_check_for_a_custom_guide(target: str) -> None:
    made(target, guidelines="Choose the **shorter** one.", steps=("check", "practice"))
    with served(target) as app:
        assert Person(app).state == "practice"


def test_a_dedicated_assessor_stops_and_comes_back(target: str) -> None:
    made(target, steps=())
    with served(target) as app:
        person = Person(app)
        person.judge_on(1)
        person.post("stop")
        assert person.state == "complete"
        assert open_campaign(app).held(_only_assessor(app)) == []
        person.post("step", {"step": "another"})
        assert person.state == "judging"


def _only_assessor(app: FastAPI) -> str:
    campaign = open_campaign(app)
    return next(iter(campaign.read(holdings.assessors)))


def test_an_assessor_waits_while_others_hold_all_pairs(target: str) -> None:
    made(target, pools={"one": "ab"}, strategy="allpairs", cap=1, steps=(), feedback=False)
    with served(target) as app:
        first, second = Person(app), Person(app)
        assert first.state == "judging"
        assert second.state == "waiting"
        assert second.work()["state"] == "waiting"
        first.judge_on()
        assert second.state == "no-work"
        assert "Everything is judged" in second.page().text


# ---- states of the campaign


def test_paused_and_closed_campaigns_take_answers_but_lease_nothing(target: str) -> None:
    made(target, steps=())
    with served(target) as app:
        person = Person(app)
        question = person.work()["questions"][0]
        campaign = open_campaign(app)
        campaign.set_state("paused")
        assert person.state == "paused"
        got = person.answer(question, "left")
        assert (got.status_code, got.json()["state"]) == (200, "paused")
        campaign.set_state("closed")
        assert person.state == "ended"
        campaign.set_state("open")
        assert person.state == "judging"


def test_an_exhausted_budget_gives_no_work(target: str) -> None:
    made_crowd(target, budget=100)
    with served(target) as app:
        person = Person(app)
        assert person.state == "no-work"
        assert "There is nothing to judge right now" in person.page().text


def test_changed_settings_take_effect(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duelpool.web.campaigns.REREAD_SECONDS", 0.0)
    made(target, steps=())
    with served(target) as app:
        person = Person(app)
        assert "tie" not in person.work()["questions"][0]["outcomes"]
        campaign = open_campaign(app)
        campaign.change(replace(campaign.settings, ties=True))
        assert "tie" in person.work()["questions"][0]["outcomes"]


# ---- leases


def _let_run_out(app: FastAPI) -> None:
    app.state.store.write(
        lambda connection, now: connection.execute(schema.question.update().values(expires=now - 1))
    )


def test_a_late_answer_is_taken_if_a_slot_is_free(target: str) -> None:
    made_crowd(target)
    with served(target) as app:
        person = Person(app)
        question, *others = person.work()["questions"]
        _let_run_out(app)
        app.state.campaigns.flow(person.campaign).campaign.write(overdue.expire)
        got = person.answer(question, "left").json()
        assert got["saved"]["late"]
        assert got["progress"] == {"done": 1, "of": 13}
        assert [each["id"] for each in got["questions"]] == [each["id"] for each in others]


def test_a_lost_lease_is_reported_and_credited(target: str) -> None:
    pools = {"one": "abcdefgh", "two": "abcdefgh"}
    made(target, pools=pools, **crowd_settings(tests=0, cap=1, assignments_each=20))
    with served(target) as app:
        person, other = Person(app), Person(app)
        question = person.work()["questions"][0]
        app.state.store.write(
            lambda connection, now: connection.execute(
                schema.question.update().where(schema.question.c.id == question["id"]).values(expires=now - 1)
            )
        )
        campaign = open_campaign(app)
        campaign.sweep()
        while _texts(question) not in (asked := [_texts(each) for each in other.work()["questions"]]):
            assert asked, "nobody got the pair that is free"
            other.judge_on(len(asked))
            other.post("step", {"step": "another"})
        other.judge_on()
        before = count(app, schema.log)
        for _ in range(2):  # a retry hears the same
            got = person.answer(question, "left")
            assert got.status_code == 410
            assert set(got.json()) == {"problem", "remedy", "reference"}
        assert count(app, schema.log) == before
        assert person.work()["credit"]["done"] == 1
        form = person.post("answer", {"question": question["id"], "attempt": "1", "outcome": "left"})
        assert form.status_code == 410
        assert 'data-state="lease-lost"' in form.text


def _texts(question: dict[str, Any]) -> tuple[str, ...]:
    return question["topic"]["text"], *sorted((question["left"]["text"], question["right"]["text"]))


def test_answers_after_the_assignment_timed_out_count(target: str) -> None:
    """Answers to an ended assignment count at once."""
    made_crowd(target)
    with served(target) as app:
        person = Person(app)
        questions = person.work()["questions"]
        person.judge_on(1)
        _let_run_out(app)
        campaign = open_campaign(app)
        campaign.sweep()
        for question in questions[1:]:
            got = person.answer(question, person.better(question))
            assert got.json()["saved"]["late"]
            assert got.json()["state"] == "waiting"  # others may be under way, so nothing new is begun
        assert [campaign.live.state(topic).held() for topic in ("one", "two")] == [[], []]
        assert sum(len(campaign.judgments(topic)) for topic in ("one", "two")) == 10
        assert person.work()["progress"] == {"done": 0, "of": 13}  # of a new assignment


def test_late_answers_of_an_excluded_assessor_are_refused(target: str) -> None:
    made(target, steps=())
    with served(target) as app:
        person = Person(app, worker="w1")
        first, second = person.work()["questions"]
        assert person.answer(first, "left").status_code == 200
        open_campaign(app).exclude(_only_assessor(app), "to see")
        before = count(app, schema.log)
        assert person.answer(second, "left").status_code == 410
        assert count(app, schema.log) == before
        assert person.work()["state"] == "excluded"


def test_extending_renews_the_leases_of_the_whole_assignment(target: str) -> None:
    made_crowd(target, lease_seconds=100.0)
    with served(target) as app:
        person = Person(app)
        first, *_ = person.work()["questions"]
        app.state.store.write(
            lambda connection, now: connection.execute(schema.question.update().values(expires=now + 5))
        )
        assert person.work()["questions"][5]["expires_in"] <= 5
        assert 98 <= person.send("extend", {"question": first["id"]}).json()["expires_in"] <= 100
        assert all(each["expires_in"] > 90 for each in person.work()["questions"])


def test_two_tabs_share_one_assignment(target: str) -> None:
    made_crowd(target)
    with served(target) as app:
        person = Person(app, worker="w1")
        other_tab = Person(app, worker="w1")
        assert [each["id"] for each in person.work()["questions"]] == [
            each["id"] for each in other_tab.work()["questions"]
        ]
        question = person.work()["questions"][0]
        assert person.answer(question, "left").status_code == 200
        assert other_tab.answer(question, "left").json()["saved"]["repeated"]
        conflict = other_tab.answer(question, "right")
        assert conflict.status_code == 409
        kept = app.state.store.read(
            lambda connection: (
                connection.execute(select(schema.log.c.outcome).where(schema.log.c.event == log.JUDGMENT))
                .scalars()
                .all()
            )
        )
        assert kept == ["left"]


def test_ten_simultaneous_copies_are_one_answer(anywhere: str) -> None:
    made(anywhere, steps=())
    with served(anywhere) as app:
        people = [Person(app, worker="w1") for _ in range(10)]
        question = people[0].work()["questions"][0]
        with ThreadPoolExecutor(10) as pool:
            got = list(pool.map(lambda person: person.answer(question, "left"), people))
        assert [each.status_code for each in got] == [200] * 10
        assert sum(not each.json()["saved"]["repeated"] for each in got) == 1
        assert count(app, schema.log) == 1
        assert people[0].answer(question, "right").status_code == 409


def test_the_sweeper_continues_after_errors(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from starlette.testclient import TestClient

    from duelpool.web.campaigns import ServedCampaigns
    from duelpool.web.server.app import make_app

    def fail(self: ServedCampaigns) -> None:
        raise RuntimeError("once")

    made(target, steps=(), cap=1)
    monkeypatch.setattr(ServedCampaigns, "warm", fail)  # what is done before the first sweep
    app = make_app(target, sweep_seconds=0.05)
    person = Person(app)
    person.work()
    _let_run_out(app)
    with TestClient(app):
        for _ in range(100):
            states = app.state.store.read(
                lambda connection: (
                    connection.execute(select(schema.question.c.state).distinct()).scalars().all()
                )
            )
            if states == [leases.EXPIRED]:
                break
            time.sleep(0.05)
    assert states == [leases.EXPIRED]


@pytest.mark.parametrize("judges", ["dedicated", "crowd"])
def test_answers_that_the_page_does_not_offer_are_refused(target: str, judges: str) -> None:
    """A worker who could skip would leave out the test pairs."""
    made(target, pools={"one": "abcde"}, **(crowd_settings(tests=0) if judges == "crowd" else {"steps": ()}))
    with served(target) as app:
        person = Person(app, worker="w1")
        question = person.work()["questions"][0]
        for outcome in ("flip-tie", "flip-abstain", *(("skip",) if judges == "crowd" else ())):
            assert outcome not in question["outcomes"]
            got = person.answer(question, outcome)
            assert got.status_code == 422
            assert person.work()["questions"][0]["id"] == question["id"]
        for outcome in question["outcomes"][-1:]:
            assert person.answer(question, outcome).status_code == 200


# ---- beside a question


def test_context_is_other_items_or_snippets(target: str) -> None:
    made(target, pools={"one": "abcde"}, steps=())
    with served(target) as app:
        person = Person(app)
        question = person.work()["questions"][0]
        got = person.client.get(f"{person.base}/context/{question['id']}").json()["snippets"]
        shown = {question["left"]["text"], question["right"]["text"]}
        assert {each["text"] for each in got} == {f"Text of {item}." for item in "abcde"} - shown


def test_context_can_be_switched_off(target: str) -> None:
    made(target, pools={"one": "abcde"}, steps=(), context=False)
    with served(target) as app:
        person = Person(app)
        question = person.work()["questions"][0]
        assert person.client.get(f"{person.base}/context/{question['id']}").status_code == 404


def test_an_html_passage_is_served_in_a_sandbox(target: str) -> None:
    with new_store(target) as store:
        campaign = make_campaign(store, [Pool("one", ("x", "y"))], steps=())
        store.write(
            lambda connection, now: connection.execute(
                schema.passage.update().values(text="<b>bold</b><script>alert(1)</script>", format="html")
            )
        )
        assert isinstance(campaign, Campaign)
    with served(target) as app:
        person = Person(app)
        question = person.work()["questions"][0]
        assert "text" not in question["left"]
        got = person.client.get(question["left"]["src"])
        assert got.status_code == 200
        assert got.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert person.client.get(f"{person.base}/frame/{question['id']}/middle").status_code == 404


def test_markdown_is_sent_as_safe_html(target: str) -> None:
    with new_store(target) as store:
        make_campaign(store, [Pool("one", ("x", "y"))], steps=())
        store.write(
            lambda connection, now: connection.execute(
                schema.passage.update().values(text="**b** <script>1</script>", format="markdown")
            )
        )
    with served(target) as app:
        left = Person(app).work()["questions"][0]["left"]
        assert "<strong>b</strong>" in left["html"]
        assert "<script" not in left["html"]
        assert Passage("x", "y").format == "text"


# ---- grades


@pytest.mark.parametrize(("scale", "grades"), [("binary", 2), ("abc", 3), ("five", 5)])
def test_grades_have_labels_and_are_stored(target: str, scale: str, grades: int) -> None:
    made(target, stage="grading", scale=scale, steps=(), pools={"one": "ab"})
    with served(target) as app:
        person = Person(app)
        question = person.work()["questions"][0]
        assert (question["kind"], question["right"], len(question["grades"])) == ("grade", None, grades)
        assert all(not each["label"].isdigit() for each in question["grades"])
        assert person.answer(question, "grade", grade=7).status_code == 422
        assert person.answer(question, "grade", grade=1).status_code == 200
        assert person.page().status_code == 200


def test_a_crossed_design_shows_each_kind_one_topic_at_a_time(target: str) -> None:
    kinds = (Kind.PREFERENCE, Kind.DEFINITE, Kind.GRADE)
    pools = {"one": "abc", "two": "abc", "three": "abc"}
    made(target, pools=pools, crossed=kinds, people_per_kind=1, strategy="sorting", steps=(), feedback=False)
    with served(target) as app:
        person = Person(app)
        seen: dict[str, set[str]] = {}
        work = person.work()
        while work["state"] == "judging":
            assert len({each["topic"]["text"] for each in work["questions"]}) == 1
            first = work["questions"][0]
            seen.setdefault(first["topic"]["text"], set()).add(first["kind"])
            assert ("definitely-left" in first["outcomes"]) == (first["kind"] == "definite")
            graded = first["kind"] == "grade"
            assert bool(first["grades"]) == graded == (first["right"] is None)
            got = (
                person.answer(first, "grade", grade=1)
                if graded
                else person.answer(first, person.better(first))
            )
            assert got.status_code == 200, got.text
            assert person.page().status_code == 200
            work = got.json()
        assert sorted(min(each) for each in seen.values()) == ["definite", "grade", "preference"]
        assert all(len(each) == 1 for each in seen.values())


# ---- preview


@pytest.mark.parametrize("judges", ["crowd", "dedicated"])
def test_a_preview_shows_every_page_and_stores_nothing(target: str, judges: str) -> None:
    made_crowd(target, judges=judges, steps=("consent", "guide", "check", "practice"), feedback=True)
    with served(target) as app:
        person = Person(app, link=Person(app, link="none").key("manager"))
        seen = [person.state]
        for _ in range(20):
            state = seen[-1]
            if state == "judging":
                work = person.work()
                assert person.answer(work["questions"][0], "left").status_code == 200
                got = person.send("undo", {"question": work["questions"][0]["id"]}).json()
                assert got["questions"][0]["id"] == work["questions"][0]["id"]
                person.post("answer", {"question": work["questions"][0]["id"], "outcome": "left"})
            elif state == "feedback":
                person.post("feedback", {"confidence": "3"})
            elif state == "practice":
                person.post("step", {"step": "practice", "outcome": "left"})
                person.post("step", {"step": "practice", "go_on": "yes"})
            elif state != "complete":
                person.post("step", {"step": state, "agree": "yes"})
            seen.append(person.state)
        assert list(dict.fromkeys(seen)) == [
            *("consent", "guide", "check", "practice", "judging", "feedback", "complete")
        ]
        for table in (schema.assessor, schema.question, schema.log, schema.step, schema.feedback):
            assert count(app, table) == 0


def test_a_preview_refuses_an_answer_that_an_assessor_could_not_give(target: str) -> None:
    made_crowd(target)
    with served(target) as app:
        person = Person(app, link=Person(app, link="none").key("manager"))
        for body in ('{"question": 1e999, "outcome": "left"}', '{"question": "preview-0", "outcome": {}}'):
            headers = {"Content-Type": "application/json", **person.headers}
            got = person.client.post(f"{person.base}/answer", content=body, headers=headers)
            assert got.status_code == 422, (body, got.text)


def test_visitor_state_equals_its_parts_read_one_by_one(anywhere: str) -> None:
    name = made(anywhere, steps=("consent", "guide"))
    with open_store(anywhere) as store:
        campaign = Campaign.open(store, name)
        campaign.enrol("p", "dedicated")
        campaign.enrol("q", "dedicated")

        def happen(tx: Writing) -> None:
            for at, step in enumerate((Step("guide", "yes"), Step("consent", "yes"), Step("guide", "yes"))):
                participants.record_step(tx.at(100.0 - at), "p", step)  # in the order in which they came
            for at, (id_, state) in enumerate((("b", "finished"), ("a", "returned"), ("c", "open"))):
                row = {"id": id_, "campaign": tx.campaign, "assessor": "p", "questions": 1, "state": state}
                tx.connection.execute(insert(schema.assignment).values(**row, created=float(at // 2)))
            participants.give_feedback(tx, "p", assignment="b")
            participants.give_feedback(tx, "p", topic="one")

        campaign.write(happen)
        for outcome in (Outcome.LEFT, Outcome.CANNOT_JUDGE, Outcome.SKIP, Outcome.RIGHT):
            question = campaign.next_question("p")
            assert question is not None
            campaign.answer(question.id, "p", Answer(outcome))
        for who in ("p", "q", "nobody"):
            state = campaign.read(partial(participants.visitor_state, assessor=who, count=True))
            assert state == campaign.read(partial(_visitor_by_parts, who=who))
            assert sum(state.answered.values()) == (3 if who == "p" else 0)
            assert not campaign.read(partial(participants.visitor_state, assessor=who)).answered


def _visitor_by_parts(tx: Reading, who: str) -> participants.VisitorState:
    def rows(table: Any, *columns: Any, order: tuple[Any, ...] = ()) -> list[Any]:
        query = select(*columns).where(table.c.campaign == tx.campaign, table.c.assessor == who)
        return list(tx.connection.execute(query.order_by(*order)))

    state = participants.participant_state(tx, who)
    known = holdings.assessors(tx).get(who)
    steps, work, given = schema.step.c, schema.assignment.c, schema.feedback.c
    feedback = rows(schema.feedback, given.assignment, given.topic)
    return participants.VisitorState(
        state.campaign,
        state.person,
        None if known is None else known.kind,
        tuple(Step(*row) for row in rows(schema.step, steps.name, steps.outcome, order=(steps.id,))),
        tuple(
            (row.id, row.state)
            for row in rows(schema.assignment, work.id, work.state, order=(work.created, work.id))
        ),
        frozenset(each for row in feedback for each in row if each is not None),
    )


def test_an_answer_with_its_next_question_takes_few_statements(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(target, steps=())
    with served(target, sweep_seconds=1e6) as app:
        person = Person(app)
        for _ in range(2):  # texts and pools are read once
            assert person.answer(person.work()["questions"][0]).status_code == 200
        question = person.work()["questions"][0]
        run: list[str] = []
        plainly = Statement.run

        def noted(self: Statement, connection: Connection, values: Mapping[str, Any]) -> list[Any]:
            run.append(self.compiled(connection.dialect.name).text)
            return plainly(self, connection, values)

        monkeypatch.setattr(Statement, "run", noted)
        for engine in (app.state.store.database.engine, app.state.store.database._writing):
            event.listen(engine, "before_cursor_execute", lambda *given: run.append(given[2]))
        assert person.answer(question).status_code == 200
        assert len(run) <= 13, run


def test_the_short_way_replies_as_the_long_way_does(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(target, steps=())
    unreadable = {"content": b"{", "headers": {"Content-Type": "application/json"}}
    elsewhere = {"json": {"question": "x", "outcome": "left"}, "headers": {"Origin": "https://a.example"}}
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "answer", {"json": {"outcome": "left"}, "headers": {"Origin": ORIGIN}}),
        ("POST", "answer", {"json": {"question": "x", "outcome": "left"}, "headers": {"Origin": ORIGIN}}),
        ("POST", "answer", unreadable),
        ("POST", "answer", elsewhere),
        ("POST", "answer", {"content": b"x", "headers": {"Content-Type": "text/plain"}}),
        ("GET", "answer", {}),
        ("GET", "work", {}),
        ("HEAD", "work", {}),
        ("PUT", "work", {}),
    ]
    replies: list[list[Any]] = []
    for often in (routes.OFTEN, {}):
        monkeypatch.setattr(routes, "OFTEN", often)
        with served(target) as app:
            person = Person(app, worker="w")
            got = [
                person.client.request(method, f"/j/{campaign}/{rest}", **more)
                for campaign in (person.campaign, "nonsense")
                for method, rest, more in requests
            ]
        changing = r'"(reference|expires_in)":("[^"]*"|[0-9]+)|[0-9a-f]{8}'
        replies.append([(each.status_code, re.sub(changing, "", each.text)) for each in got])
        replies[-1] += [sorted(each.headers) for each in got]
    assert replies[0] == replies[1]
    assert {each[0] for each in replies[0][:9]} == {200, 403, 404, 405, 415, 422}
