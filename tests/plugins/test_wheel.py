"""A real wheel of a plugin, built from the page's template, in an environment of its own."""

import json
import os
import re
import shutil
import site
import subprocess
import sys
import time
import venv
from pathlib import Path
from urllib.request import urlopen

import pytest

from plugins.test_plugins import STRATEGY, TOML
from support.serving import free_port

ROOT = Path(__file__).parents[2]
CLEAN = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
CLEAN |= {
    "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "COLUMNS": "120",
}


def call(*words: str, cwd: Path) -> str:
    done = subprocess.run(words, cwd=cwd, env=CLEAN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_a_wheel_of_a_plugin_works_in_a_clean_environment(tmp_path: Path) -> None:
    """Both wheels are built and installed; what Duelpool depends on is borrowed from this environment."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "pyproject.toml").write_text(TOML)
    (source / "everypair.py").write_text(STRATEGY)
    pip = (sys.executable, "-m", "pip")
    for project in (source, ROOT):
        call(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(project), cwd=tmp_path)
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    home = Path(
        call(
            str(programs / "python"), "-c", "import site; print(site.getsitepackages()[0])", cwd=tmp_path
        ).strip()
    )
    wheels = sorted(str(path) for path in tmp_path.glob("*.whl"))
    assert len(wheels) == 2
    python = ("--python", str(programs / "python"))
    call(*pip, *python, "install", "--quiet", "--no-deps", "--no-index", *wheels, cwd=tmp_path)
    (home / "borrowed.pth").write_text("\n".join(site.getsitepackages()))  # no .pth of theirs is read
    duelpool = str(programs / "duelpool")
    place = call(str(programs / "python"), "-c", "import duelpool; print(duelpool.__file__)", cwd=tmp_path)
    assert Path(place.strip()).is_relative_to(environment)

    listed = json.loads(call(duelpool, "plugins", "--check", "--json", cwd=tmp_path))
    assert [(row["name"], row["package"], row["problem"]) for row in listed] == [
        ("every-pair", "duelpool-everypair 1.0", "")
    ]
    words = (
        "simulate",
        "--strategy",
        "every-pair",
        "--case",
        "A",
        "--items",
        "6",
        "--trials",
        "10",
        "--json",
    )
    assert "every-pair" in call(duelpool, *words, cwd=tmp_path)
    lines = [f"t{topic} Q0 d{at} {at} {9 - at} a\n" for topic in (1, 2) for at in range(1, 6)]
    (tmp_path / "a.run").write_text("".join(lines))
    call(duelpool, "pool", "a.run", "--strategy", "every-pair", "-o", "mine.db", cwd=tmp_path)
    call(duelpool, "judge", "simulated", "mine.db", "--model", "order", cwd=tmp_path)
    assert (
        json.loads(call(duelpool, "status", "mine.db", "--json", cwd=tmp_path))["totals"]["judgments"] == 20
    )
    port = free_port()
    log = (tmp_path / "serve.log").open("w")
    server = subprocess.Popen(
        [duelpool, "serve", "mine.db", "--port", str(port)], cwd=tmp_path, env=CLEAN, stdout=log, stderr=log
    )
    try:
        assert served(f"http://127.0.0.1:{port}/healthz") == 200
    finally:
        server.terminate()
        server.wait(30)
        log.close()
    assert not re.search("Traceback|Error", (tmp_path / "serve.log").read_text())
    shutil.rmtree(environment)


def served(url: str) -> int:
    for _ in range(300):
        try:
            with urlopen(url, timeout=5) as answer:
                return int(answer.status)
        except OSError:
            time.sleep(0.2)
    return 0
