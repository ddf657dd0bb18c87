"""An experiment's simulations, kept in a folder as they end, so that an interrupted run goes on where it stopped.

A cell is one simulation: a strategy, its judges, a number of trials and a seed. Its file gets its name when it is
complete, and holds a fingerprint of all that decides its result; a cell with another fingerprint is another file.
"""

import gzip
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from duelpool import __version__
from duelpool.errors import BadFile, BadParameter, DuelpoolError
from duelpool.files import write_lines
from duelpool.judges import JudgeModel
from duelpool.records import Certainty
from duelpool.simulation import Progress, SimulationResult, Trial, simulate
from duelpool.strategies import STRATEGIES, Strategy
from duelpool.strategies.parameters import split_spec

Kept = TypeVar("Kept")


class KeptMaker(Protocol):
    """Makes a strategy for each trial; a dataclass, whose fields say all that decides it."""

    @property
    def strategy(self) -> str:
        """The name of the strategy that it makes."""
        ...

    def __call__(self, items: tuple[str, ...], *, seed: int, topic: str, cap: int | None) -> Strategy:
        """Return the strategy of one trial."""
        ...


Chosen: TypeAlias = str | KeptMaker

FORMAT = "duelpool-reproduce cell 1"

_DECIDED_BY = ("items", "budget", "cap", "trials", "seed", "batch", "outstanding", "checkpoints", "truth")
_DAMAGE = (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError, DuelpoolError)


@dataclass(frozen=True, slots=True)
class Cells:
    """Runs simulations; with a folder, keeps each one there and takes it from there when it is asked for again."""

    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise BadParameter(
                f"{self.folder} is a file, and results are kept in a folder.",
                remedy="Name a folder; it is made where there is none.",
            )

    def simulate(
        self,
        strategy: Chosen,
        judges: str | JudgeModel,
        *,
        progress: Progress | None = None,
        **settings: Any,
    ) -> SimulationResult:
        """Return the result of `simulate` with these settings, from the folder where it is there."""
        if self.folder is None:
            return simulate(strategy, judges, progress=progress, **settings)
        wanted = fingerprint(strategy, judges, settings)
        called = strategy if isinstance(strategy, str) else strategy.strategy
        name = file_name(settings.get("case", ""), called, wanted)
        if (result := self.stored(name, wanted, _result_of)) is not None:
            if progress is not None:
                progress(result.trials)
            return result
        result = simulate(strategy, judges, progress=progress, **settings)
        self.keep(name, wanted, asdict(result))
        return result

    def stored(
        self, name: str, wanted: Mapping[str, Any], read: Callable[[dict[str, Any]], Kept]
    ) -> Kept | None:
        """Return the result that a file of the folder holds, as `read` makes it; None where there is none."""
        if self.folder is None or not (self.folder / name).exists():
            return None
        return _read(self.folder / name, wanted, read)

    def keep(self, name: str, wanted: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Write a result and the fingerprint of what decided it into the folder, if there is one."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            stored = {"format": FORMAT, "fingerprint": wanted, "result": result}
            write_lines(self.folder / name, [json.dumps(stored, allow_nan=False)])


NOT_KEPT = Cells()
"""Simulations that are kept nowhere."""


def fingerprint(strategy: Chosen, judges: str | JudgeModel, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that decides a simulation's result, as plain values.

    A file of real judgments counts by its content, wherever it lies.
    """
    if settings.get("prior") is not None:
        raise BadParameter("A simulation with a prior can't be kept.", remedy="Run it without --resume.")
    name, _ = split_spec(strategy if isinstance(strategy, str) else strategy.strategy)
    known = STRATEGIES.get(name)
    decided = {key: settings.get(key, "default") for key in _DECIDED_BY}
    decided["checkpoints"] = list(settings.get("checkpoints", ()))
    return {
        "duelpool": __version__,
        "strategy": strategy if isinstance(strategy, str) else described(strategy),
        "version": None if known is None else known.version,
        "judges": described(judges),
        "case": settings.get("case", ""),
        **decided,
    }


def described(judges: str | JudgeModel | KeptMaker) -> str:
    """Return what judges are, or what makes a strategy; a file of real judgments by its content."""
    if isinstance(judges, str):
        name, parameters = split_spec(judges)
        if "file" in parameters:
            parameters["file"] = _content(Path(parameters["file"]))
        return f"{name}:{','.join(f'{key}={value}' for key, value in sorted(parameters.items()))}"
    return _fields_of(judges)


def _fields_of(record: Any) -> str:
    if not is_dataclass(record):
        raise BadParameter(
            f"Judges of the kind {type(record).__name__} don't say what they are.",
            remedy="Name them by a specification, or make them a dataclass.",
        )
    parts = (f"{each.name}={_value(each.name, getattr(record, each.name))}" for each in fields(record))
    return f"{type(record).__name__}({', '.join(parts)})"


def _value(name: str, value: Any) -> str:
    if name == "file":
        return _content(Path(value))
    if name == "files":
        return f"({', '.join(_content(Path(each)) for each in value)})"
    if is_dataclass(value):
        return _fields_of(value)
    return repr(sorted(value)) if isinstance(value, frozenset) else repr(value)


def _content(file: Path) -> str:
    """Return a file's name and a digest of what it holds."""
    try:
        digest = blake2b(file.read_bytes(), digest_size=8).hexdigest()
    except OSError as error:
        raise BadFile.at(str(file), None, f"It can't be read: {error}.") from error
    return f"{file.name}#{digest}"


def file_name(case: str, strategy: str, wanted: Mapping[str, Any]) -> str:
    """Return the name of a cell's file: what it is in words, and a digest of its fingerprint."""
    digest = blake2b(json.dumps(wanted, sort_keys=True).encode(), digest_size=8).hexdigest()
    words = re.sub(r"[^a-z0-9.=]+", "-", f"{case} {strategy}".lower()).strip("-")[:60]
    return f"{words}-{digest}.json.gz"


def _read(path: Path, wanted: Mapping[str, Any], read: Callable[[dict[str, Any]], Kept]) -> Kept:
    """Return a stored result; refuse a file that is damaged or holds something else."""
    remedy = "Remove it and run again: it is then simulated again."
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            stored = json.load(stream)
        if stored["format"] != FORMAT:
            raise BadFile.at(str(path), None, "It isn't a simulation that an experiment kept.", remedy)
        if stored["fingerprint"] != wanted:
            raise BadFile.at(str(path), None, "It holds another simulation than its name says.", remedy)
        return read(stored["result"])
    except BadFile:
        raise
    except _DAMAGE as error:
        problem = f"It is damaged, and its simulation can't be read ({type(error).__name__})."
        raise BadFile.at(str(path), None, problem, remedy) from error


def _result_of(stored: dict[str, Any]) -> SimulationResult:
    outcomes = tuple(_trial_of(each) for each in stored["outcomes"])
    if not outcomes:
        raise ValueError("a simulation without trials")
    return SimulationResult(**stored | {"outcomes": outcomes, "checkpoints": tuple(stored["checkpoints"])})


def _trial_of(stored: dict[str, Any]) -> Trial:
    certainty = stored["certainty"]
    return Trial(
        **stored
        | {
            "ranks": tuple(stored["ranks"]),
            "curve": tuple(stored["curve"]),
            "certainty": None if certainty is None else Certainty(**certainty),
        }
    )
