"""Arrivals: a person from a panel is admitted under a pseudonym, and their submission is stored, once they agree."""

import secrets
from dataclasses import dataclass

from sqlalchemy import insert

from duelpool.campaign.work import participants
from duelpool.panels.base import RefusedVisit, WorkerIdentity
from duelpool.recruitment.submissions import find_submission
from duelpool.store import CampaignStore, Reading, Writing, schema


@dataclass(frozen=True, slots=True)
class Admitted:
    """An admitted person: their pseudonym, and our id of their submission."""

    assessor: str
    submission: str


def refusal(tx: Reading, panel: str, identity: WorkerIdentity) -> RefusedVisit | None:
    """Return why a person isn't admitted: their submission is known as another person's."""
    before = find_submission(tx, panel, identity.submission)
    if before is None or before.assessor == participants.find_pseudonym(tx, panel, identity.person):
        return None
    return RefusedVisit("the submission is another person's")


def admit(
    tx: Writing, new_pseudonym: str, kind: str, panel: str, identity: WorkerIdentity
) -> Admitted | RefusedVisit:
    """Admit a person by the panel's id; the same person always has the same pseudonym."""
    assessor = participants.admit(tx, new_pseudonym, kind, panel=panel, external=identity.person)
    refused = refusal(tx, panel, identity)
    if refused is not None:
        return refused
    before = find_submission(tx, panel, identity.submission)
    new_submission = secrets.token_hex(8)
    if before is None:
        tx.connection.execute(
            insert(schema.submission).values(
                id=new_submission,
                campaign=tx.campaign,
                assessor=assessor,
                panel=panel,
                study=identity.study,
                external=identity.submission,
                created=tx.now,
                changed=tx.now,
            )
        )
    admitted = Admitted(assessor, before.id if before is not None else new_submission)
    _record_arrival(tx, panel, submission=admitted.submission)
    return admitted


def record_refusal(store: CampaignStore, panel: str, refused: RefusedVisit) -> None:
    """Store that a visitor was not admitted, and why."""
    store.write(lambda tx: _record_arrival(tx, panel, reason=refused.reason))


def _record_arrival(tx: Writing, panel: str, *, submission: str | None = None, reason: str = "") -> None:
    tx.connection.execute(
        insert(schema.arrival).values(
            campaign=tx.campaign,
            panel=panel,
            verdict="identity" if submission else "refused",
            reason=reason,
            submission=submission,
            time=tx.now,
        )
    )
