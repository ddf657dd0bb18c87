"""The votes between systems over all questions as arrays, brought up to date where a question's part has changed."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from duelpool.arrays import Bools, Floats, Ints
from duelpool.deciders.base import Parts
from duelpool.deciders.votes import AnswerVotes, OpenAnswers
from duelpool.records import Proposal
from duelpool.strategies import Strategy


@dataclass(frozen=True, slots=True)
class QuestionVotes:
    """What one question's part says of systems: votes between them, what may still be asked, who gave the same."""

    between: Mapping[tuple[str, str], tuple[int, float, float]]
    open_pairs: Mapping[tuple[str, str], OpenAnswers]  # by systems
    systems: tuple[str, ...]
    same: frozenset[tuple[str, str]]  # systems that gave the same answer
    asked: int
    planned: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, part: Strategy) -> "QuestionVotes":
        """Read a part."""
        votes = cast("AnswerVotes", part)
        return cls(
            {pair: (each.count, each.first, each.second) for pair, each in votes.between_systems().items()},
            {systems: each for each in votes.open_answers() for systems in each.about},
            votes.systems,
            votes.same_answers(),
            votes.asked,
            votes.planned(),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Standings:
    """All questions at one moment: a row a question, a column a pair of systems (i < j by name)."""

    topics: tuple[str, ...]
    systems: tuple[str, ...]
    i: Ints
    j: Ints
    first: Floats  # votes for i, by question and pair
    second: Floats
    open: Bools  # by question and pair
    votes: Ints  # of the two answers, by question and pair; of those that are open
    touched: Ints  # votes by question and system
    asked: Ints  # votes by question
    same: Bools  # by pair: the two gave the same answers wherever both answered
    questions: tuple[QuestionVotes, ...]
    place: Mapping[str, int] = field(default_factory=dict)  # of topics
    column: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def planned(self) -> dict[tuple[str, str], float]:
        """Return how many votes each two systems have in all, those that aren't given yet included."""
        found: dict[tuple[str, str], float] = {}
        for question in self.questions:
            for pair, count in question.planned.items():
                found[pair] = found.get(pair, 0.0) + count
        return found

    def columns_of(self, parts: Parts, topic: str, proposals: list[Proposal]) -> list[int]:
        """Return the pairs of systems that questions are about."""
        found = parts.look(
            topic, lambda part: [cast("AnswerVotes", part).systems_of(each.pair) for each in proposals]
        )
        return [self.column[pair] for pairs in found for pair in pairs if pair in self.column]


class StandingsCache:
    """Keeps what was read of each question, by its stamp; only questions that have changed are read again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[str, tuple[object, QuestionVotes]] = {}
        self._last: tuple[object, Standings] | None = None

    def now(self, parts: Parts) -> Standings:
        """Return the standings of all topics that count."""
        topics = sorted(parts.all_topics)
        stamps = tuple((topic, parts.stamp(topic)) for topic in topics)
        with self._lock:
            if self._last is not None and self._last[0] == stamps:
                return self._last[1]
            before = self._last[1] if self._last is not None else None
            known = dict(self._read)
        changed = [topic for topic, stamp in stamps if topic not in known or known[topic][0] != stamp]
        for topic, stamp in stamps:
            if topic in changed:
                known[topic] = (stamp, parts.look(topic, QuestionVotes.of))
        questions = tuple(known[topic][1] for topic in topics)
        standings = _standings(tuple(topics), questions, before, changed)
        with self._lock:
            self._read = {topic: known[topic] for topic in topics}
            self._last = (stamps, standings)
        return standings


def _standings(
    topics: tuple[str, ...],
    questions: tuple[QuestionVotes, ...],
    before: Standings | None,
    changed: list[str],
) -> Standings:
    systems = tuple(sorted({name for each in questions for name in each.systems}))
    if before is not None and before.systems == systems and before.topics == topics:
        first, second = before.first.copy(), before.second.copy()
        is_open, votes, touched = before.open.copy(), before.votes.copy(), before.touched.copy()
        column, place, i, j = before.column, before.place, before.i, before.j
        rows = [before.place[topic] for topic in changed]
    else:
        i, j = np.triu_indices(len(systems), 1)
        column = {
            (systems[a], systems[b]): at for at, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True))
        }
        place = {topic: at for at, topic in enumerate(topics)}
        shape = (len(topics), len(i))
        first, second, is_open = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        votes = np.zeros(shape, dtype=np.int64)
        touched = np.zeros((len(topics), len(systems)), dtype=np.int64)
        rows = list(range(len(topics)))
    for row in rows:
        _fill(questions[row], column, (first[row], second[row], is_open[row], votes[row]))
        touched[row] = 0
        met = [
            (column[pair], count) for pair, (count, _, _) in questions[row].between.items() if pair in column
        ]
        for at, count in met:
            touched[row, i[at]] += count
            touched[row, j[at]] += count
    return Standings(
        *(topics, systems, i, j, first, second, is_open, votes, touched),
        np.array([each.asked for each in questions], dtype=np.int64),
        _always_same(questions, column),
        questions,
        place,
        column,
    )


def _fill(
    question: QuestionVotes, column: Mapping[tuple[str, str], int], rows: tuple[Floats, Floats, Bools, Ints]
) -> None:
    first, second, is_open, votes = rows
    first[:], second[:], is_open[:], votes[:] = 0.0, 0.0, False, 0
    for pair, (_, won, lost) in question.between.items():
        if pair in column:
            first[column[pair]], second[column[pair]] = won, lost
    places = [column[pair] for pair in question.open_pairs]
    is_open[places] = True
    votes[places] = [each.votes for each in question.open_pairs.values()]


def _always_same(questions: tuple[QuestionVotes, ...], column: Mapping[tuple[str, str], int]) -> Bools:
    """Return which two systems gave the same answers wherever both answered: no vote can tell them apart."""
    same = np.zeros(len(column), dtype=np.bool_)
    suspects = {pair for each in questions for pair in each.same}
    for pair in suspects:
        same[column[pair]] = all(
            pair in each.same for each in questions if pair[0] in each.systems and pair[1] in each.systems
        )
    return same
