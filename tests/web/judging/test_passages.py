"""Display of passages: plain text, Markdown, pictures, and HTML for a frame."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.records import Passage
from duelpool.web.judging import passages
from duelpool.web.judging.passages import frame_document, is_picture, markdown, shown
from support.xss import PAYLOADS

PIXEL = "data:image/png;base64,iVBORw0KGgo="
HARMLESS = {
    *(
        "p",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "blockquote",
        "pre",
        "hr",
        "br",
        "strong",
        "em",
        "s",
        "code",
    ),
    *("table", "thead", "tbody", "tr", "th", "td", "img"),
}
HARMLESS_ATTRIBUTES = {
    ("img", "src"),
    ("img", "alt"),
    ("ol", "start"),
    ("a", "href"),
    ("a", "rel"),
    ("a", "title"),
}


class Seen(HTMLParser):
    """Notes every tag, attribute and text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_markdown_is_rendered() -> None:
    html = markdown(
        "# Head\n\nSome *text*, **more**, ~~less~~ and `code`.\n\n3. three\n4. four\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    assert html.startswith(
        "<h3>Head</h3>\n<p>Some <em>text</em>, <strong>more</strong>, <s>less</s> and <code>code</code>.</p>"
    )
    assert '<ol start="3">' in html
    assert "<td>2</td>" in html


def test_headings_of_a_passage_are_below_those_of_the_page() -> None:
    tags = Seen(markdown("\n\n".join(f"{'#' * level} x" for level in range(1, 7)))).tags
    assert tags == ["h3", "h4", "h5", "h6", "h6", "h6"]
    tags = Seen(markdown("### x\n\n##### y\n\n#### z\n\n# w\n\n## v")).tags
    assert tags == ["h3", "h4", "h4", "h3", "h4"]  # no level is left out


def test_links_are_text_in_passages_and_links_in_the_campaigns_texts() -> None:
    text = "[here](https://example.org/a) and <mailto:a@example.org>"
    assert Seen(markdown(text)).tags == ["p"]
    assert Seen(markdown(text)).text.strip() == "here and mailto:a@example.org"
    own = Seen(markdown(text, links=True))
    assert [value for tag, name, value in own.attributes if name == "href"] == [
        "https://example.org/a",
        "mailto:a@example.org",
    ]
    assert {value for tag, name, value in own.attributes if name == "rel"} == {"noopener noreferrer nofollow"}


def test_only_embedded_pictures_are_shown() -> None:
    assert markdown(f"![a *dot*]({PIXEL})") == f'<p><img src="{PIXEL}" alt="a dot"></p>\n'
    assert markdown("![a <dot>](https://example.org/dot.png)") == "<p>[a &lt;dot&gt;]</p>\n"


@pytest.mark.parametrize(
    "text",
    [
        *("", "https://example.org/a.png", "data:image/svg+xml;base64,PHN2Zy8+", "data:text/html,x"),
        *("data:image/png;base64,", f"{PIXEL}\n{PIXEL}", "data:image/png;base64,AA'A"),
    ],
)
def test_other_addresses_are_not_pictures(text: str) -> None:
    assert not is_picture(text)
    assert shown(Passage("a", text, title="t", format="image")) == {
        "format": "text",
        "title": "t",
        "text": text,
    }


def test_no_format_reveals_the_items_id() -> None:
    assert shown(Passage("a", "x<b>", title="t", url="https://example.org")) == {
        "format": "text",
        "title": "t",
        "text": "x<b>",
    }
    assert shown(Passage("a", "*x*", format="markdown")) == {
        "format": "markdown",
        "title": "",
        "html": "<p><em>x</em></p>\n",
    }
    assert shown(Passage("a", f" {PIXEL}\n", format="image")) == {
        "format": "image",
        "title": "",
        "src": PIXEL,
    }
    assert shown(Passage("a", "<p>x", format="html"), "/frame") == {
        "format": "html",
        "title": "",
        "src": "/frame",
    }
    assert shown(Passage("a", "<p>x", format="html"))["format"] == "text"  # nowhere to show it


def test_a_frames_document_has_type_charset_and_title() -> None:
    document = Seen(frame_document("<p>Hello", "A & B"))
    assert document.tags[:2] == ["html", "head"]
    assert "A & B" in document.text
    assert "Hello" in document.text


def is_harmless(html: str, links: bool) -> bool:
    seen = Seen(html)
    tags = set(seen.tags) <= HARMLESS | ({"a"} if links else set())
    attributes = {(tag, name) for tag, name, _ in seen.attributes} <= HARMLESS_ATTRIBUTES
    addresses = all(
        is_picture(value) if name == "src" else value.lower().startswith(("http://", "https://", "mailto:"))
        for _, name, value in seen.attributes
        if name in ("src", "href")
    )
    return tags and attributes and addresses


def test_line_breaks_stay_in_answers_and_not_in_the_campaigns_own_texts() -> None:
    haiku = "In containers\nit sets us free\n\nYet complexity"
    assert markdown(haiku) == "<p>In containers<br>\nit sets us free</p>\n<p>Yet complexity</p>\n"
    assert "<br>" not in markdown(haiku, links=True)


@pytest.mark.parametrize("links", [False, True])
def test_every_payload_is_harmless_as_markdown(links: bool) -> None:
    assert [each for each in PAYLOADS if not is_harmless(markdown(each, links=links), links)] == []


def test_the_check_for_harmless_html_detects_harm() -> None:
    """The check above detects harmful HTML."""
    for bad in ("<script>", "<p onclick=x>", "<a href='javascript:x'>", "<img src='https://x'>", "<svg>"):
        assert not is_harmless(bad, links=True)


PARTS = st.sampled_from(
    [*PAYLOADS, *"*_`[]()!<>&\"'\\#|~-\n ", "![", "](", "](javascript:", f"]({PIXEL})", "<a href=", "http://"]
)


@given(st.lists(PARTS, max_size=12).map("".join), st.booleans())
def test_property_markdown_of_any_text_is_harmless(text: str, links: bool) -> None:
    assert is_harmless(markdown(text, links=links), links)


@given(st.text(alphabet=st.characters(categories=["L", "N"], include_characters="<>&\"' ="), min_size=1))
def test_property_text_without_markdown_is_shown_literally(text: str) -> None:
    seen = Seen(passages.markdown("x" + text + "x"))
    assert " ".join(seen.text.split()) == " ".join(f"x{text}x".split())
