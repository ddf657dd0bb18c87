"""Forgetting who people are: identities and the panel's ids of their stays are erased, the pseudonyms stay."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import delete, select, update

from duelpool.campaign.campaign import Campaign
from duelpool.recruitment.payments import BY_HAND, CLAIMED, PAYING, PLANNED, UNKNOWN, payments
from duelpool.recruitment.submissions import owed, submissions
from duelpool.store import Reading, Writing, schema

_OPEN = (PLANNED, CLAIMED, PAYING, UNKNOWN, BY_HAND)


@dataclass(frozen=True, slots=True)
class Erasure:
    """Whose identity is erased, and whose is kept because something is still to be paid to them."""

    erased: tuple[str, ...]
    unsettled: tuple[str, ...]


def erase(campaign: Campaign, people: Collection[str] | None, *, carry_out: bool) -> Erasure:
    """Erase who these people are, or everybody; those to whom something is due are kept."""

    def find(tx: Reading) -> Erasure:
        known = _known(tx)
        wanted = known if people is None else known & set(people)
        due = unsettled(tx, campaign)
        return Erasure(tuple(sorted(wanted - due)), tuple(sorted(wanted & due)))

    def work(tx: Writing) -> Erasure:
        found = find(tx)
        identity, submission = schema.identity.c, schema.submission.c
        tx.connection.execute(
            delete(schema.identity).where(
                identity.campaign == campaign.id, identity.assessor.in_(found.erased)
            )
        )
        tx.connection.execute(
            update(schema.submission)
            .where(submission.campaign == campaign.id, submission.assessor.in_(found.erased))
            .values(external=None)
        )
        return found

    return campaign.write(work) if carry_out else campaign.read(find)


def _known(tx: Reading) -> set[str]:
    identity, submission = schema.identity.c, schema.submission.c
    named = tx.connection.execute(select(identity.assessor).where(identity.campaign == tx.campaign)).scalars()
    stayed = tx.connection.execute(
        select(submission.assessor).where(
            submission.campaign == tx.campaign, submission.external.is_not(None)
        )
    ).scalars()
    return {*named, *stayed}


def unsettled(tx: Reading, campaign: Campaign) -> set[str]:
    """Return the people to whom something is due that isn't paid for sure."""
    settings = campaign.settings
    if not settings.panel:
        return set()
    everything = submissions(tx, settings.panel)
    rows, _ = owed(tx, everything, settings.fee_percent)
    booked = payments(tx)
    settled = {each.ledger for each in booked if each.live and each.state not in _OPEN}
    people = {submission.id: submission.assessor for submission in everything if submission.external}
    return {
        people[name]
        for name, due in rows.items()
        if name in people and any(row.ledger not in settled for row in due)
    } | {each.assessor for each in booked if each.live and each.state in _OPEN}
