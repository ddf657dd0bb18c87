"""The simulations of dry runs, each in a process of its own, so that judging isn't slowed down.

The state is in a file, since the next request may reach another server process.
"""

import hashlib
import json
import secrets
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from duelpool.setup import Comparison
from duelpool.setup.comparisons import known_before
from duelpool.setup.forecasts import strategies_for_people
from duelpool.web.server.guard import logger

STALE_SECONDS = 180.0  # without an update for this long, another process starts again
_BEHIND_OTHERS = ("nice", "-n", "10") if shutil.which("nice") else ()  # judging has priority


def key_of(comparison: Comparison) -> str:
    """Return the hash of a comparison: the same for each choice among the strategies that are compared anyway."""
    if comparison.strategy in strategies_for_people(comparison.cap):
        comparison = replace(comparison, strategy="")
    return hashlib.blake2b(repr(comparison).encode(), digest_size=12).hexdigest()


@dataclass(slots=True)
class Simulations:
    """Runs one simulation at a time."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _one: threading.Lock = field(default_factory=threading.Lock)
    _wanted: dict[str, str] = field(default_factory=dict)
    _process: "subprocess.Popen[str] | None" = None
    _closed: bool = False

    def state_of(self, place: Path, comparison: Comparison) -> dict[str, Any]:
        """Return the state of a simulation, and start it if needed."""
        key = key_of(comparison)
        saved = _read(place)
        if saved is not None and saved.get("key") == key:
            going = saved["state"] in {"waiting", "running"}
            if not going or time.time() - float(saved["time"]) < STALE_SECONDS:
                return saved
        state = _state(key, "waiting", comparison)
        if (known := known_before(comparison)) is not None:
            state |= known.as_json()
        with self._lock:
            if known is not None and known.recommendation is not None:  # there is nothing to simulate
                self._wanted.pop(str(place), None)
                return state | {"state": "done"}
            if self._wanted.get(str(place)) != key and not self._closed:
                self._wanted[str(place)] = key
                _write(place, state)
                threading.Thread(target=self._run, args=(place, comparison, key), daemon=True).start()
        return state

    def close(self) -> None:
        """Stop the running simulation, and start no others."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def _run(self, place: Path, comparison: Comparison, key: str) -> None:
        try:
            with self._one:
                self._follow(place, comparison, key)
        except Exception as error:  # any error: the page must not wait for ever
            logger.error("a simulation failed", exc_info=error)
            problem = "The simulation failed. You can create the campaign without it."
            _write(place, _state(key, "failed", comparison) | {"problem": problem})
        finally:
            with self._lock:
                if self._wanted.get(str(place)) == key:
                    del self._wanted[str(place)]

    def _is_wanted(self, place: Path, key: str) -> bool:
        """Return whether the result is still wanted: the options are unchanged, and the draft exists."""
        return not self._closed and self._wanted.get(str(place)) == key and place.parent.is_dir()

    def _follow(self, place: Path, comparison: Comparison, key: str) -> None:
        """Simulate in another process, and save its reports."""
        with self._lock:
            if not self._is_wanted(place, key):
                return
            command = [*_BEHIND_OTHERS, sys.executable, "-m", "duelpool.setup"]
            process = self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        try:
            with process:
                if process.stdin is None or process.stdout is None:  # pragma: no cover (both are pipes)
                    return
                process.stdin.write(json.dumps(comparison.as_json()))
                process.stdin.close()
                done = False
                for line in process.stdout:
                    if not self._is_wanted(place, key):
                        process.kill()
                        return
                    now = json.loads(line)
                    done = now["recommendation"] is not None
                    _write(place, _state(key, "done" if done else "running", comparison) | now)
            if not done and self._is_wanted(place, key):
                message = f"the simulation ended with {process.returncode}"
                raise RuntimeError(message)
        finally:
            self._process = None


def _state(key: str, state: str, comparison: Comparison) -> dict[str, Any]:
    return {"key": key, "state": state, "time": time.time(), "total": len(comparison.strategies())}


def _read(place: Path) -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads(place.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return state


def _write(place: Path, state: dict[str, Any]) -> None:
    part = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        part.touch(mode=0o600)
        part.write_text(json.dumps(state), encoding="utf-8")
        part.replace(place)
    except FileNotFoundError:  # the draft was discarded
        return
