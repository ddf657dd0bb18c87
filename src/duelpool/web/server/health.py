"""Routes for monitoring: liveness, readiness and metrics."""

import math
import threading
import time

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from duelpool.access import tokens
from duelpool.errors import DuelpoolError
from duelpool.store import Store
from duelpool.store.errors import DamagedStore
from duelpool.store.maintenance import check_writable
from duelpool.store.sqlite.damage import damaged
from duelpool.web.access.passes import address_of, count_guess
from duelpool.web.manage.keys import bearer_of
from duelpool.web.server.guard import NoVisit, logger
from duelpool.web.server.metrics import exposition

_HERE = frozenset({"127.0.0.1", "::1"})

CHECK_SECONDS = 1.0  # a process checks no more often: each check is a write, and anyone may ask
DAMAGED_SECONDS = 60.0  # for which a store that SQLite found damaged isn't ready
SLOW_SECONDS = 5.0  # after which a check that hasn't ended counts as failed

router = APIRouter(include_in_schema=False)


class Damage:
    """Whether a request has met a damaged store; one request reads the whole file, and others get its result."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looking = threading.Lock()
        self._look_again = self._said_until = -math.inf
        self._found: DamagedStore | None = None
        self._said: DamagedStore | None = None  # by SQLite

    def behind(self, error: Exception) -> DamagedStore | None:
        """Return the error to answer with if a damaged store has caused this one, None if it has not."""
        if isinstance(error, DamagedStore):
            self._said, self._said_until = error, time.monotonic() + DAMAGED_SECONDS
            return self._look() or error
        return None if isinstance(error, DuelpoolError) else self._look()

    def problem(self) -> str:
        """Return what is damaged, an empty text if no request has met any damage."""
        if self._found is None and time.monotonic() > self._said_until:
            return ""
        known = self._look() or (self._said if time.monotonic() <= self._said_until else None)
        return known.problem if known is not None else ""

    def _look(self) -> DamagedStore | None:
        if self._looking.acquire(blocking=False):
            try:
                began = time.monotonic()
                if began >= self._look_again:
                    self._found = damaged(self._store.database)
                    ended = time.monotonic()  # a large file takes long to read: that may not slow all down
                    self._look_again = ended + max(CHECK_SECONDS, 20 * (ended - began))
            finally:
                self._looking.release()
        return self._found


class Readiness:
    """Whether the store can be written now; one request checks, and others get its result."""

    def __init__(self, store: Store, damage: Damage | None = None) -> None:
        self._store, self._damage = store, damage or Damage(store)
        self._checking = threading.Lock()
        self._began = self._checked = -math.inf
        self._problem = "The store has not been checked yet."

    def problem(self) -> str:
        """Return what is wrong with the store, an empty text if nothing is."""
        if self._checking.acquire(blocking=False):
            try:
                if time.monotonic() - self._checked >= CHECK_SECONDS:
                    self._began = time.monotonic()
                    self._check()
                    self._checked = time.monotonic()
            finally:
                self._checking.release()
        elif time.monotonic() - self._began > SLOW_SECONDS:
            return f"The store has not responded for {SLOW_SECONDS:.0f} seconds."
        return self._problem

    def _check(self) -> None:
        before = self._problem
        try:
            check_writable(self._store)
            self._problem = self._damage.problem()
        except DuelpoolError as error:
            self._problem = error.problem
        if self._problem and self._problem != before:  # once, and not for each request
            logger.error("not ready: %s", self._problem)


@router.get("/healthz")
async def healthz() -> Response:
    """Say that the process lives."""
    return PlainTextResponse("ok")


@router.get("/readyz")
def readyz(request: Request) -> Response:
    """Say whether the server is ready: the store can be written, and the server isn't stopping."""
    if getattr(request.app.state, "stopping", False):
        return PlainTextResponse("stopping", 503)
    readiness: Readiness = request.app.state.readiness
    problem = readiness.problem()
    if problem:
        return PlainTextResponse(f"not ready: {problem}", 503, {"Retry-After": "2"})
    return PlainTextResponse("ready")


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Return the metrics for Prometheus, to programs on this machine or with a token for it."""
    store: Store = request.app.state.store
    bearer = bearer_of(request)
    if bearer is not None:
        now = store.now()
        token = store.read(lambda connection: tokens.open_token(connection, bearer, now))
        if token is None or "metrics" not in token.scopes:
            count_guess(store, address_of(request))
            raise NoVisit(
                "This token lacks the scope 'metrics'.",
                remedy="Create one: `duelpool token new --scope metrics`.",
            )
    elif address_of(request) not in _HERE or "x-forwarded-for" in request.headers:
        raise NoVisit(
            "Metrics are open to this machine only.", remedy="Send a token with the scope 'metrics'."
        )
    text = exposition(request.app.state.counts, store)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")
