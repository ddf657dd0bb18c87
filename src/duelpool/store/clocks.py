"""PostgreSQL's clock: read every few seconds, since each reading is a round trip, and advanced locally between."""

import math
import time

from sqlalchemy import Connection, text

CLOCK_SECONDS = 5.0  # between two readings
ROUND_TRIP_SECONDS = 0.2  # a reading that took longer is too inexact to keep
STEP_SECONDS = 1.0  # a smaller step back is hidden: time stays at the last value until it is reached again

_CLOCK = text("select extract(epoch from clock_timestamp())")


class Clock:
    """The database's time, shared by all threads of a process."""

    def __init__(self) -> None:
        self._reading = (0.0, -math.inf)  # the database's time, and the local monotonic time of that reading
        self._last = 0.0  # the time returned last

    def now(self, connection: Connection) -> float:
        """Return the database's time, seconds since 1970."""
        read, local = self._reading
        begun = time.monotonic()
        if not 0 <= begun - local < CLOCK_SECONDS:
            read = float(connection.execute(_CLOCK).scalar_one())
            round_trip = time.monotonic() - begun
            local = begun + round_trip / 2
            if round_trip < ROUND_TRIP_SECONDS:
                self._reading = (read, local)
        now = read + (time.monotonic() - local)
        # Readings are inexact: one that is slightly behind the last returned time must not move time back.
        now = self._last = max(now, self._last) if self._last - now < STEP_SECONDS else now
        return now
