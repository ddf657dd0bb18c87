"""How far a campaign is, and when it ends at the pace of the last hours, in figures and in words."""

import time
from dataclasses import dataclass

from duelpool.campaign.work.pace import WINDOW_SECONDS, WorkPace
from duelpool.frames import counted
from duelpool.store import log
from duelpool.web.manage.schemas import Head

_LONGEST_DAYS = 400  # of a forecast


@dataclass(frozen=True, slots=True)
class ProgressForecast:
    """How far the campaign is, and when it ends at the pace of the last hours; None where that can't be told."""

    share: float  # of the expected judgments
    to_go: int
    recent_judgments: int
    recent_hours: float
    per_hour: float | None
    hours_left: float | None
    ends: str | None
    headline: str
    sentence: str


def forecast(head: Head, recent: WorkPace) -> ProgressForecast:
    """Return how far a campaign is, and when it ends at the pace of the last hours."""
    to_go = max(0, head.expected - head.judgments)
    share = 1.0 if head.done else min(1.0, head.judgments / head.expected) if head.expected else 0.0
    going_on = head.state == "open" and not head.done and not recent.simulated
    hours = to_go / recent.per_hour if recent.per_hour and going_on else None
    if hours is not None and hours > 24 * _LONGEST_DAYS:
        hours = None
    ends = None if hours is None else recent.now + 3600 * hours
    return ProgressForecast(
        share=share,
        to_go=0 if head.done else to_go,
        recent_judgments=recent.judgments,
        recent_hours=recent.hours,
        per_hour=recent.per_hour,
        hours_left=hours,
        ends=None if ends is None else log.iso_time(ends),
        headline=_headline(head, share),
        sentence=_pace_in_words(head, recent, hours, ends),
    )


def _headline(head: Head, share: float) -> str:
    if not head.topics:
        return "The campaign has no topics yet."
    if head.done:
        return f"Done: {counted(head.topics, 'topic')}, {counted(head.judgments, 'judgment')}."
    if not head.judgments:
        return f"Nothing is judged yet; about {counted(head.expected, 'judgment')} to go."
    part = "Under 1 %" if share < 0.01 else f"{min(99, int(100 * share))} %"
    if head.topics_settled is not None:  # judgments go where they help most
        settled = f"settled: {head.topics_settled:,} of {counted(head.topics, 'topic')}"
        return f"{part} judged, {settled}, {counted(head.expected - head.judgments, 'judgment')} to go."
    topics = f"{head.topics_done:,} of {counted(head.topics, 'topic')} done"
    return f"{part} judged, {topics}."


def _pace_in_words(head: Head, recent: WorkPace, hours: float | None, ends: float | None) -> str:
    """Say when the campaign ends at this pace, or why that can't be said."""
    if head.done or not head.topics:
        return ""
    window = f"{WINDOW_SECONDS / 3600:.0f} hours"
    if head.state != "open":
        return f"The campaign is {head.state}, so there is no end in sight."
    if not recent.judgments:
        return f"No judgment in the last {window}, so there is no pace to go by."
    if recent.simulated:
        return "All recent judgments are simulated, so there is no pace of people to go by."
    if recent.per_hour is None:
        few = counted(recent.judgments, "judgment")
        return f"{few} in the last {window}: too few to say when it ends."
    hourly = counted(max(1, round(recent.per_hour)), "judgment")
    behind = window if recent.hours > 0.9 * WINDOW_SECONDS / 3600 else _how_long(recent.hours)
    pace_said = f"{hourly} an hour in the last {behind}"
    if hours is None or ends is None:
        return f"{pace_said}: at this pace it takes more than a year."
    when = time.strftime("%a %d %b, %H:%M", time.gmtime(ends))
    return f"{pace_said}. At this pace it ends in about {_how_long(hours)}: {when} UTC."


def _how_long(hours: float) -> str:
    """Return a time in words: minutes, hours or days."""
    if hours < 1.5:
        return counted(max(1, round(60 * hours)), "minute")
    return counted(round(hours), "hour") if hours < 48 else counted(round(hours / 24), "day")
