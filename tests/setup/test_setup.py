"""Setup: drafts of campaigns, dry runs, pilots, changes of settings, and uploads."""

import gzip
import io
import json
import math
import stat
import zipfile
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.campaign import Settings
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.campaign.settings import CHANGEABLE, FIXED
from duelpool.campaign.settings.changes import changed, changes
from duelpool.campaign.views.reading import topics_of
from duelpool.cli import app
from duelpool.cli.campaign.pool_tables import pilot_summary, show_alternatives
from duelpool.cli.opening import opened
from duelpool.errors import BadFile, BadParameter, BadRecord, UnknownName
from duelpool.leaderboard.scoring import runs_of
from duelpool.records import Judgment, Outcome, Pool
from duelpool.setup import (
    Comparison,
    Files,
    Forecast,
    Observed,
    build_draft,
    candidates,
    compare,
    every_strategy,
    fit_judges,
    forecast,
    observe,
    read_files,
    recommend,
)
from duelpool.setup.comparisons import Compared, known_before, thinner_plan
from duelpool.setup.drafts import Rules
from duelpool.setup.forecasts import standard_error
from duelpool.setup.pilots import _agreement_of
from duelpool.setup.uploads import Limits, TooMuch, UploadFolder, checked_name
from duelpool.simulation import simulate
from duelpool.simulation.cost import Estimate, Pay, estimate
from duelpool.simulation.known import KNOWN, SIMULATED_JUDGES, known_share
from duelpool.store import holdings, log, open_store
from duelpool.store.holdings import TestPair
from duelpool.strategies import STRATEGIES
from support.campaigns import Knows, make_campaign
from support.visitors import new_store

TOPICS = 10


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let simulations be short."""
    monkeypatch.setattr("duelpool.setup.forecasts.TRIALS_AT_MOST", 12)
    monkeypatch.setattr("duelpool.setup.pilots._FIT_TRIALS", 9)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "one.run").write_text(
        "".join(f"{t} Q0 d{t}{at} {at} {9 - at} one\n" for t in range(TOPICS) for at in range(4))
    )
    (tmp_path / "texts.tsv").write_text(
        "".join(f"d{t}{at}\ttext {t} {at}\n" for t in range(TOPICS) for at in range(3))
    )
    (tmp_path / "topics.tsv").write_text("0\tWhat is it?\n")
    return Files(
        (str(tmp_path / "one.run"),),
        topics=str(tmp_path / "topics.tsv"),
        texts=str(tmp_path / "texts.tsv"),
    )


def test_a_draft_becomes_a_campaign_with_its_runs(files: Files, tmp_path: Path) -> None:
    draft = build_draft(read_files(files), Settings(judges="crowd"))
    assert draft.pools.candidates == 4 * TOPICS
    assert len(draft.pools.without_text) == TOPICS
    assert len(draft.untitled) == TOPICS - 1
    ready = draft.ready()
    assert len(ready.test_pairs) == 5 * TOPICS
    with new_store(tmp_path / "made.db") as store:
        campaign, held = ready.create(store, "made", "paused")
        assert (held.topics, held.candidates, held.runs) == (TOPICS, 4 * TOPICS, 1)
        assert [run.name for run in runs_of(campaign)] == ["one"]
        assert store.read(lambda connection: holdings.find_campaign(connection, "made")).state == "paused"
        with pytest.raises(BadParameter, match="already"):
            ready.create(store, "made")
        assert len(store.read(holdings.campaigns)) == 1


def test_a_pilot_takes_a_share_of_the_topics_by_the_seed(files: Files) -> None:
    inputs = read_files(files)
    drafts = [build_draft(inputs, Settings(seed=seed), share=0.25) for seed in (1, 1, 2)]
    chosen = [tuple(draft.pools.sizes) for draft in drafts]
    assert chosen[0] == chosen[1] != chosen[2]
    assert len(chosen[0]) == 3  # a quarter of ten, rounded up
    assert all(len(draft.whole) == TOPICS for draft in drafts)
    for share in (0, -1, 1.5, math.nan):
        with pytest.raises(BadParameter, match="share"):
            build_draft(inputs, Settings(), share=share)


def test_a_forecast_adds_up_and_is_the_same_again() -> None:
    pay = Pay(reward=100, fee_percent=50, questions=10)
    sizes = (1, 5, 5, 5)
    first = forecast(sizes, "allpairs", pay, usable=0.5, seed=3)
    assert first.judgments == 30  # ten pairs in each of three topics
    assert first.assignments == 6  # half of what is paid counts
    assert first.cost == 6 * 150
    assert 0.25 < first.found <= 1  # the pool of one is always right
    assert first.error == pytest.approx(standard_error(first.found * first.trials, first.trials))
    assert forecast(sizes, "allpairs", pay, usable=0.5, seed=3) == first
    sure = forecast(sizes, "allpairs", pay, judges="order")
    assert sure.found == 1
    assert sure.error > 0  # a few trials prove no 100 %
    assert set(every_strategy()) == set(STRATEGIES) - {"difference"}
    for wrong in ((), (3,)):
        with pytest.raises(BadParameter):
            forecast(wrong, "allpairs", usable=0)


def _forecast(name: str, cost: int, found: float, error: float = 0.02) -> Forecast:
    return Forecast(name, 1, 1.0, 1, cost, found, error, 100)


def test_twice_the_judgments_have_to_find_five_points_more_to_be_recommended() -> None:
    few = Forecast("few", 1_000, 1.0, 100, 24_000, 0.40, 0.02, 200)
    some = Forecast("some", 4_000, 1.0, 400, 96_000, 0.60, 0.02, 200)  # two doublings: 20 points
    many = Forecast("many", 8_000, 1.0, 800, 192_000, 0.63, 0.02, 200)  # one doubling: 3 points
    every = Forecast("every", 64_000, 1.0, 6_400, 1_536_000, 0.75, 0.02, 200)  # four doublings: 15 points
    assert recommend([few, some, many, every]).strategy == "some"
    assert recommend([few, some, many]).reason == (
        "some finds the best item of 60% of the topics (±2%) with 4,000 judgments. A strategy that "
        "takes twice as many judgments is recommended only if it finds the best item of at least 5 more of 100 "
        "topics. many finds 63% (±2%) with 8,000. few finds 40% (±2%) with 1,000."
    )
    assert recommend([some, replace(many, found=0.66)]).strategy == "many"
    assert recommend([some, replace(many, found=0.66, error=0.1)]).strategy == "some", (
        "few trials prove little"
    )


def test_pools_of_different_sizes_are_simulated_by_draws_of_their_own() -> None:
    sizes = range(16, 36)
    drawn = [simulate("allpairs", "bt:sd=1", items=size, trials=1, seed=1).single for size in sizes]
    assert sum(drawn) == 20, "with one seed for all sizes, twenty trials are as good as one"
    one = forecast(list(sizes), "allpairs", judgments_at_most=20 * 330)
    assert one.trials < 25
    assert 0.2 < one.found < 0.8


def test_under_a_limit_cheapest_within_one_standard_error_is_recommended() -> None:
    made = [_forecast("a", 900, 0.90), _forecast("b", 500, 0.89), _forecast("c", 100, 0.70)]
    assert recommend(made, 10_000).strategy == "b"
    assert recommend(made, 400).strategy == "c"
    assert recommend(made, 499).strategy == "c"
    assert recommend(made, 500).strategy == "b"
    assert recommend(made, 500).reason == (
        "b finds the best item of 89% of the topics (±2%) with 1 judgments for 5.00, within the limit of 5.00. "
        "It is the cheapest within one standard error of the best."
    )
    none = recommend(made, 50)
    assert none.strategy is None
    assert "50% of the topics" in none.reason
    with pytest.raises(BadParameter):
        recommend([])
    pay = Pay(reward=100, fee_percent=0)
    within = candidates([4] * 10, pay, 1000)  # ten assignments: a hundred judgments, ten a topic
    assert "swissfinals:budget=10" in within
    assert candidates([40] * 10, pay, 1000) == candidates([], pay, None)
    assert "swissfinals:budget=80" in candidates([4] * 10, pay, 10**8)  # not what a million would buy


def test_fitted_judges_recover_a_pilots_noise() -> None:
    """The agreement of judges reveals their spread, with the pilot's own strategy."""
    pilot = Observed("p", "allpairs:repeats=3", 3, (6, 6, 7), 200, 400, 0.5, 0.0, 9.0, 0, None, 0.8)
    met = {spread: _agreement_of(f"bt:sd={spread}", pilot, 6, 5) for spread in (0.5, 3.0)}
    for spread, agreement in met.items():
        assert agreement is not None
        seen = Observed("p", pilot.strategy, 3, pilot.sizes, 200, 400, agreement, 0.0, 9.0, 0, None, 0.8)
        like = fit_judges(seen, seed=6)
        fitted = float(like.judges.removeprefix("bt:sd="))
        assert 0.5 * spread <= fitted <= 2 * spread, like
    few = Observed("p", "allpairs", 3, (6,), 9, 3, 0.5, 0.125, 9.0, 30, 0.1, 1.0)
    assert fit_judges(few).judges == "bt:sd=1,error=0.100,ties=0.125"
    assert few.hourly(Pay(reward=200)) == pytest.approx(200 * 3600 / 90)


def test_observed_figures_use_judgments_that_count(tmp_path: Path) -> None:
    with new_store(tmp_path / "pilot.db") as store:
        campaign = make_campaign(store, [Pool("one", tuple("abcd"))], strategy="allpairs:repeats=2", steps=())
        assert observe(campaign).judgments == 0
        for name in ("anna", "ben"):
            campaign.enrol(name, "dedicated")
        in_turns([JudgingSession(campaign, name, Knows()) for name in ("anna", "ben")])
        seen = observe(campaign)
        assert (seen.judgments, seen.topics, seen.sizes) == (12, 1, (4,))
        assert (seen.compared, seen.agreement, seen.usable) == (6, 1.0, 1.0)
        campaign.exclude("ben", "gone")
        seen = observe(campaign)
        assert seen.judgments == 6
        assert seen.usable == pytest.approx(0.5)


def test_observed_test_pairs_are_those_of_people_who_count(tmp_path: Path) -> None:
    with new_store(tmp_path / "pilot.db") as store:
        campaign = make_campaign(store, {"one": "abcd"}, known=[TestPair("k1", "one", "a", "d")])
        for name, outcome in (("anna", Outcome.LEFT), ("ben", Outcome.RIGHT)):
            campaign.enrol(name, "dedicated")
            judgment = Judgment("one", "a", "d", outcome, assessor=name)
            campaign.write(partial(log.append_judgment, judgment=judgment, at_once=False, test_pair="k1"))
        seen = observe(campaign)
        assert (seen.tests, seen.failed) == (2, 0.5)
        assert seen.test_pairs == "1 of 2 test pairs failed"
        campaign.exclude("ben", "careless")
        seen = observe(campaign)
        assert (seen.tests, seen.failed) == (1, 0.0)
        assert seen.test_pairs == "1 of 2 test pairs failed; 0 of 1 by people whose judgments count"
        said = pilot_summary(seen, campaign.settings)
        assert "1 of 2 test pairs failed; 0 of 1 by people whose judgments count" in said


def test_comparison_survives_json_and_another_process() -> None:
    seen = Observed("p", "allpairs", 1, (3,), 9, 3, None, 0.0, None, 0, None, 0.9)
    asked = Comparison((2, 3), "knockout", Pay(), 6, 1, 5000, seen)
    assert Comparison.from_json(json.loads(json.dumps(asked.as_json()))) == asked
    left: list[int] = []
    small = Comparison((2,), "allpairs", Pay(), 5, 1)
    compared = compare(small, lambda now: left.append(now.left))
    assert left == sorted(left, reverse=True)
    assert left[-1] == compared.left == 0
    assert {each.strategy for each in compared.forecasts} == {
        *("swissfinals", "prefbest", "topk", "knockout", "allpairs", "sorting", "carry-on"),
        "swissfinals:per_item=3.5",
    }
    chosen = Comparison((2,), "dts", Pay(), 6, 1)
    assert set(chosen.strategies()) == {"dts", *small.strategies()}, "one that is chosen is compared too"
    assert compared.recommendation is not None


@pytest.mark.long
def test_strategies_that_are_soon_simulated_come_first_and_with_few_trials() -> None:
    states: list[Compared] = []
    asked = Comparison((5, 6), "allpairs", Pay(), 5, 1)  # another cap than that of the known figures
    whole = compare(asked, states.append, few_trials_first=True)
    order = [each.simulating for each in states if each.simulating]
    names = asked.in_order()
    assert order == [*names, *names]
    assert names[0] == "knockout"
    assert {each.partition(":")[0] for each in names[-2:]} == {"swissfinals"}
    halfway = states[len(names)]
    assert halfway.left == len(names) == len(halfway.forecasts)
    closed = estimate((5, 6), "prefbest", cap=5).judgments
    assert closed in [each.judgments for each in halfway.forecasts if each.strategy == "prefbest"]
    assert whole.forecasts == compare(asked).forecasts
    assert [each.recommendation is not None for each in states] == [*[False] * (len(states) - 1), True]


def test_usual_comparison_is_known_and_that_of_a_pilot_or_of_parameters_is_simulated() -> None:
    usual = Comparison((5, 8, 20, 38), "swissfinals", Pay(), 6, 1)
    known = known_before(usual)
    assert known is not None
    assert known == compare(usual)
    assert {each.strategy for each in known.forecasts} == set(KNOWN)
    own = known_before(replace(usual, strategy="allpairs:repeats=2"))
    assert own is not None
    assert (own.left, own.recommendation) == (1, None)
    large = known_before(replace(usual, sizes=(5, 500)))
    assert large is not None
    assert large.forecasts == ()
    seen = Observed("p", "allpairs", 1, (3,), 9, 3, None, 0.0, None, 0, None, 0.9)
    assert known_before(replace(usual, observed=seen)) is None


# ---- on the command line


def test_pool_and_dry_run_say_and_recommend_the_same(tmp_path: Path) -> None:
    run = tmp_path / "a.run"
    run.write_text(
        "".join(
            f"q{topic} Q0 d{at} {at} {90 - at} a\n" for topic in range(9) for at in range(1, 6 + 4 * topic)
        )
    )
    words = ("pool", str(run), "--depth", "50")
    quick = json.loads(call(*words, "--json"))
    dry = json.loads(call(*words, "--json", "--dry-run"))["comparison"]
    shares = {each["strategy"]: (each["found"], each["judgments"]) for each in dry["forecasts"]}
    assert len(quick["alternatives"]) >= 4
    for each in quick["alternatives"]:
        assert (each["found"], each["judgments"]) == shares[each["strategy"]]
    reason = " ".join(dry["recommendation"]["reason"].split())
    for more in ((), ("--simulate",), ("--dry-run",)):
        assert reason in " ".join(call(*words, *more).split())
    assert "twice as many judgments is recommended only if" in reason


def call(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.long
def test_dry_run_creates_nothing_and_reads_a_pilot(files: Files, tmp_path: Path) -> None:
    pilot, whole = str(tmp_path / "pilot.db"), tmp_path / "whole.db"
    run = files.runs[0]
    call("pool", run, "--strategy", "allpairs:repeats=3", "--pilot", "0.2", "-o", pilot)
    with open_store(pilot) as store:
        assert len(store.read(holdings.campaigns)) == 1
    call("judge", pilot, "--judge", "simulated", "--model", "bt:sd=3")
    output = call(
        *("pool", run, "--learn-from", pilot, "--max-cost", "100000", "--dry-run", "-o", str(whole)),
        *("--strategy", "knockout"),
    )
    assert "Recommended: " in output
    assert "two votes on a pair agree" in output
    assert "was not written" in output
    assert not whole.exists()
    assert "share of the topics" in call("pool", run, "--pilot", "2", code=2)


@pytest.fixture
def half_usable(files: Files, tmp_path: Path) -> str:
    """Return the store of a pilot of which half of the paid judgments count."""
    pilot = str(tmp_path / "half.db")
    call("pool", files.runs[0], "--strategy", "allpairs", "--pilot", "0.2", "-o", pilot)
    with opened(pilot, None, writable=True) as campaign:
        for name in ("anna", "ben"):
            campaign.enrol(name, "dedicated")
        (topic, *_) = campaign.read(topics_of)
        a, b, c, d = campaign.live.items(topic)[:4]
        for name, pair in (("anna", (a, b)), ("ben", (c, d))):
            judgment = Judgment(topic, *pair, Outcome.LEFT, assessor=name)
            campaign.write(partial(log.append_judgment, judgment=judgment, at_once=True))
        campaign.exclude("ben", "careless")
        assert observe(campaign).usable == 0.5
    return pilot


@pytest.mark.parametrize("strategy", ["prefbest", "swissfinals"])
def test_pools_and_strategies_give_one_cost(files: Files, half_usable: str, strategy: str) -> None:
    words = (
        "pool",
        files.runs[0],
        "--learn-from",
        half_usable,
        "--strategy",
        strategy,
        "--dry-run",
        "--json",
    )
    told = json.loads(call(*words))
    (forecast_of,) = (each for each in told["comparison"]["forecasts"] if each["strategy"] == strategy)
    for part in ("judgments", "assignments", "cost", "found"):
        assert told["estimate"][part] == forecast_of[part]
    assert told["estimate"]["assignments"] >= told["estimate"]["judgments"] / 0.5 / 10


def test_alternatives_have_hours_and_one_cost_in_table_and_recommendation(
    files: Files, tmp_path: Path
) -> None:
    many = tmp_path / "runs"
    many.mkdir()
    for number in range(30):
        (many / f"r{number}.run").write_text(Path(files.runs[0]).read_text())
    own = call("pool", str(many))
    assert "and 20 more: --json lists all" in own
    assert "hours, at 20 seconds each" in own
    assert "assignments" not in own  # these are a crowd's
    assert "about 57%" in own  # every pair once, of four items
    crowd = call("pool", files.runs[0], "--judges", "crowd")
    assert "assignments of 10" in crowd
    assert "14.40 USD" in crowd
    simulated = call("pool", files.runs[0], "--judges", "crowd", "--simulate")
    table, _, sentence = " ".join(simulated.split()).partition("Recommended:")
    assert f"{sentence.split(' with ')[1].split(' judgments')[0]} " in table


@pytest.mark.parametrize(("every", "said"), [(0.52, True), (0.7, False)])
def test_pool_says_why_every_pair_once_finds_less(
    every: float, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = [Estimate("swissfinals", 700, 70, 100, 0.62), Estimate("allpairs", 2_400, 240, 300, every)]
    show_alternatives(plans, [], Settings())
    assert ("allpairs asks about each pair once" in " ".join(capsys.readouterr().out.split())) == said


def test_topics_without_candidates_are_named_once_with_the_reason(tmp_path: Path) -> None:
    run, grades = tmp_path / "a.run", tmp_path / "qrels"
    run.write_text(
        "".join(f"q{topic} Q0 d{rank} {rank} {9 - rank} a\n" for topic in range(4) for rank in (1, 2))
    )
    grades.write_text("q0 0 d1 1\nq0 0 d2 1\nq1 0 d1 0\nq9 0 d1 1\n")
    said = " ".join(call("pool", str(run), "--qrels", str(grades)).split())
    assert (
        "Topics without candidates: 3 (q1, q2, q3). They are left out: 2 without grades, 1 without relevant "
        "items."
    ) in said
    assert "Topics without runs: 1 (q9). The grades have them, and no run does: they are left out." in said
    assert said.lower().count("topics without candidates") == 1
    assert "topics without grades" not in said.lower()
    assert "items left out: no grade" in said
    kept = " ".join(call("pool", str(run), "--qrels", str(grades), "--keep-ungraded").split())
    assert "Topics without grades: 2 (q2, q3). All of their items are pooled." in kept


def test_near_duplicates_are_counted_alike_in_table_and_sentence(files: Files, tmp_path: Path) -> None:
    run, texts = tmp_path / "a.run", tmp_path / "texts.tsv"
    run.write_text("".join(f"q Q0 d{rank} {rank} {9 - rank} a\n" for rank in range(1, 6)))
    texts.write_text("d1\tOne text.\nd2\tone  text.\nd3\tONE TEXT.\nd4\tTwo.\nd5\tThree.\n")
    lines = call("pool", str(run), "--texts", str(texts)).splitlines()
    (figure,) = (line for line in lines if "near-duplicates to review" in line)
    (sentence,) = (line for line in lines if line.startswith("Near-duplicates"))
    assert "3 │" in figure
    assert "case: 3 " in sentence


def test_large_pools_are_offered_by_their_highest_grades(tmp_path: Path) -> None:
    run, grades = tmp_path / "a.run", tmp_path / "qrels"
    run.write_text("".join(f"q Q0 d{at} {at} {90 - at} a\n" for at in range(1, 41)))
    for best, fewer in ((6, True), (40, False)):
        grades.write_text("".join(f"q 0 d{at} {3 if at <= best else 1}\n" for at in range(1, 41)))
        words = ("pool", str(run), "--qrels", str(grades), "--depth", "40")
        said = " ".join(call(*words).split())
        assert ("at least 5 items a topic, about 15 judgments: --thin 5." in said) == fewer
        assert "highest grades alone" not in call(*words, "--thin", "5")
        read = read_files(Files((str(run),), qrels=str(grades)))
        plan = thinner_plan(build_draft(read, Settings(), Rules(depth=40)))
        assert (plan is not None and plan.judgments == 15) == fewer


def test_what_strategies_find_is_known_for_usual_sizes_alone() -> None:
    only = known_share([1, 1], "allpairs")
    assert only is not None
    assert (only.found, only.error, only.rounds) == (1.0, 0.0, 0.0)
    one, mixed, other = (known_share(sizes, "knockout") for sizes in ([8], [8, 20], [20]))
    assert one is not None
    assert mixed is not None
    assert other is not None
    assert one.found > mixed.found > other.found > 0
    assert mixed.found == pytest.approx((one.found + other.found) / 2)
    assert known_share([8, 1000], "knockout") is None
    assert known_share([8], "dts") is None


@pytest.mark.statistics
@pytest.mark.parametrize("strategy", KNOWN)
def test_known_shares_are_those_of_simulations(strategy: str) -> None:
    trials = 100 if strategy.startswith("swissfinals") else 400
    for size in (5, 8, 12):
        result = simulate(strategy, SIMULATED_JUDGES, items=size, cap=6, trials=trials, seed=2)
        known = known_share([size], strategy)
        assert known is not None
        off = 3 * (0.25 / trials) ** 0.5 + 0.02
        assert result.single == pytest.approx(known.found, abs=off)
        assert result.rounds == pytest.approx(known.rounds, rel=0.1)
        closed = estimate([size], strategy).judgments
        assert result.comparisons["mean"] == pytest.approx(closed, rel=0.1)


def test_cost_of_a_pilot_holds_judgments_that_do_not_count(files: Files, half_usable: str) -> None:
    words = ("pool", files.runs[0], "--pilot", "0.5", "--strategy", "allpairs", "--json")
    plain = json.loads(call(*words))["estimate"]
    learnt = json.loads(call(*words, "--learn-from", half_usable))["estimate"]
    assert learnt["judgments"] == plain["judgments"]
    assert learnt["assignments"] == math.ceil(plain["judgments"] / 0.5 / 10)


@pytest.mark.long
def test_campaign_above_the_highest_cost_is_made_and_named_too_dear(files: Files, tmp_path: Path) -> None:
    made = tmp_path / "dear.db"
    words = ("pool", files.runs[0], "--strategy", "allpairs")
    output = call(*words, "--max-cost", "1000", "-o", str(made))
    assert made.exists()
    assert "Notice: allpairs would cost about" in output
    assert "above the limit of 10.00" in output
    assert "above the limit" not in call(*words, "--max-cost", "20000", "--dry-run")


# ---- settings


def test_every_setting_is_changeable_or_has_a_reason() -> None:
    names = set(Settings().as_json())
    assert all((*CHANGEABLE.values(), *FIXED.values()))
    assert set(FIXED) == names - set(CHANGEABLE)
    before = Settings()
    after = changed(before, {"reward": 300, "budget": None, "steps": ["guide"], "ties": True})
    listed = {each.name: (each.before, each.after) for each in changes(before, after)}
    assert listed == {
        "reward": ("200", "300"),
        "steps": ("consent, guide, check, practice", "guide"),
        "ties": ("no", "yes"),
    }
    assert changes(before, before) == ()


@pytest.mark.parametrize(
    "values",
    [
        {"cap": 9},
        {"strategy": "knockout"},
        {"reward": -1},
        {"reward": "2"},
        {"reward": True},
        {"reward": 10**30},
        {"lease_seconds": math.inf},
        {"steps": [[1]]},
        {"steps": ["dance"]},
        {"languages": [1]},
        {"check": ["x"]},
        {"check": [{"text": "?"}]},
        {"practice": [None]},
        {"consent": "\0"},
        {"consent": "\ud800"},
        {"completion_url": "javascript:alert(1)"},
        {"identity_parameter": "key"},
    ],
)
def test_invalid_setting_changes_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(BadParameter):
        changed(Settings(), values)
    with pytest.raises(UnknownName):
        changed(Settings(), {"no such": 1})


# ---- uploads


def put(uploads: UploadFolder, kind: str, name: str, data: bytes) -> None:
    with uploads.receiving(kind, name) as write:
        write(data)


def zipped(*members: tuple[str, bytes], mode: int = 0) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, data)
    return held.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", ".", "..", "../x", "/etc/passwd", "a/b.run", "..\\x", "C:\\x", ".hidden", "a\0b", "a\nb"),
        *("x" * 300, "\ud800", "\u202egnp.exe"),
    ],
)
def test_file_name_with_a_path_is_refused(tmp_path: Path, name: str) -> None:
    uploads = UploadFolder(tmp_path / "uploads")
    with pytest.raises(BadRecord):
        put(uploads, "runs", name, b"x")
    assert uploads.listed() == []
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_unusual_file_names_are_accepted() -> None:
    for name in ("<img src=x onerror=alert(1)>.run", "=cmd|x.run", "naïve.run", "a b'\"&.run"):
        assert checked_name(name) == name


@pytest.mark.parametrize(
    "member",
    [
        "../evil.run",
        "/etc/cron.run",
        "runs/../../evil.run",
        "runs\\..\\evil.run",
        "C:/x.run",
        "runs/.hidden.run",
    ],
)
def test_archive_members_outside_the_folder_are_refused(tmp_path: Path, member: str) -> None:
    uploads = UploadFolder(tmp_path / "uploads")
    data = zipped(("qrels.txt", b"1 0 a 1\n"), (member, b"1 Q0 a 1 1 x\n"))
    with pytest.raises(BadRecord):
        put(uploads, "archive", "all.zip", data)
    assert uploads.listed() == []
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_archive_is_stored_completely_or_not_at_all(tmp_path: Path) -> None:
    uploads = UploadFolder(tmp_path / "uploads")
    put(
        uploads,
        "archive",
        "all.zip",
        zipped(
            ("mine/runs/a.run", b"1"),
            ("mine/runs/b.txt", b"2"),
            ("mine/qrels.txt", b"3"),
            ("mine/passages.tsv", b"4"),
            ("mine/topics.xml", b"5"),
            ("mine/c.run.gz", gzip.compress(b"6")),
            ("__MACOSX/x", b"7"),
        ),
    )
    assert [(kind, name) for kind, name, _ in uploads.listed()] == [
        *(("runs", "a.run"), ("runs", "b.txt"), ("runs", "c.run.gz")),
        *(("qrels", "qrels.txt"), ("topics", "topics.xml"), ("texts", "passages.tsv")),
    ]
    before = uploads.listed()
    link = zipped(("runs/link.run", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777)
    for wrong in (
        zipped(("what.is.this", b"x")),
        zipped(("qrels.a", b"1"), ("qrels.b", b"2")),
        link,
        zipped(),
        b"PK no zip",
        zipped(("runs/z.run", b"z"))[:-30],
    ):
        with pytest.raises((BadRecord, BadFile)):
            put(uploads, "archive", "more.zip", wrong)
    assert uploads.listed() == before
    assert uploads.remove("runs", "a.run")
    assert not uploads.remove("runs", "../qrels/qrels.txt")
    assert not uploads.remove("..", "uploads")


def test_uploads_beyond_the_limits_are_refused(tmp_path: Path) -> None:
    uploads = UploadFolder(tmp_path / "uploads", Limits(file=4 << 20, whole=6 << 20, files=2, ratio=100))
    bomb = b"\0" * (3 << 20)
    with pytest.raises(TooMuch, match="100 times"):
        put(uploads, "runs", "a.run.gz", gzip.compress(bomb))
    with pytest.raises(TooMuch, match="more than the limit"):
        put(uploads, "archive", "a.zip", zipped(("runs/a.run", bomb), ("runs/b.run", bomb)))
    with pytest.raises(TooMuch, match="larger than 4 MB"):
        put(uploads, "runs", "b.run", b"x" * (5 << 20))
    with pytest.raises(TooMuch, match="more than 2 files"):
        put(uploads, "archive", "a.zip", zipped(*((f"runs/{at}.run", b"x") for at in range(3))))
    with pytest.raises(BadFile, match="damaged"):
        put(uploads, "runs", "c.run.gz", gzip.compress(b"whole" * 99)[:-9])
    with pytest.raises(BadFile, match="empty"):
        put(uploads, "runs", "d.run", b"")
    assert uploads.listed() == []
    put(uploads, "runs", "e.run", b"x" * (3 << 20))
    with pytest.raises(TooMuch, match="together"):
        put(uploads, "texts", "f.tsv", b"x" * ((4 << 20) - 1))
    assert Counter(kind for kind, _, _ in uploads.listed()) == {"runs": 1}
    with pytest.raises(UnknownName):
        put(uploads, "etc", "x", b"x")


def test_errors_name_uploaded_files_without_the_folder(tmp_path: Path) -> None:
    uploads = UploadFolder(tmp_path / "uploads")
    put(uploads, "runs", "bad.run", b"1 Q0 a 1 5 x\n1 Q0 b one\n")
    with pytest.raises(BadFile) as raised, uploads.without_folder():
        read_files(uploads.files())
    assert raised.value.place == "runs/bad.run:2"
    assert raised.value.remedy
