"""Erasure: people's identities and the panel's ids of their submissions are erased; the pseudonyms stay."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import delete, select, update

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.settings import Settings
from duelpool.recruitment.payments import BY_HAND, CLAIMED, PAYING, PLANNED, UNKNOWN, payments
from duelpool.recruitment.submissions import owed, submissions
from duelpool.store import Reading, Writing, schema

_OPEN = (PLANNED, CLAIMED, PAYING, UNKNOWN, BY_HAND)


@dataclass(frozen=True, slots=True)
class Erasure:
    """The people whose identities are erased, and those who are kept because they are still to be paid."""

    erased: tuple[str, ...]
    unsettled: tuple[str, ...]


def erase(campaign: Campaign, people: Collection[str] | None, *, carry_out: bool) -> Erasure:
    """Erase the identities of these people, or of all; people who are still to be paid are kept."""

    def find(tx: Reading) -> Erasure:
        known = _known(tx)
        wanted = known if people is None else known & set(people)
        due = unsettled(tx, campaign.settings)
        return Erasure(tuple(sorted(wanted - due)), tuple(sorted(wanted & due)))

    def work(tx: Writing) -> Erasure:
        erasure = find(tx)
        identity, submission = schema.identity.c, schema.submission.c
        tx.connection.execute(
            delete(schema.identity).where(
                identity.campaign == tx.campaign, identity.assessor.in_(erasure.erased)
            )
        )
        tx.connection.execute(
            update(schema.submission)
            .where(submission.campaign == tx.campaign, submission.assessor.in_(erasure.erased))
            .values(external=None)
        )
        return erasure

    return campaign.write(work) if carry_out else campaign.read(find)


def _known(tx: Reading) -> set[str]:
    identity, submission = schema.identity.c, schema.submission.c
    identified = tx.connection.execute(
        select(identity.assessor).where(identity.campaign == tx.campaign)
    ).scalars()
    with_submission = tx.connection.execute(
        select(submission.assessor).where(
            submission.campaign == tx.campaign, submission.external.is_not(None)
        )
    ).scalars()
    return {*identified, *with_submission}


def unsettled(tx: Reading, settings: Settings) -> set[str]:
    """Return the people with a payment due that isn't surely made."""
    if not settings.panel:
        return set()
    all_submissions = submissions(tx, settings.panel)
    rows, _ = owed(tx, all_submissions, settings.fee_percent)
    planned = payments(tx)
    settled = {each.ledger for each in planned if each.live and each.state not in _OPEN}
    people = {submission.id: submission.assessor for submission in all_submissions if submission.external}
    return {
        people[name]
        for name, due in rows.items()
        if name in people and any(row.ledger not in settled for row in due)
    } | {each.assessor for each in planned if each.live and each.state in _OPEN}
