"""A campaign's status, kept up to date: read often, worked out again only where something changed.

`Watch` returns what `status` returns. It begins with the stored summaries, keeps each topic's view and counts, and
reads only the lines that are new. It is a cache over the log; throwing it away costs a reading of the summaries.
"""

import copy
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from duelpool.background import give_way, locked, start_in_background
from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log import summary_rows as stored
from duelpool.campaign.log.replay import FORCES_REPLAY, TopicState
from duelpool.campaign.log.summary_rows import Caption, Summary
from duelpool.campaign.log.topic_cache import TopicCache
from duelpool.campaign.views import summaries
from duelpool.campaign.views.reading import ReadTopic
from duelpool.campaign.views.signs import LINES, CampaignSigns, read_beat, read_signs
from duelpool.campaign.views.status import (
    AssessorStatus,
    CampaignStatus,
    MoneyStatus,
    TopicView,
    active_assessors,
    better_items,
    campaign_status,
    graded_items,
    money_status,
    needs_strategy,
    rewards_earned,
    topic_view,
)
from duelpool.campaign.views.status import with_result as view_with_result
from duelpool.campaign.views.tally import AssessorTally, TopicTally
from duelpool.campaign.views.topic_summary import TopicSummary, summarise, with_result, with_result_of
from duelpool.errors import DuelpoolError
from duelpool.records import Topic
from duelpool.store import Reading, holdings, log

T = TypeVar("T")

TALLIED_AT_MOST = 200_000
"""Lines behind the counts that are kept to be continued; of other topics the log is counted again after a change."""
TAKEN_EVERY = 2.0
"""Seconds after which a look shows further results that a thread has worked out; the last ones it shows at once."""
_LOOKED_UP = 200  # topics whose results are looked for in the store at once
FOLLOWED_AT_ONCE = 20
"""Topics that are new to a watch and are read at once; of more of them, the summaries are read first."""


class NotFound(DuelpoolError):
    """The campaign has no topic, pair or assessor of this name."""


@dataclass(frozen=True, slots=True)
class _Topic:
    view: TopicView
    known: TopicSummary

    @property
    def assessors(self) -> Mapping[str, AssessorTally]:
        return self.known.assessors


@dataclass(slots=True)
class _Counted:
    """The counts of a topic's log up to a place."""

    tally: TopicTally
    position: int


@dataclass(slots=True)
class Watch:
    """The status of one campaign for readers who look again and again."""

    campaign: Campaign
    lines_at_once: int | None = None
    """After more new lines, the last figures are shown until a thread has read them; None: every look reads them."""
    items_at_once: int | None = None
    """Results that take long are worked out by a look for topics with so many items together, the others in a thread.

    Meanwhile their last ones are shown. None: every look works out all of them.
    """
    clock: Callable[[], float] = time.monotonic
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _topics: TopicCache[_Topic] = field(default_factory=TopicCache)
    _tallies: dict[str, AssessorTally] = field(default_factory=dict)
    _captions: dict[str, Caption] = field(default_factory=dict)
    _counted: dict[str, _Counted] = field(default_factory=dict)  # the latest last
    _better: dict[str, str] = field(default_factory=dict)
    _money: tuple[tuple[int, int], MoneyStatus] | None = None  # as of a ledger and its open assignments
    _signs: CampaignSigns | None = None
    _last: CampaignStatus | None = None
    _last_beat: tuple[Any, ...] = ()
    _topics_read: int = 0
    _reader: threading.Thread | None = None
    _trouble: DuelpoolError | None = None  # of the reader
    _outdated: dict[str, None] = field(
        default_factory=dict
    )  # topics whose result is of an earlier place; the first first
    _worker: threading.Thread | None = None
    _worked_out: dict[str, TopicSummary] = field(default_factory=dict)  # for the next look
    _batches: int = 0  # of results

    def look(self) -> CampaignStatus:
        """Return the campaign's status now; while a thread reads many new lines, the last one."""
        last = self._last
        if last is not None and self._is_reading():
            return last
        with locked(self._lock):
            if self._trouble is not None:
                trouble, self._trouble = self._trouble, None
                raise trouble
            beat = self.campaign.read(read_beat)
            if self._last is not None:
                if beat == self._last_beat and not self._has_results():
                    return self._last
                if self.lines_at_once is not None and self._new_lines(beat) > self.lines_at_once:
                    self._reader = start_in_background(self._read_in_thread)
                    return self._last
            return self._read(beat)

    def _read(self, beat: tuple[Any, ...]) -> CampaignStatus:
        signs = self.campaign.read(lambda tx: read_signs(tx, self.campaign))
        latest = self._last
        if latest is None or signs != self._signs or self._has_results():
            latest = self._refresh(signs)
        self._last_beat, self._signs, self._last = beat, signs, latest
        return latest

    def _is_reading(self) -> bool:
        return self._reader is not None and self._reader.is_alive()

    def _read_in_thread(self) -> None:
        with self._lock:
            try:
                self._read(self.campaign.read(read_beat))
            except DuelpoolError as error:
                self._trouble = error  # the next look raises it

    def _new_lines(self, beat: tuple[Any, ...]) -> int:
        """Return how many lines the logs have grown by since the last look, at least."""
        return 0 if not self._last_beat else int(beat[LINES] or 0) - int(self._last_beat[LINES] or 0)

    @property
    def has_figures(self) -> bool:
        """Whether a look has read the log."""
        return self._last is not None

    def progress(self) -> tuple[int, int]:
        """Return how many topics the first look has read, and of how many."""
        total = len(self.campaign.live.heads())
        return min(self._topics_read, total), total

    def note_read(self, topics: int) -> None:
        """Count topics that were read for the first look."""
        self._topics_read += topics

    def lines_to_read(self) -> int:
        """Return about how many lines the first look will read: those that no summary covers."""
        return self.campaign.read(lambda tx: summaries.stale_lines(tx, self.campaign))

    def with_settings_of(self, campaign: Campaign) -> bool:
        """Go on with the same campaign under other settings; return False where all must be read again."""
        with self._lock:
            if campaign.live is not self.campaign.live:
                return False
            self.campaign = campaign
            self._signs = self._money = None
            self._last_beat = ()
            return True

    def pulse(self) -> str:
        """Return a text that differs as soon as a look would return something else; cheap to ask for."""
        beat = self._last_beat if self._is_reading() else self.campaign.read(read_beat)
        return "-".join(str(figure) for figure in (*beat, self._batches))

    # ---- one topic, one assessor

    def topic(self, topic: str) -> TopicView:
        """Return one topic's view."""
        self.look()
        return self._known(topic).view

    def assessor(self, assessor: str) -> AssessorStatus:
        """Return one assessor's status."""
        for each in self.look().assessors:
            if each.assessor == assessor:
                return each
        raise NotFound(f"The campaign has no assessor '{assessor}'.", remedy="Check the name.")

    def state_of(self, topic: str, work: Callable[[TopicState], T]) -> T:
        """Return the result of work on a topic's live state, as of the last look."""
        return self.campaign.live.with_state(topic, self._known(topic).view.position, work)

    def kept_levels(self, topic: str) -> tuple[tuple[str, ...], ...]:
        """Return the levels of a topic that become grades, as of the last look."""
        return self._known(topic).view.kept

    def text(self, topic: str) -> Topic:
        """Return a topic's question with all that belongs to it."""
        self._known(topic)
        found = self.campaign.read(lambda tx: holdings.topic(tx, topic))
        if found is None:
            raise NotFound(f"The campaign has no topic '{topic}'.", remedy="Check its name.")
        return found

    def judged_by(self, topic: str) -> Mapping[str, AssessorTally]:
        """Return the per-assessor counts of a topic."""
        return self._known(topic).assessors

    def _known(self, topic: str) -> _Topic:
        known = self._topics.get(topic)
        if known is None:
            raise NotFound(f"The campaign has no topic '{topic}'.", remedy="Check its name.")
        return known

    # ---- reading

    def _refresh(self, signs: CampaignSigns) -> CampaignStatus:
        campaign = self.campaign
        campaign.live.drop_outdated(signs.heads.values())
        if not signs.heads.keys() <= self._captions.keys():
            self._captions = campaign.read(stored.captions)
        if len(self._better) != signs.test_pairs:
            self._better = campaign.read(better_items)
            self._topics.forget()
            self._tallies.clear()
            self._counted.clear()
        leased, parked, state = signs.out.leased, signs.out.parked, signs.state
        stamps: dict[str, Hashable] = {topic: (head, state) for topic, head in signs.heads.items()}
        for name in stamps.keys() & (leased.keys() | parked.keys()):
            out = (tuple(leased.get(name, ())), frozenset(parked.get(name, ())))
            stamps[name] = (signs.heads[name], state, *out)
        changes = self._topics.refresh(stamps, lambda stale: self._read_topics(stale, signs))
        self._work_out()
        for before, after in changes.values():
            for sign, topic in ((-1, before), (1, after)):
                for assessor, tally in (topic.assessors if topic else {}).items():
                    self._tallies.setdefault(assessor, AssessorTally()).add(tally, sign)
        return campaign_status(
            campaign,
            state=signs.state,
            topics=[self._topics[topic].view for topic in signs.heads],
            tallies=self._tallies,
            enrolled=signs.enrolled,
            pay=campaign.read(rewards_earned),
            money=lambda usable: self._money_of(signs, usable),
            test_pairs=signs.test_pairs,
            active=campaign.read(active_assessors),
            held_back=campaign.held_back(),
            version=(self._last.version + 1) if self._last else 1,
        )

    def _read_topics(self, topics: Sequence[str], signs: CampaignSigns) -> dict[str, _Topic]:
        grading = self.campaign.settings.stage == "grading"
        graded = self._graded(topics) if grading else {}
        known = {topic: each for topic in topics if (each := self._unchanged(topic, signs)) is not None}
        new = {topic for topic in topics if topic not in self._topics}
        if len(new) > FOLLOWED_AT_ONCE:
            known |= self._summarised(new, signs)
        result: dict[str, _Topic] = {}
        for number, topic in enumerate(topics, 1):
            own = known.get(topic)
            items = graded.get(topic, ()) if grading else None
            if own is None or needs_strategy(own, topic, signs.out, grading):
                result[topic] = self._follow(topic, signs, items, own)
            else:
                result[topic] = self._topic(topic, signs, items, own)
            self._topics_read = max(self._topics_read, number)
        return result

    def _graded(self, topics: Sequence[str]) -> dict[str, list[str]]:
        only = topics[0] if len(topics) == 1 else None
        return self.campaign.read(lambda tx: graded_items(tx, only))

    def _unchanged(self, topic: str, signs: CampaignSigns) -> TopicSummary | None:
        """Return what is known of a topic whose log and pool are as they were: only its leases have changed."""
        before, head = self._topics.get(topic), signs.heads[topic]
        if before is None or before.view.pool_version != head.pool_version:
            return None
        return before.known if before.known.position == head.next_seq - 1 else None

    def _summarised(self, topics: Collection[str], signs: CampaignSigns) -> dict[str, TopicSummary]:
        """Return the summaries of topics that were not seen before; those that had to be worked out are stored."""
        rows: list[Summary] = []

        def work(tx: Reading) -> dict[str, TopicSummary]:
            rows.clear()
            found: dict[str, TopicSummary] = {}
            later = summaries.Turns(0)  # results that take long wait for their turn
            for number, each in enumerate(summaries.read(tx, self.campaign, rows.append, topics, later), 1):
                self._topics_read = max(self._topics_read, number)
                head = signs.heads.get(each.topic)
                # A phase that the strategy has closed is logged by following the topic.
                if head is not None and head.next_seq - 1 == each.known.position and not each.known.unlogged:
                    found[each.topic] = each.known
            return found

        found = self.campaign.read(work)
        summaries.keep(self.campaign, rows)
        return found

    def _topic(
        self,
        topic: str,
        signs: CampaignSigns,
        graded: Sequence[str] | None,
        known: TopicSummary,
        read: ReadTopic | None = None,
    ) -> _Topic:
        if known.stated:
            self._outdated.pop(topic, None)
        else:
            self._outdated.setdefault(topic)
            before = self._topics.get(topic)
            if before is not None and before.view.pool_version == signs.heads[topic].pool_version:
                known = with_result_of(known, before.known, stated=False)
        view = topic_view(
            self.campaign.settings,
            topic,
            known,
            self._captions[topic],
            state=signs.state,
            out=signs.out,
            read=read,
            graded=graded,
            pool_version=signs.heads[topic].pool_version,
        )
        return _Topic(view, known)

    def _follow(
        self, topic: str, signs: CampaignSigns, graded: Sequence[str] | None, known: TopicSummary | None
    ) -> _Topic:
        """Bring a topic's live state up to date, and ask its strategy; count the lines that are new."""

        def work(state: TopicState) -> _Topic:
            own, usable = known, 0 if known is None else known.judgments
            if own is None or own.position != state.position:
                tally = self._tally(topic, state)
                usable = tally.usable
                own = None
            read = ReadTopic(topic, state.strategy, usable, tuple(state.held()), state.position)
            if own is None:
                own = summarise(read, tally)
                own = replace(own, assessors={name: replace(each) for name, each in own.assessors.items()})
            return self._topic(topic, signs, graded, own, read if graded is None else None)

        return self.campaign.live.with_state(topic, signs.heads[topic].next_seq - 1, work)

    def _tally(self, topic: str, state: TopicState) -> TopicTally:
        """Return the counts of a topic's log up to its state, continued from the last time where that is known."""
        counted = self._counted.pop(topic, None)
        after = 0 if counted is None else counted.position
        lines = self.campaign.read(lambda tx: log.new_lines(tx, topic, after, state.position))
        if counted is None or any(line.event in FORCES_REPLAY for line in lines):
            if after:
                lines = self.campaign.read(lambda tx: log.new_lines(tx, topic, 0, state.position))
            counted = _Counted(TopicTally(state.counts, self._better), 0)
        for line in lines:
            counted.tally.add(line)
        counted.position = state.position
        self._counted[topic] = counted
        total = sum(each.position for each in self._counted.values())
        while total > TALLIED_AT_MOST and len(self._counted) > 1:
            total -= self._counted.pop(next(iter(self._counted))).position
        return counted.tally.finish()

    # ---- results that take long

    def _has_results(self) -> bool:
        """Whether a look would show further results, or work them out."""
        return bool(self._worked_out) or (bool(self._outdated) and not self._is_working())

    def _is_working(self) -> bool:
        return self._worker is not None and self._worker.is_alive()

    def _work_out(self) -> None:
        """Take the results that are there, and work out the others, those that have waited longest first."""
        for topic in [topic for topic in self._outdated if topic not in self._topics]:
            del self._outdated[topic]
        worked_out, self._worked_out = self._worked_out, {}
        if not self._outdated:
            return
        first = [topic for topic in self._outdated if topic not in worked_out][:_LOOKED_UP]
        there = worked_out | self.campaign.read(lambda tx: summaries.stored_results(tx, self.campaign, first))
        for topic, found in there.items():
            if topic in self._outdated and found.position == self._topics[topic].known.position:
                self._take_result(topic, with_result_of(self._topics[topic].known, found, stated=True))
        items = 0
        for topic in [*self._outdated]:
            items += self._topics[topic].view.status.items
            if self.items_at_once is not None and items > self.items_at_once:
                break
            read = self._copied(topic)
            if read is not None:
                self._take_result(topic, with_result(self._topics[topic].known, read))
        self._batches += 1
        if self._outdated and self.items_at_once is not None and not self._is_working():
            self._worker = start_in_background(self._work_out_in_thread)

    def _work_out_in_thread(self) -> None:
        """Work out the results of all topics that wait for them, and hand them to the looks every few seconds."""
        done: dict[str, int] = {}  # up to which place
        found: dict[str, TopicSummary] = {}
        handed = self.clock()
        while (following := self._next_to_work_out(done)) is not None:
            known, read = following
            done[read.topic] = read.position
            give_way()
            try:
                found[read.topic] = with_result(known, read)
            except DuelpoolError as error:
                self._trouble = error  # the next look raises it
                break
            if self.clock() >= handed + TAKEN_EVERY:
                self._hand_over(found)
                found, handed = {}, self.clock()
        self._hand_over(found)

    def _next_to_work_out(self, done: Mapping[str, int]) -> tuple[TopicSummary, ReadTopic] | None:
        with locked(self._lock):
            for topic in self._outdated:
                known = self._topics.get(topic)
                if known is None or done.get(topic) == known.known.position:
                    continue
                if (read := self._copied(topic)) is not None:
                    return known.known, read
            return None

    def _hand_over(self, found: Mapping[str, TopicSummary]) -> None:
        with locked(self._lock):
            self._worked_out |= found
            self._batches += bool(found)

    def _copied(self, topic: str) -> ReadTopic | None:
        """Return a topic with a copy of its strategy, so that no question waits for its result; None if it moved on."""
        known = self._topics[topic].known

        def work(state: TopicState) -> ReadTopic | None:
            if state.position != known.position:
                return None
            return ReadTopic(topic, copy.deepcopy(state.strategy), known.judgments, (), state.position)

        return self.campaign.live.with_state(topic, known.position, work)

    def _take_result(self, topic: str, known: TopicSummary) -> None:
        grading = self.campaign.settings.stage == "grading"
        view = view_with_result(self._topics[topic].view, known, grading)
        self._topics.replace(topic, _Topic(view, known))
        del self._outdated[topic]

    def _money_of(self, signs: CampaignSigns, usable: int) -> MoneyStatus:
        """Return what the campaign cost; the seconds behind the pay are added up again only after new pay."""
        key = (signs.ledger, signs.open)
        if self._money is None or self._money[0] != key:
            now = self.campaign.read(lambda tx: money_status(tx, self.campaign.settings, usable))
            self._money = (key, now)
            return now
        before = self._money[1]
        return replace(before, per_usable_judgment=before.spent / usable if usable and before.spent else None)
