"""Simulated visitors at a real server of several processes, one of which is killed: the short form.

`make stress` runs the long one.
"""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from duelpool.store import open_store
from stress_http import Trial, beside_import, soak
from support.plainhttp import Wire, alone
from support.serving import serving
from support.simulated_visitors import Seen, doors_of, set_up, ten_at_once, verdict, visit_all
from support.stores import new_target


@pytest.mark.long
@pytest.mark.parametrize("back_end", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_a_killed_process_and_a_stopped_server_lose_nothing(back_end: str, tmp_path: Path) -> None:
    with new_target(back_end, tmp_path) as target:
        with open_store(target, create=True) as store:
            campaigns = [set_up(store, kind, kind, topics=4, items=12) for kind in ("crowd", "dedicated")]
            doors = doors_of(store, campaigns)
        with serving(target, tmp_path, workers=2) as server:
            seen = Seen()

            async def judge_and_die() -> None:
                def stopped() -> bool:
                    return server.process.poll() is not None

                async def wait_for(answers: int) -> None:
                    while len(seen.acknowledged) < answers and not people.done():
                        await asyncio.sleep(0.05)

                people = asyncio.create_task(
                    visit_all(server.port, doors, 10, 300.0, 0.1, until=stopped, seen=seen)
                )
                await wait_for(15)
                os.kill(server.pids()[0], signal.SIGKILL)
                await wait_for(40)
                server.process.send_signal(signal.SIGTERM)  # while people judge on
                await people

            assert alone(ten_at_once(server.port, *doors[0])) == []
            assert alone(_counted(server.port)) > 10
            alone(judge_and_die())
            assert server.process.returncode == 0
            assert server.trouble() == []
        with open_store(target) as store:
            assert verdict(store, campaigns, seen) == []
        assert len(seen.acknowledged) >= 40
        assert set(seen.statuses) <= {200, 303, 409, 410}


async def _counted(port: int) -> int:
    """Return the number of requests that all processes of a server have counted."""
    wire = Wire(port)
    text = (await wire.get("/metrics")).body.decode()
    wire.close()
    return sum(
        int(line.split()[1]) for line in text.splitlines() if line.startswith("duelpool_requests_total{")
    )


# Whoever is called away in the middle of connecting leaves a socket to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize("part", [beside_import, soak])
def test_the_long_parts_work(part: object, tmp_path: Path) -> None:
    trial = Trial(
        "sqlite",
        people=10,
        seconds=5,
        workers=2,
        megabytes=1,
        soak_seconds=15,
        topics=10,
        judgments_a_second=5,
    )
    trial.timed = False
    result = part(trial)  # type: ignore[operator]
    assert result.wrong == []
