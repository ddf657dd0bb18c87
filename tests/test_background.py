"""Work in the background gives way to answers, and to nobody else."""

import gc
import threading
import time
import weakref

import pytest

from duelpool import background
from duelpool.background import answering, give_way, keep_for_long, locked, start_in_background


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


def test_work_goes_on_after_a_moment_though_answers_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PATIENCE", 0.01)
    with answering():
        start_in_background(give_way).join()


def test_who_waits_for_the_background_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
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
        started = time.monotonic()
        with locked(lock):
            assert time.monotonic() - started < background.PATIENCE
    thread.join()
    with answering():  # counted again afterwards
        late = start_in_background(give_way)
        late.join(0.1)
        assert late.is_alive()
    late.join()


def test_other_threads_and_idle_processes_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PATIENCE", 60)
    with answering():
        give_way()
        thread = threading.Thread(target=give_way)
        thread.start()
        thread.join()
    start_in_background(give_way).join()


def test_an_answer_that_fails_is_no_longer_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PATIENCE", 60)
    with pytest.raises(KeyError), answering():
        raise KeyError
    started = time.monotonic()
    start_in_background(give_way).join()
    assert time.monotonic() - started < background.PATIENCE


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
