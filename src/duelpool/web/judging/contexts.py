"""What each page shows: a place, put into the words that its template asks for."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import HTMLResponse

from duelpool.records import Passage
from duelpool.store import holdings
from duelpool.web.judging import panels, passages
from duelpool.web.judging.callers import Visit
from duelpool.web.judging.flow import TRIES, Place, checks, practice_pairs
from duelpool.web.judging.visitors import form_key
from duelpool.web.templating import TEMPLATE_OF, markdown_or, render

POLL_SECONDS = 15


def page(found: Visit, place: Place, status: int = 200, template: str = "") -> HTMLResponse:
    """Return the page of a place."""
    more = _MAKERS[place.state](found, place) if place.state in _MAKERS else {}
    name = template or TEMPLATE_OF[place.state]
    return render(
        name, found.words, {**common(found), **_ending(found, place), "state": place.state, **more}, status
    )


def common(found: Visit) -> dict[str, Any]:
    """Return what every page of a campaign knows."""
    return {
        "campaign": found.flow.campaign.name,
        "base": found.base,
        "form_key": form_key(found.links, found.visitor),
        "preview": found.visitor.previews,
        "visitor": found.links.sign("outbox", found.assessor)[-12:],
        "poll_seconds": POLL_SECONDS,
    }


def _ending(found: Visit, place: Place) -> dict[str, Any]:
    settings = found.flow.campaign.settings
    return {
        "code": settings.completion_code or None,
        "redirect_url": settings.completion_url or None,
        "credit": found.flow.credit(place),
        **(panels.way_out(found, place) if found.visitor.panel and settings.panel else {}),
        **place.more,
    }


def _guide(found: Visit) -> str:
    return markdown_or(found.flow.campaign.settings.guidelines, "guide_text", found.words)


def _check_page(found: Visit, place: Place) -> dict[str, Any]:
    listed = checks(found.flow.campaign, found.words)
    return {
        "questions": [
            {"id": name, "text": each.text, "choices": list(each.choices)} for name, each in listed.items()
        ],
        "tries_left": place.tries_left,
        "wrong": place.tries_left < TRIES,
        "guide_html": _guide(found),
    }


def _practice_page(found: Visit, place: Place) -> dict[str, Any]:
    pairs = practice_pairs(found.flow.campaign, found.words)
    pair = pairs[place.number]
    feedback = None if not place.practised else "right" if place.practised == pair.better else "wrong"
    question = {
        "id": f"practice-{place.number + 1}",
        "attempt": 1,
        "kind": "preference",
        "topic": {"text": pair.topic, "description": "", "conversation": []},
        "criterion": found.flow.campaign.settings.criterion,
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


def _judge_page(found: Visit, place: Place) -> dict[str, Any]:
    settings = found.flow.campaign.settings
    return {
        "work": found.flow.work(found.assessor, place, found.words),
        "guide_html": _guide(found),
        "settings": {
            "context": settings.context,
            "ties": settings.ties,
            "same": settings.same,
            "kind": str(settings.kind),
            "judges": settings.judges,
        },
    }


def _feedback_page(found: Visit, place: Place) -> dict[str, Any]:
    about: dict[str, Any] = {"assignment": True}
    if place.topic:
        campaign = found.flow.campaign
        known = campaign.read(holdings.topics)
        about = {"topic": known[place.topic].text}
    return {
        "scales": [{"name": name, "values": [1, 2, 3, 4, 5]} for name in ("confidence", "understanding")],
        "about": about,
        "can_undo": found.flow.can_undo(found.assessor, place),
    }


_MAKERS: Mapping[str, Callable[[Visit, Place], dict[str, Any]]] = {
    "consent": lambda found, place: {
        "consent_html": markdown_or(found.flow.campaign.settings.consent, "consent_text", found.words)
    },
    "guide": lambda found, place: {"guide_html": _guide(found)},
    "check": _check_page,
    "check-failed": _check_page,
    "practice": _practice_page,
    "judging": _judge_page,
    "waiting": _judge_page,
    "feedback": _feedback_page,
    "no-work": lambda found, place: {"all_done": found.flow.campaign.done},
}
