"""Checks of the log and of transactions."""

from functools import partial

from sqlalchemy import text, update

from duelpool.errors import BadRecord, DuelpoolError
from duelpool.records import Judgment, Kind, Outcome
from duelpool.store import Reading, Store, StoreError, Writing, log, schema
from duelpool.store.leases import Answer, Conflict, Wanted
from duelpool.testing.promises import require
from duelpool.testing.stores.scene import TOPIC, Scene, at_once, refused

UNSTORABLE = ("a\x00b", "\ud800")


def check_the_log_keeps_everything(store: Store) -> None:
    """A judgment comes back from the log with every field that it carried."""
    scene = Scene.set_up(store)
    want = Wanted(
        TOPIC, "b", "a", "brevity", "second", Kind.DEFINITE, "phase 3", "p-17", 0.125, "prefbest/1", None
    )
    question = scene.leased("p0", want)
    given = Answer(Outcome.DEFINITELY_RIGHT, None, 0.75, "a note \N{SNOWMAN} 'quoted'\n", 2.87, 4, True)
    receipt = scene.give(question, "p0", given, at_once=False)
    grade = scene.leased("p0", Wanted(TOPIC, "a", None, kind=Kind.GRADE))
    scene.give(grade, "p0", Answer(Outcome.GRADE, 2.5))
    line, second = scene.lines()
    kept = line.judgment
    require(
        kept is not None
        and kept
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
        seen=kept,
    )
    require(not line.at_once and second.at_once, "whether it is told is kept")
    require(second.judgment is not None and second.judgment.grade == 2.5, "a grade is kept", seen=second)
    scene.sound()


def check_seq_under_threads(store: Store) -> None:
    """Every topic's log is gapless from 1, whoever writes to it at once, and whatever fails in between."""
    scene = Scene.set_up(store, topics=("t1", "t2"))

    def write(at: int) -> int:
        topic = f"t{at % 2 + 1}"

        def work(tx: Writing) -> int:
            seq = log.append(tx, topic, log.PHASE_CLOSED, phase=str(at))
            if at % 5 == 0:
                raise Conflict("no", remedy="none")
            return seq

        return store.of(scene.campaign).write(work)

    results = at_once(write, range(40))
    stored = sorted(each for each in results if isinstance(each, int))
    require(stored == sorted([*range(1, 17), *range(1, 17)]), "a failed write leaves no gap", seen=stored)
    for topic in ("t1", "t2"):
        require([line.seq for line in scene.lines(topic)] == list(range(1, 17)), "gapless from 1")
        head = store.of(scene.campaign).read(partial(log.head, topic=topic))
        require(head == 16, "the head is the last line")
    scene.sound()


def check_reading_and_writing_in_one(store: Store) -> None:
    """A write may read the log and go on writing."""
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
    """Of many writes at once, those that fail leave nothing behind and take nobody with them."""
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
        except Exception as error:  # whatever the driver calls a mistake of ours
            raise Conflict(type(error).__name__, remedy="none") from error

    results = at_once(write, range(40))
    require(
        [isinstance(each, int) for each in results] == [at % 4 == 0 for at in range(40)],
        "each write has its own fate",
        seen=results,
    )
    require(
        {int(line.phase) for line in scene.lines()} == set(range(0, 40, 4)), "what failed left nothing behind"
    )
    scene.sound()


def check_a_write_is_seen_when_it_returns(store: Store) -> None:
    """What a write returned after is there for every reader."""
    scene = Scene.set_up(store)
    for at in range(20):
        store.of(scene.campaign).write(lambda tx: log.append(tx, TOPIC, log.REWIND, phase="x"))
        require(len(scene.lines()) == at + 1, "a reader sees what was acknowledged")


def check_reads_are_snapshots(store: Store) -> None:
    """A read sees one state from its beginning to its end, and can't write."""
    scene = Scene.set_up(store)

    def look(tx: Reading) -> tuple[int, int]:
        before = len(list(log.read_lines(tx, TOPIC)))
        scene.judged("p0")
        return before, len(list(log.read_lines(tx, TOPIC)))

    require(store.of(scene.campaign).read(look) == (0, 0), "a read isn't disturbed by writes")
    require(len(scene.lines()) == 1, "the next one sees them")
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
    """Whatever a note holds is stored as it is or refused with a remedy; nothing is half-written."""
    scene = Scene.set_up(store)
    for at, note in enumerate(
        ("", "'; drop table log; --", "\u202e\U0001f600", "\r\n\t", "%s %(x)s :x ?", *UNSTORABLE)
    ):
        question = scene.leased("p0", Wanted(TOPIC, "a", f"b{at}"))
        before = len(scene.lines())
        try:
            scene.give(question, "p0", Answer(Outcome.LEFT, note=note))
        except BadRecord as error:
            require(
                note in UNSTORABLE and bool(error.remedy), "only what can't be stored is refused", note=note
            )
            require(len(scene.lines()) == before, "nothing of it is written")
        else:
            require(note not in UNSTORABLE, "what some store can't keep, none takes", note=note)
            last = scene.lines()[-1].judgment
            require(last is not None and last.note == note, "a note is kept as it is", note=note, seen=last)
    scene.sound()
