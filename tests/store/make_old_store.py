"""Makes the example store of the present schema, for the upgrade tests of later ones.

    python tests/store/make_old_store.py

Run it once for each version of the schema, before the next one exists: tests/store/data/schema-0001.db and, next to it,
what that version exported. It is never made again once a version was released.
"""

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.exports.files import write_log, write_prefs, write_qrels
from duelpool.files import Run
from duelpool.leaderboard.scoring import keep_runs
from duelpool.records import Answer, Judgment, Kind, Outcome, Passage, Pool, Question, Topic
from duelpool.store import open_store
from duelpool.store.holdings import TestPair
from duelpool.store.schema import SCHEMA_VERSION

FOLDER = Path(__file__).parent / "data"
EXPORTS: dict[str, Callable[[Campaign, Path], object]] = {
    "jsonl": write_log,
    "prefs": write_prefs,
    "qrels": write_qrels,
}
LETTERS = "abcdefgh"


def better(question: Question) -> Answer:
    """Return the right answer: the smaller letter wins."""
    won = question.right is None or question.left < question.right
    return Answer(
        Outcome.LEFT if won else Outcome.RIGHT, seconds=2.87, note="häufig ✓", confidence=0.75, context_uses=2
    )


def crowd(store_path: Path) -> None:
    """A crowd: an assignment that is finished, one stopped, one failed, and one in progress."""
    with open_store(store_path, create=True) as store:
        known = [TestPair(f"known-{at}", "one", "a", f"off-{at}") for at in range(12)]
        campaign = Campaign.create(
            store,
            "crowd",
            Settings(strategy="prefbest", judges="crowd", targets=5, tests=2, repeat_every=4, cap=3),
            topics=[
                Topic("one", "Where?", "A place.", ("Who?",), ("short",), 2.0, ("Here.", "There.")),
                Topic("two", "¿Dónde está?"),
            ],
            pools=[
                Pool("one", tuple(LETTERS), {"a": 2.0, "b": 1.0}, {"a": ("a2", "a3")}),
                Pool("two", tuple(LETTERS[:5])),
            ],
            passages=[
                Passage("a", "Text of **a**.", "Title", "https://example.org/a", "markdown"),
                *(Passage(item, f"Text of {item}: \N{SNOWMAN}") for item in LETTERS[1:]),
            ],
            test_pairs=known,
        )
        keep_runs(
            campaign, [Run.from_rankings("bm25", {"one": [("b", 2.0), ("a2", 1.5)], "two": [("a", 0.5)]})]
        )
        for worker in ("worker-1", "worker-2", "worker-3", "worker-4"):
            campaign.enrol(worker, "crowd")
        for round_ in range(2):
            first = campaign.next_assignment("worker-1")
            assert first is not None
            for question in first.questions:
                campaign.answer(question.id, "worker-1", better(question))
            undone = campaign.undo(first.questions[0].id, "worker-1")
            campaign.answer(undone.id, "worker-1", better(undone))
            campaign.finish(first.id, "finished" if round_ == 0 else "stopped")
        failing = campaign.next_assignment("worker-2")
        assert failing is not None
        for question in failing.questions:
            campaign.answer(
                question.id, "worker-2", Answer(Outcome.LEFT if question.left > "o" else Outcome.RIGHT)
            )
        campaign.finish(failing.id)
        campaign.exclude("worker-2", "clicked through")
        open_one = campaign.next_assignment("worker-3")
        assert open_one is not None
        for question, outcome in zip(
            open_one.questions, (Outcome.CANNOT_JUDGE, Outcome.SKIP, Outcome.LEFT_BAD), strict=False
        ):
            campaign.answer(question.id, "worker-3", Answer(outcome))
        campaign.add_judgments(
            [Judgment("two", "a", "b", Outcome.LEFT, assessor="elsewhere", propensity=0.25)]
        )


def dedicated(store_path: Path) -> None:
    """Dedicated people: phases that closed, one that was rewound, a retraction, topics for certain people."""
    with open_store(store_path) as store:
        campaign = Campaign.create(
            store,
            "dedicated",
            Settings(strategy="prefbest:n=3,m=4", kind=Kind.DEFINITE, ties=True, seed=7),
            topics=[Topic("eins", "Wo?"), Topic("zwei", "Wann?")],
            pools=[Pool("eins", tuple(LETTERS)), Pool("zwei", tuple(LETTERS[:6]))],
            passages=[Passage(item, f"Text von {item}.") for item in LETTERS],
        )
        for person in ("anna", "bert"):
            campaign.enrol(person, "dedicated")
        campaign.assign(["zwei"], ["bert"])
        for person in ("anna", "bert"):
            while (question := campaign.next_question(person)) is not None:
                campaign.answer(question.id, person, better(question))
        campaign.retract("eins", [2], "a slip")
        closed = campaign.live.state("zwei").closed_in_log
        campaign.rewind("zwei", closed[-1], "a second look")


def main() -> None:
    """Make the store and what it exports."""
    name = f"schema-{SCHEMA_VERSION}"
    path = FOLDER / f"{name}.db"
    if path.exists():
        sys.exit(f"{path} is there already; a released schema's store is never made anew.")
    FOLDER.mkdir(exist_ok=True)
    crowd(path)
    dedicated(path)
    with open_store(path, writable=False) as store:
        for campaign in ("crowd", "dedicated"):
            for ending, write in EXPORTS.items():
                write(Campaign.open(store, campaign), FOLDER / f"{name}.{campaign}.{ending}")
    with sqlite3.connect(path) as connection:  # small, and one file
        connection.execute("pragma journal_mode = delete")
        connection.execute("pragma page_size = 1024")
        connection.execute("vacuum")
    connection.close()


if __name__ == "__main__":
    main()
