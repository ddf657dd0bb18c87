"""Work in the background gives way to answers, and to nobody else."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from duelpool import background
from duelpool.background import (
    answering,
    give_way,
    giving_way,
    keep_for_long,
    locked,
    start_in_background,
)
from duelpool.web.server.app import _sweep_on
from duelpool.web.server.guard import Guard

Awaited = TypeVar("Awaited")


class Waits(threading.Condition):
    """Keeps, of each wait, whether what it waited for came before its time was over."""

    def __init__(self) -> None:
        super().__init__()
        self.came: list[bool] = []

    def wait_for(self, predicate: Callable[[], Awaited], timeout: float | None = None) -> Awaited:
        came = super().wait_for(predicate, timeout)
        self.came.append(bool(came))
        return came


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits()
    monkeypatch.setattr(background._answers, "none", made)
    return made


def test_work_in_the_background_waits_until_all_answers_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PATIENCE", 60)
    at = threading.Event()

    def work() -> None:
        give_way()
        at.set()

    with answering(), answering():
        with answering():
            pass
        thread = start_in_background(work)
        assert not at.wait(0.1)
    thread.join()
    assert at.is_set()


def test_a_thread_that_also_does_other_work_gives_way_only_meanwhile(
    monkeypatch: pytest.MonkeyPatch, waits: Waits
) -> None:
    monkeypatch.setattr(background, "PATIENCE", 0.01)
    with answering():
        giving_way(give_way)()
        assert waits.came == [False]
        give_way()
        with pytest.raises(ZeroDivisionError):
            giving_way(lambda: 1 / 0)()
        give_way()
    assert waits.came == [False]


def test_what_a_server_does_every_few_seconds_gives_way() -> None:
    seen: list[bool] = []

    def task() -> None:
        seen.append(background._thread.is_background)
        if len(seen) == 2:
            raise asyncio.CancelledError

    with ThreadPoolExecutor(1) as pool, pytest.raises(asyncio.CancelledError):  # which has no event loop yet
        pool.submit(lambda: asyncio.run(_sweep_on(FastAPI(), task, task, 0.0))).result()
    assert seen == [True, True]


def test_work_goes_on_after_a_moment_though_answers_are_made(
    monkeypatch: pytest.MonkeyPatch, waits: Waits
) -> None:
    monkeypatch.setattr(background, "PATIENCE", 0.01)
    with answering():
        start_in_background(give_way).join()
    assert waits.came == [False]


def test_who_waits_for_the_background_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, waits: Waits
) -> None:
    monkeypatch.setattr(background, "PATIENCE", 60)
    lock, has_lock, asked = threading.RLock(), threading.Event(), threading.Event()

    def work() -> None:
        with locked(lock):
            has_lock.set()
            asked.wait()
            give_way()

    thread = start_in_background(work)
    has_lock.wait()
    with answering():
        asked.set()
        with locked(lock):
            assert False not in waits.came
    thread.join()
    with answering():  # counted again afterwards
        late = start_in_background(give_way)
        late.join(0.1)
        assert late.is_alive()
    late.join()


def test_nobody_waits_for_an_answer_that_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_answers", background._Answers())  # of this test alone
    monkeypatch.setattr(background, "PATIENCE", 60)
    lock = threading.RLock()
    with answering() as end:
        end()
        end()
        start_in_background(give_way).join(30)
        with locked(lock):
            assert background._answers.count == 0
    assert background._answers.count == 0


def test_an_open_stream_is_no_answer_that_somebody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_answers", background._Answers())  # of this test alone
    counts = []

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        counts.append(background._answers.count)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        counts.append(background._answers.count)
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        pass

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": [],
    }
    with ThreadPoolExecutor(1) as pool:  # which has no event loop yet
        pool.submit(lambda: asyncio.run(Guard(stream)(scope, receive, send))).result()
    assert counts == [1, 0]


def test_other_threads_and_idle_processes_do_not_wait(waits: Waits) -> None:
    with answering():
        give_way()
        thread = threading.Thread(target=give_way)
        thread.start()
        thread.join()
    start_in_background(give_way).join()
    assert not waits.came


def test_an_answer_that_fails_is_no_longer_being_made(waits: Waits) -> None:
    with pytest.raises(KeyError), answering():
        raise KeyError
    start_in_background(give_way).join()
    assert not waits.came


class _Ring:
    """Holds itself, so that only the garbage collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def test_what_is_kept_for_long_is_not_collected_and_what_nobody_holds_is_not_kept() -> None:
    dropped, held = weakref.ref(_Ring()), _Ring()
    try:
        keep_for_long()
        assert dropped() is None
        assert not any(each is held for each in gc.get_objects())  # those that a collection looks at
    finally:
        gc.unfreeze()
    assert any(each is held for each in gc.get_objects())


@pytest.mark.parametrize(("long", "kept"), [(0.0, True), (60.0, False)])
def test_what_long_work_leaves_is_kept_out_of_collections(
    long: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "LONG", long)
    held: list[_Ring] = []
    try:
        start_in_background(lambda: held.append(_Ring())).join()
        assert any(each is held[0] for each in gc.get_objects()) is not kept
    finally:
        gc.unfreeze()


@pytest.mark.parametrize(("long", "kept"), [(0.0, True), (60.0, False)])
def test_what_a_long_answer_leaves_is_kept_out_of_collections(
    long: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "LONG", long)
    monkeypatch.setattr(background._answers, "kept", -background.PAUSE)
    try:
        with answering():
            held = _Ring()
        assert any(each is held for each in gc.get_objects()) is not kept
        with answering():
            soon_after = _Ring()
        assert any(each is soon_after for each in gc.get_objects())  # not every answer of a busy server
    finally:
        gc.unfreeze()
