"""Cells for spreadsheets: texts of users stay texts, and never become formulas."""

_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(cell: object) -> object:
    """Return a cell that no spreadsheet computes: a text that begins like a formula gets an apostrophe."""
    if isinstance(cell, str) and cell.startswith(_FORMULA_SIGNS):
        return f"'{cell}"
    return "" if cell is None else cell
