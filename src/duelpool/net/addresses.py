"""Addresses from users: APIs to call, pages to send people to, and the server's own URL.

A URL in a campaign's settings may point into the network that Duelpool runs in (server-side request forgery). So
whatever is called is resolved here: every IP address of its host must be public, and the connection is made to the
address that was checked, not to the name once more. Loopback and private addresses are called only where the host is
allowed by name. Every setting that holds a URL comes through this module.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from duelpool.errors import BadParameter

Resolver = Callable[..., Sequence[tuple[Any, ...]]]

_PORTS = {"http": 80, "https": 443}
_MOST_PLACES = 8  # IP addresses of a host that are tried
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


class ForbiddenAddress(BadParameter):
    """A URL that leads into a private network, or sends a key in the clear, without being allowed."""


class Unresolved(BadParameter):
    """A host without an IP address, at least now."""


class Unreachable(Exception):
    """No connection could be made: nothing was sent."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to send requests; `allowed` says that its host may be private."""

    scheme: str
    host: str
    port: int
    path: str
    allowed: bool = False
    allow_with: str = "--allow-host "  # what to write before a host's name to allow it, for messages

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = _PORTS[self.scheme] == self.port
        return f"{self.scheme}://{host}{'' if usual else f':{self.port}'}{self.path}"

    @property
    def netloc(self) -> str:
        """The host and port as the Host header has them."""
        return str(self).split("://", 1)[1].split("/", 1)[0]


# ---- reading URLs


def parse_address(
    url: str, allow: Collection[str] = (), *, allow_with: str = "--allow-host ", query: bool = False
) -> Address:
    """Parse the base URL of an API such as https://api.example.org/v1; `allow` names hosts that may be private.

    With `query`, the URL is called as it is: it may have a query and escaped characters, as webhooks' URLs do.
    """
    wrong = "This is not the URL of an API"
    remedy = "Write it as https://host/path, without a name or password in it."
    parts = _split(url, wrong, remedy)
    host = parts.hostname or ""
    if "#" in url or ("?" in url and not query):
        raise BadParameter(f"{wrong}: it holds more than a host and a path.", remedy=remedy)
    if ("%" in parts.path and not query) or ".." in parts.path:
        raise BadParameter(f"{wrong}: its path isn't plain.", remedy=remedy)
    allowed = host in {each.casefold().strip("[]") for each in allow}
    if parts.scheme == "http" and not allowed:
        raise ForbiddenAddress(
            "Over http:// what is sent, and the key with it, could be read on the way.",
            remedy=f"Use https://, or allow the host if it is your own: {allow_with}{host}.",
        )
    port = parts.port or _PORTS[parts.scheme]
    path = parts.path.rstrip("/")
    if query:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, host, port, path, allowed, allow_with)


def check_link(url: str) -> None:
    """Refuse a URL that no browser should be sent to; an empty one is accepted."""
    if url:
        _split(url, f"People can't be sent to {url!a} at the end", "Give a whole address, from https:// on.")


def checked_root(url: str) -> str:
    """Check the URL at which people reach this server, and return it without a slash at its end."""
    wrong, remedy = f"{url!a} is not the address of a server", "Write it as https://HOST[:PORT]."
    if "?" in url or "#" in url:
        raise BadParameter(f"{wrong}.", remedy=remedy)
    _split(url, wrong, remedy)
    return url.rstrip("/")


def _split(url: str, wrong: str, remedy: str) -> SplitResult:
    """Split a web address; one that two parsers could read in two ways is refused."""
    if any(char.isspace() or not char.isprintable() or char == "\\" for char in url) or not url.isascii():
        raise BadParameter(f"{wrong}: it has spaces or unusual characters.", remedy=remedy)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadParameter(f"{wrong}.", remedy=remedy) from None
    if parts.scheme not in _PORTS or not host or port == 0 or "%" in parts.netloc:
        raise BadParameter(f"{wrong}.", remedy=remedy)
    if "@" in parts.netloc:
        raise BadParameter(f"{wrong}: it holds a name or a password.", remedy=remedy)
    return parts


# ---- resolving and connecting


def is_public(text: str) -> bool:
    """Say whether an IP address belongs to the open internet, also when it is embedded in an IPv6 address."""
    address = ipaddress.ip_address(text.split("%", 1)[0])
    if isinstance(address, ipaddress.IPv6Address):
        number = int(address)
        if address.sixtofour is not None:  # deprecated; private for Python 3.13, public for 3.11
            return False
        embedded = [address.ipv4_mapped, *(address.teredo or ())]
        if any(address in network for network in _NAT64) or number >> 32 == 0:
            embedded.append(ipaddress.IPv4Address(number & 0xFFFFFFFF))
        if not all(_is_open(each) for each in embedded if each is not None):
            return False
        if address.ipv4_mapped is not None:
            return True
    return _is_open(address)


def _is_open(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )
    return address.is_global and not special


def is_loopback(host: str) -> bool:
    """Say whether a host is a loopback IP address; a name doesn't count, it could resolve to anything."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def resolve(address: Address, resolver: Resolver | None = None) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the socket addresses to connect to, in the system's order.

    One private address is enough to refuse the name, unless the host is allowed.
    """
    try:
        infos = (resolver or socket.getaddrinfo)(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        infos = ()
    places = [(family, place) for family, _, _, _, place in infos]
    if not places:
        raise Unresolved(f"The host '{address.host}' can't be found.", remedy="Check the URL.")
    if not address.allowed and not all(is_public(str(place[0])) for _, place in places):
        raise ForbiddenAddress(
            f"'{address.host}' leads into a private network.",
            remedy=f"If it is meant to, allow it by name: {address.allow_with}{address.host}.",
        )
    return places


def connect(address: Address, seconds: float, resolver: Resolver | None = None) -> socket.socket:
    """Connect to the very address that was checked, with TLS where the URL says https.

    The seconds are for all IP addresses of the host together. Each but the last has half of what is left.

    Raises Unreachable without a connection, and BadParameter for a forbidden address or an invalid certificate.
    """
    failure = "no connection"
    places = resolve(address, resolver)[:_MOST_PLACES]
    end = time.monotonic() + seconds
    for family, place in places:
        left = end - time.monotonic()
        if left <= 0:
            break
        raw = socket.socket(family, socket.SOCK_STREAM)
        try:
            raw.settimeout(left if place is places[-1][1] else left / 2)
            raw.connect(place)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made = raw
            if address.scheme == "https":
                made = ssl.create_default_context().wrap_socket(raw, server_hostname=address.host)
            made.settimeout(seconds)
            return made
        except ssl.SSLCertVerificationError:
            raw.close()
            raise BadParameter(
                f"The certificate of '{address.host}' isn't valid.", remedy="Check the URL."
            ) from None
        except OSError as error:
            raw.close()
            failure = (error.strerror or type(error).__name__).rstrip(".")
    raise Unreachable(failure)
