"""The campaign: people and programs judge, and nothing that they did is ever lost."""

from duelpool.campaign.assignments import Assignment, Finished
from duelpool.campaign.loop import Campaign, NotAllowed
from duelpool.campaign.settings import Settings

__all__ = ["Assignment", "Campaign", "Finished", "NotAllowed", "Settings"]
