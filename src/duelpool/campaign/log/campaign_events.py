"""Events of the whole campaign: what is refitted on the way and changes decisions, such as the weights of assessors.

They are append-only and gapless, like a topic's log. Of each kind the last one holds, so that their order relative to
the lines of topics doesn't matter. An event counts up the version of every topic's pool, for every state worked out
from a log then has to be worked out again.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from sqlalchemy import bindparam, func, insert, select, update

from duelpool.deciders import ONE_VOTE, VoteSource, Weighs
from duelpool.errors import BadParameter
from duelpool.records import Judgment, PhaseClosed, is_number
from duelpool.store import Reading, Writing, holdings, log, schema
from duelpool.store.statements import Statement
from duelpool.strategies import Strategy

WEIGHTS, MODELS = "weights", "models"

_EVENTS = schema.campaign_event.c
_LAST = Statement(
    lambda _: (
        select(_EVENTS.seq, _EVENTS.data, _EVENTS.time)
        .where(_EVENTS.campaign == bindparam("of_campaign"), _EVENTS.event == bindparam("of_event"))
        .order_by(_EVENTS.seq.desc())
        .limit(1)
    )
)

KEPT = 0.1
"""The share of pairs that a model isn't asked about, but people are."""

ModelState: TypeAlias = Literal["tried", "asked", "dropped"]
"""A model is tried on pairs that people have judged, asked like people, or asked no more."""


class CampaignEvent(NamedTuple):
    """One line of a campaign's own log."""

    seq: int
    event: str
    data: Mapping[str, Any]
    time: float

    def as_json(self) -> dict[str, Any]:
        """Return the event for a file."""
        return {"seq": self.seq, "event": self.event, **self.data, "time": log.iso_time(self.time)}


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What was decided about a model beside people: whether it is asked, and by how much its votes count.

    `value` is what a vote is worth in votes of a person, with an interval, by `votes` that were compared. A vote counts
    `weight` and uses `share` of the budget in topics that `topics` doesn't name, which has both of others. The model
    isn't asked in topics where it isn't worth its price: `closed`. `propensity` is the chance that a question that it
    may be asked goes to it, and isn't kept for people.
    """

    state: ModelState
    value: float
    low: float
    high: float
    votes: int
    lean: float
    weight: float
    share: float
    propensity: float
    topics: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    closed: tuple[str, ...] = ()

    def weight_in(self, topic: str) -> float:
        """Return by how much a vote counts in a topic; one of a dropped model counts nothing."""
        return self.topics[topic][0] if topic in self.topics else self.weight

    def share_in(self, topic: str) -> float:
        """Return what a vote uses of the budget of a topic, in judgments of a person: what it tells."""
        return self.topics[topic][1] if topic in self.topics else self.share

    @property
    def counting(self) -> tuple[float, float, Mapping[str, tuple[float, float]]]:
        """What the strategies count by."""
        return self.weight, self.share, self.topics


class ModelSources(NamedTuple):
    """The decisions about models that hold now, by pseudonym, and what they were based on."""

    models: Mapping[str, ModelSource]
    prices: tuple[float, float]
    judgments: int
    votes: int
    seq: int = 0


def append_weights(
    tx: Writing, weights: Mapping[str, float], reason: str = "", *, judgments: int | None = None
) -> int:
    """Write down the weights of assessors, by pseudonym; return the event's seq. Those left out have weight 1.

    `judgments` is how long the logs were when the weights were worked out. Topics are worked out again only where a
    weight has changed.
    """
    known = holdings.assessors(tx)
    for assessor, weight in weights.items():
        if assessor not in known:
            raise BadParameter(f"There is no assessor '{assessor}' to weigh.", remedy="Check the pseudonym.")
        if not (is_number(weight) and weight >= 0 and math.isfinite(weight)):
            raise BadParameter(f"The weight of '{assessor}' is {weight}.", remedy="Give a number from 0 on.")
    ordered = {assessor: float(weights[assessor]) for assessor in sorted(weights)}
    data: dict[str, Any] = {"weights": ordered, "reason": reason}
    if judgments is not None:
        data["judgments"] = judgments
    holdings.lock_settings(tx)
    before = last_weights(tx)
    return _append(tx, WEIGHTS, data, same=(before.data["weights"] if before else {}) == ordered)


def append_models(tx: Writing, sources: ModelSources) -> int:
    """Write down what was decided about models; return the event's seq."""
    holdings.lock_settings(tx)
    before = last_models(tx)
    data = {
        "models": {name: asdict(sources.models[name]) for name in sorted(sources.models)},
        "prices": sources.prices,
        "judgments": sources.judgments,
        "votes": sources.votes,
    }
    was = {} if before is None else {name: each.counting for name, each in before.models.items()}
    return _append(
        tx, MODELS, data, same=was == {name: each.counting for name, each in sources.models.items()}
    )


def _append(tx: Writing, event: str, data: Mapping[str, Any], *, same: bool) -> int:
    """Append an event, the settings being locked: one at a time, so that no seq is taken twice, and none left out.

    Topics are worked out again, unless they count by the `same` as before.
    """
    columns, topics = schema.campaign_event.c, schema.topic.c
    last = tx.connection.execute(
        select(func.max(columns.seq)).where(columns.campaign == tx.campaign)
    ).scalar_one()
    seq = (last or 0) + 1
    row = {"campaign": tx.campaign, "seq": seq, "event": event, "data": json.dumps(data), "time": tx.now}
    tx.connection.execute(insert(schema.campaign_event).values(row))
    if same:
        return seq
    own = select(topics.id).where(topics.campaign == tx.campaign).order_by(topics.id)
    # In one order, so that two who change all topics don't wait for each other; leases go on meanwhile.
    tx.lock(own, key_share=True).all()
    tx.connection.execute(
        update(schema.topic)
        .where(topics.campaign == tx.campaign)
        .values(pool_version=topics.pool_version + 1)
    )
    return seq


def events(tx: Reading) -> list[CampaignEvent]:
    """Return the events of a campaign in their order."""
    table = schema.campaign_event
    rows = tx.connection.execute(select(table).where(table.c.campaign == tx.campaign).order_by(table.c.seq))
    return [CampaignEvent(row.seq, row.event, json.loads(row.data), row.time) for row in rows]


def last_weights(tx: Reading) -> CampaignEvent | None:
    """Return the event whose weights hold now."""
    return _last(tx, WEIGHTS)


def _last(tx: Reading, event: str) -> CampaignEvent | None:
    rows = _LAST.run(tx.connection, {"of_campaign": tx.campaign, "of_event": event})
    return CampaignEvent(rows[0].seq, event, json.loads(rows[0].data), rows[0].time) if rows else None


def last_models(tx: Reading) -> ModelSources | None:
    """Return what was last decided about models beside people."""
    last = _last(tx, MODELS)
    if last is None:
        return None
    data = last.data
    found = {
        name: ModelSource(**{**each, "closed": tuple(each["closed"])})
        for name, each in data["models"].items()
    }
    return ModelSources(found, tuple(data["prices"]), data["judgments"], data["votes"], last.seq)


def _source(values: Mapping[str, Any]) -> ModelSource:
    topics = {name: (weight, share) for name, (weight, share) in values["topics"].items()}
    return ModelSource(**{**values, "topics": topics, "closed": tuple(values["closed"])})


def counts_in(tx: Reading, topic: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return by how much judgments count in a topic, and what they use of its budget, by assessor; others 1."""
    found = weights(tx)
    decided = last_models(tx)
    known = {} if decided is None else decided.models
    found |= {name: each.weight_in(topic) for name, each in known.items()}
    return found, {name: each.share_in(topic) for name, each in known.items()}


def weights(tx: Reading) -> dict[str, float]:
    """Return the weights of assessors that hold now, by pseudonym; all others have weight 1."""
    last = last_weights(tx)
    return {} if last is None else dict(last.data["weights"])


def sources(tx: Reading) -> dict[str, VoteSource]:
    """Return what a decider may know of each assessor; those that are left out are people with one vote each."""
    own, found = weights(tx), models(tx)
    return {each: VoteSource(own.get(each, 1.0), each in found) for each in {*own, *found}}


def models(tx: Reading) -> frozenset[str]:
    """Return the assessors that are models."""
    columns = schema.assessor.c
    rows = tx.connection.execute(
        select(columns.id).where(columns.campaign == tx.campaign, columns.kind == "llm")
    )
    return frozenset(rows.scalars())


class WeighedPart:
    """A part that weighs judgments, and is told each with its source."""

    def __init__(self, part: Strategy, known: Mapping[str, VoteSource]) -> None:
        self.part = part
        self._known = known

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the part itself."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.part, name)

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take one event of the log."""
        if isinstance(event, Judgment) and isinstance(self.part, Weighs):
            self.part.tell_weighted(event, self._known.get(event.assessor, ONE_VOTE))
        else:
            self.part.tell(event)
