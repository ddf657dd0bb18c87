"""Participants: how people are admitted, the steps that they took before judging, and their feedback.

Their identities outside of Duelpool are in the table `identity` alone.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnClause,
    CompoundSelect,
    Connection,
    Select,
    bindparam,
    func,
    insert,
    literal_column,
    or_,
    select,
    text,
    union_all,
)

from duelpool.campaign.work.ledger import reward_for
from duelpool.errors import DuelpoolError
from duelpool.store import Reading, Writing, holdings, leases, log, schema
from duelpool.store.statements import Statement

_ENDED = (leases.ANSWERED, leases.SKIPPED, leases.CANNOT_JUDGE)
WORKED = (leases.ANSWERED, leases.CANNOT_JUDGE, leases.RETRACTED)  # what is paid: a skip is no answer
_ONE_AT_A_TIME = text("select pg_advisory_xact_lock(hashtextextended(:person, 0))")
_LOOK_BACK = 20  # latest answers among which the last one that wasn't undone is looked for


class NotAllowed(DuelpoolError):
    """The campaign is paused or closed, this assessor may not judge in it, or too many arrive at once."""


class Paused(NotAllowed):
    """The campaign is paused, and may be open again soon."""


class ParticipantState(NamedTuple):
    """The states of a campaign and of an assessor in it; `person` is None for one who doesn't take part."""

    campaign: str
    person: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """A step that a visitor took, such as consent or the check, and its outcome."""

    name: str
    outcome: str


@dataclass(frozen=True, slots=True)
class EndedAssignment:
    """An assignment that has ended: its state, how many questions were answered, and its pay."""

    id: str
    state: str
    answered: int
    questions: int
    reward: int


@dataclass(frozen=True, slots=True)
class FeedbackGiven:
    """What a participant said about an assignment or a topic; the scales run from 1 to 5."""

    assessor: str
    assignment: str | None
    topic: str | None
    confidence: int | None
    understanding: int | None


@dataclass(frozen=True, slots=True)
class VisitorState:
    """All that decides which page a visitor sees: the campaign's state, theirs, and what they did."""

    campaign: str
    person: str | None  # "in", "excluded"; None: they don't take part yet
    kind: str | None
    steps: tuple[Step, ...]
    assignments: tuple[tuple[str, str], ...]  # id and state, the oldest first
    feedback: frozenset[str]  # assignments and topics that they gave feedback on
    answered: Mapping[str, int] = field(default_factory=dict, compare=False)  # by topic, where it was counted

    @property
    def participant(self) -> ParticipantState | None:
        """What `Campaign` checks before it gives out questions; None for one who doesn't take part yet."""
        return None if self.person is None else ParticipantState(self.campaign, self.person)

    def counts(self) -> Counter[tuple[str, str]]:
        """Return how often each step had each outcome."""
        return Counter((step.name, step.outcome) for step in self.steps)


_PEOPLE, _ASSIGNMENTS = schema.assessor.c, schema.assignment.c
_FEEDBACK, _STEPS = schema.feedback.c, schema.step.c
_QUESTIONS, _LOG = schema.question.c, schema.log.c
_CAMPAIGN: BindParameter[str] = bindparam("campaign")
_ASSESSOR: BindParameter[str] = bindparam("assessor")
_NOTHING: ColumnClause[Any] = literal_column("null")
_ANSWERED = (
    _QUESTIONS.campaign == _CAMPAIGN,
    _QUESTIONS.assessor == _ASSESSOR,
    (_QUESTIONS.state == leases.ANSWERED) | (_QUESTIONS.state == leases.CANNOT_JUDGE),
)

_STATE_AND_PERSON = Statement(
    lambda _: (
        select(schema.campaign.c.state.label("campaign"), _PEOPLE.state.label("person"), _PEOPLE.kind)
        .select_from(
            schema.campaign.outerjoin(
                schema.assessor, (_PEOPLE.campaign == schema.campaign.c.id) & (_PEOPLE.id == _ASSESSOR)
            )
        )
        .where(schema.campaign.c.id == _CAMPAIGN)
    )
)
_ANSWER_CONTEXT = Statement(
    lambda _: (
        select(_PEOPLE.kind, _PEOPLE.state, _ASSIGNMENTS.state.label("assignment"))
        .select_from(schema.assessor.outerjoin(schema.assignment, _ASSIGNMENTS.id == bindparam("assignment")))
        .where(_PEOPLE.campaign == _CAMPAIGN, _PEOPLE.id == _ASSESSOR)
    )
)


# One statement for all that decides what a visitor sees: each kind of row has its name first.
def _visitor_rows(*more: Select[Any]) -> CompoundSelect[Any]:
    own = (_STEPS.campaign == _CAMPAIGN, _STEPS.assessor == _ASSESSOR)
    return union_all(
        select(
            literal_column("'person'").label("what"),
            schema.campaign.c.state.label("first"),
            _PEOPLE.state.label("second"),
            _PEOPLE.kind.label("third"),
            literal_column("0.0").label("place"),
        )
        .select_from(
            schema.campaign.outerjoin(
                schema.assessor, (_PEOPLE.campaign == schema.campaign.c.id) & (_PEOPLE.id == _ASSESSOR)
            )
        )
        .where(schema.campaign.c.id == _CAMPAIGN),
        select(literal_column("'step'"), _STEPS.name, _STEPS.outcome, _NOTHING, _STEPS.id).where(*own),
        select(
            literal_column("'assignment'"),
            _ASSIGNMENTS.id,
            _ASSIGNMENTS.state,
            _NOTHING,
            _ASSIGNMENTS.created,
        ).where(_ASSIGNMENTS.campaign == _CAMPAIGN, _ASSIGNMENTS.assessor == _ASSESSOR),
        select(
            literal_column("'feedback'"),
            _FEEDBACK.assignment,
            _FEEDBACK.topic,
            _NOTHING,
            literal_column("0.0"),
        ).where(_FEEDBACK.campaign == _CAMPAIGN, _FEEDBACK.assessor == _ASSESSOR),
        *more,
    )


_VISITOR = Statement(lambda _: _visitor_rows())
_COUNTED_VISITOR = Statement(
    lambda _: _visitor_rows(
        select(literal_column("'answered'"), _QUESTIONS.topic, _NOTHING, _NOTHING, func.count())
        .where(*_ANSWERED)
        # grouped by the topic alone, SQLite reads every question
        .group_by(_QUESTIONS.topic.concat(""), _QUESTIONS.topic)
    )
)
_WORKED_IN = Statement(
    lambda _: select(func.count()).where(
        _QUESTIONS.assignment == bindparam("assignment"), or_(*(_QUESTIONS.state == each for each in WORKED))
    )
)
_ENDED_ASSIGNMENT = Statement(
    lambda _: select(schema.assignment).where(_ASSIGNMENTS.id == bindparam("assignment"))
)
_LAST_ANSWERS = Statement(
    lambda _: (
        select(
            _LOG.question,
            _LOG.topic,
            _LOG.attempt,
            _QUESTIONS.attempt.label("present"),
            _QUESTIONS.state,
            _QUESTIONS.assignment,
        )
        .join(schema.question, _QUESTIONS.id == _LOG.question)
        .where(_LOG.campaign == _CAMPAIGN, _LOG.assessor == _ASSESSOR, _LOG.event == log.JUDGMENT)
        .order_by(_LOG.time.desc(), _QUESTIONS.place.desc())
        .limit(literal_column(str(_LOOK_BACK)))
    )
)


def participant_state(tx: Reading, assessor: str) -> ParticipantState:
    """Return the states of the campaign and of an assessor in it."""
    row = _STATE_AND_PERSON.run(tx.connection, {"campaign": tx.campaign, "assessor": assessor})[0]
    return ParticipantState(row.campaign, row.person)


def answer_context(tx: Reading, assessor: str, assignment: str | None) -> tuple[str, str, str | None]:
    """Return an assessor's kind and state, and the state of the assignment that an answer belongs to."""
    who = {"campaign": tx.campaign, "assessor": assessor, "assignment": assignment or ""}
    row = _ANSWER_CONTEXT.run(tx.connection, who)[0]
    return row.kind, row.state, row.assignment


def visitor_state(tx: Reading, assessor: str, *, count: bool = False) -> VisitorState:
    """Read all that decides which page a visitor sees; with `count`, how many answers they gave, by topic."""
    statement = _COUNTED_VISITOR if count else _VISITOR
    rows: dict[str, list[Any]] = {}
    for row in statement.run(tx.connection, {"campaign": tx.campaign, "assessor": assessor}):
        rows.setdefault(row.what, []).append(row)
    state = rows["person"][0]
    steps = sorted(rows.get("step", ()), key=lambda row: row.place)
    given = sorted(rows.get("assignment", ()), key=lambda row: (row.place, row.first))
    about = (each for row in rows.get("feedback", ()) for each in (row.first, row.second))
    return VisitorState(
        state.first,
        state.second,
        state.third,
        tuple(Step(row.first, row.second) for row in steps),
        tuple((row.first, row.second) for row in given),
        frozenset(each for each in about if each is not None),
        {row.first: int(row.place) for row in rows.get("answered", ())},
    )


def find_pseudonym(tx: Reading, panel: str, external: str) -> str | None:
    """Return the pseudonym of a person who came from a panel before."""
    columns = schema.identity.c
    return tx.connection.execute(
        select(columns.assessor).where(
            columns.campaign == tx.campaign, columns.panel == panel, columns.external == external
        )
    ).scalar_one_or_none()


def admit(tx: Writing, assessor: str, kind: str, *, panel: str = "", external: str = "") -> str:
    """Enrol a visitor, and store their identity; return their pseudonym, the earlier one of a known person.

    Of two browsers of one person at once, the first decides.
    """
    if external:
        if tx.connection.dialect.name == "postgresql":  # SQLite has one writer at a time anyway
            tx.connection.execute(_ONE_AT_A_TIME, {"person": f"{tx.campaign} {panel} {external}"})
        earlier = find_pseudonym(tx, panel, external)
        if earlier is not None:
            return earlier
    holdings.enrol(tx, assessor, kind)
    if external:
        tx.connection.execute(
            insert(schema.identity).values(
                campaign=tx.campaign, assessor=assessor, panel=panel, external=external
            )
        )
    return assessor


def record_step(tx: Writing, assessor: str, step: Step) -> None:
    """Store a step that a visitor took."""
    tx.connection.execute(
        insert(schema.step).values(
            campaign=tx.campaign, assessor=assessor, name=step.name, outcome=step.outcome, time=tx.now
        )
    )


def record_steps_if_due(
    tx: Writing, assessor: str, steps: Sequence[Step], is_due: Callable[[VisitorState], bool]
) -> bool:
    """Store steps if they are due in the visitor's present state; of several requests at once, one is first."""
    people = schema.assessor.c
    tx.lock(select(people.id).where(people.campaign == tx.campaign, people.id == assessor))
    due = is_due(visitor_state(tx, assessor))
    if due:
        for step in steps:
            record_step(tx, assessor, step)
    return due


def earlier_visits_until(connection: Connection) -> float:
    """Return when visits end whose cookies, of an earlier release, state no end."""
    columns = schema.secret.c
    query = select(columns.until).where(columns.name == "visits without an end")
    return float(connection.execute(query).scalar() or 0.0)


def whose_link(tx: Reading, assessor: str, once: str) -> str | None:
    """Return the browser that has used a link for one use; None if none has."""
    steps = schema.step.c
    of_link = (steps.name == "link") & ((steps.outcome == once) | steps.outcome.startswith(f"{once} "))
    used: str | None = tx.connection.execute(
        select(steps.outcome).where(steps.campaign == tx.campaign, steps.assessor == assessor, of_link)
    ).scalar()
    return None if used is None else used.partition(" ")[2]


def use_link(tx: Writing, assessor: str, once: str, browser: str) -> bool:
    """Use a link for one use in a browser; return whether it is the browser that was first."""
    people = schema.assessor.c
    tx.lock(select(people.id).where(people.campaign == tx.campaign, people.id == assessor))
    before = whose_link(tx, assessor, once)
    if before is None:
        record_step(tx, assessor, Step("link", f"{once} {browser}"))
    return before in (None, browser)


def give_feedback(
    tx: Writing,
    assessor: str,
    *,
    assignment: str | None = None,
    topic: str | None = None,
    confidence: int | None = None,
    understanding: int | None = None,
    text: str = "",
) -> bool:
    """Store a visitor's feedback on an assignment or a topic once; return whether it was new."""
    people, columns = schema.assessor.c, schema.feedback.c
    tx.lock(select(people.id).where(people.campaign == tx.campaign, people.id == assessor))
    about = columns.assignment == assignment if assignment is not None else columns.topic == topic
    if tx.connection.execute(
        select(columns.id).where(columns.campaign == tx.campaign, columns.assessor == assessor, about)
    ).first():
        return False
    tx.connection.execute(
        insert(schema.feedback).values(
            campaign=tx.campaign,
            assessor=assessor,
            assignment=assignment,
            topic=topic,
            confidence=confidence,
            understanding=understanding,
            text=text,
            time=tx.now,
        )
    )
    return True


def all_feedback(tx: Reading) -> list[FeedbackGiven]:
    """Return the feedback of all participants, the oldest first."""
    rows = tx.connection.execute(
        select(
            _FEEDBACK.assessor,
            _FEEDBACK.assignment,
            _FEEDBACK.topic,
            _FEEDBACK.confidence,
            _FEEDBACK.understanding,
        )
        .where(_FEEDBACK.campaign == tx.campaign)
        .order_by(_FEEDBACK.id)
    )
    return [FeedbackGiven(*row) for row in rows]


def feedback_count(tx: Reading) -> int:
    """Return how often participants have given feedback."""
    return int(
        tx.connection.execute(select(func.count()).where(_FEEDBACK.campaign == tx.campaign)).scalar_one()
    )


def answered_in(tx: Reading, assignment: str) -> int:
    """Return how many questions of an assignment were answered: those that are paid for, skips left out."""
    return int(_WORKED_IN.tuples(tx.connection, {"assignment": assignment})[0][0])


def ended_assignment(tx: Reading, assignment: str) -> EndedAssignment:
    """Return how an assignment ended."""
    row = _ENDED_ASSIGNMENT.run(tx.connection, {"assignment": assignment})[0]
    reward = reward_for(tx, assignment)
    return EndedAssignment(row.id, row.state, answered_in(tx, assignment), row.questions, reward)


def last_answered(tx: Reading, assessor: str) -> Any:
    """Return the question that an assessor answered last and hasn't undone, or None."""
    rows = _LAST_ANSWERS.run(tx.connection, {"campaign": tx.campaign, "assessor": assessor})
    return next((row for row in rows if row.attempt == row.present and row.state in _ENDED), None)
