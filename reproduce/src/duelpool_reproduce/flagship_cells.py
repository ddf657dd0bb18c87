"""The problems on which the flagship is measured, and the bars that it is held to.

The bars are what two independent prototypes reached on seeds of their own; where they differ a bar is a
range, and its middle counts. Beside them stand the figures of prefBest with its extra phase. K is the number
of items; without a word a problem has 100 of them, 700 judgments and at most six of a pair.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

Range: TypeAlias = tuple[float, float]

FLAGSHIP = "swissfinals"
BASELINE = "prefbest:final_phases=2"
PEERS: Mapping[str, str] = MappingProxyType(
    {
        "infogain-swiss": "info",
        "parwis": "parwis",
        "active-ranking": "active",
        "rucb": "rucb",
        "mergerucb": "merge",
        "beat-the-mean": "mean",
    }
)
"""Strategies of other authors that stand beside ours, with their names in the table."""
PEER_SHARE = 0.1  # of the trials: they take longer than ours
QUICK_PEERS = ("infogain-swiss", "active-ranking")  # the others would take hours on large pools
LARGE_POOL = 300
SMALL_POOLS = "min_items=20"  # smaller pools of the replays are left out
DL21 = "dl21/judgments.txt"
CROWD = "cast19/TREC-CAsT-2019.pref"
DEDICATED = "cast19/TREC-CAsT-2019.local.pref"
FILES = (DL21, CROWD, DEDICATED)


@dataclass(frozen=True, slots=True)
class FlagshipProblem:
    """One simulation of the flagship, and whether prefBest with its extra phase and the peers are run beside it."""

    name: str
    judges: str  # of a replay: the file under the data's folder, then its parameters
    strategy: str = FLAGSHIP
    items: int | None = 100
    budget: int | str = "7K"
    cap: int = 6
    outstanding: int | None = None
    share: float = 1.0  # of the trials asked for: large pools take long
    beside: bool = False

    @property
    def file(self) -> str | None:
        """The data file that it replays, under the data's folder."""
        return self.judges.partition(",")[0] if self.items is None else None

    def judges_in(self, folder: str) -> str:
        """Return the judges' specification, with the data under this folder."""
        return f"replay:file={folder}/{self.judges}" if self.items is None else self.judges

    def trials(self, wanted: int) -> int:
        """Return how many of the requested trials are run."""
        return max(1, round(self.share * wanted))

    @property
    def peers(self) -> tuple[str, ...]:
        """The peers that are run beside it."""
        if not self.beside:
            return ()
        return QUICK_PEERS if (self.items or 0) >= LARGE_POOL else tuple(PEERS)

    def peer_trials(self, wanted: int) -> int:
        """Return how many of the requested trials a peer gets."""
        return max(1, round(PEER_SHARE * self.share * wanted))


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure of a problem and what it has to reach; `theirs` is known of prefBest with its extra phase."""

    problem: str
    measure: str  # single, found, best_on_top or top5_recall
    reach: Range
    theirs: Range | None = None
    words: str = ""

    @property
    def value(self) -> float:
        """The middle of the range."""
        return sum(self.reach) / 2


def _known(value: float | Range | None) -> Range | None:
    return (value, value) if isinstance(value, float) else value


def _bar(
    problem: str,
    measure: str,
    reach: float | Range,
    theirs: float | Range | None = None,
    words: str = "",
) -> Bar:
    return Bar(problem, measure, _known(reach) or (0.0, 0.0), _known(theirs), words)


PROBLEMS: tuple[FlagshipProblem, ...] = (
    FlagshipProblem("A", "case-a", beside=True),
    FlagshipProblem("B", "case-b", beside=True),
    *(
        FlagshipProblem(
            f"{name} {answers}", f"{file},{SMALL_POOLS},answers={answers}", items=None, beside=True
        )
        for name, file in (("dl21", DL21), ("cast19 crowd", CROWD), ("cast19 dedicated", DEDICATED))
        for answers in ("raw", "smoothed", "fitted")
    ),
    FlagshipProblem("A, 12 rounds", "case-a", f"{FLAGSHIP}:games_per_round=4,finals_round=25"),
    FlagshipProblem("A, 6 rounds", "case-a", f"{FLAGSHIP}:games_per_round=6,finals_round=1000,at_once=6"),
    *(FlagshipProblem(f"bt {sd:g}", f"bt:sd={sd:g}", beside=True) for sd in (0.5, 1.0, 2.0)),
    *(FlagshipProblem(f"thurstone {sd:g}", f"thurstone:sd={sd:g}", beside=True) for sd in (1.0, 2.0)),
    FlagshipProblem("A, 20 % reversed", "upsets:share=.2,spare_best=yes", beside=True),
    FlagshipProblem("A, 10 % reversed", "upsets:share=.1", beside=True),
    *(
        FlagshipProblem(f"{case} at {budget}", f"case-{case.lower()}", budget=budget)
        for budget in (350, 400, 500, 1000)
        for case in "AB"
    ),
    *(FlagshipProblem(f"A, cap {cap}", "case-a", cap=cap) for cap in (3, 4, 5, 9)),
    *(
        FlagshipProblem(f"{case}, K={items}", f"case-{case.lower()}", items=items, beside=True)
        for items in (10, 30)
        for case in "AB"
    ),
    FlagshipProblem("A, K=30, 1 game", "case-a", f"{FLAGSHIP}:games_per_round=1", items=30),
    *(
        FlagshipProblem(f"top 5: {name}", judges, f"{FLAGSHIP}:top=5", items=items)
        for name, judges, items in (
            ("A, K=10", "case-a", 10),
            ("A, K=30", "case-a", 30),
            ("A", "case-a", 100),
            ("bt 1", "bt:sd=1", 100),
        )
    ),
    *(
        FlagshipProblem(f"{case}, K=300", f"case-{case.lower()}", items=300, share=0.15, beside=True)
        for case in "AB"
    ),
    *(FlagshipProblem(f"{case}, K=1000", f"case-{case.lower()}", items=1000, share=0.05) for case in "AB"),
    FlagshipProblem("A, 10 out", "case-a", outstanding=10),
    FlagshipProblem("A, 1 out", "case-a", outstanding=1),
)

BARS: tuple[Bar, ...] = (
    _bar("A", "single", (0.734, 0.749), (0.434, 0.444), "26 rounds"),
    _bar("A, 12 rounds", "single", (0.724, 0.731)),
    _bar("A, 6 rounds", "single", 0.668),
    _bar("A, 10 out", "single", (0.744, 0.755), words="live, 10 pairs outstanding"),
    _bar("A, 1 out", "single", 0.771, words="live, 1 pair outstanding"),
    _bar("A", "found", (0.81, 0.817), (0.512, 0.519), "a set of 1.27"),
    _bar("B", "single", 0.944, (0.752, 0.764), "one of two"),
    _bar("B", "best_on_top", (0.59, 0.61), 0.315, "both on top"),
    _bar("A at 350", "single", 0.535),
    _bar("B at 350", "single", 0.77),
    _bar("B at 350", "best_on_top", 0.23, words="both on top"),
    _bar("A at 400", "single", 0.578),
    _bar("B at 400", "single", 0.813),
    _bar("B at 400", "best_on_top", 0.31, words="both on top"),
    _bar("A at 500", "single", 0.66, 0.36),
    _bar("B at 500", "single", 0.89, 0.70),
    _bar("B at 500", "best_on_top", 0.43, words="both on top"),
    _bar("A at 1000", "single", 0.80, 0.445),
    _bar("B at 1000", "single", 0.97, 0.785),
    _bar("B at 1000", "best_on_top", 0.73, words="both on top"),
    _bar("A, cap 3", "single", 0.61),
    _bar("A, cap 4", "single", 0.675),
    _bar("A, cap 5", "single", 0.72),
    _bar("A, cap 9", "single", 0.806),
    _bar("bt 0.5", "single", 0.38, 0.27),
    _bar("bt 1", "single", (0.57, 0.58), 0.45),
    _bar("bt 2", "single", (0.71, 0.73), 0.64),
    _bar("thurstone 1", "single", 0.62, 0.48),
    _bar("thurstone 2", "single", 0.72, 0.66),
    _bar("A, 20 % reversed", "single", 0.76, 0.49, "best spared"),
    _bar("A, 10 % reversed", "single", 0.31, 0.25),
    _bar("A, K=10", "single", 0.74, (0.58, 0.61)),
    _bar("A, K=30", "single", 0.725, 0.50),
    _bar("A, K=30, 1 game", "single", 0.754),
    _bar("A, K=300", "single", 0.72, (0.38, 0.44)),
    _bar("A, K=1000", "single", 0.70),
    _bar("B, K=10", "single", 0.91, 0.87),
    _bar("B, K=30", "single", (0.915, 0.924), 0.84),
    _bar("B, K=300", "single", 0.94, (0.69, 0.72)),
    _bar("B, K=1000", "single", 0.94),
    _bar("dl21 raw", "single", 0.54, 0.46),
    _bar("dl21 smoothed", "single", 0.56, 0.47),
    _bar("dl21 fitted", "single", 0.56, 0.46),
    _bar("cast19 crowd raw", "single", 0.51, 0.51, "not to lose"),
    _bar("cast19 crowd smoothed", "single", 0.56, 0.50),
    _bar("cast19 crowd fitted", "single", 0.60, 0.50),
    _bar("cast19 dedicated raw", "single", 0.91, 0.90),
    _bar("cast19 dedicated smoothed", "single", 0.88, 0.76),
    _bar("cast19 dedicated fitted", "single", 0.79, 0.68),
    _bar("top 5: A, K=10", "top5_recall", 0.83, 0.79),
    _bar("top 5: A, K=30", "top5_recall", 0.78, 0.71),
    _bar("top 5: A", "top5_recall", 0.77, 0.62),
    _bar("top 5: bt 1", "top5_recall", 0.70, 0.61),
)
