"""The HTTP client for other people's servers: checked addresses, limits, and certainty after each failure.

A call that may cost money must tell three ends apart. `NotSent`: nothing left this machine. `NoAnswer`: the request
may have been carried out. A `Response`: the server answered, and its status says whether it refused.

The connection goes to the address that was checked (see `duelpool.net.addresses`). No redirect is followed and no
proxy is used. Each request has a connection of its own: if a reused one had been closed by the other side, it would
be open whether the request arrived.
"""

import http.client
import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from duelpool import __version__
from duelpool.net.addresses import Address, Resolver, Unreachable, Unresolved, connect


class NotSent(Exception):
    """No connection could be made: the server has done nothing, and nothing can cost."""

    def __init__(self, reason: str, remedy: str = "Try again later.") -> None:
        self.remedy = remedy
        super().__init__(reason)


class NoAnswer(Exception):
    """The request may have arrived, and no whole answer came: it may have taken effect, and may have cost."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer, whatever its status."""

    status: int
    body: bytes
    retry_after: float | None = None  # seconds that the server asks us to wait

    def json(self) -> Any:
        """Return the body as JSON: None when it is empty, its text when it isn't JSON."""
        try:
            return json.loads(self.body) if self.body.strip() else None
        except (ValueError, RecursionError):
            return self.body.decode(errors="replace")


def request(
    address: Address,
    method: str,
    path: str = "",
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float,
    max_bytes: int,
    whole: bool = True,
    resolver: Resolver | None = None,
) -> Response:
    """Send one request, never a second one, and return the whole answer, or its first bytes unless `whole`.

    `path` follows the address's own path; `timeout` is for connecting, and once more for all the rest. Raises NotSent
    or NoAnswer without an answer (where `whole`, of at most `max_bytes`), and BadParameter when the URL itself is at
    fault: a forbidden address or an invalid certificate. Nothing was sent then.
    """
    connection = _connect(address, timeout, resolver)
    link = http.client.HTTPConnection(address.host, address.port)
    link.auto_open = 0  # it must never connect to the name by itself, past the check
    link.sock = connection
    all_headers = {
        "Host": address.netloc,
        "Accept": "application/json",
        "User-Agent": f"duelpool/{__version__}",
        "Connection": "close",
        **({} if body is None else {"Content-Type": "application/json"}),
        **(headers or {}),
    }
    try:
        with _Deadline(connection, timeout):
            link.request(method, address.path + path, body, all_headers)
            return _read(link.getresponse(), max_bytes, whole)
    except TimeoutError:
        raise NoAnswer("no answer in time") from None
    except (OSError, http.client.HTTPException, ValueError):
        raise NoAnswer("the connection broke") from None
    finally:
        link.close()
        connection.close()


def to_json(values: Any) -> bytes | None:
    """Return values as a JSON body; None stays None, for a request without a body."""
    return None if values is None else json.dumps(values).encode()


def _connect(address: Address, timeout: float, resolver: Resolver | None) -> socket.socket:
    try:
        return connect(address, timeout, resolver)
    except Unresolved as error:
        raise NotSent(error.problem, error.remedy) from None
    except Unreachable as error:
        raise NotSent(str(error)) from None
    except OSError as error:  # not even a socket
        raise NotSent(error.strerror or type(error).__name__) from None


def _read(answer: http.client.HTTPResponse, max_bytes: int, whole: bool) -> Response:
    if not whole:
        return Response(answer.status, answer.read(max_bytes), retry_after(answer.getheader("Retry-After")))
    body = answer.read(max_bytes + 1)
    if len(body) > max_bytes:
        raise NoAnswer("an answer without end")
    if answer.length:  # read() with a number of bytes doesn't say when some are missing
        raise NoAnswer("half an answer")
    return Response(answer.status, body, retry_after(answer.getheader("Retry-After")))


class _Deadline:
    """Ends a connection when its time is over, however slowly the other side sends."""

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


def retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date; None when it is neither."""
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
