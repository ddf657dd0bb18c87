"""Texts and questions that are added to a campaign later: topics that waited for them are judged from then on."""

from collections.abc import Iterable
from dataclasses import dataclass

from duelpool.campaign import Campaign
from duelpool.campaign.campaign import Also
from duelpool.campaign.questions.held_back import HeldTopics
from duelpool.records import Passage, Topic
from duelpool.store import Writing
from duelpool.store.imports.texts import fill_questions, fill_texts


@dataclass(frozen=True, slots=True)
class Completed:
    """How many texts and questions were added, how many topics they released, and which are still held back."""

    texts: int
    questions: int
    released: int
    held: HeldTopics


def complete(
    campaign: Campaign,
    passages: Iterable[Passage] = (),
    topics: Iterable[Topic] = (),
    *,
    also: Also | None = None,
) -> Completed:
    """Add texts to items that have none, and questions to topics that have none; what is there stays as it is."""
    texts, questions = list(passages), list(topics)
    before = campaign.held_back()

    def work(tx: Writing) -> tuple[int, int]:
        if also is not None:
            also(tx)
        return fill_texts(tx, texts), fill_questions(tx, questions)

    added = campaign.write(work)
    held = campaign.held_back()
    return Completed(*added, len(before.topics.keys() - held.topics.keys()), held)
