"""What a visitor goes through before the first question: the check's questions and the practice pairs."""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from pydantic import ConfigDict

from duelpool.errors import BadParameter

Step: TypeAlias = Literal["consent", "guide", "check", "practice"]
"""What comes before judging, in this order; a campaign may leave some out."""

STEPS: tuple[Step, ...] = get_args(Step)


@dataclass(frozen=True, slots=True)
class CheckQuestion:
    """One question of the comprehension check; `answer` is the position of the right choice, from 0."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(coerce_numbers_to_str=True)

    text: str
    choices: tuple[str, ...]
    answer: int

    def __post_init__(self) -> None:
        if not self.text or len(self.choices) < 2 or not all(self.choices):
            raise BadParameter(
                f"The question '{self.text}' of 'check' has {len(self.choices)} choices.",
                remedy="Give it a text and at least two choices, none of them empty.",
            )
        if not 0 <= self.answer < len(self.choices):
            raise BadParameter(
                f"The question '{self.text}' of 'check' has no choice {self.answer}, its answer.",
                remedy=f"Give a number from 0 to {len(self.choices) - 1}.",
            )


@dataclass(frozen=True, slots=True)
class PracticePair:
    """A pair to try the page with: which side is better, and why."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(coerce_numbers_to_str=True)

    topic: str
    left: str
    right: str
    better: Literal["left", "right"]
    why: str = ""

    def __post_init__(self) -> None:
        if not (self.topic and self.left and self.right) or self.better not in {"left", "right"}:
            raise BadParameter(
                f"The pair '{self.topic}' of 'practice' lacks a text, or '{self.better}' is the better side of it.",
                remedy="Give it a topic and two texts, and say which is better: left or right.",
            )
