"""Lists for models: several items of a topic in one request, whose order is unfolded into replies to pairs.

A list is shown twice, the second time from its end. The item that is shown first counts as the left one of a pair, so
each of the two orders gives one reply to every pair of the list, as if the pair had been asked about in that order. A
list that gets no usable reply leaves its pairs to be asked about one at a time.
"""

import json
import threading
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from sqlalchemy import ColumnElement, and_, func, select

from duelpool.campaign.campaign import Campaign
from duelpool.frames import counted
from duelpool.judges.live import Sheet
from duelpool.judges.llm.prompts import unreadable_passage
from duelpool.judges.llm.replies import Verdict
from duelpool.records import Passage
from duelpool.seeds import rng_for
from duelpool.store import Reading, holdings, leases, llm, schema
from duelpool.store.llm import ModelReply, Order

LISTED = "list"
"""The result of a request that got an order of all its items; another result begins with this word and a colon."""

_GIVEN_UP_AFTER = 3  # lists without a usable reply, one after the other, in all tries that each has

_Items = tuple[str, ...]
_PairOfItems = frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class ItemList:
    """Items of a topic that are asked about together, and the orders in which they are still to be shown."""

    topic: str
    items: _Items
    passages: Mapping[str, Passage]
    orders: tuple[_Items, ...]
    ended: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class _History:
    """What a model was asked in lists about a topic: orders that it gave, and lists that got no usable reply."""

    answered: frozenset[_Items]
    unusable: tuple[_Items, ...]

    def unusable_pairs(self) -> set[_PairOfItems]:
        """Return the pairs that are asked about one at a time."""
        return {frozenset(pair) for items in self.unusable for pair in combinations(items, 2)}


@dataclass(slots=True)
class ItemLists:
    """Chooses which items a model is asked about together; several threads may ask at once."""

    campaign: Campaign
    assessor: str
    size: int
    tries_malformed: int
    unusable: int = 0  # lists of this session without a usable reply
    given_up: bool = False
    _at_work: list[ItemList] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, sheet: Sheet) -> ItemList | None:
        """Return the list that answers a question, to be given back by `end`; None: ask about the pair by itself.

        None as well where the replies are stored. While another thread asks about a list with both items, it waits.
        """
        if sheet.right is None or sheet.left.id == sheet.right.id:
            return None
        pair = {sheet.left.id, sheet.right.id}
        while True:
            with self._lock:
                others = [each for each in self._at_work if each.topic == sheet.topic.id]
                same = next((each for each in others if pair <= {*each.items}), None)
                if same is None:
                    chosen = self._choose(sheet, sheet.right, others)
                    if chosen is not None:
                        self._at_work.append(chosen)
                    return chosen
            same.ended.wait()

    def end(self, taken: ItemList) -> None:
        """Let other threads ask about its pairs again."""
        with self._lock:
            self._at_work.remove(taken)
        taken.ended.set()

    def count_unusable(self) -> None:
        """Count a list that got no usable reply."""
        with self._lock:
            self.unusable += 1

    @property
    def said(self) -> str:
        """What a session says at its end of lists without a usable reply; empty where there were none."""
        if self.given_up:
            return "The model gave no usable order of lists: pairs are asked one at a time."
        if not self.unusable:
            return ""
        lists = counted(self.unusable, "list")
        its = "its" if self.unusable == 1 else "their"
        return f"{lists} got no usable reply: {its} pairs were asked one at a time."

    # ---- which items

    def _choose(self, sheet: Sheet, right: Passage, others: Collection[ItemList]) -> ItemList | None:
        def work(tx: Reading) -> ItemList | None:
            topic, pair = sheet.topic.id, (sheet.left.id, right.id)
            known = _stored_orders(tx, self.assessor, topic, sheet.criterion)
            if {pair, pair[::-1]} <= known:
                return None
            self.given_up = self.given_up or self._gives_no_orders(tx)
            history = _history(tx, self.assessor, topic, self.tries_malformed)
            alone = history.unusable_pairs()
            if self.given_up or frozenset(pair) in alone:
                return None
            if {pair, pair[::-1]} & known:
                return _unfinished(tx, topic, pair, history)
            taken = {frozenset(both) for each in others for both in combinations(each.items, 2)}
            asked = {frozenset(each) for each in known} | alone | taken
            passages = self._chosen(tx, topic, (sheet.left, right), asked)
            if len(passages) < 3:
                return None
            seed = self.campaign.settings.seed
            shuffled = rng_for(seed, "order of a list", self.assessor, topic, *pair).permutation(
                len(passages)
            )
            items = tuple([*passages][at] for at in shuffled)
            return ItemList(topic, items, passages, (items, items[::-1]))

        return self.campaign.read(work)

    def _chosen(
        self, tx: Reading, topic: str, pair: tuple[Passage, Passage], asked: Collection[_PairOfItems]
    ) -> dict[str, Passage]:
        """Return the texts of the items to be listed: the pair, then items of other questions, then any of the pool.

        Of these, the items come first that make the most pairs about which the model wasn't asked.
        """
        listed = {each.id: each for each in pair}
        pool = holdings.judged_items(tx, topic).get(topic, [])
        if not {*listed} <= {*pool}:  # a test pair with an item from outside the pool
            return {}
        seed = self.campaign.settings.seed
        places = rng_for(seed, "items of a list", self.assessor, topic, *listed).permutation(len(pool))
        place = dict(zip(pool, places, strict=True))
        held = {
            item
            for row in leases.leased_to(tx, self.assessor)
            if row.topic == topic
            for item in (row.left_item, row.right_item)
        }
        left = [item for item in pool if item not in listed]

        def new_pairs(item: str) -> int:
            return sum(frozenset((item, other)) not in asked for other in listed)

        while left and len(listed) < self.size:
            best = max(
                left, key=lambda item: (new_pairs(item) > 0, item in held, new_pairs(item), -place[item])
            )
            if not new_pairs(best):
                break
            left.remove(best)
            passage = holdings.passages(tx, [best]).get(best)
            if passage is not None and not unreadable_passage(passage):
                listed[best] = passage
        return listed

    def _gives_no_orders(self, tx: Reading) -> bool:
        """Say whether the latest lists of a model, over all its sessions, got no usable reply."""
        columns = schema.llm_call.c
        most = _GIVEN_UP_AFTER * self.tries_malformed
        latest = tx.connection.execute(
            select(columns.result)
            .where(_answered_lists(tx, self.assessor))
            .order_by(columns.id.desc())
            .limit(most)
        ).scalars()
        results = list(latest)
        return len(results) == most and LISTED not in results


def _answered_lists(tx: Reading, assessor: str) -> ColumnElement[bool]:
    columns = schema.llm_call.c
    return and_(
        columns.campaign == tx.campaign,
        columns.assessor == assessor,
        columns.state == llm.ANSWERED,
        columns.list_items.is_not(None),
    )


def _history(tx: Reading, assessor: str, topic: str, tries_malformed: int) -> _History:
    columns = schema.llm_call.c
    rows = tx.connection.execute(
        select(columns.list_items, columns.result, func.count())
        .where(_answered_lists(tx, assessor), columns.topic == topic)
        .group_by(columns.list_items, columns.result)
    )
    answered: set[_Items] = set()
    failures: Counter[_Items] = Counter()
    for text, result, calls in rows:
        items = tuple(json.loads(text))
        if result == LISTED:
            answered.add(items)
        else:  # what can't be judged, or was refused, isn't asked again
            failures[items] += calls if "malformed" in result else tries_malformed
    unusable = [items for items, count in failures.items() if count >= tries_malformed]
    return _History(frozenset(answered), tuple(items for items in unusable if items not in answered))


def _stored_orders(tx: Reading, assessor: str, topic: str, criterion: str) -> set[tuple[str, str]]:
    columns = schema.llm_reply.c
    rows = tx.connection.execute(
        select(columns.left_item, columns.right_item).where(
            columns.campaign == tx.campaign,
            columns.assessor == assessor,
            columns.topic == topic,
            columns.criterion == criterion,
        )
    )
    return {(left, right) for left, right in rows}


def _unfinished(tx: Reading, topic: str, pair: tuple[str, str], history: _History) -> ItemList | None:
    """Return the list of a session that ended between its two orders, None where the pair was asked by itself."""
    for items in sorted(history.answered):
        if {*pair} <= {*items} and items[::-1] not in history.answered:
            passages = holdings.passages(tx, items)
            return ItemList(topic, items, passages, (items[::-1],)) if len(passages) == len(items) else None
    return None


# ---- the replies


def unfolded(
    verdict: Verdict, items: _Items, passages: Mapping[str, Passage], about: Order, base: ModelReply
) -> dict[Order, ModelReply]:
    """Return the replies to all pairs of a list, each in the order in which its items were shown.

    The time of the request is shared by the pairs.
    """
    places = {mark: place for place, marks in enumerate(verdict.places) for mark in marks}
    place_of = dict(zip(items, (places[mark] for mark in sorted(places)), strict=True))
    pairs = list(combinations(items, 2))
    replies = {}
    for left, right in pairs:
        difference = place_of[left] - place_of[right]
        replies[replace(about, left=left, right=right)] = replace(
            base,
            outcome="tie" if not difference else "left" if difference < 0 else "right",
            confidence=verdict.confidence,
            left_length=len(passages[left].text),
            right_length=len(passages[right].text),
            seconds=round(base.seconds / len(pairs), 3),
            listed=len(items),
        )
    return replies
