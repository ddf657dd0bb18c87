"""What a topic's log gives at one place of it: counts, phases and levels, without the leases of the moment.

It depends on the log, the pool, the test pairs and the fixed settings alone, so it can be stored; see `summaries`.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from itertools import chain
from typing import Any

from duelpool.campaign.log.newcomers import size_of
from duelpool.campaign.views.reading import ReadTopic, kept_levels
from duelpool.campaign.views.tally import AssessorTally, TopicTally
from duelpool.deciders import ALL, TopicWorth, is_staged, worth_of
from duelpool.records import Certainty, Proposal
from duelpool.store import log
from duelpool.strategies.base import ask_lazily, is_slow


@dataclass(frozen=True, slots=True)
class Closing:
    """A phase that ended: when, and with which items."""

    phase: str
    seq: int
    time: str
    survivors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic by its log alone: `open`, `phase` and `expected` are those of a topic that nobody holds a question of.

    `kept` is how many of the levels become grades. `unscored` judgments count, but name no phase of a strategy that
    scores phase by phase. `unlogged`: the strategy has closed a phase that the log doesn't name yet. The result
    (`judged`, `certainty`, `levels`, `kept`) is there when it is `stated`; one that takes long is worked out later.
    `worth` is what the topic is still worth, where judgments aren't spent evenly.
    """

    position: int = 0
    judgments: int = 0
    unscored: int = 0
    items: int = 0
    open: int = 0
    held: int = 0
    phase: str = ""
    by_strategy: int = 0  # the judgments that the strategy expects in all
    done: bool = False
    stated: bool = True
    judged: bool = False
    certainty: Certainty | None = None
    levels: tuple[tuple[str, ...], ...] = ()
    kept: int = 0
    closings: tuple[Closing, ...] = ()
    unlogged: bool = False
    grades: Mapping[str, int] = field(default_factory=dict)
    assessors: Mapping[str, AssessorTally] = field(default_factory=dict)
    worth: TopicWorth | None = None

    def as_text(self) -> str:
        """Return the summary as JSON."""
        own = {name: getattr(self, name) for name in self.__slots__}
        own["certainty"] = None if self.certainty is None else asdict(self.certainty)
        own["closings"] = [(each.phase, each.seq, each.time, each.survivors) for each in self.closings]
        own["assessors"] = {name: astuple(tally) for name, tally in self.assessors.items()}
        return json.dumps(own, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "TopicSummary":
        """Return a summary of this form; the tag of its row says that it has this form."""
        own: dict[str, Any] = json.loads(text)
        own["levels"] = tuple(map(tuple, own["levels"]))
        own["certainty"] = None if own["certainty"] is None else Certainty(**own["certainty"])
        own["closings"] = tuple(
            Closing(phase, seq, time, tuple(survivors)) for phase, seq, time, survivors in own["closings"]
        )
        own["worth"] = None if own["worth"] is None else TopicWorth(*own["worth"])
        own["assessors"] = {name: AssessorTally(*counts) for name, counts in own["assessors"].items()}
        return cls(**own)


def summarise(read: ReadTopic, tally: TopicTally) -> TopicSummary:
    """Return the summary of a replayed topic; `with_result` adds a result that takes long."""
    strategy = read.strategy
    held = pending_of(read)
    proposals = ask_lazily(strategy, ALL, held)
    items = size_of(strategy)
    done = strategy.done
    known = TopicSummary(
        position=read.position,
        judgments=read.usable,
        unscored=read.unscored,
        items=items,
        open=len(proposals),
        held=len(read.held),
        phase=first_phase(proposals, held),
        by_strategy=0 if done else round(strategy.expected_judgments(items)),
        done=done,
        stated=False,
        closings=tuple(
            Closing(line.phase, line.seq, log.iso_time(line.time), line.survivors) for line in tally.closings
        ),
        unlogged=bool(unlogged_closings(read, tally)),
        grades=dict(tally.grades),
        assessors=tally.assessors,
        worth=worth_of(strategy) if is_staged(strategy) else None,
    )
    return known if takes_long(read) else with_result(known, read)


def takes_long(read: ReadTopic) -> bool:
    """Whether the result of a replayed topic takes long to work out."""
    return read.usable > 0 and is_slow(read.strategy)


def with_result(known: TopicSummary, read: ReadTopic) -> TopicSummary:
    """Return a topic's summary with its result, which is worked out now."""
    levels, judged = read.strategy.result(), read.judged
    return replace(
        known,
        stated=True,
        judged=judged,
        certainty=levels.certainty,
        levels=levels.levels if judged else (),
        kept=len(kept_levels(read)) if read.usable else 0,
    )


def with_result_of(known: TopicSummary, other: TopicSummary, stated: bool) -> TopicSummary:
    """Return a topic's summary with the result of another one; `stated` if that is of the same place of the log."""
    return replace(
        known,
        stated=stated,
        judged=other.judged,
        certainty=other.certainty,
        levels=other.levels,
        kept=other.kept,
    )


def unlogged_closings(read: ReadTopic, tally: TopicTally) -> Counter[str]:
    """Return the phases that the strategy has closed and the log doesn't name."""
    return Counter(each.phase for each in read.strategy.closed) - Counter(
        line.phase for line in tally.closings
    )


def pending_of(read: ReadTopic, leased: Sequence[Proposal] = ()) -> list[Proposal]:
    """Return what is pending to the strategy: the leases, and the judgments that wait for their assignment."""
    return [*leased, *(Proposal(each.pair, each.phase, each.proposal) for each in read.held)]


def first_phase(proposals: Sequence[Proposal], pending: Sequence[Proposal]) -> str:
    """Return the phase of what is asked, or else of what is pending."""
    return next((each.phase for each in chain(proposals, pending)), "")
