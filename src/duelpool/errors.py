"""Errors that a user can fix: each says the problem, the place and the remedy.

    DuelpoolError
    ├── BadFile          a file that can't be read in the expected format
    ├── BadRecord        a record whose fields contradict each other
    ├── BadParameter     a value out of its range
    ├── UnknownName      no strategy, measure, judge... of that name
    └── MissingExtra     an optional dependency that isn't installed

The command line turns each of them into exit code 2, the web into a status; no other module catches them.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Self


class DuelpoolError(Exception):
    """An error that the user can fix: what is wrong, where, and what to do about it."""

    def __init__(self, problem: str, *, place: str = "", remedy: str = "") -> None:
        self.problem = problem
        self.place = place
        self.remedy = remedy
        super().__init__(problem)

    def __str__(self) -> str:
        text = f"{self.place}: {self.problem}" if self.place else self.problem
        return f"{text} {self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[object, ...]:  # errors cross process borders with all of their parts
        return _rebuilt, (type(self), self.problem, self.place, self.remedy)


def _rebuilt(kind: type[DuelpoolError], problem: str, place: str, remedy: str) -> DuelpoolError:
    error = kind.__new__(kind)
    DuelpoolError.__init__(error, problem, place=place, remedy=remedy)
    return error


class BadFile(DuelpoolError):
    """A file that can't be read in the expected format."""

    @classmethod
    def at(cls, file: str, line: int | None, problem: str, remedy: str = "") -> Self:
        """Return the error for one line of a file (or for the whole file when `line` is None)."""
        return cls(problem, place=file if line is None else f"{file}:{line}", remedy=remedy)


class BadRecord(DuelpoolError):
    """A record whose fields contradict each other."""


class BadParameter(DuelpoolError):
    """A value out of its range."""


def known_names(name: str, known: Iterable[str], *, also: Iterable[str] = (), rest: str = "") -> str:
    """Return the remedy for a name that isn't known: the nearest one that is, if one is near, and all of them.

    `also` holds other names that may be meant but aren't listed; `rest` is what followed the name, such as `@10`.
    """
    names = sorted(known)
    folded = {each.casefold(): each for each in (*also, *names)}
    close = get_close_matches(name.casefold(), folded, n=1)
    guess = f"Did you mean '{folded[close[0]]}{rest}'? " if close else ""
    return f"{guess}Known: {', '.join(names)}."


class UnknownName(DuelpoolError):
    """No strategy, measure, judge, panel or design has this name."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], *, also: Iterable[str] = (), rest: str = ""
    ) -> None:
        super().__init__(
            f"There is no {kind} called '{name}{rest}'.",
            remedy=known_names(name, known, also=also, rest=rest),
        )


class MissingExtra(DuelpoolError):
    """An optional dependency that isn't installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"This needs the package '{package}', which isn't installed.",
            remedy=f"Install it with: pip install 'duelpool[{extra}]'",
        )
