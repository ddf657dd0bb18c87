"""What a vote of a model is worth beside a person's, learnt against people."""

import numpy as np
import pytest

from duelpool.preferences.assessors import AssessorVotes
from duelpool.preferences.sources import BEFOREHAND, SPREAD, SourceWorth, _by_topic, source_worths

TOPICS, ITEMS = 12, 8


def votes(
    seed: int,
    *,
    reliability: dict[int, float] | float,
    lean: float = 0.0,
    own_taste: bool = False,
    people: int = 400,
    of_model: int = 400,
) -> AssessorVotes:
    """Draw votes: a model answers like a person with the chance `reliability`, and else flips a coin."""
    rng = np.random.default_rng(seed)
    strengths = rng.normal(0, 1.5, (TOPICS, ITEMS))
    other = rng.normal(0, 3, (TOPICS, ITEMS))
    rows = []
    for at in range(people + of_model):
        is_model = at >= people
        topic = int(rng.integers(TOPICS))
        i, j = rng.choice(ITEMS, 2, replace=False).tolist()
        seen = other if is_model and own_taste else strengths
        chance = 1 / (1 + np.exp(seen[topic, j] - seen[topic, i]))
        if is_model:
            own = reliability[topic % 2] if isinstance(reliability, dict) else reliability
            chance = 0.5 + own * (chance - 0.5) + lean / 2
        won = float(rng.random() < chance)
        name = "model" if is_model else f"p{at % 5}"
        rows.append((f"t{topic}", f"d{i}", f"d{j}", won, name, 1))
    topics, first, second, shares, assessors, sides = zip(*rows, strict=True)
    return AssessorVotes.of(
        topics=topics, first=first, second=second, shares=shares, assessors=assessors, sides=sides
    )


@pytest.mark.parametrize("reliability", [0.0, 0.5, 1.0])
def test_the_reliability_of_a_model_is_found(reliability: float) -> None:
    found = [source_worths(votes(seed, reliability=reliability), {"model"})["model"] for seed in range(8)]
    errors = [(each.reliability - reliability) / each.error for each in found]
    assert max(map(abs, errors)) < 3
    assert abs(np.mean(errors)) < 1.2
    assert found[0].votes > 300
    assert found[0].low <= found[0].value <= found[0].high
    assert found[0].value == pytest.approx(max(0.0, found[0].reliability) ** 2 / found[0].together)
    assert np.mean([each.together for each in found]) < 1.25


def test_a_lean_to_a_side_is_told_from_reliability() -> None:
    leaning = source_worths(votes(1, reliability=0.7, lean=0.2, of_model=2000), {"model"})["model"]
    assert leaning.lean == pytest.approx(0.2, abs=0.06)
    assert leaning.reliability == pytest.approx(0.7, abs=3 * leaning.error)
    fair = source_worths(votes(1, reliability=0.7, of_model=2000), {"model"})["model"]
    assert fair.lean == pytest.approx(0.0, abs=0.06)


def test_a_model_with_many_votes_does_not_make_its_taste_the_truth() -> None:
    found = source_worths(votes(2, reliability=1.0, own_taste=True, of_model=4000), {"model"})["model"]
    assert found.value < 0.1


def test_topics_where_a_model_is_worse_are_found() -> None:
    drawn = votes(3, reliability={0: 1.0, 1: 0.0}, people=2000, of_model=2000)
    found = source_worths(drawn, {"model"})["model"]
    good = [found.topics[f"t{at}"] for at in range(0, TOPICS, 2)]
    bad = [found.topics[f"t{at}"] for at in range(1, TOPICS, 2)]
    assert min(good) > max(bad)
    assert found.weight("t0") > found.weight("t1")
    assert found.weight("a topic without votes") == found.weight()


def test_votes_of_a_model_that_errs_about_whole_items_tell_less_together() -> None:
    """Both models are right about as often; the errors of one are those of its own strengths of the items."""
    rng = np.random.default_rng(5)
    strengths = rng.normal(0, 1.5, (TOPICS, ITEMS))
    bent = strengths + rng.normal(0, 1.2, (TOPICS, ITEMS))
    rows: dict[str, list[tuple[str, str, str, float, str]]] = {"whole items": [], "single pairs": []}
    people = []
    for at in range(2400):
        topic = int(rng.integers(TOPICS))
        i, j = rng.choice(ITEMS, 2, replace=False).tolist()
        names = (f"t{topic}", f"d{i}", f"d{j}")
        if at < 1200:
            chance = 1 / (1 + np.exp(strengths[topic, j] - strengths[topic, i]))
            people.append((*names, float(rng.random() < chance), f"p{at % 5}"))
        else:
            rows["whole items"].append((*names, float(bent[topic, i] > bent[topic, j]), "model"))
            right = rng.random() < 0.8
            rows["single pairs"].append(
                (*names, float((strengths[topic, i] > strengths[topic, j]) == right), "model")
            )
    found = {}
    for kind, of_model in rows.items():
        topics, first, second, shares, assessors = zip(*people, *of_model, strict=True)
        drawn = AssessorVotes.of(
            topics=topics, first=first, second=second, shares=shares, assessors=assessors
        )
        found[kind] = source_worths(drawn, {"model"})["model"]
    assert found["whole items"].together > 2
    assert found["single pairs"].together < 1.3
    assert found["whole items"].share() < 0.6 * found["single pairs"].share()


def test_without_votes_of_people_nothing_is_learnt() -> None:
    alone = source_worths(votes(4, reliability=1.0, people=0), {"model"})["model"]
    assert alone == SourceWorth(BEFOREHAND, SPREAD)
    assert alone.weight() == 0
    drawn = votes(4, reliability=1.0, of_model=0)
    assert source_worths(drawn, {"model"})["model"] == SourceWorth()


def test_of_people_who_contradict_each_other_nothing_is_learnt() -> None:
    rows = [
        (f"t{topic}", "a", "b", share, name)
        for topic in range(4)
        for share, name in (
            (1.0, "p0"),
            (0.0, "p1"),
            (1.0, "p2"),
            (0.0, "p3"),
            (1.0, "model"),
            (0.5, "model"),
        )
    ]
    topics, first, second, shares, assessors = zip(*rows, strict=True)
    drawn = AssessorVotes.of(topics=topics, first=first, second=second, shares=shares, assessors=assessors)
    found = source_worths(drawn, {"model"})["model"]
    assert found.reliability == pytest.approx(BEFOREHAND, abs=0.05)
    assert found.error == pytest.approx(SPREAD, abs=0.05)
    assert not found.topics
    assert found.weight() == pytest.approx(0, abs=0.1)
    faint = np.full(4, 1e-5)  # what people's votes say where they hardly differ: no topic tells anything
    assert _by_topic(faint, np.ones(4), np.arange(4), 0.5) == {}
