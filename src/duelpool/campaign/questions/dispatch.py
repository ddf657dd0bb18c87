"""Dispatch: the questions that an assessor holds, and the next ones, which are leased to them."""

import secrets
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from duelpool.campaign.log.campaign_events import ModelSource
from duelpool.campaign.log.live_topics import LiveTopics
from duelpool.campaign.questions import repeats
from duelpool.campaign.questions.crossed_design import CrossedDesign
from duelpool.campaign.questions.model_questions import ModelQuestions, with_chance
from duelpool.campaign.questions.proposals import Outstanding, Proposals, read_outstanding
from duelpool.campaign.settings import Settings
from duelpool.campaign.work import assignments
from duelpool.campaign.work.assignments import Assignment, TooFew
from duelpool.deciders import Asked, Draw
from duelpool.records import Question
from duelpool.seeds import rng_for
from duelpool.store import CampaignStore, Reading, Writing, leases, overdue
from duelpool.store.leases import Wanted

_RESERVE = 6  # questions chosen beyond those needed, for others may lease some first
_TRIES = 3


class Dispatch:
    """Leases questions and assignments to assessors."""

    def __init__(
        self,
        store: CampaignStore,
        settings: Settings,
        live: LiveTopics,
        proposals: Proposals,
        crossed_design: CrossedDesign,
    ) -> None:
        self._store = store
        self._settings = settings
        self._decider = live.decider
        self._proposals = proposals
        self._crossed_design = crossed_design
        self._models = ModelQuestions(store, settings, live)
        self._opening = threading.Lock()

    def held(self, assessor: str) -> list[Question]:
        """Return the questions that an assessor holds; it writes only when one of their leases has expired."""

        def work(tx: Reading) -> tuple[list[Question], float]:
            rows = leases.leased_to(tx, assessor)
            return [leases.question_of(row) for row in rows], tx.now

        held, now = self._store.read(work)
        if any(question.expires < now for question in held):
            self._free_overdue()
            held = [question for question in held if question.expires >= now]
        return held

    def one_more(self, assessor: str, topics: Collection[str] | None) -> Question | None:
        """Lease another question; when there is none, free expired leases and try again."""
        question = self._choose(assessor, topics)
        return self._choose(assessor, topics) if question is None and self._free_overdue() else question

    def _choose(self, assessor: str, topics: Collection[str] | None) -> Question | None:
        """Lease another question: a repeated one that is due, or a proposal of the strategies, skipped ones last."""
        model = self._models.decided(assessor)
        if model is not None and model.state != "asked":
            among = self._proposals.topics_for(assessor, topics) if model.state == "tried" else {}
            return self._lease(self._models.trial(assessor, among) if among else [], assessor)
        again = self._lease(self._repeats(assessor, topics), assessor)
        if again is not None:
            return again
        for _ in range(_TRIES):  # others may just have leased everything that was chosen
            outstanding = self._outstanding(assessor, topics)
            if self._settings.crossed:
                own = self._crossed_design.wanted(assessor, outstanding, _RESERVE, topics)
                return self._lease(own, assessor, expire=outstanding.any_overdue)
            among = self._proposals.topics_for(assessor, topics)
            if model is not None:
                among = {topic: among[topic] for topic in self._models.open_topics(model, among)}
            # An assessor stays at their topic; of new topics, those that no other assessor is judging come first.
            order = sorted(among, key=lambda each: (each not in outstanding.own, each in outstanding.leased))
            taken = False
            for skipped in (False, True) if outstanding.skipped else (False,):
                now = self._proposals.now(among, outstanding, topics=order, skipped=skipped)
                asked: Iterator[Asked] = iter(self._decider.ask(now, _RESERVE))
                if model is not None:
                    asked = (each for each in asked if self._models.for_model(each.topic, each.proposal))
                several = 1  # mostly the first is free: the sides of others aren't drawn
                while True:
                    chosen = list(islice(asked, several))
                    granted = self._lease(
                        [self._want(each, assessor, model) for each in chosen],
                        assessor,
                        expire=outstanding.any_overdue,
                    )
                    if granted is not None:
                        return granted
                    taken = taken or bool(chosen)
                    if len(chosen) < several:
                        break
                    several = max(_RESERVE - 1, 2 * several)  # few transactions, where most are taken
            if not taken:
                return None
        return None

    def _want(self, asked: Asked, assessor: str, model: ModelSource | None = None) -> Wanted:
        want = self._proposals.want(asked.topic, asked.proposal.pair, asked.proposal, assessor)
        return want if model is None else with_chance(want, model)

    def new_assignment(self, assessor: str) -> Assignment | None:
        """Open an assignment; None when there are no questions or no money for one.

        One at a time per process, so that a hundred arrivals at once don't hold up those who answer meanwhile.
        """
        self._store.store.refresh()  # another tab of the same assessor may have opened one while this waited
        with self._opening:
            held = self._store.read(lambda tx: assignments.find_open(tx, assessor))
            return held or self._new_assignment(assessor)

    def _new_assignment(self, assessor: str) -> Assignment | None:
        outstanding = self._outstanding(assessor)
        heads = self._proposals.topics_for(assessor)
        rng = rng_for(self._settings.seed, "assignment", assessor, outstanding.seen)
        drawn = self._draw(heads, outstanding, Draw(rng, self._settings.per_topic))
        enough = self._settings.targets + _RESERVE
        picked = list(islice(drawn, enough))
        if not picked:
            return None
        tests, again = self._proposals.tests(assessor, rng), self._repeats(assessor)
        expire = outstanding.any_overdue
        order = rng.permutation(self._settings.targets + len(tests) + len(again)).tolist()
        if len(picked) == enough:  # there may be more, should others lease many of these first
            try:
                return self._open(assessor, picked, tests, again, order, short=False, expire=expire)
            except TooFew:
                picked += drawn
        return self._open(assessor, picked, tests, again, order, short=True, expire=expire)

    def _draw(self, heads: Mapping[str, int], outstanding: Outstanding, draw: Draw) -> Iterator[Asked]:
        """Yield questions that a decider draws, what the person has skipped last."""
        for skipped in (False, True) if outstanding.skipped else (False,):
            now = self._proposals.now(heads, outstanding, skipped=skipped)
            yield from self._decider.ask(now, self._settings.targets, draw)

    def _open(
        self,
        assessor: str,
        picked: Sequence[Asked],
        tests: Sequence[Wanted],
        again: Sequence[Wanted],
        order: Sequence[int],
        *,
        short: bool,
        expire: bool,
    ) -> Assignment | None:
        chosen = [self._want(each, assessor) for each in picked]

        def work(tx: Writing) -> Assignment | None:
            held = assignments.find_open(tx, assessor)
            if held is not None:  # opened by another process, for a second tab
                return held
            if expire:
                overdue.expire(tx)
            if not assignments.affordable(tx, self._settings):
                return None
            return assignments.open_new(
                tx,
                assessor,
                self._settings,
                chosen=chosen,
                tests=tests,
                again=again,
                order=order,
                short=short,
            )

        return self._store.write(work)

    def _outstanding(self, assessor: str, topics: Collection[str] | None = None) -> Outstanding:
        """Return what an assessor isn't asked now; of one topic alone where no other matters."""
        only = None
        alone = not self._settings.crossed and not self._decider.across_topics
        if topics is not None and len(topics) == 1 and alone:
            only = next(iter(topics))
        parked_after = self._settings.parked_after
        return self._store.read(lambda tx: read_outstanding(tx, assessor, parked_after, topic=only))

    def _repeats(self, assessor: str, topics: Collection[str] | None = None) -> list[Wanted]:
        if not self._settings.repeat_every:
            return []
        due = self._store.read(lambda tx: repeats.due(tx, assessor, self._settings))
        return [want for want in due if topics is None or want.topic in topics]

    def _free_overdue(self) -> int:
        if not self._store.read(overdue.any_overdue):
            return 0
        return self._store.write(overdue.expire)

    def _lease(self, wanted: Sequence[Wanted], assessor: str, *, expire: bool = True) -> Question | None:
        if not wanted:
            return None
        ids = [secrets.token_hex(8) for _ in wanted]

        def work(tx: Writing) -> list[Question]:
            if expire:
                overdue.expire(tx)
            return leases.lease(
                tx,
                wanted,
                ids,
                assessor=assessor,
                cap=self._settings.slots,
                seconds=self._settings.lease_seconds,
                at_most=1,
            )

        granted = self._store.write(work)
        return granted[0] if granted else None
