"""What votes are worth, in words, and what weighing instead of excluding would change."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.agreements import vote_values as module
from duelpool.agreements.vote_values import KeptValues, VoteValues, values_of, vote_values
from duelpool.campaign import Campaign, Settings
from duelpool.campaign.runners.weighing import NamedVotes
from duelpool.cli import app
from duelpool.preferences.assessors import AssessorVotes
from duelpool.records import Judgment, Outcome, Pool, Topic
from duelpool.store import Store, open_store

ITEMS = tuple("abcdef")
PEOPLE = ("ann", "bob", "cem", "dee", "wrong")


def create(store: Store) -> Campaign:
    """Return a campaign in which four people prefer earlier letters, and one mostly later ones."""
    campaign = Campaign.create(
        store,
        "valued",
        Settings(required=(), cap=9),
        topics=[Topic(f"q{at}", f"What is {at}?") for at in range(4)],
        pools=[Pool(f"q{at}", ITEMS) for at in range(4)],
    )
    judgments = []
    for turn, name in enumerate(PEOPLE):
        campaign.enrol(name, "dedicated")
        for at in range(4):
            for first in range(6):
                for second in range(first + 1, 6):
                    number = 15 * at + 3 * first + second
                    turned = (number + turn) % 2 == 0
                    sides = (ITEMS[second], ITEMS[first]) if turned else (ITEMS[first], ITEMS[second])
                    misses = (number + turn) % (2 if name == "wrong" else 9) == 0
                    outcome = Outcome.LEFT if turned == misses else Outcome.RIGHT
                    judgments.append(Judgment(f"q{at}", *sides, outcome, assessor=name))
    campaign.add_judgments(judgments)
    return campaign


def test_a_guesser_is_told_in_words_and_stays_so_when_excluded(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        campaign = create(store)
        before = vote_values(campaign)
        assert before.topics == 4
        assert before.by_name["wrong"].worth < 0.3
        assert before.by_name["wrong"].said == "likely a guess"
        assert before.by_name["wrong"].weight < 0.1
        assert all(each.weight > 0.9 for each in before.assessors if each.assessor != "wrong")
        campaign.exclude("wrong", "guesses")
        after = vote_values(campaign)
        assert after.by_name["wrong"] == before.by_name["wrong"], "excluded, and still weighed"
        assert after.said.startswith(
            "Weighing all votes, those of excluded assessors too, instead of excluding would"
        )
        assert after.said.endswith("of 4 topics.")


def votes(rows: list[tuple[str, str, str, str]]) -> NamedVotes:
    """Return votes from rows of topic, winner, loser and assessor."""
    topics, first, second, assessors = zip(*rows, strict=True)
    table = AssessorVotes.of(
        topics=topics, first=first, second=second, shares=[1.0] * len(rows), assessors=assessors
    )
    return NamedVotes(table, {})


def test_topics_whose_best_item_would_be_another_are_counted() -> None:
    """One topic was judged by those who stay alone; in the other, many excluded people found another best item."""
    stay = [("q1", "a", "b", name) for name in "xyz"] + [("q2", "a", "b", "x")]
    gone = [("q2", "b", "a", name) for name in "uvw"] + [("q1", "a", "b", name) for name in "uvw"]
    values = values_of(votes(stay), votes(stay + gone), weighed=True)
    assert values.changed == ("q2",)
    assert values.topics == 2
    assert "the best item of 1 of 2 topics. This campaign weighs" in values.said


def test_two_assessors_are_too_few_to_say() -> None:
    few = votes([("q1", "a", "b", "x"), ("q1", "b", "a", "y")])
    assert values_of(few, few, weighed=False) == VoteValues()
    assert VoteValues().said == ""


def test_values_of_a_long_log_are_worked_out_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        campaign = create(store)
        at_once = KeptValues(campaign).look()
        monkeypatch.setattr(module, "AT_ONCE", 10)
        kept = KeptValues(campaign)
        first = kept.look()
        assert kept._thread is not None
        kept._thread.join(30)
        assert first in (None, at_once)
        assert kept.look() == at_once
        campaign.exclude("wrong", "guesses")
        assert kept.look() in (at_once, vote_values(campaign)), "the last values until there are new ones"


def test_status_says_it(tmp_path: Path) -> None:
    target = str(tmp_path / "a.db")
    with open_store(target, create=True) as store:
        create(store)
    shown = CliRunner().invoke(app, ["status", target, "--assessors"])
    words = " ".join(shown.output.split())
    assert "worth: 1 for an average vote, 0 for a guess. Weighing all votes" in words, shown.output
    found = json.loads(CliRunner().invoke(app, ["status", target, "--assessors", "--json"]).output)
    own = {each["assessor"]: each for each in found["vote_values"]["assessors"]}
    assert own["wrong"]["said"] == "likely a guess"
    assert "vote_values" not in json.loads(CliRunner().invoke(app, ["status", target, "--json"]).output)
