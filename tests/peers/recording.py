"""A peer's recorded answers: who gave them, how they were made, and how ours are held to them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from peers.questions import FOLDER as INPUTS

FOLDER = Path(__file__).parent / "recorded"


@dataclass(frozen=True)
class Recording:
    """What a peer answered on the committed inputs, each answer with the decimals that ours must share."""

    peer: str
    version: str
    command: str
    python: str
    machine: str
    decimals: int
    inputs: Mapping[str, str]  # the SHA-256 of each file
    answers: Mapping[str, str]

    def write(self) -> Path:
        """Write the recording where `read` finds it."""
        path = FOLDER / f"{self.peer}.json"
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path


def read(peer: str) -> Recording:
    """Return what a peer answered."""
    return Recording(**json.loads((FOLDER / f"{peer}.json").read_text(encoding="utf-8")))


def hashes(peer: str) -> dict[str, str]:
    """Return the SHA-256 of every input, by name: those for all peers, and those in a folder named after this one."""
    files = sorted(path for folder in (INPUTS, INPUTS / peer) for path in folder.glob("*.*"))
    return {
        path.relative_to(INPUTS).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def written(answers: Mapping[str, float], decimals: int) -> dict[str, str]:
    """Return answers as they are recorded, with a fixed number of decimals."""
    return {name: f"{answers[name]:.{decimals}f}" for name in sorted(answers)}


def differences(ours: Mapping[str, float], recorded: Mapping[str, str], decimals: int) -> list[str]:
    """Return what differs: an answer that only one has, or that isn't the recorded one to its last decimal."""
    half = 0.5 * 10**-decimals + 1e-14  # rounding, and a little for other orders of addition
    lines = [f"{name}: in one of the two only" for name in sorted(ours.keys() ^ recorded.keys())]
    return lines + [
        f"{name}: {ours[name]!r}, recorded {recorded[name]}"
        for name in sorted(ours.keys() & recorded.keys())
        if not abs(ours[name] - float(recorded[name])) <= half
    ]
