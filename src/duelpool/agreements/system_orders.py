"""The orders of systems by two groups of judges: how far they agree, such as a model's with that of people."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

from duelpool.agreements.findings import AgreementOptions, TableAndNotes, no_rows
from duelpool.agreements.votes import Votes
from duelpool.comparison import kendall_tau
from duelpool.files import SystemVote
from duelpool.preferences.contests import VoteTable, fit_contest
from duelpool.records import Judgment, Outcome
from duelpool.report import Table

GroupedVote: TypeAlias = tuple[str, SystemVote]
"""A group of judges, and a vote that it gave."""

PEOPLE_TOGETHER = "people"
UNNAMED = "models"
_OUTCOMES = {"a": Outcome.LEFT, "b": Outcome.RIGHT, "tie": Outcome.TIE, "bothbad": Outcome.BOTH_BAD}
_ALL = "all"
_IN_WORDS = 6  # comparisons that are said in words


@dataclass(frozen=True, slots=True)
class TwoOrders:
    """The systems as two groups of judges order them: Kendall's tau, and the pairs of systems in the same order."""

    criterion: str
    one: str
    other: str
    systems: int
    tau: float
    same_order: float

    def __str__(self) -> str:
        about = "" if self.criterion == "overall" else f" on {self.criterion}"
        return (
            f"The orders of {self.systems} systems by {self.one} and by {self.other}{about} have Kendall's tau "
            f"{self.tau:.2f}: {100 * self.same_order:.0f} % of all pairs of systems come in the same order."
        )


def by_judges(votes: Iterable[SystemVote]) -> list[GroupedVote]:
    """Return votes with the group that gave them: people together, and each model by itself."""
    return [
        ("" if vote.same_answer else (vote.judge or UNNAMED) if vote.model else PEOPLE_TOGETHER, vote)
        for vote in votes
    ]


def votes_between_systems(votes: Sequence[SystemVote]) -> Votes:
    """Make votes to compare of votes between systems: a unit is two systems on a question."""
    models = {vote.judge for vote in votes if vote.model}
    judgments = [
        Judgment(
            *(vote.question, vote.a, vote.b, _OUTCOMES[vote.outcome]),
            assessor=vote.judge,
            criterion=vote.criterion,
        )
        for vote in votes
    ]
    made = Votes.of(judgments, group=lambda name: UNNAMED if name in models else PEOPLE_TOGETHER)
    return replace(made, system_votes=by_judges(votes))


def compare_orders(votes: Sequence[GroupedVote]) -> list[TwoOrders]:
    """Compare the orders of every two groups of judges, criterion by criterion.

    Ties of the same answers, which no judge was asked about, are of all groups where they name none.
    """
    shared = [vote for group, vote in votes if not group and vote.same_answer]
    names = {group for group, vote in votes if not vote.same_answer}
    groups = {
        name: [*(vote for group, vote in votes if group == name), *(shared if name else ())]
        for name in sorted(names, key=lambda name: (name != PEOPLE_TOGETHER, name))
    }
    criteria = sorted({vote.criterion for own in groups.values() for vote in own if not vote.same_answer})
    compared = []
    for criterion in criteria:
        strengths = {
            name: fitted
            for name, own in groups.items()
            if (
                fitted := _strengths(
                    [vote for vote in own if vote.criterion == criterion or vote.same_answer]
                )
            )
        }
        for one, other in combinations(strengths, 2):
            both = sorted(strengths[one].keys() & strengths[other].keys())
            if len(both) < 2:
                continue
            same = [
                (strengths[one][a] > strengths[one][b]) == (strengths[other][a] > strengths[other][b])
                for a, b in combinations(both, 2)
            ]
            tau = kendall_tau(strengths[one], strengths[other])
            compared.append(TwoOrders(criterion, one, other, len(both), tau, sum(same) / len(same)))
    return compared


def _strengths(votes: Sequence[SystemVote]) -> dict[str, float]:
    """Return the systems' strengths as the leaderboard has them; nothing where no judge was asked."""
    if all(vote.same_answer for vote in votes):
        return {}
    table = VoteTable.of(
        [(vote.a, vote.b, vote.share, vote.question) for vote in votes], [vote.weight for vote in votes]
    )
    contest = fit_contest(table)
    return dict(zip(contest.systems, contest.values.tolist(), strict=True))


def orders_table(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    """Return the orders of systems by every two groups of judges, in words first."""
    columns = ("judges", "other", "criterion", "systems", "tau", "same order")
    compared = compare_orders(votes.system_votes)
    if not compared:
        return no_rows(*columns)
    rows = tuple(
        (each.one or _ALL, each.other or _ALL, each.criterion, each.systems, each.tau, each.same_order)
        for each in compared
    )
    mattering = [each for each in compared if PEOPLE_TOGETHER in (each.one, each.other)] or compared
    words = [str(each) for each in mattering[:_IN_WORDS]]
    return Table(columns, rows, keys=3), (
        *words,
        "Kendall's tau is 1 for the same order, 0 for unrelated orders, -1 for the reverse. Neither order is certain: "
        "the ranks of the leaderboard say how far.",
    )
