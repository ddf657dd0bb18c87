"""Why there is nothing to judge for an assessor, so that every page and command can say it and what to do."""

from typing import Literal, TypeAlias

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.questions.proposals import read_outstanding
from duelpool.campaign.work.assignments import affordable
from duelpool.store import Reading

WhyIdle: TypeAlias = Literal["done", "money", "others", "held", "own"]
"""Every topic is done; the money is spent; others hold what is open; topics are held back; or only other people may
judge what is left, since no person judges a pair twice."""


def why_idle(campaign: Campaign, assessor: str) -> WhyIdle:
    """Return why an assessor gets no question now."""
    if campaign.done:
        return "done"
    settings = campaign.settings

    def work(tx: Reading) -> WhyIdle:
        if settings.judges == "crowd" and not affordable(tx, settings):
            return "money"
        out = read_outstanding(tx, assessor, settings.parked_after)
        for topic, leased in out.leased.items():
            if any(each.pair not in out.own.get(topic, ()) for each in leased):
                return "others"
        return "held" if campaign.held_back(tx) else "own" if out.seen else "others"

    return campaign.read(work)


def session_ending(campaign: Campaign, assessor: str, *, of_person: bool = False) -> str:
    """Return why a session without assignments ends: "done", "held", "nothing" for now, or "own" of a person."""
    why = why_idle(campaign, assessor)
    return why if why in ("done", "held", *(("own",) if of_person else ())) else "nothing"
