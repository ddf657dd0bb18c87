"""Votes between the systems of a campaign: who answered, who won, and who judged."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log import campaign_events
from duelpool.campaign.log import systems as campaign_systems
from duelpool.campaign.views.reading import read_topic, topics_of
from duelpool.errors import BadParameter
from duelpool.files import SystemVote
from duelpool.files.votes import VoteOutcome
from duelpool.records import EFFECTS, Judgment, Outcome, Topic
from duelpool.store import Reading, holdings


@dataclass(frozen=True, slots=True)
class CampaignVotes:
    """All votes that count in a campaign, ties of the same answers included, its systems, and the votes of its plan."""

    votes: tuple[SystemVote, ...]
    systems: tuple[str, ...]
    planned: Mapping[tuple[str, str], float] = field(default_factory=dict)  # by two systems, given or not


def votes_of(campaign: Campaign, *, texts: bool = False) -> CampaignVotes:
    """Return the votes between the systems of a campaign; with `texts`, also questions and answers."""
    if not campaign.live.goal.of_systems:
        raise BadParameter(
            f"The campaign's goal is '{campaign.settings.goal}', so that its systems have no votes of their own.",
            remedy="Score its runs by a measure (-m), or make a campaign with the goal 'systems'.",
        )
    return campaign.read(lambda tx: read_votes(tx, campaign, texts=texts))


def read_votes(tx: Reading, campaign: Campaign, *, texts: bool = False) -> CampaignVotes:
    """Return the votes between the systems of a campaign whose goal is about systems."""
    sources = campaign_events.sources(tx)
    topics = holdings.topics(tx)
    votes: list[SystemVote] = []
    planned: dict[tuple[str, str], float] = {}
    systems: set[str] = set(campaign.live.goal.systems)
    for name in topics_of(tx):
        answers = campaign_systems.answers(tx, name)
        judgments: list[Judgment] = []
        read = read_topic(tx, campaign, name, on_judgment=judgments.append)
        for pair, count in read.planned_votes.items():
            planned[pair] = planned.get(pair, 0.0) + count
        rows = [row for row in holdings.items(tx, name) if row.state == "in"]
        one = _Question(topics[name], answers, {row.id: row.twin_of or row.id for row in rows})
        systems.update(one.answers)
        if texts:
            one.texts = {
                item: passage.text
                for item, passage in holdings.passages(tx, [row.id for row in rows]).items()
            }
        votes += one.votes(judgments, sources)
    compared = campaign.live.goal.systems
    if compared:
        votes = [vote for vote in votes if {vote.a, vote.b} == set(compared)]
        systems = set(compared)
    return CampaignVotes(tuple(votes), tuple(sorted(systems)), planned)


def votes_on(
    topic: Topic, answers: Mapping[str, str], judged_for: Mapping[str, str], judgments: Sequence[Judgment]
) -> list[SystemVote]:
    """Return the votes between the systems that answered a question, where nothing is known of the judges.

    `answers` leads from systems to items, `judged_for` from each item to the one that is judged for it.
    """
    return list(_Question(topic, answers, judged_for).votes(judgments, {}))


class _Question:
    """The answers to one question, and what judgments between them mean for systems."""

    def __init__(self, topic: Topic, answers: Mapping[str, str], judged_for: Mapping[str, str]) -> None:
        self.topic = topic
        self.answers = {system: item for system, item in sorted(answers.items()) if item in judged_for}
        self.texts: Mapping[str, str] = {}
        self._judged_for = judged_for
        self._given: dict[str, list[str]] = defaultdict(list)  # by item
        self._same: dict[str, list[str]] = defaultdict(list)  # by the item that is judged
        for system, item in self.answers.items():
            self._given[item].append(system)
            self._same[judged_for[item]].append(system)

    def votes(self, judgments: Sequence[Judgment], sources: Mapping[str, Any]) -> Iterator[SystemVote]:
        """Yield a vote for every two systems that a judgment is about, and the ties of the same answers."""
        met: set[frozenset[str]] = set()
        for judgment in judgments:
            left, right = judgment.left, judgment.right
            if (
                right is None
                or left not in self._judged_for
                or right not in self._judged_for
                or judgment.inferred
            ):
                continue
            by = self._given
            if self._judged_for[left] != self._judged_for[right]:
                by, left, right = self._same, self._judged_for[left], self._judged_for[right]
            source = sources.get(judgment.assessor)
            for a, b in product(by.get(left, ()), by.get(right, ())):
                if a == b:
                    continue
                met.add(frozenset((a, b)))
                yield self._vote(
                    *(a, b, _outcome(judgment.outcome)),
                    judge=judgment.assessor,
                    model=source is not None and source.model,
                    criterion=judgment.criterion,
                    weight=1.0 if source is None else source.weight,
                )
        for systems in self._same.values():
            for a, b in combinations(systems, 2):
                if frozenset((a, b)) not in met:
                    yield self._vote(a, b, "tie", same_answer=True)

    def _vote(self, a: str, b: str, outcome: VoteOutcome, **more: Any) -> SystemVote:
        vote = SystemVote(a, b, outcome, question=self.topic.id, tags=self.topic.tags, **more)
        if not self.texts:
            return vote
        one, other = (self._text(self.answers[system]) for system in (a, b))
        return replace(vote, question_text=self.topic.text, answer_a=one, answer_b=other)

    def _text(self, item: str) -> str:
        return self.texts.get(item) or self.texts.get(self._judged_for[item], "")


def _outcome(outcome: Outcome) -> VoteOutcome:
    effect = EFFECTS[outcome]
    if effect.left == effect.right:
        return "bothbad" if outcome is Outcome.BOTH_BAD else "tie"
    return "a" if effect.left > effect.right else "b"
