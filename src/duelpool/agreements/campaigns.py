"""A campaign's votes: read from its log once, or kept up to date topic by topic."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from duelpool.agreements.findings import AgreementOptions, Finding
from duelpool.agreements.statistics import find_all
from duelpool.agreements.system_orders import GroupedVote, by_judges
from duelpool.agreements.verdict import verdict
from duelpool.agreements.votes import Feedback, TestRecord, Votes
from duelpool.background import give_way, locked, start_in_background
from duelpool.campaign import Campaign
from duelpool.campaign.log.many_topics import rows_by_topic
from duelpool.campaign.log.replay import CountedLines, TopicState, read_counted_topics
from duelpool.campaign.log.topic_cache import TopicCache
from duelpool.campaign.views.reading import topics_of
from duelpool.campaign.views.status import better_items
from duelpool.campaign.views.system_votes import read_votes
from duelpool.campaign.views.tally import AssessorTally, TopicTally
from duelpool.campaign.views.watch import FOLLOWED_AT_ONCE, Watch
from duelpool.campaign.work import participants
from duelpool.errors import DuelpoolError
from duelpool.records import Judgment
from duelpool.store import Reading, holdings, log
from duelpool.store.log import Line

IMPORTED = "imported"
AT_ONCE = 4000
"""Up to this many votes are compared at once; more are compared in a thread after the first time."""
KEPT = 32  # different questions of which the last answer is kept


@dataclass(frozen=True, slots=True)
class _TopicVotes:
    """One topic's votes, and the per-assessor counts of its test pairs."""

    votes: Votes
    tallies: Mapping[str, AssessorTally]


@dataclass(frozen=True, slots=True)
class _VoteSigns:
    """What the votes depend on: the ends of the topics' logs, the kinds of assessors, and the feedback."""

    places: Mapping[str, int]
    kinds: Mapping[str, str]
    feedback: int

    @property
    def key(self) -> tuple[object, ...]:
        """The signs, to be compared."""
        return tuple(self.places.items()), tuple(self.kinds.items()), self.feedback


def votes_of(campaign: Campaign) -> Votes:
    """Read the votes of a whole campaign; nothing is written. The groups are the kinds of assessors."""

    def work(tx: Reading) -> Votes:
        topics = _votes_by_topic(tx, topics_of(tx), _kinds(tx), better_items(tx))
        return replace(_joined(topics, _feedback(tx)), system_votes=_system_votes(tx, campaign))

    return campaign.read(work)


def _votes_by_topic(
    tx: Reading,
    topics: Sequence[str],
    kinds: Mapping[str, str],
    better: Mapping[str, str],
    places: Mapping[str, int] | None = None,
) -> list[_TopicVotes]:
    """Return the votes of each topic, by its whole log or up to a place."""
    counts = read_counted_topics(tx, topics)
    found = []
    for topic, rows in rows_by_topic(tx, topics):
        give_way()
        lines = (log.line_of(row) for row in rows if places is None or row.seq <= places[topic])
        found.append(_topic_votes(lines, counts[topic], kinds, better))
    return found


def _system_votes(tx: Reading, campaign: Campaign) -> list[GroupedVote]:
    """Return the votes between systems, where systems compete."""
    return by_judges(read_votes(tx, campaign).votes) if campaign.live.goal.of_systems else []


def _kinds(tx: Reading) -> dict[str, str]:
    return {name: row.kind for name, row in holdings.assessors(tx).items()}


def _feedback(tx: Reading) -> tuple[Feedback, ...]:
    return tuple(
        Feedback(each.assessor, each.assignment or each.topic or "", each.confidence, each.understanding)
        for each in participants.all_feedback(tx)
    )


def _topic_votes(
    lines: Iterable[Line], counts: CountedLines, kinds: Mapping[str, str], better: Mapping[str, str]
) -> _TopicVotes:
    """Turn a topic's lines into votes; judgments that don't count and test pairs are no votes."""
    tally = TopicTally(counts, better)
    judgments: list[Judgment] = []
    sessions: list[str] = []
    for line in lines:
        judgment = line.judgment
        if line.test_pair is not None:
            tally.add(line)
        elif judgment is not None and counts.keeps(line.seq) and not judgment.inferred:
            judgments.append(judgment)
            sessions.append(line.assignment or judgment.topic)
    votes = Votes.of(judgments, group=lambda name: kinds.get(name, IMPORTED), sessions=sessions)
    return _TopicVotes(votes, tally.assessors)


def _joined(topics: Iterable[_TopicVotes], feedback: tuple[Feedback, ...]) -> Votes:
    parts = list(topics)
    passed: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for part in parts:
        for name, tally in part.tallies.items():
            passed[name] += tally.tests_passed
            seen[name] += tally.tests_seen
    records = tuple(TestRecord(name, passed[name], seen[name]) for name in sorted(seen) if seen[name])
    return replace(Votes.joined([part.votes for part in parts]), feedback=feedback, tests=records)


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """Statistics, the votes behind them, and the verdict in words.

    `ready` is False while newer judgments are still worked in; without findings, it is the first time.
    """

    votes: Votes
    findings: tuple[Finding, ...]
    ready: bool = True
    verdict: tuple[str, ...] = ()


@dataclass(slots=True)
class Agreements:
    """The agreement of one campaign for readers who look again and again.

    Votes are kept by topic, and read again where the topic's log has grown; statistics are kept until a vote is new.
    """

    watch: Watch
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _topics: TopicCache[_TopicVotes] = field(default_factory=TopicCache)
    _key: object = None
    _kinds: Mapping[str, str] = field(default_factory=dict)
    _votes: Votes | None = None
    _found: dict[object, tuple[tuple[Finding, ...], tuple[str, ...]]] = field(default_factory=dict)
    _last: dict[object, tuple[object, Looked]] = field(default_factory=dict)
    _failed: set[object] = field(default_factory=set)
    _thread: threading.Thread | None = None

    def votes(self) -> Votes:
        """Return the campaign's votes now."""
        with locked(self._lock):
            return self._up_to_date(self._signs())

    def findings(
        self, names: Iterable[str] = (), criterion: str = "", options: AgreementOptions | None = None
    ) -> tuple[Finding, ...]:
        """Return statistics by name, all of them where none is named, of all criteria or of one."""
        return self.current(names, criterion, options).findings

    def current(
        self, names: Iterable[str] = (), criterion: str = "", options: AgreementOptions | None = None
    ) -> Looked:
        """Return statistics by name with the votes behind them, and the verdict on these votes."""
        return self._looked((tuple(names), criterion, options or AgreementOptions()))

    def look(self, criterion: str = "", options: AgreementOptions | None = None) -> Looked:
        """Return all statistics; for very many votes those of the last look or none, while a thread works them out."""
        asked = ((), criterion, options or AgreementOptions())
        last = self._last.get(asked)
        signs = self._signs()
        if last is not None and last[0] == signs.key:
            return last[1]
        many = sum(signs.places.values()) if last is None else len(last[1].votes)
        if many < AT_ONCE or asked in self._failed:
            return self._looked(asked)
        if self._thread is None or not self._thread.is_alive():
            self._thread = start_in_background(self._look_in_thread, asked)
        return Looked(Votes.of(()), (), ready=False) if last is None else replace(last[1], ready=False)

    def _look_in_thread(self, asked: tuple[tuple[str, ...], str, AgreementOptions]) -> None:
        try:
            self._looked(asked)
        except DuelpoolError:
            if len(self._failed) >= KEPT:
                self._failed.clear()
            self._failed.add(asked)  # the next look raises it

    def _looked(self, asked: tuple[tuple[str, ...], str, AgreementOptions]) -> Looked:
        with locked(self._lock):
            signs = self._signs()
            last = self._last.get(asked)
            if last is not None and last[0] == signs.key:
                return last[1]
            votes = self._up_to_date(signs)
            if asked not in self._found:
                some = votes.of_criterion(asked[1]) if asked[1] else votes
                self._found[asked] = find_all(some, asked[0], asked[2]), verdict(some, asked[2])
            findings, said = self._found[asked]
            looked = Looked(votes, findings, verdict=said)
            if len(self._last) >= KEPT:
                self._last.clear()
            self._last[asked] = (signs.key, looked)
            return looked

    def _up_to_date(self, signs: "_VoteSigns") -> Votes:
        if self._votes is None or signs.key != self._key:
            self._forget_others(signs.kinds)
            self._votes = self._read(signs.places, signs.kinds)
            self._found.clear()
            self._key, self._kinds = signs.key, signs.kinds
        return self._votes

    def _signs(self) -> "_VoteSigns":
        campaign = self.watch.campaign
        places = {view.status.topic: view.position for view in self.watch.look().topics}

        def work(tx: Reading) -> _VoteSigns:
            return _VoteSigns(places, _kinds(tx), participants.feedback_count(tx))

        return campaign.read(work)

    def _forget_others(self, kinds: Mapping[str, str]) -> None:
        """Forget the topics of assessors whose group has changed."""
        before = self._kinds
        moved = {name for name in kinds.keys() | before.keys() if kinds.get(name) != before.get(name)}
        if moved:
            self._topics.forget(lambda part: not moved.isdisjoint(part.votes.assessors))

    def _read(self, places: Mapping[str, int], kinds: Mapping[str, str]) -> Votes:
        campaign = self.watch.campaign
        better = campaign.read(better_items)

        def votes_in(state: TopicState) -> _TopicVotes:
            return _topic_votes(state.lines, state.counts, kinds, better)

        def read(stale: Sequence[str]) -> dict[str, _TopicVotes]:
            if len(stale) <= FOLLOWED_AT_ONCE:
                return {topic: self.watch.state_of(topic, votes_in) for topic in stale}
            found = campaign.read(lambda tx: _votes_by_topic(tx, stale, kinds, better, places))
            return dict(zip(stale, found, strict=True))

        self._topics.refresh(places, read)
        votes = _joined([self._topics[topic] for topic in places], campaign.read(_feedback))
        return replace(votes, system_votes=campaign.read(lambda tx: _system_votes(tx, campaign)))
