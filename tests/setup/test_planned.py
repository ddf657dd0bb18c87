"""A plan as a campaign: its sample is asked with its propensities, and the estimate reads the campaign."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from duelpool.budget import Beliefs, item_population, pair_population, parse_metric
from duelpool.budget.plans.estimates import estimate_plans
from duelpool.budget.plans.judged import from_grades, from_judgments
from duelpool.budget.plans.plan import make_plan, write_plan
from duelpool.campaign import Campaign, Settings
from duelpool.campaign.log.plan_source import PlanSource
from duelpool.campaign.views.status import status
from duelpool.cli import app
from duelpool.errors import BadParameter
from duelpool.files import write_run
from duelpool.records import Answer, Outcome, Proposal
from duelpool.setup.planned import plan_judgments, plan_pools, plan_settings
from duelpool.store import open_store
from support.budgets import small_runs

RUNS, QRELS = small_runs(topics=4, depth=8, systems=2, seed=2)
GRADES = QRELS.grades()


def judge_items(campaign: Campaign, people: int = 1, first_cannot: bool = False) -> int:
    """Let people grade until nothing is left; one of them may be unable to judge the first question."""
    count = 0
    for at in range(people):
        campaign.enrol(f"p{at}", "dedicated")
    for at in range(people):
        while (question := campaign.next_question(f"p{at}")) is not None:
            assert question.right is None
            if first_cannot and count == 0 and at == 0:
                answer = Answer(Outcome.CANNOT_JUDGE)
            else:
                answer = Answer(Outcome.GRADE, grade=GRADES[question.topic][question.left])
            campaign.answer(question.id, f"p{at}", answer)
            count += 1
    return count


def test_items_of_a_plan_are_graded_and_estimated(tmp_path: Path) -> None:
    population = item_population(RUNS, parse_metric("P@5"))
    plan = make_plan(population, 15, design="P", estimator="ht", seed=3)
    with open_store(str(tmp_path / "c.db"), create=True) as store:
        campaign = Campaign.create(
            store, "budget", plan_settings(plan, Settings()), topics=(), pools=plan_pools(plan)
        )
        assert judge_items(campaign) == 15
        assert campaign.done
        judgments = plan_judgments(Campaign.open(store, "budget"))
    chances = {each.key: each.expected for each in plan.questions}
    assert len(judgments) == 15
    for judgment in judgments:
        assert judgment.propensity == pytest.approx(chances[judgment.topic, judgment.left])
        assert judgment.strategy == "plan/1"
    asked = {t: {j.left: GRADES[t][j.left] for j in judgments if j.topic == t} for t in GRADES}
    by_campaign = estimate_plans([plan], from_judgments(judgments, population.metric), population)
    by_file = estimate_plans([plan], from_grades(asked, population.metric), population)
    assert by_campaign.as_json() == by_file.as_json()


def test_cannot_judge_passes_to_another_assessor_never_to_another_item(tmp_path: Path) -> None:
    population = item_population(RUNS, parse_metric("P@5"))
    plan = make_plan(population, 8, design="P", estimator="ht", seed=3)
    with open_store(str(tmp_path / "c.db"), create=True) as store:
        settings = plan_settings(plan, Settings())
        campaign = Campaign.create(store, "budget", settings, topics=(), pools=plan_pools(plan))
        judge_items(campaign, people=2, first_cannot=True)
        judgments = [each for each in plan_judgments(campaign) if each.grade is not None]
    assert {(each.topic, each.left) for each in judgments} == {each.key for each in plan.questions}
    assert {each.assessor for each in judgments} == {"p0", "p1"}


def test_noisy_judges_grade_each_item_twice(tmp_path: Path) -> None:
    population = item_population(RUNS, parse_metric("P@5"))
    plan = make_plan(population, 12, design="P", estimator="ht", repeats=2)
    with open_store(str(tmp_path / "c.db"), create=True) as store:
        settings = plan_settings(plan, Settings())
        campaign = Campaign.create(store, "budget", settings, topics=(), pools=plan_pools(plan))
        judge_items(campaign, people=3)
        judged = from_judgments(plan_judgments(campaign), population.metric)
    assert len(judged) == 6
    assert all(len(values) == 2 for values in judged.utilities.values())


def test_pairs_of_a_plan_are_judged_and_estimated(tmp_path: Path) -> None:
    distinct = {t: {d: float(int(d[1:]) * 7 % 16) for d in of} for t, of in GRADES.items()}
    metric = parse_metric("ppref@4")
    pairs = pair_population(RUNS, metric)
    plan = make_plan(pairs, 20, design="P", estimator="importance", epsilon=0.01, seed=1)
    with open_store(str(tmp_path / "c.db"), create=True) as store:
        campaign = Campaign.create(
            store, "budget", plan_settings(plan, Settings()), topics=(), pools=plan_pools(plan)
        )
        campaign.enrol("p", "dedicated")
        while (question := campaign.next_question("p")) is not None:
            assert question.right is not None
            of = distinct[question.topic]
            better = Outcome.LEFT if of[question.left] > of[question.right] else Outcome.RIGHT
            campaign.answer(question.id, "p", Answer(better))
        assert campaign.done
        judgments = plan_judgments(campaign)
    assert len(judgments) == len(plan.questions)
    assert all(judgment.propensity is not None and 0 < judgment.propensity < 1 for judgment in judgments)
    estimate = estimate_plans([plan], from_judgments(judgments, metric), pairs)
    assert estimate.answered == len(plan.questions)
    truth = np.array([target.estimate for target in estimate.targets])
    assert np.isfinite(truth).all()


def test_the_plan_source_asks_what_is_missing() -> None:
    source = PlanSource(("a", "b", "c"), [("t", "a", "b", 0.5, 2), ("t", "b", "c", 0.25, 1)])
    assert [(p.pair, p.propensity) for p in source.ask(9)] == [
        (("a", "b"), 0.5),
        (("a", "b"), 0.5),
        (("b", "c"), 0.25),
    ]
    assert [p.pair for p in source.ask(9, [Proposal(("a", "b")), Proposal(("b", "c"))])] == [("a", "b")]
    assert source.most_judgments(3) == source.expected_judgments(3) == 3
    assert not source.done
    assert source.result().levels == (("a", "b", "c"),)


def test_plan_to_estimate_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    for run in RUNS:
        write_run(Path("runs") / f"{run.name}.run", run)
    write_plan(
        "plan.jsonl", make_plan(item_population(RUNS, parse_metric("P@5")), 10, design="P", estimator="ht")
    )
    held = CliRunner().invoke(app, ["budget", "campaign", "plan.jsonl", "-o", "held.db"])
    assert "are held back from judging" in held.stderr  # a plan alone has no texts
    allowed = ("--allow-missing-texts", "--allow-missing-questions")
    made = CliRunner().invoke(app, ["budget", "campaign", "plan.jsonl", "-o", "budget.db", *allowed])
    assert made.exit_code == 0, made.output
    assert "held back" not in made.stderr
    assert "10 questions" in made.stderr
    with open_store("budget.db", writable=True) as store:
        judge_items(Campaign.open(store))
    done = CliRunner().invoke(app, ["budget", "estimate", "plan.jsonl", "runs/", "-j", "budget.db", "--json"])
    assert done.exit_code == 0, done.output
    assert '"answered": 10' in done.stdout


def test_unfit_campaigns_and_plans_are_refused(tmp_path: Path) -> None:
    population = item_population(RUNS, parse_metric("DCG(gain=exponential)@5"))

    plan = make_plan(population, 5, design="P", estimator="ht", beliefs=Beliefs(top=7.0))
    with pytest.raises(BadParameter, match=r"No scale of grades has 7 .* --max-grade 1 \(the scale binary\)"):
        plan_settings(plan, Settings())
    assert plan_settings(plan, Settings(), "abc").scale == "abc"
    with open_store(str(tmp_path / "c.db"), create=True) as store:
        other = Campaign.create(store, "other", Settings(), topics=(), pools=plan_pools(plan))
        with pytest.raises(BadParameter, match="has no budget plan"):
            plan_judgments(other)


def test_drawn_items_get_the_grades_of_their_draws_and_no_more(tmp_path: Path) -> None:
    population = item_population(RUNS, parse_metric("P@5"))
    plan = make_plan(population, 24, design="P", estimator="importance", draw="replacing", repeats=2, seed=1)
    wanted = {each.key: 2 * each.times for each in plan.questions}  # each draw is judged twice
    assert len(set(wanted.values())) > 1
    with open_store(str(tmp_path / "c.db"), create=True) as store:
        settings = plan_settings(plan, Settings())
        campaign = Campaign.create(store, "budget", settings, topics=(), pools=plan_pools(plan))

        def left() -> list[int]:
            now = status(campaign)
            return [now.total(name) for name in ("judgments", "expected", "open")]

        assert left() == [0, 24, 24]
        campaign.enrol("p0", "dedicated")
        first = campaign.next_question("p0")
        assert first is not None
        assert left() == [0, 24, 23]
        campaign.answer(first.id, "p0", Answer(Outcome.GRADE, grade=0.0))
        assert left() == [1, 24, 23]
        judge_items(campaign, people=max(wanted.values()))
        assert left() == [24, 24, 0]
        assert campaign.done
        judgments = plan_judgments(campaign)
    assert Counter((each.topic, each.left) for each in judgments) == wanted
