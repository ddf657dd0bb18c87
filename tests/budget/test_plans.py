"""Plans and estimates from them: files, later systems, rounds, noise, unanswered questions, invalid judgments."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from duelpool.arrays import Floats
from duelpool.budget import Beliefs, Population, item_population, pair_population, parse_metric, prior_by_rank
from duelpool.budget.plans.estimates import BudgetEstimate, estimate_plans
from duelpool.budget.plans.judged import JudgedUnits, from_grades, from_judgments, read_judged
from duelpool.budget.plans.plan import Plan, make_plan, propensities_beside, read_plan, write_plan
from duelpool.budget.plans.propensities import Propensities, read_propensities, write_propensities
from duelpool.budget.plans.rounds import fitted_beliefs, known_utilities, next_round
from duelpool.budget.units.sources import known_from
from duelpool.errors import BadFile, BadParameter
from duelpool.files import Qrels, Run, write_qrels
from duelpool.records import Judgment, Kind, Outcome
from support.budgets import small_runs

P = parse_metric("P@6")


@pytest.fixture
def runs_and_qrels() -> tuple[list[Run], Qrels]:
    return small_runs(topics=8, depth=12, systems=3, seed=2)


@pytest.fixture
def population(runs_and_qrels: tuple[list[Run], Qrels]) -> Population:
    return item_population(runs_and_qrels[0], P)


def answers(plan: Plan, qrels: Qrels) -> JudgedUnits:
    grades = qrels.grades()
    asked: dict[str, dict[str, float]] = {}
    for each in plan.questions:
        asked.setdefault(each.topic, {})[each.item] = grades[each.topic][each.item]
    return from_grades(asked, P, "answers.qrels")


def merged(*piles: JudgedUnits) -> JudgedUnits:
    return JudgedUnits({key: values for pile in piles for key, values in pile.utilities.items()})


def values(estimate: BudgetEstimate) -> Floats:
    return np.array([target.estimate for target in estimate.targets])


def test_plan_reads_back_equal(tmp_path: Path, population: Population) -> None:
    guess = np.random.default_rng(0).random(len(population))
    plan = make_plan(population, 30, beliefs=Beliefs(prior_by_rank(population), guess), price=12, seed=4)
    path = tmp_path / "plan.jsonl"
    assert write_plan(path, plan) == propensities_beside(path) == tmp_path / "plan.propensities.gz"
    again = read_plan(path)
    assert again.header() == plan.header()
    assert again.questions == plan.questions
    assert again.propensities.expected.tolist() == plan.propensities.expected.tolist()
    assert again.propensities.guess is not None
    assert again.propensities.guess.tolist() == guess.tolist()
    assert plan.cost == 30 * 12
    assert sum(each.times for each in plan.questions) == 30
    assert {each.name for each in plan.outlook} == set(population.systems)
    assert all(each.width is not None and each.width > 0 and each.unreachable == 0 for each in plan.outlook)
    assert all(
        each.most is not None and each.width is not None and each.most > each.width for each in plan.outlook
    )


def test_the_seed_fixes_the_plan(population: Population) -> None:
    one, same, other = (
        make_plan(population, 20, design="P", estimator="ht", seed=seed) for seed in (1, 1, 2)
    )
    assert one.questions == same.questions != other.questions


def test_unreachable_mass_is_reported_per_system(population: Population) -> None:
    size = population.weights[:, 0] > 0
    plan = make_plan(population.subset(size), 10, design="P", estimator="ht", epsilon=0.0)
    assert all(each.unreachable == 0 for each in plan.outlook)
    top = make_plan(population, 60, design="TOP", estimator="ht")
    assert all(each.unreachable > 0 for each in top.outlook)
    assert "biased" in top.notes[0]


def test_estimates_from_plans_are_unbiased_and_intervals_hold(
    population: Population, runs_and_qrels: tuple[list[Run], Qrels]
) -> None:
    _, qrels = runs_and_qrels
    known = known_from(population, qrels)
    truth = known.population.scores(known.utility)
    guess = np.clip(known.utility * 0.6 + 0.2, 0, 1)
    estimates, held = [], []
    for seed in range(120):
        plan = make_plan(population, 40, beliefs=Beliefs(prior_by_rank(population), guess), seed=seed)
        one = estimate_plans([plan], answers(plan, qrels), population)
        estimates.append(values(one))
        held.append(
            [(t.low or 0) <= true <= (t.high or 0) for t, true in zip(one.targets, truth, strict=True)]
        )
    error = np.std(estimates, axis=0) / np.sqrt(120)
    assert (np.abs(np.mean(estimates, axis=0) - truth) <= 4 * error).all()
    assert np.mean(held) > 0.9


def test_no_interval_goes_beyond_the_range_of_the_metric(
    population: Population, runs_and_qrels: tuple[list[Run], Qrels]
) -> None:
    _, qrels = runs_and_qrels
    ends = []
    for seed in range(30):
        plan = make_plan(population, 6, design="P", estimator="ht", seed=seed)
        for each in estimate_plans([plan], answers(plan, qrels), population, interval="wald").targets:
            ends += [end for end in (each.low, each.high, each.least, each.most) if end is not None]
    assert min(ends) >= 0
    assert max(ends) == pytest.approx(1.0, abs=1e-6)


def test_later_system_is_covered_or_its_unreachable_mass_reported(
    runs_and_qrels: tuple[list[Run], Qrels],
) -> None:
    runs, qrels = runs_and_qrels
    planned, later = item_population(runs[:2], P), item_population(runs[2:], P)
    truth = known_from(later, qrels).population.scores(known_from(later, qrels).utility)[0]
    held, estimates = [], []
    for seed in range(60):
        plan = make_plan(planned, 40, design="P", estimator="ht", seed=seed, mix=0.3)
        one = estimate_plans([plan], answers(plan, qrels), later).targets[0]
        assert not one.planned
        assert one.unreachable > 0
        assert one.most is not None
        assert one.least is not None
        held.append(one.least <= truth <= one.most)
        estimates.append(one.estimate)
    assert np.mean(held) > 0.9
    plan = make_plan(planned, 40, design="P", estimator="ht")
    result = estimate_plans([plan], answers(plan, qrels), later)
    assert any("could add up to" in note for note in result.notes)
    assert result.unbiased == "no"
    reachable = sum(
        w for w, key in zip(later.weights[:, 0], later.places(), strict=True) if key in planned.places()
    )
    assert result.targets[0].unreachable == pytest.approx(1 - reachable)


def test_rounds_with_replacement_are_pooled_by_their_mixture(
    population: Population, runs_and_qrels: tuple[list[Run], Qrels]
) -> None:
    """Eq. 4 with nQ replaced by the sum of n_j Q_j, checked against that very formula."""
    _, qrels = runs_and_qrels
    prior = prior_by_rank(population)
    one = make_plan(population, 25, design="P", estimator="importance", seed=1)
    two = make_plan(population, 15, design="SQRT", estimator="importance", beliefs=Beliefs(prior), seed=2)
    judged = merged(answers(one, qrels), answers(two, qrels))
    estimate = estimate_plans([one, two], judged, population, interval="hoeffding")
    places = population.places()
    expected = one.propensities.expected + two.propensities.expected
    by_formula = np.zeros(3)
    for plan in (one, two):
        for each in plan.questions:
            at = places[each.key]
            by_formula += each.times * judged.utilities[each.key][0] * population.weights[at] / expected[at]
    assert values(estimate) == pytest.approx(by_formula)
    assert estimate.guaranteed
    spans = [
        np.where(plan.propensities.expected[:, None] > 0, population.weights / expected[:, None] * 40, 0).max(
            axis=0
        )
        for plan in (one, two)
    ]
    half = np.sqrt(np.log(40) / 2 * (25 * spans[0] ** 2 + 15 * spans[1] ** 2)) / 40
    highs = np.minimum([t.estimate for t in estimate.targets] + half, 1)  # P@k goes no further
    assert [t.high for t in estimate.targets] == pytest.approx(highs)
    with pytest.raises(BadParameter, match="several rounds"):
        estimate_plans([one, two], judged, population, interval="betting")


def test_adaptive_rounds_fit_beliefs_and_stay_unbiased(
    population: Population, runs_and_qrels: tuple[list[Run], Qrels], tmp_path: Path
) -> None:
    _, qrels = runs_and_qrels
    known = known_from(population, qrels)
    truth = known.population.scores(known.utility)
    prior = prior_by_rank(population)
    estimates = []
    for seed in range(150):
        first = make_plan(population, 30, design="root", estimator="ht", beliefs=Beliefs(prior), seed=seed)
        judged = answers(first, qrels)
        second = next_round([first], judged, population, 30, seed=seed)
        assert second.round == 2
        assert not {each.key for each in first.questions} & {each.key for each in second.questions}
        both = merged(judged, answers(second, qrels))
        estimates.append(values(estimate_plans([first, second], both, population)))
    error = np.std(estimates, axis=0) / np.sqrt(150)
    assert (np.abs(np.mean(estimates, axis=0) - truth) <= 4 * error).all()
    path = tmp_path / "second.jsonl"
    write_plan(path, second)
    again = read_plan(path)
    assert values(estimate_plans([first, again], both, population)) == pytest.approx(estimates[-1])
    settled = known_utilities(population, judged)
    believed = fitted_beliefs([first], settled, population).prior
    assert believed is not None
    assert np.corrcoef(believed, known.utility)[0, 1] > np.corrcoef(prior, known.utility)[0, 1] - 0.05


def noisy_answers(plan: Plan, qrels: Qrels, repeats: int, rng: np.random.Generator) -> JudgedUnits:
    grades = qrels.grades()
    rows = [
        Judgment(each.topic, each.item, None, Outcome.GRADE, kind=Kind.GRADE, assessor=f"a{at}",
                 grade=float(rng.random() < 0.15 + 0.7 * grades[each.topic][each.item]))
        for each in plan.questions
        for at in range(repeats)
    ]  # fmt: skip
    return from_judgments(rows, P)


@pytest.mark.parametrize("repeats", [1, 2])
def test_noisy_judges_with_and_without_repeats(
    population: Population, runs_and_qrels: tuple[list[Run], Qrels], repeats: int
) -> None:
    _, qrels = runs_and_qrels
    known = known_from(population, qrels)
    truth = population.scores(0.15 + 0.7 * known.utility)
    rng = np.random.default_rng(3)
    estimates, held = [], []
    for seed in range(100):
        plan = make_plan(population, 60 * repeats, design="P", estimator="ht", seed=seed, repeats=repeats)
        assert plan.judgments == 60 * repeats
        one = estimate_plans([plan], noisy_answers(plan, qrels, repeats, rng), population, noisy=True)
        assert one.judgments == 60 * repeats
        estimates.append(values(one))
        held.append(
            [(t.low or 0) <= true <= (t.high or 0) for t, true in zip(one.targets, truth, strict=True)]
        )
    error = np.std(estimates, axis=0) / np.sqrt(100)
    assert (np.abs(np.mean(estimates, axis=0) - truth) <= 4 * error).all()
    assert np.mean(held) > 0.91


def test_unanswered_questions_give_bounds(
    population: Population, runs_and_qrels: tuple[list[Run], Qrels]
) -> None:
    _, qrels = runs_and_qrels
    plan = make_plan(population, 40, design="P", estimator="ht")
    whole = answers(plan, qrels)
    part = JudgedUnits(dict(list(whole.utilities.items())[5:]), "part.qrels")
    full, partial = estimate_plans([plan], whole, population), estimate_plans([plan], part, population)
    assert (partial.questions, partial.answered) == (40, 35)
    assert (full.unbiased, partial.unbiased) == ("exactly", "no")
    assert any("5 questions are unanswered" in note for note in partial.notes)
    for better, worse in zip(full.targets, partial.targets, strict=True):
        assert worse.least is not None and worse.most is not None and worse.low is not None  # noqa: PT018
        assert worse.least <= min(worse.low, better.low or 0) + 1e-12
        assert worse.most >= (better.high or 0) - 1e-12
    with pytest.raises(BadFile, match="None of the plan's questions"):
        estimate_plans([plan], JudgedUnits({}), population)


def test_pairs_are_planned_judged_and_estimated(
    runs_and_qrels: tuple[list[Run], Qrels], tmp_path: Path
) -> None:
    runs, qrels = runs_and_qrels
    metric = parse_metric("ppref@3")
    pairs = pair_population(runs, metric)
    known = known_from(pairs, qrels)
    plan = make_plan(pairs, len(pairs), design="P", estimator="ht", epsilon=0.01)
    path = tmp_path / "pairs.jsonl"
    write_plan(path, plan)
    plan = read_plan(path)
    grades = qrels.grades()
    rows = []
    for each in plan.questions:
        assert each.other is not None
        a, b = grades[each.topic][each.item], grades[each.topic][each.other]
        outcome = Outcome.TIE if a == b else Outcome.LEFT if a > b else Outcome.RIGHT
        rows.append(Judgment(each.topic, each.item, each.other, outcome))
    rows.append(Judgment(rows[0].topic, rows[0].left, rows[0].right, Outcome.SKIP))
    judged = from_judgments(rows, metric)
    assert judged.unused == 1
    estimate = estimate_plans([plan], judged, pairs)
    assert values(estimate) == pytest.approx(known.population.scores(known.utility))
    with pytest.raises(BadParameter, match="needs preferences"):
        from_judgments([Judgment("t", "a", None, Outcome.GRADE, kind=Kind.GRADE, grade=1.0)], metric)
    with pytest.raises(BadParameter, match="needs grades"):
        from_judgments(rows, P)


def test_average_precision_by_ratio_from_a_whole_plan(runs_and_qrels: tuple[list[Run], Qrels]) -> None:
    runs, qrels = runs_and_qrels
    metric = parse_metric("AP@4")
    pairs = pair_population(runs, metric)
    plan = make_plan(pairs, len(pairs), design="P", estimator="ratio", epsilon=0.01)
    estimate = estimate_plans([plan], from_grades(qrels.grades(), metric), pairs, others="ignore")
    assert estimate.unbiased == "no"
    assert estimate.interval == "none"
    assert any("biased" in note for note in estimate.notes)
    assert all(0 < value < 1 for value in values(estimate))


def test_judgments_are_read_from_each_form(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    write_qrels(path, Qrels.from_grades({"t": {"a": 1.0, "b": 0.0}}))
    assert read_judged(path, P).utilities == {("t", "a"): (1.0,), ("t", "b"): (0.0,)}
    path.write_text('{"topic": "t", "left": "a", "outcome": "grade", "grade": 1}\n' * 2)
    assert read_judged(path, P).utilities == {("t", "a"): (1.0, 1.0)}
    path.write_text("t b a b\nt a c =\n")
    assert read_judged(path, parse_metric("ppref@3")).utilities == {
        ("t", "a", "b"): (0.0,),
        ("t", "a", "c"): (0.5,),
    }


def test_undrawn_or_out_of_range_judgments_are_refused(
    population: Population, runs_and_qrels: tuple[list[Run], Qrels]
) -> None:
    _, qrels = runs_and_qrels
    plan = make_plan(population, 20, design="P", estimator="ht")
    judged = answers(plan, qrels)
    stray = JudgedUnits({**judged.utilities, ("t0", "zzz"): (1.0,)}, "answers.qrels")
    with pytest.raises(BadFile, match="no plan drew, first: t0 zzz") as error:
        estimate_plans([plan], stray, population)
    assert error.value.place == "answers.qrels"
    assert "--others ignore" in error.value.remedy
    assert estimate_plans([plan], stray, population, others="ignore").answered == 20
    high = JudgedUnits({**judged.utilities, plan.questions[0].key: (3.0,)}, "answers.qrels")
    with pytest.raises(BadFile, match="is 3, and the plan was made for 0 to 1"):
        estimate_plans([plan], high, population)
    for wrong in ({"others": "keep"}, {"level": 1.0}):
        with pytest.raises(BadParameter):
            estimate_plans([plan], judged, population, **wrong)
    other = make_plan(item_population(runs_and_qrels[0], parse_metric("P@5")), 20, design="P", estimator="ht")
    with pytest.raises(BadParameter, match="different metrics"):
        estimate_plans([plan, other], judged, population)
    with pytest.raises(BadParameter, match="Nothing of the earlier rounds"):
        next_round([plan], JudgedUnits({}), population, 5)
    for kwargs in ({"repeats": 0}, {"price": -1}, {"design": "true"}):
        with pytest.raises(BadParameter):
            make_plan(population, 20, estimator="ht", **kwargs)
    with pytest.raises(BadParameter, match="doesn't pay for"):
        make_plan(population, 2, design="P", estimator="ht", repeats=3)
    with pytest.raises(BadParameter, match="larger than the population"):
        make_plan(population, 10_000, design="P", estimator="ht")


def test_changed_plan_files_are_refused(tmp_path: Path, population: Population) -> None:
    path = tmp_path / "plan.jsonl"
    write_plan(path, make_plan(population, 5, design="P", estimator="ht"))
    lines = path.read_text().splitlines()
    question = json.loads(lines[2])

    def with_header(**changes: object) -> str:
        return "\n".join([json.dumps({**json.loads(lines[0]), **changes}), *lines[1:]]) + "\n"

    def with_question(**changes: object) -> str:
        return "\n".join([*lines[:2], json.dumps({**question, **changes}), *lines[3:]]) + "\n"

    for text, problem, place in (
        (with_question(expected=None), "absent", ":3"),
        (with_question(expected=0), "is 0", ":3"),
        (with_question(times=0), "drawn 0 times", ":3"),
        (with_question(topic=None), "a topic and an item", ":3"),
        ("\n".join(lines[:-1]) + "\n", "5 questions, and the file 4", ""),
        ('{"topic": 1}\n', "not a budget plan", ":1"),
        (with_header(propensities="9" * 300 + ".txt"), "names no file", ":1"),  # longer than a name may be
        (with_header(propensities=""), "names no file", ":1"),
        (with_header(propensities="other.txt"), "there is no file '.*other.txt'", ":1"),
    ):
        path.write_text(text)
        with pytest.raises(BadFile, match=problem) as error:
            read_plan(path)
        assert error.value.place == f"{path}{place}"
        assert error.value.remedy
    path.write_text("\n".join(lines) + "\n")
    beside = propensities_beside(path)
    with gzip.open(beside, "rt") as packed:
        rows = packed.read().splitlines()
    for wrong, problem in (("often", "no number"), ("-0.5", "from 0 on"), ("-", "from 0 on")):
        words = rows[0].split()
        beside.write_text("\n".join([" ".join([*words[:2], wrong, *words[3:]]), *rows[1:]]) + "\n")
        with pytest.raises(BadFile, match=problem):
            read_plan(path)
    beside.unlink()
    with pytest.raises(BadFile, match=f"propensities are missing: there is no file '{beside}'") as error:
        read_plan(path)
    assert error.value.place == f"{path}:1"


@pytest.mark.parametrize("others", [None, ("x", "y", "z")], ids=["items", "pairs"])
def test_propensities_read_back_as_written(tmp_path: Path, others: tuple[str, ...] | None) -> None:
    """A unit that was known before the plan has its utility in the file, and was never drawn."""
    written = Propensities(
        ("t1", "t1", "t2"),
        ("a", "b", "a"),
        others,
        np.array([0.1 + 0.2, 0.0, 1 / 3]),
        np.array([0.5, 0.25, 0.7]),
        np.array([0.4, 0.3, 0.2]),
        np.array([np.nan, 0.25, np.nan]),
    )
    write_propensities(tmp_path / "propensities", written)
    read = read_propensities(tmp_path / "propensities")
    assert (read.topics, read.items, read.others) == (written.topics, written.items, others)
    for name in ("expected", "guess", "prior", "known"):
        np.testing.assert_array_equal(getattr(read, name), getattr(written, name))
