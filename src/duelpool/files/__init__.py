"""Runs, qrels, preferences, topics, passages, answers: read in any layout, and written so that they read back equal."""

from duelpool.files.answers import Answers, read_answers
from duelpool.files.assessed import read_assessed
from duelpool.files.duplicates import Duplicates, read_duplicates
from duelpool.files.judgments import Judgments, read_judgments, write_judgments
from duelpool.files.notices import Notice, describe
from duelpool.files.passages import Passages, read_passages, write_passages
from duelpool.files.pools import read_pools, write_pools
from duelpool.files.preferences import PreferenceForm, Preferences, read_preferences, write_preferences
from duelpool.files.qrels import Qrels, read_qrels, write_qrels
from duelpool.files.runs import Run, TieOrder, read_run, write_run
from duelpool.files.source import write_lines
from duelpool.files.topics import Topics, read_topics, write_topics
from duelpool.files.votes import SystemVote, SystemVotes, read_votes

__all__ = [
    "Answers",
    "Duplicates",
    "Judgments",
    "Notice",
    "Passages",
    "PreferenceForm",
    "Preferences",
    "Qrels",
    "Run",
    "SystemVote",
    "SystemVotes",
    "TieOrder",
    "Topics",
    "describe",
    "read_answers",
    "read_assessed",
    "read_duplicates",
    "read_judgments",
    "read_passages",
    "read_pools",
    "read_preferences",
    "read_qrels",
    "read_run",
    "read_topics",
    "read_votes",
    "write_judgments",
    "write_lines",
    "write_passages",
    "write_pools",
    "write_preferences",
    "write_qrels",
    "write_run",
    "write_topics",
]
