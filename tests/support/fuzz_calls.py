"""Requests for the fuzz: of every route one that is right, and ways to make it wrong.

A request names what differs from store to store (ids, keys, cursors) as `{{name}}`; the world puts it in when it sends
the request. So a request can be kept in a file and sent to another store.
"""

import gzip
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote

from fuzz_files import ODD as ODD_BYTES
from support.fuzz_odd import (
    BOMBS,
    BOUNDARY,
    FILENAMES,
    FILES,
    FORM,
    JSON,
    METHODS,
    ODD_HEADERS,
    ODD_PATHS,
    ODD_QUERIES,
    ODD_VALUES,
    OF_KIND,
    WIRES,
    dumped,
    encoded,
)
from support.fuzz_recipes import ACCOUNTS, FIRST, PATHS, READING, RECIPES, SETTINGS, VISITING, Recipe


@dataclass(frozen=True, slots=True)
class Call:
    """A request of somebody; `method` with an exclamation mark is a deed on the store itself."""

    who: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""  # as Latin-1
    address: str = "203.0.113.9"
    cut: bool = False  # the client leaves before the body has ended
    wire: str = ""  # what is wrong with the HTTP itself; over a socket only
    route: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Call":
        """Return a request from its JSON."""
        return cls(**{**values, "headers": tuple((name, value) for name, value in values["headers"])})

    def as_json(self) -> dict[str, Any]:
        """Return the request for a file."""
        return asdict(self)


class Grammar:
    """Makes requests by a seed."""

    def __init__(
        self, rng: random.Random, routes: Sequence[str], *, wire: bool = False, spoilt: float = 0.6
    ) -> None:
        self.rng, self.routes, self._wire, self._spoilt = rng, list(routes), wire, spoilt
        self._weights = [self._weight(each) for each in self.routes]
        self._number = 0

    def _weight(self, route: str) -> float:
        """Return how often a route is chosen: a page of the dashboard takes several times as long as others."""
        return RECIPES[route].weight * (0.35 if "/manage/" in route or "/api/v1/campaigns" in route else 1.0)

    def any_route(self) -> str:
        """Return a route."""
        return self.rng.choices(self.routes, self._weights)[0]

    def someone(self, recipe: Recipe, number: int) -> str:
        """Return who sends a request: mostly someone who may."""
        rng = self.rng
        if rng.random() < 0.1:
            kinds = (
                *VISITING,
                *READING,
                "nobody",
                "setup",
                "elsewhere",
                "token elsewhere",
                "token metrics",
                "here",
            )
            kind = rng.choice(kinds)
        else:
            kind = rng.choice(recipe.who)
        return f"{kind}#{number}" if kind in {"visitor", "open", "assessor", "grader", "arriving"} else kind

    def right(self, route: str, who: str, **given: Any) -> Call:
        """Return a request of a route that is as it should be."""
        return self._made(route, who, given, wrong=0)

    def call(self, route: str, who: str, **given: Any) -> Call:
        """Return a request of a route; more than half of them have something wrong."""
        rng = self.rng
        wrong = 0 if rng.random() > self._spoilt else rng.choice((1, 1, 1, 2, 2, 3))
        return self._made(route, who, given, wrong)

    # ---- one request

    def _made(self, route: str, who: str, given: Mapping[str, Any], wrong: int) -> Call:
        rng, recipe = self.rng, RECIPES[route]
        method, _, path = route.partition(" ")
        self._number += 1
        at = [
            rng.choice(("path", "query", "body", "body", "headers", "method", "bytes", "who"))
            for _ in range(wrong)
        ]
        query = {
            name: rng.choice(values)
            for name, values in recipe.query.items()
            if rng.random() < 0.8 or not wrong
        }
        query |= {name: value for name, value in given.items() if name in recipe.query}
        target = self._path(path, at.count("path"), given)
        pairs = [f"{name}={quote(str(value), safe='{}')}" for name, value in query.items()]
        for _ in range(at.count("query")):
            self._spoil_query(pairs, list(recipe.query))
        target += ("?" + "&".join(pairs)) if pairs else ""
        headers, body = self._body(recipe, given, at.count("body"))
        if method != "GET" and rng.random() < 0.97:
            headers.append(("Origin", "http://{{host}}"))
        for _ in range(at.count("headers")):
            name = rng.choice(list(ODD_HEADERS))
            if rng.random() < 0.7:
                headers = [each for each in headers if each[0] != name]
            headers.append((name, rng.choice(ODD_HEADERS[name])))
        if "method" in at:
            method = rng.choice(METHODS)
        for _ in range(at.count("bytes")):
            body = self._damaged(body)
        if "who" in at:
            who = self.someone(Recipe(READING), 0)
        address = (
            "127.0.0.1"
            if who == "here"
            else f"198.{18 + self._number % 2}.{self._number // 200 % 256}.{self._number // 10 % 20}"
        )
        wire = rng.choice(WIRES) if self._wire and rng.random() < 0.15 else ""
        return Call(
            who,
            method,
            target,
            tuple(headers),
            body.decode("latin-1"),
            address,
            cut=bool(wrong) and rng.random() < 0.01,
            wire=wire,
            route=route,
        )

    def _path(self, path: str, wrong: int, given: Mapping[str, Any]) -> str:
        rng = self.rng
        parts = []
        for part in path.split("/"):
            if part.startswith("{"):
                name = part.strip("{}")
                # "test" of a webhook would call another host
                choices = ("remove", "resend") if "/webhooks/" in path and name == "step" else PATHS[name]
                parts.append(str(given.get(name) or rng.choice(choices)))
            else:
                parts.append(part)
        for _ in range(wrong):
            at = rng.randrange(1, len(parts))
            how = rng.random()
            if how < 0.7:
                parts[at] = rng.choice(ODD_PATHS)
            elif how < 0.8:
                parts.insert(at, rng.choice(ODD_PATHS))
            elif how < 0.9:
                parts.append("")
            else:
                parts[at] += rng.choice(("%00", "%20", "x", ".", "%ff", "²"))
        return quote("/".join(parts) or "/", safe="/%{}:;*~\\")

    def _spoil_query(self, pairs: list[str], names: list[str]) -> None:
        rng = self.rng
        how = rng.random()
        if how < 0.65 and pairs:
            at = rng.randrange(len(pairs))
            pairs[at] = f"{pairs[at].partition('=')[0]}={rng.choice(ODD_QUERIES)}"
        elif how < 0.8 and (pairs or names):
            name = rng.choice(names) if names else pairs[0].partition("=")[0]
            pairs += [f"{name}={rng.choice(ODD_QUERIES)}"] * rng.choice((1, 2, 50))
        elif how < 0.9:
            pairs.append(
                rng.choice(
                    (
                        "x=1",
                        "=",
                        "&&&",
                        "a[]=1",
                        "%00=1",
                        "key=x",
                        "notice=x",
                        "lang=" + "x" * 500,
                        "?",
                        "#",
                        "preview=1",
                    )
                )
            )
        elif pairs:
            del pairs[rng.randrange(len(pairs))]

    # ---- bodies

    def _body(
        self, recipe: Recipe, given: Mapping[str, Any], wrong: int
    ) -> tuple[list[tuple[str, str]], bytes]:
        rng = self.rng
        if recipe.files:
            return self._multipart(recipe.files, wrong)
        if recipe.raw:
            data = OF_KIND.get(str(given.get("kind", "")), rng.choice(FILES))
            return [("Content-Type", "application/octet-stream")], self._damaged_file(data) if wrong else data
        fields = recipe.json if recipe.json is not None else recipe.form
        if fields is None:
            if wrong and rng.random() < 0.5:
                return [("Content-Type", rng.choice((JSON, FORM)))], rng.choice(
                    (b"{}", b"x", b"[1]", b"\xff", b"a=b")
                )
            return [], b""
        values = {
            name: self._chosen(each) for name, each in fields.items() if rng.random() < 0.85 or not wrong
        }
        values |= {name: value for name, value in given.items() if name in fields}
        as_json = recipe.json is not None
        if "sure" not in fields and "next" not in fields and "step" not in fields and rng.random() < 0.15:
            as_json = not as_json
        extra: list[tuple[str, Any]] = []
        for _ in range(wrong):
            self._spoil_values(values, extra)
        if as_json:
            whole = dumped(values)
            for name, value in extra:
                whole = f"{whole[:-1]}{',' if len(whole) > 2 else ''}{json.dumps(name)}:{dumped(value)}}}"
            return [("Content-Type", JSON)], whole.encode("utf-8", "surrogatepass")
        listed = [*values.items(), *extra]
        text = "&".join(
            f"{encoded(str(name))}={encoded(str(value))}" for name, value in listed if value is not None
        )
        return [("Content-Type", FORM)], text.encode()

    def _chosen(self, values: Sequence[Any]) -> Any:
        chosen = self.rng.choice(values)
        if chosen == "settings":
            names = self.rng.sample(list(SETTINGS), self.rng.choice((1, 1, 2)))
            return {name: self.rng.choice(SETTINGS[name]) for name in names}
        return chosen

    def _spoil_values(self, values: dict[str, Any], extra: list[tuple[str, Any]]) -> None:
        rng = self.rng
        how, odd = rng.random(), rng.choice(ODD_VALUES)
        nested = [name for name, value in values.items() if isinstance(value, dict) and value]
        if nested and how < 0.6:
            inner = dict(values[nested[0]])
            inner[rng.choice([*inner, "nothing", ""])] = odd
            values[nested[0]] = inner
        elif how < 0.7 and values:
            values[rng.choice(list(values))] = odd
        elif how < 0.8 and values:
            del values[rng.choice(list(values))]
        elif how < 0.9 and values:
            name = rng.choice(list(values))
            extra.append((name, odd))
        else:
            values[
                rng.choice(
                    (
                        "form_key",
                        "nothing",
                        "",
                        "have",
                        "number",
                        "go_on",
                        "lang",
                        "\x00",
                        "x" * 300,
                        "__class__",
                    )
                )
            ] = odd

    def _damaged(self, body: bytes) -> bytes:
        rng = self.rng
        at = rng.randrange(len(body) + 1)
        how = rng.randrange(8)
        if how == 0:
            return body[:at]
        if how == 1:
            return b"\xef\xbb\xbf" + body
        if how == 2:
            return body[:at] + rng.choice(ODD_BYTES) + body[at:]
        if how == 3:
            return body[:at] + bytes(rng.randrange(256) for _ in range(3)) + body[at + 3 :]
        if how == 4:
            return body.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-32", "utf-16-le")))
        if how == 5:
            return body * 2
        if how == 6:
            return rng.choice(
                (b"[1]", b"null", b'"x"', b"1", b"", b"\x00", b"{", b"&&&=", b"a=%ff", b"NaN", b"x" * 300_000)
            )
        return gzip.compress(body, mtime=0)

    def _damaged_file(self, data: bytes) -> bytes:
        rng = self.rng
        how = rng.random()
        if how < 0.2:
            return rng.choice(BOMBS)()
        if how < 0.4:
            return rng.choice(FILES)
        for _ in range(rng.choice((1, 2, 4))):
            data = self._damaged(data)
        return data

    def _multipart(self, right: tuple[str, ...], wrong: int) -> tuple[list[tuple[str, str]], bytes]:
        rng = self.rng
        kinds = list(right) if not wrong else rng.sample(list(OF_KIND), rng.choice((1, 2, 3)))
        parts = []
        for kind in kinds:
            name = rng.choice(FILENAMES) if wrong and rng.random() < 0.4 else f"{kind}.txt"
            data = self._damaged_file(OF_KIND[kind]) if wrong and rng.random() < 0.6 else OF_KIND[kind]
            disposition = f'form-data; name="{kind}"; filename="{name}"'
            if wrong and rng.random() < 0.2:
                disposition = rng.choice(
                    (
                        "form-data",
                        'form-data; name="runs"',
                        "attachment",
                        "",
                        "form-data; filename=x",
                        'form-data; name="\xff"; filename="x"',
                        "form-data; name*=utf-8''runs; filename*=klingon''x",
                        f'form-data; name="{kind}"; filename="x" ; filename="y"',
                    )
                )
            more = rng.choice(
                (
                    "",
                    "\r\nContent-Type: text/plain; charset=klingon",
                    "\r\nContent-Transfer-Encoding: base64",
                    "\r\nX",
                )
            )
            head = f"Content-Disposition: {disposition}{more if wrong else ''}".encode("utf-8", "replace")
            parts.append(b"--" + BOUNDARY.encode() + b"\r\n" + head + b"\r\n\r\n" + data + b"\r\n")
        if wrong and rng.random() < 0.05:
            parts *= 400
        body = b"".join(parts) + b"--" + BOUNDARY.encode() + b"--\r\n"
        boundary = BOUNDARY
        if wrong and rng.random() < 0.3:
            boundary = rng.choice(
                ("other", "", "a" * 300, '"' + BOUNDARY + '"', "\xff", BOUNDARY + " ", "a b", BOUNDARY[:-1])
            )
        if wrong and rng.random() < 0.15:
            body = body[: rng.randrange(len(body))]
        kind = f"multipart/form-data; boundary={boundary}"
        if wrong and rng.random() < 0.1:
            kind += rng.choice(("; charset=klingon", "; charset=utf-16", "; charset=idna", "; charset=\xff"))
        return [("Content-Type", kind)], body

    # ---- sequences

    def episode(self, number: int) -> list[list[Call]]:
        """Return requests that belong together; those of one list are sent at once."""
        made = self.rng.choices(
            (self._judging, self._managing, self._setting_up, self._signing_in, self._anything),
            (6, 1.5, 1, 1, 9),
        )[0]
        calls = made(number)
        grouped: list[list[Call]] = []
        for call in calls:
            if grouped and self.rng.random() < 0.06 and not call.method.startswith("!"):
                grouped[-1].append(call)
                if self.rng.random() < 0.4:
                    grouped[-1].append(call)  # twice at once
            else:
                grouped.append([call])
        return grouped

    def _anything(self, number: int) -> list[Call]:
        calls = []
        for _ in range(30):
            route = self.any_route()
            calls.append(self.call(route, self.someone(RECIPES[route], number)))
        return calls

    def _judging(self, number: int) -> list[Call]:
        rng = self.rng
        who = f"{rng.choice(('visitor', 'visitor', 'open', 'assessor', 'assessor', 'grader'))}#{number}"
        on = "/j/{campaign}"
        calls = [
            self.right(f"GET {on}/", who),
            self.right(f"POST {on}/step", who, step="consent", agree="yes"),
        ]
        calls.append(self.right(f"GET {on}/work", who))
        for _ in range(rng.choice((5, 12, 20))):
            verb = rng.choices(("answer", "undo", "extend", "work", "stop", "other"), (10, 2, 1, 1, 0.3, 2))[
                0
            ]
            if verb == "answer" and rng.random() < 0.7:
                grade = (
                    {"outcome": "grade", "grade": rng.choice((0, 1, 2))} if who.startswith("grader") else {}
                )
                calls.append(
                    self.right(
                        f"POST {on}/answer", who, **{"outcome": rng.choice(("left", "right")), **grade}
                    )
                )
            elif verb in {"answer", "undo", "extend", "stop"}:
                calls.append(self.call(f"POST {on}/{verb}", who))
            elif verb == "work":
                calls.append(self.right(f"GET {on}/work", who))
            elif rng.random() < 0.3:
                calls.append(self._meddling())
            else:
                route = rng.choice([each for each in RECIPES if "/j/" in each])
                calls.append(self.call(route, who))
        calls += [self.call(f"POST {on}/stop", who), self.right(f"GET {on}/", who)]
        calls += [self.call(f"POST {on}/feedback", who), self.right(f"GET {on}/out", who)]
        return calls

    def _meddling(self) -> Call:
        """Return what a manager or the time does to people at work."""
        rng = self.rng
        api = "POST /api/v1/campaigns/{campaign}"
        deed = rng.choice(
            (
                "sweep",
                "expire",
                "open",
                "state",
                "exclude",
                "reinstate",
                "retract",
                "rewind",
                "settings",
                "form",
            )
        )
        campaign = rng.choice(("{{crowd}}", "{{managed}}", "{{graded}}"))
        if deed in {"sweep", "expire", "open"}:
            return Call("store", f"!{deed}", campaign)
        if deed == "form":
            return self.call(
                "POST /manage/{campaign}/step/{step}", "administrator", campaign=campaign, sure="yes"
            )
        return self.call(f"{api}/{deed}", "administrator", campaign=campaign, preview=False)

    def _managing(self, number: int) -> list[Call]:
        rng = self.rng
        routes = [
            each
            for each in RECIPES
            if each.startswith(("GET /manage", "POST /manage", "GET /api/v1/camp", "POST /api/v1/camp"))
        ]
        weights = [RECIPES[each].weight for each in routes]
        who = rng.choice(READING)
        calls = [
            self.call(route, self.someone(RECIPES[route], number) if rng.random() < 0.3 else who)
            for route in rng.choices(routes, weights, k=20)
        ]
        calls.append(Call("store", "!open", "{{managed}}"))
        return calls

    def _setting_up(self, number: int) -> list[Call]:
        rng = self.rng
        calls = [
            self.right("POST /api/v1/setups", "setup")
            if rng.random() < 0.5
            else self.right("POST /setup/{draft}/files", "setup", draft="new")
        ]
        up = "/api/v1/setups/{draft}"
        if rng.random() < 0.5:
            calls += [
                self.right(f"PUT {up}/files/{{kind}}", "setup", draft="{{draft}}", kind="runs", name="x.run"),
                self.right(
                    f"PUT {up}/options",
                    "setup",
                    draft="{{draft}}",
                    strategy="allpairs",
                    judges="dedicated",
                    tests="none",
                    learn_from="",
                    share=None,
                    thin=None,
                ),
            ]
        routes = [each for each in RECIPES if "/setup" in each]
        weights = [RECIPES[each].weight for each in routes]
        calls += [self.call(route, "setup") for route in rng.choices(routes, weights, k=8)]
        calls.append(self.right(f"POST {up}/campaign", "setup", draft="{{draft}}"))
        calls.append(self.right(f"DELETE {up}", "setup", draft="{{draft}}"))
        return calls

    def _signing_in(self, number: int) -> list[Call]:
        rng = self.rng
        who = rng.choice(ACCOUNTS)
        routes = [
            each
            for each in RECIPES
            if each.split()[1].startswith(("/login", "/logout", "/account")) or each.endswith("/account")
        ]
        calls = [self.call(route, who) for route in rng.choices(routes, k=8)]
        if number % 40 < 20:
            calls.insert(0, self.right("POST /manage/{campaign}/account", "link"))
            calls.insert(0, self.right("GET /manage/{campaign}/account", "link"))
        return calls


class _First(random.Random):
    """Chooses the first of everything."""

    def choice(self, seq: Any) -> Any:
        """Return the first."""
        return seq[0]

    def random(self) -> float:
        """Return what is neither likely nor unlikely."""
        return 0.5


def opening_calls(routes: Sequence[str]) -> list[Call]:
    """Return at least one right request of every route, so that a short run has tried them all."""
    grammar = Grammar(_First(0), routes)
    calls = []
    for route, given in (*FIRST, *((each, {}) for each in routes)):
        who = RECIPES[route].who[0]
        who = {"visitor": "open#0", "assessor": "assessor#0", "arriving": "arriving#0"}.get(who, who)
        calls.append(grammar.right(route, who, **given))
    return calls


def smaller(call: Call) -> list[Call]:
    """Return requests that are like this one with less in them."""
    less = [
        replace(call, headers=call.headers[:at] + call.headers[at + 1 :]) for at in range(len(call.headers))
    ]
    path, _, query = call.target.partition("?")
    pairs = query.split("&") if query else []
    less += [
        replace(call, target="?".join(filter(None, (path, "&".join(pairs[:at] + pairs[at + 1 :])))))
        for at in range(len(pairs))
    ]
    if call.body:
        less.append(replace(call, body=""))
        try:
            values = json.loads(call.body)
        except (ValueError, RecursionError):
            values = None
        if isinstance(values, dict):
            for name in values:
                less.append(
                    replace(call, body=dumped({key: each for key, each in values.items() if key != name}))
                )
        elif "&" in call.body:
            fields = call.body.split("&")
            less += [
                replace(call, body="&".join(fields[:at] + fields[at + 1 :])) for at in range(len(fields))
            ]
        if len(call.body) > 200:
            less += [
                replace(call, body=call.body[: len(call.body) // 2]),
                replace(call, body=call.body[len(call.body) // 2 :]),
            ]
    return less
