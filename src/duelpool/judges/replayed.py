"""Judges made from real data: recorded preferences resampled, and graded items compared with noise."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from gzip import open as gzip_open
from pathlib import Path
from typing import TypeAlias

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadFile, BadParameter, known_names
from duelpool.judges.base import Dice, SimulatedJudge
from duelpool.judges.simulated import MatrixJudge, odds_of_wins, require_win_probability
from duelpool.records import Judgment, Pair, pair_of

ANSWERS = ("raw", "smoothed", "fitted")
SMOOTHING = 2.0  # how many judgments the fitted probability is worth when answers are smoothed
STRENGTH_SD = (
    1.5  # the fit's prior spread of strengths; it keeps the strength of items that never lost finite
)

Pools: TypeAlias = Mapping[str, tuple[str, ...]]


def win_counts(items: tuple[str, ...], judgments: Iterable[Judgment]) -> Floats:
    """Return how often each item won against each other; a tie is half a win for both."""
    at = {item: place for place, item in enumerate(items)}
    counts = np.zeros((len(items), len(items)))
    for judgment in judgments:
        if judgment.right is None or not judgment.effect.usable:
            continue
        left, right = at[judgment.left], at[judgment.right]
        counts[left, right] += judgment.effect.left
        counts[right, left] += judgment.effect.right
    return counts


def fitted_strengths(counts: Floats, sd: float = STRENGTH_SD) -> Floats:
    """Return the Bradley-Terry strengths of greatest posterior density under a normal prior."""
    games = counts + counts.T
    won = counts.sum(axis=1)
    precision = 1.0 / sd**2
    strengths = np.zeros(len(counts))
    for _ in range(50):  # Newton's method on a strictly concave posterior: a handful of steps is enough
        wins = odds_of_wins(strengths)
        gradient = won - (games * wins).sum(axis=1) - precision * strengths
        weights = games * wins * (1.0 - wins)
        hessian = np.diag(weights.sum(axis=1) + precision) - weights
        step = np.linalg.solve(hessian, gradient)
        largest = float(np.abs(step).max(initial=0.0))
        strengths += step / max(
            1.0, largest / 2.0
        )  # long steps are cut, so that the first ones don't overshoot
        if largest < 1e-10:
            break
    return strengths


def replayed_wins(counts: Floats, answers: str) -> Floats:
    """Return the win probabilities of a replay.

    raw: the pair's real judgments, and the fit for pairs without a judgment; smoothed: the real judgments
    shrunk to the fit, which weighs as much as two of them; fitted: the fit alone.
    """
    fit = odds_of_wins(fitted_strengths(counts))
    games = counts + counts.T
    match answers:
        case "raw":
            wins = np.divide(counts, games, out=fit.copy(), where=games > 0)
        case "smoothed":
            wins = (counts + SMOOTHING * fit) / (games + SMOOTHING)
        case "fitted":
            wins = fit
        case _:
            raise BadParameter(f"A replay can't answer '{answers}'.", remedy=known_names(answers, ANSWERS))
    np.fill_diagonal(wins, 0.5)
    return wins


@dataclass(frozen=True, slots=True)
class Replay:
    """Draws answers from a file of real preferences; the truth is the order of the resulting matrix."""

    file: str
    answers: str = "raw"
    min_items: int = 2
    ties: float = 0.0

    def __post_init__(self) -> None:
        if self.answers not in ANSWERS:
            replayed_wins(np.zeros((0, 0)), self.answers)

    @property
    def pools(self) -> Pools:
        """The file's topics of at least `min_items` items."""
        recorded = {topic: items for topic, (items, _) in _recorded(self.file).items()}
        pools = {topic: items for topic, items in recorded.items() if len(items) >= self.min_items}
        return require_pools(pools, self.file, self.min_items)

    @property
    def size(self) -> int | None:
        """As many items as each topic has."""
        return None

    def judged_pairs(self, topic: str) -> frozenset[Pair]:
        """Return the pairs of a topic that the file has a judgment of; the fit answers the others."""
        items, counts = _recorded(self.file)[topic]
        return frozenset(pair_of(items[first], items[second]) for first, second in np.argwhere(counts > 0))

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge of one of the file's topics."""
        known, wins = _replayed(self.file, self.answers, topic)
        if known != items:
            at = {item: place for place, item in enumerate(known)}
            if strays := [item for item in items if item not in at]:
                raise BadParameter(
                    f"The file has no judgment of '{strays[0]}' in topic {topic}.", place=self.file
                )
            chosen = [at[item] for item in items]
            wins = wins[np.ix_(chosen, chosen)]
        return MatrixJudge(items, wins, Dice(seed, topic, "answers"), ties=self.ties)


@dataclass(frozen=True, slots=True)
class Graded:
    """Prefers the higher grade of a qrels file with probability q, and flips a coin between equal grades."""

    file: str
    q: float = 0.75
    min_grade: float = 1.0
    min_items: int = 2
    ties: float = 0.0

    def __post_init__(self) -> None:
        require_win_probability("q", self.q)

    @property
    def pools(self) -> Pools:
        """The file's topics with at least `min_items` items of at least `min_grade`."""
        pools = {}
        for topic, grades in _graded(self.file).items():
            items = tuple(item for item, grade in grades.items() if grade >= self.min_grade)
            if len(items) >= self.min_items:
                pools[topic] = items
        return require_pools(pools, self.file, self.min_items)

    @property
    def size(self) -> int | None:
        """As many items as each topic has."""
        return None

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge of one of the file's topics."""
        grades = _graded(self.file).get(topic, {})
        if strays := [item for item in items if item not in grades]:
            raise BadParameter(f"'{strays[0]}' has no grade in topic {topic}.", place=self.file)
        grade = np.array([grades[item] for item in items])
        wins = 0.5 + np.sign(grade[:, None] - grade[None, :]) * (self.q - 0.5)
        return MatrixJudge(items, wins, Dice(seed, topic, "answers"), ties=self.ties)


def require_pools(pools: Pools, file: str, min_items: int) -> Pools:
    """Refuse a file without a topic of enough items."""
    if not pools:
        problem = f"No topic has {min_items} items or more."
        raise BadFile.at(file, None, problem, "Ask for fewer with min_items.")
    return pools


def _rows(file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the file's lines as number and words, without the blank ones."""
    path = Path(file)
    try:
        opened = gzip_open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                if words := line.split():
                    yield number, words
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise BadFile.at(file, None, f"It can't be read: {error}.") from error


@lru_cache(maxsize=4)
def _recorded(file: str) -> dict[str, tuple[tuple[str, ...], Floats]]:
    """Return each topic's items and win counts from lines `topic a b winner` or `topic winner loser`."""
    votes: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for number, words in _rows(file):
        match words:
            case [topic, a, b, winner] if winner in (a, b) and a != b:
                votes[topic].append((winner, b if winner == a else a))
            case [topic, winner, loser] if winner != loser:
                votes[topic].append((winner, loser))
            case _:
                remedy = "Give lines of `topic a b winner` or `topic winner loser`."
                raise BadFile.at(file, number, "Not a preference between two items.", remedy)
    recorded = {}
    for topic, decided in votes.items():
        items = tuple(sorted({item for vote in decided for item in vote}))
        at = {item: place for place, item in enumerate(items)}
        counts = np.zeros((len(items), len(items)))
        for winner, loser in decided:
            counts[at[winner], at[loser]] += 1.0
        recorded[topic] = (items, counts)
    return recorded


@lru_cache(maxsize=1024)
def _replayed(file: str, answers: str, topic: str) -> tuple[tuple[str, ...], Floats]:
    recorded = _recorded(file)
    if topic not in recorded:
        raise BadParameter(f"The file has no topic {topic}.", place=file)
    items, counts = recorded[topic]
    return items, replayed_wins(counts, answers)


@lru_cache(maxsize=4)
def _graded(file: str) -> dict[str, dict[str, float]]:
    """Return each topic's grades from lines `topic iteration item grade`; of several grades the highest counts."""
    grades: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for number, words in _rows(file):
        try:
            topic, _, item, grade = words
            grades[topic][item] = max(float(grade), grades[topic].get(item, float("-inf")))
        except ValueError as error:
            raise BadFile.at(file, number, "Not a line of qrels.", "Give `topic 0 item grade`.") from error
    return dict(grades)
