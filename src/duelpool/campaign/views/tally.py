"""One tally of what people did: per assessor, per pair and per topic, and what of it counts."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from duelpool.campaign.log.replay import CountedLines, TopicState, counted, usable
from duelpool.records import Judgment, Kind, Outcome
from duelpool.store import log
from duelpool.store.log import Line


@dataclass(frozen=True, slots=True)
class Vote:
    """One judgment of a pair; `not_counted` says why it scores nothing, empty where it does."""

    topic: str
    seq: int
    time: str
    left: str
    right: str | None
    outcome: str
    winner: str | None
    assessor: str
    seconds: float | None
    phase: str
    note: str
    sides_known: bool
    not_counted: str


@dataclass(frozen=True, slots=True)
class PairTally:
    """The votes on one pair: `a` is the smaller id; a tie is half a win for each."""

    topic: str
    a: str
    b: str
    wins_a: float
    wins_b: float
    votes: int
    counted: int
    assessors: int
    seconds: float | None


def why_not_counted(line: Line, counts: CountedLines) -> str:
    """Say why a judgment scores nothing; empty where it does."""
    judgment = line.judgment
    if judgment is None or usable(line, counts):
        return ""
    if line.seq in counts.retracted:
        return "retracted"
    if line.seq in counts.set_aside:
        return "set aside by a rewind"
    if line.test_pair is not None:
        return "test pair"
    if judgment.repeated:
        return "repeated pair"
    return "grade" if judgment.outcome is Outcome.GRADE else "no preference"


def vote_of(line: Line, judgment: Judgment, counts: CountedLines) -> Vote:
    """Return a judgment of the log as a vote."""
    return Vote(
        topic=line.topic,
        seq=line.seq,
        time=judgment.time,
        left=judgment.left,
        right=judgment.right,
        outcome=str(judgment.outcome),
        winner=judgment.winner,
        assessor=judgment.assessor,
        seconds=judgment.seconds,
        phase=judgment.phase,
        note=judgment.note or "",
        sides_known=judgment.sides_known,
        not_counted=why_not_counted(line, counts),
    )


def votes_on(state: TopicState, a: str, b: str) -> tuple[Vote, ...]:
    """Return every vote on a pair in the log's order, test pairs and retracted ones too."""
    pair = {a, b}
    return tuple(
        vote_of(line, line.judgment, state.counts)
        for line in state.lines
        if line.judgment is not None and {line.judgment.left, line.judgment.right} == pair
    )


@dataclass(slots=True)
class _Tally:
    wins: dict[str, float] = field(default_factory=dict)
    votes: int = 0
    counted: int = 0
    people: set[str] = field(default_factory=set)
    seconds: float = 0.0
    timed: int = 0


def pairs_of(
    state: TopicState, topic: str, assessors: Collection[str] | None = None
) -> tuple[PairTally, ...]:
    """Return a topic's judged pairs by their ids, without test pairs; with names, those that one of these judged."""
    tallies: dict[tuple[str, str], _Tally] = {}
    for line in state.lines:
        judgment = line.judgment
        if judgment is None or judgment.right is None or line.test_pair is not None:
            continue
        tally = tallies.setdefault(judgment.pair, _Tally())
        tally.votes += 1
        tally.people.add(judgment.assessor)
        if judgment.seconds is not None:
            tally.seconds += judgment.seconds
            tally.timed += 1
        if usable(line, state.counts):
            tally.counted += 1
            effect = judgment.effect
            for item, share in ((judgment.left, effect.left), (judgment.right, effect.right)):
                tally.wins[item] = tally.wins.get(item, 0.0) + share
    return tuple(
        PairTally(
            topic=topic,
            a=a,
            b=b,
            wins_a=tally.wins.get(a, 0.0),
            wins_b=tally.wins.get(b, 0.0),
            votes=tally.votes,
            counted=tally.counted,
            assessors=len(tally.people),
            seconds=tally.seconds / tally.timed if tally.timed else None,
        )
        for (a, b), tally in sorted(tallies.items())
        if assessors is None or not tally.people.isdisjoint(assessors)
    )


@dataclass(frozen=True, slots=True)
class Loss:
    """What excluding an assessor takes from a topic: counted judgments, pairs that have one, and pairs asked again.

    Only what lies in a phase that hasn't closed is asked again: a closed phase keeps its survivors. `again` counts
    those judgments.
    """

    judgments: int
    pairs: int
    opened: int
    again: int


def loss_of(lines: Iterable[Line], counts: CountedLines, assessor: str) -> Loss:
    """Return what excluding an assessor would take from a topic, by these lines of the assessor or of all."""
    judgments = again = 0
    pairs, opened = set(), set()
    for line in lines:
        judgment = line.judgment
        if judgment is None or judgment.assessor != assessor or not counted(line, counts):
            continue
        judgments += 1
        is_open = judgment.phase not in counts.closed
        again += is_open
        if usable(line, counts):
            pairs.add(judgment.pair)
            if is_open:
                opened.add(judgment.pair)
    return Loss(judgments, len(pairs), len(opened), again)


def passed_test(judgment: Judgment, better: str | None) -> bool | None:
    """Say whether an answer to a test pair names its better item; None where the pair was skipped."""
    if judgment.outcome is Outcome.SKIP:
        return None
    return judgment.winner is not None and judgment.winner == better


def agreement_with_others(votes: Sequence[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Return, by assessor, how many votes of others on a pair name the same winner as theirs, and of how many.

    `votes` are assessors and winners. Unnamed votes count as those of different people; their pairs count twice, as
    those of two names do: once from each side.
    """
    if len(votes) <= _FEW:
        return _agreement_of_few(votes)
    winners = Counter(winner for _, winner in votes)
    own_votes = Counter(assessor for assessor, _ in votes)
    own_winners = Counter(votes)
    result: dict[str, tuple[int, int]] = {}
    for assessor, winner in votes:
        same, own = (own_winners[assessor, winner], own_votes[assessor]) if assessor else (1, 1)
        agreed, compared = result.get(assessor, (0, 0))
        result[assessor] = (agreed + winners[winner] - same, compared + len(votes) - own)
    return result


_FEW = 4


def _agreement_of_few(votes: Sequence[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Compare each two votes: most pairs have few, and for them this is faster."""
    result = dict.fromkeys((assessor for assessor, _ in votes), (0, 0))
    for at, (one, first) in enumerate(votes):
        for other, second in votes[at + 1 :]:
            if one != other or not one:
                for name in (one, other):
                    agreed, compared = result[name]
                    result[name] = (agreed + (first == second), compared + 1)
    return result


@dataclass(slots=True)
class AssessorTally:
    """Counts of one assessor's work, added up over topics."""

    judgments: int = 0
    usable: int = 0
    own_pairs: int = 0  # of the usable ones, pairs rather than grades
    left: int = 0
    right: int = 0
    seconds: float = 0.0
    timed: int = 0
    tests_passed: int = 0
    tests_seen: int = 0
    agreed: int = 0
    compared: int = 0
    topics: int = 0

    def add(self, other: "AssessorTally", sign: int = 1) -> None:
        """Add the counts of other topics, or subtract them with sign -1."""
        self.judgments += sign * other.judgments  # written out: a large campaign has many of them
        self.usable += sign * other.usable
        self.own_pairs += sign * other.own_pairs
        self.left += sign * other.left
        self.right += sign * other.right
        self.seconds += sign * other.seconds
        self.timed += sign * other.timed
        self.tests_passed += sign * other.tests_passed
        self.tests_seen += sign * other.tests_seen
        self.agreed += sign * other.agreed
        self.compared += sign * other.compared
        self.topics += sign * other.topics


@dataclass(slots=True)
class TopicTally:
    """Counts of one topic's log: per assessor, per graded item, and the phases that closed.

    `better` names the better item of each test pair. Add the lines in the order of the log, then call `finish`; more
    lines may follow, as long as the same lines count.
    """

    counts: CountedLines
    better: Mapping[str, str]
    usable: int = 0
    assessors: dict[str, AssessorTally] = field(default_factory=dict)
    grades: Counter[str] = field(default_factory=Counter)
    closings: list[Line] = field(default_factory=list)
    _winners: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)
    _finished: bool = False

    def add(self, line: Line) -> None:
        """Count one line of the log."""
        judgment = line.judgment
        if judgment is None:
            if line.event == log.PHASE_CLOSED and line.seq not in self.counts.rewound:
                self.closings.append(line)
            return
        own = self.assessors.get(judgment.assessor)
        if own is None:
            own = self.assessors[judgment.assessor] = AssessorTally(topics=1)
        if judgment.seconds is not None:
            own.seconds += judgment.seconds
            own.timed += 1
        if line.test_pair is not None:
            retracted = line.seq in self.counts.retracted
            passed = None if retracted else passed_test(judgment, self.better.get(line.test_pair))
            own.tests_seen += passed is not None
            own.tests_passed += bool(passed)
            return
        if judgment.repeated:
            return
        effect = judgment.effect
        kept = self.counts.keeps(line.seq)
        own.judgments += 1
        own.usable += effect.usable and kept
        if judgment.sides_known and kept:
            own.left += effect.left > effect.right
            own.right += effect.right > effect.left
        if judgment.kind is Kind.GRADE:
            if judgment.outcome is Outcome.GRADE and kept:
                self.grades[judgment.left] += 1
        elif effect.usable and kept:
            self._add_usable(judgment, own)

    def _add_usable(self, judgment: Judgment, own: AssessorTally) -> None:
        self.usable += 1
        own.own_pairs += 1
        winner = judgment.winner
        if winner is not None:
            pair = judgment.pair
            votes = self._winners.get(pair)
            if votes is None:
                votes = self._winners[pair] = []
            if self._finished:
                self._compare(votes, -1)
            votes.append((judgment.assessor, winner))
            if self._finished:
                self._compare(votes)

    def finish(self) -> "TopicTally":
        """Compare each vote that prefers an item with the votes of others on the same pair."""
        if not self._finished:
            for votes in self._winners.values():
                self._compare(votes)
        self._finished = True
        return self

    def _compare(self, votes: Sequence[tuple[str, str]], sign: int = 1) -> None:
        for assessor, (agreed, compared) in agreement_with_others(votes).items():
            own = self.assessors[assessor]
            own.agreed += sign * agreed
            own.compared += sign * compared
