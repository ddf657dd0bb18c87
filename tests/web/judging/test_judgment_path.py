"""The modules that a judgment passes, from the click to the log, to the strategy and to the leaderboard."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import duelpool
from duelpool.campaign.views.watch import Watch
from duelpool.files import Run
from duelpool.leaderboard.live import LiveLeaderboard
from duelpool.leaderboard.scoring import keep_runs
from duelpool.records import Answer, Judgment
from duelpool.store.log import Line
from support.campaigns import make_campaign
from support.visitors import Person, new_store, served

SOURCE = str(Path(duelpool.__file__).parent)
PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"

TO_THE_LOG = [
    "web/judging/callers.py",
    "web/judging/routes.py",
    "web/judging/schemas.py",
    "campaign/campaign.py",
    "store/leases.py",
    "records.py",
    "store/log.py",
    "store/statements.py",
]
TO_THE_STRATEGY = [
    "store/transactions.py",
    "campaign/log/live_topics.py",
    "campaign/log/replay.py",
    "campaign/log/newcomers.py",
    "strategies/allpairs.py",
]
TO_THE_LEADERBOARD = [
    "campaign/views/watch.py",
    "campaign/views/tally.py",
    "leaderboard/live.py",
    "leaderboard/labelled.py",
    "files/preferences.py",
]
# A snapshot of the store hands every read through; the reply to the page says that the answer is saved.
NOT_COUNTED = {"store/__init__.py", "store/database.py", "store/snapshots.py", "web/judging/flow.py"}
PARTS_OF_STRATEGIES = {
    "strategies/tables/encounters.py",
    "strategies/tables/win_table.py",
    "strategies/tables/winshares.py",
}


def carries(value: object, question: str, depth: int = 0) -> bool:
    """Say whether a value is the answer, its judgment or a line of the log, or a short list of such."""
    if isinstance(value, Answer | Judgment | Line):
        return True
    if isinstance(value, dict):
        return value.get("question") == question and "outcome" in value
    return (
        depth < 2
        and isinstance(value, list | tuple)
        and len(value) < 50
        and any(carries(each, question, depth + 1) for each in value)
    )


class Follower:
    """Notes each module of ours whose functions take or return what carries the answer to a question.

    It follows the threads that start while the fixture lasts: those of the server, and the store's writer.
    """

    def __init__(self) -> None:
        self.question = ""
        self.passed: list[str] = []

    def follow(self, question: str) -> list[str]:
        """Follow this question's answer from now on; return the modules, as they come."""
        self.question, self.passed = question, []
        return self.passed

    def note(self, frame: FrameType, event: str, returned: Any) -> None:
        name = frame.f_code.co_filename
        if not self.question or not name.startswith(SOURCE) or event not in {"call", "return"}:
            return
        if event == "call":
            count = frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount
            values = [frame.f_locals.get(each) for each in frame.f_code.co_varnames[:count]]
        else:
            values = [returned, *(frame.f_locals.values() if frame.f_code.co_name == "answer" else ())]
        module = name.removeprefix(f"{SOURCE}/")
        if module not in self.passed and any(carries(value, self.question) for value in values):
            self.passed.append(module)


@pytest.fixture
def follower() -> Iterator[Follower]:
    following = Follower()
    threading.setprofile(following.note)
    sys.setprofile(following.note)
    yield following
    sys.setprofile(None)
    threading.setprofile(None)


def test_a_judgment_passes_few_modules(follower: Follower, tmp_path: Path) -> None:
    with new_store(tmp_path / "campaign.db") as store:
        campaign = make_campaign(store, {"one": "abcd"}, strategy="allpairs", steps=())
        ranking = [(item, -float(at)) for at, item in enumerate("abcd")]
        keep_runs(campaign, [Run.from_rankings("run", {"one": ranking})])
    with served(tmp_path / "campaign.db") as app:
        person = Person(app)
        question = person.work()["questions"][0]
        live = LiveLeaderboard(Watch(app.state.campaigns.flow(person.campaign).campaign))
        clicked = follower.follow(question["id"])
        assert person.answer(question).status_code == 200
        scored = follower.follow(question["id"])
        assert live.board("ppref").rows
        follower.follow("")
    passed = [module for module in clicked if module not in NOT_COUNTED | PARTS_OF_STRATEGIES]
    assert set(passed) == {*TO_THE_LOG, *TO_THE_STRATEGY}, passed
    assert set(scored) - {*TO_THE_LOG, *TO_THE_STRATEGY} - NOT_COUNTED == set(TO_THE_LEADERBOARD), scored
    assert len(TO_THE_LOG) <= 8
    assert len(TO_THE_STRATEGY) <= 6
    assert len(TO_THE_LEADERBOARD) <= 6


def test_the_architecture_page_draws_the_path() -> None:
    text = PAGE.read_text(encoding="utf-8").replace("strategies/NAME.py", "strategies/allpairs.py")
    drawn = text.partition("```text\n")[2].partition("```")[0]
    at = [drawn.index(module) for module in (*TO_THE_LOG, *TO_THE_STRATEGY, *TO_THE_LEADERBOARD)]
    assert at == sorted(at)
    for count, modules in zip((8, 5, 5), (TO_THE_LOG, TO_THE_STRATEGY, TO_THE_LEADERBOARD), strict=True):
        assert len(modules) == count
