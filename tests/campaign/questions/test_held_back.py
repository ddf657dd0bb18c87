"""Topics without texts or questions are held back from people and models, and released once these arrive."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.questions.held_back import HeldTopics
from duelpool.campaign.runners.judging_session import QuestionTexts
from duelpool.campaign.views.idle import why_idle
from duelpool.campaign.views.status import status
from duelpool.campaign.views.watch import Watch
from duelpool.cli import app
from duelpool.records import Answer, Outcome, Passage, Pool, Topic
from duelpool.setup.completing import complete
from duelpool.store import Store, open_store
from support.stores import BACK_ENDS, new_target

RUN = "".join(f"{topic} Q0 {item} {at} {-at} one\n" for topic in "12" for at, item in enumerate("abc", 1))


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as opened:
        yield opened


def campaign_of(store: Store, *, texts: str = "ab", titled: str = "12", **settings: object) -> Campaign:
    given: dict[str, object] = {"strategy": "allpairs", "required": ("texts", "questions"), **settings}
    campaign = Campaign.create(
        store,
        "held",
        Settings(**given),  # type: ignore[arg-type]
        topics=[Topic(each, f"Question {each}?") for each in titled],
        pools=[Pool("1", ("a", "b")), Pool("2", ("b", "c"))],
        passages=[Passage(each, f"Text of {each}.") for each in texts],
    )
    campaign.enrol("anna", "dedicated")
    return campaign


def judge_all(campaign: Campaign, assessor: str = "anna") -> list[str]:
    topics = []
    while (question := campaign.next_question(assessor)) is not None:
        campaign.answer(question.id, assessor, Answer(Outcome.LEFT))
        topics.append(question.topic)
    return topics


def test_a_topic_waits_for_its_texts_and_the_others_go_on(store: Store) -> None:
    campaign = campaign_of(store)
    held = campaign.held_back()
    assert {topic: (each.items, each.question) for topic, each in held.topics.items()} == {
        "2": (("c",), False)
    }
    assert str(held) == "1 topic is held back from judging (2): 1 item has no text (first: c)."
    assert judge_all(campaign) == ["1"]
    assert not campaign.done
    assert why_idle(campaign, "anna") == "held"
    assert any("held back" in block for block in status(campaign).blocks)


def test_a_topic_waits_for_its_question(store: Store) -> None:
    campaign = campaign_of(store, texts="abc", titled="1")
    assert campaign.held_back().questions == 1
    assert judge_all(campaign) == ["1"]
    done = complete(campaign, topics=[Topic("2", "At last?"), Topic("1", "Another?"), Topic("3", "Unknown?")])
    assert (done.questions, done.released, bool(done.held)) == (1, 1, False)
    assert judge_all(campaign) == ["2"]
    assert why_idle(campaign, "anna") == "done"


def test_texts_release_their_topics_in_every_process(store: Store) -> None:
    campaign = campaign_of(store)
    other = Campaign.open(store)
    watch = Watch(campaign)
    judge_all(other)
    assert other.next_question("anna") is None
    assert any("held back" in block for block in watch.look().blocks)
    done = complete(campaign, [Passage("c", "Late."), Passage("a", "Changed?"), Passage("zz", "Unknown.")])
    assert (done.texts, done.released) == (1, 1)
    question = other.next_question("anna")
    assert question is not None
    assert question.topic == "2"
    assert not any("held back" in block for block in watch.look().blocks)


def test_an_empty_text_is_none_and_is_replaced(store: Store) -> None:
    campaign = campaign_of(store, texts="ab")
    complete(campaign, [Passage("c", "  ")])
    assert campaign.held_back()
    assert complete(campaign, [Passage("c", "Words.")]).released == 1


def test_a_text_and_a_question_that_come_late_are_shown(store: Store) -> None:
    campaign = campaign_of(store, texts="", titled="", required=())
    question = campaign.next_question("anna")
    assert question is not None
    texts = QuestionTexts(campaign)
    before = texts.sheet(question)
    assert (before.topic.text, before.left.text) == (question.topic, "")
    complete(campaign, [Passage(each, "Late.") for each in "abc"], [Topic(question.topic, "Late?")])
    after = texts.sheet(question)
    assert (after.topic.text, after.left.text) == ("Late?", "Late.")


def test_judges_by_ids_are_asked_about_all_topics(store: Store) -> None:
    campaign = campaign_of(store, texts="")
    assert judge_all(campaign) == []
    campaign.judge_by_ids()
    assert judge_all(campaign) == ["1", "2"]


@pytest.mark.parametrize("required", [(), ("questions",)])
def test_what_is_not_required_holds_nothing_back(store: Store, required: tuple[str, ...]) -> None:
    campaign = campaign_of(store, texts="", required=required)
    assert campaign.held_back() == HeldTopics({})
    assert judge_all(campaign) == ["1", "2"]


def test_a_crossed_study_and_test_pairs_hold_topics_back_too(store: Store) -> None:
    campaign = campaign_of(store, crossed=("preference",), people_per_kind=1)
    assert set(judge_all(campaign)) == {"1"}


def test_pool_says_what_is_held_back_and_texts_releases_it(tmp_path: Path) -> None:
    run, store = tmp_path / "one.run", str(tmp_path / "mine.db")
    run.write_text(RUN)
    (tmp_path / "texts.tsv").write_text("".join(f"{item}\tText of {item}.\n" for item in "abc"))
    (tmp_path / "topics.tsv").write_text("1\tfirst question\n2\tsecond question\n")
    made = CliRunner().invoke(app, ["pool", str(run), "-o", store])
    assert made.exit_code == 0
    assert (
        "2 topics are held back from judging (1, 2): 6 items have no text (first: a); 2 topics have no"
        in made.output
    )
    assert "duelpool texts" in made.output
    simulated = CliRunner().invoke(app, ["judge", "simulated", store, "--limit", "3", "--json"])
    assert json.loads(simulated.stdout)["judged"] == 3
    first = CliRunner().invoke(app, ["texts", store, str(tmp_path / "texts.tsv"), "--json"])
    assert json.loads(first.stdout) == {"texts": 3, "questions": 0, "released": 0, "held_back": ["1", "2"]}
    second = CliRunner().invoke(app, ["texts", store, "--topics", str(tmp_path / "topics.tsv")])
    assert "2 topics were released" in second.output
    nothing = CliRunner().invoke(app, ["texts", store])
    assert nothing.exit_code == 2
    with open_store(store) as opened:
        assert not Campaign.open(opened).held_back()


def test_missing_texts_are_allowed_by_name_alone(tmp_path: Path) -> None:
    run, store = tmp_path / "one.run", str(tmp_path / "mine.db")
    run.write_text(RUN)
    made = CliRunner().invoke(
        app, ["pool", str(run), "-o", store, "--allow-missing-texts", "--allow-missing-questions"]
    )
    assert "held back" not in made.output
    with open_store(store) as opened:
        assert Campaign.open(opened).settings.required == ()
    (tmp_path / "settings.toml").write_text('required = ["questions"]\n')
    made = CliRunner().invoke(
        app, ["pool", str(run), "-o", store, "--name", "two", "--settings", str(tmp_path / "settings.toml")]
    )
    with open_store(store) as opened:
        assert Campaign.open(opened, "two").settings.required == ("questions",)
