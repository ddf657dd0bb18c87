"""A report as one HTML file: chapters with text, charts and tables.

The page loads nothing from a server, runs no script, and prints as it looks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib import resources

from duelpool.report import charts
from duelpool.report.charts import Chart
from duelpool.report.tables import Table, html_text


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure at the head of the page, and what it counts."""

    figure: str
    about: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """A section of the page: paragraphs (`words`), charts, tables and commands."""

    title: str
    words: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    commands: tuple[str, ...] = field(default=())


def html_page(title: str, lead: str, facts: Sequence[Fact], chapters: Sequence[Chapter]) -> str:
    """Return the whole page."""
    style = (resources.files("duelpool.report") / "page.css").read_text(encoding="utf-8") + charts.style()
    names = _anchors([chapter.title for chapter in chapters])
    listed = "".join(
        f'<li><a href="#{name}">{escape(chapter.title)}</a></li>'
        for name, chapter in zip(names, chapters, strict=True)
    )
    counted = "".join(
        f"<div><dt>{escape(each.about)}</dt><dd>{escape(each.figure)}</dd></div>" for each in facts
    )
    sections = "".join(_chapter(name, chapter) for name, chapter in zip(names, chapters, strict=True))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1><p>{escape(lead)}</p><dl>{counted}</dl>"
        f'<nav aria-label="Chapters"><ul>{listed}</ul></nav></header>\n<main>\n{sections}</main>\n</body>\n</html>\n'
    )


def _anchors(titles: Sequence[str]) -> list[str]:
    """Return an id for each title, no two the same."""
    anchors: list[str] = []
    for title in titles:
        plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "chapter"
        anchors.append(plain if plain not in anchors else f"{plain}-{len(anchors)}")
    return anchors


def _chapter(name: str, chapter: Chapter) -> str:
    words = "".join(f"<p>{escape(each)}</p>" for each in chapter.words)
    drawn = "".join(f"<figure>{each}</figure>" for each in chapter.charts if each)
    tables = "".join(_table(each) for each in chapter.tables)
    commands = "".join(f"<pre><code>{escape(each)}</code></pre>" for each in chapter.commands)
    return (
        f'<section id="{name}"><h2>{escape(chapter.title)}</h2>{words}{drawn}{tables}{commands}</section>\n'
    )


def _table(table: Table) -> str:
    if table.folded:
        inner = html_text(replace(table, caption=""))
        caption = escape(table.caption)
        return f'<details><summary>{caption}</summary><div class="wide" tabindex="0">{inner}</div></details>'
    return f'<div class="wide" tabindex="0">{html_text(table)}</div>'
