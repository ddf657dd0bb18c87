"""An OpenID provider over real HTTP on loopback: idpyoidc, which shares no code with Authlib, and fails on demand.

Nobody types a password: the provider signs in `user` at once, or, where `asks` is set, after the click on a button.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from cryptojwt.jwk import JWK
from cryptojwt.jwk.ec import ECKey, new_ec_key
from cryptojwt.jwk.hmac import SYMKey
from cryptojwt.jws.jws import JWS, factory
from idpyoidc.message.oidc import AccessTokenRequest
from idpyoidc.server import Server
from idpyoidc.server.configure import OPConfiguration
from idpyoidc.server.exception import ClientAuthenticationError

from duelpool.access.sign_on_settings import RoleRule, SignOnSettings

CLIENT, SECRET = "duelpool", "100 % & more: a secret + nobody else's"
CLAIMS = ("email", "email_verified", "preferred_username", "name", "groups", "realm_access")
ENDPOINTS = {
    "/.well-known/openid-configuration": "provider_config",
    "/authorization": "authorization",
    "/token": "token",
    "/userinfo": "userinfo",
    "/session": "session",
}
_MODULE = "idpyoidc.server"


@dataclass
class Answer:
    """What the provider says: a page, JSON, or a redirect."""

    status: int
    body: str
    location: str = ""
    kind: str = "application/json"


Change = Callable[[Answer], Answer | None]
"""Falsifies an answer; None hangs up."""


def _endpoint(path: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "class": f"{_MODULE}.oidc.{kind}", "kwargs": more}


class OpenIDProvider:
    """An identity provider with one client, which is Duelpool."""

    def __init__(self, root: str) -> None:
        self.issuer = root
        self.people: dict[str, dict[str, Any]] = {}
        self.changes: dict[str, Change] = {}
        self.received: list[tuple[str, dict[str, str]]] = []
        self.user, self.asks = "anna", False
        self._lock = threading.Lock()
        self._server = Server(OPConfiguration(self._config(), base_path="."), cwd=".")
        self._context = self._server.context
        self._context.userinfo.db = self.people
        self.client: dict[str, Any] = {
            "client_id": CLIENT,
            "client_secret": SECRET,
            "redirect_uris": [],
            "post_logout_redirect_uris": [],
            "response_types": ["code"],
            "allowed_scopes": ["openid", "profile", "email"],
            "id_token_signed_response_alg": "ES256",
        }
        self._context.cdb[CLIENT] = self.client

    def _config(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "key_conf": {"key_defs": [{"type": "EC", "crv": "P-256", "use": ["sig"]}], "uri_path": "jwks"},
            "preference": {
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256"],
            },
            "cookie_handler": {
                "class": f"{_MODULE}.cookie_handler.CookieHandler",
                "kwargs": {"sign_key": "A" * 48, "name": {"session": "op", "register": "rp"}},
            },
            "add_on": {
                "pkce": {
                    "function": f"{_MODULE}.oauth2.add_on.pkce.add_support",
                    "kwargs": {
                        "essential": True,
                        "code_challenge_method": {"S256": f"{_MODULE}.oauth2.add_on.pkce.hash_fun"},
                    },
                }
            },
            "authentication": {
                "at once": {
                    "acr": "urn:oasis:names:tc:SAML:2.0:ac:classes:unspecified",
                    "class": f"{_MODULE}.user_authn.user.NoAuthn",
                    "kwargs": {"user": ""},
                }
            },
            "userinfo": {"class": f"{_MODULE}.user_info.UserInfo", "kwargs": {"db": {}}},
            "scopes_to_claims": {"openid": ["sub"], "profile": list(CLAIMS), "email": ["email"]},
            "token_handler_args": {
                "key_conf": {"key_defs": [{"type": "oct", "bytes": 24, "use": ["enc"], "kid": "code"}]},
                "code": {"lifetime": 600, "kwargs": {}},
                "token": {"class": f"{_MODULE}.token.jwt_token.JWTToken", "kwargs": {"lifetime": 3600}},
                "id_token": {
                    "class": f"{_MODULE}.token.id_token.IDToken",
                    "kwargs": {"base_claims": dict.fromkeys(CLAIMS), "lifetime": 300},
                },
            },
            "endpoint": {
                "provider_info": _endpoint(
                    ".well-known/openid-configuration",
                    "provider_config.ProviderConfiguration",
                    client_authn_method=None,
                ),
                "authorization": _endpoint(
                    "authorization",
                    "authorization.Authorization",
                    client_authn_method=None,
                    response_types_supported=["code"],
                ),
                "token": _endpoint(
                    "token", "token.Token", client_authn_method=["client_secret_post", "client_secret_basic"]
                ),
                "userinfo": _endpoint("userinfo", "userinfo.UserInfo", client_authn_method=["bearer_header"]),
                "end_session": _endpoint(
                    "session",
                    "session.Session",
                    logout_verify_url="verify_logout",
                    post_logout_uri_path="post_logout",
                    signing_alg="ES256",
                ),
            },
        }

    # ---- what tests do

    def add(self, name: str, *groups: str, **more: Any) -> None:
        """Give someone an account, or change it; None takes a claim away."""
        claims = {"email": f"{name}@example.org", "email_verified": True, "preferred_username": name}
        told = {**claims, "groups": list(groups), **more}
        self.people[name] = {claim: value for claim, value in told.items() if value is not None}

    def allow(self, root: str) -> None:
        """Register the addresses of a server."""
        self.client["redirect_uris"] = [(f"{root}/login/sso/callback", {})]
        self.client["post_logout_redirect_uris"] = [(f"{root}/login", {})]

    def key(self) -> ECKey:
        """Return the key that signs."""
        key: ECKey = self._server.keyjar.get_signing_key("EC")[0]
        return key

    def rotate(self) -> None:
        """Sign with a new key from now on, and publish no other."""
        new = new_ec_key("P-256", kid="new", use="sig")
        for owner in ("", self.issuer):
            self._server.keyjar[owner].flush()
            self._server.keyjar.add_keys(owner, [new])

    def retell(
        self,
        change: Callable[[dict[str, Any]], Any] = lambda claims: None,
        *,
        key: JWK | None = None,
        alg: str = "ES256",
    ) -> None:
        """Change the claims of ID tokens from now on, or how they are signed."""

        def changed(answer: Answer) -> Answer:
            tokens = json.loads(answer.body)
            if "id_token" in tokens:
                claims = factory(tokens["id_token"]).jwt.payload()
                change(claims)
                signed = JWS(json.dumps(claims), alg=alg)
                tokens["id_token"] = signed.sign_compact([] if alg == "none" else [key or self.key()])
            return Answer(answer.status, json.dumps(tokens))

        self.changes["/token"] = changed

    # ---- over HTTP

    def answer(self, path: str, query: dict[str, str], headers: dict[str, str], method: str) -> Answer | None:
        """Return what the provider says to a request; None hangs up."""
        with self._lock:
            self.received.append((path, query))
            if path == "/authorization" and self.asks and "yes" not in query:
                again = f"/authorization?{urlencode({**query, 'yes': '1'})}".replace("&", "&amp;")
                page = f'<!doctype html><title>Provider</title><a href="{again}">Continue as {self.user}</a>'
                return Answer(200, page, kind="text/html")
            answer = self._answer(path, query, headers, method)
        change = self.changes.get(path)
        return answer if change is None else change(answer)

    def _answer(self, path: str, query: dict[str, str], headers: dict[str, str], method: str) -> Answer:
        if path == "/jwks":
            return Answer(200, json.dumps(self._server.keyjar.export_jwks()))
        endpoint = self._server.get_endpoint(ENDPOINTS.get(path, "none"))
        if endpoint is None:
            return Answer(404, "{}")
        self._context.authn_broker.get_method_by_id("at once").user = self.user
        about = {"headers": headers, "method": method, "url": self.issuer + path, "cookie": []}
        if (
            path == "/session"
        ):  # without the provider's own cookie, a valid hint and a known address are enough
            asked = endpoint.request_cls(**query)
            asked.verify(keyjar=self._server.keyjar, sigalg="")
            known = [each for each, _ in self.client["post_logout_redirect_uris"]]
            return Answer(303, "", known[known.index(query["post_logout_redirect_uri"])])
        try:
            asked = endpoint.parse_request(query, http_info=about)
            if "error" in asked:
                return Answer(400, asked.to_json())
            if path == "/token":
                asked = AccessTokenRequest(**asked)
            args = endpoint.process_request(asked, http_info=about)
        except ClientAuthenticationError as error:
            return Answer(401, json.dumps({"error": "invalid_client", "error_description": str(error)}))
        if "error" in args:
            return Answer(400, args.to_json() if hasattr(args, "to_json") else json.dumps(args))
        if "redirect_location" in args:
            return Answer(303, "", args["redirect_location"])
        told = endpoint.do_response(request=asked, **args)
        if told.get("response_placement", endpoint.response_placement) == "url":
            return Answer(303, "", told["response"])
        return Answer(told.get("response_code", 200), told["response"])


def sign_on_by(issuer: str, *rules: RoleRule) -> SignOnSettings:
    """Return the settings of a server whose people sign in here: the leads manage, unless other rules are given."""
    given = rules or (RoleRule("leads", "manager"),)
    return SignOnSettings(issuer=issuer, client=CLIENT, name="Example ID", rules=given, secret=SECRET)


def shared_secret_key() -> JWK:
    """Return the client's secret as a key, with which nothing may be signed."""
    return SYMKey(key=SECRET.encode(), alg="HS256")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet
    provider: OpenIDProvider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._reply(parts.path, dict(parse_qsl(parts.query)))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self._reply(urlsplit(self.path).path, dict(parse_qsl(body)))

    def _reply(self, path: str, query: dict[str, str]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        got = self.provider.answer(path, query, headers, self.command)
        if got is None:
            self.close_connection = True
            return
        body = got.body.encode()
        self.send_response(got.status)
        if got.location:
            self.send_header("Location", got.location)
        self.send_header("Content-Type", got.kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def openid_provider() -> Iterator[OpenIDProvider]:
    """Run a provider on a free port of loopback."""
    handler: Any = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    provider = handler.provider = OpenIDProvider(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
