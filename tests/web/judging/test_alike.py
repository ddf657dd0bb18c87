"""A test pair and a target pair are alike in everything that can be fetched for a question, but for their texts."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy import select

from duelpool.campaign import Campaign, Settings
from duelpool.records import Passage, Pool, TextFormat, Topic
from duelpool.store import Store, schema
from duelpool.store.holdings import TestPair
from support.visitors import Person, crowd_settings, new_store, served

TOPICS = ("one", "two")
ITEMS = tuple(f"in{at:02}" for at in range(9))
OFF_TOPIC = tuple(f"no{at:02}" for at in range(6))
TESTS = 4  # of an assignment, at random places: at most one is the first question, and one the last
FORM: TextFormat = "html"  # which is fetched in frames; other formats are in the question
CHANGING = {"date"}  # of the headers, those that differ between any two responses


def crowd(store: Store, form: TextFormat = FORM) -> Campaign:
    """Make a campaign whose texts all have the same length: whatever differs in size isn't a text."""
    tests = [TestPair(f"test-{at}", TOPICS[at % 2], ITEMS[0], worse) for at, worse in enumerate(OFF_TOPIC)]
    return Campaign.create(
        store,
        "alike",
        Settings(strategy="allpairs", **crowd_settings(context=True, tests=TESTS)),
        topics=[Topic(topic, "Question?") for topic in TOPICS],
        pools=[Pool(topic, ITEMS) for topic in TOPICS],
        passages=[Passage(item, f"Text of {item}.", format=form) for item in (*ITEMS, *OFF_TOPIC)],
        test_pairs=tests,
    )


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    with new_store(tmp_path / "c.db") as store:
        crowd(store)
    with served(tmp_path / "c.db") as app:
        yield Person(app, worker="w1")


def masked(text: str) -> str:
    """Return a text without ids, numbers and the passages' own words."""
    text = re.sub(r"Text of (in|no)\d\d\.", "Text of ITEM.", text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "ID", text)
    return re.sub(r"\b[0-9a-f]{8}\b|\d+", "N", text)


def form_of(value: Any) -> Any:
    """Return the form of JSON: its questions as a set, since there is one fewer after each answer."""
    if isinstance(value, dict):
        return tuple(
            (key, frozenset(map(form_of, inner)) if key == "questions" else form_of(inner))
            for key, inner in value.items()
        )
    if isinstance(value, list):
        return tuple(form_of(each) for each in value)
    return masked(value) if isinstance(value, str) else type(value).__name__


def seen(got: Response) -> tuple[Any, ...]:
    """Return all of a response that its reader can compare."""
    headers = tuple(
        (name, "N" if name == "content-length" else masked(value))
        for name, value in got.headers.multi_items()
        if name not in CHANGING
    )
    is_json = bool(got.content) and got.headers.get("content-type", "").startswith("application/json")
    if is_json:
        return got.status_code, headers, form_of(got.json())
    whole = re.search(r'<script type="application/json" id="work">(.*?)</script>', got.text)
    inside = () if whole is None else form_of(json.loads(whole[1]))
    text = got.text if whole is None else got.text.replace(whole[1], "")
    return got.status_code, headers, tuple(masked(text).splitlines()), inside


def everything_about(person: Person, question: dict[str, Any]) -> dict[str, Any]:
    """Return the responses of all routes that a question offers, from its page to its answer."""
    client, base, name = person.client, person.base, question["id"]
    fetched: dict[str, Any] = {"question": form_of(question), "id": re.sub("[0-9a-f]", "x", name)}
    pages = {
        "page": f"{base}/",
        "work": f"{base}/work",
        "context": f"{base}/context/{name}",
        **{f"frame {side}": f"{base}/frame/{name}/{side}" for side in ("left", "right", "none")},
    }
    for what, path in pages.items():
        got = client.get(path)
        fetched[what] = seen(got)
        if what != "page":  # which has the whole assignment
            fetched[f"length of {what}"] = len(got.content) if what != "work" else None
        fetched[f"HEAD of {what}"] = seen(client.head(path))
    tries = {
        "extended": person.send("extend", {"question": name}),
        "nonsense": person.answer(question, "nonsense"),
        "undone too early": person.send("undo", {"question": name}),
        "answered": person.answer(question, "left", seconds=2.5, have=[f"{name}:1"]),
        "answered again": person.answer(question, "left", seconds=2.5),
        "answered otherwise": person.answer(question, "right"),
        "extended too late": person.send("extend", {"question": name}),
        "undone": person.send("undo", {"question": name}),
        "answered by form": person.post("answer", {"question": name, "attempt": "2", "outcome": "left-bad"}),
        "undone again": person.send("undo", {"question": name}),
        "skipped": person.send("answer", {"question": name, "attempt": 3, "outcome": "skip"}),
        "answered at last": person.send("answer", {"question": name, "attempt": 3, "outcome": "left"}),
    }
    fetched |= {what: seen(got) for what, got in tries.items()}
    fetched["context afterwards"] = seen(client.get(pages["context"]))
    return fetched


@pytest.mark.long
def test_a_test_pair_differs_from_a_target_pair_in_its_texts_alone(person: Person) -> None:
    columns = schema.question.c
    store = person.app.state.store
    kinds: dict[str, list[dict[str, Any]]] = {"test": [], "target": []}
    everything_about(person, person.work()["questions"][0])  # the first one has nothing before it to undo
    while len(questions := person.work()["questions"]) > 1:  # after the last one comes another page
        question = questions[0]
        query = select(columns.test_pair).where(columns.id == question["id"])
        is_test = store.read(lambda connection, query=query: connection.execute(query).scalar()) is not None
        kinds["test" if is_test else "target"].append(everything_about(person, question))
    assert len(kinds["test"]) >= TESTS - 2
    assert len(kinds["target"]) >= 6
    first = kinds["target"][0]
    assert first["answered"][0] == first["context"][0] == first["extended"][0] == 200
    for kind, fetched in kinds.items():
        for each in fetched:
            assert each.keys() == first.keys()
            for what, response in each.items():
                assert response == first[what], (kind, what, *differing(response, first[what]))


def test_contexts_of_a_topics_questions_show_no_item_that_is_tested(tmp_path: Path) -> None:
    """Each item that one question compares is in the context of every other question of its topic."""
    with new_store(tmp_path / "c.db") as store:
        crowd(store, "text")
    seen: dict[str, list[tuple[set[str], set[str]]]] = {}
    with served(tmp_path / "c.db") as app:
        for worker in ("w1", "w2", "w3"):
            person = Person(app, worker=worker)
            for question in person.work()["questions"]:
                query = select(schema.question.c.topic).where(schema.question.c.id == question["id"])
                sides = {question[side]["text"] for side in ("left", "right")}
                got = person.client.get(f"{person.base}/context/{question['id']}").json()["snippets"]
                topic = app.state.store.read(
                    lambda connection, query=query: connection.execute(query).scalar_one()
                )
                seen.setdefault(topic, []).append((sides, {each["text"] for each in got}))
    assert any("no0" in text for asked in seen.values() for sides, _ in asked for text in sides)
    for asked in seen.values():
        compared = set().union(*(sides for sides, _ in asked))
        for sides, context in asked:
            assert compared - context == sides


def differing(one: Any, other: Any) -> list[Any]:
    """Return the parts of two responses that differ."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return [each for pair in zip(one, other, strict=True) for each in differing(*pair)]
    return [] if one == other else [(one, other)]
