"""What a manager decides: every setting of a campaign, validated once."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias, get_args

from duelpool.campaign.settings.welcome import (
    STEPS,
    CheckQuestion,
    PracticePair,
    Step,
    check_codes,
    check_languages,
    check_parameter,
    check_steps,
)
from duelpool.errors import BadParameter, UnknownName, known_names
from duelpool.net.addresses import check_link
from duelpool.panels import PANELS, PanelSettings
from duelpool.records import Kind, Outcome
from duelpool.strategies import make_strategy

Judges: TypeAlias = Literal["crowd", "dedicated"]
"""Who judges: paid workers in assignments with test pairs, or people who judge on and on, topic by topic."""

Stage: TypeAlias = Literal["grading", "preferences"]
"""What is asked now: a grade for one item at a time, or which of two is better."""

Scale: TypeAlias = Literal["binary", "abc", "five"]

PlannedRow: TypeAlias = tuple[str, str, str, float, int]
"""A question of a budget plan: topic, item, other item or "", the chance it was drawn with, judgments wanted."""

SCALES: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"binary": (0.0, 1.0), "abc": (0.0, 1.0, 2.0), "five": (0.0, 1.0, 2.0, 3.0, 4.0)}
)
"""The grades of each scale, the worst first."""

Flips: TypeAlias = Literal["tie", "abstain"]
"""What a model that changes its mind with the sides has said: that both are as good, or nothing."""

TestRule: TypeAlias = Literal["share", "any-failed"]
"""Who goes: whoever falls below a share of all test pairs so far, or every assignment with a failed one."""

_PLAIN = frozenset({Outcome.LEFT, Outcome.RIGHT, Outcome.LEFT_BAD, Outcome.RIGHT_BAD, Outcome.BOTH_BAD})
_ALWAYS = frozenset({Outcome.CANNOT_JUDGE, Outcome.SKIP})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a campaign. Money is in minor units, time in seconds."""

    strategy: str = "swissfinals"
    seed: int = 1
    judges: Judges = "dedicated"
    kind: Kind = Kind.PREFERENCE
    crossed: tuple[Kind, ...] = ()  # a study: each topic in each of these kinds, by different people
    people_per_kind: int = 2  # of a crossed study, for each topic
    criterion: str = "overall"
    ties: bool = False
    same: bool = False  # "these two are duplicates"
    flips: Flips = "tie"  # a model that chooses another item when the sides are changed: a tie, or no answer
    cap: int = 6  # judgments of one pair, leases included
    stage: Stage = "preferences"
    scale: Scale = "binary"  # of the grading stage
    grades_per_item: int = 1
    thin: int | None = None  # after grading: take grades top down until so many are in
    targets: int = 10  # questions of an assignment that count
    tests: int = 3  # and test pairs beside them
    per_topic: int = 3  # of one assignment, where possible
    repeat_every: int = 0  # after so many answers one pair is put to the same person again; 0: never
    lease_seconds: float = 1800.0
    test_rule: TestRule = "share"
    test_share: float = 0.75
    bad_votes: int = 0  # of different assessors; 0: one when dedicated, two in a crowd
    parked_after: int = 3  # so many "cannot judge", and a pair waits for the manager
    reward: int = 200
    fee_percent: int = 20
    budget: int | None = None  # stops new assignments
    currency: str = "USD"
    guidelines: str = ""  # Markdown; empty: the page's own guide
    steps: tuple[Step, ...] = STEPS  # of a first visit
    consent: str = ""  # Markdown; empty: the page's own words
    check: tuple[CheckQuestion, ...] = ()  # none: the page's own, about its own guide
    practice: tuple[PracticePair, ...] = ()  # none: the page's own two
    feedback: bool = True  # a page after an assignment, or after a topic
    context: bool = True  # other items, or the topic's snippets, to look at while judging
    assignments_each: int = 3  # the most that one person may do
    identity_parameter: str = "worker"  # of the link: who somebody is outside
    completion_code: str = ""
    completion_url: str = ""
    panel: str = ""  # where paid people come from: a name of PANELS
    panel_study: str = ""  # the panel's id for this campaign
    failed_code: str = ""  # after failed test pairs; empty: the completion code, for they are paid
    stopped_code: str = ""  # after stopping early
    no_work_code: str = ""  # when there was nothing to judge
    languages: tuple[str, ...] = ()  # that the page speaks, the usual one first; none: all it knows
    plan: tuple[PlannedRow, ...] = ()  # a budget plan to work off: it takes the strategy's place

    def __post_init__(self) -> None:
        make_strategy(self.strategy, (), seed=self.seed, cap=self.cap)  # refuses what it can't be made of
        for field, choice, known in (
            ("judges", self.judges, get_args(Judges)),
            ("test_rule", self.test_rule, get_args(TestRule)),
            ("flips", self.flips, get_args(Flips)),
            ("stage", self.stage, get_args(Stage)),
            ("scale", self.scale, tuple(SCALES)),
        ):
            if choice not in known:
                raise BadParameter(f"'{field}' can't be '{choice}'.", remedy=known_names(choice, known))
        if self.kind is Kind.GRADE:
            raise BadParameter(
                "A campaign's kind is 'preference' or 'definite'.",
                remedy="For grades, start with stage 'grading'.",
            )
        if self.crossed:
            self._check_crossing()
        positive = {
            "people_per_kind": self.people_per_kind,
            "cap": self.cap,
            "targets": self.targets,
            "per_topic": self.per_topic,
            "grades_per_item": self.grades_per_item,
            "parked_after": self.parked_after,
            "assignments_each": self.assignments_each,
        }
        for field, value in positive.items():
            if value < 1:
                raise BadParameter(f"'{field}' is a whole number from 1 on, not {value}.")
        for field in ("tests", "repeat_every", "bad_votes", "reward", "fee_percent", "seed"):
            if getattr(self, field) < 0:
                raise BadParameter(f"'{field}' is a whole number from 0 on, not {getattr(self, field)}.")
        if not (math.isfinite(self.lease_seconds) and self.lease_seconds > 0):
            raise BadParameter(f"A lease lasts more than 0 seconds, not {self.lease_seconds}.")
        if not 0 <= self.test_share <= 1:
            raise BadParameter(f"The share of test pairs is from 0 to 1, not {self.test_share}.")
        check_steps(self.steps)
        check_languages(self.languages)
        check_parameter(self.identity_parameter)
        check_link(self.completion_url)
        if self.panel and self.panel not in PANELS:
            raise UnknownName("panel", self.panel, PANELS)
        if self.panel:
            check_codes(self.completion_code, self.failed_code, self.stopped_code, self.no_work_code)

    def _check_crossing(self) -> None:
        if len(set(self.crossed)) != len(self.crossed):
            raise BadParameter("A crossed study names each kind of judgment once.")
        if self.judges != "dedicated" or self.stage != "preferences":
            raise BadParameter(
                "A crossed study is for dedicated assessors, without stages.",
                remedy="Leave out --judges crowd and the grading stage; a kind may be 'grade'.",
            )
        if not make_strategy(self.strategy, (), seed=self.seed, cap=self.cap).pools_judgments:
            raise BadParameter(
                f"In a crossed study each person has a strategy to themselves, and '{self.strategy}' has phases.",
                remedy="Take allpairs, sorting, carry-on or swissfinals.",
            )

    def planned(self, topic: str) -> tuple[PlannedRow, ...]:
        """Return a topic's questions of the plan."""
        return tuple(row for row in self.plan if row[0] == topic)

    @property
    def panel_settings(self) -> PanelSettings:
        """What the panel has to know."""
        return PanelSettings(
            panel=self.panel,
            study=self.panel_study,
            complete=self.completion_code,
            failed=self.failed_code,
            stopped=self.stopped_code,
            no_work=self.no_work_code,
            url=self.completion_url,
            parameter=self.identity_parameter,
            reward=self.reward,
            fee_percent=self.fee_percent,
            currency=self.currency,
        )

    @property
    def bad_votes_needed(self) -> int:
        """How many Bad votes of different assessors take an item out."""
        return self.bad_votes or (1 if self.judges == "dedicated" else 2)

    @property
    def grades(self) -> tuple[float, ...]:
        """The grades that the grading stage takes."""
        return SCALES[self.scale]

    @property
    def slots(self) -> int:
        """How many judgments one question may get: the cap of a pair, or the grades of an item."""
        if self.crossed:
            return self.people_per_kind * len(self.crossed)
        return self.grades_per_item if self.stage == "grading" else self.cap

    @property
    def outcomes(self) -> frozenset[Outcome]:
        """The answers that this campaign takes now."""
        kinds = self.crossed or (Kind.GRADE if self.stage == "grading" else self.kind,)
        return frozenset().union(*(self.outcomes_of(kind) for kind in kinds))

    def outcomes_of(self, kind: Kind) -> frozenset[Outcome]:
        """Return the answers to a question of this kind."""
        if kind is Kind.GRADE:
            return frozenset({Outcome.GRADE}) | _ALWAYS
        found = _PLAIN | _ALWAYS | {Outcome.FLIP_TIE, Outcome.FLIP_ABSTAIN}
        if kind is Kind.DEFINITE:
            found |= {Outcome.DEFINITELY_LEFT, Outcome.DEFINITELY_RIGHT}
        if self.ties:
            found |= {Outcome.TIE}
        if self.same:
            found |= {Outcome.SAME}
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the settings for the store."""
        kinds = [str(kind) for kind in self.crossed]
        return {**dataclasses.asdict(self), "kind": str(self.kind), "crossed": kinds}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings that a store holds; what a newer version added stays at its default."""
        known = {field.name for field in dataclasses.fields(cls)}
        given = {name: value for name, value in values.items() if name in known}
        if "kind" in given:
            given["kind"] = Kind(given["kind"])
        given["crossed"] = tuple(Kind(kind) for kind in given.get("crossed", ()))
        for name in ("steps", "languages"):
            if name in given:
                given[name] = tuple(given[name])
        for name, make in (("check", CheckQuestion.from_json), ("practice", PracticePair.from_json)):
            if name in given:
                given[name] = tuple(make(each) for each in given[name])
        given["plan"] = tuple(tuple(row) for row in given.get("plan", ()))
        return cls(**given)
