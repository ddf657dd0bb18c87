"""The problems of the calibration, and what is asked of the stated chances on them.

Without a word a problem has 100 items and 7 judgments an item. All bars are one-sided: being too sure is held to a bar
on every problem, being too modest where the best can be found.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from duelpool.judges import JudgeModel
from duelpool_reproduce.calibration.judges import SHAPES, FittedPool, drawn_judges
from duelpool_reproduce.flagship_cells import CROWD, DL21, FLAGSHIP, SMALL_POOLS

ARENA, CROWDRAG = "arena/human.jsonl.gz", "crowdrag25/judgments.tsv.gz"
FILES = (DL21, CROWD, ARENA, CROWDRAG)
PER_ITEM = "7K"

STRATEGY = FLAGSHIP
SURE = 0.9
STOPPING = f"{FLAGSHIP}:confidence={SURE:g}"

MOST_OVER, GOAL_OVER, MOST_OVER_POOLED = 0.10, 0.07, 0.03  # of stated less right
LEAST_RIGHT_WHEN_STOPPED = 0.87
LEAST_STOPPED: Mapping[str, float] = MappingProxyType({"B": 0.5, "bt 2": 0.5})
LEAST_REFUSED: Mapping[str, float] = MappingProxyType({"coins 0.5": 0.85, "coins 0.501": 0.85})


@dataclass(frozen=True, slots=True)
class Speech:
    """What is asked where the best can be found: few refusals, and little modesty (right less stated)."""

    refused: float
    modest: float


_CLEAR, _REPLAYED = Speech(0.05, 0.10), Speech(0.15, 0.20)
SPEAKING: Mapping[str, Speech] = MappingProxyType(
    {
        **dict.fromkeys(("A", "A 0.9", "bt 1", "bt 2"), _CLEAR),
        "B": Speech(0.15, 0.30),
        **dict.fromkeys(("dl21 raw", "dl21 fitted", "cast19 raw", "cast19 fitted"), _REPLAYED),
    }
)


@dataclass(frozen=True, slots=True)
class CalibrationProblem:
    """One problem: its judges, its pools and its budget.

    With a `file` of real data under the data's folder the judges replay it, with these parameters, or are fitted to it.
    """

    name: str
    judges: str | JudgeModel
    items: int | None = 100
    budget: int | str = PER_ITEM
    file: str | None = None
    share: float = 1.0  # of the trials asked for: large pools take long

    def trials(self, wanted: int) -> int:
        """Return how many of the requested trials are run."""
        return max(1, round(self.share * wanted))

    def judges_in(self, data: Path | None) -> str | JudgeModel:
        """Return the judges, with the real data under this folder."""
        if self.file is None:
            return self.judges
        path = f"{data}/{self.file}"
        return f"replay:file={path},{self.judges}" if self.items is None else FittedPool(path)


def problems(seed: int) -> tuple[CalibrationProblem, ...]:
    """Return every problem; the generator's have the settings that the seed gives."""
    # Coins: an order that no answer shows, for where all items are equal no answer could be wrong.
    coins = [CalibrationProblem(f"coins {q:g}", f"case-a:q={max(q, 0.500001)}") for q in (0.5, 0.501)]
    orders = [
        CalibrationProblem("A" if q == 0.75 else f"A {q:g}", f"case-a:q={q:g}")
        for q in (0.55, 0.6, 0.75, 0.9)
    ]
    budgets = [
        CalibrationProblem(f"{case} at {budget}", f"case-{case.lower()}", budget=budget)
        for case in "AB"
        for budget in (200, 350)
    ]
    strengths = [CalibrationProblem(f"bt {sd:g}", f"bt:sd={sd:g}") for sd in (0.1, 0.25, 0.5, 1.0, 2.0)]
    reversals = [
        CalibrationProblem(f"A, {share:.0%} reversed".replace("%", " %"), f"upsets:share={share:g}")
        for share in (0.1, 0.2)
    ]
    sizes = [
        CalibrationProblem(f"A, K={items}", "case-a", items=items, share=share)
        for items, share in ((10, 1.0), (30, 1.0), (300, 0.2))
    ]
    replays = [
        CalibrationProblem(f"{name} {answers}", f"{SMALL_POOLS},answers={answers}", None, file=file)
        for name, file in (("dl21", DL21), ("cast19", CROWD))
        for answers in ("raw", "fitted")
    ]
    drawn = []
    for shape in SHAPES:
        judges, items = drawn_judges(shape, seed)
        drawn.append(CalibrationProblem(f"drawn: {shape}", judges, items))
    return (
        *coins,
        *orders,
        CalibrationProblem("B", "case-b"),
        *budgets,
        *strengths,
        CalibrationProblem("thurstone 1", "thurstone:sd=1"),
        *reversals,
        *sizes,
        *replays,
        CalibrationProblem("near-ties: arena", "fitted", file=ARENA),
        CalibrationProblem("near-ties: crowdrag", "fitted", file=CROWDRAG),
        *drawn,
    )
