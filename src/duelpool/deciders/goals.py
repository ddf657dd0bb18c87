"""What a campaign is to find out: the best items of each topic, an order of systems, or which of two is better."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from duelpool.errors import BadParameter, known_names

COMPARE = "compare"


@dataclass(frozen=True, slots=True)
class CampaignGoal:
    """The goal of a campaign; `systems` are the two that `compare` is about."""

    kind: Literal["best", "systems", "compare"] = "best"
    systems: tuple[str, ...] = ()

    @property
    def of_systems(self) -> bool:
        """Whether systems compete by their answers, rather than the items of a topic."""
        return self.kind != "best"

    def refuse_without(self, systems: Sequence[str]) -> None:
        """Refuse systems with which the goal can't be reached."""
        for system in self.systems:
            if system not in systems:
                raise BadParameter(
                    f"There is no system '{system}' to compare.", remedy=known_names(system, systems)
                )
        if self.of_systems and len(systems) < 2:
            raise BadParameter(
                f"The goal '{self}' compares systems, and there {'is one run' if systems else 'are no runs'}.",
                remedy="Give the runs of at least two systems.",
            )

    def __str__(self) -> str:
        return f"{COMPARE}:{','.join(self.systems)}" if self.kind == COMPARE else self.kind


def read_goal(text: str) -> CampaignGoal:
    """Return the goal that a text names: `best`, `systems` or `compare:A,B`."""
    kind, _, names = text.partition(":")
    if text == "best":
        return CampaignGoal()
    if text == "systems":
        return CampaignGoal("systems")
    if kind != COMPARE:
        raise BadParameter(
            f"There is no goal '{text}'.", remedy="Use 'best', 'systems', or 'compare:A,B' with two systems."
        )
    systems = tuple(name.strip() for name in names.split(","))
    if len(systems) != 2 or not all(systems) or systems[0] == systems[1]:
        raise BadParameter(
            f"The goal '{text}' doesn't name two systems.",
            remedy="Write 'compare:A,B' with the names of two different systems, which have no commas.",
        )
    return CampaignGoal("compare", systems)
