"""Previews of a manager's actions: the action runs in a transaction that is rolled back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.work import exclusion
from duelpool.store import Writing, log, retractions

T = TypeVar("T")


class _PreviewDone(Exception):
    """Carries the result of a preview out of its transaction, and rolls it back."""

    def __init__(self, result: Any) -> None:
        super().__init__("previewed")
        self.result = result


def _preview(campaign: Campaign, work: Callable[[Writing], T]) -> T:
    def rolled_back(tx: Writing) -> None:
        raise _PreviewDone(work(tx))

    try:
        campaign.write(rolled_back)
    except _PreviewDone as done:
        result: T = done.result
        return result
    raise AssertionError("a preview always ends by raising")  # pragma: no cover


@dataclass(frozen=True, slots=True)
class Retraction:
    """What retracting judgments takes away: those that counted, and the number of their pairs."""

    judgments: int
    pairs: int


def preview_retraction(campaign: Campaign, topic: str, seqs: Sequence[int]) -> Retraction:
    """Return how many judgments would no longer count; nothing changes."""

    def work(tx: Writing) -> Retraction:
        counted = retractions.retract(tx, topic, seqs, reason="preview")
        lines = log.read_places(tx, topic, counted)
        pairs = {line.judgment.pair for line in lines if line.judgment is not None}
        return Retraction(len(counted), len(pairs))

    return _preview(campaign, work)


def preview_reinstatement(campaign: Campaign, assessor: str) -> int:
    """Return how many judgments would count again; nothing changes."""
    return _preview(
        campaign,
        lambda tx: exclusion.reinstate(tx, assessor, cap=campaign.settings.slots, reason="preview"),
    )
