"""What a check has found, in sentences; of many findings of one kind the first are kept and the rest are counted."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

AT_MOST = 20
"""Contradictions of one kind in one campaign that are kept."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One contradiction: its kind, such as `log` or `cap`, and a sentence; an empty campaign is the whole store."""

    kind: str
    problem: str
    campaign: str = ""


@dataclass(slots=True)
class Contradictions:
    """The findings of one campaign, or of the whole store."""

    campaign: str = ""
    _kept: list[Contradiction] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, problem: str) -> None:
        """Keep a finding, or count it."""
        self._counts[kind] += 1
        if self._counts[kind] <= AT_MOST:
            self._kept.append(Contradiction(kind, problem, self.campaign))

    def extend(self, kind: str, problems: Iterable[str]) -> None:
        """Keep or count several findings of one kind."""
        for problem in problems:
            self.add(kind, problem)

    def all(self) -> list[Contradiction]:
        """Return the findings in the order in which they were found, and how many more there are of each kind."""
        more = [
            Contradiction(
                kind, f"There are {count - AT_MOST:,} more findings of the kind '{kind}'.", self.campaign
            )
            for kind, count in self._counts.items()
            if count > AT_MOST
        ]
        return [*self._kept, *more]
