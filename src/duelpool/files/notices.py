"""What a reader skipped, repaired or kept in spite of doubt: counted, and reported."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Notice:
    """One kind of oddity in a file: how often it occurred, and where first."""

    what: str
    count: int
    first_line: int | None = None

    def __str__(self) -> str:
        where = "" if self.first_line is None else f" (first: line {self.first_line})"
        return f"{self.what}: {self.count:,}{where}"


@dataclass(slots=True)
class Tally:
    """Counts oddities while a file is read; `notices` are what the reader returns."""

    _counts: dict[str, int] = field(default_factory=dict)
    _first: dict[str, int | None] = field(default_factory=dict)

    def add(self, what: str, line: int | None = None, count: int = 1) -> None:
        """Count one more oddity of this kind, remembering the first line that had it."""
        if count:
            self._counts[what] = self._counts.get(what, 0) + count
            self._first.setdefault(what, line)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """The kinds seen so far, in the order in which they first came up."""
        return tuple(Notice(what, count, self._first[what]) for what, count in self._counts.items())


def describe(name: str, notices: Iterable[Notice]) -> list[str]:
    """Return one line of text per notice, for the terminal."""
    return [f"{name}: {notice}" for notice in notices]
