"""JSON of the judging page: what a browser gets of a question, and what it may send.

Nothing here reveals an item, a run, a rank or a score, or that a question is a test pair or a repeated one.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from duelpool.campaign import Campaign
from duelpool.campaign.runners.judging_session import QuestionTexts
from duelpool.errors import BadRecord
from duelpool.records import Answer, Kind, Outcome, Passage, Question, Topic
from duelpool.web.i18n import Catalogue
from duelpool.web.judging import passages

NOTE_AT_MOST = 10_000
SECONDS_AT_MOST = 7 * 86400.0
_OF_MODELS = frozenset({Outcome.FLIP_TIE, Outcome.FLIP_ABSTAIN})
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_FUNCTION_WORDS = frozenset(
    _WORD.findall(
        "a an the of in on at to for from by with without and or but nor not no is are was were be been do does "
        "did has have had can could will would shall should may might must what which who whom whose when where "
        "why how it its he his him she her they their them you your we our us i me my this that these those there "
        "as if than then so such into about over under between "
        "der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist sind war "
        "waren sein wird werden wurde hat haben hatte kann können soll muss was welche welcher welches wer wen "
        "wem wann wo warum wie es er sie wir ihr ich mich mir mein dein sich auf aus bei bis für im mit nach über "
        "um unter von vom vor zu zum zur als wenn dass"
    )
)


def terms_of(topic: Topic) -> list[str]:
    """Return the words of a topic that are highlighted in passages, in their order."""
    terms: dict[str, str] = {}
    for word in _WORD.findall(topic.text):
        if word.lower() not in _FUNCTION_WORDS and (len(word) > 1 or not word.isascii()):
            terms.setdefault(word.lower(), word)
    return list(terms.values())


def passage_json(passage: Passage, frame: str = "") -> Mapping[str, Any]:
    """Return a passage as the page gets it; `frame` is where its HTML is served alone."""
    if passage.format == "markdown":
        return _rendered(passage)
    return {**passages.shown(passage, frame), "sources": passages.sources(passage)}


@lru_cache(maxsize=1024)
def _rendered(passage: Passage) -> Mapping[str, Any]:
    return {**passages.shown(passage), "sources": passages.sources(passage)}


def _sides(left: Passage, right: Passage | None, frame: str) -> dict[str, Any]:
    """Return both texts as the page gets them; of two pages of results, those that both have are marked."""
    if right is not None and passages.is_page(left) and passages.is_page(right):
        shared = {each.id for each in left.sources} & {each.id for each in right.sources}
        return {
            "left": passages.results(left, shared),
            "right": passages.results(right, shared),
            "of": "pages",
        }
    return {
        "left": passage_json(left, f"{frame}/left"),
        "right": None if right is None else passage_json(right, f"{frame}/right"),
        "of": "texts",
    }


def outcomes_of(campaign: Campaign, kind: Kind) -> list[str]:
    """Return the answers that a question's page offers."""
    kept_back = withheld(campaign)
    if kind is Kind.GRADE:
        offered = [Outcome.GRADE, Outcome.CANNOT_JUDGE, Outcome.SKIP]
    else:
        accepted = campaign.settings.outcomes_of(kind)
        offered = [each for each in Outcome if each in accepted]
    return [str(each) for each in offered if each not in kept_back]


def withheld(campaign: Campaign) -> frozenset[Outcome]:
    """Return the answers that no page of a campaign offers, although others may give them.

    Models alone notice that their answer depends on the sides. Paid workers use "cannot judge" instead of skipping,
    which would let them choose their test pairs.
    """
    return _OF_MODELS | {Outcome.SKIP} if campaign.settings.judges == "crowd" else _OF_MODELS


class Sheets:
    """Questions of a campaign as JSON, with their texts and choices."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self._texts = QuestionTexts(campaign)

    def question(self, question: Question, texts: Catalogue, now: float) -> dict[str, Any]:
        """Return a question as the page gets it."""
        sheet = self._texts.sheet(question)
        settings = self.campaign.settings
        kind = question.kind
        frame = f"/j/{self.campaign.id}/frame/{question.id}"
        return {
            "id": question.id,
            "attempt": question.attempt,
            "kind": str(kind),
            "topic": topic_json(sheet.topic, texts),
            "criterion": question.criterion,
            **_sides(sheet.left, sheet.right, frame),
            "outcomes": outcomes_of(self.campaign, kind),
            "grades": grades_json(settings.scale, settings.grades, texts) if kind is Kind.GRADE else [],
            "terms": terms_of(sheet.topic),
            "expires_in": expires_in(question, now),
        }

    def questions(
        self, questions: Sequence[Question], texts: Catalogue, now: float, have: Collection[str] = ()
    ) -> list[dict[str, Any]]:
        """Return questions as the page gets them; of those that it has already, only what changes."""
        known = {each.id for each in questions if f"{each.id}:{each.attempt}" in have}
        self._texts.passages_of(each for each in questions if each.id not in known)
        return [
            self.brief(each, now) if each.id in known else self.question(each, texts, now)
            for each in questions
        ]

    def brief(self, question: Question, now: float) -> dict[str, Any]:
        """Return the changing part of a question that the page has already."""
        return {"id": question.id, "attempt": question.attempt, "expires_in": expires_in(question, now)}

    def passages_of(self, question: Question) -> tuple[Passage, Passage | None]:
        """Return the texts of a question."""
        sheet = self._texts.sheet(question)
        return sheet.left, sheet.right

    def topic(self, question: Question) -> Topic:
        """Return the topic of a question."""
        return self._texts.sheet(question).topic


def expires_in(question: Question, now: float) -> int:
    """Return the whole seconds that are left of a lease."""
    return max(0, math.floor(question.expires - now)) if math.isfinite(question.expires) else 0


def question_text(topic: Topic, texts: Catalogue) -> str:
    """Return the words of a topic's question; an id, which says nothing to an assessor, never stands for them."""
    return topic.text if topic.text.strip() not in {"", topic.id} else texts("judge.untitled")


def topic_json(topic: Topic, texts: Catalogue) -> dict[str, Any]:
    """Return a topic as the page gets it."""
    return {
        "text": question_text(topic, texts),
        "description": topic.description,
        "conversation": list(topic.conversation),
    }


def grades_json(scale: str, grades: Sequence[float], texts: Catalogue) -> list[dict[str, Any]]:
    """Return the grades of a scale with their names."""
    labelled = []
    for grade in grades:
        key = f"grade_{scale}_{grade:g}"
        labelled.append({"value": grade, "label": texts(key) if texts.has(key) else f"{grade:g}"})
    return labelled


def money(amount: int, currency: str) -> str:
    """Return an amount of minor units as text."""
    return f"{amount / 100:.2f} {currency}"


# ---- from the page


def answer_of(values: Mapping[str, Any], campaign: Campaign) -> Answer:
    """Return the answer in a form or in JSON; one that the page doesn't offer is refused."""
    try:
        outcome = Outcome(str(values.get("outcome", "")))
    except ValueError:
        raise BadRecord(
            f"There is no answer called '{str(values.get('outcome', ''))[:50]}'.",
            remedy="Use the buttons of the page.",
        ) from None
    if outcome in withheld(campaign):
        raise BadRecord(f"The answer '{outcome}' isn't offered here.", remedy="Use the buttons of the page.")
    uses = _number(values, "context_uses", 0, 10**6)
    attempt = _number(values, "attempt", 1, 10**6)
    return Answer(
        outcome,
        grade=_number(values, "grade", -1e9, 1e9) if outcome is Outcome.GRADE else None,
        confidence=_number(values, "confidence", 0, 100),
        note=text_of(values, "note"),
        seconds=_number(values, "seconds", 0, SECONDS_AT_MOST),
        context_uses=0 if uses is None else int(uses),
        highlighted=_yes(values.get("highlighted")),
        attempt=None if attempt is None else int(attempt),
    )


def _number(values: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    given = values.get(name)
    if given is None or given == "":
        return None
    try:
        number = float(given) if not isinstance(given, bool) else math.nan
    except (TypeError, ValueError, OverflowError):  # OverflowError: whole numbers of hundreds of digits
        number = math.nan
    if not low <= number <= high:
        raise BadRecord(f"'{name}' can't be '{str(given)[:50]}'.", remedy="Use the fields of the page.")
    return number


def _yes(given: Any) -> bool | None:
    if given is None or given == "":
        return None
    return str(given).lower() in ("1", "true", "yes", "on")


def text_of(values: Mapping[str, Any], name: str) -> str:
    """Return a text that was typed; refuse one that a database can't store."""
    given = values.get(name) or ""
    if not isinstance(given, str) or len(given) > NOTE_AT_MOST:
        raise BadRecord(f"The {name} is too long.", remedy=f"Use at most {NOTE_AT_MOST:,} characters.")
    if "\0" in given or given.encode(errors="replace").decode() != given:
        raise BadRecord(f"The {name} has a character that can't be stored.", remedy="Remove it.")
    return given


def scale_point(values: Mapping[str, Any], name: str) -> int | None:
    """Return a point from 1 to 5, None where nothing was chosen."""
    point = _number(values, name, 1, 5)
    if point is not None and point != int(point):
        raise BadRecord(f"'{name}' is a whole number from 1 to 5.")
    return None if point is None else int(point)


def question_id(values: Mapping[str, Any]) -> str:
    """Return the id of the question in a request."""
    name = values.get("question")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise BadRecord("The request names no question.", remedy="Send the question's id.")
    return name
