"""For organisers of an evaluation: check the runs that participants send, and give each of them a sheet of scores."""

from duelpool.submissions.checker import RULES, CheckedRun, RunFinding, SubmissionRules, check_runs
from duelpool.submissions.sheets import ScoreSheet, score_sheets

__all__ = ["RULES", "CheckedRun", "RunFinding", "ScoreSheet", "SubmissionRules", "check_runs", "score_sheets"]
