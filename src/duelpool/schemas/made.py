"""How the schemas are made: fields and types from the records, and the rules that types can't say."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from duelpool.budget.plans.plan import FORMAT, Outlook, Plan, PlannedQuestion
from duelpool.leaderboard.systems import ARENA_WINNERS
from duelpool.records import Certainty, Judgment, Kind, Outcome, Pool
from duelpool.schemas import SCHEMAS
from duelpool.store import log

Schema: TypeAlias = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def properties_of(record: type) -> dict[str, Schema]:
    """Return the fields of a record as schemas; a field at its default or None is left out of files."""
    made = TypeAdapter(record).json_schema()
    named = made.get("$defs", {})
    return {name: _plain(field, named) for name, field in made["properties"].items()}


def _plain(field: Schema, named: Mapping[str, Schema]) -> Schema:
    """Return a field without titles, defaults, references and the choice of null."""
    if "$ref" in field:
        field = named[field["$ref"].rsplit("/", 1)[-1]]
    if "anyOf" in field:
        field = next(each for each in field["anyOf"] if each.get("type") != "null")
        return _plain(field, named)
    kept = {key: value for key, value in field.items() if key not in ("title", "default", "description")}
    for inner in ("items", "additionalProperties"):
        if isinstance(kept.get(inner), dict):
            kept[inner] = _plain(kept[inner], named)
    return kept


def an_object(properties: Mapping[str, Schema], required: list[str], **more: Any) -> Schema:
    """Return the schema of an object with these fields and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
        **more,
    }


def when(field: str, value: object, then: Schema, otherwise: Schema | None = None) -> Schema:
    """Return a rule for objects of which a field has a value."""
    rule: Schema = {"if": {"properties": {field: {"const": value}}, "required": [field]}, "then": then}
    return rule if otherwise is None else {**rule, "else": otherwise}


_JUDGED: dict[str, Schema] = {
    **properties_of(Judgment),
    "topic": TEXT,
    "left": TEXT,
    "right": TEXT,
    "criterion": TEXT,
    "seconds": {"type": "number", "minimum": 0},
    "context_uses": COUNT,
    "propensity": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "seq": {"type": "integer", "minimum": 1},
}
_ONE_ITEM: Schema = {"required": ["grade"], "not": {"required": ["right"]}}
_TWO_ITEMS: Schema = {"required": ["right"], "not": {"required": ["grade"]}}
_UNGRADED: Schema = {"not": {"required": ["grade"]}}
_GRADE_OR_PAIR = [
    when("outcome", Outcome.GRADE, _ONE_ITEM, _UNGRADED),
    when("kind", Kind.GRADE, {"not": {"required": ["right"]}}),
]


def judgment() -> Schema:
    """A judgment: a preference between two items, or a grade of one."""
    graded = {
        "anyOf": [
            {"required": ["right"]},
            {"properties": {"kind": {"const": Kind.GRADE}}, "required": ["kind"]},
        ]
    }
    return an_object(_JUDGED, ["topic", "left", "outcome"], allOf=[*_GRADE_OR_PAIR, graded])


def pool() -> Schema:
    """The candidates of a topic."""
    fields = properties_of(Pool)
    fields |= {
        "topic": TEXT,
        "items": {"type": "array", "items": TEXT, "uniqueItems": True},
        "twins": {"type": "object", "additionalProperties": {"type": "array", "items": TEXT}},
    }
    return an_object(fields, ["topic", "items"])


def plan() -> Schema:
    """A line of a plan: the first is its header, the others are questions."""
    named = {each.name for each in dataclasses.fields(Plan)} - {"questions", "propensities"}
    whole = dict.fromkeys(("n", "budget", "seed", "repeats", "round", "price"), COUNT)
    texts = dict.fromkeys(("metric", "goal", "design", "draw", "estimator"), TEXT)
    listed = {key: {"type": "array", "items": {"type": "string"}} for key in ("systems", "topics", "notes")}
    numbers = {"type": ["object", "null"], "additionalProperties": {"type": "number"}}
    outlook = properties_of(Outlook)
    outlook |= {name: {"type": ["number", "null"]} for name in ("width", "most")}
    fields: dict[str, Schema] = {
        "plan": {"const": FORMAT},
        **texts,
        **whole,
        **listed,
        "top": {"type": "number", "exclusiveMinimum": 0},
        "topic_weights": numbers,
        "relevant": numbers,
        "outlook": {"type": "array", "items": an_object(outlook, list(outlook))},
        **dict.fromkeys(("questions", "units", "judgments", "cost"), COUNT),
        "propensities": TEXT,
    }
    missing = named - fields.keys()
    if missing:
        raise NotImplementedError(f"the schema of plans lacks {sorted(missing)}")
    asked = properties_of(PlannedQuestion)
    asked |= {"topic": TEXT, "item": TEXT, "other": TEXT, "times": {"type": "integer", "minimum": 1}}
    asked["expected"] = {"type": "number", "exclusiveMinimum": 0}
    question = an_object(asked, ["topic", "item", "times", "expected"])
    return {"if": {"required": ["plan"]}, "then": an_object(fields, list(fields)), "else": question}


def log_line() -> Schema:
    """A line of the log: a judgment, or what happened to judgments and phases."""
    events = [log.JUDGMENT, log.RETRACTION, log.RESTORATION, log.RELEASE, log.PHASE_CLOSED, log.REWIND]
    fields: dict[str, Schema] = {
        "event": {"enum": events},
        **_JUDGED,
        "attempt": {"type": "integer", "minimum": 1},
        "assignment": TEXT,
        "test_pair": TEXT,
        "told": {"type": "boolean"},
        "refers_to": {"type": "integer", "minimum": 1},
        "survivors": {"type": "array", "items": TEXT, "uniqueItems": True},
        "reason": TEXT,
    }
    fields["time"] = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"}
    judged: Schema = {
        "required": ["left", "outcome", "kind"],
        "if": {"properties": {"kind": {"const": Kind.GRADE}}},
        "then": {"not": {"required": ["right"]}},
        "else": _TWO_ITEMS,
        "allOf": _GRADE_OR_PAIR,
    }
    rules = [
        when("event", log.JUDGMENT, judged, {"not": {"required": ["outcome"]}}),
        when("event", log.RETRACTION, {"required": ["refers_to"]}),
        when("event", log.RESTORATION, {"required": ["refers_to"]}),
        when("event", log.PHASE_CLOSED, {"required": ["phase", "survivors"]}),
    ]
    return an_object(fields, ["event", "topic", "seq", "time"], allOf=rules)


def levels() -> Schema:
    """The levels of every topic, the best first."""
    sure = {
        name: {**field, "type": [field["type"], "null"]} for name, field in properties_of(Certainty).items()
    }
    chance = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    sure |= dict.fromkeys(("best", "top_five", "top_share", "near_best"), chance)
    topic: dict[str, Schema] = {
        "levels": {"type": "array", "items": {"type": "array", "items": TEXT, "minItems": 1}},
        "confidence": chance,
        "certainty": {"anyOf": [{"type": "null"}, an_object(sure, list(sure))]},
        "judgments": COUNT,
        "done": {"type": "boolean"},
    }
    topics: Schema = {"type": "object", "additionalProperties": an_object(topic, list(topic))}
    fields: dict[str, Schema] = {"campaign": TEXT, "strategy": TEXT, "topics": topics}
    return an_object(fields, list(fields))


def vote() -> Schema:
    """A vote between two systems, in the arena's columns."""
    fields = {
        **dict.fromkeys(("question_id", "model_a", "model_b"), TEXT),
        "winner": {"enum": sorted(set(ARENA_WINNERS.values()))},
        "judge": {"type": "string"},
        "judge_type": {"enum": ["human", "model"]},
        "criterion": TEXT,
    }
    texts = {key: {"type": "string"} for key in ("question", "answer_a", "answer_b")}
    return an_object(
        {**fields, **texts}, list(fields), dependentRequired={"question": ["answer_a", "answer_b"]}
    )


def pair() -> Schema:
    """A pair of answers to train with."""
    fields = {
        **dict.fromkeys(("prompt", "chosen", "rejected", "question_id"), TEXT),
        "votes": {"type": "integer", "minimum": 1},
        "margin": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    }
    return an_object(fields, list(fields))


MAKERS: Mapping[str, Callable[[], Schema]] = MappingProxyType(
    {
        "judgment": judgment,
        "pool": pool,
        "plan": plan,
        "log": log_line,
        "levels": levels,
        "vote": vote,
        "pair": pair,
    }
)


def made_text(name: str) -> str:
    """Return a schema as it is stored."""
    about = f"Duelpool: {SCHEMAS[name]}"
    whole = {"$schema": DIALECT, "$id": f"urn:duelpool:schema:{name}", "title": about, **MAKERS[name]()}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
