"""Test pairs of answers that the user gives: a question, an answer that is clearly better, and one that is worse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from duelpool.errors import BadFile, BadRecord
from duelpool.files import Notice
from duelpool.files.answers import item_id
from duelpool.files.answers.rows import source_texts
from duelpool.files.notices import Tally
from duelpool.files.tables import TableRow, read_named_rows
from duelpool.records import Passage, SourceText, Topic
from duelpool.seeds import rng_for
from duelpool.store.holdings import TestPair

_QUESTIONS = (
    "question_id",
    "prompt_id",
    "query_id",
    "topic_id",
    "qid",
    "prompt",
    "question",
    "query",
    "topic",
    "text",
)
_SIDES = (
    ("answer_a", "answer_b"),
    ("response_a", "response_b"),
    ("output_a", "output_b"),
    ("result_x", "result_y"),
    ("left", "right"),
    ("a", "b"),
)
_WINNERS = ("golden", "winner", "better_side", "label", "correct")
_FIRST = {"left", "a", "x", "1", "first", "model_a", "answer_a"}
_SECOND = {"right", "b", "y", "2", "second", "model_b", "answer_b"}
_TIES = {"tie", "=", "both", "bothbad", "tie (bothbad)"}
_FORM = "A row has question_id (or question), better and worse; or two answers and a winner, left or right."


@dataclass(frozen=True, slots=True)
class AnswerTests:
    """Test pairs with the texts of their answers, and what was left out."""

    pairs: tuple[TestPair, ...]
    passages: tuple[Passage, ...]
    notices: tuple[Notice, ...]


def read_answer_tests(path: str, questions: Mapping[str, Topic]) -> AnswerTests:
    """Read test pairs of answers: JSON lines, a JSON array, CSV, TSV or Parquet."""
    table = read_named_rows(path)
    by_text = {" ".join(topic.text.split()): topic.id for topic in questions.values() if topic.text}
    tally = Tally()
    pairs: dict[tuple[str, str, str], TestPair] = {}
    passages: dict[str, Passage] = {}
    for line, row in table.rows:
        if _winner(row) in _TIES:
            tally.add("pairs without a better answer left out", line)
            continue
        sides = _sides(row, table.name, line)
        if sides is None:
            raise BadFile.at(table.name, line, "This is no test pair of answers.", _FORM)
        question = next(
            (found for name in _QUESTIONS if (found := _question(row, name, questions, by_text))), None
        )
        if question is None:
            tally.add("test pairs of unknown questions left out", line)
            continue
        items = []
        for text, cited in sides:
            shown = text.strip()
            item = item_id(question, shown, cited)
            passages[item] = Passage(item, shown, format="markdown", sources=cited)
            items.append(item)
        if items[0] == items[1]:
            raise BadFile.at(table.name, line, "The two answers are the same.", "Correct or remove the row.")
        key = (question, items[0], items[1])
        pairs.setdefault(key, TestPair(f"test-{len(pairs) + 1}", *key))
    if not pairs:
        raise BadFile.at(table.name, None, "The file has no test pair of a question of the campaign.", _FORM)
    return AnswerTests(tuple(pairs.values()), tuple(passages.values()), tally.notices)


def _question(
    row: TableRow, name: str, questions: Mapping[str, Topic], by_text: Mapping[str, str]
) -> str | None:
    given = row.get(name)
    if given is None or isinstance(given, bool | list | dict):
        return None
    text = str(given).strip()
    return text if text in questions else by_text.get(" ".join(text.split()))


def _winner(row: TableRow) -> str:
    return next((str(row[name]).strip().lower() for name in _WINNERS if row.get(name) is not None), "")


_Side: TypeAlias = tuple[str, tuple[SourceText, ...]]


def _sides(row: TableRow, name: str, line: int) -> tuple[_Side, _Side] | None:
    """Return the better answer and the worse one, each with what it cites where the row says so."""
    winner = _winner(row)
    for one, other in (("better", "worse"), *_SIDES):
        first, second = row.get(one), row.get(other)
        if isinstance(first, str) and isinstance(second, str) and first.strip() and second.strip():
            sides = (first, _cited(row, one, name, line)), (second, _cited(row, other, name, line))
            if one == "better" or winner in _FIRST:
                return sides
            if winner in _SECOND:
                return sides[1], sides[0]
    return None


def _cited(row: TableRow, side: str, name: str, line: int) -> tuple[SourceText, ...]:
    """Return what the answer of a side cites: `better_citations`, or `citations_a` beside `answer_a`."""
    ending = side.rsplit("_", 1)[-1]
    called = next((each for each in (f"{side}_citations", f"citations_{ending}") if each in row), "")
    try:
        return source_texts(row.get(called), "citation", called)
    except BadRecord as error:
        raise BadFile.at(name, line, error.problem, error.remedy) from None


def made_alike(tests: AnswerTests, answers: Mapping[str, Sequence[Passage]], seed: int) -> AnswerTests:
    """Return test pairs that look like all others: where answers have sources, those of a test have some, too.

    An answer of the same text lends its own; else another answer to the question does. `answers` are by question.
    """
    tally = Tally()
    passages = {each.id: each for each in tests.passages}
    for pair in tests.pairs:
        lenders = [each for each in answers.get(pair.topic, ()) if each.sources]
        for item in (pair.better, pair.worse) if lenders else ():
            own = passages[item]
            if own.sources:
                continue
            same = [each for each in lenders if " ".join(each.text.split()) == " ".join(own.text.split())]
            if not same:
                rng = rng_for(seed, pair.topic, item, "sources of a test answer")
                same = [lenders[int(rng.integers(len(lenders)))]]
                tally.add("answers of test pairs without citations, shown with those of another answer")
            passages[item] = replace(own, sources=same[0].sources)
    return AnswerTests(tests.pairs, tuple(passages.values()), (*tests.notices, *tally.notices))
