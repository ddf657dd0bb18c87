"""A campaign's leaderboard: its runs, scored against the judgments so far.

The labels are the levels of every judged topic, the preferences are the judgments that count, and duplicates count
as one item. Any measure can be computed at any time, and as of any time before.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import polars as pl

from duelpool.campaign import Campaign
from duelpool.campaign.log.replay import read_uncounted
from duelpool.campaign.views import summaries
from duelpool.campaign.views.reading import kept_levels, read_topic, topics_of
from duelpool.errors import BadParameter
from duelpool.evaluation import Evaluation, evaluate
from duelpool.files import Duplicates, Preferences, Qrels, Run
from duelpool.files.packed import pack_run, unpack_run
from duelpool.measures import Measure
from duelpool.records import EFFECTS, Judgment, Levels
from duelpool.store import Reading, Writing, holdings, log
from duelpool.store.holdings import PackedRun

DuplicateGroups: TypeAlias = dict[str, dict[str, tuple[str, ...]]]
"""Per topic, the duplicates of each canonical item."""

DEPTH = 1000
"""Ranks of a run that are kept: measures look no deeper by default."""


@dataclass(frozen=True, slots=True)
class Labels:
    """A campaign's labels: grades by level, the judgments that count, and duplicates.

    `unjudged` topics have no labels yet, `unfinished` ones preliminary labels. `unscored` topics have no labels, since
    their judgments name no phase of a strategy that scores phase by phase.
    """

    qrels: Qrels
    preferences: Preferences
    duplicates: Duplicates
    unjudged: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    unscored: tuple[str, ...] = ()

    def truths(self) -> list[Qrels | Preferences]:
        """Return grades and preferences, as far as there are any, for `evaluate`."""
        truths = [each for each in (self.qrels, self.preferences) if len(each)]
        if not truths:
            raise BadParameter(
                "Nothing in the campaign is judged yet.",
                remedy="Judge first: `duelpool judge terminal STORE`.",
            )
        return truths


def keep_runs(campaign: Campaign, runs: Iterable[Run], depth: int = DEPTH) -> int:
    """Keep runs with a campaign, for its leaderboard; return how many are new by their names."""
    kept = packed(runs, depth)

    def work(tx: Writing) -> int:
        return sum(holdings.add_run(tx, each) for each in kept)

    return campaign.write(work)


def packed(runs: Iterable[Run], depth: int = DEPTH) -> list[PackedRun]:
    """Return runs as a campaign keeps them."""
    return [PackedRun(run.name, len(run), pack_run(run, depth)) for run in runs]


def runs_of(campaign: Campaign) -> list[Run]:
    """Return the runs that a campaign keeps, by name."""
    runs = campaign.read(lambda tx: [unpack_run(each.name, each.data) for each in holdings.runs(tx)])
    if not runs:
        raise BadParameter(
            "The campaign keeps no runs.",
            remedy="Name runs, or build the campaign from runs: `duelpool pool RUN... -o STORE` keeps them.",
        )
    return runs


def labels_of(campaign: Campaign, until: float | None = None) -> Labels:
    """Return a campaign's labels now, or as of a time (seconds since 1970)."""
    if until is None:
        summaries.work_out(campaign)
    return campaign.read(
        lambda tx: _labels_now(tx, campaign) if until is None else _labels(tx, campaign, until)
    )


def gate_topics(campaign: Campaign, labels: Labels) -> dict[str, Any]:
    """Return what a gate needs beside a campaign's labels: open topics, order of completion, weights, duplicates.

    A topic was completed when its log got its last line.
    """

    def completed(tx: Reading) -> dict[str, float]:
        lines = (log.new_lines(tx, topic, head - 1, head) for topic, head in log.heads(tx).items() if head)
        return {line.topic: line.time for last in lines for line in last}

    times = campaign.read(completed)
    order = {topic: at for at, topic in enumerate(sorted(times, key=lambda each: (times[each], each)))}
    weights = {topic.id: topic.weight for topic in campaign.read(holdings.topics).values()}
    return {
        "open_topics": labels.unfinished,
        "order": order,
        "weights": weights if len(set(weights.values())) > 1 else None,
        "twins": labels.duplicates if len(labels.duplicates) else None,
    }


def _labels_now(tx: Reading, campaign: Campaign) -> Labels:
    """Return the labels by the topics' summaries, and the log by columns; it is replayed only where it must be."""
    kept: dict[str, tuple[tuple[str, ...], ...]] = {}
    unjudged: list[str] = []
    unfinished: list[str] = []
    unscored: list[str] = []
    frames: list[pl.DataFrame] = []
    uncounted: dict[str, list[int]] = {}
    for topic, seq in read_uncounted(tx):
        uncounted.setdefault(topic, []).append(seq)
    for topic, known, _ in summaries.read(tx, campaign):
        frames.append(read_pairs(tx, topic, known.position, uncounted.get(topic, ())))
        kept[topic] = known.levels[: known.kept]
        if known.judgments and known.unscored == known.judgments:
            unscored.append(topic)
        elif not kept[topic]:
            unjudged.append(topic)
        elif not known.done:
            unfinished.append(topic)
    preferences = Preferences.from_frame(pl.concat(frames, rechunk=False) if frames else pl.DataFrame())
    labels = make_labels(kept, preferences, duplicates_of(tx, kept))
    return replace(labels, unjudged=tuple(unjudged), unfinished=tuple(unfinished), unscored=tuple(unscored))


_PAIR_TYPES: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "seq": pl.Int64,
    "left": pl.String,
    "right": pl.String,
    "outcome": pl.String,
    "inferred": pl.Int8,
    "sides_known": pl.Int8,
}
_USABLE = [str(outcome) for outcome, effect in EFFECTS.items() if effect.usable]


def read_pairs(tx: Reading, topic: str, position: int, uncounted: Collection[int] = ()) -> pl.DataFrame:
    """Return a topic's judgments of pairs that count, those that `read_topic` calls `on_judgment` with, by columns."""
    blocks = [pl.DataFrame(schema=_PAIR_TYPES)]
    for columns in log.read_pairs(tx, topic, position):
        named = columns._asdict().items()
        blocks.append(pl.DataFrame([pl.Series(name, values, _PAIR_TYPES[name]) for name, values in named]))
    pairs = pl.concat(blocks, rechunk=False).filter(pl.col("outcome").is_in(_USABLE))
    if uncounted:
        pairs = pairs.filter(~pl.col("seq").is_in(sorted(uncounted)))
    return pairs.select(
        pl.lit(topic).alias("topic"),
        *("left", "right", "outcome"),
        *(pl.col(name).cast(pl.Boolean) for name in ("inferred", "sides_known")),
    )


def _labels(tx: Reading, campaign: Campaign, until: float | None) -> Labels:
    """Return the labels as of a time, by a replay of every log."""
    kept: dict[str, tuple[tuple[str, ...], ...]] = {}
    judged: list[Judgment] = []
    unjudged: list[str] = []
    unfinished: list[str] = []
    unscored: list[str] = []
    for topic in topics_of(tx):
        read = read_topic(tx, campaign, topic, until=until, on_judgment=judged.append)
        kept[topic] = kept_levels(read) if read.usable else ()
        if read.usable and read.unscored == read.usable:
            unscored.append(topic)
        elif not kept[topic]:
            unjudged.append(topic)
        elif not read.strategy.done:
            unfinished.append(topic)
    labels = make_labels(kept, Preferences.from_judgments(judged), duplicates_of(tx, kept))
    return replace(labels, unjudged=tuple(unjudged), unfinished=tuple(unfinished), unscored=tuple(unscored))


def duplicates_of(tx: Reading, topics: Collection[str]) -> DuplicateGroups:
    """Return the duplicates of each canonical item in these topics."""
    groups: DuplicateGroups = {}
    for topic, canonical, duplicate in holdings.duplicates(tx, topics):
        group = groups.setdefault(topic, {})
        group[canonical] = (*group.get(canonical, ()), duplicate)
    return groups


def make_labels(
    kept: Mapping[str, tuple[tuple[str, ...], ...]], preferences: Preferences, duplicates: DuplicateGroups
) -> Labels:
    """Turn the kept levels of some topics into grades; a duplicate gets the grade of its canonical item."""
    grades: dict[str, dict[str, float]] = {}
    for topic, levels in kept.items():
        if not levels:
            continue
        of_topic = {item: float(grade) for item, grade in Levels(levels).as_grades().items()}
        for item, others in duplicates.get(topic, {}).items():
            if item in of_topic:
                of_topic |= dict.fromkeys(others, of_topic[item])
        grades[topic] = of_topic
    return Labels(Qrels.from_grades(grades), preferences, Duplicates.from_groups(duplicates))


def topic_weights(campaign: Campaign) -> dict[str, float]:
    """Return the weight of each topic of a campaign."""
    topics = campaign.read(holdings.topics)
    return {name: topic.weight for name, topic in topics.items()}


def leaderboard(
    campaign: Campaign,
    measures: str | Measure | Sequence[str | Measure],
    *,
    runs: object | None = None,
    until: float | None = None,
    **options: Any,
) -> Evaluation:
    """Score a campaign's runs (or the given ones) against its labels; options are those of `evaluate`.

    Topics have the weights of the campaign.
    """
    labels = labels_of(campaign, until)
    options.setdefault("weights", topic_weights(campaign))
    return evaluate(
        labels.truths(),
        runs_of(campaign) if runs is None else runs,
        measures,
        twins=labels.duplicates if len(labels.duplicates) else None,
        **options,
    )
