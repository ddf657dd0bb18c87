"""Phases recovered from a log without phase tags, and the log replayed with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from duelpool.errors import BadRecord
from duelpool.records import Judgment
from duelpool.strategies.base import Shortfall
from duelpool.strategies.elimination import Elimination


@dataclass(frozen=True, slots=True)
class Boundary:
    """The end of an imported phase: who goes on by the strategy's rule, and who really went on."""

    phase: str
    survivors: frozenset[str]
    went_on: frozenset[str]

    @property
    def agrees(self) -> bool:
        """Whether those who went on are those of the rule."""
        return self.survivors == self.went_on


def blocks_by_topic(judgments: Iterable[Judgment]) -> dict[str, list[list[Judgment]]]:
    """Return each topic's runs of consecutive judgments: in a log written phase by phase, its phases.

    Where topics are interleaved a run isn't a phase; `tell_phases` refuses it as too short.
    """
    blocks: dict[str, list[list[Judgment]]] = {}
    for topic, block in groupby(judgments, key=lambda judgment: judgment.topic):
        blocks.setdefault(topic, []).append(list(block))
    return blocks


def items_of(judgments: Iterable[Judgment]) -> list[str]:
    """Return the items that judgments are about, in the order in which they come up."""
    return list(dict.fromkeys(item for judgment in judgments for item in judgment.pair))


def is_round_robin(judgments: Sequence[Judgment], items: Iterable[str]) -> bool:
    """Whether these are one judgment of each pair of the items: a final phase, readable without tags."""
    members = set(items)
    pairs = {judgment.pair for judgment in judgments}
    every_pair = len(members) * (len(members) - 1) // 2
    return len(judgments) == len(pairs) == every_pair and members.issuperset(items_of(judgments))


def tagged(judgments: Iterable[Judgment], phase: str) -> list[Judgment]:
    """Return the judgments as those of a phase."""
    return [replace(judgment, phase=phase) for judgment in judgments]


def tell_phases(
    strategy: Elimination,
    pruning: Sequence[Iterable[Judgment]],
    finals: Sequence[Iterable[Judgment]],
) -> list[Boundary]:
    """Tell a strategy the phases of an imported log, closing each by the strategy's own rule.

    The pairings of an imported phase are not those that the strategy would have drawn, so it is closed after the
    phase's last judgment. A phase with fewer judgments than its rule needs is refused, and one that the strategy
    doesn't have. Returns the boundary between each two phases.
    """
    names = [f"prune-{at + 1}" for at in range(len(pruning))] + [
        f"final-{at + 1}" for at in range(len(finals))
    ]
    phases = [tagged(judgments, name) for name, judgments in zip(names, (*pruning, *finals), strict=True)]
    boundaries: list[Boundary] = []
    for at, phase in enumerate(phases):
        if strategy.phase != names[at]:
            raise BadRecord(
                f"The phase '{names[at]}' of topic '{strategy.topic}' can't follow: "
                + (f"'{strategy.phase}' is open." if strategy.phase else "all phases are closed."),
                remedy="Check which judgments belong to which phase, and the strategy's parameters.",
            )
        for judgment in phase:
            strategy.take(judgment)
        if short := strategy.shortfall(names[at]):
            raise BadRecord(short_phase(strategy.topic, names[at], short), remedy="Give the whole phase.")
        survivors = strategy.survivors()
        strategy.close()
        if at + 1 < len(phases):
            boundaries.append(Boundary(names[at], frozenset(survivors), frozenset(items_of(phases[at + 1]))))
    return boundaries


def short_phase(topic: str, phase: str, short: Shortfall) -> str:
    """Say that a phase has fewer judgments than its rule needs."""
    return (
        f"The phase '{phase}' of topic '{topic}' closes with {short.judged} judgments, and its rule needs "
        f"{short.needed}: {short.rule}."
    )
