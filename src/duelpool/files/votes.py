"""Votes between systems from elsewhere: who met whom, who won, and on which question, where the file says so.

Files have `model_a, model_b, winner` (`model_a`, `model_b`, `tie`, `tie (bothbad)`), or `left, right, winner` (`left`,
`right`, `tie`), and columns for the question, the judge, the answers and tags under their usual names; see `NAMES`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from duelpool.errors import BadFile, BadRecord, known_names
from duelpool.files.assessed import NAMES as ITEM_COLUMNS
from duelpool.files.collections import table_path
from duelpool.files.notices import Notice, Tally
from duelpool.files.source import Readable
from duelpool.files.tables import NamedRows, TableRow, read_named_rows

VoteOutcome: TypeAlias = Literal["a", "b", "tie", "bothbad"]

SIDES: tuple[tuple[str, str], ...] = (
    ("model_a", "model_b"),
    ("system_a", "system_b"),
    ("left", "right"),
    ("model_left", "model_right"),
    ("model_1", "model_2"),
    ("generator_1", "generator_2"),
    ("model_x", "model_y"),
    ("a", "b"),
)
"""The columns of the two systems, as shown on the left and on the right; of several, the first counts."""

NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "winner": ("winner", "vote", "verdict", "preference", "preferred", "choice", "label"),
        "question": (
            *("question_id", "prompt_id", "query_id", "topic_id", "qid", "topic"),
            *("prompt", "question", "query", "instruction"),
        ),
        "judge": (
            *("judge", "judge_id", "worker", "worker_id", "annotator", "annotator_id"),
            *("assessor", "assessor_id", "rater", "user", "user_id", "judge_name"),
        ),
        "model": ("judge_is_model", "is_model", "judge_type", "judge_kind"),
        "criterion": ("criterion", "dimension"),
        "tags": ("tags", "tag", "category"),
        "question_text": ("question_text", "prompt", "question", "query", "instruction"),
        "answer_a": ("answer_a", "response_a", "output_a", "answer_left", "output_1", "conversation_a"),
        "answer_b": ("answer_b", "response_b", "output_b", "answer_right", "output_2", "conversation_b"),
    }
)
"""The names of each other column, by what it holds; of several, the first counts."""

_ITEMS_TOO = {("left", "right"), ("a", "b")}  # columns that other files call their items by
_ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie")
_A = {"model_a", "a", "left", "first", "system_a", "model_left", "a wins", "model_1", "output_1", "model_x"}
_B = {
    "model_b",
    "b",
    "right",
    "second",
    "system_b",
    "model_right",
    "b wins",
    "model_2",
    "output_2",
    "model_y",
}
_TIE = {"tie", "=", "draw", "same", "equal", "c", "both", "both good", "bothgood", "tie (bothgood)"}
_BOTH_BAD = {"tie (bothbad)", "bothbad", "both bad", "both-bad", "both_bad", "neither", "tie (both bad)"}
_NO_VOTE = {"", "none", "null", "nan", "ignore", "skip", "error", "invalid", "cannot-judge"}
_USUAL = {"model_a", "model_b", "left", "right", "tie", "tie (bothbad)", "a", "b"}
_PEOPLE = {"", "0", "false", "no", "human", "person", "people", "crowd", "expert", "worker"}
_MODELS = {"1", "true", "yes", "model", "llm", "machine", "ai"}


@dataclass(frozen=True, slots=True)
class SystemVote:
    """One vote: two systems, the first shown on the left, and the outcome.

    `question` is empty where the file doesn't say which question was answered, `judge` where it doesn't say who judged.
    """

    a: str
    b: str
    outcome: VoteOutcome
    question: str = ""
    judge: str = ""
    model: bool = False  # whether the judge is a model
    criterion: str = "overall"
    tags: tuple[str, ...] = ()
    question_text: str = ""
    answer_a: str = ""
    answer_b: str = ""
    line: int | None = None
    weight: float = 1.0
    same_answer: bool = False  # the two gave the same answer: a tie for which no judge was asked

    @property
    def share(self) -> float:
        """The share of the vote that the first system gets; a tie, and both bad, are half a vote each."""
        return {"a": 1.0, "b": 0.0}.get(self.outcome, 0.5)


@dataclass(frozen=True, slots=True)
class SystemVotes:
    """The votes of a file in its order, and what was repaired or left out."""

    votes: tuple[SystemVote, ...]
    notices: tuple[Notice, ...] = ()

    def __len__(self) -> int:
        return len(self.votes)

    def __iter__(self) -> Iterator[SystemVote]:
        return iter(self.votes)

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems that got a vote, sorted."""
        return tuple(sorted({name for vote in self.votes for name in (vote.a, vote.b)}))


def read_votes(
    path: Readable, *, judge: str = "", model: bool = False, fields: Mapping[str, str] | None = None
) -> SystemVotes:
    """Read votes between systems: JSON lines, a JSON array, CSV, TSV (plain or gzip), or Parquet.

    `judge` and `model` hold for rows that don't say who judged. `fields` leads from what a column holds (`a`, `b`,
    `winner`, or a key of `NAMES`) to its name in the file.
    """
    table = read_named_rows(table_path(path))
    tally = Tally()
    columns = _columns_of(table, fields or {})
    read_winner = _winner_reader(table, columns)
    defaults = SystemVote("", "", "tie", judge=judge, model=model)
    votes = []
    for line, row in table.rows:
        try:
            vote = _vote((line, row), columns, read_winner, tally, defaults)
        except BadRecord as error:
            raise BadFile.at(table.name, line, error.problem, error.remedy) from None
        votes += [vote] if vote is not None else []
    if not votes:
        raise BadFile.at(
            table.name, None, "The file holds no vote.", "A vote names two systems and a winner."
        )
    return SystemVotes(tuple(votes), tally.notices)


def is_votes(path: Readable) -> bool:
    """Say whether a file has the columns of votes between systems."""
    try:
        _columns_of(read_named_rows(table_path(path)), {})
    except BadFile:
        return False
    return True


def are_systems(path: Readable) -> bool:
    """Say whether what a file compares are systems: its columns say so, or it has votes and no topics of items."""
    if not is_votes(path):
        return False
    names = {name.strip().lower() for name in read_named_rows(path).columns}
    if any({a, b} <= names for a, b in SIDES if (a, b) not in _ITEMS_TOO):
        return True
    return not names & set(ITEM_COLUMNS["topic"])


# ---- columns


def _columns_of(table: NamedRows, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the column of the file by what it holds."""
    known = {name.strip().lower(): name for name in reversed(table.columns)}
    for what, name in fields.items():
        if what not in {"a", "b", *NAMES}:
            raise BadFile.at(
                table.name, None, f"Votes have no field '{what}'.", known_names(what, ["a", "b", *NAMES])
            )
        if name not in table.columns:
            raise BadFile.at(
                table.name, 1, f"No column is called '{name}'.", known_names(name, table.columns)
            )
    found = {what: known[name] for what, names in NAMES.items() for name in reversed(names) if name in known}
    sides = next(((known[a], known[b]) for a, b in SIDES if a in known and b in known), None)
    if sides is not None:
        found["a"], found["b"] = sides
    found.update(fields)
    if found.get("question_text") == found.get("question") and "question_text" not in fields:
        found.pop("question_text", None)  # one column is the id, whatever it holds
    listed = ", ".join(table.columns[:12]) + (", ..." if len(table.columns) > 12 else "")
    if "a" not in found or "b" not in found:
        raise BadFile.at(
            table.name,
            1,
            f"No two columns name the systems; the columns are {listed or 'none'}.",
            "Call them model_a and model_b, or left and right.",
        )
    if "winner" not in found and not all(name in known for name in _ONE_HOT):
        raise BadFile.at(
            table.name,
            1,
            f"No column names the winner; the columns are {listed}.",
            "Call it winner, with model_a, model_b, tie or tie (bothbad).",
        )
    return found


# ---- winners


class _WinnerReader:
    """Reads the winner of a row: by side, by the system's name, or by number, as the whole column shows."""

    def __init__(self, numbers: Mapping[float, VoteOutcome], problem: str = "") -> None:
        self._numbers = numbers
        self._problem = problem

    def read(self, value: Any, a: str, b: str, tally: Tally, line: int) -> VoteOutcome | None:
        """Return the outcome; None for no vote."""
        text = "" if value is None else str(value).strip()
        if text in (a, b) and text:
            return "a" if text == a else "b"
        number = _number(value)
        if number is not None:
            if number not in self._numbers:
                raise BadRecord(self._problem or f"The winner {text} means nothing here.", remedy=_REMEDY)
            return self._numbers[number]
        folded = " ".join(text.lower().split()).strip("[]")
        if folded in _NO_VOTE:
            tally.add("rows without a winner left out", line)
            return None
        for known, outcome in ((_A, "a"), (_B, "b"), (_TIE, "tie"), (_BOTH_BAD, "bothbad")):
            if folded in known:
                if text.lower() not in _USUAL:
                    tally.add(f"winners '{text}' read as {outcome}", line)
                return cast("VoteOutcome", outcome)
        raise BadRecord(f"The winner '{text}' is neither a side nor one of the two systems.", remedy=_REMEDY)


_REMEDY = "Use model_a, model_b, tie or tie (bothbad); or left, right or tie; or a system's name."


def _winner_reader(table: NamedRows, columns: Mapping[str, str]) -> _WinnerReader:
    """Numbers are read by the whole column: 1, 2 and 0 or 1.5 for a tie; or the first system's share, 1, 0.5 or 0."""
    name = columns.get("winner", "")
    values = {number for _, row in table.rows if (number := _number(row.get(name))) is not None}
    if 2.0 in values and values <= {0.0, 1.0, 1.5, 2.0}:
        return _WinnerReader({1.0: "a", 2.0: "b", 0.0: "tie", 1.5: "tie"})
    if 0.5 in values and values <= {0.0, 0.5, 1.0}:
        return _WinnerReader({1.0: "a", 0.0: "b", 0.5: "tie"})
    return _WinnerReader({}, f"What the numbers in '{name}' mean can't be told.")


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _one_hot(row: TableRow, tally: Tally, line: int) -> VoteOutcome | None:
    """Return the outcome of three columns of which one is 1."""
    marked = [name for name in _ONE_HOT if str(row.get(name)).strip().lower() in {"1", "1.0", "true"}]
    if not marked:
        tally.add("rows without a winner left out", line)
        return None
    if len(marked) > 1:
        raise BadRecord(f"Both {marked[0]} and {marked[1]} are 1.", remedy="Set one of them.")
    return cast("VoteOutcome", {_ONE_HOT[0]: "a", _ONE_HOT[1]: "b"}.get(marked[0], "tie"))


# ---- rows


def _vote(
    numbered: tuple[int, TableRow],
    columns: Mapping[str, str],
    winner: _WinnerReader,
    tally: Tally,
    defaults: SystemVote,
) -> SystemVote | None:
    line, row = numbered
    a, b = (_name(row, columns[side], tally, line) for side in ("a", "b"))
    if "winner" in columns:
        outcome = winner.read(row.get(columns["winner"]), a, b, tally, line)
    else:
        outcome = _one_hot(row, tally, line)
    if outcome is None:
        return None
    if a == b:
        tally.add("votes of a system against itself left out", line)
        return None

    def text(what: str) -> str:
        return _text(row.get(columns[what])) if what in columns else ""

    return SystemVote(
        *(a, b, outcome),
        question=text("question"),
        judge=text("judge") or defaults.judge,
        model=_is_model(text("model"), defaults.model),
        criterion=text("criterion") or "overall",
        tags=_tags(row.get(columns["tags"])) if "tags" in columns else (),
        question_text=text("question_text"),
        answer_a=_answer(row.get(columns.get("answer_a", ""))),
        answer_b=_answer(row.get(columns.get("answer_b", ""))),
        line=line,
    )


def _name(row: TableRow, column: str, tally: Tally, line: int) -> str:
    value = row.get(column)
    if value is None or isinstance(value, dict | list) or not str(value).strip():
        raise BadRecord(f"The field '{column}' names no system.", remedy="Name both systems of every vote.")
    name = str(value).strip()
    if name != str(value):
        tally.add("blanks around the names of systems removed", line)
    return name


def _text(value: Any) -> str:
    """Return a value as text; the parts of a list, such as a model's name and its prompt, are joined."""
    if value is None:
        return ""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(_text(each) for each in value)
    if isinstance(value, Mapping):
        raise BadRecord("A text was expected, not an object.", remedy="Give it as text.")
    return str(value).strip()


def _is_model(text: str, default: bool) -> bool:
    folded = text.lower()
    if folded in _MODELS:
        return True
    if folded in _PEOPLE:
        return default if not folded else False
    raise BadRecord(
        f"The kind of judge '{text}' is unknown.", remedy="Use human or model, or true for a model."
    )


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_text(each) for each in value)
    return tuple(tag.strip() for tag in _text(value).split(",") if tag.strip())


def _answer(value: Any) -> str:
    """Return an answer's text; of a conversation, the last thing that the system said."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        said = [turn for turn in value if isinstance(turn, Mapping) and turn.get("role") != "user"]
        return str(said[-1].get("content") or "") if said else " ".join(map(str, value))
    return "" if value is None else str(value)
