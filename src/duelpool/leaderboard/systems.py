"""Votes between the systems of a campaign: who answered, who won, and who judged; and files of them."""

import csv
import io
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import polars as pl

from duelpool.campaign import Campaign
from duelpool.campaign.log import campaign_events
from duelpool.campaign.log import systems as campaign_systems
from duelpool.campaign.views.reading import read_topic, topics_of
from duelpool.errors import BadParameter
from duelpool.evaluation.systems import USUAL_BOARD, BoardOptions, SystemBoard, boards_of
from duelpool.files import SystemVote, write_lines
from duelpool.files.source import written_whole
from duelpool.files.spreadsheets import harmless
from duelpool.files.votes import VoteOutcome
from duelpool.records import EFFECTS, Judgment, Outcome, Topic
from duelpool.store import Reading, holdings

ARENA_WINNERS: Mapping[VoteOutcome, str] = {
    "a": "model_a",
    "b": "model_b",
    "tie": "tie",
    "bothbad": "tie (bothbad)",
}
"""How the arena's files name the outcomes."""


@dataclass(frozen=True, slots=True)
class CampaignVotes:
    """All votes that count in a campaign, ties of the same answers included, and its systems."""

    votes: tuple[SystemVote, ...]
    systems: tuple[str, ...]


def votes_of(campaign: Campaign, *, texts: bool = False) -> CampaignVotes:
    """Return the votes between the systems of a campaign; with `texts`, also questions and answers."""
    if not campaign.live.goal.of_systems:
        raise BadParameter(
            f"The campaign's goal is '{campaign.settings.goal}', so that its systems have no votes of their own.",
            remedy="Score its runs by a measure (-m), or make a campaign with the goal 'systems'.",
        )
    return campaign.read(lambda tx: _read_votes(tx, campaign, texts))


def boards(campaign: Campaign, options: BoardOptions = USUAL_BOARD) -> list[SystemBoard]:
    """Return the leaderboards of a campaign's systems: one a criterion, of people and of models where both judged."""
    found = votes_of(campaign)
    return boards_of(found.votes, options, found.systems)


def _read_votes(tx: Reading, campaign: Campaign, texts: bool) -> CampaignVotes:
    sources = campaign_events.sources(tx)
    topics = holdings.topics(tx)
    votes: list[SystemVote] = []
    systems: set[str] = set(campaign.live.goal.systems)
    for name in topics_of(tx):
        answers = campaign_systems.answers(tx, name)
        judgments: list[Judgment] = []
        read_topic(tx, campaign, name, on_judgment=judgments.append)
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
    return CampaignVotes(tuple(votes), tuple(sorted(systems)))


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


# ---- files


def arena_rows(votes: Sequence[SystemVote]) -> list[dict[str, str]]:
    """Return the votes that judges gave in the columns of the arena's files, a mapping a vote."""
    texts = any(vote.question_text for vote in votes)
    return [
        {
            "question_id": vote.question,
            "model_a": vote.a,
            "model_b": vote.b,
            "winner": ARENA_WINNERS[vote.outcome],
            "judge": vote.judge,
            "judge_type": "model" if vote.model else "human",
            "criterion": vote.criterion,
            **(
                {"question": vote.question_text, "answer_a": vote.answer_a, "answer_b": vote.answer_b}
                if texts
                else {}
            ),
        }
        for vote in votes
        if not vote.same_answer
    ]


def training_rows(votes: Sequence[SystemVote]) -> list[dict[str, Any]]:
    """Return a preference pair for every two answers of which one won more votes: `prompt, chosen, rejected`."""
    won: dict[tuple[str, str, str], list[float]] = {}
    prompts: dict[str, str] = {}
    for vote in votes:
        if vote.same_answer or not (vote.answer_a and vote.answer_b) or vote.answer_a == vote.answer_b:
            continue
        turned = vote.answer_a > vote.answer_b
        answers = (vote.answer_b, vote.answer_a) if turned else (vote.answer_a, vote.answer_b)
        share = 1 - vote.share if turned else vote.share
        prompts[vote.question] = vote.question_text or vote.question
        counts = won.setdefault((vote.question, *answers), [0.0, 0.0, 0.0])
        counts[0] += share * vote.weight
        counts[1] += (1 - share) * vote.weight
        counts[2] += 1
    rows = []
    for (question, one, other), (first, second, count) in won.items():
        if first == second:
            continue
        chosen, rejected = (one, other) if first > second else (other, one)
        margin = abs(first - second) / (first + second)
        rows.append(
            {
                "prompt": prompts[question],
                "chosen": chosen,
                "rejected": rejected,
                "question_id": question,
                "votes": int(count),
                "margin": margin,
            }
        )
    return rows


def write_table(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as the file's name says: .csv, .tsv, .parquet, or else JSON lines (.gz packs all but Parquet)."""
    name = os.fspath(path)
    ending = name.removesuffix(".gz").rsplit(".", 1)[-1].lower()
    if ending == "parquet":
        with written_whole(path) as partial:
            pl.DataFrame(list(rows)).write_parquet(partial)
    elif ending in ("csv", "tsv"):
        write_lines(path, _delimited(rows, "\t" if ending == "tsv" else ","))
    else:
        write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))


def _delimited(rows: Sequence[Mapping[str, Any]], separator: str) -> Iterator[str]:
    for values in ([*rows[0]] if rows else [], *(row.values() for row in rows)):
        line = io.StringIO()
        csv.writer(line, delimiter=separator, lineterminator="").writerow([harmless(each) for each in values])
        yield line.getvalue()
