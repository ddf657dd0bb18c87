"""Changes of settings while people judge: which are allowed, and what each of them does."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duelpool.campaign.settings.settings import (
    CHANGEABLE,
    FIXED,
    SETTINGS,
    RefusedSetting,
    Settings,
    check_names,
)
from duelpool.errors import BadParameter, DuelpoolError

_LARGEST = 10**12


@dataclass(frozen=True, slots=True)
class Change:
    """One changed setting: its values before and after, in words, and what the change does."""

    name: str
    before: str
    after: str
    effect: str


class UnreadableSettings(BadParameter):
    """The stored settings of a campaign can't be used by this release."""


def stored_settings(campaign: str, values: Mapping[str, Any]) -> tuple[Settings, tuple[RefusedSetting, ...]]:
    """Return a campaign's stored settings, and those that this release refuses; see `Settings.from_store`."""
    try:
        return Settings.from_store(values)
    except DuelpoolError as error:
        raise UnreadableSettings(
            f"The campaign '{campaign}' can't be opened. {error.problem}",
            remedy=f"{error.remedy} Open it with the release that made it, or restore a backup; other campaigns "
            "of the store open.",
        ) from error


def changed(present: Settings, values: Mapping[str, Any]) -> Settings:
    """Return the present settings with new values; a setting that can't change is refused with the reason."""
    check_names(values)
    for name, value in values.items():
        if name in FIXED:
            raise BadParameter(
                f"'{name}' can't be changed. {FIXED[name]}",
                remedy=f"Create another campaign instead. These can change: {', '.join(sorted(CHANGEABLE))}.",
            )
        _refuse_unwritable(name, value)
    settings, refused = Settings.from_store({**present.as_json(), **values})
    for each in refused:
        if not each.kept:  # such as the number of an earlier release, which stays
            raise BadParameter(each.problem, remedy=each.remedy)
    return settings


def change_schema() -> dict[str, Any]:
    """Return the JSON schema of new values: the changeable settings by their names, at least one of them."""
    return {
        "type": "object",
        "properties": {
            name: {
                **{key: value for key, value in SETTINGS[name].schema.items() if key != "default"},
                "title": SETTINGS[name].about.label,
                "description": f"{SETTINGS[name].about.help} When changed: {effect}",
            }
            for name, effect in CHANGEABLE.items()
        },
        "additionalProperties": False,
        "minProperties": 1,
    }


def changes(before: Settings, after: Settings) -> tuple[Change, ...]:
    """Return the changeable settings that differ, in the order of their declaration."""
    old, new = before.as_json(), after.as_json()
    return tuple(
        Change(name, _in_words(old[name]), _in_words(new[name]), effect)
        for name, effect in CHANGEABLE.items()
        if old[name] != new[name]
    )


def same_fixed_settings(one: Settings, other: Settings) -> bool:
    """Say whether two settings ask the same questions and count every answer alike."""
    return all(getattr(one, name) == getattr(other, name) for name in FIXED)


def _in_words(value: Any) -> str:
    if value is None or value in ("", []):
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _refuse_unwritable(name: str, value: Any) -> None:
    """Refuse numbers that are too large to store, and texts that no page could show."""
    if isinstance(value, int | float) and not -_LARGEST <= value <= _LARGEST:
        raise BadParameter(
            f"'{name}' can't be {value}.", remedy=f"Give a number from {-_LARGEST} to {_LARGEST}."
        )
    try:
        text = json.dumps(value, ensure_ascii=False)
        text.encode()
    except (UnicodeEncodeError, RecursionError, ValueError):
        text = "\\u0000"
    if "\\u0000" in text:
        raise BadParameter(
            f"'{name}' has a character that can't be shown.", remedy="Write it in plain Unicode text."
        )
