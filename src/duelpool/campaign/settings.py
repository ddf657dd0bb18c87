"""What a manager decides: every setting of a campaign, validated once."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

from duelpool.errors import BadParameter
from duelpool.records import Kind, Outcome
from duelpool.strategies import STRATEGIES
from duelpool.strategies.parameters import split_spec

Judges: TypeAlias = Literal["crowd", "dedicated"]
"""Who judges: paid workers in assignments with test pairs, or people who judge on and on, topic by topic."""

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
    criterion: str = "overall"
    ties: bool = False
    same: bool = False  # "these two are duplicates"
    cap: int = 6  # judgments of one pair, leases included
    targets: int = 10  # questions of an assignment that count
    tests: int = 3  # and test pairs beside them
    per_topic: int = 3  # of one assignment, where possible
    lease_seconds: float = 1800.0
    test_rule: TestRule = "share"
    test_share: float = 0.75
    bad_votes: int = 0  # of different assessors; 0: one when dedicated, two in a crowd
    parked_after: int = 3  # so many "cannot judge", and a pair waits for the manager
    reward: int = 200
    fee_percent: int = 20
    budget: int | None = None  # stops new assignments
    currency: str = "USD"
    guidelines: str = ""

    def __post_init__(self) -> None:
        name, _ = split_spec(self.strategy)
        if name not in STRATEGIES:
            from duelpool.errors import UnknownName

            raise UnknownName("strategy", name, STRATEGIES)
        positive = {"cap": self.cap, "targets": self.targets, "per_topic": self.per_topic}
        for field, value in positive.items():
            if value < 1:
                raise BadParameter(f"'{field}' is a whole number from 1 on, not {value}.")
        for field in ("tests", "bad_votes", "reward", "fee_percent", "seed"):
            if getattr(self, field) < 0:
                raise BadParameter(f"'{field}' is a whole number from 0 on, not {getattr(self, field)}.")
        if not (math.isfinite(self.lease_seconds) and self.lease_seconds > 0):
            raise BadParameter(f"A lease lasts more than 0 seconds, not {self.lease_seconds}.")
        if not 0 <= self.test_share <= 1:
            raise BadParameter(f"The share of test pairs is from 0 to 1, not {self.test_share}.")
        if self.judges not in {"crowd", "dedicated"}:
            raise BadParameter(f"Judges are 'crowd' or 'dedicated', not '{self.judges}'.")
        if self.test_rule not in {"share", "any-failed"}:
            raise BadParameter(f"The test rule is 'share' or 'any-failed', not '{self.test_rule}'.")

    @property
    def bad_votes_needed(self) -> int:
        """How many Bad votes of different assessors take an item out."""
        return self.bad_votes or (1 if self.judges == "dedicated" else 2)

    @property
    def outcomes(self) -> frozenset[Outcome]:
        """The answers that this campaign takes."""
        if self.kind is Kind.GRADE:
            return frozenset({Outcome.GRADE}) | _ALWAYS
        found = _PLAIN | _ALWAYS | {Outcome.FLIP_TIE, Outcome.FLIP_ABSTAIN}
        if self.kind is Kind.DEFINITE:
            found |= {Outcome.DEFINITELY_LEFT, Outcome.DEFINITELY_RIGHT}
        if self.ties:
            found |= {Outcome.TIE}
        if self.same:
            found |= {Outcome.SAME}
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the settings for the store."""
        return {**dataclasses.asdict(self), "kind": str(self.kind)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings that a store holds; what a newer version added stays at its default."""
        known = {field.name for field in dataclasses.fields(cls)}
        given = {name: value for name, value in values.items() if name in known}
        if "kind" in given:
            given["kind"] = Kind(given["kind"])
        return cls(**given)
