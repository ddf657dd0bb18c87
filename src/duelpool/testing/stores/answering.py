"""Checks of answers: sent twice, late, undone, retracted, restored, imported."""

from collections import Counter
from functools import partial

from sqlalchemy import select

from duelpool.records import Answer, Judgment, Outcome
from duelpool.store import Store, log, schema
from duelpool.store.leases import Conflict, Receipt, TooLate, UnknownQuestion, Wanted
from duelpool.testing.promises import require
from duelpool.testing.stores.scene import TOPIC, Scene, refused, run_concurrently


def check_the_same_answer_ten_times(store: Store) -> None:
    """Ten equal answers make one row and ten equal receipts; a different answer is a conflict."""
    scene = Scene.set_up(store)
    question = scene.leased("p0")
    replies = run_concurrently(lambda _: scene.answer(question, "p0"), range(10))
    receipts = [reply for reply in replies if isinstance(reply, Receipt)]
    require(len(receipts) == 10 and len(set(receipts)) == 1, "ten equal receipts", seen=replies)
    require(sum(not each.repeated for each in receipts) == 1, "one of them was the first", seen=receipts)
    require(len(scene.lines()) == 1, "one row", seen=scene.lines())
    refused(Conflict, lambda: scene.answer(question, "p0", Outcome.RIGHT), "another answer is a conflict")
    mixed = scene.leased("p1")
    racing = run_concurrently(lambda side: scene.answer(mixed, "p1", side), (Outcome.LEFT, Outcome.RIGHT) * 5)
    require(
        sorted(type(each).__name__ for each in racing) == ["Conflict"] * 5 + ["Receipt"] * 5,
        "of two different concurrent answers, one is stored",
        seen=racing,
    )
    require(len(scene.lines()) == 2, "it is stored once")
    scene.require_consistent()


def check_late_answers(store: Store) -> None:
    """A late answer is accepted while the cap allows it; otherwise it is refused, and nothing is written."""
    scene = Scene.set_up(store, cap=1)
    question = scene.leased("p0")
    scene.expire()
    require(scene.answer(question, "p0").late, "a late answer is accepted and marked late")
    second = Scene.set_up(store, cap=1)
    slow, quick = second.leased("p0"), None
    second.expire()
    quick = second.leased("p1")
    refused(TooLate, lambda: second.answer(slow, "p0"), "no late answer to a pair at its cap of leases")
    second.answer(quick, "p1")
    refused(TooLate, lambda: second.answer(slow, "p0"), "no late answer to a pair at its cap of answers")
    require(len(second.lines()) == 1, "nothing is written")
    require(second.answer(slow, "p0", Outcome.SKIP).late, "a late skip needs no slot")
    third = Scene.set_up(store, cap=2, people=10)
    late = []
    for at in range(10):
        late.append(third.leased(f"p{at}"))
        third.expire()
    racing = run_concurrently(lambda at: third.answer(late[at], f"p{at}"), range(10))
    kinds = Counter(type(each).__name__ for each in racing)
    require(
        kinds == {"Receipt": 2, "TooLate": 8},
        "of ten concurrent late answers, the cap is accepted",
        seen=kinds,
    )
    twice = Scene.set_up(store, cap=3)
    old = twice.leased("p0")
    twice.expire()
    new = twice.leased("p0")
    refused(
        TooLate,
        lambda: twice.answer(old, "p0"),
        "the old question is refused while the assessor holds a new one",
    )
    twice.answer(new, "p0")
    for each in (scene, second, third, twice):
        each.require_consistent()


def check_undo(store: Store) -> None:
    """Undo retracts the answer by a new line, and the same assessor has the same question again."""
    scene = Scene.set_up(store, cap=1)
    question = scene.leased("p0")
    refused(Conflict, lambda: scene.undo(question, "p0"), "without an answer there is nothing to undo")
    first = scene.answer(question, "p0")
    refused(UnknownQuestion, lambda: scene.undo(question, "p1"), "an assessor can't undo another's answer")
    again = scene.undo(question, "p0")
    require(again.id == question.id and scene.lease("p1") is None, "the slot stays with the assessor")
    second = scene.answer(again, "p0", Outcome.RIGHT)
    require(second.seq == first.seq + 2, "answer, retraction, answer", seen=scene.lines())
    attempt = store.read(
        lambda connection: (
            connection.execute(
                select(schema.log.c.attempt)
                .where(schema.log.c.question == question.id)
                .order_by(schema.log.c.seq)
            )
            .scalars()
            .all()
        )
    )
    require(list(attempt) == [1, 2], "each undo is followed by another attempt", seen=attempt)
    old = scene.give(question, "p0", Answer(Outcome.LEFT, attempt=1))
    require(old == first and old.repeated, "an old answer that arrives late is acknowledged", seen=old)
    refused(
        Conflict,
        lambda: scene.give(question, "p0", Answer(Outcome.RIGHT, attempt=1)),
        "a different answer to the old attempt is refused",
    )
    refused(
        Conflict,
        lambda: scene.give(question, "p0", Answer(Outcome.RIGHT, attempt=3)),
        "an answer to a future attempt is refused",
    )
    require(len(scene.lines()) == 3, "nothing is written")
    require(scene.restore(first.seq) == [], "an undone answer isn't restored")
    scene.retract(second.seq)
    require(scene.restore(first.seq) == [], "not even after the second answer is retracted")
    require(scene.restore(second.seq) == [second.seq], "the second answer can be restored")
    refused(Conflict, lambda: scene.answer(question, "p0"), "the restored answer is kept")
    for outcome in (Outcome.CANNOT_JUDGE, Outcome.SKIP):
        other = Wanted(TOPIC, "x", str(outcome))
        passed = scene.leased("p0", other)
        scene.answer(passed, "p0", outcome)
        scene.undo(passed, "p0")
        require(scene.answer(passed, "p0").seq > 0, f"{outcome} can be undone")
        skipped = scene.leased("p1", Wanted(TOPIC, "y", str(outcome)))
        scene.answer(skipped, "p1", outcome)
        scene.leased("p2", Wanted(TOPIC, "y", str(outcome)))
        refused(TooLate, partial(scene.undo, skipped, "p1"), "no undo when another assessor has the slot")
    scene.require_consistent()


def check_retract_and_restore(store: Store) -> None:
    """A retraction frees the slot; a restoration takes a free one; both are logged once."""
    scene = Scene.set_up(store, cap=1)
    question = scene.leased("p0")
    first = scene.answer(question, "p0").seq
    require(scene.retract(first, first, 99) == [first], "a judgment that counts is retracted")
    require(scene.retract(first) == [], "it is retracted once")
    refused(Conflict, lambda: scene.answer(question, "p0"), "a retracted question takes no answer")
    require(scene.restore(first) == [first] and scene.restore(first) == [], "it is restored once")
    scene.retract(first)
    second = scene.judged("p1").seq
    require(scene.restore(first) == [], "no restoration while the pair is at its cap")
    scene.retract(second)
    both = scene.restore(first, second)
    require(both == [first], "of two, one is restored: the cap allows one", seen=both)
    third = scene.judged("p2", Outcome.CANNOT_JUDGE, Wanted(TOPIC, "a", "z")).seq
    require(
        scene.retract(third) == [third] and scene.restore(third) == [third],
        "an abstention is retracted and restored",
    )
    racing = run_concurrently(lambda _: scene.retract(first, third), range(8))
    taken = sorted(seq for each in racing if isinstance(each, list) for seq in each)
    require(taken == [first, third], "of many concurrent retractions, one is logged", seen=racing)
    racing = run_concurrently(lambda _: scene.restore(first, second, third), range(8))
    back = sorted(seq for each in racing if isinstance(each, list) for seq in each)
    require(back == [first, third], "of many concurrent restorations, one is logged", seen=racing)
    scene.require_consistent()


def check_slots_of_imported_judgments(store: Store) -> None:
    """Imported judgments count towards the cap, even beyond it; retracted ones free their slots."""
    scene = Scene.set_up(store, cap=3)
    seqs = scene.add_judgments(
        Judgment(TOPIC, "a", "b", Outcome.LEFT, assessor="p0"), Judgment(TOPIC, "b", "a", Outcome.TIE)
    )
    require(scene.lease("p0") is None, "an assessor of an imported judgment isn't asked again")
    scene.judged("p1")
    require(scene.lease("p2") is None, "the cap counts imported judgments")
    require(
        scene.retract(seqs[0]) == seqs[:1] and scene.lease("p2") is not None, "a retracted one frees its slot"
    )
    require(scene.restore(seqs[0]) == [], "its slot is taken: it isn't restored")
    scene.require_consistent()
    many = Scene.set_up(store, cap=2)
    taken = many.add_judgments(*(Judgment(TOPIC, "a", "b", Outcome.RIGHT, assessor="p0") for _ in range(4)))
    require(len(many.lines()) == 4 and many.lease("p1") is None, "a file may hold more than the cap")
    many.retract(*taken[:2])
    require(many.lease("p1") is None, "two judgments are the cap")
    many.retract(taken[2])
    require(many.lease("p1") is not None, "one judgment is below the cap")
    racing = Scene.set_up(store, cap=3, people=6)

    def take_or_lease(at: int) -> object:
        if at % 2:
            return racing.lease(f"p{at}")
        return racing.add_judgments(Judgment(TOPIC, "a", "b", Outcome.LEFT, assessor=f"p{at}"))

    run_concurrently(take_or_lease, range(6))
    require(
        len(racing.lines()) == 3,
        "every imported judgment is stored, whatever is leased meanwhile",
        seen=racing.lines(),
    )
    for each in (many, racing):
        each.require_consistent()


def check_repeated_questions(store: Store) -> None:
    """A pair may be asked again of an assessor: it takes no slot, is answered once, and is marked repeated."""
    scene = Scene.set_up(store, cap=1)
    again = Wanted(TOPIC, "b", "a", occasion=2)
    scene.judged("p0")
    question = scene.leased("p0", again)
    require(scene.lease("p0", again) is None, "a repeated question is held once")
    scene.answer(question, "p0", Outcome.RIGHT)
    require(scene.lease("p0", again) is None, "a repeated question is answered once")
    scene.answer(scene.undo(question, "p0"), "p0", Outcome.LEFT)
    sources = [line.judgment.repeated for line in scene.lines() if line.judgment is not None]
    require(sources == [False, True, True], "the log marks repeated judgments", seen=sources)
    require(scene.lease("p1") is None, "a repeated question takes no slot")
    scene.require_consistent()


def check_imported_lines(store: Store) -> None:
    """Judgments without a question are logged, retracted and restored, and take no slot."""
    scene = Scene.set_up(store)
    judgment = Judgment(TOPIC, "a", "b", Outcome.LEFT, sides_known=False)
    seq = store.of(scene.campaign).write(lambda tx: log.append_judgment(tx, judgment, at_once=True))
    require(scene.retract(seq) == [seq] and scene.restore(seq) == [seq], "they are retracted and restored")
    refused(
        log.UnknownTopic,
        lambda: store.of(scene.campaign).write(lambda tx: log.append(tx, "nowhere", log.REWIND)),
        "an unknown topic has no log",
    )
    scene.require_consistent()


def check_foreign_questions(store: Store) -> None:
    """An unknown question and another assessor's are refused alike, and nothing is written."""
    scene = Scene.set_up(store)
    question = scene.leased("p0")
    refused(UnknownQuestion, lambda: scene.answer("no such", "p0"), "an unknown question is refused")
    refused(UnknownQuestion, lambda: scene.answer(question, "p1"), "another assessor's question is refused")
    refused(UnknownQuestion, lambda: scene.answer(question, "nobody"), "an unknown assessor is refused")
    require(scene.lines() == [], "nothing is written")
    scene.require_consistent()


def check_test_pairs(store: Store) -> None:
    """A test pair takes no slot, is held once per assessor, and never reaches a strategy."""
    scene = Scene.set_up(store, cap=1)
    test = Wanted(TOPIC, "good", "poor", test_pair="k1")
    questions = [scene.leased(f"p{at}", test) for at in range(4)]
    require(scene.lease("p0", test) is None, "a test pair is held once per assessor")
    for at, question in enumerate(questions):
        scene.answer(question, f"p{at}")
    require(
        all(line.test_pair == "k1" and not line.at_once for line in scene.lines()),
        "a test pair never reaches a strategy",
    )
    other = Wanted(TOPIC, "good", "poor", criterion="c", test_pair="k2")
    old = scene.leased("p0", other)
    scene.expire()
    new = scene.leased("p0", other)
    refused(TooLate, lambda: scene.answer(old, "p0"), "the old question is refused while a new one is leased")
    scene.answer(new, "p0")
    seq = scene.lines()[0].seq
    require(
        scene.retract(seq) == [seq] and scene.restore(seq) == [seq], "a test pair is retracted and restored"
    )
    scene.require_consistent()
