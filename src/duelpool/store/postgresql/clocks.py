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
        known = self.known()
        if known is not None:
            return known
        begun = time.monotonic()
        read = float(connection.execute(_CLOCK).scalar_one())
        round_trip = time.monotonic() - begun
        local = begun + round_trip / 2
        if round_trip < ROUND_TRIP_SECONDS:
            self._reading = (read, local)
        return self._since(read, local)

    def known(self) -> float | None:
        """Return the database's time as far as it is known without asking; None when it must be read again."""
        read, local = self._reading
        return self._since(read, local) if 0 <= time.monotonic() - local < CLOCK_SECONDS else None

    def _since(self, read: float, local: float) -> float:
        now = read + (time.monotonic() - local)
        # Readings are inexact: one that is slightly behind the last returned time must not move time back.
        now = self._last = max(now, self._last) if self._last - now < STEP_SECONDS else now
        return now
