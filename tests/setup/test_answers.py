"""From answers and result pages to a campaign of systems: pools, plan, test pairs, what is stored, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.log import systems
from duelpool.cli import app
from duelpool.errors import BadFile, BadParameter
from duelpool.files import read_answers
from duelpool.records import Answer, Outcome
from duelpool.setup import Draft, Files, Rules, build_draft, read_files
from duelpool.setup.joining import join
from duelpool.store import Store, holdings, open_store
from support.stores import BACK_ENDS, new_target

SYSTEMS = Settings(goal="systems")


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def answers(tmp_path: Path, systems: int = 5, questions: int = 30) -> str:
    rows = [
        {"question_id": f"q{q}", "question": f"Question {q}?", "system": f"secret-{s}", "answer": f"{s} to {q}",
         "citations": [{"id": "d", "text": "cited"}], "reference": "right", "tags": ["odd"] if q % 2 else []}
        for q in range(questions) for s in range(systems)
    ]  # fmt: skip
    return write(tmp_path / "answers.jsonl", *rows)


def draft_of(*files: str, settings: Settings = SYSTEMS, **more: Any) -> Draft:
    return build_draft(read_files(Files(answers=files, **more)), settings)


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as opened:
        yield opened


def test_answers_become_a_campaign_with_what_they_cite(store: Store, tmp_path: Path) -> None:
    campaign, held = draft_of(answers(tmp_path, 3, 2)).ready().create(store, "c")
    assert (held.topics, held.candidates, held.texts, held.runs) == (2, 6, 6, 3)
    campaign.enrol("anna")
    question = campaign.next_question("anna")
    assert question is not None
    items = [question.left, str(question.right)]
    assert not any("secret" in item for item in items)

    def look(tx: Any) -> tuple[Any, ...]:
        texts = holdings.passages(tx, items)
        return list(systems.systems(tx)), holdings.topics(tx), texts

    names, topics, texts = campaign.read(look)
    assert names == ["secret-0", "secret-1", "secret-2"]
    assert [(each.reference, each.tags) for each in topics.values()] == [("right", ()), ("right", ("odd",))]
    assert {(each.format, each.sources[0].text) for each in texts.values()} == {("markdown", "cited")}
    assert Campaign.open(store, "c").settings.goal == "systems"


def test_identical_answers_are_one_item_and_tie(tmp_path: Path) -> None:
    texts = {"a": "x", "b": " x", "c": "y"}
    rows = [{"question": "Why?", "system": name, "answer": text} for name, text in texts.items()]
    draft = draft_of(write(tmp_path / "a.jsonl", *rows))
    (pool,) = draft.pools.pools
    assert len(pool.items) == 2
    assert draft.pools.merged == 1


def test_plan_of_five_systems_and_thirty_questions(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["pool", "--answers", answers(tmp_path), "--json"])
    told = json.loads(done.stdout)
    assert told["systems"]["pairs"] == 300
    assert told["estimate"]["judgments"] <= 300
    assert set(told["systems"]["systems"].values()) == {30}
    shown = CliRunner().invoke(app, ["pool", "--answers", answers(tmp_path)])
    assert "pairs of answers" in shown.stdout


def test_test_pairs_are_drawn_from_other_questions_or_given(tmp_path: Path) -> None:
    crowd = Settings(goal="systems", judges="crowd")
    draft = draft_of(answers(tmp_path), settings=crowd)
    pair = draft.test_pairs()[0][0]
    other = {pool.topic for pool in draft.pools.pools if pair.worse in pool.items}
    assert other
    assert pair.topic not in other
    rows = [{"question_id": f"q{at}", "better": "good", "worse": "bad"} for at in range(3)]
    two = {"result_x": "a", "result_y": "b"}
    given = write(
        tmp_path / "tests.jsonl",
        *rows,
        {"question": "Question 4?", **two, "golden": "right"},
        {"prompt": "q5", **two, "golden": "tie"},
        {"question": "?", "better": "a", "worse": "b"},
    )
    ready = draft_of(answers(tmp_path), settings=crowd, tests=given).ready()
    assert [each.topic for each in ready.test_pairs] == ["q0", "q1", "q2", "q4"]
    better = {each.id: each.text for each in ready.test_texts}[ready.test_pairs[3].better]
    assert better == "b"
    assert {notice.what for notice in ready.notices} == {
        "pairs without a better answer left out", "test pairs of unknown questions left out",
        "answers of test pairs without citations, shown with those of another answer",
    }  # fmt: skip
    assert {each.sources[0].text for each in ready.test_texts} == {"cited"}
    with pytest.raises(BadFile, match="no test pair"):
        draft_of(answers(tmp_path), tests=write(tmp_path / "t.jsonl", {"question_id": "q1"})).ready()


def test_answers_given_as_runs_are_pointed_to_their_option(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["pool", answers(tmp_path, 2, 1), "-o", str(tmp_path / "c.db")])
    assert done.exit_code == 2
    assert "answers of systems are given by --answers" in " ".join(done.output.split())


def test_answers_of_test_pairs_have_sources_like_all_others(tmp_path: Path) -> None:
    own = {
        "question_id": "q0",
        "better": "good",
        "worse": "0 to 0",
        "better_citations": ["A page of its own."],
    }
    sided = {
        "question_id": "q1",
        "answer_a": "x",
        "answer_b": "y",
        "winner": "b",
        "citations_b": [{"text": "of y"}],
    }
    ready = draft_of(answers(tmp_path), tests=write(tmp_path / "t.jsonl", own, sided)).ready()
    texts = {each.text: [source.text for source in each.sources] for each in ready.test_texts}
    assert texts == {"good": ["A page of its own."], "0 to 0": ["cited"], "x": ["cited"], "y": ["of y"]}
    assert [notice.count for notice in ready.notices] == [1]
    bad = write(tmp_path / "b.jsonl", {**own, "better_citations": [[1]]})
    with pytest.raises(BadFile, match="better_citations"):
        draft_of(answers(tmp_path), tests=bad).ready()


def test_result_pages_are_items(tmp_path: Path) -> None:
    runs = []
    for name, order in (("one", "abc"), ("two", "bad"), ("three", "abc")):
        lines = [f"1 Q0 {item} {at} {-at} {name}\n" for at, item in enumerate(order)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
        runs.append(str(tmp_path / f"{name}.run"))
    texts = write(
        tmp_path / "t.jsonl", *({"id": item, "title": f"*{item}*", "text": "word " * 100} for item in "abcd")
    )
    inputs = read_files(Files(runs=tuple(runs), texts=texts, pages=True))
    draft = build_draft(inputs, SYSTEMS, Rules(depth=2))
    (pool,) = draft.pools.pools
    assert (len(pool.items), draft.pools.merged) == (2, 1)
    assert draft.texts is not None
    page = draft.texts[pool.items[0]]
    assert {(each.id, each.kind) for each in page.sources} == {("a", "result"), ("b", "result")}
    assert page.text.startswith("1. **")
    assert page.text.endswith("…")
    with pytest.raises(BadParameter, match="no texts"):
        build_draft(read_files(Files(runs=tuple(runs), pages=True)), SYSTEMS)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--strategy", "swissfinals"], "finds the best items of a topic"),
        (["--strategy", "prefbest"], "no way to compare systems called 'prefbest'"),
        (["--settings", "s.toml"], "finds the best items of a topic"),
        (["--qrels", "q.txt"], "Answers make the pools"),
        (["--goal", "compare:secret-0,x"], "no system 'x'"),
        (["--fields", "reply=x"], "no field 'reply'"),
        (["--pages", "x.run"], "runs of its own"),
    ],
)
def test_what_does_not_go_with_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text('strategy = "swissfinals"\n')
    Path("q.txt").write_text("q1 0 a 1\n")
    done = CliRunner().invoke(app, ["pool", "--answers", answers(tmp_path, 2, 2), "-o", "x.db", *words])
    assert done.exit_code == 2
    assert problem in " ".join((done.stderr or done.output).split())
    assert not Path("x.db").exists()


def test_a_system_joins_later_and_keeps_votes(store: Store, tmp_path: Path) -> None:
    campaign, _ = draft_of(answers(tmp_path, 2, 2)).ready().create(store, "c")
    campaign.enrol("anna")
    question = campaign.next_question("anna")
    assert question is not None
    campaign.answer(question.id, "anna", Answer(Outcome.LEFT))
    cited = {"citations": [{"id": "d", "text": "cited"}]}
    rows: list[dict[str, Any]] = [
        {"question_id": "q0", "system": "new", "answer": "0 to 0", **cited},
        {"question": "Question 1?", "system": "new", "answer": "better", **cited},
        {"question": "Other?", "system": "new", "answer": "x"},
    ]
    read = read_answers([write(tmp_path / "late.jsonl", *rows)])
    assert join(campaign, read, dry_run=True).systems == {"new": 2}
    joined = join(campaign, read)
    assert (joined.systems, joined.identical, len(joined.unknown)) == ({"new": 2}, 1, 1)
    assert campaign.read(lambda tx: list(systems.systems(tx))) == ["new", "secret-0", "secret-1"]
    again = Campaign.open(store, "c")
    left = {each.pair for _ in range(9) if (each := again.next_question("anna")) is not None}
    assert left
    with pytest.raises(BadParameter, match="'new' already"):
        join(campaign, read)
