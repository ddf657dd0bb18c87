"""Routes for monitoring: liveness, readiness and metrics."""

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from duelpool.access import tokens
from duelpool.store import Store
from duelpool.web.access.passes import address_of, count_guess
from duelpool.web.manage.keys import bearer_of
from duelpool.web.server.guard import NoVisit
from duelpool.web.server.metrics import exposition

_HERE = frozenset({"127.0.0.1", "::1"})

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def healthz() -> Response:
    """Say that the process lives."""
    return PlainTextResponse("ok")


@router.get("/readyz")
def readyz(request: Request) -> Response:
    """Say whether the server is ready: the store responds, and the server isn't stopping."""
    if getattr(request.app.state, "stopping", False):
        return PlainTextResponse("stopping", 503)
    store: Store = request.app.state.store
    store.read(store.database.now)
    return PlainTextResponse("ready")


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Return the metrics for Prometheus, to programs on this machine or with a token for it."""
    store: Store = request.app.state.store
    bearer = bearer_of(request)
    if bearer is not None:
        now = store.read(store.database.now)
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
