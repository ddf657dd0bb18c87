"""Lines of the log as records."""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

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
