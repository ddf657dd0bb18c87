"""Values worked out per topic, and again only for the topics whose log, pool or leases have changed.

The status, the leaderboard and the agreement of a campaign each keep such values. `LiveTopics` reads the lines; a
`TopicCache` compares a stamp per topic and has the stale ones worked out.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class TopicCache(Generic[T]):
    """One value per topic, each with the stamp that it holds for. The owner's lock guards it."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Hashable, T | None]] = {}  # None: a topic that has no value now

    def refresh(
        self, stamps: Mapping[str, Hashable], compute: Callable[[list[str]], Mapping[str, T]]
    ) -> dict[str, tuple[T | None, T | None]]:
        """Bring the values up to these stamps; return each changed topic's value before and after.

        `compute` gets the stale topics, and returns a value for those that have one. Topics without a stamp leave.
        """
        changes: dict[str, tuple[T | None, T | None]] = {
            topic: (self._kept.pop(topic)[1], None) for topic in [*self._kept] if topic not in stamps
        }
        stale = [
            topic
            for topic, stamp in stamps.items()
            if topic not in self._kept or self._kept[topic][0] != stamp
        ]
        values = compute(stale) if stale else {}
        for topic in stale:
            before = self.get(topic)  # it stays until the new one is there: others may be reading
            self._kept[topic] = (stamps[topic], values.get(topic))
            changes[topic] = (before, values.get(topic))
        return changes

    def get(self, topic: str) -> T | None:
        """Return a topic's value, None where there is none."""
        kept = self._kept.get(topic)
        return None if kept is None else kept[1]

    def replace(self, topic: str, value: T) -> None:
        """Give a topic another value for the same stamp."""
        self._kept[topic] = (self._kept[topic][0], value)

    def __getitem__(self, topic: str) -> T:
        value = self.get(topic)
        if value is None:
            raise KeyError(topic)
        return value

    def __iter__(self) -> Iterator[str]:
        return (topic for topic in self._kept if topic in self)

    def __contains__(self, topic: str) -> bool:
        return self.get(topic) is not None

    def forget(self, wanted: Callable[[T], bool] | None = None) -> None:
        """Drop the values that answer to this, or all of them."""
        if wanted is None:
            self._kept.clear()
        else:
            for topic in [*self]:
                if wanted(self[topic]):
                    del self._kept[topic]
