"""What a server costs until it is ready, and until it has shown a page."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

from benchmarks.scale_parts.measuring import Cost
from support.serving import free_port


def ready_cost(store: str, *, page: str = "/readyz", seconds: float = 300.0) -> Cost:
    """Start `duelpool serve`, wait until a page is there, and return what the process took until then."""
    port = free_port()
    began = time.perf_counter()
    words = [sys.executable, "-m", "duelpool", "serve", store, "--port", str(port)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while time.perf_counter() - began < seconds and process.poll() is None:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}{page}", timeout=seconds) as reply:
                if reply.status == 200:
                    return _cost(process.pid, time.perf_counter() - began)
            time.sleep(0.02)
        raise SystemExit(f"the server of {store} didn't show {page} within {seconds:.0f} seconds")
    finally:
        process.terminate()
        process.wait()


def _cost(pid: int, seconds: float) -> Cost:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return Cost((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), seconds, peak / 1024, "")
