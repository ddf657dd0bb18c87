"""Roles of accounts and scopes of tokens: what each of them allows."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from duelpool.errors import BadParameter, DuelpoolError, UnknownName

SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "read": "see the dashboard and its figures",
        "export": "download judgments",
        "manage": "step in: exclude, void, rewind, pause, set up",
        "judge": "judge",
        "metrics": "read the figures for Prometheus",
    }
)
"""The scopes by name: what each of them allows."""

ROLES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "manager": frozenset({"read", "export", "manage", "judge"}),
        "viewer": frozenset({"read", "export"}),
        "assessor": frozenset({"judge"}),
    }
)
"""The roles of accounts, each with its scopes."""

FOR_TOKENS = ("read", "export", "manage", "metrics")
"""The scopes that a token may have; judging is for people."""


class NotPermitted(DuelpoolError):
    """An action that the role or the token doesn't allow."""


def check_role(role: str) -> str:
    """Return a role's name; raise UnknownName for another."""
    if role not in ROLES:
        raise UnknownName("role", role, ROLES)
    return role


def check_scopes(scopes: Collection[str]) -> tuple[str, ...]:
    """Return a token's scopes in their usual order; raise UnknownName for another."""
    for scope in scopes:
        if scope not in FOR_TOKENS:
            raise UnknownName("scope", scope, FOR_TOKENS)
    if not scopes:
        raise BadParameter(
            "A token without a scope opens nothing.", remedy=f"Known: {', '.join(FOR_TOKENS)}."
        )
    return tuple(scope for scope in FOR_TOKENS if scope in scopes)
