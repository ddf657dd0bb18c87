"""Lines of the log as records."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duelpool.errors import BadRecord
from duelpool.records import Judgment, Kind, Outcome
from duelpool.store import log, schema
from duelpool.store.log import iso_time


def iso_time_by_definition(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@given(st.floats(-6e10, 2.5e11))
@example(1.9999995)
@example(-0.0000005)
@example(59.9999999)
@example(1767225599.9999998)
@example(0.0)
def test_time_of_a_line_is_its_definition(seconds: float) -> None:
    assert iso_time(seconds) == iso_time_by_definition(seconds)


JUDGMENT = Judgment(
    "t", "a", "b", Outcome.TIE, "prune-1", "p", "w1", "overall", "s", Kind.DEFINITE, None, 0.5, "note", 2.5, 3, True,
    False, True, True, 0.25, "allpairs/1", "q1", 7, "1970-01-01T00:00:01.500Z",
)  # fmt: skip


def row_of(judgment: Judgment) -> tuple[object, ...]:
    columns = dict.fromkeys(schema.log.columns.keys()) | log.columns_of(judgment)
    columns |= {
        "campaign": "c",
        "topic": judgment.topic,
        "seq": judgment.seq,
        "event": log.JUDGMENT,
        "time": 1.5,
    }
    return tuple((columns | {"question": judgment.question, "told": 1}).values())


def test_line_of_a_row_is_a_record_like_any_other() -> None:
    line = log.line_of(row_of(JUDGMENT))
    assert line == log.Line("t", 7, log.JUDGMENT, 1.5, JUDGMENT, phase="prune-1")
    assert (type(line), type(line.judgment)) == (log.Line, Judgment)
    assert hash(line.judgment) == hash(JUDGMENT)
    assert replace(JUDGMENT, phase="") == replace(line.judgment or JUDGMENT, phase="")
    assert pickle.loads(pickle.dumps(line)) == copy.deepcopy(line) == line
    with pytest.raises(FrozenInstanceError):
        line.seq = 8  # type: ignore[misc]


def test_row_that_is_no_judgment_is_refused() -> None:
    with pytest.raises(BadRecord, match="two different items"):
        log.line_of(["a" if value == "b" else value for value in row_of(JUDGMENT)])
