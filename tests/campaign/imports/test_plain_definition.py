"""A fast import writes what a plain one would: one line after the other, each checked and given its slot by itself."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from duelpool.campaign import Campaign
from duelpool.campaign.checks.campaigns import contradictions
from duelpool.campaign.imports import importer
from duelpool.campaign.imports.entries import CampaignIds, canonical, entry_from_json, unknown_in
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.imports.rows import QuickReader, TopicRows, entry_of, row_of
from duelpool.errors import DuelpoolError
from duelpool.files.judgments import judgment_from_json
from duelpool.files.notices import Tally
from duelpool.records import EFFECTS, Outcome, Pool
from duelpool.store import Reading, Store, log, open_store, schema
from duelpool.store.imports import slots
from duelpool.testing.stores import audit
from support.campaigns import make_campaign
from support.stores import BACK_ENDS, new_target

ITEMS = ("a", "b", "c", "é", "7")
POOLS = [Pool(topic, ITEMS, twins={"a": ("a2",)}) for topic in ("one", "two", "3")]
CANONICAL = {item: item for item in ITEMS} | {"a2": "a"}
PEOPLE = ("", "anna", "bert", "carla")


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as opened:
        yield opened


def random_lines(random: Random, count: int) -> list[dict[str, Any]]:
    """Return lines of a log of judgments and retractions, with every field in every form that is allowed."""
    lines: list[dict[str, Any]] = []
    seqs: Counter[str] = Counter()
    gone: set[int] = set()  # the retracted judgments of topic two
    outcomes = [str(outcome) for outcome in EFFECTS if outcome is not Outcome.GRADE]
    for at in range(count):
        topic = random.choice(["one", "one", "two", "3"])
        left, right = random.sample([*ITEMS, "a2"], 2)
        if {left, right} == {"a", "a2"}:
            right = "b"
        line: dict[str, Any] = {
            "topic": topic,
            "left": left,
            "right": right,
            "outcome": random.choice(outcomes),
        }
        if random.random() < 0.1:
            line = {"topic": topic, "left": left, "outcome": "grade", "kind": "grade", "grade": 2}
        extra: dict[str, Any] = {
            "assessor": random.choice(PEOPLE), "seconds": random.choice([0, 2.5, None]), "note": "né\n" * (at % 3),
            "phase": random.choice(["", "p"]), "confidence": 0.5, "propensity": random.choice([None, 1, 0.25]),
            "strategy": "theirs/1", "context_uses": 2, "highlighted": True, "sides_known": False,
            "inferred": random.random() < 0.3, "repeated": random.random() < 0.3, "told": False, "reason": "why",
            "stage": "s", "criterion": random.choice(["overall", "depth"]), "proposal": "x", "unknown": [1],
            "event": "judgment", "question": f"q{at}", "time": f"t{at}", "test_pair": None,
        }  # fmt: skip
        line |= {name: value for name, value in extra.items() if random.random() < 0.3}
        if line.get("kind", "preference") == "preference" and "right" in line and random.random() < 0.2:
            line["kind"] = "definite"
        if topic == "3" and random.random() < 0.5:
            line["topic"] = 3
        for side in ("left", "right"):
            if line.get(side) == "7" and random.random() < 0.5:
                line[side] = 7
        seqs[topic] += 1
        line["seq"] = seqs[topic]
        lines.append(line)
        if topic == "two" and random.random() < 0.2:
            judged = [each["seq"] for each in lines if str(each["topic"]) == "two" and "left" in each]
            place = random.choice(judged)
            seqs["two"] += 1
            event = "restoration" if place in gone else "retraction"
            log.update_retracted(gone, event, place)
            lines.append({"event": event, "topic": "two", "refers_to": place, "seq": seqs["two"]})
    return lines


def plain_import(lines: list[dict[str, Any]]) -> tuple[list[Any], list[Any], set[str]]:
    """Return the rows of the log, the rows of the questions and the assessors, without ids and times."""
    logs: list[Any] = []
    held: list[Any] = []
    retracted: set[tuple[str, int]] = set()
    for line in lines:
        if line.get("event") in ("retraction", "restoration"):
            log.update_retracted(retracted, line["event"], (str(line["topic"]), line["refers_to"]))
    slots: dict[Any, set[int]] = {}
    for topic in ("one", "two", "3"):
        for line in (each for each in lines if str(each["topic"]) == topic):
            row: dict[str, Any] = {"topic": topic, "seq": line["seq"], "event": line.get("event", "judgment")}
            if "left" not in line:
                logs.append(row | {"refers_to": line["refers_to"]})
                continue
            judgment = judgment_from_json(line)
            columns = log.columns_of(judgment)
            columns["left_item"] = CANONICAL[judgment.left]
            columns["right_item"] = None if judgment.right is None else CANONICAL[judgment.right]
            row |= columns | {
                "told": int(line.get("told", True)), "assignment": line.get("assignment"), "reason": line.get("reason"),
            }  # fmt: skip
            logs.append(row)
            if not judgment.effect.usable or judgment.inferred:
                continue
            person = judgment.assessor or "imported"
            both = sorted(each for each in (columns["left_item"], columns["right_item"]) if each is not None)
            pair = (topic, judgment.criterion, *both)
            question = {name: columns[name] for name in ("left_item", "right_item", "phase", "kind", "stage")}
            question |= {
                "topic": topic,
                "assessor": person,
                "slot": None,
                "occasion": 1,
                "state": "retracted",
            }
            if (topic, line["seq"]) not in retracted:
                question["state"] = "answered"
                question["occasion"] = _first_free(slots.setdefault((*pair, person), set()))
                if not judgment.repeated:
                    question["slot"] = _first_free(slots.setdefault((*pair, 0), set()))
            held.append(question)
    return logs, held, {each["assessor"] for each in held}


def _first_free(taken: set[int]) -> int:
    free = min(set(range(1, len(taken) + 2)) - taken)
    taken.add(free)
    return free


def stored(campaign: Campaign) -> tuple[list[Any], list[Any], set[str]]:
    def look(tx: Reading) -> tuple[list[Any], list[Any], set[str]]:
        rows = tx.connection.execute(
            select(schema.log).where(schema.log.c.campaign == tx.campaign)
        ).mappings()
        hidden = {"campaign", "time", "question", "attempt"}
        logs = [{name: value for name, value in row.items() if name not in hidden} for row in rows]
        questions = tx.connection.execute(
            select(schema.question).where(schema.question.c.campaign == tx.campaign)
        ).mappings()
        people = tx.connection.execute(
            select(schema.assessor.c.id).where(schema.assessor.c.campaign == tx.campaign)
        ).scalars()
        return logs, [dict(row) for row in questions], set(people)

    return campaign.read(look)


def in_order(rows: list[Any], names: Any) -> list[Any]:
    return sorted(
        (tuple(row.get(name) for name in sorted(names)) for row in rows),
        key=lambda row: tuple(map(repr, row)),
    )


def assert_same(campaign: Campaign, lines: list[dict[str, Any]]) -> None:
    expected, found = plain_import(lines), stored(campaign)
    assert in_order(found[0], found[0][0]) == in_order(
        [{**dict.fromkeys(found[0][0]), **row} for row in expected[0]], found[0][0]
    )
    named = expected[1][0].keys()
    assert in_order(found[1], named) == in_order(expected[1], named)
    assert found[2] == expected[2]
    assert audit(campaign.store, campaign.id, 10**6) == []


@pytest.mark.parametrize("seed", range(4))
def test_import_writes_what_a_plain_one_would(store: Store, tmp_path: Path, seed: int) -> None:
    lines = random_lines(Random(seed), 120)
    file = tmp_path / "given.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    campaign = make_campaign(store, POOLS, strategy="allpairs", cap=3)
    taken = import_file(campaign, file)
    assert_same(campaign, lines)
    assert taken.judgments == sum("left" in line for line in lines)


@pytest.mark.parametrize("seed", range(3))
def test_import_that_is_killed_and_resumed_writes_what_a_plain_one_would(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(importer, "AT_ONCE", 25)
    monkeypatch.setattr(importer, "BREATH_SECONDS", 0.0)
    random = Random(seed)
    lines = random_lines(random, 150)
    file = tmp_path / "given.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    campaign = make_campaign(store, POOLS, strategy="allpairs", cap=3)
    for _ in range(3):
        write, left = store.database.write, random.randrange(1, 4)

        def dies(work: Any, write: Any = write) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return write(work)

        with monkeypatch.context() as patch:
            patch.setattr(store.database, "write", dies)
            with pytest.raises(KeyboardInterrupt):
                import_file(campaign, file)
    import_file(campaign, file)
    assert_same(campaign, lines)


def test_slot_that_another_takes_first_is_left_to_them(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the index refuses a row that was free when it was read, the judgment takes the next slot."""
    campaign = make_campaign(store, POOLS, strategy="allpairs", cap=3)
    read = slots.Taken.read
    looks: list[int] = []

    def late(*given: Any) -> None:
        looks.append(1)
        if len(looks) > 1:
            read(*given)

    first, second = tmp_path / "1", tmp_path / "2"
    first.write_text("one a b a\none c b c\n")
    second.write_text("one a b a\none a c a\none b a a\n")
    import_file(campaign, first)
    monkeypatch.setattr(slots.Taken, "read", late)
    import_file(campaign, second)
    assert len(looks) == 2
    found = sorted((row["left_item"], row["right_item"], row["slot"]) for row in stored(campaign)[1])
    assert found == [("a", "b", 1), ("a", "b", 3), ("a", "c", 1), ("b", "a", 2), ("c", "b", 1)]


@pytest.mark.parametrize("seed", range(3))
def test_slots_that_others_take_between_two_pieces_are_left_to_them(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    campaign = make_campaign(store, {"one": "abc", "two": "abc"}, strategy="allpairs:repeats=3", cap=3)
    rows = [(random.choice(("one", "one", "two")), *random.sample("abc", 2)) for _ in range(30)]
    file = tmp_path / "prefs"
    file.write_text("".join(f"{topic} {a} {b} {a}\n" for topic, a, b in rows))
    write, leased = importer._write_together, 0

    def between(*given: Any) -> None:
        nonlocal leased
        write(*given)
        campaign.enrol(f"p{leased}", "dedicated")
        leased += campaign.next_question(f"p{leased}") is not None

    monkeypatch.setattr(importer, "AT_ONCE", 4)
    monkeypatch.setattr(importer, "_write_together", between)
    assert import_file(campaign, file).judgments == 30
    assert leased >= 2
    assert campaign.read(lambda tx: contradictions(tx, 3)) == []
    asked = [row for row in stored(campaign)[1] if row["source"] == "asked"]
    assert (len(asked), len(stored(campaign)[1])) == (leased, 30 + leased)


# ---- the quick reader against the careful one

KNOWN = CampaignIds(
    {"t": {"a": "a", "b": "b", "a2": "a", "5": "5"}, "4": {"a": "a", "b": "b"}}, frozenset({"k"})
)
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, -1, 5, 4, 0.5, 1.5, -0.5, 1e999, 10**400, "", "a", "b", "a2", "t", "5", "zz", "left",
     "tie", "grade", "preference", "definite", "judgment", "release", "é", "x\0", "\ud800", [], {}, ["a"], "k"]
)  # fmt: skip
NAMES = (
    "grade", "kind", "assessor", "phase", "proposal", "criterion", "stage", "strategy", "note", "reason", "seconds",
    "confidence", "propensity", "context_uses", "sides_known", "inferred", "highlighted", "repeated", "told", "event",
    "seq", "question", "time", "test_pair", "assignment", "unknown",
)  # fmt: skip


@given(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from(["t", "t", "4", 4, "zz", None, 1.5]),
            "left": st.sampled_from(["a", "b", 5, "a2"]) | ODD,
            "right": st.sampled_from(["a", "b", "5"]) | ODD,
            "outcome": st.sampled_from([*map(str, Outcome)]) | ODD,
        },
        optional=dict.fromkeys(NAMES, ODD),
    ),
    st.sampled_from(["", "default"]),
)
def test_quick_reader_reads_as_the_careful_one_or_leaves_the_line_to_it(
    row: dict[str, Any], person: str
) -> None:
    read = QuickReader(KNOWN, person).read(row)
    if read is None:
        return
    entry = entry_from_json("file", row, 1)
    assert unknown_in(entry, KNOWN) is None
    assert canonical(entry, KNOWN, tally := Tally()) == entry
    assert not tally.notices
    topic, seq, question, fingerprint, values = read
    careful = row_of(entry)
    assert (topic, seq, question, fingerprint) == (entry.topic, entry.seq, entry.question, entry.fingerprint)
    found = (1, 1, 0, 0, seq, question, fingerprint, (), *values)
    assert entry_of(topic, found).judgment is not None
    if person and entry.judgment is not None and not entry.judgment.assessor:
        careful = row_of(replace(entry, judgment=replace(entry.judgment, assessor=person)))
    assert list(careful[8:]) == values


def test_plain_judgments_are_read_quickly() -> None:
    read = QuickReader(KNOWN, "").read
    assert read({"topic": "t", "left": "a", "right": "b", "outcome": "left"})
    assert read(
        {"topic": 4, "left": "a", "right": "b", "outcome": "tie", "seconds": 3, "note": None, "more": []}
    )


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=40), st.integers(0, 1300))
def test_rows_come_back_as_they_were(made: list[tuple[int, bool]], start: int) -> None:
    lines = [
        {"topic": "t", "left": "a", "right": "b", "outcome": "left", "seconds": s, "told": t} for s, t in made
    ]
    entries = [entry_from_json("file", line, 1) for line in lines] * 30
    rows = TopicRows.of(map(row_of, entries))
    assert rows.entries("t") == entries
    assert [entry_of("t", row) for row in rows.after(start)] == entries[start:]
    assert len(rows) == rows.judgments == len(entries)


def test_wrong_line_after_quick_ones_is_refused_with_its_line(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, POOLS, strategy="allpairs")
    good = '{"topic": "one", "left": "a", "right": "b", "outcome": "left"}'
    for bad, problem in (
        ('{"topic": "one", "left": "a", "right": "b", "outcome": "left", "seconds": -1}', "Seconds are"),
        ('{"topic": "one", "left": "a", "right": "a", "outcome": "left"}', "two different items"),
        ('{"topic": "one", "left": "a", "right": "b", "outcome": "left", "seconds": NaN}', "not valid JSON"),
        ('["one"]', "A JSON object was expected"),
        ('{"topic": "one", "left": "a", "right": "zz", "outcome": "left"}', "has no item 'zz'"),
    ):
        file = tmp_path / "given.jsonl"
        file.write_text(f"{good}\n\n{good}\n{bad}\n{good}\n")
        with pytest.raises(DuelpoolError, match=problem) as refused:
            import_file(campaign, file)
        assert "given.jsonl:4:" in str(refused.value)
    assert not stored(campaign)[0]
