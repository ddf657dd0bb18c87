"""A fake Prolific over real HTTP on loopback: it follows the documentation, and fails on demand.

Approving is idempotent. Paying bonuses is not: each call to the same address pays again. `wallet` is what was charged.
"""

import json
import math
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from duelpool.panels.signatures import signature_of

TOKEN = "fake-token-0123456789-never-shown"
SECRET = "fake-secret-of-the-workspace"
OPEN = ("RESERVED", "ACTIVE", "TIMED-OUT", "AWAITING REVIEW")


@dataclass
class Submission:
    id: str
    participant: str
    status: str = "ACTIVE"
    code: str | None = None
    bonuses: list[int] = field(default_factory=list)
    approved: int = 0
    return_requests: int = 0
    rejection: str = ""

    @property
    def received(self) -> int:
        """What the participant was paid."""
        return self.approved + sum(self.bonuses)


@dataclass
class Fault:
    """A failure of the next calls whose path matches: before or after they take effect."""

    path: str
    status: int = 0  # 0: no answer at all
    after: bool = False  # it takes effect, and the answer is lost
    times: int = 1
    hold: Callable[[], None] | None = None
    body: Any = None


class FakeProlific:
    """One study and its participants."""

    def __init__(self, reward: int = 200, fee_percent: int = 20, page_size: int = 20) -> None:
        self.study = secrets.token_hex(12)
        self.reward = reward
        self.fee_percent = fee_percent
        self.page_size = page_size
        self.currency = "USD"
        self.url = ""
        self.codes: dict[str, str] = {}  # with their actions
        self.submissions: dict[str, Submission] = {}
        self.bulks: dict[str, dict[str, int]] = {}
        self.paid_calls: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.wallet = 0
        self.faults: list[Fault] = []
        self.events: list[tuple[dict[str, str], bytes]] = []
        self.lock = threading.RLock()
        self.base = ""

    # ---- participants

    def take(self, participant: str = "") -> Submission:
        """Start a submission of a participant."""
        submission = Submission(secrets.token_hex(12), participant or secrets.token_hex(12))
        self.submissions[submission.id] = submission
        self._send_event(submission)
        return submission

    def move(self, submission: Submission, status: str) -> None:
        """Change a status, as participants and Prolific's staff do."""
        submission.status = status
        self._send_event(submission)

    def approve(self, submission: Submission, status: str = "APPROVED") -> None:
        """Approve without being asked, as Prolific does after three weeks."""
        submission.approved = self.reward
        self.wallet += self.reward + math.ceil(self.reward * self.fee_percent / 100)
        self.move(submission, status)

    def complete(self, submission: Submission, code: str) -> None:
        """Return to the site with a completion code."""
        submission.code = code
        self.move(submission, "AWAITING REVIEW")
        if "REQUEST_RETURN" in self.codes.get(code, ""):
            submission.return_requests += 1

    def query(self, submission: Submission) -> dict[str, str]:
        """Return the parameters that Prolific adds to the study link."""
        return {
            "PROLIFIC_PID": submission.participant,
            "STUDY_ID": self.study,
            "SESSION_ID": submission.id,
        }

    def _send_event(self, submission: Submission) -> None:
        body = json.dumps(
            {
                "resource_id": submission.id,
                "event_type": "submission.status.change",
                "participant_id": submission.participant,
                "status": submission.status,
            }
        ).encode()
        self.events.append((self.signed(body), body))

    def signed(self, body: bytes, *, event: str = "", at: float | None = None) -> dict[str, str]:
        """Return the headers of a message."""
        stamp = str(int(time.time() if at is None else at))
        return {
            "Content-Type": "application/json",
            "X-Prolific-Request-Timestamp": stamp,
            "X-Prolific-Request-Signature": signature_of(SECRET, stamp, body),
            "X-Event-ID": event or secrets.token_hex(8),
            "X-Timestamp": stamp,
        }

    # ---- the API

    def answer(self, method: str, target: str, token: str, body: bytes) -> tuple[int, Any] | None:
        """Answer a call; None when no answer is sent."""
        parts = urlsplit(target)
        path, query = parts.path, parse_qs(parts.query)
        with self.lock:
            self.calls.append((method, path))
            fault = next((each for each in self.faults if each.times and re.search(each.path, path)), None)
            if fault is not None:
                fault.times -= 1
        if fault is not None and not fault.after:
            if fault.hold is not None:
                fault.hold()
            return (fault.status, fault.body or {"error": "fault"}) if fault.status else None
        if token != f"Token {TOKEN}":
            return 401, {"error": {"status": 401, "title": "Unauthorized", "token": token}}
        with self.lock:
            answer = self._route(method, path, query, json.loads(body) if body else None)
        if fault is not None:
            if fault.hold is not None:
                fault.hold()
            return (fault.status, {"error": "fault"}) if fault.status else None
        return answer

    def _route(self, method: str, path: str, query: dict[str, list[str]], values: Any) -> tuple[int, Any]:
        if (method, path) == ("GET", "/api/v1/users/me/"):
            return 200, {"id": "researcher"}
        if (method, path) == ("GET", f"/api/v1/studies/{self.study}/"):
            return 200, self._study()
        if (method, path) == ("GET", "/api/v1/submissions/"):
            return self._listed(query)
        if (method, path) == ("POST", "/api/v1/submissions/bonus-payments/"):
            return self._set_up(values)
        if match := re.fullmatch(r"/api/v1/bulk-bonus-payments/(\w+)/pay/", path):
            return self._pay(match[1])
        if match := re.fullmatch(r"/api/v1/submissions/(\w+)/(transition/|request-return/)?", path):
            submission = self.submissions.get(match[1])
            if submission is None:
                return 404, {"error": {"status": 404, "title": "Not found"}}
            if method == "GET" and not match[2]:
                return 200, self._row(submission)
            if method == "POST" and match[2] == "transition/":
                return self._transition(submission, values)
            if method == "POST" and match[2]:
                submission.return_requests += 1
                return 200, {**self._row(submission), "return_requested": "now"}
        return 404, {"error": {"status": 404, "title": "Not found"}}

    def _study(self) -> dict[str, Any]:
        codes = [{"code": code, "actions": [{"action": action}]} for code, action in self.codes.items()]
        return {
            "id": self.study,
            "reward": self.reward,
            "presentment_currency_code": self.currency,
            "external_study_url": self.url,
            "completion_codes": codes,
            "status": "ACTIVE",
        }

    def _row(self, submission: Submission) -> dict[str, Any]:
        return {
            "id": submission.id,
            "participant": submission.participant,
            "status": submission.status,
            "study_id": self.study,
            "entered_code": submission.code,
            "bonus_payments": [float(each) for each in submission.bonuses],
        }

    def _listed(self, query: dict[str, list[str]]) -> tuple[int, Any]:
        if query.get("study") != [self.study]:
            return 400, {"error": "study"}
        size = min(int(query.get("page_size", ["20"])[0]), self.page_size)
        page = int(query.get("page", ["1"])[0])
        rows = [self._row(each) for each in self.submissions.values()]
        part = rows[(page - 1) * size : page * size]
        more = page * size < len(rows)
        # An address in an answer leads elsewhere: a client that follows it fails the tests.
        next_page = "http://169.254.169.254/latest/meta-data/" if more else None
        return 200, {"results": part, "_links": {"next": {"href": next_page}}, "meta": {"count": len(rows)}}

    def _transition(self, submission: Submission, values: Any) -> tuple[int, Any]:
        action = values.get("action")
        if action == "APPROVE":
            if submission.status == "APPROVED":
                return 200, self._row(submission)  # the second request is ignored
            if submission.status != "AWAITING REVIEW":
                return 400, {"error": {"title": f"Submission is {submission.status}"}}
            submission.approved = self.reward
            self.wallet += self.reward + math.ceil(self.reward * self.fee_percent / 100)
            self.move(submission, "APPROVED")
            return 200, self._row(submission)
        if action == "REJECT":
            if len(values.get("message", "")) < 100 or not values.get("rejection_category"):
                return 400, {"error": {"title": "A rejection needs a reason"}}
            submission.rejection = values["rejection_category"]
            self.move(submission, "REJECTED")
            return 200, self._row(submission)
        return 400, {"error": {"title": "Unknown action"}}

    def _set_up(self, values: Any) -> tuple[int, Any]:
        amounts: dict[str, int] = {}
        unknown = []
        for line in values["csv_bonuses"].split("\n"):
            name, amount = line.split(",")
            if name not in self.submissions or values["study_id"] != self.study:
                unknown.append(name)
            amounts[name] = round(float(amount) * 100)
        if unknown:
            return 400, {"error": {"title": "Wrong ids", "ids": unknown}}
        bulk = secrets.token_hex(12)
        self.bulks[bulk] = amounts
        total = sum(amounts.values())
        fees = round(total * self.fee_percent / 100, 2)
        return 201, {
            "id": bulk,
            "study": self.study,
            "amount": float(total),
            "fees": fees,
            "vat": 0.0,
            "total_amount": total + fees,
        }

    def _pay(self, bulk: str) -> tuple[int, Any]:
        if bulk not in self.bulks:
            return 404, {"error": "no such bulk payment"}
        self.paid_calls.append(bulk)
        for name, amount in self.bulks[bulk].items():
            self.submissions[name].bonuses.append(amount)
        total = sum(self.bulks[bulk].values())
        self.wallet += total + math.ceil(round(total * self.fee_percent / 100, 4))
        return 202, f"Bulk bonus payment with ID {bulk} is being processed asynchronously."

    # ---- over HTTP

    def environment(self) -> dict[str, str]:
        """Return the environment in which this server takes Prolific's place."""
        return {
            "DUELPOOL_PROLIFIC_TOKEN": TOKEN,
            "DUELPOOL_PROLIFIC_SECRET": SECRET,
            "DUELPOOL_PROLIFIC_API": self.base,
            "DUELPOOL_PANEL_HOSTS": "127.0.0.1",
        }


@contextmanager
def serving(fake: FakeProlific) -> Iterator[FakeProlific]:
    """Serve a fake on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = fake.answer(self.command, self.path, self.headers.get("Authorization", ""), body)
            if answer is None:
                self.close_connection = True
                return
            data = json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _do  # noqa: N815 (the standard library's names)

        def log_message(self, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
