"""Crossed studies: a few assessors judge each topic in each kind of judgment, and no assessor sees a topic twice.

An assessor without questions takes a place: a topic that they haven't seen, in the kind of judgment that they have
had least. For each place a strategy of its own asks the questions: it gets the judgments of that assessor alone.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from duelpool.campaign.log.live_topics import LiveTopics
from duelpool.campaign.questions.proposals import NOTHING_OUTSTANDING, Outstanding, Proposals
from duelpool.campaign.settings import Settings
from duelpool.records import Kind, Proposal
from duelpool.store import CampaignStore, Reading, Writing, holdings, schema
from duelpool.store.leases import Wanted
from duelpool.store.statements import dialect_of


@dataclass(frozen=True, slots=True)
class StudyPlace:
    """One assessor's part of the study: a topic, in a kind of judgment."""

    topic: str
    assessor: str
    kind: Kind
    number: int


class CrossedDesign:
    """Which assessor judges which topic in which kind, in a crossed study."""

    def __init__(
        self, store: CampaignStore, settings: Settings, live: LiveTopics, proposals: Proposals
    ) -> None:
        self._store = store
        self._settings = settings
        self._live = live
        self._proposals = proposals

    def wanted(
        self, assessor: str, outstanding: Outstanding, n: int, topics: Collection[str] | None = None
    ) -> list[Wanted]:
        """Return an assessor's next questions: of a topic that they have begun, or of a new one.

        Where `topics` are given, no new place is taken.
        """
        tried: set[str] = set(self._proposals.held())
        while True:
            own = [
                place
                for place in self.places()
                if place.assessor == assessor and (topics is None or place.topic in topics)
            ]
            for place in own:
                if place.topic in tried:
                    continue
                tried.add(place.topic)
                questions = self._open(place, outstanding, n)
                if questions:
                    return questions
            if topics is not None or not self._store.write(lambda tx: self._take_place(tx, assessor)):
                return []

    def places(self) -> list[StudyPlace]:
        """Return the places that are taken, in the order of the topics."""
        return self._store.read(self._places)

    @property
    def done(self) -> bool:
        """Whether every place is taken and fully judged."""
        places = self.places()
        wanted = len(self._live.heads()) * len(self._settings.crossed) * self._settings.people_per_kind
        return len(places) >= wanted and not any(
            self._open(place, NOTHING_OUTSTANDING, 1) for place in places
        )

    def _open(self, place: StudyPlace, outstanding: Outstanding, n: int) -> list[Wanted]:
        judged = self._live.judged_by(place.topic, place.assessor)
        if place.kind is Kind.GRADE:
            done = {judgment.left for judgment in judged} | {
                a for a, _ in outstanding.own.get(place.topic, ())
            }
            proposals = [Proposal((item, "")) for item in self._live.items(place.topic) if item not in done]
        else:
            own = outstanding.own.get(place.topic, ())
            leased = [each for each in outstanding.leased.get(place.topic, ()) if each.pair in own]
            strategy = self._live.strategy_for(place.topic, f"{place.kind}/{place.assessor}")
            for judgment in judged:
                strategy.tell(judgment)
            proposals = strategy.ask(n + len(own), leased)
            proposals = [proposal for proposal in proposals if proposal.pair not in own]
        return [
            self._proposals.want(place.topic, each.pair, each, place.assessor, kind=place.kind)
            for each in proposals[:n]
        ]

    # ---- places

    def _places(self, tx: Reading) -> list[StudyPlace]:
        columns = schema.topic_person.c
        rows = tx.connection.execute(
            select(columns.topic, columns.assessor, columns.kind, columns.place).where(
                columns.campaign == tx.campaign, columns.place.is_not(None)
            )
        )
        order = {topic: at for at, topic in enumerate(holdings.topics(tx))}
        places = [StudyPlace(row.topic, row.assessor, Kind(row.kind), row.place) for row in rows]
        return sorted(places, key=lambda place: (order[place.topic], place.kind, place.number))

    def _take_place(self, tx: Writing, assessor: str) -> bool:
        """Take a free place for an assessor; return whether one was left. Unique keys decide between two at once."""
        places = self._places(tx)
        seen = {place.topic for place in places if place.assessor == assessor}
        had = Counter(place.kind for place in places if place.assessor == assessor)
        taken = Counter(place.topic for place in places)
        held = self._proposals.held()
        topics = [
            topic for topic in holdings.topics(tx, state="open") if topic not in seen and topic not in held
        ]
        for topic in sorted(topics, key=lambda topic: -taken[topic]):  # topics that were begun come first
            free = self._free(places, topic)
            for kind, number in sorted(free, key=lambda place: (had[place[0]], place[1])):
                if self._enter(tx, topic, assessor, kind, number):
                    return True
        return False

    def _free(self, places: Sequence[StudyPlace], topic: str) -> list[tuple[Kind, int]]:
        taken = {(place.kind, place.number) for place in places if place.topic == topic}
        return [
            (kind, number)
            for kind in self._settings.crossed
            for number in range(1, self._settings.people_per_kind + 1)
            if (kind, number) not in taken
        ]

    def _enter(self, tx: Writing, topic: str, assessor: str, kind: Kind, number: int) -> bool:
        row = {
            "campaign": tx.campaign,
            "topic": topic,
            "assessor": assessor,
            "kind": str(kind),
            "place": number,
        }
        new = dialect_of(tx.connection).insert(schema.topic_person).values(row).on_conflict_do_nothing()
        return tx.connection.execute(new.returning(schema.topic_person.c.place)).first() is not None
