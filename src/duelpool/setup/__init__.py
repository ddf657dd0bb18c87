"""Setting up a campaign: read the files, forecast it in a dry run, and create it in one transaction."""

from duelpool.setup.comparisons import Compared, Comparison, above_limit, compare, pay_of, planned_cost
from duelpool.setup.drafts import Draft, Holdings, ReadyDraft, Rules, build_draft
from duelpool.setup.forecasts import Forecast, every_strategy, forecast
from duelpool.setup.inputs import Files, Inputs, read_files
from duelpool.setup.pilots import (
    FittedJudges,
    Observed,
    Recommendation,
    candidates,
    fit_judges,
    observe,
    recommend,
)

__all__ = [
    "Compared",
    "Comparison",
    "Draft",
    "Files",
    "FittedJudges",
    "Forecast",
    "Holdings",
    "Inputs",
    "Observed",
    "ReadyDraft",
    "Recommendation",
    "Rules",
    "above_limit",
    "build_draft",
    "candidates",
    "compare",
    "every_strategy",
    "fit_judges",
    "forecast",
    "observe",
    "pay_of",
    "planned_cost",
    "read_files",
    "recommend",
]
