"""The error of a broken contract, and the check that raises it."""


class ContractError(AssertionError):
    """A strategy, store or panel breaks its contract."""


def require(holds: bool, promise: str, **seen: object) -> None:
    """Raise ContractError, with what was seen, unless the promise holds."""
    if not holds:
        details = ", ".join(f"{name} = {value!r}" for name, value in seen.items())
        raise ContractError(f"{promise} ({details})" if details else promise)
