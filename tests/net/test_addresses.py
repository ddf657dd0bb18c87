"""The address guard: what is called and what never, however it is spelled, and that every URL setting is checked."""

import dataclasses
import functools
import re
import socket
import threading
import time
import typing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import duelpool
from duelpool.campaign import Settings
from duelpool.cli import app
from duelpool.client import Client, Refused
from duelpool.errors import BadParameter
from duelpool.judges.llm import endpoint as llm
from duelpool.judges.llm.endpoint import Endpoint
from duelpool.net.addresses import (
    Address,
    ForbiddenAddress,
    Unreachable,
    check_link,
    checked_root,
    connect,
    is_public,
    parse_address,
    resolve,
)
from duelpool.net.http import NotSent
from duelpool.panels.base import PanelAccess, PanelSettings
from duelpool.panels.calls import CallNotSent, PanelApi, panel_address
from duelpool.store import open_store
from support.campaigns import make_campaign

# ---- public and private addresses


PRIVATE_IPS = [
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "203.0.113.9"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "::10.0.0.1"),
    *("64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1"),
    "2001:0:7f00:1::1",
]
PUBLIC_IPS = ["8.8.8.8", "1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("text", PRIVATE_IPS)
def test_private_addresses_are_not_public_even_when_embedded(text: str) -> None:
    assert not is_public(text)


@pytest.mark.parametrize("text", PUBLIC_IPS)
def test_public_addresses_are_public(text: str) -> None:
    assert is_public(text)


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "0.0.0.0"),
        *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "169.254.169.254", "2852039166", "10.0.0.1"),
    ],
)
def test_every_spelling_of_a_private_host_is_refused(host: str) -> None:
    """The system resolves the spelling, and the resulting address is refused."""
    address = llm.parse_address(f"https://{host}:1/v1")
    with pytest.raises((ForbiddenAddress, NotSent)) as caught:
        Endpoint(address, timeout=1.0).post(b"{}")
    if caught.type is NotSent:  # the system can't resolve the spelling
        assert "can't be found" in str(caught.value)
    with pytest.raises(ForbiddenAddress, match="http"):
        parse_address(f"http://{host}:1/v1")
    assert parse_address(f"http://{host}:1/v1", [host]).allowed


def _resolver(*places: str) -> Any:
    def resolved(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port)) for place in places]

    return resolved


def test_host_with_one_private_address_is_refused() -> None:
    address = parse_address("https://model.example/v1")
    assert len(resolve(address, _resolver("8.8.8.8", "1.1.1.1"))) == 2
    for places in (("127.0.0.1",), ("8.8.8.8", "10.0.0.1")):
        with pytest.raises(ForbiddenAddress, match=r"--allow-host model\.example"):
            resolve(address, _resolver(*places))
    with pytest.raises(BadParameter, match="can't be found"):
        resolve(address, _resolver())


def test_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to a public address at first, and to loopback when it is resolved again."""
    lookups: list[str] = []
    connected: list[tuple[str, int]] = []

    def rebinding(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        lookups.append(host)
        place = "8.8.8.8" if len(lookups) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port))]

    def connect(_: socket.socket, place: tuple[str, int]) -> None:
        connected.append(place)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)
    address = Address("https", "rebind.example", 8443, "/v1/chat/completions")
    endpoint = Endpoint(address, timeout=0.05, resolver=rebinding)
    with pytest.raises(NotSent):
        endpoint.post(b"{}")
    assert lookups == ["rebind.example"]
    with pytest.raises(ForbiddenAddress):
        endpoint.post(b"{}")
    assert connected == [("8.8.8.8", 8443)]


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://x/v1", "x/v1", "https://", "https://user:word@x/v1", "https://x/v1?key=1", "https://x/#y"),
        *(
            "https://x\n/v1",
            "https://x\\@localhost/v1",
            "https://[::1/v1",
            "https://x:99999/v1",
            "file:///etc",
        ),
    ],
)
def test_urls_that_are_no_api_are_refused(url: str) -> None:
    with pytest.raises(BadParameter, match="URL"):
        parse_address(url, ["x", "localhost"])


def test_address_is_printed_as_it_was_written() -> None:
    assert str(llm.parse_address("https://x.org/v1/")) == "https://x.org/v1/chat/completions"
    assert str(llm.parse_address("https://x.org/v1/chat/completions")) == "https://x.org/v1/chat/completions"
    assert parse_address("http://[::1]:8080", ["::1"]).netloc == "[::1]:8080"


# ---- panels


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example",
        "http://api.prolific.com",
        "http://169.254.169.254",
        "https://localhost",
        "https://127.0.0.1",
        "https://api.prolific.com@evil.example",
        "https://api.prolific.com.evil.example",
        "https://user:word@api.prolific.com",
        "https://api.prolific.com/../x",
        "https://api.prolific.com/?to=x",
        "https://api.prolific.com#x",
        "file:///etc/passwd",
        "ftp://api.prolific.com",
        "https://",
        "https://[x",
        "https://api.prolific.com:99999",
        "//api.prolific.com",
    ],
)
def test_panel_address_of_another_host_is_refused(url: str) -> None:
    with pytest.raises(BadParameter):
        panel_address("https://api.prolific.com", url)


def test_panel_address_of_a_host_allowed_by_name() -> None:
    usual = "https://api.prolific.com"
    assert panel_address(usual).host == "api.prolific.com"
    assert panel_address(usual, "https://proxy.example/p/", ["proxy.example"]).path == "/p"
    assert panel_address(usual, "http://127.0.0.1:8123", ["127.0.0.1"]).port == 8123
    with pytest.raises(BadParameter, match="without TLS"):
        panel_address(usual, "http://proxy.example", ["proxy.example"])
    with pytest.raises(BadParameter, match="without TLS"):
        panel_address(usual, "http://localhost:1", ["localhost"])


def test_panel_that_resolves_to_a_private_address_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """The panel's own name is checked too: a hijacked name server must not get the token, nor reach our network."""
    monkeypatch.setattr(socket, "getaddrinfo", _resolver("169.254.169.254"))
    api = PanelApi("Prolific", panel_address("https://api.prolific.com"), "token")
    with pytest.raises(CallNotSent, match=r"private network.*DUELPOOL_PANEL_HOSTS=api\.prolific\.com"):
        api.call_once("GET", "/x")


# ---- connections


def test_connect_raises_unreachable_without_a_connection() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unreachable):
        connect(Address("http", "localhost", port, "", allowed=True), 1.0)
    with pytest.raises(ForbiddenAddress):
        connect(Address("http", "localhost", port, ""), 1.0)


def test_all_addresses_of_a_host_share_the_time_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    waited: list[float] = []

    def many(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"8.8.8.{n}", port)) for n in range(20)]

    def hang(raw: socket.socket, _: tuple[str, int]) -> None:
        waited.append(raw.gettimeout() or 1e9)
        clock[0] += waited[-1]
        raise TimeoutError

    monkeypatch.setattr(socket.socket, "connect", hang)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with pytest.raises(Unreachable):
        connect(Address("https", "dead.example", 443, ""), 10.0, many)
    assert waited[0] == 5.0
    assert len(waited) == 8
    assert sum(waited) == 10.0


def test_dashboard_client_follows_no_redirect() -> None:
    seen: list[str] = []

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the standard library's name
            seen.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Redirecting) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(Refused, match="302"):
            Client(f"http://127.0.0.1:{server.server_port}", "c", "key").status()
        thread.join()
    assert seen == ["/api/v1/campaigns/c"]


# ---- every setting that holds a URL

MALFORMED = [
    *("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "ftp://x.example/", "gopher://x:70/_"),
    *("//evil.example", "https://", "https:///x", "https://[x", "https://x.example:99999", "https://x:0/"),
    *("https://name@x.example/", "https://name:word@x.example/", "https://x.example\\@evil.example/"),
    *("https://x.example/\r\nX-Evil: 1", "https://x .example/", "https://x\u200b.example/", "https://%31/"),
    *("https://\uff11\uff12\uff17.0.0.1/", "/j/", "x.example"),
]
PRIVATE = [
    *("https://localhost", "https://127.0.0.1", "https://127.1", "https://2130706433", "https://0177.0.0.1"),
    *("https://0x7f.1", "https://[::1]", "https://[::ffff:127.0.0.1]", "https://[::ffff:7f00:1]:8443"),
    *("https://169.254.169.254/latest", "https://2852039166", "https://10.0.0.1:8080", "http://8.8.8.8"),
    *("https://[64:ff9b::7f00:1]", "https://0"),
]

# Text fields of campaigns and panels: a new one must be listed as a URL or as no URL.
URLS = {(Settings, "completion_url"), (PanelSettings, "url"), (PanelAccess, "address")}
NO_URLS = {
    Settings: {
        *(
            "goal",
            "strategy",
            "criterion",
            "currency",
            "guidelines",
            "consent",
            "identity_parameter",
            "panel",
            "spend",
        ),
        *("panel_study", "completion_code", "failed_code", "stopped_code", "no_work_code"),
    },
    PanelSettings: {
        "panel",
        "study",
        "complete",
        "failed",
        "stopped",
        "no_work",
        "parameter",
        "currency",
    },
    PanelAccess: {"token", "secret"},
}
# Options of the command line: URLs that are called, URLs that only make links, and the operator's own hosts.
CALLED_OPTIONS = {("judge", "llm", "url"), ("webhook", "add", "url"), ("serve", "sso_issuer")}
LINK_OPTIONS = {("serve", "url"), ("link", "url"), ("panel", "show", "url"), ("panel", "check", "url")}
# Where to listen, which proxies to trust, which hosts to allow, how many connections an address may have; an issuer
# that is compared and not called.
OWN_OPTIONS = {"host", "proxy", "allow_host", "sso_allow_host", "per_address", "issuer"}


def texts_of(record: type) -> set[str]:
    hints = typing.get_type_hints(record)  # without what pydantic checks of them
    return {each.name for each in dataclasses.fields(record) if hints[each.name] in (str, str | None)}


@pytest.mark.parametrize("record", [Settings, PanelSettings, PanelAccess])
def test_every_text_field_is_listed_as_url_or_not(record: type) -> None:
    urls = {name for owner, name in URLS if owner is record}
    assert texts_of(record) == urls | NO_URLS[record], (
        "say whether the new one is a URL, and check it if it is"
    )
    assert not [name for name in NO_URLS[record] if re.search("url|address|link|host", name)]


def options_of(command: Any, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    below = getattr(command, "commands", None)
    if below is None:
        return {(*path, option.name) for option in command.params}
    return {each for name in below for each in options_of(below[name], (*path, name))}


def test_every_option_that_sounds_like_a_url_is_listed() -> None:
    sounds = re.compile("ur[li]|issuer|address|host|endpoint|hook|redirect|origin|proxy|site")
    options = {each for each in options_of(typer.main.get_command(app)) if sounds.search(each[-1])}
    assert {each for each in options if each[-1] not in OWN_OPTIONS} == CALLED_OPTIONS | LINK_OPTIONS


def test_only_the_http_client_and_the_dashboards_client_open_connections() -> None:
    """The dashboard's client is run by a manager against their own server."""
    source = Path(duelpool.__file__).parent
    opening = re.compile(
        r"urlopen|build_opener|HTTPS?Connection|http\.client|create_connection|\.connect\(\(|\bhttpx\b"
        r"|\brequests\.\w|\baiohttp\b|wrap_socket|socket\.socket\(|getaddrinfo"
    )
    modules = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if opening.search(path.read_text(encoding="utf-8"))
    }
    assert modules == {"net/addresses.py", "net/http.py", "client.py"}


@pytest.mark.parametrize("url", MALFORMED)
def test_malformed_urls_are_refused_by_every_setting(url: str) -> None:
    as_it_is = functools.partial(parse_address, query=True)
    for check in (check_link, checked_root, parse_address, llm.parse_address, as_it_is):
        with pytest.raises(BadParameter):
            check(url)
    with pytest.raises(BadParameter):
        parse_address(url, ["x.example", "x", "evil.example", "127.0.0.1"])
    with pytest.raises(BadParameter):
        Settings(completion_url=url)
    with pytest.raises(BadParameter):
        panel_address("https://api.prolific.com", url, ["x.example", "x", "evil.example", "127.0.0.1"])


@pytest.mark.parametrize("url", PRIVATE)
def test_private_urls_are_called_for_no_setting(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connected(*_: object) -> None:
        raise AssertionError(f"a connection to {url}")

    monkeypatch.setattr(socket.socket, "connect", connected)
    with pytest.raises((ForbiddenAddress, NotSent)):
        Endpoint(llm.parse_address(url), timeout=1.0).post(b"{}")
    with pytest.raises(BadParameter):
        panel_address("https://api.prolific.com", url)


@pytest.mark.parametrize("option", sorted(CALLED_OPTIONS | LINK_OPTIONS), ids=" ".join)
def test_options_with_urls_are_checked(option: tuple[str, ...], tmp_path: Path) -> None:
    store = str(tmp_path / "campaign.db")
    with open_store(store, create=True) as opened:
        make_campaign(opened, judges="crowd", panel="prolific", completion_code="C")
    more = {
        "judge": ["--model", "m", "--price-in", "1", "--price-out", "1"],
        "serve": ["--sso-client", "c", "--sso-role", "a=viewer"] if option[-1] == "sso_issuer" else [],
    }.get(option[0], [])
    for url in ("javascript:alert(1)", "https://name:word@x.example/", "https://x.example\\@evil.example"):
        given = [url] if option[0] == "webhook" else [f"--{option[-1].replace('_', '-')}", url]
        done = CliRunner().invoke(app, [*option[:-1], store, *given, *more])
        assert done.exit_code == 2, done.output
        assert "https://" in done.output
