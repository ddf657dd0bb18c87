"""Every count that a forecast uses, recounted from the rows of the log in plain Python."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from duelpool.campaign import Campaign
from duelpool.campaign.views.status import status
from duelpool.campaign.work.ledger import full_price
from duelpool.errors import DuelpoolError
from duelpool.records import EFFECTS, Answer, Judgment, Outcome
from duelpool.setup.pilots import observe
from duelpool.store import Reading, Store, holdings, open_store, schema
from duelpool.store.holdings import TestPair
from support.campaigns import make_campaign

KNOWN = tuple(TestPair(f"known-{at}", ("one", "two")[at % 2], "a", f"off-{at}") for at in range(12))
ANSWERS = (*[Outcome.LEFT] * 4, *[Outcome.RIGHT] * 3, Outcome.TIE, Outcome.LEFT_BAD, Outcome.BOTH_BAD,
           Outcome.SKIP, Outcome.CANNOT_JUDGE)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def play(campaign: Campaign, seed: int) -> None:
    """Let workers and the manager do at random all that a campaign allows."""
    rng = np.random.default_rng(seed)
    pairs = [("a", "b"), ("b", "c"), ("a", "d")]
    campaign.add_judgments(
        Judgment("one", left, right, Outcome.LEFT, phase="prune-1", assessor="imported")
        for left, right in pairs
    )
    for turn in range(14):
        worker = f"w{turn % 6}"
        if worker not in campaign.read(holdings.assessors):
            campaign.enrol(worker, "crowd")
        try:
            assignment = campaign.next_assignment(worker)
        except DuelpoolError:
            assignment = None  # excluded
        for question in assignment.left if assignment else ():
            off = question.left.startswith("off"), str(question.right).startswith("off")
            answer = ANSWERS[rng.integers(len(ANSWERS))]
            if any(off) and rng.random() < 0.9:
                answer = Outcome.RIGHT if off[0] else Outcome.LEFT
            campaign.answer(question.id, worker, Answer(answer, seconds=float(rng.integers(1, 9))))
            if rng.random() < 0.1:
                campaign.undo(question.id, worker)
                campaign.answer(question.id, worker, Answer(Outcome.RIGHT))
        if assignment and rng.random() < 0.85:
            campaign.finish(assignment.id, ("finished", "stopped", "returned")[rng.integers(3)])
        topic = ("one", "two")[rng.integers(2)]
        lines = campaign.live.state(topic).lines
        if lines and rng.random() < 0.3:
            campaign.retract(topic, [int(rng.integers(1, len(lines) + 1))], "by hand")
        if rng.random() < 0.2:
            campaign.exclude(worker, "by hand")
        elif rng.random() < 0.2 and campaign.read(holdings.assessors)[worker].state == "excluded":
            campaign.reinstate(worker)
        closed = campaign.live.state(topic).closed_in_log
        if closed and rng.random() < 0.3:
            campaign.rewind(topic, closed[rng.integers(len(closed))], "by hand")


def rows_of(tx: Reading) -> list[Any]:
    columns = schema.log.c
    query = select(schema.log).where(columns.campaign == tx.campaign).order_by(columns.topic, columns.seq)
    return list(tx.connection.execute(query))


def gone(rows: list[Any]) -> set[tuple[str, int]]:
    """Return the judgments that are retracted, or set aside by a rewind."""
    retracted: set[tuple[str, int]] = set()
    aside: set[tuple[str, int]] = set()
    closed: dict[str, list[str]] = {}
    for row in rows:
        own = closed.setdefault(row.topic, [])
        if row.event == "retraction":
            retracted.add((row.topic, row.refers_to))
        elif row.event == "restoration":
            retracted.discard((row.topic, row.refers_to))
        elif row.event == "phase-closed":
            own.append(row.phase)
        elif row.event == "rewind":
            del own[own.index(row.phase) :]
            aside |= {
                (each.topic, each.seq)
                for each in rows
                if each.topic == row.topic
                and each.event == "judgment"
                and each.seq < row.seq
                and (each.phase or "") not in {*own, row.phase, ""}
            }
    return retracted | aside


@pytest.mark.parametrize("seed", range(6))
def test_counts_of_forecasts_equal_a_recount_of_the_log(store: Store, seed: int) -> None:
    campaign = make_campaign(
        store, {"one": "abcdefgh", "two": "abcdefg"}, known=KNOWN, judges="crowd", ties=True
    )
    play(campaign, seed)
    rows = campaign.read(rows_of)
    people = {name: row for name, row in campaign.read(holdings.assessors).items() if row.kind != "imported"}
    out = gone(rows)
    judged = [row for row in rows if row.event == "judgment"]
    targets = [row for row in judged if row.test_pair is None and not row.repeated]
    count = [
        row for row in targets if EFFECTS[Outcome(row.outcome)].usable and (row.topic, row.seq) not in out
    ]
    own = [row for row in count if row.assessor in people]
    paid = {row.question for row in targets if row.assessor in people}

    seen = observe(campaign)
    assert seen.judgments == len(count)
    assert seen.usable == pytest.approx(len(own) / len(paid) if own else 1.0)
    assert seen.ties == pytest.approx(sum(row.outcome == "tie" for row in count) / len(count))
    timed = [row.seconds for row in count if row.seconds is not None]
    assert seen.seconds == pytest.approx(sum(timed) / len(timed))
    retracted = {(row.topic, row.refers_to) for row in rows if row.event == "retraction"}
    tests = [
        row
        for row in judged
        if row.test_pair is not None
        and row.outcome != "skip"
        and (row.topic, row.seq) not in retracted
        and people[row.assessor].state != "excluded"
    ]
    assert seen.tests == len(tests)

    now = status(campaign)
    by_topic = Counter(row.topic for row in count)
    assert {each.topic: each.judgments for each in now.topic_statuses} == {
        t: by_topic[t] for t in ("one", "two")
    }
    usable = Counter(row.assessor for row in count)
    assert {each.assessor: each.usable for each in now.assessors} == {
        name: usable[name] for name in (*people, "imported")
    }
    ledger = campaign.read(lambda tx: list(tx.connection.execute(select(schema.ledger))))
    spent = sum(row.amount for row in ledger)
    assert now.money.spent == spent
    price = spent / len(own) if spent and own else full_price(campaign.settings) / campaign.settings.targets
    assert now.price == pytest.approx(price)
