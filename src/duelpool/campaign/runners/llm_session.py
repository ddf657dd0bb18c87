"""A language model at work: several questions at once, until the campaign needs no more or the budget is used up."""

from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from duelpool.campaign.runners.judging_session import JudgeGaveUp, OnAnswer, QuestionTexts, SessionTally
from duelpool.campaign.runners.llm_judge import EndpointRefuses, LlmJudge, OutOfBudget
from duelpool.judges.live import JudgeError
from duelpool.records import Answer, Outcome, Question
from duelpool.store.leases import Conflict, TooLate, UnknownQuestion

_NOT_JUDGED = (Outcome.CANNOT_JUDGE, Outcome.FLIP_ABSTAIN)


class LlmSession:
    """A model before a campaign. A question in trouble is set aside until the sitting ends."""

    def __init__(
        self,
        model: LlmJudge,
        *,
        topics: Collection[str] | None = None,
        patience: int = 3,
        on_answer: OnAnswer | None = None,
    ) -> None:
        self.sat = SessionTally()
        self._model = model
        self._campaign = model.campaign
        self._texts = QuestionTexts(model.campaign)
        self._topics = None if topics is None else set(topics)
        self._patience = patience
        self._on_answer = on_answer
        self._in_a_row = 0
        self._aside: dict[str, Question] = {}

    def run(self, limit: int | None = None) -> SessionTally:
        """Judge until there is nothing more, the budget is used up, or the limit is reached."""
        at_work: dict[Future[Answer], Question] = {}
        poor: list[Question] = []
        settled = -1
        with ThreadPoolExecutor(self._model.terms.concurrency, thread_name_prefix="duelpool-llm") as pool:
            try:
                while True:
                    if not poor:
                        for question in self._next(at_work, limit):
                            at_work[self._submit(pool, question)] = question
                    if not at_work and not poor:
                        self._why(limit)
                        return self.sat
                    if not at_work:
                        if settled == self._model.settled:  # nothing became free since the last try
                            self.sat.ended = "budget"
                            return self.sat
                        settled = self._model.settled
                        tried = poor.pop(0)
                        at_work[self._submit(pool, tried)] = tried
                    for ended in wait(at_work, return_when=FIRST_COMPLETED).done:
                        question = at_work.pop(ended)
                        if not self._hear(ended, question):
                            poor.append(question)
                        elif poor:  # something is free again
                            tried = poor.pop(0)
                            at_work[self._submit(pool, tried)] = tried
            except BaseException:
                self._model.stopping.set()
                raise
            finally:
                for question in (*at_work.values(), *poor, *self._aside.values()):
                    self._campaign.give_back(question.id, self._model.assessor)

    def _submit(self, pool: ThreadPoolExecutor, question: Question) -> Future[Answer]:
        return pool.submit(self._model.answer, self._texts.sheet(question, self.sat.judged))

    def _next(self, at_work: Mapping[Future[Answer], Question], limit: int | None) -> list[Question]:
        wanted = self._model.terms.concurrency
        if limit is not None:
            wanted = min(wanted, limit - self.sat.judged)
        busy = {question.id for question in at_work.values()}
        if wanted <= len(busy):
            return []
        found = self._campaign.next_questions(self._model.assessor, wanted + len(self._aside), self._topics)
        return [question for question in found if question.id not in busy and question.id not in self._aside]

    def _why(self, limit: int | None) -> None:
        if limit is not None and self.sat.judged >= limit:
            self.sat.ended = "limit"
        elif self._aside:
            self.sat.ended = "trouble"
        else:
            self.sat.ended = "done" if self._campaign.done else "nothing"

    def _hear(self, ended: Future[Answer], question: Question) -> bool:
        """Store an answer, or set the question aside; False when the budget could not bear it."""
        try:
            reply = ended.result()
        except OutOfBudget:
            return False
        except EndpointRefuses:
            self._campaign.give_back(question.id, self._model.assessor)
            raise
        except JudgeError as trouble:
            self._aside[question.id] = question
            self._trouble(trouble)
            return True
        except BaseException:
            self._campaign.give_back(question.id, self._model.assessor)
            raise
        try:
            self._campaign.answer(question.id, self._model.assessor, reply)
        except (TooLate, Conflict, UnknownQuestion):
            self.sat.late += 1
            return True
        self._in_a_row = 0
        if reply.outcome in _NOT_JUDGED:
            self.sat.skipped += 1
        else:
            self.sat.judged += 1
        if self._on_answer is not None:
            self._on_answer(question, reply)
        return True

    def _trouble(self, trouble: JudgeError) -> None:
        self.sat.failed += 1
        self._in_a_row += 1
        if self._in_a_row >= self._patience:
            raise JudgeGaveUp(
                f"The model failed {self._in_a_row} times in a row; the last time: {trouble.problem}",
                remedy=trouble.remedy or "Everything that was answered before is stored.",
            ) from trouble
