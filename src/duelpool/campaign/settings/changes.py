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
_FROM_NOW_ON = "Applies from now on."

EFFECTS: Mapping[str, str] = MappingProxyType(
    {
        "guidelines": "Shown from now on; assessors who read the old guide are not asked to read it again.",
        "steps": "Apply to visitors who arrive from now on; current assessors continue.",
        "consent": "Shown to visitors who arrive from now on; earlier assessors agreed to the old text.",
        "check": "Visitors who arrive from now on answer these questions.",
        "practice": "Visitors who arrive from now on practise with these pairs.",
        "feedback": "Takes effect with the next assignment or topic that ends.",
        "context": "Takes effect with the next page that is opened.",
        "assignments_each": "Workers who have done more keep their assignments and get no further one.",
        "identity_parameter": "Visitors with the old parameter in their link become new assessors.",
        "completion_code": "Shown at the end of an assignment from now on; earlier workers saw the old one.",
        "completion_url": "Workers who end an assignment from now on are sent there.",
        "languages": "The page offers these languages from now on.",
        "ties": "The page offers it, or no longer, from the next pair on; what was answered stays.",
        "same": "The page offers it, or no longer, from the next pair on; what was answered stays.",
        "flips": "Applies to the answers of language models from now on.",
        "panel": "Workers come from this panel from now on; earlier ones are paid through their own panel.",
        "panel_study": "Submissions of another study are no longer reconciled or settled.",
        "failed_code": "Shown to workers who fail the test pairs from now on.",
        "stopped_code": "Shown to workers who stop early from now on.",
        "no_work_code": "Shown to workers who find nothing to judge from now on.",
        "lease_seconds": "Applies to questions leased from now on.",
        "reward": "Paid for assignments that end from now on; earlier payments stay as they are.",
        "fee_percent": "Applies to assignments that end from now on.",
        "budget": "No new assignments beyond it; open ones may still end.",
        "currency": "Only the name changes; amounts stay as they are.",
    }
)
"""What a change of each setting does, in a sentence for the preview."""

_DECIDES = "It decides which pairs are asked, and the questions so far depend on it."
FIXED: Mapping[str, str] = MappingProxyType(
    {
        "strategy": _DECIDES,
        "seed": _DECIDES,
        "cap": "The slots of pairs depend on it.",
        "judges": "Assignments, test pairs and pay depend on it.",
        "kind": "Judgments of another kind couldn't be compared with those so far.",
        "criterion": "Judgments by another criterion couldn't be compared with those so far.",
        "crossed": "The design is fixed when the study begins.",
        "people_per_kind": "The design is fixed when the study begins.",
        "stage": "It changes automatically when grading ends.",
        "scale": "Grades of another scale couldn't be compared with those so far.",
        "grades_per_item": "Items have been graded under it.",
        "thin": "It is applied once, when grading ends.",
        "targets": "Open assignments and their pay depend on it.",
        "tests": "Open assignments depend on it.",
        "per_topic": "Open assignments depend on it.",
        "repeat_every": "The repeats so far depend on it.",
        "test_rule": "Exclusions so far depend on it.",
        "test_share": "Exclusions so far depend on it.",
        "bad_votes": "Items have been removed by it.",
        "parked_after": "Pairs have been parked by it.",
        "plan": "A plan is frozen: its propensities hold only for the questions it drew.",
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
            raise BadParameter(f"'{name}' can't be changed. {why}", remedy="Create another campaign instead.")
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
