"""What type checkers and editors see: every public name, with the type that a call returns."""

from typing import assert_type

import duelpool as dp


def results() -> None:
    """Each function returns what the documentation says; only type checkers run this."""
    pools = dp.pool({"a": {"q1": ["d1", "d2"]}})
    assert_type(pools, dp.PoolSet)
    assert_type(pools["q1"], dp.Pool)
    assert_type(dp.read_run({"q1": ["d1"]}), dp.Run)
    assert_type(dp.read_qrels({}), dp.Qrels)
    assert_type(dp.read_preferences([]), dp.Preferences)
    assert_type(dp.read_topics({}), dp.Topics)
    assert_type(dp.read_passages({}), dp.Passages)
    assert_type(dp.read_answers([]), dp.Answers)
    choose = dp.strategy("knockout", ["d1", "d2"])
    assert_type(choose, dp.AskTell)
    assert_type(choose.ask(), list[dp.Proposal])
    assert_type(choose.ask()[0].wins("d1"), dp.Judgment)
    assert_type(choose.result(), dp.Levels)
    result = dp.run(pools, judge=lambda topic, a, b: a)
    assert_type(result, dp.JudgedPools)
    assert_type(result.leaderboard(), dp.Evaluation)
    assert_type(result.systems(), dp.SystemBoard)
    assert_type(dp.simulate("knockout", "order"), dp.SimulationResult)
    assert_type(dp.evaluate({}, {}), dp.Evaluation)
    assert_type(dp.compare({}, {}), dp.RunComparison)
    assert_type(dp.agreement([]), dp.Agreement)
    plan = dp.plan({}, 10)
    assert_type(plan, dp.Plan)
    assert_type(dp.estimate(plan, {}, {}), dp.BudgetEstimate)
    with dp.open("mine.db") as store:
        assert_type(store, dp.Campaigns)
        assert_type(store["mine"], dp.OpenCampaign)
        assert_type(store["mine"].ask(), list[dp.Question])
        assert_type(store["mine"].status(), dp.CampaignStatus)
