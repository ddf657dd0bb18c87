"""Judging in a notebook's cell: answers reach the strategy once, and texts are never HTML."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import duelpool.adaptors
from duelpool.adaptors.notebook import PairSession, judge_pairs
from duelpool.errors import BadParameter, MissingExtra
from duelpool.strategies import make_strategy

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TEXTS = {"a": "the best <b>text</b>", "b": "a good text", "c": "a text"}
PREFERRED = ["the best <b>text</b>", "a good text", "a text"]


def session() -> PairSession:
    return PairSession(make_strategy("allpairs", "abc", seed=1), TEXTS, "Which?", "t", 1)


def test_answers_reach_the_strategy_once_and_it_ends() -> None:
    judged = session()
    while not judged.shown["done"]:
        shown = judged.shown
        better = min("left", "right", key=lambda side: PREFERRED.index(shown[side]))
        assert judged.answer(shown["number"], better)
        assert not judged.answer(shown["number"], better)  # a second click
    assert judged.strategy.result().levels == (("a",), ("b",), ("c",))
    assert len(judged.judgments) == 3
    assert not judged.answer(3, "left")
    assert not session().answer(0, "maybe")


def test_an_item_without_a_text_and_a_missing_extra_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadParameter, match="has no text"):
        PairSession(make_strategy("allpairs", "xyz", seed=1), TEXTS, "", "t", 1)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(MissingExtra, match=r"duelpool\[notebook\]"):
        judge_pairs(make_strategy("allpairs", "abc", seed=1), TEXTS)


@pytest.mark.peer("anywidget")
@pytest.mark.filterwarnings("ignore")
def test_the_widget_takes_answers_from_the_browser() -> None:
    widget = judge_pairs(make_strategy("allpairs", "abc", seed=1), TEXTS, question="Which?")
    first = dict(widget.pair)
    widget.answer = {"number": 0, "outcome": "left"}
    assert (widget.pair["number"], len(widget.judgments)) == (1, 1)
    assert widget.pair != first
    widget.answer = {"number": 0, "outcome": "right"}
    assert len(widget.judgments) == 1


def test_the_cell_shows_texts_as_text_and_answers_by_button_and_key(browser: "Browser") -> None:
    script = (Path(duelpool.adaptors.__file__).parent / "judge_pairs.js").read_text()
    page = browser.new_page()
    page.set_content("<main></main>")
    pair = {**session().shown, "left": TEXTS["a"]}
    page.evaluate(
        """async ([code, pair]) => {
            const widget = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
            window.sent = [];
            const values = { pair };
            const model = { get: (name) => values[name], set: (name, value) => { values[name] = value; },
                            save_changes: () => window.sent.push(values.answer), on: (_, f) => { window.show = f; } };
            window.values = values;
            widget.default.render({ model, el: document.querySelector("main") });
        }""",
        [script, pair],
    )
    assert page.locator("main b").count() == 0
    assert TEXTS["a"] in page.inner_text("main")
    page.get_by_role("button", name="Right is better").click()
    page.locator("section").press("0")
    assert page.evaluate("sent") == [{"number": 0, "outcome": "right"}, {"number": 0, "outcome": "tie"}]
    page.evaluate("pair => { values.pair = { ...pair, done: true, judged: 3 }; show(); }", pair)
    assert page.get_by_role("status").inner_text() == "Done: 3 judged."
    assert page.get_by_role("button", name="Left is better").is_disabled()
    page.close()
