"""What the values of settings may be: their types, ranges and checks."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import AfterValidator, Field

from duelpool.campaign.settings.welcome import STEPS, Step
from duelpool.errors import BadParameter, UnknownName
from duelpool.net.addresses import check_link
from duelpool.panels import PANELS
from duelpool.records import Kind

Judges: TypeAlias = Literal["crowd", "dedicated"]
"""Who judges: paid workers in assignments with test pairs, or assessors who judge topic by topic."""

Stage: TypeAlias = Literal["grading", "preferences"]
"""What is asked now: a grade for one item at a time, or which of two is better."""

Scale: TypeAlias = Literal["binary", "abc", "five"]

PlannedRow: TypeAlias = tuple[str, str, str, float, int]
"""A question of a budget plan: topic, item, other item or "", the chance it was drawn with, judgments wanted."""

SCALES: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"binary": (0.0, 1.0), "abc": (0.0, 1.0, 2.0), "five": (0.0, 1.0, 2.0, 3.0, 4.0)}
)
"""The grades of each scale, the worst first."""

Flips: TypeAlias = Literal["tie", "abstain"]
"""What counts when a model changes its choice with the sides: a tie, or no answer."""

TestRule: TypeAlias = Literal["share", "any-failed"]
"""Who is excluded: those below a share of all their test pairs, or every assignment with a failed one."""

Required: TypeAlias = Literal["texts", "questions"]
"""What a topic must have before people and language models judge it."""

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_CODE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_RESERVED = ("key", "lang", "preview")  # parameters with a meaning of their own


def _for_pairs(kind: Kind) -> Kind:
    if kind is Kind.GRADE:
        message = "Give 'preference' or 'definite'. For grades, start with stage 'grading'."
        raise ValueError(message)
    return kind


def _each_once(kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
    if len(set(kinds)) != len(kinds):
        message = "Name each kind of judgment once."
        raise ValueError(message)
    return kinds


def _named_once(names: tuple[Required, ...]) -> tuple[Required, ...]:
    return tuple(dict.fromkeys(names))


class PanelLabels(Mapping[str, str]):
    """A label for each panel that can be chosen; packages with panels are looked for when labels are."""

    def __getitem__(self, name: str) -> str:
        if not name:
            return "none"
        return f"{name}, closed: for old data" if PANELS[name].frozen else name

    def __iter__(self) -> Iterator[str]:
        yield ""
        yield from PANELS

    def __len__(self) -> int:
        return 1 + len(PANELS)


def _known_panel(name: str) -> str:
    if name and name not in PANELS:
        raise UnknownName("panel", name, PANELS)
    return name


def _web_address(url: str) -> str:
    try:
        check_link(url)
    except BadParameter as error:
        raise ValueError(error.remedy) from None
    return url


def _in_order(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Refuse steps in another order than people go through them, and a step that is named twice."""
    if steps != tuple(step for step in STEPS if step in steps):
        message = f"Choose among {', '.join(STEPS)}, in this order."
        raise ValueError(message)
    return steps


def _language(language: str) -> str:
    """Refuse a text that isn't the code of a language."""
    if not _LANGUAGE.fullmatch(language):
        message = "Write a language as en, de or pt-BR."
        raise ValueError(message)
    return language


def _parameter(name: str) -> str:
    """Refuse a name that a link can't carry, or that means something else there."""
    if not _PARAMETER.fullmatch(name) or name in _RESERVED:
        message = "Name a parameter of the link, such as worker or PROLIFIC_PID."
        raise ValueError(message)
    return name


def check_codes(codes: Mapping[str, str]) -> None:
    """Refuse codes, by the names of their settings, that a panel can't distinguish or doesn't accept."""
    settings: dict[str, str] = {}
    for name, code in codes.items():
        if not code:
            continue
        if not _CODE.fullmatch(code):
            raise BadParameter(
                f"'{name}' can't be '{code}', which is no completion code.",
                remedy="Use letters, digits, - and _, 64 at most.",
            )
        if code in settings:
            raise BadParameter(
                f"'{settings[code]}' and '{name}' are the same completion code, '{code}'.",
                remedy="Give each its own code, or leave one out.",
            )
        settings[code] = name


def required(allow_missing_texts: bool, allow_missing_questions: bool) -> tuple[Required, ...]:
    """Return what topics must have before people judge them: texts and questions, unless they may be missing."""
    allowed = {"texts": allow_missing_texts, "questions": allow_missing_questions}
    return tuple(name for name in get_args(Required) if not allowed[name])


Flag: TypeAlias = Annotated[bool, Field(strict=True)]
Text: TypeAlias = Annotated[str, Field(strict=True)]
Whole: TypeAlias = Annotated[int, Field(strict=True)]
FromZero: TypeAlias = Annotated[int, Field(strict=True, ge=0)]
FromOne: TypeAlias = Annotated[int, Field(strict=True, ge=1)]
Seconds: TypeAlias = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Price: TypeAlias = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Share: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
PairKind: TypeAlias = Annotated[Kind, AfterValidator(_for_pairs)]
Kinds: TypeAlias = Annotated[tuple[Kind, ...], AfterValidator(_each_once)]
Steps: TypeAlias = Annotated[tuple[Step, ...], AfterValidator(_in_order)]
Requirements: TypeAlias = Annotated[tuple[Required, ...], AfterValidator(_named_once)]
Languages: TypeAlias = tuple[Annotated[Text, AfterValidator(_language)], ...]
Parameter: TypeAlias = Annotated[Text, AfterValidator(_parameter)]
PanelName: TypeAlias = Annotated[Text, AfterValidator(_known_panel)]
WebAddress: TypeAlias = Annotated[Text, AfterValidator(_web_address)]
