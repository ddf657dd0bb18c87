"""Routes of panels: arrivals, refusals, messages, and the effects of each status."""

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest

from duelpool.panels.base import SubmissionStatus
from duelpool.panels.prolific import STATUSES
from duelpool.panels.signatures import WINDOW_SECONDS
from duelpool.recruitment.reports import apply_reports
from duelpool.recruitment.settlement import reconcile, settle
from duelpool.store import schema
from duelpool.web.judging.panels import MESSAGE_AT_MOST
from support.campaigns import make_campaign
from support.fake_prolific import SECRET
from support.panels import Guest, House, house
from support.visitors import Person


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("panel")) as opened:
        make_campaign(opened.store, name="other", steps=())
        yield opened


@pytest.fixture
def home(shared: House) -> House:
    shared.fake.events.clear()
    return shared


def kept(home: House) -> dict[str, list[Any]]:
    return {table.name: home.rows(table) for table in schema.metadata.sorted_tables}


# ---- coming in


def test_one_panel_identity_has_one_pseudonym(home: House) -> None:
    guest = home.guest()
    assert guest.entered.status_code == 303
    again = Guest(home, guest.submission)
    assert again.state == guest.state == "judging"
    held = [row for row in home.rows(schema.submission) if row.external == guest.submission.id]
    assert len(held) == 1
    identity = {row.external: row.assessor for row in home.rows(schema.identity)}
    assert identity[guest.submission.participant] == held[0].assessor
    assert guest.submission.participant not in held[0].assessor
    cookie = "".join(guest.client.cookies.values())
    assert guest.submission.participant not in cookie


def test_a_submission_belongs_to_one_person(home: House) -> None:
    guest = home.guest()
    thief = Person(home.app, home.campaign.id, link="none")
    query = {**home.fake.query(guest.submission), "PROLIFIC_PID": secrets.token_hex(12), "key": thief.key()}
    got = thief.client.get(f"{thief.base}/from/prolific", params=query, follow_redirects=False)
    assert got.status_code == 403
    assert home.rows(schema.arrival)[-1].reason == "the submission is another person's"
    assert thief.page().status_code == 403


@pytest.mark.parametrize(
    "change",
    [
        {"PROLIFIC_PID": ""},
        {"SESSION_ID": "a/b"},
        {"STUDY_ID": "another"},
        {"SESSION_ID": ["a1", "a2"]},
        {"PROLIFIC_PID": "é"},
        {"PROLIFIC_PID": "x" * 600},
        {"key": "forged"},
        {"key": ""},
    ],
    ids=repr,
)
def test_visitors_without_the_panels_parameters_are_refused(home: House, change: dict[str, Any]) -> None:
    person = Person(home.app, home.campaign.id, link="none")
    query = {**home.fake.query(home.fake.take()), "key": person.key(), **change}
    before = len(home.rows(schema.identity)), len(home.rows(schema.submission))
    got = person.client.get(f"{person.base}/from/prolific", params=query, follow_redirects=False)
    assert got.status_code == 403
    assert "set-cookie" not in got.headers
    assert (len(home.rows(schema.identity)), len(home.rows(schema.submission))) == before


def test_other_panels_and_campaigns_are_unknown(home: House) -> None:
    person = Person(home.app, home.campaign.id, link="none")
    query = {**home.fake.query(home.fake.take()), "key": person.key()}
    for path in (f"{person.base}/from/generic", f"{person.base}/from/nothing", "/j/nowhere/from/prolific"):
        assert person.client.get(path, params=query).status_code == 404
    personal = {**query, "key": person.key("personal", assessor="anna")}
    assert person.client.get(f"{person.base}/from/prolific", params=personal).status_code == 403


def test_a_panels_preview_stores_nothing(home: House) -> None:
    person = Person(home.app, home.campaign.id, link="none")
    before = kept(home)
    query = {name: f"{{{{%{name}%}}}}" for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")}
    got = person.client.get(f"{person.base}/from/prolific", params={**query, "key": person.key()})
    assert got.status_code == 200
    assert (
        person.client.get(f"{person.base}/out", follow_redirects=False).headers["location"]
        == f"{person.base}/"
    )
    assert kept(home) == before


def test_the_panel_is_reached_only_after_the_end(home: House) -> None:
    guest = home.guest()
    for query in ({}, {"url": "https://evil.example"}, {"cc": "DONE1"}):
        got = guest.client.get(f"{guest.base}/out", params=query, follow_redirects=False)
        assert (got.status_code, got.headers["location"]) == (303, f"{guest.base}/")
    assert Person(home.app, home.campaign.id, link="none").client.get(f"{guest.base}/out").status_code == 403


# ---- messages


def body_of(submission: Any, status: str, **more: Any) -> bytes:
    values = {
        "resource_id": submission.id,
        "event_type": "submission.status.change",
        "participant_id": submission.participant,
        "status": status,
        **more,
    }
    return json.dumps(values).encode()


def status_of(home: House, submission: Any) -> str:
    return next(str(row.status) for row in home.rows(schema.submission) if row.external == submission.id)


def test_forged_messages_are_refused(home: House) -> None:
    guest = home.guest()
    body, now = body_of(guest.submission, "RETURNED"), time.time()
    good = home.fake.signed(body)
    stamp, sign, event = "X-Prolific-Request-Timestamp", "X-Prolific-Request-Signature", "X-Event-ID"
    before = kept(home)
    forged: list[tuple[dict[str, str], bytes]] = [
        ({}, body),
        ({**good, sign: ""}, body),
        ({**good, sign: good[sign][:-2]}, body),
        ({**good, sign: "A" * 44}, body),
        ({**good, stamp: str(int(now) - 1)}, body),
        ({**good, stamp: ""}, body),
        (good, body.replace(b"RETURNED", b"APPROVED")),
        (good, body + b" "),
        (home.fake.signed(body, at=now - WINDOW_SECONDS - 5), body),
        (home.fake.signed(body, at=now + WINDOW_SECONDS + 5), body),
        ({**good, event: ""}, body),
        ({**good, event: "x" * 500}, body),
        (home.fake.signed(b"[]"), b"[]"),
        (home.fake.signed(b"{"), b"{"),
    ]
    for headers, sent in forged:
        assert home.hook(headers, sent).status_code == 403, headers
    home.app.state.environment = {}
    try:
        assert home.hook(good, body).status_code == 403  # without a secret nothing is believed
    finally:
        home.app.state.environment = home.fake.environment()
    large = b'{"a": "' + b"x" * MESSAGE_AT_MOST + b'"}'
    assert home.hook(home.fake.signed(large), large).status_code == 413
    assert kept(home) == before
    assert home.hook(good, body).status_code == 200
    assert status_of(home, guest.submission) == "returned"


def test_replayed_messages_change_nothing(home: House) -> None:
    guest = home.guest()
    active, done = body_of(guest.submission, "ACTIVE"), body_of(guest.submission, "AWAITING REVIEW")
    first = home.fake.signed(active, event="one")
    assert home.hook(first, active).json() == {"message": "taken"}
    assert home.hook(home.fake.signed(done, event="two"), done).json() == {"message": "taken"}
    before = kept(home)
    got = home.hook(first, active)
    assert (got.status_code, got.json()) == (409, {"message": "replayed"})
    renamed = home.hook({**first, "X-Event-ID": "three"}, active)  # the event's id is not signed
    assert renamed.status_code == 409
    sent_again = home.fake.signed(
        active, event="one", at=time.time() + 1
    )  # as Prolific does, when we were deaf
    assert (home.hook(sent_again, active).status_code, home.hook(sent_again, active).json()) == (
        200,
        {"message": "repeated"},
    )
    assert kept(home) == before
    assert status_of(home, guest.submission) == "submitted"


def test_an_older_message_does_not_undo_a_final_status(home: House) -> None:
    guest = home.guest()
    for status in ("APPROVED", "AWAITING REVIEW", "ACTIVE"):
        body = body_of(guest.submission, status)
        assert home.hook(home.fake.signed(body), body).status_code == 200
    assert status_of(home, guest.submission) == "approved"


def test_messages_about_unknown_submissions_change_nothing(home: House) -> None:
    guest = home.guest()
    stranger = home.fake.take()
    before = home.rows(schema.submission)
    for body in (
        body_of(stranger, "RETURNED"),
        body_of(guest.submission, "RETURNED", event_type="study.status.change"),
        body_of(guest.submission, "RETURNED", resource_id=["x"]),
        body_of(guest.submission, "RETURNED", resource_id="../x"),
    ):
        assert home.hook(home.fake.signed(body), body).status_code == 200
    assert home.rows(schema.submission) == before
    body = body_of(guest.submission, "RETURNED")
    client = Person(home.app, home.campaign.id, link="none").client
    for path in ("/hooks/prolific/nowhere", f"/hooks/generic/{home.campaign.id}", "/hooks/x/y"):
        assert client.post(path, content=body, headers=home.fake.signed(body)).status_code == 404


def test_no_secret_is_logged(home: House, caplog: pytest.LogCaptureFixture) -> None:
    guest = home.guest()
    caplog.set_level(0)
    home.hook({}, body_of(guest.submission, "RETURNED"))
    guest.arrive({**home.fake.query(guest.submission), "STUDY_ID": "x"})
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("duelpool")]
    assert len(ours) == 2
    assert not [line for line in ours if SECRET in line or guest.submission.participant in line]


# ---- what follows from a status

AFTER = {
    "RESERVED": ("open", "finished"),
    "ACTIVE": ("open", "finished"),
    "AWAITING REVIEW": ("open", "finished"),
    "APPROVED": ("open", "finished"),
    "PARTIALLY APPROVED": ("open", "finished"),
    "TIMED-OUT": ("timed-out", "finished"),
    "RETURNED": ("returned", "withdrawn"),
    "REJECTED": ("returned", "withdrawn"),
    "SCREENED OUT": ("returned", "finished"),
    "PROCESSING": ("open", "finished"),  # which no document knows
}


def test_every_status_of_the_documentation_is_known() -> None:
    assert set(AFTER) - {"PROCESSING"} == set(STATUSES)
    assert set(STATUSES.values()) == set(SubmissionStatus) - {SubmissionStatus.OTHER}


@pytest.mark.parametrize("status", AFTER)
def test_effects_of_each_status(home: House, status: str) -> None:
    at_work, done = home.guest(), home.guest()
    at_work.judge_on(2)
    done.judge_on()
    home.fake.move(at_work.submission, status)
    home.fake.move(done.submission, status)
    home.deliver()
    names = home.pseudonyms()
    work, finished = names[at_work.submission.id], names[done.submission.id]
    states = {row.assessor: row.state for row in home.rows(schema.assignment)}
    assert states[work] == AFTER[status][0]
    live = [row for row in home.rows(schema.question) if row.assessor == work and row.state == "leased"]
    assert bool(live) == (states[work] == "open")  # what is over has freed its slots
    assert home.ledger(assessor=finished) == (0 if AFTER[status][1] == "withdrawn" else 240)
    out = {(row.topic, row.refers_to) for row in home.rows(schema.log) if row.event == "retraction"}
    gone = [row for row in home.rows(schema.log) if row.assessor == finished and (row.topic, row.seq) in out]
    assert bool(gone) == (AFTER[status][1] == "withdrawn")
    said = status if status == "PROCESSING" else ""
    looks = [text for stay, text in settle(home.campaign, home.panel, carry_out=False).plan.to_review if said]
    assert any(said in text for text in looks) == bool(said)
    for guest in (at_work, done):  # nothing is left for the next one
        home.fake.move(guest.submission, "RETURNED")
    reconcile(home.campaign, home.panel, carry_out=True)


def test_a_report_in_a_dry_run_changes_nothing(home: House) -> None:
    guest = home.guest()
    guest.judge_on(1)
    home.fake.move(guest.submission, "RETURNED")
    before = kept(home)
    changes = reconcile(home.campaign, home.panel, carry_out=False)
    assert [
        (change.after, change.effects) for change in changes if "go to others" in str(change.effects)
    ] == [(SubmissionStatus.RETURNED, ("12 open questions go to others",))]
    assert kept(home) == before
    assert apply_reports(home.campaign.own_store, home.campaign.settings, [], carry_out=True) == []
