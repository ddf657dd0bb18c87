"""The end of the demo: which intervals hold the true value."""

from duelpool.demo import ending
from duelpool.evaluation import evaluate
from duelpool.files import Qrels, Run


def test_interval_covers_the_values_between_its_ends() -> None:
    topics = {"1": ["a", "b"], "2": ["b", "a"], "3": ["c", "a"]}
    run = Run.from_rankings(
        "r", {topic: [(item, -float(at)) for at, item in enumerate(items)] for topic, items in topics.items()}
    )
    board = evaluate(Qrels.from_grades({topic: {"a": 1.0} for topic in topics}), [run], ["RR"], interval="t")
    row = board.row("r", "RR")
    assert row.low is not None
    assert row.high is not None
    covered = [
        ending._covers(board, "r", value)
        for value in (row.low - 0.01, row.low, row.value, row.high, row.high + 0.01)
    ]
    assert covered == [False, True, True, True, False]
