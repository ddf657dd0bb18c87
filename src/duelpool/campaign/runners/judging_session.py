"""Sessions that let a judge answer a campaign's questions: one after the other, or assignment by assignment."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.runners.two_sources import refit
from duelpool.campaign.views.idle import session_ending
from duelpool.errors import DuelpoolError
from duelpool.judges.live import JudgeAction, JudgeError, LiveJudge, Sheet
from duelpool.records import Answer, Outcome, Pair, Passage, Question, Topic
from duelpool.store import holdings
from duelpool.store.leases import Conflict, TooLate, UnknownQuestion

IDLE_WORKERS = 20  # workers in a row without an assignment, after which no more are called
TEXTS_AT_MOST = 4_000_000  # characters of cached passages, in each process
_NOT_JUDGED = (Outcome.SKIP, Outcome.CANNOT_JUDGE)

OnAnswer = Callable[[Question, Answer], None]


class JudgeGaveUp(DuelpoolError):
    """A judge failed several times in a row."""


@dataclass(slots=True)
class SessionTally:
    """The counts of a session, and why it ended: "skipped", "stopped", "limit", or as `session_ending` says.

    Of a model beside people: "tried", "asked" or "dropped" where it is asked nothing now; `said` says it in words, and
    how many lists of items got no usable reply from a model.
    """

    judged: int = 0
    skipped: int = 0
    undone: int = 0
    failed: int = 0
    late: int = 0
    ended: str = ""
    said: str = ""


@dataclass(slots=True)
class AssignmentsTally:
    """The counts of assignments that workers finished."""

    workers: int = 0
    assignments: int = 0
    judged: int = 0
    excluded: list[str] = field(default_factory=list)
    reward: int = 0


class QuestionTexts:
    """The texts of a campaign's questions; the latest are cached."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._topics: Mapping[str, Topic] = {}
        self._passages: dict[str, Passage] = {}  # oldest first
        self._length = 0
        self._lock = threading.Lock()

    def passages_of(self, questions: Iterable[Question]) -> dict[str, Passage]:
        """Return the texts of several questions; those that aren't cached are read in one query."""
        campaign = self._campaign
        shown = {item for each in questions for item in (each.left, each.right) if item is not None}
        with self._lock:
            texts = {item: self._passages[item] for item in shown if item in self._passages}
        missing = sorted(shown - texts.keys())
        if missing:
            passages = campaign.read(lambda tx: holdings.passages(tx, missing))
            read = {item: passages.get(item, Passage(item, "")) for item in missing}
            self._cache(passages)  # a text that is missing may come
            texts |= read
        return texts

    def _cache(self, read: Mapping[str, Passage]) -> None:
        with self._lock:
            for item, passage in read.items():
                if item not in self._passages:
                    self._passages[item] = passage
                    self._length += len(passage.text)
            while self._length > TEXTS_AT_MOST:
                oldest = next(iter(self._passages))
                self._length -= len(self._passages.pop(oldest).text)

    def sheet(self, question: Question, judged: int = 0, can_undo: bool = False) -> Sheet:
        """Return a question as its judge sees it."""
        campaign = self._campaign
        known = self._topics.get(question.topic)
        if known is None or known.text == known.id:  # a question that is missing may come
            self._topics = campaign.read(holdings.topics)
        texts = self.passages_of((question,))
        return Sheet(
            question=question.id,
            topic=self._topics[question.topic],
            left=texts[question.left],
            right=None if question.right is None else texts[question.right],
            outcomes=campaign.settings.outcomes_of(question.kind),
            grades=campaign.settings.grades if question.right is None else (),
            criterion=question.criterion,
            guidelines=campaign.settings.guidelines,
            judged=judged,
            can_undo=can_undo,
        )


def _key(question: Question) -> tuple[str, Pair]:
    return question.topic, (question.left, "") if question.right is None else question.pair


class JudgingSession:
    """One judge who answers a campaign's questions.

    When the judge fails, the question is given back; after `patience` failures in a row the session ends with an
    error. A question that the judge skips is not shown again in this session.
    """

    def __init__(
        self,
        campaign: Campaign,
        assessor: str,
        judge: LiveJudge,
        *,
        topics: Collection[str] | None = None,
        patience: int = 3,
        on_answer: OnAnswer | None = None,
    ) -> None:
        self.campaign = campaign
        self.assessor = assessor
        self.tally = SessionTally()
        self._judge = judge
        self._texts = QuestionTexts(campaign)
        self._topics = None if topics is None else set(topics)
        self._patience = patience
        self._on_answer = on_answer
        self._in_a_row = 0
        self._answered: list[str] = []
        self._skipped: set[tuple[str, Pair]] = set()

    def run(self, limit: int | None = None) -> SessionTally:
        """Judge until there is nothing more, the judge wants to stop, or the limit is reached."""
        while limit is None or self.tally.judged < limit:
            question = self._next()
            if question is None:
                break
            if not self.ask(question):
                self.tally.ended = "stopped"
                break
        else:
            self.tally.ended = "limit"
        return self.tally

    def once(self) -> bool:
        """Judge one question; return whether there was one."""
        question = self._next()
        return question is not None and self.ask(question)

    def _next(self) -> Question | None:
        question = self.campaign.next_question(self.assessor, self._topics)
        if question is None:
            self.tally.ended = (
                "skipped"
                if self._skipped
                else session_ending(self.campaign, self.assessor, of_person=self._topics is None)
            )
        elif _key(question) in self._skipped:  # skipped ones come last: no other question is left
            self.campaign.give_back(question.id, self.assessor)
            self.tally.ended = "skipped"
            return None
        return question

    def ask(self, question: Question) -> bool:
        """Show a question and store the answer; return False when the judge wants to stop."""
        while True:
            try:
                sheet = self._texts.sheet(question, self.tally.judged, bool(self._answered))
                reply = self._judge.reply(sheet)
            except JudgeError as error:
                self.campaign.give_back(question.id, self.assessor)
                self._count_failure(error)
                return True
            except BaseException:
                self.campaign.give_back(question.id, self.assessor)
                raise
            if reply is JudgeAction.STOP:
                self.campaign.give_back(question.id, self.assessor)
                return False
            if isinstance(reply, Answer):
                self._store(question, reply)
                return True
            if self._answered:  # else there is nothing to undo, and the question is shown again
                question = self._undo(question)

    def _store(self, question: Question, reply: Answer) -> None:
        try:
            self.campaign.answer(question.id, self.assessor, reply)
        except (TooLate, Conflict, UnknownQuestion):
            self.tally.late += 1
            return
        self._in_a_row = 0
        self._answered.append(question.id)
        if reply.outcome in _NOT_JUDGED:
            self.tally.skipped += 1
            self._skipped.add(_key(question))
        else:
            self.tally.judged += 1
        if self._on_answer is not None:
            self._on_answer(question, reply)

    def _undo(self, current: Question) -> Question:
        """Undo the last answer and return its question; the current one is given back."""
        previous = self.campaign.undo(self._answered.pop(), self.assessor)
        self.campaign.give_back(current.id, self.assessor)
        self.tally.undone += 1
        if _key(previous) in self._skipped:
            self._skipped.discard(_key(previous))
            self.tally.skipped -= 1
        else:
            self.tally.judged -= 1
        return previous

    def _count_failure(self, error: JudgeError) -> None:
        self.tally.failed += 1
        self._in_a_row += 1
        if self._in_a_row >= self._patience:
            raise JudgeGaveUp(
                f"The judge failed {self._in_a_row} times in a row; the last time: {error.problem}",
                remedy=error.remedy or "All answers so far are stored.",
            ) from error


def in_turns(sessions: Iterable[JudgingSession], limit: int | None = None) -> SessionTally:
    """Let several judges answer one question each in turn, until none of them gets another."""
    at_work = list(sessions)
    total = SessionTally()
    for session in at_work:
        session.tally = total
    while at_work:
        still: list[JudgingSession] = []
        for session in at_work:
            if limit is not None and total.judged >= limit:
                total.ended = "limit"
                return total
            if session.once():
                still.append(session)
        for campaign in {session.campaign for session in still if session.campaign.settings.learns_worth}:
            refit(campaign)
        # A judge without a question may get one once others have answered.
        at_work = at_work if still else []
    return total


def work_assignments(
    campaign: Campaign,
    workers: Iterable[tuple[str, LiveJudge]],
    *,
    each: int,
    limit: int | None = None,
    on_answer: OnAnswer | None = None,
) -> AssignmentsTally:
    """Let workers finish a few assignments each, one worker after the other, until the campaign is done."""
    texts = QuestionTexts(campaign)
    total = AssignmentsTally()
    idle = 0
    leaves = campaign.settings.test_rule == "share"  # after failed tests; else only the assignment is dropped
    for name, judge in workers:
        if campaign.done or idle >= IDLE_WORKERS or (limit is not None and total.judged >= limit):
            break
        campaign.enrol(name, "crowd")
        total.workers += 1
        idle += 1
        for _ in range(each):
            assignment = campaign.next_assignment(name)
            if assignment is None:
                break
            idle = 0
            for question in assignment.questions:
                reply = judge.reply(texts.sheet(question, total.judged))
                if not isinstance(reply, Answer):
                    break
                campaign.answer(question.id, name, reply)
                total.judged += 1
                if on_answer is not None:
                    on_answer(question, reply)
            finished = campaign.finish(assignment.id)
            total.reward += finished.reward
            total.assignments += 1
            if campaign.settings.learns_worth:
                refit(campaign)
            if leaves and not finished.counted:
                total.excluded.append(name)
                break
    return total
