"""pytest: the fixture `duelpool_gate`, which fails a test when a new run is worse than an old one.

def test_ranker(duelpool_gate):
    duelpool_gate("old.run", "new.run", "qrels.txt", "nDCG@10", min_effect=0.02)

pytest loads this module wherever Duelpool is installed, so it imports nothing else until the fixture is used.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from duelpool.evaluation.gate import GateResult

try:
    import pytest
except ImportError:  # imported by name, without pytest
    pytest = None  # type: ignore[assignment]


def check_gate(
    *data: Any, inconclusive: Literal["skip", "fail", "pass"] = "skip", **options: Any
) -> "GateResult":
    """Run `duelpool.gate`; fail the test for "fail", and skip it (or fail, or let it pass) for "inconclusive"."""
    import duelpool

    if inconclusive not in ("skip", "fail", "pass"):
        raise duelpool.UnknownName(
            "way to treat an inconclusive gate", inconclusive, ("skip", "fail", "pass")
        )
    result = duelpool.gate(*data, **options)
    from duelpool.evaluation.gate_reports import gate_text

    if result.verdict == "fail" or (result.verdict == "inconclusive" and inconclusive == "fail"):
        pytest.fail(gate_text(result), pytrace=False)
    if result.verdict == "inconclusive" and inconclusive == "skip":
        pytest.skip(gate_text(result))
    return result


if pytest is not None:

    @pytest.fixture(scope="session")
    def duelpool_gate() -> "Callable[..., GateResult]":
        """A gate for runs, `duelpool_gate(old, new, truth, measure, min_effect=...)`: the arguments of `dp.gate`."""
        return check_gate
