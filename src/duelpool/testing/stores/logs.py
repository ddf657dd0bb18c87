"""Checks of the log and of transactions."""

from functools import partial

from sqlalchemy import text, update

from duelpool.errors import BadRecord, DuelpoolError
from duelpool.records import Answer, Judgment, Kind, Outcome
from duelpool.store import Reading, Store, StoreError, Writing, log, schema
from duelpool.store.leases import Conflict, Wanted
from duelpool.testing.promises import require
from duelpool.testing.stores.scene import TOPIC, Scene, refused, run_concurrently

UNSTORABLE = ("a\x00b", "\ud800")


def check_the_log_keeps_everything(store: Store) -> None:
    """A judgment is read from the log with every field that it was stored with."""
    scene = Scene.set_up(store)
    want = Wanted(
        TOPIC, "b", "a", "brevity", "second", Kind.DEFINITE, "phase 3", "p-17", 0.125, "prefbest/1", None
    )
    question = scene.leased("p0", want)
    response = Answer(Outcome.DEFINITELY_RIGHT, None, 0.75, "a note \N{SNOWMAN} 'quoted'\n", 2.87, 4, True)
    receipt = scene.give(question, "p0", response, at_once=False)
    grade = scene.leased("p0", Wanted(TOPIC, "a", None, kind=Kind.GRADE))
    scene.give(grade, "p0", Answer(Outcome.GRADE, 2.5))
    line, second = scene.lines()
    stored = line.judgment
    require(
        stored is not None
        and stored
        == Judgment(
            TOPIC,
            "b",
            "a",
            Outcome.DEFINITELY_RIGHT,
            "phase 3",
            "p-17",
            "p0",
            "brevity",
            "second",
            Kind.DEFINITE,
            None,
            0.75,
            "a note \N{SNOWMAN} 'quoted'\n",
            2.87,
            4,
            True,
            True,
            False,
            False,
            0.125,
            "prefbest/1",
            question.id,
            receipt.seq,
            log.iso_time(line.time),
        ),
        "every field is kept",
        seen=stored,
    )
    require(not line.at_once and second.at_once, "whether it reaches strategies at once is kept")
    require(second.judgment is not None and second.judgment.grade == 2.5, "a grade is kept", seen=second)
    scene.require_consistent()


def check_seq_under_threads(store: Store) -> None:
    """Every topic's log is numbered from 1 without gaps, under concurrent and failing writes."""
    scene = Scene.set_up(store, topics=("t1", "t2"))

    def write(at: int) -> int:
        topic = f"t{at % 2 + 1}"

        def work(tx: Writing) -> int:
            seq = log.append(tx, topic, log.PHASE_CLOSED, phase=str(at))
            if at % 5 == 0:
                raise Conflict("no", remedy="none")
            return seq

        return store.of(scene.campaign).write(work)

    results = run_concurrently(write, range(40))
    stored = sorted(each for each in results if isinstance(each, int))
    require(stored == sorted([*range(1, 17), *range(1, 17)]), "a failed write leaves no gap", seen=stored)
    for topic in ("t1", "t2"):
        require(
            [line.seq for line in scene.lines(topic)] == list(range(1, 17)), "numbered from 1 without gaps"
        )
        head = store.of(scene.campaign).read(partial(log.head, topic=topic))
        require(head == 16, "the head is the last line")
    scene.require_consistent()


def check_reading_and_writing_in_one(store: Store) -> None:
    """A write may read the log and continue writing."""
    scene = Scene.set_up(store)
    for person in ("p0", "p1"):
        scene.judged(person)

    def work(tx: Writing) -> int:
        before = list(log.read_lines(tx, TOPIC))
        log.append(tx, TOPIC, log.REWIND, phase="1")
        after = list(log.read_lines(tx, TOPIC, after=before[-1].seq))
        return len(before) * 10 + len(after)

    require(store.of(scene.campaign).write(work) == 21, "a write sees what it wrote")


def check_a_failing_write_fails_alone(store: Store) -> None:
    """Of many concurrent writes, those that fail store nothing and don't affect the others."""
    scene = Scene.set_up(store)

    def write(at: int) -> int:
        def work(tx: Writing) -> int:
            seq = log.append(tx, TOPIC, log.PHASE_CLOSED, phase=str(at))
            if at % 4 == 1:
                raise Conflict("no", remedy="none")
            if at % 4 == 2:
                tx.connection.execute(text("select * from a_table_that_is_not_there"))
            if at % 4 == 3:
                tx.connection.execute(
                    update(schema.campaign).where(schema.campaign.c.id == scene.campaign).values(state="odd")
                )
            return seq

        try:
            return store.of(scene.campaign).write(work)
        except DuelpoolError:
            raise
        except Exception as error:  # the driver's error for a wrong statement
            raise Conflict(type(error).__name__, remedy="none") from error

    results = run_concurrently(write, range(40))
    require(
        [isinstance(each, int) for each in results] == [at % 4 == 0 for at in range(40)],
        "each write succeeds or fails alone",
        seen=results,
    )
    require(
        {int(line.phase) for line in scene.lines()} == set(range(0, 40, 4)), "failed writes store nothing"
    )
    scene.require_consistent()


def check_a_write_is_seen_when_it_returns(store: Store) -> None:
    """A write that has returned is visible to every reader."""
    scene = Scene.set_up(store)
    for at in range(20):
        store.of(scene.campaign).write(lambda tx: log.append(tx, TOPIC, log.REWIND, phase="x"))
        require(len(scene.lines()) == at + 1, "a reader sees acknowledged writes")


def check_reads_are_snapshots(store: Store) -> None:
    """A read sees one state from its beginning to its end, and can't write."""
    scene = Scene.set_up(store)

    def look(tx: Reading) -> tuple[int, int]:
        before = len(list(log.read_lines(tx, TOPIC)))
        scene.judged("p0")
        return before, len(list(log.read_lines(tx, TOPIC)))

    require(store.of(scene.campaign).read(look) == (0, 0), "a read doesn't see later writes")
    require(len(scene.lines()) == 1, "the next read sees them")
    refused(
        StoreError,
        lambda: store.read(
            lambda connection: (
                connection.execute(
                    update(schema.campaign)
                    .where(schema.campaign.c.id == scene.campaign)
                    .values(state="paused")
                ).rowcount
            )
        ),
        "a read can't write",
    )


def check_time(store: Store) -> None:
    """Time is the database's, in seconds since 1970, and doesn't go back."""
    times = [store.write(lambda connection, now: now) for _ in range(5)]
    require(times == sorted(times), "time doesn't go back", seen=times)
    require(1.7e9 < times[0] < 1e11, "seconds since 1970", seen=times[0])


def check_odd_texts(store: Store) -> None:
    """A note is stored unchanged or refused with a remedy; nothing is half-written."""
    scene = Scene.set_up(store)
    for at, note in enumerate(
        ("", "'; drop table log; --", "\u202e\U0001f600", "\r\n\t", "%s %(x)s :x ?", *UNSTORABLE)
    ):
        question = scene.leased("p0", Wanted(TOPIC, "a", f"b{at}"))
        before = len(scene.lines())
        try:
            scene.give(question, "p0", Answer(Outcome.LEFT, note=note))
        except BadRecord as error:
            require(note in UNSTORABLE and bool(error.remedy), "only unstorable notes are refused", note=note)
            require(len(scene.lines()) == before, "nothing is written")
        else:
            require(
                note not in UNSTORABLE, "a note that one back end can't store is refused by all", note=note
            )
            last = scene.lines()[-1].judgment
            require(
                last is not None and last.note == note, "a note is stored unchanged", note=note, seen=last
            )
    scene.require_consistent()
