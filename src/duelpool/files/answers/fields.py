"""The fields of answers: the names they usually have, and the names that a user maps."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from duelpool.errors import BadParameter, BadRecord, known_names
from duelpool.files.jsonlines import Row

NAMES: dict[str, tuple[str, ...]] = {
    "question_id": ("question_id", "query_id", "qid", "prompt_id", "topic_id", "narrative_id", "sample_id", "topic"),
    "question": ("question", "query", "prompt", "user_input", "instruction", "question_text", "query_text", "input",
                 "narrative", "topic"),
    "system": ("system", "model", "system_id", "system_name", "model_name", "model_id", "run_id", "run_tag", "run",
               "generator", "provider"),
    "answer": ("answer", "response", "output", "generated_text", "generated_answer", "generation", "completion",
               "model_output", "answer_text", "response_text", "prediction", "reply", "result", "text"),
    "citations": ("citations", "cited", "sources"),
    "contexts": ("contexts", "context", "retrieved_contexts", "retrieved_documents", "passages", "documents"),
    "reference": ("reference", "reference_answer", "ground_truth", "expected_output", "expected", "ideal", "gold",
                  "target"),
    "tags": ("tags", "tag", "category", "categories"),
}  # fmt: skip
"""The fields, each with its usual names, the likeliest first. Case, blanks, hyphens and underscores don't matter."""

COLUMNS = "systems"
"""In a mapping: the columns of a table that has one column a system."""

MAYBE_IDS = ("topic", "id")
"""Names that may be those of a question's id, or of something else."""

_JOINS = " / "  # between the parts of a joined field


def plain(name: str) -> str:
    """Return a name without what doesn't matter in it."""
    return re.sub(r"[\s_.-]+", "", name).lower()


def parse_fields(text: str) -> dict[str, str]:
    """Read a mapping such as `question=prompt,answer=result,system=kind+style`."""
    mapped: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        field, sign, own = (each.strip() for each in part.partition("="))
        if not sign or not own:
            raise BadParameter(
                f"--fields has '{part}', which names no field.",
                remedy="Example: --fields question=prompt,answer=result",
            )
        if field not in {*NAMES, COLUMNS}:
            raise BadParameter(
                f"Answers have no field '{field}'.", remedy=known_names(field, {*NAMES, COLUMNS})
            )
        if field in mapped:
            raise BadParameter(f"--fields names '{field}' twice.", remedy="Keep one of them.")
        mapped[field] = own
    return mapped


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Where each field is in the rows of a file, by its path; `unused` are the names that are none."""

    paths: Mapping[str, tuple[str, ...]]
    unused: tuple[str, ...]
    names: tuple[str, ...]

    def value(self, row: Row, field: str) -> Any:
        """Return a field of a row; of a field that joins several, their texts."""
        paths = self.paths.get(field, ())
        if len(paths) < 2:
            return _at(row, paths[0]) if paths else None
        return _JOINS.join(str(_at(row, path)) for path in paths if _at(row, path) is not None)

    def text(self, row: Row, field: str) -> str | None:
        """Return a field as text, None where it is missing."""
        value = self.value(row, field)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadRecord(
                f'"{self.called(field)}" must be text, not {shortened(value)}.',
                remedy=f"Name the field that has it: --fields {field}=FIELD",
            )
        return str(value)

    def called(self, field: str) -> str:
        """Return what the file calls a field."""
        return "+".join(self.paths.get(field, (field,)))


def shortened(value: object) -> str:
    """Return a value for a message."""
    return json.dumps(value, default=str)[:40]


def _at(row: Row, path: str) -> Any:
    if path in row:
        return row[path]
    value: Any = row
    for step in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def map_fields(names: Iterable[str], mapped: Mapping[str, str], row: Row | None = None) -> FieldMap:
    """Find the fields among the names of a row; those that the user maps come first."""
    own = tuple(names)
    by_name: dict[str, str] = {}
    for name in own:
        by_name.setdefault(plain(name), name)
    paths: dict[str, tuple[str, ...]] = {}
    for field, path in mapped.items():
        if field == COLUMNS:
            continue
        parts = tuple(part.strip() for part in path.split("+"))
        paths[field] = tuple(_existing(part, own, by_name, field, row) for part in parts)
    taken = {path for parts in paths.values() for path in parts}
    for field, usual in NAMES.items():
        if field in paths:
            continue
        for name in usual:
            found = by_name.get(plain(name))
            if found is None or found in taken or (field == "question_id" and _is_doubtful(name, by_name)):
                continue
            paths[field] = (found,)
            taken.add(found)
            break
    inside = {path.split(".")[0] for path in taken}
    return FieldMap(paths, tuple(name for name in own if name not in taken | inside), own)


def _is_doubtful(name: str, by_name: Mapping[str, str]) -> bool:
    """Whether a topic may be something else than an id: there is a text of the question, or an id, beside it."""
    others = (*NAMES["question_id"][:-1], *NAMES["question"][:-1])
    return name == "topic" and any(plain(other) in by_name for other in others)


def _existing(
    part: str, names: tuple[str, ...], by_name: Mapping[str, str], field: str, row: Row | None
) -> str:
    found = part if part in names else by_name.get(plain(part))
    if found is None and row is not None and "." in part and _at(row, part) is not None:
        found = part
    if found is None:
        raise BadRecord(
            f"There is no field '{part}' for the {field}. Found: {', '.join(names)}.",
            remedy=f"Correct --fields {field}=...",
        )
    return found


def not_found(field: str, found: FieldMap) -> BadRecord:
    """Return the error for rows without a field that answers need."""
    also = ""
    if field == "system":
        also = (
            " Or give one file a system; of a table with a column a system, name them: --fields systems=A+B."
        )
    elif field == "answer" and "system" not in found.paths and len(found.unused) > 1:
        columns = shlex.quote(f"{COLUMNS}={'+'.join(found.unused)}")
        return BadRecord(
            f"There is no field for the answer. Found: {', '.join(found.names)}.",
            remedy="If each system has a column of its own, name these columns: "
            f"--fields {columns}. If one field has the answers: --fields {field}=FIELD.",
        )
    elif field == "question":
        also = " One row, or one object of a list, is one answer: question, system and answer."
    return BadRecord(
        f"There is no field for the {field}. Found: {', '.join(found.names) or 'none'}.",
        remedy=f"Name it: --fields {field}=FIELD. Usual names: {', '.join(NAMES[field])}.{also}",
    )
