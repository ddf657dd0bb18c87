"""Dispatch out: what somebody holds, and what they get next, leased to them in the same breath."""

import secrets
import threading
from collections.abc import Collection, Sequence
from itertools import islice

from duelpool.campaign.questions import repeats
from duelpool.campaign.questions.crossed_design import CrossedDesign
from duelpool.campaign.questions.proposals import Outstanding, Proposals, read_outstanding
from duelpool.campaign.questions.sampler import OpenQuestion, Sampler
from duelpool.campaign.settings import Settings
from duelpool.campaign.work import assignments
from duelpool.campaign.work.assignments import Assignment, TooFew
from duelpool.records import Question
from duelpool.seeds import rng_for
from duelpool.store import CampaignStore, Reading, Writing, leases
from duelpool.store.leases import Wanted

_RESERVE = 6  # more questions are chosen than needed, for others may be quicker
_TRIES = 3


class Dispatch:
    """Leases to one person what may be asked of them."""

    def __init__(
        self, store: CampaignStore, settings: Settings, proposals: Proposals, crossed_design: CrossedDesign
    ) -> None:
        self._store = store
        self._settings = settings
        self._proposals = proposals
        self._crossed_design = crossed_design
        self._filling = threading.Lock()

    def held(self, assessor: str) -> list[Question]:
        """Return what somebody holds; looking is no write, unless something of theirs has run out."""

        def work(tx: Reading) -> tuple[list[Question], float]:
            rows = leases.leased_to(tx, assessor)
            return [leases.question_of(row) for row in rows], tx.now

        held, now = self._store.read(work)
        if any(question.expires < now for question in held):
            self._free_overdue()
            held = [question for question in held if question.expires >= now]
        return held

    def one_more(self, assessor: str, topics: Collection[str] | None) -> Question | None:
        """Lease another question; when there is none, once more after what ran out is free again."""
        found = self._choose(assessor, topics)
        return self._choose(assessor, topics) if found is None and self._free_overdue() else found

    def _choose(self, assessor: str, topics: Collection[str] | None) -> Question | None:
        """Lease another question: one that is due again, or what the strategies want, skipped ones last."""
        again = self._lease(self._repeats(assessor, topics), assessor)
        if again is not None:
            return again
        for _ in range(_TRIES):  # everything chosen may just have been taken by others
            out = self._out(assessor)
            if self._settings.crossed:
                own = self._crossed_design.wanted(assessor, out, _RESERVE, topics)
                return self._lease(own, assessor)
            skipped: list[Wanted] = []
            taken = False
            among = self._proposals.topics_for(assessor, topics)
            # Who is at a topic stays with it; who comes to another leaves to others what they are at.
            for topic in sorted(among, key=lambda each: (each not in out.own, each in out.leased)):
                head = among[topic]
                chosen = self._proposals.of_topic(topic, head, out, assessor, n=_RESERVE)
                fresh = [want for want in chosen if want.key not in out.skipped.get(topic, ())]
                skipped += [want for want in chosen if want not in fresh]
                granted = self._lease(fresh, assessor)
                if granted is not None:
                    return granted
                taken = taken or bool(fresh)
            granted = self._lease(skipped, assessor)
            if granted is not None or not (taken or skipped):
                return granted
        return None

    def new_assignment(self, assessor: str) -> Assignment | None:
        """OpenQuestion an assignment; None when there is no work or money for one.

        One at a time in a process: a hundred people who come at once wait for each other, and those who answer
        meanwhile don't wait for all of them.
        """
        self._store.store.refresh()  # at what those did for whom this one waits: the same person, perhaps
        with self._filling:
            held = self._store.read(lambda tx: assignments.find_open(tx, assessor))
            return held or self._new_assignment(assessor)

    def _new_assignment(self, assessor: str) -> Assignment | None:
        out = self._out(assessor)
        heads = self._proposals.topics_for(assessor)
        rng = rng_for(self._settings.seed, "assignment", assessor, out.seen)
        drawn = Sampler(self._proposals, out, heads, rng).draw(self._settings.per_topic)
        enough = self._settings.targets + _RESERVE
        picked = list(islice(drawn, enough))
        if not picked:
            return None
        tests, again = self._proposals.tests(assessor, rng), self._repeats(assessor)
        order = rng.permutation(self._settings.targets + len(tests) + len(again)).tolist()
        if len(picked) == enough:  # there may be more, should others be quicker with many of these
            try:
                return self._open(assessor, picked, tests, again, order, short=False)
            except TooFew:
                picked += drawn
        return self._open(assessor, picked, tests, again, order, short=True)

    def _open(
        self,
        assessor: str,
        picked: Sequence[OpenQuestion],
        tests: Sequence[Wanted],
        again: Sequence[Wanted],
        order: Sequence[int],
        *,
        short: bool,
    ) -> Assignment | None:
        chosen = [
            self._proposals.want(each.topic, each.proposal.pair, each.proposal, assessor) for each in picked
        ]

        def work(tx: Writing) -> Assignment | None:
            held = assignments.find_open(tx, assessor)
            if held is not None:  # by another process, to a second tab
                return held
            leases.expire(tx)
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

    def _out(self, assessor: str) -> Outstanding:
        return self._store.read(lambda tx: read_outstanding(tx, assessor, self._settings.parked_after))

    def _repeats(self, assessor: str, topics: Collection[str] | None = None) -> list[Wanted]:
        if not self._settings.repeat_every:
            return []
        found = self._store.read(lambda tx: repeats.due(tx, assessor, self._settings))
        return [want for want in found if topics is None or want.topic in topics]

    def _free_overdue(self) -> int:
        if not self._store.read(leases.any_overdue):
            return 0
        return self._store.write(leases.expire)

    def _lease(self, wanted: Sequence[Wanted], assessor: str) -> Question | None:
        if not wanted:
            return None
        ids = [secrets.token_hex(8) for _ in wanted]

        def work(tx: Writing) -> list[Question]:
            leases.expire(tx)
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
