"""Tables as text; reports as one HTML page are in `duelpool.report.page`."""

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
    "Table",
    "cell_text",
    "csv_text",
    "html_text",
    "json_text",
    "latex_text",
    "markdown_text",
    "notes_text",
    "plain_text",
    "table_text",
]
