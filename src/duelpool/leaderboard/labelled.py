"""What a leaderboard reads of topics: their labels at a place of the log, and the rows of the runs."""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from duelpool.campaign.log.replay import TopicState, usable
from duelpool.campaign.views.reading import ReadTopic, kept_levels
from duelpool.campaign.views.watch import Watch
from duelpool.files import Run
from duelpool.leaderboard.possible import JudgedTopic
from duelpool.records import Judgment
from duelpool.store.log import Line


@dataclass(frozen=True, slots=True)
class LabelledTopic:
    """A topic's kept levels and counted judgments at one place of its log."""

    position: int
    kept: tuple[tuple[str, ...], ...]
    judged: tuple[Judgment, ...] = ()
    by_phase: bool = False  # a final's wins decide, not all judgments

    def as_judged(self, topic: str) -> JudgedTopic:
        """Return what the labels rest on."""
        return JudgedTopic.of(topic, self.kept, self.judged, by_phase=self.by_phase)


class RunByTopic:
    """A run whose topics are looked up at once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        frame = run.frame
        runs_of_rows = frame.get_column("topic").rle().struct.unnest()
        if runs_of_rows.get_column("value").n_unique() < runs_of_rows.height:  # topics that begin again
            frame = frame.sort("topic", maintain_order=True)
            runs_of_rows = frame.get_column("topic").rle().struct.unnest()
        lengths = runs_of_rows.get_column("len").to_list()
        starts = itertools.accumulate(lengths, initial=0)
        self._frame = frame
        self._places = dict(
            zip(runs_of_rows.get_column("value"), zip(starts, lengths, strict=False), strict=True)
        )

    def of_topics(self, topics: Collection[str]) -> Run:
        """Return the run's rows in some topics."""
        own = [self._places[topic] for topic in topics if topic in self._places]
        if len(own) == len(self._places):
            return self.run
        parts = [self._frame.slice(start, length) for start, length in own]
        return Run(self.run.name, pl.concat(parts) if parts else self._frame.clear())


def labelled_now(
    topic: str, levels: tuple[tuple[str, ...], ...] | None = None
) -> Callable[[TopicState], LabelledTopic]:
    """Return a function that labels a topic's state, by its present levels or by those that are given."""

    def work(state: TopicState) -> LabelledTopic:
        judged = tuple(
            line.judgment for line in state.lines if line.judgment is not None and usable(line, state.counts)
        )
        by_phase = not state.strategy.pools_judgments
        if not judged or levels is not None:
            return LabelledTopic(state.position, (levels or ()) if judged else (), judged, by_phase)
        read = ReadTopic(topic, state.strategy, len(judged), (), state.position)
        return LabelledTopic(state.position, kept_levels(read), judged, by_phase)

    return work


def labelled_at(
    watch: Watch, topic: str, lines: Sequence[Line], times: Iterable[float]
) -> list[LabelledTopic]:
    """Return a topic's labels as of these times, in one pass over its lines, while its questions go on."""
    campaign, at = watch.campaign, 0
    then = TopicState.new(
        lambda: campaign.read(lambda tx: campaign.live.new_strategy(tx, topic)),
        lambda upto: [line for line in lines if line.seq <= upto],
    )
    labelled: list[LabelledTopic] = []
    read = labelled_now(topic)
    for time in times:
        upto = at
        while upto < len(lines) and lines[upto].time <= time:
            upto += 1
        if upto > at or not labelled:
            then.feed(lines[at:upto])
            at = upto
            labelled.append(read(then))
        else:
            labelled.append(labelled[-1])
    return labelled
