"""A model's API: where its chat completions are, the key for it, and one request."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from duelpool.errors import BadParameter
from duelpool.net import addresses, http
from duelpool.net.addresses import Address, Resolver

_PATH = "/chat/completions"
BODY_AT_MOST = 1_000_000  # bytes of an answer; more than this is none


def parse_address(url: str, allow: Collection[str] = ()) -> Address:
    """Return where a model's API such as https://api.example.org/v1 takes its questions."""
    address = addresses.parse_address(url, allow)
    return address if address.path.endswith(_PATH) else replace(address, path=address.path + _PATH)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model's API: where it is, the key for it, and the seconds that one request may take in all."""

    address: Address
    key: str = field(default="", repr=False)  # never shown
    timeout: float = 120.0
    resolver: Resolver | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise BadParameter(f"A request gets more than 0 seconds, not {self.timeout}.")
        if not (self.key.isascii() and self.key.isprintable()) or " " in self.key:
            raise BadParameter(
                "The API key holds characters that no key has.", remedy="Check the environment variable."
            )

    def post(self, body: bytes, idempotency_key: str = "") -> http.Response:
        """Send a request and return the whole answer, whatever its status.

        Raises NotSent when nothing can cost, and NoAnswer when it may have cost.
        """
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        return http.request(
            self.address,
            "POST",
            body=body,
            headers=headers,
            timeout=self.timeout,
            max_bytes=BODY_AT_MOST,
            resolver=self.resolver,
        )
