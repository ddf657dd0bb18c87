"""A log of a million lines is read as a stream: measured in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from duelpool.store import open_store, schema
from duelpool.testing.stores import Scene
from support.stores import BACK_ENDS, new_target

LINES = 1_000_000
NUMBERS = {
    "sqlite": (
        "with recursive n(i) as (select 2 union all select i + 1 from n where i < :lines) select i from n"
    ),
    "postgresql": "select generate_series(2, :lines) as i",
}
READ = """
import re, sys
from pathlib import Path
from duelpool.store import open_store, log
def peak():  # in kilobytes; getrusage would include the parent process's peak
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
with open_store(sys.argv[1], writable=False) as store:
    before = peak()
    lines = store.of(sys.argv[2]).read(
        lambda tx: sum(line.judgment is not None for line in log.read_lines(tx, "t1"))
    )
    print(lines, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_million_lines_are_streamed(back_end: str, tmp_path: Path) -> None:
    with new_target(back_end, tmp_path) as target:
        with open_store(target, create=True) as store:
            scene = Scene.set_up(store)
            scene.judged("p0")
            names = schema.log.columns.keys()
            columns = ", ".join(
                {"seq": "n.i", "question": "'q' || n.i", "left_item": "'a' || n.i"}.get(name, f"one.{name}")
                for name in names
            )
            fill = (
                f"insert into log ({', '.join(names)}) select {columns} from ({NUMBERS[back_end]}) n,"
                " (select * from log where seq = 1) one"
            ).replace(":lines", str(LINES))
            store.write(lambda connection, now: connection.exec_driver_sql(fill))
        done = subprocess.run(
            [sys.executable, "-c", READ, target, scene.campaign], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    lines, kilobytes = map(int, done.stdout.split())
    print(f"{back_end}: {lines} lines, {kilobytes / 1024:.1f} MB more")
    assert lines == LINES
    assert kilobytes < 50 * 1024
