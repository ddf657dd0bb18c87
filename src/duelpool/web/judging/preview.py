"""The preview: a manager goes through all pages as a visitor would, and nothing is stored.

The manager's position is in a cookie only.
"""

from collections.abc import Mapping
from typing import Any

from duelpool.campaign import Assignment, Campaign
from duelpool.campaign.work.participants import EndedAssignment, VisitorState
from duelpool.errors import BadParameter
from duelpool.records import Kind, Question
from duelpool.store.leases import UnknownQuestion
from duelpool.web.i18n import Catalogue
from duelpool.web.judging.flow import Flow, Place, checks, practice_pairs

SAMPLES = 3
_NOBODY = VisitorState("open", "in", None, (), (), frozenset())


def pages_of(campaign: Campaign, texts: Catalogue) -> list[str]:
    """Return the pages that a visitor goes through, in order."""
    settings = campaign.settings
    steps: list[str] = [step for step in settings.steps if step in ("consent", "guide")]
    if "check" in settings.steps and checks(campaign, texts):
        steps.append("check")
    if "practice" in settings.steps and settings.stage != "grading":
        steps += [f"practice {at}" for at in range(len(practice_pairs(campaign, texts)))]
    steps += [f"judging {at}" for at in range(len(samples(campaign)))]
    return [*steps, *(["feedback"] if settings.feedback else []), "complete"]


def samples(campaign: Campaign) -> tuple[Question, ...]:
    """Return a few sample questions: the first candidates of the first topics."""
    questions: list[Question] = []
    graded = campaign.settings.stage == "grading"
    kind = Kind.GRADE if graded else campaign.settings.kind
    for topic in campaign.live.heads():
        items = campaign.live.items(topic)
        if len(items) >= (1 if graded else 2) and len(questions) < SAMPLES:
            right = None if graded else items[1]
            questions.append(
                Question(f"preview-{len(questions)}", topic, items[0], right, "preview", kind=kind)
            )
    return tuple(questions)


def place(flow: Flow, at: str, texts: Catalogue) -> Place:
    """Return the place at a position of the preview."""
    number, _, chosen = at.partition(":")
    pages = pages_of(flow.campaign, texts)
    index = min(int(number), len(pages) - 1) if number.isdecimal() else 0
    state, _, number_within = pages[index].partition(" ")
    if state == "practice":
        return Place(state, _NOBODY, number=int(number_within), practised=chosen)
    if state == "judging":
        asked = samples(flow.campaign)
        done = asked[: int(number_within)]
        held = Assignment("preview", "preview", asked, frozenset(each.id for each in done))
        return Place(state, _NOBODY, questions=held.left, assignment=held)
    if state in ("feedback", "complete"):
        size = len(samples(flow.campaign))
        last = EndedAssignment("preview", "finished", size, size, flow.campaign.settings.reward)
        return Place(state, _NOBODY, last=last, more={"again": state == "complete"})
    return Place(state, _NOBODY)


def onward(flow: Flow, at: str, texts: Catalogue, verb: str, values: Mapping[str, Any]) -> str:
    """Return the position of the preview after a click."""
    number, _, chosen = at.partition(":")
    index = int(number) if number.isdecimal() else 0
    pages = pages_of(flow.campaign, texts)
    state = place(flow, at, texts).state
    if verb == "undo":
        before = pages[max(0, index - 1)]
        return str(index - 1) if before.startswith("judging") else at
    if verb == "stop":
        return str(next(n for n, each in enumerate(pages) if each in ("feedback", "complete")))
    if verb == "step" and values.get("step") == "another":
        return "0"
    if state == "practice" and not chosen:
        outcome = values.get("outcome")
        if outcome not in ("left", "right"):
            raise BadParameter("A practice pair takes 'left' or 'right'.", remedy="Use the buttons.")
        return f"{index}:{outcome}"
    return str(min(index + 1, len(pages) - 1))


def sample(flow: Flow, question: str) -> Question:
    """Return a question of the preview by its id."""
    for each in samples(flow.campaign):
        if each.id == question:
            return each
    raise UnknownQuestion("The preview has no such question.", remedy="Return to the page.")
