"""Safe display of passages: plain text, filtered Markdown, embedded pictures, or HTML in a sandboxed frame.

Passages are untrusted, so nothing in them may run, load or link elsewhere. Markdown is rendered without raw HTML
and then filtered by an allow-list, only pictures embedded in the passage are shown, and HTML is shown in a frame
without any permission.
"""

import re
from collections.abc import Collection
from functools import cache
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt

from duelpool.records import Passage, SourceText

_BLOCKS = {"p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr", "br"}
_TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
_INLINE = {"strong", "em", "s", "code", "img"}
_ABOVE = 2  # headings of the page: h1 and h2
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/]+={0,2}", re.ASCII)


def markdown(text: str, *, links: bool = False) -> str:
    """Return Markdown as safe HTML; links are kept only in the campaign's own texts, line breaks only in others.

    Answers have lists, verses and addresses without Markdown's signs, as chats and comments do.
    """
    inline = _INLINE | ({"a"} if links else set())  # a tag that is removed leaves its text
    attributes = {"img": {"src", "alt"}, "ol": {"start"}, "a": {"href"} if links else set()}
    return nh3.clean(
        _reader(breaks=not links).render(text),
        tags=_BLOCKS | _TABLES | inline,
        attributes=attributes,
        url_schemes={"https", "http", "mailto", "data"},
        attribute_filter=_only_safe_addresses,
        link_rel="noopener noreferrer nofollow",
    )


def is_picture(text: str) -> bool:
    """Return whether a text is an embedded picture: a data: address of a picture format."""
    return _PICTURE.fullmatch(text.strip()) is not None


def shown(passage: Passage, frame_src: str = "") -> dict[str, Any]:
    """Return a passage as the page gets it; `frame_src` is the address where its HTML is served alone.

    A picture with another address isn't loaded: the address is shown as text. The item's id is not sent.
    """
    text, title = passage.text, passage.title
    match passage.format:
        case "markdown":
            return {"format": "markdown", "title": title, "html": markdown(text)}
        case "image" if is_picture(text):
            return {"format": "image", "title": title, "src": text.strip()}
        case "html" if frame_src:
            return {"format": "html", "title": title, "src": frame_src}
    return {"format": "text", "title": title, "text": text}


def sources(passage: Passage) -> list[dict[str, str]]:
    """Return what an answer rests on, as the page gets it; an id or an address is shown where there is nothing else."""
    return [
        {"title": each.title or ("" if each.text else each.url or each.id), "text": each.text}
        for each in passage.sources
        if each.kind != "result"
    ]


def is_page(passage: Passage | None) -> bool:
    """Return whether an item is a page of results."""
    return passage is not None and bool(passage.sources) and all(map(_is_result, passage.sources))


def results(passage: Passage, shared: Collection[str] = ()) -> dict[str, Any]:
    """Return a page of results as the page gets it; `shared` are the ids of results that the other one has, too."""
    rows = [
        {
            "title": each.title,
            "text": each.text or ("" if each.title else each.id),
            "shared": each.id in shared,
        }
        for each in passage.sources
    ]
    return {"format": "results", "title": passage.title, "results": rows, "sources": []}


def _is_result(source: SourceText) -> bool:
    return source.kind == "result"


def frame_document(text: str, title: str = "") -> str:
    """Return an HTML passage as a document of its own, to be served with a policy that forbids everything."""
    return (
        '<!doctype html><html><head><meta charset="utf-8">'
        f"<title>{escape(title) or '&#8203;'}</title>"
        "<style>html{color-scheme:light;background:#fff;color:#1d1f23}"
        "body{font:1.0625rem/1.6 system-ui,sans-serif;max-width:70ch;margin:1rem;overflow-wrap:anywhere}"
        "img{max-width:100%}</style></head>"
        f'<body dir="auto">{text}</body></html>'
    )


@cache
def _reader(*, breaks: bool) -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "breaks": breaks}).enable(["table", "strikethrough"])
    reader.core.ruler.push("levels", _set_levels)
    reader.add_render_rule("image", _picture)
    reader.validateLink = _is_safe_address  # type: ignore[assignment, method-assign]
    return reader


def _set_levels(state: Any) -> None:
    """Put a passage's headings below those of the page, with no level left out."""
    outer: list[str] = []
    for token in state.tokens:
        if token.type == "heading_open":
            outer = [tag for tag in outer if tag < token.tag] + [token.tag]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(_ABOVE + len(outer), 6)}"


def _picture(renderer: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    """Show an embedded picture; of any other, its alternative text."""
    alternative = str(renderer.renderInlineAsText(tokens[at].children, options, env))
    address = str(tokens[at].attrGet("src"))
    return (
        f'<img src="{address}" alt="{escape(alternative)}">'
        if is_picture(address)
        else f"[{escape(alternative)}]"
    )


def _is_safe_address(address: str) -> bool:
    return is_picture(address) or address.lower().startswith(("https://", "http://", "mailto:"))


def _only_safe_addresses(tag: str, attribute: str, value: str) -> str | None:
    if tag == "img" and attribute == "src":
        return value if is_picture(value) else None
    if tag == "a" and attribute == "href":
        return value if not is_picture(value) and _is_safe_address(value) else None
    return value
