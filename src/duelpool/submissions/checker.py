"""Checks runs by the rules of the field, line by line: all that is wrong, not the first thing alone."""

import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from duelpool.errors import BadFile, BadParameter
from duelpool.files.source import Readable, open_source, stem
from duelpool.frames import counted

RULES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "unreadable": ("error", "The file can't be read as text."),
        "fields": ("error", "A line has six fields: topic Q0 docno rank score tag."),
        "tag": ("error", "The tag is the same on every line."),
        "run name": (
            "error",
            "A tag has letters, digits, dots, underscores and hyphens, and isn't too long.",
        ),
        "same tag": ("error", "No two runs have the same tag."),
        "duplicate": ("error", "A document is listed once in a topic."),
        "score": ("error", "A score is a finite number."),
        "rank": ("error", "A rank is a whole number from 0 on."),
        "rank against score": ("error", "A later rank has no higher score; tools order by score."),
        "unknown topic": ("error", "Every topic is one of the evaluation."),
        "missing topic": ("error", "Every topic of the evaluation has a document."),
        "too deep": ("error", "A topic has at most as many documents as are allowed."),
        "docno": ("error", "A document's id has the form of the collection."),
        "too few": ("warning", "A topic has as many documents as are expected."),
        "ties": ("warning", "Scores differ within a topic; tools order ties by docno, not by rank."),
        "rank gaps": ("warning", "Ranks within a topic count up by one."),
        "scattered topic": ("warning", "The lines of a topic are together."),
        "second field": ("warning", "The second field is Q0."),
        "blank line": ("warning", "There are no blank lines."),
        "file name": ("warning", "The file is called as the tag."),
    }
)
"""Every rule by name: whether breaking it is an error, and the rule in words."""

_TAG = re.compile(r"[A-Za-z0-9._-]+")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class SubmissionRules:
    """What an evaluation asks of a run; an empty set of topics, and None, ask nothing."""

    topics: frozenset[str] = frozenset()
    depth: int | None = 1000
    at_least: int | None = None
    tag_length: int = 20
    docno: str | None = None

    def __post_init__(self) -> None:
        if self.docno is not None:
            try:
                re.compile(self.docno)
            except re.error as error:
                raise BadParameter(f"The pattern '{self.docno}' can't be read ({error}).") from None


@dataclass(frozen=True, slots=True)
class RunFinding:
    """A rule that a run breaks: how often, the first lines where it does (0: no line), and an example."""

    rule: str
    count: int
    lines: tuple[int, ...]
    example: str

    @property
    def level(self) -> str:
        """Whether it is an error or a warning."""
        return RULES[self.rule][0]

    @property
    def where(self) -> str:
        """The first lines, in words."""
        listed = [str(line) for line in self.lines if line]
        if not listed:
            return ""
        return f"line{'s' if len(listed) > 1 else ''} {', '.join(listed)}{', ...' if self.count > len(listed) else ''}"


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """A run, its tag, how many lines and topics it has, and what is wrong with it."""

    file: str
    tag: str
    lines: int
    topics: int
    findings: tuple[RunFinding, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether it has no errors; warnings are allowed."""
        return not any(each.level == "error" for each in self.findings)


@dataclass(slots=True)
class _Findings:
    """Findings while a run is read: counts, and the first lines and examples of each."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[int]] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, rule: str, line: int, example: str) -> None:
        self.counts[rule] += 1
        known = self.lines.setdefault(rule, [])
        if len(known) < _SHOWN:
            known.append(line)
        self.examples.setdefault(rule, example)

    def listed(self) -> tuple[RunFinding, ...]:
        return tuple(
            RunFinding(rule, self.counts[rule], tuple(self.lines[rule]), self.examples[rule])
            for rule in RULES
            if self.counts[rule]
        )


@dataclass(slots=True)
class _TopicRows:
    """What was read of one topic."""

    documents: set[str] = field(default_factory=set)
    rows: list[tuple[int, int, float]] = field(default_factory=list)  # line, rank, score
    together: bool = True


def check_runs(paths: Iterable[Readable], rules: SubmissionRules | None = None) -> list[CheckedRun]:
    """Check each run, and that no two have the same tag."""
    checked = [check_run(path, rules or SubmissionRules()) for path in paths]
    tags = Counter(each.tag for each in checked if each.tag)
    return [_with_same_tag(each, checked) if each.tag and tags[each.tag] > 1 else each for each in checked]


def _with_same_tag(run: CheckedRun, all_runs: Sequence[CheckedRun]) -> CheckedRun:
    others = [each.file for each in all_runs if each.tag == run.tag and each is not run]
    finding = RunFinding("same tag", 1, (), f"'{run.tag}' is the tag of {', '.join(others)} too")
    order = list(RULES)
    findings = tuple(sorted((*run.findings, finding), key=lambda each: order.index(each.rule)))
    return CheckedRun(run.file, run.tag, run.lines, run.topics, findings)


def check_run(path: Readable, rules: SubmissionRules) -> CheckedRun:
    """Check one run; a file that isn't there is refused, all else is a finding."""
    found = _Findings()
    topics: dict[str, _TopicRows] = {}
    tag, count, last = "", 0, ""
    described = False
    name = path.name if hasattr(path, "data") else os.fspath(path)  # type: ignore[union-attr]
    pattern = re.compile(rules.docno) if rules.docno else None
    try:
        with open_source(path) as source:
            name = source.name
            for count, raw in enumerate(source.lines(), 1):
                described = _in_metadata(raw, described)
                fields = None if described else _fields(raw, count, found)
                if fields is None:
                    continue
                topic, second, docno, rank, score, own = fields
                if not tag:
                    tag = own
                elif own != tag:
                    found.add("tag", count, f"'{own}' after '{tag}'")
                if second != "Q0":
                    found.add("second field", count, f"'{second}'")
                if pattern is not None and not pattern.fullmatch(docno):
                    found.add("docno", count, f"'{docno}'")
                held = topics.setdefault(topic, _TopicRows())
                if topic != last and held.documents and held.together:
                    held.together = False
                    found.add("scattered topic", count, f"topic '{topic}' begins again")
                last = topic
                if docno in held.documents:
                    found.add("duplicate", count, f"'{docno}' in topic '{topic}'")
                held.documents.add(docno)
                _numbers(held, count, rank, score, found)
    except BadFile as error:
        if "no such file" in error.problem:
            raise
        found.add("unreadable", 0, error.problem)
        return CheckedRun(name, tag, count, len(topics), found.listed())
    _name(name, tag, rules, found)
    _whole(topics, rules, found)
    return CheckedRun(name, tag, count, len(topics), found.listed())


def _in_metadata(raw: bytes, before: bool) -> bool:
    """Whether a line belongs to the block of ir_metadata, whose lines begin with '#'."""
    if not raw.startswith(b"#"):
        return False
    return before or raw.strip().startswith(b"# ir_metadata.start")


def _fields(raw: bytes, line: int, found: _Findings) -> list[str] | None:
    try:
        fields = raw.decode().split()
    except UnicodeDecodeError:
        found.add("fields", line, "the line is not UTF-8")
        return None
    if not fields:
        found.add("blank line", line, "")
        return None
    if len(fields) != 6:
        found.add("fields", line, f"{counted(len(fields), 'field')}: {' '.join(fields)[:60]}")
        return None
    return fields


def _numbers(held: _TopicRows, line: int, rank: str, score: str, found: _Findings) -> None:
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        found.add("score", line, f"'{score}'")
    if not (rank.isascii() and rank.isdigit()):
        found.add("rank", line, f"'{rank}'")
    elif math.isfinite(value):
        held.rows.append((line, int(rank[:18]), value))


def _name(file: str, tag: str, rules: SubmissionRules, found: _Findings) -> None:
    if not tag:
        return
    if not _TAG.fullmatch(tag) or len(tag) > rules.tag_length:
        found.add("run name", 0, f"'{tag}' ({counted(len(tag), 'character')}, at most {rules.tag_length})")
    if file != "standard input" and tag not in (stem(file), os.path.basename(file)):  # noqa: PTH119
        found.add("file name", 0, f"the file is '{os.path.basename(file)}', the tag '{tag}'")  # noqa: PTH119


def _whole(topics: Mapping[str, _TopicRows], rules: SubmissionRules, found: _Findings) -> None:
    """Check what only a whole topic, or all of them, can show."""
    for topic, held in topics.items():
        if rules.topics and topic not in rules.topics:
            found.add("unknown topic", 0, f"'{topic}'")
        size = len(held.documents)
        if rules.depth is not None and size > rules.depth:
            found.add(
                "too deep", 0, f"{counted(size, 'document')} in topic '{topic}', at most {rules.depth:,}"
            )
        if rules.at_least is not None and size < rules.at_least:
            found.add(
                "too few", 0, f"{counted(size, 'document')} in topic '{topic}', expected {rules.at_least:,}"
            )
        _order(topic, held, found)
    for topic in sorted(rules.topics - topics.keys()):
        found.add("missing topic", 0, f"'{topic}'")


def _order(topic: str, held: _TopicRows, found: _Findings) -> None:
    by_rank = sorted(held.rows, key=lambda row: row[1])
    ties = 0
    for (_, rank, score), (line, next_rank, next_score) in itertools.pairwise(by_rank):
        if next_score > score and next_rank > rank:
            found.add(
                "rank against score",
                line,
                f"topic '{topic}', rank {next_rank}: {next_score:g} after {score:g}",
            )
        if next_rank != rank + 1:
            found.add("rank gaps", line, f"topic '{topic}': rank {next_rank} after {rank}")
        ties += next_score == score
    if ties:
        found.add("ties", 0, f"{counted(ties, 'equal score')} in topic '{topic}'")
