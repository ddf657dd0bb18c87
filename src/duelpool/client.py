"""A campaign's dashboard for programs: watch it and intervene over HTTP, with nothing but the standard library.

This is not `duelpool.net.http`, the client for addresses that campaigns name. It calls the user's own server, which
may be private or on loopback, goes through the system's proxy where there is one, and streams exports of any size.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from duelpool.durable import give_name
from duelpool.errors import BadParameter, DuelpoolError

PIECE = 64 * 1024


class Refused(DuelpoolError):
    """The server refused a request: the problem and the remedy are its own words, `status` is HTTP's."""

    status: int = 0


class Client:
    """One campaign behind a server, entered by a manager's key.

    Lists are read page by page as they are used. Answers are plain dictionaries, as /api/v1/openapi.json says.
    """

    def __init__(self, address: str, campaign: str, key: str, *, timeout: float = 60.0) -> None:
        parts = urlsplit(address)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise BadParameter(f"'{address}' is no address of a server.", remedy="Give https://HOST[:PORT].")
        self.campaign = campaign
        self._base = f"{address.rstrip('/')}/api/v1/campaigns"
        self._key = key
        self._timeout = timeout
        self._opener = _opener(parts.hostname)

    @classmethod
    def from_link(cls, link: str, *, timeout: float = 60.0) -> Self:
        """Return a client from the manager's link that `duelpool link STORE --manage` prints."""
        parts = urlsplit(link)
        key = parse_qs(parts.query).get("key", [""])[0]
        before, marker, campaign = parts.path.rpartition("/manage/")
        if not marker or not campaign or not key:
            raise BadParameter(
                "This is no manager's link.", remedy="Print one: `duelpool link STORE --manage`."
            )
        return cls(f"{parts.scheme}://{parts.netloc}{before}", campaign, key, timeout=timeout)

    # ---- reading

    def campaigns(self) -> list[dict[str, Any]]:
        """Return the campaigns that the key opens."""
        return list(self._read_json("", {})["rows"])

    def status(self) -> dict[str, Any]:
        """Return the main figures."""
        return self._get("")

    def overview(self, *, blind: bool = False) -> dict[str, Any]:
        """Return the campaign at a glance: how far, until when, who works, what needs attention, and who leads."""
        return self._get("/overview", blind=blind)

    def settings(self) -> dict[str, Any]:
        """Return the settings, and the names of the runs."""
        return self._get("/settings")

    def pulse(self) -> str:
        """Return a text that changes whenever something in the campaign changes."""
        return str(self._get("/pulse")["pulse"])

    def systems(self, tag: str = "", *, blind: bool = False) -> list[dict[str, Any]]:
        """Return the leaderboards of systems by the votes between their answers."""
        boards: Any = self._get("/leaderboard/systems", tag=tag, blind=blind)
        return list(boards)

    def leaderboard(self, measure: str = "Compat(p=0.8)", **options: Any) -> dict[str, Any]:
        """Return the runs by a measure; options are baseline, test, correction, tag and blind."""
        return self._get("/leaderboard", measure=measure, **options)

    def history(self, measure: str = "Compat(p=0.8)", blind: bool = False) -> dict[str, Any]:
        """Return the leaderboard at earlier times."""
        return self._get("/leaderboard/history", measure=measure, blind=blind)

    def slices(self, measure: str = "Compat(p=0.8)", blind: bool = False) -> list[dict[str, Any]]:
        """Return the runs' means by the topics' tags."""
        rows: Any = self._get("/leaderboard/slices", measure=measure, blind=blind)
        return list(rows)

    def topics(self, **options: Any) -> Iterator[dict[str, Any]]:
        """Yield the topics; options are state, search and limit."""
        return self._rows("/topics", options)

    def topic(self, topic: str) -> dict[str, Any]:
        """Return all about one topic."""
        return self._get("/topic", topic=topic)

    def pairs(self, **options: Any) -> Iterator[dict[str, Any]]:
        """Yield the judged pairs; options are topic, assessor, order and limit."""
        return self._rows("/pairs", options)

    def pair(self, topic: str, a: str, b: str) -> dict[str, Any]:
        """Return one pair with its texts and votes."""
        return self._get("/pair", topic=topic, a=a, b=b)

    def assessors(self, **options: Any) -> Iterator[dict[str, Any]]:
        """Yield the assessors; options are order, state and limit."""
        return self._rows("/assessors", options)

    def assessor(self, assessor: str) -> dict[str, Any]:
        """Return one assessor."""
        return self._get("/assessor", assessor=assessor)

    def models(self) -> list[dict[str, Any]]:
        """Return the language models that judge: their figures and costs."""
        return list(self._get("/llm")["rows"])

    def agreement(self, *report: str, **options: Any) -> dict[str, Any]:
        """Return statistics of agreement by name, all where none is; options are criterion, cluster, tie_rate, rows."""
        return self._get("/agreement", report=",".join(report), **options)

    def ledger(self, **options: Any) -> Iterator[dict[str, Any]]:
        """Yield the ledger, the newest entry first; options are assessor, order and limit."""
        return self._rows("/ledger", options)

    def log(self, **options: Any) -> Iterator[dict[str, Any]]:
        """Yield the log, the newest line first; options are topic, assessor, event, order and limit."""
        return self._rows("/log", options)

    def export(self, form: str) -> Iterator[bytes]:
        """Yield an export in pieces, as the server reads it: prefs, qrels, levels, jsonl or csv."""
        with self._open(f"/{quote(self.campaign, safe='')}/export/{quote(form, safe='')}", {}) as answer:
            while piece := answer.read(PIECE):
                yield piece

    def save(self, form: str, path: str | os.PathLike[str]) -> int:
        """Write an export into a file, which appears when it is complete; return its size in bytes."""
        place = Path(path)
        part = place.with_name(f"{place.name}.part")
        size = 0
        try:
            with part.open("wb") as file:
                for piece in self.export(form):
                    size += file.write(piece)
            give_name(part, place)
        finally:
            part.unlink(missing_ok=True)
        return size

    # ---- intervening

    def exclude(self, assessor: str, reason: str, *, preview: bool = False) -> dict[str, Any]:
        """Exclude an assessor: their judgments leave every score, and they may not come back."""
        return self._post("/exclude", {"assessor": assessor, "reason": reason, "preview": preview})

    def reinstate(
        self, assessor: str, reason: str = "re-instated", *, preview: bool = False
    ) -> dict[str, Any]:
        """Re-instate an excluded assessor."""
        return self._post("/reinstate", {"assessor": assessor, "reason": reason, "preview": preview})

    def retract(
        self, topic: str, seqs: Sequence[int], reason: str, *, preview: bool = False
    ) -> dict[str, Any]:
        """Retract judgments by their places in a topic's log."""
        values = {"topic": topic, "seqs": list(seqs), "reason": reason, "preview": preview}
        return self._post("/retract", values)

    def rewind(self, topic: str, phase: str, reason: str, *, preview: bool = False) -> dict[str, Any]:
        """Reopen a closed phase."""
        values = {"topic": topic, "phase": phase, "reason": reason, "preview": preview}
        return self._post("/rewind", values)

    def pause(self, *, preview: bool = False) -> dict[str, Any]:
        """Give out no new questions."""
        return self._post("/state", {"state": "paused", "preview": preview})

    def close(self, *, preview: bool = False) -> dict[str, Any]:
        """End the campaign."""
        return self._post("/state", {"state": "closed", "preview": preview})

    def resume(self, *, preview: bool = False) -> dict[str, Any]:
        """Reopen the campaign."""
        return self._post("/state", {"state": "open", "preview": preview})

    def change(self, settings: dict[str, Any], *, preview: bool = False) -> dict[str, Any]:
        """Change settings by their names."""
        return self._post("/settings", {"settings": settings, "preview": preview})

    # ---- requests

    def _rows(self, path: str, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
        cursor = ""
        while True:
            page = self._get(path, **options, cursor=cursor)
            yield from page["rows"]
            cursor = page["next"]
            if not cursor:
                return

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._read_json(f"/{quote(self.campaign, safe='')}{path}", query)

    def _post(self, path: str, values: dict[str, Any]) -> dict[str, Any]:
        return self._read_json(f"/{quote(self.campaign, safe='')}{path}", {}, values)

    def _read_json(
        self, path: str, query: dict[str, Any], values: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        with self._open(path, query, values) as answer:
            data: dict[str, Any] = json.loads(answer.read())
            return data

    def _open(self, path: str, query: dict[str, Any], values: dict[str, Any] | None = None) -> Any:
        texts = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in query.items()
            if value not in {None, ""}
        }
        address = f"{self._base}{path}" + (f"?{urlencode(texts)}" if texts else "")
        request = Request(address, headers={"Authorization": f"Bearer {self._key}"})
        if values is not None:
            request.data = json.dumps(values).encode()
            request.add_header("Content-Type", "application/json")
        return _answer(self._opener, request, self._timeout)


class SetUp:
    """A draft of a campaign on a server: send files, look at the dry run, and make the campaign."""

    def __init__(self, address: str, key: str, sketch: str = "", *, timeout: float = 600.0) -> None:
        self._address = address.rstrip("/")
        self._key = key
        self._timeout = timeout
        parts = urlsplit(address)
        self._opener = _opener(parts.hostname)
        self.id = sketch or str(self._call("POST", "", b"")["id"])

    @classmethod
    def from_link(cls, link: str, *, timeout: float = 600.0) -> Self:
        """Begin a draft with the link that `duelpool link STORE --setup` prints."""
        parts = urlsplit(link)
        key = parse_qs(parts.query).get("key", [""])[0]
        if not parts.path.endswith("/setup") or not key:
            raise BadParameter(
                "This is no link for setting up.", remedy="Print one: `duelpool link STORE --setup`."
            )
        return cls(
            f"{parts.scheme}://{parts.netloc}{parts.path.removesuffix('/setup')}", key, timeout=timeout
        )

    def send(self, kind: str, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Send a file: runs, qrels, prefs, topics, texts, tests, groups, or archive for a zip of them."""
        place = Path(path)
        query = urlencode({"name": place.name})
        return self._call("PUT", f"/{self.id}/files/{quote(kind, safe='')}?{query}", place.read_bytes())

    def decide(self, **options: Any) -> dict[str, Any]:
        """Set all options; those left out get their default."""
        return self._call("PUT", f"/{self.id}/options", json.dumps(options).encode(), "application/json")

    def dry_run(self, *, wait: bool = True) -> dict[str, Any]:
        """Return the draft with what every strategy would cost and find, once that is simulated."""
        ends = time.monotonic() + self._timeout
        while True:
            draft = self._call("GET", f"/{self.id}")
            simulated = draft["simulated"]
            running = simulated is not None and simulated["state"] in {"waiting", "running"}
            if not wait or not running or time.monotonic() > ends:
                return draft
            time.sleep(0.5)

    def make(self, name: str, *, paused: bool = False) -> Client:
        """Make the campaign, whole or not at all, and return its client."""
        body = json.dumps({"name": name, "paused": paused}).encode()
        campaign = self._call("POST", f"/{self.id}/campaign", body, "application/json")
        return Client(self._address, campaign["id"], campaign["key"])

    def leave(self) -> None:
        """Discard the draft."""
        self._call("DELETE", f"/{self.id}")

    def _call(
        self, method: str, path: str, data: bytes | None = None, kind: str = "application/octet-stream"
    ) -> dict[str, Any]:
        request = Request(f"{self._address}/api/v1/setups{path}", data=data, method=method)
        request.add_header("Authorization", f"Bearer {self._key}")
        if data is not None:
            request.add_header("Content-Type", kind)
        with _answer(self._opener, request, self._timeout) as answer:
            values: dict[str, Any] = json.loads(answer.read() or b"{}")
            return values


def _answer(opener: Any, request: Request, timeout: float) -> Any:
    """Return the server's answer; while it says 503 with Retry-After, ask again until the time is up."""
    ends = time.monotonic() + timeout
    while True:
        try:
            return opener.open(request, timeout=timeout)
        except HTTPError as error:
            with error:
                wait = error.headers.get("Retry-After", "")
                if (
                    error.code != 503
                    or not re.fullmatch("[0-9]{1,9}", wait)
                    or time.monotonic() + int(wait) > ends
                ):
                    raise _refused(error) from None
            time.sleep(int(wait))
        except URLError as error:
            place = request.full_url.partition("?")[0]
            raise Refused(f"The server doesn't answer: {error.reason}", place=place) from None


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: the key would be sent along, wherever it leads."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(host: str | None) -> OpenerDirector:
    local = host in {"localhost", "127.0.0.1", "::1"}  # no proxy can reach it
    return build_opener(_NoRedirects(), *([ProxyHandler({})] if local else []))


def _refused(error: HTTPError) -> Refused:
    try:
        values = json.loads(error.read())
        refused = Refused(str(values["problem"]), remedy=str(values["remedy"]))
    except (ValueError, KeyError, TypeError):
        refused = Refused(f"The server answered {error.code}.", remedy="Try again later.")
    refused.status = error.code
    return refused
