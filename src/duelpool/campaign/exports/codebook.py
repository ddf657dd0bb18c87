"""What the columns of a release mean: one table, for its data card, its Croissant metadata and its codebook."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from duelpool.records import EFFECTS, Outcome


class ColumnMeaning(NamedTuple):
    """The type of a column (`text`, `number` or `integer`) and what it holds."""

    type: str
    about: str


_OUTCOMES = ", ".join(Outcome)

JUDGMENTS: Mapping[str, ColumnMeaning] = MappingProxyType(
    {
        "topic": ColumnMeaning("text", "the topic's id"),
        "seq": ColumnMeaning("number", "the place in the topic's log, from 1"),
        "time": ColumnMeaning("text", "when it was judged, UTC, ISO 8601"),
        "day": ColumnMeaning("number", "days since the campaign's first judgment, from 0"),
        "assessor": ColumnMeaning("text", "the assessor's pseudonym"),
        "left": ColumnMeaning("text", "the item shown on the left"),
        "right": ColumnMeaning("text", "the item shown on the right; empty for a grade of one item"),
        "outcome": ColumnMeaning("text", f"what was answered: {_OUTCOMES}"),
        "winner": ColumnMeaning("text", "the item that won; empty after a tie or no answer"),
        "grade": ColumnMeaning("number", "the grade, where one item was graded"),
        "counts": ColumnMeaning("text", "yes where it counts: not retracted, excluded, a test or repeated"),
        "test_pair": ColumnMeaning("text", "the id of the test pair, where it was one"),
        "repeated": ColumnMeaning("text", "yes where the same assessor was asked again, for self-agreement"),
        "phase": ColumnMeaning("text", "the phase of the strategy that asked"),
        "criterion": ColumnMeaning("text", "what was compared; usually overall"),
        "stage": ColumnMeaning("text", "grading or preferences"),
        "seconds": ColumnMeaning("number", "how long the answer took"),
        "confidence": ColumnMeaning("number", "how sure the assessor was, where that was asked"),
        "note": ColumnMeaning("text", "what the assessor wrote"),
        "sides_known": ColumnMeaning("text", "yes where it is known which item was on the left"),
        "strategy": ColumnMeaning("text", "name and version of the strategy that asked"),
    }
)
"""The columns of a table of judgments, in its order; a release has some of them."""

PREFERENCES: Mapping[str, ColumnMeaning] = MappingProxyType(
    {
        "topic": ColumnMeaning("text", "the topic's id"),
        "left": ColumnMeaning("text", "the item shown on the left"),
        "right": ColumnMeaning("text", "the item shown on the right"),
        "winner": ColumnMeaning("text", "the item that won, or = for a tie"),
    }
)

TABLES: Mapping[str, Mapping[str, ColumnMeaning]] = MappingProxyType(
    {"judgments.parquet": JUDGMENTS, "preferences.parquet": PREFERENCES}
)
"""The tables of a release, by file."""


def codebook(columns: Sequence[str]) -> list[str]:
    """Return the codebook of a table of judgments as Markdown: its columns, and what each outcome means."""
    lines = ["| column | type | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {JUDGMENTS[name].type} | {JUDGMENTS[name].about} |" for name in columns]
    lines += ["", "| outcome | left gets | right gets | counts as an answer |", "|---|---|---|---|"]
    for outcome, effect in EFFECTS.items():
        lines.append(
            f"| `{outcome}` | {effect.left:g} | {effect.right:g} | {'yes' if effect.usable else 'no'} |"
        )
    return lines


def data_card(name: str, about: str, tables: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the card of a release: what catalogues of datasets read at its head, then text."""
    lines = [
        "---",
        f"pretty_name: {json.dumps(name)}",
        "tags:",
        "- preferences",
        "- relevance-judgments",
        "configs:",
    ]
    for file in tables:
        lines += [f"- config_name: {Path(file).stem}", f"  data_files: {file}"]
    lines += ["---", "", f"# {name}", "", about, ""]
    for file, columns in tables.items():
        lines += [f"## {file}", ""]
        if file == "judgments.parquet":
            lines += codebook(columns)
        else:
            meanings = TABLES[file]
            lines += ["| column | type | meaning |", "|---|---|---|"]
            lines += [f"| `{each}` | {meanings[each].type} | {meanings[each].about} |" for each in columns]
        lines.append("")
    return lines


# ---- Croissant

_CR = "http://mlcommons.org/croissant/"
_TERMS = (
    *("citeAs", "column", "extract", "field", "fileProperty", "fileObject", "fileSet", "format", "includes"),
    *("isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex"),
    *("repeated", "replace", "separator", "source", "subField", "transform"),
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": _CR,
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS},
}
_FORMATS = {
    ".parquet": "application/x-parquet",
    ".jsonl": "application/jsonlines",
    ".json": "application/json",
    ".md": "text/markdown",
    ".csv": "text/csv",
}
_TYPES = {"text": "sc:Text", "number": "sc:Float", "integer": "sc:Integer"}


def croissant(
    name: str, about: str, folder: Path, tables: Mapping[str, Sequence[str]], *, published: str, version: str
) -> str:
    """Return the Croissant metadata (1.0) of the files in a folder, with the columns of its tables."""
    files = [
        {
            "@type": "cr:FileObject",
            "@id": path.name,
            "name": path.name,
            "contentUrl": path.name,
            "contentSize": f"{path.stat().st_size} B",
            "encodingFormat": _FORMATS.get(path.suffix, "text/plain"),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(folder.iterdir())
    ]
    records = [
        {
            "@type": "cr:RecordSet",
            "@id": Path(file).stem,
            "name": Path(file).stem,
            "field": [_field(file, column) for column in columns],
        }
        for file, columns in tables.items()
    ]
    whole = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": name,
        "description": about,
        "conformsTo": f"{_CR}1.0",
        "version": version,
        **({"datePublished": published} if published else {}),
        "distribution": files,
        "recordSet": records,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False)


def _field(file: str, column: str) -> dict[str, Any]:
    meaning = TABLES[file][column]
    return {
        "@type": "cr:Field",
        "@id": f"{Path(file).stem}/{column}",
        "name": column,
        "description": meaning.about,
        "dataType": _TYPES[meaning.type],
        "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
    }
