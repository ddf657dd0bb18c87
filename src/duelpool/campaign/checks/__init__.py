"""Whether a store is sound, from end to end: its file, its tables, and each campaign's rows against its log."""

from duelpool.campaign.checks.findings import Contradiction
from duelpool.campaign.checks.stores import CheckResult, back_up, check_store, restore

__all__ = ["CheckResult", "Contradiction", "back_up", "check_store", "restore"]
