"""The model of votes: what it recovers, what it is held to, and what it leaves out."""

import numpy as np
import pytest
from scipy.special import expit

from duelpool.errors import BadParameter
from duelpool.preferences import assessors
from duelpool.preferences.assessors import LEAN, RELIABILITY, AssessorVotes, fit_assessors
from duelpool.preferences.weights import vote_weights
from duelpool.seeds import rng_for
from duelpool_reproduce.beyond.votes import recovery, simulated_votes

SHAPE = (20, 8, 30, 6_000, 0.5)
LARGER = (30, 12, 60, 12_000, 0.5)


def small_votes() -> AssessorVotes:
    table, _, _ = simulated_votes(SHAPE, rng_for(0, "small"))
    return table


def test_strengths_reliability_lean_and_ties_are_recovered() -> None:
    covered, off = zip(*(recovery(LARGER, rng_for(seed, "recovery")) for seed in range(4)), strict=True)
    shares = np.mean(covered, axis=0)
    assert np.all(shares > 0.91), shares
    assert np.all(shares < 0.99), shares
    assert np.abs(np.mean(off, axis=0)).max() < 0.12


def test_a_guesser_and_an_expert_are_told_apart() -> None:
    rng = rng_for(1, "two kinds")
    votes = 4_000
    strengths = rng.normal(0, 1.2, 200)
    i = rng.integers(200, size=votes)
    j = (i // 10) * 10 + (i % 10 + rng.integers(1, 10, votes)) % 10
    who = rng.integers(20, size=votes)
    reliability = np.where(np.arange(20) < 4, 0.0, 1.0)
    reliability[19] = 2.5
    won = rng.random(votes) < expit(reliability[who] * (strengths[i] - strengths[j]))
    table = AssessorVotes.of(
        topics=[f"t{place // 10:02d}" for place in i],
        first=[f"i{place:03d}" for place in i],
        second=[f"i{place:03d}" for place in j],
        shares=won.astype(float).tolist(),
        assessors=[f"a{person:02d}" for person in who],
    )
    worth = fit_assessors(table).worth()
    assert [each.assessor for each in worth] == [f"a{person:02d}" for person in range(20)]
    assert all(each.high < 0.3 for each in worth[:4])
    assert sum(each.low < 1.1 and each.high > 0.6 for each in worth[4:19]) >= 14
    assert worth[19].low > 1
    assert all(each.lean == each.lean_low == each.lean_high == 0 for each in worth), "no side is known"


def test_without_reliability_lean_and_ties_it_is_bradley_terry_with_a_normal_prior() -> None:
    rng = rng_for(2, "plain")
    i, j = rng.integers(0, 4, 800), rng.integers(4, 8, 800)
    won = rng.random(800) < expit(np.linspace(2, -2, 8)[i] - np.linspace(1, -3, 8)[j])
    table = AssessorVotes.of(
        topics=["t"] * 800,
        first=[f"i{place}" for place in i],
        second=[f"i{place}" for place in j],
        shares=won.astype(float).tolist(),
        assessors=["one", "other"] * 400,
    )
    model = fit_assessors(table)
    assert model.figures[:, RELIABILITY].tolist() == [1, 1]
    assert model.spreads[1:].tolist() == [0, 0, 0]
    surprise = won - expit(model.strengths[table.i] - model.strengths[table.j])
    pull = np.bincount(table.i, surprise, 8) - np.bincount(table.j, surprise, 8)
    # the last step of the spreads is small, so the strengths are nearly the most probable ones
    assert model.spreads[0] > 1
    assert np.allclose(pull, model.strengths / model.spreads[0] ** 2, atol=0.02)


def test_the_order_of_votes_and_names_doesn_t_matter() -> None:
    table = small_votes()
    shuffled = table.only(rng_for(3, "order").permutation(len(table)))
    one, other = fit_assessors(table), fit_assessors(shuffled)
    assert np.allclose(one.strengths, other.strengths, atol=1e-8)
    assert np.allclose(one.figures, other.figures, atol=1e-8)


def test_the_same_votes_with_items_swapped_give_the_same_model() -> None:
    table = small_votes()
    swapped = AssessorVotes(
        *(table.items, table.topic, table.assessors, table.j, table.i),
        *(table.assessor, 2 - table.outcome, -table.side),
    )
    one, other = fit_assessors(table), fit_assessors(swapped)
    assert np.allclose(one.strengths, other.strengths, atol=1e-8)
    assert np.allclose(one.figures, other.figures, atol=1e-8)
    assert np.allclose(one.first_wins(table), 1 - other.first_wins(swapped), atol=1e-8)


def test_a_lean_to_the_left_is_found_where_sides_are_known() -> None:
    rng = rng_for(4, "lean")
    who, side = rng.integers(8, size=2_400), rng.choice([-1, 1], 2_400)
    lean = np.where(np.arange(8) < 2, 1.5, 0.0)
    won = rng.random(2_400) < expit(lean[who] * side)
    item = rng.integers(0, 30, 2_400)
    table = AssessorVotes.of(
        topics=["t"] * 2_400,
        first=[f"i{place:02d}" for place in item],
        second=[f"i{(place + 1) % 30:02d}" for place in item],
        shares=won.astype(float).tolist(),
        assessors=[f"a{person}" for person in who],
        sides=side.tolist(),
    )
    worth = fit_assessors(table).worth()
    assert all(each.lean_low > 0.8 for each in worth[:2])
    assert all(abs(each.lean) < 0.5 for each in worth[2:])


def test_held_out_votes_are_predicted_better_than_without_assessors() -> None:
    table, strengths, figures = simulated_votes((30, 10, 40, 8_000, 0.7), rng_for(5, "held out"))
    decided = table.outcome != assessors.TIE
    fitted, held = table.only(np.arange(6_000)), table.only(np.flatnonzero(decided[6_000:]) + 6_000)
    alike = AssessorVotes(
        *(fitted.items, fitted.topic, ("all",), fitted.i, fitted.j),
        *(0 * fitted.assessor, fitted.outcome, 0 * fitted.side),
    )
    model, plain = fit_assessors(fitted), fit_assessors(alike)

    def loss(chances: np.ndarray) -> float:
        return float(-np.mean(np.log(np.where(held.outcome == assessors.FIRST, chances, 1 - chances))))

    apart, _ = plain.difference(held.i, held.j)
    x = figures[held.assessor, 0] * (strengths[held.i] - strengths[held.j])
    best = loss(expit(x + figures[held.assessor, 1] * held.side))
    assert best < loss(model.first_wins(held)) < loss(expit(apart)) - 0.02


def swiss_votes(rng: np.random.Generator, guessers: int) -> AssessorVotes:
    """Three Swiss rounds of thirty topics by eight people: too few votes to tell most of them apart."""
    rows = []
    for topic in range(30):
        strengths, wins = rng.normal(0, 1, 16), np.zeros(16)
        for _ in range(3):
            order = np.lexsort((rng.random(16), -wins)).tolist()
            for i, j in zip(order[::2], order[1::2], strict=True):
                who = int(rng.integers(8))
                chance = 0.5 if who < guessers else expit(strengths[i] - strengths[j])
                share = float(rng.random() < chance)
                wins[i if share else j] += 1
                rows.append((f"t{topic}", f"i{i}", f"i{j}", share, f"a{who}"))
    topics, first, second, shares, people = zip(*rows, strict=True)
    return AssessorVotes.of(topics=topics, first=first, second=second, shares=shares, assessors=people)


@pytest.mark.statistics
def test_few_votes_leave_assessors_near_the_mean() -> None:
    models = [fit_assessors(swiss_votes(rng_for(seed, "few votes"), 2)) for seed in range(20)]
    spreads = [model.spreads[1 + RELIABILITY] for model in models]
    assert np.mean(spreads) < 0.5
    assert max(spreads) < 1.3
    assert min(model.spreads[0] for model in models) > 0.05


def test_half_of_the_assessors_contradict_the_others() -> None:
    for seed in range(10):
        rng = rng_for(seed, "two camps")
        topic, i = rng.integers(3, size=600), rng.integers(10, size=600)
        j, who = (i + rng.integers(1, 10, 600)) % 10, np.arange(600) % 6
        strengths = rng.normal(0, 1, (3, 10))
        apart = np.where(who < 3, -1, 1) * (strengths[topic, i] - strengths[topic, j])
        table = AssessorVotes.of(
            topics=[f"t{each}" for each in topic],
            first=[f"i{each}" for each in i],
            second=[f"i{each}" for each in j],
            shares=(rng.random(600) < expit(apart)).astype(float).tolist(),
            assessors=[f"a{each}" for each in who],
        )
        model = fit_assessors(table)
        assert 0.05 < model.spreads[0] < 3, seed
        assert np.abs(model.figures[:, RELIABILITY]).max() < 9, seed


def test_topics_of_unlike_sizes_and_a_very_broad_one(monkeypatch: pytest.MonkeyPatch) -> None:
    table = small_votes()
    whole = fit_assessors(table)
    monkeypatch.setattr(assessors, "_NUMBERS", 200)
    assert np.allclose(fit_assessors(table).strengths, whole.strengths, atol=1e-8), "groups of few topics"
    monkeypatch.setattr(assessors, "_BROAD", 5)
    broad = fit_assessors(table)
    assert np.corrcoef(broad.strengths, whole.strengths)[0, 1] > 0.99
    assert np.corrcoef(broad.figures[:, LEAN], whole.figures[:, LEAN])[0, 1] > 0.98


def test_one_vote_is_enough_for_a_model_and_none_isn_t() -> None:
    one = AssessorVotes.of(topics=["t"], first=["a"], second=["b"], shares=[1.0], assessors=["anna"])
    model = fit_assessors(one)
    assert model.strengths[0] > model.strengths[1]
    with pytest.raises(BadParameter, match="no votes"):
        fit_assessors(one.only(np.zeros(1, dtype=np.bool_)))
    with pytest.raises(BadParameter, match="between 0 and 1"):
        model.worth(1.0)


def test_only_ties() -> None:
    three = ["anna", "ben", "cleo"]
    ties = AssessorVotes.of(
        topics=["t"] * 3, first=["a"] * 3, second=["b"] * 3, shares=[0.5] * 3, assessors=three
    )
    model = fit_assessors(ties)
    assert np.allclose(model.strengths, 0)
    assert np.all(np.isfinite(model.covariance))


def test_topics_without_votes_keep_their_prior() -> None:
    """A topic of another size whose votes are all left out is no reason to fail."""
    table = AssessorVotes.of(
        topics=["a", "a", "a", "b"],
        first=["1", "2", "1", "1"],
        second=["2", "3", "3", "2"],
        shares=[1.0, 1.0, 1.0, 0.0],
        assessors=["x", "y", "z", "x"],
    )
    model = fit_assessors(table.only(np.arange(3)))
    assert np.all(model.strengths[3:] == 0)
    assert np.allclose(model.errors[3:], model.spreads[0], atol=0.05)


def two_kinds(careful: int, careless: int, each: int, seed: int) -> AssessorVotes:
    """Return votes of careful people, called good-..., and of others who flip coins, on 20 pools of 8."""
    rng = rng_for(seed, "careful and careless")
    strengths = rng.normal(0, 1.5, 160)
    who = np.repeat(np.arange(careful + careless), each)
    i = rng.integers(160, size=len(who))
    j = (i // 8) * 8 + (i % 8 + rng.integers(1, 8, len(who))) % 8
    won = rng.random(len(who)) < np.where(who < careful, expit(strengths[i] - strengths[j]), 0.5)
    return AssessorVotes.of(
        topics=[f"t{place // 8:02d}" for place in i],
        first=[f"i{place:03d}" for place in i],
        second=[f"i{place:03d}" for place in j],
        shares=won.astype(float).tolist(),
        assessors=[f"{'good' if person < careful else 'poor'}-{person:02d}" for person in who],
    )


def test_votes_of_those_who_guess_weigh_little_and_of_others_nearly_one() -> None:
    weights = vote_weights(fit_assessors(two_kinds(12, 6, 100, 1)))
    assert all(weight < 0.1 for name, weight in weights.items() if name.startswith("poor"))
    assert all(weight > 0.9 for name, weight in weights.items() if name.startswith("good"))
    alike = vote_weights(fit_assessors(two_kinds(18, 0, 100, 2)))
    assert min(alike.values()) > 0.9, "nobody is weighed down where all are careful"


def test_weights_are_chances() -> None:
    """Of assessors who weigh w, about the share w is careful."""
    known = [
        (weight, name.startswith("good"))
        for seed in range(6)
        for name, weight in vote_weights(fit_assessors(two_kinds(30, 20, 20, seed))).items()
    ]
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.01)):
        inside = [(weight, good) for weight, good in known if low <= weight < high]
        weight, good = np.mean(inside, axis=0)
        assert abs(weight - good) < 0.13, (low, high, weight, good, len(inside))


def test_passing_test_pairs_proves_nothing_where_those_who_failed_are_left_out() -> None:
    """With the excluded people's test pairs, those who passed may still be careless."""
    votes = two_kinds(10, 0, 10, 3)
    passed = dict.fromkeys(votes.assessors, (3, 3))
    among_all = vote_weights(fit_assessors(votes), {**passed, **{f"out-{at}": (0, 3) for at in range(40)}})
    alone = vote_weights(fit_assessors(votes), passed)
    assert all(among_all[name] < alone[name] for name in votes.assessors)
    assert all(among_all[f"out-{at}"] < 0.01 for at in range(40))
