"""Settings from a file, TOML or JSON: every setting of a campaign by its name."""

import json
import re
import tomllib
from dataclasses import replace
from typing import Any

from duelpool.campaign.settings.changes import changed
from duelpool.campaign.settings.settings import Settings, check_names, refuse_topic_strategy
from duelpool.deciders import read_goal
from duelpool.errors import BadFile, DuelpoolError
from duelpool.files.source import read_source


def read_settings(path: str, options: Settings) -> Settings:
    """Return the settings of a file; an option of the command line that differs from its default wins."""
    values, defaults = _values(path), Settings().as_json()
    options_set = {name: value for name, value in options.as_json().items() if value != defaults[name]}
    try:
        check_names(values)
        goal = str(options_set.get("goal", values.get("goal", defaults["goal"])))
        if "strategy" in values:
            refuse_topic_strategy(goal, values["strategy"])
            if options.strategy == Settings(goal="systems").strategy:  # the goal's default: the file's counts
                options_set.pop("strategy", None)
        options_set.pop("ties", None)  # which no option says
        if "required" in values:  # no option requires anything: they only allow
            options_set.pop("required", None)
        settings = Settings.from_json({**values, **options_set})
        return settings if "ties" in values else replace(settings, ties=read_goal(settings.goal).of_systems)
    except DuelpoolError as error:
        raise BadFile.at(path, None, error.problem, error.remedy) from error


def read_changes(path: str, present: Settings) -> Settings:
    """Return the present settings with the values of a file; a setting that can't change is refused."""
    values = _values(path)
    try:
        return changed(present, values)
    except DuelpoolError as error:
        raise BadFile.at(path, None, error.problem, error.remedy) from error


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
    except (RecursionError, ValueError) as error:  # brackets in brackets, a number of thousands of digits
        raise BadFile.at(
            path, None, f"The settings can't be read ({error}).", "Settings are short values: correct them."
        ) from None
    if not isinstance(values, dict):
        raise BadFile.at(path, None, "Settings are an object with names.")
    return values
