"""The records that the API returns and accepts."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from duelpool.agreements.campaigns import Looked
from duelpool.agreements.vote_values import VoteValue
from duelpool.campaign.runners.llm_figures import ModelFigures
from duelpool.campaign.runners.two_sources import ModelDecision
from duelpool.campaign.settings.changes import Change, change_schema
from duelpool.campaign.views.history_pages import LedgerEntry
from duelpool.campaign.views.status import (
    AssessorStatus,
    CampaignStatus,
    MoneyStatus,
    TopicStatus,
)
from duelpool.campaign.views.tally import PairTally, Vote
from duelpool.campaign.views.topic_summary import Closing
from duelpool.frames import counted
from duelpool.shares import Share, share_over

TEXT_AT_MOST = 2000
SEQ_AT_MOST = 2**31 - 1


def _storable(text: str) -> str:
    if "\0" in text:
        message = "the character NUL can't be stored"
        raise ValueError(message)
    return text


Name = Annotated[str, Field(min_length=1, max_length=TEXT_AT_MOST), AfterValidator(_storable)]
Reason = Annotated[
    str,
    Field(
        min_length=1, max_length=TEXT_AT_MOST, pattern=r"\S", description="The reason, as the log records it."
    ),
    AfterValidator(_storable),
]
Preview = Annotated[bool, Field(description="Report the effect without changing anything.")]


class Problem(BaseModel):
    """An error: problem, remedy, and its reference in the server's log."""

    problem: str
    remedy: str
    reference: str


# ---- returned


@dataclass(frozen=True, slots=True)
class CampaignBrief:
    """A campaign that the key opens."""

    id: str
    name: str
    state: str
    created: str


@dataclass(frozen=True, slots=True)
class CampaignList:
    """The campaigns that the key opens."""

    rows: list[CampaignBrief]


@dataclass(frozen=True, slots=True)
class ModelList:
    """The language models that judge in a campaign; money in the currency's unit."""

    currency: str
    rows: list[ModelFigures]


@dataclass(frozen=True, slots=True)
class Head:
    """The head figures of a campaign; money in minor units, shares from 0 to 1.

    `outdated` topics show the best items of an earlier moment: the present ones are being worked out.
    """

    id: str
    name: str
    state: str
    stage: str
    strategy: str
    done: bool
    topics: int
    topics_done: int
    judgments: int
    expected: int
    open: int
    leased: int
    held: int
    parked: int
    outdated: int
    assessors: int
    active: int
    excluded: int
    left_choices: int
    right_choices: int
    left_share: float | None
    left_low: float | None
    left_high: float | None
    money: MoneyStatus
    cost_per_usable_judgment: float | None
    expected_cost: float | None
    blocks: tuple[str, ...]
    topics_settled: int | None = None


def _left_share(status: CampaignStatus) -> Share:
    """Return the share of left choices, over assessors as in `duelpool agreement`; those without a name are one."""
    known = [
        (round(each.left * each.sided), each.sided) for each in status.assessors if each.left is not None
    ]
    others = status.left_choices - sum(left for left, _ in known)
    sided = status.left_choices + status.right_choices - sum(whole for _, whole in known)
    parts, wholes = zip(*known, (others, sided), strict=True)
    return share_over((parts, wholes))


def head_of(id: str, status: CampaignStatus) -> Head:  # noqa: A002
    """Return the head figures of a campaign."""
    left = _left_share(status)
    expected, spending = status.total("expected"), status.spending
    if spending is not None and spending.to_go is not None:
        expected = status.total("judgments") + spending.to_go
    return Head(
        id=id,
        name=status.campaign,
        state=status.state,
        stage=status.stage,
        strategy=status.strategy,
        done=status.done,
        topics=len(status.topics),
        topics_done=sum(each.status.done for each in status.topics),
        judgments=status.total("judgments"),
        expected=expected,
        open=status.total("open"),
        leased=status.total("leased"),
        held=status.total("held"),
        parked=status.total("parked"),
        outdated=status.total("outdated"),
        assessors=len(status.assessors),
        active=status.active,
        excluded=sum(each.state == "excluded" for each in status.assessors),
        left_choices=status.left_choices,
        right_choices=status.right_choices,
        left_share=left.value,
        left_low=left.low,
        left_high=left.high,
        money=status.money,
        cost_per_usable_judgment=status.money.per_usable_judgment,
        expected_cost=None if status.price is None else status.price * expected,
        blocks=status.blocks,
        topics_settled=None if spending is None else spending.settled,
    )


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One topic: its status, why it stopped or waits, what it has cost and will cost."""

    status: TopicStatus
    tags: tuple[str, ...]
    survivors: int
    why: str
    cost: float | None
    expected_cost: float | None


@dataclass(frozen=True, slots=True)
class TopicPage:
    """A page of topics; `next` is None at the end."""

    rows: list[TopicRow]
    total: int
    next: str | None


@dataclass(frozen=True, slots=True)
class WinMatrixRows:
    """Wins of the row's item over the column's item; a tie is half a win for each."""

    items: list[str]
    wins: list[list[float]]


@dataclass(frozen=True, slots=True)
class TopicDetail:
    """The details of one topic; `levels` are the strategy's levels of items, the best first."""

    row: TopicRow
    description: str
    levels: list[list[str]]
    closings: list[Closing]
    pairs: int
    matrix: WinMatrixRows


@dataclass(frozen=True, slots=True)
class PairPage:
    """A page of judged pairs; `next` is None at the end."""

    rows: list[PairTally]
    next: str | None


@dataclass(frozen=True, slots=True)
class PassageText:
    """The text of a judged item."""

    item: str
    title: str
    text: str
    format: str


@dataclass(frozen=True, slots=True)
class PairDetail:
    """A pair: its texts, and every vote on it."""

    tally: PairTally | None
    question: str
    a: PassageText
    b: PassageText
    votes: list[Vote]


@dataclass(frozen=True, slots=True)
class PersonPage:
    """A page of assessors; `next` is None at the end.

    `values` says what a vote of each of them is worth, where at least three have votes; `weighing` what weighing
    instead of excluding would change; `models` what was decided about models beside people.
    """

    rows: list[AssessorStatus]
    total: int
    next: str | None
    values: dict[str, VoteValue] = field(default_factory=dict)
    weighing: str = ""
    models: list[ModelDecision] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FindingShown:
    """One statistic of agreement as a table; without rows, `needs` says what is missing."""

    statistic: str
    title: str
    columns: list[str]
    rows: list[list[str | int | float | None]]
    notes: list[str]
    needs: str


@dataclass(frozen=True, slots=True)
class AgreementShown:
    """Reliability: the criteria, the groups of assessors, the statistics of agreement, and the verdict in words."""

    votes: int
    criteria: list[str]
    groups: list[str]
    findings: list[FindingShown]
    verdict: list[str]  # sentences, the most important first; none without votes


def agreement_of(looked: Looked) -> AgreementShown:
    """Return statistics of agreement for the API."""
    return AgreementShown(
        len(looked.votes),
        list(looked.votes.criteria),
        list(looked.votes.groups),
        [
            FindingShown(
                each.name,
                each.title,
                list(each.table.columns),
                [list(row) for row in each.table.rows],
                list(each.notes),
                each.needs,
            )
            for each in looked.findings
        ],
        list(looked.verdict),
    )


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """A page of the ledger, the newest entry first; `next` is None at the end."""

    rows: list[LedgerEntry]
    next: str | None


@dataclass(frozen=True, slots=True)
class LogPage:
    """A page of the log, the newest line first, without empty fields; `next` is None at the end."""

    rows: list[dict[str, Any]]
    next: str | None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An entry of the audit log; `campaign` is empty for entries of the whole store."""

    id: int
    time: str
    who: str
    deed: str
    about: str
    campaign: str


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of the audit log, the newest entry first."""

    rows: list[AuditRow]
    next: str | None


@dataclass(frozen=True, slots=True)
class SettingsShown:
    """The settings and the runs; the effect of each changeable setting, and why others are fixed."""

    settings: dict[str, Any]
    runs: list[str]
    changeable: dict[str, str]
    fixed: dict[str, str]


@dataclass(frozen=True, slots=True)
class Pulse:
    """A text that changes whenever the campaign changes."""

    pulse: str


# ---- what is asked for


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Exclude(_Asked):
    """Exclude an assessor: their judgments no longer count, and finished work is paid."""

    assessor: Name
    reason: Reason
    preview: Preview = False


class Invite(_Asked):
    """Make a link for one assessor, by pseudonym; with `once` it works in one browser only."""

    assessor: Annotated[Name, Field(min_length=1)]
    once: bool = False


@dataclass(frozen=True, slots=True)
class Invited:
    """A link for one assessor; without the server's address where it isn't known."""

    assessor: str
    link: str


@dataclass(frozen=True, slots=True)
class TextsAdded:
    """How many texts and questions were added, how many topics they released, and how many still wait."""

    texts: int
    questions: int
    released: int
    held_back: int

    @property
    def sentence(self) -> str:
        """All of it in words."""
        added = f"Added {counted(self.texts, 'text')} and {counted(self.questions, 'question')}; "
        waiting = f", {self.held_back:,} still held back" if self.held_back else ""
        return f"{added}{counted(self.released, 'topic')} released{waiting}."


class Reinstate(_Asked):
    """Reinstate an assessor; their judgments count again where pairs have free slots."""

    assessor: Name
    reason: Reason = "re-instated"
    preview: Preview = False


class Retract(_Asked):
    """Retract judgments of a topic, by their seq in its log."""

    topic: Name
    seqs: Annotated[list[Annotated[int, Field(ge=1, le=SEQ_AT_MOST)]], Field(min_length=1, max_length=1000)]
    reason: Reason
    preview: Preview = False


class Rewind(_Asked):
    """Open a closed phase of a topic again; judgments of later phases are set aside."""

    topic: Name
    phase: Name
    reason: Reason
    preview: Preview = False


class ChangeState(_Asked):
    """Pause a campaign, close it, or open it again."""

    state: Literal["open", "paused", "closed"]
    preview: Preview = False


class ChangeSettings(_Asked):
    """Change settings by their names; those left out stay as they are."""

    settings: Annotated[dict[str, Any], Field(min_length=1, max_length=50), WithJsonSchema(change_schema())]
    preview: Preview = False


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The changes of settings, each with its effect; with `preview`, nothing is changed."""

    preview: bool
    changes: list[Change]
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ActionEffect:
    """The effect of an action, or with `preview` what it would be: a sentence and figures.

    `opened` is the number of pairs that are asked again.
    """

    action: str
    preview: bool
    sentence: str
    judgments: int = 0
    pairs: int = 0
    topics: int = 0
    opened: int = 0


Step: TypeAlias = Exclude | Reinstate | Retract | Rewind | ChangeState


def about_step(asked: Step) -> str:
    """Return the subject of an action, for the audit log."""
    values = asked.model_dump(exclude={"preview"})
    return "; ".join(f"{name}: {value}" for name, value in values.items() if value not in ("", None))
