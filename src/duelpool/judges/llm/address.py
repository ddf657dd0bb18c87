"""Where a model is reached, and that it is nowhere it shouldn't be.

A URL that a campaign is given may point into the network that Duelpool runs in. So every name is resolved here, every
address that it has must be one of the open internet, and the connection is made to the address that was looked at,
not to the name once more. Loopback and private addresses are for those who name the host: `--allow-host localhost`.
"""

import ipaddress
import socket
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from duelpool.errors import BadParameter

Resolver = Callable[..., Sequence[tuple[Any, ...]]]

_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_PATH = "/chat/completions"


class ForbiddenAddress(BadParameter):
    """A URL that leads into a network that wasn't named."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to send requests; `allowed` says that its host was named as one that may be private."""

    scheme: str
    host: str
    port: int
    path: str
    allowed: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"http": 80, "https": 443}[self.scheme] == self.port
        return f"{self.scheme}://{host}{'' if usual else f':{self.port}'}{self.path}"

    @property
    def netloc(self) -> str:
        """The host and port as the Host header has them."""
        return str(self).split("://", 1)[1].split("/", 1)[0]


def parse_address(url: str, allow: Collection[str] = ()) -> Address:
    """Return where a base URL such as https://api.example.org/v1 leads to; `allow` names hosts that may be private."""
    wrong = "This is not the URL of a model's API"
    remedy = "Write it as https://host/v1, without a name or password in it."
    if any(character.isspace() or not character.isprintable() for character in url) or "\\" in url:
        raise BadParameter(f"{wrong}: it has spaces or unseen characters.", remedy=remedy)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadParameter(f"{wrong}.", remedy=remedy) from None
    if parts.scheme not in {"http", "https"} or not host:
        raise BadParameter(f"{wrong}.", remedy=remedy)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadParameter(f"{wrong}: it holds more than a host and a path.", remedy=remedy)
    allowed = host.casefold() in {each.casefold().strip("[]") for each in allow}
    if parts.scheme == "http" and not allowed:
        raise ForbiddenAddress(
            "Over http:// everybody on the way could read the passages and the key.",
            remedy=f"Use https://, or name the host if it is your own: --allow-host {host}.",
        )
    path = parts.path.rstrip("/")
    path = path if path.endswith(_PATH) else path + _PATH
    return Address(parts.scheme, host, port or {"http": 80, "https": 443}[parts.scheme], path, allowed)


def is_public(text: str) -> bool:
    """Say whether an IP address belongs to the open internet, be it wrapped in another one."""
    address = ipaddress.ip_address(text.split("%", 1)[0])
    if isinstance(address, ipaddress.IPv6Address):
        number = int(address)
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
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


def resolve(address: Address, resolver: Resolver = socket.getaddrinfo) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the socket addresses to connect to, in the system's order.

    One address inside a private network is enough to refuse the name, unless it is allowed.
    """
    try:
        found = resolver(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise Unresolved(f"The host '{address.host}' can't be found.", remedy="Check the URL.") from None
    places = [(family, place) for family, _, _, _, place in found]
    if not places:
        raise Unresolved(f"The host '{address.host}' can't be found.", remedy="Check the URL.")
    if not address.allowed and not all(is_public(str(place[0])) for _, place in places):
        raise ForbiddenAddress(
            f"'{address.host}' leads into a private network.",
            remedy=f"If it is meant to, name it: --allow-host {address.host}.",
        )
    return places


class Unresolved(BadParameter):
    """A host that has no address, now at least."""
