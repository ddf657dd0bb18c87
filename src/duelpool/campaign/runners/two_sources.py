"""People and models in one campaign: what a model's vote is worth is refitted, and decides whether it is asked.

Where a campaign has the prices of a person's and of a model's judgment, each decision is an event of the campaign's
log, with the chance that a question goes to a model. A restart, another server and a re-analysis decide alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sqlalchemy import func, select

from duelpool.arrays import Bools
from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log import campaign_events
from duelpool.campaign.log.campaign_events import KEPT, ModelSource, ModelSources, ModelState
from duelpool.campaign.runners.weighing import keep_weights, read_named_votes
from duelpool.frames import counted
from duelpool.preferences.assessors import AssessorVotes
from duelpool.preferences.sources import SourceWorth, source_worths
from duelpool.preferences.weights import AGAIN
from duelpool.store import Reading, Writing, holdings, log, schema

LEAST = 20
"""Compared votes before a model can be dropped."""

_SAME = 0.05  # a smaller change of a weight is none


def refit(campaign: Campaign) -> bool:
    """Refit what votes are worth, if it is time: of assessors that are weighed, and of models that have a price."""
    return keep_weights(campaign) | keep_models(campaign)


def keep_models(campaign: Campaign) -> bool:
    """Decide about models beside people, if it is time; return whether something was decided."""
    last = campaign.read(campaign_events.last_models)
    prices = campaign.settings.prices
    if prices is None:
        off = last is not None and bool(last.models)
        return off and last is not None and _append(campaign, last._replace(models={}, seq=last.seq))
    models = campaign.read(campaign_events.models)
    lines, votes = campaign.read(lambda tx: (log.line_count(tx), _votes(tx, models)))
    if not models or (last is not None and not _is_time(last, prices, models, lines, votes)):
        return False
    known = campaign.read(read_named_votes)
    worths = source_worths(known.votes.only(~_of_programs(campaign, known.votes)), models)
    before = last.models if last is not None and last.prices == prices else {}
    decided = {name: decide(worth, prices, before.get(name)) for name, worth in worths.items()}
    return _append(campaign, ModelSources(decided, prices, lines, votes, 0 if last is None else last.seq))


def _of_programs(campaign: Campaign, votes: AssessorVotes) -> Bools:
    """Return which votes are of programs, which are neither people nor models."""
    kinds = {name: row.kind for name, row in campaign.read(holdings.assessors).items()}
    own = [at for at, name in enumerate(votes.assessors) if kinds.get(name) == "program"]
    return np.asarray(np.isin(votes.assessor, own))


def _is_time(
    last: ModelSources, prices: tuple[float, float], models: frozenset[str], lines: int, votes: int
) -> bool:
    if last.prices != prices or not models <= last.models.keys():
        return True
    if all(each.state == "dropped" for each in last.models.values()):
        return False
    return lines >= max(LEAST, AGAIN * last.judgments) or votes >= max(LEAST, AGAIN * last.votes)


def decide(worth: SourceWorth, prices: tuple[float, float], before: ModelSource | None = None) -> ModelSource:
    """Decide about a model by what its votes are worth, and what was decided before at the same prices.

    It is asked once what a vote counts, which is cautious, is more than its price, and then while its worth is. It is
    dropped for good, so only when the whole interval of its worth lies below the price.
    """
    if before is not None and before.state == "dropped":
        return before
    price = prices[1] / prices[0]
    state: ModelState = "tried"
    if worth.votes >= LEAST and worth.high < price:
        state = "dropped"
    elif worth.share() > price or (before is not None and before.state == "asked" and worth.value > price):
        state = "asked"
    (weight, share), topics = _counting(worth, before) if state != "dropped" else ((0.0, 0.0), {})
    unpaid = (name for name in worth.topics if not worth.pays(price, name))
    return ModelSource(
        state,
        round(worth.value, 3),
        round(worth.low, 3),
        round(worth.high, 3),
        worth.votes,
        round(worth.lean, 3),
        weight,
        share,
        {"tried": 0.0, "asked": 1 - KEPT, "dropped": 0.0}[state],
        topics,
        tuple(sorted(unpaid)) if state == "asked" else (),
    )


def _counting(
    worth: SourceWorth, before: ModelSource | None
) -> tuple[tuple[float, float], Mapping[str, tuple[float, float]]]:
    """Return weight and share of a vote, and those of topics that differ; what has hardly changed stays as it was."""

    def settled(topic: str | None, was: tuple[float, float] | None) -> tuple[float, float]:
        now = round(worth.weight(topic), 2), round(worth.share(topic), 2)
        return was if was is not None and max(abs(was[0] - now[0]), abs(was[1] - now[1])) < _SAME else now

    common = settled(None, None if before is None else (before.weight, before.share))
    topics = {}
    for name in sorted(worth.topics):
        own = settled(name, None if before is None else before.topics.get(name))
        if abs(own[0] - common[0]) >= _SAME:
            topics[name] = own
    return common, topics


def _votes(tx: Reading, models: frozenset[str]) -> int:
    """Return how many lines of the logs are models' judgments."""
    columns = schema.log.c
    mine = (columns.campaign == tx.campaign, columns.event == log.JUDGMENT, columns.assessor.in_(models))
    return int(tx.connection.execute(select(func.count()).select_from(schema.log).where(*mine)).scalar() or 0)


def _append(campaign: Campaign, sources: ModelSources) -> bool:
    """Append a decision, unless another server was faster."""

    def work(tx: Writing) -> bool:
        holdings.lock_settings(tx)
        last = campaign_events.last_models(tx)
        if (0 if last is None else last.seq) != sources.seq:
            return False
        campaign_events.append_models(tx, sources)
        return True

    return campaign.write(work)


# ---- in words


@dataclass(frozen=True, slots=True)
class ModelDecision:
    """What was decided about a model beside people, and the same in words."""

    assessor: str
    state: ModelState
    value: float
    low: float
    high: float
    price: float
    votes: int
    lean: float
    closed_topics: int
    said: str


def decisions(campaign: Campaign) -> tuple[ModelDecision, ...]:
    """Return what holds now for each model; empty where models are asked like people."""
    found = campaign.read(campaign_events.last_models) if campaign.settings.prices is not None else None
    if found is None:
        return ()
    price = found.prices[1] / found.prices[0]
    return tuple(
        ModelDecision(
            name,
            each.state,
            each.value,
            each.low,
            each.high,
            price,
            each.votes,
            each.lean,
            len(each.closed),
            said(name, each, price),
        )
        for name, each in found.models.items()
    )


def said(name: str, source: ModelSource, price: float) -> str:
    """Return a decision as a sentence or two."""
    worth = (
        f"{source.value:.2f} of a person's ({source.low:.2f} to {source.high:.2f}, by {source.votes:,} votes)"
    )
    vote = f"its vote is worth {worth}, at {price:.2g} of the price"
    if source.state == "dropped":
        return f"{name} is asked no more: {vote}."
    if source.state == "asked":
        number = len(source.closed)
        closed = f", except in {counted(number, 'topic')} where it isn't worth that" if number else ""
        return f"{name} is asked beside people{closed}: {vote}."
    if not source.votes:
        return f"{name} is to be tried on pairs that people have judged, at {price:.2g} of a person's price."
    return f"{name} is tried on pairs that people have judged: {vote}. Whether it pays isn't clear yet."
