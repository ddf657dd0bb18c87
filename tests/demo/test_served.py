"""`duelpool demo --serve`: a real process with simulated people, a moving leaderboard, and a clean end."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from support.serving import children_of, free_port

PATIENCE = 120.0


def until(condition: Callable[[], Any], process: subprocess.Popen[bytes], output: Path) -> Any:
    """Wait until the condition holds, as long as the process lives."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            if value := condition():
                return value
        time.sleep(0.1)
    pytest.fail(output.read_text(encoding="utf-8")[-2000:])


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    output = tmp_path / "output.txt"
    words = [
        "demo",
        "--serve",
        "--port",
        str(free_port()),
        "--folder",
        str(tmp_path / "shown"),
        "--pace",
        "0.02",
    ]
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "duelpool", *words],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "COLUMNS": "300"},
            start_new_session=True,
        )
    yield process, output
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)  # its own session, which we started
        process.wait()


def managed(output: Path) -> str | None:
    """Return the link to manage that the demo printed, once it is whole."""
    link = re.search(
        r"to manage: +(http://127\.0\.0\.1:\d+/manage/\S+)\n", output.read_text(encoding="utf-8")
    )
    return link[1] if link else None


@pytest.mark.long
@pytest.mark.parametrize(
    "sign", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)], ids=lambda sign: sign.name
)
def test_simulated_people_judge_and_stop_with_the_server(
    demo: tuple[subprocess.Popen[bytes], Path], sign: signal.Signals
) -> None:
    process, output = demo
    link = until(lambda: managed(output), process, output)
    browser = build_opener(HTTPCookieProcessor())

    def leaderboard() -> str:
        with browser.open(link, timeout=30):  # which leads on to the overview, with a cookie
            pass
        with browser.open(f"{link.partition('?')[0]}/leaderboard", timeout=30) as page:
            table = re.search(r"<table.*?</table>", page.read().decode(), re.DOTALL)
        return table[0] if table else ""

    first = until(leaderboard, process, output)
    assert "bm25" in first
    if sign is signal.SIGTERM:
        until(lambda: leaderboard() not in ("", first), process, output)
    (crowd,) = children_of(process.pid)
    process.send_signal(sign)
    assert process.wait(PATIENCE) in (0, 130, 143), output.read_text(encoding="utf-8")
    assert not Path(f"/proc/{crowd}").exists()
    assert "Traceback" not in output.read_text(encoding="utf-8")
