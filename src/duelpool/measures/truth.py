"""What runs are compared with: grades, preferences, another ranking, or several of these at once."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self, TypeAlias

from duelpool.errors import BadParameter
from duelpool.files import Duplicates, Preferences, Qrels, Run
from duelpool.measures.grades import Grades
from duelpool.measures.pairs import Pairs, VoteRule
from duelpool.measures.rankings import ReadyRun

Record: TypeAlias = Qrels | Preferences | Run | Duplicates


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Grades, preferences and a reference run, each where there is one, made ready when first asked for.

    `duplicates` says which documents count as one, for the measures that merge them.
    """

    qrels: Qrels | None = None
    preferences: Preferences | None = None
    reference: Run | None = None
    duplicates: Duplicates | None = None
    _ready: dict[object, object] = field(default_factory=dict)

    @classmethod
    def of(cls, records: "Record | Truth | Iterable[Record]") -> Self:
        """Make a truth from one record, or from several of different kinds."""
        if isinstance(records, cls):
            return records
        several = [records] if isinstance(records, Qrels | Preferences | Run | Duplicates) else records
        by_kind: dict[str, Record] = {}
        kinds = {Qrels: "qrels", Preferences: "preferences", Run: "reference", Duplicates: "duplicates"}
        for record in several:  # type: ignore[union-attr]
            kind = kinds.get(type(record))
            if kind is None:
                raise BadParameter(
                    f"Runs can't be compared with a {type(record).__name__}.",
                    remedy="Give qrels, preferences or a run.",
                )
            if kind in by_kind:
                raise BadParameter(
                    f"Two {kind} were given.", remedy="Give one of a kind; score against each in turn."
                )
            by_kind[kind] = record
        return cls(**by_kind)  # type: ignore[arg-type]

    def records(self) -> "list[Record]":
        """Return what the truth was made of."""
        return [
            one for one in (self.qrels, self.preferences, self.reference, self.duplicates) if one is not None
        ]

    def merged(self) -> "Truth":
        """Return the truth by canonical ids, or itself where no duplicates are known."""
        duplicates = self.duplicates
        if duplicates is None:
            return self
        if "merged" not in self._ready:
            self._ready["merged"] = Truth(
                None if self.qrels is None else duplicates.in_qrels(self.qrels),
                None if self.preferences is None else duplicates.in_preferences(self.preferences),
                None if self.reference is None else duplicates.in_run(self.reference),
            )
        return self._ready["merged"]  # type: ignore[return-value]

    def topics(self) -> dict[str, set[str]]:
        """Return the topics of each record, by the name that messages use."""
        named = {"qrels": self.qrels, "preferences": self.preferences, "reference run": self.reference}
        if "topics" not in self._ready:
            self._ready["topics"] = {
                name: set(record.topics) for name, record in named.items() if record is not None
            }
        return self._ready["topics"]  # type: ignore[return-value]

    def grades(self) -> Grades:
        """Return the grades made ready."""
        if self.qrels is None:
            raise _lacks(self, "grades", "Give qrels (topic 0 docno grade).")
        if "grades" not in self._ready:
            self._ready["grades"] = Grades.of(self.qrels)
        return self._ready["grades"]  # type: ignore[return-value]

    def judged(self) -> Grades:
        """Return the grades of judged documents: those from 0 up, as in trec_eval."""
        if "judged" not in self._ready:
            self._ready["judged"] = self.grades().judged()
        return self._ready["judged"]  # type: ignore[return-value]

    def pairs(self, votes: VoteRule, inferred: bool, bad_votes: int) -> Pairs:
        """Return the preferences made ready under these rules; from grades only where inference is requested."""
        question = ("pairs", votes, inferred, bad_votes)
        if question not in self._ready:
            if self.preferences is not None:
                graded = None if self.qrels is None else self.grades().items
                self._ready[question] = Pairs.of(self.preferences, votes, inferred, bad_votes, graded)
            elif self.qrels is not None and inferred:
                self._ready[question] = Pairs.from_grades(self.grades())
            else:
                raise _lacks(
                    self,
                    "preferences",
                    "Give preferences (topic a b winner), or write inferred=True to take them from grades.",
                )
        return self._ready[question]  # type: ignore[return-value]

    def ready_reference(self) -> ReadyRun:
        """Return the reference run made ready."""
        if self.reference is None:
            raise _lacks(self, "a reference ranking", "Give a run (topic Q0 docno rank score tag).")
        if "reference" not in self._ready:
            self._ready["reference"] = ReadyRun(self.reference)
        return self._ready["reference"]  # type: ignore[return-value]


def _lacks(truth: Truth, what: str, remedy: str) -> BadParameter:
    named = {"grades": truth.qrels, "preferences": truth.preferences, "a reference run": truth.reference}
    present = " and ".join(name for name, record in named.items() if record is not None) or "nothing"
    return BadParameter(f"This measure needs {what}; given: {present}.", remedy=remedy)
