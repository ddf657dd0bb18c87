"""Test pairs: a topic's best known item against an item of another topic."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence

from duelpool.errors import BadFile, BadParameter
from duelpool.files import Notice, read_preferences
from duelpool.files.notices import Tally
from duelpool.records import Passage, Pool
from duelpool.seeds import rng_for
from duelpool.store.holdings import TestPair


def read_test_pairs(
    path: str | os.PathLike[str], topics: Collection[str]
) -> tuple[list[TestPair], tuple[Notice, ...]]:
    """Read test pairs from a file of preferences: the winner is the better item."""
    preferences = read_preferences(path)
    tally = Tally()
    pairs: dict[tuple[str, str, str], TestPair] = {}
    for judgment in preferences.judgments():
        if judgment.winner is None or judgment.loser is None:
            tally.add("pairs without a winner left out")
        elif judgment.topic not in topics:
            tally.add("test pairs of unknown topics left out")
        else:
            key = (judgment.topic, judgment.winner, judgment.loser)
            pairs.setdefault(key, TestPair(f"test-{len(pairs) + 1}", *key))
    if not pairs:
        raise BadFile.at(os.fspath(path), None, "The file has no test pair of a topic of the campaign.")
    return list(pairs.values()), (*preferences.notices, *tally.notices)


def draw_test_pairs(
    pools: Sequence[Pool],
    *,
    texts: Mapping[str, Passage] | None = None,
    grades: Mapping[str, Mapping[str, float]] | None = None,
    seed: int = 1,
    per_topic: int = 5,
) -> list[TestPair]:
    """Draw test pairs: the item of the highest grade against items of other topics.

    Items with a grade above 0 in the topic, items of its pool and items without a text are left out.
    """
    others = {pool.topic: list(pool.items) for pool in pools}
    pairs: list[TestPair] = []
    for pool in pools:
        graded = (grades or {}).get(pool.topic, {})
        members = set(_members(pool))
        off_topic = sorted(
            {
                item
                for topic, items in others.items()
                if topic != pool.topic
                for item in items
                if item not in members and graded.get(item, 0.0) <= 0 and _has_text(item, texts)
            }
        )
        best = min(pool.items, key=lambda item: (-pool.grades.get(item, float("-inf")), item))
        rng = rng_for(seed, pool.topic, "test pairs")
        picked = [off_topic[at] for at in rng.permutation(len(off_topic))[:per_topic]]
        pairs += [
            TestPair(f"test-{pool.topic}-{at}", pool.topic, best, worse) for at, worse in enumerate(picked, 1)
        ]
    if not pairs:
        raise BadParameter(
            "No test pairs can be drawn: every item is in the pool of every topic.",
            remedy="Give a file with --tests FILE, or use none with --tests none.",
        )
    return pairs


def _members(pool: Pool) -> Iterable[str]:
    yield from pool.items
    for twins in pool.twins.values():
        yield from twins


def _has_text(item: str, texts: Mapping[str, Passage] | None) -> bool:
    return texts is None or bool(item in texts and texts[item].text)
