"""A campaign's rows against its log: what one contradicts in the other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Row, Select, and_, case, func, or_, select, tuple_

from duelpool.campaign.checks.findings import Contradiction, Contradictions
from duelpool.campaign.log import campaign_events
from duelpool.campaign.log.replay import CountedLines, Counting, judgments_outside
from duelpool.campaign.settings import Settings
from duelpool.campaign.work.assignments import PAID
from duelpool.campaign.work.ledger import FEE, REWARD
from duelpool.errors import BadRecord
from duelpool.files.packed import unpack_run
from duelpool.records import Outcome
from duelpool.store import Reading, holdings, imports, leases, llm, log, schema
from duelpool.store.leases import ANSWERED, CANNOT_JUDGE, LEASED, RETRACTED, SKIPPED
from duelpool.store.log import Line
from duelpool.store.statements import READ_AT_ONCE, streamed

_ENDS_AS = {str(outcome): leases.state_after(outcome) for outcome in Outcome}
_QUESTION, _LOG = schema.question.c, schema.log.c
_PAIR = (_QUESTION.topic, _QUESTION.criterion, _QUESTION.a, _QUESTION.b)
# Judgments of a crowd's log from elsewhere wait for a release that a later part of that log may bring.
_ASKED_HERE = or_(_QUESTION.assignment.is_not(None), _QUESTION.source == leases.ASKED)
_NOTHING = CountedLines(frozenset(), frozenset(), frozenset())
_IDS_AT_ONCE = 500

Advance = Callable[[int], None]


def slots_of(settings: Settings) -> int:
    """Return the most live slots that any pair or item of a campaign may have, by its settings."""
    planned = (row[4] for row in settings.plan)
    crossed = settings.people_per_kind * len(settings.crossed)
    return max(settings.cap, settings.grades_per_item, crossed, *planned)


def contradictions(
    tx: Reading, slots: int, name: str = "", advance: Advance = lambda lines: None
) -> list[Contradiction]:
    """Recount a campaign from its rows; `slots` is the most that a pair may have.

    It reads a few thousand lines at a time. `advance` is told how many were read.
    """
    found = Contradictions(name)
    _check_lines(tx, found, advance)
    found.extend("question", _wrong_questions(tx))
    found.extend("cap", _pairs_over(tx, slots))
    found.extend("person", _answers_twice(tx))
    found.extend("assignment", _wrong_assignments(tx))
    found.extend("ledger", _wrong_payments(tx))
    found.extend("model", _wrong_sums_of_models(tx))
    found.extend("run", _damaged_runs(tx))
    found.extend("event", _wrong_events(tx))
    found.extend("system", _answers_of_unknown_items(tx))
    return found.all()


# ---- the log


def _check_lines(tx: Reading, found: Contradictions, advance: Advance) -> None:
    ends: dict[str, int] = {}
    held: set[tuple[str, str]] = set()
    changes = _by_topic(tx, _changes(tx))
    waiting = next(changes, None)
    read = 0
    for topic, rows in _by_topic(tx, _lines(tx)):
        counts = _NOTHING
        if waiting is not None and waiting[0] == topic:
            counts = _check_changes(tx, topic, waiting[1], found)
            waiting = next(changes, None)
        expected = 1
        released: set[str] = set()
        held_here: set[str] = set()
        for _, seq, event, assignment, waits, question, *answer in rows:  # `waits`: for an assignment of here
            if seq != expected:
                found.add("log", f"Topic '{topic}': line {seq} is at the place of line {expected}.")
            expected = seq + 1
            if event == log.JUDGMENT:
                if waits and assignment is not None:
                    held_here.add(assignment)
                if question is not None and (wrong := _wrong_answer(counts, seq, question, answer)):
                    found.add("answer", f"Topic '{topic}': {wrong}")
            elif event == log.RELEASE and assignment is not None:
                released.add(assignment)
            read += 1
            if read == READ_AT_ONCE:
                advance(read)
                read = 0
        ends[topic] = expected
        held.update((topic, each) for each in held_here - released)
    advance(read)
    found.extend("log", _wrong_ends(tx, ends))
    found.extend("assignment", _never_released(tx, held))


def _by_topic(tx: Reading, query: Select[Any]) -> Iterator[tuple[str, Iterator[Any]]]:
    return groupby(streamed(tx.connection, query), key=lambda row: str(row[0]))


def _lines(tx: Reading) -> Select[Any]:
    """Return the query of all lines in order, each judgment with its question."""
    same = and_(
        _QUESTION.campaign == _LOG.campaign,
        _QUESTION.topic == _LOG.topic,
        _QUESTION.left_item == _LOG.left_item,
        func.coalesce(_QUESTION.right_item, "") == func.coalesce(_LOG.right_item, ""),
        _QUESTION.assessor == case((_LOG.assessor == "", imports.UNNAMED), else_=_LOG.assessor),
        _QUESTION.kind == _LOG.kind,
    )
    return (
        select(
            _LOG.topic,
            _LOG.seq,
            _LOG.event,
            _LOG.assignment,
            and_(_LOG.told == 0, _LOG.test_pair.is_(None), _ASKED_HERE),
            _LOG.question,
            _LOG.attempt,
            _LOG.outcome,
            _QUESTION.state,
            _QUESTION.attempt,
            same,
        )
        .outerjoin_from(schema.log, schema.question, _QUESTION.id == _LOG.question)
        .where(_LOG.campaign == tx.campaign)
        .order_by(_LOG.topic, _LOG.seq)
    )


def _changes(tx: Reading) -> Select[Any]:
    """Return the query of the lines that change what counts, each with the event of the line that it refers to."""
    earlier = schema.log.alias("earlier")
    about = and_(
        earlier.c.campaign == _LOG.campaign,
        earlier.c.topic == _LOG.topic,
        earlier.c.seq == _LOG.refers_to,
    )
    events = (log.RETRACTION, log.RESTORATION, log.PHASE_CLOSED, log.REWIND)
    return (
        select(_LOG.topic, _LOG.seq, _LOG.event, _LOG.refers_to, _LOG.phase, earlier.c.event)
        .outerjoin_from(schema.log, earlier, about)
        .where(_LOG.campaign == tx.campaign, _LOG.event.in_(events))
        .order_by(_LOG.topic, _LOG.seq)
    )


def _check_changes(tx: Reading, topic: str, rows: Iterable[Any], found: Contradictions) -> CountedLines:
    """Check the lines that change what counts; return which lines count at the end."""
    counting = Counting(lambda before, phases: judgments_outside(tx, topic, before, phases))
    for _, seq, event, refers_to, phase, earlier in rows:
        if event == log.REWIND and phase not in counting.closed:
            found.add("log", f"Topic '{topic}': line {seq} rewinds the phase '{phase}', which isn't closed.")
        elif event in {log.RETRACTION, log.RESTORATION}:
            if refers_to is None or earlier != log.JUDGMENT or refers_to >= seq:
                found.add(
                    "log",
                    f"Topic '{topic}': line {seq} is a {event} of line {refers_to}, which is no judgment.",
                )
                continue
            changes = (refers_to in counting.retracted) == (event == log.RESTORATION)
            if not changes and refers_to not in counting.set_aside:
                found.add(
                    "log",
                    f"Topic '{topic}': line {seq}, the {event} of line {refers_to}, changes nothing.",
                )
        counting.feed(Line(topic, seq, event, 0.0, refers_to=refers_to, phase=phase or ""))
    return counting.result()


def _wrong_answer(counts: CountedLines, seq: int, question: str, answer: Sequence[Any]) -> str:
    """Say what a judgment's question contradicts; empty where nothing."""
    attempt, outcome, state, attempts, same = answer
    ends_as = _ENDS_AS.get(outcome)
    if ends_as is None:
        return f"line {seq} has the unknown outcome '{outcome}'."
    if state is None:
        return f"line {seq} answers the question {question}, which doesn't exist."
    if not same:
        return (
            f"line {seq} answers the question {question}, which is about another pair or of another assessor."
        )
    if attempt is None or attempt > attempts:
        return f"line {seq} is attempt {attempt} of the question {question}, which has {attempts}."
    if attempt < attempts:  # undone since
        return "" if seq in counts.retracted else f"line {seq} counts, and its question was asked again."
    return _wrong_state(counts, seq, ends_as, state)


def _wrong_state(counts: CountedLines, seq: int, ends_as: str, state: str) -> str:
    if seq in counts.set_aside:  # older releases kept the slots of these
        return ""
    if seq in counts.retracted:
        expected = SKIPPED if ends_as == SKIPPED else RETRACTED
        return "" if state == expected else f"line {seq} is retracted, and its question is {state}."
    return "" if state == ends_as else f"line {seq} counts, and its question is {state}."


def _wrong_ends(tx: Reading, ends: dict[str, int]) -> Iterator[str]:
    columns = schema.topic.c
    rows = streamed(
        tx.connection, select(columns.id, columns.next_seq).where(columns.campaign == tx.campaign)
    )
    for row in rows:
        place = ends.get(row.id, 1)
        if row.next_seq != place:
            yield f"Topic '{row.id}': the next line is {place}, and the topic says {row.next_seq}."


# ---- questions


def _wrong_questions(tx: Reading) -> Iterator[str]:
    here = _QUESTION.campaign == tx.campaign
    is_live = _QUESTION.live.is_not(None)
    holds = _QUESTION.state.in_((LEASED, ANSWERED))
    contradictory = or_(and_(is_live, ~holds), and_(~is_live, holds))
    for row in streamed(tx.connection, select(_QUESTION.id, _QUESTION.state).where(here, contradictory)):
        slot = "doesn't hold its slot" if row.state in {LEASED, ANSWERED} else "holds a slot"
        yield f"The question {row.id} is {row.state}, and {slot}."
    needs_none = or_(_QUESTION.test_pair.is_not(None), _QUESTION.source == leases.REPEATED)
    no_slot = _QUESTION.slot.is_(None)
    slots = select(_QUESTION.id, _QUESTION.source, _QUESTION.slot).where(
        here, is_live, or_(and_(no_slot, ~needs_none), and_(~no_slot, needs_none), _QUESTION.slot < 1)
    )
    for row in streamed(tx.connection, slots):
        taken = "has no slot" if row.slot is None else f"has slot {row.slot}, and may have none"
        yield f"The live question {row.id} ({row.source}) {taken}."
    answered = and_(
        _LOG.question == _QUESTION.id, _LOG.attempt == _QUESTION.attempt, _LOG.event == log.JUDGMENT
    )
    lost = (
        select(_QUESTION.id, _QUESTION.state)
        .outerjoin_from(schema.question, schema.log, answered)
        .where(here, _QUESTION.state.in_((ANSWERED, SKIPPED, CANNOT_JUDGE)), _LOG.seq.is_(None))
    )
    for row in streamed(tx.connection, lost):
        yield f"The question {row.id} is {row.state}, and the log has no answer to it."
    twice = (
        select(_LOG.question, _LOG.attempt)
        .where(_LOG.campaign == tx.campaign, _LOG.event == log.JUDGMENT, _LOG.question.is_not(None))
        .group_by(_LOG.question, _LOG.attempt)
        .having(func.count() > 1)
    )
    for row in streamed(tx.connection, twice):
        yield f"The log has several answers to the question {row.question} (attempt {row.attempt})."


def _pairs_over(tx: Reading, slots: int) -> Iterator[str]:
    """Yield the pairs with more live questions than slots; files may hold any number of judgments of a pair."""
    live = (_QUESTION.campaign == tx.campaign, _QUESTION.live == 1)
    many = select(*_PAIR).where(*live).group_by(*_PAIR).having(func.count() > slots)
    asked = (*live, _QUESTION.test_pair.is_(None), _QUESTION.source == leases.ASKED)
    over = (
        select(*_PAIR, func.count().label("slots"))
        .where(*asked, tuple_(*_PAIR).in_(many))
        .group_by(*_PAIR)
        .having(func.count() > slots)
    )
    for row in streamed(tx.connection, over):
        yield f"Topic '{row.topic}': {_named(row)} has {row.slots} live slots, and its cap is {slots}."
    taken = (
        select(*_PAIR, _QUESTION.slot)
        .where(*live, _QUESTION.slot.is_not(None))
        .group_by(*_PAIR, _QUESTION.slot)
        .having(func.count() > 1)
    )
    for row in streamed(tx.connection, taken):
        yield f"Topic '{row.topic}': slot {row.slot} of {_named(row)} is taken several times."


def _answers_twice(tx: Reading) -> Iterator[str]:
    key = (*_PAIR, _QUESTION.assessor, _QUESTION.occasion)
    twice = (
        select(*key)
        .where(_QUESTION.campaign == tx.campaign, _QUESTION.live == 1)
        .group_by(*key)
        .having(func.count() > 1)
    )
    for row in streamed(tx.connection, twice):
        yield (
            f"Topic '{row.topic}': {row.assessor} has {_named(row)} several times on occasion {row.occasion}."
        )


def _named(row: Row[Any]) -> str:
    return f"the pair '{row.a}' and '{row.b}'" if row.b else f"the item '{row.a}'"


# ---- events of the campaign, and answers of systems


def _wrong_events(tx: Reading) -> Iterator[str]:
    events = campaign_events.events(tx)
    for expected, event in enumerate(events, 1):
        if event.seq != expected:
            yield f"Event {event.seq} of the campaign is at the place of event {expected}."
            return


def _answers_of_unknown_items(tx: Reading) -> Iterator[str]:
    answers, items = schema.answer.c, schema.item.c
    same = and_(items.campaign == answers.campaign, items.topic == answers.topic, items.id == answers.item)
    strays = (
        select(answers.topic, answers.system, answers.item)
        .outerjoin_from(schema.answer, schema.item, same)
        .where(answers.campaign == tx.campaign, items.id.is_(None))
    )
    for row in streamed(tx.connection, strays):
        yield f"Topic '{row.topic}': the answer of '{row.system}' is the item '{row.item}', which it doesn't have."


# ---- assignments and money


def _wrong_assignments(tx: Reading) -> Iterator[str]:
    columns = schema.assignment.c
    counts = (
        select(
            columns.id,
            columns.state,
            columns.closed,
            columns.questions,
            func.count(_QUESTION.id).label("present"),
            func.count(case((_QUESTION.state == LEASED, 1))).label("leased"),
            func.count(
                case((or_(_QUESTION.assessor != columns.assessor, _QUESTION.campaign != columns.campaign), 1))
            ).label("foreign"),
        )
        .outerjoin_from(schema.assignment, schema.question, _QUESTION.assignment == columns.id)
        .where(columns.campaign == tx.campaign)
        .group_by(columns.id, columns.state, columns.closed, columns.questions)
    )
    for row in streamed(tx.connection, counts):
        if (row.state == "open") != (row.closed is None):
            when = "no time of its end" if row.closed is None else "a time of its end"
            yield f"The assignment {row.id} is {row.state}, and has {when}."
        if row.present != row.questions:
            yield f"The assignment {row.id} has {row.present} questions, and should have {row.questions}."
        if row.leased and row.state != "open":
            yield f"The assignment {row.id} is {row.state}, and {row.leased} of its questions are still leased."
        if row.foreign:
            yield f"The assignment {row.id} has {row.foreign} questions of another assessor."
    early = (
        select(_LOG.topic, _LOG.seq, _LOG.assignment)
        .join_from(schema.log, schema.assignment, columns.id == _LOG.assignment)
        .where(
            _LOG.campaign == tx.campaign,
            _LOG.event == log.RELEASE,
            columns.campaign == tx.campaign,
            columns.state == "open",
        )
    )
    for row in streamed(tx.connection, early):
        yield f"Topic '{row.topic}': line {row.seq} releases the assignment {row.assignment}, which is open."


def _never_released(tx: Reading, held: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the ended assignments whose judgments in a topic still wait for their release."""
    columns = schema.assignment.c
    wanted = sorted({assignment for _, assignment in held})
    states: dict[str, str] = {}
    for start in range(0, len(wanted), _IDS_AT_ONCE):
        chunk = wanted[start : start + _IDS_AT_ONCE]
        rows = tx.connection.execute(select(columns.id, columns.state).where(columns.id.in_(chunk)))
        states |= {row.id: row.state for row in rows}
    for topic, assignment in sorted(held):
        state = states.get(assignment)
        if state is None:
            yield f"Topic '{topic}': judgments belong to the assignment {assignment}, which doesn't exist."
        elif state != "open":
            yield f"Topic '{topic}': the assignment {assignment} is {state}, and its judgments aren't released."


def _wrong_payments(tx: Reading) -> Iterator[str]:
    paid, work = schema.ledger.c, schema.assignment.c
    rows = (
        select(
            paid.id,
            paid.entry,
            paid.assessor,
            paid.assignment,
            work.state,
            work.assessor.label("worker"),
        )
        .outerjoin_from(schema.ledger, schema.assignment, work.id == paid.assignment)
        .where(paid.campaign == tx.campaign)
    )
    for row in streamed(tx.connection, rows):
        entry = f"The {row.entry} in line {row.id} of the ledger"
        if row.assignment is not None and row.state is None:
            yield f"{entry} is for the assignment {row.assignment}, which doesn't exist."
        elif row.assignment is not None and row.worker != row.assessor:
            yield f"{entry} is paid to {row.assessor}, and the assignment {row.assignment} is of {row.worker}."
        elif row.assignment is not None and row.entry in {REWARD, FEE} and row.state not in PAID:
            yield f"{entry} is for the assignment {row.assignment}, which is {row.state}."
    twice = (
        select(paid.assignment, paid.entry)
        .where(paid.campaign == tx.campaign, paid.assignment.is_not(None), paid.entry.in_((REWARD, FEE)))
        .group_by(paid.assignment, paid.entry)
        .having(func.count() > 1)
    )
    for row in streamed(tx.connection, twice):
        yield f"The ledger has several entries of the {row.entry} for the assignment {row.assignment}."


def _wrong_sums_of_models(tx: Reading) -> Iterator[str]:
    judge, call = schema.llm_judge.c, schema.llm_call.c
    is_open = call.state == llm.OPEN
    sums = (
        select(
            judge.assessor,
            judge.spent,
            judge.held,
            func.coalesce(func.sum(case((is_open, 0), else_=call.cost)), 0).label("costs"),
            func.coalesce(func.sum(case((is_open, call.reserved), else_=0)), 0).label("reserved"),
        )
        .outerjoin_from(
            schema.llm_judge,
            schema.llm_call,
            and_(call.campaign == judge.campaign, call.assessor == judge.assessor),
        )
        .where(judge.campaign == tx.campaign)
        .group_by(judge.assessor, judge.spent, judge.held)
    )
    for row in streamed(tx.connection, sums):
        if row.spent != row.costs:
            yield f"The model {row.assessor} has spent {row.spent}, and its calls cost {row.costs}."
        if row.held != row.reserved:
            yield f"The model {row.assessor} has {row.held} reserved, and its open calls {row.reserved}."


# ---- runs


def _damaged_runs(tx: Reading) -> Iterator[str]:
    for run in holdings.runs(tx):
        try:
            unpack_run(run.name, run.data)
        except BadRecord as error:
            yield error.problem
