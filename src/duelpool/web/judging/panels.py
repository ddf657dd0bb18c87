"""The routes of panels: workers enter and return to the panel, and panels send messages."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, RedirectResponse, Response

from duelpool.campaign import Campaign
from duelpool.panels import Panel, PanelAccess, make_panel
from duelpool.panels.base import (
    ApiPanel,
    Completion,
    CompletionCode,
    CompletionRedirect,
    FinishedWork,
    PreviewVisit,
    RefusedVisit,
    WorkOutcome,
)
from duelpool.recruitment import arrivals
from duelpool.recruitment.reports import apply_message
from duelpool.recruitment.submissions import Submission, finished_work, record_outcome
from duelpool.store.holdings import UnknownCampaign
from duelpool.web.access.links import ExpiredLink
from duelpool.web.access.passes import address_of
from duelpool.web.judging.admission import settled, turned_away
from duelpool.web.judging.callers import Visit, campaigns_of, current_visit, links_of
from duelpool.web.judging.flow import Place
from duelpool.web.judging.visitors import Visitor, write_cookie
from duelpool.web.server.guard import TurnedAway
from duelpool.web.server.inputs import TooLarge

MESSAGE_AT_MOST = 16 * 1024
PARAMETERS_AT_MOST = 30
VALUE_AT_MOST = 500
ENDED = ("complete", "excluded", "no-work", "check-failed", "ended")

router = APIRouter(include_in_schema=False)


def panel_of(request: Request, campaign: Campaign, name: str) -> Panel:
    """Return the panel of a campaign; the name of any other panel is unknown."""
    if not name or campaign.settings.panel != name:
        raise UnknownCampaign(
            "This panel doesn't exist here.", remedy="Open the link exactly as you received it."
        )
    environment: Mapping[str, str] = getattr(request.app.state, "environment", os.environ)
    return make_panel(campaign.settings.panel_settings, PanelAccess.from_environment(name, environment))


# ---- entering


@router.get("/j/{campaign}/from/{panel}")
def arrive(request: Request, campaign: str, panel: str, key: str = "") -> Response:
    """Enter from a panel, by a signed link to which the panel adds parameters."""
    flow, links = campaigns_of(request).flow(campaign), links_of(request)
    store = flow.campaign.store
    source = panel_of(request, flow.campaign, panel)
    link = links.open(key, campaign, store.now())
    if source.frozen:
        raise ExpiredLink("This panel has closed.", remedy="Ask for another link.")
    if link.kind != "open":
        raise TurnedAway("This link is not for a panel.", remedy="Open the link exactly as you received it.")
    verdict = source.arrive(_parameters(request))
    response = RedirectResponse(f"/j/{campaign}/", 303)
    if isinstance(verdict, PreviewVisit):
        preview = Visitor(campaign, "preview", "manager", preview="0")
        write_cookie(response, request, links, replace(preview, until=link.expires))
        return response
    if isinstance(verdict, RefusedVisit):
        arrivals.record_refusal(flow.campaign.own_store, panel, verdict)
        raise turned_away(verdict)
    refused = flow.campaign.read(lambda tx: arrivals.refusal(tx, panel, verdict))
    if refused is not None:
        arrivals.record_refusal(flow.campaign.own_store, panel, refused)
        raise turned_away(refused)
    visitor = Visitor.of(link, external=verdict.person)
    visitor = replace(visitor, panel=panel, submission=verdict.submission, study=verdict.study)
    write_cookie(response, request, links, settled(flow, visitor, address_of(request)))
    return response


def _parameters(request: Request) -> dict[str, str]:
    pairs = list(request.query_params.multi_items())[:PARAMETERS_AT_MOST]
    names = [name for name, _ in pairs]
    # A parameter that is given twice is ignored: either value could be wrong.
    return {name: value for name, value in pairs if names.count(name) == 1 and len(value) <= VALUE_AT_MOST}


# ---- leaving


@router.get("/j/{campaign}/out")
def leave(visit: Annotated[Visit, Depends(current_visit)]) -> Response:
    """Return to the panel with the completion code; a visitor who isn't done returns to their page."""
    if visit.visitor.previews or not visit.visitor.panel:
        return visit.back()
    place = visit.place()
    ended = ending_of(visit, place)
    if ended is None:
        return visit.back()
    ending, submission = ended
    way = _way(visit, ending)
    if submission is not None:
        visit.flow.campaign.write(lambda tx: record_outcome(tx, submission, ending.outcome))
    if isinstance(way, CompletionRedirect):
        return RedirectResponse(way.url, 303, headers={"Referrer-Policy": "no-referrer"})
    return visit.back()


def ending_of(visit: Visit, place: Place) -> tuple[FinishedWork, Submission | None] | None:
    """Return how a visitor's submission has ended, and the submission; None while it is open."""
    if place.state not in ENDED:
        return None
    campaign = visit.flow.campaign
    if campaign.settings.judges != "crowd":
        return FinishedWork(WorkOutcome.COMPLETED), None
    panel, excluded = campaign.settings.panel, place.state == "excluded"
    return campaign.read(lambda tx: finished_work(tx, panel, visit.assessor, excluded=excluded))


def way_out(visit: Visit, place: Place) -> dict[str, Any]:
    """Return the completion code or the link back to the panel, for the last page."""
    ended = ending_of(visit, place)
    way = None if ended is None else _way(visit, ended[0])
    return {
        "code": way.code if isinstance(way, CompletionCode) else None,
        "redirect_url": f"{visit.base}/out" if isinstance(way, CompletionRedirect) else None,
    }


def _way(visit: Visit, ending: FinishedWork) -> Completion:
    return make_panel(visit.flow.campaign.settings.panel_settings).completion(ending)


# ---- messages


@router.post("/hooks/{panel}/{campaign}")
async def hook(request: Request, panel: str, campaign: str) -> Response:
    """Take a panel's message once, after checking that the panel sent it."""
    body = await request.body()
    if len(body) > MESSAGE_AT_MOST:
        raise TooLarge("The request is too large.", remedy="Send less at once.")
    return await run_in_threadpool(_receive, request, panel, campaign, body)


def _receive(request: Request, panel: str, campaign: str, body: bytes) -> Response:
    opened = campaigns_of(request).flow(campaign).campaign
    sender = panel_of(request, opened, panel)
    if not isinstance(sender, ApiPanel):
        raise UnknownCampaign(
            "This panel sends no messages.", remedy="Use the address exactly as you received it."
        )
    now = opened.store.now()
    delivery = sender.message({name.lower(): value for name, value in request.headers.items()}, body, now)
    outcome = apply_message(opened.own_store, opened.settings, delivery)
    return JSONResponse({"message": outcome}, 409 if outcome == "replayed" else 200)
