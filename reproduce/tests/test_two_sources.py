"""The experiment on two sources: a made model, its weight from other topics, bars, and simulations that are kept."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from duelpool.errors import BadParameter
from duelpool.strategies.swissfinals import SwissFinals
from duelpool_reproduce.beyond import two_sources as experiment
from duelpool_reproduce.beyond.leading import LeadingFinalist
from duelpool_reproduce.beyond.two_sources import (
    BOTH,
    CAST,
    PEOPLE,
    SHUFFLED,
    Sources,
    SourcesCase,
    TwoSources,
    at_level,
    made_votes,
    model_scores,
    slope_elsewhere,
)
from duelpool_reproduce.cells import Cells
from duelpool_reproduce.savings import BudgetPoint, FoundCurves, Saving, found_curves
from duelpool_reproduce.verdicts import KEPT, MISSED, NEW, TOO_FEW

ITEMS = tuple(f"i{at:02}" for at in range(24))


@pytest.fixture
def people(tmp_path: Path) -> Sources:
    """Four topics in which every item beats those below it, twice."""
    file = tmp_path / "people.pref"
    pairs = [(a, b) for at, a in enumerate(ITEMS) for b in ITEMS[at + 1 :]] * 2
    file.write_text("".join(f"t{topic} {a} {b} {a}\n" for topic in range(4) for a, b in pairs))
    return Sources(CAST, str(file))


def test_a_made_model_is_right_in_its_share_of_the_pairs(people: Sources) -> None:
    votes = [made_votes(people, "t1", ITEMS, drawn) for drawn in range(20)]
    assert all(len({frozenset(vote) for vote in some}) == len(some) == 24 * 23 // 2 for some in votes)
    right = sum(winner < loser for some in votes for winner, loser in some) / (20 * 24 * 23 // 2)
    assert right == pytest.approx(0.7, abs=3.5 * (0.21 / 5520) ** 0.5)
    assert votes[0] == made_votes(people, "t1", ITEMS, 0) != votes[1]
    sure = made_votes(replace(people, right=1.0), "t1", ITEMS, 0)
    assert all(winner < loser for winner, loser in sure)


def test_its_weight_comes_from_the_other_topics_and_is_none_when_shuffled(people: Sources) -> None:
    assert set(model_scores(people, 0)) == {"t0", "t1", "t2", "t3"}
    slope = slope_elsewhere(people, "t1", 5, mixed=False)
    assert slope > 0.3
    mixed = [slope_elsewhere(people, "t1", seed, mixed=True) for seed in range(8)]
    assert sum(mixed) / 8 < 0.2 * slope


def test_each_way_has_its_prior_and_its_budget(people: Sources) -> None:
    made = {
        way: TwoSources(way, people, 2.0)(ITEMS, seed=1, topic="t1", cap=6)
        for way in (PEOPLE, BOTH, SHUFFLED)
    }
    assert all(isinstance(each, SwissFinals) and each.schedule.budget == 48 for each in made.values())
    weights = {way: each.prior_weight for way, each in made.items() if isinstance(each, SwissFinals)}
    assert weights[PEOPLE] == 0 < weights[BOTH]


def test_the_leader_of_the_finals_is_returned_before_all_others() -> None:
    strategy = LeadingFinalist(ITEMS, seed=1, topic="t")
    result = strategy.result()
    assert result.best == (strategy.best_one,)
    assert {item for level in result.levels for item in level} == set(ITEMS)


def saving(found: float, share: float = 0.3) -> Saving:
    return Saving(found, 100, 5, 100 * (1 - share), 4, share, 0.02)


def test_the_found_rate_to_compare_at_is_a_half_or_the_highest_below() -> None:
    assert at_level([saving(0.4), saving(0.5), saving(0.55)]) == saving(0.5)
    assert at_level([saving(0.4), saving(0.45)]) == saving(0.45)
    assert at_level([saving(0.55)]) is None


def curves(saved: float) -> FoundCurves:
    rates = ((40.0, 0.3), (80.0, 0.45), (160.0, 0.7))
    points = [
        BudgetPoint(way, judgments / 40, judgments * factor, rate, 0.003)
        for way, factor in ((PEOPLE, 1.0), (BOTH, 1 - saved), (SHUFFLED, 1.0))
        for judgments, rate in rates
    ]
    return FoundCurves((PEOPLE, BOTH, SHUFFLED), tuple(points), 20_000, 0)


@pytest.mark.parametrize(("saved", "verdict"), [(0.4, KEPT), (0.25, KEPT), (0.1, MISSED)])
def test_a_quarter_is_asked_of_the_made_model(saved: float, verdict: str) -> None:
    bars = SourcesCase(Sources(CAST, "people.pref"), curves(saved), 4, 276.0, 0.5).bars()
    verdicts = {bar.figure: bar.verdict for bar in bars}
    assert verdicts[f"saved at 0.50: {BOTH}"] == verdict
    assert verdicts[f"saved at 0.50: {SHUFFLED}"] == TOO_FEW  # exactly 0: no saving is told from none
    assert verdicts[f"judgments at 0.50: {BOTH}"] == NEW


@pytest.mark.parametrize(("judgments", "verdict"), [(0.0, KEPT), (-1.0, MISSED)])
def test_deep_learning_is_held_to_its_judgments(judgments: float, verdict: str) -> None:
    bars = SourcesCase(Sources("dl21", "people.pref", ("model",)), curves(judgments), 4, 276.0, 0.5).bars()
    verdicts = {bar.figure: bar.verdict for bar in bars}
    assert verdicts[f"judgments at 0.50: {BOTH}"] == verdict
    assert verdicts[f"saved at 0.50: {BOTH}"] == NEW


def test_simulations_of_makers_are_kept_by_the_content_of_their_files(
    people: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = Cells(tmp_path / "kept")

    def run(sources: Sources, *ways: str) -> FoundCurves:
        made = found_curves(
            lambda way, budget: TwoSources(way, sources, budget),
            ways,
            (1.0,),
            sources.people,
            trials=2,
            seed=0,
            cells=cells,
            case=sources.name,
        )
        assert len(made.points) == len(ways)
        return made

    first = run(people, PEOPLE, BOTH)
    assert len(list((tmp_path / "kept").iterdir())) == 2
    (tmp_path / "elsewhere").mkdir()
    moved = Path(people.file).rename(tmp_path / "elsewhere" / "people.pref")

    def none(*_: object, **__: object) -> None:
        raise AssertionError("it was simulated again")

    monkeypatch.setattr("duelpool_reproduce.cells.simulate", none)
    there = replace(people, file=str(moved))
    assert run(there, PEOPLE, BOTH) == first
    with pytest.raises(AssertionError, match="again"):
        run(there, SHUFFLED)
    moved.write_text(moved.read_text() + "t0 i05 i01 i05\n")
    with pytest.raises(AssertionError, match="again"):
        run(there, PEOPLE)


def test_it_wants_its_data(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match=r"TREC-CAsT-2019\.pref"):
        experiment.two_sources(trials=1, data=tmp_path)


@pytest.mark.long
@pytest.mark.data
def test_both_collections_are_replayed() -> None:
    data = Path(os.environ["DUELPOOL_DATA"])
    report = experiment.two_sources(2, 0, data=data, per_item={"dl21": (1.0, 2.0), CAST: (1.0,)})
    titles = [section.title for section in report.sections()]
    assert any(title.startswith("dl21: best item found (19 topics") for title in titles)
    assert any(title.startswith("cast19: best item found (36 topics") for title in titles)
    assert len(report.values["points"]) == 9
    report.drawing()
