"""The campaign: people and programs judge, and nothing that they did is ever lost."""

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.settings import Settings
from duelpool.campaign.work.assignments import Assignment, Finished
from duelpool.campaign.work.participants import NotAllowed

__all__ = ["Assignment", "Campaign", "Finished", "NotAllowed", "Settings"]
