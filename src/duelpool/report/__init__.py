"""Tables as text, and reports as one HTML page."""

from duelpool.report.page import Chapter, Fact, html_page
from duelpool.report.tables import (
    Cell,
    Table,
    cell_text,
    csv_text,
    html_text,
    json_text,
    latex_text,
    markdown_text,
    notes_text,
    plain_text,
    table_text,
)

__all__ = [
    "Cell",
    "Chapter",
    "Fact",
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
    "table_text",
]
