"""Real campaigns replayed into the strategies: their phases, survivors and results."""

from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

import pytest

from duelpool.errors import BadRecord
from duelpool.records import Judgment, Outcome
from duelpool.strategies.knockout import knockout_bound
from duelpool.strategies.phases import Boundary, blocks_by_topic, is_round_robin, items_of, tell_phases
from duelpool.strategies.prefbest import PrefBest
from duelpool.strategies.topk import TopK

MAIN_RUN = (
    9713  # the judgments that the procedure itself needed; a third finalisation follows, then the second
)
SECOND_FINALS = 984

Campaign: TypeAlias = tuple[PrefBest, list[list[Judgment]], list[Judgment], list[Boundary]]
Pools: TypeAlias = tuple[dict[str, list[str]], dict[str, dict[str, float]]]


def read_judgments(file: Path) -> list[Judgment]:
    judgments = []
    for line in file.read_text().splitlines():
        topic, a, b, winner = line.split()
        judgments.append(
            Judgment(topic, a, b, Outcome.LEFT if winner == a else Outcome.RIGHT, sides_known=False)
        )
    return judgments


def read_qrels(file: Path) -> dict[str, dict[str, float]]:
    qrels: dict[str, dict[str, float]] = defaultdict(dict)
    for line in file.read_text().splitlines():
        topic, _, item, grade = line.split()
        qrels[topic][item] = float(grade)
    return dict(qrels)


def thinned(grades: dict[str, float], k: int) -> list[str]:
    """Grade by grade from the best until k candidates are there; nothing without a grade above 0."""
    candidates: list[str] = []
    for grade in sorted({grade for grade in grades.values() if grade > 0}, reverse=True):
        if len(candidates) >= k:
            break
        candidates += [item for item in grades if grades[item] == grade]
    return candidates


# ---- Deep Learning 2021 through prefbest


@pytest.fixture(scope="module")
def dl21(data: Path) -> dict[str, Campaign]:
    """Each topic's strategy after the main run and the second finalisation, and the boundaries."""
    judgments = read_judgments(data / "dl21" / "judgments.txt")
    main, second = judgments[:MAIN_RUN], judgments[-SECOND_FINALS:]
    extra = defaultdict(list)
    for judgment in second:
        extra[judgment.topic].append(judgment)
    campaigns = {}
    for topic, blocks in blocks_by_topic(main).items():
        strategy = PrefBest(items_of(blocks[0]), seed=0, topic=topic, final_phases=2)
        boundaries = tell_phases(strategy, blocks[:-1], [blocks[-1], extra[topic]])
        campaigns[topic] = (strategy, blocks, extra[topic], boundaries)
    return campaigns


def test_the_counts_are_the_papers(dl21: dict[str, Campaign]) -> None:
    assert sum(len(block) for _, blocks, _, _ in dl21.values() for block in blocks) == 9713
    assert sum(len(extra) for _, _, extra, _ in dl21.values()) == 984
    assert sum(len(blocks) for _, blocks, _, _ in dl21.values()) == 128


def test_survivors_are_the_next_phases_items_at_every_boundary(dl21: dict[str, Campaign]) -> None:
    pruning = [b for *_, boundaries in dl21.values() for b in boundaries if b.phase.startswith("prune")]
    assert len(pruning) == 78
    assert [boundary for boundary in pruning if not boundary.agrees] == []
    finals = [b for *_, boundaries in dl21.values() for b in boundaries if b.phase == "final-1"]
    assert len(finals) == 50
    assert all(boundary.agrees for boundary in finals)


@pytest.mark.parametrize(
    ("file", "phase", "items"),
    [("Set-I.qrels", "final-1", 75), ("Set-II.qrels", "final-2", 75), ("Combined-I+II.qrels", None, 66)],
)
def test_the_released_best_sets_are_rebuilt(
    data: Path, dl21: dict[str, Campaign], file: str, phase: str | None, items: int
) -> None:
    released = {topic: set(grades) for topic, grades in read_qrels(data / "dl21" / file).items()}
    rebuilt = {
        topic: set((strategy.phase_levels(phase) if phase else strategy.result()).best)
        for topic, (strategy, *_) in dl21.items()
    }
    assert len(rebuilt) == 50
    assert rebuilt == released
    assert sum(map(len, rebuilt.values())) == items


def test_blocks_of_interleaved_rows_are_refused_as_phases(data: Path, dl21: dict[str, Campaign]) -> None:
    """The third finalisation stands in 957 runs; grouped by topic it is a final, run by run it isn't."""
    third = read_judgments(data / "dl21" / "judgments.txt")[MAIN_RUN:-SECOND_FINALS]
    runs = blocks_by_topic(third)
    assert sum(map(len, runs.values())) == 957
    for topic, (_, blocks, second, _) in list(dl21.items())[:10]:
        strategy = PrefBest(items_of(blocks[0]), seed=0, topic=topic, final_phases=3)
        with pytest.raises(
            BadRecord, match=f"'final-3' of topic '{topic}' closes with .* and its rule needs"
        ):
            tell_phases(strategy, blocks[:-1], [blocks[-1], second, runs[topic][0]])
        strategy = PrefBest(items_of(blocks[0]), seed=0, topic=topic, final_phases=3)
        tell_phases(strategy, blocks[:-1], [blocks[-1], second, [j for run in runs[topic] for j in run]])
        assert strategy.done


def test_three_finals_agree_as_often_as_the_documentation_says(data: Path, dl21: dict[str, Campaign]) -> None:
    third = defaultdict(list)
    for judgment in read_judgments(data / "dl21" / "judgments.txt")[MAIN_RUN:-SECOND_FINALS]:
        third[judgment.topic].append(judgment)
    best: dict[str, list[set[str]]] = {"I": [], "II": [], "III": []}
    for topic, (_, blocks, second, _) in dl21.items():
        strategy = PrefBest(items_of(blocks[0]), seed=0, topic=topic, final_phases=3)
        tell_phases(strategy, blocks[:-1], [blocks[-1], second, third[topic]])
        for at, name in enumerate(best, 1):
            best[name].append(set(strategy.phase_levels(f"final-{at}").best))
    assert {name: sum(map(len, each)) for name, each in best.items()} == {"I": 75, "II": 75, "III": 80}
    agree = {
        f"{one} and {other}": (
            sum(a == b for a, b in zip(best[one], best[other], strict=True)),
            sum(bool(a & b) for a, b in zip(best[one], best[other], strict=True)),
        )
        for one, other in combinations(best, 2)
    }
    assert agree == {"I and II": (4, 22), "I and III": (7, 24), "II and III": (8, 30)}


def test_every_strategy_is_done_after_its_second_final(dl21: dict[str, Campaign]) -> None:
    assert all(strategy.done for strategy, *_ in dl21.values())


# ---- CAsT 2019 through topk and knockout


@pytest.fixture(scope="module")
def cast19(data: Path) -> Pools:
    grades = read_qrels(data / "cast19" / "2019qrels.txt")
    return {topic: thinned(of_topic, 5) for topic, of_topic in grades.items()}, grades


def test_topk_gives_the_released_levels_where_the_file_is_one_round_robin(data: Path, cast19: Pools) -> None:
    pools, grades = cast19
    released = read_qrels(data / "cast19" / "TREC-CAsT-2019.qrels")
    by_topic = defaultdict(list)
    for judgment in read_judgments(data / "cast19" / "TREC-CAsT-2019.pref"):
        by_topic[judgment.topic].append(judgment)
    assert sum(map(len, by_topic.values())) == 14573
    assert len(by_topic) == 171

    exact, not_recoverable = [], []
    for topic in by_topic:
        if not is_round_robin(by_topic[topic], pools[topic]):
            not_recoverable.append(topic)
            continue
        strategy = TopK(pools[topic], seed=0, topic=topic)
        tell_phases(strategy, [], [by_topic[topic]])
        assert strategy.done
        if strategy.graded_preferences(grades[topic]) == released[topic]:
            exact.append(topic)
    assert len(exact) == 69
    assert len(exact) + len(not_recoverable) == 171
    assert sum(len(pools[topic]) <= 9 for topic in not_recoverable) == 9  # these hold extra votes


@pytest.mark.parametrize(("k", "bound"), [(3, 3456), (5, 5429), (10, 10691)])
def test_knockouts_bound_summed_over_the_thinned_pools(cast19: Pools, k: int, bound: int) -> None:
    _, grades = cast19
    assert sum(knockout_bound(len(thinned(of_topic, k)), k) for of_topic in grades.values()) == bound


def test_dedicated_and_crowd_agree_on_the_best_as_often_as_in_the_paper(data: Path) -> None:
    crowd = read_qrels(data / "cast19" / "TREC-CAsT-2019.qrels")
    local = read_qrels(data / "cast19" / "TREC-CAST-2019.local.qrels")
    preferred = {topic: {i: v for i, v in items.items() if v >= 10} for topic, items in crowd.items()}
    best = {topic: {i for i, v in items.items() if v == 50} for topic, items in preferred.items()}
    topics = [topic for topic in preferred if preferred[topic]]
    assert len(topics) == 171
    assert sum(bool(best[topic] & set(local[topic])) for topic in topics) == 63
    assert sum(bool(set(preferred[topic]) & set(local[topic])) for topic in topics) == 141
