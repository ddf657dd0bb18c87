"""Pages of the log: every order, filter and cursor gives what sorting all lines gives."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from duelpool.campaign import Campaign
from duelpool.store import Store, log, open_store, schema
from duelpool.web.manage import reading
from duelpool.web.manage.dashboard import Dashboard
from support.campaigns import judge_all, make_campaign
from support.stores import BACK_ENDS, new_target


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as found:
        yield found


def judged(store: Store) -> Campaign:
    """Return a campaign with retractions, and with times that are alike or step back."""
    campaign = make_campaign(
        store, {"t2": "abcd", "t1": "abc", "t3": "ab"}, strategy="allpairs:repeats=2", cap=2
    )
    judge_all(campaign)
    campaign.retract("t2", [2, 3], "a slip")

    def clocks(connection: Any, now: float) -> None:
        columns = schema.log.c
        for topic, seq, when in (("t2", 4, -9.0), ("t1", 2, 0.0), ("t2", 5, 0.0), ("t3", 1, 0.0)):
            here = (columns.campaign == campaign.id, columns.topic == topic, columns.seq == seq)
            connection.execute(update(schema.log).where(*here).values(time=now + when))

    store.write(clocks)
    return campaign


def by_definition(
    campaign: Campaign, *, order: str = "", event: str = "", assessors: Any = None, topics: Any = None
) -> list[tuple[str, int]]:
    """Return the places of the lines, sorted plainly."""
    rows = []
    for topic in ("t1", "t2", "t3"):
        latest = 0.0
        for line in campaign.read(lambda tx: list(log.read_lines(tx, topic))):  # noqa: B023 (run at once)
            latest = max(latest, line.time)
            who = line.judgment.assessor or "" if line.judgment is not None else ""
            if (
                (not event or line.event == event)
                and (assessors is None or who in assessors)
                and (topics is None or topic in topics)
            ):
                rows.append((latest, topic, line.seq, who))
    rows.sort(reverse=order != "-time")
    if order.endswith("topic"):
        rows.sort(key=lambda row: row[1], reverse=order.startswith("-"))
    if order.endswith("assessor"):
        named = sorted((row for row in rows if row[3]), key=lambda row: row[3], reverse=order.startswith("-"))
        rows = [*named, *(row for row in rows if not row[3])]
    return [(topic, seq) for _, topic, seq, _ in rows]


def paged(dashboard: Dashboard, limit: int, **asked: Any) -> list[tuple[str, int]]:
    found, cursor = [], ""
    while True:
        page = reading.lines(dashboard, cursor, limit, **asked)
        assert len(page.rows) <= limit
        found += [(line["topic"], line["seq"]) for line in page.rows]
        if page.next is None:
            return found
        cursor = page.next


def test_pages_in_every_order_are_those_of_all_lines_sorted(store: Store) -> None:
    campaign = judged(store)
    dashboard = Dashboard.of(campaign)
    someone = dashboard.watch.look().assessors[1].assessor
    for order in ("", "-time", "topic", "-topic", "assessor", "-assessor"):
        for filters in (
            {},
            {"event": log.RETRACTION},
            {"assessors": [someone]},
            {"assessors": ["nobody here"]},
            {"topics": ["t1", "t3"], "event": log.JUDGMENT},
        ):
            asked: dict[str, Any] = {"order": order, **filters}
            assert paged(dashboard, 3, **asked) == by_definition(campaign, **asked), asked
    assert len(paged(dashboard, 500)) == sum(campaign.live.heads().values())


def test_a_page_right_after_a_judgment_begins_with_it_and_the_cursor_goes_on(store: Store) -> None:
    campaign = judged(store)
    dashboard = Dashboard.of(campaign)
    first = reading.lines(dashboard, "", 2)
    campaign.retract("t1", [1], "a late slip")
    assert reading.lines(dashboard, "", 1).rows[0]["reason"] == "a late slip"
    assert first.next is not None
    following = reading.lines(dashboard, first.next, 500).rows
    before = [(line["topic"], line["seq"]) for line in (*first.rows, *following)]
    assert before == [place for place in by_definition(campaign) if place != _last(campaign, "t1")]


def _last(campaign: Campaign, topic: str) -> tuple[str, int]:
    return topic, campaign.live.heads()[topic]
