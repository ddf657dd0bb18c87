"""A leaderboard of systems by people's votes, with those of a model to make it more exact: prediction-powered."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from duelpool.errors import BadParameter, UnknownName
from duelpool.evaluation.systems import OVERS, Over
from duelpool.files import SystemVote
from duelpool.frames import Tabular, counted
from duelpool.preferences.powered import PoweredRates, VotedPairs, powered_rates
from duelpool.report import Table, html_text

TieShare: TypeAlias = Literal["halves", "losses"]
TIE_SHARES: tuple[TieShare, ...] = ("halves", "losses")
"""What a tie is worth: half a vote for either system, or nothing for both."""


@dataclass(frozen=True, slots=True)
class PoweredRow:
    """A system: its share of votes won as people would give them on all pairs, and the ranks that it may have."""

    system: str
    win_rate: float
    low: float
    high: float
    first_rank: int
    last_rank: int
    people_votes: int
    model_votes: int

    @property
    def ranks(self) -> str:
        """The ranks that the system may have, as "2" or "1-3"."""
        return str(self.first_rank) + (f"-{self.last_rank}" if self.last_rank != self.first_rank else "")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PoweredBoard(Tabular):
    """Systems by the share of votes that people would let them win on all pairs, the highest first."""

    rows: tuple[PoweredRow, ...]
    estimate: PoweredRates
    pairs: int
    level: float
    ties: TieShare
    over: Over
    criterion: str = "overall"

    def __repr__(self) -> str:
        return f"PoweredBoard({counted(len(self.rows), 'system')}: {self.headline})"

    def _repr_html_(self) -> str:
        return html_text(self.table(), [self.headline, *self.notes()])

    @property
    def mean_ranks(self) -> float:
        """How many ranks a system may have, on average."""
        return float(np.mean([row.last_rank - row.first_rank + 1 for row in self.rows]))

    @property
    def headline(self) -> str:
        """The result in words: who could be first."""
        first = [row.system for row in self.rows if row.first_rank == 1]
        if len(first) == 1:
            return f"{first[0]} is first by people's votes."
        could = f"{len(first)} of {len(self.rows)} systems could be first"
        return f"{self.rows[0].system} leads by people's votes; {could}."

    def notes(self) -> list[str]:
        """Return what the numbers rest on."""
        asked = self.estimate.asked
        return [
            f"People voted on {asked:,} of {self.pairs:,} pairs; they must have been drawn at random.",
            f"The model's votes are worth {100 * (self.estimate.gain - 1):.0f} % more votes of people."
            if self.estimate.model_used
            else "The model's votes would not make this more exact, and are left out.",
            "A tie is half a vote for either." if self.ties == "halves" else "A tie is a vote for neither.",
            "Intervals and ranks hold for questions like these."
            if self.over == "questions"
            else "Intervals and ranks hold for the votes that people would give on these very pairs.",
        ]

    def table(self) -> Table:
        """Return the leaderboard for readers."""
        columns = ("system", "rank", "win rate", f"{100 * self.level:g} %", "people's votes", "model's votes")
        return Table(
            columns,
            tuple(
                (
                    row.system,
                    row.ranks,
                    f"{100 * row.win_rate:.1f} %",
                    f"{100 * row.low:.1f} to {100 * row.high:.1f}",
                    row.people_votes,
                    row.model_votes,
                )
                for row in self.rows
            ),
        )

    def to_polars(self) -> pl.DataFrame:
        """Return a row a system, the highest first."""
        return pl.DataFrame(self.as_rows())

    def as_rows(self) -> list[dict[str, Any]]:
        """Return a mapping a system, for programs."""
        more = {
            "criterion": self.criterion,
            "model_used": self.estimate.model_used,
            "gain": self.estimate.gain,
        }
        return [{**asdict(row), **more} for row in self.rows]


def powered_board(
    votes: Sequence[SystemVote],
    *,
    criterion: str | None = None,
    ties: TieShare = "halves",
    over: Over = "questions",
    level: float = 0.95,
    seed: int = 0,
    use_model: bool | None = None,
) -> PoweredBoard:
    """Rank systems by people's votes, made more exact by a model's votes on the same and on further pairs.

    `use_model` None leaves the model out where it doesn't help.
    """
    if ties not in TIE_SHARES:
        raise UnknownName("worth of a tie", ties, TIE_SHARES)
    if over not in OVERS:
        raise UnknownName("kind of interval", over, OVERS)
    criteria = sorted({vote.criterion for vote in votes if not vote.same_answer})
    if criterion is None and len(criteria) > 1:
        raise BadParameter(
            f"The votes have several criteria: {', '.join(criteria)}.", remedy="Name one of them."
        )
    own = [vote for vote in votes if not vote.same_answer and criterion in (None, vote.criterion)]
    for model, who in ((False, "people"), (True, "a model")):
        if not any(vote.model == model for vote in own):
            raise BadParameter(
                f"There is no vote of {who}.",
                remedy="Give people's votes, and a model's with --model-votes FILE (or model_votes=).",
            )
    pairs = voted_pairs(own, ties)
    estimate = powered_rates(pairs, these_pairs=over == "votes", use_model=use_model)
    ends = np.clip(estimate.contest.intervals(level), 0.0, 1.0)
    first, last = estimate.contest.ranks(level, seed)
    by_people, by_model = (
        np.bincount(np.concatenate((pairs.first[given], pairs.second[given])), minlength=len(pairs.systems))
        for given in (pairs.asked, ~np.isnan(pairs.model[:, 0]))
    )
    rows = [
        PoweredRow(
            system,
            float(np.clip(estimate.rates[at], 0.0, 1.0)),
            float(ends[at, 0]),
            float(ends[at, 1]),
            int(first[at]),
            int(last[at]),
            int(by_people[at]),
            int(by_model[at]),
        )
        for at, system in enumerate(pairs.systems)
    ]
    rows.sort(key=lambda row: (-row.win_rate, row.system))
    return PoweredBoard(
        tuple(rows), estimate, len(pairs), level, ties, over, criterion or (criteria[0] if criteria else "")
    )


def powered_boards(
    votes: Sequence[SystemVote], *, ties: TieShare, over: Over, level: float, seed: int
) -> list[PoweredBoard]:
    """Return a leaderboard for each criterion."""
    return [
        powered_board(votes, criterion=criterion, ties=ties, over=over, level=level, seed=seed)
        for criterion in sorted({vote.criterion for vote in votes if not vote.same_answer})
    ]


def voted_pairs(votes: Sequence[SystemVote], ties: TieShare) -> VotedPairs:
    """Bring the votes of people and of models on the same pair of answers together.

    The sides are those that the model saw, because its lean to one is a part of its votes. Votes without a question
    can't be brought together: each is a pair of its own.
    """
    systems = tuple(sorted({name for vote in votes for name in (vote.a, vote.b)}))
    place = {name: at for at, name in enumerate(systems)}
    tie = 0.5 if ties == "halves" else 0.0
    pairs: dict[tuple[Any, ...], list[Any]] = {}
    questions: dict[str, int] = {}
    for at, vote in enumerate(sorted(votes, key=lambda vote: not vote.model)):
        one, other = sorted((vote.a, vote.b))
        key = (vote.question, one, other) if vote.question else (at,)
        row = pairs.get(key)
        if row is None:
            question = questions.setdefault(vote.question or f"\0{at}", len(questions))
            row = pairs[key] = [place[vote.a], place[vote.b], question, [], []]
        shares = (tie, tie) if vote.outcome in ("tie", "bothbad") else (vote.share, 1.0 - vote.share)
        row[4 if vote.model else 3].append(shares if place[vote.a] == row[0] else shares[::-1])
    rows = list(pairs.values())

    def means(column: int) -> Any:
        return np.array([np.mean(row[column], axis=0) if row[column] else (np.nan, np.nan) for row in rows])

    first, second, place_of_question = (
        np.array([row[at] for row in rows], dtype=np.int64) for at in range(3)
    )
    return VotedPairs(systems, first, second, means(3), means(4), place_of_question)
