"""The client of an OpenID provider: where to send a browser, and who has come back.

The authorization code flow with PKCE. The code is exchanged by this server for an ID token, whose signature, issuer,
audience, times and nonce are verified. Discovery document and keys are kept for an hour; a signature that no known
key made has the keys read once more, since providers replace them.

Needs the extra `duelpool[sso]`: Authlib writes the requests and checks the claims, joserfc the signatures. The requests
themselves go through `duelpool.net`: to the address that was checked, with a limit of time and size, without redirects.
"""

import hmac
import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

from duelpool.access.sign_on_settings import ALLOW_WITH, SignOnSettings
from duelpool.errors import BadParameter, DuelpoolError, MissingExtra
from duelpool.net import http
from duelpool.net.addresses import Address, Resolver, parse_address

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""How an ID token may be signed: with a key pair. Never without a signature, nor with a secret that is shared."""
KEPT_SECONDS = 3600.0
RETRY_SECONDS = 3.0
TIMEOUT = 5.0
LEEWAY = 60
"""Seconds by which the provider's clock may differ."""
MAX_BYTES = 1 << 20
CALLS_AT_ONCE = 20
"""Requests to the provider at the same time: if it hangs, the server's other threads still serve the assessors."""
HINT_AT_MOST = 4000
"""Characters of an ID token that a URL may hold."""


class BadSignOn(DuelpoolError):
    """A return from the provider that doesn't belong to a sign-in of this browser, or comes too late."""


class SignOnRefused(DuelpoolError):
    """A person whom the provider or this server doesn't let in, or an ID token that isn't genuine."""


class NameTaken(DuelpoolError):
    """A person from the provider with the name of an account that isn't linked to them."""


class ProviderTrouble(DuelpoolError):
    """The provider can't be reached, or doesn't answer as it should; `place` says more, for the log."""


@dataclass(frozen=True, slots=True)
class SignOnRequest:
    """What a browser keeps until it returns from the provider."""

    state: str
    nonce: str
    verifier: str


def new_request() -> SignOnRequest:
    """Return a request with fresh secrets."""
    return SignOnRequest(secrets.token_urlsafe(24), secrets.token_urlsafe(24), secrets.token_urlsafe(48))


@dataclass(frozen=True, slots=True)
class Identity:
    """A person as the provider describes them: `claims` are verified, `token` is the ID token as it came."""

    issuer: str
    subject: str
    claims: Mapping[str, Any]
    token: str


def check_installed() -> None:
    """Raise MissingExtra where the packages for single sign-on aren't installed."""
    try:
        import authlib.oidc.core  # noqa: F401
        import joserfc  # noqa: F401
    except ImportError:
        raise MissingExtra("authlib", "sso") from None


class OpenIDClient:
    """This server as a client of the provider; one for each process, shared by its threads."""

    def __init__(
        self, settings: SignOnSettings, redirect_uri: str, *, resolver: Resolver | None = None
    ) -> None:
        check_installed()
        self._settings, self._redirect_uri, self._resolver = settings, redirect_uri, resolver
        self._lock = threading.Lock()
        self._calls = threading.BoundedSemaphore(CALLS_AT_ONCE)
        self._kept: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._failed_at, self._failure = -RETRY_SECONDS, ""

    # ---- the flow

    def authorization_url(self, request: SignOnRequest) -> str:
        """Return where to send the browser."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        return str(
            prepare_grant_uri(
                self._endpoint(self.metadata(), "authorization_endpoint"),
                client_id=self._settings.client,
                response_type="code",
                redirect_uri=self._redirect_uri,
                scope=self._settings.scopes,
                state=request.state,
                nonce=request.nonce,
                code_challenge=create_s256_code_challenge(request.verifier),
                code_challenge_method="S256",
            )
        )

    def identify(self, request: SignOnRequest, answer: Mapping[str, str]) -> Identity:
        """Return who has come back; `answer` is the query with which the provider sent the browser."""
        if not hmac.compare_digest(answer.get("state", "").encode(), request.state.encode()):
            raise BadSignOn(
                "This sign-in was not begun in this browser.", remedy="Begin again from the page to sign in."
            )
        metadata = self.metadata()
        self._check_sender(metadata, answer)
        if "error" in answer:
            raise self._refusal(answer)
        if not answer.get("code"):
            raise BadSignOn("The provider sent no code.", remedy="Begin again from the page to sign in.")
        tokens = self._exchange(metadata, answer["code"], request.verifier)
        claims = self._verified(metadata, tokens, request.nonce)
        told = self._user_info(metadata, tokens, claims)
        if told.get("email") != claims.get("email", told.get("email")):
            told = {name: value for name, value in told.items() if name != "email_verified"}
        claims = {**told, **claims}
        return Identity(self._settings.issuer, claims["sub"], claims, str(tokens["id_token"]))

    def end_session_url(self, hint: str, back: str) -> str:
        """Return where a browser ends its session at the provider; empty where the provider offers no such page."""
        from authlib.common.urls import add_params_to_uri

        metadata = self.metadata()
        if not metadata.get("end_session_endpoint"):
            return ""
        hinted = (
            {"id_token_hint": hint} if len(hint) <= HINT_AT_MOST else {"client_id": self._settings.client}
        )
        given = {**hinted, "post_logout_redirect_uri": back}
        return str(add_params_to_uri(self._endpoint(metadata, "end_session_endpoint"), list(given.items())))

    # ---- what the provider says of itself

    def metadata(self) -> Mapping[str, Any]:
        """Return the provider's discovery document."""
        issuer = self._settings.issuer
        metadata = self._kept_or_fetched(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != issuer:
            raise self._trouble(
                f"it calls itself {metadata.get('issuer')!a}; give exactly that with --sso-issuer"
            )
        return metadata

    def _keys(self, metadata: Mapping[str, Any], again: bool) -> Iterable[Any]:
        """Return the public keys that may sign ID tokens; keys of an unknown kind are left out."""
        from joserfc.errors import JoseError
        from joserfc.jwk import JWKRegistry

        listed = self._kept_or_fetched(self._endpoint(metadata, "jwks_uri"), again=again).get("keys")
        keys = []
        for each in listed if isinstance(listed, list) else ():
            if (
                isinstance(each, dict)
                and each.get("kty") in {"RSA", "EC", "OKP"}
                and each.get("use") != "enc"
            ):
                try:
                    keys.append(JWKRegistry.import_key(each))
                except (JoseError, ValueError, TypeError, KeyError):
                    continue
        return keys

    def _endpoint(self, metadata: Mapping[str, Any], name: str) -> str:
        """Return a URL of the discovery document, after checking that it may be called."""
        url = metadata.get(name)
        if not isinstance(url, str):
            raise self._trouble(f"its discovery document has no {name}")
        self._address(url)
        return url

    def _address(self, url: str) -> Address:
        try:
            allow = self._settings.may_be_private(url.partition(":")[0].lower())
            return parse_address(url, allow, allow_with=ALLOW_WITH, query=True)
        except BadParameter as error:
            raise self._trouble(f"{url!a}: {error}") from None

    # ---- tokens

    def _check_sender(self, metadata: Mapping[str, Any], answer: Mapping[str, str]) -> None:
        """Refuse the answer of another provider (RFC 9207)."""
        sender = answer.get("iss")
        if sender is None and not metadata.get("authorization_response_iss_parameter_supported"):
            return
        if sender != self._settings.issuer:
            raise SignOnRefused(
                "This answer is from another provider.", remedy="Begin again from the page to sign in."
            )

    def _refusal(self, answer: Mapping[str, str]) -> DuelpoolError:
        """Return the error that the provider's own stands for."""
        name, code = self._settings.name, answer["error"]
        if code == "access_denied":
            return SignOnRefused(
                f"{name} didn't let you in, or you cancelled.", remedy="Try again, or use another account."
            )
        if code in {"server_error", "temporarily_unavailable"}:
            return self._trouble(f"it answered {code!a}")
        return BadSignOn(
            f"{name} refused the sign-in ({code[:60]!a}).", remedy="Begin again from the page to sign in."
        )

    def _exchange(self, metadata: Mapping[str, Any], code: str, verifier: str) -> Mapping[str, Any]:
        """Exchange the code for tokens."""
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        body = prepare_token_request(
            "authorization_code", code=code, redirect_uri=self._redirect_uri, code_verifier=verifier
        )
        status: int = 0
        tokens: dict[str, Any] = {}
        for method in self._client_methods(metadata):
            status, tokens = self._ask_for_tokens(metadata, body, method)
            if tokens.get("error") != "invalid_client":
                break
        if tokens.get("error") == "invalid_grant":
            raise BadSignOn(
                "This sign-in has expired or was used already.",
                remedy="Begin again from the page to sign in.",
            )
        if status != 200 or "error" in tokens:
            raise self._trouble(f"its token endpoint answered {status} {tokens.get('error')!a}")
        if not isinstance(tokens.get("id_token"), str):
            raise self._trouble("its token endpoint sent no ID token")
        return tokens

    def _client_methods(self, metadata: Mapping[str, Any]) -> Sequence[Any]:
        """Return how to show that we are the client, in the order to try: some providers take one way only."""
        if not self._settings.secret:
            return ("none",)
        offered = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        ways = {"client_secret_basic": _basic, "client_secret_post": "client_secret_post"}
        return [way for name, way in ways.items() if name in offered] or [_basic]

    def _ask_for_tokens(
        self, metadata: Mapping[str, Any], body: str, method: Any
    ) -> tuple[int, dict[str, Any]]:
        from authlib.oauth2.auth import ClientAuth

        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        auth = ClientAuth(self._settings.client, self._settings.secret, method)
        url = self._endpoint(metadata, "token_endpoint")
        url, headers, body = auth.prepare("POST", url, headers, body)
        response = self._call(url, "POST", body.encode(), headers)
        tokens = response.json()
        if not isinstance(tokens, dict):
            raise self._trouble(f"its token endpoint answered {response.status}, and no JSON")
        return response.status, tokens

    def _verified(self, metadata: Mapping[str, Any], tokens: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token that this provider signed for us, now and for this sign-in."""
        from authlib.oidc.core import CodeIDToken
        from joserfc.errors import JoseError

        settings = self._settings
        try:
            token = self._signed(metadata, tokens["id_token"])
            claims = CodeIDToken(
                token.claims,
                token.header,
                options={
                    "iss": {"essential": True, "value": settings.issuer},
                    "sub": {"essential": True},
                    "aud": {"essential": True, "value": settings.client},
                },
                params={
                    "nonce": nonce,
                    "client_id": settings.client,
                    "access_token": tokens.get("access_token"),
                },
            )
            claims.validate(leeway=LEEWAY)
            return _storable(dict(claims))
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise self._not_genuine(f"{type(error).__name__}: {error}") from None

    def _signed(self, metadata: Mapping[str, Any], text: str) -> Any:
        """Return a token whose signature a key of the provider made; the keys are read again where none fits."""
        from joserfc import jwt
        from joserfc.errors import BadSignatureError, JoseError
        from joserfc.jws import extract_compact

        header = extract_compact(text.encode("ascii")).headers()
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        allowed = [each for each in ALGORITHMS if each in offered]
        if header.get("alg") not in allowed:
            raise ValueError(f"it is signed by {header.get('alg')!a}, not by one of {allowed}")
        problem: Exception = BadSignatureError()
        for again in (False, True):
            for key in self._keys(metadata, again):
                if header.get("kid") is None or key.kid == header["kid"]:
                    try:
                        return jwt.decode(text, key, algorithms=allowed)
                    except (JoseError, ValueError, TypeError) as error:
                        problem = error
        raise problem

    def _user_info(
        self, metadata: Mapping[str, Any], tokens: Mapping[str, Any], claims: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return what the provider tells about a person beside the ID token, where that lacks what we look for."""
        role = {self._settings.claim, self._settings.claim.partition(".")[0]}
        name = (
            [{"email"}, {"email_verified"}] if self._settings.domains else [{"email", "preferred_username"}]
        )
        wanted = [role, *name]
        lacking = any(claims.keys().isdisjoint(each) for each in wanted)
        if not lacking or not metadata.get("userinfo_endpoint") or not tokens.get("access_token"):
            return {}
        url = self._endpoint(metadata, "userinfo_endpoint")
        response = self._call(url, "GET", None, {"Authorization": f"Bearer {tokens['access_token']}"})
        told = response.json()
        if response.status != 200 or not isinstance(told, dict):
            raise self._trouble(f"its user info endpoint answered {response.status}, and no claims")
        if told.get("sub") != claims["sub"]:
            raise self._not_genuine("the user info has another subject")
        try:
            return _storable(told)
        except ValueError as error:
            raise self._not_genuine(str(error)) from None

    def _not_genuine(self, detail: str) -> SignOnRefused:
        return SignOnRefused(
            f"What {self._settings.name} told about you couldn't be verified.",
            place=detail[:500],
            remedy="Begin again from the page to sign in. If that doesn't help, tell whoever runs this server.",
        )

    # ---- calls

    def _kept_or_fetched(self, url: str, *, again: bool = False) -> Mapping[str, Any]:
        """Return a JSON object of the provider; a failure is remembered for a moment, so that few wait for it."""
        with self._lock:
            kept_at, kept = self._kept.get(url, (-KEPT_SECONDS, {}))
            if not again and time.monotonic() - kept_at < KEPT_SECONDS:
                return kept
            if self._failure and time.monotonic() - self._failed_at < RETRY_SECONDS:
                raise self._trouble(self._failure)
        try:
            response = self._call(url, "GET", None, {})
            found = response.json()
            if response.status != 200 or not isinstance(found, dict):
                raise self._trouble(f"{url!a} answered {response.status}, and no JSON")
        except ProviderTrouble as trouble:
            with self._lock:
                self._failure, self._failed_at = trouble.place, time.monotonic()
            raise
        with self._lock:
            self._kept[url] = time.monotonic(), found
            self._failure = ""
        return found

    def _call(self, url: str, method: str, body: bytes | None, headers: Mapping[str, str]) -> http.Response:
        address = self._address(url)
        if not self._calls.acquire(blocking=False):
            raise self._trouble("too many sign-ins wait for it")
        try:
            return http.request(
                address,
                method,
                body=body,
                headers=headers,
                timeout=TIMEOUT,
                max_bytes=MAX_BYTES,
                resolver=self._resolver,
            )
        except (http.NotSent, http.NoAnswer, BadParameter) as error:
            raise self._trouble(f"{address.netloc}: {error}") from None
        finally:
            self._calls.release()

    def _trouble(self, detail: str) -> ProviderTrouble:
        return ProviderTrouble(
            f"{self._settings.name} doesn't answer as it should.",
            place=detail[:500],
            remedy="Try again in a minute. If it stays so, tell whoever runs this server.",
        )


def _basic(client: Any, method: str, uri: str, headers: dict[str, str], body: str) -> tuple[Any, ...]:
    """Send id and secret in a header, encoded as RFC 6749 has it (2.3.1): Authlib leaves out that step."""
    from authlib.oauth2.auth import encode_client_secret_basic

    class Encoded:
        client_id, client_secret = quote_plus(client.client_id), quote_plus(client.client_secret)

    told: tuple[Any, ...] = encode_client_secret_basic(Encoded, method, uri, headers, body)
    return told


def _storable(claims: dict[str, Any]) -> dict[str, Any]:
    """Return claims whose subject can be stored, or raise ValueError."""
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
        raise ValueError("its subject isn't a text of 1 to 255 characters")
    return claims
