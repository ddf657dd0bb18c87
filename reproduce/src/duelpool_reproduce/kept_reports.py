"""Reports that ended, kept in a folder: an interrupted run of all experiments goes on, and a page is made of them.

A report's file holds its tables and verdicts as they were printed, its drawing, and what decided it: the experiment,
its trials, its seed, the data that it read and our version.
"""

import gzip
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from duelpool import __version__
from duelpool.errors import BadFile
from duelpool.files import write_lines
from duelpool_reproduce.base import Experiment, Report, Section
from duelpool_reproduce.verdicts import Measured, compared_rows

FORMAT = "duelpool-reproduce report 1"
_PIECE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class KeptReport:
    """A report as it was printed."""

    tables: tuple[Section, ...]
    all_figures: Section
    remarks: tuple[str, ...]
    rows: tuple[Measured, ...] | None  # None: it has none apart from the table of all figures
    values: Mapping[str, Any]
    svg: str

    def compared(self) -> tuple[Measured, ...] | None:
        """Return every figure that has a verdict."""
        return self.rows

    def sections(self) -> Sequence[Section]:
        """Return its tables for a person."""
        return self.tables

    def figures(self) -> Section:
        """Return every figure in one table."""
        return self.all_figures

    def notes(self) -> Sequence[str]:
        """Return what to know when reading the figures."""
        return self.remarks

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return dict(self.values)


@dataclass(frozen=True, slots=True)
class Kept:
    """A report that was kept, with when it ended and how long it took."""

    report: KeptReport
    trials: int
    seed: int
    quick: bool
    seconds: float
    ended: str  # a date


def decided_by(
    experiment: Experiment, trials: int, seed: int, data: Path | None, *, quick: bool
) -> dict[str, Any]:
    """Return all that decides a report, as plain values; data count by their content."""
    return {
        "duelpool": __version__,
        "experiment": experiment.name,
        "trials": trials,
        "seed": seed,
        "quick": quick,
        "data": {} if data is None else {file: _digest(data / file) for file in experiment.reads},
    }


def _digest(path: Path) -> str:
    """Return a digest of a file, or of every file of a folder; empty where there is none."""
    digest = blake2b(digest_size=8)
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    if not path.exists():
        return ""
    for file in files:
        digest.update(str(file.relative_to(path)).encode())
        with file.open("rb") as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
    return digest.hexdigest()


def keep_report(folder: Path, decided: Mapping[str, Any], report: Report, seconds: float, ended: str) -> None:
    """Keep a report that has just ended."""
    from duelpool.plots import save_figure

    folder.mkdir(parents=True, exist_ok=True)
    drawing = folder / f".{decided['experiment']}-{os.getpid()}.svg"  # others may write to the folder, too
    save_figure(report.drawing(), drawing)
    stored = {
        "format": FORMAT,
        "decided_by": dict(decided),
        "seconds": round(seconds, 2),
        "ended": ended,
        "tables": [asdict(section) for section in report.sections()],
        "figures": asdict(report.figures()),
        "notes": list(report.notes()),
        "rows": None if (rows := compared_rows(report)) is None else [asdict(row) for row in rows],
        "values": report.as_json(),
        "svg": drawing.read_text(encoding="utf-8"),
    }
    drawing.unlink()
    write_lines(_path(folder, decided), [json.dumps(stored)])


def kept_report(folder: Path, decided: Mapping[str, Any]) -> Kept | None:
    """Return the report that was kept for exactly this, if there is one."""
    path = _path(folder, decided)
    if not path.exists():
        return None
    stored = _read(path)
    return _kept(stored) if stored["decided_by"] == decided else None


def newest_report(folder: Path, experiment: Experiment) -> Kept | None:
    """Return an experiment's report for a page: a full one where there is one, of most trials, the last to end."""
    stored = [_read(path) for path in sorted(folder.glob(f"{experiment.name}-*.report.json.gz"))]
    found = [_kept(each) for each in stored if each["decided_by"]["experiment"] == experiment.name]
    return max(found, key=lambda each: (not each.quick, each.trials, each.ended), default=None)


def _path(folder: Path, decided: Mapping[str, Any]) -> Path:
    digest = blake2b(json.dumps(decided, sort_keys=True).encode(), digest_size=8).hexdigest()
    return folder / f"{decided['experiment']}-{digest}.report.json.gz"


def _read(path: Path) -> dict[str, Any]:
    remedy = "Remove it and run again: the experiment is then run again."
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            stored: dict[str, Any] = json.load(stream)
        _kept(stored)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"Its report can't be read: it is damaged, or of another version ({type(error).__name__})."
        raise BadFile.at(str(path), None, problem, remedy) from error
    return stored


def _kept(stored: Mapping[str, Any]) -> Kept:
    if stored["format"] != FORMAT:
        raise ValueError("not a kept report")
    decided = stored["decided_by"]
    rows = stored["rows"]
    report = KeptReport(
        tuple(_section(each) for each in stored["tables"]),
        _section(stored["figures"]),
        tuple(stored["notes"]),
        None if rows is None else tuple(_measured(each) for each in rows),
        stored["values"],
        stored["svg"],
    )
    return Kept(
        report,
        decided["trials"],
        decided["seed"],
        decided["quick"],
        float(stored["seconds"]),
        stored["ended"],
    )


def _section(stored: Mapping[str, Any]) -> Section:
    return Section(stored["title"], tuple(stored["columns"]), tuple(tuple(row) for row in stored["rows"]))


def _measured(stored: Mapping[str, Any]) -> Measured:
    ends = {name: _stated(stored[name]) for name in ("paper", "known")}
    return Measured(**{**stored, **ends})


def _stated(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
