"""Arrivals: somebody from a panel is let in under a pseudonym, and their submission is written down."""

import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, insert

from duelpool.campaign.work import participants
from duelpool.panels.base import RefusedVisit, WorkerIdentity
from duelpool.recruitment.submissions import find_submission
from duelpool.store import Store, Writing, schema


@dataclass(frozen=True, slots=True)
class Admitted:
    """Somebody who is in: their pseudonym, and our name of their submission."""

    assessor: str
    submission: str


def admit(
    store: Store, campaign: str, kind: str, panel: str, identity: WorkerIdentity
) -> Admitted | RefusedVisit:
    """Let somebody in by what the panel calls them; the same person has the same pseudonym, whenever they come."""
    fresh, submission = f"v-{secrets.token_hex(6)}", secrets.token_hex(8)

    def work(tx: Writing) -> Admitted | RefusedVisit:
        known = participants.find_pseudonym(tx, panel, identity.person)
        before = find_submission(tx, panel, identity.submission)
        if before is not None and before.assessor != known:
            refused = RefusedVisit("the submission is another person's")
            note(tx.connection, campaign, panel, tx.now, reason=refused.reason)
            return refused
        assessor = participants.admit(tx, known or fresh, kind, panel=panel, external=identity.person)
        if before is None:
            tx.connection.execute(
                insert(schema.submission).values(
                    id=submission,
                    campaign=campaign,
                    assessor=assessor,
                    panel=panel,
                    study=identity.study,
                    external=identity.submission,
                    created=tx.now,
                    changed=tx.now,
                )
            )
        found = Admitted(assessor, before.id if before is not None else submission)
        note(tx.connection, campaign, panel, tx.now, submission=found.submission)
        return found

    return store.of(campaign).write(work)


def record_refusal(store: Store, campaign: str, panel: str, refused: RefusedVisit) -> None:
    """Write down that somebody was not let in, and why."""
    store.write(lambda connection, now: note(connection, campaign, panel, now, reason=refused.reason))


def note(
    connection: Connection,
    campaign: str,
    panel: str,
    now: float,
    *,
    submission: str | None = None,
    reason: str = "",
) -> None:
    """Write an arrival down."""
    connection.execute(
        insert(schema.arrival).values(
            campaign=campaign,
            panel=panel,
            verdict="identity" if submission else "refused",
            reason=reason,
            submission=submission,
            time=now,
        )
    )
