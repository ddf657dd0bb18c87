"""Strengths of systems from votes: the fit, ties, errors by question, ranks for all at once, and what is settled."""

from dataclasses import replace

import numpy as np
import pytest

from duelpool.errors import BadParameter
from duelpool.preferences.boundaries import within_plan
from duelpool.preferences.contests import Contest, VoteTable, fit_contest
from duelpool.preferences.matrix import WinMatrix
from duelpool.preferences.strengths import bradley_terry


def drawn(
    rng: np.random.Generator, systems: int = 4, questions: int = 20, votes: int = 6, effect: float = 0.7
) -> VoteTable:
    """Votes of systems whose strengths differ from question to question."""
    strengths = np.linspace(1, -1, systems)
    rows = []
    for question in range(questions):
        own = strengths + rng.normal(0, effect, systems)
        for _ in range(votes):
            i, j = rng.choice(systems, 2, replace=False)
            share = float(rng.random() < 1 / (1 + np.exp(own[j] - own[i]))) if rng.random() < 0.8 else 0.5
            rows.append((f"s{i}", f"s{j}", share, f"q{question}"))
    return VoteTable.of(rows)


def test_strengths_are_bradley_terrys_with_ties_as_halves() -> None:
    table = drawn(np.random.default_rng(1))
    contest = fit_contest(table)
    assert contest.values == pytest.approx(bradley_terry(table.matrix()).values, abs=1e-9)
    assert contest.values.mean() == pytest.approx(0)
    assert contest.share(0.0) == pytest.approx(0.5)
    assert contest.freedom == 19


def test_davidson_fits_the_rate_of_ties() -> None:
    contest = fit_contest(drawn(np.random.default_rng(2), questions=60), "davidson")
    table = contest.table
    gap = contest.values[table.i] - contest.values[table.j]
    whole = np.exp(gap / 2) + np.exp(-gap / 2) + contest.tie_rate
    assert (contest.tie_rate / whole).sum() == pytest.approx((table.share == 0.5).sum(), rel=1e-6)
    expected = (np.exp(gap / 2) + contest.tie_rate / 2) / whole
    for system in range(4):
        left, right = table.i == system, table.j == system
        won = table.share[left].sum() + (1 - table.share[right]).sum()
        assert expected[left].sum() + (1 - expected[right]).sum() == pytest.approx(won, rel=1e-6)
    without_ties = VoteTable.of([("a", "b", 1.0, ""), ("b", "a", 1.0, ""), ("a", "b", 1.0, "")])
    assert fit_contest(without_ties, "davidson").values == pytest.approx(fit_contest(without_ties).values)
    with pytest.raises(BadParameter):
        fit_contest(table, "thirds")  # type: ignore[arg-type]


def test_a_system_that_won_all_gets_a_drawn_game_or_is_refused() -> None:
    table = VoteTable.of([("a", "b", 1.0, f"q{at}") for at in range(8)])
    contest = fit_contest(table)
    assert contest.prior == 1.0
    assert 0 < contest.values[0] < 4
    with pytest.raises(BadParameter, match="no finite best fit"):
        fit_contest(table, prior=0.0)


def test_votes_on_the_same_question_are_not_independent() -> None:
    rows = [("a", "b", float(question < 6), f"q{question}") for question in range(10) for _ in range(8)]
    by_question = fit_contest(VoteTable.of(rows))
    by_vote = fit_contest(VoteTable.of([(*row[:3], "") for row in rows]))
    assert by_question.values == pytest.approx(by_vote.values)
    assert by_question.errors()[0] > 2.5 * by_vote.errors()[0]


def test_order_of_rows_and_sides_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    table = drawn(rng)
    rows = [
        (table.systems[i], table.systems[j], share, f"q{question}")
        for i, j, share, question in zip(table.i, table.j, table.share, table.question, strict=True)
    ]
    turned = [
        (b, a, 1 - share, question) if rng.random() < 0.5 else (a, b, share, question)
        for a, b, share, question in rows
    ]
    other = fit_contest(VoteTable.of([turned[at] for at in rng.permutation(len(turned))]))
    one = fit_contest(table)
    assert other.values == pytest.approx(one.values, abs=1e-9)
    assert other.covariance == pytest.approx(one.covariance, abs=1e-9)
    assert [ranks.tolist() for ranks in one.ranks()] == [ranks.tolist() for ranks in other.ranks()]


def test_ranks_narrow_with_votes_and_contain_the_own_rank() -> None:
    few, many = (fit_contest(drawn(np.random.default_rng(4), questions=n)) for n in (8, 300))
    for contest in (few, many):
        first, last = contest.ranks()
        own = 1 + np.argsort(np.argsort(-contest.values))
        assert np.all((first <= own) & (own <= last))
    assert (many.ranks()[1] - many.ranks()[0]).sum() == 0
    assert (few.ranks()[1] - few.ranks()[0]).sum() > 3
    assert np.array_equal(few.above() & few.above().T, np.zeros((4, 4), dtype=bool))


def test_what_is_settled_for_good_takes_more_than_one_look() -> None:
    contest = fit_contest(drawn(np.random.default_rng(5), questions=60))
    assert np.all(contest.boundary(contest.difference_errors())[~np.eye(4, dtype=bool)] > 2.5)
    settled = contest.settled()
    assert np.all(contest.settled(0.999) <= settled)
    assert settled[0, 3]
    assert not settled[3, 0]
    assert not np.diag(settled).any()


def test_no_votes_one_vote_and_one_question_are_no_error() -> None:
    empty = fit_contest(VoteTable.of([], systems=["a", "b"]))
    assert empty.values.tolist() == [0.0, 0.0]
    assert not empty.settled().any()
    one = fit_contest(VoteTable.of([("a", "b", 1.0, "q")]))
    assert not one.settled().any()
    assert one.ranks()[0].tolist() == [1, 1]
    same = fit_contest(VoteTable.of([("a", "b", 1.0, "q")] * 6 + [("a", "b", 0.0, "q")] * 2))
    assert same.freedom == 7
    alone = fit_contest(VoteTable.of([], systems=["a"]))
    assert alone.ranks()[0].tolist() == alone.ranks()[1].tolist() == [1]


# ---- coverage


def population(strengths: np.ndarray, effect: float, ties: float) -> np.ndarray:
    """The strengths that the average question has: those that fit the expected shares."""
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    gap = strengths[:, None] - strengths[None, :]
    chance = (1 / (1 + np.exp(-(gap[..., None] + np.sqrt(2) * effect * points)))) @ (weights / weights.sum())
    shares = np.where(np.eye(len(strengths)), 0, chance * (1 - ties) + ties / 2)
    names = tuple(f"s{at}" for at in range(len(strengths)))
    return bradley_terry(WinMatrix(names, shares * 1000, np.zeros_like(shares))).values


def trial(
    rng: np.random.Generator, systems: int, questions: int, spread: float
) -> tuple[Contest, np.ndarray]:
    """Votes on every two systems' answers to each question, with effects of the questions and ties."""
    effect, ties = 0.7, 0.3
    strengths = rng.normal(0, spread, systems)
    i, j = np.triu_indices(systems, 1)
    own = strengths + rng.normal(0, effect, (questions, systems))
    chance = 1 / (1 + np.exp(own[:, j] - own[:, i]))
    share = np.where(rng.random(chance.shape) < ties, 0.5, rng.random(chance.shape) < chance)
    table = VoteTable(
        tuple(f"s{at}" for at in range(systems)),
        *(np.tile(i, questions), np.tile(j, questions), share.ravel(), np.ones(share.size)),
        np.repeat(np.arange(questions), len(i)),
    )
    return fit_contest(table), population(strengths, effect, ties)


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("systems", "questions", "spread"), [(5, 30, 0.7), (5, 30, 0.0), (10, 50, 0.3), (2, 30, 0.4)]
)
def test_intervals_cover_and_ranks_hold_for_all_at_once(systems: int, questions: int, spread: float) -> None:
    trials, rng = 400, np.random.default_rng(26)
    covered, held = [], []
    for _ in range(trials):
        contest, truth = trial(rng, systems, questions, spread)
        ends = contest.intervals()
        covered.append(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))
        first, last = contest.ranks()
        best = 1 + (truth[None, :] > truth[:, None] + 1e-9).sum(axis=1)
        worst = systems - (truth[None, :] < truth[:, None] - 1e-9).sum(axis=1)
        held.append(np.all((first <= best) & (last >= worst)))
    assert 0.93 <= np.mean(covered) <= 0.975
    assert np.mean(held) >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / trials)


# ---- what a plan changes


def test_within_a_plan_the_limit_falls_to_the_interval_of_one_look() -> None:
    table = drawn(np.random.default_rng(5), questions=60)
    games = table.matrix().played
    pairs = {(f"s{i}", f"s{j}"): float(games[i, j]) for i in range(4) for j in range(i + 1, 4)}
    at_the_end = fit_contest(table, planned=pairs)
    halfway = fit_contest(table, planned={pair: 2 * votes for pair, votes in pairs.items()})
    errors, apart = at_the_end.difference_errors(), ~np.eye(4, dtype=bool)
    assert at_the_end.progress is not None
    assert at_the_end.progress[apart] == pytest.approx(1.0)
    low, _ = at_the_end.difference_intervals()
    assert np.array_equal(at_the_end.settled()[apart], (low > 0)[apart])  # no more than the 95 % interval
    assert halfway.progress is not None
    assert halfway.progress[apart] == pytest.approx(0.5)
    without = fit_contest(table).boundary(errors)
    limits = [each.boundary(errors) for each in (at_the_end, halfway)]
    assert np.all(limits[0][apart] < limits[1][apart])
    assert np.all(limits[0][apart] < without[apart])


def test_more_votes_than_planned_are_not_the_plan() -> None:
    table = drawn(np.random.default_rng(6))
    assert fit_contest(table, planned={("s0", "s1"): 1.0}).progress is None
    assert fit_contest(table, planned={}).progress is None
    assert fit_contest(table, planned={("x", "y"): 5.0}).progress is None


def test_a_line_of_the_plan_is_crossed_by_chance_as_often_as_stated() -> None:
    rng = np.random.default_rng(7)
    steps = 400
    walks = np.cumsum(rng.standard_normal((4000, steps)), axis=1)
    information = np.arange(1, steps + 1)
    limit = within_plan(information / steps, 0.95, 1e9)
    crossed = (walks / np.sqrt(information) > limit).any(axis=1).mean()
    assert 0.035 < crossed < 0.055


@pytest.mark.parametrize("freedom", [2.0, 1000.0])
def test_a_difference_without_an_error_but_for_rounding_settles_nothing(freedom: float) -> None:
    contest = fit_contest(drawn(np.random.default_rng(5)))
    root = np.array([[0.4, 0.1], [0.4, 0.1 + 1e-8], [-0.4, -0.2], [-0.4, 0.0]])
    alike = replace(contest, covariance=root @ root.T, freedom=freedom)
    first, last = alike.ranks()
    assert (last >= first).all()
    assert not alike.above()[0, 1]
