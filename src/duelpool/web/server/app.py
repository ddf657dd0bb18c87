"""The application: a store's campaigns as web pages."""

import asyncio
import logging
import random
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response

from duelpool.access.limits import RequestLimiter, TooMany
from duelpool.access.sign_on_settings import SignOnSettings
from duelpool.background import giving_way
from duelpool.campaign.views.watch import NotFound
from duelpool.errors import BadFile, BadRecord, DuelpoolError
from duelpool.setup.uploads import TooMuch
from duelpool.store import StoreError, open_store
from duelpool.store.errors import DamagedStore
from duelpool.store.holdings import UnknownCampaign
from duelpool.web import templating
from duelpool.web.access.links import Links, link_keys
from duelpool.web.access.pages import router as door
from duelpool.web.access.sign_on import make_sign_on
from duelpool.web.campaigns import ServedCampaigns
from duelpool.web.judging import panels, routes
from duelpool.web.judging.callers import Shortcut
from duelpool.web.manage.api import add_api
from duelpool.web.manage.dashboard import Dashboards, StillCounting
from duelpool.web.manage.pages import router as dashboard
from duelpool.web.manage.settings import router as settings_page
from duelpool.web.manage.webhooks import router as webhooks_page
from duelpool.web.server import health, malloc
from duelpool.web.server.guard import Guard, logger, new_reference, status_of, wants_json
from duelpool.web.server.metrics import RequestCounts
from duelpool.web.server.reports import ReportLog, csp_report
from duelpool.web.setup.additions import router as additions
from duelpool.web.setup.drafts import SavedDrafts, folder_for
from duelpool.web.setup.pages import router as setting_up
from duelpool.web.templating import error_json, error_page, language_of, render, static_response
from duelpool.webhooks.sending import POLL_SECONDS, BackgroundDelivery

SWEEP_SECONDS = 20.0
SWITCH_SECONDS = (
    0.001  # Python's default is five times that; a request waits that long for each computing thread
)
DAMAGED = "the store is damaged: %s"  # in the log
RETRY_SECONDS = "2"  # after which a client may try again when the store doesn't respond
SETTING_UP = ("/setup", "/api/v1/setups")
THREADS = 100  # most of them wait for the database, or for an assignment


def make_app(
    store_target: str | Path,
    *,
    campaign: str | None = None,
    sweep_seconds: float = SWEEP_SECONDS,
    webhook_seconds: float = POLL_SECONDS,
    counts: Path | None = None,
    uploads: Path | None = None,
    url: str = "",
    sign_on: SignOnSettings | None = None,
) -> FastAPI:
    """Return the application of a store, or of one of its campaigns; an old store is upgraded after a backup.

    Expired leases are freed every few seconds, and events are sent to webhooks. `counts` is a folder where the
    processes of one server count their requests; `uploads` holds files while campaigns are set up; `url` is the
    public address, with which links begin; `sign_on` is the provider at which people sign in, with what its claims
    mean here.
    """
    store = open_store(store_target)
    try:
        campaigns, links, offered = (
            ServedCampaigns(store, campaign),
            link_keys(store),
            make_sign_on(sign_on, url),
        )
    except BaseException:
        store.close()
        raise

    place = uploads or folder_for(str(store.database.place))
    drafts = SavedDrafts(store, place) if campaign is None else None

    def warm() -> None:
        templating.warm()
        campaigns.warm()
        app.state.dashboards.warm()

    def sweep() -> None:
        links.refresh()  # the signing key may have been replaced
        app.state.reports.end_minute()
        campaigns.sweep()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        malloc.share()
        sys.setswitchinterval(SWITCH_SECONDS)
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        sweeper = asyncio.create_task(_sweep_on(app, warm, sweep, sweep_seconds))
        webhooks = BackgroundDelivery(store, lambda each: campaigns.flow(each).campaign, webhook_seconds)
        webhooks.start()
        try:
            yield
        finally:
            app.state.stopping = True
            sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await sweeper
            await run_in_threadpool(webhooks.stop)
            if drafts is not None:
                drafts.close()
            await run_in_threadpool(store.close)

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.counts, app.state.sign_on = RequestCounts(counts), offered
    _add_state(app, campaigns, links, drafts, url)
    app.add_middleware(Shortcut, endpoints=routes.OFTEN)
    app.add_middleware(Guard, counts=app.state.counts, refused=_failed)
    _add_routes(app)
    return app


async def _sweep_on(
    app: FastAPI, first: Callable[[], None], sweep: Callable[[], None], seconds: float
) -> None:
    """Run one task at the start, and the other every few seconds."""
    task = first
    while True:
        try:
            await run_in_threadpool(giving_way(task))
        except Exception as error:  # any error: without the sweeper, leases would never expire
            await run_in_threadpool(_tell_background, app, error)
        await asyncio.sleep(seconds * random.uniform(0.75, 1.25))  # the processes of a server take turns
        task = sweep


def _tell_background(app: FastAPI, error: Exception) -> None:
    """Log an error of the work between requests."""
    damaged = app.state.damage.behind(error)
    if damaged is not None:
        logger.error(DAMAGED, damaged)
    elif isinstance(error, DuelpoolError):
        logger.warning("in the background: %s", error)
    else:
        logger.error("in the background", exc_info=error)


def _add_state(
    app: FastAPI, campaigns: ServedCampaigns, links: Links, drafts: SavedDrafts | None, url: str
) -> None:
    """Add what the routes share."""
    store = campaigns.store
    app.state.campaigns, app.state.links, app.state.store = campaigns, links, store
    app.state.dashboards, app.state.drafts, app.state.url = Dashboards(campaigns), drafts, url
    app.state.pace, app.state.reports = RequestLimiter(store), ReportLog(logger)
    app.state.damage = health.Damage(store)
    app.state.readiness = health.Readiness(store, app.state.damage)


def _add_routes(app: FastAPI) -> None:
    """Add the routes and the error handlers to an application."""
    for router in (
        routes.router,
        door,
        health.router,
        panels.router,
        setting_up,
        settings_page,
        additions,
        webhooks_page,
        dashboard,
    ):
        app.include_router(router)
    add_api(app)
    app.add_exception_handler(DuelpoolError, _refused)
    app.add_exception_handler(HTTPException, _no_such_page)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(FileNotFoundError, _not_there)
    app.add_exception_handler(Exception, _unexpected)
    app.add_api_route("/static/{name:path}", static, methods=["GET"])
    app.add_api_route("/csp-report", csp_report, methods=["POST"])


def static(name: str) -> Response:
    """Return a static file."""
    response = static_response(name)
    return response if response is not None else PlainTextResponse("This file doesn't exist.", 404)


def _error_response(
    request: Request, error: DuelpoolError, status: int, name: str, reference: str
) -> Response:
    try:
        texts = language_of(request)
    except Exception:  # pragma: no cover (an error page must not fail)
        texts = language_of(Request({"type": "http", "headers": [], "query_string": b""}))
    if isinstance(error, StillCounting) and not request.url.path.startswith("/api/"):
        context = {"told": error.problem, "title": "Reading the log", "state": "counting"}
        return render("manage/counting.html", texts, context, status)
    if request.url.path.startswith("/api/"):  # programs get the exact problem
        # the place of an uploaded file is its name; other places are paths of the server
        place = f"{error.place}: " if isinstance(error, BadFile | TooMuch) and error.place else ""
        whole = {"problem": place + error.problem, "remedy": error.remedy, "reference": reference}
        return JSONResponse(whole, status)
    if wants_json(request):
        return JSONResponse(error_json(error, texts, reference, name), status)
    base = "/".join(request.url.path.split("/")[:3]) if request.url.path.startswith("/j/") else ""
    context = {"base": base, "state": "error"}
    if name == "lease_lost":
        problem = error_json(error, texts, reference, name)
        return render(
            "lease_lost.html",
            texts,
            {**context, **problem, "state": "lease-lost", "status": status, "credit": None},
            status,
        )
    page = error_page(error, texts, reference, context)
    page.status_code = status
    return page


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DuelpoolError)  # noqa: S101 (that is what it is registered for)
    if isinstance(error, DamagedStore):
        return await _damaged(request, error)
    status, name = status_of(error)
    reference = new_reference()
    ours = status >= 500 and not isinstance(error, StillCounting)
    level = logging.ERROR if ours else logging.INFO
    logger.log(level, "%s: %s %r: %s", reference, request.method, request.url.path, error)
    response = await run_in_threadpool(_error_response, request, error, status, name, reference)
    if isinstance(error, TooMany):
        response.headers["Retry-After"] = str(error.seconds)
    elif status == 503:
        response.headers["Retry-After"] = RETRY_SECONDS
    return response


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 (that is what it is registered for)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]).encode(errors="replace").decode()
    where = where or "the request"
    problem = BadRecord(
        f"{where}: {first['msg']}.", remedy="See /api/v1/openapi.json for the accepted values."
    )
    return await run_in_threadpool(_error_response, request, problem, 422, "invalid", new_reference())


async def _no_such_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    problem = UnknownCampaign("This page doesn't exist.", remedy="Open the link exactly as you received it.")
    return await run_in_threadpool(_error_response, request, problem, status, "not_found", new_reference())


async def _failed(request: Request, error: Exception) -> Response:
    return await (_refused if isinstance(error, DuelpoolError) else _unexpected)(request, error)


async def _damaged(request: Request, error: DamagedStore) -> Response:
    """Answer that the store is damaged; the log says so once a minute."""
    error = await run_in_threadpool(request.app.state.damage.behind, error) or error
    logger.error(DAMAGED, error)
    response = await run_in_threadpool(_error_response, request, error, *status_of(error), "")
    response.headers["Retry-After"] = str(round(health.DAMAGED_SECONDS))
    return response


async def _not_there(request: Request, error: Exception) -> Response:
    """Say that a draft is gone, where another request has discarded it meanwhile; no other route reads such files."""
    if not request.url.path.startswith(SETTING_UP):
        return await _unexpected(request, error)
    gone = NotFound("This draft has been changed or discarded meanwhile.", remedy="Open it again.")
    return await _refused(request, gone)


async def _unexpected(request: Request, error: Exception) -> Response:
    damaged = await run_in_threadpool(request.app.state.damage.behind, error)
    if damaged is not None:
        return await _damaged(request, damaged)
    reference = new_reference()
    logger.error("%s: %s %r", reference, request.method, request.url.path, exc_info=error)
    problem = StoreError("Something went wrong on our side.", remedy="Try again. Your answers are safe.")
    return await run_in_threadpool(_error_response, request, problem, 500, "unexpected", reference)
