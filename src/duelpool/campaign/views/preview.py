"""What a manager's step would change, without changing it: the step is taken, looked at, and rolled back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.work import exclusion
from duelpool.store import Writing, log, retractions

T = TypeVar("T")


class _Rehearsed(Exception):
    """Carries what a step found out of the transaction, which is thereby rolled back."""

    def __init__(self, found: Any) -> None:
        super().__init__("rehearsed")
        self.found = found


def _rehearse(campaign: Campaign, work: Callable[[Writing], T]) -> T:
    def rolled_back(tx: Writing) -> None:
        raise _Rehearsed(work(tx))

    try:
        campaign.write(rolled_back)
    except _Rehearsed as rehearsed:
        found: T = rehearsed.found
        return found
    raise AssertionError("a rehearsal always ends by raising")  # pragma: no cover


@dataclass(frozen=True, slots=True)
class Retraction:
    """What voiding judgments takes away: those that counted, and in how many pairs."""

    judgments: int
    pairs: int


def preview_retraction(campaign: Campaign, topic: str, seqs: Sequence[int]) -> Retraction:
    """Say which judgments would count no more; nothing changes."""

    def work(tx: Writing) -> Retraction:
        counted = retractions.retract(tx, topic, seqs, reason="rehearsal")
        lines = log.read_places(tx, topic, counted)
        pairs = {line.judgment.pair for line in lines if line.judgment is not None}
        return Retraction(len(counted), len(pairs))

    return _rehearse(campaign, work)


def preview_reinstatement(campaign: Campaign, assessor: str) -> int:
    """Say how many judgments would count again; nothing changes."""
    return _rehearse(
        campaign,
        lambda tx: exclusion.reinstate(tx, assessor, cap=campaign.settings.slots, reason="rehearsal"),
    )
