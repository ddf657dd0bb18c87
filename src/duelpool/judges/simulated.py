"""Simulated assessors: win probabilities of several kinds, and people who err, tie and call items bad.

The place of an item in the truth is drawn by the seed, so neither its name nor its place in the pool tells how
good it is, and no strategy profits from the order of the items.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.errors import BadFile, BadParameter
from duelpool.judges.base import Dice, JudgeModel, SimulatedJudge
from duelpool.judges.truth import BORDA, TrueOrder, beaten, require_truth, rule_followed
from duelpool.records import Levels, Outcome
from duelpool.seeds import rng_for

REVERSED: Mapping[Outcome, Outcome] = {
    Outcome.LEFT: Outcome.RIGHT,
    Outcome.RIGHT: Outcome.LEFT,
    Outcome.DEFINITELY_LEFT: Outcome.DEFINITELY_RIGHT,
    Outcome.DEFINITELY_RIGHT: Outcome.DEFINITELY_LEFT,
    Outcome.LEFT_BAD: Outcome.RIGHT_BAD,
    Outcome.RIGHT_BAD: Outcome.LEFT_BAD,
}


def levels_by_score(items: tuple[str, ...], scores: Floats) -> Levels:
    """Return the items by descending score; scores that differ by rounding alone are equal."""
    rounded = np.round(scores, 9)
    order = sorted(range(len(items)), key=lambda at: (-rounded[at], items[at]))
    groups = groupby(order, key=lambda at: rounded[at])
    return Levels(tuple(tuple(items[at] for at in group) for _, group in groups))


MATRIX_AT_MOST = 1000
"""The items of a pool whose win probabilities are kept as a matrix."""

_ROWS_AT_ONCE = 64


class MatrixJudge:
    """Answers by a matrix of win probabilities; the truth is the order of that matrix, by Borda's or another rule.

    `ties` is the share of ties between two equals. By Davidson's model a tie weighs sqrt(p (1-p)) against a
    decision, so that unequal items tie more seldom.
    """

    def __init__(
        self, items: tuple[str, ...], wins: "Floats | WinsByRow", dice: Dice, *, ties: float = 0.0
    ) -> None:
        if not 0 <= ties < 1:
            raise BadParameter(f"'ties' is the share of ties between equals, from 0 to below 1, not {ties}.")
        self._at = {item: at for at, item in enumerate(items)}
        self._wins = wins
        self._dice = dice
        self._tie_weight = 2.0 * ties / (1.0 - ties)
        self._items = items
        self._orders: dict[str, TrueOrder] = {}

    @property
    def truth(self) -> Levels:
        """The items by the sum of their win probabilities."""
        return self.true_order(BORDA).levels

    def true_order(self, rule: str) -> TrueOrder:
        """Return the items by the sum of their win probabilities, or by how many others they beat."""
        require_truth(rule)
        if rule not in self._orders:
            scores = self._summed(lambda wins: wins) if rule == BORDA else self._summed(beaten)
            levels = levels_by_score(self._items, scores)
            self._orders[rule] = TrueOrder(
                levels, rule_followed(rule, levels, float(scores.max(initial=0.0)))
            )
        return self._orders[rule]

    def _summed(self, of: Callable[[Floats], Floats]) -> Floats:
        """Return the sum over each row of what a function makes of it, without the diagonal."""
        if isinstance(self._wins, WinsByRow):
            return self._wins.sums(of)
        values = of(self._wins)
        summed: Floats = values.sum(axis=1) - values.diagonal()
        return summed

    def win_chance(self, item: str, other: str) -> float:
        """Return the chance of a win and half that of a tie."""
        win = float(self._wins[self._at[item], self._at[other]])
        return 0.5 + self._decided(win) * (win - 0.5)

    def _decided(self, win: float) -> float:
        """Return the chance that a pair is decided: that there is no tie."""
        return 1.0 / (1.0 + self._tie_weight * math.sqrt(win * (1.0 - win)))

    def answer(self, topic: str, left: str, right: str, nth: int) -> Outcome:
        """Draw the answer; which item is shown on the left makes no difference to who wins."""
        first, second = (left, right) if left < right else (right, left)
        win = float(self._wins[self._at[first], self._at[second]])
        roll = self._dice.roll(f"{first}\x1f{second}\x1f{nth}")
        if self._tie_weight:
            decided = self._decided(win)
            if roll >= decided:
                return Outcome.TIE
            roll /= decided
        return Outcome.LEFT if (roll < win) == (left == first) else Outcome.RIGHT


class WinsByRow:
    """A matrix of win probabilities of a large pool: its rows are worked out when they are needed."""

    def __init__(self, size: int, rows: Callable[[slice], Floats]) -> None:
        self._size = size
        self._rows = rows

    def __getitem__(self, place: tuple[int, int]) -> float:
        """Return the chance that one item beats another."""
        return float(self._rows(slice(place[0], place[0] + 1))[0, place[1]])

    def sums(self, of: Callable[[Floats], Floats]) -> Floats:
        """Return the sum over each row of what a function makes of it, without the diagonal."""
        sums = np.empty(self._size)
        for start in range(0, self._size, _ROWS_AT_ONCE):
            some = slice(start, min(start + _ROWS_AT_ONCE, self._size))
            rows = of(self._rows(some))
            sums[some] = rows.sum(axis=1) - rows.diagonal(start)
        return sums


def win_matrix(size: int, rows: Callable[[slice], Floats]) -> "Floats | WinsByRow":
    """Return the matrix whose rows a function gives: whole, or row by row where it would take much memory."""
    return rows(slice(0, size)) if size <= MATRIX_AT_MOST else WinsByRow(size, rows)


class OrderJudge:
    """Never errs: the item of the higher level wins, and two of one level tie."""

    def __init__(self, truth: Levels) -> None:
        self._level = {item: at for at, level in enumerate(truth.levels) for item in level}
        self._truth = truth

    @property
    def truth(self) -> Levels:
        """The order that it answers by."""
        return self._truth

    def true_order(self, rule: str) -> TrueOrder:
        """Return the order that it answers by: it is the same by every rule."""
        require_truth(rule)
        others = len(self._level) - 1
        alone = len(self._truth.best) == 1
        return TrueOrder(self._truth, rule_followed(rule, self._truth, others if alone else 0.0))

    def win_chance(self, item: str, other: str) -> float:
        """Return 1 for the item of the higher level, and 1/2 for two of one level."""
        difference = self._level[other] - self._level[item]
        return 0.5 if difference == 0 else float(difference > 0)

    def answer(self, topic: str, left: str, right: str, nth: int) -> Outcome:
        """Return the better item, or a tie."""
        difference = self._level[left] - self._level[right]
        if difference == 0:
            return Outcome.TIE
        return Outcome.LEFT if difference < 0 else Outcome.RIGHT


class BadCaller:
    """Answers as another judge does, but calls certain items bad wherever they appear."""

    def __init__(self, judge: SimulatedJudge, bad: frozenset[str]) -> None:
        self._judge = judge
        self._bad = bad

    @property
    def truth(self) -> Levels:
        """The other judge's truth."""
        return self._judge.truth

    def true_order(self, rule: str) -> TrueOrder:
        """Return the other judge's truth."""
        return self._judge.true_order(rule)

    def win_chance(self, item: str, other: str) -> float:
        """Return the other judge's chance, unless one of the items is bad: two bad ones are even."""
        bad, other_bad = item in self._bad, other in self._bad
        if bad or other_bad:
            return 0.5 * (1.0 + other_bad - bad)
        return self._judge.win_chance(item, other)

    def answer(self, topic: str, left: str, right: str, nth: int) -> Outcome:
        """Return which item is bad, or the other judge's answer when neither is."""
        match (left in self._bad, right in self._bad):
            case (True, True):
                return Outcome.BOTH_BAD
            case (True, False):
                return Outcome.LEFT_BAD
            case (False, True):
                return Outcome.RIGHT_BAD
            case _:
                return self._judge.answer(topic, left, right, nth)


class Fallible:
    """Answers as another judge does, but sometimes reversed or at random."""

    def __init__(self, judge: SimulatedJudge, dice: Dice, *, error: float, guess: float) -> None:
        self._judge = judge
        self._dice = dice
        self._error = error
        self._guess = guess

    @property
    def truth(self) -> Levels:
        """The other judge's truth."""
        return self._judge.truth

    def true_order(self, rule: str) -> TrueOrder:
        """Return the other judge's truth: the errors are the people's, not the items'."""
        return self._judge.true_order(rule)

    def win_chance(self, item: str, other: str) -> float:
        """Return the chance in the answers that people give, errors and guesses among them."""
        margin = self._judge.win_chance(item, other) - 0.5
        return 0.5 + (1.0 - self._guess - 2.0 * self._error) * margin

    def answer(self, topic: str, left: str, right: str, nth: int) -> Outcome:
        """Return the other judge's answer, that answer reversed, or a guess."""
        first, second = (left, right) if left < right else (right, left)
        name = f"{first}\x1f{second}\x1f{nth}"
        roll = self._dice.roll(name)
        if roll < self._guess:
            heads = self._dice.roll(f"guess\x1f{name}") < 0.5
            return Outcome.LEFT if heads == (left == first) else Outcome.RIGHT
        answer = self._judge.answer(topic, left, right, nth)
        return REVERSED.get(answer, answer) if roll < self._guess + self._error else answer


@dataclass(frozen=True, slots=True)
class Assessors:
    """The errors, guesses and Bad votes that people add to a model of the items.

    `error` is the share of answers that are reversed, `guess` the share of coin flips, `bad` the share of the
    pool, from the bottom of the truth, that is called bad wherever it appears.
    """

    error: float = 0.0
    guess: float = 0.0
    bad: float = 0.0

    def __post_init__(self) -> None:
        for name in ("error", "guess", "bad"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadParameter(f"'{name}' is a share from 0 to 1, not {getattr(self, name)}.")
        if self.error + self.guess > 1:
            raise BadParameter("'error' and 'guess' are shares of the same answers, and their sum exceeds 1.")

    def applied_to(self, judge: SimulatedJudge, topic: str, seed: int) -> SimulatedJudge:
        """Return a judge that answers as these people would."""
        if self.bad:
            order = [item for level in judge.truth.levels for item in level]
            good = len(order) - int(self.bad * len(order))
            judge = BadCaller(judge, frozenset(order[good:]))
        if self.error or self.guess:
            dice = Dice(seed, topic, "assessors")
            judge = Fallible(judge, dice, error=self.error, guess=self.guess)
        return judge


@dataclass(frozen=True, slots=True)
class PeopleModel:
    """A model of the items, judged by people who err, guess and call items bad."""

    model: JudgeModel
    assessors: Assessors

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        """The model's own pools."""
        return self.model.pools

    @property
    def size(self) -> int | None:
        """The model's own size."""
        return self.model.size

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the topic's judge with the people's errors, guesses and Bad votes."""
        return self.assessors.applied_to(self.model.judge(topic, items, seed), topic, seed)


class AnyPool:
    """A model that can judge any pool."""

    __slots__ = ()

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        """No pools of its own."""
        return {}

    @property
    def size(self) -> int | None:
        """Any number of items."""
        return None


@dataclass(frozen=True, slots=True)
class CaseA(AnyPool):
    """A total order; the better item of any pair wins with probability q."""

    q: float = 0.75
    ties: float = 0.0

    def __post_init__(self) -> None:
        require_win_probability("q", self.q)

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge of a random total order of the items."""
        place = hidden_places(len(items), topic, seed)

        def rows(some: slice) -> Floats:
            wins: Floats = np.where(place[some, None] < place[None, :], self.q, 1.0 - self.q)
            wins[place[some, None] == place[None, :]] = 0.5
            return wins

        wins = win_matrix(len(items), rows)
        return MatrixJudge(items, wins, Dice(seed, topic, "answers"), ties=self.ties)


@dataclass(frozen=True, slots=True)
class CaseB(AnyPool):
    """Two items tie for the best and beat each other item with probability q; the others all tie."""

    q: float = 0.75
    ties: float = 0.0

    def __post_init__(self) -> None:
        require_win_probability("q", self.q)

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge for two random best items."""
        best = (hidden_places(len(items), topic, seed) < 2).astype(np.float64)
        wins = win_matrix(len(items), lambda some: 0.5 + (best[some, None] - best[None, :]) * (self.q - 0.5))
        return MatrixJudge(items, wins, Dice(seed, topic, "answers"), ties=self.ties)


@dataclass(frozen=True, slots=True)
class BradleyTerry(AnyPool):
    """Normally distributed strengths; the log-odds of a win are the difference of the two strengths."""

    sd: float = 1.0
    ties: float = 0.0

    def __post_init__(self) -> None:
        require_not_negative("sd", self.sd)

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge for freshly drawn strengths."""
        strengths = rng_for(seed, topic, "strengths").normal(0.0, self.sd, len(items))
        return MatrixJudge(items, bradley_terry_wins(strengths), Dice(seed, topic, "answers"), ties=self.ties)


@dataclass(frozen=True, slots=True)
class Thurstone(AnyPool):
    """Normal strengths, each seen with standard normal noise of its own (Thurstone's case V)."""

    sd: float = 1.0
    ties: float = 0.0

    def __post_init__(self) -> None:
        require_not_negative("sd", self.sd)

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge for freshly drawn strengths."""
        from scipy.special import ndtr

        strengths = rng_for(seed, topic, "strengths").normal(0.0, self.sd, len(items))
        wins: Floats = ndtr((strengths[:, None] - strengths[None, :]) / math.sqrt(2.0))
        return MatrixJudge(items, wins, Dice(seed, topic, "answers"), ties=self.ties)


@dataclass(frozen=True, slots=True)
class ExactOrder(AnyPool):
    """No noise at all: a total order, or with `levels` that many classes of equally good items that tie."""

    levels: int = 0

    def __post_init__(self) -> None:
        require_not_negative("levels", self.levels)

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge of a random order of the items."""
        place = hidden_places(len(items), topic, seed)
        level = place * self.levels // max(1, len(items)) if self.levels else place
        return OrderJudge(levels_by_score(items, -level.astype(np.float64)))


@dataclass(frozen=True, slots=True)
class MatrixFile:
    """Win probabilities from a file: one row a line, row i column j the chance that item i beats item j."""

    file: str
    ties: float = 0.0

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        """No pools of its own: rows are assigned to a pool's items at random."""
        return {}

    @property
    def size(self) -> int | None:
        """The number of rows."""
        return len(read_matrix(self.file))

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge of a pool of as many items as the matrix has rows."""
        wins = read_matrix(self.file)
        if len(items) != len(wins):
            raise BadParameter(
                f"The matrix has {len(wins)} rows and the pool {len(items)} items.",
                place=self.file,
                remedy=f"Give a pool of {len(wins)} items, or leave the number of items out.",
            )
        place = hidden_places(len(items), topic, seed)
        return MatrixJudge(items, wins[np.ix_(place, place)], Dice(seed, topic, "answers"), ties=self.ties)


@lru_cache(maxsize=4)
def read_matrix(file: str) -> Floats:
    """Read a square matrix of win probabilities, blanks or commas between the numbers."""
    rows: list[list[float]] = []
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile.at(file, None, f"It can't be read: {error}.", "Give a text file of numbers.") from error
    for number, line in enumerate(lines, start=1):
        try:
            row = [float(word) for word in line.replace(",", " ").split()]
        except ValueError as error:
            raise BadFile.at(file, number, f"Not a row of numbers: {error}.") from error
        if row and not all(0 <= win <= 1 for win in row):
            raise BadFile.at(file, number, "A win probability lies between 0 and 1.")
        if row:
            rows.append(row)
    if not rows or any(len(row) != len(rows) for row in rows):
        widths = sorted({len(row) for row in rows})
        problem = f"A matrix has as many columns as rows; this one has {len(rows)} rows and {widths} columns."
        raise BadFile.at(file, None, problem)
    wins = np.array(rows)
    sums = wins + wins.T
    np.fill_diagonal(sums, 1.0)
    if len(off := np.argwhere(np.abs(sums - 1.0) > 1e-6)):
        i, j = (int(at) for at in off[0])
        problem = f"Rows {i + 1} and {j + 1}: the chances of winning and losing don't add up to 1."
        raise BadFile.at(file, None, problem, f"They are {wins[i, j]:g} and {wins[j, i]:g}.")
    return wins


def hidden_places(size: int, topic: str, seed: int) -> Ints:
    """Return each item's place in the truth, 0 the best: a permutation fixed by the seed."""
    return rng_for(seed, topic, "hidden places").permutation(size)


def odds_of_wins(strengths: Floats) -> Floats:
    """Return the Bradley-Terry win probabilities of these strengths."""
    from scipy.special import expit

    wins: Floats = expit(strengths[:, None] - strengths[None, :])
    return wins


def bradley_terry_wins(strengths: Floats) -> "Floats | WinsByRow":
    """Return the Bradley-Terry win probabilities of these strengths, row by row for a large pool."""
    from scipy.special import expit

    return win_matrix(
        len(strengths), lambda some: np.asarray(expit(strengths[some, None] - strengths[None, :]))
    )


def with_even_diagonal(wins: Floats) -> Floats:
    """Return the matrix with .5 on its diagonal."""
    np.fill_diagonal(wins, 0.5)
    return wins


def require_win_probability(name: str, value: float) -> None:
    """Refuse a chance of the better item that isn't from .5 to 1."""
    if not 0.5 <= value <= 1:
        raise BadParameter(f"'{name}' is the better item's chance to win, from .5 to 1, not {value}.")


def require_not_negative(name: str, value: float) -> None:
    """Refuse a value that isn't a finite number from 0 on."""
    if not (math.isfinite(value) and value >= 0):
        raise BadParameter(f"'{name}' is a number from 0 on, not {value}.")
