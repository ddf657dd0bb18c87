"""Answers of systems to questions: read in any usual form, checked, and put together as runs, topics and passages."""

from duelpool.files.answers.fields import NAMES, parse_fields
from duelpool.files.answers.table import Answers, SystemAnswer, item_id, read_answers

__all__ = ["NAMES", "Answers", "SystemAnswer", "item_id", "parse_fields", "read_answers"]
