"""Every line of a server's log has its time, in each of its processes."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from duelpool.store import open_store
from support.campaigns import make_campaign
from support.serving import serving

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (WARNING|ERROR) (duelpool\.web|uvicorn\.error): .+")
CHILD = """
import logging, pickle
from duelpool.web.server.connections import ServerConfig, limits_within

limits = limits_within(1000, None, None, 20.0)
config = pickle.loads(pickle.dumps(ServerConfig("module:app", limits, log_level="warning")))
config.configure_logging()  # as each process does that uvicorn starts
logging.getLogger("duelpool.web").warning("of ours")
logging.getLogger("uvicorn.error").error("of uvicorn")
logging.getLogger("duelpool.web").info("not shown")
"""


@pytest.mark.long
def test_a_server_process_logs_with_times() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert [line.partition(": ")[2] for line in lines] == ["of ours", "of uvicorn"]
    assert all(map(LINE.fullmatch, lines)), lines


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_of_several_processes_logs_with_times(workers: int, tmp_path: Path) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        make_campaign(store)
    with serving(str(tmp_path / "c.db"), tmp_path, workers=workers) as server:
        report = Request(f"http://127.0.0.1:{server.port}/csp-report", data=b"{}", method="POST")
        urlopen(report, timeout=30).close()
    said = server.said.read_text(encoding="utf-8").splitlines()
    logged = [line for line in said if "content policy" in line]
    assert len(logged) == 1
    assert LINE.fullmatch(logged[0]), logged
