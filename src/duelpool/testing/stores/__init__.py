"""The contract of a store as code: run it on an open store before you rely on its back end.

    from duelpool.testing.stores import store_contract
    store_contract(store)                # raises ContractError, which names the broken promise

Each check of `STORE_CHECKS` takes an open store, creates a campaign of its own in it, and changes nothing else.
`audit` recounts a campaign from its rows, and returns the contradictions.
"""

from collections.abc import Callable

from duelpool.store import Store
from duelpool.testing.stores import answering, holdings, leasing, logs
from duelpool.testing.stores.audit import audit
from duelpool.testing.stores.scene import Scene

__all__ = ["STORE_CHECKS", "Scene", "audit", "store_contract"]

STORE_CHECKS: dict[str, Callable[[Store], None]] = {
    name.removeprefix("check_").replace("_", " "): check
    for part in (holdings, leasing, answering, logs)
    for name, check in vars(part).items()
    if name.startswith("check_")
}
"""Every promise of a store by name."""


def store_contract(store: Store) -> None:
    """Raise ContractError unless the store keeps every promise."""
    for check in STORE_CHECKS.values():
        check(store)
