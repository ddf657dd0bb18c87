"""Lists in pages: every row once, and no page after the last row."""

import pytest

from duelpool.web.manage.paging import page_of


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
