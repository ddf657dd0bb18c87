"""The world of the fuzz: a server over a small store, who calls it, and what it has acknowledged."""

import asyncio
import io
import json
import logging
import re
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import Connection, delete, select, update

from duelpool.access import accounts, tokens
from duelpool.campaign import Campaign
from duelpool.store import Store, log, open_store, schema
from duelpool.testing.stores import audit
from duelpool.web.access.links import Links, link_keys
from duelpool.web.manage.keys import manager_key
from duelpool.web.setup.keys import setup_key
from support.campaigns import make_campaign
from support.fake_prolific import FakeProlific
from support.fake_prolific import serving as prolific_serving
from support.fuzz_calls import Call
from support.fuzz_recipes import PASSWORD
from support.managed import judge, managed
from support.panels import CODES, panel_campaign
from support.serving import Server, serving
from support.stores import new_target
from support.visitors import new_store, served

SECONDS_AT_MOST = 5.0
WAIT_AT_MOST = 60.0
ENTERING = "entering"  # who comes in may take longer: the first request of a store reads everything
RENEWED_AFTER = 40  # requests; then a caller comes in anew
HOST = "testserver"
_NAMED = re.compile(r'"\{\{#([a-z_]+)\}\}"|\{\{#?([a-z_]+)\}\}')
_SESSION = re.compile(r'name="session" value="([^"]+)"')
_JUDGED = (schema.question.c.topic == "one", schema.question.c.state == "answered")
_LOGGED = re.compile(r"duelpool|asyncio|uvicorn|sqlalchemy")


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back; `error` is an exception that left the application, or says that none came."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    seconds: float = 0.0
    error: str = ""

    def header(self, name: str) -> str:
        """Return the value of a header, empty where there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass
class Caller:
    """Somebody with cookies of their own, or a program with a header."""

    campaign: str
    cookies: dict[str, tuple[str, str]] = field(default_factory=dict)
    bearer: str = ""
    used: int = 0
    questions: list[tuple[str, int]] = field(default_factory=list)
    answered: str = ""
    session: str = "none"

    def cookie_header(self, path: str) -> str:
        """Return the cookies that a browser sends to a path."""
        return "; ".join(
            f"{name}={value}" for name, (value, of) in self.cookies.items() if path.startswith(of)
        )

    def keep(self, headers: tuple[tuple[str, str], ...]) -> None:
        """Keep the cookies of a response."""
        for name, value in headers:
            if name.lower() == "set-cookie":
                cookie, *attributes = (part.strip() for part in value.split(";"))
                key, _, content = cookie.partition("=")
                path = next((each[5:] for each in attributes if each.lower().startswith("path=")), "/")
                if "Max-Age=0" in attributes or not content.strip('"'):
                    self.cookies.pop(key, None)
                else:
                    self.cookies[key] = (content, path)


class Troubles(logging.Handler):
    """Keeps errors and tracebacks that were logged, and those of threads."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record that tells of an error."""
        if _LOGGED.match(record.name) and (record.levelno >= logging.ERROR or record.exc_info):
            self.seen.append(self.format(record))

    def __enter__(self) -> "Troubles":
        logging.getLogger().addHandler(self)
        self._before = threading.excepthook
        threading.excepthook = self._of_thread
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)
        threading.excepthook = self._before

    def _of_thread(self, args: Any) -> None:
        told = traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback)
        self.seen.append("a thread ended: " + "".join(told))

    def taken(self) -> list[str]:
        """Return what was logged since the last time."""
        taken, self.seen = self.seen, []
        return taken


class World:
    """Campaigns of each kind in one store, and everybody who calls."""

    def __init__(self, store: Store, fake: FakeProlific, campaigns: dict[str, Campaign]) -> None:
        self.store, self.fake = store, fake
        self.ids = {name: each.id for name, each in campaigns.items()}
        self.links: Links = link_keys(store)
        self.callers: dict[str, Caller] = {}
        self.acknowledged: dict[tuple[str, int], str] = {}
        self.drafts: list[str] = []
        self.cursor = ""
        self.host = HOST
        self.post: Callable[[Call, bytes, list[tuple[str, str]], str], Any]
        self.troubles: Callable[[], list[str]] = list  # what a server of another process has logged

    # ---- callers

    async def caller(self, who: str) -> Caller:
        """Return somebody who has come in; after many requests they come in anew."""
        known = self.callers.get(who)
        kept = known is not None and (
            "#" in who or (known.used < RENEWED_AFTER and not self._signed_out(who, known))
        )
        if known is not None and kept:
            known.used += 1
            return known
        caller = self.callers[who] = Caller(self._campaign_of(who))
        await self._enter(who, caller)
        return caller

    def _signed_out(self, who: str, caller: Caller) -> bool:
        return who in accounts_of(self) and "duelpool_session" not in caller.cookies

    def _campaign_of(self, who: str) -> str:
        kind = who.partition("#")[0]
        names = {
            "visitor": "crowd",
            "open": "crowd",
            "arriving": "crowd",
            "panel": "crowd",
            "preview": "crowd",
            "grader": "graded",
            "elsewhere": "others",
            "token elsewhere": "others",
        }
        return self.ids[names.get(kind, "managed")]

    async def _enter(self, who: str, caller: Caller) -> None:
        kind, _, number = who.partition("#")
        now, campaign = time.time(), caller.campaign
        if kind in accounts_of(self):
            role, of = accounts_of(self)[kind]
            self.store.write(lambda connection, now: _account(connection, now, kind, role, of))
            form = f"name={kind}&password={quote(PASSWORD)}"
            await self._by("POST", "/login", caller, form)
        elif kind.startswith("token"):
            scopes = ["metrics"] if kind == "token metrics" else ["read", "export", "manage"]
            of = "" if kind == "token metrics" else campaign
            _, text = self.store.write(
                lambda connection, now: tokens.make(connection, kind, scopes, now, campaign=of)
            )
            caller.bearer = text
        elif kind == "link":
            key = manager_key(self.links, campaign, now, 1.0)
            await self._by("GET", f"/manage/{campaign}?key={quote(key)}", caller)
        elif kind == "setup":
            await self._by("GET", f"/setup?key={quote(setup_key(self.links, now))}", caller)
        elif kind == "visitor":
            query = "&".join(f"{name}={value}" for name, value in self.fake.query(self.fake.take()).items())
            key = quote(self.links.key(campaign, "open", now))
            await self._by("GET", f"/j/{campaign}/from/prolific?key={key}&{query}", caller)
        elif kind in {"open", "assessor", "grader", "preview"}:
            name = (
                ("anna", "ben", "cleo")[int(number) % 3]
                if kind == "assessor" and int(number) % 4 == 0
                else f"p{number}"
            )
            of_link: Any = {"open": "open", "preview": "manager"}.get(kind, "personal")
            key = self.links.key(campaign, of_link, now, assessor=name if of_link == "personal" else "")
            await self._by("GET", f"/j/{campaign}?key={quote(key)}&worker=w{number}", caller)

    async def _by(self, method: str, target: str, caller: Caller, form: str = "") -> None:
        headers = [("Origin", f"http://{self.host}")]
        headers += [("Content-Type", "application/x-www-form-urlencoded")] if form else []
        address = f"192.0.2.{secrets.randbelow(250)}"
        reply: Reply = await self.post(
            Call(ENTERING, method, target, address=address), form.encode(), headers, target
        )
        caller.keep(reply.headers)
        if reply.status != 303:
            raise RuntimeError(
                f"{method} {target.partition('?')[0]}: {reply.status} {reply.error} {reply.body[:300]!r}"
            )

    # ---- names in requests

    def named(self, name: str, caller: Caller) -> str:
        """Return what a name in a request stands for now."""
        now = time.time()
        if name in self.ids:
            return self.ids[name]
        held = caller.questions[0] if caller.questions else ("none", 1)
        plain: dict[str, Callable[[], str]] = {
            "own": lambda: caller.campaign,
            "host": lambda: self.host,
            "question": lambda: held[0],
            "attempt": lambda: str(held[1]),
            "answered": lambda: caller.answered or "none",
            "draft": lambda: self.drafts[-1] if self.drafts else "none",
            "cursor": lambda: self.cursor,
            "session": lambda: caller.session,
            "pid": lambda: secrets.token_hex(12),
            "study": lambda: self.fake.study,
            "token": lambda: "abcdefgh",
            "key_open": lambda: self.links.key(caller.campaign, "open", now),
            "key_personal": lambda: self.links.key(caller.campaign, "personal", now, assessor="anna"),
            "key_manager": lambda: self.links.key(caller.campaign, "manager", now),
            "key_once": lambda: self.links.key(caller.campaign, "personal", now, assessor="p1", once=True),
            "key_manage": lambda: manager_key(self.links, caller.campaign, now, 1.0),
            "key_setup": lambda: setup_key(self.links, now),
            "person": lambda: self._newest(schema.assessor.c.id, caller),
            "webhook": lambda: self._newest(schema.webhook.c.id, caller, schema.webhook.c.state == "on"),
            "phase": lambda: self._newest(
                schema.log.c.phase,
                caller,
                schema.log.c.event == log.PHASE_CLOSED,
                schema.log.c.topic == "one",
            ),
            "seq": lambda: self._newest(schema.log.c.seq, caller, schema.log.c.event == log.JUDGMENT),
            "a": lambda: self._newest(schema.question.c.a, caller, *_JUDGED),
            "b": lambda: self._newest(schema.question.c.b, caller, *_JUDGED),
        }
        return plain[name]() if name in plain else ""

    def _newest(self, column: Any, caller: Caller, *where: Any) -> str:
        query = select(column).where(column.table.c.campaign == caller.campaign, *where)
        query = query.order_by(*column.table.primary_key).limit(5)
        rows = self.store.read(lambda connection: connection.execute(query).scalars().all())
        return str(rows[-1]) if rows else "1"

    def filled(self, text: str, caller: Caller, *, quoted: bool = False) -> str:
        """Return a text with what its names stand for."""
        if "{{" not in text:
            return text

        def value(match: re.Match[str]) -> str:
            found = self.named(match[1] or match[2], caller)
            return quote(found, safe="") if quoted else found

        return _NAMED.sub(value, text)

    # ---- sending

    async def send(self, call: Call) -> Reply:
        """Send a request, and learn from the reply."""
        if call.method.startswith("!"):
            return await asyncio.to_thread(self._deed, call)
        caller = await self.caller(call.who)
        target = self.filled(call.target, caller, quoted=True)
        body = self.filled(call.body, caller).encode("latin-1", "replace")
        headers = [(name, self.filled(value, caller)) for name, value in call.headers]
        if caller.bearer and not any(name == "Authorization" for name, _ in headers):
            headers.append(("Authorization", f"Bearer {caller.bearer}"))
        cookies = caller.cookie_header(target.partition("?")[0])
        if cookies and not any(name == "Cookie" for name, _ in headers):
            headers.append(("Cookie", cookies))
        if call.who == "panel" and call.method == "POST":
            headers += list(self.fake.signed(body).items())
        reply: Reply = await self.post(call, body, headers, target)
        if not call.wire:
            self._learn(call, caller, target, body, reply)
        return reply

    def _deed(self, call: Call) -> Reply:
        """Do what happens besides requests: time passes, leases end, a campaign is opened again."""
        campaign = self.filled(call.target, Caller(self.ids["managed"]))
        if call.method == "!expire":
            table = schema.question.c
            self.store.write(
                lambda connection, now: connection.execute(
                    update(schema.question)
                    .where(table.campaign == campaign, table.state == "leased")
                    .values(expires=now - 1.0)
                )
            )
        own = Campaign.open(self.store, next(name for name, each in self.ids.items() if each == campaign))
        if call.method == "!open":
            own.set_state("open")
        else:
            own.sweep()
        return Reply(200)

    def _learn(self, call: Call, caller: Caller, target: str, body: bytes, reply: Reply) -> None:
        previews = self._previews(caller)
        caller.keep(reply.headers)
        if reply.status == 303 and "/setup/" in (place := reply.header("location")):
            self.drafts = [*self.drafts[-5:], place.rsplit("/", 1)[-1].partition("?")[0]]
        if reply.status != 200 or not reply.body:
            return
        if reply.header("content-type").startswith("text/html"):
            if call.route.endswith("/account"):
                found = _SESSION.findall(reply.body.decode())
                caller.session = found[-1] if found else "none"
            return
        if not reply.header("content-type").startswith("application/json"):
            return
        values = json.loads(reply.body)
        if not isinstance(values, dict):
            return
        self.cursor = values.get("next") or self.cursor
        if target.startswith("/api/v1/setups") and isinstance(values.get("id"), str) and "key" not in values:
            self.drafts = [*self.drafts[-5:], values["id"]]
        if "questions" in values and "state" in values:
            caller.questions = [(each["id"], each["attempt"]) for each in values["questions"]]
            caller.answered = values.get("can_undo") or caller.answered
        if isinstance(saved := values.get("saved"), dict):
            caller.answered = saved["question"]
            if saved["attempt"] is not None and not previews:
                self.acknowledged[saved["question"], saved["attempt"]] = saved["outcome"]

    def _previews(self, caller: Caller) -> bool:
        """Return whether somebody looks at the preview, of which nothing is stored."""
        signed, _ = caller.cookies.get(f"duelpool_{caller.campaign}", ("", ""))
        return bool(signed) and self.links.read("visit", signed)["kind"] == "manager"

    # ---- afterwards

    def verdict(self) -> list[str]:
        """Return what the store contradicts: caps, the log, and what was acknowledged."""
        wrong: list[str] = []
        for name, campaign in self.ids.items():
            cap = Campaign.open(self.store, name).settings
            wrong += [
                f"{name}: {each}" for each in audit(self.store, campaign, max(cap.cap, cap.grades_per_item))
            ]
        columns = schema.log.c
        query = select(columns.question, columns.attempt, columns.outcome).where(columns.event == "judgment")
        rows = self.store.read(lambda connection: connection.execute(query).all())
        stored = {(row[0], row[1]): row[2] for row in rows if row[0]}
        lost = [key for key, outcome in self.acknowledged.items() if stored.get(key) != outcome]
        return wrong + (
            [f"{len(lost)} acknowledged answers are not in the log, such as {lost[0]}"] if lost else []
        )


def accounts_of(world: World) -> dict[str, tuple[str, str]]:
    """Return the accounts by name: role and campaign."""
    here = world.ids["managed"]
    return {
        "administrator": ("manager", ""),
        "manager": ("manager", here),
        "viewer": ("viewer", here),
        "elsewhere": ("manager", world.ids["others"]),
    }


def _account(connection: Connection, now: float, name: str, role: str, campaign: str) -> None:
    """Make an account, or give it its password again; failed attempts are forgotten."""
    connection.execute(delete(schema.limit_count))
    if accounts.find(connection, name) is None:
        accounts.add(connection, name, PASSWORD, role, now, campaign=campaign)
    else:
        accounts.set_password(connection, name, PASSWORD)


async def _within_limits(working: Coroutine[Any, Any, None], call: Call) -> None:
    """Wait for the application; on a busy machine, what counts is the processor's time that it has had."""
    began, worked = time.monotonic(), time.process_time()
    task = asyncio.ensure_future(working)
    while not task.done():
        await asyncio.wait([task], timeout=0.5)
        spent = time.process_time() - worked if call.who != ENTERING else 0.0
        if not task.done() and (spent > SECONDS_AT_MOST or time.monotonic() - began > WAIT_AT_MOST):
            task.cancel()
            raise TimeoutError(f"no reply within {SECONDS_AT_MOST:.0f} s")
    task.result()


# ---- over ASGI


async def ask(app: Any, call: Call, body: bytes, headers: list[tuple[str, str]], target: str) -> Reply:
    """Hand a request to the application, as uvicorn does."""
    path, _, query = target.partition("?")
    listed = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers]
    names = {name for name, _ in listed}
    if b"host" not in names:
        listed.append((b"host", HOST.encode()))
    if body and not names & {b"content-length", b"transfer-encoding"}:
        listed.append((b"content-length", str(len(body)).encode()))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": call.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": listed,
        "client": (call.address, 4321),
        "server": (HOST, 80),
        "state": {},
    }
    half = len(body) // 2
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]
    if call.cut:
        messages = [
            {"type": "http.request", "body": body[:half], "more_body": True},
            {"type": "http.disconnect"},
        ]
    elif half > 10:
        messages = [
            {"type": "http.request", "body": body[:half], "more_body": True},
            {"type": "http.request", "body": body[half:], "more_body": False},
        ]
    gone = asyncio.Event()
    head: dict[str, Any] = {}
    got: list[bytes] = []

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop(0)
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            head.update(message)
            if any(value.startswith(b"text/event-stream") for _, value in message["headers"]):
                gone.set()
        elif message["type"] == "http.response.body":
            got.append(message.get("body", b""))
            if not message.get("more_body"):
                gone.set()

    began, error = time.perf_counter(), ""
    try:
        await _within_limits(app(scope, receive, send), call)
    except TimeoutError as late:
        error = str(late)
    except Exception as raised:
        error = "".join(traceback.format_exception(raised))
    if not head and not error and not call.cut:
        error = "the application ended without a reply"
    answered = tuple(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in head.get("headers", ())
    )
    return Reply(head.get("status", 0), answered, b"".join(got), time.perf_counter() - began, error)


# ---- over a socket


def _speak(world: World, server: Server) -> None:
    """Let everybody speak HTTP to a server on loopback."""
    world.host = f"127.0.0.1:{server.port}"
    told = 0

    async def post(call: Call, body: bytes, headers: list[tuple[str, str]], target: str) -> Reply:
        return await asyncio.to_thread(exchange, server.port, call, body, headers, target)

    def troubles() -> list[str]:
        nonlocal told
        text = server.said.read_text(encoding="utf-8", errors="replace")
        new, told = text[told:], len(text)
        signs = ("Traceback", "ERROR", "Error:")
        return [new] if any(sign in new for sign in signs) else []

    world.post, world.troubles = post, troubles


def request_bytes(call: Call, body: bytes, headers: list[tuple[str, str]], target: str, host: str) -> bytes:
    """Return a request as it goes over a socket, with what is wrong with its HTTP."""
    wire = call.wire
    names = {name.lower() for name, _ in headers}
    lines = [f"{name}: {value}" for name, value in headers]
    if "host" not in names and wire != "no host":
        lines.insert(0, f"Host: {host}")
    if wire == "two hosts":
        lines.insert(0, "Host: other.example")
    if "x-forwarded-for" not in names and call.who != "here":
        lines.append(f"X-Forwarded-For: {call.address}")
    lengths = {
        "bad length": ["x"],
        "long length": [str(len(body) + 50)],
        "short length": [str(len(body) // 2)],
        "two lengths": [str(len(body)), str(len(body) + 1)],
        "length and chunked": [str(len(body))],
    }.get(wire, [str(len(body))] if body else [])
    chunked = wire in {"chunked", "bad chunk", "huge chunk", "length and chunked"}
    if chunked:
        lines.append("Transfer-Encoding: chunked")
    if "content-length" not in names and (not chunked or wire == "length and chunked"):
        lines += [f"Content-Length: {each}" for each in lengths]
    size = {"bad chunk": "zz", "huge chunk": "ffffffffffffffffff"}.get(wire, f"{len(body):x}")
    sent = f"{size}\r\n".encode() + body + b"\r\n0\r\n\r\n" if chunked else body
    odd = {
        "space in name": "Bad Header: x",
        "folded": "X-Folded: a\r\n  b",
        "NUL": "X-Nul: a\0b",
        "long header": "X-Long: " + "a" * 70_000,
        "high bytes": "X-High: \xff\xfe\x80",
        "many headers": "\r\n".join(f"X-{n}: {n}" for n in range(3000)),
    }.get(wire)
    lines += [odd] if odd else []
    target = {"absolute": f"http://{host}{target}", "star": "*", "raw bytes": target + "\xff\xfe é"}.get(
        wire, target
    )
    version = {
        "bad version": " HTTP/9.9",
        "no version": "",
        "HTTP/1.0": " HTTP/1.0",
        "HTTP/2": " HTTP/2.0",
    }.get(wire, " HTTP/1.1")
    lines.append("Connection: close")
    head = "\r\n".join([f"{call.method} {target}{version}", *lines, "", ""]).encode("latin-1", "replace")
    if wire == "bare LF":
        head = head.replace(b"\r\n", b"\n")
    whole = head + sent
    return {
        "half head": head[: len(head) // 2],
        "half body": head + body[: len(body) // 2],
        "pipelined": whole + whole,
        "garbage": bytes(range(256)) * 3,
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    }.get(wire, whole)


def exchange(port: int, call: Call, body: bytes, headers: list[tuple[str, str]], target: str) -> Reply:
    """Send a request over a connection of its own, and read the reply to its end."""
    began = time.perf_counter()
    whole = request_bytes(call, body, headers, target, f"127.0.0.1:{port}")
    got = bytearray()
    error = ""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_AT_MOST / 2) as connection:
        try:
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(whole[: len(whole) // 2 if call.cut else None])
                if call.cut or call.wire in _UNFINISHED:
                    connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                got += piece
                if b"text/event-stream" in got[:2000]:
                    break
        except ConnectionResetError:
            pass
        except TimeoutError:
            error = f"no reply within {SECONDS_AT_MOST:.0f} s"
    head, _, rest = bytes(got).partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    status = int(first.split(" ")[1]) if first.startswith("HTTP/1.") else 0
    answered = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
    reply = Reply(status, answered, rest, time.perf_counter() - began, error)
    if reply.header("transfer-encoding") == "chunked":
        reply = Reply(status, answered, _unchunked(rest), reply.seconds, error)
    if not status and not error and not (call.wire or call.cut):
        reply = Reply(0, seconds=reply.seconds, error="the connection was closed without a reply")
    return reply


_UNFINISHED = frozenset(
    {
        "half head",
        "half body",
        "long length",
        "bad length",
        "two lengths",
        "huge chunk",
        "bad chunk",
        "no version",
        "garbage",
        "TLS",
        "bare LF",
        "HTTP/2",
        "bad version",
    }
)


def _unchunked(body: bytes) -> bytes:
    whole, reading = bytearray(), io.BytesIO(body)
    with suppress(ValueError):
        while size := int(reading.readline().strip() or b"0", 16):
            whole += reading.read(size)
            reading.readline()
    return bytes(whole)


@contextmanager
def world_of(back_end: str, folder: Path, seed: int, *, over_socket: bool = False) -> Iterator[World]:
    """Make a store with its campaigns, serve it, and give who calls it."""
    with ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "empty").mkdir(exist_ok=True)
        target = stack.enter_context(new_target(back_end, folder))
        fake = FakeProlific(page_size=7)
        stack.enter_context(prolific_serving(fake))
        with new_store(target) as store:
            campaigns = _campaigns(store, fake)
        if over_socket:
            server = stack.enter_context(serving(target, folder, environment=fake.environment()))
            world = World(stack.enter_context(open_store(target)), fake, campaigns)
            _speak(world, server)
        else:
            app = stack.enter_context(served(target, uploads=folder / "uploads"))
            app.state.environment = fake.environment()
            app.state.drafts.simulations.close()  # a process for each draft would take most of the time
            nothing = stack.enter_context(new_target(back_end, folder / "empty"))
            new_store(nothing).close()
            empty = stack.enter_context(served(nothing))
            world = World(app.state.store, fake, campaigns)

            async def post(call: Call, body: bytes, headers: list[tuple[str, str]], target: str) -> Reply:
                return await ask(empty if call.who == "empty" else app, call, body, headers, target)

            world.post = post
        yield world


def _campaigns(store: Store, fake: FakeProlific) -> dict[str, Campaign]:
    first = managed(store, "managed")
    judge(first, 45)
    crowd = panel_campaign(
        store,
        name="crowd",
        panel="prolific",
        panel_study=fake.study,
        steps=("consent",),
        feedback=True,
        **CODES,
    )
    graded = make_campaign(
        store, {"one": "abcdef", "two": "abcd"}, name="graded", stage="grading", scale="abc", steps=()
    )
    others = managed(store, "others")
    store.write(
        lambda connection, now: connection.execute(
            update(schema.passage).where(schema.passage.c.campaign == crowd.id).values(format="html")
        )
    )
    return {"managed": first, "crowd": crowd, "graded": graded, "others": others}
