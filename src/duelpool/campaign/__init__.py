"""The campaign: people and programs judge, and nothing that they did is ever lost."""

from duelpool.campaign.loop import Assignment, Campaign, Finished, NotAllowed
from duelpool.campaign.settings import Settings

__all__ = ["Assignment", "Campaign", "Finished", "NotAllowed", "Settings"]
