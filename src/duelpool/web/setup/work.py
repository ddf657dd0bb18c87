"""The dry run's simulation, beside: in a process of its own, so that those who judge don't notice.

What it has come to lies in a file, for another server process may be asked next.
"""

import hashlib
import json
import secrets
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from duelpool.setup import Comparison
from duelpool.web.server.guard import logger

STALE_SECONDS = 180.0  # without a word from whoever works at it, somebody else begins anew
_BEHIND_OTHERS = ("nice", "-n", "10") if shutil.which("nice") else ()  # those who judge go first


def key_of(asked: Comparison) -> str:
    """Return a name for a comparison: the same for the same one."""
    return hashlib.blake2b(repr(asked).encode(), digest_size=12).hexdigest()


@dataclass(slots=True)
class Work:
    """Does one simulation at a time, each in a process that ends with it."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _one: threading.Lock = field(default_factory=threading.Lock)
    _wanted: dict[str, str] = field(default_factory=dict)
    _process: "subprocess.Popen[str] | None" = None
    _closed: bool = False

    def simulated(self, place: Path, asked: Comparison) -> dict[str, Any]:
        """Return what a simulation has come to, and begin it where nobody has."""
        key = key_of(asked)
        found = _read(place)
        if found is not None and found.get("key") == key:
            going = found["state"] in {"waiting", "running"}
            if not going or time.time() - float(found["time"]) < STALE_SECONDS:
                return found
        state = _state(key, "waiting", asked)
        with self._lock:
            if self._wanted.get(str(place)) != key and not self._closed:
                self._wanted[str(place)] = key
                _write(place, state)
                threading.Thread(target=self._run, args=(place, asked, key), daemon=True).start()
        return state

    def close(self) -> None:
        """End what is under way, and begin nothing more."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def _run(self, place: Path, asked: Comparison, key: str) -> None:
        try:
            with self._one:
                self._follow(place, asked, key)
        except Exception as error:  # whatever happens there, the page must not wait for ever
            logger.error("a dry run broke off", exc_info=error)
            problem = "The simulation failed. You can create the campaign without it."
            _write(place, _state(key, "failed", asked) | {"problem": problem})
        finally:
            with self._lock:
                if self._wanted.get(str(place)) == key:
                    del self._wanted[str(place)]

    def _is_wanted(self, place: Path, key: str) -> bool:
        """Say whether anybody still wants to know: no other options have been saved, and the draft is there."""
        return not self._closed and self._wanted.get(str(place)) == key and place.parent.is_dir()

    def _follow(self, place: Path, asked: Comparison, key: str) -> None:
        """Have another process simulate, and write down what it says."""
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
                process.stdin.write(json.dumps(asked.as_json()))
                process.stdin.close()
                done = False
                for line in process.stdout:
                    if not self._is_wanted(place, key):
                        process.kill()
                        return
                    now = json.loads(line)
                    done = now["recommendation"] is not None
                    _write(place, _state(key, "done" if done else "running", asked) | now)
            if not done and self._is_wanted(place, key):
                message = f"the simulation ended with {process.returncode}"
                raise RuntimeError(message)
        finally:
            self._process = None


def _state(key: str, state: str, asked: Comparison) -> dict[str, Any]:
    return {"key": key, "state": state, "time": time.time(), "total": len(asked.strategies())}


def _read(place: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(place.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _write(place: Path, state: dict[str, Any]) -> None:
    part = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        part.write_text(json.dumps(state), encoding="utf-8")
        part.replace(place)
    except FileNotFoundError:  # the draft is gone, and nobody asks any more
        return
