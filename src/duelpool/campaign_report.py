"""The report on a campaign as a page to share: leaderboard, best answers, people, agreement and money."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from duelpool.agreements import find
from duelpool.agreements.campaigns import votes_of
from duelpool.campaign import Campaign
from duelpool.campaign.views.certainty import NOT_FROM_CHANCE, in_short, on_what, percent
from duelpool.campaign.views.status import AssessorStatus, CampaignStatus
from duelpool.campaign.views.watch import Watch
from duelpool.evaluation import Evaluation
from duelpool.evaluation.side_by_side import side_by_side
from duelpool.evaluation.systems import SystemBoard
from duelpool.leaderboard.charts import (
    board_chart,
    history_chart,
    history_table,
    systems_chart,
    systems_chart_by_side,
)
from duelpool.leaderboard.live import Board, History, LiveLeaderboard
from duelpool.leaderboard.scoring import leaderboard
from duelpool.leaderboard.systems import boards as system_boards
from duelpool.report import Cell, Chapter, Fact, Table
from duelpool.store import holdings

MEASURES = ("RR", "Compat(p=0.8)")
TRUSTED = ("summary", "systems", "alpha", "transitivity")  # statistics of agreement
SHOWN = 160  # characters of a best answer
MATRIX_AT_MOST = 12  # systems whose votes against each other are a table
FEW = 3  # points that a history needs to be worth drawing


def facts(snapshot: CampaignStatus) -> list[Fact]:
    """Return the figures at the head of the page."""
    listed = [
        Fact(f"{snapshot.total('done')} of {len(snapshot.topics)}", "topics done"),
        Fact(f"{snapshot.total('judgments'):,}", "judgments that count"),
        Fact(f"{len(snapshot.assessors):,}", "assessors"),
    ]
    if snapshot.money.spent:
        listed.append(Fact(_amount(snapshot.money.spent, snapshot), "spent"))
    return listed


def chapters(campaign: Campaign, watch: Watch, measures: Sequence[str] = MEASURES) -> list[Chapter]:
    """Return the chapters of the report on a campaign in its present state."""
    snapshot = watch.look()
    if campaign.live.goal.of_systems:
        return [*_systems(campaign), *_about_people(campaign, snapshot)]
    live = LiveLeaderboard(watch)
    parts: list[Chapter] = []
    board = live.board(measures[0])
    if board.rows:
        scored = leaderboard(campaign, list(measures), interval="t")
        parts.append(_leaders(board, scored, live))
    return [*parts, _answers(campaign, snapshot), *_about_people(campaign, snapshot)]


def _about_people(campaign: Campaign, snapshot: CampaignStatus) -> list[Chapter]:
    parts = [_people(snapshot), *_agreement(campaign)]
    if snapshot.money.spent or snapshot.money.budget is not None:
        parts.append(_money(snapshot))
    return parts


def _systems(campaign: Campaign) -> list[Chapter]:
    """Return a chapter for each criterion: the leaderboard, or those of people and of models side by side."""
    boards = system_boards(campaign)
    if not boards:
        return [Chapter("Leaderboard", ("There is no vote between systems yet.",))]
    both = {each.criterion: each for each in side_by_side(boards)}
    several = len({board.criterion for board in boards}) > 1
    chapters = []
    for board in boards:
        title = f"Leaderboard: {board.criterion}" if several else "Leaderboard"
        beside = both.get(board.criterion)
        if beside is None:
            by = "" if board.judges == "all" else f", by {board.judges}"
            words = (board.headline, *board.notes())
            drawn = (systems_chart(board.rows),)
            chapters.append(Chapter(f"{title}{by}", words, drawn, tuple(_board_tables(board))))
        elif board.judges == "people":
            tables = [replace(beside.table(), caption="People and models side by side", cards=True)]
            for each in (beside.people, beside.models):
                own = _board_tables(each)
                own[0] = replace(own[0], folded=True)
                tables += [replace(table, caption=f"{table.caption}, by {each.judges}") for table in own]
            words = (*beside.headlines(), str(beside), *beside.notes())
            chapters.append(
                Chapter(
                    f"{title}, by people and models",
                    words,
                    (systems_chart_by_side(beside.rows),),
                    tuple(tables),
                )
            )
    return chapters


def _board_tables(board: SystemBoard) -> list[Table]:
    """Return a leaderboard's tables: the systems, each against the next, and head to head."""
    caption = "Strengths with their intervals; ranks for all systems at once"
    tables = [replace(board.table(), caption=caption, cards=True)]
    words = tuple((str(board.meeting(*pair)),) for pair in pairwise(board.order))
    tables.append(Table(("in words",), words, caption="Each system against the next", folded=True))
    if len(board.rows) <= MATRIX_AT_MOST:
        tables.append(replace(board.matrix_table(), caption="Head to head", folded=True))
    return tables


def _leaders(board: Board, scored: Evaluation, leaderboard: LiveLeaderboard) -> Chapter:
    first, *others = board.rows
    rivals = [row.run for row in others if row.could_be_first]
    if rivals:
        doubt = f"Not significantly below it (paired t-test, corrected for all pairs): {', '.join(rivals)}."
    else:
        doubt = "Every other run is significantly below it (paired t-test, corrected for all pairs)."
    charts = [board_chart(board.rows, board.measure)]
    tables = [replace(scored.table(), caption="Means with their 95 % intervals")]
    points = leaderboard.growth(board.measure)
    if len(points) >= FEW:
        history, ranked = History(board.measure, points, ready=True), [row.run for row in board.rows]
        charts.append(history_chart(history, ranked))
        tables.append(history_table(history, ranked))
    return Chapter(
        "Leaderboard",
        (f"{first.run} leads by {board.measure} over {board.topics} topics. {doubt}",),
        tuple(charts),
        tuple(tables),
    )


def _answers(campaign: Campaign, snapshot: CampaignStatus) -> Chapter:
    best = {item for view in snapshot.topics for item in view.status.best[:1]}
    texts = campaign.read(lambda tx: holdings.passages(tx, sorted(best)))
    rows: list[tuple[Cell, ...]] = []
    for view in snapshot.topics:
        topic = view.status
        item = topic.best[0] if topic.best else None
        text = " ".join(texts[item].text.split()) if item in texts else ""
        rows.append(
            (
                topic.text or topic.topic,
                ", ".join(topic.best[:3]),
                in_short(topic.certainty) if topic.statement else None,
                topic.judgments,
                text if len(text) <= SHOWN else f"{text[: SHOWN - 1].rstrip()}…",
            )
        )
    columns = ("question", "best", "certainty", "judgments", "its text")
    words = [f"{snapshot.strategy} asked {snapshot.total('judgments'):,} times in {len(rows)} topics."]
    tables = [Table(columns, tuple(rows), caption="Topic by topic")]
    said = [view.status for view in snapshot.topics if view.status.statement]
    if sure := [topic.confidence for topic in said if topic.confidence is not None]:
        words.append(
            "Certainty is the chance that a best item is among those named: "
            f"{percent(sum(sure) / len(sure))} on average over the {len(sure)} topics where it is stated."
        )
    if refused := sum(topic.certainty is not None and topic.certainty.by_chance for topic in said):
        topics = f"{refused} {'topic' if refused == 1 else 'topics'}"
        words.append(f'The certainty of {topics} is "chance". {NOT_FROM_CHANCE}')
    words += filter(None, dict.fromkeys(on_what(topic.certainty) for topic in said))
    if said:
        stated = tuple(
            (topic.text or topic.topic, ", ".join(topic.best[:3]), topic.statement) for topic in said
        )
        each = Table(("question", "best", "certainty"), stated, caption="How sure the best are", folded=True)
        tables.append(each)
    return Chapter("Best answers", tuple(words), tables=tuple(tables))


def _people(snapshot: CampaignStatus) -> Chapter:
    excluded = [person for person in snapshot.assessors if person.state == "excluded"]
    words = [f"{len(snapshot.assessors)} people judged."]
    if excluded:
        lost = sum(person.judgments - person.usable for person in excluded)
        words.append(
            f"{len(excluded)} of them were excluded; {lost} of their judgments no longer count, and their pairs were "
            "asked again. Their judgments stay in the log, and stay paid."
        )
    sided = snapshot.left_choices + snapshot.right_choices
    if sided:
        words.append(
            f"The left side was chosen in {100 * snapshot.left_choices / sided:.1f} % of {sided:,} choices."
        )
    columns = ("assessor", "state", "judged", "count", "test pairs", "agrees", "left", "seconds", "pay")
    rows = tuple(_person(each) for each in snapshot.assessors)
    table = Table(columns, rows, caption="All assessors", folded=True)
    return Chapter("People", tuple(words), tables=(table,))


def _person(person: AssessorStatus) -> tuple[Cell, ...]:
    return (
        person.assessor,
        person.state,
        person.judgments,
        person.usable,
        f"{person.tests_passed} of {person.tests_seen}" if person.tests_seen else None,
        None if person.agreement is None else f"{person.agreement:.2f}",
        None if person.left is None else f"{person.left:.2f}",
        None if person.seconds is None else f"{person.seconds:.1f}",
        f"{person.pay / 100:,.2f}" if person.pay else None,
    )


def _agreement(campaign: Campaign) -> list[Chapter]:
    """Return a chapter on agreement, where enough people judged the same pairs."""
    votes = votes_of(campaign)
    findings = [each for each in (find(votes, name) for name in TRUSTED) if each.table.rows]
    if not findings:
        return []
    notes = tuple(dict.fromkeys(note for each in findings for note in each.notes))
    tables = tuple(replace(each.shown, caption=each.title) for each in findings)
    return [Chapter("Reliability", notes, tables=tables)]


def _money(snapshot: CampaignStatus) -> Chapter:
    spent = snapshot.money
    rows: list[tuple[Cell, ...]] = [
        (name, _amount(amount, snapshot))
        for name, amount in (
            ("rewards", spent.rewards),
            ("fees", spent.fees),
            ("other", spent.others),
            ("spent", spent.spent),
            ("left of the budget", spent.left),
            ("for a judgment that counts", spent.per_usable_judgment),
            ("pay per hour", spent.pay_per_hour),
        )
        if amount
    ]
    return Chapter("Money", tables=(Table(("what", "amount"), tuple(rows), caption="What it cost"),))


def _amount(minor: float, snapshot: CampaignStatus) -> str:
    return f"{minor / 100:,.2f} {snapshot.money.currency}"
