"""The records of drafts, for the API and the pages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from duelpool.errors import DuelpoolError
from duelpool.files import describe
from duelpool.setup import Draft, Forecast, Observed, Recommendation, above_limit, planned_cost
from duelpool.setup.checks import PoolCheck, items_without_text
from duelpool.setup.comparisons import THIN, pairs_of_answers, thinner_plan
from duelpool.setup.contents import KindContents
from duelpool.web.setup.drafts import DryRun, SavedDraft
from duelpool.web.setup.options import Options

SHOWN_AT_MOST = 20


@dataclass(frozen=True, slots=True)
class FileShown:
    """An uploaded file, and notices of what was skipped or repaired."""

    kind: str
    name: str
    size: int
    notices: list[str]


@dataclass(frozen=True, slots=True)
class PoolSize:
    """The number of topics with pools of a size."""

    size: int
    topics: int


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """The pools of a draft: sizes, duplicates, missing texts, and what was left out.

    `pairs` is the number of pairs of items, `missing_answers` the questions that a system didn't answer. Lists are cut
    after twenty; `pilot_of` is the number of topics of which a pilot takes a share.
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
    strategy: str
    goal: str
    pairs: int
    missing_answers: dict[str, int]
    judgments: int
    assignments: int
    cost: int
    pilot_of: int | None


@dataclass(frozen=True, slots=True)
class Simulated:
    """The simulation of every strategy: waiting, running, done or failed; `left` are still to come.

    `simulating` is the strategy that is being simulated; those still to come may have a forecast of few trials.
    """

    state: str
    total: int
    left: int
    judges: str
    note: str
    forecasts: list[Forecast]
    recommendation: Recommendation | None
    problem: str = ""
    simulating: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error in a draft: problem, file and line, remedy."""

    problem: str
    place: str
    remedy: str


@dataclass(frozen=True, slots=True)
class DraftDetail:
    """A draft; `ready` says whether its campaign can be created now.

    `contents` says what the files hold, `checks` what is noteworthy about the pools.
    """

    id: str
    files: list[FileShown]
    options: Options
    ready: bool
    trouble: Trouble | None
    warnings: list[str]
    pools: PoolFigures | None
    simulated: Simulated | None
    pilot: Observed | None
    contents: list[KindContents]
    checks: list[PoolCheck]


@dataclass(frozen=True, slots=True)
class DraftBrief:
    """A draft in the list: its id, the campaign's name and the number of files."""

    id: str
    name: str
    files: int


@dataclass(frozen=True, slots=True)
class DraftList:
    """All drafts."""

    rows: list[DraftBrief]


@dataclass(frozen=True, slots=True)
class CreatedCampaign:
    """A new campaign: the manager's key, the addresses of its pages, and the command for a language model, if any."""

    id: str
    name: str
    sentence: str
    key: str
    manage: str
    assessors: str
    model_command: str = ""


def draft_detail(draft: SavedDraft, simulate: bool = True) -> DraftDetail:
    """Return a draft with its dry run."""
    dry_run = draft.dry_run()
    notices_of = (
        {}
        if dry_run.draft is None
        else {
            draft.uploads.shown(path): [line.partition(": ")[2] for line in describe(path, notices)]
            for path, notices in dry_run.draft.inputs.notices
        }
    )
    files = [
        FileShown(kind, name, size, notices_of.get(f"{kind}/{name}", []))
        for kind, name, size in draft.uploads.listed()
    ]
    simulated = _simulated(draft.simulated()) if simulate and dry_run.draft is not None else None
    forecasts = () if simulated is None else simulated.forecasts
    return DraftDetail(
        id=draft.id,
        files=files,
        options=draft.options,
        ready=dry_run.draft is not None and dry_run.trouble is None,
        trouble=None if dry_run.trouble is None else trouble_of(dry_run.trouble),
        warnings=[] if dry_run.draft is None else _warnings(dry_run.draft) + _dear(dry_run, forecasts),
        pools=None if dry_run.draft is None else _figures(dry_run.draft, dry_run.observed, forecasts),
        simulated=simulated,
        pilot=dry_run.observed,
        contents=dry_run.contents,
        checks=dry_run.checks,
    )


def trouble_of(error: DuelpoolError) -> Trouble:
    """Return an error as a record."""
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
        simulating=state.get("simulating", ""),
    )


def _figures(draft: Draft, observed: Observed | None, forecasts: Iterable[Forecast]) -> PoolFigures:
    pools = draft.pools
    sizes = sorted(pools.sizes.values())
    expected = planned_cost(draft, observed, forecasts)
    largest, lacking = pools.largest, items_without_text(draft)
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
        near_twins=pools.near_duplicate_items,
        without_text=len(lacking),
        first_without_text=[f"{topic}: {item}" for topic, item in lacking[:SHOWN_AT_MOST]],
        without_question=len(draft.untitled),
        left_out_ungraded=pools.ungraded,
        left_out_not_relevant=pools.not_relevant,
        left_out_thinned=pools.thinned,
        topics_without_candidates=list(pools.empty_topics[:SHOWN_AT_MOST]),
        topics_without_grades=list(pools.ungraded_topics[:SHOWN_AT_MOST]),
        topics_without_runs=list(pools.unpooled_topics[:SHOWN_AT_MOST]),
        test_pairs=tests,
        runs=len(draft.inputs.runs),
        strategy=expected.strategy,
        goal=draft.settings.goal,
        pairs=pairs_of_answers(draft),
        missing_answers={} if draft.inputs.answers is None else draft.inputs.answers.missing,
        judgments=expected.judgments,
        assignments=expected.assignments,
        cost=expected.cost,
        pilot_of=len(draft.whole) if len(draft.whole) != len(pools.pools) else None,
    )


def _dear(dry_run: DryRun, forecasts: Iterable[Forecast]) -> list[str]:
    """Return the warning that the chosen strategy costs more than the limit, where it does."""
    said = None if dry_run.comparison is None else above_limit(dry_run.comparison, forecasts)
    return [] if said is None else [said]


def _warnings(draft: Draft) -> list[str]:
    warnings = []
    if (fewer := thinner_plan(draft)) is not None:
        warnings.append(
            f"Large pools take many judgments: with the highest grades alone, at least {THIN} items a pool, they are "
            f"about {fewer.judgments:,}. Enter {THIN} as the fewest items of a pool."
        )
    if not draft.inputs.runs:
        warnings.append("No runs: there will be no leaderboard.")
    if draft.inputs.answers is not None and (missing := draft.inputs.answers.missing):
        first = next(iter(missing))
        warnings.append(f"{len(missing):,} systems miss answers (first: {first}, {missing[first]:,}).")
    return warnings
