"""A receiver of webhooks on loopback: it keeps what it got, and answers as it is told."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Got:
    """One request: its path, its headers in small letters, and its body."""

    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.raw)
        return found


@dataclass
class Receiver:
    """The statuses of the next answers, then 204 for ever; and all requests so far."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)  # headers of every answer
    content: bytes = b""
    got: list[Got] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)  # answers wait for it

    def kinds(self) -> list[str]:
        return [each.body["event"] for each in self.got]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Start a receiver on a free port of loopback."""
    receiver = Receiver()
    receiver.go_on.set()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                receiver.got.append(
                    Got(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
                )
                status = receiver.answers.pop(0) if receiver.answers else 204
            receiver.arrived.set()
            receiver.go_on.wait(30)
            self.send_response(status)
            for name, value in receiver.more.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(receiver.content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
        try:
            yield receiver
        finally:
            receiver.go_on.set()
            server.shutdown()
            thread.join()
