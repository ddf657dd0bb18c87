"""What a request may hold: a body up to a size, and texts that every database can store.

A database stores neither the character with the code 0 nor one half of a pair of surrogates. Both are refused here,
before any route runs: in the path, the query, headers, cookies, forms and JSON.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.types import Message, Receive, Scope

from duelpool.errors import BadRecord, DuelpoolError

BODY_AT_MOST = 256 * 1024
UPLOAD_AT_MOST = 2 << 30
READ_ON_AT_MOST = 4 * BODY_AT_MOST
"""How much of a body that is too large is read on, so that the client reads the refusal, and not a reset."""
READ_ON_SECONDS = 2.0
FORM, JSON = "application/x-www-form-urlencoded", "application/json"

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_ESCAPED = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


class TooLarge(DuelpoolError):
    """A request body above the limit."""


def refuse_unstorable(value: Any, name: str) -> None:
    """Refuse a value whose texts a database can't store; the error names the field."""
    for field, text in _texts(value, name):
        bad = _UNSTORABLE.search(text)
        if bad is not None:
            shown = _UNSTORABLE.sub("?", field)[:200] or "The request"
            raise BadRecord(
                f"'{shown}' has a character that can't be stored (U+{ord(bad[0]):04X}).",
                remedy="Remove it and send the request again.",
            )


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a value as JSON has it, each with the name of its field."""
    waiting = [(name, value)]
    while waiting:
        field, each = waiting.pop()
        if isinstance(each, str):
            yield field, each
        elif isinstance(each, dict):
            for key, inner in each.items():
                inside = f"{field}.{key}" if field else str(key)
                yield inside, str(key)
                waiting.append((inside, inner))
        elif isinstance(each, list | tuple):
            waiting += [(f"{field}.{at}" if field else str(at), inner) for at, inner in enumerate(each)]


def refuse_unstorable_head(scope: Scope) -> None:
    """Refuse a request with such a character in its path, query, headers or cookies."""
    refuse_unstorable(scope["path"], "path")
    if b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
        for name, value in parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True):
            refuse_unstorable({name: value}, "")
    for raw_name, raw_value in scope["headers"]:
        if b"\0" in raw_value or (raw_name == b"cookie" and b"\\" in raw_value):
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            refuse_unstorable(value, name)
            refuse_unstorable(cookie_parser(value) if name == "cookie" else "", name)


def refuse_unstorable_body(headers: Headers, body: bytes) -> None:
    """Refuse a form or JSON with such a character; a body that can't be read is left to the route."""
    if kind_of(headers) == FORM:
        if b"%00" in body or b"\0" in body:
            for name, value in _form_fields(body):
                refuse_unstorable({name: value}, "")
        return
    # In UTF-8 surrogates begin with the byte ED; zeros are in UTF-16, which JSON's reader takes as well.
    if b"\0" in body or b"\xed" in body or _ESCAPED.search(body):
        try:
            values = json.loads(body)
        except (ValueError, RecursionError):
            return
        refuse_unstorable(values, "")


def kind_of(headers: Headers) -> str:
    """Return the media type of a body, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _form_fields(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode(), keep_blank_values=True)
    except ValueError:
        return []


# ---- sizes


class CountedBody:
    """The body of a request: how much of it was read, and whether that was all."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.headers = Headers(scope=scope)
        self._receive = receive
        self._size = 0
        self.complete = self.headers.get("content-length", "0") == "0" and (
            "transfer-encoding" not in self.headers
        )

    async def receive(self) -> Message:
        """Return the next piece, and count it."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
        return message

    async def receive_upload(self) -> Message:
        """Return the next piece of an upload, up to its limit."""
        message = await self.receive()
        if self._size > UPLOAD_AT_MOST:
            raise TooLarge("The upload is too large.", remedy="Use the command line: `duelpool pool`.")
        return message

    async def whole(self) -> bytes:
        """Return the whole body, or refuse one that is too large."""
        length = self.headers.get("content-length", "")
        too_large = length.isdecimal() and int(length[:12]) > BODY_AT_MOST
        parts: list[bytes] = []
        while not too_large:
            message = await self.receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            too_large = self._size > BODY_AT_MOST
            if self.complete:
                break
        if too_large:
            if "expect" not in self.headers:  # such a client waits for our word before it sends the body
                await self._read_on()
            raise TooLarge("The request is too large.", remedy="Send less at once.")
        return b"".join(parts)

    async def _read_on(self) -> None:
        """Read the rest of a body that is too large, for a short time and up to a size."""

        async def rest() -> None:
            while not self.complete and self._size <= READ_ON_AT_MOST:
                if (await self.receive())["type"] != "http.request":
                    return

        task = asyncio.ensure_future(rest())
        await asyncio.wait([task], timeout=READ_ON_SECONDS)
        task.cancel()


def whole_body(body: bytes) -> Receive:
    """Return what hands a route a body that was read already."""
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
