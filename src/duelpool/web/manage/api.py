"""The API: everything that the dashboard shows and does, for programs."""

from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse, Response, StreamingResponse

from duelpool import __version__
from duelpool.agreements.findings import agreement_options
from duelpool.campaign.exports.forms import FORMS
from duelpool.campaign.settings import CHANGEABLE, FIXED
from duelpool.campaign.views.status import AssessorStatus
from duelpool.comparison import CORRECTIONS, TESTS
from duelpool.errors import UnknownName
from duelpool.leaderboard import USUAL_MEASURE
from duelpool.leaderboard.board import Board
from duelpool.leaderboard.live import History, Slice
from duelpool.store import log
from duelpool.web.access.passes import may_open
from duelpool.web.judging.callers import campaigns_of, links_of
from duelpool.web.manage import actions, reading, systems
from duelpool.web.manage.callers import Exporting, Looking, ManageCaller, Stepping
from duelpool.web.manage.dashboard import blinded, blinded_history, blinded_slices
from duelpool.web.manage.events import events_of
from duelpool.web.manage.overview import glance
from duelpool.web.manage.overview.glance import OverviewShown
from duelpool.web.manage.paging import Cursor, Limit
from duelpool.web.manage.schemas import (
    ActionEffect,
    AgreementShown,
    AuditPage,
    CampaignBrief,
    CampaignList,
    ChangeSettings,
    ChangeState,
    Exclude,
    Head,
    Invite,
    Invited,
    LedgerPage,
    LogPage,
    ModelList,
    PairDetail,
    PairPage,
    PersonPage,
    Problem,
    Pulse,
    Reinstate,
    Retract,
    Rewind,
    SettingsChanged,
    SettingsShown,
    TextsAdded,
    TopicDetail,
    TopicPage,
    about_step,
    agreement_of,
    head_of,
)
from duelpool.web.manage.streams import stream
from duelpool.web.manage.systems import SystemsShown
from duelpool.web.server.guard import NoVisit
from duelpool.web.setup import additions
from duelpool.web.setup.api import router as setting_up

PREFIX = "/api/v1"
T = TypeVar("T")

_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "An unknown name."},
    403: {"model": Problem, "description": "No key, an invalid key, or another site."},
    404: {"model": Problem, "description": "The campaign has no such object."},
    409: {"model": Problem, "description": "A conflict with a change made in the meantime."},
    410: {"model": Problem, "description": "The key has expired."},
    413: {"model": Problem, "description": "The request is too large."},
    429: {"model": Problem, "description": "Too many invalid keys; wait."},
    422: {"model": Problem, "description": "An invalid value."},
    503: {"model": Problem, "description": "The store doesn't respond; try again."},
}

router = APIRouter(prefix=PREFIX, responses=_REFUSALS, tags=["v1"])

Text = Annotated[str, Query(max_length=2000)]
Wanted = Annotated[str, Query(min_length=1, max_length=2000)]
Measured = Annotated[str, Query(max_length=200, description="Any measure, such as nDCG@10 or Compat(p=0.8).")]
Blind = Annotated[bool, Query(description="Hide the names of systems.")]


# ---- campaigns


@router.get("/campaigns")
def campaigns(request: Request) -> CampaignList:
    """The campaigns that the key opens."""
    campaigns, links = campaigns_of(request), links_of(request)
    heads = [
        CampaignBrief(row.id, row.name, row.state, log.iso_time(row.created))
        for row in campaigns.all()
        if may_open(request, links, campaigns.store, row.id)
    ]
    if not heads:
        raise NoVisit(
            "This needs a key or a token that opens a campaign here.",
            remedy="Send it as `Authorization: Bearer KEY`.",
        )
    return CampaignList(heads)


@router.get("/campaigns/{campaign}")
def status(caller: Looking) -> Head:
    """The head figures."""
    return head_of(caller.id, caller.dashboard.watch.look())


@router.get("/campaigns/{campaign}/overview")
def overview(caller: Looking, blind: Blind = False) -> OverviewShown:
    """The campaign at a glance: how far, until when, who works, what needs attention, best answers, who leads."""
    return glance.overview(caller.dashboard, blind=blind)


@router.get("/campaigns/{campaign}/settings")
def settings(caller: Looking) -> SettingsShown:
    """The settings, and the names of the runs."""
    return SettingsShown(
        caller.dashboard.campaign.settings.as_json(),
        list(caller.dashboard.leaderboard.runs),
        dict(CHANGEABLE),
        dict(FIXED),
    )


@router.get("/campaigns/{campaign}/pulse")
def pulse(caller: Looking) -> Pulse:
    """A text that changes whenever the campaign changes."""
    return Pulse(caller.dashboard.pulse())


@router.get(
    "/campaigns/{campaign}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}},
)
def events(
    caller: Looking,
    seconds: Annotated[float, Query(ge=0, le=60, description="How long to keep the connection open.")] = 60,
) -> Response:
    """Server-sent events: one `pulse` now, and one after every change."""
    return events_of(caller.dashboard, seconds)


# ---- leaderboard


def _baseline(caller: ManageCaller, given: str, names: dict[str, str] | None) -> str | None:
    """Return the run of a baseline, given by its neutral name where names are hidden."""
    if not given or names is None:
        return given or None
    back = {alias: run for run, alias in names.items()}
    if given not in back:
        raise UnknownName("run", given, back)
    return back[given]


@router.get("/campaigns/{campaign}/leaderboard")
def leaderboard(  # noqa: PLR0917 (a route's query is its arguments)
    caller: Looking,
    measure: Measured = USUAL_MEASURE,
    baseline: Text = "",
    test: Text = "t",
    correction: Text = "holm",
    tag: Text = "",
    blind: Blind = False,
) -> Board:
    """The runs by a measure, with intervals, who could still be first, and tests against a baseline.

    Expected scores and who is behind at every look are worked out in the background: `expected_after` says after how
    many judgments, null while they aren't known.
    """
    if test not in TESTS:
        raise UnknownName("test", test, TESTS)
    if correction not in CORRECTIONS:
        raise UnknownName("correction", correction, CORRECTIONS)
    names = caller.dashboard.aliases() if blind else None
    board = caller.dashboard.leaderboard.board(
        measure,
        baseline=_baseline(caller, baseline, names),
        test=test,
        correction=correction,
        tag=tag or None,
    )
    board = caller.dashboard.leaderboard.with_slow_figures(board)
    return board if names is None else blinded(board, names)


@router.get("/campaigns/{campaign}/leaderboard/history")
def leaderboard_history(caller: Looking, measure: Measured = USUAL_MEASURE, blind: Blind = False) -> History:
    """The leaderboard at up to sixteen earlier times, and now."""
    history = caller.dashboard.leaderboard.history(measure)
    return blinded_history(history, caller.dashboard.aliases()) if blind else history


@router.get("/campaigns/{campaign}/leaderboard/slices")
def leaderboard_slices(
    caller: Looking, measure: Measured = USUAL_MEASURE, blind: Blind = False
) -> list[Slice]:
    """The runs' means by the topics' tags."""
    slices = caller.dashboard.leaderboard.slices(measure)
    return list(blinded_slices(slices, caller.dashboard.aliases()) if blind else slices)


@router.get("/campaigns/{campaign}/leaderboard/systems")
def leaderboard_systems(caller: Looking, tag: Text = "", blind: Blind = False) -> list[SystemsShown]:
    """The systems by the votes between their answers, one leaderboard a criterion and kind of judges.

    Empty without votes, and where systems don't compete.
    """
    dashboard = caller.dashboard
    if not dashboard.campaign.live.goal.of_systems:
        return []
    boards = dashboard.systems(tag).boards
    names = dashboard.aliases() if blind else None
    return systems.shown([board if names is None else systems.renamed(board, names) for board in boards])


# ---- lists


@router.get("/campaigns/{campaign}/topics")
def topics(  # noqa: PLR0917 (a route's query is its arguments)
    caller: Looking,
    cursor: Cursor = "",
    limit: Limit = 50,
    state: Text = "any",
    search: Text = "",
    order: Text = "",
) -> TopicPage:
    """The topics; state is any, done, going on, waiting or parked; order is by a column.

    Columns: question, judged, certainty, items, left (judgments to go), worth (what is still open) and gain.
    """
    return reading.topics(caller.dashboard, cursor, limit, state, search, order)


@router.get("/campaigns/{campaign}/topic")
def topic(caller: Looking, topic: Wanted) -> TopicDetail:
    """One topic: levels, closed phases, win matrix, why it stopped, what it costs."""
    return reading.topic(caller.dashboard, topic)


@router.get("/campaigns/{campaign}/pairs")
def pairs(  # noqa: PLR0917 (a route's query is its arguments)
    caller: Looking,
    cursor: Cursor = "",
    limit: Limit = 50,
    topic: Text = "",
    assessor: Text = "",
    order: Text = "",
) -> PairPage:
    """The judged pairs, all of them or those of a topic or an assessor; order is topic, or the campaign's."""
    return reading.pairs(
        caller.dashboard,
        cursor,
        limit,
        topics=reading.topic_named(caller.dashboard, topic),
        assessors=reading.assessor_named(caller.dashboard, assessor),
        order=order,
    )


@router.get("/campaigns/{campaign}/pair")
def pair(caller: Looking, topic: Wanted, a: Wanted, b: Wanted) -> PairDetail:
    """One pair: texts, votes, sides, seconds."""
    return reading.pair(caller.dashboard, topic, a, b)


@router.get("/campaigns/{campaign}/assessors")
def assessors(  # noqa: PLR0917 (a route's query is its arguments)
    caller: Looking,
    cursor: Cursor = "",
    limit: Limit = 50,
    order: Text = "came",
    state: Text = "any",
    search: Text = "",
) -> PersonPage:
    """The assessors; order is came, name, judgments, usable, tests, agreement, seconds, left or pay."""
    return reading.people(caller.dashboard, cursor, limit, order, state, search)


@router.get("/campaigns/{campaign}/assessor")
def assessor(caller: Looking, assessor: Wanted) -> AssessorStatus:
    """One assessor: test pairs, agreement with the others, seconds, share of left choices, pay."""
    return caller.dashboard.watch.assessor(assessor)


@router.get("/campaigns/{campaign}/llm")
def llm(caller: Looking) -> ModelList:
    """The language models: flips, biases, agreement with people, and cost."""
    return ModelList(caller.dashboard.campaign.settings.currency, list(caller.dashboard.models()))


@router.get("/campaigns/{campaign}/agreement")
def agreement(  # noqa: PLR0917 (a route's query is its arguments)
    caller: Looking,
    report: Annotated[str, Query(max_length=500, description="Names, separated by commas; empty: all.")] = "",
    criterion: Text = "",
    cluster: Annotated[str, Query(max_length=20, description="pair, topic or auto.")] = "auto",
    tie_rate: Annotated[float, Query(ge=0, le=1, description="Agreement of tied grades, from 0 to 1.")] = 0.5,
    rows: Annotated[int, Query(ge=1, le=1000, description="The largest number of assessors.")] = 50,
) -> AgreementShown:
    """Reliability of the judges: all statistics of agreement, or those that `report` names."""
    names = [name.strip() for name in report.split(",") if name.strip()]
    agreements = caller.dashboard.agreements
    options = agreement_options(cluster, tie_rate, rows)
    return agreement_of(agreements.current(names, criterion, options))


@router.get("/campaigns/{campaign}/ledger")
def ledger(
    caller: Looking, cursor: Cursor = "", limit: Limit = 50, assessor: Text = "", order: Text = ""
) -> LedgerPage:
    """The ledger, the newest entry first; order is time, amount, assessor or entry, after - the other way round."""
    return reading.ledger(caller.dashboard, cursor, limit, assessor, order)


@router.get("/campaigns/{campaign}/log")
def the_log(  # noqa: PLR0917 (a route's query is its arguments)
    caller: Looking,
    cursor: Cursor = "",
    limit: Limit = 50,
    topic: Text = "",
    assessor: Text = "",
    event: Text = "",
    order: Text = "",
) -> LogPage:
    """The log, the newest line first; order is time, topic or assessor, after - the other way round."""
    return reading.lines(
        caller.dashboard,
        cursor,
        limit,
        topics=reading.topic_named(caller.dashboard, topic),
        assessors=reading.assessor_named(caller.dashboard, assessor),
        event=event,
        order=order,
    )


@router.get(
    "/campaigns/{campaign}/export/{form}",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The file, as a stream.",
            "content": {each.media.partition(";")[0]: {} for each in FORMS.values()},
        }
    },
)
def export(caller: Exporting, form: Literal["prefs", "qrels", "levels", "jsonl", "csv"]) -> Response:
    """A file, streamed: preferences, qrels, levels, the whole log, or judgments for a spreadsheet."""
    chosen = FORMS[form]
    caller.dashboard.campaign.write(caller.audit_entry("export", form))
    headers = {"Content-Disposition": f'attachment; filename="{chosen.file}"'}
    return StreamingResponse(
        stream(caller.dashboard.campaign, form), media_type=chosen.media, headers=headers
    )


# ---- steps


@router.get("/campaigns/{campaign}/deeds")
def audit_entries(caller: Looking, cursor: Cursor = "", limit: Limit = 50) -> AuditPage:
    """The audit log, the newest entry first."""
    return reading.audit_page(caller.access, caller.dashboard, cursor, limit)


@router.post("/campaigns/{campaign}/exclude")
def exclude(caller: Stepping, asked: Exclude) -> ActionEffect:
    """Exclude an assessor; with `preview`, say what would no longer count."""
    return actions.exclude(caller.dashboard, asked, caller.audit_entry("exclude", about_step(asked)))


@router.post("/campaigns/{campaign}/reinstate")
def reinstate(caller: Stepping, asked: Reinstate) -> ActionEffect:
    """Reinstate an assessor; with `preview`, say how many judgments would count again."""
    return actions.reinstate(caller.dashboard, asked, caller.audit_entry("reinstate", about_step(asked)))


@router.post("/campaigns/{campaign}/retract")
def retract(caller: Stepping, asked: Retract) -> ActionEffect:
    """Retract judgments with a reason; with `preview`, say which of them count."""
    return actions.retract(caller.dashboard, asked, caller.audit_entry("retract", about_step(asked)))


@router.post("/campaigns/{campaign}/rewind")
def rewind(caller: Stepping, asked: Rewind) -> ActionEffect:
    """Open a closed phase again; with `preview`, say what that would set aside and what it cost."""
    return actions.rewind(caller.dashboard, asked, caller.audit_entry("rewind", about_step(asked)))


@router.post("/campaigns/{campaign}/state")
def change_state(caller: Stepping, asked: ChangeState) -> ActionEffect:
    """Pause, close or reopen the campaign; with `preview`, say which questions are leased."""
    return actions.change_state(caller.dashboard, asked, caller.audit_entry("state", about_step(asked)))


@router.post("/campaigns/{campaign}/settings")
def change_settings(caller: Stepping, asked: ChangeSettings) -> SettingsChanged:
    """Change settings; with `preview`, say what each change does."""
    return actions.change_settings(caller.dashboard, asked, caller.audit_entry)


@router.post("/campaigns/{campaign}/invite")
def invite(caller: Stepping, asked: Invite) -> Invited:
    """A link for one assessor, by pseudonym: it returns them to their last question."""
    return additions.invite(caller, asked)


@router.put("/campaigns/{campaign}/texts", openapi_extra=additions.FILE)
async def put_texts(caller: Stepping) -> TextsAdded:
    """Add texts to items that have none, from a file, plain or gzip; topics that waited for them are judged."""
    return await additions.add_from_body(caller, "texts")


@router.put("/campaigns/{campaign}/questions", openapi_extra=additions.FILE)
async def put_questions(caller: Stepping) -> TextsAdded:
    """Add questions to topics that have none, from a file, plain or gzip; topics that waited for them are judged."""
    return await additions.add_from_body(caller, "topics")


# ---- its own description


@cache
def described() -> dict[str, Any]:
    """Return the API's description; it is made at the first request, so that the server starts sooner."""
    return get_openapi(
        title="Duelpool",
        version=__version__,
        description="Monitor and manage a campaign. Lists are paged by `cursor`; money is in minor units.",
        routes=[*router.routes, *setting_up.routes],
    )


def add_api(app: FastAPI) -> None:
    """Add the API and its description to an application."""
    app.include_router(router)
    app.include_router(setting_up)

    def openapi() -> JSONResponse:
        return JSONResponse(described())

    app.add_api_route(f"{PREFIX}/openapi.json", openapi, methods=["GET"], include_in_schema=False)
