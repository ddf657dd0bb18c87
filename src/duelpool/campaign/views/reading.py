"""Reading a campaign's log from end to end, a few thousand lines in memory at a time; nothing is written.

`LiveTopics` keeps a topic's state for a server. Exports, reports and commands read the log here, and hold only a
strategy and sets of integers in memory.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlalchemy import select

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log.newcomers import is_in_challenge
from duelpool.campaign.log.replay import LogReplay, read_counted_lines, usable
from duelpool.deciders import AnswerVotes, part_class
from duelpool.errors import BadParameter
from duelpool.records import Judgment, Levels
from duelpool.store import Reading, holdings, log, schema
from duelpool.strategies import Strategy

Values: TypeAlias = Literal["auto", "best", "top", "levels"]
"""What qrels hold: the best items, the top k, or every level; "auto" follows the strategy's goal."""


@dataclass(frozen=True, slots=True)
class ReadTopic:
    """A topic after a replay of its log: the strategy, how many judgments count, and those that are held back.

    `unscored` judgments count, but name no phase of a strategy that scores phase by phase.
    """

    topic: str
    strategy: Strategy
    usable: int
    held: tuple[Judgment, ...]
    position: int
    unscored: int = 0

    @property
    def judged(self) -> bool:
        """Whether the result means anything: judgments tell items apart, or all that were needed are there.

        Without that all items share the first level, and none of them is best.
        """
        if self.usable and self.strategy.done:
            return True
        levels = self.strategy.result().levels
        if sum(map(len, levels)) < 2:
            return self.strategy.done
        return self.usable > 0 and len(levels) > 1

    @property
    def planned_votes(self) -> dict[tuple[str, str], int]:
        """How many votes each two systems have in all, those that aren't given yet included; none for best items."""
        return self.strategy.planned() if isinstance(self.strategy, AnswerVotes) else {}


def kept_levels(
    read: ReadTopic, values: Values = "auto", k: int | None = None
) -> tuple[tuple[str, ...], ...]:
    """Return the levels of a topic that become grades: the best, the top k or all, by the strategy's goal.

    There are none while nothing tells the items apart.
    """
    return chosen_levels(read.strategy.result().levels, read.strategy, values, k) if read.judged else ()


def chosen_levels(
    levels: tuple[tuple[str, ...], ...], strategy: Strategy, values: Values, k: int | None
) -> tuple[tuple[str, ...], ...]:
    """Return the levels of a judged topic that become grades, by its strategy's goal or as asked for."""
    goal = getattr(strategy, "goal", "best")
    wanted = {"best": "best", "top-k": "top"}.get(goal, "levels") if values == "auto" else values
    if wanted == "best":
        return levels[:1]
    if wanted == "levels":
        return levels
    depth = k if k is not None else getattr(strategy, "k", None)
    if depth is None:
        raise BadParameter("The top needs a size.", remedy="Give k, with --top.")
    return Levels(levels).top(int(depth))


def read_topic(
    tx: Reading,
    campaign: Campaign,
    topic: str,
    *,
    until: float | None = None,
    on_judgment: Callable[[Judgment], None] | None = None,
    visit: Callable[[log.Line], None] | None = None,
) -> ReadTopic:
    """Replay a topic's log without keeping its lines: all of it, or that `until` a time.

    `visit` gets every line, `on_judgment` every judgment that counts, in the order of the log.
    """
    counts = read_counted_lines(tx, topic, until)
    strategy = campaign.live.new_strategy(tx, topic)
    by_phase = not strategy.pools_judgments
    replay = LogReplay(counts)
    count = position = 0
    phases: Counter[str] = Counter()
    for line in log.read_lines(tx, topic):
        if until is not None and line.time > until:
            continue
        if visit is not None:
            visit(line)
        counts_here = usable(line, counts)
        if counts_here and line.judgment is not None:
            count += 1
            if by_phase:
                phases[line.judgment.phase] += 1
            if on_judgment is not None:
                on_judgment(line.judgment)
        position = line.seq
        for event in replay.feed(line, counts_here):
            strategy.tell(event)
    unscored = _without_phase(strategy, phases) if by_phase else 0
    return ReadTopic(topic, strategy, count, tuple(replay.held()), position, unscored)


def _without_phase(strategy: Strategy, phases: Counter[str]) -> int:
    """Return how many judgments name no phase that the strategy has closed or open."""
    own = {closing.phase for closing in strategy.closed} | {getattr(strategy, "phase", "")} - {""}
    return sum(count for phase, count in phases.items() if phase not in own and not is_in_challenge(phase))


def unscored_topics(tx: Reading, campaign: Campaign) -> list[str]:
    """Return the topics of which no judgment can be scored: none names a phase, and the strategy has phases."""
    specs = {campaign.settings.strategy, *holdings.topic_strategies(tx).values()}
    if all(part_class(campaign.live.goal, spec).pools_judgments for spec in specs):
        return []
    columns = schema.log.c
    closed = tx.connection.execute(
        select(columns.topic)
        .where(columns.campaign == tx.campaign, columns.event == log.PHASE_CLOSED)
        .distinct()
    )
    has_phases = set(closed.scalars())
    reads = (read_topic(tx, campaign, topic) for topic in topics_of(tx) if topic not in has_phases)
    return [read.topic for read in reads if read.usable and read.unscored == read.usable]


def topics_of(tx: Reading) -> list[str]:
    """Return the open topics in their order."""
    columns = schema.topic.c
    rows = tx.connection.execute(
        select(columns.id, columns.position).where(columns.campaign == tx.campaign, columns.state == "open")
    )
    return [row.id for row in sorted(rows, key=lambda row: (row.position, row.id))]
