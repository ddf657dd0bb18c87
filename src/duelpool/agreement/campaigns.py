"""A campaign's votes: read from its log once, or kept between two looks and read again only where something changed."""

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlalchemy import func, select

from duelpool.agreement.findings import Finding, Options
from duelpool.agreement.statistics import find_all
from duelpool.agreement.votes import Feedback, TestRecord, Votes
from duelpool.campaign import Campaign
from duelpool.campaign.log.replay import TopicState
from duelpool.campaign.views.reading import standing_of, topics_of
from duelpool.campaign.views.watch import Watch
from duelpool.records import Judgment, Outcome
from duelpool.store import Reading, holdings, log, schema
from duelpool.store.log import Line

IMPORTED = "imported"
AT_ONCE = 20_000
"""So many votes are compared while somebody waits; more, once they have been compared before, beside."""
KEPT = 32  # different questions of which the last answer is kept

Record = tuple[int, int]  # test pairs passed, and seen


@dataclass(frozen=True, slots=True)
class _Part:
    """One topic's votes, and how everybody did on its test pairs."""

    votes: Votes
    tests: Mapping[str, Record]


@dataclass(frozen=True, slots=True)
class _Signs:
    """What tells that something has changed: how far the topics' logs go, who is of what kind, and feedback."""

    places: Mapping[str, int]
    kinds: Mapping[str, str]
    said: int

    @property
    def key(self) -> tuple[object, ...]:
        """The signs, to be compared."""
        return tuple(self.places.items()), tuple(self.kinds.items()), self.said


def votes_of(campaign: Campaign) -> Votes:
    """Read the votes of a whole campaign; nothing is written. The groups are the kinds of assessors."""

    def work(tx: Reading) -> Votes:
        kinds = _kinds(tx, campaign)
        better = _better(tx, campaign)
        parts = [
            _part(
                log.read_lines(tx, topic),
                standing_of(tx, topic).retracted,
                kinds,
                better,
            )
            for topic in topics_of(tx)
        ]
        return _joined(parts, _feedback(tx, campaign))

    return campaign.read(work)


def _kinds(tx: Reading, campaign: Campaign) -> dict[str, str]:
    return {name: row.kind for name, row in holdings.assessors(tx).items()}


def _better(tx: Reading, campaign: Campaign) -> dict[str, str]:
    return {pair.id: pair.better for pair in holdings.test_pairs(tx).values()}


def _feedback(tx: Reading, campaign: Campaign) -> tuple[Feedback, ...]:
    said = schema.feedback.c
    rows = tx.connection.execute(
        select(said.assessor, said.assignment, said.topic, said.confidence, said.understanding)
        .where(said.campaign == campaign.id)
        .order_by(said.id)
    )
    return tuple(
        Feedback(row.assessor, row.assignment or row.topic or "", row.confidence, row.understanding)
        for row in rows
    )


def _part(
    lines: Iterable[Line], retracted: Collection[int], kinds: Mapping[str, str], better: Mapping[str, str]
) -> _Part:
    """Turn a topic's lines into votes: what was retracted is no vote, and test pairs are a record of their own."""
    judgments: list[Judgment] = []
    sittings: list[str] = []
    tests: dict[str, Record] = {}
    for line in lines:
        judgment = line.judgment
        if judgment is None or line.seq in retracted or judgment.inferred:
            continue
        if line.test_pair is not None:
            if judgment.outcome is not Outcome.SKIP:
                passed, seen = tests.get(judgment.assessor, (0, 0))
                right = judgment.winner is not None and judgment.winner == better.get(line.test_pair)
                tests[judgment.assessor] = (passed + right, seen + 1)
            continue
        judgments.append(judgment)
        sittings.append(line.assignment or judgment.topic)
    return _Part(Votes.of(judgments, group=lambda name: kinds.get(name, IMPORTED), sittings=sittings), tests)


def _joined(parts: Iterable[_Part], feedback: tuple[Feedback, ...]) -> Votes:
    tests: dict[str, Record] = {}
    kept = list(parts)
    for part in kept:
        for name, (passed, seen) in part.tests.items():
            before = tests.get(name, (0, 0))
            tests[name] = (before[0] + passed, before[1] + seen)
    records = tuple(TestRecord(name, *record) for name, record in sorted(tests.items()))
    return replace(Votes.joined([part.votes for part in kept]), feedback=feedback, tests=records)


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """What statistics came to at a look; `ready` is False while newer judgments are still worked in."""

    votes: Votes
    findings: tuple[Finding, ...]
    ready: bool = True


@dataclass(slots=True)
class Agreements:
    """The agreement of one campaign, for those who look again and again.

    Votes are kept by topic, and read again where the topic's log has grown; what statistics came to is kept as long
    as no vote is new.
    """

    watch: Watch
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _parts: dict[str, tuple[int, _Part]] = field(default_factory=dict)
    _key: object = None
    _kinds: Mapping[str, str] = field(default_factory=dict)
    _votes: Votes | None = None
    _found: dict[object, tuple[Finding, ...]] = field(default_factory=dict)
    _last: dict[object, tuple[object, Looked]] = field(default_factory=dict)
    _beside: threading.Thread | None = None

    def votes(self) -> Votes:
        """Return the campaign's votes as they stand now."""
        with self._lock:
            return self._up_to_date(self._signs())

    def found(
        self, names: Iterable[str] = (), criterion: str = "", options: Options | None = None
    ) -> tuple[Finding, ...]:
        """Return statistics by name, all of them where none is named, of all criteria or of one."""
        return self._looked((tuple(names), criterion, options or Options())).findings

    def look(self, criterion: str = "", options: Options | None = None) -> Looked:
        """Return all statistics at once; of very many votes those of the last look, while newer are worked in."""
        asked = ((), criterion, options or Options())
        last = self._last.get(asked)
        if last is None or len(last[1].votes) < AT_ONCE:
            return self._looked(asked)
        if last[0] == self._signs().key:
            return last[1]
        if self._beside is None or not self._beside.is_alive():
            self._beside = threading.Thread(target=self._looked, args=(asked,), daemon=True)
            self._beside.start()
        return replace(last[1], ready=False)

    def _looked(self, asked: tuple[tuple[str, ...], str, Options]) -> Looked:
        with self._lock:
            signs = self._signs()
            votes = self._up_to_date(signs)
            if asked not in self._found:
                some = votes.of_criterion(asked[1]) if asked[1] else votes
                self._found[asked] = find_all(some, asked[0], asked[2])
            looked = Looked(votes, self._found[asked])
            if len(self._last) >= KEPT:
                self._last.clear()
            self._last[asked] = (signs.key, looked)
            return looked

    def _up_to_date(self, signs: "_Signs") -> Votes:
        if self._votes is None or signs.key != self._key:
            self._forget_others(signs.kinds)
            self._votes = self._read(signs.places, signs.kinds)
            self._found.clear()
            self._key, self._kinds = signs.key, signs.kinds
        return self._votes

    def _signs(self) -> "_Signs":
        campaign = self.watch.campaign
        places = {view.status.topic: view.position for view in self.watch.look().topics}

        def work(tx: Reading) -> _Signs:
            said = schema.feedback.c
            count = tx.connection.execute(
                select(func.count()).where(said.campaign == campaign.id)
            ).scalar_one()
            return _Signs(places, _kinds(tx, campaign), int(count))

        return campaign.read(work)

    def _forget_others(self, kinds: Mapping[str, str]) -> None:
        """Forget the topics of people who are of another group now."""
        before = self._kinds
        moved = {name for name in kinds.keys() | before.keys() if kinds.get(name) != before.get(name)}
        if moved:
            for topic, (_, part) in list(self._parts.items()):
                if not moved.isdisjoint(part.votes.assessors):
                    del self._parts[topic]

    def _read(self, places: Mapping[str, int], kinds: Mapping[str, str]) -> Votes:
        campaign = self.watch.campaign
        better = campaign.read(lambda tx: _better(tx, campaign))

        def part(state: TopicState) -> _Part:
            return _part(state.lines, state.counts.retracted, kinds, better)

        for topic in self._parts.keys() - places.keys():
            del self._parts[topic]
        for topic, position in places.items():
            if self._parts.get(topic, (-1,))[0] != position:
                self._parts[topic] = (position, self.watch.state_of(topic, part))
        feedback = campaign.read(lambda tx: _feedback(tx, campaign))
        return _joined([self._parts[topic][1] for topic in places], feedback)
