"""The schemas accept all that Duelpool writes, and refuse broken lines."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from duelpool.budget import item_population, make_plan, pair_population, parse_metric
from duelpool.budget.plans.plan import write_plan
from duelpool.campaign.exports.files import levels_of, write_log
from duelpool.cli import app
from duelpool.errors import BadRecord, UnknownName
from duelpool.files.judgments import judgment_from_json, judgment_to_json
from duelpool.files.pools import pool_from_json, pool_to_json
from duelpool.files.votes import SystemVote
from duelpool.leaderboard.systems import arena_rows, training_rows
from duelpool.records import Judgment, Kind, Outcome, Pool
from duelpool.schemas import SCHEMAS, schema, schema_text
from duelpool.schemas.made import MAKERS, made_text
from duelpool.store import open_store
from support.budgets import small_runs
from support.campaigns import judge_all, make_campaign
from support.eventful import Eventful

VALID = {name: jsonschema_rs.validator_for(schema(name), validate_formats=True) for name in SCHEMAS}


def refuses(name: str, line: Any) -> bool:
    return not VALID[name].is_valid(json.loads(json.dumps(line)))


def accept(name: str, line: Any) -> None:
    errors = [str(error) for error in VALID[name].iter_errors(json.loads(json.dumps(line)))]
    assert not errors, (line, errors[:1])


@pytest.mark.parametrize("name", SCHEMAS)
def test_stored_schemas_are_those_of_the_records(name: str) -> None:
    """After a change of a record: python tests/schemas/store_schemas.py."""
    assert set(MAKERS) == set(SCHEMAS)
    assert schema_text(name) == made_text(name)
    jsonschema_rs.meta.validate(schema(name))


texts = st.text("abc-é", min_size=1, max_size=5)
judgments = st.builds(
    Judgment,
    topic=texts,
    left=st.just("x"),
    right=st.just("y"),
    outcome=st.sampled_from([each for each in Outcome if each is not Outcome.GRADE]),
    phase=st.text("pq", max_size=2),
    assessor=st.text("pq", max_size=2),
    kind=st.sampled_from([Kind.PREFERENCE, Kind.DEFINITE]),
    confidence=st.none() | st.floats(0, 1),
    seconds=st.none() | st.floats(0, 1e6),
    context_uses=st.integers(0, 9),
    highlighted=st.none() | st.booleans(),
    sides_known=st.booleans(),
    inferred=st.booleans(),
    repeated=st.booleans(),
    propensity=st.none() | st.floats(0.001, 1),
    seq=st.none() | st.integers(1, 99),
)


@given(judgments)
def test_every_judgment_that_is_written_is_accepted(judgment: Judgment) -> None:
    accept("judgment", judgment_to_json(judgment))


def test_grades_and_pools_are_accepted() -> None:
    accept("judgment", judgment_to_json(Judgment("t", "a", None, Outcome.GRADE, kind=Kind.GRADE, grade=2.0)))
    skipped = Judgment("t", "a", None, Outcome.SKIP, kind=Kind.GRADE)
    accept("judgment", judgment_to_json(skipped))
    accept("pool", pool_to_json(Pool("t", ("a", "b"))))
    accept("pool", pool_to_json(Pool("t", ("a", "b"), {"a": 2.0}, {"b": ("c", "d")})))


def test_the_log_and_the_levels_of_an_eventful_campaign_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(str(tmp_path / "x.db"), create=True) as store:
        played = Eventful.play(store, 1, tmp_path, monkeypatch, "prefbest:n=3,m=3")
        write_log(played.campaign, tmp_path / "log.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    for line in lines:
        accept("log", line)
    assert {"judgment", "retraction", "release"} <= {line["event"] for line in lines}
    with open_store(str(tmp_path / "y.db"), create=True) as store:
        campaign = make_campaign(store, [Pool("t", tuple("abc")), Pool("u", tuple("de"))])
        accept("levels", levels_of(campaign))
        judge_all(campaign)
        accept("levels", levels_of(campaign))


def test_plans_and_votes_are_accepted(tmp_path: Path) -> None:
    runs, _ = small_runs()
    for population in (
        item_population(runs, parse_metric("P@3")),
        pair_population(runs, parse_metric("ppref")),
    ):
        write_plan(tmp_path / "plan.jsonl", make_plan(population, 5, design="P", estimator="ht"))
        for line in (tmp_path / "plan.jsonl").read_text().splitlines():
            accept("plan", json.loads(line))
    bare = [SystemVote("x", "y", outcome, question="q") for outcome in ("a", "b", "tie", "bothbad")]
    full = [
        SystemVote("x", "y", "a", question="q", question_text="What?", answer_a="This.", answer_b="That.")
    ]
    for row in (*arena_rows(bare), *arena_rows(full)):
        accept("vote", row)
    for row in training_rows(full):
        accept("pair", row)


JUDGED = {"topic": "t", "left": "a", "right": "b", "outcome": "left"}
LINE = {"event": "judgment", "seq": 1, "time": "2026-01-02T03:04:05.000000Z", "kind": "preference", **JUDGED}
QUESTION = {"topic": "t", "item": "a", "times": 1, "expected": 0.5}
LEVELS: dict[str, Any] = {
    "campaign": "c", "strategy": "s",
    "topics": {"t": {"levels": [["a"]], "confidence": None, "certainty": None, "judgments": 0, "done": False}},
}  # fmt: skip
VOTE = {
    "question_id": "q", "model_a": "x", "model_b": "y", "winner": "tie", "judge": "j", "judge_type": "human",
    "criterion": "overall",
}  # fmt: skip
PAIR = {"prompt": "p", "chosen": "c", "rejected": "r", "question_id": "q", "votes": 2, "margin": 0.5}
WHOLE: dict[str, dict[str, Any]] = {
    "judgment": JUDGED, "log": LINE, "pool": {"topic": "t", "items": ["a"]}, "plan": QUESTION, "levels": LEVELS,
    "vote": VOTE, "pair": PAIR,
}  # fmt: skip
BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "a judgment without a topic": ("judgment", {"topic": None}),
    "a judgment with an empty item": ("judgment", {"left": ""}),
    "a judgment of an unknown outcome": ("judgment", {"outcome": "better"}),
    "a preference for one item": ("judgment", {"right": None}),
    "a preference with a grade": ("judgment", {"grade": 2}),
    "a grade without a number": ("judgment", {"right": None, "outcome": "grade", "kind": "grade"}),
    "a grade of two items": ("judgment", {"outcome": "grade", "kind": "grade", "grade": 1}),
    "negative seconds": ("judgment", {"seconds": -1}),
    "a propensity of zero": ("judgment", {"propensity": 0}),
    "a propensity above one": ("judgment", {"propensity": 1.5}),
    "a switch that is text": ("judgment", {"inferred": "yes"}),
    "a misspelled field": ("judgment", {"assesor": "anna"}),
    "a place in the log of zero": ("log", {"seq": 0}),
    "a line without a time": ("log", {"time": None}),
    "a time of another form": ("log", {"time": "yesterday"}),
    "an unknown event": ("log", {"event": "deletion"}),
    "a retraction of nothing": ("log", {"event": "retraction", "outcome": None}),
    "a closed phase without survivors": ("log", {"event": "phase-closed", "phase": "p", "outcome": None}),
    "a pool with an item twice": ("pool", {"items": ["a", "a"]}),
    "a pool with a number for an item": ("pool", {"items": [1]}),
    "a grade in words": ("pool", {"grades": {"a": "good"}}),
    "a question drawn no times": ("plan", {"times": 0}),
    "a question without its chance": ("plan", {"expected": None}),
    "a plan of another version": ("plan", {"plan": 2}),
    "an empty level": ("levels", {"topics": {"t": {**LEVELS["topics"]["t"], "levels": [[]]}}}),
    "a chance above one": ("levels", {"topics": {"t": {**LEVELS["topics"]["t"], "confidence": 1.1}}}),
    "a vote for a third system": ("vote", {"winner": "model_c"}),
    "a vote of an unknown kind of judge": ("vote", {"judge_type": "cat"}),
    "a question text without answers": ("vote", {"question": "What?"}),
    "a pair without a rejected answer": ("pair", {"rejected": None}),
    "a margin of zero": ("pair", {"margin": 0}),
}
"""Changes of a whole line that break it; None takes a field out."""


def test_whole_lines_are_accepted_and_broken_ones_refused_one_by_one() -> None:
    for name, line in WHOLE.items():
        accept(name, line)
    assert set(WHOLE) == set(SCHEMAS)
    wrongly = []
    for what, (name, changes) in BROKEN.items():
        merged = {**WHOLE[name], **changes}
        if not refuses(name, {key: value for key, value in merged.items() if value is not None}):
            wrongly.append(what)
    assert (wrongly, len(BROKEN) >= 20) == ([], True)


@pytest.mark.parametrize("what", [what for what, (name, _) in BROKEN.items() if name in ("judgment", "pool")])
def test_readers_refuse_what_the_schemas_refuse(what: str) -> None:
    """All but a field that isn't known, which readers leave out and count."""
    name, changes = BROKEN[what]
    line = {key: value for key, value in {**WHOLE[name], **changes}.items() if value is not None}
    if what == "a misspelled field":
        assert judgment_from_json(line)
        return
    with pytest.raises(BadRecord):
        (judgment_from_json if name == "judgment" else pool_from_json)(line)


def test_the_command_prints_schemas_and_their_list() -> None:
    listed = CliRunner().invoke(app, ["schema"]).output
    assert [line.split()[0] for line in listed.splitlines()] == list(SCHEMAS)
    assert json.loads(CliRunner().invoke(app, ["schema", "pool"]).output) == schema("pool")
    assert CliRunner().invoke(app, ["schema", "pol"]).exit_code == 2
    with pytest.raises(UnknownName, match="Did you mean 'pool'"):
        schema("pol")
