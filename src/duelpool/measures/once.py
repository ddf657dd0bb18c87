"""Answers to questions about a record, each computed once."""

from collections.abc import Callable
from typing import TypeVar, cast

Answer = TypeVar("Answer")


class Remembering:
    """A record that remembers the answers to questions about it, in `_known`."""

    __slots__ = ()
    _known: dict[object, tuple[object, tuple[object, ...]]]

    def once(self, question: object, answer: Callable[[], Answer], *about: object) -> Answer:
        """Return the answer to a question, computed once; one that involves other objects names them.

        They are kept with the answer: an object that is gone leaves its id to another one.
        """
        key = (question, *map(id, about))
        if key not in self._known:
            self._known[key] = answer(), about
        return cast("Answer", self._known[key][0])
