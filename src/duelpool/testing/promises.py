"""A promise that was not kept, and the way to say so."""


class ContractError(AssertionError):
    """A strategy doesn't keep one of its promises."""


def require(kept: bool, promise: str, **seen: object) -> None:
    """Raise ContractError unless the promise was kept."""
    if not kept:
        details = ", ".join(f"{name} = {value!r}" for name, value in seen.items())
        raise ContractError(f"{promise} ({details})" if details else promise)
