"""Records in a notebook: a short text, a table in HTML, data frames, plain values, a picture."""

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import duelpool as dp

RUNS = {
    name: {f"q{t}": [f"d{(at * step) % 7}" for at in range(7)] for t in range(3)}
    for name, step in (("a", 1), ("b", 3))
}
GRADES = {f"q{t}": {"d0": 2.0, "d1": 1.0, "d2": 0.0} for t in range(3)}


def judge(topic: str, a: str, b: str) -> str:
    return min(a, b)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pools = dp.pool(RUNS, topics={"q0": "rivers"}, texts={"d0": "The <Nile>."})
    result = dp.run(pools, "knockout", judge=judge)
    rows = [{"question": "q", "system": name, "answer": name} for name in ("x", "y")]
    answers = dp.pool(answers=rows)
    votes = [
        {"topic": "q0", "a": "d0", "b": other, "winner": "d0", "assessor": name}
        for name in ("ann", "bob")
        for other in ("d1", "d2")
    ]
    plan = dp.plan(RUNS, 6, metric="P@3")
    judged = {
        each.topic: {other.item: 1.0 for other in plan.questions if other.topic == each.topic}
        for each in plan.questions
    }
    with dp.open(tmp_path_factory.mktemp("shown") / "mine.db") as store:
        status = store.create(pools, "mine", strategy="knockout").status()
    return {
        "Run": pools.runs[0],
        "Qrels": dp.read_qrels(GRADES),
        "Preferences": result.preferences(),
        "Topics": pools.topics,
        "Passages": pools.texts,
        "Answers": answers.answers,
        "Pool": pools["q0"],
        "PoolSet": pools,
        "Levels": result.levels["q0"],
        "JudgedPools": result,
        "Evaluation": dp.evaluate(GRADES, RUNS, interval="t"),
        "RunComparison": dp.compare(RUNS["a"], RUNS["b"], qrels=GRADES),
        "SystemBoard": dp.run(answers, "allpairs", judge=lambda topic, a, b: a).systems(),
        "SimulationResult": dp.simulate("knockout", "order", items=4, trials=5, curve=True),
        "Agreement": dp.agreement(votes),
        "Plan": plan,
        "BudgetEstimate": dp.estimate(plan, RUNS, judged),
        "CampaignStatus": status,
    }


NAMES = [
    *("Run", "Qrels", "Preferences", "Topics", "Passages", "Answers", "Pool", "PoolSet", "Levels"),
    *("JudgedPools", "Evaluation", "RunComparison", "SystemBoard", "SimulationResult", "Agreement"),
    *("Plan", "BudgetEstimate", "CampaignStatus"),
]
UNDRAWN = ("Topics", "Passages", "Answers", "Pool", "CampaignStatus")


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_shown_as_a_line_a_table_frames_and_values(name: str, shown: dict[str, Any]) -> None:
    record = shown[name]
    assert type(record) is getattr(dp, name)
    assert repr(record).startswith(f"{name}(")
    assert "\n" not in repr(record)
    assert len(repr(record)) < 250
    html = record._repr_html_()
    assert html.startswith("<table>")
    assert "<Nile>" not in html
    frame = record.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.height
    assert list(record.to_pandas().columns) == frame.columns
    assert json.loads(json.dumps(record.to_dict()))


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_drawn_or_says_that_there_is_no_picture(
    name: str, shown: dict[str, Any], tmp_path: Path
) -> None:
    if name in UNDRAWN:
        with pytest.raises(dp.BadParameter, match="There is no picture"):
            shown[name].plot()
        return
    figure = shown[name].plot()
    assert figure.axes[0].has_data() or figure.axes[0].images
    figure.savefig(tmp_path / "picture.svg")


def test_a_picture_shows_itself_in_a_notebook(shown: dict[str, Any]) -> None:
    assert shown["Evaluation"].plot()._repr_png_().startswith(b"\x89PNG")


def test_missing_pandas_is_named_with_its_extra(
    shown: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dp.MissingExtra, match=r"pip install 'duelpool\[pandas\]'"):
        shown["Evaluation"].to_pandas()


def test_long_tables_are_cut_and_say_so() -> None:
    html = dp.Levels((tuple(f"d{at}" for at in range(30)),))._repr_html_()
    assert html.count("<tr>") == 21
    assert "and 10 more rows" in html


def test_a_judgment_shows_what_it_says() -> None:
    assert repr(dp.Proposal(("a", "b"), phase="1").wins("b")) == (
        "Judgment(topic='topic', left='a', right='b', outcome='right', phase='1')"
    )
