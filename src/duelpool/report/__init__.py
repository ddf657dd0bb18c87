"""Rows to text, and chapters to a page: what people read in the end."""

from duelpool.report.grids import (
    Cell,
    Grid,
    cell_text,
    csv_text,
    html_text,
    json_text,
    latex_text,
    markdown_text,
    notes_text,
    plain_text,
)
from duelpool.report.page import Chapter, Fact, Picture, Table, html_page

__all__ = [
    "Cell",
    "Chapter",
    "Fact",
    "Grid",
    "Picture",
    "Table",
    "cell_text",
    "csv_text",
    "html_page",
    "html_text",
    "json_text",
    "latex_text",
    "markdown_text",
    "notes_text",
    "plain_text",
]
