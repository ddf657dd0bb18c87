"""Lists in pages: every row once, and no page after the last row."""

import pytest

from duelpool.errors import UnknownName
from duelpool.web.manage.paging import SortColumn, in_order, page_of


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 7])
def test_pages_hold_every_row_once_and_end_with_the_last(limit: int) -> None:
    rows = ["a", "b", "c", "d", "e", "f"]
    seen: list[str] = []
    cursor: str | None = ""
    pages = 0
    while cursor is not None:
        page, cursor = page_of(rows, str, cursor, limit)
        seen += page
        pages += 1
    assert seen == rows
    assert pages == -(-len(rows) // limit)


COLUMNS: dict[str, SortColumn[tuple[str, float | None]]] = {
    "name": SortColumn(lambda row: row[0]),
    "value": SortColumn(lambda row: row[1], largest_first=True),
}
ROWS: list[tuple[str, float | None]] = [("b", 1.0), ("c", None), ("a", 2.0)]


@pytest.mark.parametrize(
    ("order", "names"),
    [("", "bca"), ("name", "abc"), ("-name", "cba"), ("value", "abc"), ("-value", "bac")],
)
def test_rows_without_a_value_come_last_in_either_direction(order: str, names: str) -> None:
    assert "".join(row[0] for row in in_order(ROWS, COLUMNS, order)) == names


def test_an_unknown_order_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownName, match="name, value"):
        in_order(ROWS, COLUMNS, "-colour")
