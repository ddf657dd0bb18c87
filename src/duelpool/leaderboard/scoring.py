"""A campaign's leaderboard: its runs, scored by what its judges have said so far.

The labels are what the strategy has found of every topic that was judged, the preferences are the judgments that
count, and twins count as one. Any measure may be asked for, at any time, and as of any time before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from duelpool.campaign import Campaign
from duelpool.campaign.views.exports import kept_levels
from duelpool.campaign.views.reading import read_topic, topics_of
from duelpool.errors import BadParameter
from duelpool.evaluation import Evaluation, evaluate
from duelpool.files import Duplicates, Preferences, Qrels, Run
from duelpool.files.packed import pack_run, unpack_run
from duelpool.measures import Measure
from duelpool.records import Judgment, Levels
from duelpool.store import Reading, Writing, holdings
from duelpool.store.holdings import PackedRun

DEPTH = 1000
"""How much of a run is kept: measures look no deeper by default."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What a campaign says of its topics: grades by level, the judgments that count, and twins.

    Of `unjudged` topics it says nothing yet, of `unfinished` ones what was found so far.
    """

    qrels: Qrels
    preferences: Preferences
    duplicates: Duplicates
    unjudged: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()

    def truths(self) -> list[Qrels | Preferences]:
        """Return grades and preferences, as far as there are any, for `evaluate`."""
        found = [each for each in (self.qrels, self.preferences) if len(each)]
        if not found:
            raise BadParameter(
                "Nothing in the campaign is judged yet.",
                remedy="Judge first: `duelpool judge terminal STORE`.",
            )
        return found


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
    found = campaign.read(lambda tx: [unpack_run(each.name, each.data) for each in holdings.runs(tx)])
    if not found:
        raise BadParameter(
            "The campaign keeps no runs.",
            remedy="Name runs, or build the campaign from runs: `duelpool pool RUN... -o STORE` keeps them.",
        )
    return found


def labels_of(campaign: Campaign, until: float | None = None) -> Labels:
    """Return what a campaign says of its topics now, or as it stood at a time (seconds since 1970)."""
    return campaign.read(lambda tx: _labels(tx, campaign, until))


def _labels(tx: Reading, campaign: Campaign, until: float | None) -> Labels:
    grades: dict[str, dict[str, float]] = {}
    judged: list[Judgment] = []
    groups: dict[str, dict[str, tuple[str, ...]]] = {}
    unjudged: list[str] = []
    unfinished: list[str] = []
    for topic in topics_of(tx):
        found = read_topic(tx, campaign, topic, until=until, on_judgment=judged.append)
        for row in holdings.items(tx, topic):
            if row.twin_of is not None:
                of_topic = groups.setdefault(topic, {})
                of_topic[row.twin_of] = (*of_topic.get(row.twin_of, ()), row.id)
        kept = kept_levels(found) if found.usable else ()
        if not kept:
            unjudged.append(topic)
        elif not found.strategy.done:
            unfinished.append(topic)
        if kept:
            grades[topic] = {item: float(grade) for item, grade in Levels(kept).as_grades().items()}
            for item, others in groups.get(topic, {}).items():
                if item in grades[topic]:
                    grades[topic] |= dict.fromkeys(others, grades[topic][item])
    return Labels(
        Qrels.from_grades(grades),
        Preferences.from_judgments(judged),
        Duplicates.from_groups(groups),
        tuple(unjudged),
        tuple(unfinished),
    )


def topic_weights(campaign: Campaign) -> dict[str, float]:
    """Return what each topic of a campaign weighs."""
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
    """Score a campaign's runs (or those given) by what was judged so far; options are those of `evaluate`.

    Topics weigh what they weigh in the campaign.
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
