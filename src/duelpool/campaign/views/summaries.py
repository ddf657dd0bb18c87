"""Summaries of topics in the store: read where they hold, worked out from the log where they don't, and written down.

A stored summary holds when its tag equals the topic's head: the same last line, pool, number of test pairs and way of
counting (its form, this release, the strategy with its version, and the settings that can't change). Nothing else
decides, so that a process that is killed, or two that write at once, can't leave a wrong one. Summaries are never
written in the transaction of an answer.

The result of some strategies takes long (`is_slow`). A summary may be stored without it, under a tag that says so;
`Turns` say how many of them may be worked out now.
"""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from duelpool.background import give_way
from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log import summary_rows as stored
from duelpool.campaign.log.replay import counted_lines, read_counted_lines
from duelpool.campaign.log.summary_forms import Forms
from duelpool.campaign.log.summary_rows import PoolCount, Summary, TopicHead
from duelpool.campaign.views.reading import ReadTopic, read_topic
from duelpool.campaign.views.tally import TopicTally
from duelpool.campaign.views.topic_summary import (
    TopicSummary,
    summarise,
    takes_long,
    with_result,
    with_result_of,
)
from duelpool.deciders import part_class
from duelpool.store import Reading, StoreError, holdings
from duelpool.store.holdings import ItemRow
from duelpool.strategies.base import is_slow
from duelpool.strategies.parameters import parameters_of

WORTH_KEEPING = 2000
"""Lines of the log: what took fewer to work out isn't written down by a command that only reads."""
_WRITTEN_AT_ONCE = 50
_SLOW_AT_ONCE = 5
RESULTS_CHECKED = 50
"""Results that take long and are worked out again when summaries are checked, at most."""


class Turns:
    """How many results that take long may still be worked out; None: all of them."""

    def __init__(self, left: int | None = None) -> None:
        self.left = left

    def take(self) -> bool:
        """Take a turn, if there is one left."""
        if self.left is None:
            return True
        self.left, had = max(0, self.left - 1), self.left
        return had > 0


class Summarised(NamedTuple):
    """A topic's summary; `read` is the replayed topic where its log was read."""

    topic: str
    known: TopicSummary
    read: ReadTopic | None = None

    def stated(self, turns: Turns) -> "Summarised":
        """Return the summary with its result, if there is a turn for it."""
        if self.known.stated or self.read is None or not turns.take():
            return self
        return self._replace(known=with_result(self.known, self.read))


def read(
    tx: Reading,
    campaign: Campaign,
    kept: Callable[[Summary], None] | None = None,
    only: Collection[str] | None = None,
    turns: Turns | None = None,
) -> Iterator[Summarised]:
    """Yield the summary of every open topic, in their order; `kept` gets those that were worked out from the log.

    Without a turn left, a result that takes long isn't worked out: the summary isn't `stated`.
    """
    forms = Forms(campaign.settings)
    bodies = {each.topic: each for each in stored.read(tx)}
    fresh = _FreshTopics(tx, campaign)
    turns = turns or Turns()
    for head in stored.heads(tx).values():
        if only is not None and head.topic not in only:
            continue
        known = fresh.summary(head) or _held(bodies.pop(head.topic, None), forms, head)
        if known is not None and (known.stated or turns.left == 0):
            yield Summarised(head.topic, known)
            continue
        own = summarised(tx, campaign, head.topic, turns)
        if kept is not None:
            kept(_row(own, forms, head))
        yield own


def recount(tx: Reading, campaign: Campaign) -> Iterator[Summarised]:
    """Yield the summary of every open topic, worked out from its log: what the stored ones are held to."""
    for topic in stored.heads(tx):
        yield summarised(tx, campaign, topic)


def summarised(tx: Reading, campaign: Campaign, topic: str, turns: Turns | None = None) -> Summarised:
    """Work out one topic's summary from its log; with its result, if there is a turn for it."""
    better = {name: pair.better for name, pair in holdings.test_pairs(tx).items()}
    tally = TopicTally(read_counted_lines(tx, topic), better)
    own = read_topic(tx, campaign, topic, visit=tally.add)
    return Summarised(topic, summarise(own, tally.finish()), own).stated(turns or Turns())


def replay(tx: Reading, campaign: Campaign, topic: str) -> ReadTopic:
    """Replay a topic's log, where its strategy must be asked."""
    return read_topic(tx, campaign, topic)


def _row(own: Summarised, forms: Forms, head: TopicHead) -> Summary:
    known = own.known
    slow = known.stated and own.read is not None and takes_long(own.read)
    return Summary(own.topic, forms.tag(head, known.stated), known.done, known.as_text(), slow)


def _held(found: Summary | None, forms: Forms, head: TopicHead) -> TopicSummary | None:
    """Return a stored summary if it holds for this topic now; one that can't be read is as good as none."""
    if found is None or not forms.holds(found.tag, head):
        return None
    with suppress(ValueError, TypeError, KeyError):
        return TopicSummary.from_text(found.body)
    return None


def stored_results(tx: Reading, campaign: Campaign, topics: Sequence[str]) -> dict[str, TopicSummary]:
    """Return the stored summaries of these topics that hold now and have their result."""
    forms = Forms(campaign.settings)
    heads, tags = stored.heads(tx, topics), stored.tags(tx, topics)
    wanted = [topic for topic, head in heads.items() if topic in tags and tags[topic][0] == forms.tag(head)]
    found = {each.topic: _held(each, forms, heads[each.topic]) for each in stored.read(tx, wanted)}
    return {topic: known for topic, known in found.items() if known is not None}


# ---- topics without a line


class _FreshTopics:
    """Summaries of topics whose log is empty: most strategies begin alike with every pool of one size."""

    def __init__(self, tx: Reading, campaign: Campaign) -> None:
        self._tx = tx
        self._campaign = campaign
        self._sizes: dict[str, PoolCount] | None = None
        self._known: dict[tuple[str, int], TopicSummary] = {}

    def summary(self, head: TopicHead) -> TopicSummary | None:
        """Return the summary of a topic without lines; None where it has lines, or is like no other topic."""
        if head.position or self._campaign.settings.plan:
            return None
        spec = head.strategy or self._campaign.settings.strategy
        strategy = part_class(self._campaign.live.goal, spec)
        if strategy.first_questions_vary:
            return None
        if self._sizes is None:
            self._sizes = stored.pool_sizes(self._tx)
        size = self._sizes.get(head.topic, PoolCount(0, 0))
        if size.priors and "prior" in parameters_of(strategy):
            return None
        key = (spec, size.items)
        if key not in self._known:
            self._known[key] = summarised(self._tx, self._campaign, head.topic).known
        known = self._known[key]
        return None if known.levels else known  # a pool of one item has a best one


# ---- writing


def refresh(
    campaign: Campaign,
    *,
    lines_at_most: int | None = None,
    turns: Turns | None = None,
    without: Collection[str] = (),
    progress: Callable[[int], None] | None = None,
) -> int:
    """Work out the summaries that are missing or old, and store them; return how many.

    With `lines_at_most`, it ends once so many lines were read; with `turns`, so many results that take long are worked
    out. Several processes share the work: each takes the topics in an order of its own, and leaves out what another
    has stored meanwhile.
    """
    forms = Forms(campaign.settings)
    turns = turns or Turns()
    stale, lacking = campaign.read(
        lambda tx: ([head.topic for head in _stale(tx, campaign, forms)], {*without_result(tx, campaign)})
    )
    topics = [topic for topic in (*stale, *lacking) if topic not in without]
    random.Random().shuffle(topics)
    slow = has_slow_results(campaign)
    lines = written = 0
    while lines_at_most is None or lines < lines_at_most:
        if turns.left == 0:
            topics = [topic for topic in topics if topic not in lacking]
            slow, lacking = False, set()
        if not topics:
            break
        give_way()
        most = min(_SLOW_AT_ONCE, turns.left or _SLOW_AT_ONCE) if slow else _WRITTEN_AT_ONCE
        batch, topics = topics[:most], topics[most:]
        left = None if lines_at_most is None else lines_at_most - lines
        found = campaign.read(lambda tx: _worked_out(tx, campaign, forms, batch, left, turns))  # noqa: B023 (run at once)
        # A result is worked out here, where no transaction waits for it.
        rows = [_row(own.stated(turns), forms, head) for head, own in found]
        if rows:
            campaign.write(lambda tx: stored.write(tx, rows))  # noqa: B023 (run at once)
        written += len(rows)
        lines += sum(each.tag.position for each in rows)
        if progress is not None:
            progress(len(batch))
    return written


def keep(campaign: Campaign, rows: Collection[Summary]) -> None:
    """Store summaries that a reader has worked out, if the store can be written now and they took a while."""
    if any(each.slow for each in rows) or sum(each.tag.position for each in rows) >= WORTH_KEEPING:
        with suppress(StoreError, OSError):
            campaign.write(lambda tx: stored.write(tx, rows))


def _stale(tx: Reading, campaign: Campaign, forms: Forms) -> list[TopicHead]:
    tags = stored.tags(tx)
    fresh = _FreshTopics(tx, campaign)
    return [
        head
        for head in stored.heads(tx).values()
        if not forms.holds((tags.get(head.topic) or (None,))[0], head) and fresh.summary(head) is None
    ]


def without_result(tx: Reading, campaign: Campaign) -> list[str]:
    """Return the topics whose stored summary holds, and lacks its result."""
    forms = Forms(campaign.settings)
    tags = stored.tags(tx)
    heads = stored.heads(tx).values()
    return [
        each.topic for each in heads if (tags.get(each.topic) or (None,))[0] == forms.tag(each, stated=False)
    ]


def has_slow_results(campaign: Campaign) -> bool:
    """Whether the strategy of any topic takes long to give its result."""
    if campaign.settings.plan:
        return False
    specs = {campaign.settings.strategy, *campaign.read(holdings.topic_strategies).values()}
    return any(is_slow(part_class(campaign.live.goal, spec)) for spec in specs)


def keep_up(campaign: Campaign, progress: Callable[[int], None] | None = None) -> None:
    """Store the summaries that are missing or old, if they would take a while and the store can be written now.

    Results that take long are left to `work_out`.
    """
    if campaign.read(lambda tx: stale_lines(tx, campaign)) >= WORTH_KEEPING:
        with suppress(StoreError, OSError):
            refresh(campaign, turns=Turns(0), progress=progress)


def work_out(campaign: Campaign, turns: Turns | None = None) -> None:
    """Work out and store the results that take long, if there are any and the store can be written now.

    Whoever needs the results of all topics in one transaction calls this first: the transaction then finds them.
    """
    if has_slow_results(campaign):
        with suppress(StoreError, OSError):
            refresh(campaign, turns=turns)


def stale_lines(tx: Reading, campaign: Campaign) -> int:
    """Return how many lines must be read where no summary holds; a topic without lines counts as ten."""
    return sum(max(head.position, 10) for head in _stale(tx, campaign, Forms(campaign.settings)))


def _worked_out(  # noqa: PLR0917
    tx: Reading,
    campaign: Campaign,
    forms: Forms,
    topics: Sequence[str],
    lines_at_most: int | None,
    turns: Turns,
) -> list[tuple[TopicHead, Summarised]]:
    """Return the summaries of some topics as of this snapshot, without those that were stored meanwhile.

    Results that take long are still to be worked out.
    """
    heads, tags = stored.heads(tx, topics), stored.tags(tx, topics)
    known = {topic: tag for topic, (tag, _) in tags.items()}
    stale = [
        head
        for head in heads.values()
        if known.get(head.topic) != forms.tag(head)
        and (turns.left != 0 or known.get(head.topic) != forms.tag(head, stated=False))
    ]
    pools = holdings.items_by_topic(tx, [head.topic for head in stale if not head.position])
    found: list[tuple[TopicHead, Summarised]] = []
    lines = 0
    for head in stale:
        if lines_at_most is not None and lines >= lines_at_most:
            break
        give_way()
        begun = not head.position and not campaign.live.goal.of_systems  # systems' answers are read by topic
        own = _begun(campaign, head, pools[head.topic]) if begun else None
        found.append((head, own or summarised(tx, campaign, head.topic, Turns(0))))
        lines += head.position
    return found


def _begun(campaign: Campaign, head: TopicHead, items: Sequence[ItemRow]) -> Summarised:
    """Return the summary of a topic without lines, from what was read of it."""
    strategy = campaign.live.beginning(head.topic, head.strategy, items)
    own = ReadTopic(head.topic, strategy, 0, (), 0)
    return Summarised(head.topic, summarise(own, TopicTally(counted_lines(()), {})), own)


# ---- checking


def check_summaries(tx: Reading, campaign: Campaign) -> list[str]:
    """Return a sentence for every stored summary that claims to hold and contradicts the log.

    Of the results that take long, the first fifty are worked out again.
    """
    forms = Forms(campaign.settings)
    heads = stored.heads(tx)
    turns = Turns(RESULTS_CHECKED)
    wrong: list[str] = []
    for found in list(stored.read(tx)):
        head = heads.get(found.topic)
        if head is None or not forms.holds(found.tag, head):
            continue  # old: nobody reads it
        with_its_result = found.tag == forms.tag(head)
        own = summarised(tx, campaign, found.topic, turns if with_its_result else Turns(0)).known
        known = _held(found, forms, head)
        if known is not None and with_its_result and known.stated and not own.stated:
            own = with_result_of(own, known, stated=True)  # no turn was left for it
        if found.done != own.done or known != own:
            wrong.append(f"The summary of topic '{found.topic}' contradicts its log.")
    return wrong
