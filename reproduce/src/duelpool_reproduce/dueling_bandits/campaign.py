"""The crowd campaign of the paper as its released files tell it: phases, final rounds, best sets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from duelpool.files import Preferences, read_preferences
from duelpool.records import Judgment
from duelpool.strategies.phases import Boundary, blocks_by_topic, items_of, tell_phases
from duelpool.strategies.prefbest import PrefBest

JUDGMENTS = "dl21/judgments.txt"
QRELS = "dl21/qrels.dl21-passage.txt"
RUNS = "dl21/runs"
TEXTS = "dl21/passages_text.tsv.gz"
SETS: Mapping[str, str] = {
    "I": "dl21/Set-I.qrels",
    "II": "dl21/Set-II.qrels",
    "Combined": "dl21/Combined-I+II.qrels",
}
MAIN_RUN = 9713  # judgments that the procedure itself needed; a third finalisation follows, then the second
SECOND_FINALS = 984


@dataclass(frozen=True, slots=True)
class TopicCampaign:
    """One topic: its pool, its phases as they were judged, the second final, and the strategy told of all."""

    topic: str
    items: tuple[str, ...]
    phases: tuple[tuple[Judgment, ...], ...]  # of the main run; the last is the first final
    second_final: tuple[Judgment, ...]
    strategy: PrefBest
    boundaries: tuple[Boundary, ...]

    @property
    def best_sets(self) -> dict[str, frozenset[str]]:
        """The best items by the first final, by the second, and by both together."""
        first, second = (self.strategy.phase_levels(name) for name in ("final-1", "final-2"))
        levels = {"I": first, "II": second, "Combined": self.strategy.result()}
        return {name: frozenset(each.best) for name, each in levels.items()}


def read_judgments(data: Path) -> list[Judgment]:
    """Return the released judgments in the order of the file."""
    return list(read_preferences(data / JUDGMENTS).judgments())


def papers_judgments(data: Path) -> Preferences:
    """Return the 10,697 judgments that the paper uses: the main run, and the second finalisation."""
    every = read_judgments(data)
    return Preferences.from_judgments(every[:MAIN_RUN] + every[-SECOND_FINALS:])


def read_campaign(data: Path) -> dict[str, TopicCampaign]:
    """Tell prefbest the released judgments, phase by phase, and return what came of every topic."""
    every = read_judgments(data)
    second = _by_topic(every[-SECOND_FINALS:])
    campaigns = {}
    for topic, blocks in blocks_by_topic(every[:MAIN_RUN]).items():
        items = items_of(blocks[0])
        strategy = PrefBest(items, seed=0, topic=topic, final_phases=2)
        boundaries = tell_phases(strategy, blocks[:-1], [blocks[-1], second[topic]])
        campaigns[topic] = TopicCampaign(
            topic,
            tuple(items),
            tuple(map(tuple, blocks)),
            tuple(second[topic]),
            strategy,
            tuple(boundaries),
        )
    return campaigns


def _by_topic(judgments: Iterable[Judgment]) -> dict[str, list[Judgment]]:
    by_topic: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_topic.setdefault(judgment.topic, []).append(judgment)
    return by_topic
