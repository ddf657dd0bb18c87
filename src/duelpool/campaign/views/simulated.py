"""Simulated assessors among those who judged."""

from duelpool.campaign.views.status import CampaignStatus
from duelpool.frames import counted
from duelpool.judges.live import is_simulated


def kind_in_words(assessor: str, kind: str) -> str:
    """Return the kind of an assessor as pages name it."""
    return "simulated" if is_simulated(assessor) else {"llm": "language model"}.get(kind, kind)


def simulated_note(snapshot: CampaignStatus) -> str:
    """Return a sentence about simulated assessors; empty where there are none."""
    judged = [person for person in snapshot.assessors if person.judgments]
    made_up = [person for person in judged if is_simulated(person.assessor)]
    if not made_up:
        return ""
    if len(made_up) == len(judged):
        return "All assessors are simulated: the scores say nothing about what people prefer."
    return (
        f"{len(made_up)} of {counted(len(judged), 'assessor')} are simulated, and scores count their judgments: "
        f"{sum(person.usable for person in made_up):,} of {snapshot.total('judgments'):,}."
    )
