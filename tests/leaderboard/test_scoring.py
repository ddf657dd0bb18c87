"""A campaign's leaderboard: by what was judged so far, twins as one, now and as it stood."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.campaign import Campaign
from duelpool.campaign.views.watch import Watch
from duelpool.cli import app
from duelpool.errors import BadParameter, BadRecord
from duelpool.files import Qrels, Run
from duelpool.files.packed import pack_run, unpack_run
from duelpool.leaderboard import USUAL_MEASURE
from duelpool.leaderboard.live import LiveLeaderboard
from duelpool.leaderboard.scoring import keep_runs, labels_of, leaderboard, runs_of
from duelpool.measures import RR
from duelpool.records import Judgment, Outcome, Pool
from duelpool.store import Store, holdings, open_store
from support.campaigns import judge_all, make_campaign

GOOD = Run.from_rankings("good", {"one": [("a", 3.0), ("b", 2.0)], "two": [("a", 3.0)]})
POOR = Run.from_rankings(
    "poor", {"one": [("e", 3.0), ("a2", 2.0)], "two": [("c", 3.0), ("b", 1.0), ("a", 0.5)]}
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


@pytest.fixture
def campaign(store: Store) -> Campaign:
    pools = [Pool("one", tuple("abcde"), twins={"a": ("a2",)}), Pool("two", tuple("abcd"))]
    made = make_campaign(store, pools, strategy="allpairs")
    assert keep_runs(made, [GOOD, POOR]) == 2
    return made


def test_runs_are_stored_unchanged(campaign: Campaign) -> None:
    assert [run.name for run in runs_of(campaign)] == ["good", "poor"]
    assert runs_of(campaign)[1].frame.equals(POOR.frame)
    assert keep_runs(campaign, [POOR]) == 0  # by its name
    deep = Run.from_rankings("deep", {"one": [(f"d{at}", float(-at)) for at in range(9)]})
    assert unpack_run("deep", pack_run(deep, 3)).frame.equals(deep.frame.head(3))


def test_a_damaged_run_is_refused_and_never_read_as_another() -> None:
    whole = pack_run(Run.from_rankings("deep", {f"t{at}": [("a", 2.0), ("b", 1.0)] for at in range(20)}))
    for at in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        with pytest.raises(BadRecord, match="run 'deep' is damaged"):
            unpack_run("deep", bytes(damaged))


def test_runs_of_earlier_releases_are_read() -> None:
    packed = io.BytesIO()
    GOOD.frame.write_parquet(packed)
    assert unpack_run("good", packed.getvalue()).frame.equals(GOOD.frame)


def test_leaderboard_without_judgments_or_runs_is_refused(store: Store, campaign: Campaign) -> None:
    with pytest.raises(BadParameter, match="Nothing in the campaign is judged"):
        leaderboard(campaign, "RR")
    other = make_campaign(store, {"one": "ab"}, name="other")
    judge_all(other)
    with pytest.raises(BadParameter, match="keeps no runs"):
        leaderboard(other, "RR")


def test_leaderboard_scores_by_the_labels(campaign: Campaign) -> None:
    judge_all(campaign)
    found = leaderboard(campaign, ["RR", "ppref", "Success@1"], interval="t")
    means = {(row.run, row.measure): row.value for row in found.rows}
    assert means["good", "RR"] == means["good", "ppref"] == 1.0
    assert means["poor", "ppref"] == pytest.approx((3 / 7 + 3 / 6) / 2)
    grades = labels_of(campaign).qrels.grades()
    assert grades["one"]["a"] == grades["one"]["a2"] == max(grades["one"].values())
    by_hand = leaderboard(campaign, RR(rel=5), runs=[POOR]).rows[0].value
    assert by_hand == pytest.approx(0.5 * (1 / 2))  # topic two has four levels only


def test_labels_hold_only_the_best_where_the_strategy_seeks_the_best(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcde"}, strategy="prefbest")
    judge_all(campaign)
    assert labels_of(campaign).qrels == Qrels.from_grades({"one": {"a": 1.0}})


def test_labels_name_unjudged_and_unfinished_topics(campaign: Campaign) -> None:
    campaign.add_judgments([Judgment("one", "b", "a", Outcome.LEFT)])
    found = labels_of(campaign)
    assert (found.unjudged, found.unfinished) == (("two",), ("one",))
    judge_all(campaign)
    found = labels_of(campaign)
    assert (found.unjudged, found.unfinished) == ((), ())


def test_topics_whose_judgments_name_no_phase_have_no_labels(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abc", "two": "abc"}, strategy="prefbest")
    keep_runs(campaign, [GOOD])
    campaign.add_judgments([Judgment("one", a, b, Outcome.LEFT) for a, b in ("ab", "ac", "bc")])
    found = labels_of(campaign)
    assert (found.unjudged, found.unscored, len(found.qrels)) == (("two",), ("one",), 0)
    with pytest.raises(BadParameter, match="needs grades"):
        leaderboard(campaign, ["RR"])
    assert leaderboard(campaign, ["ppref"])
    assert LiveLeaderboard(Watch(campaign)).board("RR").topics == 0


def test_leaderboard_as_of_an_earlier_time(campaign: Campaign) -> None:
    campaign.add_judgments([Judgment("one", "b", "a", Outcome.LEFT)])
    between = campaign.store.read(campaign.store.database.now)
    (line,) = campaign.live.state("one").lines
    campaign.retract("one", [line.seq], "a slip")
    campaign.add_judgments([Judgment("one", "a", "b", Outcome.LEFT), Judgment("two", "a", "c", Outcome.TIE)])
    then, now = labels_of(campaign, until=between), labels_of(campaign)
    assert [judgment.winner for judgment in then.preferences.judgments()] == ["b"]
    assert [judgment.winner for judgment in now.preferences.judgments()] == ["a", None]
    assert leaderboard(campaign, "ppref", until=between, runs=[GOOD]).rows[0].value == 0.0
    assert leaderboard(campaign, "ppref", runs=[GOOD]).rows[0].value == 1.0
    with pytest.raises(BadParameter, match="Nothing in the campaign is judged"):
        leaderboard(campaign, "ppref", until=line.time - 60)


def test_evaluate_scores_the_runs_of_a_store(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "good.run").write_text("one Q0 a 1 2 x\none Q0 b 2 1 x\n")
    (runs / "poor.run").write_text("one Q0 c 1 2 x\none Q0 a 2 1 x\n")
    late = tmp_path / "late.run"
    late.write_text("one Q0 d 1 2 x\none Q0 a 2 1 x\n")
    target = str(tmp_path / "c.db")

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, list(words))
        assert result.exit_code == 0, result.output
        return result.output

    without_texts = ["--allow-missing-texts", "--allow-missing-questions"]
    run("pool", str(runs), "-o", target, "--strategy", "allpairs", *without_texts)
    with open_store(target) as store:
        judge_all(Campaign.open(store))
    assert "good" in run("evaluate", target, "-m", "RR")
    assert run("evaluate", target) == run("evaluate", target, "-m", USUAL_MEASURE)
    assert run("evaluate", target, str(late), "-m", "ppref", "--format", "csv").count("\nlate,") == 1
    run("challenge", target, str(late))
    with open_store(target) as store:
        names = Campaign.open(store).read(lambda tx: [run.name for run in holdings.runs(tx)])
    assert names == ["good", "late", "poor"]
    empty = CliRunner().invoke(app, ["evaluate", str(tmp_path / "none.db"), "-m", "RR"])
    assert empty.exit_code == 2
