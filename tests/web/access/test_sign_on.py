"""Single sign-on, against a provider that other people wrote (idpyoidc) and that really runs on loopback."""

import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from cryptojwt.jwk.ec import new_ec_key
from fastapi import FastAPI
from httpx2 import Client, Response
from starlette.testclient import TestClient

from duelpool.access import audit_log, openid, sessions, single_sign_on
from duelpool.access.accounts import Account, all_accounts
from duelpool.access.administration import Administration
from duelpool.access.sign_on_settings import RoleRule, SignOnSettings
from duelpool.web.access.sign_on import COOKIE, SECONDS, make_sign_on
from support.campaigns import make_campaign
from support.openid_provider import (
    CLIENT,
    Answer,
    OpenIDProvider,
    openid_provider,
    shared_secret_key,
    sign_on_by,
)
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, new_store, seen_from, served

ADDRESSES = cycle(range(1, 255))  # one for each browser: failures from the same one are limited
RULES = (RoleRule("leads", "manager"), RoleRule("judges", "assessor", "letters"), RoleRule("staff", "viewer"))


@pytest.fixture(scope="module")
def running() -> Iterator[OpenIDProvider]:
    with openid_provider() as provider:
        provider.allow(ORIGIN)
        yield provider


@pytest.fixture
def provider(running: OpenIDProvider) -> Iterator[OpenIDProvider]:
    """Provide the provider with Anna, a lead, and nothing wrong with it."""
    running.people.clear()
    running.user, running.asks = "anna", False
    running.add("anna", "leads", "others")
    yield running
    running.changes.clear()
    running.received.clear()


@pytest.fixture(scope="module")
def wire() -> Iterator[Client]:
    """Provide the way from the browser to the provider."""
    with Client() as client:
        yield client


@pytest.fixture
def settings(provider: OpenIDProvider) -> SignOnSettings:
    return sign_on_by(provider.issuer, *RULES)


class House:
    """A server, with browsers that can go to the provider and back."""

    def __init__(self, app: FastAPI, wire: Client) -> None:
        self.app, self.store, self.wire = app, app.state.store, wire

    def browser(self) -> TestClient:
        return TestClient(
            seen_from(f"192.0.2.{next(ADDRESSES)}", self.app),
            base_url=ORIGIN,
            raise_server_exceptions=True,
            follow_redirects=False,
            headers={"Origin": ORIGIN},
        )

    def way_back(self, browser: TestClient, **query: str) -> str:
        """Begin a sign-in; return where the provider sends the browser."""
        begun = browser.get("/login/sso", params=query)
        assert begun.status_code == 303, begun.text
        sent = self.wire.get(begun.headers["location"])
        assert sent.status_code == 303, sent.text
        assert sent.headers["location"].startswith(f"{ORIGIN}/login/sso/callback?")
        return str(sent.headers["location"])

    def sign_in(self, browser: TestClient | None = None, **query: str) -> Response:
        browser = browser or self.browser()
        return browser.get(self.way_back(browser, **query))

    def accounts(self) -> dict[str, Account]:
        return {each.name: each for each in self.store.read(all_accounts)}

    def sessions(self) -> list[str]:
        now = time.time()
        return [each.account for each in self.store.read(lambda at: sessions.listed(at, now))]


@pytest.fixture
def house(settings: SignOnSettings, wire: Client, tmp_path: Path) -> Iterator[House]:
    new_store(tmp_path / "c.db").close()
    with served(tmp_path / "c.db", url=ORIGIN, sign_on=settings) as app:
        yield House(app, wire)


@pytest.fixture(scope="module")
def empty_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    target = tmp_path_factory.mktemp("sign-on") / "c.db"
    new_store(target).close()
    with served(target) as app:
        yield app


@pytest.fixture
def empty_house(empty_app: FastAPI, settings: SignOnSettings, wire: Client) -> Iterator[House]:
    """Provide a server that many tests share, since it lets nobody in; it has yet to meet the provider."""
    empty_app.state.sign_on = make_sign_on(settings, ORIGIN)
    house = House(empty_app, wire)
    yield house
    assert house.accounts() == {}
    assert house.sessions() == []


def refused(got: Response, status: int, *told: str) -> None:
    """Assert that a page refuses a sign-in, says why, and leads back."""
    assert got.status_code == status, got.text
    assert "You are not signed in" in got.text
    assert 'href="/login"' in got.text
    for each in told:
        assert each in got.text
    assert "duelpool_session" not in got.headers.get("set-cookie", "")


# ---- the way in


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_roles_follow_the_claims_at_each_sign_in(
    back_end: str, provider: OpenIDProvider, settings: SignOnSettings, wire: Client, tmp_path: Path
) -> None:
    """A lead becomes a manager, later an assessor of one campaign, then nobody: all sessions end."""
    with new_target(back_end, tmp_path) as target:
        with new_store(target) as store:
            letters = make_campaign(store).id
        with served(target, url=ORIGIN, sign_on=settings) as app:
            house = House(app, wire)
            browser = house.browser()
            assert 'href="/login/sso?next=/manage/x">Sign in with Example ID<' in (
                browser.get("/login?next=/manage/x").text
            )
            first = house.sign_in(browser, next=f"/manage/{letters}")
            assert (first.status_code, first.headers["location"]) == (303, f"/manage/{letters}")
            assert house.accounts()["anna"].roles == {"": "manager"}
            assert browser.get("/api/v1/campaigns").status_code == 200
            assert "Change password" not in browser.get("/account").text

            provider.add("anna", "judges", preferred_username="anna.new")
            second = house.browser()
            assert house.sign_in(second).headers["location"] == "/account"
            assert house.accounts().keys() == {"anna"}
            assert house.accounts()["anna"].roles == {letters: "assessor"}
            assert browser.get("/api/v1/campaigns").status_code == 403
            assert house.sessions() == ["anna", "anna"]

            provider.add("anna", "others")
            refused(house.sign_in(), 403, "you have no role here")
            assert house.accounts()["anna"].roles == {}
            assert house.sessions() == []
            assert {each.get("/account").status_code for each in (browser, second)} == {403}
            told = [(each.who, each.action) for each in audit_log.newest(house.store)][::-1]
            assert told == [
                ("anna", "made an account by single sign-on"),
                ("single sign-on", "set a role (manager)"),
                ("anna", "signed in"),
                ("single sign-on", "set a role (assessor)"),
                ("anna", "signed in"),
                ("single sign-on", "took every role, ended all sessions of"),
            ]


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_browsers_of_a_new_person_at_the_same_time_share_one_account(
    back_end: str, settings: SignOnSettings, wire: Client, tmp_path: Path
) -> None:
    with new_target(back_end, tmp_path) as target:
        new_store(target).close()
        with served(target, url=ORIGIN, sign_on=settings) as app, ThreadPoolExecutor(4) as threads:
            house = House(app, wire)
            browsers = [house.browser() for _ in range(4)]
            ways = [house.way_back(each) for each in browsers]
            got = list(threads.map(lambda each, way: each.get(way).status_code, browsers, ways))
            assert got == [303] * 4
            assert house.accounts().keys() == {"anna"}
            assert house.sessions() == ["anna"] * 4


def test_the_request_to_the_provider_has_pkce_state_and_nonce(house: House, provider: OpenIDProvider) -> None:
    assert house.sign_in().status_code == 303
    asked = next(query for path, query in provider.received if path == "/authorization")
    sent = next(query for path, query in provider.received if path == "/token")
    assert asked["response_type"] == "code"
    assert asked["code_challenge_method"] == "S256"
    assert (asked["scope"], asked["redirect_uri"]) == (
        "openid profile email",
        f"{ORIGIN}/login/sso/callback",
    )
    assert len({asked["state"], asked["nonce"], asked["code_challenge"], sent["code_verifier"]}) == 4
    assert min(map(len, (asked["state"], asked["nonce"], sent["code_verifier"]))) >= 32


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_cookie_of_a_sign_in_is_short_lived_and_secure_over_https(house: House, scheme: str) -> None:
    browser = house.browser()
    got = browser.get(f"{scheme}://testserver/login/sso")
    cookie = got.headers["set-cookie"]
    for flag in (f"{COOKIE}=", "HttpOnly", "SameSite=lax", "Path=/login/sso", f"Max-Age={SECONDS}"):
        assert flag in cookie
    assert ("Secure" in cookie) == (scheme == "https")
    assert browser.get(house.way_back(browser)).headers["set-cookie"].count(f'{COOKIE}=""') == 1


@pytest.mark.parametrize(
    "target", ["https://evil.example", "//evil.example", "/\\evil.example", "/login/sso"]
)
def test_the_next_page_is_of_this_server(house: House, target: str) -> None:
    got = house.sign_in(next=target)
    assert (got.status_code, got.headers["location"]) == (303, "/account")


def test_a_claim_that_the_id_token_lacks_comes_from_user_info(house: House, provider: OpenIDProvider) -> None:
    provider.retell(lambda claims: claims.pop("groups"))
    assert house.sign_in().status_code == 303
    assert house.accounts()["anna"].roles == {"": "manager"}
    assert "/userinfo" in [path for path, _ in provider.received]


@pytest.mark.parametrize("other", [None, "mallory@example.org"])
def test_whether_an_address_is_verified_comes_from_user_info_for_that_address(
    other: str | None, house: House, provider: OpenIDProvider, settings: SignOnSettings
) -> None:
    house.app.state.sign_on = make_sign_on(replace(settings, domains=("example.org",)), ORIGIN)
    provider.retell(lambda claims: claims.pop("email_verified"))
    if other:
        provider.changes["/userinfo"] = with_values(email=other)
    got = house.sign_in()
    assert "/userinfo" in [path for path, _ in provider.received]
    assert got.status_code == (403 if other else 303), got.text
    assert ("anna" in house.accounts()) is (other is None)


def test_a_provider_may_replace_its_keys(house: House, provider: OpenIDProvider) -> None:
    assert house.sign_in().status_code == 303
    provider.rotate()
    provider.received.clear()
    assert house.sign_in().status_code == 303
    assert dict.fromkeys(path for path, _ in provider.received) == dict.fromkeys(
        ("/authorization", "/token", "/jwks")
    )


def test_the_secret_is_sent_in_the_way_that_the_provider_takes(
    house: House, provider: OpenIDProvider
) -> None:
    """In a header first, as the specification has it; in the body where that is refused, or not offered."""
    assert house.sign_in().status_code == 303
    assert ["client_secret" in query for path, query in provider.received if path == "/token"] == [
        False,
        True,
    ]
    provider.received.clear()
    provider.changes["/.well-known/openid-configuration"] = with_values(
        token_endpoint_auth_methods_supported=["client_secret_post"]
    )
    house.app.state.sign_on = make_sign_on(house.app.state.sign_on.settings, ORIGIN)
    assert house.sign_in().status_code == 303
    assert ["client_secret" in query for path, query in provider.received if path == "/token"] == [True]


def test_a_public_client_sends_its_id_alone(
    empty_house: House, settings: SignOnSettings, provider: OpenIDProvider
) -> None:
    empty_house.app.state.sign_on = make_sign_on(replace(settings, secret=""), ORIGIN)
    refused(empty_house.sign_in(), 502)  # this provider takes no public clients
    sent = [query for path, query in provider.received if path == "/token"]
    assert [(each["client_id"], "client_secret" in each) for each in sent] == [(CLIENT, False)]


# ---- people who don't come in


def test_a_local_account_of_the_same_name_is_linked_by_an_administrator_only(house: House) -> None:
    administration = Administration(house.store, "tests")
    administration.add_account("anna", "a password for the tests", "viewer")
    got = house.sign_in()
    refused(got, 409, "There is an account &#39;anna&#39; already")
    shown = re.search(r"duelpool account link STORE anna --issuer (\S+) --subject (\w+)", got.text)
    assert shown is not None
    assert house.sessions() == []
    assert house.accounts()["anna"].roles == {"": "viewer"}

    administration.link_account("anna", shown[1], shown[2])
    assert house.sign_in().status_code == 303
    assert house.accounts()["anna"].roles == {"": "manager"}
    administration.unlink_account("anna")
    assert house.sessions() == []
    refused(house.sign_in(), 409)


def test_a_locked_account_stays_out(house: House) -> None:
    assert house.sign_in().status_code == 303
    Administration(house.store, "tests").lock("anna")
    refused(house.sign_in(), 403, "This account is locked")
    assert house.sessions() == []


def test_whoever_has_no_role_gets_no_account(empty_house: House, provider: OpenIDProvider) -> None:
    provider.add("anna", "others")
    browser = empty_house.browser()
    refused(empty_house.sign_in(browser), 403, "Example ID knows you, but you have no role here")
    assert browser.get("/account").status_code == 403


# ---- what can go wrong between the provider and us


def gone(_: Answer) -> None:
    return None


def page(_: Answer) -> Answer:
    return Answer(503, "<h1>Maintenance</h1>")


def with_values(**more: Any) -> Callable[[Answer], Answer]:
    """Change the JSON of an answer."""
    return lambda answer: Answer(answer.status, json.dumps({**json.loads(answer.body), **more}))


FALSE_CLAIMS: dict[str, dict[str, Any]] = {
    "of another sign-in": {"nonce": "another"},
    "for another client": {"aud": ["another"]},
    "for another client, requested by us": {"aud": ["another"], "azp": CLIENT},
    "for another client as well": {"aud": [CLIENT, "another"]},
    "requested by another client": {"azp": "another"},
    "of another issuer": {"iss": "https://another.example"},
    "expired": {"exp": int(time.time()) - 3600},
    "of the future": {"iat": int(time.time()) + 3600},
    "about another access token": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    "without a subject": {"sub": ""},
    "with a subject that can't be stored": {"sub": "a\0b"},
    "with a subject that isn't text": {"sub": 7},
    "with times that aren't numbers": {"exp": "tomorrow"},
}


@pytest.mark.parametrize("what", FALSE_CLAIMS)
def test_an_id_token_with_false_claims_is_refused(
    empty_house: House, provider: OpenIDProvider, what: str
) -> None:
    provider.retell(lambda claims: claims.update(FALSE_CLAIMS[what]))
    browser = empty_house.browser()
    refused(empty_house.sign_in(browser), 403, "be verified")
    assert browser.get("/account").status_code == 403


@pytest.mark.parametrize("claim", ["nonce", "sub", "aud", "iss", "exp", "iat"])
def test_an_id_token_without_a_required_claim_is_refused(
    empty_house: House, provider: OpenIDProvider, claim: str
) -> None:
    provider.retell(lambda claims: claims.pop(claim))
    browser = empty_house.browser()
    refused(empty_house.sign_in(browser), 403, "be verified")
    assert browser.get("/account").status_code == 403


SIGNED: dict[str, Callable[[OpenIDProvider], None]] = {
    "not at all": lambda provider: provider.retell(alg="none"),
    "with the client's secret": lambda provider: provider.retell(alg="HS256", key=shared_secret_key()),
    "with another key": lambda provider: provider.retell(key=new_ec_key("P-256", kid="another")),
    "with another key of the same id": lambda provider: provider.retell(
        key=new_ec_key("P-256", kid=provider.key().kid)
    ),
    "as no token": lambda provider: provider.changes.update({"/token": with_values(id_token="a.b.c")}),
}


@pytest.mark.parametrize("how", SIGNED)
def test_an_id_token_that_the_provider_did_not_sign_is_refused(
    empty_house: House, provider: OpenIDProvider, how: str
) -> None:
    SIGNED[how](provider)
    browser = empty_house.browser()
    refused(empty_house.sign_in(browser), 403, "be verified")
    assert browser.get("/account").status_code == 403


TROUBLE: dict[str, tuple[str, Callable[[Answer], Answer | None]]] = {
    "no discovery": ("/.well-known/openid-configuration", gone),
    "discovery is a page": ("/.well-known/openid-configuration", page),
    "another issuer": ("/.well-known/openid-configuration", with_values(issuer="https://another.example")),
    "no token endpoint": ("/.well-known/openid-configuration", with_values(token_endpoint=None)),
    "a token endpoint in our network": (
        "/.well-known/openid-configuration",
        with_values(token_endpoint="https://169.254.169.254/token"),
    ),
    "a token endpoint in the clear": (
        "/.well-known/openid-configuration",
        with_values(token_endpoint="http://id.example.org/token"),
    ),
    "no answer to the code": ("/token", gone),
    "a page for the code": ("/token", page),
    "no ID token": ("/token", with_values(id_token=None)),
    "another secret": ("/token", lambda _: Answer(401, '{"error": "invalid_client"}')),
    "no keys": ("/jwks", gone),
}


LOGGED = {
    "a token endpoint in our network": "leads into a private network",
    "a token endpoint in the clear": "could be read on the way",
    "another secret": "invalid_client",
}


@pytest.mark.parametrize("what", TROUBLE)
def test_trouble_at_the_provider_is_a_page_that_says_so(
    empty_house: House, provider: OpenIDProvider, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, change = TROUBLE[what]
    provider.changes[path] = change
    browser = empty_house.browser()
    got = browser.get("/login/sso")
    if got.status_code == 303:
        got = browser.get(empty_house.wire.get(got.headers["location"]).headers["location"])
    refused(got, 502, "Example ID doesn&#39;t answer as it should")
    assert LOGGED.get(what, "single sign-on") in caplog.text
    assert browser.get("/account").status_code == 403


def test_user_info_of_somebody_else_is_refused(empty_house: House, provider: OpenIDProvider) -> None:
    provider.retell(lambda claims: claims.pop("groups"))
    provider.changes["/userinfo"] = with_values(sub="somebody else", groups=["leads"])
    browser = empty_house.browser()
    refused(empty_house.sign_in(browser), 403, "be verified")
    assert browser.get("/account").status_code == 403


def edited(way: str, **query: str) -> str:
    """Return a way back with other values; an empty one is left out."""
    parts = urlsplit(way)
    values = {**dict(parse_qsl(parts.query)), **query}
    return parts._replace(query=urlencode({name: each for name, each in values.items() if each})).geturl()


ANSWERS: dict[str, tuple[int, dict[str, str]]] = {
    "another state": (400, {"state": "another"}),
    "no state": (400, {"state": ""}),
    "no code": (400, {"code": ""}),
    "a code of nobody": (400, {"code": "none"}),
    "of another issuer": (403, {"iss": "https://another.example"}),
    "cancelled": (403, {"error": "access_denied", "code": ""}),
    "refused": (400, {"error": "invalid_scope", "code": ""}),
    "down": (502, {"error": "temporarily_unavailable", "code": ""}),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_a_false_answer_of_the_provider_signs_nobody_in(empty_house: House, what: str) -> None:
    status, query = ANSWERS[what]
    browser = empty_house.browser()
    refused(browser.get(edited(empty_house.way_back(browser), **query)), status)
    assert browser.get("/account").status_code == 403


@pytest.mark.parametrize(
    "junk", ["%00", "%ff%fe", "%ED%A0%80", "x" * 20_000, "é", "<script>", "&state=&state=1"]
)
def test_junk_from_the_provider_signs_nobody_in(empty_house: House, junk: str) -> None:
    for name in ("state", "code", "iss", "error"):
        browser = empty_house.browser()
        way = edited(empty_house.way_back(browser), **{name: "JUNK"}).replace("JUNK", junk)
        got = browser.get(way)
        assert got.status_code in {400, 403, 422}, (name, got.text)
        assert "<script>" not in got.text


def test_an_answer_counts_once_and_in_its_own_browser_only(house: House) -> None:
    browser = house.browser()
    way = house.way_back(browser)
    kept = dict(browser.cookies)
    stranger = house.browser()
    refused(stranger.get(way), 400, "has begun no sign-in")
    assert browser.get(way).status_code == 303
    again = house.browser()
    again.cookies.update(kept)
    refused(again.get(way), 400, "was used already")
    assert house.sessions() == ["anna"]


def test_a_cookie_that_is_forged_or_too_old_signs_nobody_in(empty_house: House) -> None:
    browser = empty_house.browser()
    way = empty_house.way_back(browser)
    state = parse_qs(urlsplit(way).query)["state"][0]
    for values, told in (
        ([state, "n", "v", "/account", time.time() - 1], "took too long"),
        ([state, "n", "v"], "has begun no sign-in"),
        ("nothing", "has begun no sign-in"),
    ):
        old = empty_house.browser()
        old.cookies.set(COOKIE, empty_house.app.state.links.sign("sign on", values))
        refused(old.get(way), 400, told)
    old.cookies.set(
        COOKIE, empty_house.app.state.links.sign("session", [state, "n", "v", "/", time.time() + 99])
    )
    refused(old.get(way), 400, "has begun no sign-in")
    assert browser.get("/account").status_code == 403


def test_used_states_are_forgotten_when_their_time_is_over(empty_house: House) -> None:
    assert single_sign_on.use_once(empty_house.store, "old", 0.0, 1.0)
    assert not single_sign_on.use_once(empty_house.store, "old", 0.0, 1.0)
    single_sign_on.sweep(empty_house.store)
    assert single_sign_on.use_once(empty_house.store, "old", 0.0, time.time() + 60)
    single_sign_on.sweep(empty_house.store)
    assert not single_sign_on.use_once(empty_house.store, "old", 0.0, 1.0)


def test_a_provider_that_hangs_does_not_take_every_thread(empty_house: House) -> None:
    client = empty_house.app.state.sign_on.client
    for _ in range(openid.CALLS_AT_ONCE):
        assert client._calls.acquire(blocking=False)
    refused(empty_house.browser().get("/login/sso"), 502)


# ---- what else the pages offer


def test_signing_out_offers_to_end_the_session_at_the_provider(
    house: House, provider: OpenIDProvider
) -> None:
    browser = house.browser()
    assert house.sign_in(browser).status_code == 303
    got = browser.post("/logout")
    assert got.status_code == 200
    assert house.sessions() == []
    assert browser.get("/account").status_code == 403
    link = re.search(r'href="([^"]+)">Sign out of Example ID, too', got.text)
    assert link is not None
    ended = house.wire.get(link[1].replace("&amp;", "&"))
    assert ended.status_code == 303, ended.text
    path, query = provider.received[-1]
    assert path == "/session"
    assert query["post_logout_redirect_uri"] == f"{ORIGIN}/login"
    assert query["id_token_hint"].count(".") == 2


def test_signing_out_does_not_wait_for_a_provider_that_is_gone(
    house: House, provider: OpenIDProvider
) -> None:
    browser = house.browser()
    assert house.sign_in(browser).status_code == 303
    provider.changes["/.well-known/openid-configuration"] = gone
    house.app.state.sign_on.client._kept.clear()
    got = browser.post("/logout")
    assert (got.status_code, got.headers["location"]) == (303, "/login")
    assert house.sessions() == []


def test_single_sign_on_may_be_the_only_way_in(
    settings: SignOnSettings, wire: Client, tmp_path: Path
) -> None:
    with new_store(tmp_path / "c.db") as store:
        Administration(store, "tests").add_account("ben", "a password for the tests", "manager")
    with served(tmp_path / "c.db", url=ORIGIN, sign_on=replace(settings, passwords=False)) as app:
        house = House(app, wire)
        browser = house.browser()
        page = browser.get("/login").text
        assert "Sign in with Example ID" in page
        assert 'type="password"' not in page
        got = browser.post("/login", data={"name": "ben", "password": "a password for the tests"})
        assert got.status_code == 403
        assert house.sessions() == []
        assert house.sign_in(browser).status_code == 303
        got = browser.post("/account/password", data={"present": "", "new": "a password for the tests"})
        assert got.status_code == 403


def test_without_single_sign_on_its_pages_do_not_exist(tmp_path: Path) -> None:
    new_store(tmp_path / "c.db").close()
    with served(tmp_path / "c.db") as app:
        browser = TestClient(app, base_url=ORIGIN)
        assert "Sign in with" not in browser.get("/login").text
        assert browser.get("/login/sso").status_code == 404
        assert browser.get("/login/sso/callback").status_code == 404
