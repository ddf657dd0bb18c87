"""Answers put together: one a system and question, each question with one text; repairs counted, the rest refused."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, cast

from duelpool.errors import BadFile, BadRecord
from duelpool.files.answers.forms import AnswerReading, rows_in
from duelpool.files.answers.rows import AnswerRow, RowPlace, file_system
from duelpool.files.collections import table_path
from duelpool.files.notices import Notice, Tally
from duelpool.files.passages import Passages
from duelpool.files.runs import Run
from duelpool.files.source import Readable, Source, read_source
from duelpool.files.topics import Topics
from duelpool.frames import Tabular, counted, frame_of
from duelpool.records import Passage, SourceText, Topic

if TYPE_CHECKING:
    import polars as pl

EMPTY = "(no answer)"
"""What assessors see of an answer that is empty: a system that says nothing competes, too."""


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """What a system answered to a question; `item` is the answer's id, which doesn't tell the system."""

    question: str
    system: str
    item: str
    text: str
    sources: tuple[SourceText, ...] = ()

    @property
    def passage(self) -> Passage:
        """The answer as an assessor sees it."""
        return Passage(self.item, self.text, format="markdown", sources=self.sources)


@dataclass(frozen=True, slots=True, repr=False)
class Answers(Tabular):
    """The answers of all systems, in the order of the files, and their questions; `notices` by file."""

    rows: tuple[SystemAnswer, ...]
    questions: Mapping[str, Topic]
    notices: tuple[tuple[str, tuple[Notice, ...]], ...] = field(default=())

    def __repr__(self) -> str:
        systems = counted(len(self.systems), "system")
        return f"Answers({systems}, {counted(len(self.questions), 'question')}, {counted(len(self.rows), 'answer')})"

    def to_polars(self) -> "pl.DataFrame":
        """Return a row an answer: question, system, item, text."""
        rows = ((each.question, each.system, each.item, each.text) for each in self.rows)
        return frame_of(rows, dict.fromkeys(("question", "system", "item", "text"), "String"))

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, in the order in which they first appear."""
        return tuple(dict.fromkeys(row.system for row in self.rows))

    @property
    def runs(self) -> tuple[Run, ...]:
        """Each system as a run with one item a question."""
        given: dict[str, dict[str, list[tuple[str, float]]]] = {}
        for row in self.rows:
            given.setdefault(row.system, {})[row.question] = [(row.item, 1.0)]
        return tuple(Run.from_rankings(system, rankings) for system, rankings in given.items())

    @property
    def topics(self) -> Topics:
        """The questions that have a text."""
        return Topics({topic.id: topic for topic in self.questions.values() if topic.text})

    @property
    def passages(self) -> Passages:
        """The answers' texts by item."""
        return Passages({row.item: row.passage for row in self.rows})

    @property
    def missing(self) -> dict[str, int]:
        """How many questions each system didn't answer; those that answered all are left out."""
        had = Counter(row.system for row in self.rows)
        return {
            system: len(self.questions) - had[system]
            for system in self.systems
            if had[system] < len(self.questions)
        }

    @property
    def identical(self) -> int:
        """How many answers are the same, letter for letter, as an earlier one to the question."""
        return len(self.rows) - len({(row.question, row.text, row.sources) for row in self.rows})


def read_answers(
    paths: Iterable[Readable],
    fields: Mapping[str, str] | None = None,
    *,
    texts: Mapping[str, Passage] | None = None,
    topics: Mapping[str, Topic] | None = None,
) -> Answers:
    """Read answers from files of any form; `fields` maps names, `texts` has those of cited documents by id.

    `topics` has the questions by id, where a file of their own has them; their texts count before those of the rows. A
    file without a field for the system is one system's, and the file's name is the system's.
    """
    found: list[AnswerRow] = []
    notices: list[tuple[str, Tally]] = []
    whole_files: list[tuple[str, str]] = []  # systems that a whole file is of, with the file
    sources = [read_source(table_path(path), binary=True) for path in paths]
    for source in sources:
        tally = Tally()
        notices.append((source.name, tally))
        how = AnswerReading(fields or {}, len(sources) == 1, tally)
        rows = list(_named(source, list(rows_in(source, how)), how))
        if not rows:
            raise BadFile.at(
                source.name, None, "The file holds no answer.", "Check that it is the right one."
            )
        if len({row.system for row in rows}) == 1 and len(sources) > 1:
            whole_files.append((cast("str", rows[0].system), source.name))
        if len(rows) > 1 and all((row.system or "").strip().isdigit() for row in rows):
            numbers = len({row.system for row in rows})
            tally.add(
                "systems with a number for a name; if a field has names, --fields system=FIELD", None, numbers
            )
        found += rows
    found = _told_apart(found, whole_files)
    tallies = dict(notices)
    checked = [
        _checked(row, tallies[row.place.file], texts)
        for row in _with_ids(_without_numbers(found, tallies, topics or {}), tallies, topics or {})
    ]
    questions = _questions(checked, tallies, topics or {})
    rows = _once(checked, tallies)
    answers = tuple(_with_items(rows))
    return Answers(answers, questions, tuple((name, tally.notices) for name, tally in notices))


def _named(source: Source, rows: Sequence[AnswerRow], how: AnswerReading) -> Iterator[AnswerRow]:
    """Yield rows that have a system; of several files, one without any is of the system that it is named after."""
    without = [row for row in rows if row.system is None or not row.system.strip()]
    if without and (how.alone or len(without) < len(rows)):
        raise BadFile(
            "The answer has no system.",
            place=str(without[0].place),
            remedy="Give it one, or name the field that has it: --fields system=FIELD",
        )
    own = file_system(source.name)
    how.tally.add(f"answers without a system: they are of '{own}', the file's name", None, len(without))
    for row in rows:
        yield replace(row, system=own) if without else row


def _told_apart(rows: list[AnswerRow], whole_files: Sequence[tuple[str, str]]) -> list[AnswerRow]:
    """Tell the systems of two files apart that have one name each, the same: the files' names are added."""
    times = Counter(system for system, _ in whole_files)
    unclear = {(system, file) for system, file in whole_files if times[system] > 1}
    if not unclear:
        return rows
    asked: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        asked[cast("str", row.system), row.place.file].add(row.question_id or row.question or "")
    apart = {
        system
        for system, file in unclear
        for other, another in unclear
        if system == other and file != another and asked[system, file] & asked[other, another]
    }
    return [
        replace(row, system=f"{row.system} ({file_system(row.place.file)})") if row.system in apart else row
        for row in rows
    ]


def _without_numbers(
    rows: list[AnswerRow], tallies: Mapping[str, Tally], topics: Mapping[str, Topic]
) -> list[AnswerRow]:
    """Take questions that are all bare numbers for ids: nobody could judge answers to the question "8"."""
    numbers = [(row.question or "").strip() for row in rows]
    if len(rows) < 2 or not all(number.isdecimal() for number in numbers):
        return rows
    if not topics.keys() & set(numbers):
        told = "questions that are numbers, taken for ids; a file with the texts: --topics FILE"
        tallies[rows[0].place.file].add(told, None, len(set(numbers)))
    return [
        replace(row, question=None, question_id=row.question_id or number)
        for row, number in zip(rows, numbers, strict=True)
    ]


def _with_ids(
    rows: Sequence[AnswerRow], tallies: Mapping[str, Tally], topics: Mapping[str, Topic]
) -> Iterator[AnswerRow]:
    """Yield rows with the id of their question: its own, the row's `id` where it is the question's, or a number."""
    by_id: dict[str, set[str]] = defaultdict(set)
    by_text: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.maybe_id:
            by_id[row.maybe_id].add(_same(row.question))
            by_text[_same(row.question)].add(row.maybe_id)
    sound = all(len(each) == 1 for each in (*by_id.values(), *by_text.values())) and all(
        row.maybe_id or row.question_id for row in rows
    )
    known: dict[str, str] = {}  # by text
    for row in rows:
        if row.question_id and row.question:
            known.setdefault(_same(row.question), row.question_id.strip())
    taken = set(known.values())
    for row in rows:
        if row.question_id and row.question_id.strip():
            yield row
        elif (row.question or "").strip() in topics:  # an id where the text was expected
            yield replace(row, question_id=(row.question or "").strip(), question=None)
        elif sound and row.maybe_id:
            yield replace(row, question_id=row.maybe_id)
        elif row.question is None or not row.question.strip():
            raise BadFile(
                "The answer has no question.",
                place=str(row.place),
                remedy="Give its text or its id: --fields question=FIELD or question_id=FIELD",
            )
        else:
            text = _same(row.question)
            if text not in known:
                number = len(known) + 1
                while f"q{number}" in taken:
                    number += 1
                known[text] = f"q{number}"
                taken.add(known[text])
                tallies[row.place.file].add("questions without an id, numbered q1, q2, ...", row.place.line)
            yield replace(row, question_id=known[text])


def _same(text: str | None) -> str:
    return " ".join((text or "").split())


def _checked(row: AnswerRow, tally: Tally, texts: Mapping[str, Passage] | None) -> AnswerRow:
    """Return a row trimmed, with the texts of what it cites; refuse one without an answer, which an empty one isn't."""
    if row.answer is None:
        raise BadFile(
            f"System '{row.system}' has no answer to question '{row.question_id}'.",
            place=str(row.place),
            remedy='Remove the row (the system then misses the question), or give it an empty answer, "".',
        )
    if not row.answer.strip():
        tally.add(f"empty answers, shown as {EMPTY}", row.place.line)
    values = {
        "answer": row.answer if row.answer.strip() else EMPTY,
        "system": row.system or "",
        "question_id": row.question_id or "",
    }
    trimmed = {name: value.strip() for name, value in values.items()}
    for name, value in values.items():
        if value != trimmed[name]:
            tally.add(f"{name.replace('_', ' ')}: white space around it removed", row.place.line)
    sources = tuple(_resolved(each, texts, tally) for each in row.sources)
    return replace(
        row,
        answer=trimmed["answer"],
        system=trimmed["system"],
        question_id=trimmed["question_id"],
        sources=sources,
    )


def _resolved(source: SourceText, texts: Mapping[str, Passage] | None, tally: Tally) -> SourceText:
    if source.text or not source.id:
        return source
    passage = None if texts is None else texts.get(source.id)
    if passage is None:
        tally.add(f"{source.kind}s without a text" + ("" if texts is None else " in --texts"))
        return source
    return replace(
        source, text=passage.text, title=passage.title or source.title, url=passage.url or source.url
    )


def _questions(
    rows: Sequence[AnswerRow], tallies: Mapping[str, Tally], topics: Mapping[str, Topic]
) -> dict[str, Topic]:
    """Return the questions, each with one text; what some rows lack is taken from others."""
    texts: dict[str, tuple[str, RowPlace]] = {}
    for row in rows:
        question = cast("str", row.question_id)
        text = (row.question or "").strip()
        if question in topics:
            texts[question] = (topics[question].text, row.place)
        elif text and _same(texts.setdefault(question, (text, row.place))[0]) != _same(text):
            raise BadFile(
                f"Question '{question}' has another text here than in {texts[question][1]}.",
                place=str(row.place),
                remedy="Give each question one text, or name the field of its id: --fields question_id=FIELD",
            )
    questions: dict[str, Topic] = {}
    for row in rows:
        question = cast("str", row.question_id)
        if question in texts and question not in topics and not (row.question or "").strip():
            tallies[row.place.file].add(
                "rows without the question's text, taken from another row", row.place.line
            )
        known = questions.get(question)
        try:
            if known is None:
                text = texts[question][0] if question in texts else ""
                own = topics.get(question) or Topic(question, text, conversation=row.conversation)
                tags = tuple(dict.fromkeys((*own.tags, *row.tags)))
                questions[question] = replace(own, tags=tags, reference=own.reference or row.reference)
            else:
                tags = tuple(dict.fromkeys((*known.tags, *row.tags)))
                if row.reference and known.reference and row.reference != known.reference:
                    tallies[row.place.file].add("other references than the first, left out", row.place.line)
                if tags != known.tags or (row.reference and not known.reference):
                    questions[question] = replace(
                        known, tags=tags, reference=known.reference or row.reference
                    )
        except BadRecord as error:
            raise BadFile(error.problem, place=str(row.place), remedy=error.remedy) from None
    return questions


def _once(rows: Sequence[AnswerRow], tallies: Mapping[str, Tally]) -> list[AnswerRow]:
    """Return each system's one answer to each question; the same twice counts once, two different ones are refused."""
    kept: dict[tuple[str | None, str | None], AnswerRow] = {}
    for row in rows:
        first = kept.setdefault((row.question_id, row.system), row)
        if first is row:
            continue
        if first.answer != row.answer:
            raise BadFile(
                f"System '{row.system}' has another answer to question '{row.question_id}' than in {first.place}.",
                place=str(row.place),
                remedy="Keep one of them, or name the field that tells them apart: --fields system=FIELD+FIELD",
            )
        tallies[row.place.file].add("the same answer again, kept once", row.place.line)
    return list(kept.values())


def item_id(question: str, text: str, sources: Sequence[SourceText], copy: int = 1) -> str:
    """Return an answer's id: it depends on what an assessor sees, and not on the system; copies are numbered."""
    seen = [
        question,
        text,
        *(part for each in sources for part in (each.id, each.text, each.title, each.url)),
    ]
    digest = blake2b("\x1f".join(seen).encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return f"a{digest}" if copy == 1 else f"a{digest}-{copy}"


def _with_items(rows: Iterable[AnswerRow]) -> Iterator[SystemAnswer]:
    copies: Counter[str] = Counter()
    for row in rows:
        question, text = cast("str", row.question_id), cast("str", row.answer)
        item = item_id(question, text, row.sources)
        copies[item] += 1
        answer = SystemAnswer(
            question,
            cast("str", row.system),
            item_id(question, text, row.sources, copies[item]),
            text,
            row.sources,
        )
        try:
            answer.passage  # noqa: B018 (refuses what can't be stored)
        except BadRecord as error:
            raise BadFile(error.problem, place=str(row.place), remedy=error.remedy) from None
        yield answer
