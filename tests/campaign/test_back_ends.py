"""The same campaign on SQLite and on PostgreSQL: status, exports, import and challenge give the same results."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duelpool.campaign.exports.files import levels_of, write_csv, write_log, write_prefs, write_qrels
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.views.status import status
from duelpool.files import Run
from duelpool.records import Answer, Outcome, Pool
from duelpool.setup.challenge import challenge, find_challenges
from duelpool.store import Store, open_store
from duelpool.store.leases import UnknownQuestion
from support.campaigns import judge_all, make_campaign
from support.postgres import drop_database, new_database
from support.stores import BACK_ENDS, new_target

POOLS = [Pool("one", tuple("cdefghijkl"), twins={"c": ("c2",)}), Pool("two", ("É", "z", "a"))]
LATE = Run.from_rankings("late", {"one": [("a", 2.0), ("c", 1.0)]})


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    url = new_database()
    try:
        with (
            open_store(tmp_path / "campaign.db", create=True) as file,
            open_store(url, create=True) as server,
        ):
            yield file, server
    finally:
        drop_database(url)


def story(store: Store, folder: Path) -> dict[str, Any]:
    """Judge, exclude, rewind, challenge, export and import; return everything but times and ids."""
    folder.mkdir()
    campaign = make_campaign(store, POOLS, strategy="prefbest:n=3,m=5")
    judge_all(campaign)
    campaign.exclude("p2", "to see")
    campaign.rewind("one", "prune-1", "to see")
    judge_all(campaign, people=2)
    campaign.reinstate("p2")
    judge_all(campaign)
    challenge(campaign, find_challenges(campaign, LATE))
    judge_all(campaign)
    for write, name in ((write_prefs, "p"), (write_qrels, "q"), (write_log, "l"), (write_csv, "c")):
        write(campaign, folder / name)
    lines = [json.loads(line) for line in (folder / "l").read_text().splitlines()]
    for line in lines:
        line.pop("time")
        line.pop("question", None)
    second = make_campaign(
        store, [Pool("one", (*POOLS[0].items, "a")), POOLS[1]], strategy="prefbest:n=3,m=5", name="2"
    )
    taken = import_file(second, folder / "l")
    assert levels_of(second)["topics"] == levels_of(campaign)["topics"]
    now = status(campaign).as_json()
    return {
        "status": now,
        "prefs": (folder / "p").read_text(),
        "qrels": (folder / "q").read_text(),
        "rows": len((folder / "c").read_text().splitlines()),
        "log": lines,
        "taken": (taken.judgments, taken.others, taken.closings),
    }


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_an_assessor_reads_their_question_again(back_end: str, tmp_path: Path) -> None:
    with new_target(back_end, tmp_path) as target, open_store(target, create=True) as store:
        campaign, other = make_campaign(store), make_campaign(store, name="other")
        campaign.enrol("p0")
        question = campaign.next_question("p0")
        assert question is not None
        assert campaign.question(question.id, "p0") == question
        for wrong, assessor in ((campaign, "p1"), (other, "p0")):
            with pytest.raises(UnknownQuestion, match="for this assessor"):
                wrong.question(question.id, assessor)
            with pytest.raises(UnknownQuestion, match="for this assessor"):
                wrong.answer(question.id, assessor, Answer(Outcome.LEFT))


@pytest.mark.long
def test_both_back_ends_give_the_same_results(both: tuple[Store, Store], tmp_path: Path) -> None:
    file, server = both
    mine, theirs = story(file, tmp_path / "file"), story(server, tmp_path / "server")
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert mine[name] == theirs[name], name
    assert mine["qrels"] == "one 0 a 1\ntwo 0 a 1\n"
