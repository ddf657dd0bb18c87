"""Install the wheels of `dist` into empty environments, with hashes, and run them there without the checkout.

    python release/try_wheel.py dist                     on each Python at hand
    python release/try_wheel.py dist python3.12 ...      on these

Pythons at hand are those on the PATH as python3.N, those of pyenv, and the one that runs this.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
HASHED = ROOT / "requirements-hashed.txt"
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
OLDEST = (3, 11)
NEWEST = (3, 14)


def pythons_at_hand() -> list[str]:
    """Return an interpreter of each version that Duelpool supports and this machine has."""
    versions = [f"3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [
        sys.executable,
        *filter(None, (shutil.which(f"python{version}") for version in versions)),
        *(str(path) for version in versions for path in sorted(pyenv.glob(f"{version}.*/bin/python"))),
    ]
    known: dict[str, str] = {}
    for candidate in candidates:
        answer = subprocess.run([candidate, "-c", VERSION], capture_output=True, text=True, check=False)
        if (
            answer.returncode == 0 and answer.stdout.strip() in versions
        ):  # a shim may stand for a version that isn't there
            known.setdefault(answer.stdout.strip(), candidate)
    return [known[version] for version in versions if version in known]


def try_wheels(python: str, wheel: Path, reproduce: Path, folder: Path) -> str:
    """Install duelpool alone into an empty environment and run its demo, then add duelpool-reproduce.

    Returns the version that the program states.
    """
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}

    def call(*words: str, code: int = 0) -> str:
        done = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, check=False)
        if done.returncode != code:
            sys.exit(f"{' '.join(words)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout

    call(python, "-m", "venv", "environment")
    programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    duelpool = str(programs / "duelpool")
    pip = (str(programs / "python"), "-m", "pip", "--disable-pip-version-check")
    call(*pip, "install", "--quiet", "--require-hashes", "--requirement", str(HASHED))
    call(*pip, "install", "--quiet", "--no-deps", _hashed(wheel))
    call(*pip, "check")
    version = call(duelpool, "--version").strip()
    call(duelpool, "demo")
    report = folder / "demo-output" / "report.html"
    if not report.read_text(encoding="utf-8").rstrip().endswith("</html>"):
        sys.exit(f"{report} is no report.")
    call(duelpool, "--help")
    call(duelpool, "reproduce", "list", code=2)
    call(*pip, "install", "--quiet", "--no-deps", _hashed(reproduce))
    call(*pip, "check")
    call(duelpool, "reproduce", "list")
    return version


def _hashed(wheel: Path) -> str:
    """Return a wheel's address with its hash, as pip reads it."""
    return f"{wheel.resolve().as_uri()}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}"


def main() -> None:
    """Try every Python, and say how long each took."""
    dist, *named = sys.argv[1:]
    (wheel,), (reproduce,) = (
        Path(dist).glob(f"{package}-*.whl") for package in ("duelpool", "duelpool_reproduce")
    )
    for python in named or pythons_at_hand():
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            version = try_wheels(python, wheel, reproduce, Path(folder))
        about = subprocess.run(
            [python, "--version"], capture_output=True, text=True, check=True
        ).stdout.strip()
        sys.stdout.write(
            f"{about}: {version}, demo and experiments from the wheels alone, {time.monotonic() - start:.0f} s\n"
        )


if __name__ == "__main__":
    main()
