"""Lines of a log in little room: each is folded once, and then read again only when something is taken back.

A line as an object takes over half a kilobyte, and every process of a server holds all of them. Packed, it takes
about eighty bytes.
"""

import pickle
import zlib
from collections.abc import Iterable, Iterator

from duelpool.store.log import Line

PAGE = 32  # lines that are packed together: names that they share are written once
_FAST = 1


class PackedLines:
    """Lines in order; what is read again is equal to what was added."""

    __slots__ = ("_open", "_pages")

    def __init__(self) -> None:
        self._pages: list[bytes] = []
        self._open: list[Line] = []  # less than a page

    def extend(self, lines: Iterable[Line]) -> None:
        """Add lines at the end."""
        self._open.extend(lines)
        while len(self._open) >= PAGE:
            full, self._open = self._open[:PAGE], self._open[PAGE:]
            self._pages.append(zlib.compress(pickle.dumps(full, pickle.HIGHEST_PROTOCOL), _FAST))

    def __len__(self) -> int:
        return PAGE * len(self._pages) + len(self._open)

    def __iter__(self) -> Iterator[Line]:
        for page in self._pages:
            yield from pickle.loads(zlib.decompress(page))  # nobody else has had it
        yield from self._open

    @property
    def size(self) -> int:
        """How many bytes the full pages take."""
        return sum(map(len, self._pages))
