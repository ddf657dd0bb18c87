"""The dashboard's pages: each one parses the request, makes one call and shows the result."""

from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from duelpool.access import audit_log
from duelpool.access.accounts import has_manager
from duelpool.agreements import Votes
from duelpool.agreements.campaigns import Looked
from duelpool.agreements.charts import finding_chart, shares_chart
from duelpool.agreements.findings import agreement_options
from duelpool.campaign.runners.llm_figures import INTERVALS, CountedShare, ModelFigures
from duelpool.campaign.views import certainty
from duelpool.campaign.views.export_forms import FORMS
from duelpool.campaign.views.watch import NotFound
from duelpool.comparison import CORRECTIONS, TESTS
from duelpool.errors import BadParameter, BadRecord, DuelpoolError
from duelpool.leaderboard.charts import board_chart, history_chart, history_table
from duelpool.leaderboard.live import Slice
from duelpool.measures import MEASURES
from duelpool.records import Passage
from duelpool.recruitment.settlement import settlement_state
from duelpool.report import charts
from duelpool.report.charts import ChartRow, Mark
from duelpool.store import StoreError, log
from duelpool.web.access.links import ForgedLink
from duelpool.web.access.passes import hide_from_others
from duelpool.web.i18n import catalogue
from duelpool.web.judging import passages
from duelpool.web.judging.callers import campaigns_of, links_of
from duelpool.web.manage import actions, reading
from duelpool.web.manage.api import MEASURE
from duelpool.web.manage.callers import BLIND, Changing, Choosing, ManageCaller, Viewing
from duelpool.web.manage.dashboard import blinded, blinded_history, blinded_slices
from duelpool.web.manage.keys import open_key, write_cookie
from duelpool.web.manage.overview import glance
from duelpool.web.manage.schemas import (
    ActionEffect,
    ChangeState,
    Exclude,
    PassageText,
    Reinstate,
    Retract,
    Rewind,
    about_step,
    head_of,
)
from duelpool.web.manage.system_pages import system_values
from duelpool.web.templating import render

router = APIRouter(include_in_schema=False)

BEST_READ = 2  # best items whose texts a topic's page shows
ROWS = 50
PEOPLE_SHOWN = 20  # assessors in a table of agreement
RESAMPLES = 400  # of its bootstrap: few, since the page is loaded often
PAGES = (
    ("overview", "Overview"),
    ("leaderboard", "Leaderboard"),
    ("topics", "Topics"),
    ("pairs", "Pairs"),
    ("assessors", "Assessors"),
    ("agreement", "Agreement"),
    ("money", "Money"),
    ("llm", "LLM judges"),
    ("log", "Log"),
    ("export", "Export"),
    ("settings", "Settings"),
)
USUAL = ("Compat(p=0.8)", "nDCG@10", "RR", "ppref", "PGC(p=0.8)")
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


# ---- showing


def show(caller: ManageCaller, template: str, here: str, title: str, **context: Any) -> HTMLResponse:
    """Return a page of the dashboard, with what all of its pages show."""
    head = head_of(caller.id, caller.dashboard.watch.look())
    notice = ""
    if given := caller.request.query_params.get("notice", ""):
        try:
            notice = str(caller.links.read("notice", given))
        except ForgedLink:
            notice = ""
    return render(
        f"manage/{template}.html",
        catalogue("en"),
        {
            "base": caller.base,
            "api": f"/api/v1/campaigns/{caller.id}",
            "here": here,
            "title": title,
            "pages": PAGES,
            "head": head,
            "form_key": caller.form_key,
            "step_key": caller.form_key if caller.may_manage else "",
            "who": caller.access.who,
            "first": caller.access.who == "link" and not caller.dashboard.campaign.store.read(has_manager),
            "blind": caller.blind,
            "notice": notice,
            "money": lambda amount: _money(amount, head.money.currency),
            "link": _link(caller),
            "when": _when,
            "store": caller.dashboard.campaign.store.name,
            "state": "manage",
            **context,
        },
    )


def _link(caller: ManageCaller) -> Any:
    """Return a function that makes addresses of the dashboard from a page and its query."""

    def made(page: str, **query: Any) -> str:
        kept = {name: value for name, value in query.items() if value not in {None, ""}}
        return f"{caller.base}/{page}" + (f"?{urlencode(kept)}" if kept else "")

    return made


def _money(amount: float | None, currency: str) -> str:
    return "–" if amount is None else f"{amount / 100:,.2f} {currency}"


def _when(time: str) -> str:
    return time[:16].replace("T", " ")


def _asked(caller: ManageCaller, name: str, other: str = "") -> str:
    return caller.request.query_params.get(name, other)[:2000]


# ---- pages


@router.get("/manage/{campaign}/overview")
def overview(caller: Viewing) -> Response:
    """Show the campaign at a glance."""
    seen = glance.overview(caller.dashboard, blind=caller.blind)
    return show(caller, "overview", "overview", "Overview", seen=seen, shown_working=glance.WORKING_SHOWN)


@router.get("/manage/{campaign}/leaderboard")
def leaderboard(caller: Viewing) -> Response:
    """Show the leaderboard, its history and its slices; where systems compete, that of their votes."""
    dashboard = caller.dashboard
    if dashboard.campaign.live.goal.of_systems:
        values = system_values(caller, _asked(caller, "tag"))
        return show(caller, "systems", "leaderboard", "Leaderboard", **values)
    names = dashboard.aliases() if caller.blind else {run: run for run in dashboard.leaderboard.runs}
    back = {alias: run for run, alias in names.items()}
    asked = {
        "measure": _asked(caller, "measure", MEASURE) or MEASURE,
        "baseline": _asked(caller, "baseline"),
        "test": _asked(caller, "test", "t") or "t",
        "correction": _asked(caller, "correction", "holm") or "holm",
        "tag": _asked(caller, "tag"),
    }
    trouble = ""
    board, history = None, None
    slices: tuple[Slice, ...] = ()
    try:
        if asked["baseline"] and asked["baseline"] not in back:
            raise BadParameter("The campaign has no such run.", remedy="Choose a baseline from the list.")
        board = blinded(
            dashboard.leaderboard.board(
                asked["measure"],
                baseline=back.get(asked["baseline"]),
                test=asked["test"],
                correction=asked["correction"],
                tag=asked["tag"] or None,
            ),
            names,
        )
        history = blinded_history(dashboard.leaderboard.history(asked["measure"]), names)
        slices = blinded_slices(dashboard.leaderboard.slices(asked["measure"]), names)
    except StoreError:
        raise
    except DuelpoolError as error:
        trouble = str(error)
    ranked = [row.run for row in board.rows] if board else []
    return show(
        caller,
        "leaderboard",
        "leaderboard",
        "Leaderboard",
        asked=asked,
        board=board,
        history=history,
        slices=slices,
        trouble=trouble,
        runs=sorted(names.values()),
        usual=USUAL,
        measures=sorted(MEASURES),
        tests=tuple(TESTS),
        corrections=tuple(CORRECTIONS),
        shades=charts.colours(ranked),
        interval_chart=board_chart(board.rows, board.measure) if board else "",
        history_chart=history_chart(history, ranked) if history else "",
        history_table=history_table(history, ranked) if history else None,
    )


@router.get("/manage/{campaign}/topics")
def topics(caller: Viewing) -> Response:
    """Show the topics."""
    state, search = _asked(caller, "state", "any") or "any", _asked(caller, "search")
    page = reading.topics(caller.dashboard, _asked(caller, "cursor"), ROWS, state, search)
    return show(
        caller,
        "topics",
        "topics",
        "Topics",
        page=page,
        chosen=state,
        search=search,
        states=reading.TOPIC_STATES,
        in_short=certainty.in_short,
    )


@router.get("/manage/{campaign}/topic")
def topic(caller: Viewing) -> Response:
    """Show one topic."""
    name = _asked(caller, "topic")
    detail = reading.topic(caller.dashboard, name)
    best = [_to_read(each) for each in reading.texts(caller.dashboard, detail.row.status.best[:BEST_READ])]
    return show(
        caller,
        "topic",
        "topics",
        f"Topic {name}",
        name=name,
        topic=detail,
        best=best,
        in_short=certainty.in_short,
        rests_on=certainty.on_what(detail.row.status.certainty),
    )


def _to_read(text: PassageText) -> dict[str, Any]:
    """Return an item's text as the page gets it, with its id."""
    if not text.text:
        shown = {"format": "text", "title": "", "text": "(The campaign holds no text of this item.)"}
    else:
        shown = passages.shown(Passage(text.item, text.text, title=text.title, format=text.format))  # type: ignore[arg-type]
    return {"item": text.item, **shown}


@router.get("/manage/{campaign}/pairs")
def pairs(caller: Viewing) -> Response:
    """Show the judged pairs."""
    of, by = _asked(caller, "topic"), _asked(caller, "assessor")
    page = reading.pairs(caller.dashboard, _asked(caller, "cursor"), ROWS, of, by)
    return show(caller, "pairs", "pairs", "Pairs", page=page, of=of, by=by)


@router.get("/manage/{campaign}/pair")
def pair(caller: Viewing) -> Response:
    """Show one pair with its texts and votes."""
    name = _asked(caller, "topic")
    detail = reading.pair(caller.dashboard, name, _asked(caller, "a"), _asked(caller, "b"))
    shown = [_to_read(each) for each in (detail.a, detail.b)]
    return show(caller, "pair", "pairs", "Pair", name=name, pair=detail, shown=shown)


@router.get("/manage/{campaign}/assessors")
def assessors(caller: Viewing) -> Response:
    """Show the assessors."""
    order, state = _asked(caller, "order", "came") or "came", _asked(caller, "state", "any") or "any"
    page = reading.people(caller.dashboard, _asked(caller, "cursor"), ROWS, order, state)
    return show(
        caller,
        "assessors",
        "assessors",
        "Assessors",
        page=page,
        order=order,
        chosen=state,
        orders=reading.PEOPLE_ORDERS,
        bounds=reading.bounds(caller.dashboard),
    )


@router.get("/manage/{campaign}/assessor")
def assessor(caller: Viewing) -> Response:
    """Show one assessor."""
    name = _asked(caller, "assessor")
    person = caller.dashboard.watch.assessor(name)
    lines = reading.lines(caller.dashboard, "", 20, assessor=name, event=log.JUDGMENT)
    preview = (
        None
        if person.state == "excluded"
        else actions.exclude(caller.dashboard, Exclude(assessor=name, reason="preview", preview=True))
    )
    return show(
        caller, "assessor", "assessors", f"Assessor {name}", person=person, lines=lines.rows, preview=preview
    )


@router.get("/manage/{campaign}/agreement")
def agreement(caller: Viewing) -> Response:
    """Show the reliability of the judges."""
    asked = {name: _asked(caller, name) for name in ("criterion", "cluster", "rate")}
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
        findings=findings,
        trouble=trouble,
        tables=("preferences", "inferred", "grades", "definite", "pooled"),
        charts={name: finding_chart(each) for name, each in findings.items()},
        heat=charts.heat,
    )


@router.get("/manage/{campaign}/money")
def money(caller: Viewing) -> Response:
    """Show the costs and the ledger."""
    by = _asked(caller, "assessor")
    page = reading.ledger(caller.dashboard, _asked(caller, "cursor"), ROWS, by)
    spent = caller.dashboard.watch.look().money
    parts = {
        "Rewards": spent.rewards,
        "Fees": spent.fees,
        "Other": spent.others,
        "Committed": spent.committed,
    }
    whole = max(spent.budget or 0, sum(parts.values()))
    told = {name: (amount, _money(amount, spent.currency)) for name, amount in parts.items()}
    chart = charts.parts_chart("Spent and committed, of the budget", told, whole)
    settled = _settled(caller)
    shown = {"page": page, "by": by, "parts": parts, "whole": whole, "chart": chart, "settled": settled}
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
    asked = {name: _asked(caller, name) for name in ("topic", "assessor", "event")}
    page = reading.lines(caller.dashboard, _asked(caller, "cursor"), ROWS, **asked)
    done = reading.audit_page(caller.access, caller.dashboard, _asked(caller, "deeds"), ROWS // 2)
    return show(caller, "log", "log", "Log", page=page, asked=asked, events=reading.EVENTS, done=done)


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
        cancel=f"{caller.base}/{back[0]}" + (f"?{urlencode(back[1])}" if back[1] else ""),
    )


def _way_back(step: str, values: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the page on which an action was started."""
    if step in {"exclude", "reinstate"}:
        return "assessor", {"assessor": values["assessor"]}
    if step in {"retract", "rewind"}:
        return "topic", {"topic": values["topic"]}
    return "settings", {}
