"""Why there is nothing to judge for an assessor, so that every page and command can say it and what to do."""

from typing import Literal, TypeAlias

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.questions.proposals import read_outstanding
from duelpool.campaign.work.assignments import affordable
from duelpool.deciders import SpendingStatus, worth_of
from duelpool.store import Reading

WhyIdle: TypeAlias = Literal["done", "spent", "money", "others", "held", "own"]
"""Every topic is done; the judgments to spend are spent, and some topics aren't settled; the money is spent; others
hold what is open; topics are held back; or only other people may judge what is left, since no person judges a
pair twice."""


def why_idle(campaign: Campaign, assessor: str) -> WhyIdle:
    """Return why an assessor gets no question now."""
    if campaign.done:
        return "spent" if _are_spent(campaign) else "done"
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


def _are_spent(campaign: Campaign) -> bool:
    """Return whether a campaign that is done would ask more, if it had more judgments to spend."""
    live = campaign.live
    if live.spend.is_even:
        return False
    worths = [live.with_state(topic, None, lambda state: worth_of(state.strategy)) for topic in live.heads()]
    account = SpendingStatus.of(live.spend, worths, campaign.settings.spend_judgments)
    return not account.decided and account.ended < account.topics


def session_ending(campaign: Campaign, assessor: str, *, of_person: bool = False) -> str:
    """Return why a session without assignments ends: as `why_idle` says, or "nothing" for now; "own" of a person."""
    why = why_idle(campaign, assessor)
    return why if why in ("done", "spent", "held", *(("own",) if of_person else ())) else "nothing"
