"""The input files of a campaign, as they were named or uploaded, read once."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from duelpool.errors import BadParameter
from duelpool.files import (
    Answers,
    Notice,
    Passages,
    Preferences,
    Qrels,
    Run,
    Topics,
    read_answers,
    read_passages,
    read_preferences,
    read_qrels,
    read_run,
    read_topics,
)
from duelpool.files.answers import parse_fields
from duelpool.files.collections import is_dataset
from duelpool.files.run_names import read_groups

Paced = Callable[[Sequence[str]], Iterable[str]]
"""Iterates over names, and may show the progress."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a campaign by kind; `tests` may also be "auto" or "none".

    `fields` maps the names in files of answers. With `pages`, items are the first results of a run as a whole.
    """

    runs: tuple[str, ...] = ()
    qrels: str | None = None
    prefs: str | None = None
    topics: str | None = None
    texts: str | None = None
    tests: str | None = None
    groups: str | None = None
    answers: tuple[str, ...] = ()
    fields: str = ""
    pages: bool = False

    @property
    def tests_file(self) -> str | None:
        """The file of test pairs, where one is named."""
        return None if self.tests in {None, "auto", "none"} else self.tests

    def __bool__(self) -> bool:
        return bool(self.runs or self.qrels or self.prefs or self.answers)

    @property
    def of_systems(self) -> bool:
        """Whether an item is what a system gave to a question: the goal is then an order of systems."""
        return bool(self.answers) or self.pages

    def of_one_kind(self) -> None:
        """Refuse answers beside files that answers don't go with."""
        others = {"runs": self.runs, "qrels": self.qrels, "preferences": self.prefs, "groups": self.groups}
        if self.answers and (given := [name for name, files in others.items() if files]):
            raise BadParameter(
                f"Answers make the pools, and there are {' and '.join(given)} beside them.",
                remedy="Give answers alone, with --topics for the questions and --texts for what they cite.",
            )
        if self.fields and not self.answers:
            raise BadParameter(
                "--fields maps the fields of answers, and there are none.", remedy="Give --answers FILE."
            )


@dataclass(frozen=True, slots=True)
class Inputs:
    """The contents of the files; `notices` says what was skipped or repaired in each."""

    files: Files
    runs: tuple[Run, ...] = ()
    qrels: Qrels | None = None
    preferences: Preferences | None = None
    topics: Topics | None = None
    texts: Passages | None = None
    groups: dict[str, str] | None = None
    answers: Answers | None = None
    notices: tuple[tuple[str, tuple[Notice, ...]], ...] = field(default=())


def read_files(files: Files, paced: Paced = iter) -> Inputs:
    """Read all files; the first that can't be read is refused with its line."""
    if not files:
        raise BadParameter("There are no files to pool.", remedy="Give runs, --answers, --qrels or --prefs.")
    files.of_one_kind()
    runs = tuple(read_run(path) for path in paced(files.runs))
    _refuse_equal_names(runs)
    qrels = read_qrels(files.qrels) if files.qrels else None
    preferences = read_preferences(files.prefs) if files.prefs else None
    texts = read_passages(files.texts, _pooled(files.texts, runs, qrels)) if files.texts else None
    topics = read_topics(files.topics) if files.topics else None
    groups = read_groups(files.groups) if files.groups else None
    notices: list[tuple[str, tuple[Notice, ...]]] = [
        (path, run.notices) for path, run in zip(files.runs, runs, strict=True)
    ]
    for path, read in (
        (files.qrels, qrels),
        (files.prefs, preferences),
        (files.texts, texts),
        (files.topics, topics),
    ):
        if path is not None and read is not None:
            notices.append((path, read.notices))
    if files.answers:
        return _with_answers(Inputs(files, topics=topics, texts=texts), notices)
    return Inputs(files, runs, qrels, preferences, topics, texts, groups, None, tuple(notices))


def _pooled(texts: str, runs: Sequence[Run], qrels: Qrels | None) -> set[str] | None:
    """Return the documents of runs and grades, where texts come from a dataset: all of its texts may be millions."""
    if not is_dataset(texts):
        return None
    frames = [run.frame for run in runs] + ([] if qrels is None else [qrels.frame])
    return {docno for frame in frames for docno in frame.get_column("docno").unique().to_list()} or None


def _with_answers(inputs: Inputs, notices: list[tuple[str, tuple[Notice, ...]]]) -> Inputs:
    """Return the inputs with answers: systems as runs, answers as texts, and their questions."""
    answers = read_answers(
        inputs.files.answers,
        parse_fields(inputs.files.fields),
        texts=None if inputs.texts is None else inputs.texts.by_id,
        topics=None if inputs.topics is None else inputs.topics.by_id,
    )
    return replace(
        inputs,
        runs=answers.runs,
        texts=answers.passages,
        topics=answers.topics,
        answers=answers,
        notices=(*answers.notices, *notices),
    )


def _refuse_equal_names(runs: Sequence[Run]) -> None:
    if repeated := [name for name, times in Counter(run.name for run in runs).items() if times > 1]:
        raise BadParameter(
            f"Two runs are called '{min(repeated)}'.",
            remedy="Runs are named after their files: rename one of them.",
        )
