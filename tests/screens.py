"""Takes the pictures of the judging page, and of the dashboard's Agreement page, that the documentation shows.

python tests/screens.py
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.campaign.runners.llm_judge import LlmJudge, Terms
from duelpool.campaign.runners.llm_session import LlmSession
from duelpool.demo import load_collection
from duelpool.demo.story import write_collection
from duelpool.files import read_passages, read_qrels, read_run, read_topics
from duelpool.judges.live import SimulatedPerson, TopicJudges, Utilities
from duelpool.judges.llm import PROMPTS, Endpoint, Prices, parse_address
from duelpool.pooling import build_pools
from duelpool.records import Kind, Pool, Topic
from duelpool_reproduce.assessor_study import simulated_study
from support.browsing import People, Person, Site, open_browser, open_site
from support.fake_llm import LlmRequest, Provider, says, serving
from support.managed import key_for

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDE, PHONE = (1280, 800), (360, 740)


def campaign(site: Site, folder: Path, name: str, **settings: Any) -> Campaign:
    """Make a campaign of the demo's collection."""
    texts = read_passages(folder / "passages.jsonl")
    pools = build_pools(
        [read_run(path) for path in sorted((folder / "runs").glob("*.run"))],
        qrels=read_qrels(folder / "qrels.txt"),
        texts=texts.by_id,
        depth=10,
        thin=5,
    )
    return Campaign.create(
        site.store,
        name,
        Settings(steps=(), **settings),
        topics=read_topics(folder / "topics.jsonl"),
        pools=pools.pools,
        passages=texts,
    )


def take(person: Person, name: str) -> None:
    """Take a picture of what stands on the screen."""
    person.page.screenshot(path=str(PICTURES / f"{name}.png"), animations="disabled")


def judged(
    site: Site, people: People, made: Campaign, size: tuple[int, int], answers: int, **options: Any
) -> Person:
    """Return somebody who has judged a few pairs already."""
    person = people(*size, **options)
    person.enter(site.link(made, "visitor"))
    last = ""
    for _ in range(answers):
        last = person.wait_for_pair(last)
        person.press("ArrowLeft" if made.settings.stage == "preferences" else "4", last)
    person.wait_for_pair(last)
    person.wait_until_saved()
    return person


def models(site: Site, people: People, folder: Path) -> None:
    """Let a model and two people judge the same pairs, and look at the page of models."""
    utilities = load_collection().utilities
    passages = {each.text.strip(): each.id for each in read_passages(folder / "passages.jsonl")}
    questions = {topic.text: topic.id for topic in read_topics(folder / "topics.jsonl")}
    made = campaign(site, folder, "Everyday questions, with a model", strategy="allpairs:repeats=3")

    def answers(asked: LlmRequest) -> str:
        of = utilities[questions[asked.parts["question"]]]
        left, right = (of.get(passages[asked.parts[side].strip()], 0.0) for side in ("left", "right"))
        lead = left - right + 0.35  # it leans to the left
        return says("left" if lead > 0 else "right", 60 if abs(lead) < 0.6 else 70 if abs(lead) < 1.2 else 90)

    def fault(asked: LlmRequest) -> str:
        return {5: "429 0", 40: "drop", 77: "refusal", 111: "both", 160: "500"}.get(asked.number, "good")

    with serving(Provider(model=answers, fault=fault)) as provider:
        endpoint = Endpoint(parse_address(f"{provider.address}/v1", ["localhost"]))
        terms = Terms(
            "example-model",
            PROMPTS["preference"],
            prices=Prices.per_million("2.50", "10"),
            budget=5 * 10**12,
            first_wait=0.01,
        )
        LlmSession(LlmJudge.enrol(made, "llm-example", endpoint, terms)).run()
    sees = TopicJudges(Utilities(utilities), made.live.items, 1)
    for number, name in enumerate(("anna", "ben"), 1):
        made.enrol(name, "dedicated")
        JudgingSession(made, name, SimulatedPerson(number, sees, 1)).run()
    person = people(1280, 1500)
    person.page.goto(f"{site.address}/manage/{made.id}?key={key_for(site.app, made.id)}")
    person.page.goto(f"{site.address}/manage/{made.id}/llm")
    take(person, "dashboard-llm")


def agreement(site: Site, people: People) -> None:
    """Take a picture of the dashboard's Agreement page: a small study of three kinds by simulated people."""
    study = simulated_study(queries=4, items=5, seed=1)
    topics = [Topic(f"q{at:03}", f"Question {at + 1}") for at in range(4)]
    made = Campaign.create(
        site.store,
        "Three kinds of judgment",
        Settings(strategy="allpairs", crossed=tuple(Kind), scale="five", steps=()),
        topics=topics,
        pools=[Pool(topic.id, tuple(f"d{at:02}" for at in range(5))) for topic in topics],
    )
    for name in study.people:
        made.enrol(name, "program" if name == "Assessor 7" else "dedicated")
    in_turns([JudgingSession(made, name, judge) for name, judge in study.people.items()])
    person = people(*WIDE)
    person.enter(f"{site.address}/manage/{made.id}?key={key_for(site.app, made.id)}")
    person.enter(f"{site.address}/manage/{made.id}/agreement")
    person.page.set_viewport_size({"width": 1280, "height": 1560})
    take(person, "dashboard-agreement")


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, open_browser() as browser, open_site(Path(name)) as site:
        folder = Path(name)
        write_collection(folder, seed=1)
        people = People(browser, site)
        plain = campaign(site, folder, "Everyday questions", feedback=False)
        take(judged(site, people, plain, WIDE, 3), "judging")
        take(judged(site, people, plain, WIDE, 0, color_scheme="dark"), "judging-dark")
        phone = judged(site, people, plain, PHONE, 0, device_scale_factor=2, reduced_motion="reduce")
        take(phone, "judging-phone")
        phone.page.dispatch_event("#look-there", "click")
        phone.wait_until("document.documentElement.dataset.seen === 'all'")
        take(phone, "judging-phone-seen")
        sure = campaign(
            site, folder, "Surely", kind=Kind.DEFINITE, ties=True, same=True, feedback=False, seed=3
        )
        take(judged(site, people, sure, WIDE, 1), "judging-definite")
        graded = campaign(site, folder, "Grades", stage="grading", scale="five", feedback=False)
        take(judged(site, people, graded, WIDE, 2), "judging-grades")
        models(site, people, folder)
        agreement(site, people)
        people.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
