"""The cost of a call, and an upper bound for it, in whole numbers.

A token costs a small part of a cent, so money is counted here in 1e-12 of the currency's unit: a price per million
tokens with up to six decimals is a whole number of them per token, and sums are exact.
"""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from duelpool.errors import BadParameter

UNIT = 10**12  # parts of the currency's unit
_DECIMALS = 6
_STEP = 1_000_000
_AT_MOST = Decimal(1_000_000)
OVERHEAD_TOKENS = 256  # that a server adds around the messages: roles, begin and end marks


def read_money(text: str, what: str = "money") -> int:
    """Return an amount such as 2.50 in 1e-12 of the unit; at most six decimals."""
    try:
        amount = Decimal(text.strip())
    except InvalidOperation:
        raise BadParameter(f"The {what} '{text}' is no number.", remedy="Write it as 2.50.") from None
    if not amount.is_finite() or not 0 <= amount <= _AT_MOST:
        raise BadParameter(f"The {what} is from 0 to {_AT_MOST:,}, not {text}.")
    scaled = amount.scaleb(_DECIMALS)
    if scaled != scaled.to_integral_value():
        raise BadParameter(f"The {what} has more than {_DECIMALS} decimals: {text}.")
    return int(scaled) * _STEP


def money_of(parts: int | None, decimals: int = 6) -> str:
    """Return an amount as text, rounded up to these decimals, so that nothing looks cheaper than it was."""
    if parts is None:
        return "–"
    step = 10 ** (12 - decimals)
    return f"{Decimal(-(-parts // step)).scaleb(-decimals):,.{decimals}f}"


@dataclass(frozen=True, slots=True)
class Prices:
    """The price of one token, sent and received, in 1e-12 of the currency's unit."""

    sent: int
    received: int

    @classmethod
    def per_million(cls, sent: str, received: str) -> "Prices":
        """Return the prices that a provider states for a million tokens."""
        million = 1_000_000
        return cls(
            read_money(sent, "price of tokens sent") // million,
            read_money(received, "price of tokens received") // million,
        )

    def cost(self, tokens_in: int, tokens_out: int) -> int:
        """Return what these tokens cost."""
        return tokens_in * self.sent + tokens_out * self.received

    def most(self, body: bytes, max_tokens: int) -> int:
        """Return the most that a request can cost: no tokenizer makes more tokens than bytes."""
        return self.cost(most_tokens(body), max_tokens)


def most_tokens(body: bytes) -> int:
    """Return the most tokens that a request can have."""
    return len(body) + OVERHEAD_TOKENS
