"""Setting a campaign up: files in, a dry run of what they come to, and then the campaign, whole or not at all."""

from duelpool.setup.comparisons import Compared, Comparison, compare
from duelpool.setup.drafts import Draft, Holdings, Ready, Rules, draw_up
from duelpool.setup.forecasts import Forecast, every_strategy, forecast
from duelpool.setup.inputs import Brought, Files, read_files
from duelpool.setup.pilots import (
    Likeness,
    Observed,
    Recommendation,
    candidates,
    judges_like,
    observe,
    recommend,
)

__all__ = [
    "Brought",
    "Compared",
    "Comparison",
    "Draft",
    "Files",
    "Forecast",
    "Holdings",
    "Likeness",
    "Observed",
    "Ready",
    "Recommendation",
    "Rules",
    "candidates",
    "compare",
    "draw_up",
    "every_strategy",
    "forecast",
    "judges_like",
    "observe",
    "read_files",
    "recommend",
]
