"""The settings of a campaign: each declared once, read from files, changed while people judge."""

from duelpool.campaign.settings.settings import (
    SCALES,
    Flips,
    Judges,
    PlannedRow,
    Scale,
    Settings,
    Stage,
    TestRule,
)

__all__ = ["SCALES", "Flips", "Judges", "PlannedRow", "Scale", "Settings", "Stage", "TestRule"]
