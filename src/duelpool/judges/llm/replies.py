"""The replies that a model may give, and a parser that accepts nothing else.

A reply holds one of a few words and one of a few numbers. There is no free text in it, so nothing that a passage makes
a model say can reach the log; and the words refer to our own marks, so no passage can swap the sides.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal

from duelpool.records import is_number

ReplyFormat = Literal["schema", "json", "none"]
CONFIDENCES = (50, 60, 70, 80, 90, 100)
"""The confidences that a model may state: how many of a hundred careful readers would choose the same."""

CONTENT_AT_MOST = 1000  # characters; the longest valid reply has about a hundred


class Malformed(Exception):
    """A reply that can't be used; the message is one of a few fixed texts."""


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The form of a reply: the words it may choose from, or the grades, or the marks that it puts in order."""

    choices: tuple[str, ...] = ()
    grades: tuple[float, ...] = ()
    marks: tuple[str, ...] = ()
    ties: bool = False  # whether marks may share a place; then the order is a list of lists

    @property
    def field(self) -> str:
        """The JSON field that holds the choice."""
        return "better" if self.choices else "order" if self.marks else "grade"

    @property
    def values(self) -> tuple[str | float | int, ...]:
        """The values that the field may have, or those that an order consists of."""
        if self.marks:
            return (*self.marks, "cannot")
        return self.choices or (*(int(each) if each == int(each) else each for each in self.grades), "cannot")

    @property
    def described(self) -> str:
        """The form in words, for models that get no schema."""
        values = ", ".join(json.dumps(each) for each in self.values)
        sure = ", ".join(map(str, CONFIDENCES))
        if self.marks:
            values = ", ".join(json.dumps(each) for each in self.marks)
            kind = "a list of lists with" if self.ties else "a list of"
            tied = ", those that are equally good in one list" if self.ties else ""
            cannot = '[["cannot"]]' if self.ties else '["cannot"]'
            return (
                f'{{"order": {kind} all of {values}, each once, the best first{tied}, "confidence": one of {sure}}}. '
                f'{cannot} is for what can\'t be judged at all. "confidence" is how many of a hundred careful readers '
                "would choose the same of two of them, on average"
            )
        return (
            f'{{"{self.field}": one of {values}, "confidence": one of {sure}}}. '
            '"cannot" is for what can\'t be judged at all. "confidence" is how many of a hundred careful readers '
            "would choose the same"
        )

    @property
    def schema(self) -> dict[str, Any]:
        """The form as a JSON schema."""
        text = bool(self.choices or self.marks)
        value: dict[str, Any] = {"enum": list(self.values)} | {
            "type": "string" if text else ["number", "string"]
        }
        if self.marks:
            value = {"type": "array", "items": value}
            value = {"type": "array", "items": value} if self.ties else value
        return {
            "type": "object",
            "properties": {
                self.field: value,
                "confidence": {"type": "integer", "enum": list(CONFIDENCES)},
            },
            "required": [self.field, "confidence"],
            "additionalProperties": False,
        }

    def response_format(self, wanted: ReplyFormat) -> dict[str, Any] | None:
        """Return the `response_format` of a request, which holds the model to the form."""
        if wanted == "schema":
            return {
                "type": "json_schema",
                "json_schema": {"name": "judgment", "strict": True, "schema": self.schema},
            }
        return {"type": "json_object"} if wanted == "json" else None


def preference_form(ties: bool) -> ReplyForm:
    """Return the form of a preference."""
    return ReplyForm(choices=("left", "right", *(("tie",) if ties else ()), "cannot"))


def list_form(number: int, ties: bool) -> ReplyForm:
    """Return the form of an order of several items, which are marked A, B, C and so on."""
    return ReplyForm(marks=tuple(ascii_uppercase[:number]), ties=ties)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A model's answer: left, right, tie, grade, order, cannot or refused; `places` of an order, the best first."""

    outcome: str
    confidence: float | None = None
    grade: float | None = None
    places: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens that a server reports; None where the report is missing or impossible."""

    sent: int | None = None
    received: int | None = None


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise Malformed("a name twice")
    return row


def _no_constant(_: str) -> Any:
    raise Malformed("not JSON")


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_no_doubles, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Malformed("not JSON") from None


def parse_usage(body: bytes) -> Usage:
    """Return the tokens that an answer reports."""
    try:
        usage = json.loads(body).get("usage")
    except (ValueError, RecursionError, AttributeError):
        return Usage()
    if not isinstance(usage, Mapping):
        return Usage()
    counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    sound = [each if type(each) is int and 0 <= each < 2**53 else None for each in counts]
    return Usage(*sound) if None not in sound else Usage()


def parse_verdict(body: bytes, form: ReplyForm) -> Verdict:
    """Return the verdict of an answer, or raise `Malformed`: only the exact form is accepted."""
    answer = _json(body)
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise Malformed("no choice")
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Malformed("no message")
    if message.get("refusal") or choice.get("finish_reason") == "content_filter":
        return Verdict("refused")
    if choice.get("finish_reason") == "length":
        raise Malformed("cut short")
    if message.get("tool_calls") or message.get("function_call"):
        raise Malformed("a call of tools")
    content = message.get("content")
    if not isinstance(content, str):
        raise Malformed("no text")
    return parse_content(content, form)


def parse_content(content: str, form: ReplyForm) -> Verdict:
    """Return the verdict in a reply's text: one JSON object with both fields and listed values, nothing around it."""
    if len(content) > CONTENT_AT_MOST:
        raise Malformed("too long")
    reply = _json(content)
    if not isinstance(reply, dict):
        raise Malformed("not an object")
    if set(reply) != {form.field, "confidence"}:
        raise Malformed("other fields")
    confidence, value = reply["confidence"], reply[form.field]
    if type(confidence) is not int or confidence not in CONFIDENCES:
        raise Malformed("another confidence")
    sure = confidence / 100
    if form.marks:
        places = _places(value, form)
        return Verdict("order", sure, places=places) if places else Verdict("cannot", sure)
    if form.choices:
        if not isinstance(value, str) or value not in form.choices:
            raise Malformed("another choice")
        return Verdict(value, sure)
    if value == "cannot":
        return Verdict("cannot", sure)
    if not is_number(value):
        raise Malformed("another grade")
    if float(value) not in form.grades:
        raise Malformed("another grade")
    return Verdict("grade", sure, float(value))


def _places(value: Any, form: ReplyForm) -> tuple[tuple[str, ...], ...]:
    """Return the marks in their order, those that share a place together; none for what can't be judged."""
    if not isinstance(value, list):
        raise Malformed("another order")
    places = value if form.ties else [[each] for each in value]
    if not all(isinstance(place, list) and place for place in places):
        raise Malformed("another order")
    named = [mark for place in places for mark in place]
    if not all(isinstance(mark, str) for mark in named):
        raise Malformed("another order")
    if named == ["cannot"]:
        return ()
    if sorted(named) != sorted(form.marks):
        raise Malformed("another order")
    return tuple(tuple(place) for place in places)
