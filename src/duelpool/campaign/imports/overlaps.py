"""Judgments of a log that are in the campaign already: imported from another file, or made here.

The question that holds the slot of an imported judgment gets an id from the judgment's fingerprint, so that another
file of the same log is recognised by it. A judgment that was made here is recognised by the id of its question.
Preferences without ids are not compared: several people may have judged a pair alike.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from sqlalchemy import select

from duelpool.campaign.imports.entries import Entry, line_of
from duelpool.campaign.log.replay import read_counted_lines
from duelpool.errors import BadFile
from duelpool.files.source import Source
from duelpool.store import Reading, log, schema

_IDS_AT_ONCE = 900
_RANGES_TO_NAME = 5


def question_id(campaign: str, entry: Entry) -> str:
    """Return the id of the question that holds an imported judgment's slot; "" for any id."""
    if not entry.fingerprint:
        return ""
    return sha256(f"{campaign} {entry.fingerprint}".encode()).hexdigest()[:16]


def times_in_campaign(tx: Reading, entries: Iterable[Entry]) -> dict[int, float]:
    """Return the rows whose judgments are in the campaign already, with the time since when."""
    rows: dict[tuple[str, str], list[int]] = {}  # a question that was undone has several answers
    for entry in entries:
        if entry.fingerprint:
            for question in (question_id(tx.campaign, entry), entry.question):
                rows.setdefault((entry.topic, question), []).append(entry.row)
    wanted = sorted({question for _, question in rows})
    columns = schema.question.c
    times: dict[int, float] = {}
    for start in range(0, len(wanted), _IDS_AT_ONCE):
        query = select(columns.topic, columns.id, columns.asked).where(
            columns.campaign == tx.campaign, columns.id.in_(wanted[start : start + _IDS_AT_ONCE])
        )
        for topic, question, asked in tx.connection.execute(query):
            times |= dict.fromkeys(rows.get((topic, question), ()), asked)
    return times


def refuse_overlap(tx: Reading, source: Source, entries: Sequence[Entry], times: Mapping[int, float]) -> None:
    """Refuse a file with judgments that are in the campaign already; name the first, and the rows that are new."""
    old = [entry for entry in entries if entry.row in times]
    if not old:
        return
    first = old[0]
    counted = "1 judgment of the file is" if len(old) == 1 else f"{len(old)} judgments of the file are"
    raise BadFile.at(
        source.name,
        line_of(source, first),
        f"{counted} in the campaign already. The first is row {first.row}, of topic '{first.topic}': it was imported "
        f"before, or made here, at {log.iso_time(times[first.row])}.",
        _remedy(_new_rows(tx, entries, old)),
    )


def counting_again(entries: Iterable[Entry], times: Collection[int]) -> list[Entry]:
    """Return the entries so that those that are in the campaign already count once more."""
    return [replace(entry, fingerprint="") if entry.row in times else entry for entry in entries]


def _new_rows(tx: Reading, entries: Iterable[Entry], old: Iterable[Entry]) -> list[tuple[int, int]]:
    """Return the ranges of rows that follow the last known judgment of their topic, and the phases that it closed."""
    last: dict[str, int] = {}
    for entry in old:
        last[entry.topic] = max(entry.row, last.get(entry.topic, 0))
    closed = {topic: read_counted_lines(tx, topic).closed for topic in last}
    new: list[Entry] = []
    begun: set[str] = set()
    for entry in sorted(entries, key=lambda entry: entry.row):
        topic = entry.topic
        if entry.row <= last.get(topic, 0):
            continue
        known = entry.event == log.PHASE_CLOSED and entry.phase in closed.get(topic, ())
        if topic in begun or not known:
            begun.add(topic)
            new.append(entry)
    ranges: list[tuple[int, int]] = []
    for entry in new:
        if ranges and ranges[-1][1] == entry.row - 1:
            ranges[-1] = (ranges[-1][0], entry.row)
        else:
            ranges.append((entry.row, entry.row))
    return ranges


def _remedy(new: Sequence[tuple[int, int]]) -> str:
    if not new:
        return "Nothing to do. To count them once more, give --again."
    named = ",".join(f"{first}-{last}" for first, last in new)
    only = f"--rows {named}" if len(new) <= _RANGES_TO_NAME else "--rows"
    return (
        f"Import only what is new ({only}), or the whole log into a new campaign. "
        "To count them once more, give --again."
    )
