"""Summaries of topics in the store: read where they hold, worked out from the log where they don't, and written down.

A stored summary holds when its tag equals the topic's head: the same last line, pool, number of test pairs and way of
counting (its form, this release, the strategy with its version, and the settings that can't change). Nothing else
decides, so that a process that is killed, or two that write at once, can't leave a wrong one. Summaries are never
written in the transaction of an answer.
"""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log import summary_rows as stored
from duelpool.campaign.log.replay import counted_lines, read_counted_lines
from duelpool.campaign.log.summary_forms import Forms
from duelpool.campaign.log.summary_rows import PoolCount, Summary, Tag, TopicHead
from duelpool.campaign.views.reading import ReadTopic, read_topic
from duelpool.campaign.views.tally import TopicTally
from duelpool.campaign.views.topic_summary import TopicSummary, summarise
from duelpool.deciders import part_class
from duelpool.store import Reading, StoreError, holdings
from duelpool.store.holdings import ItemRow
from duelpool.strategies.parameters import parameters_of

WORTH_KEEPING = 2000
"""Lines of the log: what took fewer to work out isn't written down by a command that only reads."""
_WRITTEN_AT_ONCE = 50


class Summarised(NamedTuple):
    """A topic's summary; `read` is the replayed topic where its log was read."""

    topic: str
    known: TopicSummary
    read: ReadTopic | None = None


def read(
    tx: Reading,
    campaign: Campaign,
    kept: Callable[[Summary], None] | None = None,
    only: Collection[str] | None = None,
) -> Iterator[Summarised]:
    """Yield the summary of every open topic, in their order; `kept` gets those that were worked out from the log."""
    forms = Forms(campaign.settings)
    bodies = {each.topic: each for each in stored.read(tx)}
    fresh = _FreshTopics(tx, campaign)
    for head in stored.heads(tx).values():
        if only is not None and head.topic not in only:
            continue
        known = fresh.summary(head) or _held(bodies.pop(head.topic, None), forms.tag(head))
        if known is not None:
            yield Summarised(head.topic, known)
            continue
        own = summarised(tx, campaign, head.topic)
        if kept is not None:
            kept(_row(own, forms.tag(head)))
        yield own


def recount(tx: Reading, campaign: Campaign) -> Iterator[Summarised]:
    """Yield the summary of every open topic, worked out from its log: what the stored ones are held to."""
    for topic in stored.heads(tx):
        yield summarised(tx, campaign, topic)


def summarised(tx: Reading, campaign: Campaign, topic: str) -> Summarised:
    """Work out one topic's summary from its log."""
    better = {name: pair.better for name, pair in holdings.test_pairs(tx).items()}
    tally = TopicTally(read_counted_lines(tx, topic), better)
    own = read_topic(tx, campaign, topic, visit=tally.add)
    return Summarised(topic, summarise(own, tally.finish()), own)


def replay(tx: Reading, campaign: Campaign, topic: str) -> ReadTopic:
    """Replay a topic's log, where its strategy must be asked."""
    return read_topic(tx, campaign, topic)


def _row(own: Summarised, tag: Tag) -> Summary:
    return Summary(own.topic, tag, own.known.done, own.known.as_text())


def _held(found: Summary | None, tag: Tag) -> TopicSummary | None:
    """Return a stored summary if it holds for this tag; one that can't be read is as good as none."""
    if found is None or found.tag != tag:
        return None
    with suppress(ValueError, TypeError, KeyError):
        return TopicSummary.from_text(found.body)
    return None


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
    without: Collection[str] = (),
    progress: Callable[[int], None] | None = None,
) -> int:
    """Work out the summaries that are missing or old, and store them; return how many.

    With `lines_at_most`, it ends once so many lines were read. Several processes share the work: each takes the
    topics in an order of its own, and leaves out what another has stored meanwhile.
    """
    forms = Forms(campaign.settings)
    topics = [head.topic for head in campaign.read(lambda tx: _stale(tx, campaign, forms))]
    topics = [topic for topic in topics if topic not in without]
    random.Random().shuffle(topics)
    lines = written = 0
    while topics and (lines_at_most is None or lines < lines_at_most):
        batch, topics = topics[:_WRITTEN_AT_ONCE], topics[_WRITTEN_AT_ONCE:]
        most = None if lines_at_most is None else lines_at_most - lines
        rows = campaign.read(lambda tx: _worked_out(tx, campaign, forms, batch, most))  # noqa: B023 (run at once)
        if rows:
            campaign.write(lambda tx: stored.write(tx, rows))  # noqa: B023 (run at once)
        written += len(rows)
        lines += sum(each.tag.position for each in rows)
        if progress is not None:
            progress(len(batch))
    return written


def keep(campaign: Campaign, rows: Collection[Summary]) -> None:
    """Store summaries that a reader has worked out, if the store can be written now and they took a while."""
    if sum(each.tag.position for each in rows) >= WORTH_KEEPING:
        with suppress(StoreError, OSError):
            campaign.write(lambda tx: stored.write(tx, rows))


def _stale(tx: Reading, campaign: Campaign, forms: Forms) -> list[TopicHead]:
    tags = stored.tags(tx)
    fresh = _FreshTopics(tx, campaign)
    return [
        head
        for head in stored.heads(tx).values()
        if (tags.get(head.topic) or (None,))[0] != forms.tag(head) and fresh.summary(head) is None
    ]


def keep_up(campaign: Campaign, progress: Callable[[int], None] | None = None) -> None:
    """Store the summaries that are missing or old, if they would take a while and the store can be written now."""
    if campaign.read(lambda tx: stale_lines(tx, campaign)) >= WORTH_KEEPING:
        with suppress(StoreError, OSError):
            refresh(campaign, progress=progress)


def stale_lines(tx: Reading, campaign: Campaign) -> int:
    """Return how many lines must be read where no summary holds; a topic without lines counts as ten."""
    return sum(max(head.position, 10) for head in _stale(tx, campaign, Forms(campaign.settings)))


def _worked_out(
    tx: Reading, campaign: Campaign, forms: Forms, topics: Sequence[str], lines_at_most: int | None
) -> list[Summary]:
    """Return the summaries of some topics with the tags of this snapshot, without those that were stored meanwhile."""
    heads, tags = stored.heads(tx, topics), stored.tags(tx, topics)
    stale = [head for head in heads.values() if (tags.get(head.topic) or (None,))[0] != forms.tag(head)]
    pools = holdings.items_by_topic(tx, [head.topic for head in stale if not head.position])
    rows: list[Summary] = []
    lines = 0
    for head in stale:
        if lines_at_most is not None and lines >= lines_at_most:
            break
        own = _begun(campaign, head, pools[head.topic]) if not head.position else None
        rows.append(_row(own or summarised(tx, campaign, head.topic), forms.tag(head)))
        lines += head.position
    return rows


def _begun(campaign: Campaign, head: TopicHead, items: Sequence[ItemRow]) -> Summarised:
    """Return the summary of a topic without lines, from what was read of it."""
    strategy = campaign.live.beginning(head.topic, head.strategy, items)
    own = ReadTopic(head.topic, strategy, 0, (), 0)
    return Summarised(head.topic, summarise(own, TopicTally(counted_lines(()), {})), own)


# ---- checking


def check_summaries(tx: Reading, campaign: Campaign) -> list[str]:
    """Return a sentence for every stored summary that claims to hold and contradicts the log."""
    forms = Forms(campaign.settings)
    heads = stored.heads(tx)
    wrong: list[str] = []
    for found in list(stored.read(tx)):
        head = heads.get(found.topic)
        if head is None or found.tag != forms.tag(head):
            continue  # old: nobody reads it
        right = summarised(tx, campaign, found.topic).known
        if found.done != right.done or _held(found, found.tag) != right:
            wrong.append(f"The summary of topic '{found.topic}' contradicts its log.")
    return wrong
