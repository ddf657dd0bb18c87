"""Whom we may call: a panel's own address, or another one that somebody has allowed by name."""

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from duelpool.errors import BadParameter


@dataclass(frozen=True, slots=True)
class Address:
    """Where an interface lives: no path of a request and no answer can lead anywhere else."""

    secure: bool
    host: str
    port: int
    path: str


def checked_address(usual: str, given: str = "", allowed: Collection[str] = ()) -> Address:
    """Return the address to call: the usual one, or the given one if its host is allowed by name.

    It is https, unless the host is this very machine.
    """
    wanted = given or usual
    try:
        parts = urlsplit(wanted)
        port = parts.port
    except ValueError:
        raise BadParameter(f"'{wanted}' is no address.", remedy="Write https://HOST/PATH.") from None
    host = (parts.hostname or "").lower()
    if parts.scheme not in ("http", "https") or not host:
        raise BadParameter(f"'{wanted}' is no address of a server.", remedy="Write https://HOST/PATH.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise BadParameter(
            f"The address of '{host}' has more than host and path.", remedy="Write https://HOST/PATH."
        )
    if any(sign in parts.path for sign in ("\\", "%", "..")) or not parts.path.isascii():
        raise BadParameter(f"The path of '{wanted}' isn't plain.", remedy="Write https://HOST/PATH.")
    if given and host not in {name.lower() for name in allowed} and host != urlsplit(usual).hostname:
        raise BadParameter(
            f"'{host}' is not the panel's own host.",
            remedy="Leave the other address out, or allow the host by name in DUELPOOL_PANEL_HOSTS.",
        )
    secure = parts.scheme == "https"
    if not secure and not _is_here(host):
        raise BadParameter(f"'{host}' is not called without TLS.", remedy="Write https:// before it.")
    return Address(secure, host, port or (443 if secure else 80), parts.path.rstrip("/"))


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
