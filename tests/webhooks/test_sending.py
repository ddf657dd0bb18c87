"""Deliveries: signed, sent again until they arrive, by one process at a time, and never into a private network."""

import base64
import hashlib
import hmac
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from duelpool.access.sealing import seal, unseal
from duelpool.campaign import Campaign, events
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.store import Store, open_store, schema
from duelpool.webhooks import sending, setting_up
from duelpool.webhooks.bodies import BODIES, Event, body_of, sentence, signed_headers
from duelpool.webhooks.sending import ATTEMPTS, deliver, pause_after
from support.campaigns import make_campaign
from support.hooked import hook, let_all_be_due
from support.receiver import Got, Receiver, receiving
from support.stores import BACK_ENDS, new_target

KEY = {"DUELPOOL_KEY": "0123456789abcdef"}


@pytest.fixture(params=BACK_ENDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_target(request.param, tmp_path) as made:
        open_store(made, create=True).close()
        yield made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "c.db", create=True) as opened:
        yield opened


@pytest.fixture
def campaign(store: Store) -> Campaign:
    return make_campaign(store, {"one": "ab"})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


def happen(campaign: Campaign, subject: str = "one") -> None:
    facts = {"topic": subject, "done": 1, "topics": 2, "stage": "preferences"}
    campaign.write(lambda tx: events.record(tx, events.TOPIC_DONE, facts, subject=subject))


def states(store: Store) -> list[tuple[str, int]]:
    columns = schema.webhook_delivery.c
    query = select(columns.state, columns.attempts).order_by(columns.event)
    return store.read(lambda connection: [tuple(row) for row in connection.execute(query)])


def is_signed(got: Got, secret: str) -> bool:
    """Check a signature as the convention has it, with nothing of ours."""
    key = base64.b64decode(secret.split("_", 1)[1])
    content = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.raw
    wanted = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return f"v1,{wanted}" in got.headers["webhook-signature"].split(" ")


# ---- arriving


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The example that its libraries are tested with."""
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    headers = signed_headers(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("own", ["", "whsec_" + base64.b64encode(bytes(range(24))).decode()])
def test_an_event_arrives_signed(campaign: Campaign, receiver: Receiver, own: str) -> None:
    added = hook(campaign, receiver, secret=own)
    assert own in ("", added.secret)
    happen(campaign)
    assert deliver(campaign.store).delivered == 1
    (got,) = receiver.got
    assert is_signed(got, added.secret)
    assert not is_signed(Got(got.path, got.headers, got.raw + b" "), added.secret)
    assert got.headers["content-type"] == "application/json"
    assert got.path == "/hook"
    body = got.body
    assert body["id"] == got.id
    assert (body["event"], body["occurrence"]) == ("topic.done", 1)
    assert body["campaign"] == {"id": campaign.id, "name": "letters"}
    assert body["data"]["topic"] == "one"
    assert body["text"] == body["content"] == "letters: Topic one is done; 1 of 2 topics are."
    assert deliver(campaign.store).delivered == 0


def test_a_receiver_that_fails_gets_the_same_event_again(target: str, receiver: Receiver) -> None:
    with open_store(target) as store:
        campaign = make_campaign(store)
        hook(campaign, receiver)
        happen(campaign)
        receiver.answers = [500, 404, 429]
        for attempt in (1, 2, 3):
            assert deliver(store).failed == 1
            assert deliver(store).failed == 0, "it waits"
            assert states(store) == [("waiting", attempt)]
            let_all_be_due(store)
        assert deliver(store).delivered == 1
        assert len({(got.id, got.raw) for got in receiver.got}) == 1
        assert len(receiver.got) == 4
        assert states(store) == [("delivered", 4)]


def test_pauses_grow_and_last_about_a_day() -> None:
    pauses = [pause_after(attempt, "evt_1", "w") for attempt in range(1, ATTEMPTS)]
    assert pauses == [pause_after(attempt, "evt_1", "w") for attempt in range(1, ATTEMPTS)]
    assert pauses != [pause_after(attempt, "evt_2", "w") for attempt in range(1, ATTEMPTS)]
    assert 8 <= pauses[0] <= 12
    assert max(pauses) <= 1.2 * 4 * 3600
    assert 18 * 3600 < sum(pauses) < 30 * 3600


def test_an_event_that_never_arrives_is_given_up_and_sent_again_by_hand(
    campaign: Campaign, store: Store, receiver: Receiver
) -> None:
    added = hook(campaign, receiver)
    happen(campaign)
    receiver.answers = [500] * ATTEMPTS
    for _ in range(ATTEMPTS):
        assert deliver(store).failed == 1
        let_all_be_due(store)
    assert states(store) == [("failed", ATTEMPTS)]
    assert deliver(store).failed == 0
    (late,) = campaign.read(setting_up.undelivered)
    assert (late.webhook, late.kind, late.state) == (added.id, "topic.done", "failed")
    assert late.last_result == "It answered 500."
    assert setting_up.resend(campaign) == 1
    assert deliver(store).delivered == 1
    assert len({got.id for got in receiver.got}) == 1
    (listed,) = campaign.read(setting_up.webhooks)
    assert (listed.delivered, listed.failed, listed.last_result) == (1, 0, "delivered")


def test_a_server_may_ask_for_a_longer_pause(campaign: Campaign, store: Store, receiver: Receiver) -> None:
    hook(campaign, receiver)
    happen(campaign)
    receiver.answers, receiver.more = [429], {"Retry-After": "3000"}
    deliver(store)
    delivery = schema.webhook_delivery.c
    due, tried = store.read(lambda connection: connection.execute(select(delivery.due, delivery.tried)).one())
    assert due - tried >= 3000


def test_410_ends_a_webhook(campaign: Campaign, store: Store, receiver: Receiver) -> None:
    hook(campaign, receiver)
    happen(campaign)
    happen(campaign, "two")
    receiver.answers = [410]
    deliver(store)
    let_all_be_due(store)
    happen(campaign, "three")
    assert deliver(store).delivered == 0
    assert len(receiver.got) == 1
    assert [state for state, _ in states(store)] == ["ended", "ended"]
    assert [each.state for each in campaign.read(setting_up.webhooks)] == ["gone"]


def test_what_failed_before_a_webhook_was_ended_is_not_sent_again(
    campaign: Campaign, store: Store, receiver: Receiver
) -> None:
    added = hook(campaign, receiver)
    happen(campaign)
    receiver.answers = [500] * ATTEMPTS + [410]
    for _ in range(ATTEMPTS):
        deliver(store)
        let_all_be_due(store)
    happen(campaign, "two")
    deliver(store)
    assert setting_up.resend(campaign) == 0
    with pytest.raises(BadParameter, match="has ended the webhook"):
        setting_up.resend(campaign, added.id)
    assert sorted(state for state, _ in states(store)) == ["ended", "failed"]


def test_redirects_are_not_followed(campaign: Campaign, store: Store, receiver: Receiver) -> None:
    hook(campaign, receiver)
    happen(campaign)
    receiver.answers, receiver.more = [307], {"Location": receiver.url + "/elsewhere"}
    assert deliver(store).failed == 1
    assert [got.path for got in receiver.got] == ["/hook"]
    assert "redirects are not followed" in campaign.read(setting_up.undelivered)[0].last_result


def test_a_long_answer_is_not_read(campaign: Campaign, store: Store, receiver: Receiver) -> None:
    hook(campaign, receiver)
    happen(campaign)
    receiver.answers, receiver.content = [200], b"x" * 200_000
    assert deliver(store).delivered == 1


def test_a_receiver_that_never_answers_fails(
    campaign: Campaign, store: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SECONDS", 0.1)
    hook(campaign, receiver)
    happen(campaign)
    receiver.go_on.clear()
    assert deliver(store).failed == 1
    assert campaign.read(setting_up.undelivered)[0].last_result.startswith(
        ("no answer", "the connection broke")
    )


def test_one_webhook_that_fails_delays_no_other(campaign: Campaign, store: Store, receiver: Receiver) -> None:
    with receiving() as broken:
        broken.answers = [500] * 9
        hook(campaign, broken)
        hook(campaign, receiver)
        for subject in ("one", "two", "three"):
            happen(campaign, subject)
        sent = deliver(store)
    assert (sent.delivered, sent.failed) == (3, 1)
    assert len(broken.got) == 1


def test_a_campaign_that_cant_be_read_delays_no_other(
    campaign: Campaign, store: Store, receiver: Receiver
) -> None:
    other = make_campaign(store, {"one": "ab"}, name="other")
    hook(campaign, receiver)
    hook(other, receiver)
    happen(campaign)
    happen(other)

    def opened(campaign: str) -> Campaign:
        raise BadParameter("Its strategy is unknown.")

    with pytest.raises(BadParameter, match="unknown"):
        sending.look_and_deliver(store, opened)
    assert len(receiver.got) == 2


def test_only_the_chosen_events_are_sent(campaign: Campaign, store: Store, receiver: Receiver) -> None:
    hook(campaign, receiver, only=["assessor.excluded"])
    happen(campaign)
    campaign.enrol("anna", "dedicated")
    campaign.exclude("anna", "wrote to ben@example.org")
    deliver(store)
    assert receiver.kinds() == ["assessor.excluded"]
    (got,) = receiver.got
    assert b"anna" not in got.raw
    assert b"ben" not in got.raw
    assert got.body["data"] == {"judgments": 0, "excluded": 1}


def test_a_removed_webhook_gets_nothing_and_keeps_no_secret(
    campaign: Campaign, store: Store, receiver: Receiver
) -> None:
    added = hook(campaign, receiver)
    happen(campaign)
    setting_up.remove(campaign, added.id)
    happen(campaign, "two")
    assert deliver(store).delivered == 0
    assert campaign.read(setting_up.webhooks) == []
    row = store.read(lambda connection: connection.execute(select(schema.webhook)).one())
    assert (row.url, row.secret) == ("", "")
    with pytest.raises(BadParameter, match="has no webhook"):
        setting_up.remove(campaign, added.id)


# ---- processes that are killed, and several at once


def test_a_process_that_is_killed_after_its_claim_loses_no_event(target: str, receiver: Receiver) -> None:
    with open_store(target) as store:
        campaign = make_campaign(store)
        hook(campaign, receiver)
        happen(campaign)
        claim = store.write(lambda connection, now: sending._claim(connection, now, ()))
        assert claim is not None
        assert deliver(store).delivered == 0, "another process has it"
        let_all_be_due(store)
        assert deliver(store).delivered == 1
        assert [got.id for got in receiver.got] == [claim.event.id]
        sending_late = sending._marking(claim, sending.Attempt(False, 500, "It answered 500."))
        store.write(sending_late)  # the first process wasn't dead, and failed
        assert states(store) == [("delivered", 2)]


def test_two_processes_deliver_each_event_once(target: str, receiver: Receiver) -> None:
    with open_store(target) as one, open_store(target) as two:
        campaign = make_campaign(one)
        hook(campaign, receiver)
        for at in range(12):
            happen(campaign, f"t{at}")
        begin = threading.Barrier(2)

        def run(store: Store) -> None:
            begin.wait()
            deliver(store)

        threads = [threading.Thread(target=run, args=(store,)) for store in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        deliver(one)  # a process that finds all others claimed may end first
        assert len(receiver.got) == 12
        assert len({got.id for got in receiver.got}) == 12
        assert {state for state, _ in states(one)} == {"delivered"}


# ---- addresses


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1/hook", "could be read on the way"),
        ("https://127.0.0.1/hook", "leads into a private network"),
        ("https://169.254.169.254/latest", "leads into a private network"),
        ("https://name:word@x.example/", "a name or a password"),
        ("ftp://x.example/", "not the URL"),
        ("https://x.example/#part", "more than a host"),
    ],
)
def test_a_private_or_malformed_address_is_refused(campaign: Campaign, url: str, words: str) -> None:
    with pytest.raises(BadParameter, match=words):
        setting_up.add(campaign, url)
    assert campaign.read(setting_up.webhooks) == []


def test_an_address_that_has_become_private_is_not_called(
    campaign: Campaign, store: Store, receiver: Receiver
) -> None:
    hook(campaign, receiver)
    store.write(lambda connection, now: connection.execute(update(schema.webhook).values(allowed=0)))
    happen(campaign)
    assert deliver(store).failed == 1
    assert receiver.got == []


def test_a_query_and_escaped_characters_are_sent_as_they_are(
    campaign: Campaign, store: Store, receiver: Receiver
) -> None:
    receiver.url = receiver.url.replace("/hook", "/a%2Fb?api-version=1&sig=a%20b")
    hook(campaign, receiver)
    happen(campaign)
    deliver(store)
    assert [got.path for got in receiver.got] == ["/a%2Fb?api-version=1&sig=a%20b"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"only": ["topic.dome"]}, "Did you mean 'topic.done'"),
        ({"body": "xml"}, "no body called 'xml'"),
        ({"secret": "short"}, "The secret isn't whsec_"),
        ({"secret": "whsec_" + base64.b64encode(b"short").decode()}, "24 to 64 bytes"),
    ],
)
def test_what_cant_be_meant_is_refused(
    campaign: Campaign, receiver: Receiver, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(DuelpoolError, match=words):
        hook(campaign, receiver, **more)
    assert campaign.read(setting_up.webhooks) == []


# ---- bodies and secrets


def test_no_name_calls_anyone_or_marks_up_a_message() -> None:
    facts = {"topic": "<!channel> @everyone & " + "x" * 300, "done": 1, "topics": 1}
    event = Event("evt_1", "c", "@here", events.TOPIC_DONE, 2, facts, 0.0)
    body = BODIES["json"](event)
    assert "<!channel>" not in body["text"]
    assert "&lt;!channel&gt;" in body["text"]
    for text in (body["text"], body["content"]):
        assert "@everyone" not in text
        assert "@here" not in text
        assert len(text) < 400
    assert body["allowed_mentions"] == {"parse": []}
    assert body["data"]["topic"] == facts["topic"]


def test_every_event_has_a_sentence_and_every_body_fits() -> None:
    facts = {
        "topic": "q1", "done": 1, "topics": 3, "judgments": 2, "excluded": 1,
        "spent": 12345, "budget": 20000, "currency": "EUR",
    }  # fmt: skip
    said = {kind: sentence(Event("evt_1", "c", "letters", kind, 1, facts, 0.0)) for kind in events.EVENTS}
    assert said == {
        "campaign.done": "letters: All 3 topics are done.",
        "topic.done": "letters: Topic q1 is done; 1 of 3 topics are.",
        "assessor.excluded": "letters: An assessor was excluded: 2 judgments no longer count. 1 are excluded now.",
        "budget.reached": "letters: 123.45 of 200.00 EUR are spent: the budget doesn't cover another assignment.",
    }
    model = Event("evt_1", "c", "letters", events.BUDGET_REACHED, 1, {"judge": "gpt"}, 0.0)
    assert "the model gpt" in sentence(model)
    event = Event("evt_1", "c", "letters", events.CAMPAIGN_DONE, 1, facts, 0.0)
    assert body_of(event, "text") == b'{"text": "letters: All 3 topics are done."}'
    card = BODIES["teams"](event)
    assert card["type"] == "message"
    assert card["attachments"][0]["content"]["body"][0]["text"] == said["campaign.done"]


def decoded(sealed: str) -> bytes:
    return base64.b64decode(sealed.removeprefix("sealed:"))


def test_a_sealed_secret_needs_the_key_that_sealed_it() -> None:
    text = "https://hooks.example/services/ÿ" + "x" * 100
    sealed = seal(text, KEY)
    assert "hooks" not in sealed
    nonces, bodies = zip(
        *((whole[:16], whole[16:-32]) for whole in map(decoded, (sealed, seal(text, KEY)))), strict=True
    )
    assert len(set(nonces)) == len(set(bodies)) == 2, "each with a nonce and a stream of its own"
    assert unseal(sealed, KEY) == text
    for other, words in (({}, "no key is given"), ({"DUELPOOL_KEY": "f" * 16}, "another key is given")):
        with pytest.raises(BadParameter, match=words):
            unseal(sealed, other)
    changed = sealed[:20] + ("A" if sealed[20] != "A" else "B") + sealed[21:]
    with pytest.raises(BadParameter, match="another key"):
        unseal(changed, KEY)
    assert unseal(seal(text, {}), KEY) == text, "stored before there was a key"


def test_with_a_key_outside_the_store_holds_neither_url_nor_secret(
    campaign: Campaign, store: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUELPOOL_KEY", KEY["DUELPOOL_KEY"])
    added = hook(campaign, receiver)
    happen(campaign)
    row = store.read(lambda connection: connection.execute(select(schema.webhook)).one())
    stored = " ".join(str(value) for value in row)
    assert added.secret not in stored
    assert "/hook" not in stored
    monkeypatch.delenv("DUELPOOL_KEY")
    assert deliver(store).failed == 1
    assert "no key is given" in campaign.read(setting_up.undelivered)[0].last_result
    let_all_be_due(store)
    monkeypatch.setenv("DUELPOOL_KEY", KEY["DUELPOOL_KEY"])
    assert deliver(store).delivered == 1
    assert is_signed(receiver.got[0], added.secret)
