"""The forms of export that are streamed line by line, in one table: commands, API and pages read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class ExportForm:
    """A form of export: its media type, its usual file name, and how pages call and describe it."""

    media: str
    file: str
    title: str
    about: str


OF_RESULTS = ("qrels", "levels")
"""The forms that hold the result of every topic."""

_TEXT = "text/plain; charset=utf-8"

FORMS: Mapping[str, ExportForm] = MappingProxyType(
    {
        "prefs": ExportForm(
            _TEXT, "prefs.txt", "Preferences", "The judgments that count: topic, left, right, winner."
        ),
        "qrels": ExportForm(
            _TEXT,
            "qrels.txt",
            "Qrels",
            "The best items as grades: topic, 0, item, grade. Duplicates have the same grade.",
        ),
        "levels": ExportForm(
            "application/json", "levels.json", "Levels", "Levels and certainty of every topic, as JSON."
        ),
        "jsonl": ExportForm(
            "application/x-ndjson",
            "log.jsonl",
            "Complete log",
            "Every line, as JSON lines. Another campaign can import it.",
        ),
        "csv": ExportForm(
            "text/csv; charset=utf-8",
            "judgments.csv",
            "Spreadsheet",
            "Every judgment. Texts that look like formulas are escaped.",
        ),
    }
)
