"""The dashboard's pages: each one parses the request, makes one call and shows the result."""

from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from duelpool.access import audit_log
from duelpool.agreements import Votes
from duelpool.agreements.campaigns import Looked
from duelpool.agreements.charts import finding_chart, shares_chart
from duelpool.agreements.findings import agreement_options
from duelpool.campaign.exports.forms import FORMS
from duelpool.campaign.runners.llm_figures import INTERVALS, CountedShare, ModelFigures
from duelpool.campaign.views.watch import NotFound
from duelpool.errors import BadRecord, DuelpoolError
from duelpool.recruitment.settlement import settlement_state
from duelpool.report import charts
from duelpool.report.charts import ChartRow, Mark
from duelpool.store import StoreError
from duelpool.web.access.passes import hide_from_others
from duelpool.web.judging.callers import campaigns_of, links_of
from duelpool.web.manage import actions, reading
from duelpool.web.manage.callers import BLIND, Changing, Choosing, ManageCaller, Viewing
from duelpool.web.manage.keys import open_key, write_cookie
from duelpool.web.manage.leaderboard_pages import router as leaderboard_pages
from duelpool.web.manage.schemas import (
    ActionEffect,
    ChangeState,
    Exclude,
    Reinstate,
    Retract,
    Rewind,
    about_step,
)
from duelpool.web.manage.showing import PAGES, ROWS, amount_of, asked_for, show
from duelpool.web.manage.work_pages import router as work_pages

router = APIRouter(include_in_schema=False)
router.include_router(leaderboard_pages)
router.include_router(work_pages)

PEOPLE_SHOWN = 20  # assessors in a table of agreement
RESAMPLES = 400  # of its bootstrap: few, since the page is loaded often
STEPS: dict[str, tuple[type[Exclude | Reinstate | Retract | Rewind | ChangeState], Any, str]] = {
    "exclude": (Exclude, actions.exclude, "Exclude assessor"),
    "reinstate": (Reinstate, actions.reinstate, "Reinstate assessor"),
    "retract": (Retract, actions.retract, "Retract judgment"),
    "rewind": (Rewind, actions.rewind, "Rewind phase"),
    "state": (ChangeState, actions.change_state, "Change state"),
}
STATE_VERBS = {"open": "Open campaign", "paused": "Pause campaign", "closed": "Close campaign"}


# ---- coming in


@router.get("/manage/{campaign}")
def enter(request: Request, campaign: str, key: str = "") -> Response:
    """Enter by the manager's link; the key moves from the address into a cookie."""
    campaigns = campaigns_of(request)
    campaigns.flow(campaign)
    response = RedirectResponse(f"/manage/{campaign}/overview", 303)
    if key:
        now = campaigns.store.now()
        shown = open_key(links_of(request), key, campaign, campaigns.store, "cookie")
        write_cookie(response, request, campaign, key, shown.expires - now)
        campaigns.store.write(
            lambda connection, now: audit_log.record(
                connection, now, "link", "came in by the link", campaign=campaign
            )
        )
    else:
        hide_from_others(request, links_of(request), campaigns.store, campaign)
    return response


# ---- pages


@router.get("/manage/{campaign}/agreement")
def agreement(caller: Viewing) -> Response:
    """Show the reliability of the judges."""
    asked = {name: asked_for(caller, name) for name in ("criterion", "cluster", "rate")}
    trouble, looked = "", Looked(Votes.of(()), ())
    try:
        rate = float(asked["rate"] or 0.5)
        options = agreement_options(asked["cluster"] or "auto", rate, PEOPLE_SHOWN, RESAMPLES)
        looked = caller.dashboard.agreements.look(asked["criterion"], options)
    except ValueError:
        trouble = "The agreement of tied grades is a number from 0 to 1."
    except StoreError:
        raise
    except DuelpoolError as error:
        trouble = str(error)
    findings = {each.name: each for each in looked.findings}
    return show(
        caller,
        "agreement",
        "agreement",
        "Agreement",
        asked=asked,
        votes=looked.votes,
        ready=looked.ready,
        verdict=looked.verdict,
        findings=findings,
        trouble=trouble,
        tables=("preferences", "inferred", "grades", "definite", "pooled"),
        charts={name: finding_chart(each) for name, each in findings.items()},
        heat=charts.heat,
    )


@router.get("/manage/{campaign}/money")
def money(caller: Viewing) -> Response:
    """Show the costs and the ledger."""
    asked = {name: asked_for(caller, name) for name in ("assessor", "order")}
    who = asked["assessor"]
    known = any(each.assessor == who for each in caller.dashboard.watch.look().assessors)
    page = reading.ledger(
        caller.dashboard,
        asked_for(caller, "cursor"),
        ROWS,
        assessor=who if known else "",
        order=asked["order"],
        search="" if known else who,
    )
    spent = caller.dashboard.watch.look().money
    parts = {
        "Rewards": spent.rewards,
        "Fees": spent.fees,
        "Other": spent.others,
        "Committed": spent.committed,
    }
    whole = max(spent.budget or 0, sum(parts.values()))
    told = {name: (amount, amount_of(amount, spent.currency)) for name, amount in parts.items()}
    chart = charts.parts_chart("Spent and committed, of the budget", told, whole)
    settled = _settled(caller)
    shown = {"page": page, "asked": asked, "parts": parts, "whole": whole, "chart": chart, "settled": settled}
    return show(caller, "money", "money", "Money", **shown)


def _settled(caller: ManageCaller) -> dict[str, Any] | None:
    """Return the panel's payments and the open questions about them; None without a panel."""
    campaign = caller.dashboard.campaign
    if not campaign.settings.panel:
        return None
    now = settlement_state(campaign)
    return {
        "panel": campaign.settings.panel,
        "states": dict(sorted(now.payments.items())),
        "questions": now.questions,
        "numbers": ",".join(str(each.id) for each in now.questions),
    }


@router.get("/manage/{campaign}/llm")
def llm(caller: Viewing) -> Response:
    """Show the language models: agreement, biases and cost."""
    models = []
    for each in caller.dashboard.models():
        rows = [
            ChartRow(name, (Mark(of.share, of.low, of.high),))
            for name, of in confidences(each)
            if of.share is not None
        ]
        models.append((each, shares_chart(f"Agreement of people with {each.assessor}", rows)))
    currency = caller.dashboard.campaign.settings.currency
    return show(caller, "llm", "llm", "LLM judges", models=models, currency=currency, intervals=INTERVALS)


def confidences(figures: ModelFigures) -> list[tuple[str, CountedShare]]:
    """Return the agreement of people with a model, in total and by the model's confidence."""
    rows = [("all pairs", figures.agreement)]
    return rows + [(f"{100 * each.confidence:.0f} % sure", each.agreement) for each in figures.by_confidence]


@router.get("/manage/{campaign}/log")
def the_log(caller: Viewing) -> Response:
    """Show the log."""
    asked = {name: asked_for(caller, name) for name in ("topic", "assessor", "event", "order")}
    page = reading.lines(
        caller.dashboard,
        asked_for(caller, "cursor"),
        ROWS,
        topics=reading.topics_with(caller.dashboard, asked["topic"]),
        assessors=reading.assessors_with(caller.dashboard, asked["assessor"]),
        event=asked["event"],
        order=asked["order"],
    )
    done = reading.audit_page(caller.access, caller.dashboard, asked_for(caller, "deeds"), ROWS // 2)
    items = (line.get(side) for line in page.rows for side in ("left", "right"))
    return show(
        caller,
        "log",
        "log",
        "Log",
        page=page,
        asked=asked,
        events=reading.EVENTS,
        done=done,
        labels=reading.labels(caller.dashboard, filter(None, items)),
        topics=reading.topic_labels(caller.dashboard, {line["topic"] for line in page.rows}),
    )


@router.get("/manage/{campaign}/{page}")
def plain(caller: Viewing, page: str) -> Response:
    """Show a page without values of its own: export."""
    if page != "export":
        raise NotFound("This page doesn't exist.", remedy="Use the links of the dashboard.")
    context: dict[str, Any] = {}
    if page == "export":
        context["forms"] = FORMS
    return show(caller, page, page, dict(PAGES)[page], **context)


# ---- steps


@router.post("/manage/{campaign}/blind")
def blind(caller: Choosing) -> Response:
    """Hide the names of systems in this browser, or show them again."""
    response = caller.back("leaderboard")
    if caller.values.get("blind") == "1":
        secure = caller.request.url.scheme == "https"
        response.set_cookie(BLIND, "1", path="/manage", httponly=True, samesite="lax", secure=secure)
    else:
        response.delete_cookie(BLIND, path="/manage")
    return response


@router.post("/manage/{campaign}/step/{step}")
def take_step(caller: Changing, step: str) -> Response:
    """Preview an action; after confirmation, carry it out."""
    if step not in STEPS:
        raise BadRecord("This step doesn't exist.", remedy="Use the buttons of the dashboard.")
    kind, act, verb = STEPS[step]
    sure = caller.values.get("sure") == "yes"
    values: dict[str, Any] = {
        name: str(caller.values[name])
        for name in kind.model_fields
        if name in caller.values and name != "preview"
    }
    if "seqs" in values:
        values["seqs"] = [int(each) for each in values["seqs"].split() if each.isdecimal() and len(each) < 11]
    try:
        asked = kind(**values, preview=not sure)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise BadRecord(f"{field}: {first['msg']}.", remedy="Go back and fill it in.") from None
    if isinstance(asked, ChangeState):
        verb = STATE_VERBS[asked.state]
    told: ActionEffect = act(caller.dashboard, asked, caller.audit_entry(step, about_step(asked)))
    back = _way_back(step, values)
    if sure:
        query = {**back[1], "notice": caller.links.sign("notice", told.sentence)}
        return caller.back(f"{back[0]}?{urlencode(query)}")
    fields = {**values, **({"seqs": " ".join(map(str, values["seqs"]))} if "seqs" in values else {})}
    return show(
        caller,
        "confirm",
        back[0],
        f"{verb}?",
        told=told,
        step_of=step,
        verb=verb,
        fields=fields,
        topic=reading.topic_labels(caller.dashboard, [values["topic"]])[values["topic"]]
        if "topic" in values
        else None,
        cancel=f"{caller.base}/{back[0]}" + (f"?{urlencode(back[1])}" if back[1] else ""),
    )


def _way_back(step: str, values: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the page on which an action was started."""
    if step in {"exclude", "reinstate"}:
        return "assessor", {"assessor": values["assessor"]}
    if step in {"retract", "rewind"}:
        return "topic", {"topic": values["topic"]}
    return "settings", {}
