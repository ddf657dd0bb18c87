"""Settings from a file, TOML or JSON: every setting of a campaign by its name."""

import dataclasses
import json
import re
import tomllib
from typing import Any

from duelpool.campaign.settings.settings import Settings
from duelpool.errors import BadFile, BadParameter, DuelpoolError, UnknownName
from duelpool.files.source import read_source

CHANGEABLE = (
    *("guidelines", "steps", "consent", "check", "practice", "feedback", "context", "assignments_each"),
    *("identity_parameter", "completion_code", "completion_url", "languages", "ties", "same", "flips"),
    *("panel", "panel_study", "failed_code", "stopped_code", "no_work_code"),
    *("lease_seconds", "reward", "fee_percent", "budget", "currency"),
)
"""The settings that may change while people judge; the others decide what is asked, and stay."""

_WHOLE_OR_NOTHING = ("thin", "budget")
_LISTS_OF_TEXTS = ("steps", "languages", "crossed")


def read_settings(path: str, options: Settings) -> Settings:
    """Return the settings of a file; an option of the command line that differs from its default wins."""
    values, plain = _checked(path), Settings()
    chosen = {name: value for name, value in options.as_json().items() if value != plain.as_json()[name]}
    return _made(path, {**values, **chosen})


def read_changes(path: str, present: Settings) -> Settings:
    """Return the present settings with those of a file in their places; only some may change."""
    values = _checked(path)
    if fixed := sorted(set(values) - set(CHANGEABLE)):
        raise BadFile.at(
            path,
            None,
            f"'{fixed[0]}' can't change while people judge.",
            f"These can: {', '.join(sorted(CHANGEABLE))}.",
        )
    return _made(path, {**present.as_json(), **values})


def _made(path: str, values: dict[str, Any]) -> Settings:
    try:
        return Settings.from_json(values)
    except DuelpoolError as error:
        raise BadFile.at(path, None, error.problem, error.remedy) from error


def _checked(path: str) -> dict[str, Any]:
    """Return the values of a file, each of its setting's kind."""
    values = _values(path)
    check_values(values, path)
    return values


def check_values(values: dict[str, Any], place: str = "") -> None:
    """Refuse a name that is no setting's, and a value that isn't of its setting's kind."""
    names = [field.name for field in dataclasses.fields(Settings)]
    plain = Settings()
    for name, value in values.items():
        if name not in names:
            unknown = UnknownName("setting", name, names)
            if place:
                raise BadFile.at(place, None, unknown.problem, unknown.remedy)
            raise unknown
        _check_type(place, name, value, getattr(plain, name))


def _values(path: str) -> dict[str, Any]:
    text = read_source(path).data.decode(errors="replace")
    try:
        values = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise BadFile.at(path, error.lineno, f"This is not JSON: {error.msg}.") from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise BadFile.at(
            path,
            int(line[1]) if line else None,
            f"This is not TOML: {error}.",
            'Write lines such as completion_code = "C1234".',
        ) from None
    if not isinstance(values, dict):
        raise BadFile.at(path, None, "Settings are an object with names.")
    return values


def _check_type(path: str, name: str, value: Any, default: Any) -> None:
    """Refuse a value that isn't of the setting's kind."""
    if name in _WHOLE_OR_NOTHING:
        whole = isinstance(value, int) and not isinstance(value, bool)
        sound, kind = whole or (value is None and not path), "a whole number"
    elif isinstance(default, bool):
        sound, kind = isinstance(value, bool), "true or false"
    elif isinstance(default, int):
        sound, kind = isinstance(value, int) and not isinstance(value, bool), "a whole number"
    elif isinstance(default, float):
        sound, kind = isinstance(value, int | float) and not isinstance(value, bool), "a number"
    elif isinstance(default, tuple):
        sound, kind = isinstance(value, list), "a list"
        if name in _LISTS_OF_TEXTS:
            sound, kind = sound and all(isinstance(each, str) for each in value), "a list of texts"
    else:
        sound, kind = isinstance(value, str), "a text"
    if not sound:
        problem = f"'{name}' is {kind}, not {repr(value)[:80]}."
        raise BadFile.at(path, None, problem) if path else BadParameter(problem, remedy="Mend it.")


def decides_alike(one: Settings, other: Settings) -> bool:
    """Say whether two settings ask the same questions and make the same of every answer."""
    ours, theirs = one.as_json(), other.as_json()
    return all(ours[name] == theirs[name] for name in ours if name not in CHANGEABLE)
