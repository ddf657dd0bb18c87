"""Weighing assessors: the model of votes is refitted as judgments come, and its weights become events of the log.

A campaign with the setting `weigh_assessors` counts a judgment by the chance that whoever gave it reads before
answering. The weights are refitted when a quarter more judgments have come. They are written down as an event, so a
restart, another server and a re-analysis count alike. Test pairs exclude assessors as before.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import select

from duelpool.background import give_way
from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log import campaign_events
from duelpool.campaign.log.replay import read_uncounted
from duelpool.preferences.assessors import AssessorVotes
from duelpool.preferences.weights import fitted_weights, is_time_to_weigh
from duelpool.records import EFFECTS, Outcome
from duelpool.store import Reading, Writing, holdings, log, schema

MOST = 200_000
"""Votes that the model is fitted to; of more than that, the latest."""

_ROWS_AT_ONCE = 1000  # then requests have their turn

REFITTED = "refitted"
OFF = "no longer weighed"


class NamedVotes(NamedTuple):
    """The votes of a campaign's assessors on pairs, and how many test pairs each passed, and answered."""

    votes: AssessorVotes
    tests: Mapping[str, tuple[int, int]]


def keep_weights(campaign: Campaign) -> bool:
    """Refit the weights of a campaign that weighs its assessors, if it is time; return whether there are new ones."""
    last = campaign.read(campaign_events.last_weights)
    if not campaign.settings.weigh_assessors:
        if last is None or last.data["reason"] != REFITTED:
            return False
        return _append(campaign, {}, OFF, 0, last.seq)
    before = 0 if last is None else int(last.data.get("judgments", 0))
    lines = campaign.read(log.line_count)
    if not is_time_to_weigh(lines, before):
        return False
    known = campaign.read(read_named_votes)
    weights = fitted_weights(known.votes, known.tests, {} if last is None else dict(last.data["weights"]))
    return _append(campaign, weights, REFITTED, lines, 0 if last is None else last.seq)


def _append(campaign: Campaign, weights: Mapping[str, float], reason: str, lines: int, after: int) -> bool:
    """Append an event, unless another server was faster."""

    def work(tx: Writing) -> bool:
        holdings.lock_settings(tx)
        last = campaign_events.last_weights(tx)
        if (0 if last is None else last.seq) != after:
            return False
        known = holdings.assessors(tx)
        own = {name: weight for name, weight in weights.items() if name in known}
        campaign_events.append_weights(tx, own, reason, judgments=lines)
        return True

    return campaign.write(work)


def read_named_votes(tx: Reading, *, excluded_too: bool = False) -> NamedVotes:
    """Read the votes that count, of assessors with a name, and their results on test pairs.

    With `excluded_too`, all votes of excluded assessors as well.
    """
    columns = schema.log.c
    rows = tx.connection.execute(
        select(
            columns.topic,
            columns.seq,
            columns.left_item,
            columns.right_item,
            columns.outcome,
            columns.assessor,
            columns.sides_known,
            columns.test_pair,
        )
        .where(
            columns.campaign == tx.campaign,
            columns.event == log.JUDGMENT,
            columns.right_item.is_not(None),
            columns.inferred == 0,
        )
        .order_by(columns.topic, columns.seq)
    )
    uncounted = read_uncounted(tx)
    known = holdings.assessors(tx) if excluded_too else {}
    kept = {name for name, row in known.items() if row.state == "excluded"}
    better = {name: pair.better for name, pair in holdings.test_pairs(tx).items()}
    tests: dict[str, tuple[int, int]] = {}
    taken: list[tuple[str, str, str, float, str, int]] = []
    for at, (topic, seq, left, right, outcome, assessor, sides, test_pair) in enumerate(rows):
        if not at % _ROWS_AT_ONCE:
            give_way()
        effect = EFFECTS[Outcome(outcome)]
        if not assessor or ((topic, seq) in uncounted and assessor not in kept):
            continue
        if test_pair is not None:
            if outcome != Outcome.SKIP:
                passed, seen = tests.get(assessor, (0, 0))
                winner = left if effect.left > effect.right else right if effect.right > effect.left else None
                tests[assessor] = passed + (winner == better.get(test_pair)), seen + 1
        elif effect.left or effect.right:
            taken.append((topic, left, right, effect.left, assessor, int(bool(sides))))
    topics, first, second, shares, assessors, side = zip(*taken[-MOST:], strict=True) if taken else ((),) * 6
    votes = AssessorVotes.of(
        topics=topics, first=first, second=second, shares=shares, assessors=assessors, sides=side
    )
    return NamedVotes(votes, tests)
