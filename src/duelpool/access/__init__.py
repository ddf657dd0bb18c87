"""Who may do what: accounts with roles, tokens for programs, keys that sign, limits, and the audit log.

Nothing here speaks HTTP: the web and the command line translate.
"""

from duelpool.access.accounts import Account
from duelpool.access.roles import ROLES, SCOPES
from duelpool.access.tokens import Token

__all__ = ["ROLES", "SCOPES", "Account", "Token"]
