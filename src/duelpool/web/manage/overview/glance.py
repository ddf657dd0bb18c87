"""The Overview: how far a campaign is, who works, what needs attention, the best answers so far and who leads.

Everything comes from what the dashboard keeps; of texts, only those that are shown are read.
"""

import heapq
from dataclasses import dataclass

from duelpool.campaign.views import certainty
from duelpool.campaign.views.labels import item_labels
from duelpool.campaign.views.status import CampaignStatus, TopicStatus
from duelpool.campaign.work.pace import NOW_SECONDS
from duelpool.errors import DuelpoolError
from duelpool.evaluation import measures_of
from duelpool.evaluation.systems import SystemBoard
from duelpool.frames import counted
from duelpool.labels import Label, first_words
from duelpool.leaderboard import USUAL_MEASURE
from duelpool.leaderboard.board import Board
from duelpool.store import StoreError, log
from duelpool.web.manage import systems
from duelpool.web.manage.dashboard import Dashboard, blinded
from duelpool.web.manage.overview.attention import Attention, attention
from duelpool.web.manage.overview.forecast import ProgressForecast, forecast
from duelpool.web.manage.schemas import Head, head_of

BEST_SHOWN = 4  # topics
LEADERS_SHOWN = 5
WORKING_SHOWN = 5
SIDED_AT_LEAST = 20  # choices before the share of left ones is shown


@dataclass(frozen=True, slots=True)
class Worker:
    """An assessor who works now: judgments of the last minutes, and the time of the last one."""

    assessor: str
    judgments: int
    last: str | None


@dataclass(frozen=True, slots=True)
class BestAnswer:
    """The first of a topic's best items with the beginning of its text, and how sure it is."""

    topic: str
    question: str
    done: bool
    item: str
    text: str
    others: int  # not told apart from it
    certainty: str
    statement: str


@dataclass(frozen=True, slots=True)
class Leader:
    """A system at the head of the leaderboard; `value` is the measure's mean, or the share of votes won."""

    place: str
    system: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Leaders:
    """The head of the leaderboard: a sentence, and the first systems."""

    sentence: str
    value: str  # what the values are
    rows: list[Leader]
    more: int  # systems behind them


@dataclass(frozen=True, slots=True)
class OverviewShown:
    """A campaign at a glance: head figures, forecast, who works now, what needs attention, best answers, leaders."""

    head: Head
    forecast: ProgressForecast
    working: list[Worker]
    working_minutes: int
    attention: list[Attention]
    best: list[BestAnswer]
    leaders: Leaders | None


def overview(dashboard: Dashboard, *, blind: bool = False) -> OverviewShown:
    """Return a campaign at a glance."""
    campaign = dashboard.campaign
    status = dashboard.watch.look()
    head = head_of(campaign.id, status)
    recent = dashboard.pace()
    return OverviewShown(
        head=head,
        forecast=forecast(head, recent),
        working=[
            Worker(each.assessor, each.lately, log.iso_time(each.last) if each.judgments else None)
            for each in recent.working
        ],
        working_minutes=round(NOW_SECONDS / 60),
        attention=attention(dashboard, status, head),
        best=best_answers(dashboard, status),
        leaders=leaders(dashboard, blind),
    )


# ---- the best answers


def best_answers(dashboard: Dashboard, status: CampaignStatus) -> list[BestAnswer]:
    """Return the best answers of a few topics: of those that are done, and of the surest, first."""
    named = [each for each in status.topic_statuses if each.best]
    shown = heapq.nlargest(BEST_SHOWN, named, key=lambda each: (each.done, _sure(each)))
    labels = dashboard.campaign.read(lambda tx: item_labels(tx, [each.best[0] for each in shown]))
    return [_best_answer(each, labels[each.best[0]]) for each in shown]


def _sure(topic: TopicStatus) -> float:
    by_chance = topic.certainty is not None and topic.certainty.by_chance
    return 0.0 if topic.confidence is None or by_chance else topic.confidence


def _best_answer(topic: TopicStatus, label: Label) -> BestAnswer:
    return BestAnswer(
        topic=topic.topic,
        question=first_words(topic.text, 160),
        done=topic.done,
        item=label.id,
        text=label.tip,
        others=len(topic.best) - 1,
        certainty=certainty.in_short(topic.certainty if topic.statement else None),
        statement=certainty.in_words(topic.certainty, len(topic.best), briefly=True)
        if topic.statement
        else "",
    )


# ---- who leads


def leaders(dashboard: Dashboard, blind: bool) -> Leaders | None:
    """Return the head of the leaderboard; None while there is none."""
    try:
        if dashboard.campaign.live.goal.of_systems:
            boards = dashboard.systems().boards
            names = dashboard.aliases() if blind else None
            first = next(iter(boards), None)
            if first is None or not first.rows:
                return None
            return _of_systems(first if names is None else systems.renamed(first, names))
        if not dashboard.leaderboard.runs:
            return None
        board = dashboard.leaderboard.board(USUAL_MEASURE)
        return _of_runs(blinded(board, dashboard.aliases()) if blind else board) if board.rows else None
    except StoreError:
        raise
    except DuelpoolError:
        return None  # the leaderboard's own page says why


def _of_systems(board: SystemBoard) -> Leaders:
    first = board.rows[0]
    won = "" if first.win_rate is None else f"{100 * first.win_rate:.0f} % of its votes"
    rivals = 1 + len(board.rivals)  # as the leaderboard's own sentence says
    over = f"{counted(board.votes, 'vote')} on {counted(board.questions, 'question')}"
    if board.same_answers:  # their questions may have no vote
        over = f"{counted(board.votes, 'vote')} and {counted(board.same_answers, 'tie')} of the same answers"
    missing = len(board.without_votes)
    without = (
        f" {counted(missing, 'system')} {'has' if missing == 1 else 'have'} no votes yet." if missing else ""
    )
    sentence = f"{who_leads(first.system, won, rivals, len(board.rows))}, over {over}.{without}"
    rows = [
        Leader(row.ranks.replace("-", "–"), row.system, row.win_rate) for row in board.rows[:LEADERS_SHOWN]
    ]
    return Leaders(
        sentence,
        "Possible ranks, which hold for all systems at once, and the share of votes won",
        rows,
        len(board.rows) - len(rows),
    )


def _of_runs(board: Board) -> Leaders:
    first = board.rows[0]
    rivals = sum(row.could_be_first for row in board.rows)
    mean = "" if first.mean is None else f"{first.mean:.3f}"  # as in the rows
    over = counted(board.topics, "judged topic")
    sentence = f"{who_leads(first.run, mean, rivals, len(board.rows))}, over {over}."
    rows = [
        Leader(str(row.place) if board.has_places else "–", row.run, row.mean)
        for row in board.rows[:LEADERS_SHOWN]
    ]
    title = measures_of(board.measure, {})[0].title
    value = f"{title}, {board.measure}" if title else board.measure
    return Leaders(sentence, value, rows, len(board.rows) - len(rows))


def who_leads(first: str, score: str, rivals: int, systems: int) -> str:
    """Return who leads, with what, and how many could still be first, without a full stop.

    None leads where all could be first.
    """
    by = f" with {score}" if score else ""
    if systems == 1:
        return f"{first} is the only system{by and ','}{by}"
    if rivals >= systems:
        return f"All {systems:,} systems could still be first"
    if rivals <= 1:
        return f"{first} leads{by}; no other system could still be first"
    return f"{first} leads{by}; {rivals:,} of {systems:,} systems could still be first"
