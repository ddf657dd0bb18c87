"""Lines of the log as JSON objects, as exports and pages have them."""

import json
from typing import Any

from sqlalchemy import Row

from duelpool.store import log, schema

_NOT_WRITTEN = frozenset({"campaign", "attempt", "event"})
# Flags of a line, and the value that is left out.
_SWITCHES = {
    "sides_known": True,
    "inferred": False,
    "told": True,
    "highlighted": None,
    "repeated": False,
}
_LOG_NAMES = tuple(
    {"left_item": "left", "right_item": "right"}.get(column.name, column.name)
    for column in schema.log.columns
)


def line_to_json(row: Row[Any]) -> dict[str, Any]:
    """Return a line of the log as a JSON object, with the names of a judgment's fields and without empty ones."""
    fields: dict[str, Any] = {"event": row.event}
    judged = row.event == log.JUDGMENT
    for name, value in zip(_LOG_NAMES, row, strict=True):
        if value is None or value == "" or name in _NOT_WRITTEN:
            continue
        if name in _SWITCHES:
            if judged and bool(value) != _SWITCHES[name]:
                fields[name] = bool(value)
        elif name == "time":
            fields["time"] = log.iso_time(value)
        elif name == "survivors":
            fields["survivors"] = json.loads(value)
        elif name != "context_uses" or value:
            fields[name] = value
    return fields
