"""The routes of the judging page: each one parses, makes one call, and shows what came of it."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from duelpool.campaign.work import participants as kept
from duelpool.errors import BadRecord
from duelpool.records import Passage, Question
from duelpool.seeds import rng_for
from duelpool.store import Writing, holdings
from duelpool.store.holdings import UnknownCampaign
from duelpool.store.leases import TooLate, UnknownQuestion
from duelpool.web.access.links import ExpiredLink, ForgedLink, Links
from duelpool.web.access.passes import hide_from_others
from duelpool.web.judging import passages, preview
from duelpool.web.judging.callers import Visit, changing, halls_of, links_of, visit
from duelpool.web.judging.contexts import page
from duelpool.web.judging.flow import Flow, Place, checks, saved_json
from duelpool.web.judging.schemas import answer_of, passage_json, question_id, scale_point, text_of
from duelpool.web.judging.visitors import PANEL, Visitor, read_cookie, write_cookie
from duelpool.web.server.guard import FRAME_CSP, NoVisit, wants_json
from duelpool.web.templating import language_of

CONTEXT_AT_MOST = 10

router = APIRouter(include_in_schema=False)

Looking = Annotated[Visit, Depends(visit)]
Changing = Annotated[Visit, Depends(changing)]


# ---- coming in


@router.get("/j/{campaign}")
def enter(request: Request, campaign: str, key: str = "") -> Response:
    """Come in by a signed link."""
    flow = halls_of(request).flow(campaign)
    links = links_of(request)
    before = read_cookie(request, links, campaign) if not key else _remembered(request, links, campaign)
    if not key:
        if before is None:
            hide_from_others(request, links, flow.campaign.store, campaign)
            raise NoVisit("This page needs a link.", remedy="Open the link that you received.")
        return RedirectResponse(f"/j/{campaign}/", 303)
    store = flow.campaign.store
    link = links.open(key, campaign, store.read(store.database.now))
    external = request.query_params.get(flow.campaign.settings.identity_parameter, "")
    text_of({"identity": external}, "identity")
    visitor = Visitor.of(link, external=external if link.kind == "open" else "")
    if request.query_params.get("lang"):
        visitor = visitor.speaking(language_of(request).lang)
    if link.once and not (before is not None and before.assessor == link.assessor):
        _use_once(flow, link.assessor, link.once)
    if visitor.external:
        visitor = _known(flow, visitor)
    elif link.kind == "open" and before is not None and before.kind == "open" and not before.external:
        visitor = before  # the same browser again
    response = RedirectResponse(f"/j/{campaign}/", 303)
    write_cookie(response, request, links, visitor)
    return response


def _remembered(request: Request, links: Links, campaign: str) -> Visitor | None:
    """Return the visitor of an earlier link; a cookie that isn't ours is as good as none."""
    try:
        return read_cookie(request, links, campaign)
    except (ForgedLink, UnknownCampaign):
        return None


def _use_once(flow: Flow, assessor: str, name: str) -> None:
    campaign = flow.campaign
    kind = campaign.settings.judges

    def work(tx: Writing) -> bool:
        kept.admit(tx, assessor, kind)
        return kept.record_step_once(tx, assessor, kept.Step("link", name))

    if not campaign.write(work):
        raise ExpiredLink("This link has already been used.", remedy="Ask for a new one.")


def _known(flow: Flow, visitor: Visitor) -> Visitor:
    """Return a visitor from outside under the pseudonym that they have, or get now."""
    campaign = flow.campaign
    name = campaign.write(
        lambda tx: kept.admit(
            tx, visitor.assessor, campaign.settings.judges, panel=PANEL, external=visitor.external
        )
    )
    return Visitor(visitor.campaign, name, visitor.kind, visitor.external, visitor.lang)


# ---- pages


@router.get("/j/{campaign}/")
def show(found: Looking) -> Response:
    """Show the page of the visitor's state."""
    with found.reading():
        response = page(found, _place(found))
    lang = found.request.query_params.get("lang")
    if lang and found.words.lang != found.visitor.lang:
        write_cookie(response, found.request, found.links, found.visitor.speaking(found.words.lang))
    return response


def _place(found: Visit) -> Place:
    if found.visitor.previews:
        return preview.place(found.flow, found.visitor.preview, found.words)
    return found.flow.place(found.assessor, found.words)


def _previewed(found: Visit, verb: str) -> Response:
    """Go on in the preview: the cookie moves, and nothing is stored."""
    at = preview.onward(found.flow, found.visitor.preview, found.words, verb, found.values)
    moved = replace(found, visitor=found.visitor.at(at))
    response: Response = found.back()
    if wants_json(found.request):
        work = found.flow.work(found.assessor, _place(moved), found.words)
        if verb == "answer":
            work["saved"] = {name: found.values.get(name) for name in ("question", "attempt", "outcome")} | {
                "repeated": False,
                "late": False,
            }
        response = JSONResponse(work)
    write_cookie(response, found.request, found.links, moved.visitor)
    return response


# ---- before judging


@router.post("/j/{campaign}/step")
def step(found: Changing) -> Response:
    """Take one of the steps before judging, or ask for another assignment."""
    if found.visitor.previews:
        return _previewed(found, "step")
    name = str(found.values.get("step", ""))
    place = found.flow.place(found.assessor, found.words)
    if place.state != ("complete" if name == "another" else name):  # a second tab, or a page from before
        return found.back()
    outcomes = _taken(found, name, place)
    if not outcomes:
        return found.back()
    campaign = found.flow.campaign

    def work(tx: Writing) -> None:
        kept.admit(tx, found.assessor, campaign.settings.judges)
        for each, outcome in outcomes:
            kept.record_step(tx, found.assessor, kept.Step(each, outcome))

    campaign.write(work)
    return found.back()


def _taken(found: Visit, name: str, place: Place) -> list[tuple[str, str]]:
    """Return the steps that a form stands for."""
    values = found.values
    if name == "consent":
        return [("consent", "yes")] if values.get("agree") == "yes" else []
    if name == "guide":
        return [("guide", "yes")]
    if name == "check":
        asked = checks(found.flow.campaign, found.words)
        right = all(str(values.get(key, "")) == str(each.answer) for key, each in asked.items())
        return [("check", "passed" if right else "failed")]
    if name == "practice":
        if str(values.get("number", place.number + 1)) != str(place.number + 1):
            return []  # a page from before
        if values.get("go_on"):
            return [("practised", str(place.number))] if place.practised else []
        if place.practised:
            return []  # the first answer stands
        if values.get("outcome") not in ("left", "right"):
            raise BadRecord("A practice pair takes 'left' or 'right'.", remedy="Use the buttons of the page.")
        return [("practice", f"{place.number}:{values['outcome']}")]
    if name == "another" and place.more.get("again"):
        return [("another", place.last.id if place.last is not None else "")]
    return []


# ---- judging


@router.get("/j/{campaign}/work")
def work(found: Looking) -> Response:
    """Return where the visitor stands, with the questions that they hold."""
    with found.reading():
        return JSONResponse(found.flow.work(found.assessor, _place(found), found.words))


@router.post("/j/{campaign}/answer")
def answer(found: Changing) -> Response:
    """Store an answer, and return what comes next."""
    if found.visitor.previews:
        return _previewed(found, "answer")
    question = question_id(found.values)
    given = answer_of(found.values)
    campaign = found.flow.campaign
    try:
        receipt = campaign.answer(question, found.assessor, given)
    except TooLate:
        campaign.forfeit(question, found.assessor)
        raise
    if not wants_json(found.request):
        return found.back()
    have = found.values.get("have")
    with found.reading():
        place = found.flow.after_answer(found.assessor, found.words, receipt)
        return JSONResponse(
            found.flow.work(
                found.assessor,
                place,
                found.words,
                saved=saved_json(receipt, str(given.outcome), given.attempt),
                have=frozenset(map(str, have)) if isinstance(have, list) else (),
                can_undo=None if receipt.repeated else question,
            )
        )


@router.post("/j/{campaign}/undo")
def undo(found: Changing) -> Response:
    """Take an answer back, and ask the same again."""
    if found.visitor.previews:
        return _previewed(found, "undo")
    reopened = found.flow.campaign.undo(question_id(found.values), found.assessor)
    if not wants_json(found.request):
        return found.back()
    place = found.flow.place(found.assessor, found.words)
    first = sorted(place.questions, key=lambda each: each.id != reopened.id)
    told = Place(
        place.state, place.present, tuple(first), place.assignment, place.last, place.topic, more=place.more
    )
    return JSONResponse(found.flow.work(found.assessor, told, found.words))


@router.post("/j/{campaign}/extend")
def extend(found: Changing) -> Response:
    """Give somebody who is still looking more time."""
    if found.visitor.previews:
        return JSONResponse({"expires_in": int(found.flow.campaign.settings.lease_seconds)})
    campaign = found.flow.campaign
    ends = campaign.extend(question_id(found.values), found.assessor)
    now = campaign.read(lambda tx: tx.now)
    return JSONResponse({"expires_in": int(ends - now)})


@router.post("/j/{campaign}/stop")
def stop(found: Changing) -> Response:
    """Stop early: what is done is paid, what isn't goes to others."""
    if found.visitor.previews:
        return _previewed(found, "stop")
    campaign = found.flow.campaign
    held = campaign.open_assignment(found.assessor)
    if held is not None:
        campaign.finish(held.id, "stopped")
    elif campaign.settings.judges != "crowd":
        found.flow.leave(found.assessor)
    if not wants_json(found.request):
        return found.back()
    place = found.flow.place(found.assessor, found.words)
    return JSONResponse(found.flow.work(found.assessor, place, found.words))


@router.post("/j/{campaign}/feedback")
def feedback(found: Changing) -> Response:
    """Keep what somebody says about an assignment or a topic."""
    if found.visitor.previews:
        return _previewed(found, "feedback")
    campaign = found.flow.campaign
    said = {
        "confidence": scale_point(found.values, "confidence"),
        "understanding": scale_point(found.values, "understanding"),
    }
    text = text_of(found.values, "text")
    place = found.flow.place(found.assessor, found.words)
    if place.state == "feedback":
        campaign.write(
            lambda tx: kept.give_feedback(
                tx,
                found.assessor,
                assignment=place.last.id if place.last is not None else None,
                topic=place.topic or None,
                text=text,
                **said,
            )
        )
    return found.back()


# ---- beside a question


def _held(found: Visit, question: str) -> Question:
    """Return a question of this visitor, or say that there is none."""
    name = question_id({"question": question})
    if found.visitor.previews:
        return preview.sample(found.flow, name)
    return found.flow.campaign.question(name, found.assessor)


@router.get("/j/{campaign}/context/{question}")
def context(found: Looking, question: str) -> Response:
    """Return what else there is on a question's topic, in random order."""
    campaign = found.flow.campaign
    asked = _held(found, question)
    if not campaign.settings.context:
        raise UnknownQuestion("This campaign shows no context.", remedy="Judge the texts as they are.")
    rng = rng_for(campaign.settings.seed, "context", asked.id)
    topic = found.flow.sheets.topic(asked)
    if topic.snippets:
        shown = [
            passages.shown(Passage("snippet", topic.snippets[at]))
            for at in rng.permutation(len(topic.snippets))
        ]
        return JSONResponse({"snippets": shown[:CONTEXT_AT_MOST]})
    others = [item for item in campaign.live.items(asked.topic) if item not in (asked.left, asked.right)]
    picked = [others[at] for at in rng.permutation(len(others))[:CONTEXT_AT_MOST]]
    texts = campaign.read(lambda tx: holdings.passages(tx, picked))
    return JSONResponse({"snippets": [passage_json(texts[item]) for item in picked if item in texts]})


@router.get("/j/{campaign}/frame/{question}/{side}")
def frame(found: Looking, question: str, side: str) -> Response:
    """Return an HTML passage alone, sealed."""
    left, right = found.flow.sheets.passages_of(_held(found, question))
    passage = {"left": left, "right": right}.get(side)
    if passage is None or passage.format != "html":
        raise UnknownQuestion("This text doesn't exist.", remedy="Return to the page.")
    return HTMLResponse(
        passages.frame_document(passage.text, passage.title),
        headers={"Content-Security-Policy": FRAME_CSP, "X-Frame-Options": "SAMEORIGIN"},
    )
