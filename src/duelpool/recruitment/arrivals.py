"""Arrivals: a person from a panel is admitted under a pseudonym, and their submission is stored."""

import secrets
from dataclasses import dataclass

from sqlalchemy import insert

from duelpool.campaign.work import participants
from duelpool.panels.base import RefusedVisit, WorkerIdentity
from duelpool.recruitment.submissions import find_submission
from duelpool.store import CampaignStore, Writing, schema


@dataclass(frozen=True, slots=True)
class Admitted:
    """An admitted person: their pseudonym, and our id of their submission."""

    assessor: str
    submission: str


def admit(store: CampaignStore, kind: str, panel: str, identity: WorkerIdentity) -> Admitted | RefusedVisit:
    """Admit a person by the panel's id; the same person always has the same pseudonym."""
    new_pseudonym, new_submission = f"v-{secrets.token_hex(6)}", secrets.token_hex(8)

    def work(tx: Writing) -> Admitted | RefusedVisit:
        known = participants.find_pseudonym(tx, panel, identity.person)
        before = find_submission(tx, panel, identity.submission)
        if before is not None and before.assessor != known:
            refused = RefusedVisit("the submission is another person's")
            _record_arrival(tx, panel, reason=refused.reason)
            return refused
        assessor = participants.admit(tx, known or new_pseudonym, kind, panel=panel, external=identity.person)
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

    return store.write(work)


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
