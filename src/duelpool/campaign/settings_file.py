"""Settings from a file, TOML or JSON: every setting of a campaign by its name."""

import dataclasses
import json
import tomllib
from typing import Any

from duelpool.campaign.settings import Settings
from duelpool.errors import BadFile, DuelpoolError, UnknownName
from duelpool.files.source import read_source

_WHOLE_OR_NOTHING = ("thin", "budget")


def read_settings(path: str, options: Settings) -> Settings:
    """Return the settings of a file; an option of the command line that differs from its default wins."""
    values = _values(path)
    plain = Settings()
    names = [field.name for field in dataclasses.fields(Settings)]
    for name, value in values.items():
        if name not in names:
            raise UnknownName("setting", name, names)
        _check_type(path, name, value, getattr(plain, name))
    chosen = {name: value for name, value in options.as_json().items() if value != plain.as_json()[name]}
    try:
        return Settings.from_json({**values, **chosen})
    except DuelpoolError as error:
        raise BadFile.at(path, None, error.problem, error.remedy) from error


def _values(path: str) -> dict[str, Any]:
    text = read_source(path).data.decode(errors="replace")
    try:
        values = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise BadFile.at(path, error.lineno, f"This is not JSON: {error.msg}.") from None
    except tomllib.TOMLDecodeError as error:
        raise BadFile.at(
            path, None, f"This is not TOML: {error}.", 'Write lines such as completion_code = "C1234".'
        ) from None
    if not isinstance(values, dict):
        raise BadFile.at(path, None, "Settings are an object with names.")
    return values


def _check_type(path: str, name: str, value: Any, default: Any) -> None:
    """Refuse a value that isn't of the setting's kind."""
    if name in _WHOLE_OR_NOTHING:
        sound, kind = isinstance(value, int) and not isinstance(value, bool), "a whole number"
    elif isinstance(default, bool):
        sound, kind = isinstance(value, bool), "true or false"
    elif isinstance(default, int):
        sound, kind = isinstance(value, int) and not isinstance(value, bool), "a whole number"
    elif isinstance(default, float):
        sound, kind = isinstance(value, int | float) and not isinstance(value, bool), "a number"
    elif isinstance(default, tuple):
        sound, kind = isinstance(value, list), "a list"
    else:
        sound, kind = isinstance(value, str), "a text"
    if not sound:
        raise BadFile.at(path, None, f"'{name}' is {kind}, not {value!r}.")
