"""A release for others, without what could identify a person: new pseudonyms, no clock times, no notes, and a check.

What is written is read again and searched, before it gets its name: for the ids that people have at panels, which must
not be there, and for texts that look like addresses or ids of people, which a person has to look at.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sqlalchemy import select

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.exports.bundle import as_of_now, release_folder
from duelpool.campaign.exports.codebook import PREFERENCES, codebook, croissant, data_card
from duelpool.campaign.exports.files import (
    CSV_COLUMNS,
    RowCount,
    csv_line,
    ignore,
    judgment_cells,
    write_prefs,
)
from duelpool.errors import DuelpoolError
from duelpool.files import write_lines, write_topics
from duelpool.files.parquet import write_parquet
from duelpool.seeds import rng_for
from duelpool.store import Reading, holdings, schema

KEPT = tuple("day" if name == "time" else name for name in CSV_COLUMNS if name != "note")
"""The columns of a release: no notes, and days in place of times."""

FEW = 5
"""An assessor with fewer judgments than this is counted in the report: they are easier to recognise."""

LOOKS_LIKE: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "an e-mail address": re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"),
        "an address of a machine": re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"),
        "a Prolific id": re.compile(r"(?<![0-9a-fA-F])[0-9a-f]{24}(?![0-9a-fA-F])"),
        "a Mechanical Turk id": re.compile(r"(?<!\w)A[0-9A-Z]{12,14}(?!\w)"),
        "a phone number": re.compile(r"(?<!\w)\+\d{1,3}[ -]?(?:\d[ -]?){7,12}(?!\w)"),
    }
)
_SHOWN = 20


class IdentifyingText(DuelpoolError):
    """A release would hold what could identify a person; nothing was written."""


@dataclass(frozen=True, slots=True)
class AnonymousRelease:
    """What was written: files, judgments, assessors, those with few judgments, and texts that were accepted."""

    files: tuple[str, ...]
    judgments: int
    assessors: int
    with_few: int
    accepted: tuple[str, ...] = ()


def write_anonymous(campaign: Campaign, path: str, *, accept: bool = False) -> AnonymousRelease:
    """Write a release into a new folder or .zip file; refuse it where a text could identify a person.

    With `accept`, texts that only look like addresses or ids are listed and kept; ids of this store's people never are.
    """
    with release_folder(path) as place:
        return campaign.read(lambda tx: _write(as_of_now(campaign, tx), tx, place, path, accept))


def _write(campaign: Campaign, tx: Reading, place: Path, path: str, accept: bool) -> AnonymousRelease:
    rows = [list(row) for row in judgment_cells(tx, campaign, RowCount(), ignore)]
    who, when = CSV_COLUMNS.index("assessor"), CSV_COLUMNS.index("time")
    seconds, note = CSV_COLUMNS.index("seconds"), CSV_COLUMNS.index("note")
    names = new_names({str(row[who]) for row in rows}, campaign.settings.seed)
    first = min((str(row[when])[:10] for row in rows), default="")
    for row in rows:
        row[who] = names[str(row[who])]
        row[when] = _days(first, str(row[when])[:10])
        row[seconds] = None if row[seconds] is None else round(float(str(row[seconds])))
        del row[note]
    write_parquet(
        place / "judgments.parquet", KEPT, rows, numbers=("seq", "day", "grade", "seconds", "confidence")
    )
    write_lines(place / "judgments.csv", [csv_line(KEPT), *(csv_line(tuple(row)) for row in rows)])
    write_prefs(campaign, place / "preferences.txt")
    with (place / "preferences.txt").open(encoding="utf-8") as listed:
        write_parquet(place / "preferences.parquet", tuple(PREFERENCES), (line.split() for line in listed))
    write_topics(place / "topics.jsonl", holdings.topics(tx).values())
    if campaign.settings.guidelines:
        write_lines(place / "guidelines.md", [campaign.settings.guidelines])
    accepted = _searched(tx, place, names, accept)
    counts = Counter(str(row[who]) for row in rows)
    few = sum(count < FEW for count in counts.values())
    write_lines(place / "CODEBOOK.md", _codebook(len(rows), len(names), few, accepted))
    tables = {"judgments.parquet": KEPT, "preferences.parquet": tuple(PREFERENCES)}
    about = f"Preferences from the campaign {campaign.name}, without what identifies people; see CODEBOOK.md."
    write_lines(place / "README.md", data_card(campaign.name, about, tables))
    described = croissant(campaign.name, about, place, tables, published="", version="1.0.0")
    write_lines(place / "croissant.json", [described])
    files = tuple(str(Path(path) / each.name) for each in sorted(place.iterdir()))
    return AnonymousRelease(files, len(rows), len(names), few, accepted)


def new_names(assessors: set[str], seed: int) -> dict[str, str]:
    """Return a new pseudonym for each assessor, in an order that tells nothing of the old ones."""
    listed = sorted(assessors)
    width = max(3, len(str(len(listed))))
    order = rng_for(seed, "anonymous release").permutation(len(listed)).tolist()
    return {name: f"P{place + 1:0{width}}" for name, place in zip(listed, order, strict=True)}


def _days(first: str, day: str) -> int:
    from datetime import date

    return (date.fromisoformat(day) - date.fromisoformat(first)).days


# ---- the check


def _searched(tx: Reading, place: Path, names: Mapping[str, str], accept: bool) -> tuple[str, ...]:
    """Return texts that may identify a person; refuse ids that people have at panels, and what isn't accepted."""
    columns = schema.identity.c
    people = (
        tx.connection.execute(select(columns.external).where(columns.campaign == tx.campaign)).scalars().all()
    )
    earlier = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(names)) or "(?!)")
    looks_like = {**LOOKS_LIKE, "the pseudonym of an assessor": earlier}
    certain, doubtful = [], []
    for file, where, text in _texts(place):
        certain += [f"{file}, {where}: an id of a person of this store" for each in people if each in text]
        doubtful += [
            f"{file}, {where}: '{match[0][:60]}' looks like {what}"
            for what, pattern in looks_like.items()
            for match in pattern.finditer(text)
        ]
    if certain:
        raise IdentifyingText(
            f"The release would name people ({'; '.join(certain[:_SHOWN])}).",
            remedy="Rename topics or items that hold their ids, then write it again. Nothing was written.",
        )
    listed = tuple(dict.fromkeys(doubtful))
    if listed and not accept:
        more = f"; and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
        raise IdentifyingText(
            f"{len(listed):,} texts may identify a person: {'; '.join(listed[:_SHOWN])}{more}.",
            remedy="Look at them. If none does, write it again with --accept. Nothing was written.",
        )
    return listed


def _texts(place: Path) -> Iterator[tuple[str, str, str]]:
    """Yield every text of the release with its place; the Parquet tables hold what the text files do."""
    for path in sorted(place.iterdir()):
        if path.suffix == ".parquet":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            text = " ".join(_strings(json.loads(line))) if path.suffix == ".jsonl" else line
            yield path.name, f"line {number}", text


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def _codebook(judgments: int, assessors: int, few: int, accepted: tuple[str, ...]) -> list[str]:
    lines = [
        "# Codebook",
        "",
        f"`judgments.csv` and `judgments.parquet`: {judgments:,} judgments of {assessors:,} assessors, one a row.",
        "",
        *codebook(KEPT),
        "",
        "## What was changed",
        "",
        "- Assessors have new pseudonyms in a random order; who they are is in no file.",
        "- Times are days since the first judgment; seconds are rounded to whole ones.",
        "- Notes of assessors, ids of questions, assignments, panels and payments are left out.",
        "",
        "## What was checked",
        "",
        "- No file holds an id that a person of the store has at a panel.",
        f"- All texts were searched for {', '.join(LOOKS_LIKE)}, and earlier pseudonyms: "
        f"{f'{len(accepted):,} were looked at and kept' if accepted else 'none was found'}.",
        f"- Assessors with fewer than {FEW} judgments, who are easier to recognise: {few:,}.",
        "",
        "Whether an item's or a topic's text itself is about a person, this check can't tell.",
    ]
    return lines + ([""] + [f"- {each}" for each in accepted] if accepted else [])
