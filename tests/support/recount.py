"""The figures of a campaign, recounted from the rows of its tables in plain Python, by the words of the glossary."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from duelpool.campaign import Campaign
from duelpool.records import EFFECTS, Outcome
from duelpool.store import Reading, schema
from duelpool.strategies import make_strategy

Place = tuple[str, int]
Pair = tuple[str, str]


def _rows(tx: Reading, table: Any, *order: Any) -> list[Any]:
    return list(tx.connection.execute(select(table).where(table.c.campaign == tx.campaign).order_by(*order)))


def uncounted(rows: list[Any]) -> set[Place]:
    """Return the judgments that are retracted, or set aside by a rewind."""
    return retracted(rows) | set_aside(rows)


def retracted(rows: list[Any]) -> set[Place]:
    """Return the judgments whose last line about them is a retraction."""
    last = {(row.topic, row.refers_to): row.event for row in rows if row.refers_to is not None}
    return {place for place, event in last.items() if event == "retraction"}


def set_aside(rows: list[Any]) -> set[Place]:
    """Return the judgments of phases later than one that was rewound, given before the rewind."""
    aside: set[Place] = set()
    closed: dict[str, list[str]] = {}
    for row in rows:
        own = closed.setdefault(row.topic, [])
        if row.event == "phase-closed" and not is_announcement(row.phase):
            own.append(row.phase)
        elif row.event == "rewind":
            number = row.phase.removeprefix("challenge-").partition("/")[0]
            later = own.index(row.phase) if row.phase in own else 0
            if is_announcement(row.phase):  # the phases of this challenge and of later ones are after it
                while later < len(own) and _challenge(own[later]) < int(number):
                    later += 1
            del own[later:]
            aside |= {
                (each.topic, each.seq)
                for each in rows
                if each.topic == row.topic
                and each.event == "judgment"
                and each.seq < row.seq
                and (each.phase or "") not in {*own, row.phase, ""}
            }
    return aside


def _challenge(phase: str) -> int:
    return int(phase.removeprefix("challenge-").partition("/")[0]) if phase.startswith("challenge-") else 0


def is_announcement(phase: str) -> bool:
    """Whether a line announces a challenge."""
    return phase.startswith("challenge-") and "/" not in phase


def winner(row: Any) -> str | None:
    """Return the item that a judgment prefers."""
    effect = EFFECTS[Outcome(row.outcome)]
    if effect.left == effect.right:
        return None
    return str(row.left_item if effect.left > effect.right else row.right_item)


def pair(row: Any) -> Pair:
    """Return the pair of a judgment, the smaller id first."""
    low, high = sorted((row.left_item, row.right_item))
    return low, high


@dataclass
class Recount:
    """The rows of a campaign, and the counts that follow from them."""

    campaign: Campaign
    now: float = 0.0
    log: list[Any] = field(default_factory=list)
    questions: list[Any] = field(default_factory=list)
    assignments: list[Any] = field(default_factory=list)
    ledger: list[Any] = field(default_factory=list)
    people: dict[str, Any] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)
    items: dict[str, list[str]] = field(default_factory=dict)
    better: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, campaign: Campaign) -> "Recount":
        """Read all rows of a campaign."""
        return campaign.read(lambda tx: cls(campaign)._read(tx))

    def _read(self, tx: Reading) -> "Recount":
        self.now = tx.now
        self.log = _rows(tx, schema.log, schema.log.c.topic, schema.log.c.seq)
        self.questions = _rows(tx, schema.question)
        self.assignments = _rows(tx, schema.assignment)
        self.ledger = _rows(tx, schema.ledger, schema.ledger.c.id)
        self.people = {row.id: row for row in _rows(tx, schema.assessor)}
        topics = _rows(tx, schema.topic, schema.topic.c.position, schema.topic.c.id)
        self.topics = [row.id for row in topics if row.state == "open"]
        self.items = {topic: [] for topic in self.topics}
        for row in _rows(tx, schema.item, schema.item.c.position):
            if row.topic in self.items and row.twin_of is None and row.state == "in":
                self.items[row.topic].append(row.id)
        self.better = {row.id: row.better for row in _rows(tx, schema.test_pair)}
        return self

    # ---- judgments

    @property
    def judged(self) -> list[Any]:
        """Every judgment of the log."""
        return [row for row in self.log if row.event == "judgment" and row.topic in self.items]

    @property
    def targets(self) -> list[Any]:
        """Every judgment of a pair that is neither a test pair nor a repeated pair."""
        return [row for row in self.judged if row.test_pair is None and not row.repeated]

    @property
    def usable(self) -> list[Any]:
        """The usable judgments: those that count, no test pair, no repeat, no skip and no "cannot judge"."""
        out = uncounted(self.log)
        return [
            row
            for row in self.targets
            if EFFECTS[Outcome(row.outcome)].usable and (row.topic, row.seq) not in out and row.right_item
        ]

    @property
    def own_people(self) -> set[str]:
        """The campaign's own assessors, without those whose judgments came from a file."""
        return {name for name, row in self.people.items() if row.kind != "imported"}

    @property
    def tests(self) -> list[Any]:
        """The answers to test pairs that count: not undone, not skipped."""
        out = retracted(self.log)
        return [
            row
            for row in self.judged
            if row.test_pair is not None and row.outcome != "skip" and (row.topic, row.seq) not in out
        ]

    def passed(self, rows: list[Any]) -> int:
        """Return how many answers name the better item of their test pair."""
        return sum(winner(row) == self.better[row.test_pair] for row in rows)

    def held(self, topic: str) -> list[Any]:
        """Return the usable judgments of crowd workers whose assignment has not ended."""
        ended = {row.id for row in self.assignments if row.state != "open"}
        return [
            row
            for row in self.usable
            if row.topic == topic and row.assignment is not None and row.assignment not in ended
        ]

    # ---- questions

    def leased(self, topic: str) -> list[Any]:
        """Return the questions about target pairs that someone holds now."""
        return [
            row
            for row in self.questions
            if row.topic == topic
            and row.state == "leased"
            and row.expires >= self.now
            and row.test_pair is None
            and row.source != "repeated"
        ]

    def parked(self, topic: str) -> set[Pair]:
        """Return the pairs that too many people could not judge, by the answers that count."""
        out = uncounted(self.log)
        unable = {
            (pair(row), row.assessor)
            for row in self.targets
            if row.topic == topic and row.outcome == "cannot-judge" and (row.topic, row.seq) not in out
        }
        counts = Counter(each for each, _ in unable)
        return {each for each, number in counts.items() if number >= self.campaign.settings.parked_after}

    @property
    def active(self) -> int:
        """How many people hold a question now, of whatever kind."""
        return len(
            {row.assessor for row in self.questions if row.state == "leased" and row.expires >= self.now}
        )

    # ---- what is expected

    def newcomers(self, topic: str) -> list[list[str]]:
        """Return the items of each challenge of a topic that isn't undone."""
        standing: dict[str, list[str]] = {}
        for row in self.log:
            if row.topic == topic and row.event == "phase-closed" and is_announcement(row.phase):
                standing[row.phase] = json.loads(row.survivors)
            elif row.topic == topic and row.event == "rewind":
                standing.pop(row.phase, None)
        return list(standing.values())

    def pool(self, topic: str) -> list[str]:
        """Return the items of a topic without the newcomers of challenges that are undone."""
        rows = [row for row in self.log if row.topic == topic and row.event == "phase-closed"]
        came = {item for row in rows if is_announcement(row.phase) for item in json.loads(row.survivors)}
        stay = {item for items in self.newcomers(topic) for item in items}
        return [item for item in self.items[topic] if item not in came or item in stay]

    def expected_by_strategy(self, topic: str) -> float:
        """Return what the strategy expects of the topic's own items, and of each challenge: one best item and those."""
        settings = self.campaign.settings
        shape = make_strategy(settings.strategy, (), seed=settings.seed, cap=settings.cap)
        late = self.newcomers(topic)
        own = len(self.pool(topic)) - sum(map(len, late))
        return sum(shape.expected_judgments(size) for size in (own, *(1 + len(each) for each in late)))

    def all_pairs_state(self, topic: str) -> tuple[Counter[Pair], Counter[str], set[Pair]]:
        """Return the judgments of each pair that were told, the Bad votes of each item, and the pairs that wait."""
        held = {row.seq for row in self.held(topic)}
        told = [row for row in self.usable if row.topic == topic and row.seq not in held]
        bad: Counter[str] = Counter()
        for row in told:
            effect = EFFECTS[Outcome(row.outcome)]
            bad.update({row.left_item: effect.left_bad, row.right_item: effect.right_bad})
        waits = {pair(row) for row in self.held(topic)} | {(row.a, row.b) for row in self.leased(topic)}
        return Counter(map(pair, told)), bad, waits

    def kinds_of_rows(self) -> Counter[str]:
        """Return how often the rows have what some figures depend on."""
        votes = Counter((row.topic, pair(row)) for row in self.usable)
        wrong = [row for row in self.tests if winner(row) != self.better[row.test_pair]]
        return Counter(
            {
                "repeated pair": sum(bool(row.repeated) for row in self.judged),
                "held": sum(len(self.held(topic)) for topic in self.topics),
                "parked": sum(len(self.parked(topic)) for topic in self.topics),
                "several votes": sum(number > 1 for number in votes.values()),
                "set aside": len(set_aside(self.log)),
                "several phases": len({row.phase for row in self.usable}) > 2,
                "failed test": len(wrong),
            }
        )

    # ---- agreement

    def agreement(self, assessor: str | None = None) -> tuple[int, int]:
        """Return how often two people's votes on one pair name the same winner, and how often two people have voted.

        With an assessor: theirs with those of others.
        """
        votes = [(row.topic, pair(row), winner(row), row.assessor) for row in self.usable if winner(row)]
        same = compared = 0
        for at, one in enumerate(votes):
            for two in votes[at + 1 :]:
                if one[:2] != two[:2]:
                    continue
                if one[3] != two[3] and (assessor is None or assessor in (one[3], two[3])):
                    compared += 1
                    same += one[2] == two[2]
        return same, compared

    # ---- money

    def sum_of(self, *entries: str) -> int:
        """Return the sum of the ledger's entries of these kinds."""
        return sum(row.amount for row in self.ledger if row.entry in entries)

    @property
    def spent(self) -> int:
        """The sum of all entries."""
        return sum(row.amount for row in self.ledger)
