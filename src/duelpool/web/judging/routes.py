"""The routes of the judging page: each one parses the request, makes one call and shows the result."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from duelpool.campaign.work import participants
from duelpool.campaign.work.participants import Step
from duelpool.errors import BadRecord
from duelpool.records import Passage, Question
from duelpool.seeds import rng_for
from duelpool.store import Writing, holdings
from duelpool.store.errors import MaybeStored
from duelpool.store.holdings import UnknownCampaign
from duelpool.store.leases import TooLate, UnknownQuestion
from duelpool.web.access.links import ForgedLink, Links
from duelpool.web.access.passes import address_of, hide_from_others
from duelpool.web.judging import passages, preview
from duelpool.web.judging.admission import admit, admitting, settled
from duelpool.web.judging.callers import Visit, campaigns_of, changing, current_visit, links_of, looking
from duelpool.web.judging.contexts import page
from duelpool.web.judging.flow import WAIVED, Place, checks, saved_json, waives
from duelpool.web.judging.schemas import answer_of, passage_json, question_id, scale_point, text_of
from duelpool.web.judging.visitors import Visitor, read_cookie, write_cookie
from duelpool.web.server.guard import FRAME_CSP, NoVisit, wants_json
from duelpool.web.templating import language_of

CONTEXT_AT_MOST = 10

router = APIRouter(include_in_schema=False)

Looking = Annotated[Visit, Depends(current_visit)]


# ---- entering


@router.get("/j/{campaign}")
def enter(request: Request, campaign: str, key: str = "") -> Response:
    """Enter by a signed link."""
    flow = campaigns_of(request).flow(campaign)
    links = links_of(request)
    before = read_cookie(request, links, campaign) if not key else _remembered(request, links, campaign)
    if not key:
        if before is None:
            hide_from_others(request, links, flow.campaign.store, campaign)
            raise NoVisit("This page needs a link.", remedy="Open the link that you received.")
        return RedirectResponse(f"/j/{campaign}/", 303)
    store = flow.campaign.store
    link = links.open(key, campaign, store.now())
    external = request.query_params.get(flow.campaign.settings.identity_parameter, "")
    text_of({"identity": external}, "identity")
    visitor = Visitor.of(link, external=external if link.kind == "open" else "")
    if request.query_params.get("lang"):
        visitor = visitor.speaking(language_of(request).lang)
    if before is not None and _is_again(before, visitor):
        visitor = replace(before, until=max(before.until, link.expires))
    visitor = settled(flow, visitor, address_of(request))
    response = RedirectResponse(f"/j/{campaign}/", 303)
    write_cookie(response, request, links, visitor)
    return response


def _remembered(request: Request, links: Links, campaign: str) -> Visitor | None:
    """Return the visitor of an earlier link; None for a missing or forged cookie."""
    try:
        return read_cookie(request, links, campaign)
    except (ForgedLink, UnknownCampaign):
        return None


def _is_again(before: Visitor, visitor: Visitor) -> bool:
    """Return whether a browser has entered as this visitor before."""
    if visitor.once:
        return before.assessor == visitor.assessor and before.once in ("", visitor.once)
    unnamed = not (visitor.external or before.external or before.identified)
    return visitor.kind == before.kind == "open" and unnamed


# ---- pages


@router.get("/j/{campaign}/")
@looking
def show(visit: Visit) -> Response:
    """Show the page of the visitor's state."""
    response = page(visit, _place(visit))
    lang = visit.request.query_params.get("lang")
    if lang and visit.texts.lang != visit.visitor.lang:
        write_cookie(response, visit.request, visit.links, visit.visitor.speaking(visit.texts.lang))
    return response


def _place(visit: Visit) -> Place:
    if visit.visitor.previews:
        return preview.place(visit.flow, visit.visitor.preview, visit.texts)
    return visit.place()


def _previewed(visit: Visit, verb: str) -> Response:
    """Advance the preview: only the cookie changes, and nothing is stored."""
    saved: dict[str, Any] = {}
    if verb == "answer" and wants_json(visit.request):  # what a page gets is checked as it is for an assessor
        given = answer_of(visit.values, visit.flow.campaign)
        saved = {
            "question": question_id(visit.values),
            "attempt": given.attempt,
            "outcome": str(given.outcome),
        }
    at = preview.onward(visit.flow, visit.visitor.preview, visit.texts, verb, visit.values)
    moved = replace(visit, visitor=visit.visitor.at(at))
    response: Response = visit.back()
    if wants_json(visit.request):
        work = visit.flow.work(visit.assessor, _place(moved), visit.texts)
        if saved:
            work["saved"] = saved | {"repeated": False, "late": False}
        response = JSONResponse(work)
    write_cookie(response, visit.request, visit.links, moved.visitor)
    return response


# ---- before judging


@router.post("/j/{campaign}/step")
@changing
def step(visit: Visit) -> Response:
    """Take one of the steps before judging, or ask for another assignment."""
    if visit.visitor.previews:
        return _previewed(visit, "step")
    name = str(visit.values.get("step", ""))
    place = visit.place()
    if place.state != ("complete" if name == "another" else name):  # a second tab, or an outdated page
        return visit.back()
    outcomes = _taken(visit, name, place)
    if not outcomes:
        return visit.back()
    campaign = visit.flow.campaign

    def is_due(present: participants.VisitorState) -> bool:
        return visit.flow.still_at(place, present, visit.texts)

    def work(tx: Writing) -> Visitor:
        visitor = admit(tx, campaign.settings, visit.visitor, address_of(visit.request))
        participants.record_steps_if_due(tx, visitor.assessor, outcomes, is_due)
        return visitor

    visitor = admitting(campaign, work)
    response = visit.back()
    write_cookie(response, visit.request, visit.links, visitor)
    return response


def _taken(visit: Visit, name: str, place: Place) -> list[Step]:
    """Return the steps that a form completes."""
    values = visit.values
    waived = [Step("check", WAIVED)] if waives(visit.flow.campaign, visit.visitor.kind) else []
    if name == "consent":
        return [Step("consent", "yes"), *waived] if values.get("agree") == "yes" else []
    if name == "guide":
        return [Step("guide", "yes"), *waived]
    if name == "check":
        asked = checks(visit.flow.campaign, visit.texts)
        right = all(str(values.get(key, "")) == str(each.answer) for key, each in asked.items())
        return [Step("check", "passed" if right else "failed")]
    if name == "practice":
        if str(values.get("number", place.number + 1)) != str(place.number + 1):
            return []  # an outdated page
        if values.get("go_on"):
            return [Step("practised", str(place.number))] if place.practised else []
        if place.practised:
            return []  # the first answer is kept
        if values.get("outcome") not in ("left", "right"):
            raise BadRecord("A practice pair takes 'left' or 'right'.", remedy="Use the buttons of the page.")
        return [Step("practice", f"{place.number}:{values['outcome']}")]
    if name == "another" and place.more.get("again"):
        return [Step("another", place.last.id if place.last is not None else "")]
    return []


# ---- judging


@router.get("/j/{campaign}/work")
@looking
def work(visit: Visit) -> Response:
    """Return the visitor's place, with the questions that they hold."""
    return JSONResponse(visit.flow.work(visit.assessor, _place(visit), visit.texts))


@router.post("/j/{campaign}/answer")
@changing
def answer(visit: Visit) -> Response:
    """Store an answer, and return what comes next."""
    if visit.visitor.previews:
        return _previewed(visit, "answer")
    question = question_id(visit.values)
    response = answer_of(visit.values, visit.flow.campaign)
    campaign = visit.flow.campaign
    try:
        try:
            receipt = campaign.answer(question, visit.assessor, response)
        except MaybeStored:  # an answer counts once, however often it is given
            receipt = campaign.answer(question, visit.assessor, response)
    except TooLate:
        campaign.forfeit(question, visit.assessor)
        raise
    if not wants_json(visit.request):
        return visit.back()
    have = visit.values.get("have")
    place = visit.flow.after_answer(visit.assessor, visit.texts, receipt)
    return JSONResponse(
        visit.flow.work(
            visit.assessor,
            place,
            visit.texts,
            saved=saved_json(receipt, str(response.outcome), response.attempt),
            have=frozenset(map(str, have)) if isinstance(have, list) else (),
            can_undo=None if receipt.repeated else question,
        )
    )


@router.post("/j/{campaign}/undo")
@changing
def undo(visit: Visit) -> Response:
    """Undo an answer, and ask the question again."""
    if visit.visitor.previews:
        return _previewed(visit, "undo")
    campaign = visit.flow.campaign
    reopened = campaign.undo(question_id(visit.values), visit.assessor)
    campaign.live.state(reopened.topic)  # the page counts the topic's judgments without this one
    if not wants_json(visit.request):
        return visit.back()
    place = visit.place()
    first = sorted(place.questions, key=lambda each: each.id != reopened.id)
    reordered = replace(place, questions=tuple(first))
    return JSONResponse(visit.flow.work(visit.assessor, reordered, visit.texts))


@router.post("/j/{campaign}/extend")
@changing
def extend(visit: Visit) -> Response:
    """Extend the lease of a visitor who is still reading."""
    if visit.visitor.previews:
        return JSONResponse({"expires_in": int(visit.flow.campaign.settings.lease_seconds)})
    campaign = visit.flow.campaign
    ends = campaign.extend(question_id(visit.values), visit.assessor)
    now = campaign.store.now()
    lease = campaign.settings.lease_seconds
    return JSONResponse({"expires_in": int(ends - now), "last": ends - now < 0.95 * lease})


@router.post("/j/{campaign}/stop")
@changing
def stop(visit: Visit) -> Response:
    """Stop early: finished questions are paid, the others go to other assessors."""
    if visit.visitor.previews:
        return _previewed(visit, "stop")
    campaign = visit.flow.campaign
    held = campaign.open_assignment(visit.assessor)
    if held is not None:
        campaign.finish(held.id, "stopped")
    elif campaign.settings.judges != "crowd":
        visit.flow.leave(visit.assessor)
    if not wants_json(visit.request):
        return visit.back()
    place = visit.place()
    return JSONResponse(visit.flow.work(visit.assessor, place, visit.texts))


@router.post("/j/{campaign}/feedback")
@changing
def feedback(visit: Visit) -> Response:
    """Store feedback on an assignment or a topic."""
    if visit.visitor.previews:
        return _previewed(visit, "feedback")
    campaign = visit.flow.campaign
    scales = {
        "confidence": scale_point(visit.values, "confidence"),
        "understanding": scale_point(visit.values, "understanding"),
    }
    text = text_of(visit.values, "text")
    place = visit.place()
    if place.state == "feedback":
        campaign.write(
            lambda tx: participants.give_feedback(
                tx,
                visit.assessor,
                assignment=place.last.id if place.last is not None else None,
                topic=place.topic or None,
                text=text,
                **scales,
            )
        )
    return visit.back()


# ---- context and frames


def _held(visit: Visit, question: str) -> Question:
    """Return a question of this visitor, or raise UnknownQuestion."""
    name = question_id({"question": question})
    if visit.visitor.previews:
        return preview.sample(visit.flow, name)
    return visit.flow.campaign.question(name, visit.assessor)


@router.get("/j/{campaign}/context/{question}")
def context(visit: Looking, question: str) -> Response:
    """Return other passages on a question's topic, in random order."""
    campaign = visit.flow.campaign
    asked = _held(visit, question)
    if not campaign.settings.context:
        raise UnknownQuestion("This campaign shows no context.", remedy="Judge the texts as they are.")
    rng = rng_for(campaign.settings.seed, "context", asked.id)
    topic = visit.flow.sheets.topic(asked)
    if topic.snippets:
        shown = [
            passages.shown(Passage("snippet", topic.snippets[at]))
            for at in rng.permutation(len(topic.snippets))
        ]
        return JSONResponse({"snippets": shown[:CONTEXT_AT_MOST]})
    if campaign.live.goal.of_systems:  # the other items are answers of the systems that are compared
        return JSONResponse({"snippets": []})
    judged = (asked.left,) if asked.right is None else (asked.left, asked.right)
    # One item of a test pair isn't in the pool. It is context of the topic's other questions like any other item, so
    # that neither the number of texts nor a comparison of several contexts shows which item that is.
    tested = campaign.read(lambda tx: holdings.tested_items(tx, asked.topic))
    items = sorted({*campaign.live.items(asked.topic), *tested})
    with_text = campaign.read(lambda tx: holdings.items_with_text(tx, items))
    others = [item for item in items if item in with_text and item not in judged]
    number = min(CONTEXT_AT_MOST, len(with_text) - len(judged))
    picked = [others[at] for at in rng.permutation(len(others))[: max(0, number)]]
    texts = campaign.read(lambda tx: holdings.passages(tx, picked))
    return JSONResponse({"snippets": [passage_json(texts[item]) for item in picked]})


@router.get("/j/{campaign}/frame/{question}/{side}")
def frame(visit: Looking, question: str, side: str) -> Response:
    """Return an HTML passage as a sandboxed document."""
    left, right = visit.flow.sheets.passages_of(_held(visit, question))
    passage = {"left": left, "right": right}.get(side)
    if passage is None or passage.format != "html":
        raise UnknownQuestion("This text doesn't exist.", remedy="Return to the page.")
    return HTMLResponse(
        passages.frame_document(passage.text, passage.title),
        headers={"Content-Security-Policy": FRAME_CSP, "X-Frame-Options": "SAMEORIGIN"},
    )


OFTEN = {("POST", "answer"): answer, ("GET", "work"): work}
"""What people send with every answer."""
