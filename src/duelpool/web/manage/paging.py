"""Lists in pages and orders: a cursor marks the start of the next page, even if rows are added or removed."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query

from duelpool.errors import BadParameter, UnknownName
from duelpool.web.server.inputs import refuse_unstorable

T = TypeVar("T")

AT_MOST = 500
LARGEST = 2**63 - 1  # the largest number of a database
Limit = Annotated[int, Query(ge=1, le=AT_MOST, description="Rows per page.")]
Cursor = Annotated[
    str, Query(max_length=2000, description="`next` of the page before; empty for the first page.")
]


def cursor_of(*key: Any) -> str:
    """Return a cursor after the row with this key."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def key_of(cursor: str, *kinds: type) -> tuple[Any, ...] | None:
    """Return the key in a cursor, None for the first page."""
    if not cursor:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        key = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        if isinstance(key, list) and [type(each) for each in key] == list(kinds):
            refuse_unstorable(key, "cursor")
            if all(abs(each) <= LARGEST for each in key if isinstance(each, int | float)):
                return tuple(key)
    except (ValueError, binascii.Error, RecursionError):
        pass
    raise BadParameter("This cursor is not valid.", remedy="Use `next` of the previous page unchanged.")


def page_of(
    rows: Sequence[T], name: Callable[[T], str], cursor: str, limit: int
) -> tuple[tuple[T, ...], str | None]:
    """Return the rows after a cursor and the next cursor, None at the end; `name` identifies a row."""
    key = key_of(cursor, str)
    start = 0
    if key is not None:
        places = {name(row): at for at, row in enumerate(rows)}
        if key[0] not in places:
            raise BadParameter(
                "The row of this cursor no longer exists.", remedy="Start with the first page."
            )
        start = places[key[0]] + 1
    page = tuple(rows[start : start + limit])
    return page, cursor_of(name(page[-1])) if start + limit < len(rows) else None


@dataclass(frozen=True, slots=True)
class SortColumn(Generic[T]):
    """A column that rows are sorted by: its value in a row, and whether the largest comes first."""

    value: Callable[[T], Any]  # None for a row without one: it comes last in either direction
    largest_first: bool = False


def in_order(rows: Sequence[T], columns: Mapping[str, SortColumn[T]], order: str) -> list[T]:
    """Return all rows sorted by `order`: a column, after '-' in the other direction; empty leaves them as they are."""
    if not order:
        return list(rows)
    name = order.removeprefix("-")
    if name not in columns:
        raise UnknownName("order", name, columns)
    column = columns[name]
    known = [row for row in rows if column.value(row) is not None]
    others = [row for row in rows if column.value(row) is None]
    reverse = column.largest_first != order.startswith("-")
    return sorted(known, key=column.value, reverse=reverse) + others
