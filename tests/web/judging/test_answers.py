"""Answers of systems on the judging page: rendered safely, with what they cite, and never with a system's name."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.log import systems
from duelpool.files import Run
from duelpool.files.packed import pack_run
from duelpool.records import Passage, Pool, SourceText, Topic
from duelpool.setup import Files, Rules, build_draft, read_files
from duelpool.store import Store, schema
from duelpool.store.holdings import PackedRun
from support.accessibility import look_with_axe
from support.browsing import People, Site
from support.visitors import Person, new_store, served
from support.xss import PAYLOADS

SYSTEMS = ("zeta-secret", "alpha-secret", "mid-secret")
QUESTIONS = 8
SETTINGS = Settings(goal="systems", ties=True, steps=(), feedback=False)
MARKDOWN = """### Steps

1. **Boil** the water, see [the manual](https://example.org/manual).
2. Add `salt` ![a pan](https://example.org/pan.png)

| a | b |
|---|---|
| 1 | 2 |

```python
print("<b>done</b>")
```
"""


def answers(folder: Path) -> str:
    rows = [
        {"question_id": f"q{q}", "question": f"Question {q}?", "system": system, "answer": f"{MARKDOWN}\n{at} to {q}",
         "citations": [{"id": "d1", "title": "A title", "text": "A text that is cited"}, {"id": "d2"}]}
        for q in range(QUESTIONS) for at, system in enumerate(SYSTEMS)
    ]  # fmt: skip
    path = folder / "answers.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def create(store: Store, folder: Path, settings: Settings = SETTINGS) -> Campaign:
    files = Files(answers=(answers(folder),))
    return build_draft(read_files(files), settings).ready().create(store, "study")[0]


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    with new_store(tmp_path / "c.db") as store:
        create(store, tmp_path)
    with served(tmp_path / "c.db") as app:
        yield Person(app, worker="w1")


def test_answers_are_shown_as_markdown_with_what_they_cite(person: Person) -> None:
    page = person.page().text
    assert "Which answer is better?" in page
    assert "passage" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL).lower()
    for label in ("About the same", "Both bad", "Sources", "Scroll together"):
        assert label in page, label
    question = person.work()["questions"][0]
    assert {"tie", "both-bad", "left-bad", "right-bad"} <= set(question["outcomes"])
    html = question["left"]["html"]
    assert "<h3>Steps</h3>" in html
    assert "<td>2</td>" in html
    assert "&lt;b&gt;done&lt;/b&gt;" in html
    assert "[a pan]" in html
    assert not re.search(r"<a|<img|<b>|https?:", html)
    assert question["left"]["sources"] == [
        {"title": "A title", "text": "A text that is cited"},
        {"title": "d2", "text": ""},
    ]
    assert page.count('<details class="sources">') == 2
    assert person.client.get(f"{person.base}/context/{question['id']}").json() == {"snippets": []}


def test_progress_among_systems_promises_no_number_of_questions(person: Person) -> None:
    assert person.work()["progress"] == {"done": 0, "of": None}
    assert "0 judged" in person.page().text


def test_nothing_that_an_assessor_gets_tells_a_system(person: Person) -> None:
    store = person.app.state.store
    campaign = person.app.state.campaigns.flow(person.campaign).campaign
    items = {
        item: system
        for topic in campaign.live.heads()
        for system, item in campaign.read(lambda tx, topic=topic: systems.answers(tx, topic)).items()
    }
    sides: Counter[tuple[str, str]] = Counter()
    sizes: set[tuple[int, ...]] = set()  # all answers are of the same length, so that all questions are
    pages: list[int] = []
    served_files: set[tuple[str, ...]] = set()
    work = person.work()
    cookies = dict(person.client.cookies)
    while work["state"] == "judging":
        question = work["questions"][0]
        asked = store.read(lambda connection, name=question["id"]: connection.execute(
            schema.question.select().where(schema.question.c.id == name)).one())  # fmt: skip
        sides[items[asked.left_item], "left"] += 1
        sides[items[asked.right_item], "right"] += 1
        fetched = [person.page(), person.client.get(f"{person.base}/context/{question['id']}")]
        whole_page = fetched[0].text
        first, second = (f"{question[side]['html'].strip()[-30:]}" for side in ("left", "right"))
        assert whole_page.index(first) < whole_page.index(second)  # as they are shown, whatever the system
        sizes.add((len(json.dumps(question)), len(question["id"]), len(fetched[1].text)))
        pages.append(len(whole_page))
        served_files.add(tuple(re.findall(r'(?:src|href)="([^"]+)"', whole_page)))
        answered = person.answer(question, "tie")
        for got in (*fetched, answered):
            whole = f"{got.text} {got.headers}".lower()
            assert not [name for name in (*SYSTEMS, "secret", *items) if name in whole]
        for side in ("left", "right"):  # all answers have the same form
            assert list(question[side]) == ["format", "title", "html", "sources"]
        work = answered.json()
    assert len(sizes) == 1
    for at in range(
        3
    ):  # the last pair of a question has no next one on its page; before ten, progress has one digit
        assert len(set(pages[12 + at :: 3])) == 1
    assert len(served_files) == 1
    assert dict(person.client.cookies) == cookies
    assert sum(sides.values()) == 2 * 3 * QUESTIONS
    assert {(system, side) for system in SYSTEMS for side in ("left", "right")} == set(sides)


def shape(question: dict[str, Any]) -> tuple[Any, ...]:
    """What a question looks like besides its texts."""
    about = [
        (list(question[side]), question[side]["format"], len(question[side]["sources"]))
        for side in ("left", "right")
    ]
    return sorted(question), len(question["id"]), question["outcomes"], about


def test_test_pairs_look_like_all_others(tmp_path: Path) -> None:
    pairs = [{"question_id": f"q{q}", "better": "A right one.", "worse": "Wrong."} for q in range(QUESTIONS)]
    (tmp_path / "tests.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in pairs))
    files = Files(answers=(answers(tmp_path),), tests=str(tmp_path / "tests.jsonl"))
    with new_store(tmp_path / "c.db") as store:
        crowd = replace(SETTINGS, judges="crowd", tests=3, targets=7)
        build_draft(read_files(files), crowd).ready().create(store, "study")
    assert one_assignment(tmp_path / "c.db") == (3, 1)


@pytest.mark.data
@pytest.mark.long
def test_training_pairs_of_a_study_are_test_pairs(tmp_path: Path, data: Path) -> None:
    folder = data / "llmfao"
    files = Files(
        answers=(str(folder / "results.jsonl.gz"),),
        fields="question_id=prompt,system=name,answer=result",
        topics=str(folder / "prompts.jsonl"),
        tests=str(folder / "pairs-crowd-training.jsonl"),
    )
    with new_store(tmp_path / "c.db") as store:
        crowd = replace(SETTINGS, judges="crowd", tests=2, targets=5)
        held = build_draft(read_files(files), crowd).ready().create(store, "study")[1]
    assert held.test_pairs == 5  # two of seven are ties
    assert one_assignment(tmp_path / "c.db") == (2, 1)


def one_assignment(path: Path) -> tuple[int, int]:
    """Judge one assignment; return how many of its questions are test pairs, and how many shapes questions have."""
    shapes: set[str] = set()
    with served(path) as app:
        person = Person(app, worker="w1")
        work = person.work()
        while work["state"] == "judging":
            question = work["questions"][0]
            shapes.add(repr(shape(question)))
            work = person.answer(question, "left").json()
        asked = app.state.store.read(lambda connection: connection.execute(schema.question.select()).all())
    return sum(row.test_pair is not None for row in asked), len(shapes)


def test_what_is_cited_can_not_run(tmp_path: Path) -> None:
    cited = tuple(SourceText(f"s{at}", each, each, each) for at, each in enumerate(PAYLOADS[:30]))
    with new_store(tmp_path / "c.db") as store:
        runs = [
            PackedRun(name, 1, pack_run(Run.from_rankings(name, {"q": [(name, 1.0)]}))) for name in ("a", "b")
        ]
        Campaign.create(
            store,
            "study",
            SETTINGS,
            topics=[Topic("q", "Question?")],
            pools=[Pool("q", ("a", "b"))],
            passages=[Passage(name, f"Text of {name}", sources=cited) for name in ("a", "b")],
            runs=runs,
        )
    with served(tmp_path / "c.db") as app:
        shown = re.findall(r'<details class="sources">.*?</details>', Person(app).page().text, re.DOTALL)
    assert len(shown) == 2
    assert not re.search(r"<(?!/?(?:details|summary|ol|li|p)\b)|<[^>]*\bon\w+=", shown[0])


def test_result_pages_mark_what_both_have(tmp_path: Path) -> None:
    (tmp_path / "texts.tsv").write_text("".join(f"d{at}\tText of d{at} <i>here</i>\n" for at in range(4)))
    paths = []
    for name, documents in (("secret-1", ("d0", "d1")), ("secret-2", ("d1", "d2"))):
        path = tmp_path / f"{name}.run"
        path.write_text(
            "".join(f"q Q0 {each} {at} {9 - at} {name}\n" for at, each in enumerate(documents, 1))
        )
        paths.append(str(path))
    inputs = read_files(Files(runs=tuple(paths), texts=str(tmp_path / "texts.tsv"), pages=True))
    with new_store(tmp_path / "c.db") as store:
        build_draft(inputs, SETTINGS, Rules(depth=2)).ready().create(store, "study")
    with served(tmp_path / "c.db") as app:
        person = Person(app)
        page, question = person.page().text, person.work()["questions"][0]
    assert "Which page of results is better?" in page
    assert page.count('<p class="shared">on both pages</p>') == 2
    marked = [
        [(row["text"][:10], row["shared"]) for row in question[side]["results"]] for side in ("left", "right")
    ]
    assert sorted(marked) == [
        [("Text of d0", False), ("Text of d1", True)],
        [("Text of d1", True), ("Text of d2", False)],
    ]
    assert "<i>" not in page
    assert "secret" not in page


def long_answer(item: str) -> Passage:
    """Return an answer of 3,000 words; the second is half as long."""
    at = int(item.rsplit("-", 1)[1])
    cited = tuple(SourceText(f"s{n}", f"What source {n} says", f"Source {n}") for n in range(3))
    words = f"Answer {at} goes on about it. " * (500 if at else 250)
    return Passage(item, f"{MARKDOWN}\n{words}", format="markdown", sources=cited)


@pytest.mark.long
def test_answers_in_a_browser(site: Site, people: People) -> None:
    runs = {f"system-{at}": {f"t{t}": f"t{t}-{at}" for t in range(2)} for at in range(2)}
    campaign = Campaign.create(
        site.store,
        "Answers",
        SETTINGS,
        topics=[Topic(f"t{at}", f"Question {at}?") for at in range(2)],
        pools=[Pool(f"t{at}", (f"t{at}-0", f"t{at}-1")) for at in range(2)],
        passages=[long_answer(f"t{t}-{at}") for t in range(2) for at in range(2)],
        runs=[
            PackedRun(name, 2, pack_run(Run.from_rankings(name, {q: [(a, 1.0)] for q, a in own.items()})))
            for name, own in runs.items()
        ],
    )
    person = people()
    person.enter(site.link(campaign, assessor="anna"))
    page = person.page
    shown = person.wait_for_pair()

    def tops() -> Any:
        return page.eval_on_selector_all(
            ".pane > .body",
            "all => all.map(each => each.scrollTop / (each.scrollHeight - each.clientHeight))",
        )

    assert page.locator(".sources[open]").count() == 0
    page.keyboard.press("c")
    assert page.locator(".sources[open]").count() == 2
    look_with_axe(page, "answers, sources open", "main")
    page.keyboard.press("c")
    assert page.locator(".sources[open]").count() == 0
    half = "body => body.scrollTop = (body.scrollHeight - body.clientHeight) / 2"
    page.eval_on_selector("#left .body", half)
    assert tops()[1] == 0
    page.eval_on_selector("#left .body", "body => body.scrollTop = 0")
    page.keyboard.press("l")
    person.said("scroll together")
    page.evaluate(
        """() => {
          const left = document.querySelector("#left .body");
          window.wanted = Math.round((left.scrollHeight - left.clientHeight) / 2);
        }"""
    )
    page.eval_on_selector("#right .body", half)
    person.wait_until("document.querySelector('#left .body').scrollTop === window.wanted")
    assert tops() == pytest.approx([0.5, 0.5], abs=0.01)
    person.press("t", shown)
    shown = person.wait_for_pair(shown)  # drawn by the script
    assert page.locator(".sources").count() == 2
    assert page.inner_text("#ask") == "Which answer is better?"
    assert page.locator("#left .text table").count() == 1
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.is_hidden("#together")
    page.set_viewport_size({"width": 1280, "height": 800})
    person.press("b", shown)
    person.wait_for_state("no-work")
    assert [(row.outcome, row.context_uses) for row in site.answers(campaign)] == [
        ("tie", 1),
        ("both-bad", 0),
    ]
