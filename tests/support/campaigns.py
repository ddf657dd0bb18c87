"""Small campaigns for the tests: letters as items, the smaller letter the better one."""

from collections.abc import Iterable, Mapping
from typing import Any

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.judges.live import Sheet
from duelpool.records import Answer, Outcome, Passage, Pool, Topic
from duelpool.store import Store
from duelpool.store.holdings import TestPair


def make_campaign(
    store: Store,
    pools: Mapping[str, str] | Iterable[Pool] = {"one": "abcde", "two": "abcd"},
    *,
    name: str = "letters",
    known: Iterable[TestPair] = (),
    **settings: Any,
) -> Campaign:
    """Make a campaign from topics with their letters (or from pools)."""
    made = (
        [Pool(topic, tuple(items)) for topic, items in pools.items()] if isinstance(pools, Mapping) else pools
    )
    made = list(made)
    return Campaign.create(
        store,
        name,
        Settings(**{"strategy": "prefbest", **settings}),
        topics=[Topic(pool.topic, f"Question {pool.topic}?") for pool in made],
        pools=made,
        passages=[Passage(item, f"Text of {item}.") for pool in made for item in pool.items],
        test_pairs=known,
    )


class Knows:
    """Prefers the smaller letter, always."""

    def reply(self, sheet: Sheet) -> Answer:
        assert sheet.right is not None
        return Answer(Outcome.LEFT if sheet.left.id < sheet.right.id else Outcome.RIGHT, seconds=2.0)


def judge_all(campaign: Campaign, people: int = 3) -> int:
    """Let assessors judge correctly until no question is left; return the number of judgments."""
    for at in range(people):
        campaign.enrol(f"p{at}", "dedicated")
    return in_turns([JudgingSession(campaign, f"p{at}", Knows()) for at in range(people)]).judged
