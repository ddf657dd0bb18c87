"""The template values of each page of the judging flow."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import HTMLResponse

from duelpool.records import Passage
from duelpool.store import holdings
from duelpool.web.access.passes import may_open
from duelpool.web.judging import panels, passages
from duelpool.web.judging.callers import Visit
from duelpool.web.judging.flow import Place, checks, practice_pairs
from duelpool.web.judging.schemas import question_text
from duelpool.web.judging.visitors import form_key
from duelpool.web.templating import TEMPLATE_OF, markdown_or, render

POLL_SECONDS = 15


def page(visit: Visit, place: Place, status: int = 200, template: str = "") -> HTMLResponse:
    """Return the page for a visitor's place."""
    more = _MAKERS[place.state](visit, place) if place.state in _MAKERS else {}
    name = template or TEMPLATE_OF[place.state]
    return render(
        name, visit.texts, {**common(visit), **_ending(visit, place), "state": place.state, **more}, status
    )


def common(visit: Visit) -> dict[str, Any]:
    """Return the values that every page of a campaign gets."""
    return {
        "campaign": visit.flow.campaign.name,
        "base": visit.base,
        "form_key": form_key(visit.links, visit.visitor),
        "preview": visit.visitor.previews,
        "visitor": visit.links.sign("outbox", visit.assessor)[-12:],
        "poll_seconds": POLL_SECONDS,
        "dashboard": _dashboard(visit),
    }


def _dashboard(visit: Visit) -> str:
    """Return the path of the dashboard where a manager judges in this browser, empty for all others."""
    campaign = visit.flow.campaign
    manages = may_open(visit.request, visit.links, campaign.store, campaign.id, "manage")
    return f"/manage/{campaign.id}/overview" if manages else ""


def _ending(visit: Visit, place: Place) -> dict[str, Any]:
    settings = visit.flow.campaign.settings
    return {
        "code": settings.completion_code or None,
        "redirect_url": settings.completion_url or None,
        "credit": visit.flow.credit(place),
        **(panels.way_out(visit, place) if visit.visitor.panel and settings.panel else {}),
        **place.more,
    }


def _guide(visit: Visit) -> str:
    return markdown_or(visit.flow.campaign.settings.guidelines, "guide_text", visit.texts)


def _consent_page(visit: Visit) -> dict[str, Any]:
    """Return the consent; where the link has a name, the default text doesn't say that none is asked for."""
    name, own = visit.visitor.named_by_link, visit.flow.campaign.settings.consent
    text = own or visit.texts("consent_text")
    if name and not own:
        text = text.replace(" " + visit.texts("consent.no_name"), "")
    return {"consent_html": passages.markdown(text, links=True), "known_as": name}


def _check_page(visit: Visit, place: Place) -> dict[str, Any]:
    listed = checks(visit.flow.campaign, visit.texts)
    return {
        "questions": [
            {"id": name, "text": each.text, "choices": list(each.choices)} for name, each in listed.items()
        ],
        "tries_left": place.tries_left,
        "counts_tries": visit.flow.campaign.settings.judges != "dedicated",
        "wrong": place.present.counts()["check", "failed"] > 0,
        "guide_html": _guide(visit),
    }


def _practice_page(visit: Visit, place: Place) -> dict[str, Any]:
    pairs = practice_pairs(visit.flow.campaign, visit.texts)
    pair = pairs[place.number]
    feedback = None if not place.practised else "right" if place.practised == pair.better else "wrong"
    question = {
        "id": f"practice-{place.number + 1}",
        "attempt": 1,
        "kind": "preference",
        "topic": {"text": pair.topic, "description": "", "conversation": []},
        "criterion": visit.flow.campaign.settings.criterion,
        "left": passages.shown(Passage("left", pair.left)),
        "right": passages.shown(Passage("right", pair.right)),
        "outcomes": ["left", "right"],
        "grades": [],
        "terms": [],
        "expires_in": 0,
    }
    return {
        "question": question,
        "feedback": feedback,
        "why": pair.why if feedback else "",
        "better": pair.better if feedback else "",
        "chosen": place.practised,
        "number": place.number + 1,
        "of": len(pairs),
    }


def _judge_page(visit: Visit, place: Place) -> dict[str, Any]:
    settings = visit.flow.campaign.settings
    return {
        "work": visit.flow.work(visit.assessor, place, visit.texts),
        "guide_html": _guide(visit),
        "settings": {
            "context": settings.context,
            "ties": settings.ties,
            "same": settings.same,
            "kind": str(settings.kind),
            "judges": settings.judges,
            "answers": visit.flow.campaign.live.goal.of_systems,
        },
    }


def _feedback_page(visit: Visit, place: Place) -> dict[str, Any]:
    about: dict[str, Any] = {"assignment": True}
    if place.topic:
        campaign = visit.flow.campaign
        known = campaign.read(holdings.topics)
        about = {"topic": question_text(known[place.topic], visit.texts)}
    return {
        "scales": [{"name": name, "values": [1, 2, 3, 4, 5]} for name in ("confidence", "understanding")],
        "about": about,
        "can_undo": visit.flow.can_undo(visit.assessor, place),
    }


_MAKERS: Mapping[str, Callable[[Visit, Place], dict[str, Any]]] = {
    "consent": lambda visit, place: _consent_page(visit),
    "guide": lambda visit, place: {"guide_html": _guide(visit)},
    "check": _check_page,
    "check-failed": _check_page,
    "practice": _practice_page,
    "judging": _judge_page,
    "waiting": _judge_page,
    "feedback": _feedback_page,
    "no-work": lambda visit, place: {"why": place.more.get("why", "")},
}
