"""What is noteworthy about pools before anything is judged: duplicates, missing texts, tiny and huge topics."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from duelpool.pooling import Pools
from duelpool.setup.drafts import Draft

HUGE = 300
"""Topics of more items than this are pointed out."""
EXAMPLES = 3
_SHOWN = 40  # characters of an example


@dataclass(frozen=True, slots=True)
class PoolCheck:
    """Something to know about the pools: how often, the first examples, and what happens with it.

    `holds` says that topics are held back for it until it is mended.
    """

    name: str
    label: str
    count: int
    examples: tuple[str, ...]
    effect: str
    holds: bool = False

    @property
    def sentence(self) -> str:
        """All of it in a line."""
        shown = ", ".join(self.examples)
        more = " ..." if self.count > len(self.examples) else ""
        return f"{self.label}: {self.count:,} ({shown}{more}). {self.effect}"


def pool_checks(draft: Draft) -> list[PoolCheck]:
    """Return what is noteworthy about the pools of a draft, what holds topics back first."""
    return [each for each in _checks(draft) if each.count]


def _checks(draft: Draft) -> Iterator[PoolCheck]:
    pools, required = draft.pools, draft.settings.required
    lacking = items_without_text(draft)
    topics = list(dict.fromkeys(topic for topic, _ in lacking))
    if "texts" in required:
        of = "All topics" if len(topics) == len(pools.pools) else f"{len(topics):,} topics"
        effect = f"{of} with them are held back until the texts are added."
    else:
        effect = "Assessors would see an empty passage."
    yield _check(
        "without_text",
        "Items without text",
        (f"{item} of {topic}" for topic, item in lacking),
        effect,
        len(lacking),
        holds="texts" in required,
    )
    effect = (
        "They are held back until the questions are added."
        if "questions" in required
        else "Assessors would see the topic's id."
    )
    yield _check(
        "without_question",
        "Topics without question",
        draft.untitled,
        effect,
        len(draft.untitled),
        holds="questions" in required,
    )
    called = _system_names(draft)
    copies = [
        (called.get((pool.topic, item), item), called.get((pool.topic, copy), copy))
        for pool in pools.pools
        for item, found in pool.twins.items()
        for copy in found
    ]
    yield _check(
        "duplicates",
        "Duplicates, of exactly the same text",
        (f"{copy} = {item}" for item, copy in copies),
        "Each is judged once, and counts for all its copies.",
        len(copies),
    )
    near = [
        [called.get((topic, item), item) for item in group]
        for topic, groups in pools.near_duplicates.items()
        for group in groups
    ]
    yield _check(
        "near_duplicates",
        "Near-duplicates, but for white space and case",
        (" ~ ".join(each[:2]) for each in near),
        "They stay apart, and each is judged.",
        pools.near_duplicate_items,
    )
    by_size = {size: [topic for topic, own in pools.sizes.items() if own == size] for size in (1, 2)}
    yield _check(
        "single_items",
        "Topics of one item",
        by_size[1],
        "There is nothing to judge in them.",
        len(by_size[1]),
    )
    yield _check(
        "two_items", "Topics of two items", by_size[2], "A single pair decides each of them.", len(by_size[2])
    )
    huge = sorted(((own, topic) for topic, own in pools.sizes.items() if own > HUGE), reverse=True)
    yield _check(
        "huge",
        f"Topics of more than {HUGE} items",
        (f"{topic}: {own:,}" for own, topic in huge),
        "They take most of the judgments: a smaller depth, or thinning by grades, makes them smaller.",
        len(huge),
    )
    yield from _topics_left_out(pools)


def _topics_left_out(pools: Pools) -> Iterator[PoolCheck]:
    """Say which topics have no candidates, and why; and which have no grades, yet candidates."""
    ungraded = set(pools.ungraded_topics)
    without = sum(topic in ungraded for topic in pools.empty_topics)
    others = len(pools.empty_topics) - without
    why = "they have no grades" if without else "none of their items is relevant"
    if without and others:
        why = f"{without:,} without grades, {others:,} without relevant items"
    yield _check(
        "empty",
        "Topics without candidates",
        pools.empty_topics,
        f"They are left out: {why}.",
        len(pools.empty_topics),
    )
    graded = [topic for topic in pools.ungraded_topics if topic not in set(pools.empty_topics)]
    yield _check(
        "without_grades", "Topics without grades", graded, "All of their items are pooled.", len(graded)
    )
    yield _check(
        "without_runs",
        "Topics without runs",
        pools.unpooled_topics,
        "The grades have them, and no run does: they are left out.",
        len(pools.unpooled_topics),
    )


def _system_names(draft: Draft) -> dict[tuple[str, str], str]:
    """Return what answers are called, by question and item: the system and the question, for nobody knows the ids."""
    if not draft.inputs.files.of_systems:
        return {}
    return {
        (topic, item): f"{run.name} on {topic}"
        for run in draft.inputs.runs
        for topic, item in run.top(1).select("topic", "docno").rows()
    }


def _check(
    name: str, label: str, examples: Iterable[str], effect: str, count: int, *, holds: bool = False
) -> PoolCheck:
    first = [text for text, _ in zip(examples, range(EXAMPLES), strict=False)]
    short = tuple(text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN]}…" for text in first)
    return PoolCheck(name, label, count, short, effect, holds)


def items_without_text(draft: Draft) -> list[tuple[str, str]]:
    """Return topic and item of every item without a text: all of them where there is no file of texts."""
    if draft.texts is None:
        return [(pool.topic, item) for pool in draft.pools.pools for item in pool.items]
    return list(draft.pools.without_text)
