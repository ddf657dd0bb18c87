"""The pictures of the gallery, drawn by the code of its page: `make gallery`."""

import os
import re
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

from matplotlib import rc_context

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from duelpool.demo.story import write_collection
from support.tiny import write_tiny_collection

FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def draw(page: Path, pictures: Path) -> list[str]:
    """Run every example of the page, and keep the pictures that they write; return their names."""
    here = Path.cwd()
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # no date in the files
    with (
        tempfile.TemporaryDirectory() as kept,
        rc_context({"svg.hashsalt": "duelpool", "svg.fonttype": "path"}),
    ):
        os.chdir(kept)
        try:
            write_collection(Path("demo-output"), seed=1)
            write_tiny_collection(Path("mine"))
            for code in FENCE.findall(page.read_text(encoding="utf-8")):
                Path("example.py").write_text(code, encoding="utf-8")
                runpy.run_path("example.py")
            drawn = sorted(Path().glob("gallery-*.svg"))
            for each in drawn:
                shutil.copy(each, pictures / each.name)
        finally:
            os.chdir(here)
    return [each.name for each in drawn]


if __name__ == "__main__":
    sys.stdout.write("\n".join(draw(ROOT / "docs" / "gallery.md", ROOT / "docs" / "pictures")) + "\n")
