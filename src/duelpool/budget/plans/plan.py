"""A plan: a frozen list of what to judge, each unit with the chance it was drawn with, and the expected precision.

The file of a plan is JSON lines: a header, then a line for each question. A file beside it holds the propensities of
all units, drawn or not: later systems and later rounds need them.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duelpool.arrays import Bools, Floats
from duelpool.budget.estimation.assisted import refuse_noise
from duelpool.budget.estimation.choices import refuse_metric, refuse_misfit, usual_draw
from duelpool.budget.estimation.estimators import estimator_named
from duelpool.budget.plans.propensities import Propensities, read_propensities, write_propensities
from duelpool.budget.sampling.designs import LEAST_DOUBT, design_named, sizes
from duelpool.budget.sampling.draws import Lottery, lottery
from duelpool.budget.units.beliefs import Beliefs
from duelpool.budget.units.goals import Targets, beyond_reach, targets_of
from duelpool.budget.units.populations import Population
from duelpool.errors import BadFile, BadParameter, BadRecord
from duelpool.files.jsonlines import Row, json_rows, number_of, text_of
from duelpool.files.source import read_source, write_lines
from duelpool.frames import Tabular, counted, frame_of
from duelpool.seeds import rng_for

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1
NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """One unit to judge, as often as it was drawn: once, unless judges are noisy."""

    topic: str
    item: str
    other: str | None
    times: int
    expected: float

    @property
    def key(self) -> tuple[str, ...]:
        """The topic and the item, or items."""
        return (self.topic, self.item) if self.other is None else (self.topic, self.item, self.other)


@dataclass(frozen=True, slots=True)
class Outlook:
    """The expected precision of one target's estimate."""

    name: str
    width: float | None  # of a 95 % interval, if the beliefs hold; None where nothing is believed
    unreachable: float  # the most that units which no draw can reach could add
    most: float | None = None  # the width whatever the utilities are


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(Tabular):
    """What to judge with a budget."""

    metric: str
    goal: str
    design: str
    draw: str
    estimator: str  # the planned one; others that fit the draws may be used
    n: int  # draws (topics, for DEEP)
    budget: int
    seed: int
    top: float
    systems: tuple[str, ...]
    topics: tuple[str, ...]
    topic_weights: Mapping[str, float] | None
    repeats: int
    round: int
    outlook: tuple[Outlook, ...]
    questions: tuple[PlannedQuestion, ...]
    propensities: Propensities
    price: int = 0  # of one judgment, in minor units
    relevant: Mapping[str, float] | None = None  # AP's R
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        systems = counted(len(self.systems), "system")
        judgments = counted(self.judgments, "judgment")
        return f"Plan({judgments} for {self.metric} of {systems}, design {self.design}, seed {self.seed})"

    def to_polars(self) -> "pl.DataFrame":
        """Return a row a question: what to judge, how often, and how often it was expected to be drawn."""
        rows = ((each.topic, each.item, each.other, each.times, each.expected) for each in self.questions)
        kinds = {"topic": "String", "item": "String", "other": "String", "times": "Int64"}
        return frame_of(rows, kinds | {"expected": "Float64"})

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the questions, as plain values."""
        return self.header()

    @property
    def judgments(self) -> int:
        """How many judgments have to be bought."""
        return sum(self.judgments_for(question) for question in self.questions)

    def judgments_for(self, question: PlannedQuestion) -> int:
        """Return how many judgments a question takes: with repeats, each draw has its own."""
        return self.repeats if self.repeats == 1 else question.times * self.repeats

    @property
    def cost(self) -> int:
        """The cost of the judgments, in minor units."""
        return self.judgments * self.price

    def header(self) -> dict[str, Any]:
        """Return everything but the questions, as plain values."""
        return {
            "plan": FORMAT, "metric": self.metric, "goal": self.goal, "design": self.design, "draw": self.draw,
            "estimator": self.estimator, "n": self.n, "budget": self.budget, "seed": self.seed, "top": self.top,
            "systems": list(self.systems), "topics": list(self.topics),
            "topic_weights": None if self.topic_weights is None else dict(self.topic_weights),
            "repeats": self.repeats, "round": self.round, "questions": len(self.questions),
            "units": len(self.propensities), "judgments": self.judgments, "price": self.price, "cost": self.cost,
            "relevant": None if self.relevant is None else dict(self.relevant),
            "outlook": [asdict(each) for each in self.outlook], "notes": list(self.notes),
        }  # fmt: skip


def make_plan(
    population: Population,
    n: int,
    *,
    goal: str = "absolute",
    design: str = "hedged",
    estimator: str = "difference",
    draw: str | None = None,
    beliefs: Beliefs | None = None,
    epsilon: float | None = None,
    mix: float | None = None,
    seed: int = 0,
    repeats: int = 1,
    price: int = 0,
    known: Floats | None = None,
    round_number: int = 1,
    topic_weights: Mapping[str, float] | None = None,
    relevant: Mapping[str, float] | None = None,
) -> Plan:
    """Draw what to judge with a budget of n judgments (n / repeats units, each judged `repeats` times).

    `known` holds utilities of units that were judged before (nan: not judged); they are not drawn again.
    """
    beliefs = Beliefs() if beliefs is None else beliefs
    kind = draw or usual_draw(design, estimator)
    refuse_misfit(estimator, kind, design)
    refuse_metric(estimator, population.metric)
    if estimator == "assisted":
        refuse_noise(repeats > 1)
    if repeats < 1 or price < 0:
        raise BadParameter("A unit is judged at least once, and a judgment's price is 0 or more.")
    if n < repeats:
        raise BadParameter(
            f"A budget of {n} doesn't pay for {repeats} judgments of one unit.", remedy="Raise it."
        )
    if beliefs.truth is not None or design_named(design).knowledge == "truth":
        raise BadParameter(
            "A plan can't know the truth.", remedy="Use another design; 'true' is for simulations."
        )
    draws = n // repeats
    size = sizes(population, design, goal, beliefs, epsilon=epsilon, mix=mix)
    if known is not None:
        size = np.where(np.isnan(known), size, 0.0)
    chances = lottery(population, kind, size, draws)
    drawn = chances.draw(rng_for(seed, "budget plan", round_number), population)
    targets = targets_of(population, goal)
    propensities = Propensities.of(population, chances.expected, beliefs.guess, beliefs.prior, known)
    questions = tuple(
        PlannedQuestion(
            propensities.topics[unit],
            propensities.items[unit],
            None if propensities.others is None else propensities.others[unit],
            int(times),
            float(chances.expected[unit]),
        )
        for unit, times in zip(drawn.units.tolist(), drawn.times.tolist(), strict=True)
    )
    settled = np.zeros(len(population), dtype=np.bool_) if known is None else ~np.isnan(known)
    return Plan(
        metric=str(population.metric),
        goal=goal,
        design=design_named(design).name,
        draw=kind,
        estimator=estimator,
        n=chances.n,
        budget=n,
        seed=seed,
        top=beliefs.top,
        systems=population.systems,
        topics=population.topics,
        topic_weights=topic_weights,
        repeats=repeats,
        round=round_number,
        outlook=_outlook(targets, chances, beliefs, estimator, settled),
        questions=questions,
        propensities=propensities,
        price=price,
        relevant=relevant,
        notes=tuple(_notes(kind, repeats, len(questions), draws, estimator)),
    )


def _notes(kind: str, repeats: int, questions: int, draws: int, estimator: str) -> list[str]:
    notes = []
    if estimator == "assisted":
        notes.append(
            "This metric is no sum: its estimates are approximate, and no width can be said beforehand."
        )
    if kind == "top":
        notes.append("TOP judges the best ranks and takes the rest as worthless: its estimates are biased.")
    if kind == "replacing" and questions < draws:
        notes.append(
            f"{draws - questions} of {draws} draws hit a unit again: it is judged once and counts as often."
        )
    if repeats > 1:
        notes.append(f"Each unit is judged {repeats} times, by different people where possible.")
    return notes


def _outlook(
    targets: Targets, chances: Lottery, beliefs: Beliefs, estimator: str, settled: Bools
) -> tuple[Outlook, ...]:
    weights = np.where(settled[:, None], 0.0, targets.weights)
    beyond = beyond_reach(weights, chances.expected, beliefs.top)
    widths: list[list[float | None]] = [[None] * len(targets)] * 2
    if chances.kind in ("replacing", "pivotal") and estimator != "assisted":
        reach = chances.expected > 0
        open_part = (
            1.0 - np.minimum(chances.expected, 1.0) if chances.kind == "pivotal" else np.ones(len(reach))
        )
        factor = np.divide(open_part, chances.expected, out=np.zeros(len(reach)), where=reach)
        for at, spread in enumerate((expected_spread(beliefs, estimator), most_spread(beliefs, estimator))):
            if spread is not None:
                variance = np.einsum("i,ij,ij->j", factor * spread, weights, weights)
                widths[at] = (2 * NORMAL_95 * np.sqrt(variance)).tolist()
    return tuple(
        Outlook(name, widths[0][at], float(beyond[at]), widths[1][at])
        for at, name in enumerate(targets.names)
    )


def expected_spread(beliefs: Beliefs, estimator: str) -> Floats | None:
    """Return the expected square of each unit in an estimator, if the beliefs hold; None without beliefs."""
    believed = beliefs.guess if beliefs.guess is not None else beliefs.prior
    if believed is None:
        return None
    if estimator_named(estimator).guess == "none":
        return believed * beliefs.top  # of a utility that is 0 or the highest
    return np.maximum(believed * (beliefs.top - believed), LEAST_DOUBT * beliefs.top**2)


def most_spread(beliefs: Beliefs, estimator: str) -> Floats | None:
    """Return the largest square that each unit can have in an estimator; None without beliefs."""
    believed = beliefs.guess if beliefs.guess is not None else beliefs.prior
    if believed is None:
        return None
    if estimator_named(estimator).guess == "none":
        return np.full(len(believed), beliefs.top**2)
    return np.maximum(believed, beliefs.top - believed) ** 2


def propensities_beside(path: str | os.PathLike[str]) -> Path:
    """Return the path of a plan's propensities: beside the plan, under its name."""
    place = Path(path)
    return place.with_name(f"{place.name.removesuffix('.gz').removesuffix('.jsonl')}.propensities.gz")


def write_plan(path: str | os.PathLike[str], plan: Plan) -> Path:
    """Write a plan, and its propensities beside it; return the path of these."""
    beside = propensities_beside(path)
    write_propensities(beside, plan.propensities)
    header = {**plan.header(), "propensities": beside.name}

    def question(each: PlannedQuestion) -> dict[str, Any]:
        row: dict[str, Any] = {"topic": each.topic, "item": each.item}
        if each.other is not None:
            row["other"] = each.other
        return {**row, "times": each.times, "expected": each.expected}

    rows = [header, *(question(each) for each in plan.questions)]
    write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))
    return beside


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan and its propensities."""
    source = read_source(path)
    rows = json_rows(source)
    number, header = next(rows, (1, {}))
    if header.get("plan") != FORMAT:
        raise BadFile.at(
            source.name,
            number,
            "This is not a budget plan of this version.",
            "Write one with: duelpool budget plan",
        )
    questions, lines = [], []
    for line, row in rows:
        try:
            questions.append(_question(row))
            lines.append(line)
        except BadRecord as error:
            raise BadFile.at(source.name, line, error.problem, error.remedy) from None
    if len(questions) != header.get("questions"):
        raise BadFile.at(
            source.name, None, f"The plan has {header.get('questions')} questions, and the file {len(questions)}.",
            "Fetch or write it again.",
        )  # fmt: skip
    try:
        beside = Path(source.name).with_name(str(header["propensities"]))
        exists = beside.is_file()
    except (KeyError, ValueError, OSError):  # none is named, or what is named can't be the name of a file
        raise BadFile.at(
            source.name, number, "The plan names no file of propensities.", "Plan again."
        ) from None
    if not exists:
        raise BadFile.at(
            source.name,
            number,
            f"The plan's propensities are missing: there is no file '{beside}'.",
            "Keep it beside the plan, or plan again.",
        )
    if bad := [name for name, kinds in _HEADER.items() if not isinstance(header.get(name), kinds)]:
        raise BadFile.at(
            source.name, number, f"'{bad[0]}' of the plan is absent or of another kind.", "Plan again."
        )
    propensities = read_propensities(beside)
    for line, question in zip(lines, questions, strict=True):
        at = propensities.places.get(question.key)
        if at is None or not math.isclose(propensities.expected[at], question.expected, rel_tol=1e-9):
            raise BadFile.at(
                source.name,
                line,
                f"The propensity of {' '.join(question.key)} is not the one in {beside.name}.",
                "Keep both files as they were written, or plan again.",
            )
    plain: dict[str, Any] = {
        key: header.get(key) for key in _HEADER if key not in ("systems", "topics", "outlook", "notes")
    }
    try:
        return Plan(
            **plain,
            systems=tuple(header["systems"]),
            topics=tuple(header["topics"]),
            outlook=tuple(Outlook(**each) for each in header["outlook"]),
            questions=tuple(questions),
            propensities=propensities,
            notes=tuple(header["notes"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadFile.at(
            source.name, number, "The plan's first line is damaged.", "Fetch the file again, or plan again."
        ) from None


_NUMBER, _TABLE = (int, float), (dict, type(None))
_HEADER: Mapping[str, Any] = {
    "metric": str, "goal": str, "design": str, "draw": str, "estimator": str, "n": int, "budget": int, "seed": int,
    "top": _NUMBER, "topic_weights": _TABLE, "repeats": int, "round": int, "price": int, "relevant": _TABLE,
    "systems": list, "topics": list, "outlook": list, "notes": list,
}  # fmt: skip
"""The fields of a plan's first line, and their types."""


def _question(row: Row) -> PlannedQuestion:
    topic, item, other = (text_of(row, name) for name in ("topic", "item", "other"))
    expected, times = number_of(row, "expected"), number_of(row, "times")
    if topic is None or item is None:
        raise BadRecord("A question has a topic and an item.", remedy="Write the plan again.")
    if expected is None or not expected > 0 or not math.isfinite(expected):
        raise BadRecord(
            f"The propensity ('expected') of '{item}' is {'absent' if expected is None else expected}.",
            remedy="Without the chance it was drawn with, nothing can be estimated: plan again.",
        )
    if times is None or times < 1:
        raise BadRecord(f"'{item}' was drawn {times} times.", remedy="Write the plan again.")
    return PlannedQuestion(topic, item, other, int(times), float(expected))
