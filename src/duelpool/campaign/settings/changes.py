"""What may change while people judge, what each change does, and why the rest stays as it is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from duelpool.campaign.settings.file import CHANGEABLE, check_values
from duelpool.campaign.settings.settings import Settings
from duelpool.errors import BadParameter

_LARGEST = 10**12
_FROM_NOW_ON = "Holds from now on."

EFFECTS: Mapping[str, str] = MappingProxyType(
    {
        "guidelines": "Everybody who opens the guide reads it from now on; who has read the old one isn't asked again.",
        "steps": "Whoever comes from now on goes through these; those who are judging go on.",
        "consent": "Whoever comes from now on agrees to these words; those who agreed before did so to the old ones.",
        "check": "Whoever comes from now on answers these questions.",
        "practice": "Whoever comes from now on tries these pairs.",
        "feedback": "Takes effect with the next assignment or topic that ends.",
        "context": "Takes effect with the next page that anybody opens.",
        "assignments_each": "Who has done more already keeps what they did, and gets no further one.",
        "identity_parameter": "Links that carry the old parameter let people in as strangers.",
        "completion_code": "Shown to whoever ends an assignment from now on; those who have ended saw the old one.",
        "completion_url": "Whoever ends an assignment from now on is sent there.",
        "languages": "The page speaks these from now on.",
        "ties": "The page offers it, or no longer, from the next pair on; what was answered stays.",
        "same": "The page offers it, or no longer, from the next pair on; what was answered stays.",
        "flips": "Holds for what a language model says of both orders from now on.",
        "panel": "Whoever comes from now on comes from there; who came from another panel is settled with there.",
        "panel_study": "Stays of another study are reconciled and settled no more.",
        "failed_code": "Shown to whoever fails the test pairs from now on.",
        "stopped_code": "Shown to whoever stops early from now on.",
        "no_work_code": "Shown to whoever finds nothing to do from now on.",
        "lease_seconds": "Holds for questions handed out from now on.",
        "reward": "Paid for assignments that end from now on; what was paid stays as it is.",
        "fee_percent": "Reckoned for assignments that end from now on.",
        "budget": "New assignments stop where it is reached; those that are out may end.",
        "currency": "The name of the money; amounts stay as they are.",
    }
)
"""What a change of each setting does, in a sentence for the preview."""

_DECIDES = "It decides which pairs are asked, and the log so far was asked by it."
FIXED: Mapping[str, str] = MappingProxyType(
    {
        "strategy": _DECIDES,
        "seed": _DECIDES,
        "cap": "Pairs have been handed out under it; the database holds it.",
        "judges": "Assignments, test pairs and pay hang on it.",
        "kind": "Judgments of another kind couldn't be compared with those so far.",
        "criterion": "Judgments by another criterion couldn't be compared with those so far.",
        "crossed": "Who judges what is settled when the study begins.",
        "people_per_kind": "Who judges what is settled when the study begins.",
        "stage": "It moves on by itself when grading ends.",
        "scale": "Grades of another scale couldn't be compared with those so far.",
        "grades_per_item": "Items have been graded under it.",
        "thin": "It is applied once, when grading ends.",
        "targets": "Assignments that are out were made by it, and pay is reckoned by it.",
        "tests": "Assignments that are out were made by it.",
        "per_topic": "Assignments that are out were made by it.",
        "repeat_every": "Who has been asked again hangs on it.",
        "test_rule": "People were kept or let go by it.",
        "test_share": "People were kept or let go by it.",
        "bad_votes": "Items have left their pools by it.",
        "parked_after": "Pairs have been parked by it.",
        "plan": "A plan is frozen: its chances hold only for the questions it drew.",
    }
)
"""Why each of the other settings can't change any more."""


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that becomes another, in words, and what that does."""

    name: str
    before: str
    after: str
    effect: str


def changed(present: Settings, values: Mapping[str, Any]) -> Settings:
    """Return the present settings with others in their places; what can't change is refused with its reason."""
    known = present.as_json()
    for name, value in values.items():
        if name in known and name not in CHANGEABLE:
            why = FIXED.get(name, _DECIDES)
            raise BadParameter(
                f"'{name}' can't change any more. {why}", remedy="Make another campaign for that."
            )
        _refuse_unwritable(name, value)
    check_values(dict(values))
    return Settings.from_json({**known, **values})


def changes(before: Settings, after: Settings) -> tuple[Change, ...]:
    """Return what differs, by name."""
    old, new = _plain(before), _plain(after)
    return tuple(
        Change(name, _told(old[name]), _told(new[name]), EFFECTS.get(name, _FROM_NOW_ON))
        for name in CHANGEABLE
        if old[name] != new[name]
    )


def _plain(settings: Settings) -> dict[str, Any]:
    """Return settings as they come back from a store."""
    found: dict[str, Any] = json.loads(json.dumps(settings.as_json()))
    return found


def _told(value: Any) -> str:
    if value is None or value in ("", []):
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _refuse_unwritable(name: str, value: Any) -> None:
    """Refuse numbers beyond all measure and texts that no page could show."""
    if isinstance(value, int | float) and not -_LARGEST <= value <= _LARGEST:
        raise BadParameter(f"'{name}' can't be {value}.", remedy="Give a smaller number.")
    try:
        text = json.dumps(value, ensure_ascii=False)
        text.encode()
    except (UnicodeEncodeError, RecursionError, ValueError):
        text = "\\u0000"
    if "\\u0000" in text:
        raise BadParameter(
            f"'{name}' has a character that can't be shown.", remedy="Write it in plain Unicode text."
        )
