"""Topics in memory: the proposals of their strategies, for what is leased and logged now."""

from pathlib import Path

from duelpool.deciders import ALL
from duelpool.records import Pair
from duelpool.store import open_store
from support.campaigns import make_campaign


def test_proposals_follow_the_leased_pairs(tmp_path: Path) -> None:
    with open_store(tmp_path / "campaign.db", create=True) as store:
        live = make_campaign(store, {"one": "abcd"}, strategy="allpairs").live
        every = live.proposals("one", ALL, (), (), head=0)
        assert len(every) == 6

        def pairs_beside(leased: int) -> set[Pair]:
            return {each.pair for each in live.proposals("one", ALL, [every[leased]], (), head=0)}

        for at in (0, 1):
            assert pairs_beside(at) == {each.pair for each in every} - {every[at].pair}
