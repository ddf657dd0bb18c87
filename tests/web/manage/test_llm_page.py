"""The page of language models in a browser: empty, with one model, its cost, and axe."""

import json
from collections.abc import Iterator

import pytest

from duelpool.campaign import Campaign
from duelpool.campaign.runners.llm_judge import LlmJudge, Terms
from duelpool.campaign.runners.llm_session import LlmSession
from duelpool.campaign.runners.two_sources import decisions
from duelpool.judges.llm import PROMPTS, Endpoint, Prices, parse_address
from support.accessibility import look_with_axe
from support.browsing import People, Site
from support.fake_llm import LlmRequest, Provider, says, serving
from support.managed import judge, key_for, managed
from web.manage.test_dashboard import Manager


def leans(asked: LlmRequest) -> str:
    """Prefer the smaller letter; for neighbours prefer a side, with less confidence."""
    left, right = asked.parts["left"][-2], asked.parts["right"][-2]
    if abs(ord(left) - ord(right)) < 2:
        return says("left", 60)
    return says("left" if left < right else "right", 90 if abs(ord(left) - ord(right)) > 3 else 70)


@pytest.fixture
def provider() -> Iterator[Provider]:
    faults = {3: "429 0", 9: "refusal", 17: "drop", 23: "both"}
    with serving(Provider(model=leans, fault=lambda asked: faults.get(asked.number, "good"))) as served:
        yield served


def let_judge(campaign: Campaign, provider: Provider, name: str, **terms: object) -> None:
    endpoint = Endpoint(parse_address(f"{provider.address}/v1", ["localhost"]), "sk-secret-key")
    values = {"prices": Prices.per_million("2.50", "10"), "budget": 5 * 10**12, "first_wait": 0.001, **terms}
    made = Terms("example-model", PROMPTS["preference"], concurrency=1, **values)  # type: ignore[arg-type]
    LlmSession(LlmJudge.enrol(campaign, name, endpoint, made)).run()


@pytest.mark.long
def test_the_page_of_language_models(site: Site, people: People, provider: Provider) -> None:
    campaign = managed(site.store, "judged by a model", strategy="allpairs:repeats=3")
    manager = Manager(site, people(), campaign)
    page = manager.page
    manager.go("llm")
    assert page.inner_text("#models h2") == "No language model has judged yet"
    assert page.locator(".empty .command code").count() == 3
    judge(campaign, 90, ("anna", "ben"))
    let_judge(campaign, provider, "<b>model</b>")
    page.wait_for_selector(".model")  # by itself, for the page follows the campaign
    assert page.inner_text(".model h2") == "<b>model</b>"
    text = " ".join(page.inner_text("#models").split())
    for words in (
        "example-model",
        PROMPTS["preference"].hash,
        "Chooses the other item when the sides swap",
        "People choose the longer text, on the same pairs",
        "60 % sure" if "60 % sure" in text else "70 % sure",
        "90 % sure",
        "failed, at no cost status 429 1",
        "no reply, counted at full cost the connection broke 1",
        "answered malformed: another choice 1",
        "answered refused 1",
        "the budget is 5.00 USD",
    ):
        assert words in text, words
    assert page.locator(".model figure svg .mark").count() >= 3
    page.click("main summary")
    page.wait_for_selector(".prompt:visible")
    assert "never an instruction" in page.inner_text(".prompt")
    before = page.get_attribute("html", "data-refreshed") or "0"
    judge(campaign, 1, ("carla",))
    page.wait_for_function(
        "before => Number(document.documentElement.dataset.refreshed) > before", arg=int(before)
    )
    assert "never an instruction" in page.inner_text(".prompt")  # what is open stays open
    look_with_axe(page, "a model")
    page.click(".model h2 a")
    page.wait_for_selector("#person")
    assert "language model" in page.inner_text("#person")
    got = page.request.get(
        f"{site.address}/api/v1/campaigns/{campaign.id}/llm",
        headers={"Authorization": f"Bearer {key_for(site.app, campaign.id)}"},
    )
    (told,) = json.loads(got.text())["rows"]
    assert told["assessor"] == "<b>model</b>"
    assert told["replies"]["refused"] == 1
    assert 0 < told["flips"]["share"] < 1
    assert "sk-secret" not in got.text() + page.content()


@pytest.mark.long
def test_the_page_tells_lists_from_pairs(site: Site, people: People) -> None:
    campaign = managed(site.store, "lists", strategy="allpairs")
    with serving(Provider()) as served:
        let_judge(campaign, served, "llm-example", items_per_request=3)
    manager = Manager(site, people(), campaign)
    manager.go("llm")
    text = " ".join(manager.page.inner_text("#models").split())
    for words in (
        "of them from lists",
        "... of the pairs asked in lists 0.0 %",
        "for lists)",
        "answered list",
    ):
        assert words in text, words
    look_with_axe(manager.page, "lists")


@pytest.mark.long
def test_pages_say_what_was_decided_about_a_model_beside_people(
    site: Site, people: People, provider: Provider
) -> None:
    campaign = managed(
        site.store, "two sources", strategy="swissfinals:per_item=9", person_price=1.0, model_price=0.1
    )
    judge(campaign, 40, ("anna", "ben"))
    let_judge(campaign, provider, "llm-example")
    (decision,) = decisions(campaign)
    assert decision.votes > 0
    manager = Manager(site, people(), campaign)
    for place in ("llm", "assessors"):
        manager.go(place)
        assert manager.page.inner_text(".beside-people") == decision.said
        look_with_axe(manager.page, place)
    got = manager.page.request.get(
        f"{site.address}/api/v1/campaigns/{campaign.id}/llm",
        headers={"Authorization": f"Bearer {key_for(site.app, campaign.id)}"},
    )
    assert json.loads(got.text())["rows"][0]["beside_people"]["said"] == decision.said
