"""A campaign as files: preferences, qrels, levels, the whole log, a spreadsheet.

Every writer streams, and holds only a strategy and sets of integers in memory. A file appears under its name only
when it is complete. Files hold pseudonyms; identities never leave the store.
"""

import csv
import dataclasses
import io
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sqlalchemy import Row

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.exports.forms import FORMS
from duelpool.campaign.log import many_topics
from duelpool.campaign.log.json_lines import line_to_json
from duelpool.campaign.log.replay import CountedLines, read_counted_topics
from duelpool.campaign.views import summaries
from duelpool.campaign.views.reading import Values, chosen_levels, topics_of, unscored_topics
from duelpool.errors import BadParameter, UnknownName, known_names
from duelpool.files import Notice, write_lines
from duelpool.files.columns import number_text, refuse_unwritable
from duelpool.files.duplicates import duplicates_path
from duelpool.files.notices import Tally
from duelpool.files.parquet import is_parquet_name, write_parquet
from duelpool.files.spreadsheets import harmless
from duelpool.records import EFFECTS, Kind, Levels, Outcome
from duelpool.store import Reading, holdings, log, schema

Target: TypeAlias = str | os.PathLike[str]

Progress: TypeAlias = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Written:
    """What an export wrote: files, number of rows, and notices about what was left out."""

    files: tuple[str, ...]
    rows: int
    notices: tuple[Notice, ...] = ()


@dataclass(slots=True)
class RowCount:
    """How many rows were written."""

    rows: int = 0


def ignore(_: int) -> None:
    """Ignore progress."""


# ---- preferences


def write_prefs(campaign: Campaign, path: Target, progress: Progress = ignore) -> Written:
    """Write the preferences that count as `topic left right winner`, '=' for a tie, by canonical ids.

    Where items have duplicates, a second file lists them: `topic canonical duplicate`.
    """
    count, tally = RowCount(), Tally()

    def work(tx: Reading) -> tuple[str, ...]:
        lines = _pref_lines(tx, campaign, os.fspath(path), count, tally, progress)
        if is_parquet_name(path):
            write_parquet(path, ("topic", "left", "right", "winner"), (line.split(" ") for line in lines))
        else:
            write_lines(path, lines)
        duplicates = duplicates_path(path)
        if duplicates is None or not (listed := list(_duplicate_lines(tx, campaign))):
            return (os.fspath(path),)
        write_lines(duplicates, listed)
        return (os.fspath(path), os.fspath(duplicates))

    files = campaign.read(work, once=True)
    return Written(files, count.rows, tally.notices)


def _pref_lines(  # noqa: PLR0917
    tx: Reading, campaign: Campaign, file: str, count: RowCount, tally: Tally, progress: Progress
) -> Iterator[str]:
    columns = schema.log.c
    wanted = (columns.topic, columns.seq, columns.left_item, columns.right_item, columns.outcome)
    target_pairs = (
        columns.event == log.JUDGMENT,
        columns.test_pair.is_(None),
        columns.repeated.is_distinct_from(1),
    )
    for topic, counts, rows in _counted_rows(tx, *wanted, where=target_pairs):
        written: set[str] = set()
        refuse_unwritable(file, "topic", [topic])
        for row in rows:
            if not counts.keeps(row.seq) or row.right_item is None:
                continue
            for item in (row.left_item, row.right_item):
                if item not in written:
                    refuse_unwritable(file, "item", [item])
                    written.add(item)
            effect = EFFECTS[Outcome(row.outcome)]
            if effect.left == effect.right == 0:
                if effect.usable:
                    tally.add(f"judgments '{row.outcome}' left out: they prefer no item")
                continue
            winner = "=" if effect.left == effect.right else _winner(row, effect.left > effect.right)
            count.rows += 1
            yield f"{topic} {row.left_item} {row.right_item} {winner}"
        progress(1)


def _winner(row: Row[Any], left: bool) -> str:
    return str(row.left_item if left else row.right_item)


def _duplicate_lines(tx: Reading, campaign: Campaign) -> Iterator[str]:
    for topic in topics_of(tx):
        for row in holdings.items(tx, topic):
            if row.twin_of is not None:
                yield f"{topic} {row.twin_of} {row.id}"


def _counted_rows(
    tx: Reading, *wanted: Any, where: Sequence[Any] = ()
) -> Iterator[tuple[str, CountedLines, Iterable[Row[Any]]]]:
    """Yield each topic, which of its lines count, and rows of its log."""
    topics = topics_of(tx)
    counts: dict[str, CountedLines] = {}
    for at, (topic, rows) in enumerate(many_topics.rows_by_topic(tx, topics, *wanted, where=where)):
        if at % many_topics.TOPICS_AT_ONCE == 0:
            counts = read_counted_topics(tx, topics[at : at + many_topics.TOPICS_AT_ONCE])
        yield topic, counts[topic], rows


# ---- results


def write_qrels(
    campaign: Campaign,
    path: Target,
    *,
    values: Values = "auto",
    k: int | None = None,
    above: Mapping[str, Mapping[str, float]] | Literal["pool"] | None = None,
    progress: Progress = ignore,
) -> Written:
    """Write qrels from the levels; a duplicate gets the value of its canonical item.

    The best level has the highest value, the last one that is kept has 1. With `above`, these items rank above the
    given grades (those of the pool, or of qrels), and all other items keep their grade.
    """
    if values not in (known := ("auto", "best", "top", "levels")):
        raise BadParameter(f"Qrels can't hold '{values}'.", remedy=known_names(values, known))
    if k is not None and k < 1:
        raise BadParameter(f"The top k holds one item or more, not {k}.")
    count, tally = RowCount(), Tally()

    def lines(tx: Reading) -> Iterator[str]:
        return _qrels_lines(
            tx, campaign, os.fspath(path), count, tally, values=values, k=k, above=above, progress=progress
        )

    def work(tx: Reading) -> None:
        if is_parquet_name(path):
            rows = (
                (topic, docno, grade) for topic, _, docno, grade in (line.split(" ") for line in lines(tx))
            )
            write_parquet(path, ("topic", "docno", "grade"), rows, numbers=("grade",))
        else:
            write_lines(path, lines(tx))

    campaign.read(work, once=True)
    return Written((os.fspath(path),), count.rows, tally.notices)


def _qrels_lines(
    tx: Reading,
    campaign: Campaign,
    file: str,
    count: RowCount,
    tally: Tally,
    *,
    values: Values,
    k: int | None,
    above: Mapping[str, Mapping[str, float]] | Literal["pool"] | None,
    progress: Progress,
) -> Iterator[str]:
    refuse_unscored(tx, campaign)
    known = set()
    for topic, found, _ in summaries.read(tx, campaign):
        known.add(topic)
        progress(1)
        if not found.judged:
            tally.add(
                "topics left out: nothing tells their items apart yet"
                if found.judgments
                else "topics left out: they have no judgments"
            )
            continue
        if not found.done:
            tally.add("topics that aren't done yet")
        rows = holdings.items(tx, topic)
        kept = chosen_levels(found.levels, campaign.live.new_strategy(tx, topic), values, k)
        grades = _with_duplicates(Levels(kept).as_grades() if kept else {}, rows)
        if above is not None:
            old = _grades_of_pool(rows) if above == "pool" else above.get(topic, {})
            grades = _raised(grades, old)
        refuse_unwritable(file, "id", [topic, *grades])
        for item, grade in grades.items():
            count.rows += 1
            yield f"{topic} 0 {item} {number_text(grade)}"
    for topic in above if above is not None and above != "pool" else ():
        if topic not in known:
            tally.add("topics of the grades left out: the campaign doesn't have them")


def refuse_unscored(tx: Reading, campaign: Campaign) -> None:
    """Refuse results of topics whose judgments can't be scored: all their items would be best."""
    topics = unscored_topics(tx, campaign)
    if not topics:
        return
    named = ", ".join(f"'{topic}'" for topic in topics[:3])
    more = f" and {len(topics) - 3:,} more" if len(topics) > 3 else ""
    raise BadParameter(
        f"All items of {len(topics):,} topics would be best ({named}{more}): their judgments name no phase of the "
        f"strategy {campaign.settings.strategy}, which scores phase by phase.",
        remedy="Import them with --phases blocks into a new campaign, or export them with --as prefs, jsonl or csv.",
    )


def _with_duplicates(grades: Mapping[str, float], rows: list[holdings.ItemRow]) -> dict[str, float]:
    with_duplicates = dict(grades)
    for row in rows:
        if row.twin_of is not None and row.twin_of in grades:
            with_duplicates[row.id] = grades[row.twin_of]
    return with_duplicates


def _grades_of_pool(rows: list[holdings.ItemRow]) -> dict[str, float]:
    return {row.id: row.grade for row in rows if row.grade is not None}


def _raised(levels: Mapping[str, float], grades: Mapping[str, float]) -> dict[str, float]:
    """Return all the grades, with the items of the levels above the highest of them."""
    highest = max(grades.values(), default=0.0)
    return {**grades, **{item: highest + value for item, value in levels.items()}}


def levels_of(campaign: Campaign, progress: Progress = ignore) -> dict[str, Any]:
    """Return the levels of every topic now, for a program."""
    return campaign.read(lambda tx: levels_in(tx, campaign, progress))


def levels_in(tx: Reading, campaign: Campaign, progress: Progress) -> dict[str, Any]:
    """Return the levels of every topic, inside a transaction; none while nothing tells its items apart."""
    refuse_unscored(tx, campaign)
    topics: dict[str, Any] = {}
    for topic, known, _ in summaries.read(tx, campaign):
        sure = known.certainty
        topics[topic] = {
            "levels": [list(level) for level in known.levels],
            "confidence": None if sure is None else sure.best,
            "certainty": None if sure is None else dataclasses.asdict(sure),
            "judgments": known.judgments,
            "done": known.done,
        }
        progress(1)
    return {"campaign": campaign.name, "strategy": campaign.settings.strategy, "topics": topics}


def write_levels(campaign: Campaign, path: Target, progress: Progress = ignore) -> Written:
    """Write the levels of every topic as JSON."""
    levels = levels_of(campaign, progress)
    write_lines(path, [json.dumps(levels, indent=1, ensure_ascii=False)])
    return Written((os.fspath(path),), len(levels["topics"]))


# ---- the whole log


def write_log(campaign: Campaign, path: Target, progress: Progress = ignore) -> Written:
    """Write every line of the log as JSON lines: judgments, retractions, releases, closings and rewinds."""
    count = RowCount()
    campaign.read(
        lambda tx: write_lines(path, _log_lines(tx, campaign, count, progress), private=True), once=True
    )
    return Written((os.fspath(path),), count.rows)


def _log_lines(tx: Reading, campaign: Campaign, count: RowCount, progress: Progress) -> Iterator[str]:
    for _, rows in many_topics.rows_by_topic(tx, topics_of(tx)):
        for row in rows:
            count.rows += 1
            yield json.dumps(line_to_json(row), ensure_ascii=False)
        progress(1)


def visit_log(
    campaign: Campaign,
    visit: Callable[[dict[str, Any]], None],
    *,
    topics: Collection[str] | None = None,
    last: int | None = None,
) -> None:
    """Call visit(line) for each line of the log, topic by topic: of all topics or some, all lines or the last few."""

    def read_lines(tx: Reading) -> None:
        wanted = [topic for topic in topics_of(tx) if not topics or topic in topics]
        for _, rows in many_topics.rows_by_topic(
            tx, wanted, where=() if last is None else (many_topics.is_among_last(last),)
        ):
            for row in rows:
                visit(line_to_json(row))

    campaign.read(read_lines, once=True)


# ---- line by line


def export_lines(tx: Reading, campaign: Campaign, form: str) -> Iterator[str]:
    """Yield an export line by line, as `write_prefs` and its like would write it."""
    if form == "csv":
        return _csv_lines(tx, campaign, RowCount(), ignore)
    if form == "jsonl":
        return _log_lines(tx, campaign, RowCount(), ignore)
    if form == "prefs":
        return _pref_lines(tx, campaign, "preferences", RowCount(), Tally(), ignore)
    if form == "qrels":
        return _qrels_lines(
            tx, campaign, "qrels", RowCount(), Tally(), values="auto", k=None, above=None, progress=ignore
        )
    if form == "levels":
        return iter([json.dumps(levels_in(tx, campaign, ignore), indent=1, ensure_ascii=False)])
    raise UnknownName("form of export", form, FORMS)


# ---- for spreadsheets

CSV_COLUMNS = (
    "topic",
    "seq",
    "time",
    "assessor",
    "left",
    "right",
    "outcome",
    "winner",
    "grade",
    "counts",
    "test_pair",
    "repeated",
    "phase",
    "criterion",
    "stage",
    "seconds",
    "confidence",
    "note",
    "sides_known",
    "strategy",
)
_CSV_NUMBERS = ("seq", "grade", "seconds", "confidence")


def write_csv(campaign: Campaign, path: Target, progress: Progress = ignore) -> Written:
    """Write every judgment for a spreadsheet, test pairs and retracted ones too, with a column `counts`.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    count = RowCount()

    def work(tx: Reading) -> None:
        if is_parquet_name(path):
            cells = judgment_cells(tx, campaign, count, progress)
            write_parquet(path, CSV_COLUMNS, cells, numbers=_CSV_NUMBERS, private=True)
        else:
            write_lines(path, _csv_lines(tx, campaign, count, progress), private=True)

    campaign.read(work, once=True)
    return Written((os.fspath(path),), count.rows)


def _csv_lines(tx: Reading, campaign: Campaign, count: RowCount, progress: Progress) -> Iterator[str]:
    yield csv_line(CSV_COLUMNS)
    for cells in judgment_cells(tx, campaign, count, progress):
        yield csv_line(cells)


def judgment_cells(
    tx: Reading, campaign: Campaign, count: RowCount, progress: Progress
) -> Iterator[tuple[object, ...]]:
    """Yield every judgment as the values of `CSV_COLUMNS`, topic by topic."""
    for _, counts, rows in _counted_rows(tx):
        for row in rows:
            if row.event == log.JUDGMENT:
                count.rows += 1
                yield _cells(row, counts.keeps(row.seq))
        progress(1)


def _cells(row: Row[Any], kept: bool) -> tuple[object, ...]:
    effect = EFFECTS[Outcome(row.outcome)]
    winner = "" if effect.left == effect.right else _winner(row, effect.left > effect.right)
    counts = kept and row.test_pair is None and not row.repeated and effect.usable
    return (
        row.topic,
        row.seq,
        log.iso_time(row.time),
        row.assessor,
        row.left_item,
        row.right_item,
        row.outcome,
        "" if row.kind == str(Kind.GRADE) else winner,
        row.grade,
        "yes" if counts else "no",
        row.test_pair,
        "yes" if row.repeated else "no",
        row.phase,
        row.criterion,
        row.stage,
        row.seconds,
        row.confidence,
        row.note,
        "yes" if row.sides_known else "no",
        row.strategy,
    )


def csv_line(cells: tuple[object, ...]) -> str:
    """Return a line of CSV without its end; texts that look like formulas are made harmless."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([harmless(cell) for cell in cells])
    return out.getvalue()
