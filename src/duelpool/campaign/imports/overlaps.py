"""Judgments of a log that are in the campaign already: imported from another file, or made here.

The question that holds the slot of an imported judgment gets an id from the judgment's fingerprint, so that another
file of the same log is recognised by it. A judgment that was made here is recognised by the id of its question.
Preferences without ids are not compared: several people may have judged a pair alike.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice

from duelpool.campaign.imports.entries import line_of
from duelpool.campaign.imports.reading import FileRows
from duelpool.campaign.imports.rows import AT, Row
from duelpool.campaign.log.replay import read_counted_lines
from duelpool.errors import BadFile
from duelpool.store import Reading, imports, log

_ROWS_AT_ONCE = 1000
_RANGES_TO_NAME = 5
_ROW, _LINE, _QUESTION, _FINGERPRINT, _EVENT, _PHASE = (
    AT[name] for name in ("row", "line", "question", "fingerprint", "event", "phase")
)


def question_id(campaign: str, fingerprint: str) -> str:
    """Return the id of the question that holds an imported judgment's slot; "" for any id."""
    return sha256(f"{campaign} {fingerprint}".encode()).hexdigest()[:16] if fingerprint else ""


def times_in_campaign(tx: Reading, topic: str, rows: Iterable[Row]) -> dict[int, float]:
    """Return the rows of a topic whose judgments are in the campaign already, with the time since when."""
    times: dict[int, float] = {}
    rest = (row for row in rows if row[_FINGERPRINT])
    while some := list(islice(rest, _ROWS_AT_ONCE)):
        ids: dict[str, list[int]] = {}  # a question that was undone has several answers
        for row in some:
            for question in (question_id(tx.campaign, row[_FINGERPRINT]), row[_QUESTION]):
                ids.setdefault(question, []).append(row[_ROW])
        for question, asked in imports.find_questions(tx, topic, ids).items():
            times |= dict.fromkeys(ids[question], asked)
    return times


def refuse_overlap(tx: Reading, file: FileRows, written: Mapping[str, int]) -> None:
    """Refuse a file with judgments that are in the campaign already; name the first, and the rows that are new.

    The rows that an interrupted import of this very file has `written` are no overlap.
    """
    old: dict[str, dict[int, float]] = {}
    for topic, own in file.topics.items():
        if own.known_elsewhere and (times := times_in_campaign(tx, topic, own.after(written.get(topic, 0)))):
            old[topic] = times
    if not old:
        return
    topic, times = next(iter(old.items()))
    first = next(row for row in file.topics[topic].after(written.get(topic, 0)) if row[_ROW] in times)
    count = sum(map(len, old.values()))
    counted = "1 judgment of the file is" if count == 1 else f"{count} judgments of the file are"
    raise BadFile.at(
        file.source.name,
        line_of(file.source, first[_LINE]),
        f"{counted} in the campaign already. The first is row {first[_ROW]}, of topic '{topic}': it was imported "
        f"before, or made here, at {log.iso_time(times[first[_ROW]])}.",
        _remedy(_ranges(sorted(_new_rows(tx, file, written, old)))),
    )


def _new_rows(
    tx: Reading, file: FileRows, written: Mapping[str, int], old: Mapping[str, Collection[int]]
) -> Iterator[int]:
    """Yield the rows that follow the last known judgment of their topic, and the phases that it closed."""
    for topic, own in file.topics.items():
        last = max(old.get(topic, (0,)))
        closed = read_counted_lines(tx, topic).closed if last else ()
        begun = False
        later = (row for row in own.after(written.get(topic, 0)) if row[_ROW] > last)
        for number, event, phase in sorted((row[_ROW], row[_EVENT], row[_PHASE] or "") for row in later):
            begun = begun or event != log.PHASE_CLOSED or phase not in closed
            if begun:
                yield number


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
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
