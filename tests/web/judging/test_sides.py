"""Sides are drawn fairly and shown as stored, and no page reveals a test pair."""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from duelpool.campaign.questions.proposals import read_outstanding
from duelpool.records import Pool
from duelpool.store import schema
from support.campaigns import make_campaign
from support.visitors import Person, crowd_campaign, new_store, served

DRAWS = 10_000
SIGMAS = 4.0


def test_sides_are_fair_and_independent_of_systems(tmp_path: Path) -> None:
    """Each item is left half of the time, whichever system it comes from.

    Items of the first system have small ids and stand first in the pool, as a favourite's might.
    """
    systems = {f"{'a' if at < 25 else 'b'}{at:02d}": "first" if at < 25 else "second" for at in range(50)}
    with new_store(tmp_path / "campaign.db") as store:
        campaign = make_campaign(store, [Pool("one", tuple(systems))], strategy="allpairs", cap=9)
        out = store.of(campaign.id).read(lambda tx: read_outstanding(tx, "nobody", 3))
        drawn: Counter[tuple[str, str]] = Counter()
        lower_left = 0
        number = 0
        while number < DRAWS:
            person, proposals = f"person-{number}", campaign._proposals
            for each in proposals.now({"one": 0}, out).proposals("one", 1225):
                want = proposals.want("one", each.pair, each, person)
                assert want.right is not None
                drawn[systems[want.left], systems[want.right]] += 1
                lower_left += want.left < want.right
                number += 1
    assert number >= DRAWS
    assert abs(lower_left - number / 2) <= SIGMAS * math.sqrt(number / 4)
    mixed = drawn["first", "second"] + drawn["second", "first"]
    assert mixed > number / 3
    assert abs(drawn["first", "second"] - mixed / 2) <= SIGMAS * math.sqrt(mixed / 4)


def test_a_test_pair_has_its_better_item_on_either_side(tmp_path: Path) -> None:
    with new_store(tmp_path / "campaign.db") as store:
        campaign = crowd_campaign(store)
        from duelpool.seeds import rng_for

        lefts = total = 0
        for at in range(150):
            for want in campaign._proposals.tests(f"person-{at}", rng_for(1, "draw", at)):
                lefts += want.left == "a"
                total += 1
    assert abs(lefts - total / 2) <= SIGMAS * math.sqrt(total / 4)


def test_the_side_that_is_stored_is_the_side_that_was_sent(tmp_path: Path) -> None:
    target = tmp_path / "campaign.db"
    with new_store(target) as store:
        crowd_campaign(store)
    with served(target) as app:
        person = Person(app)
        sent = {
            each["id"]: (each["left"]["text"], each["right"]["text"]) for each in person.work()["questions"]
        }
        person.judge_on()
        rows = app.state.store.read(
            lambda connection: connection.execute(
                select(schema.log).where(schema.log.c.event == "judgment")
            ).all()
        )
        stored = {row.question: (f"Text of {row.left_item}.", f"Text of {row.right_item}.") for row in rows}
        assert stored == sent
        assert len({left < right for left, right in sent.values()}) == 2


def masked(value: Any) -> Any:
    """Return a question without its texts and ids; the rest must not differ."""
    if isinstance(value, dict):
        return {
            key: "TEXT" if key in ("text", "title", "html") else "ID" if key == "id" else masked(each)
            for key, each in value.items()
            if key != "expires_in"
        }
    if isinstance(value, list):
        return [masked(each) for each in value] if not value or isinstance(value[0], dict) else "WORDS"
    return value


@pytest.mark.parametrize("repeats", [0, 2])
def test_a_test_pair_looks_like_any_other_pair(tmp_path: Path, repeats: int) -> None:
    """JSON and HTML of target, test and repeated pairs are the same once texts and ids are masked."""
    target = tmp_path / "campaign.db"
    with new_store(target) as store:
        crowd_campaign(store, repeat_every=repeats, targets=4)
    with served(target) as app:
        person = Person(app)
        if repeats:  # what is asked again comes with the second assignment
            person.judge_on()
            person.post("step", {"step": "another"})
        kinds: dict[str, str] = {}
        pages: dict[str, set[str]] = {}
        shapes: dict[str, set[str]] = {}
        work = person.work()
        rows = app.state.store.read(lambda connection: connection.execute(select(schema.question)).all())
        kinds = {row.id: "test" if row.test_pair else str(row.source) for row in rows}
        while work["state"] == "judging":
            first = work["questions"][0]
            kind = kinds[first["id"]]
            shapes.setdefault(kind, set()).add(json.dumps(masked(first), sort_keys=True))
            pages.setdefault(kind, set()).add(_bare(person.page().text, work))
            work = person.answer(first, person.better(first)).json()
        expected = {"asked", "test"} | ({"repeated"} if repeats else set())
        assert set(pages) == set(shapes) == expected
        assert len(set().union(*shapes.values())) == 1
        assert len(set().union(*pages.values())) == 1


def _bare(page: str, work: dict[str, Any]) -> str:
    """Return a page without texts, ids, remaining questions and progress."""
    page = re.sub(r'<script type="application/json" id="work">.*?</script>', "WORK", page, flags=re.DOTALL)
    for question in work["questions"]:
        page = page.replace(question["id"], "ID")
        for text in (question["left"]["text"], question["right"]["text"], question["topic"]["text"]):
            page = page.replace(text, "TEXT")
    page = page.replace(str(work["can_undo"]), "UNDO") if work["can_undo"] else page
    page = re.sub(r'value="(?:UNDO)?"><button class="quiet"(?: hidden)?>', "UNDO-BUTTON", page)
    page = re.sub(r'(<span id="count">).*?(</span>)', r"\1\2", page, flags=re.DOTALL)
    return re.sub(r'<progress id="bar"[^>]*>', "BAR", page)


def test_masking_keeps_a_difference() -> None:
    """The comparison above detects a difference."""
    plain = {"id": "1", "left": {"text": "x"}, "outcomes": ["left"]}
    assert masked({**plain, "id": "2", "left": {"text": "y"}}) == masked(plain)
    assert masked({**plain, "test": True}) != masked(plain)


def test_nothing_reveals_items_or_the_origin_of_a_question(tmp_path: Path) -> None:
    target = tmp_path / "campaign.db"
    with new_store(target) as store:
        crowd_campaign(store)
        store.write(
            lambda connection, now: connection.execute(schema.passage.update().values(text="same text"))
        )
    with served(target) as app:
        person = Person(app)
        question = person.work()["questions"][0]
        assert set(question) == {
            *("id", "attempt", "kind", "topic", "criterion", "left", "right", "outcomes", "grades", "terms"),
            *("expires_in", "of"),
        }
        assert set(question["left"]) == {"format", "title", "text", "sources"}
        text = person.page().text + json.dumps(person.work())
        text = re.sub(r"[\w.-]{16,}", "", text)  # ids and signatures, which may hold any letters by chance
        assert not re.search(r"z\d|test-\d|prefbest|prune", text)
