"""Slow work in a thread gives way to requests: it pauses between its steps while answers are being made.

Threads of Python share one interpreter, so a thread that computes for a minute slows every answer meanwhile.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

PATIENCE = 0.5
"""Seconds that a step waits for the answers at most, so that the work goes on however many requests come."""
LONG = 2.0
"""Seconds after which work is taken to leave much in memory."""
PAUSE = 5.0
"""Seconds between two long answers whose objects are kept: a server with too much to do has many."""


class _Answers:
    """How many answers this process is making."""

    def __init__(self) -> None:
        self.count = 0
        self.none = threading.Condition()
        self.kept = -PAUSE  # when a long one's objects were last kept out of collections

    def add(self, number: int) -> None:
        with self.none:
            self.count += number
            if not self.count:
                self.none.notify_all()


_answers = _Answers()
_thread = threading.local()
_is_answer: ContextVar[bool] = ContextVar(
    "is_answer", default=False
)  # also in the threads that a request uses


@contextmanager
def answering() -> Iterator[Callable[[], None]]:
    """Mark an answer that somebody waits for, until the block ends or the function that it gives is called.

    What a long one leaves in memory is kept out of later garbage collections.
    """
    marked = _is_answer.set(True)
    _answers.add(1)
    waited_for = True
    began = time.monotonic()

    def end() -> None:
        nonlocal waited_for
        if waited_for:
            waited_for = False
            _is_answer.set(False)
            _answers.add(-1)
            now = time.monotonic()
            if now - began >= LONG and now - _answers.kept >= PAUSE:
                _answers.kept = now
                keep_for_long()

    try:
        yield end
    finally:
        end()
        _is_answer.reset(marked)


@contextmanager
def locked(lock: threading.RLock) -> Iterator[None]:
    """Hold a lock that the background may hold while it works: it doesn't give way to an answer that waits for it."""
    if not lock.acquire(blocking=False):
        waits = int(_is_answer.get())
        _answers.add(-waits)
        try:
            lock.acquire()
        finally:
            _answers.add(waits)
    try:
        yield
    finally:
        lock.release()


def give_way() -> None:
    """Wait a moment while answers are being made, if this is a thread of the background.

    A lock that it holds meanwhile must be one that others take by `locked`.
    """
    if _answers.count and getattr(_thread, "is_background", False):
        with _answers.none:
            _answers.none.wait_for(lambda: not _answers.count, PATIENCE)


def keep_for_long() -> None:
    """Leave all that is in memory now out of later garbage collections: for what was read once and stays.

    A full collection looks at every object and stops every thread meanwhile.
    """
    gc.collect(1)  # the young ones: what nobody holds would stay for ever
    gc.freeze()


def giving_way(work: Callable[[], object]) -> Callable[[], None]:
    """Return work whose `give_way` waits, for a thread that does other work as well."""

    def run() -> None:
        before = getattr(_thread, "is_background", False)
        _thread.is_background = True
        try:
            work()
        finally:
            _thread.is_background = before

    return run


def start_in_background(work: Callable[..., object], *arguments: Any) -> threading.Thread:
    """Start work in a thread whose `give_way` waits, and which ends with the process.

    What long work leaves in memory is kept out of later garbage collections.
    """

    def run() -> None:
        _thread.is_background = True
        _is_answer.set(False)
        began = time.monotonic()
        work(*arguments)
        if time.monotonic() - began >= LONG:
            keep_for_long()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
