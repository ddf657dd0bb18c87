"""Recount a campaign: its questions against its log."""

from duelpool.campaign.checks.campaigns import contradictions
from duelpool.store import Store


def audit(store: Store, campaign: str, cap: int) -> list[str]:
    """Recount a campaign from its rows, as `duelpool check` does; return the contradictions as sentences."""
    found = store.of(campaign).read(lambda tx: contradictions(tx, cap))
    return [each.problem for each in found]
