"""Figures of a model as a judge: consistency over both orders, biases, and agreement with people.

A pair is decided when both orders got a choice. It flips when the two choices name different items. People's votes
on the same pairs are all judgments that count and prefer an item; each vote is compared on its own.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from sqlalchemy import func, select

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log.replay import read_uncounted
from duelpool.campaign.runners.two_sources import ModelDecision, decisions
from duelpool.records import EFFECTS
from duelpool.shares import ENOUGH_CLUSTERS, share_over
from duelpool.store import Reading, holdings, llm, log, schema
from duelpool.store.llm import ModelReply, Order

_CHOICES = {"left", "right", "tie"}
_LEFT = {str(each) for each, effect in EFFECTS.items() if effect.left > effect.right}
_RIGHT = {str(each) for each, effect in EFFECTS.items() if effect.right > effect.left}
_WHOLE = 1e12  # parts of the currency's unit in which money is stored

INTERVALS = (
    f"Intervals of 95 %: over topics where there are {ENOUGH_CLUSTERS} or more; "
    "with fewer over pairs, for these topics alone."
)

Key: TypeAlias = tuple[str, str, str, str]
"""A topic, a criterion and the two items of a pair in alphabetical order; a graded item's second one is empty."""

Votes: TypeAlias = Mapping[Key, Counter[str]]
"""People's choices by topic, criterion and pair: how often each item won."""


@dataclass(frozen=True, slots=True)
class CountedShare:
    """`part` of `whole` with the 95 % interval of the share; None where `whole` is 0.

    From ten topics on the interval is over topics, whose votes go together; with fewer over pairs, so that it holds for
    these topics alone, and with fewer than ten pairs over single votes.
    """

    part: int
    whole: int
    share: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, counts: Iterable[tuple[Key, int, int]]) -> "CountedShare":
        """Return the share of all parts in all wholes, counted by pair, with its interval."""
        rows = list(counts)
        by_topic = _sums((key[0], part, whole) for key, part, whole in rows)
        share = share_over(by_topic, _sums(rows))
        return cls(int(share.part), int(share.whole), share.value, share.low, share.high)


def _sums(rows: Iterable[tuple[Hashable, int, int]]) -> tuple[list[int], list[int]]:
    """Return the parts and the wholes of each key."""
    sums: dict[Hashable, list[int]] = {}
    for key, part, whole in rows:
        own = sums.setdefault(key, [0, 0])
        own[0] += part
        own[1] += whole
    return [part for part, _ in sums.values()], [whole for _, whole in sums.values()]


@dataclass(frozen=True, slots=True)
class ByConfidence:
    """How often people agree with a model at one stated confidence."""

    confidence: float
    pairs: int
    agreement: CountedShare


@dataclass(frozen=True, slots=True)
class CallRow:
    """How many requests ended in one way."""

    state: str
    result: str
    calls: int


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """The figures of a model as a judge. Money is in the currency's unit; `unknown` of `spent` may not be billed."""

    assessor: str
    model: str
    address: str
    prompt: str
    prompt_hash: str
    prompt_text: str
    parameters: Mapping[str, Any]
    pairs: int  # with a reply in both orders
    decided: int
    graded: int
    replies: Mapping[str, int]
    refusals: CountedShare
    malformed: CountedShare
    flips: CountedShare
    listed: int  # pairs whose replies come from lists of items, at least in one order
    flips_alone: CountedShare  # of the pairs that were asked one at a time
    flips_listed: CountedShare
    left: CountedShare  # of all choices of a side, in both orders
    longer: CountedShare  # of the pairs whose choice held, how often the longer text was chosen
    people_longer: CountedShare  # of people's votes on those pairs
    agreement: CountedShare  # of people's votes with the choice that held
    people_split: CountedShare  # of people's votes on flipped pairs, the share of the more frequent side
    by_confidence: tuple[ByConfidence, ...]
    requests: int
    lists: int  # requests about a list
    calls: tuple[CallRow, ...]
    tokens_in: int
    tokens_out: int
    priced: bool
    spent: float
    unknown: float
    held: float
    budget: float | None
    budget_left: float | None
    per_pair: float | None
    seconds: float | None
    beside_people: ModelDecision | None = None  # where prices decide between models and people


def model_figures(campaign: Campaign) -> tuple[ModelFigures, ...]:
    """Return the figures of every model that judges in a campaign, in the order of enrolment."""

    def work(tx: Reading) -> tuple[ModelFigures, ...]:
        judges = llm.judges(tx)
        votes = people_votes(tx) if judges else {}
        return tuple(_figures(tx, judge, votes) for judge in judges)

    decided = {each.assessor: each for each in decisions(campaign)}
    return tuple(replace(each, beside_people=decided.get(each.assessor)) for each in campaign.read(work))


def people_votes(tx: Reading) -> Votes:
    """Return people's preferences that count, without models and programs."""
    columns = schema.log.c
    kinds = {name: row.kind for name, row in holdings.assessors(tx).items()}
    gone = read_uncounted(tx)
    rows = tx.connection.execute(
        select(
            columns.topic,
            columns.seq,
            columns.criterion,
            columns.left_item,
            columns.right_item,
            columns.outcome,
            columns.assessor,
        ).where(
            columns.campaign == tx.campaign,
            columns.event == log.JUDGMENT,
            columns.test_pair.is_(None),
            columns.repeated.is_distinct_from(1),
            columns.right_item.is_not(None),
            columns.outcome.in_(_LEFT | _RIGHT),
        )
    )
    votes: dict[Key, Counter[str]] = {}
    for row in rows:
        if kinds.get(row.assessor, "imported") in {"llm", "program"} or (row.topic, row.seq) in gone:
            continue
        a, b = sorted((row.left_item, row.right_item))
        won = row.left_item if row.outcome in _LEFT else row.right_item
        votes.setdefault((row.topic, row.criterion, a, b), Counter())[won] += 1
    return votes


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both replies of a pair, in terms of its items; `choice` is the item that both prefer, or "tie"."""

    key: Key
    decided: bool
    choice: str | None
    confidence: float | None
    longer: str | None
    listed: bool


def _key(order: Order) -> Key:
    a, b = sorted((order.left, order.right)) if order.right else (order.left, "")
    return order.topic, order.criterion, a, b


def _pairs(replies: Mapping[Order, ModelReply]) -> Iterator[_Pair]:
    for order, first in replies.items():
        second = replies.get(Order(order.topic, order.criterion, order.right, order.left))
        if not order.right or order.left > order.right or second is None:
            continue
        key = (order.topic, order.criterion, order.left, order.right)
        lengths = first.left_length - first.right_length
        longer = None if not lengths else order.left if lengths > 0 else order.right
        listed = bool(first.listed or second.listed)
        if not {first.outcome, second.outcome} <= _CHOICES:
            yield _Pair(key, False, None, None, longer, listed)
            continue
        chosen = {"left": order.left, "right": order.right, "tie": "tie"}[first.outcome]
        again = {"left": order.right, "right": order.left, "tie": "tie"}[second.outcome]
        confidences = [each.confidence for each in (first, second) if each.confidence is not None]
        confidence = sum(confidences) / len(confidences) if confidences else None
        yield _Pair(key, True, chosen if chosen == again else None, confidence, longer, listed)


def _figures(tx: Reading, judge: llm.ModelJudge, votes: Votes) -> ModelFigures:
    replies = llm.replies(tx, judge.assessor)
    outcomes = Counter(each.outcome for each in replies.values())
    pairs = list(_pairs(replies))
    decided = [pair for pair in pairs if pair.decided]
    consistent = [pair for pair in decided if pair.choice not in {None, "tie"}]
    flipped = [pair for pair in decided if pair.choice is None]
    calls = llm.call_sums(tx, judge.assessor)
    total = sum(outcomes.values())
    unknown = sum(each.cost for each in calls if each.state == llm.UNKNOWN)
    sized = [pair for pair in consistent if pair.longer is not None]
    said_of = [(_key(order), reply.outcome) for order, reply in replies.items()]
    return ModelFigures(
        assessor=judge.assessor,
        model=judge.model,
        address=judge.address,
        prompt=judge.prompt,
        prompt_hash=judge.prompt_hash,
        prompt_text=judge.prompt_text,
        parameters=judge.parameters,
        pairs=len(pairs),
        decided=len(decided),
        graded=outcomes["grade"],
        replies=dict(sorted(outcomes.items())),
        refusals=CountedShare.of((key, said == "refused", 1) for key, said in said_of),
        malformed=CountedShare.of((key, said == "malformed", 1) for key, said in said_of),
        flips=_flips(decided),
        listed=sum(pair.listed for pair in pairs),
        flips_alone=_flips([pair for pair in decided if not pair.listed]),
        flips_listed=_flips([pair for pair in decided if pair.listed]),
        left=CountedShare.of((key, said == "left", 1) for key, said in said_of if said in {"left", "right"}),
        longer=CountedShare.of((pair.key, pair.choice == pair.longer, 1) for pair in sized),
        people_longer=CountedShare.of(
            (pair.key, votes[pair.key][str(pair.longer)], votes[pair.key].total())
            for pair in sized
            if pair.key in votes
        ),
        agreement=_agreement(consistent, votes),
        people_split=_split(flipped, votes),
        by_confidence=_by_confidence(consistent, votes),
        requests=sum(each.calls for each in calls),
        lists=_lists(tx, judge.assessor),
        calls=tuple(CallRow(each.state, each.result, each.calls) for each in calls),
        tokens_in=sum(each.tokens_in for each in calls),
        tokens_out=sum(each.tokens_out for each in calls),
        priced=judge.price_in is not None,
        spent=judge.spent / _WHOLE,
        unknown=unknown / _WHOLE,
        held=judge.held / _WHOLE,
        budget=None if judge.budget is None else judge.budget / _WHOLE,
        budget_left=None if judge.budget is None else (judge.budget - judge.spent - judge.held) / _WHOLE,
        per_pair=judge.spent / _WHOLE / len(pairs) if pairs else None,
        seconds=sum(each.seconds for each in replies.values()) / total if total else None,
    )


def _lists(tx: Reading, assessor: str) -> int:
    columns = schema.llm_call.c
    query = select(func.count()).where(
        columns.campaign == tx.campaign, columns.assessor == assessor, columns.list_items.is_not(None)
    )
    return int(tx.connection.execute(query).scalar_one())


def _flips(pairs: list[_Pair]) -> CountedShare:
    return CountedShare.of((pair.key, pair.choice is None, 1) for pair in pairs)


def _agreement(pairs: list[_Pair], votes: Votes) -> CountedShare:
    seen = [(pair, votes[pair.key]) for pair in pairs if pair.key in votes]
    return CountedShare.of((pair.key, won[str(pair.choice)], won.total()) for pair, won in seen)


def _split(pairs: list[_Pair], votes: Votes) -> CountedShare:
    seen = [(pair.key, votes[pair.key]) for pair in pairs if pair.key in votes]
    return CountedShare.of((key, max(won.values()), won.total()) for key, won in seen if won.total() > 1)


def _by_confidence(pairs: list[_Pair], votes: Votes) -> tuple[ByConfidence, ...]:
    """Return agreement by the mean confidence of both orders, in steps of ten percent."""
    steps: dict[int, list[_Pair]] = {}
    for pair in pairs:
        if pair.confidence is not None:
            steps.setdefault(int(pair.confidence * 10 + 1e-9) * 10, []).append(pair)
    return tuple(
        ByConfidence(step / 100, len(some), _agreement(some, votes)) for step, some in sorted(steps.items())
    )
