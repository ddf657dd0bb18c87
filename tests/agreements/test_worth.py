"""What a vote of each assessor is worth, as a statistic of agreement."""

import pytest

from duelpool.agreements import AgreementOptions, Votes, find, worth
from duelpool.agreements.worth import assessor_votes, in_words
from duelpool.preferences.assessors import Worth
from duelpool.records import Judgment, Kind, Outcome
from duelpool.seeds import rng_for

PEOPLE = ("anna", "ben", "cleo", "dora", "guess")


def crowd(votes: int = 900) -> list[Judgment]:
    """Return votes of four careful people and one who guesses: a lower number is better."""
    rng = rng_for(1, "crowd")
    judgments = []
    for _ in range(votes):
        topic, who = f"t{rng.integers(6)}", PEOPLE[int(rng.integers(5))]
        left, right = rng.choice(8, 2, replace=False).tolist()
        right_way = rng.random() < (0.5 if who == "guess" else 0.9)
        better = Outcome.LEFT if (left < right) == right_way else Outcome.RIGHT
        judgments.append(Judgment(topic, f"i{left}", f"i{right}", better, assessor=who))
    return judgments


def test_who_guesses_comes_first_and_is_named() -> None:
    found = find(Votes.of(crowd()), "worth")
    first, *others = found.table.rows
    assert first[0] == "guess"
    assert first[-1] == "likely a guess"
    assert {row[0] for row in others} == set(PEOPLE[:4])
    assert all(float(row[2] or 0) > 0.6 for row in others)
    assert sum(int(row[1] or 0) for row in found.table.rows) == len(Votes.of(crowd()).first)
    shown = find(Votes.of(crowd()), "worth", AgreementOptions(rows=2))
    assert len(shown.table.rows) == 2
    assert shown.notes[-1] == "Not shown: 3 assessors whose votes may be worth more."


def test_two_assessors_and_grades_are_not_enough() -> None:
    two = [each for each in crowd() if each.assessor in PEOPLE[:2]]
    graded = [
        Judgment("t", f"i{at % 5}", None, Outcome.GRADE, kind=Kind.GRADE, grade=1, assessor=PEOPLE[at % 5])
        for at in range(25)
    ]
    assert find(Votes.of([*two, *graded]), "worth").needs.startswith("Three assessors")


def test_sides_ties_and_both_bad() -> None:
    judgments = [
        Judgment("t", "b", "a", Outcome.LEFT, assessor="anna"),
        Judgment("t", "a", "b", Outcome.TIE, assessor="ben"),
        Judgment("t", "a", "b", Outcome.BOTH_BAD, assessor="cleo"),
        Judgment("t", "a", "b", Outcome.RIGHT_BAD, assessor="dora", sides_known=False),
    ]
    table = assessor_votes(Votes.of(judgments))
    assert table.assessors == ("anna", "ben", "dora")
    assert [table.items[place][1] for place in table.i] == ["a", "a", "a"]
    assert table.outcome.tolist() == [2, 1, 0]
    assert table.side.tolist() == [-1, 1, 0]


def test_of_very_many_votes_those_on_some_pairs_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = Votes.of(crowd())
    whole = assessor_votes(votes)
    monkeypatch.setattr(worth, "MOST", len(whole) // 3)
    part = assessor_votes(votes)
    assert 0 < len(part) <= len(whole) // 3 + 40
    assert set(part.items) <= set(whole.items)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0, 0.2, "likely a guess"),
        (0.2, 0.9, "less than average"),
        (0.5, 1.5, "about average"),
        (1.2, 2.5, "more than average"),
    ],
)
def test_intervals_in_words(low: float, high: float, words: str) -> None:
    assert in_words(Worth("anna", 9, (low + high) / 2, low, high, 1.0, 0.0, 0.0, 0.0)) == words
