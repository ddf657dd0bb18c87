"""Calls to a panel's API: what is certain after each of them, and which may be repeated.

A call that pays must tell three ends apart: it was never sent, the panel answered, or it is not known whether it was
carried out. The token is in no message.
"""

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from duelpool.errors import BadParameter
from duelpool.net import http
from duelpool.net.addresses import Address, is_loopback, parse_address
from duelpool.panels.base import PanelError

SECONDS = 30.0
PAUSES = (0.5, 1.0, 2.0, 4.0)
ANSWER_AT_MOST = 16 * 1024 * 1024
TEXT_AT_MOST = 300
TOO_MANY = 429


class CallNotSent(PanelError):
    """The call never reached the panel: it has done nothing."""


class CallUnsure(PanelError):
    """The call was sent, and it is not known whether it was carried out."""


class CallRefused(PanelError):
    """The panel answered, and refuses; `status` is HTTP's."""

    status: int = 0


@dataclass(frozen=True, slots=True)
class PanelAnswer:
    """A panel's answer to one call: HTTP's status, and the data of the body."""

    status: int
    data: Any


def panel_address(default: str, other: str = "", allowed: Collection[str] = ()) -> Address:
    """Return the address to call: the panel's own, or another one whose host is allowed by name.

    It is https, unless the host is this very machine: the token may pay people.
    """
    address = parse_address(other or default, allowed, allow_with="DUELPOOL_PANEL_HOSTS=")
    if not address.allowed and address.host != parse_address(default).host:
        raise BadParameter(
            f"'{address.host}' is not the panel's own host.",
            remedy="Leave the other address out, or allow the host by name in DUELPOOL_PANEL_HOSTS.",
        )
    if address.scheme == "http" and not is_loopback(address.host):
        raise BadParameter(f"'{address.host}' is not called without TLS.", remedy="Write https:// before it.")
    return address


class PanelApi:
    """A panel's API at one address."""

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

    def call_once(self, method: str, path: str, values: Any = None) -> PanelAnswer:
        """Make one call, and never a second one: raise CallNotSent or CallUnsure when there is no answer."""
        try:
            response = http.request(
                self._address,
                method,
                path,
                body=http.to_json(values),
                headers={"Authorization": f"Token {self._token}"},
                timeout=self._seconds,
                max_bytes=ANSWER_AT_MOST,
            )
        except http.NotSent as error:
            raise self._not_sent(str(error), error.remedy) from None
        except BadParameter as error:  # a forbidden address, or an invalid certificate
            raise self._not_sent(error.problem, error.remedy) from None
        except http.NoAnswer as error:
            raise CallUnsure(
                f"{self._panel} did not answer {method} {path}: {error}.",
                remedy="It is not known whether it was carried out.",
            ) from None
        return PanelAnswer(response.status, response.json())

    def call(self, method: str, path: str, values: Any = None) -> Any:
        """Make a call that may be repeated, and return the data of its answer; raise the last error otherwise."""
        last: PanelError | None = None
        for pause in (0.0, *PAUSES):
            if pause:
                self._sleep(pause)
            try:
                answer = self.call_once(method, path, values)
            except (CallNotSent, CallUnsure) as error:
                last = error
                continue
            if answer.status < 300:
                return answer.data
            last = self.refusal(answer, method, path)
            if answer.status != TOO_MANY and answer.status < 500:
                break
        raise last or PanelError(f"{self._panel} was not called.")

    def refusal(self, answer: PanelAnswer, method: str, path: str) -> CallRefused:
        """Return the error for a refusal, without anything secret in it."""
        text = self.cleaned(answer.data)
        error = CallRefused(
            f"{self._panel} answered {method} {path} with {answer.status}{': ' + text if text else ''}.",
            remedy=_REMEDIES.get(answer.status, "Correct what the panel names, and try again."),
        )
        error.status = answer.status
        return error

    def cleaned(self, data: Any) -> str:
        """Return a panel's data as one short line, without our token."""
        text = data if isinstance(data, str) else "" if data is None else json.dumps(data)
        if self._token:
            text = text.replace(self._token, "(token)")
        line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
        return line[:TEXT_AT_MOST].rstrip(". ")

    def _not_sent(self, reason: str, remedy: str) -> CallNotSent:
        return CallNotSent(f"{self._panel} can't be reached: {reason.rstrip('.')}.", remedy=remedy)


_REMEDIES = {
    401: "Check the token in the environment.",
    403: "Check that the token's account may do this.",
    404: "Check the study's id.",
    TOO_MANY: "Try again in some minutes.",
}
