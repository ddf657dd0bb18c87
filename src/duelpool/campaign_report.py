"""The report on a campaign as a page to share: the answer first, how sure it is, what it took; definitions last."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from duelpool.agreements import find, verdict
from duelpool.agreements.campaigns import votes_of
from duelpool.agreements.charts import finding_chart
from duelpool.campaign import Campaign
from duelpool.campaign.views.certainty import NOT_FROM_CHANCE, in_short, on_what, percent
from duelpool.campaign.views.labels import item_labels
from duelpool.campaign.views.simulated import simulated_note
from duelpool.campaign.views.status import AssessorStatus, CampaignStatus, TopicStatus
from duelpool.campaign.views.watch import Watch
from duelpool.evaluation import Evaluation, measures_of
from duelpool.evaluation.side_by_side import side_by_side
from duelpool.evaluation.systems import SystemBoard
from duelpool.frames import counted
from duelpool.judges.live import is_simulated
from duelpool.leaderboard.board import Board
from duelpool.leaderboard.charts import (
    board_chart,
    history_chart,
    history_table,
    systems_chart,
    systems_chart_by_side,
)
from duelpool.leaderboard.live import History, LiveLeaderboard
from duelpool.leaderboard.scoring import leaderboard
from duelpool.leaderboard.systems import boards as system_boards
from duelpool.report import Cell, Table
from duelpool.report.page import Chapter, Fact

MEASURES = ("Compat(p=0.8)", "RR")  # the dashboard begins with the same one
DEFINITIONS_OF_SYSTEMS = (
    "Elo: a system's strength by its votes (Bradley-Terry), 1,000 for the average; 400 points more win 10 votes of 11.",
    "Rank: the places that a system could have; the ranges hold for all systems at once.",
    "Beats the average: the share of votes that it would win against a system of average strength, with its interval.",
    "Win rate: the share of its own votes that it won; ties count half.",
)
LEAST_SPARED = 0.005  # a share that is no 0 % in figures
TRUSTED = ("summary", "systems", "alpha", "transitivity")  # statistics of agreement
NAMED = 5  # runs that a sentence names
FOLDED_FROM = 20  # rows from which a table that a chart shows too is folded
MATRIX_AT_MOST = 12  # systems whose votes against each other are a table
FEW = 3  # points that a history needs to be worth drawing


def facts(snapshot: CampaignStatus) -> list[Fact]:
    """Return the figures at the head of the page."""
    listed = [
        Fact(f"{snapshot.total('done')} of {len(snapshot.topics)}", "topics done"),
        Fact(f"{snapshot.total('judgments'):,}", "judgments that count"),
        Fact(f"{len(_who_judged(snapshot)):,}", "assessors"),
    ]
    spared = _spared(snapshot)
    if spared is not None and spared.done and spared.share >= LEAST_SPARED:
        listed.append(Fact(f"{100 * spared.share:.0f} %", "of all pairs spared"))
    if snapshot.money.spent:
        listed.append(Fact(_amount(snapshot.money.spent, snapshot), "spent"))
    return listed


def chapters(
    campaign: Campaign, watch: Watch, measures: Sequence[str] = MEASURES, further: Sequence[Chapter] = ()
) -> list[Chapter]:
    """Return the chapters of the report on a campaign in its present state; `further` ones precede the definitions."""
    snapshot = watch.look()
    defined: list[str] = []
    if campaign.live.goal.of_systems:
        boards = system_boards(campaign)
        answer = _which_systems_lead(boards)
        parts = _systems(boards)
        defined += DEFINITIONS_OF_SYSTEMS
    else:
        live = LiveLeaderboard(watch)
        board = live.with_slow_figures(live.board(measures[0]), wait=True)
        answer, parts = (), []
        if board.rows:
            scored = leaderboard(campaign, list(measures), interval="t")
            answer = (_who_leads(board),)
            parts.append(_leaders(board, scored, live))
            defined += _definitions_of_scores(measures, board)
        answer += (_what_is_known(snapshot),)
        parts.append(_answers(campaign, snapshot))
        defined += _definitions_of_certainty(snapshot)
    spared = _spared(snapshot)
    answer += () if spared is None else (spared.in_words(snapshot),)
    if (spending := snapshot.spending) is not None:
        answer += (f"Judgments went where they help most; {spending}.",)
        defined.append(f"Settled: {spending.spend.settled_at}.")
    parts.append(_people(snapshot))
    reliability, notes = _agreement(campaign)
    parts += reliability
    if snapshot.money.spent or snapshot.money.budget is not None:
        parts.append(_money(snapshot))
    ending = [Chapter("Definitions", tuple(dict.fromkeys((*defined, *notes))))] if defined or notes else []
    answer += tuple(filter(None, [simulated_note(snapshot)]))
    return [Chapter("In short", answer), *parts, *further, *ending]


# ---- the answer, and what it took


def _who_leads(board: Board) -> str:
    first, *others = board.rows
    over = f"by {board.measure} over {counted(board.topics, 'topic')}"
    rivals = [row.run for row in others if row.could_be_first]
    if not others:
        return f"{first.run} is the only run; its mean {over} is {first.mean or 0:.3f}."
    if not rivals:
        return f"{first.run} leads {over}: every other run is significantly below it."
    if len(rivals) == len(others) > 1:
        return f"All {counted(len(board.rows), 'run')} could still be first {over}."
    named = ", ".join(rivals[:NAMED]) + (f" and {len(rivals) - NAMED} more" if len(rivals) > NAMED else "")
    return f"{first.run} leads {over}, but {counted(len(rivals), 'run')} could still be first: {named}."


def _which_systems_lead(boards: Sequence[SystemBoard]) -> tuple[str, ...]:
    """Return the headline of each leaderboard, with its criterion and judges where there are several."""
    several = len({board.criterion for board in boards}) > 1
    said = []
    for board in boards:
        on = [f"on {board.criterion}"] if several else []
        by = [] if board.judges == "all" else [f"by {board.judges}"]
        about = ", ".join((*on, *by))
        said.append(f"{about[:1].upper()}{about[1:]}: {board.headline}" if about else board.headline)
    return tuple(said) or ("There is no vote between systems yet.",)


def _what_is_known(snapshot: CampaignStatus) -> str:
    known = [topic for topic in snapshot.topic_statuses if topic.best]
    sure = [topic.confidence for topic in known if topic.confidence is not None]
    certain = f", with a certainty of {percent(sum(sure) / len(sure))} on average" if sure else ""
    of = f"{len(known):,} of {counted(len(snapshot.topics), 'topic')}"
    so_far = "A best answer is" if snapshot.done else "So far a best answer is"
    return f"{so_far} known for {of}{certain}." if known else "No topic has a best answer yet."


@dataclass(frozen=True, slots=True)
class Spared:
    """What finished topics took, against one judgment of every pair of theirs; without finished ones, all so far."""

    topics: int
    done: bool
    judgments: int
    pairs: int

    @property
    def share(self) -> float:
        """The share of all pairs that need no judgment; negative where it took more."""
        return 1 - self.judgments / self.pairs

    def in_words(self, snapshot: CampaignStatus) -> str:
        """Return what was spared, in judgments, and in hours and money where those are known."""
        where = f"In {counted(self.topics, 'finished topic')}" if self.done else "So far"
        took = (
            f"{where} it took {counted(self.judgments, 'judgment')}; every pair once would be {self.pairs:,}"
        )
        spared = self.pairs - self.judgments
        if not self.done or self.share < LEAST_SPARED:
            return f"{took}."
        timed = [
            (each.seconds, each.judgments)
            for each in snapshot.assessors
            if each.seconds and not is_simulated(each.assessor)
        ]
        worth: list[str] = []
        if timed:
            seconds = sum(mean * count for mean, count in timed) / sum(count for _, count in timed)
            hours = spared * seconds / 3600
            worth.append(f"{hours:,.0f} hours" if hours >= 2 else counted(math.ceil(hours * 60), "minute"))
        if snapshot.money.per_usable_judgment:
            worth.append(_amount(spared * snapshot.money.per_usable_judgment, snapshot))
        more = f", about {' and '.join(worth)}" if worth else ""
        return f"{took}. {spared:,} ({100 * self.share:.0f} %) were spared{more}."


def _spared(snapshot: CampaignStatus) -> Spared | None:
    finished = [topic for topic in snapshot.topic_statuses if topic.done]
    counting = finished or list(snapshot.topic_statuses)
    pairs = sum(topic.items * (topic.items - 1) // 2 for topic in counting)
    judgments = sum(topic.judgments for topic in counting)
    if not pairs or not judgments or snapshot.stage == "grading":
        return None
    return Spared(len(counting), bool(finished), judgments, pairs)


# ---- leaderboards


def _systems(boards: Sequence[SystemBoard]) -> list[Chapter]:
    """Return a chapter for each criterion: the leaderboard, or those of people and of models side by side."""
    both = {each.criterion: each for each in side_by_side(boards)}
    several = len({board.criterion for board in boards}) > 1
    chapters = []
    for board in boards:
        title = f"Leaderboard: {board.criterion}" if several else "Leaderboard"
        beside = both.get(board.criterion)
        if beside is None:
            by = "" if board.judges == "all" else f", by {board.judges}"
            words = tuple(board.notes()) if len(boards) == 1 else (board.headline, *board.notes())
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
    ranked = [row.run for row in board.rows]
    charts = [board_chart(board.rows, board.measure)]
    table = scored.table()
    caption = f"Means of {counted(len(ranked), 'run')} with their 95 % intervals"
    tables = [replace(table, caption=caption, cards=True, folded=len(ranked) >= FOLDED_FROM)]
    if any(row.expected is not None for row in board.rows):
        tables.append(_expected_table(board))
    points = leaderboard.growth(board.measure)
    if len(points) >= FEW:
        history = History(board.measure, points, ready=True)
        charts.append(history_chart(history, ranked))
        tables.append(replace(history_table(history, ranked), cards=True))
    words = f"Mean {board.measure} with 95 % intervals, the best on top; names in bold could still be first."
    return Chapter("Leaderboard", (words,), tuple(charts), tuple(tables))


def _expected_table(board: Board) -> Table:
    def ends(low: float | None, high: float | None) -> str:
        return "–" if low is None or high is None else f"{low:.3f} to {high:.3f}"

    rows = tuple(
        (
            row.run,
            None if row.expected is None else round(row.expected, 3),
            ends(row.new_low, row.new_high),
            ends(row.again_low, row.again_high),
        )
        for row in board.rows
    )
    columns = ("run", f"expected {board.measure}", "on new topics", "judged again, same topics")
    caption = "Expected scores, with the noise of labels and 95 % intervals"
    return Table(columns, rows, caption=caption, cards=True, folded=True)


# ---- best answers


def _answers(campaign: Campaign, snapshot: CampaignStatus) -> Chapter:
    best = {item for view in snapshot.topics for item in view.status.best[:3]}
    labels = campaign.read(lambda tx: item_labels(tx, sorted(best)))
    rows: list[tuple[Cell, ...]] = []
    begun = [topic for topic in snapshot.topic_statuses if topic.judgments or topic.done]
    for topic in begun:
        first = str(labels[topic.best[0]]).replace("(…", "(…\u2060") if topic.best else "–"  # one word
        more = f"; {len(topic.best) - 1} more named" if len(topic.best) > 1 else ""
        certain = in_short(topic.certainty) if topic.statement else None
        rows.append(
            (
                topic.text or topic.topic,
                f"{first}{more}",
                certain,
                topic.judgments,
                *_still_open(topic, snapshot),
            )
        )
    tables = [
        Table(
            (
                "question",
                "best answer",
                "certainty",
                "judgments",
                *(() if snapshot.spending is None else ("still open",)),
            ),
            tuple(rows),
            caption="Topic by topic",
            cards=True,
            keys=2,
        )
    ]
    judged = counted(snapshot.total("judgments"), "judgment")
    words = [f"{snapshot.strategy} asked for {judged} in {counted(len(rows), 'topic')}."]
    if left := len(snapshot.topic_statuses) - len(begun):
        words.append(f"{counted(left, 'topic')} {'has' if left == 1 else 'have'} no judgment yet.")
    said = [topic for topic in snapshot.topic_statuses if topic.statement]
    if refused := sum(topic.certainty is not None and topic.certainty.by_chance for topic in said):
        words.append(f'The certainty of {counted(refused, "topic")} is "chance". {NOT_FROM_CHANCE}')
    if said:
        stated = tuple(
            (
                topic.text or topic.topic,
                ", ".join(labels[item].short_id for item in topic.best[:3]),
                topic.statement,
            )
            for topic in said
        )
        columns = ("question", "best", "certainty")
        tables.append(Table(columns, stated, caption="How sure the best are", folded=True, cards=True))
    return Chapter("Best answers", tuple(words), tables=tuple(tables))


def _still_open(topic: TopicStatus, snapshot: CampaignStatus) -> tuple[Cell, ...]:
    """Return what is open in a topic, as a column; none where judgments are spent evenly."""
    spending = snapshot.spending
    if spending is None:
        return ()
    return (
        "settled" if topic.settled else None if topic.worth is None else spending.spend.in_short(topic.worth),
    )


def _definitions_of_scores(measures: Sequence[str], board: Board) -> list[str]:
    known = measures_of(list(measures), {})
    noise = [
        "Expected score: the mean by the best answers themselves, as far as the judgments and the run's own ranking "
        "tell them; on new topics: its 95 % confidence interval.",
        "Judged again, same topics: where the mean falls in 95 % of cases if other people judge the same questions.",
    ]
    return [
        *(f"{each}: {each.about}" for each in known if each.about),
        "95 % interval: over topics, from the t-distribution; it never goes beyond the measure's range.",
        "Could still be first: not significantly below the leader (paired t-test over topics, corrected for all "
        "pairs, 5 %).",
        *(noise if any(row.expected is not None for row in board.rows) else ()),
    ]


def _definitions_of_certainty(snapshot: CampaignStatus) -> list[str]:
    said = [topic for topic in snapshot.topic_statuses if topic.statement]
    if not said:
        return []
    rests = filter(None, dict.fromkeys(on_what(topic.certainty) for topic in said))
    return ["Certainty: the chance that a best item is among those named.", *rests]


# ---- people, agreement, money


def _who_judged(snapshot: CampaignStatus) -> list[AssessorStatus]:
    return [person for person in snapshot.assessors if person.judgments]


def _people(snapshot: CampaignStatus) -> Chapter:
    excluded = [person for person in snapshot.assessors if person.state == "excluded"]
    words = [f"{counted(len(_who_judged(snapshot)), 'assessor')} judged."]
    if excluded:
        lost = sum(person.judgments - person.usable for person in excluded)
        words.append(
            f"{len(excluded)} {'was' if len(excluded) == 1 else 'were'} excluded: {counted(lost, 'judgment')} no "
            f"longer {'counts' if lost == 1 else 'count'}, and the pairs were asked again. The log keeps them, and "
            "they stay paid."
        )
    sided = snapshot.left_choices + snapshot.right_choices
    if sided:
        words.append(
            f"The left side was chosen in {100 * snapshot.left_choices / sided:.1f} % of {sided:,} choices."
        )
    columns = ("assessor", "state", "judged", "count", "test pairs", "agrees", "left", "seconds", "pay")
    rows = tuple(_person(each) for each in snapshot.assessors)
    table = Table(columns, rows, caption="All assessors", folded=True, cards=True)
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


def _agreement(campaign: Campaign) -> tuple[list[Chapter], tuple[str, ...]]:
    """Return a chapter on agreement, where people judged the same pairs, and the definitions that it needs."""
    votes = votes_of(campaign)
    findings = [each for each in (find(votes, name) for name in TRUSTED) if each.table.rows]
    if not findings:
        return [], ()
    notes = tuple(dict.fromkeys(note for each in findings for note in each.notes))
    tables = tuple(replace(each.shown, caption=each.title, folded=True, cards=True) for each in findings)
    drawn = tuple(finding_chart(each) for each in findings)
    return [Chapter("Reliability", verdict(votes), drawn, tables)], notes


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
