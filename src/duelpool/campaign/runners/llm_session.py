"""A session of a language model: several questions at once, until the campaign is done or the budget is used up."""

from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from duelpool.campaign import events
from duelpool.campaign.runners.judging_session import JudgeGaveUp, OnAnswer, QuestionTexts, SessionTally
from duelpool.campaign.runners.llm_judge import EndpointRefuses, LlmJudge, OutOfBudget
from duelpool.campaign.runners.two_sources import decisions, refit
from duelpool.campaign.views.idle import session_ending
from duelpool.campaign.work.participants import Paused
from duelpool.judges.live import JudgeError
from duelpool.records import Answer, Outcome, Question
from duelpool.store import Writing
from duelpool.store.leases import Conflict, TooLate, UnknownQuestion

_NOT_JUDGED = (Outcome.CANNOT_JUDGE, Outcome.FLIP_ABSTAIN)
_MAY_COME = ("nothing", "tried", "asked", "held")  # endings after which there may be questions again
_REFIT_EVERY = 20  # answers, after which a model is held against people again


class LlmSession:
    """Lets a model answer a campaign's questions; one that fails is set aside until the session ends."""

    def __init__(
        self,
        judge: LlmJudge,
        *,
        topics: Collection[str] | None = None,
        patience: int = 3,
        on_answer: OnAnswer | None = None,
    ) -> None:
        self.tally = SessionTally()
        self._judge = judge
        self._campaign = judge.campaign
        self._texts = QuestionTexts(judge.campaign)
        self._topics = None if topics is None else set(topics)
        self._patience = patience
        self._on_answer = on_answer
        self._in_a_row = 0
        self._waits = False
        self._aside: dict[str, Question] = {}

    def run(self, limit: int | None = None, wait_seconds: float | None = None) -> SessionTally:
        """Judge until there is nothing more, the budget is used up, or the limit is reached.

        With `wait_seconds`, it looks again after so many seconds, as long as answers of others may bring questions or
        a pause may end.
        """
        self._waits = wait_seconds is not None
        self._run(limit)
        while wait_seconds is not None and self.tally.ended in _MAY_COME:
            if self._judge.stopping.wait(wait_seconds):
                break
            self.tally.said = ""
            self._run(limit)
        if self._judge.lists is not None:
            self.tally.said = " ".join(each for each in (self.tally.said, self._judge.lists.said) if each)
        return self.tally

    def _run(self, limit: int | None) -> None:
        at_work: dict[Future[Answer], Question] = {}
        unaffordable: list[Question] = []
        settled = -1
        if self._campaign.settings.learns_worth:
            refit(self._campaign)
        with ThreadPoolExecutor(self._judge.terms.concurrency, thread_name_prefix="duelpool-llm") as pool:
            try:
                while True:
                    if not unaffordable:
                        for question in self._next(at_work, limit):
                            at_work[self._submit(pool, question)] = question
                    if not at_work and not unaffordable:
                        self._set_ending(limit)
                        return
                    if not at_work:
                        if settled == self._judge.settled:  # no held money became free since the last try
                            self.tally.ended = "budget"
                            self._campaign.write(self._record_budget)
                            return
                        settled = self._judge.settled
                        tried = unaffordable.pop(0)
                        at_work[self._submit(pool, tried)] = tried
                    for ended in wait(at_work, return_when=FIRST_COMPLETED).done:
                        question = at_work.pop(ended)
                        if not self._store(ended, question):
                            unaffordable.append(question)
                        elif unaffordable:  # held money became free
                            tried = unaffordable.pop(0)
                            at_work[self._submit(pool, tried)] = tried
            except BaseException:
                self._judge.stopping.set()
                raise
            finally:
                for question in (*at_work.values(), *unaffordable, *self._aside.values()):
                    self._campaign.give_back(question.id, self._judge.assessor)

    def _record_budget(self, tx: Writing) -> None:
        """Write down, once for each budget, that it is used up."""
        budget, judge = self._judge.terms.budget, self._judge.assessor
        events.record(tx, events.BUDGET_REACHED, {"judge": judge}, subject=f"{judge} {budget}", occurrence=1)

    def _submit(self, pool: ThreadPoolExecutor, question: Question) -> Future[Answer]:
        return pool.submit(self._judge.answer, self._texts.sheet(question, self.tally.judged))

    def _next(self, at_work: Mapping[Future[Answer], Question], limit: int | None) -> list[Question]:
        wanted = self._judge.terms.concurrency
        if limit is not None:
            wanted = min(wanted, limit - self.tally.judged)
        busy = {question.id for question in at_work.values()}
        if wanted <= len(busy):
            return []
        questions = self._lease(wanted + len(self._aside))
        if not questions and not busy and self._campaign.settings.learns_worth and refit(self._campaign):
            questions = self._lease(wanted + len(self._aside))
        return [
            question for question in questions if question.id not in busy and question.id not in self._aside
        ]

    def _lease(self, number: int) -> tuple[Question, ...]:
        try:
            return self._campaign.next_questions(self._judge.assessor, number, self._topics)
        except Paused:
            if not self._waits:
                raise
            return ()

    def _set_ending(self, limit: int | None) -> None:
        if limit is not None and self.tally.judged >= limit:
            self.tally.ended = "limit"
        elif self._aside:
            self.tally.ended = "trouble"
        else:
            self.tally.ended = session_ending(self._campaign, self._judge.assessor)
            own = [each for each in decisions(self._campaign) if each.assessor == self._judge.assessor]
            if own and self.tally.ended == "nothing":
                self.tally.ended, self.tally.said = own[0].state, own[0].said

    def _store(self, ended: Future[Answer], question: Question) -> bool:
        """Store an answer, or set the question aside; False when the budget doesn't allow the request."""
        try:
            reply = ended.result()
        except OutOfBudget:
            return False
        except EndpointRefuses:
            self._campaign.give_back(question.id, self._judge.assessor)
            raise
        except JudgeError as error:
            self._aside[question.id] = question
            self._count_failure(error)
            return True
        except BaseException:
            self._campaign.give_back(question.id, self._judge.assessor)
            raise
        try:
            self._campaign.answer(question.id, self._judge.assessor, reply)
        except (TooLate, Conflict, UnknownQuestion):
            self.tally.late += 1
            return True
        self._in_a_row = 0
        if reply.outcome in _NOT_JUDGED:
            self.tally.skipped += 1
        else:
            self.tally.judged += 1
        if self._campaign.settings.prices is not None and not self.tally.judged % _REFIT_EVERY:
            refit(self._campaign)
        if self._on_answer is not None:
            self._on_answer(question, reply)
        return True

    def _count_failure(self, error: JudgeError) -> None:
        self.tally.failed += 1
        self._in_a_row += 1
        if self._in_a_row >= self._patience:
            raise JudgeGaveUp(
                f"The model failed {self._in_a_row} times in a row; the last time: {error.problem}",
                remedy=error.remedy or "All answers so far are stored.",
            ) from error
