"""What the votes of a campaign's assessors are worth, in words, and what weighing instead of excluding would change."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from duelpool.agreements.worth import in_words
from duelpool.background import start_in_background
from duelpool.campaign import Campaign
from duelpool.campaign.log import campaign_events
from duelpool.campaign.runners.weighing import NamedVotes, read_named_votes
from duelpool.frames import counted
from duelpool.preferences.assessors import FEW, AssessorModel, AssessorVotes, fit_assessors
from duelpool.preferences.weights import vote_weights
from duelpool.store import Reading, StoreError, holdings, log

AT_ONCE = 2000
"""Lines of a log up to which the values are worked out at once; those of a longer one in a thread."""
MORE = 1.05
"""The values are worked out again when the log is this many times as long, or an assessor's state changes."""


@dataclass(frozen=True, slots=True)
class VoteValue:
    """What a vote of an assessor is worth: votes of an average assessor, with an interval, and in words.

    `weight` is the chance that they read before answering; by it their judgments count where the campaign weighs.
    """

    assessor: str
    votes: int
    worth: float
    low: float
    high: float
    weight: float
    said: str


@dataclass(frozen=True, slots=True)
class VoteValues:
    """The values of all assessors, and the topics whose best item weighing would change."""

    assessors: tuple[VoteValue, ...] = ()
    topics: int = 0
    changed: tuple[str, ...] = ()
    weighed: bool = False

    @property
    def by_name(self) -> Mapping[str, VoteValue]:
        """The values by assessor."""
        return {each.assessor: each for each in self.assessors}

    @property
    def said(self) -> str:
        """What weighing would change, as a sentence; empty where fewer than three assessors have votes."""
        if not self.assessors:
            return ""
        topics = counted(self.topics, "topic")
        what = (
            f"would change the best item of {len(self.changed):,} of {topics}"
            if self.changed
            else f"would change the best item of none of {topics}"
        )
        now = "This campaign weighs its assessors." if self.weighed else ""
        return (
            f"Weighing all votes, those of excluded assessors too, instead of excluding {what}. {now}".strip()
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "said": self.said}


def vote_values(campaign: Campaign) -> VoteValues:
    """Work out the values of a campaign's votes.

    The best items are those of the model of votes: with every vote that counts as one, and with the votes of all,
    weighed by their reliability.
    """
    counts = campaign.read(read_named_votes)
    everyone = campaign.read(lambda tx: read_named_votes(tx, excluded_too=True))
    in_force = campaign.read(campaign_events.weights)
    return values_of(counts, everyone, in_force, weighed=campaign.settings.weigh_assessors)


def values_of(
    counts: NamedVotes, everyone: NamedVotes, in_force: Mapping[str, float] | None = None, *, weighed: bool
) -> VoteValues:
    """Return the values of votes: of those that count, and of all with those of excluded assessors."""
    if len(everyone.votes.assessors) < FEW or not len(counts.votes):
        return VoteValues(weighed=weighed)
    model = fit_assessors(everyone.votes)
    weights = {**vote_weights(model, everyone.tests), **(in_force or {})}
    values = tuple(
        VoteValue(
            each.assessor,
            each.votes,
            each.value,
            each.low,
            each.high,
            weights[each.assessor],
            in_words(each, weights[each.assessor]),
        )
        for each in model.worth()
    )
    plain = _best(fit_assessors(_as_of_one(counts.votes)))
    weighed_best = _best(model)
    both = sorted(plain.keys() & weighed_best.keys())
    changed = tuple(topic for topic in both if plain[topic] != weighed_best[topic])
    return VoteValues(values, len(both), changed, weighed)


def _as_of_one(votes: AssessorVotes) -> AssessorVotes:
    """Return the votes as those of one assessor: each counts once."""
    return AssessorVotes(
        votes.items,
        votes.topic,
        ("all",),
        votes.i,
        votes.j,
        np.zeros_like(votes.assessor),
        votes.outcome,
        votes.side,
    )


def _best(model: AssessorModel) -> dict[str, str]:
    """Return the strongest item of each topic."""
    best: dict[str, tuple[float, str]] = {}
    for (topic, item), strength in zip(model.votes.items, model.strengths.tolist(), strict=True):
        if topic not in best or strength > best[topic][0]:
            best[topic] = strength, item
    return {topic: item for topic, (_, item) in best.items()}


@dataclass(slots=True)
class KeptValues:
    """The values of one campaign for readers who look again and again; a long log's are worked out in a thread."""

    campaign: Campaign
    _kept: tuple[int, tuple[object, ...], VoteValues] | None = None
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> VoteValues | None:
        """Return the values, perhaps of some judgments ago; None while they are first worked out."""
        lines, people = self.campaign.read(_sign)
        with self._lock:
            kept = self._kept
            if kept is not None and kept[1] == people and lines <= MORE * kept[0]:
                return kept[2]
            if lines <= AT_ONCE:
                self._kept = kept = lines, people, vote_values(self.campaign)
            elif self._thread is None or not self._thread.is_alive():
                self._thread = start_in_background(self._work, lines, people)
            return kept[2] if kept is not None else None

    def _work(self, lines: int, people: tuple[object, ...]) -> None:
        with suppress(StoreError):  # the server ends; whoever looks next begins again
            found = vote_values(self.campaign)
            with self._lock:
                self._kept = lines, people, found


def _sign(tx: Reading) -> tuple[int, tuple[object, ...]]:
    states = tuple(sorted((name, row.state) for name, row in holdings.assessors(tx).items()))
    last = campaign_events.last_weights(tx)
    return log.line_count(tx), (states, None if last is None else last.seq)
