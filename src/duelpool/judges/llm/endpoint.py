"""One request to a model's API, and what can be said for sure of how it ended.

The standard library's HTTP is enough, and it lets us connect to the very address that was looked at. No redirect is
followed, no proxy is asked, and each request has a connection of its own: a kept one that the other side has closed
would leave open whether a request arrived.
"""

import http.client
import socket
import threading
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from duelpool import __version__
from duelpool.errors import BadParameter
from duelpool.net import addresses
from duelpool.net.addresses import Address, Resolver, Unreachable, Unresolved

_PATH = "/chat/completions"
BODY_AT_MOST = 1_000_000  # bytes of an answer; more than this is none


class NotSent(Exception):
    """The request never left: nothing was asked, and nothing can cost."""


class NoAnswer(Exception):
    """The request may have arrived, and no whole answer came: it may have cost."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A whole answer."""

    status: int
    body: bytes
    retry_after: float | None = None  # seconds


def parse_address(url: str, allow: Collection[str] = ()) -> Address:
    """Return where a model's API such as https://api.example.org/v1 takes its questions."""
    found = addresses.parse_address(url, allow)
    return found if found.path.endswith(_PATH) else replace(found, path=found.path + _PATH)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model's API: where it is, the key for it, and the seconds that one request may take in all."""

    address: Address
    key: str = field(default="", repr=False)  # never shown
    timeout: float = 120.0
    resolver: Resolver = field(default=socket.getaddrinfo, repr=False)

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise BadParameter(f"A request gets more than 0 seconds, not {self.timeout}.")
        if not (self.key.isascii() and self.key.isprintable()) or " " in self.key:
            raise BadParameter(
                "The API key holds characters that no key has.", remedy="Check the environment variable."
            )

    def post(self, body: bytes, idempotency_key: str = "") -> Answered:
        """Send a request and return the whole answer, whatever its status."""
        connection = self._connect()
        try:
            with _deadline(connection, self.timeout):
                return self._exchange(connection, body, idempotency_key)
        finally:
            connection.close()

    def _exchange(self, connection: socket.socket, body: bytes, idempotency_key: str) -> Answered:
        headers = {
            "Host": self.address.netloc,
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"duelpool/{__version__}",
            "Connection": "close",
        }
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        link = http.client.HTTPConnection(self.address.host, self.address.port)
        link.sock = connection
        try:
            link.request("POST", self.address.path, body=body, headers=headers)
            got = link.getresponse()
            content = got.read(BODY_AT_MOST + 1)
            # read() with a number of bytes doesn't say when some are missing
            if len(content) <= BODY_AT_MOST and got.length:
                raise NoAnswer("half an answer")
        except TimeoutError:
            raise NoAnswer("no answer in time") from None
        except (OSError, http.client.HTTPException, ValueError):
            raise NoAnswer("the connection broke") from None
        if len(content) > BODY_AT_MOST:
            raise NoAnswer("an answer without end")
        return Answered(got.status, content, _retry_after(got.getheader("Retry-After")))

    def _connect(self) -> socket.socket:
        try:
            return addresses.connect(self.address, self.timeout, self.resolver)
        except Unresolved as error:
            raise NotSent(error.problem) from None
        except Unreachable as error:
            raise NotSent(str(error)) from None


class _deadline:  # noqa: N801 (used as a statement)
    """Ends a connection when its time is over, however slowly the other side drips."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._connection = connection

    def _end(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _retry_after(value: str | None) -> float | None:
    """Return the seconds that a server asks us to wait, given as a number or as a date."""
    if value is None:
        return None
    with suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if seconds < 1e9 else None
    with suppress(ValueError, TypeError):
        when = parsedate_to_datetime(value)
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max(0.0, (when - datetime.now(UTC)).total_seconds())
    return None
