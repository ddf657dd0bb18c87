"""The pages of the work: the overview, topics, pairs and assessors."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from duelpool.campaign.views import certainty
from duelpool.records import Passage
from duelpool.store import log
from duelpool.web.judging import passages
from duelpool.web.manage import actions, reading
from duelpool.web.manage.callers import Viewing
from duelpool.web.manage.overview import glance
from duelpool.web.manage.schemas import Exclude, PassageText
from duelpool.web.manage.showing import ROWS, asked_for, show

router = APIRouter(include_in_schema=False)

BEST_READ = 2  # best items whose texts a topic's page shows


@router.get("/manage/{campaign}/overview")
def overview(caller: Viewing) -> Response:
    """Show the campaign at a glance."""
    seen = glance.overview(caller.dashboard, blind=caller.blind)
    return show(caller, "overview", "overview", "Overview", seen=seen, shown_working=glance.WORKING_SHOWN)


@router.get("/manage/{campaign}/topics")
def topics(caller: Viewing) -> Response:
    """Show the topics."""
    state, search = asked_for(caller, "state", "any") or "any", asked_for(caller, "search")
    page = reading.topics(caller.dashboard, asked_for(caller, "cursor"), ROWS, state, search)
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
    name = asked_for(caller, "topic")
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
    of, by = asked_for(caller, "topic"), asked_for(caller, "assessor")
    page = reading.pairs(caller.dashboard, asked_for(caller, "cursor"), ROWS, of, by)
    return show(caller, "pairs", "pairs", "Pairs", page=page, of=of, by=by)


@router.get("/manage/{campaign}/pair")
def pair(caller: Viewing) -> Response:
    """Show one pair with its texts and votes."""
    name = asked_for(caller, "topic")
    detail = reading.pair(caller.dashboard, name, asked_for(caller, "a"), asked_for(caller, "b"))
    shown = [_to_read(each) for each in (detail.a, detail.b)]
    return show(caller, "pair", "pairs", "Pair", name=name, pair=detail, shown=shown)


@router.get("/manage/{campaign}/assessors")
def assessors(caller: Viewing) -> Response:
    """Show the assessors."""
    order, state = asked_for(caller, "order", "came") or "came", asked_for(caller, "state", "any") or "any"
    page = reading.people(caller.dashboard, asked_for(caller, "cursor"), ROWS, order, state)
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
    name = asked_for(caller, "assessor")
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
