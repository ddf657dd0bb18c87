"""Language models by command line: judging, their figures, and their answers as a prior or predictor."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.test_campaign import RUN, TEXTS, call, figures, make
from duelpool.campaign import Campaign
from duelpool.campaign.log.newcomers import WithNewcomers
from duelpool.errors import BadParameter
from duelpool.files import read_preferences, read_qrels
from duelpool.judges.llm import PROMPTS
from duelpool.setup.priors import set_prior
from duelpool.store import open_store
from duelpool.strategies.swissfinals import SwissFinals
from support.fake_llm import LlmRequest, Provider, says, serving, smaller_is_better

KEY = "sk-very-secret-key-0123456789"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "r.run").write_text(RUN)
    (tmp_path / "t.tsv").write_text(TEXTS)
    (tmp_path / "q.tsv").write_text("1\tfirst question\n2\tsecond question\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUELPOOL_LLM_KEY", KEY)
    return tmp_path


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Provider()) as found:
        yield found


def judged(provider: Provider, *more: str) -> dict[str, object]:
    words = ("judge", "c.db", "--judge", "llm", "--url", f"{provider.address}/v1", "--model", "example")
    return figures(*words, "--allow-host", "localhost", *more)


def test_llm_judges_first_and_people_start_from_its_answers(folder: Path, provider: Provider) -> None:
    make("--strategy", "allpairs")
    sat = judged(provider, "--price-in", "2.50", "--price-out", "10", "--budget", "1")
    assert (sat["judged"], sat["ended"]) == (20, "done")
    assert provider.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    (found,) = json.loads(call("llm", "c.db", "--json")[0])
    assert found["assessor"] == "llm-example"
    assert found["prompt_hash"] == PROMPTS["preference"].hash
    assert found["flips"]["share"] == 0.0
    told = " ".join(call("llm", "c.db")[0].split())
    assert "chooses another when the sides change" in told
    assert "0.0% (0.0% to 18.0%) of 20" in told
    assert "Wrote 20 rows" in call("llm", "c.db", "--as", "prior", "-o", "llm.prefs")[1]
    assert len(read_preferences("llm.prefs")) == 20
    assert "Wrote 10 rows" in call("llm", "c.db", "--as", "predictor", "-o", "llm.qrels")[1]
    grades = read_qrels("llm.qrels").grades()["1"]
    assert sorted(grades, key=lambda item: -grades[item]) == list("abcde")
    assert all(0 <= grade <= 100 for grade in grades.values())
    call(
        "budget",
        "plan",
        "r.run",
        "--metric",
        "P@3",
        "--n",
        "4",
        "--predictor",
        "llm.qrels",
        "-o",
        "plan.jsonl",
    )
    words = ("pool", "r.run", "--texts", "t.tsv", "--topics", "q.tsv", "--prior", "llm.prefs")
    call(*words, "--strategy", "swissfinals", "-o", "people.db")
    with open_store("people.db") as store:
        campaign = Campaign.open(store)
        strategy = campaign.live.state("1").strategy
        assert isinstance(strategy, WithNewcomers)
        made = strategy.own
        assert isinstance(made, SwissFinals)
        assert made._prior is not None
        assert list(made._prior) == sorted(made._prior, reverse=True)  # a to e, as the model has it
        campaign.enrol("anna", "dedicated")
        assert campaign.next_question("anna") is not None
        with pytest.raises(BadParameter, match="finite"):
            set_prior(campaign, {"1": {"a": float("nan")}})
    call("judge", "people.db", "--judge", "simulated", "--limit", "1")
    with open_store("people.db") as store:
        campaign = Campaign.open(store)
        topic = next(name for name in "12" if campaign.live.state(name).lines)
        with pytest.raises(BadParameter, match="judged already"):
            set_prior(campaign, {topic: {"a": 1.0}})
    assert "takes a prior" in call(*words, "--strategy", "prefbest", "-o", "x.db", code=2)[1]
    (folder / "other.qrels").write_text("9 0 z 1\n")
    words = (*words[:-1], "other.qrels")
    assert "has none" in call(*words, "--strategy", "swissfinals", "-o", "y.db", code=2)[1]
    assert not Path("y.db").exists()


def test_llm_stops_at_its_budget_and_resumes(folder: Path, provider: Provider) -> None:
    make("--strategy", "allpairs")
    prices = ("--price-in", "2.50", "--price-out", "10")
    assert judged(provider, *prices, "--budget", "0.01")["ended"] == "budget"
    first = provider.number
    assert 0 < first < 40
    out = call("judge", "c.db", "--judge", "llm", "--url", f"{provider.address}/v1", "--model", "example",
               "--allow-host", "localhost", *prices, "--budget", "0.01")[0]  # fmt: skip
    assert "The budget doesn't cover another request." in out
    assert judged(provider, *prices, "--budget", "5")["ended"] == "done"
    assert provider.number == 40


def test_llm_orders_lists(folder: Path, provider: Provider) -> None:
    make("--strategy", "allpairs")
    (folder / "mine.txt").write_text("Put in order.\n---\n{question}\n{items}\n")
    lists = ("--items-per-request", "5")
    sat = judged(provider, *lists, "--list-prompt", "mine.txt")
    assert (sat["judged"], sat["ended"], sat["said"]) == (20, "done", "")
    assert provider.number == 4  # two topics of five items, each list in two orders
    assert provider.requests[0].system_message.startswith("Put in order.")
    (found,) = json.loads(call("llm", "c.db", "--json")[0])
    assert (found["pairs"], found["listed"], found["lists"]) == (20, 20, 4)
    assert found["parameters"]["items_per_request"] == 5
    assert found["parameters"]["list_prompt"].startswith("mine/1 ")
    assert (found["flips_listed"]["whole"], found["flips_alone"]["whole"]) == (20, 0)
    told = " ".join(call("llm", "c.db")[0].split())
    for words in (
        "20 (20 from lists)",
        "asked in lists",
        "asked in pairs",
        "4 (4 for lists)",
        "answered: list",
    ):
        assert words in told, words
    assert "different parameters" in call(
        "judge", "llm", "c.db", "--url", f"{provider.address}/v1", "--model", "example", "--allow-host",
        "localhost", *lists, code=2,
    )[1]  # fmt: skip


def test_llm_says_that_it_could_not_order_lists(folder: Path, provider: Provider) -> None:
    make("--strategy", "allpairs")
    provider.model = lambda asked: "no" if asked.listed else smaller_is_better(asked)
    out = call("judge", "llm", "c.db", "--url", f"{provider.address}/v1", "--model", "example",
               "--allow-host", "localhost", "--items-per-request", "5")[0]  # fmt: skip
    assert " ".join(out.split()) == (
        "20 judged. 2 lists got no usable reply: their pairs were asked one at a time. "
        "Every topic has all the judgments it needs."
    )


def test_llm_judges_by_two_criteria_in_one_store(folder: Path, provider: Provider) -> None:
    """As docs/llm.md shows it: a campaign a criterion, so that their votes are never mixed."""
    for name in ("depth", "style"):
        (folder / f"{name}.toml").write_text(f'criterion = "{name}"\n')
        make("--strategy", "allpairs", "--settings", f"{name}.toml", "--name", name)
        sat = judged(provider, "--campaign", name, "--items-per-request", "5")
        assert sat["judged"] == 20
        assert f"Judge by this alone: {name}." in provider.requests[-1].system_message
        call("export", "c.db", "--campaign", name, "--as", "jsonl", "-o", f"{name}.jsonl")
        rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        assert {row["criterion"] for row in rows if row["event"] == "judgment"} == {name}


def test_llm_beside_people_waits_for_them(folder: Path, provider: Provider) -> None:
    make("--strategy", "swissfinals", "--person-price", "0.25", "--model-price", "0.02")
    out = call("judge", "llm", "c.db", "--url", f"{provider.address}/v1", "--model", "example",
               "--allow-host", "localhost")[0]  # fmt: skip
    assert " ".join(out.split()) == (
        "0 judged. llm-example is to be tried on pairs that people have judged, at 0.08 of a person's price. Start it "
        "again once people have judged more."
    )
    assert provider.number == 0
    told = call("pool", "r.run", "--person-price", "1", "--dry-run", code=2)[1]
    assert "'person_price' and 'model_price' go together" in told


REFUSED = [
    ((), "No API is named"),
    (("--url", "https://x.org/v1"), "No model is named"),
    (("--url", "https://x.org/v1", "--model", "m", "--price-in", "1"), "Only one of the two prices"),
    (("--url", "https://x.org/v1", "--model", "m", "--budget", "1"), "needs the prices"),
    (("--url", "https://x.org/v1", "--model", "m", "--reply-format", "xml"), "no form of reply"),
    (("--url", "https://x.org/v1", "--model", "m", "--prompt", "none.txt"), "none.txt"),
    (("--url", "https://x.org/v1", "--model", "m", "--list-prompt", "none.txt"), "none.txt"),
    (("--url", "https://x.org/v1", "--model", "m", "--items-per-request", "11"), "less than or equal"),
    (("--url", "http://x.org/v1", "--model", "m"), "--allow-host x.org"),
    (("--url", "https://127.0.0.1:1/v1", "--model", "m"), "private network"),
    (("--url", "https://localhost:1/v1", "--model", "n"), "private network"),
    (("--url", f"https://{KEY}@x.org/v1", "--model", "m"), "without a name or password"),
]


def test_what_is_refused(folder: Path) -> None:
    make()
    for words, told in REFUSED:
        out, err = call("judge", "c.db", "--judge", "llm", *words, code=2)
        assert told in " ".join(err.split())
        assert KEY not in out + err


def test_the_prompt_is_shown(folder: Path) -> None:
    assert PROMPTS["preference"].hash in call("prompt")[0]
    assert figures("prompt", "grade")["hash"] == PROMPTS["grade"].hash
    assert "What is the order of these texts" in call("prompt", "list")[0]
    (folder / "mine.txt").write_text("Choose.\n---\n{question}\n{left}\n{right}\n")
    assert call("prompt", "--file", "mine.txt")[0].startswith("mine/1 ")
    assert "no prompt called" in call("prompt", "haiku", code=2)[1]


def test_llm_figures_need_a_language_model(folder: Path) -> None:
    make()
    assert "No language model has judged in this campaign." in call("llm", "c.db")[0]
    assert "No model has compared" in call("llm", "c.db", "--as", "prior", code=2)[1]
    assert "No model has judged" in call("llm", "c.db", "--as", "predictor", code=2)[1]
    assert "no form called" in call("llm", "c.db", "--as", "poem", code=2)[1]
    assert "no model called" in call("llm", "c.db", "--as", "prior", "--assessor", "x", code=2)[1]


def by_question(request: LlmRequest) -> str:
    """Prefer what sorts first; the question "ties?" has ties, and "side?" is answered by the side alone."""
    asked = request.parts["question"]
    return (
        says("tie") if asked == "ties?" else says("left") if asked == "side?" else smaller_is_better(request)
    )


def test_llm_judges_answers_in_both_orders_and_ranks_systems(folder: Path) -> None:
    questions = ("one?", "two?", "three?", "ties?", "side?")
    rows = [
        {
            "question_id": f"q{at}",
            "question": question,
            "system": system,
            "answer": f"{text} answers {question}",
        }
        for at, question in enumerate(questions)
        for system, text in (("sys-z", "aaa"), ("sys-y", "bbb"), ("sys-x", "ccc"))
    ]
    (folder / "answers.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    call("pool", "--answers", "answers.jsonl", "-o", "c.db")
    with serving(Provider(model=by_question)) as provider:
        sat = judged(provider, "--at-once", "2")
        assert (sat["judged"], sat["ended"]) == (15, "done")
        seen = {(each.parts["left"], each.parts["right"]) for each in provider.requests}
        assert len(provider.requests) == len(seen) == 30
        assert seen == {(right, left) for left, right in seen}
        first = provider.requests[0]
        assert "answers of two systems" in first.system_message
        assert '"tie"' in first.system_message
        assert not [each for each in provider.requests if b"sys-" in each.raw]
    (figured,) = json.loads(call("llm", "c.db", "--json")[0])
    assert figured["prompt_hash"] == PROMPTS["answers"].hash
    assert figured["flips"] == pytest.approx({**figured["flips"], "share": 0.2})
    board = json.loads(call("evaluate", "c.db", "--systems", "--json")[0])
    assert [row["system"] for row in board] == ["sys-z", "sys-y", "sys-x"]
    assert {row["judges"] for row in board} == {"models"}
    votes = [json.loads(line) for line in call("export", "c.db", "--as", "votes")[0].splitlines()]
    assert {vote["judge_type"] for vote in votes} == {"model"}
    assert {vote["winner"] for vote in votes if vote["question_id"] == "q3"} == {"tie"}
    assert {vote["winner"] for vote in votes if vote["question_id"] == "q4"} == {"tie"}
    assert len(votes) == 15
