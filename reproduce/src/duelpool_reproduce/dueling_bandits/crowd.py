"""Section 5 of the paper: the crowd's pools, phases, repeated judgments, cost, twins and best sets."""

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Executor
from math import inf
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from duelpool.files import Preferences, read_passages, read_qrels, read_run
from duelpool.pooling import build_pools, group_duplicates
from duelpool.preferences import levels_of, win_matrices
from duelpool.records import Passage
from duelpool.simulation import Progress
from duelpool.simulation.cost import Pay, estimate
from duelpool_reproduce.base import Experiment, Section
from duelpool_reproduce.dueling_bandits.campaign import (
    JUDGMENTS,
    MAIN_RUN,
    QRELS,
    RUNS,
    SECOND_FINALS,
    SETS,
    TEXTS,
    TopicCampaign,
    read_campaign,
    read_judgments,
)
from duelpool_reproduce.verdicts import NOT_EXPLAINED, ComparisonReport, Measured, Stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FINAL_SIZE = 9
TOP = 5
COST, USABLE = 3830.41, 10_697


def crowd_pools(
    trials: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path = Path(),
) -> ComparisonReport:
    """Read the pools, the phases and the repeats off the released judgments, and reckon the cost."""
    campaign = read_campaign(data)
    every = read_judgments(data)
    qrels = read_qrels(data / QRELS)
    grades = qrels.grades()
    sizes = {topic: len(each.items) for topic, each in campaign.items()}
    shared = [topic for topic in campaign if topic in grades]
    runs = [read_run(path) for path in sorted((data / RUNS).iterdir())]
    made = {pool.topic: set(pool.items) for pool in build_pools(runs, qrels=qrels, thin=TOP).pools}
    apart = {topic: len(made[topic] ^ set(campaign[topic].items)) for topic in shared}
    graded = [grades[topic].get(item) for topic in shared for item in campaign[topic].items]
    pruning = [phase for each in campaign.values() for phase in each.phases[:-1]]
    degrees = Counter(
        count for phase in pruning for count in Counter(i for j in phase for i in j.pair).values()
    )
    boundaries = [b for each in campaign.values() for b in each.boundaries if b.phase.startswith("prune")]
    blocks = [phase for each in campaign.values() for phase in each.phases]
    twice = sum(len({judgment.pair for judgment in block}) < len(block) for block in blocks)
    pay = Pay(reward=200, fee_percent=20, questions=10)
    expected = estimate(sizes.values(), "prefbest", pay, cap=None)
    pools, phases, money = "Pools (section 5.1)", "Phases, read off the file", "Cost"
    earlier = "The paper pooled and thinned by grades as they stood then; the official ones came later."
    excluded = "Tasks of excluded workers and of debugging are not in the release: only usable judgments are."
    rows = [
        Measured("topics", 50, len(campaign), part=pools),
        Measured("smallest pool", 5, min(sizes.values()), part=pools),
        Measured("largest pool", 130, max(sizes.values()), part=pools),
        Measured("median size", 15, median(sizes.values()), within=0.5, part=pools),
        Measured("mean size", 31.4, fmean(sizes.values()), within=0.05, part=pools, digits=1),
        Measured("passages", 1570, sum(sizes.values()), part=pools),
        Measured("topics shared with the official grades", 46, len(shared), part=pools),
        Measured("topics with official grades", None, len(grades), 53, part=pools),
        Measured("judged passages of those graded 1 to 3", None, sum(g in (1, 2, 3) for g in graded), len(graded),
                 part=pools),
        Measured("pools that the runs to depth 10, thinned by the grades, give", len(shared),
                 sum(not each for each in apart.values()), part=pools, why=earlier),
        Measured("passages in which the other pools differ", 0, sum(apart.values()), part=pools, why=earlier),
        Measured("judgments of the procedure", 9713, len(every[:MAIN_RUN]), part=phases),
        Measured("judgments of the second final", 984, len(every[-SECOND_FINALS:]), part=phases),
        Measured("judgments that the paper uses", USABLE, MAIN_RUN + SECOND_FINALS, part=phases),
        Measured("of the third final, not used", None, len(every) - MAIN_RUN - SECOND_FINALS, 984, part=phases),
        Measured("phases", None, len(blocks), 128, part=phases),
        Measured("phases with a pair judged twice", None, twice, 0, part=phases),
        Measured("items that met 7 others", None, degrees[7], 2422, part=phases),
        Measured("items that met 8", None, degrees[8], 63, part=phases),
        Measured("items that met any other number", None, degrees.total() - degrees[7] - degrees[8], 0, part=phases),
        Measured("boundaries between phases", None, len(boundaries), 78, part=phases),
        Measured("of them, survivors are the next phase's items", None, sum(b.agrees for b in boundaries), 78,
                 part=phases),
        Measured("dollars a task of ten", 2.40, pay.per_assignment / 100, part=money, digits=2),
        Measured("dollars a usable judgment", (0.35, 0.36), COST / USABLE, part=money),
        Measured("dollars in all", COST, None, why=excluded, part=money, digits=2),
        Measured("dollars for the usable judgments alone", None, -(-USABLE // 10) * pay.per_assignment / 100,
                 part=money, digits=2),
        Measured("judgments that prefbest's closed form expects", 9713, expected.judgments, within=500, part=money,
                 why="The closed form assumes that half of a pool survives each phase."),
    ]  # fmt: skip
    remarks = ("An expected number of judgments agrees when it lies within 500 (5 %).",)

    def draw() -> "Figure":
        from duelpool.plots import Bars, panels

        order = sorted(sizes, key=lambda topic: sizes[topic])
        labels = [topic if at % 7 == 0 else "" for at, topic in enumerate(order)]
        return panels([Bars("Pools", "passages", labels, {"pool": [sizes[topic] for topic in order]})])

    return ComparisonReport("crowd-pools", tuple(rows), draw, remarks, seed=seed)


def twins_of_the_best(each: TopicCampaign, texts: Mapping[str, Passage]) -> list[tuple[int | None, int]]:
    """Return the rank in the first final of each twin of a best item, None below it, and its last phase.

    Twins that are themselves tied for best are no separate test: they stand with their canonical item.
    """
    levels = each.strategy.phase_levels("final-1")
    rank: dict[str, int] = {}
    for level in levels.levels:
        rank |= dict.fromkeys(level, len(rank) + 1)
    best = set(levels.best)
    others = [
        item
        for group in group_duplicates(each.items, texts, {})
        if len(group) > 1 and best & set(group)
        for item in group
        if item not in best
    ]
    reached = {
        item: at for at, phase in enumerate(each.phases) for judgment in phase for item in judgment.pair
    }
    return [(rank.get(item), reached[item]) for item in others]


def crowd_twins(
    trials: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path = Path(),
) -> ComparisonReport:
    """Find the twins, and see where those of the best passages ended: the test of equality tolerance."""
    campaign = read_campaign(data)
    texts = read_passages(data / TEXTS).by_id
    covered = {topic: each for topic, each in campaign.items() if all(item in texts for item in each.items)}
    groups = {topic: group_duplicates(each.items, texts, {}) for topic, each in covered.items()}
    same = {
        (topic, item): group[0]
        for topic, groups_of_topic in groups.items()
        for group in groups_of_topic
        for item in group
    }
    with_twin = sum(
        len(group) for groups_of_topic in groups.values() for group in groups_of_topic if len(group) > 1
    )
    between = sum(
        same[topic, judgment.left] == same[topic, judgment.right or ""]
        for topic, each in covered.items()
        for phase in each.phases
        for judgment in phase
    )
    tested = {topic: ends for topic, each in covered.items() if (ends := twins_of_the_best(each, texts))}
    pruned = {topic: ends for topic, ends in tested.items() if len(campaign[topic].items) > FINAL_SIZE}
    ranks = [rank for ends in pruned.values() for rank, _ in ends]
    sizes = [len(campaign[topic].items) for topic in pruned]
    lacking = sorted(len(each.items) for topic, each in campaign.items() if topic not in covered)
    no_text = f"Texts are here for {len(covered)} of 50 topics; the others' pools hold {', '.join(map(str, lacking))}."
    tenth = f"{no_text} The paper's tenth topic is the one with 130: with it the mean size is 50.5."
    small = (
        f"{NOT_EXPLAINED} One of the two is the topic with 130 passages, which has no texts here. The other is among "
        "the paper's five with a pool of at most 9: all these pools have texts, and we find four by identical texts."
    )
    exact, tolerance = "Exact duplicates (section 5.2)", "Equality tolerance: twins of the best passage"
    rows = [
        Measured("passages in pools with texts", 1570, sum(len(each.items) for each in covered.values()), 1249,
                 part=exact, why=no_text),
        Measured("of them with a twin", 460, with_twin, 385, part=exact, why=no_text),
        Measured("distinct passages", 1308, sum(map(len, groups.values())), 1027, part=exact, why=no_text),
        Measured("judgments between twins", 169, between, 163, part=exact, why=no_text),
        Measured("topics whose best has a twin", 15, len(tested), part=tolerance, why=small),
        Measured("of them with a pool above 9", 10, len(pruned), part=tolerance, why=tenth),
        Measured("their smallest pool", 11, min(sizes), part=tolerance),
        Measured("their largest pool", 130, max(sizes), part=tolerance, why=tenth),
        Measured("their mean size", 50.5, fmean(sizes), part=tolerance, why=tenth, within=0.05, digits=1),
        Measured("their mean size, with the topic of 130", 50.5, fmean([*sizes, 130]), part=tolerance, within=0.05,
                 digits=1),
        Measured("twins of their best", 12, len(ranks), part=tolerance, why=tenth),
        Measured("of them in the top five", 9, sum(r is not None and r <= TOP for r in ranks), part=tolerance,
                 why=tenth),
        Measured("twins that missed the top five", 3, sum(r is None or r > TOP for r in ranks), part=tolerance),
    ]  # fmt: skip
    places = Section(
        "Where the twins of the best ended",
        ("topic", "pool", "twins", "ranks in the final", "out in phase"),
        tuple(
            (
                topic,
                len(campaign[topic].items),
                len(ends),
                ", ".join(str(rank) for rank, _ in ends if rank is not None),
                ", ".join(str(last + 1) for rank, last in ends if rank is None),
            )
            for topic, ends in tested.items()
        ),
    )

    def draw() -> "Figure":
        from duelpool.plots import Bars, panels

        heights = [ranks.count(place) for place in range(2, FINAL_SIZE + 1)] + [ranks.count(None)]
        labels = [*map(str, range(2, FINAL_SIZE + 1)), "out"]
        return panels([Bars("Twins of the best: rank in the final", "twins", labels, {"twins": heights})])

    remarks = (
        "Equal items share the better rank. Twins tied for best with their like are not counted again.",
    )
    return ComparisonReport("crowd-twins", tuple(rows), draw, remarks, (places,), seed=seed)


def crowd_sets(
    trials: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path = Path(),
) -> ComparisonReport:
    """Rebuild Sets I, II and Combined from the judgments and compare them with the released ones."""
    campaign = read_campaign(data)
    ours = {topic: each.best_sets for topic, each in campaign.items()}
    released = {
        name: {topic: frozenset(items) for topic, items in read_qrels(data / file).grades().items()}
        for name, file in SETS.items()
    }
    count = {"I": 75, "II": 75, "Combined": 66}
    ties: dict[str, Stated] = {"I": 4, "II": 4, "Combined": (-inf, 3)}
    rows = []
    for name in SETS:
        sets = {topic: of_topic[name] for topic, of_topic in ours.items()}
        rows += [
            Measured("best passages", count[name], sum(map(len, sets.values())), part=f"Set {name}"),
            Measured("most that tie", ties[name], max(map(len, sets.values())), part=f"Set {name}"),
            Measured("topics where the released set is rebuilt", None,
                     sum(sets[topic] == released[name].get(topic) for topic in sets), 50, part=f"Set {name}"),
        ]  # fmt: skip
    shared = {("I", "II"): (22, 25), ("Combined", "I"): (40, 44), ("Combined", "II"): (39, 44)}
    for (a, b), (topics, passages) in shared.items():
        both = [of_topic[a] & of_topic[b] for of_topic in ours.values()]
        rows += [
            Measured(f"topics that {a} and {b} share a best in", topics, sum(map(bool, both)), part="Shared"),
            Measured(f"best passages that {a} and {b} share", passages, sum(map(len, both)), part="Shared"),
        ]
    pooled = sum(best_of_all_votes(each) == ours[topic]["Combined"] for topic, each in campaign.items())
    rows.append(
        Measured("topics where every vote between finalists gives Combined", None, pooled, 37, part="Shared")
    )
    remarks = ("Combined needs the final phases alone: votes of pruning phases between finalists change it.",)

    def draw() -> "Figure":
        from duelpool.plots import Bars, panels

        most = max(len(best_set) for of_topic in ours.values() for best_set in of_topic.values())
        series = {
            name: [
                sum(len(of_topic[name]) == size for of_topic in ours.values()) for size in range(1, most + 1)
            ]
            for name in SETS
        }
        return panels(
            [Bars("Passages that tie for best", "topics", list(map(str, range(1, most + 1))), series)]
        )

    return ComparisonReport("crowd-sets", tuple(rows), draw, remarks, seed=seed)


def best_of_all_votes(each: TopicCampaign) -> frozenset[str]:
    """Return the finalists with the most wins over every vote between finalists, of any phase."""
    finalists = {item for judgment in each.phases[-1] for item in judgment.pair} or set(each.items)
    votes = [j for phase in (*each.phases, each.second_final) for j in phase if set(j.pair) <= finalists]
    (matrix,) = win_matrices(Preferences.from_judgments(votes)).values()
    return frozenset(levels_of(matrix.items, matrix.wins.sum(axis=1)).best)


CROWD_POOLS = Experiment(
    "crowd-pools",
    "The crowd campaign's pools, phases, repeated judgments and cost",
    1,
    1,
    crowd_pools,
    reads=(JUDGMENTS, QRELS, RUNS),
    paper="dueling bandits",
    shows={"Section 5.1": "pools, judgments and cost of the crowd campaign"},
)
CROWD_TWINS = Experiment(
    "crowd-twins",
    "Exact duplicates in the pools, and where those of the best passages ended",
    1,
    1,
    crowd_twins,
    reads=(JUDGMENTS, TEXTS),
    paper="dueling bandits",
    shows={"Section 5.2": "exact duplicates and equality tolerance"},
)
CROWD_SETS = Experiment(
    "crowd-sets",
    "Sets I, II and Combined, rebuilt from the crowd's judgments",
    1,
    1,
    crowd_sets,
    reads=(JUDGMENTS, *SETS.values()),
    paper="dueling bandits",
    shows={"Section 5.3": "the best passages of Set I, Set II and both combined"},
)
