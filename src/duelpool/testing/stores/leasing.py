"""Checks of leases: the cap, one per assessor, expiry, return and extension."""

from collections import Counter

from duelpool.records import Outcome, Question
from duelpool.store import Store, leases
from duelpool.store.leases import Conflict, TooLate, UnknownQuestion, Wanted
from duelpool.testing.promises import require
from duelpool.testing.stores.scene import TOPIC, Scene, refused, run_concurrently


def check_the_cap(store: Store) -> None:
    """A pair has at most as many live questions as its cap, in either order of sides; each pair has its own."""
    scene = Scene.set_up(store)
    for person in ("p0", "p1", "p2"):
        scene.leased(person, Wanted(TOPIC, *(("a", "b") if person == "p1" else ("b", "a"))))
    require(scene.lease("p3") is None, "a pair at its cap is passed over")
    require(scene.lease("p3", Wanted(TOPIC, "a", "c")) is not None, "another pair has its own cap")
    require(
        scene.lease("p3", Wanted(TOPIC, "a", "b", criterion="brevity")) is not None,
        "another criterion has its own cap",
    )
    scene.cap = 2
    scene.expire()
    scene.judged("p0")
    scene.judged("p1")
    require(scene.lease("p3") is None, "answers count like leases")
    scene.cap = 0
    require(scene.lease("p5", Wanted(TOPIC, "x", "y")) is None, "a cap of 0 allows no lease")
    scene.cap = 2_000_000_000
    require(scene.lease("p3") is not None, "a cap may be very high")
    scene.cap = 3
    scene.require_consistent()


def check_a_lowered_cap(store: Store) -> None:
    """After the cap is lowered, a pair with that many live questions gets no new one."""
    scene = Scene.set_up(store, cap=3)
    first = scene.leased("p0")
    scene.leased("p1")
    scene.leased("p2")
    store.of(scene.campaign).write(lambda tx: leases.return_questions(tx, [first.id]))
    scene.cap = 2
    require(scene.lease("p3") is None, "two higher slots fill a cap of two")
    scene.require_consistent()


def check_one_per_person(store: Store) -> None:
    """An assessor never holds a pair twice, in one call or in ten concurrent ones."""
    scene = Scene.set_up(store)
    granted = scene.lease_all(
        "p0", [Wanted(TOPIC, "a", "b"), Wanted(TOPIC, "b", "a"), Wanted(TOPIC, "a", "c")]
    )
    require([each.pair for each in granted] == [("a", "b"), ("a", "c")], "a pair is leased once per assessor")
    many = [Wanted(TOPIC, "x", str(at)) for at in range(5)]
    require(len(scene.lease_all("p0", many, at_most=2)) == 2, "no more are leased than asked for")
    racing = run_concurrently(lambda _: scene.lease("p1"), range(10))
    require(
        sum(isinstance(each, Question) for each in racing) == 1, "ten concurrent calls lease one", seen=racing
    )
    scene.answer(granted[0], "p0")
    require(scene.lease("p0") is None, "an assessor who has answered isn't asked again")
    scene.require_consistent()


def check_the_cap_under_threads(store: Store) -> None:
    """Many concurrent assessors on a few pairs: every slot is leased, none twice."""
    scene = Scene.set_up(store, people=12)
    wanted = [Wanted(TOPIC, "a", other) for other in "bcdef"]
    granted = run_concurrently(
        lambda at: scene.lease_all(f"p{at}", wanted[at % 5 :] + wanted[: at % 5]), range(12)
    )
    taken = Counter(each.pair for got in granted if isinstance(got, list) for each in got)
    require(set(taken.values()) == {3} and len(taken) == 5, "every pair is leased up to its cap", seen=taken)
    scene.require_consistent()


def check_cannot_judge_and_skip(store: Store) -> None:
    """Both free the slot; after "cannot judge" the pair isn't offered again, after a skip it may be."""
    scene = Scene.set_up(store, cap=1)
    scene.judged("p0", Outcome.CANNOT_JUDGE)
    require(scene.lease("p0") is None, "cannot judge: not offered to this assessor again")
    scene.judged("p1", Outcome.SKIP)
    scene.judged("p1", Outcome.SKIP)
    scene.judged("p1", Outcome.FLIP_ABSTAIN)
    require(scene.lease("p1") is None, "an abstention is not offered again")
    question = scene.leased("p2")
    require(scene.lease("p3") is None, "the slot is held")
    scene.answer(question, "p2", Outcome.SKIP)
    require(scene.answer(question, "p2", Outcome.SKIP).repeated, "a skip is stored once")
    refused(Conflict, lambda: scene.answer(question, "p2"), "a skipped question takes no other answer")
    require(len(scene.lines()) == 5, "each is a line of the log", seen=scene.lines())
    scene.require_consistent()


def check_expiry(store: Store) -> None:
    """An expired lease frees its slot, and the same assessor may get the pair again."""
    scene = Scene.set_up(store, cap=1)
    question = scene.leased("p0")
    require(scene.expire(later=59.0) == 0 and scene.lease("p1") is None, "a lease lasts until it expires")
    require(scene.expire(later=61.0) == 1, "an expired lease ends")
    again = scene.leased("p0")
    require(again.id != question.id, "the same assessor gets a new question")
    scene.expire()
    scene.answer(scene.leased("p1"), "p1")
    require(scene.expire() == 0, "an answer doesn't expire")
    scene.require_consistent()


def check_return_and_extend(store: Store) -> None:
    """A returned question frees its slot; an extended lease lasts longer."""
    scene = Scene.set_up(store, cap=1)
    question = scene.leased("p0")
    require(
        store.of(scene.campaign).write(lambda tx: leases.return_questions(tx, [question.id])) == 1,
        "it is returned",
    )
    require(
        store.of(scene.campaign).write(lambda tx: leases.return_questions(tx, [question.id])) == 0,
        "only once",
    )
    held = scene.leased("p1")

    def extend(person: str) -> float:
        return store.of(scene.campaign).write(
            lambda tx: leases.extend(tx, leases.lock_own_question(tx, held.id, person), seconds=500.0)
        )

    require(extend("p1") > held.expires + 300, "the lease ends later")
    require(scene.expire(later=400.0) == 0, "an extended lease lasts longer")
    refused(UnknownQuestion, lambda: extend("p0"), "only the holder can extend a lease")
    scene.expire()
    refused(TooLate, lambda: extend("p1"), "an expired lease can't be extended")
    scene.require_consistent()
