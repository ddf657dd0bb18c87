"""People and a model in one campaign with prices: who is asked what, what is written down, and what it changes."""

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.log import campaign_events
from duelpool.campaign.log.campaign_events import KEPT, ModelSource, ModelSources
from duelpool.campaign.questions.model_questions import MODELS_SHARE, TRIAL, ModelQuestions
from duelpool.campaign.runners import two_sources
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.campaign.runners.llm_figures import model_figures
from duelpool.campaign.runners.llm_judge import LlmJudge, Terms
from duelpool.campaign.runners.llm_session import LlmSession
from duelpool.campaign.runners.two_sources import decide, decisions, refit
from duelpool.campaign.settings.changes import changed
from duelpool.cli import app
from duelpool.errors import BadParameter
from duelpool.judges import make_judges
from duelpool.judges.base import Dice
from duelpool.judges.live import Sheet, SimulatedPerson, TopicJudges
from duelpool.judges.llm import PROMPTS, Endpoint, parse_address
from duelpool.preferences.sources import SourceWorth
from duelpool.records import Answer, Judgment, Outcome, Pool, Proposal, Topic
from duelpool.store import Reading, Store, open_store, schema
from support.campaigns import Knows, make_campaign
from support.fake_llm import LlmRequest, Provider, says, serving, smaller_is_better
from support.fake_llm import Model as FakeModel
from support.stores import BACK_ENDS, new_target

PRICES: dict[str, Any] = {"person_price": 1.0, "model_price": 0.1}


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as opened:
        yield opened


def create(store: Store, topics: int = 3, items: int = 8, **settings: object) -> Campaign:
    names, own = [f"q{at}" for at in range(topics)], tuple(f"d{at}" for at in range(items))
    values: dict[str, Any] = {"strategy": "swissfinals:per_item=5", "required": (), **PRICES, **settings}
    campaign = Campaign.create(
        store,
        "two",
        Settings(**values),
        topics=[Topic(topic, f"What is {topic}?") for topic in names],
        pools=[Pool(topic, own) for topic in names],
    )
    campaign.judge_by_ids()
    return campaign


class Model:
    """Prefers the better item with a fixed chance, by the pair alone."""

    def __init__(self, judges: TopicJudges, right: float, seed: int = 1) -> None:
        self._judges, self._right, self._dice = judges, right, Dice(seed, "model")

    def reply(self, sheet: Sheet) -> Answer:
        assert sheet.right is not None
        order = [item for level in self._judges(sheet.topic.id)[0].truth.levels for item in level]
        left, right = sheet.left.id, sheet.right.id
        is_right = self._dice.roll("\x1f".join((sheet.topic.id, *sorted((left, right))))) < self._right
        better = (order.index(left) < order.index(right)) == is_right
        return Answer(Outcome.LEFT if better else Outcome.RIGHT, seconds=1.0)


def judge_together(campaign: Campaign, right: float | None, seed: int = 1) -> tuple[int, int]:
    """Let eight people judge in turns, and the model whatever it is asked meanwhile; return both counts."""
    judges = TopicJudges(make_judges("bt:sd=2"), campaign.live.items, seed)
    people = []
    for number in range(8):
        campaign.enrol(f"p{number}", "dedicated")
        people.append(JudgingSession(campaign, f"p{number}", SimulatedPerson(number, judges, seed)))
    model = JudgingSession(campaign, "gpt", Model(judges, right or 0.0, seed))
    if right is not None:
        campaign.enrol("gpt", "llm")
        refit(campaign)
    while [each for each in people if each.once()]:
        while right is not None and model.once():
            refit(campaign)
        refit(campaign)
    return sum(each.tally.judged for each in people), model.tally.judged


def add_people(campaign: Campaign, wrong: int = 9) -> None:
    """Add two people's votes on every pair, of which every ninth is wrong."""
    for name in ("ann", "bob"):
        campaign.enrol(name, "dedicated")
    rows = []
    for turn, name in enumerate(("ann", "bob")):
        for topic in campaign.live.heads():
            for at, (better, worse) in enumerate(combinations(campaign.live.items(topic), 2)):
                turned, is_wrong = (at // 2 + turn) % 2 == 0, (at + turn) % wrong == 0
                left, right = (worse, better) if turned else (better, worse)
                outcome = Outcome.LEFT if turned == is_wrong else Outcome.RIGHT
                rows.append(Judgment(topic, left, right, outcome, assessor=name))
    campaign.add_judgments(rows)


def chances(tx: Reading) -> list[tuple[float, str]]:
    columns = schema.log.c
    rows = tx.connection.execute(
        select(columns.propensity, columns.phase).where(
            columns.campaign == tx.campaign, columns.assessor == "gpt"
        )
    )
    return [(row.propensity, row.phase) for row in rows]


# ---- who is asked


def test_a_model_waits_for_people_and_is_tried_on_what_they_judged(store: Store) -> None:
    campaign = create(store, strategy="swissfinals:per_item=30", cap=20)
    campaign.enrol("gpt", "llm")
    assert campaign.next_question("gpt") is None  # nothing is decided yet
    assert refit(campaign)
    assert campaign.next_question("gpt") is None
    assert "is to be tried on pairs that people have judged" in decisions(campaign)[0].said
    campaign.enrol("ann", "dedicated")
    judged = set()
    for _ in range(5):
        question = campaign.next_question("ann")
        assert question is not None
        campaign.answer(question.id, "ann", Answer(Outcome.LEFT))
        judged.add((question.topic, question.pair))
    asked = {(each.topic, each.pair) for each in campaign.next_questions("gpt", 20)}
    assert asked == judged
    held = campaign.next_questions("gpt", 20)
    assert {each.propensity for each in held} == {1.0}


def test_a_trial_is_a_random_sample_of_limited_cost(store: Store) -> None:
    campaign = create(store, person_price=1.0, model_price=1.0, strategy="swissfinals:per_item=30", cap=20)
    add_people(campaign)  # 168 judgments of 84 pairs
    campaign.enrol("gpt", "llm")
    refit(campaign)
    held = campaign.next_questions("gpt", 90)
    assert len(held) == TRIAL
    assert {each.propensity for each in held} == {TRIAL / 84}
    assert len({each.topic for each in held}) == 3


def test_a_coin_is_dropped_and_asked_no_more(store: Store) -> None:
    campaign = create(store, strategy="swissfinals:per_item=30", cap=20, model_price=0.5)
    add_people(campaign)
    campaign.enrol("gpt", "llm")
    refit(campaign)
    coin = JudgingSession(
        campaign, "gpt", Model(TopicJudges(make_judges("bt:sd=2"), campaign.live.items, 1), 0.5)
    )
    while coin.once():
        refit(campaign)
    (decision,) = decisions(campaign)
    assert decision.state == "dropped"
    assert decision.said.startswith("gpt is asked no more: its vote is worth 0.")
    assert "at 0.5 of the price" in decision.said
    assert campaign.next_question("gpt") is None
    assert coin.tally.judged < 84
    weights, shares = campaign.read(lambda tx: campaign_events.counts_in(tx, "q1"))
    assert (weights["gpt"], shares["gpt"]) == (0.0, 0.0)
    events = campaign.read(campaign_events.events)
    assert [each.event for each in events] == ["models"] * len(events)
    assert events[-1].data["models"]["gpt"]["state"] == "dropped"
    assert not refit(campaign)
    # What it costs decides: at a lower price it is tried again.
    campaign.change(changed(campaign.settings, {"model_price": 0.0001}))
    assert refit(campaign)
    assert decisions(campaign)[0].state != "dropped"


@pytest.mark.long
def test_a_good_model_is_asked_and_people_judge_less(tmp_path: Path) -> None:
    """Judges a whole campaign of 240 judgments with a model that is right in .9 of the pairs, and without."""
    counts = {}
    for right in (None, 0.9):
        with open_store(str(tmp_path / f"{right}.db"), create=True) as store:
            prices = {"person_price": None, "model_price": None} if right is None else PRICES
            campaign = create(store, 6, 10, strategy="swissfinals:per_item=4", **prices)
            counts[right] = judge_together(campaign, right)
            if right is None:
                continue
            (decision,) = decisions(campaign)
            assert decision.state == "asked"
            assert "gpt is asked beside people" in decision.said
            found = campaign.read(chances)
            assert {round(chance, 3) for chance, phase in found if phase} == {1 - KEPT}
            assert all(0 < chance <= 1 for chance, _ in found)
            source = campaign.read(campaign_events.last_models)
            assert source is not None
            for topic in campaign.live.heads():
                own = [each for each in campaign.judgments(topic) if each.assessor == "gpt"]
                assert len({each.pair for each in own}) == len(own)
                models = ModelQuestions(campaign.own_store, campaign.settings, campaign.live)
                assert all(models.for_model(topic, Proposal(each.pair)) for each in own if each.phase)
                used = len(own) * source.models["gpt"].share_in(topic)
                assert used <= MODELS_SHARE * 40 + 8  # shares were smaller while it was tried
            again = Campaign.open(store)
            assert again.results() == campaign.results()
            assert not again.next_questions("p0", 1)
    people, beside = counts[None][0], counts[0.9][0]
    assert people == 6 * 40
    assert beside < 0.85 * people


def test_models_use_at_most_half_of_the_budget_of_a_topic(store: Store) -> None:
    campaign = create(store, 1, strategy="swissfinals:per_item=2")
    campaign.enrol("gpt", "llm")
    asked = ModelSource("asked", 0.6, 0.5, 0.7, 99, 0.0, 0.8, 0.6, 0.9)
    campaign.write(
        lambda tx: campaign_events.append_models(tx, ModelSources({"gpt": asked}, (1.0, 0.1), 0, 99))
    )
    judges = TopicJudges(make_judges("bt:sd=2"), campaign.live.items, 1)
    model = JudgingSession(campaign, "gpt", Model(judges, 0.9))
    while model.once():
        pass
    assert model.tally.judged == 13  # of .6 each, and the budget is 16
    campaign.enrol("ann", "dedicated")
    assert campaign.next_question("ann") is not None


@pytest.mark.long
def test_a_coin_costs_people_nothing(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        campaign = create(store, 6)
        people, model = judge_together(campaign, 0.5)
    assert people >= 6 * 40 - 6
    assert decisions(campaign)[0].state != "asked"
    assert model <= 0.1 * people / 0.1


def larger_is_better(request: LlmRequest) -> str:
    """Prefer what people don't."""
    return says("right" if request.parts["left"] < request.parts["right"] else "left", 90)


@pytest.mark.parametrize(("model", "state"), [(smaller_is_better, "asked"), (larger_is_better, "dropped")])
def test_a_session_of_a_model_ends_and_says_why(tmp_path: Path, model: FakeModel, state: str) -> None:
    with serving(Provider(model=model)) as provider, open_store(tmp_path / "a.db", create=True) as store:
        pools = dict.fromkeys(("one", "two", "three", "four"), "abcdefgh")
        campaign = make_campaign(store, pools, strategy="swissfinals:per_item=20", cap=20, **PRICES)
        endpoint = Endpoint(parse_address(f"{provider.address}/v1", ["localhost"]), "sk-key")
        judge = LlmJudge.enrol(campaign, "gpt", endpoint, Terms("gpt", PROMPTS["preference"]))
        first = LlmSession(judge).run()
        assert (first.judged, first.ended) == (0, "tried")
        assert first.said == decisions(campaign)[0].said
        people = ("ann", "bob", "cem")
        for name in people:
            campaign.enrol(name, "dedicated")
        in_turns([JudgingSession(campaign, name, Knows()) for name in people], 90)
        then = LlmSession(judge).run()
        assert then.judged > 10
        assert then.ended == state
        assert then.said == decisions(campaign)[0].said
        (figures,) = model_figures(campaign)
        assert figures.beside_people == decisions(campaign)[0]
        last = LlmSession(judge).run()
        assert (last.judged, last.ended, last.said) == (0, state, then.said)


# ---- decisions


def worth(reliability: float, error: float, votes: int = 100, **topics: float) -> SourceWorth:
    return SourceWorth(reliability, error, 0.0, votes, topics)


@pytest.mark.parametrize(
    ("reliability", "error", "votes", "before", "state"),
    [
        (0.5, 0.5, 0, None, "tried"),
        (0.9, 0.1, 100, None, "asked"),
        (0.1, 0.05, 100, None, "dropped"),
        (0.1, 0.05, 10, None, "tried"),  # too few to drop it
        (0.5, 0.3, 100, None, "tried"),  # its vote counts .2, which tells less than it costs
        (0.4, 0.2, 100, "asked", "asked"),  # one that is asked stays while it seems to pay
        (0.3, 0.2, 100, "asked", "tried"),
        (0.9, 0.1, 100, "dropped", "dropped"),
    ],
)
def test_intervals_decide_and_not_estimates(
    reliability: float, error: float, votes: int, before: str | None, state: str
) -> None:
    was = None if before is None else ModelSource(before, 0, 0, 0, 0, 0, 0.3, 0.1, 0)  # type: ignore[arg-type]
    assert decide(worth(reliability, error, votes), (1.0, 0.1), was).state == state


def test_a_model_is_not_asked_in_topics_where_it_is_not_worth_its_price() -> None:
    decided = decide(worth(0.8, 0.1, q1=0.9, q2=0.2), (1.0, 0.1))
    assert decided.closed == ("q2",)
    assert decided.topics == {"q1": (0.8, 0.64), "q2": (0.1, 0.01)}
    assert decided.weight_in("q3") == pytest.approx(0.7)
    assert decided.share_in("q1") == pytest.approx(0.64)
    assert "except in 1 topic where" in two_sources.said("gpt", decided, 0.1)


# ---- settings, words, files


def test_prices_go_together_and_need_a_strategy_that_counts_by_shares() -> None:
    with pytest.raises(BadParameter, match="Only one of the two prices"):
        Settings(person_price=1.0)
    with pytest.raises(BadParameter, match="counts every judgment once"):
        Settings(strategy="allpairs", **PRICES)
    with pytest.raises(BadParameter, match="'spend' doesn't go with prices"):
        Settings(spend="leaderboard", **PRICES)
    with pytest.raises(BadParameter, match="goes with the goal 'best'"):
        Settings(goal="systems", **PRICES)
    with pytest.raises(BadParameter, match="person_price"):
        Settings(person_price=0.0, model_price=1.0)


def test_without_prices_a_model_counts_and_is_asked_like_people(store: Store) -> None:
    campaign = create(store, person_price=None, model_price=None)
    campaign.enrol("gpt", "llm")
    assert campaign.next_question("gpt") is not None
    assert not refit(campaign)
    assert decisions(campaign) == ()
    campaign.change(changed(campaign.settings, PRICES))
    assert refit(campaign)
    assert campaign.read(lambda tx: campaign_events.counts_in(tx, "q1")) == ({"gpt": 0.0}, {"gpt": 0.0})
    campaign.change(changed(campaign.settings, {"person_price": None, "model_price": None}))
    assert refit(campaign)
    assert campaign.read(lambda tx: campaign_events.counts_in(tx, "q1")) == ({}, {})
    assert not refit(campaign)


def test_status_says_what_was_decided(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with open_store(path, create=True) as store:
        campaign = create(store)
        campaign.enrol("gpt", "llm")
        refit(campaign)
    said = "gpt is to be tried on pairs that people have judged, at 0.1 of a person's price."
    shown = CliRunner().invoke(app, ["status", path])
    assert said in " ".join(shown.output.split())
    as_json = json.loads(CliRunner().invoke(app, ["status", path, "--json"]).output)
    assert as_json["models"][0]["said"] == said
