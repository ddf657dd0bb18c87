"""A log that says the same thing once a minute, with a count: what visitors cause must not fill a disk."""

import logging
import threading
import time
from dataclasses import dataclass
from traceback import extract_tb
from typing import TypeAlias

_SECONDS = 60.0

_Key: TypeAlias = tuple[str, int, str, str]


class RepeatsCounted(logging.Filter):
    """Lets the first of equal messages through, and counts the others of that minute.

    Messages are equal if they have the same text before its values are filled in, and the same place of an exception.
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        super().__init__()
        self._seconds = seconds
        self._lock = threading.Lock()
        self._first: dict[_Key, _First] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is to be logged."""
        key = _key_of(record)
        with self._lock:
            first = self._first.get(key)
            if first is None:
                self._first[key] = _First(time.monotonic(), record.getMessage().partition("\n")[0])
                return True
            first.repeats += 1
            return False

    def tell(self) -> None:
        """Log how often messages were repeated, once their minute is over."""
        now = time.monotonic()
        with self._lock:
            over = {key: each for key, each in self._first.items() if now - each.at >= self._seconds}
            for key in over:
                del self._first[key]
        for (name, level, _, _), first in over.items():
            if first.repeats:
                logger, told = logging.getLogger(name), "%s (%d times more within a minute)"
                values = (first.text, first.repeats)
                # straight to the handlers: the filter would count it
                logger.callHandlers(logger.makeRecord(name, level, __file__, 0, told, values, None))


@dataclass(slots=True)
class _First:
    at: float
    text: str
    repeats: int = 0


def _key_of(record: logging.LogRecord) -> _Key:
    place = ""
    if record.exc_info and record.exc_info[2] is not None:
        frame = extract_tb(record.exc_info[2])[-1]
        place = f"{record.exc_info[0]} {frame.filename}:{frame.lineno}"
    return record.name, record.levelno, str(record.msg).partition("\n")[0], place
