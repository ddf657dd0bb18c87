"""Votes between systems from elsewhere become the log of a campaign of answers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.views import summaries
from duelpool.campaign.views.status import status
from duelpool.errors import BadFile
from duelpool.setup import Files, build_draft, read_files
from duelpool.store import holdings, log, open_store
from support.stores import BACK_ENDS, new_target

ANSWERS = [
    {"question_id": question, "question": f"{question}?", "system": system, "answer": text}
    for question in ("p1", "p2", "p3")
    for system, text in (("A", "x"), ("B", "x"), ("C", "y"))
]
VOTES = "prompt,left,right,winner,worker\np1,A,C,left,7\np1,A,C,right,8\np2,C,B,tie,7\np2,A,B,left,9\n"


@pytest.fixture(params=BACK_ENDS)
def campaign(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Campaign]:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ANSWERS))
    draft = build_draft(read_files(Files(answers=(str(path),))), Settings(goal="systems"))
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as store:
        yield draft.ready().create(store, "c")[0]


def judged(campaign: Campaign, topic: str) -> list[tuple[str, str, str]]:
    lines = campaign.read(lambda tx: list(log.read_lines(tx, topic)))
    return [
        (line.judgment.assessor, line.judgment.outcome, line.judgment.left) for line in lines if line.judgment
    ]


def test_votes_are_judgments_of_answers(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    taken = import_file(campaign, path)
    summaries.keep_up(campaign)
    assert (taken.judgments, taken.topics) == (4, 2)
    assert [each[:2] for each in judged(campaign, "p1")] == [("7", "left"), ("8", "right")]
    assert [each[:2] for each in judged(campaign, "p2")] == [("7", "tie"), ("9", "left")]
    assert len(status(campaign).topics) == 3
    with pytest.raises(BadFile, match="imported"):
        import_file(campaign, path)


def test_questions_go_by_their_text_and_both_bad_is_kept(campaign: Campaign, tmp_path: Path) -> None:
    row = {"question": "p1?", "model_a": "A", "model_b": "C", "winner": "tie (bothbad)", "judge": "anna"}
    path = tmp_path / "votes.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert import_file(campaign, path).judgments == 1
    assert judged(campaign, "p1")[0][:2] == ("anna", "both-bad")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("p9,A,C,left,7", "no question 'p9'"),
        ("p1,A,D,left,7", "no system 'D'"),
        (",A,C,left,7", "names no question"),
    ],
)
def test_unknown_questions_and_systems_are_refused_or_counted(
    campaign: Campaign, tmp_path: Path, row: str, problem: str
) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(f"{VOTES}{row}\n")
    with pytest.raises(BadFile, match=problem) as refused:
        import_file(campaign, path)
    assert refused.value.place == f"{path}:6"
    assert judged(campaign, "p1") == []
    taken = import_file(campaign, path, skip_unknown=True)
    assert taken.judgments == 4
    assert any("left out" in notice.what for notice in taken.notices)


def kinds(campaign: Campaign) -> dict[str, str]:
    return {name: row.kind for name, row in campaign.read(holdings.assessors).items()}


def test_models_are_told_apart_from_people(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    import_file(campaign, path)
    other = tmp_path / "models.csv"
    other.write_text("prompt,left,right,winner\np1,A,C,left\np2,A,C,right\n")
    import_file(campaign, other, assessor="gpt-4", by_model=True)
    rows = [
        {"question_id": "p3", "model_a": "A", "model_b": "C", "winner": "model_b", **who}
        for who in ({"judge": "eve", "judge_type": "human"}, {"judge_type": "model"})
    ]
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    import_file(campaign, mixed)
    people = dict.fromkeys(("7", "8", "9", "eve"), "imported")
    assert kinds(campaign) == {**people, "gpt-4": "llm", "model": "llm"}
    assert [judge for judge, _, _ in judged(campaign, "p3")] == ["eve", "model"]


def test_judgments_of_a_file_may_be_a_models(campaign: Campaign, tmp_path: Path) -> None:
    items = sorted(campaign.read(lambda tx: [row.id for row in holdings.items(tx, "p1") if not row.twin_of]))
    path = tmp_path / "judgments.jsonl"
    line = {"topic": "p1", "left": items[0], "right": items[1], "outcome": "left", "assessor": "7"}
    path.write_text(json.dumps(line) + "\n")
    import_file(campaign, path, by_model=True)
    assert kinds(campaign) == {"7": "llm"}


def test_a_judge_is_a_person_or_a_model(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("prompt,left,right,winner,judge,judge_type\np1,A,C,left,x,human\np1,A,C,left,x,model\n")
    with pytest.raises(BadFile, match="person in one row and a model in another") as refused:
        import_file(campaign, path)
    assert refused.value.place == f"{path}:3"
    campaign.enrol("ann", "dedicated")
    path.write_text("prompt,left,right,winner,judge\np1,A,C,left,ann\n")
    with pytest.raises(BadFile, match="'ann' is a dedicated one, and here a model"):
        import_file(campaign, path, by_model=True)
    assert judged(campaign, "p1") == []
    path.write_text(VOTES)
    import_file(campaign, path)
    path.write_text("prompt,left,right,winner,judge\np3,A,C,left,7\n")
    taken = import_file(campaign, path, by_model=True)
    assert [notice.what for notice in taken.notices] == [
        "judges of earlier imports, which are models from now on"
    ]
    assert kinds(campaign)["7"] == "llm"
