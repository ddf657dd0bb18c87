"""The verdict on agreement: what it says of much, little and no agreement, of few votes, and of single assessors."""

import numpy as np
import pytest

from duelpool.agreements import Votes, verdict
from duelpool.agreements.verdict import PUBLISHED
from duelpool.records import Judgment, Outcome


def voted(accuracy: list[float], pairs: int = 400, seed: int = 1, left: float = 0.5) -> Votes:
    """Return votes of assessors who choose the better item of each pair with these chances."""
    draw = np.random.default_rng(seed)
    judgments = []
    for pair in range(pairs):
        better = "a" if draw.random() < 0.5 else "b"
        other = "b" if better == "a" else "a"
        for at, chance in enumerate(accuracy):
            chosen = better if draw.random() < chance else other
            items = (f"{chosen}{pair}", f"{'b' if chosen == 'a' else 'a'}{pair}")
            first = draw.random() < left
            one, two = items if first else items[::-1]
            outcome = Outcome.LEFT if first else Outcome.RIGHT
            judgments.append(Judgment(f"t{pair % 20}", one, two, outcome, assessor=f"w{at}"))
    return Votes.of(judgments)


def test_agreement_is_compared_with_the_nearest_published_study() -> None:
    crowd = voted([0.68] * 4)  # two of them agree in about .56 of all cases
    assert "about as much as the crowd of CAsT 2019 (56 %; Clarke et al. 2021)" in verdict(crowd)[0]
    between = verdict(voted([0.8] * 4))[0]  # .68
    assert "more than the crowd of CAsT 2019" in between
    assert "less than the trained assessors of Here or There (74 %; Carterette et al. 2008)" in between
    assert "more than the trained assessors" in verdict(voted([0.97] * 4))[0]
    assert [each.share for each in PUBLISHED] == sorted(each.share for each in PUBLISHED)


def test_guesses_cannot_be_told_from_chance() -> None:
    said = verdict(voted([0.5] * 3))
    assert said[1] == "That can't be told from chance, which would give about 50 %."


def test_assessors_who_guess_are_named_and_others_are_not() -> None:
    (named,) = [each for each in verdict(voted([0.95, 0.95, 0.95, 0.5, 0.95])) if "no better" in each]
    assert named == "1 of 5 assessors is no better than chance: w3."
    (none,) = [each for each in verdict(voted([0.9] * 4)) if "clearly" in each]
    assert none == "None of 4 assessors is clearly at the level of chance."
    weaker = verdict(voted([0.97, 0.97, 0.97, 0.75, 0.97]))  # below the others, and clearly above chance
    assert "None of 5 assessors is clearly at the level of chance." in weaker


@pytest.mark.parametrize("pairs", [1, 4, 9])
def test_few_votes_get_no_verdict(pairs: int) -> None:
    (only,) = verdict(voted([0.9] * 3, pairs=pairs))
    assert only.startswith("Too few votes for a verdict: ")
    assert f"of {3 * pairs} pairs of votes on the same pair agree; it takes 30." in only


def test_nothing_compared_is_said() -> None:
    assert verdict(voted([0.9])) == ("No pair has two votes yet, so nothing can be said about agreement.",)
    assert verdict(Votes.of(())) == ()


def test_a_lean_to_a_side_is_said() -> None:
    (said,) = [each for each in verdict(voted([0.9] * 3, left=0.7)) if "chose the left side" in each]
    assert said.endswith("more than half.")
    assert any("less than half" in each for each in verdict(voted([0.9] * 3, left=0.3)))
