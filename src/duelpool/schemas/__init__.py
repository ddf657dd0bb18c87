"""JSON Schemas of the files that Duelpool writes: one file a kind, made from the records.

`schema(name)` returns one of `SCHEMAS`; `duelpool schema NAME` prints it. The files are stored beside this module, so
that reading one imports nothing, and a test holds them to what `duelpool.schemas.made` makes.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from duelpool.errors import UnknownName

__all__ = ["SCHEMAS", "schema", "schema_text"]

SCHEMAS: Mapping[str, str] = MappingProxyType(
    {
        "judgment": "a line of judgments, as `import` takes them",
        "pool": "a line of pools: a topic and its candidates",
        "plan": "a line of a budget plan: its header, or a question",
        "log": "a line of `export --as jsonl`: any event of the log",
        "levels": "the whole of `export --as levels`",
        "vote": "a line of `export --as votes`",
        "pair": "a line of `export --as pairs`",
    }
)
"""Every schema by its name, with what it describes."""

_FOLDER = Path(__file__).parent


def schema_text(name: str) -> str:
    """Return a schema as JSON text."""
    if name not in SCHEMAS:
        raise UnknownName("schema", name, SCHEMAS)
    return (_FOLDER / f"{name}.json").read_text(encoding="utf-8")


def schema(name: str) -> dict[str, Any]:
    """Return a schema (JSON Schema 2020-12) as a dictionary."""
    read: dict[str, Any] = json.loads(schema_text(name))
    return read
