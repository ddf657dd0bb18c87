"""Win matrices and what follows from them: Borda, Copeland, Bradley-Terry, transitivity, levels, qrels."""

import math
from itertools import combinations, permutations
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duelpool.compiling import compiled
from duelpool.errors import BadParameter, BadRecord
from duelpool.files import Preferences, Qrels
from duelpool.preferences import (
    WinMatrix,
    bootstrap_strengths,
    borda,
    bradley_terry,
    combined_qrels,
    condorcet_winner,
    copeland,
    levels_of,
    resamples,
    stochastic_transitivity,
    top_values,
    win_matrices,
)
from duelpool.preferences import matrix as matrix_module
from duelpool.preferences import strengths as strengths_module
from duelpool.preferences.resamples import ResampledGames, resampled_counts, signs_of, sum_expected_wins
from duelpool.preferences.strengths import (
    _centred,
    _connected,
    _fitted,
    _fitted_densely,
    _fitted_many,
    _Games,
    _Kinds,
)
from duelpool.records import EFFECTS, Judgment, Levels, Outcome
from duelpool.seeds import rng_for
from peers.installed import load

names = st.sampled_from("abcdef")
pairs = st.tuples(names, names).filter(lambda pair: pair[0] != pair[1])
outcomes = st.sampled_from([outcome for outcome in Outcome if outcome is not Outcome.GRADE])
judgments = st.lists(
    st.builds(lambda pair, outcome: Judgment("1", pair[0], pair[1], outcome), pairs, outcomes), max_size=30
)
wins_of_five = st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=5, max_size=5)


def matrix_of(wins: list[list[int]]) -> WinMatrix:
    table = np.array(wins, dtype=np.float64)
    np.fill_diagonal(table, 0)
    return WinMatrix(tuple("abcde"), table, np.zeros_like(table))


def votes(wins: dict[str, int]) -> WinMatrix:
    """A matrix from texts such as {"ab": 3}: a won over b three times."""
    return WinMatrix.from_judgments(
        Judgment("1", pair[0], pair[1], Outcome.LEFT) for pair, count in wins.items() for _ in range(count)
    )


@given(judgments)
def test_a_matrix_counts_each_judgment_by_its_effect(log: list[Judgment]) -> None:
    matrix = WinMatrix.from_judgments(log)
    wins = {(a, b): 0.0 for a in matrix.items for b in matrix.items}
    ties = dict(wins)
    for one in log:
        if one.winner is not None and one.loser is not None:
            wins[one.winner, one.loser] += 1
        elif EFFECTS[one.outcome].left == 0.5 and one.right is not None:
            ties[one.left, one.right] += 1
            ties[one.right, one.left] += 1
    for x, a in enumerate(matrix.items):
        for y, b in enumerate(matrix.items):
            assert (matrix.wins[x, y], matrix.ties[x, y]) == (wins[a, b], ties[a, b])
    again = win_matrices(Preferences.from_judgments(log)).get("1")
    if again is not None:
        assert again.items == matrix.items
        assert np.array_equal(again.wins, matrix.wins)
        assert np.array_equal(again.ties, matrix.ties)


def test_unjudged_items_can_be_named_and_inferred_judgments_left_out() -> None:
    log = [Judgment("1", "b", "a", Outcome.LEFT), Judgment("1", "b", "c", Outcome.LEFT, inferred=True)]
    assert WinMatrix.from_judgments(log, items=["z", "b"]).items == ("z", "b", "a")
    assert WinMatrix.from_judgments(log, inferred=True).wins.sum() == 2
    assert win_matrices(Preferences.from_judgments(log))["1"].wins.sum() == 1
    assert win_matrices(Preferences.from_judgments(log), inferred=True)["1"].wins.sum() == 2
    with pytest.raises(BadRecord, match="named twice"):
        WinMatrix.from_judgments([], items=["a", "a"])


@given(st.lists(pairs, max_size=60), st.booleans(), st.integers(1, 5))
def test_columns_of_names_are_counted_alike_by_both_paths(
    rows: list[tuple[str, str]], collide: bool, look: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix_module, "_LOOK", look)  # names that come later must not be lost
        if collide:
            patch.setattr(matrix_module, "_counted_quickly", lambda *_: None)
        matrix = WinMatrix.from_pairs([a for a, _ in rows], pl.Series([b for _, b in rows], dtype=pl.String))
    expected = WinMatrix.from_judgments(Judgment("1", a, b, Outcome.LEFT) for a, b in rows)
    assert matrix.items == expected.items
    assert np.array_equal(matrix.wins, expected.wins)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(BadRecord, match="2 winners and 1 losers"):
        WinMatrix.from_pairs(["a", "b"], ["b"])
    with pytest.raises(BadRecord, match="2 rows"):
        WinMatrix(("a", "b"), np.zeros((1, 1)), np.zeros((2, 2)))
    with pytest.raises(BadRecord, match="seen from both sides"):
        WinMatrix(("a", "b"), np.zeros((2, 2)), np.array([[0.0, 1.0], [0.0, 0.0]]))


def test_borda_copeland_and_condorcet() -> None:
    matrix = WinMatrix.from_judgments(
        [
            *(Judgment("1", "a", "b", Outcome.LEFT) for _ in range(3)),
            Judgment("1", "b", "a", Outcome.LEFT),
            Judgment("1", "a", "c", Outcome.TIE),
            Judgment("1", "b", "c", Outcome.LEFT),
        ],
        items=["a", "b", "c", "lonely"],
    )
    assert borda(matrix)[:3] == pytest.approx([3.5 / 5, 2 / 5, 0.5 / 2])
    assert math.isnan(borda(matrix)[3])
    assert copeland(matrix).tolist() == [1.5, 1.0, 0.5, 0.0]
    assert condorcet_winner(matrix) is None
    assert condorcet_winner(votes({"ab": 2, "ba": 1, "ac": 1, "bc": 1})) == "a"
    assert condorcet_winner(votes({"ab": 1, "bc": 1, "ca": 1})) is None


def log_likelihood(matrix: WinMatrix, strengths: np.ndarray, prior: float = 0.0) -> float:
    total = sum(prior * (s / 2 - math.log1p(math.exp(s))) for s in strengths)
    for i, j in permutations(range(len(matrix)), 2):
        total -= matrix.halves[i, j] * math.log1p(math.exp(strengths[j] - strengths[i]))
    return float(total)


@settings(deadline=None)
@given(wins_of_five, st.integers(0, 1000))
def test_bradley_terry_finds_the_best_fit(wins: list[list[int]], seed: int) -> None:
    matrix = matrix_of(wins)
    fit = bradley_terry(matrix)
    best = log_likelihood(matrix, fit.values, fit.prior)
    rng = rng_for(seed, "nudges")
    for size in (1e-3, 0.1, 1.0):
        for nudge in rng.normal(0, size, (5, 5)):
            assert log_likelihood(matrix, fit.values + nudge, fit.prior) <= best + 1e-9
    if not fit.prior:
        assert fit.values.mean() == pytest.approx(0, abs=1e-9)
    assert sorted(item for group in fit.components for item in group) == list("abcde")


@given(wins_of_five)
def test_groups_are_those_that_paths_connect(wins: list[list[int]]) -> None:
    matrix = WinMatrix(tuple("abcde"), np.array(wins, dtype=float), np.zeros((5, 5)))
    paths = np.linalg.matrix_power(np.eye(5) + (matrix.wins > 0), 5) > 0  # from each item to those below it
    linked = np.linalg.matrix_power(np.eye(5) + (matrix.played > 0), 5) > 0
    groups, group, strong = _connected(matrix.halves, matrix.played)
    assert groups == len({tuple(row) for row in linked.tolist()})
    assert strong == len({tuple(row) for row in (paths & paths.T).tolist()})
    assert np.array_equal(group[:, None] == group[None, :], linked)


@pytest.fixture(params=["plain", "compiled"])
def _each_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the plain form of every loop, and the compiled one."""
    for name in ("add_expected_wins", "count_drawn"):
        loop = getattr(resamples, name)
        form = loop.plain if request.param == "plain" else compiled(loop.to_compile)
        assert form, "Numba is among what the tests need."
        monkeypatch.setattr(resamples, name, form)


@pytest.mark.usefixtures("_each_form")
@pytest.mark.parametrize("spread", [0.5, 20.0, 500.0])
def test_expected_wins_are_the_games_times_the_chance_to_win(spread: float) -> None:
    random = np.random.default_rng(7)
    matrix = WinMatrix(tuple("abcde"), random.integers(1, 9, (5, 5)) * (1 - np.eye(5)), np.zeros((5, 5)))
    games = _Games.of(matrix, 0.0)
    strengths = random.uniform(-spread, spread, (5, 3)).astype(np.float32)
    played = random.integers(0, 9, (len(games.i), 3)).astype(np.float32)
    with np.errstate(over="ignore"):
        chance = 1 / (1 + np.exp(strengths[games.j].astype(float) - strengths[games.i]))
    back = signs_of(games.i, games.j, games.n).T.tocsr()
    resampled = ResampledGames(games.i, games.j, played, back.indptr, back.indices, back.data)
    sums = np.full((2, 5, 3), np.nan, dtype=np.float32)
    for with_variance in (False, True):
        sum_expected_wins(resampled, strengths, with_variance, sums)
        assert sums[0] == pytest.approx(back @ (played * chance), rel=1e-4, abs=1e-5)
        assert with_variance == (not np.isnan(sums[1]).any())
    assert sums[1] == pytest.approx(abs(back) @ (played * chance * (1 - chance)), rel=1e-4, abs=1e-5)


@pytest.mark.usefixtures("_each_form")
@pytest.mark.parametrize("total", [3, 1000, 4095, 70_001])
def test_every_judgment_is_drawn_by_as_many_numbers_as_any_other(total: int) -> None:
    # Of the numbers of 32 bits each judgment has a span; only the first one of a span may be left out.
    starts = -(-(np.arange(total + 1) << 32) // total)
    taken = np.diff(starts)
    each = np.arange(total)
    for place in (0, 1):
        numbers = np.append(starts[:-1] + place, 0)[: total + total % 2].astype("<u4")
        counts = np.empty(total, dtype=np.uint32)
        missing = resamples.count_drawn(numbers.view("<u8").astype(np.uint64), each, counts)
        assert missing == total - counts.sum()
        assert counts.max() == 1
        taken -= 1 - counts
    assert set(taken.tolist()) == {(1 << 32) // total}
    assert missing == 0


@pytest.mark.usefixtures("_each_form")
def test_numbers_that_are_left_out_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = rng_for(5, "draws")
    kinds = _Kinds(np.arange(60_000), np.ones(60_000), np.ones(60_000, dtype=np.int64))
    count, missing = resamples.count_drawn, []

    def counted(*given: Any) -> int:
        missing.append(count(*given))
        return missing[-1]

    monkeypatch.setattr(resamples, "count_drawn", counted)
    drawn = resampled_counts(kinds.count, 30, rng)
    assert 0 < sum(missing) < 100
    assert set(drawn.sum(axis=0).tolist()) == {60_000}


@pytest.mark.parametrize(("items", "judgments"), [(12, 80), (40, 1200), (60, 9000), (200, 4000)])
def test_compiled_resamples_are_the_plain_ones_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch, items: int, judgments: int
) -> None:
    rng = rng_for(6, "both forms", items)
    first, second = rng.integers(0, items, (2, judgments))
    met = first != second
    high, low = np.maximum(first, second)[met], np.minimum(first, second)[met]
    won = rng.random(len(high)) < 0.8
    names = np.array([f"i{number:03}" for number in range(items)])
    fit = bradley_terry(
        WinMatrix.from_pairs(names[np.where(won, high, low)], names[np.where(won, low, high)])
    )
    found = []
    for form in ("plain", "compiled"):
        for name in ("add_expected_wins", "count_drawn"):
            loop = getattr(resamples, name)
            if form == "compiled":
                monkeypatch.setattr(resamples, name, compiled(loop.to_compile))
            else:
                monkeypatch.setattr(loop, "spent", 0.0)
        found.append(bootstrap_strengths(fit, 130, seed=1))
    assert np.array_equal(found[0], found[1])
    assert found[0].std() > 0


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 9), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0, 20]))
def test_whole_matrices_give_the_fit_of_the_pairs(seed: int, items: int, prior: float, products: int) -> None:
    random = np.random.default_rng(seed)
    wins = random.integers(0, 6, (items, items)).astype(float) + (0 if prior else 0.01)
    ties = np.triu(random.integers(0, 2, (items, items)), 1).astype(float)
    np.fill_diagonal(wins, 0)
    matrix = WinMatrix(tuple(map(str, range(items))), wins, ties + ties.T)
    start = random.normal(0, 0.5, items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            strengths_module, "_PRODUCTS", products
        )  # without any, each step's equations are solved
        values = _fitted_densely(matrix.halves.sum(axis=1), matrix.played, prior, start)
    if values is not None:
        plain = _fitted(_Games.of(matrix, prior), start)
        assert _centred(values, prior) == pytest.approx(_centred(plain, prior), abs=1e-7)


def test_steps_that_go_too_far_are_left_to_the_careful_method() -> None:
    better = list(combinations("abcdef", 2))
    matrix = votes({f"{a}{b}": 400 for a, b in better} | {f"{b}{a}": 1 for a, b in better})
    far = np.array([5.0, -5.0, 5.0, -5.0, 5.0, -5.0])
    assert _fitted_densely(matrix.halves.sum(axis=1), matrix.played, 0.0, far) is None
    careful = _centred(_fitted(_Games.of(matrix, 0.0), far), 0.0)
    assert careful == pytest.approx(bradley_terry(matrix).values, abs=1e-6)


def test_bradley_terry_of_two_items_is_the_log_odds() -> None:
    fit = bradley_terry(votes({"ab": 30, "ba": 10}))
    assert fit.values[0] - fit.values[1] == pytest.approx(math.log(3))
    assert fit.chance("a", "b") == pytest.approx(0.75)
    assert (fit.prior, fit.components) == (0, (("a", "b"),))
    half = np.array([[0.0, 5.0], [3.0, 0.0]]), np.array([[0.0, 4.0], [4.0, 0.0]])
    assert bradley_terry(WinMatrix(("a", "b"), *half)).chance("a", "b") == pytest.approx(7 / 12)


def test_the_sandwich_interval_of_two_items_is_that_of_log_odds() -> None:
    # The log odds of 30 wins of 40 have the variance 1/30 + 1/10; each strength is half of them from 0.
    low, high = bradley_terry(votes({"ab": 30, "ba": 10})).intervals("sandwich", level=0.95)[0]
    assert (high - low) / 2 == pytest.approx(1.959964 * math.sqrt(1 / 30 + 1 / 10) / 2)
    assert (high + low) / 2 == pytest.approx(math.log(3) / 2)


@pytest.mark.peer("choix")
def test_bradley_terry_equals_choix() -> None:
    choix = load("choix")
    rng = rng_for(3, "games")
    rows = [(int(i), int(j)) for i, j in rng.integers(0, 8, (400, 2)) if i != j]
    matrix = WinMatrix.from_pairs([str(i) for i, _ in rows], [str(j) for _, j in rows])
    expected = choix.ilsr_pairwise(8, rows)
    assert bradley_terry(matrix).values == pytest.approx(expected - expected.mean(), abs=1e-6)


def test_prior_is_used_and_reported_only_where_needed() -> None:
    fit = bradley_terry(votes({"ab": 3, "cd": 1, "dc": 1}))
    assert fit.prior == 1
    assert fit.components == (("a", "b"), ("c", "d"))
    assert fit.values[2] == pytest.approx(0, abs=1e-9)
    assert fit.values[0] > 0 > fit.values[1]
    assert bradley_terry(votes({"ab": 1, "ba": 1}), prior=2).prior == 2
    with pytest.raises(BadParameter, match="no finite best fit"):
        bradley_terry(votes({"ab": 3}), prior=0)
    assert len(bradley_terry(WinMatrix((), np.zeros((0, 0)), np.zeros((0, 0)))).values) == 0


@pytest.mark.parametrize("method", ["sandwich", "bootstrap"])
def test_intervals_cover_the_truth_at_their_level(method: str) -> None:
    rng = rng_for(11, "coverage", method)
    truth = np.array([-0.8, -0.2, 0.3, 0.7])
    held = []
    for trial in range(60):
        wins = np.zeros((4, 4))
        for i, j in permutations(range(4), 2):
            if i < j:
                won = rng.binomial(60, 1 / (1 + math.exp(truth[j] - truth[i])))
                wins[i, j], wins[j, i] = won, 60 - won
        fit = bradley_terry(WinMatrix(tuple("abcd"), wins, np.zeros((4, 4))))
        low, high = fit.intervals(method, level=0.9, resamples=200, seed=trial).T  # type: ignore[arg-type]
        held.append((low < truth) & (truth < high))
    assert 0.82 <= np.mean(held) <= 0.97  # 240 intervals at .9: three standard errors are .06


def test_the_bootstrap_refits_resampled_judgments() -> None:
    matrix = votes({"ab": 30, "ba": 20, "bc": 25, "cb": 25, "ac": 40, "ca": 10})
    fit = bradley_terry(matrix)
    drawn = bootstrap_strengths(fit, 400, seed=5)
    assert np.array_equal(drawn, bootstrap_strengths(fit, 400, seed=5))
    assert not np.array_equal(drawn, bootstrap_strengths(fit, 400, seed=6))
    assert drawn.mean(axis=0) == pytest.approx(fit.values, abs=0.05)
    rng = rng_for(1, "plain bootstrap")
    kinds = list({"ab": 30, "ba": 20, "bc": 25, "cb": 25, "ac": 40, "ca": 10}.items())
    plain = []
    for _ in range(400):
        counts = rng.multinomial(150, [count / 150 for _, count in kinds])
        plain.append(
            bradley_terry(
                votes({pair: int(count) for (pair, _), count in zip(kinds, counts, strict=True)})
            ).values
        )
    assert drawn.std(axis=0) == pytest.approx(np.std(plain, axis=0), rel=0.2)
    with pytest.raises(BadParameter, match="1 resample or more"):
        bootstrap_strengths(fit, 0)
    with pytest.raises(BadParameter, match="sandwich or bootstrap"):
        fit.intervals("guess")  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="between 0 and 1"):
        fit.intervals(level=95)


def test_a_sparse_bootstrap_is_the_fit_of_each_resample() -> None:
    # Few judgments of each kind, some of whose resamples have no finite fit: still finite, still in order.
    rng = rng_for(2, "sparse")
    strong = [f"i{number:02}" for number in range(12)]
    rows = [tuple(sorted(rng.choice(12, 2, replace=False).tolist())) for _ in range(80)]
    rows = [(a, b) if rng.random() < 0.7 else (b, a) for a, b in rows]
    fit = bradley_terry(WinMatrix.from_pairs([strong[a] for a, _ in rows], [strong[b] for _, b in rows]))
    drawn = bootstrap_strengths(fit, 50, seed=1)
    assert np.isfinite(drawn).all()
    assert np.corrcoef(np.median(drawn, axis=0), fit.values)[0, 1] > 0.9


def test_resamples_that_converge_early_keep_their_own_fit() -> None:
    rng = rng_for(3, "sparse")
    first, second = rng.integers(0, 40, (2, 1200))
    met = first != second
    left, right = np.maximum(first, second)[met], np.minimum(first, second)[met]
    won = rng.random(len(left)) < 0.8
    names = np.array([f"i{number:02}" for number in range(40)])
    fit = bradley_terry(
        WinMatrix.from_pairs(names[np.where(won, left, right)], names[np.where(won, right, left)])
    )
    games = _Games.of(fit.matrix, 0.01)
    kinds = _Kinds.of(fit.matrix, games)
    drawn = resampled_counts(kinds.count, 60, rng_for(4, "resamples"))
    together = _fitted_many(games, kinds, drawn, fit.values)
    for at in range(60):
        wins, played = (
            np.bincount(kinds.pair, each * drawn[:, at], len(games.i)).astype(np.float64)
            for each in (kinds.won, np.ones(len(kinds.won)))
        )
        alone = _fitted(_Games(games.i, games.j, wins, played, games.n, games.prior), fit.values)
        apart = together[at] - alone
        assert np.max(np.abs(apart - apart.mean())) < 5e-5


def test_a_judgment_of_its_own_kind_is_drawn_as_one_of_several_is() -> None:
    matrix = votes({"ab": 2, "ba": 1, "bc": 1, "cb": 1, "ac": 2, "ca": 1})
    games = _Games.of(matrix, 0.01)
    single = _Kinds.of(matrix, games)
    counts = np.stack((matrix.wins[games.i, games.j], matrix.wins[games.j, games.i]))
    outcome, pair = np.nonzero(counts)
    several = _Kinds(pair, np.array([1.0, 0.0])[outcome], counts[outcome, pair].astype(np.int64))
    assert len(single.count) == several.count.sum() == 8
    drawn = [resampled_counts(kinds.count, 30, rng_for(1, "draws")) for kinds in (single, several)]
    place = np.repeat(np.arange(len(several.count)), several.count)
    assert np.array_equal(np.stack([np.bincount(place, row, 6) for row in drawn[0].T]), drawn[1].T)


def test_resamples_are_the_same_however_many_are_fitted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = bradley_terry(votes({"ab": 3, "ba": 2, "bc": 2, "cb": 2, "ac": 4, "ca": 1}))
    expected = bootstrap_strengths(fit, 50, seed=3)
    monkeypatch.setattr(strengths_module, "_TOGETHER", 7)
    assert bootstrap_strengths(fit, 50, seed=3) == pytest.approx(expected, abs=5e-5)


@settings(deadline=None, max_examples=40)
@given(wins_of_five)
def test_transitivity_counts_every_triple(wins: list[list[int]]) -> None:
    matrix = matrix_of(wins)
    share = matrix.preferred()
    expected = [0, 0, 0, 0]
    for a, b, c in permutations(range(5), 3):
        ab, bc, ac = share[a, b], share[b, c], share[a, c]
        if ab >= 0.5 and bc >= 0.5 and not math.isnan(ac):
            for at, bound in enumerate((-1, 0.5, min(ab, bc), max(ab, bc))):
                expected[at] += ac >= bound
    transitivity = stochastic_transitivity(matrix)
    assert [transitivity.triples, transitivity.weak, transitivity.moderate, transitivity.strong] == expected
    assert transitivity.holds == (expected[0] == expected[3])


def test_equal_scores_share_a_level() -> None:
    levels = levels_of(["a", "b", "c", "d", "e"], [0.5, 1.0, 0.5 + 1e-12, math.nan, -1.0])
    assert levels.levels == (("b",), ("a", "c"), ("e",))


def test_top_items_are_above_every_grade() -> None:
    levels = Levels((("a",), ("b", "c"), ("d", "e", "f"), ("g",)))
    assert top_values(levels, 5) == {"a": 50, "b": 40, "c": 40, "d": 20, "e": 20, "f": 20}
    grades = Qrels.from_grades({"1": {"x": 4, "a": 3, "g": 2}, "2": {"x": 1}})
    combined = combined_qrels(grades, {"1": levels}, k=5).grades()
    assert combined["1"] == {"x": 4, "a": 50, "g": 2, "b": 40, "c": 40, "d": 20, "e": 20, "f": 20}
    assert combined["2"] == {"x": 1}
    with pytest.raises(BadParameter, match="steps above 4"):
        combined_qrels(grades, {"1": levels}, step=4)
    with pytest.raises(BadParameter, match="1 item or more"):
        top_values(levels, 0)
