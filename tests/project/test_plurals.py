"""Numbers and nouns agree: a count before a noun goes through `counted`, which writes "1 topic"."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

import duelpool

SOURCE = Path(duelpool.__file__).parent
ROOMS = (
    *("agreements", "campaign_report.py", "leaderboard", "report", "submissions"),
    *(
        f"evaluation/{name}.py"
        for name in ("__init__", "compare", "reports", "result", "side_by_side", "systems")
    ),
)
"""The rooms whose words stand in reports and on the page of agreement."""
NOUNS = (
    *(
        "answers",
        "assessors",
        "chapters",
        "documents",
        "grades",
        "hours",
        "items",
        "judgments",
        "lines",
        "minutes",
    ),
    *(
        "pairs",
        "passages",
        "people",
        "points",
        "questions",
        "rows",
        "runs",
        "sheets",
        "systems",
        "texts",
        "times",
    ),
    *("topics", "votes", "workers"),
)
FOLLOWS = re.compile(rf" (?:(?!as )[a-z]+ )?(?:{'|'.join(NOUNS)})\b")
NEVER_ONE = {
    (
        "submissions/sheets.py",
        "len(evaluation.runs)",
    ): "an error about two runs or fewer that names the number",
    ("agreements/system_orders.py", "self.systems"): "an order has two systems at least",
    ("evaluation/side_by_side.py", "both"): "an order has two systems at least",
    ("evaluation/__init__.py", "len(differ)"): "the line before it writes the singular",
    ("agreements/verdict.py", "whole"): "at least thirty",
    ("campaign_report.py", "hours"): "at least two",
}
"""Counts that are never one, or that have their singular, with the reason."""
MODULES = sorted(
    path for room in ROOMS for path in (*(SOURCE / room).rglob("*.py"), SOURCE / room) if path.is_file()
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_counts_before_nouns_are_written_in_one_way(path: Path) -> None:
    name = str(path.relative_to(SOURCE))
    wrong = [
        f"{name}:{value.lineno}: {ast.unparse(value.value)}{text.value!r}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.JoinedStr)
        for value, text in pairwise(node.values)
        if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant)
        if FOLLOWS.match(str(text.value)) and "counted(" not in ast.unparse(value.value)
        if (name, ast.unparse(value.value)) not in NEVER_ONE
    ]
    assert wrong == []
