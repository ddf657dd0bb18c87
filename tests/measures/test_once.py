"""A run that is scored against many truths, one after the other, keeps no answer of a truth that is gone."""

import pytest

from duelpool.files import Preferences, Qrels, Run
from duelpool.measures import RR, Compat, ReadyRun, Truth, nDCG, ppref
from duelpool.measures.once import Remembering
from duelpool.records import Judgment, Outcome

RUN = Run.from_rankings("r", {"t": [(item, -float(at)) for at, item in enumerate("abcdefgh")]})


@pytest.mark.parametrize("measure", [RR(), nDCG() @ 10, Compat(p=0.8), ppref()], ids=str)
def test_a_run_is_scored_by_one_truth_after_another(measure: RR) -> None:
    ready = ReadyRun(RUN)
    for at in range(60):
        best = "abcdefgh"[at % 8]
        grades = Qrels.from_grades({"t": {best: 2.0, "a": 1.0} | dict.fromkeys("xyz"[: at % 4], 1.0)})
        pairs = Preferences.from_judgments([Judgment("t", best, other, Outcome.LEFT) for other in "xy"])
        truth = Truth.of([grades, pairs])
        again = measure.values(truth, ready).tolist()
        assert again == measure.values(truth, ReadyRun(RUN)).tolist()
        del truth, grades, pairs


def test_an_object_that_an_answer_is_about_stays() -> None:
    class Book(Remembering):
        def __init__(self) -> None:
            self._known = {}

    book = Book()
    assert book.once("size", lambda: 1) == book.once("size", lambda: 2) == 1
    for at in range(50):
        assert book.once("of", lambda at=at: at, object()) == at  # type: ignore[misc]
