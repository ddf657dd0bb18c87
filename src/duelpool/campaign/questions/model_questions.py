"""Which questions a language model is asked, where prices decide between models and people.

A model is first tried on pairs that people have judged, drawn at random. Once it is known to be worth its price, it is
asked what the strategies propose, except for pairs that are kept for people: one in ten, at random, and all of a topic
once models have used half of its budget. A model that was dropped is asked nothing.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import islice

from sqlalchemy import func, select

from duelpool.campaign.log import campaign_events
from duelpool.campaign.log.campaign_events import KEPT, ModelSource, ModelSources
from duelpool.campaign.log.live_topics import LiveTopics
from duelpool.campaign.log.replay import read_uncounted
from duelpool.campaign.settings import Settings
from duelpool.judges.base import Dice
from duelpool.records import EFFECTS, Kind, Outcome, Pair, Proposal
from duelpool.store import CampaignStore, Reading, holdings, leases, log, schema
from duelpool.store.leases import Wanted

TRIAL = 40
"""Judged pairs that a model is tried on at least, if there are as many."""

TRIAL_COST = 0.1
"""What a trial may cost beyond that, as a share of the cost of people's judgments so far."""

MODELS_SHARE = 0.5
"""The most that models use of a topic's budget."""

_AT_ONCE = 8  # pairs of a trial that are chosen: others may be at their cap

NOT_PEOPLE = ("llm", "program")
"""Kinds of assessors that a model isn't held against."""


@dataclass(frozen=True, slots=True)
class JudgedPairs:
    """The pairs that people have judged, by topic, in the order of a trial, and how many judgments they gave."""

    pairs: tuple[tuple[str, Pair], ...]
    judgments: int
    lines: int

    def trial_size(self, prices: tuple[float, float]) -> int:
        """Return how many of the pairs a model is tried on."""
        person, model = prices
        return min(len(self.pairs), max(TRIAL, int(TRIAL_COST * self.judgments * person / model)))


class ModelQuestions:
    """Says what models are asked; of people it knows nothing."""

    def __init__(self, store: CampaignStore, settings: Settings, live: LiveTopics) -> None:
        self._store = store
        self._settings = settings
        self._live = live
        self._dice = Dice(settings.seed, "models and people")
        self._judged: JudgedPairs | None = None

    def decided(self, assessor: str) -> ModelSource | None:
        """Return what was decided about a model; None for people, and where models are asked like them."""
        if self._settings.prices is None or self._settings.stage == "grading":
            return None

        def work(tx: Reading) -> ModelSource | None:
            if assessor not in campaign_events.models(tx):
                return None
            found = campaign_events.last_models(tx)
            nothing = ModelSource(
                "dropped", 0.0, 0.0, 0.0, 0, 0.0, 0.0, 0.0, 0.0
            )  # until something is decided
            return nothing if found is None else found.models.get(assessor, nothing)

        return self._store.read(work)

    def trial(self, assessor: str, topics: Collection[str]) -> list[Wanted]:
        """Return the judged pairs of topics that a model may be tried on next, each with its chance to be drawn."""
        prices = self._settings.prices
        if prices is None:
            return []
        judged = self._judged_pairs()
        size = judged.trial_size(prices)
        seen = self._store.read(lambda tx: _asked(tx, assessor))
        if len(seen) >= size:
            return []
        chance = size / len(judged.pairs)
        fresh = (
            (topic, pair)
            for topic, pair in judged.pairs
            if topic in topics and (topic, pair) not in seen and {*pair} <= {*self._live.items(topic)}
        )
        return [self._want(topic, pair, assessor, chance) for topic, pair in islice(fresh, _AT_ONCE)]

    def _want(self, topic: str, pair: Pair, assessor: str, chance: float) -> Wanted:
        swap = self._dice.roll("\x1f".join(("side", topic, *pair, assessor))) < 0.5
        left, right = pair[::-1] if swap else pair
        settings = self._settings
        return Wanted(
            topic,
            left,
            right,
            criterion=settings.criterion,
            stage=settings.stage,
            kind=settings.kind,
            propensity=chance,
        )

    def _judged_pairs(self) -> JudgedPairs:
        """Return the judged pairs, of a moment ago where the log has grown by little."""
        lines = self._store.read(log.line_count)
        if self._judged is None or not self._judged.lines <= lines <= 1.1 * self._judged.lines:
            self._judged = self._store.read(lambda tx: read_judged_pairs(tx, self._dice, lines))
        return self._judged

    def open_topics(self, source: ModelSource, topics: Collection[str]) -> list[str]:
        """Return the topics that a model is asked about: those where it pays, and models may still judge."""
        found = self._store.read(campaign_events.last_models)
        used = self._store.read(lambda tx: _used(tx, found))

        def room(topic: str) -> bool:
            most = self._live.look(
                topic, None, lambda part: part.most_judgments(len(self._live.items(topic)))
            )
            return used.get(topic, 0.0) + source.share_in(topic) <= MODELS_SHARE * (most or 0)

        return [topic for topic in topics if topic not in source.closed and room(topic)]

    def for_model(self, topic: str, proposal: Proposal) -> bool:
        """Whether a proposal may go to a model, and isn't kept for people; it is so for every model alike."""
        return self._dice.roll("\x1f".join((topic, *sorted(proposal.pair)))) >= KEPT


def with_chance(want: Wanted, source: ModelSource) -> Wanted:
    """Return a question for a model with the chance that it went to it."""
    return replace(want, propensity=source.propensity * (want.propensity or 1.0))


def read_judged_pairs(tx: Reading, dice: Dice, lines: int) -> JudgedPairs:
    """Read the pairs that people have judged, in an order that depends on the pairs alone."""
    columns = schema.log.c
    kinds = {name: row.kind for name, row in holdings.assessors(tx).items()}
    rows = tx.connection.execute(
        select(
            columns.topic,
            columns.seq,
            columns.left_item,
            columns.right_item,
            columns.outcome,
            columns.assessor,
        ).where(
            columns.campaign == tx.campaign,
            columns.event == log.JUDGMENT,
            columns.right_item.is_not(None),
            columns.test_pair.is_(None),
            columns.inferred == 0,
        )
    )
    gone = read_uncounted(tx)
    found: set[tuple[str, Pair]] = set()
    judgments = 0
    for topic, seq, left, right, outcome, assessor in rows:
        effect = EFFECTS[Outcome(outcome)]
        if kinds.get(assessor, "imported") in NOT_PEOPLE or (topic, seq) in gone:
            continue
        if effect.left or effect.right:
            judgments += 1
            found.add((topic, (left, right) if left < right else (right, left)))
    order = sorted(found, key=lambda each: dice.roll("\x1f".join(("trial", each[0], *each[1]))))
    return JudgedPairs(tuple(order), judgments, lines)


def _asked(tx: Reading, assessor: str) -> set[tuple[str, Pair]]:
    """Return the pairs that an assessor holds, has judged or could not judge."""
    columns = schema.question.c
    states = (leases.LEASED, leases.ANSWERED, leases.CANNOT_JUDGE, leases.SKIPPED)
    rows = tx.connection.execute(
        select(columns.topic, columns.a, columns.b).where(
            columns.campaign == tx.campaign, columns.assessor == assessor, columns.state.in_(states)
        )
    )
    return {(topic, (a, b)) for topic, a, b in rows}


def _used(tx: Reading, sources: ModelSources | None) -> dict[str, float]:
    """Return how much of each topic's budget models have used, or may with what they hold."""
    models = {} if sources is None else sources.models
    columns = schema.question.c
    rows = tx.connection.execute(
        select(columns.topic, columns.assessor, func.count())
        .where(
            columns.campaign == tx.campaign,
            columns.assessor.in_(list(models)),
            columns.state.in_((leases.LEASED, leases.ANSWERED)),
            columns.kind != str(Kind.GRADE),
        )
        .group_by(columns.topic, columns.assessor)
    )
    used: dict[str, float] = {}
    for topic, assessor, number in rows:
        used[topic] = used.get(topic, 0.0) + number * models[assessor].share_in(topic)
    return used
