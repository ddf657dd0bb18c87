"""The settings of a campaign: each declared once, read from files, changed while people judge."""

from duelpool.campaign.settings.settings import CHANGEABLE, FIXED, SETTINGS, Settings
from duelpool.campaign.settings.values import SCALES, Flips, Judges, PlannedRow, Scale, Stage, TestRule

__all__ = [
    "CHANGEABLE",
    "FIXED",
    "SCALES",
    "SETTINGS",
    "Flips",
    "Judges",
    "PlannedRow",
    "Scale",
    "Settings",
    "Stage",
    "TestRule",
]
