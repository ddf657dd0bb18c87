"""A fake model API with the protocol of chat completions: good, slow, failing, malformed, or misled by a text.

It counts requests and bills them as a provider would: a request that it has read in full costs, whether or not its
answer arrives, unless it answers with an error.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MARK = re.compile(r"\[\[(\w+) ([0-9a-f]{16})\]\]\n(.*?)\n\[\[end \2\]\]", re.DOTALL)


@dataclass(frozen=True)
class LlmRequest:
    """A request as the server reads it: only by its marks."""

    body: dict[str, Any]
    raw: bytes
    headers: dict[str, str]
    number: int  # from 0, of all requests
    time: int  # from 0, of those for the same pair and order

    @property
    def system_message(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def word(self) -> str:
        match = re.search(r"where WORD is ([0-9a-f]{16})", self.system_message)
        assert match
        return match[1]

    @property
    def parts(self) -> dict[str, str]:
        """The texts between the marks with the word that the first message names."""
        message = str(self.body["messages"][1]["content"])
        return {name: text for name, word, text in MARK.findall(message) if word == self.word}

    @property
    def key(self) -> tuple[str, ...]:
        parts = self.parts
        listed = tuple(self.listed.values())
        return parts["question"], *(
            listed or (parts.get("left", parts.get("item", "")), parts.get("right", ""))
        )

    @property
    def listed(self) -> dict[str, str]:
        """The texts of a list by their marks, in the order shown; empty for a pair."""
        return {name: text for name, text in self.parts.items() if len(name) == 1}


Model = Callable[[LlmRequest], str]
Fault = Callable[[LlmRequest], str]


def smaller_is_better(request: LlmRequest) -> str:
    """Prefer the text that comes first in the alphabet, with high confidence."""
    parts, listed = request.parts, request.listed
    if listed:
        return puts(request, sorted(listed, key=lambda mark: listed[mark]), 90)
    return says("left" if parts["left"] < parts["right"] else "right", 90)


def says(better: str, confidence: int = 80) -> str:
    return json.dumps({"better": better, "confidence": confidence})


def puts(request: LlmRequest, order: list[str], confidence: int = 80) -> str:
    """Reply with an order of marks; where ties are allowed, each mark has a place of its own."""
    ties = "a list of lists" in request.system_message
    return json.dumps({"order": [[mark] for mark in order] if ties else order, "confidence": confidence})


def never(_: LlmRequest) -> str:
    return "good"


MALFORMED_REPLIES = {
    "not-json": "the left one is better",
    "fenced": '```json\n{"better": "left", "confidence": 80}\n```',
    "extra-text": 'Sure! {"better": "left", "confidence": 80}',
    "other-fields": '{"better": "left", "confidence": 80, "note": "hello"}',
    "missing-field": '{"better": "left"}',
    "both": '{"better": "both", "confidence": 80}',
    "list": '["left", 80]',
    "twice": '{"better": "left", "better": "right", "confidence": 80}',
    "text-confidence": '{"better": "left", "confidence": "80"}',
    "other-confidence": '{"better": "left", "confidence": 81}',
    "true-confidence": '{"better": "left", "confidence": true}',
    "nan": '{"better": "left", "confidence": NaN}',
    "null": "null",
    "empty": "",
    "capital": '{"better": "Left", "confidence": 80}',
    "nested": '{"better": {"better": "left"}, "confidence": 80}',
    "long": '{"better": "left", "confidence": 80' + " " * 2000 + "}",
}
"""Contents that are no valid reply, by name."""


@dataclass
class Provider:
    """The state of the server: how it answers, and what it was asked and has billed."""

    model: Model = smaller_is_better
    fault: Fault = never
    price: tuple[int, int] = (0, 0)
    usage: Callable[[LlmRequest], Any] | None = None
    delay: float = 0.0
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    delivered: Counter[tuple[str, ...]] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    requests: list[LlmRequest] = field(default_factory=list)
    billed: int = 0
    number: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    address: str = ""
    paths: Counter[str] = field(default_factory=Counter)

    def take(self, raw: bytes, headers: dict[str, str]) -> LlmRequest:
        with self.lock:
            request = LlmRequest(json.loads(raw), raw, headers, self.number, 0)
            request = LlmRequest(request.body, raw, headers, self.number, self.counts[request.key])
            self.number += 1
            self.counts[request.key] += 1
            self.requests.append(request)
            return request

    def tokens(self, request: LlmRequest) -> dict[str, int]:
        return {"prompt_tokens": len(request.raw) // 4, "completion_tokens": 12 + 3 * len(request.listed)}

    def bill(self, request: LlmRequest) -> None:
        tokens = self.tokens(request)
        with self.lock:
            self.billed += (
                tokens["prompt_tokens"] * self.price[0] + tokens["completion_tokens"] * self.price[1]
            )


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            provider.paths[f"GET {self.path}"] += 1
            self._reply(404, b"{}")

        def do_POST(self) -> None:
            provider.paths[self.path] += 1
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            request = provider.take(raw, dict(self.headers.items()))
            fault = provider.fault(request)
            with provider.lock:
                provider.faults[fault] += 1
            with suppress(BrokenPipeError, ConnectionResetError):
                self._behave(fault, request)

        def _behave(self, fault: str, request: LlmRequest) -> None:
            if provider.delay:
                time.sleep(provider.delay)
            if fault.startswith("429"):
                return self._reply(429, b'{"error": {}}', {"Retry-After": fault.partition(" ")[2] or "0"})
            if fault.isdigit():
                echo = request.headers.get("Authorization", "")
                where = {"Location": f"{provider.address}/elsewhere"} if fault[0] == "3" else {}
                return self._reply(int(fault), json.dumps({"error": {"message": echo}}).encode(), where)
            provider.bill(request)
            if fault == "drop":
                return self._hang_up()
            if fault == "slow":
                time.sleep(0.2)
            body = self._body(fault, request)
            if fault == "half":
                self._head(200, len(body))
                self.wfile.write(body[: len(body) // 2])
                return self._hang_up()
            if fault == "drip":
                self._head(200, len(body))
                for at in range(len(body)):
                    self.wfile.write(body[at : at + 1])
                    self.wfile.flush()
                    time.sleep(0.05)
                return None
            self._reply(200, body)
            with provider.lock:
                provider.delivered[request.key] += fault == "good"
            return None

        def _body(self, fault: str, request: LlmRequest) -> bytes:
            usage = provider.usage(request) if provider.usage else provider.tokens(request)
            message: dict[str, Any] = {"role": "assistant", "content": provider.model(request)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            if fault == "refusal":
                message |= {"content": None, "refusal": "I can't."}
            elif fault == "filtered":
                choice["finish_reason"] = "content_filter"
            elif fault == "cut":
                choice["finish_reason"] = "length"
            elif fault == "tools":
                message["tool_calls"] = [{"id": "x"}]
            elif fault == "huge":
                message["content"] = "x" * 3_000_000
            elif fault == "no-choices":
                return json.dumps({"choices": [], "usage": usage}).encode()
            elif fault == "html":
                return b"<html>Bad gateway</html>"
            elif fault == "deep":
                return b"[" * 100_000
            elif fault in MALFORMED_REPLIES:
                message["content"] = MALFORMED_REPLIES[fault]
            return json.dumps({"choices": [choice], "usage": usage, "system_fingerprint": "x"}).encode()

        def _head(self, status: int, length: int, more: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(more or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.end_headers()

        def _reply(self, status: int, body: bytes, more: dict[str, str] | None = None) -> None:
            self._head(status, len(body), more)
            self.wfile.write(body)

        def _hang_up(self) -> None:
            self.close_connection = True
            self.wfile.flush()

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None: ...


@contextmanager
def serving(provider: Provider) -> Iterator[Provider]:
    """Run the server on loopback."""
    server = _Server(("127.0.0.1", 0), _handler(provider))
    provider.address = f"http://localhost:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
