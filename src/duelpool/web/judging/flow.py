"""The flow of visitors through a campaign: steps before judging, the questions, and what follows.

Nothing is cached here. Each request reads the store, so a closed tab, a second tab or another server process makes
no difference.
"""

import logging
import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from duelpool.campaign import Assignment, Campaign, NotAllowed
from duelpool.campaign.settings.welcome import CheckQuestion, PracticePair
from duelpool.campaign.views.idle import why_idle
from duelpool.campaign.work import participants
from duelpool.campaign.work.assignments import PAID
from duelpool.campaign.work.ledger import prorated
from duelpool.campaign.work.participants import EndedAssignment, Step, VisitorState
from duelpool.errors import BadParameter
from duelpool.records import Kind, Question
from duelpool.store.leases import Receipt
from duelpool.web.i18n import Catalogue
from duelpool.web.judging.schemas import Sheets, money

TRIES = 2  # of the check, for a crowd
TRIES_OF_OWN = 20  # for people whom the campaign knows: they read the guide again instead of leaving
WAIVED = "waived"  # the check of someone whom the campaign's owner invited by name
NEW = "new"  # the state of someone who is ready to judge, and doesn't take part yet
AHEAD = 2  # questions that a dedicated assessor holds: the present one and the next

logger = logging.getLogger("duelpool.web")


@dataclass(frozen=True, slots=True)
class Place:
    """A visitor's place in the flow, with all that its page shows."""

    state: str
    present: VisitorState
    questions: tuple[Question, ...] = ()
    assignment: Assignment | None = None
    last: EndedAssignment | None = None
    topic: str = ""  # of the feedback
    number: int = 0  # of the practice pair, from 0
    tries_left: int = TRIES
    practised: str = ""  # the answer to the practice pair
    more: dict[str, Any] = field(default_factory=dict)


def checks(campaign: Campaign, texts: Catalogue) -> dict[str, CheckQuestion]:
    """Return the questions of the check: the campaign's own, or the default ones about the default guide."""
    own = campaign.settings.check
    if own:
        return {f"c{at}": each for at, each in enumerate(own, 1)}
    if campaign.settings.guidelines:
        return {}  # the default questions are about the default guide
    listed = texts.listed("check")
    return {
        str(each.get("id", f"c{at}")): CheckQuestion(each["text"], tuple(each["choices"]), each["answer"])
        for at, each in enumerate(listed, 1)
    }


def waives(campaign: Campaign, visitor_kind: str) -> bool:
    """Return whether a visitor judges right after consent and guide: your own people whom you invited by name.

    A check or practice pairs of the campaign's own are for everybody.
    """
    settings = campaign.settings
    own = bool(settings.check or settings.practice)
    return visitor_kind == "personal" and settings.judges == "dedicated" and not own


def practice_pairs(campaign: Campaign, texts: Catalogue) -> tuple[PracticePair, ...]:
    """Return the practice pairs: the campaign's own, or the default ones."""
    own = campaign.settings.practice
    if own:
        return own
    return tuple(PracticePair(**each) for each in texts.listed("practice"))


class Flow:
    """The flow of visitors through one campaign."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.sheets = Sheets(campaign)

    # ---- the visitor's place

    def look(self, assessor: str) -> VisitorState:
        """Read the state that decides what a visitor sees."""
        count = self.campaign.settings.judges != "crowd"
        return self.campaign.read(lambda tx: participants.visitor_state(tx, assessor, count=count))

    def place(self, assessor: str, texts: Catalogue, stored: Receipt | None = None) -> Place:
        """Return a visitor's place; questions are leased to a visitor who takes part and is ready to judge.

        `stored` is the receipt of an answer stored just now; it saves a query.
        """
        present = self.look(assessor)
        after = self._after_work(present)
        if after is not None:
            return after
        if present.campaign != "open":
            return Place("paused" if present.campaign == "paused" else "ended", present)
        before = self._before_work(present, texts)
        if before is not None:
            return before
        if present.person is None:
            return Place(NEW, present)
        try:
            if self.campaign.settings.judges == "crowd":
                return self._crowd(assessor, present)
            return self._dedicated(assessor, present, stored)
        except NotAllowed:  # paused, closed or excluded a moment ago
            present = self.look(assessor)
            state = "excluded" if present.person == "excluded" else present.campaign
            return Place({"open": "waiting", "closed": "ended"}.get(state, state), present)

    def after_answer(self, assessor: str, texts: Catalogue, receipt: Receipt) -> Place:
        """Return a visitor's place after an answer.

        Late answers to an assignment that was given up arrive one after another. A new assignment would ask for the
        same pairs again, and the remaining late answers would be refused.
        """
        crowd = self.campaign.settings.judges == "crowd"
        if crowd and receipt.late and self.campaign.open_assignment(assessor) is None:
            present = self.look(assessor)
            return self._after_work(present) or Place("waiting", present)
        return self.place(assessor, texts, receipt)

    def _after_work(self, present: VisitorState) -> Place | None:
        ended = [(name, state) for name, state in present.assignments if state != "open"]
        paid = [name for name, state in ended if state in PAID]
        at_work = len(ended) < len(present.assignments)
        if present.person == "excluded":
            return Place("excluded", present, last=self._done(paid[-1]) if paid else None)
        if paid and not at_work and ended[-1][0] == paid[-1]:
            if self.campaign.settings.feedback and paid[-1] not in present.feedback:
                return Place("feedback", present, last=self._done(paid[-1]))
            if not present.counts()["another", paid[-1]]:
                return Place(
                    "complete", present, last=self._done(paid[-1]), more={"again": self._may_go_on(paid)}
                )
        if self._has_stopped(present):
            return Place("complete", present, more={"again": True})
        return None

    def _has_stopped(self, present: VisitorState) -> bool:
        """Return whether a dedicated assessor has stopped, and not come back since."""
        stops = [step.name for step in present.steps if step.name in ("stopped", "another")]
        return not present.assignments and stops[-1:] == ["stopped"]

    def _may_go_on(self, paid: Collection[str]) -> bool:
        return len(paid) < self.campaign.settings.assignments_each

    def _done(self, assignment: str) -> EndedAssignment:
        return self.campaign.read(lambda tx: participants.ended_assignment(tx, assignment))

    def _before_work(self, present: VisitorState, texts: Catalogue) -> Place | None:
        """Return the first step that is still to be taken, None when all are done."""
        counts = present.counts()
        steps = self.campaign.settings.steps
        for step in ("consent", "guide"):
            if step in steps and not counts[step, "yes"]:
                return Place(step, present)
        waived = counts["check", WAIVED] > 0
        if not waived and "check" in steps and checks(self.campaign, texts) and not counts["check", "passed"]:
            own = self.campaign.settings.judges == "dedicated"
            left = (TRIES_OF_OWN if own else TRIES) - counts["check", "failed"]
            return Place("check" if left > 0 else "check-failed", present, tries_left=max(0, left))
        pairs = practice_pairs(self.campaign, texts) if "practice" in steps and not waived else ()
        seen = sum(step.name == "practised" for step in present.steps)
        if self.campaign.settings.stage != "grading" and seen < len(pairs):
            answers = [step.outcome for step in present.steps if step.name == "practice"]
            answer = next((each for each in reversed(answers) if each.startswith(f"{seen}:")), "")
            return Place("practice", present, number=seen, practised=answer.partition(":")[2])
        return None

    def still_at(self, place: Place, present: VisitorState, texts: Catalogue) -> bool:
        """Return whether a visitor is still where a step was due: two tabs, or a hundred requests, are one step."""
        if place.state == "complete":
            if place.last is None:
                return self._has_stopped(present)
            return not present.counts()["another", place.last.id]
        now = self._before_work(present, texts)
        return now is not None and replace(now, present=place.present) == place

    def _crowd(self, assessor: str, present: VisitorState, *, may_free: bool = True) -> Place:
        try:
            assignment = self.campaign.next_assignment(assessor, state=present.participant)
        except BadParameter as error:  # this person has seen all test pairs
            logger.warning("no assignment for %s: %s", assessor, error)
            return Place("no-work", present)
        if assignment is not None and not assignment.left:  # all is answered, but it was not finished
            self.campaign.finish(assignment.id)
            return self._after_work(self.look(assessor)) or Place("waiting", present)
        if assignment is None:
            why = why_idle(self.campaign, assessor)
            if why == "others" and may_free and self.campaign.free_idle(assessor):
                return self._crowd(assessor, present, may_free=False)
            return Place(_idle_state(why), present, more={"why": why})
        return Place("judging", present, questions=assignment.left, assignment=assignment)

    def _dedicated(self, assessor: str, present: VisitorState, stored: Receipt | None) -> Place:
        questions = self._leased(assessor, present)
        why = "" if questions else why_idle(self.campaign, assessor)
        if why == "others" and self.campaign.free_idle(assessor):
            questions = self._leased(assessor, present)
        state = "judging" if questions else _idle_state(why)
        asked = questions[0].topic if questions else ""
        topic = (
            "" if stored is not None and stored.topic == asked else self._topic_left(assessor, present, asked)
        )
        if state == "waiting":
            topic = ""
        if topic:
            return Place("feedback", present, questions=questions, topic=topic)
        return Place(state, present, questions=questions, more={"why": why})

    def _leased(self, assessor: str, present: VisitorState) -> tuple[Question, ...]:
        return self.campaign.next_questions(assessor, AHEAD, one_topic=True, state=present.participant)

    def _topic_left(self, assessor: str, present: VisitorState, asked: str) -> str:
        """Return the topic that an assessor has just finished and given no feedback on, an empty text for none."""
        campaign = self.campaign
        if not campaign.settings.feedback:
            return ""
        last = self.last_answered(assessor)
        if last is None or last.topic in present.feedback or last.topic == asked:
            return ""
        shared = campaign.settings.stage == "preferences" and not campaign.settings.crossed
        if shared and not campaign.live.state(last.topic).strategy.done:
            return ""  # others hold its last questions, and may return some
        return str(last.topic)

    def last_answered(self, assessor: str) -> Any:
        """Return the assessor's last answer that can be undone, None for none."""
        return self.campaign.read(lambda tx: participants.last_answered(tx, assessor))

    def leave(self, assessor: str) -> None:
        """Stop a dedicated assessor: their questions go to others, and they may come back."""
        campaign = self.campaign
        present = self.look(assessor)
        if present.person is None or self._after_work(present) is not None:
            return
        for question in campaign.held(assessor):
            campaign.give_back(question.id, assessor)
        campaign.write(lambda tx: participants.record_step(tx, assessor, Step("stopped", "")))

    # ---- as JSON

    def work(
        self,
        assessor: str,
        place: Place,
        texts: Catalogue,
        *,
        saved: dict[str, Any] | None = None,
        have: Collection[str] = (),
        can_undo: str | None = None,
    ) -> dict[str, Any]:
        """Return a place as JSON for the page's scripts."""
        campaign = self.campaign
        now = campaign.store.now()
        judging = place.state == "judging"
        return {
            "state": place.state,
            "saved": saved,
            "progress": self._progress(place),
            "questions": self.sheets.questions(place.questions, texts, now, have) if judging else [],
            "can_undo": can_undo if can_undo and judging else self.can_undo(assessor, place),
            "credit": self.credit(place),
            "stoppable": judging,
        }

    def can_undo(self, assessor: str, place: Place) -> str | None:
        """Return the question whose answer can be undone now."""
        if place.present.person is None or place.state in ("excluded", "complete"):
            return None
        last = self.last_answered(assessor)
        if last is None:
            return None
        wanted = place.assignment.id if place.assignment is not None else None
        return str(last.question) if last.assignment == wanted else None

    def credit(self, place: Place) -> dict[str, Any] | None:
        """Return the pay: for the answers so far, or for the assignment that ended; None for unpaid work."""
        settings = self.campaign.settings
        if settings.judges != "crowd":
            return None
        if place.assignment is not None:
            of, done = len(place.assignment.questions), place.assignment.answered
            return {
                "done": done,
                "of": of,
                "pay": money(prorated(settings.reward, done, of), settings.currency),
            }
        if place.last is not None:
            last = place.last
            return {"done": last.answered, "of": last.questions, "pay": money(last.reward, settings.currency)}
        return None

    def _progress(self, place: Place) -> dict[str, Any]:
        if place.assignment is not None:
            return {"done": len(place.assignment.done), "of": len(place.assignment.questions)}
        if place.last is not None:
            return {"done": place.last.answered, "of": place.last.questions}
        if self.campaign.settings.judges == "crowd":
            return {"done": 0, "of": None}
        own = place.present.answered
        progress: dict[str, Any] = {"done": sum(own.values()), "of": None}
        if place.questions:
            first = place.questions[0]
            done = self._given(first, own.get(first.topic, 0))
            # systems are compared until they are told apart, which takes no fixed number a topic
            if first.kind is Kind.GRADE or not self.campaign.live.goal.of_systems:
                progress["topic"] = {"done": done, "of": self._expected(first, done)}
        return progress

    def _given(self, question: Question, own: int) -> int:
        """Return how many judgments a topic has of all people; grades are counted for each person."""
        if question.kind is Kind.GRADE:
            return own
        return max(own, self.campaign.live.state(question.topic, head=0).judged)

    def _expected(self, question: Question, done: int) -> int:
        """Return about how many answers a topic takes; always more than were given while a question is open."""
        campaign = self.campaign
        items = len(campaign.live.items(question.topic))
        if question.kind is Kind.GRADE:
            return max(items, done + 1)
        wanted = campaign.live.state(question.topic, head=0).strategy.expected_judgments(items)
        return max(math.ceil(wanted), done + 1)


def _idle_state(why: str) -> str:
    """Return the page of someone who gets no question: it asks again soon where others are about to answer."""
    return "waiting" if why == "others" else "no-work"


def saved_json(receipt: Receipt, outcome: str, attempt: int | None) -> dict[str, Any]:
    """Return the acknowledgement of a stored answer as JSON."""
    return {
        "question": receipt.question,
        "attempt": attempt,
        "outcome": outcome,
        "repeated": receipt.repeated,
        "late": receipt.late,
    }
