"""PostgreSQL's clock: read now and then, for a reading is a journey, and counted on by our own in between."""

import math
import time

from sqlalchemy import Connection, text

CLOCK_SECONDS = 5.0  # it is read again after so long
JOURNEY_SECONDS = 0.2  # a reading that was longer under way may be off by too much to be kept
STEP_SECONDS = 1.0  # where it is put back by less, it is waited for

_CLOCK = text("select extract(epoch from clock_timestamp())")


class Clock:
    """The database's time as a process knows it, for all its threads."""

    def __init__(self) -> None:
        self._read = (0.0, -math.inf)  # what it said, and when by our own
        self._said = 0.0  # the time that somebody was told last

    def now(self, connection: Connection) -> float:
        """Return the database's time, seconds since 1970."""
        read, ours = self._read
        begun = time.monotonic()
        if not 0 <= begun - ours < CLOCK_SECONDS:
            read = float(connection.execute(_CLOCK).scalar_one())
            journey = time.monotonic() - begun
            ours = begun + journey / 2
            if journey < JOURNEY_SECONDS:
                self._read = (read, ours)
        now = read + (time.monotonic() - ours)
        # No reading is exact: where the next one is a little behind, what was said last stands until it is over.
        now = self._said = max(now, self._said) if self._said - now < STEP_SECONDS else now
        return now
