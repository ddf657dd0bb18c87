"""The leaderboard of systems on the command line: `duelpool evaluate --systems` and `duelpool compare --votes`."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import cast

from duelpool.cli.evaluation.system_options import SystemOptions
from duelpool.cli.options import is_store
from duelpool.cli.output import tell_notices
from duelpool.cli.terminal import terminal_width
from duelpool.errors import BadParameter, UnknownName
from duelpool.evaluation.powered import TieShare, powered_boards
from duelpool.evaluation.reports import SYSTEM_REPORTS
from duelpool.evaluation.side_by_side import rows_by_side, side_by_side
from duelpool.evaluation.systems import (
    BoardOptions,
    Meeting,
    Over,
    PlannedVotes,
    SystemBoard,
    boards_of,
    system_board,
    tag_table,
)
from duelpool.files import SystemVote, read_votes
from duelpool.report import Table, table_text


def read_system_votes(
    source: str, campaign: str | None, model_votes: str | None = None
) -> tuple[list[SystemVote], Sequence[str], PlannedVotes]:
    """Return the votes of a campaign or of a file, with those of models, the systems, and the votes of its plan."""
    systems: Sequence[str] = ()
    planned: PlannedVotes = None
    if is_store(source):
        from duelpool.campaign.views.system_votes import votes_of
        from duelpool.cli.opening import opened  # here, because importing a campaign takes longer than a file

        with opened(source, campaign) as one:
            found = votes_of(one)
        votes, systems, planned = list(found.votes), found.systems, found.planned
    else:
        read = read_votes(source)
        tell_notices(source, read.notices)
        votes = list(read)
    if model_votes is not None:
        read = read_votes(model_votes, model=True)
        tell_notices(model_votes, read.notices)
        votes += [replace(vote, model=True) for vote in read]
    return votes, systems, planned


def refuse_trec(form: str) -> None:
    """Refuse the format that has no place for systems."""
    if form == "trec":
        raise BadParameter(
            "The trec format has no systems.", remedy="Choose table, csv, json, markdown or latex."
        )


def system_text(
    votes: Sequence[SystemVote],
    systems: Sequence[str],
    planned: PlannedVotes,
    options: BoardOptions,
    report: str,
    form: str,
    tag: str | None = None,
) -> tuple[str, list[str]]:
    """Return the leaderboard in a format, and the notes that go with it."""
    if report not in SYSTEM_REPORTS:
        raise UnknownName("report of systems", report, SYSTEM_REPORTS)
    refuse_trec(form)
    if tag is not None:
        votes = _tagged(votes, tag)
    else:
        options = replace(options, planned=planned)
    if report == "tags":
        return table_text(tag_table(votes, options), form, (), terminal_width()), []
    boards = boards_of(votes, options, systems)
    if not boards:
        boards = [system_board(votes, options, systems=systems)]  # which says that there are no votes
    if form == "json":
        return _json(boards, report), _notes(boards)
    if form == "csv" and report == "scores":
        rows = [row for board in boards for row in board.as_rows()]
        table = Table(tuple(rows[0]), tuple(tuple(row.values()) for row in rows))
        return table_text(table, form), _notes(boards)
    both = {each.criterion: each for each in side_by_side(boards)} if report == "scores" else {}
    texts = []
    for board in boards:
        beside = both.get(board.criterion)
        if beside is not None and board.judges == "models":
            continue  # its figures are beside those of people
        if len({board.criterion for board in boards}) > 1 or (len(boards) > 1 and beside is None):
            title = board.criterion if beside is not None else f"{board.criterion}, {board.judges}"
            texts.append(title if form in ("table", "markdown") else "")
        shown = board if beside is None else beside
        if form == "table":
            texts += [board.headline] if beside is None else beside.headlines()
        table = board.matrix_table() if report == "head-to-head" else shown.table()
        texts.append(table_text(table, form, shown.notes() if form == "table" else (), terminal_width()))
        if beside is not None and form in ("table", "markdown"):
            texts.append(str(beside))
    return "\n\n".join(text for text in texts if text), [] if form == "table" else _notes(boards)


def _tagged(votes: Sequence[SystemVote], tag: str) -> list[SystemVote]:
    tags = {each for vote in votes for each in vote.tags}
    if tag not in tags:
        raise UnknownName("tag", tag, tags)
    return [vote for vote in votes if tag in vote.tags]


def powered_text(
    votes: Sequence[SystemVote],
    options: SystemOptions,
    level: float,
    seed: int,
    form: str,
    tag: str | None = None,
) -> tuple[str, list[str]]:
    """Return the leaderboard by people's votes with the help of a model's, and its notes."""
    refuse_trec(form)
    boards = powered_boards(
        votes if tag is None else _tagged(votes, tag),
        ties=cast("TieShare", options.tie_model),
        over=cast("Over", options.over),
        level=level,
        seed=seed,
    )
    notes = [note for board in boards for note in (board.headline, *board.notes())]
    rows = [row for board in boards for row in board.as_rows()]
    if form == "json":
        return json.dumps(rows, indent=2, ensure_ascii=False), notes
    if form == "csv":
        return table_text(Table(tuple(rows[0]), tuple(tuple(row.values()) for row in rows)), form), notes
    texts = []
    for board in boards:
        texts += [board.criterion] if len(boards) > 1 else []
        texts += [board.headline] if form == "table" else []
        shown = board.notes() if form == "table" else ()
        texts.append(table_text(board.table(), form, shown, terminal_width()))
    return "\n\n".join(texts), [] if form == "table" else notes


def _notes(boards: Sequence[SystemBoard]) -> list[str]:
    """Return the result in words, and how far people and models agree."""
    notes = [note for board in boards for note in (board.headline, *board.notes())]
    return [*notes, *map(str, side_by_side(boards))]


def _json(boards: Sequence[SystemBoard], report: str) -> str:
    """Return a row for each system, or for every two of them."""
    rows = rows_by_side(boards)
    if report == "head-to-head":
        rows = [
            {**asdict(each), "criterion": board.criterion, "judges": board.judges, "words": str(each)}
            for board in boards
            for each in board.head_to_head()
        ]
    return json.dumps(rows, indent=2, ensure_ascii=False)


def system_meeting(source: str, campaign: str | None, a: str, b: str) -> Meeting:
    """Return two systems against each other, by the votes of a campaign or of a file; these two are all that counts."""
    votes, systems, planned = read_system_votes(source, campaign)
    options = BoardOptions(planned=planned)
    known = {*systems, *(name for vote in votes for name in (vote.a, vote.b))}
    for name in (a, b):
        if name not in known:
            raise UnknownName("system", name, known)
    own = [vote for vote in votes if {vote.a, vote.b} == {a, b}]
    if any(not vote.same_answer for vote in own):
        return system_board(own, options, systems=(a, b)).meeting(a, b)
    return system_board(votes, options, systems=systems).meeting(a, b)
