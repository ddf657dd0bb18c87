"""Prior knowledge of the items as scores: from an LLM's preferences, from grades, from a ranker's run.

`swissfinals` takes such scores as its `prior` and learns from the answers how good they are, so their scale
doesn't matter, and a useless prior costs little.
"""

from typing import TypeAlias

from duelpool.errors import BadFile
from duelpool.files import Preferences, read_preferences, read_qrels, read_run
from duelpool.files.source import Readable, read_source
from duelpool.preferences import WinMatrix, bradley_terry, win_matrices

Prior: TypeAlias = dict[str, dict[str, float]]
"""A score per item, topic by topic."""

DRAWN_GAMES = 2.0  # against an average item: an item that never lost keeps a score of finite size


def prior_from_preferences(preferences: Preferences) -> Prior:
    """Return Bradley-Terry strengths, in log odds, as the scores of the items that were compared."""
    return {topic: prior_of_matrix(matrix) for topic, matrix in win_matrices(preferences).items()}


def prior_of_matrix(matrix: WinMatrix) -> dict[str, float]:
    """Return the strengths of one topic's items."""
    fitted = bradley_terry(matrix, prior=DRAWN_GAMES)
    return dict(zip(fitted.items, fitted.values.tolist(), strict=True))


def read_prior(path: Readable) -> Prior:
    """Read a prior from a file of preferences (any form), qrels or a run, recognised by its lines."""
    source = read_source(path)
    try:
        return prior_from_preferences(read_preferences(source))
    except BadFile as problem:
        remedy = str(problem)
        if "looks like qrels" in remedy:
            return read_qrels(source).grades()
        if "looks like a run" in remedy:
            prior: Prior = {}
            for topic, item, score in read_run(source).frame.select("topic", "docno", "score").iter_rows():
                prior.setdefault(topic, {})[item] = score
            return prior
        raise
