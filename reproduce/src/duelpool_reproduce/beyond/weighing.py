"""`duelpool reproduce weighing`: votes weighed by the chance that whoever gave them reads, beside excluding alone.

A crowd judges a campaign in assignments, as a campaign with `judges=crowd` hands them out: ten pairs, three at most of
one topic, and test pairs, or none. Some people guess. Who passes fewer than 75 % of the test pairs is excluded: what
they said no longer counts, is paid and is asked again. That rule alone is held against the same rule with weights,
which are worked out as a campaign works them out. Both have the same topics, people and answers to the same questions,
and the same number of judgments that count.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from duelpool import __version__
from duelpool.arrays import Floats
from duelpool.demo.collection import load_collection
from duelpool.judges import Dice, SimulatedJudge
from duelpool.judges.live import Utilities
from duelpool.judges.simulated import MatrixJudge, bradley_terry_wins
from duelpool.preferences.assessors import AssessorVotes
from duelpool.preferences.weights import fitted_weights, is_time_to_weigh
from duelpool.records import Judgment, Outcome, Pair, Proposal
from duelpool.seeds import rng_for
from duelpool.simulation import Progress
from duelpool_reproduce.base import Cell, Experiment, Section
from duelpool_reproduce.beyond.leading import LeadingFinalist
from duelpool_reproduce.cells import NOT_KEPT, Cells, file_name
from duelpool_reproduce.verdicts import ComparisonReport, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 60
TOPICS, ITEMS = 30, 16
PAIRS, PAIRS_OF_A_TOPIC = 10, 3
PASSED = 0.75
WAYS = ("75 % rule alone", "with weights")


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who judges: the share of people who guess, test pairs of an assignment, and assignments of a person."""

    careless: float
    tests: int = 3
    assignments: int = 3
    demo: bool = False  # the demo's questions and passages; otherwise items of normal strength

    @property
    def name(self) -> str:
        """What it is, in words."""
        whose = "the demo's, " if self.demo else ""
        return f"{whose}{100 * self.careless:.0f} % guess, {'test pairs' if self.tests else 'no tests'}"

    def judges(self, topics: int, seed: int) -> dict[str, tuple[SimulatedJudge, tuple[str, ...]]]:
        """Return how careful people judge each topic, and its items."""
        if self.demo:
            model = Utilities(load_collection().utilities)
            pools = list(model.pools.items())[:topics]
            return {topic: (model.judge(topic, items, seed), items) for topic, items in pools}
        items = tuple(f"d{number:02}" for number in range(ITEMS))
        made: dict[str, tuple[SimulatedJudge, tuple[str, ...]]] = {}
        for number in range(topics):
            strengths = rng_for(seed, "weighing", number).normal(0, 1, ITEMS)
            topic = f"t{number:02}"
            made[topic] = MatrixJudge(items, bradley_terry_wins(strengths), Dice(seed, topic)), items
        return made


CROWDS = (
    *(Crowd(careless) for careless in (0.4, 0.2, 0.0)),
    Crowd(0.2, demo=True),
    *(Crowd(careless, tests=0, assignments=10) for careless in (0.4, 0.2, 0.0)),
    Crowd(0.2, tests=0, assignments=10, demo=True),
)


class CrowdCampaign:
    """A campaign in memory: people come one after the other, and what counts goes to the topics' strategies."""

    def __init__(
        self,
        crowd: Crowd,
        judges: Mapping[str, tuple[SimulatedJudge, tuple[str, ...]]],
        seed: int,
        *,
        weigh: bool,
    ) -> None:
        self.crowd = crowd
        self.judges = judges
        self.seed = seed
        self.weigh = weigh
        self.lines = 0  # answers of all kinds: what is paid
        self.weights: dict[str, float] = {}
        self.counted: dict[str, list[Judgment]] = {topic: [] for topic in judges}
        self.guessed: set[str] = set()  # people who guess
        self.tests: dict[str, tuple[int, int]] = {}  # passed and answered, by person
        self._weighed_at = 0
        self._dice = Dice(seed, "weighing", "people")
        self._strategies = {topic: self._made(topic) for topic in judges}

    def run(self) -> None:
        """Let people come until every topic is done."""
        for number in count(1):
            if not self._sit(number):
                return

    def found(self) -> list[int]:
        """Return for each topic whether the item that leads the finals is a best one."""
        return [
            int(self._strategies[topic].best_one in judge.truth.best)
            for topic, (judge, _) in self.judges.items()
        ]

    def _made(self, topic: str) -> LeadingFinalist:
        """Return a topic's strategy with all that counts, by the weights in force."""
        made = LeadingFinalist(self.judges[topic][1], seed=self.seed, topic=topic, weights=self.weights)
        for judgment in self.counted[topic]:
            made.tell(judgment)
        return made

    def _sit(self, number: int) -> bool:
        """Let one person do their assignments; return whether there was anything to do."""
        name = f"w{number:05}"
        guesses = self._dice.roll(f"guesses\x1f{name}") < self.crowd.careless
        if guesses:
            self.guessed.add(name)
        seen: set[tuple[str, Pair]] = set()
        passed = tests = 0
        for turn in range(self.crowd.assignments):
            asked = self._assignment(name, turn, seen)
            if not asked:
                return turn > 0
            said = [self._judgment(name, number, topic, each, guesses) for topic, each in asked]
            self.lines += len(asked) + self.crowd.tests
            for test in range(self.crowd.tests):
                passed += not guesses or self._dice.roll(f"test\x1f{name}\x1f{turn}\x1f{test}") < 0.5
            tests += self.crowd.tests
            if tests:
                self.tests[name] = passed, tests
            if passed < PASSED * tests:
                self._exclude(name)
                return True
            for judgment in said:
                self.counted[judgment.topic].append(judgment)
                self._strategies[judgment.topic].tell(judgment)
            if self.weigh and is_time_to_weigh(self.lines, self._weighed_at):
                self._refit(name)
        return True

    def _assignment(self, name: str, turn: int, seen: set[tuple[str, Pair]]) -> list[tuple[str, Proposal]]:
        """Return pairs of topics at random, none that the person has seen."""
        topics = list(self._strategies)
        asked: list[tuple[str, Proposal]] = []
        for place in rng_for(self.seed, "weighing", name, turn).permutation(len(topics)).tolist():
            room = min(PAIRS_OF_A_TOPIC, PAIRS - len(asked))
            if not room:
                break
            for each in self._strategies[topics[place]].ask(room):
                if (topics[place], each.pair) not in seen:
                    seen.add((topics[place], each.pair))
                    asked.append((topics[place], each))
        return asked

    def _judgment(self, name: str, number: int, topic: str, asked: Proposal, guesses: bool) -> Judgment:
        where = f"{topic}\x1f{asked.pair[0]}\x1f{asked.pair[1]}\x1f{name}"
        left, right = asked.pair if self._dice.roll(f"side\x1f{where}") < 0.5 else asked.pair[::-1]
        if guesses:
            outcome = Outcome.LEFT if self._dice.roll(f"guess\x1f{where}") < 0.5 else Outcome.RIGHT
        else:
            outcome = self.judges[topic][0].answer(topic, left, right, number)
        more: dict[str, Any] = {"phase": asked.phase, "proposal": asked.proposal}
        return Judgment(topic, left, right, outcome, assessor=name, **more)

    def _exclude(self, name: str) -> None:
        for topic, judgments in self.counted.items():
            kept = [judgment for judgment in judgments if judgment.assessor != name]
            if len(kept) < len(judgments):
                self.counted[topic] = kept
                self._strategies[topic] = self._made(topic)

    def _refit(self, present: str) -> None:
        """Work the weights out again; a topic is told again where one changed, or who is present may judge it next."""
        votes = [judgment for judgments in self.counted.values() for judgment in judgments]
        before, self._weighed_at = self.weights, self.lines
        table = AssessorVotes.of(
            topics=[each.topic for each in votes],
            first=[each.left for each in votes],
            second=[str(each.right) for each in votes],
            shares=[each.effect.left for each in votes],
            assessors=[each.assessor for each in votes],
            sides=[1] * len(votes),
        )
        self.weights = fitted_weights(table, self.tests, before)
        changed = {
            name
            for name in before.keys() | self.weights.keys()
            if before.get(name, 1.0) != self.weights.get(name, 1.0)
        }
        for topic, judgments in self.counted.items():
            if present in changed or any(judgment.assessor in changed for judgment in judgments):
                self._strategies[topic] = self._made(topic)


@dataclass(frozen=True, slots=True)
class CrowdTrial:
    """One campaign in both ways: topics whose best was found, what was paid, and guesses among what counts."""

    found: tuple[tuple[int, ...], tuple[int, ...]]
    paid: tuple[int, int]
    guesses: tuple[float, float]

    @property
    def differences(self) -> Floats:
        """For each topic, found with weights less found without."""
        return np.subtract(self.found[1], self.found[0]).astype(np.float64)


def play(crowd: Crowd, topics: int, seed: int, trial: int) -> CrowdTrial:
    """Play one campaign in both ways."""
    drawn = int(rng_for(seed, "weighing", trial).integers(2**31))
    judges = crowd.judges(topics, drawn)
    found, paid, guesses = [], [], []
    for weigh in (False, True):
        campaign = CrowdCampaign(crowd, judges, drawn, weigh=weigh)
        campaign.run()
        votes = [each for judgments in campaign.counted.values() for each in judgments]
        found.append(tuple(campaign.found()))
        paid.append(campaign.lines)
        guesses.append(float(np.mean([each.assessor in campaign.guessed for each in votes])))
    return CrowdTrial((found[0], found[1]), (paid[0], paid[1]), (guesses[0], guesses[1]))


def kept_trial(cells: Cells, topics: int, seed: int, which: tuple[Crowd, int]) -> CrowdTrial:
    """Return a campaign from the folder of results; where it isn't there, play it and keep it."""
    crowd, trial = which
    wanted = {
        "duelpool": __version__,
        "strategy": LeadingFinalist.version,
        "crowd": repr(crowd),
        "topics": topics,
        "trial": trial,
        "seed": seed,
    }
    name = file_name(f"weighing {crowd.name}", f"trial {trial:03}", wanted)
    if (stored := cells.stored(name, wanted, _trial_of)) is not None:
        return stored
    played = play(crowd, topics, seed, trial)
    cells.keep(name, wanted, asdict(played))
    return played


def _trial_of(stored: dict[str, Any]) -> CrowdTrial:
    pairs = {name: tuple(values) for name, values in stored.items()}
    found = tuple(tuple(each) for each in pairs["found"])
    return CrowdTrial((found[0], found[1]), (pairs["paid"][0], pairs["paid"][1]), pairs["guesses"])


# ---- the experiment


@dataclass(frozen=True, slots=True)
class CrowdResult:
    """All campaigns of a crowd."""

    crowd: Crowd
    trials: tuple[CrowdTrial, ...]

    def rate(self, way: int) -> float:
        """Return the share of topics whose best item was found."""
        return float(np.mean([trial.found[way] for trial in self.trials]))

    def difference(self) -> tuple[float, float]:
        """Return how much more often weighing finds the best, with its standard error.

        The error is over campaigns or over topics, the larger of both: topics of a campaign share its people.
        """
        every = np.array([trial.differences for trial in self.trials])
        over_topics = float(every.std()) / sqrt(every.size)
        means = every.mean(axis=1)
        over_campaigns = float(means.std(ddof=1)) / sqrt(len(means)) if len(means) > 1 else 0.0
        return float(every.mean()), max(over_topics, over_campaigns)

    def bar(self) -> Measured:
        """Return the difference, which should not be below 0; where both ways find the same, no bar says anything."""
        value, error = self.difference()
        return Measured(
            self.crowd.name,
            (0, inf) if error else None,
            value,
            error=error,
            part=f"Found with weights less found without, {len(self.trials)} campaigns",
            digits=4,
            kind="bar",
            whole=1,
        )

    def row(self) -> tuple[Cell, ...]:
        """Return the row of a table."""
        value, error = self.difference()
        paid, guesses = (
            np.mean([getattr(trial, name) for trial in self.trials], axis=0) for name in ("paid", "guesses")
        )
        return (
            self.crowd.name,
            f"{self.rate(0):.3f}",
            f"{self.rate(1):.3f}",
            f"{value:+.3f}±{error:.3f}" if error else "0",
            f"{paid[0]:,.0f}, {paid[1]:,.0f}",
            f"{guesses[0]:.3f}",
        )


def weighing(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    *,
    crowds: Sequence[Crowd] = CROWDS,
    topics: int = TOPICS,
    cells: Cells = NOT_KEPT,
) -> ComparisonReport:
    """Play campaigns of each crowd in both ways, in turn, and compare what they find."""
    work = [(crowd, trial) for trial in range(trials) for crowd in crowds]
    run: Callable[[tuple[Crowd, int]], CrowdTrial] = partial(kept_trial, cells, topics, seed)
    played: dict[Crowd, list[CrowdTrial]] = {crowd: [] for crowd in crowds}
    done = map(run, work) if executor is None else executor.map(run, work)
    for (crowd, _), trial in zip(work, done, strict=True):
        played[crowd].append(trial)
        if progress is not None:
            progress(1)
    results = [CrowdResult(crowd, tuple(some)) for crowd, some in played.items()]
    table = Section(
        f"Best item found, {trials} campaigns a crowd",
        ("crowd", "alone", "weighed", "difference", "paid", "guesses"),
        tuple(result.row() for result in results),
    )
    remarks = (
        f"{topics} topics of {ITEMS} items with normal strengths (standard deviation 1), or the demo's questions with "
        "the passages of each; swissfinals with 7 judgments an item, and what leads its finals is returned. Careful "
        "people answer by Bradley-Terry and pass test pairs; who guesses passes each with one half.",
        "With test pairs a person does three assignments of ten pairs and three test pairs; without, ten of ten pairs.",
        "alone: by the 75 % rule. paid: answers that a campaign pays, alone and weighed, test pairs and those of "
        "excluded people among them. guesses: their share of what counts, by the 75 % rule alone.",
        "Bar: not below 0; within three standard errors of 0 there are too few campaigns to say. Standard errors are "
        "of the paired difference, over topics or over campaigns, the larger. A difference of 0 without one: every "
        "weight is 1, and both campaigns are the same.",
    )
    return ComparisonReport(
        "weighing",
        tuple(result.bar() for result in results),
        partial(_draw, results),
        remarks,
        (table,),
        trials,
        seed,
        {"topics": topics},
    )


def _draw(results: Sequence[CrowdResult]) -> "Figure":
    from duelpool.plots import Bars, panels

    names = [result.crowd.name for result in results]
    shares = {way: [result.rate(at) for result in results] for at, way in enumerate(WAYS)}
    return panels([Bars("Best item found", "share of topics", names, shares)])


WEIGHING = Experiment(
    "weighing",
    "Votes weighed instead of counted alike, in crowds in which some guess",
    TRIALS,
    len(CROWDS),
    weighing,
    shows={"Weighing": "found-rates at equal cost, with weights and by the 75 % rule alone"},
    quick=2,
    quick_form={"crowds": (CROWDS[0], CROWDS[4]), "topics": 6},
    seconds=(10, 3000),
    resumable=True,
)
