"""The application: a store's campaigns as web pages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response

from duelpool.access.limits import Pace, TooMany
from duelpool.errors import BadRecord, DuelpoolError
from duelpool.store import StoreTrouble, open_store
from duelpool.store.holdings import UnknownCampaign
from duelpool.web import pages, panels, routes, watch
from duelpool.web.access.pages import router as door
from duelpool.web.guard import Guard, logger, new_reference, status_of, wants_json, without_secrets
from duelpool.web.halls import Halls
from duelpool.web.links import link_keys
from duelpool.web.manage.api import add_api
from duelpool.web.manage.desks import Desks
from duelpool.web.manage.pages import router as dashboard
from duelpool.web.metrics import Counts
from duelpool.web.pages import error_json, error_page, language_of, render, static_response

SWEEP_SECONDS = 20.0
REPORT_AT_MOST = 2000


def make_app(
    store_target: str | Path,
    *,
    campaign: str | None = None,
    sweep_seconds: float = SWEEP_SECONDS,
    counts: Path | None = None,
) -> FastAPI:
    """Return the judging pages of a store, or of one campaign of it; an old store is upgraded after a backup.

    Leases that ran out are swept up every few seconds. `counts` is a folder where several processes of one server
    count their requests.
    """
    store = open_store(store_target)
    try:
        halls, links = Halls(store, campaign), link_keys(store)
    except BaseException:
        store.close()
        raise

    def warm() -> None:
        pages.warm()
        halls.warm()

    def sweep() -> None:
        links.refresh()  # somebody may have replaced the key that signs
        halls.sweep()

    async def sweep_on() -> None:
        task = warm
        while True:
            try:
                await run_in_threadpool(task)
            except DuelpoolError as error:
                logger.warning("in the background: %s", error)
            await asyncio.sleep(sweep_seconds)
            task = sweep

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(sweep_on())
        try:
            yield
        finally:
            app.state.stopping = True
            sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await sweeper
            await run_in_threadpool(store.close)

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.halls, app.state.links, app.state.store = halls, links, store
    app.state.desks = Desks(halls)
    app.state.pace, app.state.counts = Pace(store), Counts(counts)
    app.add_middleware(Guard, counts=app.state.counts)
    app.include_router(routes.router)
    app.include_router(door)
    app.include_router(watch.router)
    app.include_router(panels.router)
    app.include_router(dashboard)
    add_api(app)
    app.add_exception_handler(DuelpoolError, _refused)
    app.add_exception_handler(HTTPException, _no_such_page)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unexpected)
    app.add_api_route("/static/{name:path}", static, methods=["GET"])
    app.add_api_route("/csp-report", csp_report, methods=["POST"])
    return app


def static(name: str) -> Response:
    """Return a file of the page."""
    found = static_response(name)
    return found if found is not None else PlainTextResponse("There is no such file.", 404)


async def csp_report(request: Request) -> Response:
    """Note what a browser refused to load or to run."""
    body = (await request.body())[:REPORT_AT_MOST].decode(errors="replace")
    logger.warning("content policy: %r", without_secrets(body))
    return Response(status_code=204)


def _told(request: Request, error: DuelpoolError, status: int, name: str, reference: str) -> Response:
    try:
        words = language_of(request)
    except Exception:  # pragma: no cover (an error page must not fail for want of words)
        words = language_of(Request({"type": "http", "headers": [], "query_string": b""}))
    if request.url.path.startswith("/api/"):  # a program reads what is exactly wrong
        whole = {"problem": error.problem, "remedy": error.remedy, "reference": reference}
        return JSONResponse(whole, status)
    if wants_json(request):
        return JSONResponse(error_json(error, words, reference, name), status)
    base = "/".join(request.url.path.split("/")[:3]) if request.url.path.startswith("/j/") else ""
    context = {"base": base, "state": "error"}
    if name == "lease_lost":
        told = error_json(error, words, reference, name)
        return render(
            "lease_lost.html",
            words,
            {**context, **told, "state": "lease-lost", "status": status, "credit": None},
            status,
        )
    page = error_page(error, words, reference, context)
    page.status_code = status
    return page


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DuelpoolError)  # noqa: S101 (that is what it is registered for)
    status, name = status_of(error)
    reference = new_reference()
    logger.log(
        40 if status >= 500 else 20, "%s: %s %r: %s", reference, request.method, request.url.path, error
    )
    told = await run_in_threadpool(_told, request, error, status, name, reference)
    if isinstance(error, TooMany):
        told.headers["Retry-After"] = str(error.seconds)
    return told


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 (that is what it is registered for)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]).encode(errors="replace").decode()
    where = where or "the request"
    told = BadRecord(f"{where}: {first['msg']}.", remedy="See /api/v1/openapi.json for what is taken.")
    return await run_in_threadpool(_told, request, told, 422, "invalid", new_reference())


async def _no_such_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    told = UnknownCampaign("There is no such page.", remedy="Use the link as you got it.")
    return await run_in_threadpool(_told, request, told, status, "not_found", new_reference())


async def _unexpected(request: Request, error: Exception) -> Response:
    reference = new_reference()
    logger.error("%s: %s %r", reference, request.method, request.url.path, exc_info=error)
    told = StoreTrouble("Something went wrong on our side.", remedy="Try again; your answers are safe.")
    return await run_in_threadpool(_told, request, told, 500, "unexpected", reference)
