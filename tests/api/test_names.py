"""What `import duelpool as dp` promises: the same names in `dir`, in `help`, in the documentation and for editors."""

import ast
import doctest
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import duelpool as dp

ROOT = Path(__file__).parents[2]
NAMES = [name for name in dp.__all__ if name != "__version__"]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(dp, name))]


def typed_names() -> set[str]:
    """The names that the block for type checkers imports."""
    tree = ast.parse((ROOT / "src" / "duelpool" / "__init__.py").read_text())
    block = next(each for each in tree.body if isinstance(each, ast.If))
    return {alias.name for each in block.body if isinstance(each, ast.ImportFrom) for alias in each.names}


def test_dir_editors_and_documentation_list_the_same_names() -> None:
    assert sorted(dp.__all__) == dir(dp)
    assert typed_names() == set(NAMES) == set(dp._MODULE_OF)
    table = (ROOT / "docs" / "python.md").read_text()
    assert sorted(re.findall(r"^\| \[?`dp\.(\w+)`", table, re.MULTILINE)) == sorted(NAMES)


def test_help_lists_every_name() -> None:
    text = pydoc.plain(pydoc.render_doc(dp))
    assert [name for name in NAMES if not re.search(rf"(?<!\w){name}(?!\w)", text)] == []


def test_unknown_name_says_which_is_near() -> None:
    with pytest.raises(AttributeError, match="Did you mean 'pool'"):
        getattr(dp, "poool")  # noqa: B009


def test_import_loads_nothing() -> None:
    code = (
        "import duelpool, sys\n"
        "print(sorted(each for each in sys.modules if each.split('.')[0] in ('numpy', 'polars', 'duelpool')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['duelpool']"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_in_a_sentence_what_it_is(name: str) -> None:
    assert re.match(r"[A-Z].*[.:]$", (inspect.getdoc(getattr(dp, name)) or "").split("\n")[0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_an_example_that_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder(recurse=False).find(getattr(dp, name), name, globs={})
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
