"""Calls to a panel's interface: what is certain after each of them, and what isn't.

A call that pays must know three things apart: it never left us, the panel answered, or nobody can tell. No
redirect is followed, no proxy is used, and the token stands in no message.
"""

import http.client
import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from duelpool.errors import BadParameter
from duelpool.net.addresses import Address, Unreachable, connect, is_loopback, parse_address
from duelpool.panels.base import PanelError

SECONDS = 30.0
PAUSES = (0.5, 1.0, 2.0, 4.0)
ANSWER_AT_MOST = 16 * 1024 * 1024
WORDS_AT_MOST = 300
TOO_MANY = 429


class CallNotSent(PanelError):
    """The call never reached the panel: it has done nothing."""


class CallUnsure(PanelError):
    """The call was sent, and what came of it is not known."""


class CallRefused(PanelError):
    """The panel has answered, and refuses; `status` is HTTP's."""

    status: int = 0


@dataclass(frozen=True, slots=True)
class PanelAnswer:
    """What a panel answered."""

    status: int
    data: Any


def panel_address(usual: str, given: str = "", allowed: Collection[str] = ()) -> Address:
    """Return the address to call: the usual one, or the given one if its host is allowed by name.

    It is https, unless the host is this very machine: the token may pay people.
    """
    found = parse_address(given or usual, allowed, naming="DUELPOOL_PANEL_HOSTS=")
    if not found.allowed and found.host != parse_address(usual).host:
        raise BadParameter(
            f"'{found.host}' is not the panel's own host.",
            remedy="Leave the other address out, or allow the host by name in DUELPOOL_PANEL_HOSTS.",
        )
    if found.scheme == "http" and not is_loopback(found.host):
        raise BadParameter(f"'{found.host}' is not called without TLS.", remedy="Write https:// before it.")
    return found


class PanelApi:
    """A panel's interface at one address."""

    def __init__(
        self,
        panel: str,
        address: Address,
        token: str,
        *,
        seconds: float = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._panel = panel
        self._address = address
        self._token = token
        self._seconds = seconds
        self._sleep = sleep

    def once(self, method: str, path: str, values: Any = None) -> PanelAnswer:
        """Make one call, and never a second one: raise NotSent or Unsure when there is no answer."""
        connection = http.client.HTTPConnection(self._address.host, self._address.port)
        try:
            try:
                connection.sock = connect(self._address, self._seconds)
            except (OSError, Unreachable) as error:
                raise CallNotSent(
                    f"{self._panel} can't be reached: {_kind(error)}.", remedy="Try again later."
                ) from None
            except BadParameter as error:
                raise CallNotSent(
                    f"{self._panel} can't be reached: {error.problem}", remedy=error.remedy
                ) from None
            try:
                body = None if values is None else json.dumps(values).encode()
                connection.request(
                    method,
                    f"{self._address.path}{path}",
                    body,
                    {
                        "Host": self._address.netloc,
                        "Authorization": f"Token {self._token}",
                        "Accept": "application/json",
                        **({} if body is None else {"Content-Type": "application/json"}),
                    },
                )
                got = connection.getresponse()
                text = got.read(ANSWER_AT_MOST + 1)
            except (OSError, http.client.HTTPException) as error:
                raise CallUnsure(
                    f"{self._panel} did not answer {method} {path}: {_kind(error)}.",
                    remedy="Nobody knows whether it was carried out.",
                ) from None
        finally:
            connection.close()
        if len(text) > ANSWER_AT_MOST:
            raise CallUnsure(
                f"{self._panel} answered {method} {path} with too much.", remedy="Try again later."
            )
        try:
            data = json.loads(text) if text.strip() else None
        except ValueError:
            data = text.decode(errors="replace")
        return PanelAnswer(got.status, data)

    def ask(self, method: str, path: str, values: Any = None) -> Any:
        """Make a call that may be made again: what is certain in the end is its answer, or an error."""
        last: PanelError | None = None
        for pause in (0.0, *PAUSES):
            if pause:
                self._sleep(pause)
            try:
                answer = self.once(method, path, values)
            except (CallNotSent, CallUnsure) as error:
                last = error
                continue
            if answer.status < 300:
                return answer.data
            last = self.refusal(answer, method, path)
            if answer.status != TOO_MANY and answer.status < 500:
                break
        raise last or PanelError(f"{self._panel} was not asked.")

    def refusal(self, answer: PanelAnswer, method: str, path: str) -> CallRefused:
        """Return what a refusal says, without anything secret in it."""
        said = self.cleaned(answer.data)
        error = CallRefused(
            f"{self._panel} answered {method} {path} with {answer.status}{': ' + said if said else ''}.",
            remedy=_REMEDIES.get(answer.status, "See what it says, and mend that first."),
        )
        error.status = answer.status
        return error

    def cleaned(self, said: Any) -> str:
        """Return a panel's words as one short line, without our token."""
        text = said if isinstance(said, str) else "" if said is None else json.dumps(said)
        if self._token:
            text = text.replace(self._token, "(token)")
        line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
        return line[:WORDS_AT_MOST].rstrip(". ")


_REMEDIES = {
    401: "Check the token in the environment.",
    403: "Check that the token's account may do this.",
    404: "Check the study's id.",
    TOO_MANY: "Try again in some minutes.",
}


def _kind(error: BaseException) -> str:
    if isinstance(error, Unreachable):
        return str(error)
    words = getattr(error, "strerror", None) or type(error).__name__
    return str(words).rstrip(".")
