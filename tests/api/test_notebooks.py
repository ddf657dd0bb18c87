"""The notebooks: they run, they are short, and what lies in the repository are their outputs."""

import ast
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
TOOLS = runpy.run_path(str(ROOT / "docs" / "site" / "notebooks.py"))
FIRST = "first-ten-minutes"


def stem(path: Path) -> str:
    return path.stem


def lines_of(path: Path) -> list[str]:
    code = "\n".join(TOOLS["code_of"](path))
    return [line for line in code.splitlines() if line.strip() and not line.strip().startswith("#")]


def test_there_are_four() -> None:
    assert [each.stem for each in NOTEBOOKS] == ["budget", FIRST, "own-strategy", "rag-leaderboard"]
    for page in ("index.md", "python.md"):
        text = (ROOT / "docs" / page).read_text()
        assert all(f"(notebooks/{each.name})" in text for each in NOTEBOOKS)


def test_the_first_is_short_and_imports_one_module() -> None:
    (first,) = (each for each in NOTEBOOKS if each.stem == FIRST)
    assert len(lines_of(first)) <= 25
    assert [line for line in lines_of(first) if re.match(r"\s*(import|from) ", line)] == [
        "import duelpool as dp"
    ]
    assert any(".plot()" in line for line in lines_of(first))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_stored_outputs_are_complete_and_without_errors(path: Path) -> None:
    cells = [each for each in json.loads(path.read_text())["cells"] if each["cell_type"] == "code"]
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert kinds <= {"execute_result", "stream"}
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell["outputs"])
    assert str(Path.home()) not in path.read_text()


def run_here(path: Path, folder: Path) -> dict[str, Any]:
    """Run the code cells in this process, showing the last value of each as a notebook does."""
    space: dict[str, Any] = {"__name__": "__main__"}
    for code in TOOLS["code_of"](path):
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), space)
            for show in ("_repr_html_", "_repr_png_"):
                if hasattr(value, show):
                    getattr(value, show)()
    return space


@pytest.mark.parametrize(
    "path",
    [each if each.stem == FIRST else pytest.param(each, marks=pytest.mark.long) for each in NOTEBOOKS],
    ids=lambda each: each.stem,
)
def test_the_code_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(path.parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    run_here(path, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
@pytest.mark.filterwarnings("default")
def test_a_kernel_gives_the_stored_outputs(path: Path) -> None:
    """Texts and tables are the same, letter for letter: seeds fix them. Pictures are there."""

    def shown(text: str) -> list[list[str]]:
        cells = [each for each in json.loads(text)["cells"] if each["cell_type"] == "code"]
        return [
            [
                "".join(each.get("text", each.get("data", {}).get("text/plain", "")))
                for each in cell["outputs"]
            ]
            for cell in cells
        ]

    assert shown(TOOLS["run"](path)) == shown(path.read_text())


EXAMPLES = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "checker", ["mypy", pytest.param("basedpyright", marks=pytest.mark.peer("basedpyright"))]
)
def test_type_checkers_accept_the_examples(checker: str, tmp_path: Path) -> None:
    """Notebooks, the pages of Python and its pictures, and the examples of every function."""
    for path in NOTEBOOKS:
        (tmp_path / f"{path.stem.replace('-', '_')}.py").write_text("\n\n".join(TOOLS["code_of"](path)))
    for page in ("python", "gallery"):
        for at, code in enumerate(EXAMPLES.findall((ROOT / "docs" / f"{page}.md").read_text())):
            (tmp_path / f"{page}_{at}.py").write_text(code)
    assert check(checker, tmp_path, ROOT / "tests" / "api" / "typed.py") == ""


def check(checker: str, *paths: Path) -> str:
    """Return what a type checker complains of."""
    words = {
        "mypy": ["mypy", "--no-error-summary", "--config-file", "", "--ignore-missing-imports"],
        "basedpyright": ["basedpyright", "--level", "error", "--pythonpath", sys.executable],
    }[checker]
    if checker == "basedpyright":
        settings = paths[0] / "pyrightconfig.json"
        settings.write_text(
            json.dumps({"typeCheckingMode": "standard", "reportAttributeAccessIssue": "error"})
        )
        words += ["--project", str(settings)]
    done = subprocess.run(
        [sys.executable, "-m", *words, *map(str, paths)], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr
