"""Finding events in a campaign's log: a topic or the campaign is done, the budget is reached.

A milestone says for each topic whether it was done at a place of its log. Each look goes on from there, so nothing is
missed that happened while no process ran: not even a topic that was reopened and done again in the meantime. One
process at a time moves the milestones, in the transaction that writes the events.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select

from duelpool.campaign import Campaign, events
from duelpool.campaign.log.live_topics import LogHead
from duelpool.campaign.log.newcomers import is_challenge
from duelpool.campaign.log.replay import FORCES_REPLAY, TopicState
from duelpool.campaign.questions import grading
from duelpool.campaign.settings import Settings
from duelpool.campaign.work import ledger
from duelpool.store import Reading, Writing, holdings, log, schema
from duelpool.store.log import Line
from duelpool.store.statements import dialect_of

_WHOLE = ""  # the milestone of the whole campaign


@dataclass(frozen=True, slots=True)
class Milestone:
    """Whether a topic was done at a place of its log, and how often it has become so."""

    done: bool = False
    times: int = 0
    seq: int = 0
    pool_version: int = 0
    stage: str = ""


def look(campaign: Campaign) -> None:
    """Find what has happened since the last look, and write it down as events; the first look only notes the state."""
    before, heads = campaign.read(lambda tx: (_milestones(tx), campaign.live.read_heads(tx)))
    campaign.live.drop_outdated(heads)
    after: dict[str, Milestone] = {}
    for head in heads:
        known = before.get(head.id, Milestone(stage=campaign.settings.stage))
        unchanged = (known.seq, known.pool_version, known.stage) == (
            head.next_seq - 1,
            head.pool_version,
            campaign.settings.stage,
        )
        after[head.id] = known if unchanged and head.id in before else _followed(campaign, head, known)
    after[_WHOLE] = _whole(campaign, before, after)
    reached = campaign.read(lambda tx: _budget(tx, campaign))
    if reached or any(before.get(topic) != each for topic, each in after.items()):
        campaign.write(lambda tx: _note(tx, campaign, before, after, reached))


def _note(
    tx: Writing,
    campaign: Campaign,
    before: Mapping[str, Milestone],
    after: Mapping[str, Milestone],
    reached: Mapping[str, Any],
) -> None:
    stored, _ = Settings.from_store(holdings.find_campaign(tx.connection, tx.campaign).settings)
    if stored != campaign.settings:  # they have just changed: what was found may be wrong, and is found again
        return
    if _move(tx, before, after):
        _record_done(tx, before, after)
    if reached:
        budget = str(reached["budget"])
        events.record(tx, events.BUDGET_REACHED, reached, subject=budget, occurrence=1, unwanted=True)


# ---- topics


def _followed(campaign: Campaign, head: LogHead, known: Milestone) -> Milestone:
    """Follow a topic's log from its milestone to its end."""
    stage = campaign.settings.stage
    was = known.done and known.stage == stage
    if stage == "grading":
        seq, done = (
            head.next_seq - 1,
            campaign.read(lambda tx: grading.topic_graded(tx, campaign.settings, head.id)),
        )
        times = int(done and not was)
    else:
        seq, done = campaign.live.with_state(
            head.id, head.next_seq - 1, lambda state: (state.position, state.strategy.done)
        )
        times = campaign.read(lambda tx: _times(tx, campaign, head.id, (known.seq, seq), (was, done)))
    return Milestone(done, known.times + times, seq, head.pool_version, stage)


def _times(
    tx: Reading, campaign: Campaign, topic: str, between: tuple[int, int], ends: tuple[bool, bool]
) -> int:
    """Return how often a topic became done between two places of its log; `ends`: whether it was and is done.

    Judgments don't reopen a topic. Where nothing else happened, the two ends tell; otherwise the log is replayed.
    """
    (after, upto), (was, done) = between, ends
    lines = log.new_lines(tx, topic, after, upto)
    if not any(_reopens(line) for line in lines):
        return int(done and not was)
    before = log.new_lines(tx, topic, 0, after)
    strategy = campaign.live.new_strategy
    state = TopicState.new(
        lambda: strategy(tx, topic), lambda place: [line for line in (*before, *lines) if line.seq <= place]
    )
    state.feed(before)
    times = 0
    for part in _parts(lines):
        state.feed(part)
        times += state.strategy.done and not was
        was = state.strategy.done
    return times


def _reopens(line: Line) -> bool:
    """Whether a line may make a topic need more judgments than before."""
    return line.event in FORCES_REPLAY or (line.event == log.PHASE_CLOSED and is_challenge(line.phase))


def _parts(lines: Sequence[Line]) -> list[list[Line]]:
    """Split lines between those that may reopen a topic and the others."""
    parts: list[list[Line]] = []
    for line in lines:
        if not parts or _reopens(parts[-1][-1]) != _reopens(line):
            parts.append([])
        parts[-1].append(line)
    return parts


# ---- the whole campaign


def _whole(campaign: Campaign, before: Mapping[str, Milestone], topics: Mapping[str, Milestone]) -> Milestone:
    """Return the campaign's milestone; its place is how often its topics became done, taken together."""
    known = before.get(_WHOLE, Milestone())
    left = sum(each.times for topic, each in before.items() if topic != _WHOLE and topic not in topics)
    done = bool(topics) and all(each.done for each in topics.values())
    if done and campaign.settings.crossed:
        done = campaign.done
    endings = left + sum(each.times for each in topics.values())
    again = done and (not known.done or endings > known.seq)
    return Milestone(done, known.times + again, endings if done else known.seq, 0, campaign.settings.stage)


def _budget(tx: Reading, campaign: Campaign) -> dict[str, Any]:
    """Return the figures of a budget that pays for no more assignment, unless its event is known already."""
    settings = campaign.settings
    price = ledger.full_price(settings)
    if settings.budget is None or settings.judges != "crowd" or not price:
        return {}
    columns = schema.webhook_event.c
    known = select(columns.id).where(
        columns.campaign == tx.campaign,
        columns.kind == events.BUDGET_REACHED,
        columns.subject == str(settings.budget),
    )
    if tx.connection.execute(known).first() is not None:
        return {}
    spent = ledger.money(tx, settings).spent
    if spent + price <= settings.budget:
        return {}
    return {"spent": spent, "budget": settings.budget, "currency": settings.currency}


# ---- rows


def _milestones(tx: Reading) -> dict[str, Milestone]:
    columns = schema.milestone.c
    rows = tx.connection.execute(select(schema.milestone).where(columns.campaign == tx.campaign))
    return {
        row.topic: Milestone(bool(row.done), row.times, row.seq, row.pool_version, row.stage) for row in rows
    }


def _move(tx: Writing, before: Mapping[str, Milestone], after: Mapping[str, Milestone]) -> bool:
    """Move the milestones; return False where another process has just done so, for the next look to decide."""
    columns = schema.milestone.c
    own = select(columns.topic).where(columns.campaign == tx.campaign, columns.topic == _WHOLE)
    tx.lock(own).all()  # one process at a time
    if _milestones(tx) != before:
        return False
    rows = [
        {**asdict(each), "done": int(each.done), "campaign": tx.campaign, "topic": topic}
        for topic, each in after.items()
        if before.get(topic) != each
    ]
    new = dialect_of(tx.connection).insert(schema.milestone)
    if not before:  # two first looks at once note the same
        tx.connection.execute(new.on_conflict_do_nothing(), rows)
        return True
    names = ("done", "times", "seq", "pool_version", "stage")
    new = new.on_conflict_do_update(
        index_elements=["campaign", "topic"], set_={name: new.excluded[name] for name in names}
    )
    if rows:
        tx.connection.execute(new, rows)
    return True


def _record_done(tx: Writing, before: Mapping[str, Milestone], after: Mapping[str, Milestone]) -> None:
    """Write the events of milestones that were moved; the first look makes none."""
    if not before:
        return
    topics = [topic for topic in after if topic != _WHOLE]
    facts = {"done": sum(after[topic].done for topic in topics), "topics": len(topics)}
    for topic in (*topics, _WHOLE):
        kind = events.TOPIC_DONE if topic else events.CAMPAIGN_DONE
        about: dict[str, Any] = {"topic": topic, **facts} if topic else {"topics": len(topics)}
        about["stage"] = after[topic].stage
        for occurrence in range(before.get(topic, Milestone()).times, after[topic].times):
            events.record(tx, kind, about, subject=topic, occurrence=occurrence + 1, unwanted=True)
