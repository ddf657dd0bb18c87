"""Who answers: one file a kind of judge, every simulated one in one table.

A judge is named by a specification such as `bt:sd=1` or `case-a:q=.8,error=.1,bad=.2`: a name from
`JUDGES`, its parameters, and what the assessors add (`error`, `guess`, `bad`, see `Assessors`).
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any

from duelpool.errors import BadParameter, UnknownName
from duelpool.judges.base import Dice, Judge, JudgeModel, SimulatedJudge
from duelpool.judges.replayed import Graded, Replay
from duelpool.judges.simulated import (
    Assessors,
    BradleyTerry,
    CaseA,
    CaseB,
    MatrixFile,
    Order,
    PeopleModel,
    Thurstone,
)

__all__ = ["JUDGES", "Assessors", "Dice", "Judge", "JudgeModel", "SimulatedJudge", "make_judges"]

JUDGES: Mapping[str, Callable[..., JudgeModel]] = MappingProxyType(
    {
        "case-a": CaseA,
        "case-b": CaseB,
        "order": Order,
        "matrix": MatrixFile,
        "bt": BradleyTerry,
        "thurstone": Thurstone,
        "graded": Graded,
        "replay": Replay,
    }
)


def make_judges(spec: str) -> JudgeModel:
    """Return the judges that a specification `name:parameter=value,...` describes."""
    name, _, text = spec.partition(":")
    if name not in JUDGES:
        raise UnknownName("judge", name, JUDGES)
    model: Any = JUDGES[name]
    given = _parameters(text, spec)
    kinds = {field.name: field for field in (*fields(model), *fields(Assessors))}
    if strays := sorted(set(given) - set(kinds)):
        problem = f"The judge '{name}' has no parameter '{strays[0]}'."
        raise BadParameter(problem, remedy=f"Known: {', '.join(kinds)}.")
    for field in fields(model):
        if field.default is MISSING and field.name not in given:
            raise BadParameter(
                f"The judge '{name}' needs a {field.name}.", remedy=f"Give it as {name}:{field.name}=..."
            )
    typed: dict[str, Any] = {key: _typed(key, value, kinds[key].type) for key, value in given.items()}
    people = {key: typed.pop(key) for key in list(typed) if key in Assessors.__dataclass_fields__}
    made: JudgeModel = model(**typed)
    return PeopleModel(made, Assessors(**people)) if people else made


def _parameters(text: str, spec: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key or key in given:
            raise BadParameter(
                f"'{part}' in '{spec}' isn't one parameter with its value.",
                remedy="Write name:parameter=value,parameter=value with each parameter once.",
            )
        given[key.strip()] = value.strip()
    return given


def _typed(key: str, value: str, kind: Any) -> float | int | str:
    if kind is str:
        return value
    try:
        return int(value) if kind is int else float(value)
    except ValueError as error:
        raise BadParameter(f"'{key}' is a number, not '{value}'.") from error
