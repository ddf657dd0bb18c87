"""Labels of a campaign's items: the beginnings of the texts that a page shows, read in one query."""

from collections.abc import Iterable

from sqlalchemy import func, select

from duelpool.labels import Label, id_prefix, label_of
from duelpool.store import Reading, schema

_READ = 2000
"""Characters of a text that are read: enough for its first words after the marks of HTML."""
_IDS_AT_ONCE = 900  # SQLite allows about a thousand values per statement


def shared_prefix(tx: Reading) -> str:
    """Return what the ids of a campaign's texts begin with, from the first and the last of them."""
    ids = schema.passage.c.id
    ends = (
        tx.connection.execute(select(end(ids)).where(schema.passage.c.campaign == tx.campaign)).scalar()
        for end in (func.min, func.max)
    )
    return id_prefix([each for each in dict.fromkeys(ends) if each is not None])


def item_labels(tx: Reading, items: Iterable[str]) -> dict[str, Label]:
    """Return the labels of some items; those without a text have their id alone."""
    ids = list(dict.fromkeys(each for each in items if each))
    prefix = shared_prefix(tx) if ids else ""
    columns = schema.passage.c
    opening = func.substr(columns.text, 1, _READ).label("opening")
    labels = {each: label_of(each, prefix=prefix) for each in ids}
    for start in range(0, len(ids), _IDS_AT_ONCE):
        some = columns.id.in_(ids[start : start + _IDS_AT_ONCE])
        query = select(columns.id, columns.title, columns.format, opening)
        for row in tx.connection.execute(query.where(columns.campaign == tx.campaign, some)):
            labels[row.id] = label_of(row.id, row.opening, title=row.title, form=row.format, prefix=prefix)
    return labels
