"""Judges before a campaign: one question after the other, or assignment by assignment."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from duelpool.campaign.campaign import Campaign
from duelpool.errors import DuelpoolError
from duelpool.judges.live import JudgeAction, JudgeError, LiveJudge, Sheet
from duelpool.records import Answer, Outcome, Pair, Passage, Question, Topic
from duelpool.store import holdings
from duelpool.store.leases import Conflict, TooLate, UnknownQuestion

IDLE_WORKERS = 20  # so many in a row who found nothing to do, and nobody else is called
TEXTS_AT_MOST = 4_000_000  # characters of passages that lie ready, in each process
_NOT_JUDGED = (Outcome.SKIP, Outcome.CANNOT_JUDGE)

OnAnswer = Callable[[Question, Answer], None]


class JudgeGaveUp(DuelpoolError):
    """A judge failed several times in a row."""


@dataclass(slots=True)
class SessionTally:
    """What came of a sitting, and why it ended: "done", "nothing", "skipped", "stopped" or "limit"."""

    judged: int = 0
    skipped: int = 0
    undone: int = 0
    failed: int = 0
    late: int = 0
    ended: str = ""


@dataclass(slots=True)
class AssignmentsTally:
    """What came of assignments."""

    workers: int = 0
    assignments: int = 0
    judged: int = 0
    excluded: list[str] = field(default_factory=list)
    reward: int = 0


class QuestionTexts:
    """Puts the texts beside a question; those that were read last lie ready."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._topics: Mapping[str, Topic] = {}
        self._passages: dict[str, Passage] = {}  # as they were read
        self._length = 0
        self._lock = threading.Lock()

    def gather(self, questions: Iterable[Question]) -> dict[str, Passage]:
        """Return the texts of several questions; those that aren't here are read at once."""
        campaign = self._campaign
        shown = {item for each in questions for item in (each.left, each.right) if item is not None}
        with self._lock:
            texts = {item: self._passages[item] for item in shown if item in self._passages}
        missing = sorted(shown - texts.keys())
        if missing:
            found = campaign.read(lambda tx: holdings.passages(tx, missing))
            read = {item: found.get(item, Passage(item, "")) for item in missing}
            self._keep(read)
            texts |= read
        return texts

    def _keep(self, read: Mapping[str, Passage]) -> None:
        with self._lock:
            for item, passage in read.items():
                if item not in self._passages:
                    self._passages[item] = passage
                    self._length += len(passage.text)
            while self._length > TEXTS_AT_MOST:
                oldest = next(iter(self._passages))
                self._length -= len(self._passages.pop(oldest).text)

    def sheet(self, question: Question, judged: int = 0) -> Sheet:
        """Return a question as its judge sees it."""
        campaign = self._campaign
        if question.topic not in self._topics:
            self._topics = campaign.read(holdings.topics)
        texts = self.gather((question,))
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
        )


def _key(question: Question) -> tuple[str, Pair]:
    return question.topic, (question.left, "") if question.right is None else question.pair


class JudgingSession:
    """One judge before a campaign, question by question.

    A judge in trouble gives the question back; after `patience` troubles in a row the sitting ends with an
    error. What the judge skips is not shown again in this sitting.
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
        self.sat = SessionTally()
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
        while limit is None or self.sat.judged < limit:
            question = self._next()
            if question is None:
                break
            if not self.ask(question):
                self.sat.ended = "stopped"
                break
        else:
            self.sat.ended = "limit"
        return self.sat

    def once(self) -> bool:
        """Judge one question; return whether there was one."""
        question = self._next()
        return question is not None and self.ask(question)

    def _next(self) -> Question | None:
        question = self.campaign.next_question(self.assessor, self._topics)
        if question is None:
            self.sat.ended = "skipped" if self._skipped else "done" if self.campaign.done else "nothing"
        elif _key(question) in self._skipped:  # they come last: there is nothing else
            self.campaign.give_back(question.id, self.assessor)
            self.sat.ended = "skipped"
            return None
        return question

    def ask(self, question: Question) -> bool:
        """Show a question and store the answer; return False when the judge wants to stop."""
        while True:
            try:
                reply = self._judge.reply(self._texts.sheet(question, self.sat.judged))
            except JudgeError as trouble:
                self.campaign.give_back(question.id, self.assessor)
                self._trouble(trouble)
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
            self.sat.late += 1
            return
        self._in_a_row = 0
        self._answered.append(question.id)
        if reply.outcome in _NOT_JUDGED:
            self.sat.skipped += 1
            self._skipped.add(_key(question))
        else:
            self.sat.judged += 1
        if self._on_answer is not None:
            self._on_answer(question, reply)

    def _undo(self, present: Question) -> Question:
        """Take the last answer back and return its question; the present one goes back."""
        before = self.campaign.undo(self._answered.pop(), self.assessor)
        self.campaign.give_back(present.id, self.assessor)
        self.sat.undone += 1
        if _key(before) in self._skipped:
            self._skipped.discard(_key(before))
            self.sat.skipped -= 1
        else:
            self.sat.judged -= 1
        return before

    def _trouble(self, trouble: JudgeError) -> None:
        self.sat.failed += 1
        self._in_a_row += 1
        if self._in_a_row >= self._patience:
            raise JudgeGaveUp(
                f"The judge failed {self._in_a_row} times in a row; the last time: {trouble.problem}",
                remedy=trouble.remedy or "Everything that was answered before is stored.",
            ) from trouble


def in_turns(sittings: Iterable[JudgingSession], limit: int | None = None) -> SessionTally:
    """Let several judges answer one question each, again and again, until none of them finds another."""
    at_work = list(sittings)
    total = SessionTally()
    for sitting in at_work:
        sitting.sat = total
    while at_work:
        still: list[JudgingSession] = []
        for sitting in at_work:
            if limit is not None and total.judged >= limit:
                total.ended = "limit"
                return total
            if sitting.once():
                still.append(sitting)
        # Who found nothing may find something once others have answered.
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
    """Let workers come one after the other, each for a few assignments, until the campaign needs nobody."""
    desk = QuestionTexts(campaign)
    total = AssignmentsTally()
    idle = 0
    leaves = campaign.settings.test_rule == "share"  # after failed tests; else only the assignment goes
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
                reply = judge.reply(desk.sheet(question, total.judged))
                if not isinstance(reply, Answer):
                    break
                campaign.answer(question.id, name, reply)
                total.judged += 1
                if on_answer is not None:
                    on_answer(question, reply)
            finished = campaign.finish(assignment.id)
            total.reward += finished.reward
            total.assignments += 1
            if leaves and not finished.counted:
                total.excluded.append(name)
                break
    return total
