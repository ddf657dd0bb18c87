"""What a visitor goes through before the first question: the check's questions and the practice pairs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

from duelpool.errors import BadParameter

Step: TypeAlias = Literal["consent", "guide", "check", "practice"]
"""What comes before judging, in this order; a campaign may leave some out."""

STEPS: tuple[Step, ...] = get_args(Step)

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_CODE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TAKEN = ("key", "lang", "preview")


@dataclass(frozen=True, slots=True)
class CheckQuestion:
    """One question of the comprehension check; `answer` is the place of the right choice, from 0."""

    text: str
    choices: tuple[str, ...]
    answer: int

    def __post_init__(self) -> None:
        if not self.text or len(self.choices) < 2 or not all(self.choices):
            raise BadParameter("A check's question needs a text and two choices or more.")
        if not 0 <= self.answer < len(self.choices):
            raise BadParameter(
                f"The answer to '{self.text}' is choice {self.answer}, which isn't there.",
                remedy=f"It is a number from 0 to {len(self.choices) - 1}.",
            )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the question that a file or a store holds."""
        try:
            return cls(
                str(values["text"]), tuple(str(each) for each in values["choices"]), int(values["answer"])
            )
        except (KeyError, TypeError, ValueError):
            raise BadParameter(
                "A check's question has 'text', 'choices' and 'answer'.",
                remedy="Example: text = 'Which passage wins?', choices = ['the longer', 'the better'], answer = 1.",
            ) from None


@dataclass(frozen=True, slots=True)
class PracticePair:
    """A pair to try the page on: which side is better, and why."""

    topic: str
    left: str
    right: str
    better: Literal["left", "right"]
    why: str = ""

    def __post_init__(self) -> None:
        if not (self.topic and self.left and self.right) or self.better not in ("left", "right"):
            raise BadParameter(
                "A practice pair needs a topic, two texts, and which is better: left or right."
            )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the pair that a file or a store holds."""
        try:
            return cls(
                str(values["topic"]),
                str(values["left"]),
                str(values["right"]),
                values["better"],
                str(values.get("why", "")),
            )
        except (KeyError, TypeError, AttributeError):
            raise BadParameter(
                "A practice pair has 'topic', 'left', 'right' and 'better'.",
                remedy="A 'why' beside them says what makes it better.",
            ) from None


def check_steps(steps: Iterable[str]) -> None:
    """Refuse steps that aren't there, or that come in another order than people go through them."""
    given = tuple(steps)
    if given != tuple(step for step in STEPS if step in given):
        raise BadParameter(
            f"The steps can't be {', '.join(given)}.",
            remedy=f"Choose among {', '.join(STEPS)}, in this order.",
        )


def check_languages(languages: Iterable[str]) -> None:
    """Refuse what isn't the name of a language."""
    for language in languages:
        if not _LANGUAGE.fullmatch(language):
            raise BadParameter(
                f"'{language}' is not the name of a language.", remedy="Write it as en, de or pt-BR."
            )


def check_parameter(name: str) -> None:
    """Refuse a name that an address could not carry, or that means something else there."""
    if not _PARAMETER.fullmatch(name) or name in _TAKEN:
        raise BadParameter(
            f"The outside identity can't come as '{name}'.",
            remedy="Name a parameter such as worker or PROLIFIC_PID.",
        )


def check_codes(complete: str, *others: str) -> None:
    """Refuse codes that a panel couldn't tell apart or wouldn't take."""
    for code in (complete, *others):
        if code and not _CODE.fullmatch(code):
            raise BadParameter(
                f"'{code}' is no completion code.", remedy="Take letters, digits, - and _, 64 at most."
            )
    given = [code for code in (complete, *others) if code]
    if len(set(given)) != len(given):
        raise BadParameter(
            "Two outcomes have the same completion code.", remedy="Give each its own, or leave one out."
        )
