"""How often each unit was expected to be drawn, and its guess: stored beside a plan for later systems.

A file of propensities has a line `topic item expected guess prior` for each unit that a plan could draw, or
`topic item other expected guess prior` for pairs; '-' where there is no guess or prior.
"""

import os
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from duelpool.arrays import Floats
from duelpool.budget.units.populations import Population
from duelpool.errors import BadFile
from duelpool.files import write_lines
from duelpool.files.columns import Layout, is_number, read_columns, refuse_unwritable
from duelpool.files.source import read_source

_NOTHING = "-"
_ITEMS = Layout(
    "file of propensities", _FIELDS := ("topic", "item", "expected", "guess", "prior"), text=_FIELDS
)
_PAIRS = Layout(
    "file of propensities", _WIDER := ("topic", "item", "other", "expected", "guess", "prior"), text=_WIDER
)


@dataclass(frozen=True, slots=True, eq=False)
class Propensities:
    """Every unit that a plan knew, in the population's order.

    A unit that was judged before the plan was made is `known`, and wasn't drawn again.
    """

    topics: tuple[str, ...]
    items: tuple[str, ...]
    others: tuple[str, ...] | None
    expected: Floats
    guess: Floats | None = None
    prior: Floats | None = None
    known: Floats | None = None  # a judged utility, nan where there is none
    _places: dict[tuple[str, ...], int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        population: Population,
        expected: Floats,
        guess: Floats | None,
        prior: Floats | None,
        known: Floats | None = None,
    ) -> "Propensities":
        """Return a population's names with the expected draws of each unit."""
        names = [population.topics[at] for at in population.topic.tolist()]
        items = (
            tuple(population.items.to_list())
            if population.items is not None
            else tuple(map(str, range(len(population))))
        )
        others = None if population.others is None else tuple(population.others.to_list())
        return cls(tuple(names), items, others, expected, guess, prior, known)

    def __len__(self) -> int:
        return len(self.items)

    def key(self, at: int) -> tuple[str, ...]:
        """Return a unit's topic and item, or items."""
        first = (self.topics[at], self.items[at])
        return first if self.others is None else (*first, self.others[at])

    @property
    def places(self) -> dict[tuple[str, ...], int]:
        """Each unit's place."""
        if not self._places:
            self._places.update({self.key(at): at for at in range(len(self))})
        return self._places


def write_propensities(path: str | os.PathLike[str], propensities: Propensities) -> None:
    """Write a line per unit; numbers in full, so that they read back equal."""
    for name, texts in (
        ("topic", propensities.topics),
        ("item", propensities.items),
        ("other", propensities.others or ()),
    ):
        refuse_unwritable(os.fspath(path), name, list(set(texts)))
    columns = [
        _texts(each, len(propensities))
        for each in (propensities.expected, propensities.guess, propensities.prior)
    ]
    known = propensities.known

    def lines() -> "list[str]":
        rows = []
        for at in range(len(propensities)):
            expected, guess, prior = (column[at] for column in columns)
            if known is not None and not np.isnan(known[at]):
                expected, guess = "known", repr(float(known[at]))
            rows.append(" ".join((*propensities.key(at), expected, guess, prior)))
        return rows

    write_lines(path, lines())


def read_propensities(path: str | os.PathLike[str]) -> Propensities:
    """Read a file of propensities."""
    source = read_source(path)
    width = len(source.lines()[0].split())
    layout = _PAIRS if width == len(_WIDER) else _ITEMS
    columns = read_columns(source, layout)
    texts = {name: columns.frame.get_column(name) for name in layout.fields}
    known = (texts["expected"] == "known").to_numpy()

    def numbers(name: str) -> Floats:
        column = texts[name]
        for row, text in enumerate(column.to_list()):
            if text != _NOTHING and not (name == "expected" and text == "known") and not is_number(text):
                raise BadFile.at(
                    source.name, columns.line_of(row), f"'{text}' is no number.", "Write the plan again."
                )
        return column.cast(pl.Float64, strict=False).to_numpy().copy()

    expected = numbers("expected")
    expected[known] = 0.0
    if not np.isfinite(expected).all() or (expected < 0).any():
        row = int(np.argmax(~np.isfinite(expected) | (expected < 0)))
        raise BadFile.at(
            source.name, columns.line_of(row), "A propensity is a number from 0 on.", "Write the plan again."
        )
    guess, prior = numbers("guess"), numbers("prior")
    judged = np.where(known, guess, np.nan)
    return Propensities(
        tuple(texts["topic"].to_list()),
        tuple(texts["item"].to_list()),
        tuple(texts["other"].to_list()) if layout is _PAIRS else None,
        expected,
        None if np.isnan(guess[~known]).any() else guess,
        None if np.isnan(prior).any() else prior,
        judged if known.any() else None,
    )


def _texts(values: Floats | None, count: int) -> list[str]:
    return [_NOTHING] * count if values is None else [repr(value) for value in values.tolist()]
