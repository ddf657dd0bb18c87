"""Addresses that somebody gives us: whom we call, where people are sent, and where we are found ourselves.

A URL that a campaign is given may point into the network that Duelpool runs in. So whatever we call is looked up here:
every address that its name has must be one of the open internet, and the connection is made to the address that was
looked at, not to the name once more. Loopback and private addresses are for those who name the host. No redirect is
followed and no proxy is asked. Every setting that holds a URL comes through this module.
"""

import ipaddress
import socket
import ssl
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from duelpool.errors import BadParameter

Resolver = Callable[..., Sequence[tuple[Any, ...]]]

_PORTS = {"http": 80, "https": 443}
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


class ForbiddenAddress(BadParameter):
    """A URL that leads into a network that wasn't named."""


class Unresolved(BadParameter):
    """A host that has no address, now at least."""


class Unreachable(Exception):
    """No connection came about: nothing was sent."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to send requests; `allowed` says that its host was named as one that may be private."""

    scheme: str
    host: str
    port: int
    path: str
    allowed: bool = False
    naming: str = "--allow-host "  # what a host's name is written after, to allow it

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = _PORTS[self.scheme] == self.port
        return f"{self.scheme}://{host}{'' if usual else f':{self.port}'}{self.path}"

    @property
    def netloc(self) -> str:
        """The host and port as the Host header has them."""
        return str(self).split("://", 1)[1].split("/", 1)[0]


# ---- what is given


def parse_address(url: str, allow: Collection[str] = (), *, naming: str = "--allow-host ") -> Address:
    """Return where a base URL such as https://api.example.org/v1 leads to; `allow` names hosts that may be private."""
    wrong = "This is not the URL of an API"
    remedy = "Write it as https://host/path, without a name or password in it."
    parts = _split(url, wrong, remedy)
    host = parts.hostname or ""
    if "?" in url or "#" in url:
        raise BadParameter(f"{wrong}: it holds more than a host and a path.", remedy=remedy)
    if "%" in parts.path or ".." in parts.path:
        raise BadParameter(f"{wrong}: its path isn't plain.", remedy=remedy)
    allowed = host in {each.casefold().strip("[]") for each in allow}
    if parts.scheme == "http" and not allowed:
        raise ForbiddenAddress(
            "Over http:// everybody on the way could read what is sent, and the key with it.",
            remedy=f"Use https://, or name the host if it is your own: {naming}{host}.",
        )
    port = parts.port or _PORTS[parts.scheme]
    return Address(parts.scheme, host, port, parts.path.rstrip("/"), allowed, naming)


def check_link(url: str) -> None:
    """Refuse an address to which no browser should be sent; an empty one says that nobody is sent anywhere."""
    if url:
        _split(url, f"People can't be sent to {url!a} at the end", "Give a whole address, from https:// on.")


def checked_root(url: str) -> str:
    """Return the address under which people find this server, without a slash at its end."""
    wrong, remedy = f"{url!a} is not where people find a server", "Write it as https://HOST[:PORT]."
    if "?" in url or "#" in url:
        raise BadParameter(f"{wrong}.", remedy=remedy)
    _split(url, wrong, remedy)
    return url.rstrip("/")


def _split(url: str, wrong: str, remedy: str) -> SplitResult:
    """Take a web address apart; whatever two readers could understand in two ways is refused."""
    if any(sign.isspace() or not sign.isprintable() or sign == "\\" for sign in url) or not url.isascii():
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


# ---- where it leads


def is_public(text: str) -> bool:
    """Say whether an IP address belongs to the open internet, be it wrapped in another one."""
    address = ipaddress.ip_address(text.split("%", 1)[0])
    if isinstance(address, ipaddress.IPv6Address):
        number = int(address)
        if address.sixtofour is not None:  # given up long ago; Python 3.13 calls it closed, 3.11 open
            return False
        inner = [address.ipv4_mapped, *(address.teredo or ())]
        if any(address in network for network in _NAT64) or number >> 32 == 0:
            inner.append(ipaddress.IPv4Address(number & 0xFFFFFFFF))
        if not all(_open(each) for each in inner if each is not None):
            return False
        if address.ipv4_mapped is not None:
            return True
    return _open(address)


def _open(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    closed = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )
    return address.is_global and not closed


def is_loopback(host: str) -> bool:
    """Say whether a host is this very machine, written as a number: a name could be led elsewhere."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def resolve(address: Address, resolver: Resolver = socket.getaddrinfo) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the socket addresses to connect to, in the system's order.

    One address inside a private network is enough to refuse the name, unless it is allowed.
    """
    try:
        found = resolver(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        found = ()
    places = [(family, place) for family, _, _, _, place in found]
    if not places:
        raise Unresolved(f"The host '{address.host}' can't be found.", remedy="Check the URL.")
    if not address.allowed and not all(is_public(str(place[0])) for _, place in places):
        raise ForbiddenAddress(
            f"'{address.host}' leads into a private network.",
            remedy=f"If it is meant to, name it: {address.naming}{address.host}.",
        )
    return places


def connect(address: Address, seconds: float, resolver: Resolver = socket.getaddrinfo) -> socket.socket:
    """Return a connection to the very address that was looked at, with TLS where the URL says https.

    Raises Unreachable when there is none; a forbidden address and a wrong certificate are the URL's fault.
    """
    failure = "no connection"
    for family, place in resolve(address, resolver):
        raw = socket.socket(family, socket.SOCK_STREAM)
        try:
            raw.settimeout(seconds)
            raw.connect(place)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.scheme == "http":
                return raw
            return ssl.create_default_context().wrap_socket(raw, server_hostname=address.host)
        except ssl.SSLCertVerificationError:
            raw.close()
            raise BadParameter(
                f"The certificate of '{address.host}' isn't valid.", remedy="Check the URL."
            ) from None
        except OSError as error:
            raw.close()
            failure = (error.strerror or type(error).__name__).rstrip(".")
    raise Unreachable(failure)
