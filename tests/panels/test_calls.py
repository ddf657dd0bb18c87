"""Calls to a panel's API: what is certain after each failure, what is repeated, and that the token isn't shown."""

from typing import Any

import pytest

from duelpool.errors import BadParameter
from duelpool.net import http
from duelpool.net.addresses import Address, ForbiddenAddress
from duelpool.panels.base import PanelError
from duelpool.panels.calls import PAUSES, CallNotSent, CallRefused, CallUnsure, PanelApi

TOKEN = "token-0123456789"


class Scripted:
    """Stands in for the HTTP client: answers or fails as the script says, the last step for ever."""

    def __init__(self, *steps: http.Response | Exception) -> None:
        self.steps = list(steps)
        self.calls = 0

    def __call__(self, *_: Any, **__: Any) -> http.Response:
        step = self.steps[min(self.calls, len(self.steps) - 1)]
        self.calls += 1
        if isinstance(step, Exception):
            raise step
        return step


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_up(*steps: http.Response | Exception) -> tuple[PanelApi, Scripted]:
        client = Scripted(*steps)
        monkeypatch.setattr(http, "request", client)
        address = Address("https", "panel.example", 443, "")
        return PanelApi("Panel", address, TOKEN, sleep=lambda _: None), client

    return set_up


@pytest.mark.parametrize(
    ("failure", "error", "text"),
    [
        (http.NotSent("no route"), CallNotSent, "Panel can't be reached: no route. Try again later."),
        (
            http.NotSent("The host 'x' can't be found.", "Check the URL."),
            CallNotSent,
            "Panel can't be reached: The host 'x' can't be found. Check the URL.",
        ),
        (ForbiddenAddress("'x' is private.", remedy="Allow it."), CallNotSent, "'x' is private. Allow it."),
        (BadParameter("Bad certificate.", remedy="Check."), CallNotSent, "Bad certificate. Check."),
        (http.NoAnswer("half an answer"), CallUnsure, "did not answer POST /pay: half an answer. It is not"),
    ],
)
def test_failures_say_whether_the_call_was_sent(
    script: Any, failure: Exception, error: type[PanelError], text: str
) -> None:
    api, client = script(failure)
    with pytest.raises(error) as caught:
        api.call_once("POST", "/pay", {})
    assert type(caught.value) is error
    assert text in str(caught.value)
    assert client.calls == 1


@pytest.mark.parametrize(
    "step", [http.NotSent("gone"), http.NoAnswer("broken"), http.Response(429, b""), http.Response(503, b"")]
)
def test_repeatable_call_is_repeated_until_it_is_answered(script: Any, step: Any) -> None:
    api, client = script(step, step, http.Response(200, b'{"a": 1}'))
    assert api.call("GET", "/x") == {"a": 1}
    assert client.calls == 3
    api, client = script(step)
    with pytest.raises(PanelError):
        api.call("GET", "/x")
    assert client.calls == 1 + len(PAUSES)


def test_refusal_is_not_repeated_and_hides_the_token(script: Any) -> None:
    api, client = script(http.Response(403, f'{{"error": "no {TOKEN}\\n"}}'.encode()))
    with pytest.raises(CallRefused, match=r"with 403: .*\(token\)") as caught:
        api.call("GET", "/x")
    assert (caught.value.status, client.calls) == (403, 1)
    assert TOKEN not in str(caught.value)
