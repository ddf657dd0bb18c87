"""Build the documentation into a static site: `make docs`.

The pages under `docs` are plain Markdown that reads well where it lies. They are copied beside the README, the
reference is written from the code, and Sphinx makes pages of all of them; whatever it warns of is an error.
Nothing is fetched, neither now nor by whoever reads the site.
"""

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

sys.path.insert(0, str(Path(__file__).parent))
from notebooks import as_markdown
from reference import public_places, write_reference

ROOT = Path(__file__).parent.parent.parent
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
FILES = ("Containerfile", "requirements-hashed.txt", "CITATION.cff")  # a link to one of these downloads it
SETTINGS: dict[str, Any] = {
    "extensions": ["myst_parser"],
    "html_theme": "furo",  # the system's fonts, and scripts of its own: nothing comes from another host
    "project": "Duelpool",
    "root_doc": "index",
    "exclude_patterns": ["docs/site/**", "docs/notebooks/*.ipynb"],
    "myst_heading_anchors": 4,  # as the platforms do that show Markdown, so that a link works in both
    "html_title": "Duelpool",
    "html_static_path": [str(Path(__file__).parent / "site.css")],
    "html_css_files": ["site.css"],
    "html_show_copyright": False,
    "html_show_sphinx": False,
    "html_copy_source": False,
    "nitpicky": True,
}
INDEX = {
    "answers": ("RAG", "LLM", "A/B test", "answers of systems"),
    "systems": ("Elo", "A/B test", "Bradley-Terry", "leaderboard of systems", "arena"),
    "llm": ("LLM", "LLM as a judge", "language model"),
    "compare": ("A/B test", "two runs"),
    "evaluate": ("leaderboard", "trec_eval", "nDCG"),
    "python": ("Python", "pandas", "polars", "PyTerrier", "data frame", "notebook", "API"),
    "panels": ("Prolific", "crowd"),
    "agreement": ("kappa", "alpha", "inter-annotator agreement"),
    "budget": ("sampling", "budget"),
    "measures": ("metric", "measure"),
}
"""The words by which the index and the search lead to a page, beyond those of its title."""

LINK = re.compile(r"\]\((?!https?:)([^)#\s]+\.md)(#[^)\s]*)?\)")


def contents(overview: str) -> str:
    """Return the tables of contents that follow from the overview: a caption a heading, a page a link."""
    blocks = []
    for part in re.split(r"^## ", overview, flags=re.MULTILINE)[1:]:
        caption, _, text = part.partition("\n")
        pages = dict.fromkeys(Path("docs", link[0]).as_posix() for link in LINK.findall(text))
        pages = {_inside(page): None for page in pages}
        if pages:
            lines = "\n".join(page.removesuffix(".md") for page in pages)
            blocks.append(f"```{{toctree}}\n:hidden:\n:caption: {caption.strip()}\n\n{lines}\n```\n")
    return "\n".join(blocks)


def _inside(page: str) -> str:
    """Return a page's path from the root: `docs/../CHANGELOG.md` is `CHANGELOG.md`."""
    return page.removeprefix("docs/../")


def stage(folder: Path) -> None:
    """Lay out the pages as Sphinx reads them: the README is the first one, and names all the others."""
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("site", "__pycache__"))
    for name in PAGES + FILES:
        shutil.copy(ROOT / name, folder / name)
    write_reference(folder / "docs" / "reference")
    _stage_notebooks(folder / "docs")
    overview = (folder / "docs" / "index.md").read_text(encoding="utf-8")
    overview += "\n## Reference\n\n- [Commands](reference/commands.md)\n- [Python](reference/python.md)\n"
    (folder / "docs" / "index.md").write_text(overview, encoding="utf-8")
    first = (ROOT / "README.md").read_text(encoding="utf-8")
    first += "\n```{toctree}\n:hidden:\n\ndocs/index\n```\n\n" + contents(overview)
    (folder / "index.md").write_text(first, encoding="utf-8")
    for name, words in INDEX.items():
        page = folder / "docs" / f"{name}.md"
        title, _, rest = page.read_text(encoding="utf-8").partition("\n")
        entries = "\n".join(
            f"```{{index}} ! single: {word}\n```" for word in words
        )  # !: the search has it first
        page.write_text(f"{title}\n\n{entries}\n{rest}", encoding="utf-8")
    for page in folder.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"\]\(((?:\.\./)*)README\.md", r"](\1index.md", text)
        text = re.sub(r"\[([^\]]+)\]\((?:\.\./)*LICENSE\)", r"\1", text)  # no page of the site
        page.write_text(text, encoding="utf-8")


def _stage_notebooks(docs: Path) -> None:
    """Make a page of each notebook, and lead to it; the names in the table of Python lead to the reference."""
    for notebook in sorted((docs / "notebooks").glob("*.ipynb")):
        notebook.with_suffix(".md").write_text(as_markdown(notebook, notebook.parent), encoding="utf-8")
    for page in docs.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"(\]\([^)\s]+)\.ipynb\)", r"\1.md)", text), encoding="utf-8")
    python = docs / "python.md"
    text = python.read_text(encoding="utf-8")
    for name, page_of in public_places().items():
        text = text.replace(f"| `dp.{name}` |", f"| [`dp.{name}`](reference/{page_of}#{name.lower()}) |")
    python.write_text(text, encoding="utf-8")


def build(out: Path) -> int:
    """Build the site, and return 0 when nothing was wrong with it."""
    with tempfile.TemporaryDirectory() as kept, docutils_namespace():
        source = Path(kept, "source")
        source.mkdir()
        stage(source)
        sphinx = Sphinx(
            srcdir=source,
            confdir=None,
            outdir=out,
            doctreedir=Path(kept, "doctrees"),
            buildername="html",
            confoverrides=SETTINGS,
            status=None,
            warningiserror=True,
            freshenv=True,
        )
        sphinx.build()
        return int(sphinx.statuscode)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Build the documentation into a static site.")
    options.add_argument("folder", type=Path, help="where the site goes")
    wanted = options.parse_args().folder
    failed = build(wanted)
    if not failed:
        sys.stdout.write(f"Open {wanted / 'index.html'}\n")
    sys.exit(failed)
