"""Events of the whole campaign: what is refitted on the way and changes decisions, such as the weights of assessors.

They are append-only and gapless, like a topic's log. Of each kind the last one holds, so that their order relative to
the lines of topics doesn't matter. An event counts up the version of every topic's pool, for every state worked out
from a log then has to be worked out again.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, insert, select, update

from duelpool.deciders import ONE_VOTE, VoteSource, Weighs
from duelpool.errors import BadParameter
from duelpool.records import Judgment, PhaseClosed, is_number
from duelpool.store import Reading, Writing, holdings, log, schema
from duelpool.store.statements import Statement
from duelpool.strategies import Strategy

WEIGHTS = "weights"

_EVENTS = schema.campaign_event.c
_LAST_WEIGHTS = Statement(
    lambda _: (
        select(_EVENTS.seq, _EVENTS.data, _EVENTS.time)
        .where(_EVENTS.campaign == bindparam("of_campaign"), _EVENTS.event == WEIGHTS)
        .order_by(_EVENTS.seq.desc())
        .limit(1)
    )
)


class CampaignEvent(NamedTuple):
    """One line of a campaign's own log."""

    seq: int
    event: str
    data: Mapping[str, Any]
    time: float

    def as_json(self) -> dict[str, Any]:
        """Return the event for a file."""
        return {"seq": self.seq, "event": self.event, **self.data, "time": log.iso_time(self.time)}


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
    return _append(tx, WEIGHTS, data)


def _append(tx: Writing, event: str, data: Mapping[str, Any]) -> int:
    holdings.lock_settings(tx)  # one event at a time: no seq is taken twice, and none is left out
    before = last_weights(tx)
    columns, topics = schema.campaign_event.c, schema.topic.c
    last = tx.connection.execute(
        select(func.max(columns.seq)).where(columns.campaign == tx.campaign)
    ).scalar_one()
    seq = (last or 0) + 1
    row = {"campaign": tx.campaign, "seq": seq, "event": event, "data": json.dumps(data), "time": tx.now}
    tx.connection.execute(insert(schema.campaign_event).values(row))
    if (before.data["weights"] if before else {}) == data["weights"]:
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
    rows = _LAST_WEIGHTS.run(tx.connection, {"of_campaign": tx.campaign})
    return CampaignEvent(rows[0].seq, WEIGHTS, json.loads(rows[0].data), rows[0].time) if rows else None


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
