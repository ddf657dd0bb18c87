"""What the dashboard's pages and the API both show: topics, pairs, assessors, ledger and log."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from duelpool.access import audit_log, limits
from duelpool.agreements.vote_values import VoteValues
from duelpool.campaign.log.replay import TopicState
from duelpool.campaign.runners.two_sources import decisions
from duelpool.campaign.settings import Settings
from duelpool.campaign.views.history_pages import (
    LEDGER_ORDERS,
    LedgerEntry,
    ledger_entries,
    lines_as_json,
)
from duelpool.campaign.views.labels import item_labels
from duelpool.campaign.views.log_index import LinesWanted, LogOrder, PlaceInOrder
from duelpool.campaign.views.status import AssessorStatus, CampaignStatus, TopicView
from duelpool.campaign.views.tally import PairTally, pairs_of, votes_on
from duelpool.campaign.views.watch import NotFound
from duelpool.campaign.work import holding
from duelpool.errors import UnknownName
from duelpool.labels import Label, id_prefix, label_of
from duelpool.records import Passage
from duelpool.store import Reading, holdings, log
from duelpool.store.leases import EXTENSIONS
from duelpool.web.manage.dashboard import Dashboard
from duelpool.web.manage.keys import Pass
from duelpool.web.manage.paging import SortColumn, cursor_of, in_order, key_of, page_of
from duelpool.web.manage.schemas import (
    AuditPage,
    AuditRow,
    LedgerPage,
    LogPage,
    PairDetail,
    PairPage,
    PassageText,
    PersonPage,
    TopicDetail,
    TopicPage,
    TopicRow,
    WinMatrixRows,
)

MATRIX_AT_MOST = 50
TOPIC_STATES = ("any", "done", "going on", "waiting", "parked")
EVENTS = {
    log.JUDGMENT: "judgments",
    log.RETRACTION: "retractions",
    log.RESTORATION: "restorations",
    log.RELEASE: "released assignments",
    log.PHASE_CLOSED: "closed phases",
    log.REWIND: "rewound phases",
}
"""The events of the log, and what they are called in a list of them."""
LOG_ORDERS: tuple[LogOrder, ...] = get_args(LogOrder)


# ---- topics


def topic_row(view: TopicView, campaign_status: CampaignStatus) -> TopicRow:
    """Return a topic as a row."""
    price = campaign_status.price
    status = view.status
    survivors = len(view.closings[-1].survivors) if view.closings else status.items
    return TopicRow(
        status=status,
        tags=view.tags,
        survivors=survivors,
        why=view.why,
        cost=None if price is None else price * status.judgments,
        expected_cost=None if price is None else price * status.expected,
    )


def _is(view: TopicView, state: str) -> bool:
    status = view.status
    if state == "done":
        return status.done
    if state == "parked":
        return bool(status.parked)
    if state == "waiting":
        return not status.done and bool(status.waits)
    return state == "any" or not status.done


TOPIC_COLUMNS: dict[str, SortColumn[TopicView]] = {
    "question": SortColumn(lambda view: view.status.text.casefold() or view.status.topic),
    "judged": SortColumn(lambda view: view.status.judgments, largest_first=True),
    "certainty": SortColumn(lambda view: view.status.confidence, largest_first=True),
    "items": SortColumn(lambda view: view.status.items, largest_first=True),
    "left": SortColumn(lambda view: view.status.expected - view.status.judgments, largest_first=True),
    "worth": SortColumn(lambda view: view.status.worth, largest_first=True),
    "gain": SortColumn(lambda view: view.status.gain, largest_first=True),
}


def topics(  # noqa: PLR0917 (what is asked of a list)
    dashboard: Dashboard, cursor: str, limit: int, state: str = "any", search: str = "", order: str = ""
) -> TopicPage:
    """Return a page of topics, in the campaign's order or another one."""
    if state not in TOPIC_STATES:
        raise UnknownName("state of topics", state, TOPIC_STATES)
    status = dashboard.watch.look()
    views = [view for view in status.topics if _is(view, state) and _says(view, search)]
    views = in_order(views, TOPIC_COLUMNS, order)
    rows, following = page_of(views, lambda view: view.status.topic, cursor, limit)
    return TopicPage([topic_row(view, status) for view in rows], len(views), following)


def _says(view: TopicView, search: str) -> bool:
    """Whether a topic's id or question has the words that are searched for."""
    wanted = search.casefold()
    return not wanted or wanted in view.status.topic.casefold() or wanted in view.status.text.casefold()


def topic(dashboard: Dashboard, name: str) -> TopicDetail:
    """Return the details of one topic."""
    status = dashboard.watch.look()
    view = dashboard.watch.topic(name)
    pairs = dashboard.watch.state_of(name, lambda state: pairs_of(state, name))
    return TopicDetail(
        row=topic_row(view, status),
        description=dashboard.watch.text(name).description,
        levels=[list(level) for level in view.levels],
        closings=list(view.closings),
        pairs=sum(bool(pair.counted) for pair in pairs),
        matrix=_matrix(view, pairs),
    )


def _matrix(view: TopicView, pairs: tuple[PairTally, ...]) -> WinMatrixRows:
    """Return the win matrix of the best judged items; those without a level are ordered by their share of wins."""
    lead: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        if pair.counted:
            lead[pair.a].append(pair.wins_a - pair.wins_b)
            lead[pair.b].append(pair.wins_b - pair.wins_a)
    ordered = [item for level in view.levels for item in level if item in lead]
    others = sorted(
        lead.keys() - {*ordered}, key=lambda item: (-sum(lead[item]) / (len(lead[item]) + 1), item)
    )
    items = [*ordered, *others][:MATRIX_AT_MOST]
    at = {item: place for place, item in enumerate(items)}
    wins = [[0.0] * len(items) for _ in items]
    for pair in pairs:
        if pair.a in at and pair.b in at:
            wins[at[pair.a]][at[pair.b]] = pair.wins_a
            wins[at[pair.b]][at[pair.a]] = pair.wins_b
    return WinMatrixRows(items, wins)


# ---- pairs

_PAIR_COLUMNS = {"topic": TOPIC_COLUMNS["question"]}


def pairs(
    dashboard: Dashboard,
    cursor: str,
    limit: int,
    *,
    topics: Collection[str] | None = None,
    assessors: Collection[str] | None = None,
    order: str = "",
) -> PairPage:
    """Return a page of judged pairs, topic by topic; those of some topics and assessors where given."""
    behind = key_of(cursor, str, str, str)
    views = [view for view in dashboard.watch.look().topics if topics is None or view.status.topic in topics]
    names = [view.status.topic for view in in_order(views, _PAIR_COLUMNS, order)]
    if assessors is not None:
        wanted = frozenset(assessors)
        names = [name for name in names if not wanted.isdisjoint(dashboard.watch.judged_by(name))]
    if behind is not None and behind[0] in names:
        names = names[names.index(behind[0]) :]
    rows: list[PairTally] = []
    for name in names:

        def work(state: TopicState, name: str = name) -> tuple[PairTally, ...]:
            return pairs_of(state, name, assessors)

        rows += [
            pair
            for pair in dashboard.watch.state_of(name, work)
            if behind is None or pair.topic != behind[0] or (pair.a, pair.b) > tuple(behind[1:])
        ]
        if len(rows) > limit:
            break
    shown = rows[:limit]
    last = shown[-1] if shown else None
    more = len(rows) > limit and last is not None
    return PairPage(shown, cursor_of(last.topic, last.a, last.b) if more and last else None)


def pair(dashboard: Dashboard, topic: str, a: str, b: str) -> PairDetail:
    """Return a pair with its texts and votes."""
    dashboard.watch.look()
    question = dashboard.watch.text(topic)
    a, b = sorted((a, b))
    votes = dashboard.watch.state_of(topic, lambda state: votes_on(state, a, b))
    tallies = dashboard.watch.state_of(topic, lambda state: pairs_of(state, topic))
    if not votes:
        raise NotFound(f"Topic '{topic}' has no judgment of '{a}' against '{b}'.", remedy="Check the ids.")
    tally = next((each for each in tallies if (each.a, each.b) == (a, b)), None)
    left, right = texts(dashboard, (a, b))
    return PairDetail(tally, question.text, left, right, list(votes))


def labels(dashboard: Dashboard, items: Iterable[str]) -> dict[str, Label]:
    """Return the labels of the items that a page shows, read in one query."""
    return dashboard.campaign.read(lambda tx: item_labels(tx, items))


def topic_labels(dashboard: Dashboard, topics: Iterable[str]) -> dict[str, Label]:
    """Return the labels of the topics that a page shows: their questions, and what tells their ids apart."""
    own = {view.status.topic: view.status.text for view in dashboard.watch.look().topics}
    prefix = id_prefix(list(own))
    return {each: label_of(each, own.get(each, ""), prefix=prefix) for each in topics}


def texts(dashboard: Dashboard, items: Sequence[str]) -> list[PassageText]:
    """Return the texts of some items, in their order."""
    campaign = dashboard.campaign
    passages = campaign.read(lambda tx: holdings.passages(tx, items))
    return [_text(item, passages.get(item)) for item in items]


def _text(item: str, passage: Passage | None) -> PassageText:
    if passage is None:
        return PassageText(item, "", "", "text")
    return PassageText(item, passage.title, passage.text, passage.format)


# ---- people


def _passed(person: AssessorStatus) -> float | None:
    return person.tests_passed / person.tests_seen if person.tests_seen else None


PEOPLE_COLUMNS: dict[str, SortColumn[AssessorStatus]] = {
    "name": SortColumn(lambda person: person.assessor),
    "judgments": SortColumn(lambda person: person.judgments, largest_first=True),
    "usable": SortColumn(lambda person: person.usable, largest_first=True),
    "tests": SortColumn(_passed),
    "agreement": SortColumn(lambda person: person.agreement),
    "seconds": SortColumn(lambda person: person.seconds),
    "left": SortColumn(
        lambda person: None if person.left is None else abs(person.left - 0.5), largest_first=True
    ),
    "pay": SortColumn(lambda person: person.pay, largest_first=True),
}
PEOPLE_ORDERS = ("came", *PEOPLE_COLUMNS)


def people(  # noqa: PLR0917 (what is asked of a list)
    dashboard: Dashboard, cursor: str, limit: int, order: str = "came", state: str = "any", search: str = ""
) -> PersonPage:
    """Return a page of assessors in an order: that in which they came, or by a column."""
    if state not in {"any", "in", "excluded"}:
        raise UnknownName("state of assessors", state, ("any", "in", "excluded"))
    wanted = search.casefold()
    assessors = [
        each
        for each in dashboard.watch.look().assessors
        if state in {"any", each.state} and wanted in each.assessor.casefold()
    ]
    assessors = in_order(assessors, PEOPLE_COLUMNS, "" if order == "came" else order)
    rows, following = page_of(assessors, lambda person: person.assessor, cursor, limit)
    values = dashboard.vote_values.look() or VoteValues()
    known = values.by_name
    own = {each.assessor: known[each.assessor] for each in rows if each.assessor in known}
    models = [*decisions(dashboard.campaign)]
    return PersonPage(list(rows), len(assessors), following, own, values.said, models)


def below_tests(person: AssessorStatus, settings: Settings) -> bool:
    """Whether an assessor of a crowd fails the share of test pairs, or would with the next failed one."""
    return (
        settings.judges == "crowd"
        and settings.test_rule == "share"
        and person.kind == "crowd"
        and person.state != "excluded"
        and person.tests_passed < person.tests_seen
        and person.tests_passed / (person.tests_seen + 1) < settings.test_share
    )


def person_state(person: AssessorStatus, settings: Settings) -> str:
    """Return an assessor's state in words."""
    if person.state == "excluded":
        return "Excluded"
    if below_tests(person, settings):
        failing = person.tests_passed / person.tests_seen < settings.test_share
        return "Fails the test pairs" if failing else "One failed test pair from exclusion"
    return "Included" if person.judgments else "No judgment yet"


# ---- what visitors may hold


@dataclass(frozen=True, slots=True)
class Bounds:
    """What visitors hold, and how much they may: questions, idle people's share, new people per address."""

    held: holding.HeldWork
    turned_away: int  # new visitors, in the last seven days
    per_address: int  # new visitors an hour; 0 for any number
    minutes: int  # that a question is held without an answer, extensions included
    idle_minutes: int
    idle_percent: int


def bounds(dashboard: Dashboard) -> Bounds:
    """Return what visitors hold and may hold now."""
    campaign = dashboard.campaign

    def look(tx: Reading) -> tuple[holding.HeldWork, int]:
        return holding.held(tx), limits.turned_away(tx.connection, tx.campaign, tx.now)

    held, turned_away = campaign.read(look)
    return Bounds(
        held=held,
        turned_away=turned_away,
        per_address=campaign.settings.visitors_per_address,
        minutes=max(1, round((1 + EXTENSIONS) * campaign.settings.lease_seconds / 60)),
        idle_minutes=round(holding.IDLE_SECONDS / 60),
        idle_percent=round(100 * holding.IDLE_SHARE),
    )


# ---- money


def ledger(  # noqa: PLR0917 (what is asked of a list)
    dashboard: Dashboard, cursor: str, limit: int, assessor: str = "", order: str = "", search: str = ""
) -> LedgerPage:
    """Return a page of the ledger, the newest entry first or in another order."""
    name = order.removeprefix("-") or "time"
    if name not in LEDGER_ORDERS:
        raise UnknownName("order", name, LEDGER_ORDERS)
    behind = key_of(cursor, str if name in {"assessor", "entry"} else int, int)
    falling = (name in {"time", "amount"}) != order.startswith("-")
    who = dashboard.watch.assessor(assessor).assessor if assessor else ""
    entries = dashboard.campaign.read(
        lambda tx: ledger_entries(
            tx,
            limit + 1,
            order=name,
            falling=falling,
            behind=None if behind is None else (behind[0], behind[1]),
            assessor=who,
            search=search,
        )
    )
    shown = entries[:limit]
    return LedgerPage(shown, _behind_entry(shown[-1], name) if len(entries) > limit else None)


def _behind_entry(entry: LedgerEntry, order: str) -> str:
    return cursor_of(entry.id if order == "time" else getattr(entry, order), entry.id)


# ---- the log


def lines(
    dashboard: Dashboard,
    cursor: str,
    limit: int,
    *,
    topics: Collection[str] | None = None,
    assessors: Collection[str] | None = None,
    event: str = "",
    order: str = "",
) -> LogPage:
    """Return a page of the log, the newest line first or in another order; of some topics and assessors where given."""
    if event and event not in EVENTS:
        raise UnknownName("event", event, EVENTS)
    by = order.removeprefix("-") or "time"
    if by not in LOG_ORDERS:
        raise UnknownName("order", by, LOG_ORDERS)
    behind = key_of(cursor, str, float, str, int)
    status = dashboard.watch.look()
    places = dashboard.log_index.find(
        dashboard.campaign,
        status,
        limit + 1,
        LinesWanted(topics, assessors, event),
        order=by,
        parts=_log_parts(status, by, order.startswith("-")),
        oldest_first=order == "-time",
        behind=None if behind is None else PlaceInOrder(*behind),
    )
    shown = [(place.topic, place.seq) for place in places[:limit]]
    rows = dashboard.campaign.read(lambda tx: lines_as_json(tx, shown))
    return LogPage(rows, cursor_of(*places[limit - 1]) if len(places) > limit else None)


def _log_parts(status: CampaignStatus, by: LogOrder, down: bool) -> list[str]:
    """Return the parts of the log that an order puts one after the other: topics or assessors."""
    if by == "topic":
        views = in_order(status.topics, TOPIC_COLUMNS, "-question" if down else "question")
        return [view.status.topic for view in views]
    if by == "assessor":
        return sorted((each.assessor for each in status.assessors), reverse=down)
    return []


def topic_named(dashboard: Dashboard, name: str) -> list[str] | None:
    """Return the topic of a name as a list, None without a name; raise NotFound for one that isn't there."""
    return [dashboard.watch.topic(name).status.topic] if name else None


def assessor_named(dashboard: Dashboard, name: str) -> list[str] | None:
    """Return the assessor of a name as a list, None without a name; raise NotFound for one that isn't there."""
    return [dashboard.watch.assessor(name).assessor] if name else None


def topics_with(dashboard: Dashboard, words: str) -> list[str] | None:
    """Return the topic of this id, or those whose ids or questions have these words; None for all of them."""
    views = dashboard.watch.look().topics
    if not words:
        return None
    if any(view.status.topic == words for view in views):
        return [words]
    return [view.status.topic for view in views if _says(view, words)]


def assessors_with(dashboard: Dashboard, words: str) -> list[str] | None:
    """Return the assessor of this name, or those whose names have these letters; None for all of them."""
    names = [each.assessor for each in dashboard.watch.look().assessors]
    if not words or words in names:
        return [words] if words else None
    return [name for name in names if words.casefold() in name.casefold()]


def audit_page(access: Pass, dashboard: Dashboard, cursor: str, limit: int) -> AuditPage:
    """Return a page of the audit log, the newest entry first; entries of the whole store for its managers only."""
    behind = key_of(cursor, int)
    whole = access.everywhere and "manage" in access.scopes
    before = 0 if behind is None else max(1, min(behind[0], 2**62))
    rows = dashboard.campaign.store.read(
        lambda connection: audit_log.read(
            connection, dashboard.campaign.id, whole_store=whole, before=before, limit=limit + 1
        )
    )
    shown = [
        AuditRow(each.id, each.time, each.who, each.action, each.about, each.campaign or "")
        for each in rows[:limit]
    ]
    return AuditPage(shown, cursor_of(shown[-1].id) if len(rows) > limit else None)
