"""The demo collection: everyday questions, passages written for them, and how good each passage really is.

The utilities are the hidden truth. Simulated judges may look at them and the demo's last page compares with
them; rankers, strategies and people never see them.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any

from duelpool.errors import BadParameter
from duelpool.records import Passage, Topic
from duelpool.seeds import rng_for

GRADE_FLOORS = (2.5, 5.0, 7.5)
"""The utilities from which on a careful assessor would give the grades 1, 2 and 3."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Questions, passages and the hidden truth about them.

    `utilities` holds, for each topic, its own passages only: every other passage answers nothing of it.
    Utilities run from 0 to 10, higher is better, and duplicates have the same one. A difference of 1 is meant as
    what an attentive reader sees three times out of four. `off_topic` are passages that answer none of the
    questions, for test pairs.
    """

    topics: tuple[Topic, ...]
    passages: Mapping[str, Passage]
    utilities: Mapping[str, Mapping[str, float]]
    off_topic: tuple[str, ...]


def load_collection() -> Collection:
    """Return the demo collection, read from the files that come with the package."""
    utilities: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for row in _rows("utilities.jsonl"):
        utilities[row["topic"]][row["id"]] = float(row["utility"])
    passages = {row["id"]: Passage(row["id"], row["text"]) for row in _rows("passages.jsonl")}
    return Collection(
        topics=tuple(_topic(row) for row in _rows("topics.jsonl")),
        passages=MappingProxyType(passages),
        utilities=MappingProxyType({topic: MappingProxyType(values) for topic, values in utilities.items()}),
        off_topic=tuple(row["id"] for row in _rows("off_topic.jsonl")),
    )


def grades(collection: Collection, seed: int, noise: float = 0.6) -> dict[str, dict[str, int]]:
    """Return a grade from 0 to 3 for each topic's passages, as a somewhat inattentive assessor would give it.

    `noise` is the standard deviation of the assessor's error, in utilities. Off-topic passages get a 0 for
    each topic.
    """
    if not noise >= 0:
        raise BadParameter(f"The noise of grades is {noise}.", remedy="Give a number from 0 on.")
    graded: dict[str, dict[str, int]] = {}
    for topic, utilities in collection.utilities.items():
        graded[topic] = dict.fromkeys(collection.off_topic, 0)
        for item, utility in utilities.items():
            seen = utility + noise * rng_for(seed, "demo grade", topic, item).standard_normal()
            graded[topic][item] = sum(seen >= floor for floor in GRADE_FLOORS)
    return graded


def _topic(row: Mapping[str, Any]) -> Topic:
    return Topic(
        id=row["id"],
        text=row["text"],
        description=row["description"],
        conversation=tuple(row.get("conversation", ())),
        tags=tuple(row["tags"]),
        weight=float(row.get("weight", 1.0)),
    )


def _rows(name: str) -> Iterator[dict[str, Any]]:
    text = (resources.files("duelpool.demo") / "data" / name).read_text(encoding="utf-8")
    return (json.loads(line) for line in text.split("\n") if line)
