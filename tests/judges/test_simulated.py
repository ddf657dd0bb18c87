"""Simulated judges: the stated chances, the stated truth, the same answers for the same seed."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duelpool.errors import BadFile, BadParameter, UnknownName
from duelpool.judges import JUDGES, make_judges, simulated
from duelpool.judges.base import Dice, SimulatedJudge
from duelpool.judges.replayed import STRENGTH_SD, fitted_strengths, replayed_wins, win_counts
from duelpool.judges.simulated import Fallible, MatrixJudge, OrderJudge, levels_by_score
from duelpool.judges.truth import TRUTHS
from duelpool.records import Judgment, Levels, Outcome
from duelpool.testing import judge_contract

ITEMS = tuple("abcdefgh")
WINS = {Outcome.LEFT, Outcome.RIGHT}


def shares(judge: SimulatedJudge, left: str, right: str, n: int = 10000) -> dict[Outcome, float]:
    answers = [judge.answer("t", left, right, nth) for nth in range(1, n + 1)]
    return {outcome: answers.count(outcome) / n for outcome in set(answers)}


def in_order(judge: SimulatedJudge) -> list[str]:
    return [item for level in judge.truth.levels for item in level]


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def example_specs(folder: Path) -> dict[str, str]:
    """One working specification for every row of the table."""
    matrix = write(folder / "matrix.txt", "0.5 0.9 0.8\n0.1 0.5 0.7\n0.2 0.3 0.5\n")
    votes = write(folder / "votes.txt", "t1 a b a\nt1 b c b\nt1 a b b\nt2 d e d\n")
    grades = write(folder / "qrels.txt", "t1 0 a 3\nt1 0 b 1\nt1 0 c 1\nt1 0 d 0\n")
    files = {"matrix": matrix, "replay": votes, "graded": grades}
    return {name: f"{name}:file={files[name]}" if name in files else name for name in JUDGES}


@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_keeps_the_contract(name: str, tmp_path: Path) -> None:
    judge_contract(example_specs(tmp_path)[name])


def test_dice_are_uniform_and_named() -> None:
    dice = Dice(3, "t", "answers")
    rolls = [dice.roll(str(at)) for at in range(20000)]
    assert np.mean(rolls) == pytest.approx(0.5, abs=0.01)
    assert np.var(rolls) == pytest.approx(1 / 12, abs=0.002)
    counts, _ = np.histogram(rolls, bins=20, range=(0, 1))
    assert ((counts - 1000) ** 2 / 1000).sum() < 45  # chi-square with 19 degrees of freedom, p about .001
    assert dice.roll("7") == Dice(3, "t", "answers").roll("7") != Dice(4, "t", "answers").roll("7")


def test_case_a_is_a_total_order_won_with_q() -> None:
    judge = make_judges("case-a:q=.8").judge("t", ITEMS, 1)
    order = in_order(judge)
    assert [len(level) for level in judge.truth.levels] == [1] * len(ITEMS)
    for better, worse in ((0, 1), (0, 7), (3, 6)):
        assert shares(judge, order[better], order[worse])[Outcome.LEFT] == pytest.approx(0.8, abs=0.02)
        assert shares(judge, order[worse], order[better])[Outcome.RIGHT] == pytest.approx(0.8, abs=0.02)


def test_case_b_has_two_best_and_ties_elsewhere() -> None:
    judge = make_judges("case-b").judge("t", ITEMS, 1)
    assert [len(level) for level in judge.truth.levels] == [2, 6]
    (one, two), rest = judge.truth.levels
    for left, right, share in (
        (one, two, 0.5),
        (one, rest[0], 0.75),
        (two, rest[3], 0.75),
        (rest[0], rest[1], 0.5),
    ):
        assert shares(judge, left, right)[Outcome.LEFT] == pytest.approx(share, abs=0.025)


@pytest.mark.parametrize("spare_best", [False, True])
def test_upsets_reverse_their_share_of_the_pairs_for_good(spare_best: bool) -> None:
    """Without noise every answer is the pair's own: 1,225 pairs of 50, a fifth of them reversed."""
    items = tuple(f"{at:02}" for at in range(50))
    spared = f"upsets:share=.2,q=1,spare_best={'yes' if spare_best else 'no'}"
    judge = make_judges(spared).judge("t", items, 3)
    order = in_order(make_judges("case-a:q=1").judge("t", items, 3))  # the same hidden places
    reversed_pairs = {
        (a, b)
        for at, a in enumerate(order)
        for b in order[at + 1 :]
        if judge.answer("t", a, b, 1) is Outcome.RIGHT
    }
    assert len(reversed_pairs) == pytest.approx(245, abs=45)  # three standard errors of 14
    assert all(judge.answer("t", a, b, 2) is Outcome.RIGHT for a, b in reversed_pairs)
    assert (order[0] in {a for a, _ in reversed_pairs}) != spare_best
    if spare_best:
        assert judge.truth.best == (order[0],)


def test_the_hidden_best_is_any_item_equally_often() -> None:
    model = make_judges("case-a")
    bests = [model.judge("t", ITEMS, seed).truth.best[0] for seed in range(800)]
    assert all(bests.count(item) == pytest.approx(100, abs=35) for item in ITEMS)


@pytest.mark.parametrize(
    ("spec", "chance"),
    [
        ("bt:sd=1.5", lambda d: 1 / (1 + math.exp(-d))),
        ("thurstone:sd=1.5", lambda d: 0.5 * (1 + math.erf(d / 2))),  # Phi(d / sqrt 2)
    ],
)
def test_win_rate_follows_the_model_of_strengths(spec: str, chance: object) -> None:
    from duelpool.seeds import rng_for

    judge = make_judges(spec).judge("t", ITEMS, 9)
    strengths = rng_for(9, "t", "strengths").normal(0.0, 1.5, len(ITEMS))
    assert in_order(judge) == [ITEMS[at] for at in np.argsort(-strengths)]
    for i, j in ((0, 1), (2, 5), (6, 3)):
        expected = chance(strengths[i] - strengths[j])  # type: ignore[operator]
        assert shares(judge, ITEMS[i], ITEMS[j])[Outcome.LEFT] == pytest.approx(expected, abs=0.025)


@given(levels=st.integers(0, 10), seed=st.integers(0, 1000), size=st.integers(0, 9))
def test_the_noise_free_judge_never_contradicts_its_truth(levels: int, seed: int, size: int) -> None:
    items = tuple("abcdefghi"[:size])
    judge = make_judges(f"order:levels={levels}").judge("t", items, seed)
    place = {item: at for at, level in enumerate(judge.truth.levels) for item in level}
    assert len(judge.truth.levels) == (size if levels == 0 else min(size, levels))
    for left in items:
        for right in items:
            if left != right:
                expected = (
                    Outcome.TIE
                    if place[left] == place[right]
                    else (Outcome.LEFT if place[left] < place[right] else Outcome.RIGHT)
                )
                assert judge.answer("t", left, right, 1) is expected


def test_matrix_file_gives_a_permutation_of_its_matrix(tmp_path: Path) -> None:
    judge = make_judges(example_specs(tmp_path)["matrix"]).judge("t", ("x", "y", "z"), 2)
    first, second, third = in_order(judge)  # Borda sums: 1.7, .8, .5
    assert shares(judge, first, second)[Outcome.LEFT] == pytest.approx(0.9, abs=0.02)
    assert shares(judge, first, third)[Outcome.LEFT] == pytest.approx(0.8, abs=0.02)
    assert shares(judge, second, third)[Outcome.LEFT] == pytest.approx(0.7, abs=0.025)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0.5 0.9\n0.1\n", "as many columns as rows"),
        ("0.5 x\n0.1 .5\n", "Not a row of numbers"),
        ("0.5 1.2\n-.2 .5\n", "between 0 and 1"),
        ("0.5 0.9\n0.2 0.5\n", "don't add up to 1"),
        ("0.5 nan\nnan 0.5\n", "between 0 and 1"),
        ("", "as many columns as rows"),
    ],
)
def test_a_bad_matrix_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    model = make_judges(f"matrix:file={write(tmp_path / 'matrix.txt', text)}")
    with pytest.raises(BadFile, match=problem):
        model.judge("t", ("x", "y"), 0)


def test_a_matrix_of_another_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="3 rows and the pool 8 items"):
        make_judges(example_specs(tmp_path)["matrix"]).judge("t", ITEMS, 0)


def test_ties_are_rarer_between_unequal_items() -> None:
    judge = make_judges("case-b:ties=.4").judge("t", ITEMS, 1)
    (one, two), (other, *_) = judge.truth.levels
    equal, unequal = shares(judge, one, two), shares(judge, one, other)
    assert equal[Outcome.TIE] == pytest.approx(0.4, abs=0.025)
    weight = (0.4 / 0.6) * 2 * math.sqrt(0.75 * 0.25)
    assert unequal[Outcome.TIE] == pytest.approx(weight / (1 + weight), abs=0.025)
    decided = unequal[Outcome.LEFT] + unequal[Outcome.RIGHT]
    assert unequal[Outcome.LEFT] / decided == pytest.approx(0.75, abs=0.025)


def test_bad_items_are_called_bad_wherever_they_appear() -> None:
    judge = make_judges("order:bad=.25").judge("t", ITEMS, 1)
    *good, sixth, seventh, eighth = in_order(judge)
    assert judge.answer("t", good[0], seventh, 1) is Outcome.RIGHT_BAD
    assert judge.answer("t", eighth, sixth, 1) is Outcome.LEFT_BAD
    assert judge.answer("t", eighth, seventh, 1) is Outcome.BOTH_BAD
    assert judge.answer("t", good[0], sixth, 1) is Outcome.LEFT


@pytest.mark.parametrize(
    ("people", "wins"), [("error=.2", 0.8), ("guess=.3", 0.85), ("error=.1,guess=.2", 0.8)]
)
def test_people_err_as_often_as_stated(people: str, wins: float) -> None:
    judge = make_judges(f"order:{people}").judge("t", ITEMS, 3)
    best, *_, worst = in_order(judge)
    assert shares(judge, best, worst)[Outcome.LEFT] == pytest.approx(wins, abs=0.02)
    assert shares(judge, worst, best)[Outcome.RIGHT] == pytest.approx(wins, abs=0.02)


def test_an_error_reverses_a_bad_vote_and_leaves_a_tie() -> None:
    truth = Levels((("a", "b"), ("c",)))
    judge = Fallible(OrderJudge(truth), Dice(0, "x"), error=1.0, guess=0.0)
    assert judge.answer("t", "a", "b", 1) is Outcome.TIE
    assert judge.answer("t", "a", "c", 1) is Outcome.RIGHT
    assert judge.truth == truth


def test_graded_items_are_compared_by_grade_alone(tmp_path: Path) -> None:
    model = make_judges(example_specs(tmp_path)["graded"] + ",q=.9")
    assert model.pools == {"t1": ("a", "b", "c")}  # d has grade 0
    judge = model.judge("t1", ("a", "b", "c"), 4)
    assert judge.truth == Levels((("a",), ("b", "c")))
    assert shares(judge, "a", "c")[Outcome.LEFT] == pytest.approx(0.9, abs=0.02)
    assert shares(judge, "b", "c")[Outcome.LEFT] == pytest.approx(0.5, abs=0.025)


def test_a_raw_replay_answers_as_the_pair_was_judged() -> None:
    counts = np.array([[0, 3, 0], [1, 0, 2], [0, 0, 0]], dtype=float)
    fit = replayed_wins(counts, "fitted")
    raw = replayed_wins(counts, "raw")
    smoothed = replayed_wins(counts, "smoothed")
    assert raw[0, 1] == 0.75
    assert raw[1, 2] == 1.0
    assert raw[0, 2] == fit[0, 2] > fit[0, 1] > 0.5
    assert smoothed[0, 1] == pytest.approx((3 + 2 * fit[0, 1]) / 6)
    assert smoothed[0, 2] == pytest.approx(fit[0, 2])
    for wins in (raw, smoothed, fit):
        assert wins + wins.T == pytest.approx(np.ones((3, 3)))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=40))
def test_fit_maximises_its_posterior(games: list[tuple[int, int]]) -> None:
    counts = np.zeros((5, 5))
    for winner, loser in games:
        if winner != loser:
            counts[winner, loser] += 1

    def log_posterior(strengths: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        total = -float((strengths**2).sum()) / (2 * STRENGTH_SD**2)
        for i in range(5):
            for j in range(5):
                total -= counts[i, j] * math.log1p(math.exp(strengths[j] - strengths[i]))
        return total

    best = fitted_strengths(counts)
    top = log_posterior(best)
    for at in range(5):
        for shift in (-0.01, 0.01):
            moved = best.copy()
            moved[at] += shift
            assert log_posterior(moved) < top


def test_win_counts_follow_the_table_of_outcomes() -> None:
    log = [
        Judgment("t", "b", "a", Outcome.LEFT),
        Judgment("t", "a", "b", Outcome.TIE),
        Judgment("t", "a", "b", Outcome.CANNOT_JUDGE),
        Judgment("t", "a", "b", Outcome.LEFT_BAD),
    ]
    assert win_counts(("a", "b"), log).tolist() == [[0.0, 0.5], [2.5, 0.0]]


def test_three_and_four_columns_are_read_alike(tmp_path: Path) -> None:
    four = make_judges(f"replay:file={write(tmp_path / '4', 't a b b' + chr(10) + 't c a c')}")
    three = make_judges(f"replay:file={write(tmp_path / '3', 't b a' + chr(10) + 't c a')}")
    assert four.pools == three.pools == {"t": ("a", "b", "c")}
    assert four.judge("t", ("a", "b", "c"), 0).truth == three.judge("t", ("a", "b", "c"), 0).truth


@pytest.mark.parametrize("line", ["t a b c", "t a a", "t a a a", "t a", "a b c d e"])
def test_a_line_that_is_no_preference_is_refused(line: str, tmp_path: Path) -> None:
    model = make_judges(f"replay:file={write(tmp_path / 'votes', 't a b' + chr(10) + line)}")
    with pytest.raises(BadFile, match="Not a preference") as caught:
        assert model.pools
    assert caught.value.place.endswith(":2")


def test_a_replay_leaves_small_pools_out(tmp_path: Path) -> None:
    spec = example_specs(tmp_path)["replay"]
    assert set(make_judges(spec).pools) == {"t1", "t2"}
    assert set(make_judges(f"{spec},min_items=3").pools) == {"t1"}
    with pytest.raises(BadFile, match="No topic has 9 items"):
        assert make_judges(f"{spec},min_items=9").pools


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("bradley", UnknownName, "no judge called 'bradley'"),
        ("bt:std=1", BadParameter, "no parameter 'std'"),
        ("bt:sd=big", BadParameter, "'big' isn't a value"),
        ("bt:sd", BadParameter, "gives no value"),
        ("bt:sd=-1", BadParameter, "from 0 on"),
        ("bt:sd=nan", BadParameter, "from 0 on"),
        ("upsets:share=1.5", BadParameter, "share of reversed pairs"),
        ("case-a:q=.3", BadParameter, "from .5 to 1"),
        ("case-a:error=.7,guess=.7", BadParameter, "sum exceeds 1"),
        ("case-a:bad=2", BadParameter, "from 0 to 1"),
        ("matrix", BadParameter, "needs a file"),
        ("replay:file=x,answers=cooked", BadParameter, "can't answer 'cooked'"),
    ],
)
def test_a_bad_specification_is_refused(spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_judges(spec)


def test_a_tie_share_of_one_is_refused() -> None:
    with pytest.raises(BadParameter, match="ties"):
        make_judges("bt:ties=1").judge("t", ITEMS, 0)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    for kind in ("replay", "graded", "matrix"):
        with pytest.raises(BadFile, match="can't be read"):
            make_judges(f"{kind}:file={tmp_path / 'none'}").judge("t", ("a", "b"), 0)


def test_scores_that_differ_by_rounding_are_equal() -> None:
    assert levels_by_score(("a", "b", "c"), np.array([0.1 + 0.2, 0.3, 0.1])) == Levels((("a", "b"), ("c",)))


def test_a_matrix_judge_uses_both_halves_of_its_matrix() -> None:
    wins = np.array([[0.5, 1.0], [0.0, 0.5]])
    for items in (("a", "b"), ("b", "a")):
        judge = MatrixJudge(items, wins, Dice(0, "x"))
        assert {judge.answer("t", items[0], items[1], nth) for nth in range(20)} == {Outcome.LEFT}
        assert {judge.answer("t", items[1], items[0], nth) for nth in range(20)} == {Outcome.RIGHT}


@pytest.mark.parametrize(("file", "levels"), [("caseA.txt", [1] * 100), ("caseB.txt", [2, 98])])
def test_the_published_matrices_are_cases_a_and_b(data: Path, file: str, levels: list[int]) -> None:
    model = make_judges(f"matrix:file={data / 'dl21' / file}")
    items = tuple(str(at) for at in range(100))
    judge = model.judge("t", items, 0)
    assert [len(level) for level in judge.truth.levels] == levels
    case = make_judges("case-a" if file == "caseA.txt" else "case-b").judge("t", items, 0)
    assert case.truth == judge.truth
    questions = [(str(a), str(b), 1) for a in range(30) for b in range(a)]
    assert [case.answer("t", *q) for q in questions] == [judge.answer("t", *q) for q in questions]


def test_real_preferences_make_pools(data: Path) -> None:
    model = make_judges(f"replay:file={data / 'dl21' / 'judgments.txt'},min_items=20")
    assert len(model.pools) == 23
    topic, items = max(model.pools.items(), key=lambda pool: len(pool[1]))
    assert len(items) == 130
    assert len(model.judge(topic, items, 0).truth.best) == 1


@pytest.mark.parametrize("spec", ["bt", "bt:sd=3,ties=0.3", "case-a:q=0.8", "case-b:ties=0.2"])
def test_a_large_pool_is_judged_as_by_its_matrix(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    items = tuple(f"i{at:03d}" for at in range(150))
    pairs = [(items[at], items[(at * 7 + 3) % 150], nth) for at in range(149) for nth in (1, 2)]
    whole = make_judges(spec).judge("t", items, 4)
    monkeypatch.setattr(simulated, "MATRIX_AT_MOST", 10)
    by_row = make_judges(spec).judge("t", items, 4)
    assert all(by_row.true_order(rule) == whole.true_order(rule) for rule in TRUTHS)
    assert by_row.win_chance("i003", "i140") == whole.win_chance("i003", "i140")
    answers = [whole.answer("t", *question) for question in pairs if question[0] != question[1]]
    assert [by_row.answer("t", *question) for question in pairs if question[0] != question[1]] == answers
    assert len(set(answers)) > 1


# ---- what the truth is


def test_a_truth_of_no_rule_is_refused() -> None:
    with pytest.raises(UnknownName, match="no truth called 'bord'"):
        make_judges("bt").judge("t", ITEMS, 5).true_order("bord")


def matrix_judge(*rows: str) -> MatrixJudge:
    wins = np.array([[float(word) for word in row.split()] for row in rows])
    return MatrixJudge(tuple("abcdefgh"[: len(rows)]), wins, Dice(0))


def test_the_condorcet_winner_may_be_second_by_borda() -> None:
    judge = matrix_judge(".5 .6 .6 .6", ".4 .5 1 1", ".4 0 .5 .5", ".4 0 .5 .5")
    assert judge.truth == Levels((("b",), ("a",), ("c", "d")))
    copeland = judge.true_order("copeland")
    assert copeland.levels == Levels((("a",), ("b",), ("c", "d")))
    condorcet = judge.true_order("condorcet")
    assert (condorcet.levels, condorcet.rule) == (copeland.levels, "condorcet")


def test_copeland_is_the_truth_where_no_item_beats_all_others() -> None:
    cycle = matrix_judge(".5 .9 .2 .9", ".1 .5 .9 .9", ".8 .1 .5 .9", ".1 .1 .1 .5")
    order = cycle.true_order("condorcet")
    assert (order.levels, order.rule) == (Levels((("a", "b", "c"), ("d",))), "copeland")
    assert OrderJudge(Levels((("a", "b"), ("c",)))).true_order("condorcet").rule == "copeland"
    assert OrderJudge(Levels((("a",), ("b", "c")))).true_order("condorcet").rule == "condorcet"
    assert make_judges("case-b").judge("t", ITEMS, 1).true_order("condorcet").rule == "copeland"
    assert make_judges("case-a").judge("t", ITEMS, 1).true_order("condorcet").rule == "condorcet"


@given(st.integers(0, 10_000), st.integers(1, 8))
@settings(max_examples=30)
def test_copeland_counts_the_items_beaten(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.choice([0.2, 0.5, 0.7], (size, size)), 1)
    wins = upper + np.tril(1 - upper.T, -1) + 0.5 * np.eye(size)
    items = ITEMS[:size]
    score = {
        item: sum(
            1.0 if wins[at, other] > 0.5 else 0.5 if wins[at, other] == 0.5 else 0.0
            for other in range(size)
            if other != at
        )
        for at, item in enumerate(items)
    }
    order = MatrixJudge(items, wins, Dice(0)).true_order("condorcet")
    assert [{score[item] for item in level} for level in order.levels.levels] == [
        {value} for value in sorted(set(score.values()), reverse=True)
    ]
    assert (order.rule == "condorcet") == (max(score.values()) == size - 1)


@pytest.mark.parametrize(
    "spec", ["case-a:q=.8", "case-a:q=.8,ties=.4", "case-b:error=.2,guess=.3", "bt:bad=.5,error=.1"]
)
def test_win_chances_are_those_of_the_answers(spec: str) -> None:
    judge = make_judges(spec).judge("t", ITEMS, 3)
    order = in_order(judge)
    for a, b in ((order[0], order[-1]), (order[-1], order[1]), (order[-2], order[-1])):
        found = shares(judge, a, b, 4000)
        won = sum(
            share * (1.0 if outcome in {Outcome.LEFT, Outcome.RIGHT_BAD} else 0.5)
            for outcome, share in found.items()
            if outcome not in {Outcome.RIGHT, Outcome.LEFT_BAD}
        )
        assert judge.win_chance(a, b) == pytest.approx(won, abs=0.03)
