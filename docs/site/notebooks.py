"""The notebooks: run again with `make notebooks`, and as pages of the site.

A notebook lies in `docs/notebooks` with its outputs, so that it can be read there. `as_markdown` makes a page of it.
"""

import base64
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = ROOT / "docs" / "notebooks"
SECONDS = 600  # a cell may take, on a busy machine


def code_of(path: Path) -> list[str]:
    """Return the code cells of a notebook."""
    return [_source(cell) for cell in _cells(path) if cell["cell_type"] == "code"]


def as_markdown(path: Path, pictures: Path) -> str:
    """Return a notebook as a page, and write its pictures into a folder beside it."""
    parts, drawn = [], 0
    for cell in _cells(path):
        if cell["cell_type"] == "markdown":
            parts.append(_source(cell))
            continue
        parts.append(f"```python\n{_source(cell)}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                drawn += 1
                name = f"{path.stem}-{drawn}.png"
                (pictures / name).write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![Picture {drawn} of this notebook]({name})")
            elif "text/html" in data:
                html = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
                parts.append("\n".join(line.strip() for line in html.splitlines() if line.strip()))
            else:
                text = "".join(output.get("text", data.get("text/plain", "")))
                parts.append(f"```text\n{text.rstrip()}\n```")
    title, _, rest = parts[0].partition("\n")
    parts[0] = f"{title}\n\nThis page is a notebook: {{download}}`{path.name}`.\n{rest}"
    return "\n\n".join(parts) + "\n"


def run(path: Path) -> str:
    """Run a notebook in a copy of its folder, in a kernel of its own; return it with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept, "notebooks")
        shutil.copytree(path.parent, folder)
        client = NotebookClient(
            notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}, record_timing=False
        )
        client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop("image/svg+xml", None)
    return str(nbformat.writes(notebook)) + "\n"  # type: ignore[no-untyped-call]


def _cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def _source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


if __name__ == "__main__":
    for each in sorted(NOTEBOOKS.glob("*.ipynb")):
        sys.stdout.write(f"{each.name}\n")
        each.write_text(run(each), encoding="utf-8")
