"""The dashboard's pages: each one parses, makes one call, and shows what came of it."""

from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from duelpool.access import audit_log
from duelpool.access.accounts import has_manager
from duelpool.agreement import Votes
from duelpool.agreement.campaigns import Looked
from duelpool.agreement.findings import agreement_options
from duelpool.campaign.runners.llm_figures import CountedShare, ModelFigures
from duelpool.campaign.views.exports import STREAMS
from duelpool.campaign.views.watch import NotFound
from duelpool.comparison import CORRECTIONS, TESTS
from duelpool.errors import BadParameter, BadRecord, DuelpoolError
from duelpool.leaderboard.live import Slice
from duelpool.measures import MEASURES
from duelpool.records import Passage
from duelpool.recruitment.settlement import look
from duelpool.store import StoreError, log
from duelpool.web.access.links import ForgedLink
from duelpool.web.access.passes import hide_from_others
from duelpool.web.i18n import words
from duelpool.web.judging import passages
from duelpool.web.judging.callers import halls_of, links_of
from duelpool.web.manage import actions, charts, reading
from duelpool.web.manage.api import MEASURE
from duelpool.web.manage.callers import BLIND, Changing, Choosing, Managing, Viewing
from duelpool.web.manage.dashboard import blinded, blinded_history, blinded_slices
from duelpool.web.manage.keys import open_key, write_cookie
from duelpool.web.manage.schemas import (
    ChangeState,
    Effect,
    Exclude,
    PassageText,
    Reinstate,
    Retract,
    Rewind,
    about_step,
    head_of,
)
from duelpool.web.templating import render

router = APIRouter(include_in_schema=False)

BEST_READ = 2  # best items whose texts a topic's page shows
ROWS = 50
PEOPLE_SHOWN = 20  # assessors in a table of agreement
RESAMPLES = 400  # of its bootstrap: a page is looked at often
PAGES = (
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
    """Come in by the manager's link; the key goes into a cookie and out of the address."""
    halls = halls_of(request)
    halls.flow(campaign)
    response = RedirectResponse(f"/manage/{campaign}/leaderboard", 303)
    if key:
        now = halls.store.read(halls.store.database.now)
        shown = open_key(links_of(request), key, campaign, now, "cookie")
        write_cookie(response, request, campaign, key, shown.expires - now)
        halls.store.write(
            lambda connection, now: audit_log.record(
                connection, now, "link", "came in by the link", campaign=campaign
            )
        )
    else:
        hide_from_others(request, links_of(request), halls.store, campaign)
    return response


# ---- showing


def _show(found: Managing, template: str, here: str, title: str, **context: Any) -> HTMLResponse:
    head = head_of(found.id, found.desk.watch.look())
    notice = ""
    if given := found.request.query_params.get("notice", ""):
        try:
            notice = str(found.links.read("notice", given))
        except ForgedLink:
            notice = ""
    return render(
        f"manage/{template}.html",
        words("en"),
        {
            "base": found.base,
            "api": f"/api/v1/campaigns/{found.id}",
            "here": here,
            "title": title,
            "pages": PAGES,
            "head": head,
            "form_key": found.form_key,
            "step_key": found.form_key if found.may_manage else "",
            "who": found.shown.who,
            "first": found.shown.who == "link" and not found.desk.campaign.store.read(has_manager),
            "blind": found.blind,
            "notice": notice,
            "money": lambda amount: _money(amount, head.money.currency),
            "link": _link(found),
            "when": _when,
            "store": found.desk.campaign.store.name,
            "state": "manage",
            **context,
        },
    )


show = _show  # for pages that stand in files of their own


def _link(found: Managing) -> Any:
    """Return what makes addresses of the dashboard: a page, and what it is asked."""

    def made(page: str, **query: Any) -> str:
        kept = {name: value for name, value in query.items() if value not in {None, ""}}
        return f"{found.base}/{page}" + (f"?{urlencode(kept)}" if kept else "")

    return made


def _money(amount: float | None, currency: str) -> str:
    return "–" if amount is None else f"{amount / 100:,.2f} {currency}"


def _when(time: str) -> str:
    return time[:16].replace("T", " ")


def _asked(found: Managing, name: str, other: str = "") -> str:
    return found.request.query_params.get(name, other)[:2000]


# ---- pages


@router.get("/manage/{campaign}/leaderboard")
def leaderboard(found: Viewing) -> Response:
    """Show the runs, who could still be first, and how it came about."""
    desk = found.desk
    names = desk.aliases() if found.blind else {run: run for run in desk.leaderboard.runs}
    back = {alias: run for run, alias in names.items()}
    asked = {
        "measure": _asked(found, "measure", MEASURE) or MEASURE,
        "baseline": _asked(found, "baseline"),
        "test": _asked(found, "test", "t") or "t",
        "correction": _asked(found, "correction", "holm") or "holm",
        "tag": _asked(found, "tag"),
    }
    trouble = ""
    board, history = None, None
    slices: tuple[Slice, ...] = ()
    try:
        if asked["baseline"] and asked["baseline"] not in back:
            raise BadParameter("The campaign has no such run.", remedy="Choose a baseline from the list.")
        board = blinded(
            desk.leaderboard.board(
                asked["measure"],
                baseline=back.get(asked["baseline"]),
                test=asked["test"],
                correction=asked["correction"],
                tag=asked["tag"] or None,
            ),
            names,
        )
        history = blinded_history(desk.leaderboard.history(asked["measure"]), names)
        slices = blinded_slices(desk.leaderboard.slices(asked["measure"]), names)
    except StoreError:
        raise
    except DuelpoolError as error:
        trouble = str(error)
    return _show(
        found,
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
        shades=charts.colours(list(names.values())),
        interval_chart=charts.interval_chart(board.rows, board.measure) if board else "",
        history_chart=charts.history_chart(history) if history else "",
    )


@router.get("/manage/{campaign}/topics")
def topics(found: Viewing) -> Response:
    """Show the topics."""
    state, search = _asked(found, "state", "any") or "any", _asked(found, "search")
    page = reading.topics(found.desk, _asked(found, "cursor"), ROWS, state, search)
    return _show(
        found,
        "topics",
        "topics",
        "Topics",
        page=page,
        chosen=state,
        search=search,
        states=reading.TOPIC_STATES,
    )


@router.get("/manage/{campaign}/topic")
def topic(found: Viewing) -> Response:
    """Show one topic."""
    name = _asked(found, "topic")
    detail = reading.topic(found.desk, name)
    best = [_to_read(each) for each in reading.texts(found.desk, detail.row.status.best[:BEST_READ])]
    return _show(found, "topic", "topics", f"Topic {name}", name=name, topic=detail, best=best)


def _to_read(text: PassageText) -> dict[str, Any]:
    """Return an item's text as the page gets it, with its id."""
    if not text.text:
        shown = {"format": "text", "title": "", "text": "(The campaign holds no text of this item.)"}
    else:
        shown = passages.shown(Passage(text.item, text.text, title=text.title, format=text.format))  # type: ignore[arg-type]
    return {"item": text.item, **shown}


@router.get("/manage/{campaign}/pairs")
def pairs(found: Viewing) -> Response:
    """Show the judged pairs."""
    of, by = _asked(found, "topic"), _asked(found, "assessor")
    page = reading.pairs(found.desk, _asked(found, "cursor"), ROWS, of, by)
    return _show(found, "pairs", "pairs", "Pairs", page=page, of=of, by=by)


@router.get("/manage/{campaign}/pair")
def pair(found: Viewing) -> Response:
    """Show one pair with its texts and votes."""
    name = _asked(found, "topic")
    detail = reading.pair(found.desk, name, _asked(found, "a"), _asked(found, "b"))
    shown = [_to_read(each) for each in (detail.a, detail.b)]
    return _show(found, "pair", "pairs", "Pair", name=name, pair=detail, shown=shown)


@router.get("/manage/{campaign}/assessors")
def assessors(found: Viewing) -> Response:
    """Show the assessors."""
    order, state = _asked(found, "order", "came") or "came", _asked(found, "state", "any") or "any"
    page = reading.people(found.desk, _asked(found, "cursor"), ROWS, order, state)
    return _show(
        found,
        "assessors",
        "assessors",
        "Assessors",
        page=page,
        order=order,
        chosen=state,
        orders=reading.PEOPLE_ORDERS,
    )


@router.get("/manage/{campaign}/assessor")
def assessor(found: Viewing) -> Response:
    """Show one assessor."""
    name = _asked(found, "assessor")
    person = found.desk.watch.assessor(name)
    lines = reading.lines(found.desk, "", 20, assessor=name, event=log.JUDGMENT)
    preview = (
        None
        if person.state == "excluded"
        else actions.exclude(found.desk, Exclude(assessor=name, reason="preview", preview=True))
    )
    return _show(
        found, "assessor", "assessors", f"Assessor {name}", person=person, lines=lines.rows, preview=preview
    )


@router.get("/manage/{campaign}/agreement")
def agreement(found: Viewing) -> Response:
    """Show how far the judges can be trusted."""
    asked = {name: _asked(found, name) for name in ("criterion", "cluster", "rate")}
    trouble, looked = "", Looked(Votes.of(()), ())
    try:
        rate = float(asked["rate"] or 0.5)
        options = agreement_options(asked["cluster"] or "auto", rate, PEOPLE_SHOWN, RESAMPLES)
        looked = found.desk.agreements.look(asked["criterion"], options)
    except ValueError:
        trouble = "The agreement of tied grades is a number from 0 to 1."
    except StoreError:
        raise
    except DuelpoolError as error:
        trouble = str(error)
    findings = {each.name: each for each in looked.findings}
    return _show(
        found,
        "agreement",
        "agreement",
        "Agreement",
        asked=asked,
        votes=looked.votes,
        ready=looked.ready,
        findings=findings,
        trouble=trouble,
        tables=("preferences", "inferred", "grades", "definite", "pooled"),
        charts={name: charts.finding_chart(each) for name, each in findings.items()},
        heat=charts.heat,
    )


@router.get("/manage/{campaign}/money")
def money(found: Viewing) -> Response:
    """Show what it cost."""
    by = _asked(found, "assessor")
    page = reading.ledger(found.desk, _asked(found, "cursor"), ROWS, by)
    spent = found.desk.watch.look().money
    parts = {
        "Rewards": spent.rewards,
        "Fees": spent.fees,
        "Other": spent.others,
        "Committed": spent.committed,
    }
    whole = max(spent.budget or 0, sum(parts.values()))
    chart = charts.bars_chart("spent", "Spent and committed, of the budget", parts, whole)
    settled = _settled(found)
    shown = {"page": page, "by": by, "parts": parts, "whole": whole, "chart": chart, "settled": settled}
    return _show(found, "money", "money", "Money", **shown)


def _settled(found: Managing) -> dict[str, Any] | None:
    """Return what became of payments by the panel, and what a person is asked; None without a panel."""
    campaign = found.desk.campaign
    if not campaign.settings.panel:
        return None
    now = look(campaign)
    return {
        "panel": campaign.settings.panel,
        "states": dict(sorted(now.payments.items())),
        "questions": now.questions,
        "numbers": ",".join(str(each.id) for each in now.questions),
    }


@router.get("/manage/{campaign}/llm")
def llm(found: Viewing) -> Response:
    """Show how language models judge, and what they cost."""
    models = []
    for at, each in enumerate(found.desk.models()):
        rows = [(name, of.share, of.low, of.high) for name, of in confidences(each) if of.share is not None]
        models.append(
            (each, charts.shares_chart(f"model-{at}", f"Agreement of people with {each.assessor}", rows))
        )
    currency = found.desk.campaign.settings.currency
    return _show(found, "llm", "llm", "LLM judges", models=models, currency=currency)


def confidences(found: ModelFigures) -> list[tuple[str, CountedShare]]:
    """Return how often people agree with a model, in all and by how sure it was."""
    rows = [("all pairs", found.agreement)]
    return rows + [(f"{100 * each.confidence:.0f} % sure", each.agreement) for each in found.by_confidence]


@router.get("/manage/{campaign}/log")
def the_log(found: Viewing) -> Response:
    """Show the log."""
    asked = {name: _asked(found, name) for name in ("topic", "assessor", "event")}
    page = reading.lines(found.desk, _asked(found, "cursor"), ROWS, **asked)
    done = reading.audit_page(found.shown, found.desk, _asked(found, "deeds"), ROWS // 2)
    return _show(found, "log", "log", "Log", page=page, asked=asked, events=reading.EVENTS, done=done)


@router.get("/manage/{campaign}/{page}")
def plain(found: Viewing, page: str) -> Response:
    """Show a page that asks for nothing: export."""
    if page != "export":
        raise NotFound("This page doesn't exist.", remedy="Use the links of the dashboard.")
    context: dict[str, Any] = {}
    if page == "export":
        context["forms"] = STREAMS
    return _show(found, page, page, dict(PAGES)[page], **context)


# ---- steps


@router.post("/manage/{campaign}/blind")
def blind(found: Choosing) -> Response:
    """Hide the names of systems in this browser, or show them again."""
    response = found.back("leaderboard")
    if found.values.get("blind") == "1":
        secure = found.request.url.scheme == "https"
        response.set_cookie(BLIND, "1", path="/manage", httponly=True, samesite="lax", secure=secure)
    else:
        response.delete_cookie(BLIND, path="/manage")
    return response


@router.post("/manage/{campaign}/step/{step}")
def take_step(found: Changing, step: str) -> Response:
    """Say what a step would do, and after a second click do it."""
    if step not in STEPS:
        raise BadRecord("This step doesn't exist.", remedy="Use the buttons of the dashboard.")
    kind, act, verb = STEPS[step]
    sure = found.values.get("sure") == "yes"
    values: dict[str, Any] = {
        name: str(found.values[name])
        for name in kind.model_fields
        if name in found.values and name != "preview"
    }
    if "seqs" in values:
        values["seqs"] = [int(each) for each in values["seqs"].split() if each.isdigit() and len(each) < 11]
    try:
        asked = kind(**values, preview=not sure)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise BadRecord(f"{field}: {first['msg']}.", remedy="Go back and fill it in.") from None
    if isinstance(asked, ChangeState):
        verb = STATE_VERBS[asked.state]
    told: Effect = act(found.desk, asked, found.audit_entry(step, about_step(asked)))
    back = _way_back(step, values)
    if sure:
        query = {**back[1], "notice": found.links.sign("notice", told.sentence)}
        return found.back(f"{back[0]}?{urlencode(query)}")
    fields = {**values, **({"seqs": " ".join(map(str, values["seqs"]))} if "seqs" in values else {})}
    return _show(
        found,
        "confirm",
        back[0],
        f"{verb}?",
        told=told,
        step_of=step,
        verb=verb,
        fields=fields,
        cancel=f"{found.base}/{back[0]}" + (f"?{urlencode(back[1])}" if back[1] else ""),
    )


def _way_back(step: str, values: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the page where a step was taken."""
    if step in {"exclude", "reinstate"}:
        return "assessor", {"assessor": values["assessor"]}
    if step in {"retract", "rewind"}:
        return "topic", {"topic": values["topic"]}
    return "settings", {}
