"""Many processes on one store, some of them killed: the short form; `make stress` runs the long one."""

from pathlib import Path

import pytest

from support.crowds import Crowd, let_judge
from support.stores import BACK_ENDS, new_target


@pytest.mark.long
@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_killed_processes_lose_no_acknowledged_answer(back_end: str, tmp_path: Path) -> None:
    with new_target(back_end, tmp_path) as target:
        seen = let_judge(target, tmp_path, Crowd(4, 8, 12, 60), seconds=0.5, kills=1, every=0.5)
    assert (seen.lost, seen.wrong, seen.failures) == (0, [], 0)
    assert seen.kills == 1
    assert seen.acknowledged > 20
