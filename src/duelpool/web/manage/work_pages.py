"""The pages of the work: the overview, topics, pairs and assessors."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from duelpool.access import audit_log
from duelpool.campaign.views import certainty
from duelpool.campaign.views.simulated import kind_in_words
from duelpool.campaign.views.status import AssessorStatus
from duelpool.records import Passage
from duelpool.store import log
from duelpool.web.judging import passages
from duelpool.web.manage import actions, reading
from duelpool.web.manage.callers import ManageCaller, Viewing
from duelpool.web.manage.overview import glance
from duelpool.web.manage.schemas import Exclude, PassageText
from duelpool.web.manage.showing import ROWS, asked_for, show

router = APIRouter(include_in_schema=False)

BEST_READ = 2  # best items whose texts a topic's page shows
LEVELS_SHOWN, ITEMS_SHOWN = 10, 12  # levels, and items of each
SURVIVORS_SHOWN = 3  # items of a closed phase
LINES_SHOWN = 20  # an assessor's latest judgments
INVITED_SHOWN = 50  # people who haven't come yet


@router.get("/manage/{campaign}/overview")
def overview(caller: Viewing) -> Response:
    """Show the campaign at a glance."""
    seen = glance.overview(caller.dashboard, blind=caller.blind)
    begun = sum(bool(each.judgments) for each in caller.dashboard.watch.look().assessors)
    return show(
        caller,
        "overview",
        "overview",
        "Overview",
        seen=seen,
        begun=begun,
        shown_working=glance.WORKING_SHOWN,
        sided_at_least=glance.SIDED_AT_LEAST,
    )


@router.get("/manage/{campaign}/topics")
def topics(caller: Viewing) -> Response:
    """Show the topics."""
    asked = {name: asked_for(caller, name) for name in ("state", "search", "order")}
    asked["state"] = asked["state"] or "any"
    page = reading.topics(caller.dashboard, asked_for(caller, "cursor"), ROWS, **asked)
    shown = [row.status for row in page.rows]
    return show(
        caller,
        "topics",
        "topics",
        "Topics",
        page=page,
        asked=asked,
        states=reading.TOPIC_STATES,
        in_short=certainty.in_short,
        stated=any(each.statement for each in shown),
        spending=caller.dashboard.watch.look().spending,
        topics=reading.topic_labels(caller.dashboard, [each.topic for each in shown]),
        labels=reading.labels(caller.dashboard, [each.best[0] for each in shown if each.best]),
    )


@router.get("/manage/{campaign}/topic")
def topic(caller: Viewing) -> Response:
    """Show one topic."""
    name = asked_for(caller, "topic")
    detail = reading.topic(caller.dashboard, name)
    best = [_to_read(each) for each in reading.texts(caller.dashboard, detail.row.status.best[:BEST_READ])]
    items = [item for level in detail.levels[:LEVELS_SHOWN] for item in level[:ITEMS_SHOWN]]
    items += detail.matrix.items
    items += [item for each in detail.closings for item in each.survivors[:SURVIVORS_SHOWN]]
    return show(
        caller,
        "topic",
        "topics",
        f"Topic {name}",
        name=name,
        topic=detail,
        best=best,
        rests_on=certainty.on_what(detail.row.status.certainty),
        labels=reading.labels(caller.dashboard, items),
        levels_shown=LEVELS_SHOWN,
        items_shown=ITEMS_SHOWN,
        survivors_shown=SURVIVORS_SHOWN,
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
    """Show the judged pairs, all of them or those of a topic, of a question's words, or of an assessor."""
    asked = {name: asked_for(caller, name) for name in ("topic", "assessor", "order")}
    page = reading.pairs(
        caller.dashboard,
        asked_for(caller, "cursor"),
        ROWS,
        topics=reading.topics_with(caller.dashboard, asked["topic"]),
        assessors=reading.assessors_with(caller.dashboard, asked["assessor"]),
        order=asked["order"],
    )
    return show(
        caller,
        "pairs",
        "pairs",
        "Pairs",
        page=page,
        asked=asked,
        topics=reading.topic_labels(caller.dashboard, {each.topic for each in page.rows}),
        labels=reading.labels(caller.dashboard, [item for each in page.rows for item in (each.a, each.b)]),
    )


@router.get("/manage/{campaign}/pair")
def pair(caller: Viewing) -> Response:
    """Show one pair with its texts and votes."""
    name = asked_for(caller, "topic")
    detail = reading.pair(caller.dashboard, name, asked_for(caller, "a"), asked_for(caller, "b"))
    shown = [_to_read(each) for each in (detail.a, detail.b)]
    topic = reading.topic_labels(caller.dashboard, [name])[name]
    return show(caller, "pair", "pairs", "Pair", name=name, topic=topic, pair=detail, shown=shown)


@router.get("/manage/{campaign}/assessors")
def assessors(caller: Viewing) -> Response:
    """Show the assessors."""
    asked = {name: asked_for(caller, name) for name in ("order", "state", "search")}
    asked["state"] = asked["state"] or "any"
    page = reading.people(caller.dashboard, asked_for(caller, "cursor"), ROWS, **asked)
    return show(
        caller,
        "assessors",
        "assessors",
        "Assessors",
        page=page,
        asked=asked,
        bounds=reading.bounds(caller.dashboard),
        invited=_not_come(caller) if caller.may_manage else [],
        invited_shown=INVITED_SHOWN,
        has_values=caller.dashboard.vote_values.look() is not None,
        paid=caller.dashboard.campaign.settings.judges == "crowd" or any(each.pay for each in page.rows),
        person_state=_states(caller),
        person_kind=kind_in_words,
    )


def _not_come(caller: ManageCaller) -> list[str]:
    """Return who was invited by name on the dashboard and hasn't begun."""
    campaign = caller.dashboard.campaign
    known = {each.assessor for each in caller.dashboard.watch.look().assessors}
    invited = campaign.read(lambda tx: audit_log.named(tx.connection, campaign.id, "invite"))
    return [name for name in invited if name not in known]


@router.get("/manage/{campaign}/assessor")
def assessor(caller: Viewing) -> Response:
    """Show one assessor."""
    name = asked_for(caller, "assessor")
    person = caller.dashboard.watch.assessor(name)
    lines = reading.lines(caller.dashboard, "", LINES_SHOWN, assessors=[name], event=log.JUDGMENT).rows
    items = [line[side] for line in lines for side in ("left", "right") if line.get(side)]
    preview = (
        None
        if person.state == "excluded"
        else actions.exclude(caller.dashboard, Exclude(assessor=name, reason="preview", preview=True))
    )
    return show(
        caller,
        "assessor",
        "assessors",
        f"Assessor {name}",
        person=person,
        lines=lines,
        preview=preview,
        person_state=_states(caller),
        person_kind=kind_in_words,
        topics=reading.topic_labels(caller.dashboard, {line["topic"] for line in lines}),
        labels=reading.labels(caller.dashboard, items),
    )


def _states(caller: ManageCaller) -> Callable[[AssessorStatus], str]:
    """Return the function that says an assessor's state in words."""
    return lambda person: reading.person_state(person, caller.dashboard.campaign.settings)
