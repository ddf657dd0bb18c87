"""Admission: what is known about a visitor stays in their signed cookie until they agree, and is stored then.

A campaign that asks for no consent stores it when they enter.

An open link lets anyone in, so new people are counted by their address, and turned away beyond the campaign's limit.
Ids in the link and those of panels count like no id: they aren't signed, and anyone can make them up. Personal links
and accounts are for people who were invited; they aren't counted.
"""

from collections.abc import Callable
from typing import TypeVar

from duelpool.access import limits
from duelpool.campaign import Campaign, Settings
from duelpool.campaign.work import participants
from duelpool.panels.base import RefusedVisit, WorkerIdentity
from duelpool.recruitment import arrivals
from duelpool.recruitment.submissions import find_submission
from duelpool.store import Reading, Writing
from duelpool.web.access.links import ExpiredLink
from duelpool.web.judging.flow import Flow
from duelpool.web.judging.visitors import Visitor
from duelpool.web.server.guard import CrowdedAddress, TurnedAway

T = TypeVar("T")


def turned_away(refused: RefusedVisit) -> TurnedAway:
    """Return the error for a visitor whom a panel's parameters don't admit."""
    return TurnedAway(
        f"You can't enter: {refused.reason}.", remedy="Open the task again from the panel's own page."
    )


def settled(flow: Flow, visitor: Visitor, address: str) -> Visitor:
    """Return a visitor under the pseudonym that they have; one who hasn't agreed yet is unchanged.

    Someone who agreed in another browser is known already. Where no consent is asked, the visitor is admitted.
    """
    if not visitor.waits:
        return visitor
    campaign = flow.campaign

    def look(tx: Reading) -> tuple[str | None, bool]:
        if visitor.once:
            mine = participants.whose_link(tx, visitor.assessor, visitor.once)
            if mine is not None and mine != visitor.browser:
                raise _used()
            return (visitor.assessor if mine else None), False
        known = participants.find_pseudonym(tx, visitor.source, visitor.external)
        stay = visitor.submission
        return known, bool(stay) and find_submission(tx, visitor.panel, stay) is None

    known, new_stay = campaign.read(look)
    if known is not None and not new_stay:
        return visitor.admitted(known)
    if known is None and "consent" in campaign.settings.steps:
        return visitor
    return admitting(campaign, lambda tx: admit(tx, campaign.settings, visitor, address))


def admitting(campaign: Campaign, work: Callable[[Writing], T]) -> T:
    """Run a transaction that admits a visitor; count one who is turned away because of their address."""
    try:
        return campaign.write(work)
    except CrowdedAddress:
        campaign.write(lambda tx: limits.count_turned_away(tx.connection, tx.campaign, tx.now))
        raise


def admit(tx: Writing, settings: Settings, visitor: Visitor, address: str) -> Visitor:
    """Enrol a visitor with all that their cookie knows; return them under their pseudonym."""
    if visitor.kind == "open" and settings.visitors_per_address and not _known(tx, visitor):
        _count_new(tx, settings.visitors_per_address, address)
    if visitor.submission:
        identity = WorkerIdentity(visitor.external, visitor.submission, visitor.study)
        admitted = arrivals.admit(tx, visitor.assessor, settings.judges, visitor.panel, identity)
        if isinstance(admitted, RefusedVisit):
            raise turned_away(admitted)
        return visitor.admitted(admitted.assessor)
    name = participants.admit(
        tx, visitor.assessor, settings.judges, panel=visitor.source, external=visitor.external
    )
    if visitor.once and not participants.use_link(tx, name, visitor.once, visitor.browser):
        raise _used()
    return visitor.admitted(name)


def _known(tx: Reading, visitor: Visitor) -> bool:
    if visitor.external:
        return participants.find_pseudonym(tx, visitor.source, visitor.external) is not None
    return participants.participant_state(tx, visitor.assessor).person is not None


def _count_new(tx: Writing, most: int, address: str) -> None:
    """Count a new visitor; refuse one beyond the limit, which undoes the count."""
    limit = limits.new_visitors(tx.campaign, most)
    if limits.add_attempts(tx.connection, limit, address, tx.now) > most:
        refused = CrowdedAddress(
            f"An address has sent {most} new visitors within an hour.",
            remedy="Raise visitors_per_address; if all visitors have one address, see --proxy.",
        )
        refused.seconds = limits.too_many(limit, tx.now).seconds
        raise refused


def _used() -> ExpiredLink:
    return ExpiredLink("This link has already been used.", remedy="Ask for a new one.")
