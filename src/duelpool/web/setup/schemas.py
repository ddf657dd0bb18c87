"""What the API says of a campaign that is being set up, and the page with it."""

from dataclasses import dataclass
from typing import Any

from duelpool.errors import DuelpoolError
from duelpool.files import describe
from duelpool.setup import Draft, Forecast, Observed, Recommendation
from duelpool.simulation.cost import Pay, estimate
from duelpool.web.setup.drafts import SavedDraft
from duelpool.web.setup.options import Options

SHOWN_AT_MOST = 20


@dataclass(frozen=True, slots=True)
class FileShown:
    """A file that was sent, and what of it was skipped or mended."""

    kind: str
    name: str
    size: int
    notices: list[str]


@dataclass(frozen=True, slots=True)
class PoolSize:
    """How many topics have pools of a size."""

    size: int
    topics: int


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """What the files come to: pools, twins, missing texts, and what was left out.

    Lists are cut after twenty; `pilot_of` is the number of topics of which a pilot takes a share.
    """

    topics: int
    candidates: int
    smallest: int
    median: int
    largest: int
    largest_topic: str
    sizes: list[PoolSize]
    twins: int
    near_twins: int
    without_text: int
    first_without_text: list[str]
    without_question: int
    left_out_ungraded: int
    left_out_not_relevant: int
    left_out_thinned: int
    topics_without_candidates: list[str]
    topics_without_grades: list[str]
    topics_without_runs: list[str]
    test_pairs: int
    runs: int
    judgments: int
    assignments: int
    cost: int
    pilot_of: int | None


@dataclass(frozen=True, slots=True)
class Simulated:
    """The simulation of every strategy: waiting, running, done or failed; `left` are still to come."""

    state: str
    total: int
    left: int
    judges: str
    note: str
    forecasts: list[Forecast]
    recommendation: Recommendation | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What stands in the way: what is wrong, in which file and line, and what to do about it."""

    problem: str
    place: str
    remedy: str


@dataclass(frozen=True, slots=True)
class DraftDetail:
    """A campaign that is being set up; `ready` says whether it can be made now."""

    id: str
    files: list[FileShown]
    options: Options
    ready: bool
    trouble: Trouble | None
    warnings: list[str]
    pools: PoolFigures | None
    simulated: Simulated | None
    pilot: Observed | None


@dataclass(frozen=True, slots=True)
class DraftBrief:
    """A campaign that is being set up, by its id and the name it is to have."""

    id: str
    name: str
    files: int


@dataclass(frozen=True, slots=True)
class DraftList:
    """The campaigns that are being set up."""

    rows: list[DraftBrief]


@dataclass(frozen=True, slots=True)
class CreatedCampaign:
    """A campaign that has been made: the manager's key for it, and where its pages are."""

    id: str
    name: str
    sentence: str
    key: str
    manage: str
    assessors: str


def draft_detail(draft: SavedDraft, simulate: bool = True) -> DraftDetail:
    """Return a draft with all that is known of it."""
    seen = draft.look()
    told = (
        {}
        if seen.draft is None
        else {
            draft.uploads.shown(path): [line.partition(": ")[2] for line in describe(path, notices)]
            for path, notices in seen.draft.inputs.notices
        }
    )
    files = [
        FileShown(kind, name, size, told.get(f"{kind}/{name}", []))
        for kind, name, size in draft.uploads.listed()
    ]
    return DraftDetail(
        id=draft.id,
        files=files,
        options=draft.options,
        ready=seen.draft is not None and seen.trouble is None,
        trouble=None if seen.trouble is None else trouble_of(seen.trouble),
        warnings=[] if seen.draft is None else _warnings(seen.draft),
        pools=None if seen.draft is None else _figures(seen.draft),
        simulated=_simulated(draft.simulated()) if simulate and seen.draft is not None else None,
        pilot=seen.observed,
    )


def trouble_of(error: DuelpoolError) -> Trouble:
    """Return an error as it is told."""
    return Trouble(error.problem, error.place, error.remedy)


def _simulated(state: dict[str, Any] | None) -> Simulated | None:
    if state is None:
        return None
    chosen = state.get("recommendation")
    return Simulated(
        state=state["state"],
        total=state["total"],
        left=state.get("left", state["total"]),
        judges=state.get("judges", ""),
        note=state.get("note", ""),
        forecasts=[Forecast(**each) for each in state.get("forecasts", ())],
        recommendation=None if chosen is None else Recommendation(**chosen),
        problem=state.get("problem", ""),
    )


def _figures(draft: Draft) -> PoolFigures:
    pools = draft.pools
    sizes = sorted(pools.sizes.values())
    settings = draft.settings
    expected = estimate(
        sizes,
        settings.strategy,
        Pay(settings.reward, settings.fee_percent, settings.targets),
        cap=settings.cap,
    )
    largest = pools.largest
    try:
        tests = len(draft.test_pairs()[0])
    except DuelpoolError:
        tests = 0
    return PoolFigures(
        topics=len(pools.pools),
        candidates=pools.candidates,
        smallest=sizes[0],
        median=sizes[len(sizes) // 2],
        largest=sizes[-1],
        largest_topic=largest.topic if largest else "",
        sizes=[PoolSize(size, sizes.count(size)) for size in sorted(set(sizes))],
        twins=pools.merged,
        near_twins=sum(map(len, pools.near_duplicates.values())),
        without_text=len(pools.without_text),
        first_without_text=[f"{topic}: {item}" for topic, item in pools.without_text[:SHOWN_AT_MOST]],
        without_question=len(draft.untitled),
        left_out_ungraded=pools.ungraded,
        left_out_not_relevant=pools.not_relevant,
        left_out_thinned=pools.thinned,
        topics_without_candidates=list(pools.empty_topics[:SHOWN_AT_MOST]),
        topics_without_grades=list(pools.ungraded_topics[:SHOWN_AT_MOST]),
        topics_without_runs=list(pools.unpooled_topics[:SHOWN_AT_MOST]),
        test_pairs=tests,
        runs=len(draft.inputs.runs),
        judgments=expected.judgments,
        assignments=expected.assignments,
        cost=expected.cost,
        pilot_of=len(draft.whole) if len(draft.whole) != len(pools.pools) else None,
    )


def _warnings(draft: Draft) -> list[str]:
    pools = draft.pools
    found = []
    if draft.texts is None:
        found.append("No passages: assessors would see item ids.")
    elif pools.without_text:
        found.append(f"{len(pools.without_text):,} items have no text: assessors would see an empty passage.")
    if draft.untitled:
        found.append(f"{len(draft.untitled):,} topics have no question: assessors would see the topic id.")
    if not draft.inputs.runs:
        found.append("No runs: there will be no leaderboard.")
    if pools.empty_topics:
        found.append(f"{len(pools.empty_topics):,} topics have no items and are left out.")
    if lonely := sum(size == 1 for size in pools.sizes.values()):
        found.append(f"{lonely:,} topics have one item: there is nothing to judge in them.")
    return found
