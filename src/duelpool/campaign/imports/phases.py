"""The phases of a topic's rows that are in the order in which they were judged, but name no phases.

The rules are few, so that a person can follow them:

- The rows of a topic go to the open phase. A new range of rows begins a new phase.
- A final ends when each of its pairs was judged once; the next row of one of these pairs begins the next final. So
  the topics of a final may be in any order.
- A pruning phase is one run of consecutive rows. If that run is too short, all rows of the topic in the range are one
  phase.
- In a phase each pair is judged once, and only by items that are still in. A phase that is shorter than its rule at
  the end of its range is refused. So is a row for which no phase is left.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from duelpool.errors import BadRecord
from duelpool.records import Judgment, PhaseClosed
from duelpool.strategies.elimination import Elimination
from duelpool.strategies.phases import short_phase, tagged

_OWN_ROWS = "give each phase rows of its own (--rows 1-100,101-150)"


class BadPhase(BadRecord):
    """A row that fits no phase, or a phase that is too short; `row` is the index of the row where it shows."""

    row: int = 0

    @classmethod
    def at_row(cls, row: int, problem: str, remedy: str) -> "BadPhase":
        """Return the error that shows at a row."""
        error = cls(problem, remedy=remedy)
        error.row = row
        return error


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """A judgment without a phase: the run of consecutive rows that it belongs to, and its pair as the file has it."""

    judgment: Judgment
    run: int
    given: frozenset[str]


@dataclass(frozen=True, slots=True)
class RowsOfPhase:
    """The rows from `first` to before `end`, as judgments of a phase, and the phases that closed after them.

    The rows of a final that is left out have neither judgments nor closings.
    """

    first: int
    end: int
    judgments: tuple[Judgment, ...] = ()
    closings: tuple[PhaseClosed, ...] = ()


class _OpenPhase:
    """The open phase of a strategy: which items are in it, and which pairs were judged in it."""

    def __init__(self, strategy: Elimination) -> None:
        self.name = strategy.phase
        self.seen: set[frozenset[str]] = set()
        self._strategy = strategy
        self._field = frozenset(strategy.field)

    def take(self, at: int, row: PhaseRow) -> None:
        """Take in a row, or refuse it."""
        topic = self._strategy.topic
        for item in row.judgment.pair:
            if item not in self._field:
                raise BadPhase.at_row(
                    at,
                    f"The item '{item}' of topic '{topic}' isn't in phase '{self.name}': it left before.",
                    f"Check the strategy's parameters, {_OWN_ROWS}, or remove the row.",
                )
        if row.given in self.seen:
            one, other = sorted(row.given)
            raise BadPhase.at_row(
                at,
                f"The pair '{one}', '{other}' of topic '{topic}' appears twice in phase '{self.name}', "
                "where each pair is judged once. The rows of several phases may be mixed.",
                f"Remove the row, or {_OWN_ROWS}.",
            )
        self.seen.add(row.given)
        self._strategy.take(replace(row.judgment, phase=self.name))


class PhaseReader:
    """Tells a topic's strategy rows without phases, range by range, and says which phase each row belongs to.

    The first `skip_finals` finals are checked like the others, and left out.
    """

    def __init__(
        self, strategy: Elimination, duplicates: Mapping[str, int] | None = None, skip_finals: int = 0
    ) -> None:
        self.strategy = strategy
        self._duplicates = duplicates or {}
        self._skip = skip_finals
        self._rows: Sequence[PhaseRow] = ()

    def read(self, rows: Sequence[PhaseRow]) -> list[RowsOfPhase]:
        """Return the phases of a range of rows; raise BadPhase where they don't fit."""
        self._rows = rows
        phases: list[RowsOfPhase] = []
        at = 0
        while at < len(rows):
            if not self.strategy.phase:
                raise self._nothing_open(at)
            phases.append(self._read_final(at) if self.strategy.in_final else self._read_pruning(at))
            at = phases[-1].end
        return phases

    def _read_final(self, first: int) -> RowsOfPhase:
        before = deepcopy(self.strategy) if self._skip else None
        phase = _OpenPhase(self.strategy)
        at = first
        while at < len(self._rows) and not (self.strategy.complete and self._rows[at].given in phase.seen):
            phase.take(at, self._rows[at])
            at += 1
        read = self._closed(first, at)
        if before is None:
            return read
        self._skip -= 1
        self.strategy = before
        return RowsOfPhase(first, at)

    def _read_pruning(self, first: int) -> RowsOfPhase:
        phase = _OpenPhase(self.strategy)
        at = first
        while at < len(self._rows) and self._rows[at].run == self._rows[first].run:
            phase.take(at, self._rows[at])
            at += 1
        if self.strategy.shortfall(phase.name, self._duplicates):
            while at < len(self._rows):
                phase.take(at, self._rows[at])
                at += 1
        return self._closed(first, at)

    def _closed(self, first: int, end: int) -> RowsOfPhase:
        strategy, phase = self.strategy, self.strategy.phase
        if short := strategy.shortfall(phase, self._duplicates):
            raise BadPhase.at_row(
                end - 1,
                short_phase(strategy.topic, phase, short),
                "Add the rows that are missing, or give the parameters with which they were judged.",
            )
        before = len(strategy.closed)
        strategy.close()
        judgments = tagged((row.judgment for row in self._rows[first:end]), phase)
        return RowsOfPhase(first, end, tuple(judgments), strategy.closed[before:])

    def _nothing_open(self, at: int) -> BadPhase:
        closed = self.strategy.closed
        after = f" after '{closed[-1].phase}'" if closed else ""
        return BadPhase.at_row(
            at,
            f"Topic '{self.strategy.topic}' has no phase for this row: it is done{after}.",
            "Leave the rows out (--rows), or make a campaign with more final phases (prefbest:final_phases=3).",
        )
