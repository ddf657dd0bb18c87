"""Arrivals: somebody from a panel is let in under a pseudonym, and their stay is written down."""

import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, insert

from duelpool.campaign.work import participants
from duelpool.panels.base import RefusedVisit, WorkerIdentity
from duelpool.recruitment.submissions import find_submission
from duelpool.store import Store, Writing, schema


@dataclass(frozen=True, slots=True)
class LetIn:
    """Somebody who is in: their pseudonym, and our name of their stay."""

    assessor: str
    submission: str


def let_in(
    store: Store, campaign: str, kind: str, panel: str, identity: WorkerIdentity
) -> LetIn | RefusedVisit:
    """Let somebody in by what the panel calls them; the same person has the same pseudonym, whenever they come."""
    fresh, stay = f"v-{secrets.token_hex(6)}", secrets.token_hex(8)

    def work(tx: Writing) -> LetIn | RefusedVisit:
        known = participants.known_as(tx, panel, identity.person)
        before = find_submission(tx, panel, identity.submission)
        if before is not None and before.assessor != known:
            refused = RefusedVisit("the stay is another person's")
            note(tx.connection, campaign, panel, tx.now, reason=refused.reason)
            return refused
        assessor = participants.let_in(tx, known or fresh, kind, panel=panel, external=identity.person)
        if before is None:
            tx.connection.execute(
                insert(schema.submission).values(
                    id=stay,
                    campaign=campaign,
                    assessor=assessor,
                    panel=panel,
                    study=identity.study,
                    external=identity.submission,
                    created=tx.now,
                    changed=tx.now,
                )
            )
        found = LetIn(assessor, before.id if before is not None else stay)
        note(tx.connection, campaign, panel, tx.now, submission=found.submission)
        return found

    return store.of(campaign).write(work)


def turn_away(store: Store, campaign: str, panel: str, refused: RefusedVisit) -> None:
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
