"""Cells for spreadsheets: what somebody wrote is a text there, and never a formula."""

_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(cell: object) -> object:
    """Return a cell that no spreadsheet computes: a text that begins like a formula gets an apostrophe."""
    if isinstance(cell, str) and cell.startswith(_FORMULA_SIGNS):
        return f"'{cell}"
    return "" if cell is None else cell
