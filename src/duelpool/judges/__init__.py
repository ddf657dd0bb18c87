"""Who answers: one file a kind of judge, every simulated one in one table.

A judge is named by a specification such as `bt:sd=1` or `case-a:q=.8,error=.1,bad=.2`: a name from
`JUDGES`, its parameters, and what the assessors add (`error`, `guess`, `bad`, see `Assessors`).
"""

from collections.abc import Callable
from typing import Any

from duelpool.errors import BadParameter, UnknownName, known_names
from duelpool.files.source import STANDARD_INPUT
from duelpool.judges.base import Dice, Judge, JudgeModel, SimulatedJudge
from duelpool.judges.replayed import Graded, Replay
from duelpool.judges.simulated import (
    Assessors,
    BradleyTerry,
    CaseA,
    CaseB,
    ExactOrder,
    MatrixFile,
    PeopleModel,
    Thurstone,
)
from duelpool.judges.truth import BORDA, TRUTHS, TrueOrder, require_truth
from duelpool.judges.upsets import Upsets
from duelpool.plugins import PluginTable
from duelpool.strategies.parameters import parameters_of, read_value, split_spec

__all__ = [
    "BORDA",
    "JUDGES",
    "TRUTHS",
    "Assessors",
    "Dice",
    "Judge",
    "JudgeModel",
    "SimulatedJudge",
    "TrueOrder",
    "make_judges",
    "require_truth",
]

_OWN: dict[str, Callable[..., JudgeModel]] = {
    "case-a": CaseA,
    "case-b": CaseB,
    "upsets": Upsets,
    "order": ExactOrder,
    "matrix": MatrixFile,
    "bt": BradleyTerry,
    "thurstone": Thurstone,
    "graded": Graded,
    "replay": Replay,
}


def _problem_of(name: str, made: Any) -> str:
    """Return why what a package names can't be used as a maker of judges; an empty text where it can."""
    if not callable(made):
        return f"it names {made!r}, which can't be called."
    if taken := sorted(set(parameters_of(made)) & set(parameters_of(Assessors))):
        return f"its parameter '{taken[0]}' is one that all judges have."
    return ""


JUDGES: PluginTable[Callable[..., JudgeModel]] = PluginTable("judge", "duelpool.judges", _OWN, _problem_of)


def make_judges(spec: str) -> JudgeModel:
    """Return the judges that a specification `name:parameter=value,...` describes."""
    name, texts = split_spec(spec)
    if name not in JUDGES:
        raise UnknownName("judge", name, JUDGES)
    make = JUDGES[name]
    people = parameters_of(Assessors)
    known = parameters_of(make) | people
    for parameter in texts:
        if parameter not in known:
            problem = f"The judge '{name}' has no parameter '{parameter}'."
            raise BadParameter(problem, remedy=known_names(parameter, known))
    if "file" in known and "file" not in texts:
        raise BadParameter(f"The judge '{name}' needs a file.", remedy=f"Give it as {name}:file=...")
    if texts.get("file") == STANDARD_INPUT:
        raise BadParameter(
            f"The judge '{name}' can't read standard input: every process reads the file again.",
            remedy="Save it as a file.",
        )
    values = {key: read_value(name, key, text, known[key]) for key, text in texts.items()}
    model = make(**{key: value for key, value in values.items() if key not in people})
    assessors = Assessors(**{key: value for key, value in values.items() if key in people})
    return model if assessors == Assessors() else PeopleModel(model, assessors)
