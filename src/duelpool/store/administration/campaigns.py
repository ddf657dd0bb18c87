"""Campaigns of a store as a whole: rename one, or remove one with all its rows."""

from sqlalchemy import Connection, delete, func, or_, select, update

from duelpool.errors import BadParameter
from duelpool.store import Store, schema
from duelpool.store.holdings import CampaignRow, find_campaign

KEPT_AFTER_REMOVAL = ("deed",)
"""Tables whose rows stay when a campaign is removed: the activity log is never shortened."""


def rename_campaign(store: Store, name: str | None, new: str) -> CampaignRow:
    """Give a campaign another name; return it as it was."""
    if not new.strip():
        raise BadParameter("A campaign's name can't be empty.")

    def work(connection: Connection, _: float) -> CampaignRow:
        row = find_campaign(connection, name)
        columns = schema.campaign.c
        if connection.execute(select(columns.id).where(columns.name == new, columns.id != row.id)).first():
            raise BadParameter(
                f"The store has a campaign called '{new}' already.", remedy="Give another name."
            )
        connection.execute(update(schema.campaign).where(columns.id == row.id).values(name=new))
        return row

    return store.write(work)


def judgments_of(store: Store, campaign: str) -> int:
    """Return how many lines a campaign's log has."""
    columns = schema.log.c
    query = select(func.count()).select_from(schema.log).where(columns.campaign == campaign)
    return int(store.read(lambda connection: connection.execute(query).scalar_one()))


def remove_campaign(store: Store, name: str | None) -> tuple[CampaignRow, int]:
    """Delete a campaign with all its rows; return it and how many rows went."""

    def work(connection: Connection, _: float) -> tuple[CampaignRow, int]:
        row = find_campaign(connection, name)
        count = 0
        events = select(schema.webhook_event.c.id).where(schema.webhook_event.c.campaign == row.id)
        hooks = select(schema.webhook.c.id).where(schema.webhook.c.campaign == row.id)
        sent = schema.webhook_delivery.c
        gone = delete(schema.webhook_delivery).where(or_(sent.event.in_(events), sent.webhook.in_(hooks)))
        count += connection.execute(gone).rowcount
        for table in reversed(schema.metadata.sorted_tables):
            if table.name == "campaign":
                count += connection.execute(delete(table).where(table.c.id == row.id)).rowcount
            elif "campaign" in table.c and table.name not in KEPT_AFTER_REMOVAL:
                count += connection.execute(delete(table).where(table.c.campaign == row.id)).rowcount
        return row, count

    return store.write(work)
