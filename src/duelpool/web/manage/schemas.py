"""What the API says and takes: every shape, once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from duelpool.agreement import Finding, Votes
from duelpool.campaign.runners.llm_figures import ModelFigures
from duelpool.campaign.settings.changes import Change, change_schema
from duelpool.campaign.views.history_pages import LedgerEntry
from duelpool.campaign.views.status import (
    AssessorStatus,
    CampaignStatus,
    Closing,
    MoneyStatus,
    TopicStatus,
)
from duelpool.campaign.views.tally import PairTally, Vote
from duelpool.shares import wilson

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
    """What is wrong, what to do about it, and under which name it stands in the server's log."""

    problem: str
    remedy: str
    reference: str


# ---- what is told


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
    """The head figures of a campaign; money in minor units, shares from 0 to 1."""

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


def head_of(id: str, found: CampaignStatus) -> Head:  # noqa: A002
    """Return the head figures of a campaign."""
    sided = found.left_choices + found.right_choices
    ends = wilson(found.left_choices, sided)
    expected = found.total("expected")
    return Head(
        id=id,
        name=found.campaign,
        state=found.state,
        stage=found.stage,
        strategy=found.strategy,
        done=found.done,
        topics=len(found.topics),
        topics_done=sum(each.status.done for each in found.topics),
        judgments=found.total("judgments"),
        expected=expected,
        open=found.total("open"),
        leased=found.total("leased"),
        held=found.total("held"),
        parked=found.total("parked"),
        assessors=len(found.assessors),
        active=found.active,
        excluded=sum(each.state == "excluded" for each in found.assessors),
        left_choices=found.left_choices,
        right_choices=found.right_choices,
        left_share=found.left_choices / sided if sided else None,
        left_low=None if ends is None else ends[0],
        left_high=None if ends is None else ends[1],
        money=found.money,
        cost_per_usable_judgment=found.money.per_usable_judgment,
        expected_cost=None if found.price is None else found.price * expected,
        blocks=found.blocks,
    )


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One topic: how it stands, why it stopped or waits, what it has cost and will."""

    status: TopicStatus
    tags: tuple[str, ...]
    survivors: int
    why: str
    cost: float | None
    expected_cost: float | None


@dataclass(frozen=True, slots=True)
class TopicPage:
    """Some of the topics; `next` is None at the end."""

    rows: list[TopicRow]
    total: int
    next: str | None


@dataclass(frozen=True, slots=True)
class WinMatrixRows:
    """Who beat whom how often, row against column; a tie is half a win for each."""

    items: list[str]
    wins: list[list[float]]


@dataclass(frozen=True, slots=True)
class TopicDetail:
    """All about one topic; `levels` are the items as the strategy has told them apart, the best first."""

    row: TopicRow
    description: str
    levels: list[list[str]]
    closings: list[Closing]
    pairs: int
    matrix: WinMatrixRows


@dataclass(frozen=True, slots=True)
class PairPage:
    """Some of the judged pairs; `next` is None at the end."""

    rows: list[PairTally]
    next: str | None


@dataclass(frozen=True, slots=True)
class PassageText:
    """A text that was judged."""

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
    """Some of the assessors; `next` is None at the end."""

    rows: list[AssessorStatus]
    total: int
    next: str | None


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
    """How far the judges can be trusted: the votes' criteria and groups of assessors, and the statistics."""

    votes: int
    criteria: list[str]
    groups: list[str]
    findings: list[FindingShown]


def agreement_of(votes: Votes, findings: Sequence[Finding]) -> AgreementShown:
    """Return statistics of agreement as the API tells them."""
    return AgreementShown(
        len(votes),
        list(votes.criteria),
        list(votes.groups),
        [
            FindingShown(
                each.name,
                each.title,
                list(each.table.columns),
                [list(row) for row in each.table.rows],
                list(each.notes),
                each.needs,
            )
            for each in findings
        ],
    )


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Some of the ledger, the newest first; `next` is None at the end."""

    rows: list[LedgerEntry]
    next: str | None


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some lines of the log, the newest first, each with the fields that it has; `next` is None at the end."""

    rows: list[dict[str, Any]]
    next: str | None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An entry of the audit log; `campaign` is empty for what concerns the whole store."""

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
    """The settings and the names of the runs; what may change with what that does, and why the others stay."""

    settings: dict[str, Any]
    runs: list[str]
    changeable: dict[str, str]
    fixed: dict[str, str]


@dataclass(frozen=True, slots=True)
class Pulse:
    """A text that is another one as soon as something has changed."""

    pulse: str


# ---- what is asked for


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Exclude(_Asked):
    """Take somebody's judgments out of every score, and let them in no more; they are paid all the same."""

    assessor: Name
    reason: Reason
    preview: Preview = False


class Reinstate(_Asked):
    """Let somebody in again; their judgments count again where the pairs have slots left."""

    assessor: Name
    reason: Reason = "re-instated"
    preview: Preview = False


class Retract(_Asked):
    """Void judgments of a topic by their places in its log."""

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
    """What became of settings, or with `preview` would: each change with what it does."""

    preview: bool
    changes: list[Change]
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ActionEffect:
    """What a step did, or with `preview` would do: in a sentence and in figures.

    `opened` are the pairs that are asked again.
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
    """Return what a step was about, for the audit log."""
    values = asked.model_dump(exclude={"preview"})
    return "; ".join(f"{name}: {value}" for name, value in values.items() if value not in ("", None))
