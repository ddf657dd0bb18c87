"""Slow work in a thread gives way to requests: it pauses between its steps while answers are being made.

Threads of Python share one interpreter, so a thread that computes for a minute slows every answer meanwhile.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 0.05
"""Seconds that a step waits for the answers at most, so that the work goes on however many requests come."""


class _Answers:
    """How many answers this process is making."""

    def __init__(self) -> None:
        self.count = 0
        self.none = threading.Condition()


_answers = _Answers()
_thread = threading.local()


@contextmanager
def answering() -> Iterator[None]:
    """Mark an answer that somebody waits for."""
    with _answers.none:
        _answers.count += 1
    try:
        yield
    finally:
        with _answers.none:
            _answers.count -= 1
            if not _answers.count:
                _answers.none.notify_all()


def give_way() -> None:
    """Wait a moment while answers are being made, if this is a thread of the background; hold no lock meanwhile."""
    if _answers.count and getattr(_thread, "is_background", False):
        with _answers.none:
            _answers.none.wait_for(lambda: not _answers.count, PATIENCE)


def start_in_background(work: Callable[..., object], *arguments: Any) -> threading.Thread:
    """Start work in a thread whose `give_way` waits, and which ends with the process."""

    def run() -> None:
        _thread.is_background = True
        work(*arguments)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
