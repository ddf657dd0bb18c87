"""Reports of browsers about the content policy: logged up to a rate, since anyone may send them."""

import logging
import threading
import time

from starlette.requests import Request
from starlette.responses import Response

from duelpool.access.limits import TooMany
from duelpool.web.server.guard import without_secrets

REPORTS_A_MINUTE = 10
REPORT_AT_MOST = 2000
_SECONDS = 60


class ReportLog:
    """Logs a few reports a minute; how many were dropped is said once, after that minute."""

    def __init__(self, logger: logging.Logger, most: int = REPORTS_A_MINUTE) -> None:
        self._logger, self._most = logger, most
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._taken = 0

    def take(self, text: str) -> None:
        """Log a report, or raise TooMany when this minute has had enough of them."""
        self.end_minute()
        with self._lock:
            self._taken += 1
            dropped = self._taken > self._most
            left = self._began + _SECONDS - time.monotonic()
        if dropped:
            error = TooMany("There are too many reports.", remedy="Wait a minute.")
            error.seconds = max(1, round(left))
            raise error
        self._logger.warning("content policy: %r", text)

    def end_minute(self) -> None:
        """Begin another minute if it is time; say how many reports the last one dropped."""
        with self._lock:
            now = time.monotonic()
            if now - self._began < _SECONDS:
                return
            dropped = max(0, self._taken - self._most)
            self._began, self._taken = now, 0
        if dropped:
            self._logger.warning("content policy: %d more reports within a minute were dropped", dropped)


async def csp_report(request: Request) -> Response:
    """Log what a browser refused to load or to run."""
    body = (await request.body())[:REPORT_AT_MOST].decode(errors="replace")
    reports: ReportLog = request.app.state.reports
    reports.take(without_secrets(body))
    return Response(status_code=204)
