"""Accounts, sessions, tokens, limits, keys and the audit log: who is let in, and who is kept out."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import Connection, delete, update
from sqlalchemy.exc import DBAPIError
from starlette.testclient import TestClient

from duelpool.access import accounts, audit_log, keys, limits, tokens
from duelpool.access.limits import Limit, RequestLimiter, TooMany
from duelpool.errors import BadParameter, UnknownName
from duelpool.store import Store, StoreError, open_store, schema
from duelpool.web.access.links import ForgedLink, link_keys
from duelpool.web.access.pages import safe_target
from duelpool.web.access.sessions import COOKIE
from support.clocks import move_time
from support.managed import judge, key_for, managed
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, Person, new_store, seen_from, served

PASSWORD = "correct horse battery"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "campaign.db"
    with new_store(path) as store:
        judge(managed(store), 8)
        store.write(lambda connection, now: accounts.add(connection, "anna", PASSWORD, "manager", now))
    return path


@pytest.fixture
def app(target: Path) -> Iterator[FastAPI]:
    with served(target) as server:
        yield server


def browser(app: FastAPI, root: str = ORIGIN) -> TestClient:
    return TestClient(
        app,
        base_url=root,
        raise_server_exceptions=False,
        follow_redirects=False,
        headers={"Origin": root},
    )


def sign_in(client: TestClient, password: str = PASSWORD, name: str = "anna", **more: str) -> Response:
    return client.post("/login", data={"name": name, "password": password, **more})


def only(app: FastAPI) -> str:
    return str(app.state.campaigns.all()[0].id)


def token_for(app: FastAPI, *scopes: str, days: float = 1.0) -> str:
    token: tuple[Any, str] = app.state.store.write(
        lambda connection, now: tokens.make(connection, "tests", scopes, now, days=days)
    )
    return token[1]


# ---- sessions


def test_session_cookie_is_http_only_and_secure_over_https(app: FastAPI) -> None:
    got = sign_in(browser(app))
    assert (got.status_code, got.headers["location"]) == (303, "/account")
    cookie = got.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    secure = sign_in(browser(app, "https://testserver")).headers["set-cookie"]
    assert "Secure" in secure
    assert PASSWORD not in cookie


def test_each_sign_in_starts_a_new_session(app: FastAPI) -> None:
    first, second = browser(app), browser(app)
    sign_in(first)
    planted = first.cookies[COOKIE]
    second.cookies.set(COOKIE, planted[:-4] + "AAAA")  # as an attacker might leave it
    sign_in(second)
    assert second.cookies.get(COOKIE, domain="testserver.local") not in {planted, planted[:-4] + "AAAA"}
    again = browser(app)
    sign_in(again)
    assert again.cookies[COOKIE] != planted
    forged = browser(app)
    forged.cookies.set(COOKIE, planted[:-4] + "AAAA")
    assert forged.get("/account").status_code == 403


def test_signing_out_everywhere_ends_every_session(app: FastAPI) -> None:
    here, there = browser(app), browser(app)
    sign_in(here)
    sign_in(there)
    assert there.get("/account").status_code == 200
    assert here.post("/logout").headers["location"] == "/login"
    assert here.get("/account").status_code == 403
    assert there.get("/account").status_code == 200  # the other browser is still in
    sign_in(here)
    here.post("/logout", data={"everywhere": "1"})
    assert there.get("/account").status_code == 403
    assert there.get(f"/manage/{only(app)}/leaderboard").status_code == 403


def test_changed_password_ends_the_other_sessions(app: FastAPI) -> None:
    here, there = browser(app), browser(app)
    sign_in(here)
    sign_in(there)
    assert (
        here.post("/account/password", data={"present": "no", "new": "another password"}).status_code == 403
    )
    assert here.post("/account/password", data={"present": PASSWORD, "new": "short"}).status_code == 422
    got = here.post("/account/password", data={"present": PASSWORD, "new": "another password"})
    assert got.status_code == 200
    assert "changed" in got.text
    assert here.get("/account").status_code == 200
    assert there.get("/account").status_code == 403
    assert sign_in(there).status_code == 403
    assert sign_in(there, "another password").status_code == 303


def test_locked_account_loses_its_session_and_cannot_sign_in(app: FastAPI) -> None:
    client = browser(app)
    sign_in(client)
    app.state.store.write(lambda connection, now: accounts.set_state(connection, "anna", "out"))
    assert client.get("/account").status_code == 403
    assert sign_in(client).status_code == 403


def test_session_from_before_a_lock_stays_over_after_it(app: FastAPI) -> None:
    client = browser(app)
    sign_in(client)
    for state in ("out", "in"):
        app.state.store.write(lambda connection, now: accounts.set_state(connection, "anna", state))  # noqa: B023
    assert client.get("/account").status_code == 403
    assert sign_in(client).status_code == 303


def test_role_in_one_campaign_comes_before_the_role_in_all() -> None:
    roles = {accounts.EVERYWHERE: "manager", "c1": "assessor"}
    account = accounts.Account("anna", 1, "in", 0.0, roles)
    assert (account.role_in("c1"), account.role_in("c2")) == ("assessor", "manager")


def test_session_expires(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    client = browser(app)
    sign_in(client)
    move_time(app.state.store, monkeypatch, lambda: time.time() + 13 * 3600)
    assert client.get("/account").status_code == 403


def test_account_judges_under_one_pseudonym_in_every_browser(app: FastAPI) -> None:
    store, campaign = app.state.store, only(app)
    store.write(
        lambda connection, now: accounts.add(connection, "ben", PASSWORD, "assessor", now, campaign=campaign)
    )
    names = []
    for _ in range(2):
        client = browser(app)
        sign_in(client, name="ben")
        assert client.post(f"/account/judge/{campaign}").headers["location"] == f"/j/{campaign}/"
        work = client.get(f"/j/{campaign}/work").json()
        assert work["state"] == "judging"
        question = work["questions"][0]
        names.append(store.read(lambda connection: _assessor_of(connection, question["id"])))  # noqa: B023
    assert names[0] == names[1]  # the same person, whichever browser
    assert "ben" not in names[0]


def _assessor_of(connection: Connection, question: str) -> str:
    from sqlalchemy import select

    return str(
        connection.execute(
            select(schema.question.c.assessor).where(schema.question.c.id == question)
        ).scalar()
    )


# ---- the first account


def test_managers_link_makes_the_first_account_and_no_second(tmp_path: Path) -> None:
    with new_store(tmp_path / "c.db") as store:
        campaign = managed(store).id
    with served(tmp_path / "c.db") as app:
        client, stranger = browser(app), browser(app)
        assert stranger.get(f"/manage/{campaign}/account").status_code == 403
        client.get(f"/manage/{campaign}", params={"key": key_for(app, campaign)})
        assert client.get(f"/manage/{campaign}/account").status_code == 200
        bad = client.post(f"/manage/{campaign}/account", data={"name": "cleo", "password": "short"})
        assert bad.status_code == 422
        good = {"name": "cleo", "password": PASSWORD}
        assert client.post(f"/manage/{campaign}/account", data=good).status_code == 303
        assert client.get(f"/manage/{campaign}/leaderboard").status_code == 200
        other = browser(app)
        other.get(f"/manage/{campaign}", params={"key": key_for(app, campaign)})
        again = other.post(f"/manage/{campaign}/account", data={"name": "eve", "password": PASSWORD})
        assert again.status_code == 403
        assert [each.name for each in app.state.store.read(accounts.all_accounts)] == ["cleo"]


def test_account_names_and_passwords_are_checked(tmp_path: Path) -> None:
    with new_store(tmp_path / "c.db") as store:

        def add(name: str, password: str = PASSWORD, role: str = "viewer") -> Any:
            return store.write(lambda connection, now: accounts.add(connection, name, password, role, now))

        assert add(" Anna@Example.org ").name == "anna@example.org"
        for name in ("", "a b", "-x", "x" * 65, "ä", "a\0b", "../x", "Link", "shell"):
            with pytest.raises(BadParameter):
                add(name)
        with pytest.raises(BadParameter, match="already"):
            add("ANNA@example.org")
        with pytest.raises(BadParameter, match="at least"):
            add("ben", "ninechars")
        with pytest.raises(UnknownName, match="manager"):
            add("ben", role="boss")
        hashed = store.read(lambda connection: connection.execute(schema.account.select()).one().password)
        assert hashed.startswith("$argon2id$")
        assert accounts.sign_in(store, "anna@example.org", PASSWORD) is not None
        assert accounts.sign_in(store, "nobody", PASSWORD) is None


# ---- guessed passwords and tokens


def test_password_limit_holds_over_all_processes(app: FastAPI, target: Path) -> None:
    client = browser(app)
    most = limits.PASSWORD_BY_NAME.most
    for _ in range(most):
        assert sign_in(client, "wrong").status_code == 403
    got = sign_in(client)
    assert got.status_code == 429  # the right one too: else a guesser would learn it
    assert 0 < int(got.headers["retry-after"]) <= limits.PASSWORD_BY_NAME.seconds
    with served(target) as other:  # another process knows
        assert sign_in(browser(other)).status_code == 429
    assert sign_in(client, "wrong", name="ben").status_code == 403  # others may sign in


def test_wrong_tokens_are_limited_by_address(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEY_BY_ADDRESS", Limit("keys from", 5, 900))
    client, address = browser(app), f"/api/v1/campaigns/{only(app)}"
    good = {"Authorization": f"Bearer {token_for(app, 'read')}"}
    assert client.get(address, headers=good).status_code == 200
    guess = {"Authorization": f"Bearer {good['Authorization'][7:-3]}xyz"}
    statuses = [client.get(address, headers=guess).status_code for _ in range(7)]
    assert statuses == [403] * 5 + [429] * 2
    assert client.get(address, headers=good).status_code == 200


def test_token_is_stored_as_a_digest_and_expires(app: FastAPI) -> None:
    store, address = app.state.store, f"/api/v1/campaigns/{only(app)}"
    text = token_for(app, "read")
    row = store.read(lambda connection: connection.execute(schema.token.select()).one())
    assert max(text.split("_"), key=len) not in str(tuple(row))
    client = browser(app)
    assert client.get(address, headers={"Authorization": f"Bearer {text}"}).status_code == 200
    short = token_for(app, "read", days=1e-6)
    time.sleep(0.1)
    assert client.get(address, headers={"Authorization": f"Bearer {short}"}).status_code == 403
    with pytest.raises(UnknownName, match="read"):
        token_for(app, "judge")
    with pytest.raises(BadParameter, match="days"):
        token_for(app, "read", days=10_000)


# ---- limits


def test_request_limiter_writes_only_full_batches_and_stops_a_machine(tmp_path: Path) -> None:
    limit = Limit("requests of", 60, 3600)
    with new_store(tmp_path / "c.db") as store:
        writes = 0
        write = store.database.write

        def counted(work: Any) -> Any:
            nonlocal writes
            writes += 1
            return write(work)

        store.database.write = counted  # type: ignore[method-assign]
        first, second = RequestLimiter(store, limit, batch=20), RequestLimiter(store, limit, batch=20)
        for _ in range(19):
            first.step("anna")
        assert writes == 0
        refused = [0, 0]
        for _ in range(80):
            for at, limiter in enumerate((first, second)):
                try:
                    limiter.step("anna")
                except TooMany:
                    refused[at] += 1
        assert min(refused) > 20
        assert 60 <= 160 + 19 - sum(refused) <= 60 + 2 * 20  # each process may let one batch go over
        assert writes <= 4
        second.step("ben")


def test_request_limiter_forgets_past_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    with new_store(tmp_path / "c.db") as store:
        limiter = RequestLimiter(store, Limit("requests of", 5, 60), batch=1, people_at_most=3)
        for whose in ("anna", "ben", "anna", "carla", "dora"):
            limiter.step(whose)
        assert [whose for whose, _ in limiter._counts] == ["anna", "carla", "dora"]
        now += 60
        limiter.step("anna")
        assert list(limiter._counts.values()) == [1]
        for _ in range(3):
            limiter.step("anna")
        with pytest.raises(TooMany):
            limiter.step("anna")


def test_judging_page_limits_requests(app: FastAPI) -> None:
    app.state.pace = RequestLimiter(app.state.store, Limit("requests of", 10, 3600), batch=5)
    person = Person(app)
    statuses = [person.client.get(f"{person.base}/work").status_code for _ in range(12)]
    assert statuses == [200] * 9 + [429] * 3


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_attempts_add_up_and_past_spans_are_deleted(back_end: str, tmp_path: Path) -> None:
    with new_target(back_end, tmp_path) as target, open_store(target, create=True) as store:
        limit = Limit("tries of", 3, 100)

        def step(now: float) -> int:
            return store.write(lambda connection, _: limits.add_attempts(connection, limit, "x", now))

        assert [step(1000.0), step(1001.0), step(1099.0), step(1100.0)] == [1, 2, 3, 1]
        assert step(1500.0) == 1
        rows = store.read(lambda connection: len(connection.execute(schema.limit_count.select()).all()))
        assert rows == 1


# ---- other sites


ELSEWHERE: list[dict[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site", "Origin": ORIGIN},
    {"Sec-Fetch-Site": "same-site", "Origin": ORIGIN},
    {"Referer": "https://evil.example/login"},
    {},
]


def test_requests_from_other_sites_are_refused(app: FastAPI) -> None:
    inside = browser(app)
    sign_in(inside)
    campaign = only(app)
    posts: list[tuple[str, dict[str, str]]] = [
        ("/login", {"name": "anna", "password": PASSWORD}),
        ("/logout", {"everywhere": "1"}),
        ("/account/password", {"present": PASSWORD, "new": "another password"}),
        (f"/account/judge/{campaign}", {}),
        (f"/manage/{campaign}/account", {"name": "eve", "password": PASSWORD}),
        (f"/manage/{campaign}/step/state", {"state": "closed", "sure": "yes"}),
        (f"/manage/{campaign}/blind", {"blind": "1"}),
    ]
    del inside.headers["Origin"]
    for headers in ELSEWHERE:
        for path, form in posts:
            got = inside.post(path, data=form, headers=headers)
            assert got.status_code == 403, (path, headers)
            assert "set-cookie" not in got.headers
    inside.headers["Origin"] = ORIGIN
    assert inside.get("/account").status_code == 200
    assert app.state.campaigns.all()[0].state == "open"


ASTRAY = (
    *(
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "/manage//evil.example",
        "javascript:alert(1)",
    ),
    *("/manage/x?y=//evil", "/manage/x#@evil", "/login", "/logout", "/manage/../../x", "/%2f%2fevil.example"),
    *("/manage/x\r\nSet-Cookie: a=b", " /manage/x", "/account.evil.example", "", "/j/a/b/c/d"),
)


def test_sign_in_redirects_only_within_the_site(app: FastAPI) -> None:
    client = browser(app)
    for target in ASTRAY:
        assert safe_target(target) == "/account", target
        assert 'name="next" value="/account"' in client.get("/login", params={"next": target}).text
    assert sign_in(client, next="//evil.example").headers["location"] == "/account"


def test_sign_in_leads_on_to_the_requested_page(app: FastAPI) -> None:
    way = f"/manage/{only(app)}/leaderboard"
    assert way in browser(app).get("/login", params={"next": way}).text
    assert sign_in(browser(app), next=way).headers["location"] == way


# ---- keys


def test_rotated_key_is_valid_for_the_days_of_grace(app: FastAPI, target: Path) -> None:
    campaign = only(app)
    client, person = browser(app), Person(app)
    sign_in(client)
    before = key_for(app, campaign)
    with open_store(target) as store:  # another process replaces the key
        store.write(lambda connection, now: keys.rotate(connection, now, 1.0))
        fresh = link_keys(store).key(campaign, "open", time.time())
    app.state.links._read_at -= 2  # the last reading is more than a second ago
    assert person.enter(fresh).status_code == 303
    assert client.get("/account").status_code == 200
    assert person.state == "judging"
    assert browser(app).get(f"/manage/{campaign}", params={"key": before}).status_code == 303
    later = keys.read_keys(app.state.store).valid(time.time() + 2 * 86400)
    assert len(later) == 1  # after the grace the old one is no good


def test_rotation_without_grace_ends_links_and_sessions(app: FastAPI) -> None:
    campaign, store = only(app), app.state.store
    client = browser(app)
    sign_in(client)
    before = key_for(app, campaign)
    store.write(lambda connection, now: keys.rotate(connection, now, 30.0))
    store.write(lambda connection, now: keys.rotate(connection, now, 0.0))
    app.state.links.refresh()
    assert client.get("/account").status_code == 403
    assert browser(app).get(f"/manage/{campaign}", params={"key": before}).status_code == 403
    with pytest.raises(ForgedLink):
        app.state.links.open(before, campaign, time.time())
    assert sign_in(client).status_code == 303


# ---- the audit log


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_audit_log_only_grows(back_end: str, tmp_path: Path) -> None:
    with new_target(back_end, tmp_path) as target, open_store(target, create=True) as store:
        store.write(lambda connection, now: audit_log.record(connection, now, "anna", "excluded", "ben"))
        for change in (update(schema.deed).values(who="nobody"), delete(schema.deed)):
            with pytest.raises((DBAPIError, StoreError), match="only grows"):
                store.write(lambda connection, now: connection.execute(change))  # noqa: B023
        assert [each.who for each in store.read(lambda connection: audit_log.read(connection, None))] == [
            "anna"
        ]


def test_actions_of_managers_are_in_the_audit_log_under_their_name(app: FastAPI) -> None:
    campaign = only(app)
    client = browser(app)
    sign_in(client)
    step = {"assessor": "anna", "reason": "too quick", "sure": "yes"}
    assert client.post(f"/manage/{campaign}/step/exclude", data=step).status_code == 303
    preview = {"state": "paused", "preview": True}
    assert client.post(f"/api/v1/campaigns/{campaign}/state", json=preview).status_code == 200
    bearer = {"Authorization": f"Bearer {token_for(app, 'read', 'export', 'manage')}"}
    program = browser(app)
    program.post(f"/api/v1/campaigns/{campaign}/state", json={"state": "paused"}, headers=bearer)
    assert program.get(f"/api/v1/campaigns/{campaign}/export/csv", headers=bearer).status_code == 200
    rows = client.get(f"/api/v1/campaigns/{campaign}/deeds").json()["rows"]
    actions = [(each["who"].split()[0], each["deed"]) for each in reversed(rows)]
    assert actions == [("anna", "signed in"), ("anna", "exclude"), ("token", "state"), ("token", "export")]
    page = client.get(f"/manage/{campaign}/log").text
    assert "too quick" in page
    assert "Activity log" in page
    store: Store = app.state.store
    store.write(
        lambda connection, now: accounts.add(connection, "vera", PASSWORD, "viewer", now, campaign=campaign)
    )
    viewer = browser(app)
    sign_in(viewer, name="vera")
    seen = viewer.get(f"/api/v1/campaigns/{campaign}/deeds").json()["rows"]
    assert "signed in" not in [each["deed"] for each in seen]  # that is the whole store's business
    text = viewer.get(f"/manage/{campaign}/assessor", params={"assessor": "anna"}).text
    assert "/step/" not in text  # a viewer sees no buttons


# ---- secrets


def test_secrets_are_in_no_log_page_or_export(
    app: FastAPI, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(0)
    campaign, store = only(app), app.state.store
    client, program = browser(app), browser(app)
    sign_in(client)
    text = token_for(app, "read", "export", "manage")
    key, signing = key_for(app, campaign), keys.read_keys(store).current
    hashed = store.read(lambda connection: connection.execute(schema.account.select()).one().password)
    session = client.cookies[COOKIE]
    bearer = {"Authorization": f"Bearer {text}"}
    seen = [sign_in(client, f"{PASSWORD}!").text]
    pages = ("leaderboard", "log", "settings", "export", "nowhere")
    seen += [client.get(f"/manage/{campaign}/{page}", params={"key": key}).text for page in pages]
    rests = ("settings", "deeds", "log", "export/jsonl", "export/csv", "export/prefs", "nowhere")
    seen += [program.get(f"/api/v1/campaigns/{campaign}/{rest}", headers=bearer).text for rest in rests]
    seen.append(program.get(f"/j/{campaign}", params={"key": f"{key}x"}).text)
    seen.append(program.get("/metrics", headers=bearer).text)
    report = f'{{"csp-report": {{"document-uri": "http://testserver/j/{campaign}?key={key}"}}}}'
    program.post("/csp-report", content=report.encode())
    monkeypatch.setattr("duelpool.web.manage.reading.lines", lambda *_, **__: 1 / 0)
    broken = client.get(f"/manage/{campaign}/log", params={"key": key})
    assert broken.status_code == 500
    own = [
        record for record in caplog.records if record.name.startswith(("duelpool", "uvicorn", "sqlalchemy"))
    ]
    logged = "\n".join(f"{record.getMessage()} {record.exc_text or ''}" for record in own)
    seen += [broken.text, logged]
    assert "content policy" in logged
    assert "ZeroDivisionError" in logged
    for secret in (PASSWORD, text, max(text.split("_"), key=len), key, signing, hashed, session):
        for page in seen:
            assert secret not in page
    assert not re.search(r"\$argon2", "".join(seen))


# ---- monitoring


def test_health_readiness_and_metrics(app: FastAPI) -> None:
    client = TestClient(seen_from("127.0.0.1", app), base_url=ORIGIN, raise_server_exceptions=False)
    assert client.get("/healthz").text == "ok"
    assert client.get("/readyz").text == "ready"
    Person(app).judge_on(3)
    text = client.get("/metrics").text
    for line in text.splitlines():
        assert re.fullmatch(r"# TYPE \w+ \w+|duelpool_\w+(\{\w+=\"[^\"]+\"\})? [0-9.]+", line), line
    assert 'duelpool_answer_seconds_bucket{le="+Inf"} 3' in text
    assert "duelpool_answer_seconds_count 3" in text
    head = sum(app.state.campaigns.flow(only(app)).campaign.live.heads().values())
    assert f'duelpool_log_lines_total{{campaign="{only(app)}"}} {head}' in text
    assert "duelpool_wal_bytes" in text
    forwarded = client.get("/metrics", headers={"X-Forwarded-For": "203.0.113.7"})
    assert forwarded.status_code == 403
    app.state.stopping = True
    assert client.get("/readyz").status_code == 503
    app.state.stopping = False
    app.state.store.close()
    assert client.get("/healthz").status_code == 200


def test_counts_of_all_processes_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from duelpool.web.server.metrics import RequestCounts

    first = RequestCounts(tmp_path)
    monkeypatch.setattr("os.getpid", lambda: 99)
    second = RequestCounts(tmp_path)
    first.answered(200, 0.01, True)
    second.answered(503, 9.0, True)
    second.answered(303, 0.3, False)
    assert first.totals() == second.totals()
    assert first.totals()[:5] == [0.0, 1.0, 1.0, 0.0, 1.0]
    assert first.totals()[5] == pytest.approx(9.01)
    assert first.totals()[6:] == [1.0, 0, 0, 0, 0, 0, 0, 1.0]
