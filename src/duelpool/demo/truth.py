"""The hidden truth of the demo collection as qrels and figures."""

from collections.abc import Collection, Mapping

from duelpool.demo.collection import Collection as DemoCollection
from duelpool.files import Qrels

RELEVANT_FROM = 5.0
"""The utility from which on a passage answers its question."""


def true_best(collection: DemoCollection, topic: str, among: Collection[str] | None = None) -> set[str]:
    """Return the truly best passages of a topic, of all or among some."""
    utilities = collection.utilities[topic]
    known = {item: utilities[item] for item in (utilities if among is None else among) if item in utilities}
    return {item for item, utility in known.items() if utility == max(known.values())}


def true_best_qrels(collection: DemoCollection) -> Qrels:
    """Return the truly best passages as labels."""
    return Qrels.from_grades(
        {topic: dict.fromkeys(sorted(true_best(collection, topic)), 1) for topic in collection.utilities}
    )


def relevant_qrels(collection: DemoCollection, items: Mapping[str, Collection[str]]) -> Qrels:
    """Return for each topic which of some passages answer it: 1 or 0."""
    return Qrels.from_grades(
        {
            topic: {
                item: int(collection.utilities[topic].get(item, 0.0) >= RELEVANT_FROM)
                for item in sorted(passages)
            }
            for topic, passages in items.items()
        }
    )
