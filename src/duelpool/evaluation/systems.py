"""The leaderboard of systems: win rates, strengths and ranks from votes between their answers, in words first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from duelpool.arrays import Bools, Floats
from duelpool.comparison import kendall_tau
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import SystemVote
from duelpool.frames import Tabular, counted
from duelpool.preferences.contests import ELO, Contest, VoteTable, fit_contest
from duelpool.records import TieModel
from duelpool.report import Table, html_text
from duelpool.shares import clustered_share

Over: TypeAlias = Literal["questions", "votes"]
PlannedVotes: TypeAlias = Mapping[tuple[str, str], float] | None
"""How many votes a campaign has in all for each two systems, those that aren't given yet included; None: no plan."""
OVERS: tuple[Over, ...] = ("questions", "votes")
AVERAGE = 1000.0
LEVEL = 0.5  # points of Elo below which systems are level: they are shown without decimals
FEWEST_VOTES = 20  # below these nothing is said of how many would settle a difference


@dataclass(frozen=True, slots=True)
class BoardOptions:
    """How a leaderboard of systems is worked out.

    `over`: whether intervals speak of questions like these (`questions`), or of more votes on these very questions
    (`votes`). `prior` is a number of drawn games for each system; None gives one only where a system lost or won all.
    `planned` is how many votes the campaign has in all for each two systems, by which sooner is settled; None: no plan.
    """

    ties: TieModel = "halves"
    over: Over = "questions"
    prior: float | None = None
    level: float = 0.95
    seed: int = 0
    planned: PlannedVotes = None

    def __post_init__(self) -> None:
        if self.over not in OVERS:
            raise UnknownName("kind of interval", self.over, OVERS)


USUAL_BOARD = BoardOptions()


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system on a leaderboard; `low` and `high` are the ends of the strength's interval.

    `elo` is the strength on the scale on which 1000 is the average and 400 points are odds of ten to one;
    `beats_average` the share of votes that the system would get against an average one.
    """

    system: str
    votes: int
    questions: int
    win_rate: float | None
    strength: float
    low: float
    high: float
    first_rank: int
    last_rank: int
    elo: float
    elo_low: float
    elo_high: float
    beats_average: float
    beats_average_low: float
    beats_average_high: float

    @property
    def ranks(self) -> str:
        """The ranks that the system may have, as "2" or "1-3"."""
        return str(self.first_rank) + (f"-{self.last_rank}" if self.last_rank != self.first_rank else "")


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two systems, the stronger first: their votes, the first one's share of them, and the share by the strengths."""

    first: str
    second: str
    votes: int
    questions: int
    share: float | None
    share_low: float | None
    share_high: float | None
    expected: float
    expected_low: float
    expected_high: float
    settled: bool

    def __str__(self) -> str:
        if not self.votes or self.share is None:
            shown = _percent(self.expected, self.expected_low, self.expected_high)
            return (
                f"{self.first} and {self.second} have not met; by their votes against others, {self.first} would beat "
                f"{self.second} in {shown}; {'settled' if self.settled else 'not settled'}."
            )
        first, second, share, low, high = self.first, self.second, self.share, self.share_low, self.share_high
        if share < 0.5:
            first, second, share = second, first, 1 - share
            low, high = (None if end is None else 1 - end for end in (high, low))
        verb = "is level with" if round(share * 100) == 50 else "beats"
        over = f" over {_count(self.questions, 'question')}" if self.questions else ""
        ending = "settled" if self.settled else "not settled"
        if first != self.first:
            ending = f"all votes together put {self.first} first, {ending}"
        elif self.settled and low is not None and low <= 0.5:
            ending = "settled by all votes together"
        shown = f"{_percent(share, low, high)} of {_count(self.votes, 'vote')}{over}"
        return f"{first} {verb} {second} in {shown}; {ending}."


def _percent(share: float, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" ({100 * low:.0f} to {100 * high:.0f})"
    return f"{100 * share:.0f} %{ends}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SystemBoard(Tabular):
    """A leaderboard of systems, the strongest first."""

    rows: tuple[SystemRow, ...]
    contest: Contest
    options: BoardOptions
    votes: int
    questions: int
    criterion: str = "overall"
    judges: str = "all"  # "people", "models", or both
    same_answers: int = 0  # ties of the same answers, which no judge was asked about
    without_votes: tuple[str, ...] = ()  # systems that have no place yet
    _table: VoteTable = field(repr=False, default_factory=lambda: VoteTable.of([]))

    def __repr__(self) -> str:
        return f"SystemBoard({counted(len(self.rows), 'system')}, {counted(self.votes, 'vote')}: {self.headline})"

    def _repr_html_(self) -> str:
        return html_text(self.table(), [self.headline, *self.notes()])

    def to_polars(self) -> pl.DataFrame:
        """Return a row a system, the strongest first."""
        return pl.DataFrame(self.as_rows())

    @property
    def order(self) -> tuple[str, ...]:
        """The systems, the strongest first."""
        return tuple(row.system for row in self.rows)

    def settled(self, first: str, second: str) -> bool:
        """Whether it is settled, whenever one looks, that one system is stronger than the other."""
        return bool(self.contest.settled(self.options.level)[self._place(first), self._place(second)])

    def _place(self, system: str) -> int:
        if system in self.without_votes:
            raise BadParameter(f"The system '{system}' has no votes yet.", remedy="Judge first.")
        if system not in self.contest.systems:
            raise UnknownName("system", system, self.contest.systems)
        return self.contest.systems.index(system)

    def meeting(self, a: str, b: str) -> Meeting:
        """Return two systems against each other, the stronger first."""
        if a == b:
            raise BadParameter("Two systems are compared, and both are the same.", remedy="Name two of them.")
        places = self._place(a), self._place(b)
        values = self.contest.values
        i, j = places if values[places[0]] >= values[places[1]] else places[::-1]
        rows: Bools = ((self._table.i == i) & (self._table.j == j)) | (
            (self._table.i == j) & (self._table.j == i)
        )
        own = self._table.only(rows)
        share = np.where(own.i == i, own.share, 1 - own.share) * own.weight
        clusters = own.clusters
        found = None
        if len(own.i) and own.weight.sum() > 0:
            found = clustered_share(
                np.bincount(clusters, weights=share), np.bincount(clusters, weights=own.weight)
            )
        low, high = self.contest.difference_intervals(self.options.level)
        expected = self.contest.share(np.array([values[i] - values[j], low[i, j], high[i, j]])).tolist()
        return Meeting(
            self.contest.systems[i],
            self.contest.systems[j],
            len(own.i),
            len(np.unique(own.question[own.question >= 0])),
            None if found is None else found.value,
            None if found is None else found.low,
            None if found is None else found.high,
            expected[0],
            expected[1],
            expected[2],
            self.settled(self.contest.systems[i], self.contest.systems[j]),
        )

    def head_to_head(self) -> list[Meeting]:
        """Return every two systems against each other, in the order of the leaderboard."""
        return [
            self.meeting(one, other) for at, one in enumerate(self.order) for other in self.order[at + 1 :]
        ]

    @property
    def rivals(self) -> tuple[str, ...]:
        """The systems of which it isn't settled that the first one is stronger."""
        place = self._place(self.order[0])
        above = self.contest.settled(self.options.level)[place]
        return tuple(name for name in self.order[1:] if not above[self.contest.systems.index(name)])

    @property
    def headline(self) -> str:
        """The result in words: who is first, and whether that is settled."""
        if len(self.rows) < 2:
            return "One system has no rank."
        first, second = self.rows[0].system, self.rows[1].system
        if len(self.rows) == 2:
            return f"{self.meeting(first, second)}{self._what_it_takes(first, second)}"
        rivals = self.rivals
        if not rivals:
            return f"{first} is first; settled. {self.meeting(first, second)}"
        names = _listed(rivals)
        ending = self._what_it_takes(first, rivals[0])
        level = [name for name in self.order if self._are_level(first, name)]
        if len(level) == len(self.rows):
            return "All systems are level; nothing is settled."
        if len(level) > 1:
            return f"{_listed(level)} are level on top; nothing is settled between them. {self.meeting(first, second)}"
        return f"{first} leads; not settled against {names}. {self.meeting(first, rivals[0])}{ending}"

    def _are_level(self, first: str, second: str) -> bool:
        elo = {row.system: row.elo for row in self.rows}
        return abs(elo[first] - elo[second]) < LEVEL

    def _what_it_takes(self, first: str, second: str) -> str:
        """Return how many more questions would settle two systems, in words; nothing where they are settled."""
        if self.settled(first, second) or self.settled(second, first):
            return ""
        if self._are_level(first, second):
            return " The two are level: there is no difference to settle."
        if self.votes < FEWEST_VOTES:
            return " There are too few votes to say how many would settle it."
        unit = "question" if self.options.over == "questions" and self.questions > 1 else "vote"
        needed = self.contest.needed(first, second, self.options.level)
        if needed is None:
            return (
                f" If the difference stays, over a hundred times as many {unit}s like these would be needed."
            )
        more = needed - round(self.contest.freedom) - 1
        if not more:
            return " The votes that are still planned would settle it, if the difference stays."
        digits = 10 ** max(0, len(str(more)) - 2)
        about = -(-more // digits) * digits
        what = f"{about:,} more {'judged ' if unit == 'question' else ''}{unit}{'' if about == 1 else 's'}"
        return f" About {what} like these would settle it, if the difference stays."

    def table(self) -> Table:
        """Return the leaderboard for readers."""
        columns = ("system", "rank", "elo", "95 %", "beats the average", "win rate", "votes", "questions")
        columns = (*columns[:3], f"{100 * self.options.level:g} %", *columns[4:])
        return Table(
            columns,
            tuple(
                (
                    row.system,
                    row.ranks,
                    f"{row.elo:.0f}",
                    f"{row.elo_low:.0f} to {row.elo_high:.0f}",
                    _percent(row.beats_average, row.beats_average_low, row.beats_average_high),
                    None if row.win_rate is None else f"{100 * row.win_rate:.1f} %",
                    row.votes,
                    row.questions,
                )
                for row in self.rows
            ),
        )

    def matrix_table(self) -> Table:
        """Return the share of its votes that each system got against each other one, with their number."""
        meetings = {(each.first, each.second): each for each in self.head_to_head()}

        def cell(one: str, other: str) -> str:
            each = meetings.get((one, other)) or meetings.get((other, one))
            if each is None or each.share is None:
                return ""
            share = each.share if each.first == one else 1 - each.share
            return f"{100 * share:.0f} % of {each.votes}"

        order = self.order
        return Table(
            ("system", *order), tuple((one, *(cell(one, other) for other in order)) for one in order)
        )

    def as_rows(self) -> list[dict[str, Any]]:
        """Return a mapping a system, for programs."""
        return [{**asdict(row), "criterion": self.criterion, "judges": self.judges} for row in self.rows]

    def notes(self) -> list[str]:
        """Return what the numbers rest on."""
        about = {
            "questions": "Intervals and ranks hold for questions like these, and carry the noise of the votes.",
            "votes": "Intervals and ranks hold for more votes on these very questions.",
        }
        known = self.questions if self.options.over == "questions" else 0
        lines = [
            f"{_count(self.votes, 'vote')}"
            + (f" over {_count(self.questions, 'question')}" if self.questions else ", without questions")
            + ("" if self.judges == "all" else f" by {self.judges}")
            + f"; ties {'count half' if self.options.ties == 'halves' else 'by Davidson'}."
        ]
        lines.append(
            about["questions"]
            if known > 1
            else "Intervals and ranks take every vote as independent of the others."
            if not self.questions
            else about["votes"]
        )
        if self.same_answers:
            lines.append(
                f"Same answers, counted as ties: {self.same_answers:,}. A vote on such an answer counts for each of "
                "its systems."
            )
        if self.without_votes:
            lines.append(f"No votes yet: {_listed(self.without_votes)}.")
        if self.contest.prior:
            lines.append(
                f"Some systems won or lost every vote against others: each was given {self.contest.prior:g} drawn "
                "game, so that all strengths are finite."
            )
        return lines


def system_board(
    votes: Iterable[SystemVote],
    options: BoardOptions = USUAL_BOARD,
    *,
    systems: Sequence[str] = (),
    criterion: str | None = None,
    judges: str = "all",
) -> SystemBoard:
    """Work out the leaderboard of some votes; those of `systems` that got no vote yet have no row."""
    own = [
        vote
        for vote in votes
        if (criterion is None or vote.criterion == criterion)
        and (judges == "all" or vote.same_answer or vote.model == (judges == "models"))
    ]
    if not any(not vote.same_answer for vote in own):
        raise BadParameter(
            "There is no vote between systems yet.", remedy="Judge first, or give a file of votes."
        )
    table = VoteTable.of(
        [(vote.a, vote.b, vote.share, vote.question) for vote in own], [vote.weight for vote in own]
    )
    fitted = table
    if options.over == "votes":
        fitted = VoteTable(
            *(table.systems, table.i, table.j, table.share, table.weight, np.full(len(own), -1))
        )
    contest = fit_contest(fitted, options.ties, options.prior, options.planned)
    asked = np.array([not vote.same_answer for vote in own], dtype=np.bool_)
    return SystemBoard(
        _rows(contest, table, asked, options),
        contest,
        options,
        int(asked.sum()),
        len(np.unique(table.question[table.question >= 0])),
        criterion or (own[0].criterion if len({vote.criterion for vote in own}) == 1 else "all"),
        judges,
        len(own) - int(asked.sum()),
        tuple(sorted(set(systems) - set(table.systems))),
        table,
    )


def _rows(contest: Contest, table: VoteTable, asked: Bools, options: BoardOptions) -> tuple[SystemRow, ...]:
    ends: Floats = contest.intervals(options.level)
    first, last = contest.ranks(options.level, options.seed)
    rows = []
    for at, system in enumerate(contest.systems):
        left, right = table.i == at, table.j == at
        weight = table.weight[left].sum() + table.weight[right].sum()
        won = (table.weight * table.share)[left].sum() + (table.weight * (1 - table.share))[right].sum()
        mine = left | right
        value, low, high = float(contest.values[at]), float(ends[at, 0]), float(ends[at, 1])
        shares = contest.share(np.array([value, low, high])).tolist()
        questions = table.question[mine & asked]
        rows.append(
            SystemRow(
                system=system,
                votes=int((mine & asked).sum()),
                questions=len(np.unique(questions[questions >= 0])),
                win_rate=float(won / weight) if weight else None,
                strength=value,
                low=low,
                high=high,
                first_rank=int(first[at]),
                last_rank=int(last[at]),
                elo=AVERAGE + ELO * value,
                elo_low=AVERAGE + ELO * low,
                elo_high=AVERAGE + ELO * high,
                beats_average=shares[0],
                beats_average_low=shares[1],
                beats_average_high=shares[2],
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.strength, row.system)))


# ---- several boards


def boards_of(
    votes: Sequence[SystemVote],
    options: BoardOptions = USUAL_BOARD,
    systems: Sequence[str] = (),
) -> list[SystemBoard]:
    """Return a leaderboard for each criterion, and of each those of people and of models where both judged."""
    criteria = sorted({vote.criterion for vote in votes if not vote.same_answer})
    boards = []
    for criterion in criteria:
        kinds = {vote.model for vote in votes if vote.criterion == criterion and not vote.same_answer}
        judges = ("people", "models") if len(kinds) == 2 else ("models",) if kinds == {True} else ("all",)
        boards += [
            system_board(votes, options, systems=systems, criterion=criterion, judges=each) for each in judges
        ]
    return boards


def rank_correlation(one: SystemBoard, other: SystemBoard) -> float:
    """Return Kendall's tau between the strengths of the systems that both leaderboards have."""
    strengths = [{row.system: row.strength for row in board.rows} for board in (one, other)]
    if len(strengths[0].keys() & strengths[1].keys()) < 2:
        return float("nan")
    return kendall_tau(*strengths)


def tag_table(votes: Sequence[SystemVote], options: BoardOptions = USUAL_BOARD) -> Table:
    """Return each system's strength on the questions of each tag, with its votes there."""
    tags = sorted({tag for vote in votes for tag in vote.tags})
    if not tags:
        raise BadParameter("No vote has tags.", remedy="Give questions tags, or leave out --report tags.")
    rows = []
    for tag in tags:
        own = [vote for vote in votes if tag in vote.tags]
        if not any(not vote.same_answer for vote in own):
            continue
        for row in system_board(own, options).rows:
            ends = (round(row.elo_low), round(row.elo_high))
            rows.append(
                (tag, row.system, row.ranks, round(row.elo), *ends, row.win_rate, row.votes, row.questions)
            )
    columns = ("tag", "system", "ranks", "elo", "low", "high", "win rate", "votes", "questions")
    return Table(columns, tuple(rows), keys=2)
